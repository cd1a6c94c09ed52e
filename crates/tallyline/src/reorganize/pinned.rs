//! The cost of keeping the first and the last member in place: the savings with them free.

use super::TypeResult;
use tallyline_debuginfo::model::TypeId;
use tallyline_layout::reorganize::{Reorganization, ReorganizeOptions, Reorganizer};

/// The ends that can be freed: the word for `--unpin`, what it means in a sentence, and whether the
/// first member stays.
pub(super) const FREED: [(&str, &str, bool); 2] =
    [("last", "the last member may move", true), ("ends", "both ends may", false)];

/// The savings of a type with each of [`FREED`], in bytes.
pub(super) type Saved = [u64; FREED.len()];

/// Returns each type's savings with free ends, unless they are free already.
pub(super) fn saved(by: &Reorganizer<'_>, ids: &[TypeId], outcomes: &[Reorganization]) -> Vec<Option<Saved>> {
    let options = by.options();
    if !options.pin_last {
        return vec![None; ids.len()];
    }
    let mut all: Vec<Option<Saved>> =
        outcomes.iter().map(|outcome| before(outcome).map(|saved| [saved; 2])).collect();
    let open: Vec<usize> = (0..ids.len()).filter(|at| all[*at].is_some()).collect();
    let types: Vec<TypeId> = open.iter().map(|at| ids[*at]).collect();
    for (kind, (_, _, first_stays)) in FREED.into_iter().enumerate() {
        let freed = ReorganizeOptions {
            pin_first: options.pin_first && first_stays,
            pin_last: false,
            ..options.clone()
        };
        for (at, outcome) in open.iter().zip(by.propose_all_with(&types, &freed)) {
            // where only the best found is known, more freedom may find less
            if let (Reorganization::Smaller(proposal), Some(saved)) = (outcome, &mut all[*at]) {
                saved[kind..].iter_mut().for_each(|saved| *saved = proposal.saved().max(*saved));
            }
        }
    }
    all
}

/// Returns the savings of the proposal as it is; nothing for a type that cannot be reorganized.
fn before(outcome: &Reorganization) -> Option<u64> {
    match outcome {
        Reorganization::Smaller(proposal) => Some(proposal.saved()),
        Reorganization::Smallest { .. } => Some(0),
        Reorganization::Refused(_) => None,
    }
}

/// Returns a hint for one type: the first freed end that saves more.
pub(super) fn hint(found: &TypeResult) -> Option<String> {
    let kept = found.proposal().map_or(0, |proposal| proposal.saved());
    let freed = found.freed?;
    let (saved, (word, ..)) = freed.into_iter().zip(FREED).find(|(saved, _)| *saved > kept)?;
    Some(format!("--unpin {word} would save {saved} bytes"))
}

/// Returns the bytes that all types would save with each end freed, times their instances.
pub(super) fn sums(found: &[TypeResult]) -> Option<Saved> {
    let mut sums: Option<Saved> = None;
    for found in found {
        let Some(freed) = found.freed else { continue };
        let sums = sums.get_or_insert_default();
        for (sum, saved) in sums.iter_mut().zip(freed) {
            *sum = sum.saturating_add(saved.saturating_mul(found.instances));
        }
    }
    sums
}
