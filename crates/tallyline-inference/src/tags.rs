//! Which variants an enum can be of: tags that a path has compared with numbers.
//!
//! A register gets a name when it is copied or a tag is loaded through it; copies and sums with numbers
//! keep the name, so a tag is known by its address whichever register leads there. What a branch or a
//! table of jumps says of a loaded tag holds on the ways behind it, until something is stored there.
//! That nothing else stores there while a variant is used is what Rust promises of references.

use super::candidates::{self, InVariant, mask};
use super::flow::Analysis;
use super::lookup::Found;
use super::operand::Operand;
use super::transfer::name_of;
use super::value::{State, Value};
use crate::code::{Compared, Condition, Effect, Flow, Instruction, Memory, REGISTERS, Register};
use tallyline_debuginfo::model::TypeId;

/// The most tags of which something is known at one point.
const FACTS_LIMIT: usize = 64;

/// The most values of one tag.
const VALUES_LIMIT: usize = 62;

/// The most values of a range that are looked at one by one.
const RANGE_LIMIT: u64 = 128;

/// Stands for the frame's address.
const FRAME: u32 = u32::MAX;

/// Stands for addresses that are known.
const FIXED: u32 = u32::MAX - 1;

/// An address in terms of what registers held: names, 0 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    base: u32,
    index: u32,
    scale: u8,
    offset: i64,
}

/// A name of what a register held, and what has been added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Name {
    of: u32,
    offset: i64,
}

/// What is known of the tag at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fact {
    address: Address,
    universe: u32,
    /// The values that it can have, as a set of the universe's.
    allowed: u64,
}

/// A value that was made from a tag: the tag with a number added, or a fixed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    address: Address,
    universe: u32,
    plus: u64,
    /// How many bytes of the sum are kept.
    size: u8,
    /// The values of the tag that it can be the sum for.
    is_sum: u64,
    /// The values of the tag that it can be a fixed number for, and that number.
    or: Option<(u64, u64)>,
}

/// A comparison of such a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Comparison {
    held: Held,
    with: u64,
    size: u8,
    is_test: bool,
    /// Whether the number is the left operand.
    is_swapped: bool,
}

/// The values that a tag can have: those that select variants, and all others as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Universe {
    values: Vec<u64>,
    size: u8,
}

/// What is known of tags at one point.
#[derive(Clone, Debug)]
pub(super) struct Tags {
    names: [Name; REGISTERS],
    facts: Vec<Fact>,
    held: Vec<(Register, Held)>,
    compared: Option<Comparison>,
    /// The index of the last load from a table.
    index: Option<Held>,
}

impl Default for Tags {
    fn default() -> Self {
        let names = [Name::default(); REGISTERS];
        Tags { names, facts: Vec::new(), held: Vec::new(), compared: None, index: None }
    }
}

impl Universe {
    /// The bit that stands for all values that select no variant by themselves.
    fn others(&self) -> u64 {
        1 << self.values.len()
    }

    fn all(&self) -> u64 {
        self.others() | (self.others() - 1)
    }

    /// The values of the tag for which a comparison comes out so.
    fn holding(&self, comparison: &Comparison, condition: Condition) -> u64 {
        let held = &comparison.held;
        let holds = |value: u64| holds(comparison, condition, value);
        let mut set = 0;
        for (index, value) in self.values.iter().enumerate() {
            let bit = 1 << index;
            let sum = value.wrapping_add(held.plus) & mask(held.size.into());
            let by_sum = held.is_sum & bit != 0 && holds(sum);
            let by_number = held.or.is_some_and(|(number, when)| when & bit != 0 && holds(number));
            set |= if by_sum || by_number { bit } else { 0 };
        }
        let others = self.others();
        let by_sum = held.is_sum & others != 0 && self.can_be_other(comparison, condition);
        let by_number = held.or.is_some_and(|(number, when)| when & others != 0 && holds(number));
        set | if by_sum || by_number { others } else { 0 }
    }

    /// Whether a value that selects no variant by itself can make a comparison come out so.
    fn can_be_other(&self, comparison: &Comparison, condition: Condition) -> bool {
        let most = mask(comparison.size.into());
        let with = comparison.with & most;
        let is_zero = comparison.is_test && with == most;
        if comparison.is_test && !is_zero {
            return true;
        }
        let with = if is_zero { 0 } else { with };
        let is_least = condition == Condition::Overflow && comparison.is_swapped && with == 0;
        if comparison.is_swapped && condition != Condition::Equal && !is_least {
            return true;
        }
        let (first, last) = match condition {
            Condition::Equal => (Some(with), Some(with)),
            // only the least number has no opposite
            Condition::Overflow if is_least => (Some(most ^ most >> 1), Some(most ^ most >> 1)),
            Condition::Below => (Some(0), with.checked_sub(1)),
            Condition::BelowOrEqual => (Some(0), Some(with)),
            Condition::NotBelow => (Some(with), Some(most)),
            Condition::NotBelowOrEqual => (with.checked_add(1).filter(|first| *first <= most), Some(most)),
            _ => return true,
        };
        let (Some(first), Some(last)) = (first, last) else { return false };
        if last - first >= RANGE_LIMIT {
            return true;
        }
        let held = &comparison.held;
        let arithmetic = mask(held.size.into());
        // whether the comparison sees all of the tag
        let is_whole =
            held.size <= comparison.size || (held.plus == 0 && self.size <= comparison.size.min(held.size));
        (first..=last).any(|value| {
            let tag = value.wrapping_sub(held.plus) & arithmetic;
            value & !arithmetic == 0
                && tag & !mask(self.size.into()) == 0
                && (!is_whole || !self.values.contains(&tag))
        })
    }

    /// Whether a variant can be selected by one of some values.
    fn selects(&self, allowed: u64, variant: &InVariant) -> bool {
        let Some(tag) = &variant.tag else { return true };
        if tag.size != self.size {
            return true;
        }
        let is_allowed = |index: usize| allowed & (1 << index) != 0;
        let others = allowed & self.others() != 0;
        match variant.value {
            Some(value) => match self.values.iter().position(|known| *known == value) {
                Some(index) => is_allowed(index),
                None => others,
            },
            None => {
                let is_free = |(index, value)| is_allowed(index) && !tag.values.contains(value);
                others || self.values.iter().enumerate().any(is_free)
            }
        }
    }
}

fn holds(comparison: &Comparison, condition: Condition, value: u64) -> bool {
    let bits = 8 * u32::from(comparison.size.clamp(1, 8));
    let kept = mask(comparison.size.into());
    let signed = |number: u64| ((number << (64 - bits)) as i64) >> (64 - bits);
    let (one, other) = match (comparison.is_test, comparison.is_swapped) {
        (true, _) => (value & comparison.with & kept, 0),
        (false, true) => (comparison.with & kept, value & kept),
        (false, false) => (value & kept, comparison.with & kept),
    };
    match condition {
        Condition::Equal => one == other,
        Condition::Below => one < other,
        Condition::BelowOrEqual => one <= other,
        Condition::Less => signed(one) < signed(other),
        Condition::LessOrEqual => signed(one) <= signed(other),
        Condition::Negative => signed(one.wrapping_sub(other) & kept) < 0,
        Condition::Overflow => {
            let difference = i128::from(signed(one)) - i128::from(signed(other));
            difference != i128::from(signed(difference as u64 & kept))
        }
        opposite => !holds(comparison, opposite.opposite(), value),
    }
}

impl Tags {
    /// A register is written.
    pub(super) fn written(&mut self, register: Register) {
        if let Some(name) = self.names.get_mut(usize::from(register.0)) {
            *name = Name::default();
        }
        self.held.retain(|(holder, _)| *holder != register);
    }

    /// A function was called: what is on the stack may be another value, and flags are lost.
    pub(super) fn called(&mut self) {
        self.facts.retain(|fact| fact.address.base != FRAME);
        self.compared = None;
        self.index = None;
    }

    /// What is known on both of two ways; true if that is less than was known here.
    pub(super) fn join(&mut self, other: &Tags) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.names.iter_mut().zip(&other.names) {
            if mine != theirs && mine.of != 0 {
                (*mine, changed) = (Name::default(), true);
            }
        }
        let facts = self.facts.len();
        self.facts.retain_mut(|fact| {
            let same = |theirs: &&Fact| theirs.address == fact.address && theirs.universe == fact.universe;
            let Some(theirs) = other.facts.iter().find(same) else { return false };
            changed |= theirs.allowed & !fact.allowed != 0;
            fact.allowed |= theirs.allowed;
            true
        });
        let held = self.held.len();
        self.held.retain(|held| other.held.contains(held));
        changed |= facts != self.facts.len() || held != self.held.len();
        if self.compared != other.compared && self.compared.take().is_some() {
            changed = true;
        }
        if self.index != other.index && self.index.take().is_some() {
            changed = true;
        }
        changed
    }

    fn name(&self, register: Register) -> Name {
        self.names.get(usize::from(register.0)).copied().unwrap_or_default()
    }

    fn held(&self, register: Register) -> Option<Held> {
        self.held.iter().find(|(holder, _)| *holder == register).map(|(_, held)| *held)
    }

    /// Gives what a register holds a name, unless it has one.
    fn named(&mut self, register: Register, position: usize) -> Name {
        let known = self.name(register);
        if known.of != 0 {
            return known;
        }
        let of = (name_of(position, register) as u32) & (u32::MAX >> 1) | 1 << 6;
        // what had the name the last time was another value
        self.names.iter_mut().filter(|name| name.of == of).for_each(|name| *name = Name::default());
        let is_gone = |address: &Address| address.base == of || address.index == of;
        self.facts.retain(|fact| !is_gone(&fact.address));
        self.held.retain(|(_, held)| !is_gone(&held.address));
        self.compared = self.compared.filter(|comparison| !is_gone(&comparison.held.address));
        self.index = self.index.filter(|held| !is_gone(&held.address));
        let name = Name { of, offset: 0 };
        if let Some(slot) = self.names.get_mut(usize::from(register.0)) {
            *slot = name;
        }
        name
    }

    /// What is known of the tag at an address becomes less.
    fn narrow(&mut self, address: Address, universe: u32, allowed: u64) {
        let same = |fact: &Fact| fact.address == address && fact.universe == universe;
        match self.facts.iter().position(same) {
            Some(index) => {
                let fact = &mut self.facts[index];
                // what contradicts itself is another value than before
                let both = fact.allowed & allowed;
                fact.allowed = if both == 0 { allowed } else { both };
            }
            None if self.facts.len() < FACTS_LIMIT => self.facts.push(Fact { address, universe, allowed }),
            None => {}
        }
    }
}

/// What becomes known of a register by an effect.
pub(super) struct Carried {
    to: Register,
    name: Name,
    held: Option<Held>,
}

impl Analysis<'_, '_, '_, '_> {
    /// Says what an effect does to names and to what is made from tags, by what holds before it.
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

    /// Does what [`carry`](Self::carry) said, when the register has been written.
    pub(super) fn carried(&mut self, state: &mut State, carried: Option<Carried>) {
        let (Some(Carried { to, name, held }), Some(tags)) = (carried, state.tags.as_mut()) else { return };
        tags.written(to);
        if let Some(slot) = tags.names.get_mut(usize::from(to.0)) {
            *slot = name;
        }
        tags.held.extend(held.map(|held| (to, held)));
    }

    /// A store takes away what is known of the tags that it overwrites.
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

    /// The value that a choice makes of a tag and a number.
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

    /// Notes the index of a load from a table that nobody writes.
    fn note_index(&mut self, state: &mut State, memory: &Memory) {
        let Some(index) = memory.index else { return };
        let Some(tags) = state.tags.as_mut() else { return };
        if let Some(held) = tags.held(index) {
            tags.index = Some(held);
        }
    }

    /// The tag that an operand is, if it is one.
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
        // a part of it is what the comparison sees
        let size = if size < tag_size { size as u8 } else { 8 };
        Some(Held { address, universe, plus: 0, size, is_sum: u64::MAX, or: None })
    }

    /// The values that the tag at a place of an object can have; none if there is no tag.
    fn universe(&mut self, ty: TypeId, offset: u32) -> Option<u32> {
        if let Some(known) = self.universe_of.get(&(ty, offset)) {
            return *known;
        }
        // reads what lies there
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

    /// What is known on one of the ways out of a block, where a branch or a table tells more than the
    /// block does.
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

    /// Whether a variant is one that the object can be of that an operand is in, at an offset.
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

    /// Whether something is stored, further on in the block, so far behind an operand: a value that is
    /// made anew may get its tag last.
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

/// The address of an operand, by the names of what registers hold; none if one of them has no name.
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

fn added(held: Held, number: i64) -> Option<Held> {
    held.or.is_none().then_some(Held { plus: held.plus.wrapping_add(number as u64), ..held })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Address = Address { base: 5, index: 0, scale: 0, offset: 0 };

    fn held(plus: u64, size: u8) -> Held {
        Held { address: PLACE, universe: 0, plus, size, is_sum: u64::MAX, or: None }
    }

    fn compared(held: Held, with: u64, size: u8) -> Comparison {
        Comparison { held, with, size, is_test: false, is_swapped: false }
    }

    fn universe(values: &[u64], size: u8) -> Universe {
        Universe { values: values.to_vec(), size }
    }

    #[test]
    fn a_branch_leaves_the_values_that_its_condition_holds_for() {
        let tag = universe(&[0, 1, 2], 4);
        let with_one = compared(held(0, 8), 1, 4);
        assert_eq!(tag.holding(&with_one, Condition::Equal), 0b0010);
        assert_eq!(tag.holding(&with_one, Condition::NotEqual), 0b1101);
        assert_eq!(tag.holding(&with_one, Condition::BelowOrEqual), 0b0011);
        assert_eq!(tag.holding(&with_one, Condition::NotBelowOrEqual), 0b1100);
        // all values below 3 are known ones
        assert_eq!(tag.holding(&compared(held(0, 8), 3, 4), Condition::Below), 0b0111);
        // a byte of the tag does not tell all of it
        assert_eq!(tag.holding(&compared(held(0, 8), 1, 1), Condition::Equal), 0b1010);
    }

    #[test]
    fn a_niche_is_found_by_the_numbers_that_are_added_to_it() {
        let least = 1 << 63;
        let tag = universe(&[least, least + 1], 8);
        // tag + 2^63 is 0 or 1, or something else for the variant with the data
        let sum = held(least, 8);
        assert_eq!(tag.holding(&compared(sum, 0, 8), Condition::Equal), 0b001);
        assert_eq!(tag.holding(&compared(sum, 1, 8), Condition::NotBelowOrEqual), 0b100);
        // 0 - tag does not fit for the least number only
        let opposite = Comparison { is_swapped: true, ..compared(held(0, 8), 0, 8) };
        assert_eq!(tag.holding(&opposite, Condition::Overflow), 0b001);
        assert_eq!(tag.holding(&opposite, Condition::NotOverflow), 0b110);
        // what is chosen instead of a sum above 1
        let when = tag.holding(&compared(sum, 1, 8), Condition::NotBelowOrEqual);
        let chosen = Held { is_sum: !when, or: Some((2, when)), ..sum };
        assert_eq!(tag.holding(&compared(chosen, 2, 8), Condition::Equal), 0b100);
        assert_eq!(tag.holding(&compared(chosen, 1, 8), Condition::Equal), 0b010);
    }

    #[test]
    fn ways_that_meet_leave_what_either_leaves() {
        let with = |allowed| {
            let mut tags = Tags::default();
            tags.narrow(PLACE, 0, allowed);
            tags
        };
        let mut one = with(0b001);
        assert!(one.join(&with(0b010)));
        assert_eq!(one.facts[0].allowed, 0b011);
        assert!(!one.join(&with(0b001)));
        assert!(one.join(&Tags::default()) && one.facts.is_empty());
    }

    #[test]
    fn a_name_that_is_given_again_is_another_value() {
        let mut tags = Tags::default();
        let name = tags.named(Register(5), 3);
        tags.narrow(Address { base: name.of, ..PLACE }, 0, 1);
        assert_eq!(tags.named(Register(5), 9), name);
        tags.written(Register(5));
        assert_eq!(tags.facts.len(), 1);
        assert_eq!(tags.named(Register(5), 3), name);
        assert!(tags.facts.is_empty());
    }
}
