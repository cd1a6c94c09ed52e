//! Narrowing of enum variants by comparisons of their tags along a path.
//!
//! A register gets a value number when it is copied or a tag is loaded through it. Copies and sums with constants
//! keep it, so a tag is identified by its symbolic address, whichever register holds that. The outcome of a branch or
//! jump table on a loaded tag holds along the path behind it until a store to that address. No other store can
//! intervene while a variant is in use: references in Rust guarantee that.

use super::analysis::Analysis;
use super::candidates::{self, VariantMembership};
use super::lookup::Resolution;
use super::operand::Operand;
use super::tag_facts::{
    Comparison, FIXED, FRAME, SymbolicAddress, SymbolicValue, TagDomain, TagValue, VALUES_LIMIT, added,
};
use super::value::{State, Value};
use crate::code::{ComparisonOperand, Condition, Effect, Flow, Instruction, Memory, Register};
use tallyline_debuginfo::model::TypeId;

/// The symbolic address that an effect writes to a register, and the tag of an enumeration that it then holds.
pub(super) struct TagTransfer {
    to: Register,
    name: SymbolicValue,
    held: Option<TagValue>,
    /// The value whose sign it then holds.
    sign: Option<TagValue>,
}

impl Analysis<'_, '_, '_, '_> {
    /// Returns the symbolic value that an effect writes, from the state before it.
    pub(super) fn tag_transfer(
        &mut self,
        state: &mut State,
        position: usize,
        instruction: &Instruction,
        effect: &Effect,
    ) -> Option<TagTransfer> {
        state.tags.as_ref()?;
        let carried = |to, name, held| Some(TagTransfer { to, name, held, sign: None });
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
                let name = if name.number == 0 { name } else { SymbolicValue { offset, ..name } };
                carried(to, name, tags.held(base).and_then(|held| added(held, displacement)))
            }
            Effect::Add { to, by, subtract } => {
                let tags = state.tags.as_ref()?;
                let held = match (tags.held(to), tags.held(by), state.get(to), state.get(by)) {
                    (Some(held), _, _, Value::Constant(number)) => {
                        added(held, if subtract { number.wrapping_neg() } else { number })
                    }
                    (_, Some(held), Value::Constant(number), _) if !subtract => added(held, number),
                    _ => None,
                };
                carried(to, SymbolicValue::default(), held)
            }
            Effect::SignMask { to } => {
                let sign = state.tags.as_ref()?.held(to);
                sign.map(|_| TagTransfer { to, name: SymbolicValue::default(), held: None, sign })
            }
            Effect::And { to, by } => {
                let tags = state.tags.as_ref()?;
                let (sum, sign) = match (tags.sign(to), tags.sign(by)) {
                    (Some(sign), _) => (tags.held(by)?, sign),
                    (None, sign) => (tags.held(to)?, sign?),
                };
                let domain = self.tag_domains.get(sum.domain as usize)?;
                carried(to, SymbolicValue::default(), sum.where_negative(domain, sign))
            }
            Effect::Truncate { to, size, signed: false } => {
                let held = state.tags.as_ref()?.held(to);
                let held = held.map(|held| TagValue { size: held.size.min(size), ..held });
                carried(to, SymbolicValue::default(), held.filter(|held| held.or.is_none() || size >= 4))
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
                    SymbolicValue::default(),
                    held.map(|(held, size)| TagValue { size: held.size.min(size), ..held }),
                )
            }
            Effect::Load { to, size, at } => {
                let memory = instruction.memory.as_ref()?;
                self.note_index(state, memory);
                let held =
                    if at == 0 { self.tag_in_memory(state, position, memory, size.into()) } else { None };
                carried(to, SymbolicValue::default(), held)
            }
            Effect::AddMemory { to } => {
                let Value::Constant(number) = state.get(to) else { return None };
                let memory = instruction.memory.as_ref()?;
                let held = self.tag_in_memory(state, position, memory, memory.size.into())?;
                carried(to, SymbolicValue::default(), added(held, number))
            }
            Effect::ConditionalMove { to, from } => {
                let condition = instruction.condition;
                let tags = state.tags.as_ref()?;
                let name =
                    if tags.name(to) == tags.name(from) { tags.name(to) } else { SymbolicValue::default() };
                let held = condition.and_then(|condition| self.chosen(state, to, from, condition));
                carried(to, name, held)
            }
            Effect::Compare { one, other, size, is_test } => {
                let number = |operand| match operand {
                    ComparisonOperand::Number(number) => Some(number as u64),
                    // a register compared with itself is compared with 0
                    ComparisonOperand::Register(_) if is_test && one == other => Some(u64::MAX),
                    ComparisonOperand::Register(register) => match state.get(register) {
                        Value::Constant(number) => Some(number as u64),
                        _ => None,
                    },
                    ComparisonOperand::Memory => None,
                };
                let (with, is_swapped, tag) = match (number(one), number(other)) {
                    (_, Some(with)) => (Some(with), false, one),
                    (with, None) => (with, !is_test, other),
                };
                let held = match (with, tag) {
                    (None, _) | (_, ComparisonOperand::Number(_)) => None,
                    (_, ComparisonOperand::Register(register)) => state.tags.as_ref()?.held(register),
                    (_, ComparisonOperand::Memory) => instruction
                        .memory
                        .as_ref()
                        .and_then(|memory| self.tag_in_memory(state, position, memory, size.into())),
                };
                let compare = |(held, with)| Comparison { held, with, size, is_test, is_swapped };
                state.tags.as_mut()?.compared = held.zip(with).map(compare);
                None
            }
            Effect::ClobberFlags => {
                state.tags.as_mut()?.compared = None;
                None
            }
            _ => None,
        }
    }

    /// Applies the result of [`tag_transfer`](Self::tag_transfer) after the register was written.
    pub(super) fn apply_tag_transfer(&mut self, state: &mut State, carried: Option<TagTransfer>) {
        let (Some(TagTransfer { to, name, held, sign }), Some(tags)) = (carried, state.tags.as_mut()) else {
            return;
        };
        tags.written(to);
        if let Some(slot) = tags.names.get_mut(usize::from(to.0)) {
            *slot = name;
        }
        tags.held.extend(held.map(|held| (to, held)));
        tags.signs.extend(sign.map(|sign| (to, sign)));
    }

    /// Invalidates the facts about tags that a store overwrites.
    pub(super) fn overwrite_tags(&mut self, state: &mut State, memory: &Memory) {
        if state.tags.as_ref().is_none_or(|tags| tags.facts.is_empty()) {
            return;
        }
        let Some(address) = address_of(state, memory) else { return };
        let size = i64::from(memory.size.max(1));
        let tag_domains = &self.tag_domains;
        let Some(tags) = state.tags.as_mut() else { return };
        tags.facts.retain(|fact| {
            let known = fact.address;
            let is_alike =
                (known.base, known.index, known.scale) == (address.base, address.index, address.scale);
            let length = tag_domains.get(fact.domain as usize).map_or(8, |domain| domain.size.into());
            let is_apart = known.offset >= address.offset.saturating_add(size)
                || address.offset >= known.offset.saturating_add(length);
            !is_alike || is_apart
        });
    }

    /// Returns the value of a conditional move between a tag and a constant.
    fn chosen(&self, state: &State, to: Register, from: Register, condition: Condition) -> Option<TagValue> {
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
        let domain = self.tag_domains.get(held.domain as usize)?;
        let about = tags.compared.filter(|comparison| {
            (comparison.held.address, comparison.held.domain) == (held.address, held.domain)
        });
        let (when, unless) = match about {
            Some(comparison) => (
                domain.values_where(&comparison, is_number_if),
                domain.values_where(&comparison, is_number_if.opposite()),
            ),
            None => (u64::MAX, u64::MAX),
        };
        Some(TagValue { is_sum: held.is_sum & unless, or: Some((number as u64, when)), ..held })
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
    ) -> Option<TagValue> {
        let (ty, offset) = match self.operand(state, position, memory) {
            Operand::Object(pointer) => match self.resolve(pointer, size, position) {
                Resolution::At { ty, offset } => (ty, offset),
                _ => return None,
            },
            Operand::Stack(at) => {
                let pointer = self.on_stack(state, position, at)?;
                (pointer.to, u32::try_from(pointer.offset).ok()?)
            }
            _ => return None,
        };
        let domain = self.domain(ty, offset)?;
        let tags = state.tags.as_mut()?;
        for register in [memory.base, memory.index].into_iter().flatten() {
            tags.named(register, position);
        }
        let address = address_of(state, memory)?;
        let tag_size = u64::from(self.tag_domains.get(domain as usize)?.size);
        // a narrower load covers a part of the tag
        let size = if size < tag_size { size as u8 } else { 8 };
        Some(TagValue { address, domain, plus: 0, size, is_sum: u64::MAX, or: None })
    }

    /// Returns the domain of the tag at an offset of an object; `None` if there is no tag.
    fn domain(&mut self, ty: TypeId, offset: u32) -> Option<u32> {
        if let Some(known) = self.tag_domain_of.get(&(ty, offset)) {
            return *known;
        }
        // completes the types at the offset
        self.catalog.access_paths(ty, offset.into());
        let all = candidates::candidates(self.catalog.types(), ty, offset.into(), 0);
        let mut domain: Option<TagDomain> = None;
        for tag in all.iter().filter_map(|candidate| candidate.tag.as_ref()) {
            if tag.offset != u64::from(offset) {
                continue;
            }
            let domain = domain.get_or_insert_with(|| TagDomain { values: Vec::new(), size: tag.size });
            if domain.size == tag.size {
                domain.values.extend(&tag.values);
            }
        }
        let found = domain.map(|mut domain| {
            domain.values.sort_unstable();
            domain.values.dedup();
            domain
        });
        let found = found.filter(|domain| domain.values.len() <= VALUES_LIMIT);
        let number = found.map(|domain| {
            self.tag_domains.push(domain);
            (self.tag_domains.len() - 1) as u32
        });
        self.tag_domain_of.insert((ty, offset), number);
        number
    }

    /// Returns the state on one edge out of a block, where a branch or jump table narrows a tag.
    pub(super) fn state_on_edge(&mut self, block: usize, successor: usize, state: &State) -> Option<State> {
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
                let domain = self.tag_domains.get(comparison.held.domain as usize)?;
                (comparison.held, domain.values_where(&comparison, condition))
            }
            Flow::Jump(None) => {
                let own = last.memory.and_then(|memory| tags.held(memory.index?));
                let held = own.or(tags.index)?;
                let domain = self.tag_domains.get(held.domain as usize)?;
                let table = body.table(position).iter().enumerate();
                let indices = table.filter(|(_, target)| **target == start).map(|(index, _)| index as u64);
                let equals = |with| Comparison { held, with, size: 8, is_test: false, is_swapped: false };
                let set =
                    indices.fold(0, |set, index| set | domain.values_where(&equals(index), Condition::Equal));
                (held, set)
            }
            _ => return None,
        };
        let domain = self.tag_domains.get(held.domain as usize)?;
        if allowed == 0 || allowed == domain.all() {
            return None;
        }
        let mut state = state.clone();
        state.tags.as_mut()?.narrow(held.address, held.domain, allowed);
        Some(state)
    }

    /// Returns true if the object of an operand, at an offset, may be of a variant.
    pub(super) fn can_be(
        &self,
        state: &State,
        position: usize,
        memory: &Memory,
        offset: u32,
        variant: &VariantMembership,
    ) -> bool {
        let (Some(tags), Some(tag)) = (&state.tags, &variant.tag) else { return true };
        let Some(address) = address_of(state, memory) else { return true };
        let behind = i64::try_from(tag.offset).unwrap_or(i64::MAX).saturating_sub(offset.into());
        let at = SymbolicAddress { offset: address.offset.saturating_add(behind), ..address };
        let mut facts = tags.facts.iter().filter(|fact| fact.address == at).peekable();
        if facts.peek().is_none() {
            return true;
        }
        let is_made_another = memory.access == crate::code::Access::Write
            && self.is_stored_later(position, memory, behind, tag.size.into());
        is_made_another
            || facts.all(|fact| {
                let domain = self.tag_domains.get(fact.domain as usize);
                domain.is_none_or(|domain| domain.selects(fact.allowed, variant))
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
fn address_of(state: &State, memory: &Memory) -> Option<SymbolicAddress> {
    let tags = state.tags.as_ref()?;
    let (base, start) = match memory.base {
        None => (FIXED, 0),
        Some(register) => match state.get(register) {
            Value::Stack(at) => (FRAME, i64::from(at)),
            Value::Constant(at) => (FIXED, at),
            _ => {
                let name = tags.name(register);
                if name.number == 0 {
                    return None;
                }
                (name.number, name.offset)
            }
        },
    };
    let (index, scale, more) = match memory.index {
        None => (0, 0, 0),
        Some(register) => {
            let name = tags.name(register);
            if name.number == 0 {
                return None;
            }
            (name.number, memory.scale, name.offset.wrapping_mul(memory.scale.into()))
        }
    };
    let offset = start.wrapping_add(more).wrapping_add(memory.displacement);
    Some(SymbolicAddress { base, index, scale, offset })
}
