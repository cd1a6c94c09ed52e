//! Conflicts on shared lines: whose accesses take a line from whom, and what that costs.

use super::address_map::AddressMap;
use super::evidence::{Evidence, SharedLine, Slot, Subject, SubjectKind};
use std::collections::BTreeMap;

/// Writes of a thread to a part of a line up to which they only initialise it, or free it: they take the line once, in
/// whatever order its fields are.
const ONCE: u64 = 2;

/// The part of a field's accesses that go with writes of their threads to another, from which all count as such.
const ACQUIRED: f64 = 0.9;

/// The relation between two fields on one cache line that threads take from each other: the same field, fields of
/// one object, objects of one type, or unrelated data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Relation {
    /// One field of one object: victim and culprit are the same slot.
    Same,
    /// Fields of one object.
    Fields,
    /// Fields of one object, of which each access to the one goes with a write of the same thread to the other, as to
    /// a lock or a count of references, and waits for less: who has written that has the line.
    Acquired,
    /// Two objects of a type, or elements of an array.
    Neighbours,
    /// Parts of different types or variables.
    Strangers,
}

/// A pair of fields whose accesses make cores take cache lines from each other: the *victim*, whose accesses wait,
/// and the *culprit*, whose writes take the line. Each is a type or variable with an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConflictKey {
    pub(crate) relation: Relation,
    pub(crate) victim: (usize, u64),
    pub(crate) culprit: (usize, u64),
}

/// The cycles and cache-line transfers that writes to one field (the culprit) cost accesses to another (the
/// victim), summed over all cache lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ConflictSum {
    /// Cycles that the victim waited.
    pub(crate) lost: f64,
    /// Lines that the victim got from other cores.
    pub(crate) transfers: f64,
    /// The lines, as indices of the evidence.
    pub(crate) lines: Vec<usize>,
}

/// Returns the relation between two fields on one cache line: the same field, fields of one object, objects of one
/// type, or unrelated data.
pub(crate) fn relation(victim: &Slot, culprit: &Slot) -> Relation {
    if victim.subject != culprit.subject {
        Relation::Strangers
    } else if victim.base != culprit.base {
        Relation::Neighbours
    } else if victim.offset == culprit.offset {
        Relation::Same
    } else if is_acquired(victim, culprit) {
        Relation::Acquired
    } else {
        Relation::Fields
    }
}

/// Returns `true` if the threads that access a part of an object write to another part of it about as often: half as
/// often at least, as a lock is written twice for each turn, and what it guards may be read more than once. What is
/// read in front of the write waits itself, and is told from the rest by that.
fn is_acquired(victim: &Slot, culprit: &Slot) -> bool {
    if victim.lost > culprit.lost / 2 {
        return false;
    }
    let culprits = culprit.by_thread();
    let (mut all, mut acquired) = (0_u64, 0_u64);
    for (thread, reads, writes) in victim.by_thread() {
        let own = culprits.iter().find(|(other, ..)| *other == thread).map_or(0, |(.., writes)| *writes);
        let accesses = reads.saturating_add(writes);
        all = all.saturating_add(accesses);
        if own.saturating_mul(2) >= accesses {
            acquired = acquired.saturating_add(accesses);
        }
    }
    acquired as f64 >= all as f64 * ACQUIRED
}

/// Returns an upper estimate of how often accesses to the victim's field can collide with other threads' writes to
/// the culprit's: for each pair of threads the smaller of both counts, summed. A few initialising writes count as
/// none.
pub(crate) fn meetings(victim: &Slot, culprit: &Slot) -> u64 {
    let (victims, culprits) = (victim.by_thread(), culprit.by_thread());
    let mut sum = 0_u64;
    for (thread, reads, writes) in &victims {
        for (other, _, taken) in culprits.iter().filter(|(other, _, taken)| other != thread && *taken > ONCE)
        {
            debug_assert_ne!(thread, other);
            sum = sum.saturating_add((reads + writes).min(*taken));
        }
    }
    sum
}

/// Returns `true` if two slots are of objects that overlap, of which none can be a part of the other: one of the two was
/// freed before the other one was made.
pub(crate) fn overlap(subjects: &[Subject], one: &Slot, other: &Slot) -> bool {
    if one.base == other.base {
        return false;
    }
    let (first, second) = if one.base < other.base { (one, other) } else { (other, one) };
    let (Some(outer), Some(inner)) = (subjects.get(first.subject), subjects.get(second.subject)) else {
        return false;
    };
    let distance = second.base - first.base;
    let is_record = |subject: &Subject| {
        subject.kind == SubjectKind::Record && !subject.is_library_type && subject.size > 0
    };
    distance < outer.size
        && (first.subject == second.subject
            || (is_record(outer) && is_record(inner) && !outer.can_hold(distance, inner.size)))
}

/// Divides the losses of a line's slots among the slots that cause them, by how often they can meet.
fn of_line(evidence: &Evidence, line: &SharedLine) -> Vec<(usize, usize, f64)> {
    let mut all = Vec::new();
    for (at, victim) in line.slots.iter().enumerate() {
        if victim.lost == 0 && victim.transfers == 0 {
            continue;
        }
        let weight = |culprit| match overlap(&evidence.subjects, victim, culprit) {
            true => 0,
            false => meetings(victim, culprit),
        };
        let weights: Vec<u64> = line.slots.iter().map(weight).collect();
        let total: u64 = weights.iter().fold(0, |sum, weight| sum.saturating_add(*weight));
        let shares = weights.iter().enumerate().filter(|(_, weight)| **weight > 0);
        all.extend(shares.map(|(other, weight)| (at, other, *weight as f64 / total.max(1) as f64)));
    }
    all
}

/// Divides the cycles that accesses waited for shared cache lines among the pairs of fields that cause the waits, and
/// returns the sums for each pair of victim (the field that waited) and culprit (the field whose writes took the line).
pub(crate) fn conflicts(evidence: &Evidence) -> BTreeMap<ConflictKey, ConflictSum> {
    let mut sums: BTreeMap<ConflictKey, ConflictSum> = BTreeMap::new();
    for (index, line) in evidence.lines.iter().enumerate() {
        for (victim, culprit, share) in of_line(evidence, line) {
            let (victim, culprit) = (&line.slots[victim], &line.slots[culprit]);
            let key = ConflictKey {
                relation: relation(victim, culprit),
                victim: (victim.subject, victim.offset),
                culprit: (culprit.subject, culprit.offset),
            };
            let sum = sums.entry(key).or_default();
            sum.lost += victim.lost as f64 * share;
            sum.transfers += victim.transfers as f64 * share;
            if sum.lines.last() != Some(&index) {
                sum.lines.push(index);
            }
        }
    }
    sums
}

/// Returns the cycles that accesses to each field (type or variable, and offset) no longer wait with the data moved as in
/// `map`: those that writes to a field cost that is on another cache line then.
pub(crate) fn cured(evidence: &Evidence, map: &AddressMap) -> BTreeMap<(usize, u64), u64> {
    let mut cured: BTreeMap<(usize, u64), f64> = BTreeMap::new();
    let line_of = |slot: &Slot| {
        let site = slot.uses.first().and_then(|of| evidence.sites.get(of.site));
        let instruction = site.map_or(u32::MAX, |site| site.instruction);
        map.data(0, instruction, slot.address()).unwrap_or(slot.address()) / evidence.line_size.max(1)
    };
    for line in &evidence.lines {
        for (victim, culprit, share) in of_line(evidence, line) {
            let (victim, culprit) = (&line.slots[victim], &line.slots[culprit]);
            if line_of(victim) != line_of(culprit) {
                *cured.entry((victim.subject, victim.offset)).or_default() += victim.lost as f64 * share;
            }
        }
    }
    cured.into_iter().map(|(field, cycles)| (field, cycles.round() as u64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{MemberInfo, SlotUse};

    pub(crate) fn slot(subject: usize, base: u64, offset: u64, uses: &[(u32, u64, u64)]) -> Slot {
        let uses = uses.iter().map(|(thread, reads, writes)| SlotUse {
            thread: *thread,
            site: 0,
            reads: *reads,
            writes: *writes,
        });
        Slot { subject, base, offset, size: 8, uses: uses.collect(), lost: 1000, ..Slot::default() }
    }

    #[test]
    fn readers_of_one_thread_do_not_meet_its_own_writes() {
        let own = slot(0, 0, 0, &[(1, 10, 10)]);
        assert_eq!(meetings(&own, &own), 0);
        let other = slot(0, 0, 8, &[(2, 0, 7)]);
        assert_eq!((meetings(&own, &other), meetings(&other, &own)), (7, 7));
        let reader = slot(0, 0, 16, &[(3, 100, 0)]);
        assert_eq!((meetings(&reader, &other), meetings(&other, &reader)), (7, 0), "reads take nothing away");
        let maker = slot(0, 0, 24, &[(4, 0, 1)]);
        assert_eq!(meetings(&reader, &maker), 0, "one that only initialises");
    }

    #[test]
    fn what_threads_access_behind_a_lock_of_theirs_comes_with_its_line() {
        let lock = slot(0, 0, 0, &[(1, 0, 200), (2, 0, 200)]);
        let guarded = Slot { lost: 100, ..slot(0, 0, 8, &[(1, 100, 100), (2, 100, 0)]) };
        assert_eq!(relation(&guarded, &lock), Relation::Acquired);
        let in_front = Slot { lost: 900, ..guarded };
        assert_eq!(relation(&in_front, &lock), Relation::Fields, "it is read before the lock is taken");
        let settings = Slot { lost: 100, ..slot(0, 0, 16, &[(1, 100, 0), (3, 5000, 0)]) };
        assert_eq!(relation(&settings, &lock), Relation::Fields, "a thread that does not take the lock");
        assert_eq!(relation(&lock, &settings), Relation::Fields);
    }

    #[test]
    fn objects_in_the_memory_of_freed_ones_do_not_meet_them() {
        let uses: [&[_]; 2] = [&[(1, 100, 100)], &[(2, 100, 100)]];
        let member = |offset, size| MemberInfo { offset, size, ..MemberInfo::default() };
        let record =
            |size, members| Subject { kind: SubjectKind::Record, size, members, ..Subject::default() };
        let client = record(64, vec![member(0, 8), member(8, 8), member(16, 24), member(40, 24)]);
        let of = |second: Slot| {
            let lines = vec![SharedLine { address: 0, slots: vec![slot(0, 0, 8, uses[0]), second] }];
            let subjects = vec![client.clone(), record(24, vec![member(0, 8)])];
            conflicts(&Evidence { lines, subjects, line_size: 64, ..Evidence::default() }).len()
        };
        assert_eq!(of(slot(0, 8, 0, uses[1])), 0, "of the same type");
        assert_eq!(of(slot(1, 8, 0, uses[1])), 0, "over two members");
        assert!(of(slot(1, 16, 0, uses[1])) > 0, "a part of the other");
        assert!(of(slot(1, 64, 0, uses[1])) > 0, "behind it");
    }

    #[test]
    fn losses_go_to_those_that_cause_them() {
        let slots = vec![
            slot(0, 0, 0, &[(1, 100, 0), (2, 100, 0)]),
            slot(0, 0, 8, &[(1, 0, 100)]),
            slot(0, 32, 0, &[(3, 0, 100)]),
            slot(1, 48, 0, &[(4, 1, 0)]),
        ];
        let evidence =
            Evidence { lines: vec![SharedLine { address: 0, slots }], line_size: 64, ..Evidence::default() };
        let sums = conflicts(&evidence);
        let lost = |relation| {
            let of = sums.iter().filter(|(key, _)| key.relation == relation && key.victim == (0, 0));
            of.map(|(_, sum)| sum.lost).sum::<f64>().round()
        };
        assert_eq!((lost(Relation::Same), lost(Relation::Strangers)), (0.0, 0.0));
        // slot 0 of object 0 meets thread 1's writes once (by thread 2), and thread 3's twice
        let fields = sums.iter().find(|(key, _)| key.relation == Relation::Fields).expect("a conflict").1;
        assert!(fields.lost > 300.0 && fields.lost < 400.0, "{}", fields.lost);
    }
}
