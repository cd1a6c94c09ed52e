//! Pointers that code follows: the members through which it gets from objects of one type to objects of another.
//!
//! A trace has addresses and no values. Code says which loads an access has its address from, and the thread's last
//! execution of one of these is the pointer that led to the object.

use super::evidence::{FollowedField, FollowedPointer, SubjectKind};
use super::resolve::Resolved;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use tallyline_trace::format::Access;

/// Accesses of a thread behind one through a pointer that may be to the same object by code without types.
const REACH: u64 = 64;

/// The most pointers, and objects behind them, that are told apart for one member.
const OBJECTS_LIMIT: usize = 1 << 20;

/// Bytes of a pointer.
const POINTER: u8 = 8;

/// Returns the path of a pointer member without the parts of a smart pointer of libstdc++, `_M_t` and the like.
fn own_path(path: &str) -> &str {
    path.split("._M_").next().unwrap_or(path)
}

/// The parts of an instruction in following pointers.
#[derive(Clone, Debug, Default)]
struct Roles {
    /// The pointer that it accesses, as an index of the pointers.
    pointer: Option<usize>,
    /// The type and the offset of the field that it accesses, of a type that pointers lead to.
    target: Option<(usize, u64)>,
    /// The instructions that load the pointer by which it does.
    through: Vec<u32>,
}

/// The last execution of a load of a pointer, in one thread.
#[derive(Clone, Debug)]
struct LastLoad {
    pointer: usize,
    address: u64,
    time: u64,
    /// The offsets of the target's fields that were accessed since.
    seen: Vec<u64>,
}

/// The object that was reached last through a pointer, in one thread.
#[derive(Clone, Copy, Debug)]
struct LastVisit {
    pointer: usize,
    start: u64,
    end: u64,
    time: u64,
}

/// Accumulator of the pointers that a process follows, from its accesses.
#[derive(Debug, Default)]
pub(crate) struct PointerPaths {
    roles: FxHashMap<u32, Roles>,
    pointers: Vec<FollowedPointer>,
    // by pointer: its addresses, each with the object that it leads to
    slots: Vec<FxHashMap<u64, u64>>,
    // by pointer: all its addresses; objects with several pointers; fields; loads by instruction
    addresses: Vec<FxHashSet<u64>>,
    shared: Vec<FxHashSet<u64>>,
    fields: Vec<BTreeMap<u64, FollowedField>>,
    counts: Vec<FxHashMap<u32, u64>>,
    // by object: the pointer that led there first, with its address
    owners: FxHashMap<u64, (usize, u64)>,
    // by target's type: loads in any way; by its fields: stores
    loads: FxHashMap<usize, u64>,
    stores: FxHashMap<(usize, u64), u64>,
    // the present thread and its accesses
    thread: Option<u32>,
    time: u64,
    last: FxHashMap<u32, LastLoad>,
    visit: Option<LastVisit>,
}

impl PointerPaths {
    /// Prepares for the instructions whose operands are known.
    pub(crate) fn new(resolved: &Resolved) -> Self {
        let mut by_name: FxHashMap<(&str, u64), usize> = FxHashMap::default();
        for (at, subject) in resolved.subjects.iter().enumerate() {
            if subject.kind == SubjectKind::Record {
                by_name.entry((&subject.name, subject.size)).or_insert(at);
            }
        }
        let mut all = Self::default();
        let mut known: FxHashMap<(usize, u64), usize> = FxHashMap::default();
        let mut operands: Vec<_> = resolved.operands.iter().collect();
        operands.sort_unstable_by_key(|(instruction, _)| **instruction);
        for (instruction, operand) in &operands {
            let Some((name, size)) = resolved.pointees.get(instruction) else { continue };
            let target = by_name.get(&(name.as_str(), *size)).copied();
            // a list's own links lead from node to node: neither can be a part of the other
            let Some(target) = target.filter(|target| *target != operand.subject) else { continue };
            let pointer = *known.entry((operand.subject, operand.offset)).or_insert_with(|| {
                all.pointers.push(FollowedPointer {
                    subject: operand.subject,
                    offset: operand.offset,
                    field: own_path(&operand.field).to_owned(),
                    target,
                    ..FollowedPointer::default()
                });
                all.pointers.len() - 1
            });
            all.roles.entry(**instruction).or_default().pointer = Some(pointer);
        }
        let targets: FxHashSet<usize> = all.pointers.iter().map(|pointer| pointer.target).collect();
        for (instruction, operand) in
            operands.iter().filter(|(_, operand)| targets.contains(&operand.subject))
        {
            let roles = all.roles.entry(**instruction).or_default();
            roles.target = Some((operand.subject, operand.offset));
            roles.through = resolved.base_loads.get(instruction).cloned().unwrap_or_default();
        }
        let number = all.pointers.len();
        all.slots.resize_with(number, FxHashMap::default);
        all.addresses.resize_with(number, FxHashSet::default);
        all.shared.resize_with(number, FxHashSet::default);
        all.fields.resize_with(number, BTreeMap::new);
        all.counts.resize_with(number, FxHashMap::default);
        all
    }

    /// Adds the first access of an operand; accesses come thread by thread, in their order.
    pub(crate) fn add(&mut self, thread: u32, access: &Access, resolved: &Resolved) {
        if self.pointers.is_empty() {
            return;
        }
        if self.thread != Some(thread) {
            (self.thread, self.time, self.visit) = (Some(thread), 0, None);
            self.last.clear();
        }
        self.time += 1;
        let (pointer, target) = match self.roles.get(&access.instruction()) {
            Some(roles) => (roles.pointer, roles.target),
            None => (None, None),
        };
        // what is both is reached through one pointer before it leads on
        match target {
            Some(field) => self.target(field, access, resolved),
            None => self.other(access),
        }
        if let Some(pointer) = pointer {
            self.pointer(pointer, access);
        }
    }

    fn pointer(&mut self, pointer: usize, access: &Access) {
        if access.store() {
            // it leads elsewhere from here on
            let was_followed = self.slots[pointer].remove(&access.address()).is_some();
            self.pointers[pointer].replaced += u64::from(was_followed);
            return;
        }
        if access.size() != POINTER {
            return;
        }
        *self.counts[pointer].entry(access.instruction()).or_default() += 1;
        let load = LastLoad { pointer, address: access.address(), time: self.time, seen: Vec::new() };
        self.last.insert(access.instruction(), load);
    }

    /// Adds an access of code without a type, or to a type that no pointer leads to.
    fn other(&mut self, access: &Access) {
        let Some(visit) = self.visit else { return };
        if (visit.start..visit.end).contains(&access.address()) && self.time - visit.time <= REACH {
            self.pointers[visit.pointer].other_visits += 1;
            self.visit = None;
        }
    }

    fn target(&mut self, (subject, offset): (usize, u64), access: &Access, resolved: &Resolved) {
        *self.loads.entry(subject).or_default() += u64::from(!access.store());
        *self.stores.entry((subject, offset)).or_default() += u64::from(access.store());
        let Some(roles) = self.roles.get(&access.instruction()) else { return };
        let times = roles.through.iter().filter_map(|load| Some((self.last.get(load)?.time, *load)));
        let Some(last) = times.max().and_then(|(_, load)| self.last.get_mut(&load)) else { return };
        let (pointer, base) = (last.pointer, access.address().wrapping_sub(offset));
        let (of, slots) = (&mut self.pointers[pointer], &mut self.slots[pointer]);
        let known = slots.get(&last.address).copied();
        let is_full = slots.len() >= OBJECTS_LIMIT || of.targets.len() >= OBJECTS_LIMIT;
        if of.target != subject || (known.is_none() && is_full) {
            return;
        }
        if known != Some(base) {
            slots.insert(last.address, base);
            self.addresses[pointer].insert(last.address);
            of.conflicts += u64::from(known.is_some());
            of.targets.entry(base).or_insert(last.address);
            let owner = *self.owners.entry(base).or_insert((pointer, last.address));
            if owner != (pointer, last.address) {
                self.shared[pointer].insert(base);
                self.shared[owner.0].insert(base);
            }
        }
        let is_new = last.seen.is_empty();
        of.visits += u64::from(is_new);
        of.target_loads.0 += u64::from(!access.store());
        let field = self.fields[pointer].entry(offset).or_insert_with(|| FollowedField {
            offset,
            field: resolved
                .operands
                .get(&access.instruction())
                .map_or_else(String::new, |operand| operand.field.clone()),
            ..FollowedField::default()
        });
        field.size = field.size.max(u64::from(access.size()));
        if !last.seen.contains(&offset) {
            last.seen.push(offset);
            field.visits += 1;
        }
        let (loads, stores) = (u64::from(!access.store()), u64::from(access.store()));
        match field.instructions.iter_mut().find(|known| known.0 == access.instruction()) {
            Some(known) => *known = (known.0, known.1 + loads, known.2 + stores),
            None => field.instructions.push((access.instruction(), loads, stores)),
        }
        if is_new {
            let size = resolved.subjects.get(subject).map_or(0, |subject| subject.size);
            self.visit =
                Some(LastVisit { pointer, start: base, end: base.saturating_add(size), time: self.time });
        }
    }

    /// Returns the pointers that were followed.
    pub(crate) fn finish(self) -> Vec<FollowedPointer> {
        let (all_loads, stores) = (self.loads, self.stores);
        let parts = self.shared.into_iter().zip(self.addresses).zip(self.fields).zip(self.counts);
        let all = self.pointers.into_iter().zip(parts);
        all.map(|(pointer, (((shared, addresses), fields), counts))| {
            let mut loads: Vec<(u32, u64)> = counts.into_iter().collect();
            loads.sort_unstable_by_key(|(instruction, count)| (std::cmp::Reverse(*count), *instruction));
            let mut fields: Vec<FollowedField> = fields.into_values().collect();
            for field in &mut fields {
                let order = |known: &(u32, u64, u64)| (std::cmp::Reverse(known.1 + known.2), known.0);
                field.instructions.sort_unstable_by_key(order);
                field.stores = stores.get(&(pointer.target, field.offset)).copied().unwrap_or(0);
            }
            let in_all = all_loads.get(&pointer.target).copied().unwrap_or(0);
            let target_loads = (pointer.target_loads.0, in_all.saturating_sub(pointer.target_loads.0));
            let (shared, slots) = (shared.len() as u64, addresses.len() as u64);
            FollowedPointer { shared, slots, target_loads, fields, loads, ..pointer }
        })
        .filter(|pointer| pointer.visits > 0)
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::evidence::Subject;
    use super::super::resolve::Operand;
    use super::*;

    /// Instruction 1 loads `session.stats` (offset 8), 2 stores it; 3 adds to `stats.hits` and 4 reads `stats.bytes` through
    /// that; 5 stores `stats.hits` by another address.
    fn resolved() -> Resolved {
        let record = |name: &str| Subject { name: name.into(), size: 16, ..Subject::default() };
        let mut resolved =
            Resolved { subjects: vec![record("session"), record("stats")], ..Resolved::default() };
        for (instruction, subject, offset) in
            [(0, 0, 0), (1, 0, 8), (2, 0, 8), (3, 1, 0), (4, 1, 8), (5, 1, 0)]
        {
            resolved.operands.insert(instruction, Operand { subject, offset, field: String::new() });
        }
        resolved.pointees.insert(0, ("session".into(), 16));
        resolved.pointees.extend([1, 2].map(|at| (at, ("stats".into(), 16))));
        resolved.base_loads.extend([3, 4].map(|at| (at, vec![1])));
        resolved
    }

    /// Follows accesses: thread, instruction, address, whether it stores.
    fn followed(accesses: &[(u32, u32, u64, bool)]) -> Vec<FollowedPointer> {
        let resolved = resolved();
        let mut paths = PointerPaths::new(&resolved);
        for (at, (thread, instruction, address, store)) in accesses.iter().enumerate() {
            paths.add(*thread, &Access::new(*instruction, *address, 8, *store, at as u64), &resolved);
        }
        paths.finish()
    }

    #[test]
    fn objects_are_put_down_to_the_pointer_that_was_loaded_last() {
        let visit = |session: u64, stats: u64| {
            [(7, 1, session + 8, false), (7, 3, stats, false), (7, 3, stats, true), (7, 4, stats + 8, false)]
        };
        let all = followed(&[visit(0x1000, 0x9000), visit(0x1010, 0x9100), visit(0x1000, 0x9000)].concat());
        let [pointer] = &all[..] else { panic!("{all:?}") };
        assert_eq!((pointer.subject, pointer.offset, pointer.target, pointer.visits), (0, 8, 1, 3));
        assert_eq!(
            (pointer.conflicts, pointer.shared, pointer.slots, pointer.target_loads),
            (0, 0, 2, (6, 0))
        );
        assert_eq!(pointer.targets, FxHashMap::from_iter([(0x9000, 0x1008), (0x9100, 0x1018)]));
        let fields: Vec<_> =
            pointer.fields.iter().map(|of| (of.offset, of.visits, of.stores, &of.instructions)).collect();
        assert_eq!(fields, [(0, 3, 3, &vec![(3, 3, 3)]), (8, 3, 0, &vec![(4, 3, 0)])]);
        assert_eq!(pointer.loads, [(1, 3)]);
    }

    #[test]
    fn a_smart_pointer_has_the_name_of_its_member() {
        assert_eq!(own_path("stats._M_t._M_t._M_head_impl"), "stats");
        assert_eq!(own_path("inner.stats"), "inner.stats");
    }

    #[test]
    fn a_cursor_is_one_pointer_to_many_objects() {
        let step = |stats| [(7, 1, 0x1008, false), (7, 3, stats, false), (7, 2, 0x1008, true)];
        let all = followed(&[step(0x9000), step(0x9010), step(0x9020)].concat());
        assert_eq!((all[0].visits, all[0].conflicts, all[0].slots, all[0].targets.len()), (3, 0, 1, 3));
        assert_eq!(all[0].replaced, 3);
    }

    #[test]
    fn a_pointer_that_leads_elsewhere_without_a_store_is_in_conflict() {
        let all = followed(&[
            (7, 1, 0x1008, false),
            (7, 3, 0x9000, false),
            (7, 1, 0x1008, false),
            (7, 3, 0x9010, false),
        ]);
        assert_eq!((all[0].visits, all[0].conflicts), (2, 1));
    }

    #[test]
    fn objects_with_two_pointers_and_those_reached_in_other_ways_are_told() {
        let all = followed(&[
            (7, 1, 0x1008, false),
            (7, 3, 0x9000, false),
            (7, 1, 0x1018, false),
            (7, 3, 0x9000, false),
            // another thread has loaded no pointer
            (8, 3, 0x9000, false),
            (8, 5, 0x9000, true),
        ]);
        assert_eq!((all[0].visits, all[0].shared, all[0].target_loads), (2, 1, (2, 1)));
        assert_eq!(all[0].fields[0].stores, 1, "by another address");
    }

    #[test]
    fn code_without_types_reads_more_of_the_object() {
        let visit =
            [(7, 1, 0x1008, false), (7, 3, 0x9000, false), (7, 99, 0x9008, false), (7, 99, 0x900f, false)];
        assert_eq!(followed(&visit)[0].other_visits, 1);
        let beside = [(7, 1, 0x1008, false), (7, 3, 0x9000, false), (7, 99, 0x9010, false)];
        assert_eq!(followed(&beside)[0].other_visits, 0);
    }

    #[test]
    fn a_pointer_that_is_compared_is_not_followed_and_a_lists_own_links_are_not() {
        assert_eq!(followed(&[(7, 1, 0x1008, false), (7, 5, 0x9000, false)]), []);
        assert_eq!(followed(&[(7, 0, 0x1000, false), (7, 0, 0x1010, false)]), []);
    }
}
