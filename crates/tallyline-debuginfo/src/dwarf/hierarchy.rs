//! Questions about a class that its bases answer, each asked once a class.

use crate::abi::Alignments;
use crate::model::{Member, MemberKind, RecordId, Type, TypeId, Types};
use rustc_hash::FxHashMap;

/// The depth of inheritance at which the answer is cut short; real programs stay below thirty.
const DEPTH_LIMIT: usize = 64;

/// The most bases that are looked at for one class.
const WALK_LIMIT: usize = 1000;

/// The facts about classes that are known so far. A class that is its own base is damaged, and has none.
#[derive(Default)]
pub(super) struct Hierarchy {
    empty: FxHashMap<RecordId, bool>,
    dynamic: FxHashMap<RecordId, bool>,
    virtual_bases: FxHashMap<RecordId, bool>,
    primary: FxHashMap<RecordId, Option<RecordId>>,
    ends: FxHashMap<(RecordId, Tail), u64>,
    alignments: FxHashMap<RecordId, u64>,
    scalars: Option<Alignments>,
}

/// The use of the tail padding of a class without bases and virtual functions: in "plain old data" nothing
/// may lie in it, and DWARF does not say what is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Tail {
    Kept,
    Shared,
}

impl Hierarchy {
    /// Returns `true` if a type is a class without data.
    pub(super) fn is_empty(&mut self, types: &Types, ty: TypeId) -> bool {
        record_of(types, ty).is_some_and(|id| self.is_empty_class(types, id, 0))
    }

    fn is_empty_class(&mut self, types: &Types, id: RecordId, depth: usize) -> bool {
        if let Some(known) = self.empty.get(&id) {
            return *known;
        }
        self.empty.insert(id, false);
        let record = types.record(id);
        let empty = record.language.is_cpp()
            && record.is_struct()
            && record.size == 1
            && types.members(record).iter().all(|member| match member.kind {
                MemberKind::Static => true,
                MemberKind::Base => {
                    depth < DEPTH_LIMIT
                        && record_of(types, member.ty)
                            .is_some_and(|base| self.is_empty_class(types, base, depth + 1))
                }
                _ => false,
            });
        self.empty.insert(id, empty);
        empty
    }

    /// Returns `true` if objects of a class have a pointer to a virtual table.
    pub(super) fn is_dynamic(&mut self, types: &Types, id: RecordId, depth: usize) -> bool {
        if let Some(known) = self.dynamic.get(&id) {
            return *known;
        }
        self.dynamic.insert(id, false);
        let dynamic = types.members(types.record(id)).iter().any(|member| match member.kind {
            MemberKind::VirtualBase => true,
            MemberKind::Base => {
                depth < DEPTH_LIMIT
                    && record_of(types, member.ty).is_some_and(|base| self.is_dynamic(types, base, depth + 1))
            }
            _ => is_table_pointer(types, member),
        });
        self.dynamic.insert(id, dynamic);
        dynamic
    }

    /// Returns `true` if a class has virtual bases, of its own or by its bases.
    pub(super) fn has_virtual_bases(&mut self, types: &Types, id: RecordId, depth: usize) -> bool {
        if let Some(known) = self.virtual_bases.get(&id) {
            return *known;
        }
        self.virtual_bases.insert(id, false);
        let has = types.members(types.record(id)).iter().any(|member| match member.kind {
            MemberKind::VirtualBase => true,
            MemberKind::Base => {
                depth < DEPTH_LIMIT
                    && record_of(types, member.ty)
                        .is_some_and(|base| self.has_virtual_bases(types, base, depth + 1))
            }
            _ => false,
        });
        self.virtual_bases.insert(id, has);
        has
    }

    /// Returns the virtual base that a class starts with: it has no other base with virtual functions and no
    /// pointer to a virtual table of its own, and the virtual base is nothing but such a pointer.
    pub(super) fn primary(&mut self, types: &Types, id: RecordId, depth: usize) -> Option<RecordId> {
        if let Some(known) = self.primary.get(&id) {
            return *known;
        }
        self.primary.insert(id, None);
        if depth > DEPTH_LIMIT || !self.starts_with_a_base(types, id) {
            return None;
        }
        let candidates = virtual_bases_in_order(types, id)?;
        let all: Vec<RecordId> = candidates.into_iter().map(|(base, _)| base).collect();
        let mut candidates = all.clone();
        candidates.retain(|base| self.is_nearly_empty(types, *base));
        if candidates.is_empty() {
            // the pointer is that of some base: GCC 12 counts empty members behind a base's pointer as nothing,
            // clang 14 arrays of no elements
            candidates = all;
            candidates.retain(|base| self.is_without_data(types, *base));
        }
        let indirect: Vec<RecordId> = all_bases(types, id)?
            .into_iter()
            .filter_map(|base| self.primary(types, base, depth + 1))
            .collect();
        let own = candidates.iter().find(|base| !indirect.contains(base)).or(candidates.first()).copied();
        self.primary.insert(id, own);
        own
    }

    fn starts_with_a_base(&mut self, types: &Types, id: RecordId) -> bool {
        types.members(types.record(id)).iter().all(|member| {
            let dynamic_base = member.kind == MemberKind::Base
                && record_of(types, member.ty).is_some_and(|base| self.is_dynamic(types, base, 0));
            !dynamic_base && !is_table_pointer(types, member)
        })
    }

    /// Returns `true` if a class is nothing but a pointer to a virtual table, virtual bases aside. Empty members may
    /// lie over the pointer (`[[no_unique_address]]`).
    fn is_nearly_empty(&mut self, types: &Types, id: RecordId) -> bool {
        let is_nothing = |member: &Member| {
            member.kind != MemberKind::Data || is_table_pointer(types, member) || member.overlaid
        };
        types.members(types.record(id)).iter().all(is_nothing)
            && self.is_dynamic(types, id, 0)
            && self.end(types, id, Tail::Shared, 0) <= types.pointer_size()
    }

    /// Returns `true` if the data of a class are a pointer to a virtual table and members of empty classes or of no
    /// bytes.
    fn is_without_data(&mut self, types: &Types, id: RecordId) -> bool {
        self.is_dynamic(types, id, 0)
            && types.members(types.record(id)).iter().all(|member| {
                member.kind != MemberKind::Data
                    || is_table_pointer(types, member)
                    || member.size == 0
                    || self.is_empty(types, member.ty)
            })
    }

    /// Returns the offset at which a class ends without its virtual bases, and from which on others may lie.
    pub(super) fn end(&mut self, types: &Types, id: RecordId, tail: Tail, depth: usize) -> u64 {
        let record = types.record(id);
        let members = types.members(record);
        let is_plain = members.iter().all(|member| !member.is_base() && !member.artificial);
        if depth > DEPTH_LIMIT || tail == Tail::Kept && is_plain {
            return record.size;
        }
        if let Some(known) = self.ends.get(&(id, tail)) {
            return *known;
        }
        self.ends.insert((id, tail), 0);
        // a class that starts with a virtual base has the pointer of that
        let start = if self.is_dynamic(types, id, 0) { types.pointer_size() } else { 0 };
        let end = members.iter().fold(start, |end, member| {
            end.max(match (member.kind, member.bitfield) {
                (MemberKind::Static | MemberKind::VirtualBase, _) => 0,
                (MemberKind::Data, Some(field)) => {
                    member.bit_offset.saturating_add(field.size.into()).div_ceil(8)
                }
                (MemberKind::Data, None) => member.offset.saturating_add(member.size),
                (MemberKind::Base, _) if member.size == 0 => 0,
                (MemberKind::Base, _) => {
                    let base = record_of(types, member.ty);
                    let size = base.map_or(0, |base| self.end(types, base, tail, depth + 1));
                    member.offset.saturating_add(size)
                }
            })
        });
        self.ends.insert((id, tail), end);
        end
    }

    /// Returns the alignment of a type, the virtual bases of a class aside.
    pub(super) fn align(&mut self, types: &Types, ty: TypeId) -> u64 {
        self.align_of(types, ty, 0)
    }

    fn align_of(&mut self, types: &Types, ty: TypeId, depth: usize) -> u64 {
        let mut ty = types.strip(ty);
        for _ in 0..DEPTH_LIMIT {
            let Type::Array(array) = types.get(ty) else { break };
            ty = types.strip(types.array(array).of);
        }
        let Type::Record(id) = types.get(ty) else {
            return self.scalars.get_or_insert_with(|| Alignments::new(types)).of(types, ty);
        };
        if let Some(known) = self.alignments.get(&id) {
            return *known;
        }
        let record = types.record(id);
        let mut align = record.align.max(1);
        self.alignments.insert(id, align);
        // the pointer may be that of a virtual base
        if self.is_dynamic(types, id, 0) {
            align = align.max(types.pointer_size());
        }
        for member in types.members(record) {
            if depth < DEPTH_LIMIT && matches!(member.kind, MemberKind::Data | MemberKind::Base) {
                align = align.max(member.align).max(self.align_of(types, member.ty, depth + 1));
            }
        }
        self.alignments.insert(id, align);
        align
    }
}

/// Returns the record behind typedefs.
pub(super) fn record_of(types: &Types, id: TypeId) -> Option<RecordId> {
    match types.get(types.strip(id)) {
        Type::Record(record) => Some(record),
        _ => None,
    }
}

/// Returns the bases that a class names, in that order.
pub(super) fn declared_bases(types: &Types, id: RecordId) -> Vec<(RecordId, Member)> {
    let members = types.members(types.record(id)).iter();
    let mut bases: Vec<(RecordId, Member)> = members
        .filter(|member| member.is_base() && !member.artificial)
        .filter_map(|member| Some((record_of(types, member.ty)?, *member)))
        .collect();
    bases.sort_by_key(|(_, base)| base.declared);
    bases
}

/// Returns the virtual bases of a class, in the order in which a walk over its bases meets them. `None` where
/// the walk does not end in time: with repeated bases it can take exponentially long.
pub(super) fn virtual_bases_in_order(types: &Types, id: RecordId) -> Option<Vec<(RecordId, TypeId)>> {
    let mut found: Vec<(RecordId, TypeId)> = Vec::new();
    let mut ahead = vec![(id, TypeId::VOID, false)];
    for _ in 0..WALK_LIMIT {
        let Some((next, ty, is_virtual)) = ahead.pop() else { return Some(found) };
        if is_virtual {
            if found.iter().any(|(known, _)| *known == next) {
                continue;
            }
            found.push((next, types.strip(ty)));
        }
        for (base, member) in declared_bases(types, next).into_iter().rev() {
            ahead.push((base, member.ty, member.kind == MemberKind::VirtualBase));
        }
    }
    None
}

/// Returns every base of a class, each once. `None` where there are too many.
pub(super) fn all_bases(types: &Types, id: RecordId) -> Option<Vec<RecordId>> {
    let mut found: Vec<RecordId> = Vec::new();
    let mut ahead = vec![id];
    while let Some(next) = ahead.pop() {
        for (base, _) in declared_bases(types, next) {
            if !found.contains(&base) {
                found.push(base);
                ahead.push(base);
            }
        }
        if found.len() > WALK_LIMIT {
            return None;
        }
    }
    Some(found)
}

/// Returns `true` if a member is the pointer to the virtual table.
fn is_table_pointer(types: &Types, member: &Member) -> bool {
    member.artificial && member.kind == MemberKind::Data && types.name(member.name).starts_with(b"_vptr")
}
