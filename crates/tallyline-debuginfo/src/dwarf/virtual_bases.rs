//! The offsets of virtual bases in an object of a class.
//!
//! DWARF says it with an expression that reads the object's virtual table, so it cannot be told
//! from the types alone. But the common C++ ABI (Itanium, 2.4) says where compilers put them: behind
//! everything else, each once, in the order in which a walk over the bases meets them; only a class
//! that is nothing but a pointer to a virtual table can be the start of another. What comes out is
//! taken if it adds up to the size that the compiler wrote; else the places are left unknown.

use super::hierarchy::{Hierarchy, Tail, declared_bases, record_of, virtual_bases_in_order};
use crate::model::{Member, MemberKind, NameId, RecordId, TypeId, Types, UNPLACED};
use rustc_hash::FxHashMap;

/// The limit to the number of bases that are visited for one class, and to their depth.
const WALK_LIMIT: usize = 1000;
const DEPTH_LIMIT: usize = 64;

type Places = FxHashMap<RecordId, u64>;

/// Places the virtual bases of a class, direct and inherited. The inherited ones become members,
/// marked as made by the compiler.
pub(super) fn place(types: &mut Types, hierarchy: &mut Hierarchy, class: usize) {
    let id = RecordId(class as u32);
    if !hierarchy.has_virtual_bases(types, id, 0) {
        return;
    }
    let Some(bases) = virtual_bases_in_order(types, id) else { return };
    let places = agreed(types, hierarchy, id, &bases).unwrap_or_default();
    let mut members = types.members(&types.records[class]).to_vec();
    for member in members.iter_mut().filter(|member| member.is_base()) {
        let Some(base) = record_of(types, member.ty) else { continue };
        member.size = size_as_base(types, hierarchy, base, member.ty);
        if member.kind == MemberKind::VirtualBase && !member.is_placed() {
            let place = places.get(&base).copied().unwrap_or(UNPLACED);
            member.offset = place;
            member.bit_offset = place.saturating_mul(8);
        }
    }
    for (base, ty) in bases {
        let is_direct = |member: &Member| {
            member.kind == MemberKind::VirtualBase && record_of(types, member.ty) == Some(base)
        };
        if members.iter().any(is_direct) {
            continue;
        }
        let offset = places.get(&base).copied().unwrap_or(UNPLACED);
        members.push(Member {
            kind: MemberKind::VirtualBase,
            size: size_as_base(types, hierarchy, base, ty),
            artificial: true,
            declared: u16::MAX,
            ..Member::new(NameId::NONE, ty, offset)
        });
    }
    overlay(&mut members);
    let range = types.records[class].members;
    if members.len() == range.len() {
        types.members[range.start as usize..range.end as usize].copy_from_slice(&members);
    } else if let Ok(range) = types.push_members(&members) {
        types.records[class].members = range;
    }
}

/// Marks the virtual bases that are the start of another base.
fn overlay(members: &mut [Member]) {
    let others: Vec<(u64, u64)> = members
        .iter()
        .filter(|member| member.is_placed() && member.size != 0)
        .map(|member| (member.offset, member.offset.saturating_add(member.size)))
        .collect();
    for member in members.iter_mut().filter(|member| member.kind == MemberKind::VirtualBase) {
        let covers = |(start, end): &&(u64, u64)| *start <= member.offset && member.offset < *end;
        // it covers itself
        member.overlaid = member.is_placed() && others.iter().filter(covers).count() > 1;
    }
}

/// Returns the size of a class as a base: with virtual bases of its own it ends where these follow.
fn size_as_base(types: &Types, hierarchy: &mut Hierarchy, id: RecordId, ty: TypeId) -> u64 {
    if hierarchy.is_empty(types, ty) {
        0
    } else if hierarchy.has_virtual_bases(types, id, 0) {
        hierarchy.end(types, id, Tail::Kept, 0)
    } else {
        types.record(id).size
    }
}

/// Returns the offsets of the virtual bases: both readings of tails have to agree, where both fit the size.
fn agreed(
    types: &Types,
    hierarchy: &mut Hierarchy,
    id: RecordId,
    bases: &[(RecordId, TypeId)],
) -> Option<Places> {
    let mut answers = Vec::new();
    for tail in [Tail::Shared, Tail::Kept] {
        let walk = Walk { hierarchy, types, tail, left: WALK_LIMIT, placed: Places::default() };
        answers.extend(walk.places(id, bases));
    }
    let answer = answers.pop()?;
    answers.iter().all(|other| *other == answer).then_some(answer)
}

/// The walk over one class's bases.
struct Walk<'h, 't> {
    hierarchy: &'h mut Hierarchy,
    types: &'t Types,
    tail: Tail,
    left: usize,
    placed: Places,
}

impl Walk<'_, '_> {
    /// Returns the offsets of the virtual bases, if they fit the size of the class.
    fn places(mut self, id: RecordId, bases: &[(RecordId, TypeId)]) -> Option<Places> {
        let types = self.types;
        self.start_of(id, 0, 0)?;
        let mut starts: Vec<RecordId> = Vec::new();
        self.starts(id, &mut starts, 0)?;
        let mut end = self.hierarchy.end(types, id, self.tail, 0);
        let mut align = self.own_align(id);
        let mut empty = Vec::new();
        for (base, ty) in bases {
            let own = self.hierarchy.align(types, *ty);
            align = align.max(own);
            if starts.contains(base) {
                continue;
            }
            // without bytes: at the start, unless there is another one of its type
            if self.hierarchy.is_empty(types, *ty) {
                if self.placed.is_empty() && empty.is_empty() && !self.lies_at_start(id, *base, 0)? {
                    empty.push(*base);
                    continue;
                }
                return None;
            }
            let place = end.checked_next_multiple_of(own)?;
            self.placed.insert(*base, place);
            self.start_of(*base, place, 0)?;
            end = place.checked_add(self.hierarchy.end(types, *base, self.tail, 0))?;
        }
        self.placed.extend(empty.into_iter().map(|base| (base, 0)));
        let size = end.checked_next_multiple_of(align)?;
        (size == types.record(id).size).then_some(self.placed)
    }

    /// Returns the alignment of a class without its virtual bases.
    fn own_align(&mut self, id: RecordId) -> u64 {
        let record = self.types.record(id);
        let mut align = record.align.max(1);
        for member in self.types.members(record) {
            if matches!(member.kind, MemberKind::Data | MemberKind::Base) {
                align = align.max(member.align).max(self.hierarchy.align(self.types, member.ty));
            }
        }
        align
    }

    /// Returns `true` if an object of a class starts with one of another class, virtual bases aside; `None` beyond the
    /// limits of the walk.
    fn lies_at_start(&mut self, id: RecordId, wanted: RecordId, depth: usize) -> Option<bool> {
        self.spend(depth)?;
        for member in self.types.members(self.types.record(id)) {
            let holds = matches!(member.kind, MemberKind::Data | MemberKind::Base) && member.offset == 0;
            let Some(inner) = record_of(self.types, member.ty).filter(|_| holds) else { continue };
            if inner == wanted || self.lies_at_start(inner, wanted, depth + 1)? {
                return Some(true);
            }
        }
        Some(false)
    }

    fn spend(&mut self, depth: usize) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        (depth <= DEPTH_LIMIT).then_some(())
    }

    /// Collects the virtual bases that are the start of a class or of one of its bases.
    fn starts(&mut self, id: RecordId, into: &mut Vec<RecordId>, depth: usize) -> Option<()> {
        self.spend(depth)?;
        into.extend(self.hierarchy.primary(self.types, id, 0));
        for (base, _) in declared_bases(self.types, id) {
            self.starts(base, into, depth + 1)?;
        }
        Some(())
    }

    /// Places the virtual bases that start where the class at this place or one of its bases does.
    fn start_of(&mut self, id: RecordId, place: u64, depth: usize) -> Option<()> {
        self.spend(depth)?;
        if let Some(primary) = self.hierarchy.primary(self.types, id, 0)
            && !self.placed.contains_key(&primary)
        {
            self.placed.insert(primary, place);
            self.start_of(primary, place, depth + 1)?;
        }
        for (base, member) in declared_bases(self.types, id) {
            if member.kind == MemberKind::Base {
                self.start_of(base, place.checked_add(member.offset)?, depth + 1)?;
            }
        }
        Some(())
    }
}
