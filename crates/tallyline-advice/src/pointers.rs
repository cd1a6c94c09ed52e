//! Pointers that code follows: the members through which it gets from objects of one type to objects of another.
//!
//! A trace has addresses and no values. An access to an object of a type is put down to the thread's last load of a
//! pointer to that type, if that was shortly before and the pointer has led to that object since it was stored last.

use super::evidence::{FollowedField, FollowedPointer, MemberInfo, SubjectKind};
use super::resolve::Resolved;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use tallyline_trace::format::Access;

/// Accesses of a thread behind the load of a pointer that are looked at for its target.
const REACH: u64 = 64;

/// The most pointers, and objects behind them, that are told apart for one member.
const OBJECTS_LIMIT: usize = 1 << 20;

/// Bytes of a pointer.
const POINTER: u64 = 8;

/// The part of an instruction in following pointers.
#[derive(Clone, Copy, Debug)]
enum Role {
    /// It accesses a pointer: an index of the pointers.
    Pointer(usize),
    /// It accesses a field of objects that pointers lead to: the type, and the offset.
    Target { subject: usize, offset: u64 },
}

/// The last load of a pointer to a type, in one thread.
#[derive(Clone, Debug)]
struct LastLoad {
    pointer: usize,
    address: u64,
    time: u64,
    /// The offsets of the target's fields that were accessed since.
    seen: Vec<u64>,
}

/// Accumulator of the pointers that a process follows, from its accesses.
#[derive(Debug, Default)]
pub(crate) struct PointerPaths {
    roles: FxHashMap<u32, [Option<Role>; 2]>,
    pointers: Vec<FollowedPointer>,
    // by pointer: its addresses, each with the object that it led to
    slots: Vec<FxHashMap<u64, u64>>,
    shared: Vec<FxHashSet<u64>>,
    fields: Vec<BTreeMap<u64, FollowedField>>,
    counts: Vec<FxHashMap<u32, u64>>,
    // by target's type: loads in any way
    loads: FxHashMap<usize, u64>,
    // the present thread, its accesses, and by target's type the last load
    thread: Option<u32>,
    time: u64,
    last: FxHashMap<usize, LastLoad>,
}

impl PointerPaths {
    /// Prepares for the instructions whose operands are known.
    pub(crate) fn new(resolved: &Resolved) -> Self {
        let mut by_name: FxHashMap<&str, usize> = FxHashMap::default();
        for (at, subject) in resolved.subjects.iter().enumerate() {
            if subject.kind == SubjectKind::Record {
                by_name.entry(&subject.name).or_insert(at);
            }
        }
        let mut all = Self::default();
        let mut known: FxHashMap<(usize, u64), usize> = FxHashMap::default();
        let mut operands: Vec<_> = resolved.operands.iter().collect();
        operands.sort_unstable_by_key(|(instruction, _)| **instruction);
        for (instruction, operand) in &operands {
            let members = resolved.subjects.get(operand.subject).map_or(&[][..], |subject| &subject.members);
            let is_pointer = |member: &&MemberInfo| member.offset == operand.offset;
            let Some(member) = members.iter().find(is_pointer) else { continue };
            let target = by_name.get(member.points_to.as_str()).copied();
            // a list's own links lead from node to node: neither can be a part of the other
            let Some(target) = target.filter(|target| *target != operand.subject) else { continue };
            let pointer = *known.entry((operand.subject, operand.offset)).or_insert_with(|| {
                all.pointers.push(FollowedPointer {
                    subject: operand.subject,
                    offset: operand.offset,
                    field: member.name.clone(),
                    target,
                    ..FollowedPointer::default()
                });
                all.pointers.len() - 1
            });
            all.roles.entry(**instruction).or_default()[0] = Some(Role::Pointer(pointer));
        }
        let targets: FxHashSet<usize> = all.pointers.iter().map(|pointer| pointer.target).collect();
        for (instruction, operand) in
            operands.iter().filter(|(_, operand)| targets.contains(&operand.subject))
        {
            let role = Role::Target { subject: operand.subject, offset: operand.offset };
            all.roles.entry(**instruction).or_default()[1] = Some(role);
        }
        all.slots.resize_with(all.pointers.len(), FxHashMap::default);
        all.shared.resize_with(all.pointers.len(), FxHashSet::default);
        all.fields.resize_with(all.pointers.len(), BTreeMap::new);
        all.counts.resize_with(all.pointers.len(), FxHashMap::default);
        all
    }

    /// Adds the first access of an operand; accesses come thread by thread, in their order.
    pub(crate) fn add(&mut self, thread: u32, access: &Access, resolved: &Resolved) {
        if self.thread != Some(thread) {
            (self.thread, self.time) = (Some(thread), 0);
            self.last.clear();
        }
        self.time += 1;
        let Some(roles) = self.roles.get(&access.instruction()).copied() else { return };
        // what is both is reached through one pointer before it leads on
        for role in roles.into_iter().rev().flatten() {
            match role {
                Role::Target { subject, offset } => self.target(subject, offset, access, resolved),
                Role::Pointer(pointer) => self.pointer(pointer, access),
            }
        }
    }

    fn pointer(&mut self, pointer: usize, access: &Access) {
        if access.store() {
            // it leads elsewhere from here on
            self.slots[pointer].remove(&access.address());
            return;
        }
        if u64::from(access.size()) != POINTER {
            return;
        }
        *self.counts[pointer].entry(access.instruction()).or_default() += 1;
        let load = LastLoad { pointer, address: access.address(), time: self.time, seen: Vec::new() };
        self.last.insert(self.pointers[pointer].target, load);
    }

    fn target(&mut self, subject: usize, offset: u64, access: &Access, resolved: &Resolved) {
        *self.loads.entry(subject).or_default() += u64::from(!access.store());
        let Some(last) = self.last.get_mut(&subject) else { return };
        if self.time - last.time > REACH {
            return;
        }
        let (pointer, base) = (last.pointer, access.address().wrapping_sub(offset));
        let (of, slots) = (&mut self.pointers[pointer], &mut self.slots[pointer]);
        let known = slots.get(&last.address).copied();
        if known.is_none() && slots.len() >= OBJECTS_LIMIT {
            return;
        }
        if known != Some(base) {
            slots.insert(last.address, base);
            if known.is_some() {
                of.conflicts += 1;
                return;
            }
            let first = *of.targets.entry(base).or_insert(last.address);
            if first != last.address {
                self.shared[pointer].insert(base);
            }
        }
        of.visits += u64::from(last.seen.is_empty());
        of.target_loads.0 += u64::from(!access.store());
        let fields = &mut self.fields[pointer];
        let field = fields.entry(offset).or_insert_with(|| FollowedField {
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
    }

    /// Returns the pointers that were followed.
    pub(crate) fn finish(self) -> Vec<FollowedPointer> {
        let all_loads = self.loads;
        let parts = self.shared.into_iter().zip(self.fields).zip(self.counts);
        let all = self.pointers.into_iter().zip(parts);
        all.map(|(pointer, ((shared, fields), counts))| {
            let mut loads: Vec<(u32, u64)> = counts.into_iter().collect();
            loads.sort_unstable_by_key(|(instruction, count)| (std::cmp::Reverse(*count), *instruction));
            let mut fields: Vec<FollowedField> = fields.into_values().collect();
            for field in &mut fields {
                let order = |known: &(u32, u64, u64)| (std::cmp::Reverse(known.1 + known.2), known.0);
                field.instructions.sort_unstable_by_key(order);
            }
            let in_all = all_loads.get(&pointer.target).copied().unwrap_or(0);
            let target_loads = (pointer.target_loads.0, in_all.saturating_sub(pointer.target_loads.0));
            FollowedPointer { shared: shared.len() as u64, target_loads, fields, loads, ..pointer }
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

    /// Instruction 1 loads `session.stats` (offset 8), 2 stores it; 3 adds to `stats.hits`, 4 reads `stats.bytes`.
    fn resolved() -> Resolved {
        let member = |name: &str, offset, points_to: &str| MemberInfo {
            name: name.into(),
            offset,
            size: 8,
            align: 8,
            points_to: points_to.into(),
            ..MemberInfo::default()
        };
        let record =
            |name: &str, members| Subject { name: name.into(), size: 16, members, ..Subject::default() };
        let session = record("session", vec![member("next", 0, "session"), member("stats", 8, "stats")]);
        let stats = record("stats", vec![member("hits", 0, ""), member("bytes", 8, "")]);
        let mut resolved = Resolved { subjects: vec![session, stats], ..Resolved::default() };
        for (instruction, subject, offset) in [(0, 0, 0), (1, 0, 8), (2, 0, 8), (3, 1, 0), (4, 1, 8)] {
            resolved.operands.insert(instruction, Operand { subject, offset, field: String::new() });
        }
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
        assert_eq!((pointer.conflicts, pointer.shared, pointer.target_loads), (0, 0, (6, 0)));
        assert_eq!(pointer.targets, FxHashMap::from_iter([(0x9000, 0x1008), (0x9100, 0x1018)]));
        let fields: Vec<_> =
            pointer.fields.iter().map(|of| (of.offset, of.visits, &of.instructions)).collect();
        assert_eq!(fields, [(0, 3, &vec![(3, 3, 3)]), (8, 3, &vec![(4, 3, 0)])]);
        assert_eq!(pointer.loads, [(1, 3)]);
    }

    #[test]
    fn a_pointer_that_leads_elsewhere_is_in_conflict_unless_it_was_stored() {
        let all = followed(&[(7, 1, 0x1008, false), (7, 3, 0x9000, false), (7, 3, 0x9010, false)]);
        assert_eq!((all[0].visits, all[0].conflicts), (1, 1), "an array");
        let stored = [
            (7, 1, 0x1008, false),
            (7, 3, 0x9000, false),
            (7, 2, 0x1008, true),
            (7, 1, 0x1008, false),
            (7, 3, 0x9010, false),
        ];
        let all = followed(&stored);
        assert_eq!((all[0].visits, all[0].conflicts, all[0].targets.len()), (2, 0, 2));
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
        ]);
        assert_eq!((all[0].visits, all[0].shared, all[0].target_loads), (2, 1, (2, 1)));
    }

    #[test]
    fn a_lists_own_links_are_not_followed() {
        assert_eq!(followed(&[(7, 0, 0x1000, false), (7, 0, 0x1010, false)]), []);
    }
}
