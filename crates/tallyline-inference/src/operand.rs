//! Resolution of memory operands by the state of the registers.

use super::analysis::Analysis;
use super::candidates::{self, ALL, Candidate};
use super::globals::{offset_in, starting};
use super::lookup::Resolution;
use super::outcome::{Choice, Outcome, Pseudo, Reason, Typed};
use super::strided_value::StridedValue;
use super::value::{Pointer, State, Value, is_near_null};
use crate::code::{Memory, Register, SegmentBase, SymbolsMissing, bits_of};
use tallyline_debuginfo::model::{Type, TypeId};
use tallyline_debuginfo::program::Holder;
use tallyline_debuginfo::program::{Fixed, Global};

/// The offset of the stack canary in the thread's segment.
pub(super) const CANARY: i64 = 0x28;

/// The location of an operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    /// Memory in an object, by the type of the object and the offset in it.
    Object(Pointer),
    /// A stack slot, by its offset from the frame address.
    Stack(i32),
    /// An address of the program without a variable.
    Address(u64),
    /// A virtual function table (vtable).
    Vtable,
    /// The word that holds the thread pointer itself.
    ThreadPointer,
    /// Memory that has no type in the source, such as the stack canary.
    Pseudo(Pseudo),
    /// A location that could not be determined, with the reason.
    Unknown(Reason),
}

/// The answer of the function's own unit about a location.
enum UnitAnswer {
    /// The DIE of the variable there, and the offset in it.
    Variable(u64, u32),
    /// No variable, nor in other units.
    NoVariable,
    /// Unknown in this unit; others may have one.
    Unknown,
}

impl Analysis<'_, '_, '_, '_> {
    /// Resolves a memory operand.
    pub(super) fn operand(&mut self, state: &State, position: usize, memory: &Memory) -> Operand {
        let index = memory.index.map(|register| state.get(register));
        self.operand_by_index(state, position, memory, index)
    }

    fn operand_by_index(
        &mut self,
        state: &State,
        position: usize,
        memory: &Memory,
        index: Option<Value>,
    ) -> Operand {
        if memory.implicit {
            return Operand::Pseudo(Pseudo::StackOperation);
        }
        match memory.segment {
            SegmentBase::Fs => return self.thread_local(state, memory, index),
            SegmentBase::Gs if memory.base.is_none() && memory.index.is_none() => {
                // per-CPU addresses start at 0
                let fixed = self.fixed(Fixed::Address(memory.displacement as u64));
                return match (fixed, memory.displacement) {
                    (Some(pointer), _) => Operand::Object(pointer),
                    (None, CANARY) => Operand::Pseudo(Pseudo::StackCanary),
                    (None, _) => Operand::Unknown(Reason::Segment),
                };
            }
            _ => {}
        }
        let base = memory.base.map(|register| state.get(register));
        let index = index.map(|index| (index, memory.scale));
        let address = self.address(base, index, memory.displacement);
        match self.on_stack_by_index(state, position, address, index) {
            Value::Pointer(pointer)
                if self.catalog.is_uninformative(pointer.to)
                    || self.is_outside(pointer, memory, position) =>
            {
                match self.resolve_by_variable(state, position, memory) {
                    Operand::Unknown(_) => Operand::Object(pointer),
                    // `void` is no better than the pointer
                    Operand::Object(found) if self.catalog.is_void(found.to) => Operand::Object(pointer),
                    found => found,
                }
            }
            Value::Pointer(pointer) => Operand::Object(pointer),
            Value::Stack(at) => Operand::Stack(at),
            Value::Vtable => Operand::Vtable,
            Value::Thread(at) => match self.thread_variable(at) {
                Some(pointer) => Operand::Object(pointer),
                // the C library's own data of a thread
                None => match self.resolve_by_variable(state, position, memory) {
                    Operand::Unknown(_) => Operand::Unknown(Reason::Segment),
                    found => found,
                },
            },
            Value::Constant(address) => match self.global(address as u64) {
                Some(pointer) => Operand::Object(pointer),
                None => Operand::Address(address as u64),
            },
            Value::Number(_) | Value::Unknown(_) => self.resolve_by_variable(state, position, memory),
        }
    }

    /// Returns true if a pointer addresses nothing in or around its target.
    fn is_outside(&mut self, pointer: Pointer, memory: &Memory, position: usize) -> bool {
        let size = self.catalog.size(pointer.to);
        !u64::try_from(pointer.offset).is_ok_and(|offset| offset < size)
            && self.resolve(pointer, memory.size.into(), position) == Resolution::Outside
    }

    /// Resolves an operand by the variable that is located in its base register right now, as the last resort.
    fn resolve_by_variable(&mut self, state: &State, position: usize, memory: &Memory) -> Operand {
        let Some(register) = memory.base.or(memory.index) else { return Operand::Unknown(Reason::Segment) };
        let address = self.body.instructions()[position].address;
        let function = self.function;
        let index = memory
            .index
            .filter(|_| memory.base.is_some())
            .map_or(StridedValue::known(0), |index| state.get(index).as_number().times(memory.scale.into()));
        let mut found: Option<Value> = None;
        for location in function.live(address) {
            let (holder, sum) = match location.piece.holder {
                Holder::Register(holder) => (holder, 0),
                Holder::Sum(holder, sum) => (holder, sum),
                _ => continue,
            };
            // of a function and what is inlined into it one may have a pointer to void for the other's
            let is_void = |analysis: &mut Self, value| match value {
                Value::Pointer(Pointer { to, .. }) => analysis.catalog.is_void(to),
                _ => false,
            };
            if holder != register || found.is_some_and(|found| !is_void(self, found)) {
                continue;
            }
            if let Some(ty) = self.variable_type(location.variable) {
                let size = location.piece.size.map_or(8, u64::from);
                let templates = self.templates(position);
                let value = self.catalog.value(ty, location.piece.offset.into(), size, &templates);
                if let Value::Pointer(pointer) = value {
                    let step = memory.displacement.wrapping_sub(sum);
                    found = Some(self.stepped(pointer, index.plus(StridedValue::known(step))));
                }
            }
        }
        if found.is_none() {
            found = self.variable_located_later(position, register).map(|value| match value {
                Value::Pointer(pointer) => {
                    self.stepped(pointer, index.plus(StridedValue::known(memory.displacement)))
                }
                value => value,
            });
        }
        if let Some(Value::Pointer(pointer)) = found {
            return Operand::Object(pointer);
        }
        Operand::Unknown(self.lost(state.get(register), register))
    }

    fn lost(&self, value: Value, register: Register) -> Reason {
        let at = match value {
            Value::Unknown(position) => position as usize,
            _ => 0,
        };
        match at.checked_sub(1).and_then(|position| self.body.instructions().get(position)) {
            Some(instruction) => Reason::Lost { register, at: instruction.address },
            None => Reason::NoVariable(register),
        }
    }

    /// Returns the value of an address: base, scaled index and displacement added.
    pub(super) fn address(
        &mut self,
        base: Option<Value>,
        index: Option<(Value, u8)>,
        displacement: i64,
    ) -> Value {
        let (base, index) = match (base, index) {
            // the base may be written as the index
            (None, Some((value, 1))) => (value, None),
            (Some(one), Some((other, 1))) if one.is_counter() != other.is_counter() => {
                let (counter, start) = if one.is_counter() { (one, other) } else { (other, one) };
                match self.counted(counter, start) {
                    Some(element) => (Value::Pointer(element), None),
                    None => (start, Some((counter, 1))),
                }
            }
            (Some(base), Some((value, 1))) if !is_address(base) && is_address(value) => {
                (value, Some((base, 1)))
            }
            // a small number beside an address is no address
            (
                Some(base @ Value::Constant(_)),
                Some((value @ (Value::Pointer(_) | Value::Stack(_) | Value::Thread(_)), 1)),
            ) => (value, Some((base, 1))),
            (Some(base), index) => (base, index),
            (None, Some(index)) => (Value::Constant(0), Some(index)),
            (None, None) => return Value::Constant(displacement),
        };
        let Some((index, scale)) = index else { return self.moved(base, displacement) };
        let number = index.as_number().times(scale.into());
        let inside = number.plus(StridedValue::known(displacement));
        match base {
            Value::Pointer(pointer) => match self.catalog.add_normalized(pointer, displacement) {
                Value::Pointer(pointer) => self.stepped(pointer, number),
                other => other,
            },
            Value::Vtable => Value::Vtable,
            Value::Thread(at) => {
                self.beside_thread_pointer(at.plus(StridedValue::known(displacement)), number, index)
            }
            Value::Constant(start) => self.in_table(start.wrapping_add(displacement), number, index),
            Value::Stack(at) => self.moved(Value::Stack(at), inside.base),
            Value::Number(_) | Value::Unknown(_) => match (self.far_global(displacement), base) {
                (Some(pointer), base) => {
                    let sum = base.as_number().plus(number);
                    self.stepped(pointer, sum)
                }
                (None, Value::Number(base)) => Value::from(base.plus(inside)),
                (None, lost) => lost,
            },
        }
    }

    /// Returns the element that a counter selects behind a start of unknown type: the type that debug information
    /// declares for the counter. None where the start says more.
    pub(super) fn counted(&mut self, counter: Value, start: Value) -> Option<Pointer> {
        let Value::Pointer(counter @ Pointer { is_counter: true, .. }) = counter else { return None };
        let is_bare = match start {
            Value::Unknown(_) | Value::Number(_) => true,
            Value::Pointer(start) => !start.is_counter && self.catalog.is_uninformative(start.to),
            _ => false,
        };
        is_bare.then(|| counter.as_address())
    }

    /// Returns the sum of a constant address and a number: somewhere in a variable, or in read-only data.
    fn in_table(&mut self, start: i64, number: StridedValue, index: Value) -> Value {
        let folded = start.wrapping_add(number.base);
        if let Some(pointer) = self.global(folded as u64) {
            return Value::Pointer(pointer.with_stride(number.magnitude()));
        }
        if let Some(pointer) = self.global(start as u64) {
            return self.stepped(pointer, number);
        }
        match index {
            _ if self.image.is_constant(start as u64) => Value::Constant(start),
            Value::Unknown(at) if start == 0 => Value::Unknown(at),
            _ => Value::from(number.plus(StridedValue::known(start))),
        }
    }

    /// Returns an address plus a number that is not fully known.
    pub(super) fn stepped(&mut self, pointer: Pointer, by: StridedValue) -> Value {
        // steps that are not those of elements stay above them
        if pointer.ends_elements && by.base >= 0 {
            let size = self.catalog.size(pointer.to);
            if size != 0 && !by.magnitude().is_multiple_of(size) {
                return Value::Pointer(pointer);
            }
        }
        if let (0, Some(choice)) = (pointer.stride, by.alternatives())
            && let [Value::Pointer(one), Value::Pointer(other)] =
                choice.map(|by| self.catalog.add_normalized(pointer, by))
            && (one.stride, other.stride) == (0, 0)
        {
            return Value::Pointer(one.either(other.offset));
        }
        // by what steps it goes tells whether the rest is one of them
        match self.catalog.add_normalized(pointer.with_stride(by.magnitude()), by.base) {
            Value::Pointer(pointer) => Value::Pointer(pointer.with_stride(by.magnitude())),
            other => other,
        }
    }

    /// Returns a stack address with an index in it: that of an element of the variable there.
    pub(super) fn on_stack_by_index(
        &mut self,
        state: &State,
        position: usize,
        address: Value,
        index: Option<(Value, u8)>,
    ) -> Value {
        let (Value::Stack(at), Some((index, scale))) = (address, index) else { return address };
        let stride = index.as_number().times(scale.into()).magnitude();
        match self.on_stack(state, position, at) {
            Some(pointer) if stride != 0 && !matches!(index, Value::Stack(_)) => {
                Value::Pointer(pointer.with_stride(stride))
            }
            _ => address,
        }
    }

    /// Returns a value plus a constant.
    pub(super) fn moved(&mut self, value: Value, by: i64) -> Value {
        match value {
            Value::Pointer(pointer) => {
                let start = if pointer.is_counter { self.far_global(by) } else { None };
                match start {
                    Some(start) => self.stepped(start, value.as_number()),
                    None => self.catalog.add_normalized(pointer, by),
                }
            }
            Value::Constant(number) => Value::Constant(number.wrapping_add(by)),
            Value::Stack(at) => {
                let at = i64::from(at).checked_add(by).and_then(|at| i32::try_from(at).ok());
                at.map_or(Value::Unknown(0), Value::Stack)
            }
            Value::Number(_) | Value::Unknown(_) => match (self.far_global(by), value) {
                (Some(pointer), value) => self.stepped(pointer, value.as_number()),
                (None, Value::Number(number)) => Value::Number(number.plus(StridedValue::known(by))),
                (None, value) => value,
            },
            Value::Vtable => Value::Vtable,
            Value::Thread(at) => Value::Thread(at.plus(StridedValue::known(by))),
        }
    }

    /// Returns the variable at a displacement that is itself an address.
    fn far_global(&mut self, displacement: i64) -> Option<Pointer> {
        // the top of the address space is the kernel's
        if (0..1 << 16).contains(&displacement) || (-(1 << 16)..0).contains(&displacement) {
            return None;
        }
        self.global(displacement as u64)
    }

    /// Returns the variable at an address.
    pub(super) fn global(&mut self, address: u64) -> Option<Pointer> {
        // what the linker left out is said to be at 0
        if is_near_null(address as i64) {
            return None;
        }
        self.fixed(Fixed::Address(address))
    }

    pub(super) fn fixed(&mut self, at: Fixed) -> Option<Pointer> {
        if self.catalog.units.is_none() {
            let Fixed::Address(address) = at else { return None };
            let (ty, inside) = self.globals.typed(address)?;
            let inside =
                i32::try_from(inside).ok().filter(|inside| (*inside as u64) < self.catalog.size(ty))?;
            return Some(Pointer::at(self.catalog.object(ty), inside));
        }
        let near = self.near(at);
        let found = match near {
            UnitAnswer::Variable(entry, offset) => Some((entry, offset)),
            UnitAnswer::NoVariable => None,
            UnitAnswer::Unknown => {
                let own = self.unit.as_ref().map_or(&[][..], |unit| &unit.globals);
                self.globals.find(at, &self.function.globals, own)
            }
        };
        if let Some(pointer) = found.and_then(|(entry, offset)| self.variable_at(entry, offset)) {
            return Some(pointer);
        }
        let address = match at {
            Fixed::Address(address) => address,
            Fixed::ThreadLocal(_) => return None,
        };
        if let Some(pointer) = self.declared_at(address) {
            return Some(pointer);
        }
        if !matches!(near, UnitAnswer::Unknown) {
            return None;
        }
        // another function's own variables are looked for only where there is data
        let is_data = match self.image.data().is_empty() {
            true => address >= 1 << 12 && !self.image.is_code(address),
            false => self.image.data_at(address).is_some(),
        };
        let (entry, offset) = is_data.then(|| self.globals.find_static(at)).flatten()?;
        self.variable_at(entry, offset)
    }

    /// Looks for the variable at a place by the symbol there, in the own unit alone: in most cases that
    /// has the variable or declares it, and so the others need not be read.
    fn near(&mut self, at: Fixed) -> UnitAnswer {
        let (Some(unit), Fixed::Address(address)) = (self.unit.clone(), at) else {
            return UnitAnswer::Unknown;
        };
        let function = self.function;
        let found = |global: &Global| {
            offset_in(global, at)
                .map_or(UnitAnswer::NoVariable, |(entry, offset)| UnitAnswer::Variable(entry, offset))
        };
        if let Some(global) = starting(at, &function.globals, &unit.globals) {
            return found(global);
        }
        if self.image.is_linker_generated(address) {
            return UnitAnswer::NoVariable;
        }
        let symbol = match self.image.variable_at(address) {
            // what the linker left out is said to be at 0, too
            Ok(Some(symbol)) if symbol.address != 0 => symbol,
            Ok(_) => return UnitAnswer::NoVariable,
            Err(SymbolsMissing) => return UnitAnswer::Unknown,
        };
        let start = Fixed::Address(symbol.address);
        let Some(units) = self.catalog.units.as_mut() else { return UnitAnswer::Unknown };
        let of_unit = starting(start, &function.globals, &unit.globals);
        if let Some(global) = of_unit.or_else(|| starting(start, unit.statics(units.info), &[])) {
            return found(global);
        }
        let Ok(inside) = u32::try_from(address - symbol.address) else { return UnitAnswer::Unknown };
        for (name, entry) in self.image.names_of(symbol).filter_map(|name| {
            let own = unit.unplaced.iter().find(|(own, _)| *own == name.as_bytes());
            own.map(|(_, entry)| (name, *entry))
        }) {
            let Some(pointer) = self.variable_at(entry, inside) else { continue };
            // a number may have another type by another name: the kernel's `jiffies`
            let ty = self.catalog.strip(pointer.to);
            let is_alike = is_same_name(name, &symbol.name) || self.catalog.types().as_record(ty).is_some();
            if is_alike && self.catalog.size(pointer.to) != 0 {
                return UnitAnswer::Variable(entry, inside);
            }
        }
        let Some(units) = self.catalog.units.as_ref() else { return UnitAnswer::Unknown };
        match unit.file(units.info).is_some_and(|file| self.image.is_static_elsewhere(symbol, file)) {
            // a constant that the linker has put into another one
            true => UnitAnswer::NoVariable,
            false => UnitAnswer::Unknown,
        }
    }

    /// Returns the variable at an address that the unit only declares, because the linker or assembly defines
    /// it, by one of the symbols that cover the address.
    fn declared_at(&mut self, address: u64) -> Option<Pointer> {
        let unit = self.unit.clone()?;
        let image = self.image;
        let (start, entry) = image.labels_at(address).find_map(|symbol| {
            let own = unit.unplaced.iter().find(|(own, _)| *own == symbol.name.as_bytes());
            own.map(|(_, entry)| (symbol.address, entry))
        })?;
        let inside = address.checked_sub(start)?;
        let ty = self.catalog.units.as_mut()?.type_of(*entry)?;
        let ty = self.catalog.type_at(ty)?;
        let stripped = self.catalog.strip(ty);
        if let Type::Array(array) = self.catalog.types().get(stripped)
            && self.catalog.size(ty) == 0
        {
            // of a length that only the linker knows
            let element = self.catalog.types().array(array).of;
            let size = self.catalog.size(element).max(1);
            let to = self.catalog.object(element);
            let step = u32::try_from(size).ok()?;
            let offset = i32::try_from(inside % size).ok()?;
            return Some(Pointer::at(to, offset).with_stride(step.into()));
        }
        let offset = u32::try_from(inside).ok().filter(|_| inside < self.catalog.size(ty))?;
        self.variable_at(*entry, offset)
    }

    /// Returns a variable of another file, as the unit declares it.
    fn imported(&mut self, name: &str) -> Option<Pointer> {
        let unit = self.unit.clone()?;
        let (_, entry) = unit.unplaced.iter().find(|(own, _)| *own == name.as_bytes())?;
        self.variable_at(*entry, 0)
    }

    /// Returns a pointer into the variable whose DIE is at an offset; `None` beyond its end.
    pub(super) fn variable_at(&mut self, entry: u64, offset: u32) -> Option<Pointer> {
        let units = self.catalog.units.as_mut()?;
        let ty = units.type_of(entry)?;
        let ty = self.catalog.type_at(ty)?;
        let inside = u64::from(offset) < self.catalog.size(ty).max(1);
        if !inside {
            return None;
        }
        Some(Pointer::at(self.catalog.object(ty), i32::try_from(offset).ok()?))
    }

    /// Returns the variable at a stack offset.
    pub(super) fn on_stack(&mut self, state: &State, position: usize, at: i32) -> Option<Pointer> {
        let address = self.body.instructions()[position].address;
        let function = self.function;
        let mut best: Option<(u64, Pointer)> = None;
        for location in function.live(address) {
            let start = match location.piece.holder {
                Holder::Frame(sum) => Some(sum),
                Holder::Memory(register, sum) => match state.get(register) {
                    Value::Stack(base) => i64::from(base).checked_add(sum),
                    _ => None,
                },
                _ => None,
            };
            let Some(inside) = start.and_then(|start| u64::try_from(i64::from(at).checked_sub(start)?).ok())
            else {
                continue;
            };
            let Some(ty) = self.variable_type(location.variable) else { continue };
            let size = location.piece.size.map_or_else(|| self.catalog.size(ty), u64::from);
            // the larger of two is the one that the other is a part of
            if inside >= size || best.is_some_and(|(known, _)| known >= size) {
                continue;
            }
            let offset = u64::from(location.piece.offset).saturating_add(inside);
            if let Ok(offset) = i32::try_from(offset) {
                best = Some((size, Pointer::at(self.catalog.object(ty), offset)));
            }
        }
        best.map(|(_, pointer)| pointer)
    }

    /// Returns the outcome of a memory operand.
    pub(super) fn outcome(&mut self, state: &State, position: usize, memory: &Memory) -> Outcome {
        let operand = match self.vector_index(position, memory) {
            Some(index) => self.operand_by_index(state, position, memory, Some(index)),
            None => self.operand(state, position, memory),
        };
        let pointer = match operand {
            Operand::Object(pointer) => pointer,
            Operand::Stack(at) => match self.on_stack(state, position, at) {
                Some(pointer) => pointer,
                None => return Outcome::Pseudo(Pseudo::Spill),
            },
            Operand::Vtable => return Outcome::Pseudo(Pseudo::Vtable),
            Operand::ThreadPointer => return Outcome::Pseudo(Pseudo::Constant),
            Operand::Pseudo(pseudo) => return Outcome::Pseudo(pseudo),
            Operand::Address(address) if self.image.is_table(address) || self.image.is_constant(address) => {
                return Outcome::Pseudo(Pseudo::Constant);
            }
            Operand::Address(address) => return Outcome::Untyped(Reason::NoVariableAt(address)),
            Operand::Unknown(reason) => return Outcome::Untyped(reason),
        };
        match self.resolve(pointer, memory.size.into(), position) {
            Resolution::At { ty, offset } if self.has_halves(memory, ty, offset) => {
                let half = Memory { size: memory.size / 2, ..*memory };
                let or = Choice { offset: offset + u32::from(half.size), start: None, both: true };
                let candidates = self.candidates(state, position, &half, ty, offset);
                let within = self.within(state, position, memory, ty, pointer.to);
                let typed = Typed::at(ty, offset, half.size, memory.access);
                Outcome::Typed(Typed { or: Some(or), candidates, within, ..typed })
            }
            Resolution::At { ty, offset } => {
                let candidates = self.candidates(state, position, memory, ty, offset);
                let within = self.within(state, position, memory, ty, pointer.to);
                Outcome::Typed(Typed {
                    candidates,
                    within,
                    ..Typed::at(ty, offset, memory.size, memory.access)
                })
            }
            Resolution::Either { ty, offsets: [offset, other] } => {
                let start = self.start_of(state, memory, ty);
                let or = Some(Choice { offset: other, start, both: false });
                self.catalog.access_paths(ty, other.into());
                let candidates = self.candidates(state, position, memory, ty, offset);
                let typed = Typed::at(ty, offset, memory.size, memory.access);
                Outcome::Typed(Typed { or, candidates, ..typed })
            }
            Resolution::Opaque => Outcome::Untyped(Reason::Opaque(pointer.to)),
            Resolution::Function => Outcome::Pseudo(Pseudo::Constant),
            Resolution::UnknownOffset => {
                let start = self.start_of(state, memory, pointer.to);
                Outcome::Untyped(Reason::Index { ty: pointer.to, step: pointer.stride, start })
            }
            Resolution::Outside => {
                Outcome::Untyped(Reason::Outside { ty: pointer.to, offset: pointer.offset })
            }
        }
    }

    /// Returns `true` if the two halves of a register pair's access are different fields of an object. They are one
    /// field where a field has the size of both, or where both are elements of one array.
    fn has_halves(&mut self, memory: &Memory, ty: TypeId, offset: u32) -> bool {
        let half = memory.size / 2;
        let Some(second) = offset.checked_add(half.into()).filter(|_| memory.is_pair && half > 0) else {
            return false;
        };
        let is_inside = u64::from(second) < self.catalog.size(ty);
        // the types there are read when they are first followed
        for at in [offset, second] {
            self.catalog.access_paths(ty, at.into());
        }
        let types = self.catalog.types();
        let is_one_field = || {
            candidates::candidates(types, ty, offset.into(), memory.size.into())
                .iter()
                .any(Candidate::is_field)
        };
        let paths = |at: u32| {
            let all = candidates::candidates(types, ty, at.into(), half.into());
            all.into_iter().map(|candidate| candidate.path).collect::<Vec<_>>()
        };
        is_inside && !is_one_field() && paths(offset) != paths(second)
    }

    /// Returns the candidate fields of an operand: by its size, the variants that the path allows, and the bits that
    /// are used.
    fn candidates(
        &mut self,
        state: &State,
        position: usize,
        memory: &Memory,
        ty: TypeId,
        offset: u32,
    ) -> u64 {
        let (at, size) = (u64::from(offset), u64::from(memory.size));
        // most offsets have one field only
        if self.catalog.access_paths(ty, at).len() < 2 {
            return ALL;
        }
        let all = candidates::candidates(self.catalog.types(), ty, at, size);
        let has_bitfields = all.iter().any(Candidate::is_bitfield);
        let bits = if has_bitfields { bits_of(self.image, self.body, position) } else { None };
        candidates::possible(&all, at, bits, |variant| self.can_be(state, position, memory, offset, variant))
    }

    /// Returns the offset in an object that the base register points to.
    fn start_of(&mut self, state: &State, memory: &Memory, object: TypeId) -> Option<i32> {
        match state.get(memory.base?) {
            Value::Pointer(base)
                if base.to == object && (base.stride == 0 || self.strides_over_objects(base)) =>
            {
                Some(base.offset)
            }
            _ => None,
        }
    }

    /// Resolves a pointer to a type and an offset, with the template arguments of the scopes.
    pub(super) fn resolve(&mut self, pointer: Pointer, access: u64, position: usize) -> Resolution {
        let size = self.catalog.size(pointer.to);
        let is_inside = u64::try_from(pointer.offset).is_ok_and(|offset| offset < size);
        // an iterator points to a base class; its own template arguments tell the derived one
        let held = if is_inside { Vec::new() } else { self.templates_in_base(position) };
        if !held.is_empty()
            && let found @ (Resolution::At { .. } | Resolution::Either { .. }) =
                self.catalog.resolve(pointer, access, &held)
        {
            return found;
        }
        let templates = self.templates(position);
        self.catalog.resolve(pointer, access, &templates)
    }

    /// Returns the template arguments of the variables in the base register of an instruction's operand.
    pub(super) fn templates_in_base(&mut self, position: usize) -> Vec<(String, u64)> {
        let instruction = &self.body.instructions()[position];
        let Some(base) = instruction.memory.and_then(|memory| memory.base) else { return Vec::new() };
        let function = self.function;
        let in_base =
            function.live(instruction.address).filter(|at| at.piece.holder == Holder::Register(base));
        let variables: Vec<u32> = in_base.map(|location| location.variable).collect();
        let mut found = Vec::new();
        for variable in variables {
            let Some(ty) = self.variable_type(variable) else { continue };
            found.extend(self.catalog.templates_of_variable(ty).iter().cloned());
        }
        found
    }

    /// Returns the value of a register that is loaded from an operand.
    pub(super) fn loaded_value(
        &mut self,
        state: &State,
        position: usize,
        operand: Operand,
        at: u8,
        size: u8,
    ) -> Value {
        let lost = Value::Unknown(position as u32 + 1);
        let (pointer, slot) = match operand {
            Operand::Object(pointer) => (Some(pointer), None),
            Operand::Stack(place) => {
                let place = place.saturating_add(at.into());
                (self.on_stack(state, position, place), state.slot(place))
            }
            // a load from null does not complete: the values of the other paths count
            Operand::Address(address) if size == 8 && is_near_null(address as i64) => {
                return Value::Constant(0);
            }
            Operand::Address(address) => {
                if !self.image.is_table(address) {
                    return Value::WORD;
                }
                let import = |analysis: &mut Self| {
                    let pointer = analysis.imported(analysis.image.import(address)?)?;
                    Some(Value::Pointer(pointer))
                };
                let slot = self.image.slot(address).map(|value| Value::Constant(value as i64));
                return slot.or_else(|| import(self)).unwrap_or(Value::WORD);
            }
            Operand::ThreadPointer => return Value::THREAD_POINTER,
            Operand::Vtable | Operand::Pseudo(_) => return Value::WORD,
            Operand::Unknown(_) => return if size < 8 { Value::WORD } else { lost },
        };
        if let Some(slot) = slot.filter(|_| size == 8) {
            return slot;
        }
        let Some(pointer) = pointer else { return if size < 8 { Value::WORD } else { lost } };
        let at = if slot.is_none() && matches!(operand, Operand::Stack(_)) { 0 } else { at };
        let Value::Pointer(pointer) = self.catalog.add_normalized(pointer, at.into()) else { return lost };
        match self.resolve(pointer, size.into(), position) {
            Resolution::At { ty, offset } => self.loaded_field(ty, offset.into(), size.into(), position),
            Resolution::Either { ty, offsets } => {
                let [one, other] =
                    offsets.map(|offset| self.loaded_field(ty, offset.into(), size.into(), position));
                self.join_values(one, other, position as u32 + 1, 0)
            }
            _ if size < 8 => Value::WORD,
            _ => lost,
        }
    }

    fn loaded_field(&mut self, ty: TypeId, offset: u64, size: u64, position: usize) -> Value {
        if size >= 8 && self.catalog.is_vtable_pointer(ty, offset) {
            return Value::Vtable;
        }
        if let Some(value) = self.runtime_field_value(ty, offset).filter(|_| size >= 8) {
            return value;
        }
        let templates = self.templates(position);
        match self.catalog.value(ty, offset, size, &templates) {
            Value::Unknown(_) => Value::Unknown(position as u32 + 1),
            value => value,
        }
    }
}

/// glibc's prefix of a variable's alias for uses inside the library.
const HIDDEN_ALIAS: &str = "__GI_";

/// Returns true if two symbol names are those of one variable in the source.
fn is_same_name(one: &str, other: &str) -> bool {
    let plain = |name| str::strip_prefix(name, HIDDEN_ALIAS).unwrap_or(name);
    plain(one) == plain(other)
}

fn is_address(value: Value) -> bool {
    matches!(
        value,
        Value::Pointer(_) | Value::Stack(_) | Value::Vtable | Value::Thread(_) | Value::Constant(_)
    )
}
