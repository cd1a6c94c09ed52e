//! Neighbours and strangers on one line: elements, objects and variables of different threads.

use super::{Confidence, Conflicts, FieldEvidence, Finding, FindingKind, Relation};
use crate::address_map::AddressMap;
use crate::evidence::{Evidence, Slot, Subject};
use crate::predict::Outlook;
use crate::proposal::{Proposal, Separation};
use std::collections::{BTreeMap, BTreeSet};

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
    let map = map(evidence, &lines, |slot| (slot.subject == index).then_some(slot.base));
    let line = evidence.line_size;
    let size = subject.size.max(1);
    let pad = match super::separation(evidence, index) {
        Separation::Padded(pad) if !subject.members.is_empty() => pad,
        _ => 0,
    };
    let new = match pad {
        0 => size.next_multiple_of(line),
        pad => size.saturating_add(pad).next_multiple_of(subject.align.max(1)),
    };
    // who reads all elements touches as many lines as there are elements, and before as many as they filled
    let elements: BTreeSet<u64> = lines
        .iter()
        .flat_map(|at| &evidence.lines[*at].slots)
        .filter(|slot| slot.subject == index)
        .map(|slot| slot.base)
        .collect();
    let after = elements.len() as u64 * size.div_ceil(line);
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

/// Variables, or objects of different types, that have a line in common.
fn of_strangers(evidence: &Evidence, sums: &Conflicts, counters: &BTreeSet<(usize, u64)>) -> Vec<Finding> {
    let is_counter =
        |key: &super::ConflictKey| counters.contains(&key.culprit) || counters.contains(&key.victim);
    let mut pairs: BTreeMap<(usize, usize), (f64, f64, BTreeSet<usize>)> = BTreeMap::new();
    for (key, sum) in sums.iter().filter(|(key, _)| key.relation == Relation::Strangers && !is_counter(key)) {
        let (one, other) = (key.victim.0.min(key.culprit.0), key.victim.0.max(key.culprit.0));
        let pair = pairs.entry((one, other)).or_default();
        pair.0 += sum.lost;
        pair.1 += sum.transfers;
        pair.2.extend(sum.lines.iter().copied());
    }
    let mut all = Vec::new();
    for ((one, other), (lost, transfers, lines)) in pairs {
        let named = |index: usize| super::is_named(evidence.subjects.get(index));
        if !super::is_worth(evidence, lost, transfers) || !named(one) || !named(other) {
            continue;
        }
        let on_lines: BTreeSet<u64> = lines.iter().map(|at| evidence.lines[*at].address).collect();
        let line_size = evidence.line_size;
        let fields: Vec<FieldEvidence> = super::field_evidence(evidence, |slot| {
            let is_one = slot.subject == one || slot.subject == other;
            is_one && on_lines.contains(&(slot.address() / line_size * line_size))
        });
        if super::is_runtimes(evidence, &fields) {
            continue;
        }
        let slots = lines.iter().flat_map(|at| &evidence.lines[*at].slots);
        let both = slots.filter(|slot| slot.subject == one || slot.subject == other);
        let names: BTreeSet<String> = both.map(|slot| whole_name(evidence, slot)).collect();
        let declared = |index: usize| evidence.subjects.get(index).cloned().unwrap_or_else(Subject::default);
        let (first, second) = (declared(one), declared(other));
        let place = if first.file.is_empty() { &second } else { &first };
        all.push(Finding {
            kind: FindingKind::SharedStrangers,
            subject: one,
            confidence: Confidence::High,
            lines: lines.len() as u64,
            lost: lost as u64,
            transfers: transfers as u64,
            reader_lines: (1, names.len() as u64),
            proposal: Proposal::Apart {
                names: names.into_iter().collect(),
                file: place.file.clone(),
                line: place.line,
                align: line_size,
                pad: 0,
                sizes: (first.size, first.size.max(1).next_multiple_of(line_size)),
            },
            outlook: Outlook::default(),
            check: None,
            map: map(evidence, &lines, |slot| {
                (slot.subject == one || slot.subject == other).then_some(slot.subject as u64)
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
            map.move_range(slot.address(), slot.size, target);
        }
    }
    map
}
