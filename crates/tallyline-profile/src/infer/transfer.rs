//! What instructions do to what is known.

use super::callees;
use super::flow::{After, Analysis};
use super::operand::{Operand, spanning};
use super::value::{State, Value};
use crate::code::{Effect, Flow, Instruction, Machine, Register};
use gimli::constants;
use tallyline_layout::model::{Type, TypeId};

/// Functions that come back with every register as it was.
const TRANSPARENT: [&str; 3] = ["__fentry__", "mcount", "__cyg_profile_func_enter"];

/// Functions that do not come back, where debug information does not say so.
const NO_RETURN: [&str; 11] = [
    "__stack_chk_fail",
    "abort",
    "exit",
    "_exit",
    "__assert_fail",
    "_Unwind_Resume",
    "__cxa_throw",
    "__cxa_rethrow",
    "runtime.gopanic",
    "runtime.throw",
    "panic",
];

/// How the names of more such functions start.
const NO_RETURN_STARTS: [&str; 4] =
    ["runtime.panic", "runtime.goPanic", "runtime.fatal", "_ZN4core9panicking"];

/// DWARF's number of Go.
const GO: u64 = 0x16;

impl Analysis<'_, '_, '_, '_> {
    /// Runs one instruction.
    pub(super) fn step(&mut self, state: &mut State, position: usize) -> After {
        let body = self.body;
        let instruction = &body.instructions()[position];
        let lost = Value::Unknown(position as u32 + 1);
        let mut called = None;
        for effect in body.effects(instruction) {
            match *effect {
                Effect::Copy { to, from } => state.set(to, state.get(from)),
                Effect::Constant { to, value } => state.set(to, Value::Constant(value)),
                Effect::Address { to, base, index, scale, displacement } => {
                    let base = base.map(|register| state.get(register));
                    let index = index.map(|register| (state.get(register), scale));
                    let value = self.address(base, index, displacement);
                    state.set(to, value);
                }
                Effect::Sum { to, by, subtract } => {
                    let value = self.sum(state.get(to), state.get(by), subtract, lost);
                    state.set(to, value);
                }
                Effect::Mask { to, mask } => {
                    let value = self.masked(state.get(to), mask, lost);
                    state.set(to, value);
                }
                Effect::Choose { to, from } => {
                    let value = self.meet(state.get(to), state.get(from), position as u32 + 1);
                    state.set(to, value);
                }
                Effect::Swap { a, b } => {
                    let (one, other) = (state.get(a), state.get(b));
                    state.set(a, other);
                    state.set(b, one);
                }
                Effect::Load { to, size, at } => {
                    let value = self.load(state, position, instruction, at, size);
                    state.set(to, value);
                }
                Effect::Store { from, size, at } => {
                    self.store(state, position, instruction, from, (at, size))
                }
                Effect::AddMemory { to } => {
                    let loaded = self.load(state, position, instruction, 0, 8);
                    let value = match (state.get(to), loaded) {
                        (known @ (Value::Pointer(_) | Value::Constant(_)), Value::Pointer(_)) => known,
                        (known, loaded) => self.sum(known, loaded, false, lost),
                    };
                    state.set(to, value);
                }
                Effect::Push { from } => self.push(state, from.map(|register| state.get(register))),
                Effect::Pop { to } => self.pop(state, to, lost),
                Effect::Modify { to } => state.set(to, lost),
                Effect::ThreadPointer { to } => state.set(to, Value::Thread(0)),
                Effect::Through { from } => called = Some(state.get(from)),
            }
        }
        match instruction.flow {
            Flow::Call(target) => {
                if called.is_none() && target.is_none() {
                    called = Some(self.load(state, position, instruction, 0, 8));
                }
                self.call(state, position, target, called)
            }
            _ => After::GoesOn,
        }
    }

    fn load(&mut self, state: &State, position: usize, instruction: &Instruction, at: u8, size: u8) -> Value {
        match &instruction.memory {
            Some(memory) => {
                let operand = self.operand(state, position, memory);
                self.loaded(state, position, operand, at, size)
            }
            None => Value::Unknown(position as u32 + 1),
        }
    }

    fn store(
        &mut self,
        state: &mut State,
        position: usize,
        instruction: &Instruction,
        from: Option<Register>,
        (at, size): (u8, u8),
    ) {
        let Some(memory) = &instruction.memory else { return };
        if let Operand::Stack(place) = self.operand(state, position, memory) {
            let value = from.map_or(Value::Word, |register| state.get(register));
            // a copy of an element of an array goes anywhere in it
            let value = (memory.index.is_none()).then_some(value);
            state.store(place.saturating_add(at.into()), size.into(), value);
        }
    }

    fn sum(&mut self, one: Value, other: Value, subtract: bool, lost: Value) -> Value {
        match (one, other) {
            (one, Value::Constant(number)) if !subtract && !matches!(one, Value::Constant(_)) => {
                match (one, self.global(number as u64)) {
                    // the start of an array in a register, and what is added to it in another
                    (Value::Word | Value::Unknown(_), Some(pointer)) => spanning(Value::Pointer(pointer)),
                    _ => self.moved(one, number),
                }
            }
            (one, Value::Constant(number)) => {
                self.moved(one, if subtract { number.wrapping_neg() } else { number })
            }
            (Value::Pointer(_), Value::Pointer(_) | Value::Stack(_)) if subtract => Value::Word,
            (Value::Pointer(_), Value::Word | Value::Unknown(_)) => spanning(one),
            (Value::Word | Value::Unknown(_), Value::Pointer(_)) if !subtract => spanning(other),
            (Value::Constant(number), _) if !subtract => match (other, self.global(number as u64)) {
                (Value::Pointer(_) | Value::Stack(_), _) => self.moved(other, number),
                (_, Some(pointer)) => spanning(Value::Pointer(pointer)),
                (Value::Unknown(_), None) => other,
                _ => Value::Word,
            },
            (Value::Word, Value::Word) => Value::Word,
            (Value::Table, _) | (_, Value::Table) => Value::Word,
            _ => lost,
        }
    }

    /// A value with bits cleared: pointers carry marks in their low bits, and stacks are aligned.
    fn masked(&mut self, value: Value, mask: i64, lost: Value) -> Value {
        match value {
            Value::Pointer(_) if (-16..0).contains(&mask) => value,
            Value::Word => Value::Word,
            Value::Constant(number) => Value::Constant(number & mask),
            _ => lost,
        }
    }

    fn push(&mut self, state: &mut State, value: Option<Value>) {
        let stack = self.stack_register();
        let moved = self.moved(state.get(stack), -8);
        state.set(stack, moved);
        if let Value::Stack(at) = moved {
            state.store(at, 8, Some(value.unwrap_or(Value::Word)));
        }
    }

    fn pop(&mut self, state: &mut State, to: Register, lost: Value) {
        let stack = self.stack_register();
        let top = state.get(stack);
        let value = match top {
            Value::Stack(at) => state.slot(at).unwrap_or(lost),
            _ => lost,
        };
        let moved = self.moved(top, 8);
        state.set(stack, moved);
        state.set(to, value);
    }

    fn call(
        &mut self,
        state: &mut State,
        position: usize,
        target: Option<u64>,
        called: Option<Value>,
    ) -> After {
        let instruction = &self.body.instructions()[position];
        let symbol = target.and_then(|target| self.image.function_at(target));
        let name = symbol.map_or("", |symbol| symbol.name.as_str());
        if TRANSPARENT.contains(&name) {
            return After::GoesOn;
        }
        if name.starts_with("runtime.gcWriteBarrier") {
            // room in a buffer comes back, and nothing else changes
            state.set(Register(11), Value::Unknown(position as u32 + 1));
            return After::GoesOn;
        }
        let callee = self.callee(instruction.end(), target);
        if callee.is_some_and(|place| self.never_returns(place)) {
            return After::Ends;
        }
        if NO_RETURN.contains(&name) || NO_RETURN_STARTS.iter().any(|start| name.starts_with(start)) {
            return After::Ends;
        }
        let is_go = self.unit.as_ref().is_some_and(|unit| unit.entries.language() == GO);
        let made = if is_go { self.made_by_runtime(name, state) } else { None };
        let returned = match (made, callee, called) {
            (Some(made), ..) => Some(made),
            (None, Some(place), _) => self.returned(place),
            (None, None, None) => target
                .and_then(|target| self.prototypes.get(&target).copied())
                .and_then(|ty| self.returned_by_type(ty)),
            (None, None, Some(Value::Pointer(pointer))) => self.returned_by_type(pointer.to),
            _ => None,
        };
        let unit = self.unit.clone();
        let changed = target
            .map_or(callees::ALL, |target| self.catalog.callees.changed(self.image, unit.as_deref(), target));
        let lost = Value::Unknown(position as u32 + 1);
        for register in saved_by_caller(self.image.machine(), is_go) {
            if changed & (1 << register.0) != 0 {
                state.set(register, lost);
            }
        }
        if let Some(values) = returned {
            for (register, value) in result_registers(self.image.machine(), is_go).into_iter().zip(values) {
                if !value.is_unknown() {
                    state.set(register, value);
                }
            }
        }
        After::GoesOn
    }

    /// The entry of the function that a call goes to.
    fn callee(&mut self, returns: u64, target: Option<u64>) -> Option<u64> {
        if let Some(place) = self.function.calls.get(&returns) {
            return Some(*place);
        }
        let target = target?;
        let unit = match &self.unit {
            Some(unit) if unit.function_at(target).is_some() => unit.clone(),
            _ => {
                let index = self.globals.unit_at(target)?;
                self.catalog.shelf.as_mut()?.unit(index)?
            }
        };
        let function = &unit.functions[unit.function_at(target)?];
        let shelf = self.catalog.shelf.as_ref()?;
        (function.entry() == target).then(|| shelf.info.place(unit.index, function.offset))
    }

    fn never_returns(&mut self, place: u64) -> bool {
        if let Some(known) = self.no_return.get(&place) {
            return *known;
        }
        let Some(shelf) = &mut self.catalog.shelf else { return false };
        let declared = shelf.declared(place);
        let marked = |shelf: &mut super::shelf::Shelf<'_, '_, '_>, place| {
            shelf.entry(place, |entry, _, _| entry.has(constants::DW_AT_noreturn)).unwrap_or(false)
        };
        let named = shelf.name(place).is_some_and(|name| NO_RETURN.contains(&name.as_str()));
        let ends = named || marked(shelf, place) || marked(shelf, declared);
        self.no_return.insert(place, ends);
        ends
    }

    fn returned(&mut self, place: u64) -> Option<Vec<Value>> {
        let ty = self.catalog.shelf.as_mut()?.target(place, constants::DW_AT_type)?;
        let ty = self.catalog.at(ty)?;
        Some(self.result(ty))
    }

    fn returned_by_type(&mut self, function: TypeId) -> Option<Vec<Value>> {
        let function = self.catalog.strip(function);
        let Type::Function(function) = self.catalog.types().get(function) else { return None };
        let returns = self.catalog.types().function(function).returns;
        Some(self.result(returns))
    }

    /// What the registers of a result hold.
    fn result(&mut self, ty: TypeId) -> Vec<Value> {
        let size = self.catalog.size(ty);
        if size > 16 {
            // it is in memory, and its address comes back
            let to = self.catalog.object(ty);
            return vec![Value::pointer(to)];
        }
        (0..size.div_ceil(8)).map(|word| self.catalog.value(ty, word * 8, 8, &[])).collect()
    }

    /// Go keeps the goroutine in a register.
    pub(super) fn seed_goroutine(&mut self) {
        if self.unit.as_ref().is_none_or(|unit| unit.entries.language() != GO) {
            return;
        }
        let register = match self.image.machine() {
            Machine::X86_64 => Register(14),
            Machine::Aarch64 => Register(28),
        };
        if let Some(ty) = self.globals.goroutine().and_then(|place| self.catalog.at(place)) {
            let to = self.catalog.object(ty);
            self.at_entry.push((register, Value::pointer(to)));
        }
    }

    /// What Go's runtime makes: its functions take the address of a type's description.
    fn made_by_runtime(&mut self, name: &str, state: &State) -> Option<Vec<Value>> {
        let name = name.strip_prefix("runtime.")?;
        let Value::Constant(described) = state.get(Register(0)) else { return None };
        let place = self.globals.runtime_type(described as u64, self.image.runtime_types())?;
        let ty = self.catalog.at(place)?;
        let to = match name {
            "newobject" | "makeslice" | "mallocgc" => ty,
            _ if name.starts_with("mapaccess") || name.starts_with("mapassign") => {
                self.catalog.map_element(ty)?
            }
            _ => return None,
        };
        let to = self.catalog.object(to);
        Some(vec![Value::pointer(to)])
    }
}

/// The registers that a function may change.
fn saved_by_caller(machine: Machine, is_go: bool) -> Vec<Register> {
    let numbers: Vec<u8> = match machine {
        // all but the stack, the frame and the goroutine
        Machine::X86_64 if is_go => (0..33).filter(|number| ![6, 7, 14].contains(number)).collect(),
        Machine::X86_64 => [0, 1, 2, 4, 5, 8, 9, 10, 11].into_iter().chain(17..33).collect(),
        Machine::Aarch64 if is_go => (0..31).filter(|number| ![28, 29].contains(number)).collect(),
        Machine::Aarch64 => (0..19).chain([30]).collect(),
    };
    numbers.into_iter().map(Register).collect()
}

/// The registers that a result comes back in.
fn result_registers(machine: Machine, is_go: bool) -> [Register; 2] {
    match machine {
        Machine::X86_64 if is_go => [Register(0), Register(3)],
        Machine::X86_64 => [Register(0), Register(1)],
        Machine::Aarch64 => [Register(0), Register(1)],
    }
}
