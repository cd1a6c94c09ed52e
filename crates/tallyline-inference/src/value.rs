//! Abstract values of registers and stack slots: the lattice of the analysis.

use super::strided_value::{StridedValue, divisor};
use super::tag_facts::TagFacts;
use crate::code::{REGISTERS, Register};
use tallyline_debuginfo::model::TypeId;

/// The abstract value of a register or stack slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Unknown since an instruction, by position from 1; 0 for never known.
    Unknown(u32),
    /// A constant, perhaps an address.
    Constant(i64),
    /// A number that is not an address, partly known.
    Number(StridedValue),
    /// The address of a byte of an object.
    Pointer(Pointer),
    /// The address of a vtable.
    Vtable,
    /// The thread pointer plus a number, of which the part that is not known has no value number.
    Thread(StridedValue),
    /// An offset from the frame address.
    Stack(i32),
}

/// The address of a byte of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pointer {
    /// The type of the object.
    pub(super) to: TypeId,
    /// The offset from the object's start; it may lie outside.
    pub(super) offset: i32,
    /// The stride of further possible offsets, as in a loop over array elements; 0 for one offset.
    pub(super) stride: u32,
    /// `true` if the pointer has one of two offsets, a stride apart, by a conditional choice.
    pub(super) is_choice: bool,
    /// `true` if the value is no address but a counter from 0 that is added to one, which debug information declares
    /// as the pointer that it replaces. LLVM 21 does so where it counts a loop over a slice by bytes.
    pub(super) is_counter: bool,
    /// `true` if elements end where the pointer leads, and lie below it, while above there is something else:
    /// hashbrown's tables are a pointer to one byte of control for each slot, with the slots below.
    pub(super) ends_elements: bool,
}

impl Pointer {
    /// Returns the pointer after an addition of any multiple of a number.
    pub(super) fn with_stride(self, by: u64) -> Pointer {
        if by == 0 {
            return self;
        }
        let stride = divisor(self.stride.into(), i64::try_from(by).unwrap_or(1 << 62));
        // a stride too large for the field is replaced by the largest power of two that divides it
        Pointer {
            stride: u32::try_from(stride).unwrap_or(1 << stride.trailing_zeros().min(30)),
            is_choice: false,
            ends_elements: false,
            ..self
        }
    }

    /// Returns the pointer as one below which its elements end.
    pub(super) fn below_which_elements_end(self) -> Pointer {
        Pointer { ends_elements: true, ..self }
    }

    /// Returns the address that the pointer is, or that a counter becomes when the start of its objects is added.
    pub(super) fn as_address(self) -> Pointer {
        Pointer { is_counter: false, ..self }
    }

    /// Creates a pointer to the start of an object.
    pub(super) fn start(to: TypeId) -> Pointer {
        Pointer::at(to, 0)
    }

    /// Creates a pointer to an offset in an object.
    pub(super) fn at(to: TypeId, offset: i32) -> Pointer {
        Pointer { to, offset, stride: 0, is_choice: false, is_counter: false, ends_elements: false }
    }

    /// Returns the pointer with a second possible offset.
    pub(super) fn either(self, other: i32) -> Pointer {
        let offset = self.offset.min(other);
        Pointer { offset, stride: self.offset.abs_diff(other), is_choice: self.offset != other, ..self }
    }

    /// Returns the two possible offsets, equal for a single one; `None` if there may be others.
    pub(super) fn alternatives(self) -> Option<[i32; 2]> {
        let is_few = self.stride == 0 || self.is_choice;
        is_few.then(|| [self.offset, self.offset.saturating_add_unsigned(self.stride)])
    }
}

impl Value {
    /// A number that is not an address and of which nothing is known.
    pub(super) const WORD: Value = Value::Number(StridedValue::ANY);

    /// The thread pointer itself.
    pub(super) const THREAD_POINTER: Value =
        Value::Thread(StridedValue { base: 0, stride: 0, symbol: 0, is_choice: false });

    /// Creates the address of an object.
    pub(super) fn pointer(to: TypeId) -> Value {
        Value::Pointer(Pointer::start(to))
    }

    /// Returns the number of a constant or number; `None` for other values.
    pub(super) fn number(self) -> Option<StridedValue> {
        match self {
            Value::Constant(number) => Some(StridedValue::known(number)),
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the value as a number; an unknown one for other values.
    pub(super) fn as_number(self) -> StridedValue {
        match self {
            // debug information may declare a counter with the type of the pointer it replaces
            Value::Pointer(Pointer { offset, stride, is_counter: true, .. }) => {
                StridedValue { base: offset.into(), stride: stride.into(), ..StridedValue::ANY }
            }
            // An address, or a number that was passed as one, such as that of a thread. Its offset is known, but not from
            // where.
            value => value.number().unwrap_or(StridedValue::ANY),
        }
    }

    /// Returns true for a counter that debug information declares as a pointer.
    pub(super) fn is_counter(self) -> bool {
        matches!(self, Value::Pointer(Pointer { is_counter: true, .. }))
    }

    /// Returns true for an unknown value.
    pub(super) fn is_unknown(self) -> bool {
        matches!(self, Value::Unknown(_))
    }
}

impl From<StridedValue> for Value {
    fn from(number: StridedValue) -> Value {
        match number.stride {
            0 => Value::Constant(number.base),
            _ => Value::Number(number),
        }
    }
}

/// The state of registers and stack slots at one program point.
#[derive(Clone, Debug)]
pub(super) struct State {
    registers: [Value; REGISTERS],
    // sorted by offset from the frame address
    slots: Vec<(i32, Value)>,
    // Bloom filter of the value numbers in use
    value_numbers: u64,
    /// Facts about enum tags, for languages that have them.
    pub(super) tags: Option<Box<TagFacts>>,
}

/// Returns the filter bit of a value number.
fn bit(name: u64) -> u64 {
    1 << (name.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
}

/// The maximum number of stack slots that are tracked in one function.
const SLOTS_LIMIT: usize = 512;

impl State {
    /// Creates a state without knowledge.
    pub(super) fn unknown() -> State {
        State { registers: [Value::Unknown(0); REGISTERS], slots: Vec::new(), value_numbers: 0, tags: None }
    }

    /// Returns the value of a register.
    pub(super) fn get(&self, register: Register) -> Value {
        self.registers.get(usize::from(register.0)).copied().unwrap_or(Value::Unknown(0))
    }

    /// Sets the value of a register.
    pub(super) fn set(&mut self, register: Register, value: Value) {
        if let Some(slot) = self.registers.get_mut(usize::from(register.0)) {
            *slot = value;
        }
    }

    /// Invalidates facts about tags in a register that is written. The begin of a variable's location is no write.
    pub(super) fn written(&mut self, register: Register) {
        if let Some(tags) = &mut self.tags {
            tags.written(register);
        }
    }

    /// Sets the value of a register that an instruction writes; the unknown part of a number gets the value number
    /// `name`.
    pub(super) fn define(&mut self, register: Register, value: Value, name: u64) {
        let Value::Number(number @ StridedValue { symbol: 0, .. }) = value else {
            return self.set(register, value);
        };
        // an earlier value with the same number was a different value
        self.clear_value_numbers(|symbol| symbol == name, bit(name));
        self.value_numbers |= bit(name);
        self.set(register, Value::Number(StridedValue { symbol: name, ..number }));
    }

    /// Clears the value numbers that satisfy a predicate. Those outside of the filter `bits` are skipped.
    pub(super) fn clear_value_numbers(&mut self, is_stale: impl Fn(u64) -> bool, bits: u64) {
        if self.value_numbers & bits == 0 {
            return;
        }
        for value in self.registers.iter_mut().chain(self.slots.iter_mut().map(|(_, value)| value)) {
            if let Value::Number(number) = value
                && number.symbol != 0
                && is_stale(number.symbol)
            {
                number.symbol = 0;
            }
        }
    }

    /// Returns the registers, in order.
    pub(super) fn registers(&self) -> impl Iterator<Item = (Register, Value)> + '_ {
        self.registers.iter().enumerate().map(|(number, value)| (Register(number as u8), *value))
    }

    /// Returns the value of a stack slot.
    pub(super) fn slot(&self, at: i32) -> Option<Value> {
        self.slots.binary_search_by_key(&at, |(place, _)| *place).ok().map(|index| self.slots[index].1)
    }

    /// Returns the known stack slots.
    pub(super) fn slots(&self) -> &[(i32, Value)] {
        &self.slots
    }

    /// Stores to the stack and invalidates the slots that the store overlaps.
    pub(super) fn store(&mut self, at: i32, size: u32, value: Option<Value>) {
        let end = at.saturating_add(i32::try_from(size).unwrap_or(i32::MAX));
        self.slots.retain(|(place, _)| place.saturating_add(8) <= at || *place >= end);
        let Some(value) = value.filter(|value| !value.is_unknown()) else { return };
        if size == 8 && self.slots.len() < SLOTS_LIMIT {
            let index = self.slots.partition_point(|(place, _)| *place < at);
            self.slots.insert(index, (at, value));
        }
    }

    /// Joins the state of another path; returns true if this state changed. `join` joins two values, and gets the
    /// register if they are those of one.
    pub(super) fn join(
        &mut self,
        other: &State,
        mut join: impl FnMut(Value, Value, Option<Register>) -> Value,
    ) -> bool {
        let mut changed = false;
        self.value_numbers |= other.value_numbers;
        for (index, (mine, theirs)) in self.registers.iter_mut().zip(&other.registers).enumerate() {
            if mine != theirs {
                let joined = join(*mine, *theirs, Some(Register(index as u8)));
                if let Value::Number(StridedValue { symbol, .. }) = joined {
                    self.value_numbers |= bit(symbol);
                }
                changed |= joined != *mine;
                *mine = joined;
            }
        }
        match (&mut self.tags, &other.tags) {
            (Some(mine), Some(theirs)) => changed |= mine.join(theirs),
            (mine, _) => *mine = None,
        }
        let before = self.slots.len();
        self.slots.retain_mut(|(place, mine)| {
            let Some(theirs) = other.slot(*place) else { return false };
            if *mine != theirs {
                let joined = join(*mine, theirs, None);
                changed |= joined != *mine;
                *mine = joined;
            }
            !mine.is_unknown()
        });
        changed | (self.slots.len() != before)
    }
}

/// Returns true if no object can be at an address: null, an error number or a small offset from null.
pub(super) fn is_near_null(number: i64) -> bool {
    (-4096..4096).contains(&number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_removes_what_it_overlaps() {
        let mut state = State::unknown();
        state.store(-16, 8, Some(Value::WORD));
        state.store(-8, 8, Some(Value::Constant(3)));
        state.store(-12, 4, Some(Value::WORD));
        assert_eq!(state.slot(-16), None);
        assert_eq!(state.slot(-8), Some(Value::Constant(3)));
        state.store(-16, 16, None);
        assert!(state.slots().is_empty());
    }

    #[test]
    fn a_join_keeps_what_both_know() {
        let mut one = State::unknown();
        one.set(Register(3), Value::WORD);
        one.store(-8, 8, Some(Value::WORD));
        let mut two = State::unknown();
        two.set(Register(3), Value::Constant(1));
        let meet = |_, _, _| Value::Unknown(7);
        assert!(one.join(&two, meet));
        assert_eq!(one.get(Register(3)), Value::Unknown(7));
        assert!(one.slots().is_empty());
        assert!(!one.join(&one.clone(), meet));
    }

    #[test]
    fn what_was_loaded_before_is_another_number_than_what_is_loaded_now() {
        let mut state = State::unknown();
        state.define(Register(0), Value::WORD, 9);
        state.set(Register(1), state.get(Register(0)));
        let difference = |state: &State| {
            let (one, other) = (state.get(Register(0)).as_number(), state.get(Register(1)).as_number());
            Value::from(one.plus(other.times(-1)))
        };
        assert_eq!(difference(&state), Value::Constant(0));
        state.define(Register(0), Value::WORD, 9);
        assert_eq!(difference(&state), Value::WORD);
    }
}
