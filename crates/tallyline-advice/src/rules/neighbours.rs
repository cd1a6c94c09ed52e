//! Neighbours and strangers on one line: elements, objects and variables of different threads.

use super::{Confidence, Conflicts, FieldEvidence, Finding, FindingKind, Relation};
use crate::address_map::AddressMap;
use crate::evidence::{Evidence, Slot};
use crate::predict::Outlook;
use crate::proposal::{Proposal, Separation, up};
use std::collections::{BTreeMap, BTreeSet};

/// Accesses of a thread for each of all up to which it does not count: who initialises or prints.
const MINOR: f64 = 0.01;

/// Returns a finding for each type, array or set of variables whose neighbours share lines.
pub(super) fn findings(
    evidence: &Evidence,
    sums: &Conflicts,
    counters: &BTreeSet<(usize, u64)>,
) -> Vec<Finding> {
    let subjects = super::subjects_with(sums, Relation::Neighbours);
    let mut all: Vec<Finding> =
        subjects.into_iter().filter_map(|subject| of_neighbours(evidence, sums, subject)).collect();
    all.extend(of_strangers(evidence, sums, counters));
    all
}

fn of_neighbours(evidence: &Evidence, sums: &Conflicts, index: usize) -> Option<Finding> {
    let subject = evidence.subjects.get(index)?;
    let (lost, transfers, lines) =
        super::sum(sums, |key| key.relation == Relation::Neighbours && key.victim.0 == index);
    if !super::is_worth(evidence, lost, transfers) || !super::is_named(Some(subject)) {
        return None;
    }
    let fields = super::field_evidence(evidence, |slot| slot.subject == index);
    if super::is_runtimes(evidence, &fields) {
        return None;
    }
    let fields = super::taking_part(fields);
    let map = map(evidence, &lines, |slot| (slot.subject == index).then_some(slot.base));
    let line = evidence.line_size;
    let size = subject.size.max(1);
    let pad = match super::separation(evidence, index) {
        Separation::Padded(pad) if !subject.members.is_empty() => pad,
        _ => 0,
    };
    let new = match pad {
        0 => up(size, line),
        pad => up(size.saturating_add(pad), subject.align.max(1)),
    };
    // who reads all elements touches as many lines as there are elements, and before as many as they filled
    let elements: BTreeSet<u64> = lines
        .iter()
        .flat_map(|at| &evidence.lines[*at].slots)
        .filter(|slot| slot.subject == index)
        .map(|slot| slot.base)
        .collect();
    let after = (elements.len() as u64).saturating_mul(size.div_ceil(line));
    Some(Finding {
        kind: FindingKind::SharedNeighbours,
        subject: index,
        confidence: Confidence::High,
        lines: lines.len() as u64,
        lost: lost as u64,
        transfers: transfers as u64,
        reader_lines: (lines.len() as u64, after),
        proposal: Proposal::Apart {
            names: vec![subject.name.clone()],
            file: subject.file.clone(),
            line: subject.line,
            align: line,
            pad,
            sizes: (size, new),
        },
        outlook: Outlook::default(),
        check: None,
        map,
        fields,
    })
}

/// The name of the variable of a slot without its parts; else that of its subject.
fn whole_name(evidence: &Evidence, slot: &Slot) -> String {
    let variable = slot.variable.split(['[', '.', '+']).next().unwrap_or_default();
    match variable.is_empty() {
        false => variable.to_owned(),
        true => evidence.subjects.get(slot.subject).map_or_else(String::new, |subject| subject.name.clone()),
    }
}

/// Variables, or objects of different types, that have lines in common, and what that costs.
#[derive(Default)]
struct StrangerSet {
    subjects: BTreeSet<usize>,
    lost: f64,
    transfers: f64,
    lines: BTreeSet<usize>,
}

/// Returns the sets of variables, or of objects of different types, that have lines in common: setting two of them apart
/// gains nothing while others stay with both.
fn stranger_sets(
    evidence: &Evidence,
    sums: &Conflicts,
    counters: &BTreeSet<(usize, u64)>,
) -> Vec<StrangerSet> {
    // the words around a block of `malloc` are set apart with the block, if at all
    let of_runtime: BTreeSet<usize> = (0..evidence.subjects.len())
        .filter(|index| evidence.subjects[*index].is_library_type)
        .filter(|index| {
            super::is_runtimes(evidence, &super::field_evidence(evidence, |slot| slot.subject == *index))
        })
        .collect();
    let mut sets: Vec<StrangerSet> = Vec::new();
    for (key, sum) in sums.iter().filter(|(key, _)| key.relation == Relation::Strangers) {
        let is_counter = counters.contains(&key.culprit) || counters.contains(&key.victim);
        let subjects = BTreeSet::from([key.victim.0, key.culprit.0]);
        let is_named = |index: &usize| super::is_named(evidence.subjects.get(*index));
        if is_counter || !subjects.iter().all(is_named) || !subjects.is_disjoint(&of_runtime) {
            continue;
        }
        let mut joined = StrangerSet {
            subjects,
            lost: sum.lost,
            transfers: sum.transfers,
            lines: sum.lines.iter().copied().collect(),
        };
        let meets = |set: &StrangerSet| {
            !set.subjects.is_disjoint(&joined.subjects) && !set.lines.is_disjoint(&joined.lines)
        };
        let (known, others): (Vec<_>, Vec<_>) = sets.into_iter().partition(meets);
        sets = others;
        for set in known {
            joined.subjects.extend(set.subjects);
            joined.lines.extend(set.lines);
            joined.lost += set.lost;
            joined.transfers += set.transfers;
        }
        sets.push(joined);
    }
    sets
}

/// The threads that write to a subject much, and those that access it much.
type Users = (Vec<u32>, Vec<u32>);

/// Returns the main users of each subject of a set: what belongs to the same threads stays together.
fn users(evidence: &Evidence, set: &StrangerSet) -> BTreeMap<usize, Users> {
    let mut by_subject: BTreeMap<usize, BTreeMap<u32, (u64, u64)>> = BTreeMap::new();
    for slot in set.lines.iter().flat_map(|at| &evidence.lines[*at].slots) {
        let of = by_subject.entry(slot.subject).or_default();
        for (thread, reads, writes) in slot.by_thread() {
            let counts = of.entry(thread).or_default();
            *counts = (counts.0 + writes, counts.1 + reads + writes);
        }
    }
    let main = |of: BTreeMap<u32, (u64, u64)>| {
        let total: u64 = of.values().map(|(_, all)| all).sum();
        let is_much = |count: u64| count as f64 > total as f64 * MINOR;
        let with = |count: fn(&(u64, u64)) -> u64| -> Vec<u32> {
            of.iter().filter(|(_, counts)| is_much(count(counts))).map(|(thread, _)| *thread).collect()
        };
        let (writers, all) = (with(|counts| counts.0), with(|counts| counts.1));
        // of one thread's, what it only reads is no other's
        if all.len() == 1 { (all.clone(), all) } else { (writers, all) }
    };
    by_subject.into_iter().map(|(subject, of)| (subject, main(of))).collect()
}

/// Variables, or objects of different types, that have a line in common.
fn of_strangers(evidence: &Evidence, sums: &Conflicts, counters: &BTreeSet<(usize, u64)>) -> Vec<Finding> {
    let mut all = Vec::new();
    for set in stranger_sets(evidence, sums, counters) {
        let StrangerSet { subjects, lost, transfers, lines } = &set;
        let Some(first) = subjects.first().copied() else { continue };
        if !super::is_worth(evidence, *lost, *transfers) {
            continue;
        }
        let on_lines: BTreeSet<u64> = lines.iter().map(|at| evidence.lines[*at].address).collect();
        let line_size = evidence.line_size;
        let fields: Vec<FieldEvidence> = super::field_evidence(evidence, |slot| {
            subjects.contains(&slot.subject) && on_lines.contains(&(slot.address() / line_size * line_size))
        });
        if super::is_runtimes(evidence, &fields) {
            continue;
        }
        let fields = super::taking_part(fields);
        let users = users(evidence, &set);
        let mut groups: Vec<&Users> = users.values().collect();
        groups.sort_unstable();
        groups.dedup();
        // the declaration of a library's type is no place for an alignment; a variable's is
        let slots = lines.iter().flat_map(|at| &evidence.lines[*at].slots);
        let ours: Vec<&Slot> = slots
            .filter(|slot| subjects.contains(&slot.subject))
            .filter(|slot| !slot.variable.is_empty() || !evidence.subjects[slot.subject].is_library_type)
            .collect();
        if ours.is_empty() {
            continue;
        }
        let names: BTreeSet<String> = ours.iter().map(|slot| whole_name(evidence, slot)).collect();
        let ours: BTreeSet<usize> = ours.iter().map(|slot| slot.subject).collect();
        let declared = ours.iter().filter_map(|index| evidence.subjects.get(*index));
        let (mut place, mut size) = (("", 0), 0);
        for subject in declared {
            size = size.max(subject.size);
            if place.0.is_empty() {
                place = (subject.file.as_str(), subject.line);
            }
        }
        all.push(Finding {
            kind: FindingKind::SharedStrangers,
            subject: first,
            confidence: Confidence::High,
            lines: lines.len() as u64,
            lost: *lost as u64,
            transfers: *transfers as u64,
            reader_lines: (1, groups.len() as u64),
            proposal: Proposal::Apart {
                names: names.into_iter().collect(),
                file: place.0.to_owned(),
                line: place.1,
                align: line_size,
                pad: 0,
                sizes: (size, up(size.max(1), line_size)),
            },
            outlook: Outlook::default(),
            check: None,
            map: map(evidence, lines, |slot| {
                let of = users.get(&slot.subject).filter(|_| subjects.contains(&slot.subject))?;
                groups.iter().position(|group| *group == of).map(|group| group as u64)
            }),
            fields,
        });
    }
    all
}

/// Moves what has different keys to different lines.
fn map(evidence: &Evidence, lines: &BTreeSet<usize>, key: impl Fn(&Slot) -> Option<u64>) -> AddressMap {
    let mut map = AddressMap::new(evidence.line_size);
    let mut targets: BTreeMap<(usize, u64), u64> = BTreeMap::new();
    for at in lines {
        for slot in &evidence.lines[*at].slots {
            let Some(key) = key(slot) else { continue };
            let target = *targets.entry((*at, key)).or_insert_with(|| map.fresh_lines(1));
            // an access that goes on into the next element, as one to what the memory was before, moves this one alone
            let size = evidence.subjects.get(slot.subject).map_or(0, |subject| subject.size);
            let rest = size.checked_sub(slot.offset).filter(|rest| *rest > 0).unwrap_or(slot.size);
            let target = target + slot.address() % evidence.line_size.max(1);
            super::move_slot(&mut map, evidence, &evidence.lines[*at], slot, (slot.size.min(rest), target));
        }
    }
    map
}
