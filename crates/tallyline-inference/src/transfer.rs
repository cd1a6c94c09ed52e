//! Transfer functions of instructions.

use super::analysis::{Analysis, Continuation};
use super::callees;
use super::operand::Operand;
use super::strided_value::StridedValue;
use super::value::{State, Value};
use super::value_number;
use crate::code::{Effect, Flow, Instruction, Machine, Memory, Register};
use tallyline_debuginfo::model::{Type, TypeId};

/// Functions that preserve every register.
const TRANSPARENT: [&str; 7] = [
    "__fentry__",
    "mcount",
    "__cyg_profile_func_enter",
    "preempt_schedule_thunk",
    "preempt_schedule_notrace_thunk",
    "__SCT__preempt_schedule",
    "__SCT__preempt_schedule_notrace",
];

/// Functions of Linux that return, as an integer, the address of an object of their first argument's type.
const LIKE_ARGUMENT: [&str; 1] = ["_compound_head"];

/// The prefix of the thunks through which kernels make indirect calls.
const THUNK: &str = "__x86_indirect_thunk_";

/// The size of one thunk in the array of thunks, one for each register.
const THUNK_SIZE: u64 = 32;

/// Functions that do not return, where debug information does not say so.
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

/// Prefixes of further functions that do not return.
const NO_RETURN_STARTS: [&str; 4] =
    ["runtime.panic", "runtime.goPanic", "runtime.fatal", "_ZN4core9panicking"];

impl Analysis<'_, '_, '_, '_> {
    /// Applies the transfer function of one instruction.
    pub(super) fn transfer_instruction(&mut self, state: &mut State, position: usize) -> Continuation {
        let body = self.body;
        let instruction = &body.instructions()[position];
        let lost = Value::Unknown(position as u32 + 1);
        let mut called = None;
        let effects = body.effects(instruction);
        for memory in body.operands(position) {
            self.overwrite(state, position, memory, effects);
            if memory.access.writes() {
                self.overwrite_tags(state, memory);
            }
        }
        for effect in effects {
            let carried = self.tag_transfer(state, position, instruction, effect);
            let defined = match *effect {
                Effect::Copy { to, from } => {
                    state.set(to, state.get(from));
                    state.written(to);
                    self.apply_tag_transfer(state, carried);
                    continue;
                }
                Effect::Constant { to, value } => (to, Value::Constant(value)),
                Effect::SelectConstant { to, numbers: [one, other] } => {
                    (to, Value::from(StridedValue::choice(one, other)))
                }
                Effect::Address { to, base, index, scale, displacement } => {
                    let factor = i64::from(scale);
                    let value = match base == index {
                        true if index.is_some() => {
                            let number = index.map_or(Value::WORD, |index| state.get(index)).as_number();
                            Value::from(number.times(factor + 1).plus(StridedValue::known(displacement)))
                        }
                        _ => {
                            let base = base.map(|register| state.get(register));
                            let index = index.map(|register| (state.get(register), scale));
                            let address = self.address(base, index, displacement);
                            self.on_stack_by_index(state, position, address, index)
                        }
                    };
                    (to, value)
                }
                Effect::Add { to, by, subtract } => {
                    let (one, other) = (state.get(to), state.get(by));
                    let sum = self.sum(one, other, subtract, lost);
                    let index = if matches!(one, Value::Stack(_)) { other } else { one };
                    (to, self.on_stack_by_index(state, position, sum, Some((index, 1))))
                }
                Effect::Multiply { to, from, by } => (to, Value::from(state.get(from).as_number().times(by))),
                Effect::Product { to, one, other, plus } => {
                    let (one, other) = (state.get(one).as_number(), state.get(other).as_number());
                    let product = Value::from(one.product(other));
                    let sum = plus.map(|plus| self.sum(state.get(plus), product, false, lost));
                    (to, sum.unwrap_or(product))
                }
                Effect::Truncate { to, size, signed } => (to, truncated(state.get(to), size, signed)),
                Effect::UnknownNumber { to } => (to, Value::WORD),
                Effect::SignMask { to } => (to, Value::WORD),
                Effect::Combine { to, by } | Effect::And { to, by } => match (state.get(to), state.get(by)) {
                    (one, other) if is_object_address(one) || is_object_address(other) => (to, lost),
                    _ => (to, Value::WORD),
                },
                Effect::Mask { to, mask } => (to, self.masked(state.get(to), mask, lost)),
                Effect::ConditionalMove { to, from } => {
                    let one = self.place_on_stack(state, position, state.get(to), state.get(from));
                    let other = self.place_on_stack(state, position, state.get(from), state.get(to));
                    (to, self.join_values(one, other, position as u32 + 1, 0))
                }
                Effect::Swap { a, b } => {
                    let (one, other) = (state.get(a), state.get(b));
                    state.set(a, other);
                    state.set(b, one);
                    state.written(a);
                    state.written(b);
                    continue;
                }
                Effect::Load { to, size, at } => (to, self.load(state, position, instruction, at, size)),
                Effect::Store { from, size, at } => {
                    self.store(state, position, instruction, from, (at, size));
                    continue;
                }
                Effect::AddMemory { to } => {
                    let loaded = self.load(state, position, instruction, 0, 8);
                    let value = match (state.get(to), loaded) {
                        (known @ (Value::Pointer(_) | Value::Constant(_)), Value::Pointer(_)) => known,
                        (known, loaded) => self.sum(known, loaded, false, lost),
                    };
                    (to, value)
                }
                Effect::Push { from } => {
                    self.push(state, from.map(|register| state.get(register)));
                    continue;
                }
                Effect::Pop { to } => (to, self.pop(state, lost)),
                Effect::Clobber { to } => (to, lost),
                Effect::ThreadPointer { to } => (to, Value::THREAD_POINTER),
                Effect::IndirectCall { from } => {
                    called = Some(state.get(from));
                    continue;
                }
                Effect::Compare { .. } | Effect::ClobberFlags => continue,
            };
            let (register, value) = defined;
            state.written(register);
            state.define(register, value, value_number::defined_at(position, register));
            self.apply_tag_transfer(state, carried);
        }
        match instruction.flow {
            Flow::Call(target) => {
                if called.is_none() && target.is_none() {
                    called = Some(self.load(state, position, instruction, 0, 8));
                }
                self.call(state, position, target, called)
            }
            _ => Continuation::FallsThrough,
        }
    }

    /// Replaces a stack address by that of the variable there, where it meets another address that differs.
    pub(super) fn place_on_stack(
        &mut self,
        state: &State,
        position: usize,
        value: Value,
        other: Value,
    ) -> Value {
        match value {
            Value::Stack(at) if value != other => {
                self.on_stack(state, position, at).map_or(value, Value::Pointer)
            }
            _ => value,
        }
    }

    fn load(&mut self, state: &State, position: usize, instruction: &Instruction, at: u8, size: u8) -> Value {
        match &instruction.memory {
            Some(memory) => {
                let operand = self.operand(state, position, memory);
                self.loaded_value(state, position, operand, at, size)
            }
            None => Value::Unknown(position as u32 + 1),
        }
    }

    /// Applies a store of an unknown value, as of a vector.
    fn overwrite(&mut self, state: &mut State, position: usize, memory: &Memory, effects: &[Effect]) {
        let stores = |effect: &Effect| matches!(effect, Effect::Store { .. } | Effect::Push { .. });
        if !memory.access.writes() || memory.implicit || effects.iter().any(stores) {
            return;
        }
        if let Operand::Stack(place) = self.operand(state, position, memory) {
            state.store(place, memory.size.into(), None);
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
            let value = from.map_or(Value::WORD, |register| state.get(register));
            // a copy of an element of an array goes anywhere in it
            let value = (memory.index.is_none()).then_some(value);
            state.store(place.saturating_add(at.into()), size.into(), value);
        }
    }

    pub(super) fn sum(&mut self, one: Value, other: Value, subtract: bool, lost: Value) -> Value {
        match (one, other) {
            (one, Value::Constant(number)) if !subtract && !matches!(one, Value::Constant(_)) => {
                match (one, self.global(number as u64)) {
                    // the start of an array in a register, and what is added to it in another
                    (Value::Number(_) | Value::Unknown(_), Some(pointer)) => {
                        self.stepped(pointer, one.as_number())
                    }
                    _ => self.moved(one, number),
                }
            }
            (one, Value::Constant(number)) => {
                self.moved(one, if subtract { number.wrapping_neg() } else { number })
            }
            (Value::Pointer(_), Value::Pointer(_) | Value::Stack(_)) if subtract => Value::WORD,
            (counter, start) | (start, counter)
                if !subtract && counter.is_counter() && !start.is_counter() && start.number().is_none() =>
            {
                match (self.counted(counter, start), start) {
                    (Some(element), _) => Value::Pointer(element),
                    (None, Value::Pointer(start)) => self.stepped(start, counter.as_number()),
                    (None, Value::Stack(_)) => start,
                    (None, _) => lost,
                }
            }
            (Value::Pointer(pointer), Value::Number(_) | Value::Unknown(_)) => {
                self.stepped(pointer, other.as_number().times(if subtract { -1 } else { 1 }))
            }
            (Value::Number(_) | Value::Unknown(_), Value::Pointer(pointer)) if !subtract => {
                self.stepped(pointer, one.as_number())
            }
            (Value::Thread(at), Value::Number(_) | Value::Unknown(_)) => {
                self.beside_thread_pointer(at, other.as_number().times(if subtract { -1 } else { 1 }), lost)
            }
            (Value::Number(_) | Value::Unknown(_), Value::Thread(at)) if !subtract => {
                self.beside_thread_pointer(at, one.as_number(), lost)
            }
            (Value::Stack(_), Value::Number(_)) if !subtract => one,
            (Value::Number(_), Value::Stack(_)) if !subtract => other,
            (Value::Constant(number), _) if !subtract => match (other, self.global(number as u64)) {
                (Value::Pointer(_) | Value::Stack(_) | Value::Thread(_), _) => self.moved(other, number),
                (_, Some(pointer)) => self.stepped(pointer, other.as_number()),
                (Value::Unknown(_), None) => other,
                _ => Value::from(one.as_number().plus(other.as_number())),
            },
            (Value::Number(_) | Value::Constant(_), Value::Number(_)) => {
                let other = other.as_number().times(if subtract { -1 } else { 1 });
                Value::from(one.as_number().plus(other))
            }
            (Value::Vtable, _) | (_, Value::Vtable) => Value::WORD,
            _ => lost,
        }
    }

    /// Returns a value with bits cleared: pointers carry tags in their low bits, and stacks are aligned.
    fn masked(&mut self, value: Value, mask: i64, lost: Value) -> Value {
        match value {
            Value::Pointer(_) if (-16..0).contains(&mask) => value,
            // a stack that a function aligns anew: what counts is that its places keep their names
            Value::Stack(at) if (-4096..0).contains(&mask) => Value::Stack(at & mask as i32),
            Value::Number(number) => Value::from(number.masked(mask)),
            Value::Constant(number) => Value::Constant(number & mask),
            // what has only few bits left is a number, whatever it was
            _ if (0..1 << 31).contains(&mask) => Value::from(StridedValue::ANY.masked(mask)),
            _ => lost,
        }
    }

    fn push(&mut self, state: &mut State, value: Option<Value>) {
        let stack = self.stack_register();
        let moved = self.moved(state.get(stack), -8);
        state.set(stack, moved);
        if let Value::Stack(at) = moved {
            state.store(at, 8, Some(value.unwrap_or(Value::WORD)));
        }
    }

    fn pop(&mut self, state: &mut State, lost: Value) -> Value {
        let stack = self.stack_register();
        let top = state.get(stack);
        let value = match top {
            Value::Stack(at) => state.slot(at).unwrap_or(lost),
            _ => lost,
        };
        let moved = self.moved(top, 8);
        state.set(stack, moved);
        value
    }

    fn call(
        &mut self,
        state: &mut State,
        position: usize,
        target: Option<u64>,
        called: Option<Value>,
    ) -> Continuation {
        let instruction = &self.body.instructions()[position];
        let symbol = target.and_then(|target| self.image.function_at(target));
        let name = symbol.map_or("", |symbol| &*symbol.name);
        if TRANSPARENT.contains(&name) {
            return Continuation::FallsThrough;
        }
        if let (Some(symbol), Some(at)) = (symbol, target)
            && let Some(register) = thunk_register(&symbol.name, at.wrapping_sub(symbol.address))
        {
            let called = state.get(register);
            return self.call(state, position, None, Some(called));
        }
        if name.starts_with("runtime.gcWriteBarrier") {
            // room in a buffer comes back, and nothing else changes
            state.set(Register(11), Value::Unknown(position as u32 + 1));
            return Continuation::FallsThrough;
        }
        let callee = self.callee(instruction.end(), target);
        if callee.is_some_and(|place| self.never_returns(place)) {
            return Continuation::Ends;
        }
        if NO_RETURN.contains(&name) || NO_RETURN_STARTS.iter().any(|start| name.starts_with(start)) {
            return Continuation::Ends;
        }
        let is_go = self.is_go();
        let first = state.get(first_argument(self.image.machine()));
        let made = match first {
            Value::Pointer(_) if LIKE_ARGUMENT.contains(&name) => Some(vec![first]),
            _ if is_go => self.runtime_call_result(name, state),
            _ => None,
        };
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
        let changed = target.map_or(callees::ALL, |target| {
            self.catalog.callees.clobbered(self.image, unit.as_deref(), target)
        });
        let lost = Value::Unknown(position as u32 + 1);
        if let Some(tags) = &mut state.tags {
            tags.invalidate_by_call();
        }
        for register in saved_by_caller(self.image.machine(), is_go) {
            if changed & (1 << register.0) != 0 {
                state.set(register, lost);
                state.written(register);
            }
        }
        if let Some(values) = returned {
            for (register, value) in result_registers(self.image.machine(), is_go).into_iter().zip(values) {
                if !value.is_unknown() {
                    state.set(register, value);
                }
            }
        }
        Continuation::FallsThrough
    }

    /// Returns the DIE of a call's callee.
    fn callee(&mut self, returns: u64, target: Option<u64>) -> Option<u64> {
        if let Some(place) = self.function.calls.get(&returns) {
            return Some(*place);
        }
        let target = target?;
        let unit = match &self.unit {
            Some(unit) if unit.function_at(target).is_some() => unit.clone(),
            _ => {
                let index = self.globals.unit_at(target)?;
                self.catalog.units.as_mut()?.unit(index)?
            }
        };
        let function = &unit.functions[unit.function_at(target)?];
        let units = self.catalog.units.as_ref()?;
        (function.entry() == target).then(|| unit.place_of(units.info, function))
    }

    fn never_returns(&mut self, place: u64) -> bool {
        if let Some(known) = self.no_return.get(&place) {
            return *known;
        }
        let Some(units) = &mut self.catalog.units else { return false };
        let declared = units.declared(place);
        let named = units.name(place).is_some_and(|name| NO_RETURN.contains(&name.as_str()));
        let ends = named || units.is_noreturn(place) || units.is_noreturn(declared);
        self.no_return.insert(place, ends);
        ends
    }

    fn returned(&mut self, place: u64) -> Option<Vec<Value>> {
        let ty = self.catalog.units.as_mut()?.type_of(place)?;
        let ty = self.catalog.type_at(ty)?;
        Some(self.result(ty))
    }

    fn returned_by_type(&mut self, function: TypeId) -> Option<Vec<Value>> {
        let function = self.catalog.strip(function);
        let Type::Function(function) = self.catalog.types().get(function) else { return None };
        let returns = self.catalog.types().function(function).returns;
        Some(self.result(returns))
    }

    /// Returns the values of the result registers for a return type.
    fn result(&mut self, ty: TypeId) -> Vec<Value> {
        let size = self.catalog.size(ty);
        if size > 16 {
            // returned in memory; the result is its address
            let to = self.catalog.object(ty);
            return vec![Value::pointer(to)];
        }
        (0..size.div_ceil(8)).map(|word| self.catalog.value(ty, word * 8, 8, &[])).collect()
    }
}

/// Returns true for addresses of objects, stack slots and thread-local data.
fn is_object_address(value: Value) -> bool {
    matches!(value, Value::Pointer(_) | Value::Stack(_) | Value::Thread(_))
}

/// Truncates a value to a number. Overflow is not expected: in most cases it would be a bug of the program.
fn truncated(value: Value, size: u8, signed: bool) -> Value {
    let part = |number: i64| match (size, signed) {
        (1, true) => i64::from(number as i8),
        (1, false) => i64::from(number as u8),
        (2, true) => i64::from(number as i16),
        (2, false) => i64::from(number as u16),
        (4, true) => i64::from(number as i32),
        (4, false) => i64::from(number as u32),
        _ => number,
    };
    match (value.number().and_then(|number| number.each(part)), value) {
        (Some(number), _) => Value::from(number),
        (None, Value::Number(number)) if size == 4 => Value::Number(number),
        _ => Value::WORD,
    }
}

/// Returns the register of an indirect call through a thunk, from the thunk's symbol and the offset in it.
fn thunk_register(called: &str, inside: u64) -> Option<Register> {
    // as instructions number them, by DWARF's numbers
    const ORDER: [u8; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
    const NAMES: [&str; 16] = [
        "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
        "r14", "r15",
    ];
    let name = called.strip_prefix(THUNK)?;
    if name == "array" {
        let index = usize::try_from(inside / THUNK_SIZE).ok()?;
        return ORDER.get(index).copied().map(Register);
    }
    let number = NAMES.iter().position(|known| *known == name)?;
    Some(Register(number as u8))
}

/// Returns the register of a function's first argument.
fn first_argument(machine: Machine) -> Register {
    match machine {
        Machine::X86_64 => Register(5),
        Machine::Aarch64 | Machine::Other => Register(0),
    }
}

/// Returns the call-clobbered registers.
pub(crate) fn saved_by_caller(machine: Machine, is_go: bool) -> Vec<Register> {
    let numbers: Vec<u8> = match machine {
        // all but the stack, the frame and the goroutine
        Machine::X86_64 if is_go => (0..33).filter(|number| ![6, 7, 14].contains(number)).collect(),
        Machine::X86_64 => [0, 1, 2, 4, 5, 8, 9, 10, 11].into_iter().chain(17..33).collect(),
        Machine::Aarch64 if is_go => (0..31).filter(|number| ![28, 29].contains(number)).collect(),
        Machine::Aarch64 | Machine::Other => (0..19).chain([30]).collect(),
    };
    numbers.into_iter().map(Register).collect()
}

/// Returns the result registers.
fn result_registers(machine: Machine, is_go: bool) -> [Register; 2] {
    match machine {
        Machine::X86_64 if is_go => [Register(0), Register(3)],
        Machine::X86_64 => [Register(0), Register(1)],
        Machine::Aarch64 | Machine::Other => [Register(0), Register(1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_by_way_of_a_thunk_goes_where_its_register_leads() {
        assert_eq!(thunk_register("__x86_indirect_thunk_rcx", 0), Some(Register(2)));
        assert_eq!(thunk_register("__x86_indirect_thunk_r11", 0), Some(Register(11)));
        // the second of the array is rcx, the sixth rbp
        assert_eq!(thunk_register("__x86_indirect_thunk_array", 32), Some(Register(2)));
        assert_eq!(thunk_register("__x86_indirect_thunk_array", 160), Some(Register(6)));
        assert_eq!(thunk_register("__x86_indirect_thunk_array", 512), None);
        assert_eq!(thunk_register("__x86_return_thunk", 0), None);
    }
}
