//! All proposals applied together: what holds a struct that got smaller gets smaller, too.
//!
//! Records are laid out anew after those that they hold. What was proposed for a struct is taken as it
//! is where nothing that it holds changed; else its members, with their new sizes, are ordered again by
//! the same rules. What is not reordered (types without a name, unions, what is refused) keeps its
//! order and shrinks with what it holds. What no rule explains keeps its size: no layout is known for
//! it in which its members would be smaller.

use super::proposal::place;
use super::{Proposal, Reorganization, Reorganizer, item, refuse_language, smallest};
use crate::explain::{Replay, ReplayedMember, replay};
use rustc_hash::{FxHashMap, FxHashSet};
use tallyline_debuginfo::abi::size_of;
use tallyline_debuginfo::model::{Member, NameId, Record, RecordId, Type, TypeId, Types};

/// The longest chain of typedefs, qualifiers and arrays that is followed.
const CHAIN_LIMIT: usize = 256;

/// The layouts of all records that change if several proposals are applied at once: the reordered structs, and those
/// that contain them.
#[derive(Debug, Default)]
pub struct CombinedProposal {
    layouts: FxHashMap<RecordId, Layout>,
    kept: FxHashSet<RecordId>,
}

/// The new layout of one record.
#[derive(Debug)]
pub(super) struct Layout {
    /// The members in the new order, by their index in the old.
    pub(super) order: Vec<usize>,
    /// The members in the new order, at their new places.
    pub(super) members: Vec<Member>,
    /// The placement of each member, in the old order.
    pub(super) replay: Replay,
    pub(super) size: u64,
}

impl CombinedProposal {
    /// Returns the ids of the records whose layouts change if all proposed orders of structs' members are applied,
    /// ascending.
    pub fn records(&self) -> Vec<RecordId> {
        let mut records: Vec<RecordId> = self.layouts.keys().copied().collect();
        records.sort_unstable_by_key(|id| id.index());
        records
    }

    /// Returns a record's size in bytes after all proposed orders of structs' members are applied; `None` if its layout
    /// does not change.
    pub fn size(&self, id: RecordId) -> Option<u64> {
        self.layouts.get(&id).map(|layout| layout.size)
    }

    /// Returns a record's members after all proposed orders of structs' members are applied, in their new order and at
    /// their new offsets; `None` if its layout does not change.
    pub fn members(&self, id: RecordId) -> Option<&[Member]> {
        self.layouts.get(&id).map(|layout| layout.members.as_slice())
    }

    /// Returns `true` if a record contains a struct that shrinks, but its own new layout could not be determined.
    pub fn is_unknown(&self, id: RecordId) -> bool {
        self.kept.contains(&id)
    }

    pub(super) fn layout(&self, id: RecordId) -> Option<&Layout> {
        self.layouts.get(&id)
    }

    /// Returns `true` if a record keeps its layout although its contents have shrunk.
    pub(super) fn is_kept(&self, id: RecordId) -> bool {
        self.kept.contains(&id)
    }
}

impl Reorganizer<'_> {
    /// Finds a smaller layout for every named struct and computes the layouts of all records if all of them are
    /// applied. Takes as long as [`propose_all`](Reorganizer::propose_all) over all types; `outcomes` are the results
    /// already known for `ids`.
    pub fn together(&self, ids: &[TypeId], outcomes: &[Reorganization]) -> CombinedProposal {
        let types = self.types();
        let known = ids.iter().zip(outcomes);
        let known = known.filter_map(|(id, outcome)| Some((types.as_record(types.strip(*id))?.0, outcome)));
        let known = known.collect();
        let mut applying =
            Applying { by: self, known, fixed: FxHashMap::default(), all: CombinedProposal::default() };
        for id in applying.inner_first() {
            applying.record(id);
        }
        applying.all
    }

    /// Combines just these proposals: computes the layouts of the reordered structs and of the records that contain
    /// them.
    pub fn applied(&self, proposals: &[&Proposal]) -> CombinedProposal {
        // units may each have a copy of a record, which others hold
        let types = self.types();
        let by_place: FxHashMap<_, &Proposal> =
            proposals.iter().map(|proposal| (place_of(types.record(proposal.record)), *proposal)).collect();
        let mut fixed: FxHashMap<RecordId, &Proposal> = FxHashMap::default();
        for id in types.record_ids() {
            let of_place = by_place.get(&place_of(types.record(id)));
            if let Some(proposal) = of_place.filter(|proposal| is_copy(types, id, proposal.record)) {
                fixed.insert(id, *proposal);
            }
        }
        fixed.extend(proposals.iter().map(|proposal| (proposal.record, *proposal)));
        let mut applying =
            Applying { by: self, known: FxHashMap::default(), fixed, all: CombinedProposal::default() };
        for id in applying.inner_first() {
            applying.record_as_ordered(id);
        }
        applying.all
    }
}

/// Returns the name of a record, and where it is declared.
fn place_of(record: &Record) -> (NameId, NameId, u32, u64) {
    let at = record.declared_at;
    (record.name, at.file, at.line, record.size)
}

/// Returns `true` if two records have the same members in the same places.
fn is_copy(types: &Types, one: RecordId, other: RecordId) -> bool {
    let (one, other) = (types.members(types.record(one)), types.members(types.record(other)));
    let same = |(a, b): (&Member, &Member)| {
        (a.name, a.bit_offset, a.size, a.bitfield) == (b.name, b.bit_offset, b.size, b.bitfield)
    };
    one.len() == other.len() && one.iter().zip(other).all(same)
}

/// The order of a record that is laid out anew.
enum Moves<'p> {
    /// The order in which the record takes the fewest bytes.
    Any,
    /// The order of a proposal, or the present one for `None`.
    As(Option<&'p Proposal>),
}

struct Applying<'r, 't> {
    by: &'r Reorganizer<'t>,
    known: FxHashMap<RecordId, &'r Reorganization>,
    // the only records that are reordered, where there are any
    fixed: FxHashMap<RecordId, &'r Proposal>,
    all: CombinedProposal,
}

impl Applying<'_, '_> {
    /// Returns all records, each behind those that it holds. What holds itself is damaged: it comes anywhere.
    fn inner_first(&self) -> Vec<RecordId> {
        let types = self.by.types();
        let mut order = Vec::with_capacity(types.record_count());
        let mut seen = vec![false; types.record_count()];
        for first in types.record_ids() {
            let mut stack = Vec::new();
            if !std::mem::replace(&mut seen[first.index()], true) {
                stack.push((first, 0));
            }
            while let Some((id, next)) = stack.last_mut() {
                let Some(member) = types.members(types.record(*id)).get(*next) else {
                    order.push(*id);
                    stack.pop();
                    continue;
                };
                *next += 1;
                if let Some(inner) = self.by.abi.contained_record(member.ty)
                    && !std::mem::replace(&mut seen[inner.index()], true)
                {
                    stack.push((inner, 0));
                }
            }
        }
        order
    }

    fn record(&mut self, id: RecordId) {
        let types = self.by.types();
        let record = types.record(id);
        let holds = |member: &Member| {
            let inner = self.by.abi.contained_record(member.ty)?;
            self.all.layouts.contains_key(&inner).then_some(inner)
        };
        let changed = types.members(record).iter().any(|member| holds(member).is_some());
        let may_move = record.name.is_some() && record.is_struct();
        let own;
        let outcome = match self.known.get(&id) {
            _ if !may_move => None,
            Some(known) => Some(*known),
            None => {
                own = self.by.propose_record(id, &self.by.options);
                Some(&own)
            }
        };
        let layout = match outcome {
            Some(Reorganization::Smaller(proposal)) if !changed => self.explained(id).map(|replay| Layout {
                order: proposal.order.clone(),
                members: proposal.members.clone(),
                replay,
                size: proposal.new.size,
            }),
            _ if !changed => return,
            outcome => {
                let moves =
                    matches!(outcome, Some(Reorganization::Smaller(_) | Reorganization::Smallest { .. }));
                self.lay_out(id, if moves { Moves::Any } else { Moves::As(None) })
            }
        };
        match layout {
            Some(layout) => drop(self.all.layouts.insert(id, layout)),
            None => drop(self.all.kept.insert(id)),
        }
    }

    fn record_as_ordered(&mut self, id: RecordId) {
        let types = self.by.types();
        let proposal = self.fixed.get(&id).copied();
        if self.holds_unknown(id) {
            self.all.kept.insert(id);
            return;
        }
        let holds_changed = types.members(types.record(id)).iter().any(|member| {
            self.by.abi.contained_record(member.ty).is_some_and(|inner| self.all.layouts.contains_key(&inner))
        });
        if proposal.is_none() && !holds_changed {
            return;
        }
        let layout = match proposal {
            Some(proposal) if !holds_changed => self.explained(id).map(|replay| Layout {
                order: proposal.order.clone(),
                members: proposal.members.clone(),
                replay,
                size: proposal.new.size,
            }),
            _ => self.lay_out(id, Moves::As(proposal)),
        };
        match layout {
            Some(layout) => drop(self.all.layouts.insert(id, layout)),
            None => drop(self.all.kept.insert(id)),
        }
    }

    /// Returns `true` if a record holds one of Rust whose content shrinks: its compiler may order the members of that
    /// anew, and with other content does.
    fn holds_unknown(&self, id: RecordId) -> bool {
        let types = self.by.types();
        let inner = |member: &Member| self.by.abi.contained_record(member.ty);
        let is_unknown = |inner| self.all.kept.contains(&inner) && types.record(inner).language.is_rust();
        types.members(types.record(id)).iter().filter_map(inner).any(is_unknown)
    }

    fn explained(&self, id: RecordId) -> Option<Replay> {
        let shape = self.by.abi.shape(id);
        if shape.unexplained.is_some() {
            return None;
        }
        replay(&self.by.abi, id, shape.packing, shape.guessed).ok()
    }

    /// Lays a record out whose members shrank.
    fn lay_out(&self, id: RecordId, moves: Moves<'_>) -> Option<Layout> {
        let types = self.by.types();
        let record = types.record(id);
        let mut members = types.members(record).to_vec();
        if refuse_language(types, record).is_some() || members.iter().any(Member::is_base) {
            return None;
        }
        let mut replay = self.explained(id)?;
        for (member, placed) in members.iter_mut().zip(&mut replay.members) {
            if let ReplayedMember::Bytes { size, .. } = placed {
                *size = self.shrunk(member.ty, *size)?;
                member.size = member.size.min(*size);
            }
        }
        if record.is_union() {
            return self.union(members, replay, record.size);
        }
        let items = item::items(types, &members, &replay, &self.by.options);
        let in_order: Vec<usize> = match moves {
            Moves::As(Some(proposal)) => proposal.arranged.clone(),
            _ => (0..items.len()).collect(),
        };
        let (mut order, mut placed, mut size) = place(&members, &items, &in_order, replay.align)?;
        if matches!(moves, Moves::Any) {
            let found = smallest::smallest(&items, replay.align);
            let (other, at, smaller) = place(&members, &items, &found.order, replay.align)?;
            if smaller < size {
                (order, placed, size) = (other, at, smaller);
            }
        }
        // with members that move a struct never grows; as ordered it may, where what it holds has shrunk
        let may_grow = matches!(moves, Moves::As(Some(_)));
        (may_grow || size <= record.size).then_some(Layout { order, members: placed, replay, size })
    }

    fn union(&self, members: Vec<Member>, replay: Replay, old: u64) -> Option<Layout> {
        if !replay.behind.is_empty() {
            return None;
        }
        let end = replay.members.iter().map(|placed| match placed {
            ReplayedMember::Nowhere => 0,
            ReplayedMember::Bytes { size, .. } => *size,
            ReplayedMember::Bits { field, .. } => field.width.div_ceil(8),
        });
        let size = end.max().unwrap_or(0).next_multiple_of(replay.align);
        let order = (0..members.len()).collect();
        (size <= old).then_some(Layout { order, members, replay, size })
    }

    /// Returns the size of a member that took `size` bytes; `None` if its type does not say.
    fn shrunk(&self, ty: TypeId, size: u64) -> Option<u64> {
        let Some(inner) = self.by.abi.contained_record(ty) else { return Some(size) };
        let Some(new) = self.all.size(inner) else { return Some(size) };
        let old = self.by.types().record(inner).size;
        // an array of them, or a flexible one
        if old == 0 || !size.is_multiple_of(old) {
            return None;
        }
        Some(size / old * new)
    }
}

impl CombinedProposal {
    /// Returns the size of a type with all proposals applied.
    pub(super) fn size_of(&self, by: &Reorganizer<'_>, id: TypeId) -> u64 {
        let types = by.types();
        let (mut at, mut times) = (id, 1_u64);
        for _ in 0..CHAIN_LIMIT {
            at = types.strip(at);
            match types.get(at) {
                Type::Array(array) => {
                    let array = types.array(array);
                    times = types.dimensions(array).iter().fold(times, |times, n| times.saturating_mul(*n));
                    at = array.of;
                }
                Type::Record(record) => {
                    return times.saturating_mul(self.size(record).unwrap_or(types.record(record).size));
                }
                _ => break,
            }
        }
        size_of(types, id)
    }
}
