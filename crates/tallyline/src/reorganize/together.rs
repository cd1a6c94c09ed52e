//! The savings of all proposals applied together: structs that hold others shrink with them.

use super::Verdict;
use super::verify::Verifier;
use crate::instances::Instances;
use anyhow::Result;
use tallyline_debuginfo::model::{RecordId, TypeId};
use tallyline_layout::reorganize::{Reorganization, Reorganizer};
use tallyline_support::output::printable;

/// The result of applying all proposals.
pub(super) struct Applied {
    /// The bytes that all of the types that were asked about are smaller by, times their instances.
    pub(super) saved: u64,
    /// The number of types that become smaller.
    pub(super) smaller: usize,
    /// The compiler's verdict on all of them.
    pub(super) verdict: Verdict,
}

impl Applied {
    /// Applies what was proposed, and lets a compiler lay out every record that changes.
    pub(super) fn new(
        by: &Reorganizer<'_>,
        verifier: Option<&Verifier>,
        ids: &[TypeId],
        outcomes: &[Reorganization],
        instances: &Instances,
    ) -> Result<Applied> {
        let types = by.types();
        let together = by.together(ids, outcomes);
        let (mut saved, mut smaller) = (0_u64, 0);
        for id in ids {
            let Some((record, old)) = types.as_record(types.strip(*id)) else { continue };
            let new = together.size(record).unwrap_or(old.size);
            let count = instances.of(&printable(&types.qualified_name(*id)));
            saved = saved.saturating_add(old.size.saturating_sub(new).saturating_mul(count));
            smaller += usize::from(new < old.size);
        }
        let verdict = match verifier {
            None => Verdict::NotAsked,
            Some(verifier) => {
                let records = together.records();
                let verdicts = verifier.verify_together(by, &together, &records)?;
                worst(by, &records, verdicts)
            }
        };
        Ok(Applied { saved, smaller, verdict })
    }

    /// Describes the reason for a negative verdict.
    pub(super) fn complaint(&self) -> Option<String> {
        match &self.verdict {
            Verdict::Wrong(why) => Some(format!("all proposals together do not hold: {why}")),
            _ => None,
        }
    }
}

/// Combines the records' verdicts into one: the first that is not the compiler's consent.
fn worst(by: &Reorganizer<'_>, records: &[RecordId], verdicts: Vec<Verdict>) -> Verdict {
    let mut all = Verdict::NotAsked;
    for (id, verdict) in records.iter().zip(verdicts) {
        match verdict {
            Verdict::Verified(_) => all = verdict,
            Verdict::Wrong(why) => {
                let types = by.types();
                let name = printable(types.name(types.record(*id).name)).into_owned();
                return Verdict::Wrong(format!("{name}: {why}"));
            }
            other => return other,
        }
    }
    all
}
