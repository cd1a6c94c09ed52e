//! Injection of variables: types of registers and stack slots from location lists.

use super::analysis::Analysis;
use super::lookup::modulo;
use super::value::{Pointer, State, Value};
use super::value_number;
use crate::code::{Effect, Flow, Register};
use tallyline_debuginfo::model::TypeId;
use tallyline_debuginfo::program::Holder;
use tallyline_debuginfo::program::Location;

/// A bit that separates value numbers of variables from those of instructions.
const INJECTED: u64 = 1 << 6;

impl Analysis<'_, '_, '_, '_> {
    /// Merges the types of variables into the state: of those whose location begins at an instruction, and at the
    /// start of a block of all live ones whose register is unknown.
    pub(super) fn inject_variables(&mut self, state: &mut State, position: usize, block_start: bool) {
        let function = self.function;
        let address = self.body.instructions()[position].address;
        let end = function.locations.partition_point(|location| location.range.start <= address);
        if block_start {
            for index in 0..end {
                let location = &function.locations[index];
                if location.range.start < address && address < location.range.end {
                    self.inject_location(state, position, index, location, false);
                }
            }
        }
        let start = function.locations[..end].partition_point(|location| location.range.start < address);
        for index in start..end {
            self.inject_location(state, position, index, &function.locations[index], true);
        }
    }

    fn inject_location(
        &mut self,
        state: &mut State,
        position: usize,
        index: usize,
        location: &Location,
        begins: bool,
    ) {
        match location.piece.holder {
            Holder::Register(register) => {
                let known = state.get(register);
                let declared = self.declared_value(index, location);
                if !begins && !self.is_more_precise(declared, known) {
                    return;
                }
                let merged = self.merge(known, declared);
                state.define(register, merged, value_number::defined_at(position, register) | INJECTED);
            }
            Holder::Sum(register, sum) => {
                let known = state.get(register);
                let Value::Pointer(pointer) = self.declared_value(index, location) else { return };
                if matches!(known, Value::Stack(_)) {
                    return;
                }
                if let Some(offset) = shifted(pointer.offset, sum) {
                    let declared = Value::Pointer(Pointer { offset, ..pointer });
                    if !begins && !self.is_more_precise(declared, known) {
                        return;
                    }
                    let merged = self.merge(known, declared);
                    state.set(register, merged);
                }
            }
            Holder::Memory(register, sum) => {
                if !state.get(register).is_unknown() {
                    return;
                }
                let Some(ty) = self.variable_type(location.variable) else { return };
                if let Some(offset) = shifted(location.piece.offset as i32, sum) {
                    let to = self.catalog.object(ty);
                    state.set(register, Value::Pointer(Pointer::at(to, offset)));
                }
            }
            Holder::Behind(sum) => self.inject_indirect(state, location, i32::try_from(sum).ok()),
            Holder::BehindRegister(register, sum) => {
                if let Value::Stack(at) = state.get(register) {
                    let at = i64::from(at).checked_add(sum).and_then(|at| i32::try_from(at).ok());
                    self.inject_indirect(state, location, at);
                }
            }
            Holder::Frame(_) | Holder::Address(_) | Holder::ThreadLocal(_) => {}
        }
    }

    fn inject_indirect(&mut self, state: &mut State, location: &Location, at: Option<i32>) {
        let (Some(at), Some(ty)) = (at, self.variable_type(location.variable)) else { return };
        if state.slot(at).is_none() {
            let to = self.catalog.object(ty);
            state.store(at, 8, Some(Value::pointer(to)));
        }
    }

    /// Returns the value of a register by the variable that is located in it a few instructions later: compilers use
    /// a value before its location begins.
    pub(super) fn variable_located_later(&mut self, position: usize, register: Register) -> Option<Value> {
        let block = self.body.block_of(position)?;
        let end = self.body.blocks()[block].instructions.end as usize;
        let function = self.function;
        for later in position..end {
            let instruction = &self.body.instructions()[later];
            let start =
                function.locations.partition_point(|location| location.range.start < instruction.address);
            if later > position {
                let here = function.locations[start..].iter().enumerate();
                for (index, location) in here.take_while(|(_, at)| at.range.start == instruction.address) {
                    if location.piece.holder == Holder::Register(register)
                        && let value @ Value::Pointer(_) = self.declared_value(start + index, location)
                    {
                        return Some(value);
                    }
                }
            }
            let mut written = self.body.effects(instruction).iter().flat_map(Effect::written);
            if written.any(|written| written == register) || matches!(instruction.flow, Flow::Call(_)) {
                return None;
            }
        }
        None
    }

    /// Returns the type of a variable.
    pub(super) fn variable_type(&mut self, variable: u32) -> Option<TypeId> {
        let index = variable as usize;
        if let Some(known) = self.variable_types.get(index).copied().flatten() {
            return known;
        }
        let ty = self.function.variables.get(index).and_then(|variable| self.catalog.type_at(variable.ty));
        self.variable_types[index] = Some(ty);
        ty
    }

    /// Returns the value of a register that holds a variable or a piece of it.
    fn declared_value(&mut self, index: usize, location: &Location) -> Value {
        if let Some(known) = self.declared.get(&index) {
            return *known;
        }
        let value = match self.variable_type(location.variable) {
            Some(ty) => {
                let size = location.piece.size.map_or_else(|| self.catalog.size(ty).min(8), u64::from);
                let position = self.body.instructions().partition_point(|i| i.address < location.range.start);
                let templates = self.templates(position);
                self.catalog.value(ty, location.piece.offset.into(), size, &templates)
            }
            None => Value::Unknown(0),
        };
        self.declared.insert(index, value);
        value
    }

    /// Merges the value that the analysis derived with the one that a variable's type declares.
    fn merge(&mut self, known: Value, declared: Value) -> Value {
        match (known, declared) {
            (known, Value::Unknown(_)) => known,
            // a type does not tell the stride of a number
            (known @ Value::Number(_), Value::Number(_)) => known,
            (Value::Unknown(_) | Value::Number(_), declared) => declared,
            // the address of a variable says more than the type of what points to it
            (Value::Stack(_) | Value::Vtable, _) => known,
            (Value::Constant(number), Value::Pointer(_)) if self.global(number as u64).is_some() => known,
            // null, or a counter that starts at 0
            (Value::Constant(0), Value::Pointer(declared)) => {
                Value::Pointer(Pointer { is_counter: true, ..declared })
            }
            (Value::Constant(_), declared @ Value::Pointer(_)) => declared,
            // the C library's own data of a thread
            (Value::Thread(at), Value::Pointer(_)) if self.thread_variable(at).is_none() => declared,
            (Value::Pointer(known), Value::Pointer(declared)) => {
                let declared = Pointer { is_counter: known.is_counter, ..declared };
                self.merge_pointers(known, declared)
            }
            (known, _) => known,
        }
    }

    /// Returns true if a variable's type is more precise than the derived value and does not contradict it.
    fn is_more_precise(&mut self, declared: Value, known: Value) -> bool {
        match (declared, known) {
            (_, Value::Unknown(_)) => true,
            // the offset of the derived pointer is lost
            (Value::Pointer(declared), Value::Pointer(known)) if declared.to == known.to => {
                declared.stride == 0 && known.stride != 0 && !self.strides_over_objects(known)
            }
            (Value::Pointer(_), Value::Pointer(known)) if self.is_imprecise(known) => true,
            (Value::Pointer(declared), Value::Pointer(known)) => {
                let inside = i64::from(declared.offset) - i64::from(known.offset);
                u64::try_from(inside)
                    .is_ok_and(|inside| self.catalog.contains_type(declared.to, inside, known.to))
            }
            _ => false,
        }
    }

    /// Returns true if a pointer's target is unknown, or its offset in the target.
    fn is_imprecise(&mut self, pointer: Pointer) -> bool {
        self.catalog.is_void(pointer.to) || (pointer.stride != 0 && !self.catalog.is_part_known(pointer))
    }

    /// Returns true if the stride of a pointer is a multiple of its target's size.
    pub(super) fn strides_over_objects(&mut self, pointer: Pointer) -> bool {
        let size = self.catalog.size(pointer.to);
        size != 0 && u64::from(pointer.stride) % size == 0
    }

    /// Returns the pointer to the larger object if one contains the other; else the declared one.
    fn merge_pointers(&mut self, known: Pointer, declared: Pointer) -> Value {
        if known.to == declared.to {
            return Value::Pointer(if known.stride != 0 && self.strides_over_objects(known) {
                known
            } else {
                declared
            });
        }
        if self.is_imprecise(known) {
            return Value::Pointer(declared);
        }
        let mut inside = i64::from(known.offset) - i64::from(declared.offset);
        if known.stride != 0 && self.strides_over_objects(known) {
            inside = modulo(inside, self.catalog.size(known.to)) as i64;
        }
        if let Ok(inside) = u64::try_from(inside)
            && self.catalog.contains_type(known.to, inside, declared.to)
        {
            return Value::Pointer(known);
        }
        if let Ok(inside) = u64::try_from(inside)
            && let Some(to) = self.catalog.derived_with(known.to, inside, declared.to)
        {
            // the part behind the base class tells which derived class it is
            return Value::Pointer(Pointer { to, ..known });
        }
        let says_less = self.catalog.is_uninformative(declared.to)
            || u64::try_from(inside)
                .is_ok_and(|inside| self.catalog.is_part_like(known.to, inside, declared.to));
        Value::Pointer(if says_less { known } else { declared })
    }
}

/// Returns the offset that a register points to if it is `sum` below the offset of a variable.
fn shifted(offset: i32, sum: i64) -> Option<i32> {
    i64::from(offset).checked_sub(sum).and_then(|offset| i32::try_from(offset).ok())
}
