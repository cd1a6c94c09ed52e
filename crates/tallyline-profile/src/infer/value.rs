//! What is known about a register or a place on the stack: the lattice of the analysis.

use crate::code::{REGISTERS, Register};
use tallyline_layout::model::TypeId;

/// What is known about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Nothing: lost at an instruction, by position from 1; 0 for never known.
    Unknown(u32),
    /// A number; it may be an address.
    Constant(i64),
    /// Something that is no address.
    Word,
    /// The address of a byte of an object.
    Pointer(Pointer),
    /// The address of a table of functions that the compiler made.
    Table,
    /// An address in what the thread has, counted from the thread's pointer.
    Thread(i64),
    /// An address on the stack, counted from the frame's address.
    Stack(i32),
}

/// The address of a byte of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pointer {
    /// The type of the object.
    pub(super) to: TypeId,
    /// The byte, counted from the object's start; it may lie outside.
    pub(super) offset: i32,
    /// Whether elements of arrays have been stepped over, so that the object may be any of them.
    pub(super) span: bool,
}

impl Value {
    /// The address of an object.
    pub(super) fn pointer(to: TypeId) -> Value {
        Value::Pointer(Pointer { to, offset: 0, span: false })
    }

    /// Whether nothing is known.
    pub(super) fn is_unknown(self) -> bool {
        matches!(self, Value::Unknown(_))
    }
}

/// What is known at one point of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    registers: [Value; REGISTERS],
    // by place, counted from the frame's address
    slots: Vec<(i32, Value)>,
}

/// The most places on the stack that are followed in one function.
const SLOTS_LIMIT: usize = 512;

impl State {
    /// Nothing is known.
    pub(super) fn unknown() -> State {
        State { registers: [Value::Unknown(0); REGISTERS], slots: Vec::new() }
    }

    /// What a register holds.
    pub(super) fn get(&self, register: Register) -> Value {
        self.registers.get(usize::from(register.0)).copied().unwrap_or(Value::Unknown(0))
    }

    /// Says what a register holds.
    pub(super) fn set(&mut self, register: Register, value: Value) {
        if let Some(slot) = self.registers.get_mut(usize::from(register.0)) {
            *slot = value;
        }
    }

    /// The registers, in order.
    pub(super) fn registers(&self) -> impl Iterator<Item = (Register, Value)> + '_ {
        self.registers.iter().enumerate().map(|(number, value)| (Register(number as u8), *value))
    }

    /// What is known about a word on the stack.
    pub(super) fn slot(&self, at: i32) -> Option<Value> {
        self.slots.binary_search_by_key(&at, |(place, _)| *place).ok().map(|index| self.slots[index].1)
    }

    /// The places on the stack of which something is known.
    pub(super) fn slots(&self) -> &[(i32, Value)] {
        &self.slots
    }

    /// A store to the stack: what it overlaps is gone.
    pub(super) fn store(&mut self, at: i32, size: u32, value: Option<Value>) {
        let end = at.saturating_add(i32::try_from(size).unwrap_or(i32::MAX));
        self.slots.retain(|(place, _)| place.saturating_add(8) <= at || *place >= end);
        let Some(value) = value.filter(|value| !value.is_unknown()) else { return };
        if size == 8 && self.slots.len() < SLOTS_LIMIT {
            let index = self.slots.partition_point(|(place, _)| *place < at);
            self.slots.insert(index, (at, value));
        }
    }

    /// What is known on both of two ways; true if that is less than was known here.
    pub(super) fn join(&mut self, other: &State, mut join: impl FnMut(Value, Value) -> Value) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.registers.iter_mut().zip(&other.registers) {
            if mine != theirs {
                let joined = join(*mine, *theirs);
                changed |= joined != *mine;
                *mine = joined;
            }
        }
        let before = self.slots.len();
        self.slots.retain_mut(|(place, mine)| {
            let Some(theirs) = other.slot(*place) else { return false };
            if *mine != theirs {
                let joined = join(*mine, theirs);
                changed |= joined != *mine;
                *mine = joined;
            }
            !mine.is_unknown()
        });
        changed | (self.slots.len() != before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_removes_what_it_overlaps() {
        let mut state = State::unknown();
        state.store(-16, 8, Some(Value::Word));
        state.store(-8, 8, Some(Value::Constant(3)));
        state.store(-12, 4, Some(Value::Word));
        assert_eq!(state.slot(-16), None);
        assert_eq!(state.slot(-8), Some(Value::Constant(3)));
        state.store(-16, 16, None);
        assert!(state.slots().is_empty());
    }

    #[test]
    fn a_join_keeps_what_both_know() {
        let mut one = State::unknown();
        one.set(Register(3), Value::Word);
        one.store(-8, 8, Some(Value::Word));
        let mut two = State::unknown();
        two.set(Register(3), Value::Constant(1));
        let meet = |_, _| Value::Unknown(7);
        assert!(one.join(&two, meet));
        assert_eq!(one.get(Register(3)), Value::Unknown(7));
        assert!(one.slots().is_empty());
        assert!(!one.join(&one.clone(), meet));
    }
}
