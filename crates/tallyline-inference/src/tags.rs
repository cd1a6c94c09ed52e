//! Narrowing of enum variants by comparisons of their tags along a path.
//!
//! A register gets a value number when it is copied or a tag is loaded through it. Copies and sums with constants
//! keep it, so a tag is identified by its symbolic address, whichever register holds that. The outcome of a branch or
//! jump table on a loaded tag holds along the path behind it until a store to that address. No other store can
//! intervene while a variant is in use: references in Rust guarantee that.

use super::analysis::Analysis;
use super::candidates::{self, InVariant};
use super::lookup::Found;
use super::operand::Operand;
use super::tag_facts::{Address, Comparison, FIXED, FRAME, Held, Name, Universe, VALUES_LIMIT, added};
use super::value::{State, Value};
use crate::code::{Compared, Condition, Effect, Flow, Instruction, Memory, Register};
use tallyline_debuginfo::model::TypeId;

/// The symbolic value that an effect writes to a register.
pub(super) struct Carried {
    to: Register,
    name: Name,
    held: Option<Held>,
}

impl Analysis<'_, '_, '_, '_> {
    /// Returns the symbolic value that an effect writes, from the state before it.
    pub(super) fn carry(
        &mut self,
        state: &mut State,
        position: usize,
        instruction: &Instruction,
        effect: &Effect,
    ) -> Option<Carried> {
        state.tags.as_ref()?;
        let carried = |to, name, held| Some(Carried { to, name, held });
        match *effect {
            Effect::Copy { to, from } => {
                let is_address = matches!(state.get(from), Value::Pointer(_));
                let tags = state.tags.as_mut()?;
                let name = if is_address { tags.named(from, position) } else { tags.name(from) };
                carried(to, name, tags.held(from))
            }
            Effect::Address { to, base: Some(base), index: None, displacement, .. } => {
                let is_address = matches!(state.get(base), Value::Pointer(_));
                let tags = state.tags.as_mut()?;
                let name = if is_address { tags.named(base, position) } else { tags.name(base) };
                let offset = name.offset.wrapping_add(displacement);
                let name = if name.of == 0 { name } else { Name { offset, ..name } };
                carried(to, name, tags.held(base).and_then(|held| added(held, displacement)))
            }
            Effect::Sum { to, by, subtract } => {
                let tags = state.tags.as_ref()?;
                let held = match (tags.held(to), tags.held(by), state.get(to), state.get(by)) {
                    (Some(held), _, _, Value::Constant(number)) => {
                        added(held, if subtract { number.wrapping_neg() } else { number })
                    }
                    (_, Some(held), Value::Constant(number), _) if !subtract => added(held, number),
                    _ => None,
                };
                carried(to, Name::default(), held)
            }
            Effect::Narrow { to, size, signed: false } => {
                let held = state.tags.as_ref()?.held(to);
                let held = held.map(|held| Held { size: held.size.min(size), ..held });
                carried(to, Name::default(), held.filter(|held| held.or.is_none() || size >= 4))
            }
            Effect::Mask { to, mask } => {
                let size = match mask as u64 {
                    0xff => Some(1),
                    0xffff => Some(2),
                    0xffff_ffff => Some(4),
                    _ => None,
                };
                let held = state.tags.as_ref()?.held(to).filter(|held| held.or.is_none()).zip(size);
                carried(
                    to,
                    Name::default(),
                    held.map(|(held, size)| Held { size: held.size.min(size), ..held }),
                )
            }
            Effect::Load { to, size, at } => {
                let memory = instruction.memory.as_ref()?;
                self.note_index(state, memory);
                let held =
                    if at == 0 { self.tag_in_memory(state, position, memory, size.into()) } else { None };
                carried(to, Name::default(), held)
            }
            Effect::AddMemory { to } => {
                let Value::Constant(number) = state.get(to) else { return None };
                let memory = instruction.memory.as_ref()?;
                let held = self.tag_in_memory(state, position, memory, memory.size.into())?;
                carried(to, Name::default(), added(held, number))
            }
            Effect::Choose { to, from } => {
                let condition = instruction.condition;
                let tags = state.tags.as_ref()?;
                let name = if tags.name(to) == tags.name(from) { tags.name(to) } else { Name::default() };
                let held = condition.and_then(|condition| self.chosen(state, to, from, condition));
                carried(to, name, held)
            }
            Effect::Compare { one, other, size, is_test } => {
                let number = |operand| match operand {
                    Compared::Number(number) => Some(number as u64),
                    // a register compared with itself is compared with 0
                    Compared::Register(_) if is_test && one == other => Some(u64::MAX),
                    Compared::Register(register) => match state.get(register) {
                        Value::Constant(number) => Some(number as u64),
                        _ => None,
                    },
                    Compared::Memory => None,
                };
                let (with, is_swapped, tag) = match (number(one), number(other)) {
                    (_, Some(with)) => (Some(with), false, one),
                    (with, None) => (with, !is_test, other),
                };
                let held = match (with, tag) {
                    (None, _) | (_, Compared::Number(_)) => None,
                    (_, Compared::Register(register)) => state.tags.as_ref()?.held(register),
                    (_, Compared::Memory) => instruction
                        .memory
                        .as_ref()
                        .and_then(|memory| self.tag_in_memory(state, position, memory, size.into())),
                };
                let compare = |(held, with)| Comparison { held, with, size, is_test, is_swapped };
                state.tags.as_mut()?.compared = held.zip(with).map(compare);
                None
            }
            Effect::Flags => {
                state.tags.as_mut()?.compared = None;
                None
            }
            _ => None,
        }
    }

    /// Applies the result of [`carry`](Self::carry) after the register was written.
    pub(super) fn carried(&mut self, state: &mut State, carried: Option<Carried>) {
        let (Some(Carried { to, name, held }), Some(tags)) = (carried, state.tags.as_mut()) else { return };
        tags.written(to);
        if let Some(slot) = tags.names.get_mut(usize::from(to.0)) {
            *slot = name;
        }
        tags.held.extend(held.map(|held| (to, held)));
    }

    /// Invalidates the facts about tags that a store overwrites.
    pub(super) fn overwrite_tags(&mut self, state: &mut State, memory: &Memory) {
        if state.tags.as_ref().is_none_or(|tags| tags.facts.is_empty()) {
            return;
        }
        let Some(address) = address_of(state, memory) else { return };
        let size = i64::from(memory.size.max(1));
        let universes = &self.universes;
        let Some(tags) = state.tags.as_mut() else { return };
        tags.facts.retain(|fact| {
            let known = fact.address;
            let is_alike =
                (known.base, known.index, known.scale) == (address.base, address.index, address.scale);
            let length = universes.get(fact.universe as usize).map_or(8, |universe| universe.size.into());
            let is_apart = known.offset >= address.offset.saturating_add(size)
                || address.offset >= known.offset.saturating_add(length);
            !is_alike || is_apart
        });
    }

    /// Returns the value of a conditional move between a tag and a constant.
    fn chosen(&self, state: &State, to: Register, from: Register, condition: Condition) -> Option<Held> {
        let tags = state.tags.as_ref()?;
        let (held, number, is_number_if) = match (tags.held(to), tags.held(from)) {
            (Some(held), None) => (held, state.get(from), condition),
            (None, Some(held)) => (held, state.get(to), condition.opposite()),
            _ => return None,
        };
        let Value::Constant(number) = number else { return None };
        if held.or.is_some() {
            return None;
        }
        let universe = self.universes.get(held.universe as usize)?;
        let about = tags.compared.filter(|comparison| {
            (comparison.held.address, comparison.held.universe) == (held.address, held.universe)
        });
        let (when, unless) = match about {
            Some(comparison) => (
                universe.holding(&comparison, is_number_if),
                universe.holding(&comparison, is_number_if.opposite()),
            ),
            None => (u64::MAX, u64::MAX),
        };
        Some(Held { is_sum: held.is_sum & unless, or: Some((number as u64, when)), ..held })
    }

    /// Records the index of a load from a read-only table.
    fn note_index(&mut self, state: &mut State, memory: &Memory) {
        let Some(index) = memory.index else { return };
        let Some(tags) = state.tags.as_mut() else { return };
        if let Some(held) = tags.held(index) {
            tags.index = Some(held);
        }
    }

    /// Returns the value of an operand that is an enum tag.
    fn tag_in_memory(
        &mut self,
        state: &mut State,
        position: usize,
        memory: &Memory,
        size: u64,
    ) -> Option<Held> {
        let (ty, offset) = match self.operand(state, position, memory) {
            Operand::Object(pointer) => match self.found(pointer, size, position) {
                Found::At { ty, offset } => (ty, offset),
                _ => return None,
            },
            Operand::Stack(at) => {
                let pointer = self.on_stack(state, position, at)?;
                (pointer.to, u32::try_from(pointer.offset).ok()?)
            }
            _ => return None,
        };
        let universe = self.universe(ty, offset)?;
        let tags = state.tags.as_mut()?;
        for register in [memory.base, memory.index].into_iter().flatten() {
            tags.named(register, position);
        }
        let address = address_of(state, memory)?;
        let tag_size = u64::from(self.universes.get(universe as usize)?.size);
        // a narrower load covers a part of the tag
        let size = if size < tag_size { size as u8 } else { 8 };
        Some(Held { address, universe, plus: 0, size, is_sum: u64::MAX, or: None })
    }

    /// Returns the domain of the tag at an offset of an object; `None` if there is no tag.
    fn universe(&mut self, ty: TypeId, offset: u32) -> Option<u32> {
        if let Some(known) = self.universe_of.get(&(ty, offset)) {
            return *known;
        }
        // completes the types at the offset
        self.catalog.ways(ty, offset.into());
        let all = candidates::candidates(self.catalog.types(), ty, offset.into(), 0);
        let mut universe: Option<Universe> = None;
        for tag in all.iter().filter_map(|candidate| candidate.tag.as_ref()) {
            if tag.offset != u64::from(offset) {
                continue;
            }
            let universe = universe.get_or_insert_with(|| Universe { values: Vec::new(), size: tag.size });
            if universe.size == tag.size {
                universe.values.extend(&tag.values);
            }
        }
        let found = universe.map(|mut universe| {
            universe.values.sort_unstable();
            universe.values.dedup();
            universe
        });
        let found = found.filter(|universe| universe.values.len() <= VALUES_LIMIT);
        let number = found.map(|universe| {
            self.universes.push(universe);
            (self.universes.len() - 1) as u32
        });
        self.universe_of.insert((ty, offset), number);
        number
    }

    /// Returns the state on one edge out of a block, where a branch or jump table narrows a tag.
    pub(super) fn on_way(&mut self, block: usize, successor: usize, state: &State) -> Option<State> {
        let tags = state.tags.as_ref()?;
        let body = self.body;
        let range = body.blocks()[block].instructions.clone();
        let position = (range.end as usize).checked_sub(1)?;
        let last = body.instructions().get(position)?;
        let start = body.blocks()[successor].instructions.start as usize;
        let start = body.instructions().get(start)?.address;
        let (held, allowed) = match last.flow {
            Flow::Branch(target) if target != last.end() => {
                let (comparison, condition) = (tags.compared?, last.condition?);
                let condition = if start == target { condition } else { condition.opposite() };
                let universe = self.universes.get(comparison.held.universe as usize)?;
                (comparison.held, universe.holding(&comparison, condition))
            }
            Flow::Jump(None) => {
                let own = last.memory.and_then(|memory| tags.held(memory.index?));
                let held = own.or(tags.index)?;
                let universe = self.universes.get(held.universe as usize)?;
                let table = body.table(position).iter().enumerate();
                let indices = table.filter(|(_, target)| **target == start).map(|(index, _)| index as u64);
                let equals = |with| Comparison { held, with, size: 8, is_test: false, is_swapped: false };
                let set =
                    indices.fold(0, |set, index| set | universe.holding(&equals(index), Condition::Equal));
                (held, set)
            }
            _ => return None,
        };
        let universe = self.universes.get(held.universe as usize)?;
        if allowed == 0 || allowed == universe.all() {
            return None;
        }
        let mut state = state.clone();
        state.tags.as_mut()?.narrow(held.address, held.universe, allowed);
        Some(state)
    }

    /// Returns true if the object of an operand, at an offset, may be of a variant.
    pub(super) fn can_be(
        &self,
        state: &State,
        position: usize,
        memory: &Memory,
        offset: u32,
        variant: &InVariant,
    ) -> bool {
        let (Some(tags), Some(tag)) = (&state.tags, &variant.tag) else { return true };
        let Some(address) = address_of(state, memory) else { return true };
        let behind = i64::try_from(tag.offset).unwrap_or(i64::MAX).saturating_sub(offset.into());
        let at = Address { offset: address.offset.saturating_add(behind), ..address };
        let mut facts = tags.facts.iter().filter(|fact| fact.address == at).peekable();
        if facts.peek().is_none() {
            return true;
        }
        let is_made_another = memory.access == crate::code::Access::Write
            && self.is_stored_later(position, memory, behind, tag.size.into());
        is_made_another
            || facts.all(|fact| {
                let universe = self.universes.get(fact.universe as usize);
                universe.is_none_or(|universe| universe.selects(fact.allowed, variant))
            })
    }

    /// Returns true if a later instruction of the block stores at a distance from an operand: a new value may get its
    /// tag last.
    fn is_stored_later(&self, position: usize, memory: &Memory, behind: i64, size: i64) -> bool {
        let Some(block) = self.body.block_of(position) else { return true };
        let end = self.body.blocks()[block].instructions.end as usize;
        let tag = memory.displacement.saturating_add(behind);
        for later in position + 1..end {
            let instruction = &self.body.instructions()[later];
            let is_store = |other: &Memory| {
                other.access.writes()
                    && (other.base, other.index, other.scale) == (memory.base, memory.index, memory.scale)
                    && other.displacement < tag.saturating_add(size)
                    && tag < other.displacement.saturating_add(other.size.max(1).into())
            };
            if self.body.operands(later).any(is_store) {
                return true;
            }
            let mut written = self.body.effects(instruction).iter().flat_map(Effect::written);
            if written.any(|written| Some(written) == memory.base || Some(written) == memory.index) {
                return false;
            }
        }
        false
    }
}

/// Returns the symbolic address of an operand; `None` if a register has no value number.
fn address_of(state: &State, memory: &Memory) -> Option<Address> {
    let tags = state.tags.as_ref()?;
    let (base, start) = match memory.base {
        None => (FIXED, 0),
        Some(register) => match state.get(register) {
            Value::Stack(at) => (FRAME, i64::from(at)),
            Value::Constant(at) => (FIXED, at),
            _ => {
                let name = tags.name(register);
                if name.of == 0 {
                    return None;
                }
                (name.of, name.offset)
            }
        },
    };
    let (index, scale, more) = match memory.index {
        None => (0, 0, 0),
        Some(register) => {
            let name = tags.name(register);
            if name.of == 0 {
                return None;
            }
            (name.of, memory.scale, name.offset.wrapping_mul(memory.scale.into()))
        }
    };
    let offset = start.wrapping_add(more).wrapping_add(memory.displacement);
    Some(Address { base, index, scale, offset })
}
