//! Thread-local variables at fixed offsets from the thread pointer: the local-exec model, which programs use for their
//! own variables, and to which linkers relax the others.

use super::analysis::Analysis;
use super::globals::starting;
use super::operand::{CANARY, Operand};
use super::outcome::{Pseudo, Reason};
use super::strided_value::StridedValue;
use super::value::{Pointer, State, Value};
use crate::code::{Machine, Memory};
use tallyline_debuginfo::program::Fixed;

impl Analysis<'_, '_, '_, '_> {
    /// Resolves an operand relative to `%fs`, with the value of its index register.
    pub(super) fn thread_local(&mut self, state: &State, memory: &Memory, index: Option<Value>) -> Operand {
        // displacements are 32 bits wide and have a sign
        let displacement = StridedValue::known(i64::from(memory.displacement as i32));
        let mut at = displacement;
        if let Some(base) = memory.base {
            at = at.plus(state.get(base).as_number());
        }
        if let Some(index) = index {
            at = at.plus(index.as_number().times(memory.scale.into()));
        }
        match (at.stride, at.base) {
            (0, CANARY) if self.image.machine() == Machine::X86_64 => {
                return Operand::Pseudo(Pseudo::StackCanary);
            }
            // the thread's own block starts with its address
            (0, 0) => return Operand::ThreadPointer,
            _ => {}
        }
        let found = self.thread_variable(at).or_else(|| {
            // the first element that a loop accesses may not be the array's
            let start = self.thread_variable(displacement)?;
            Some(start.with_stride(at.magnitude()))
        });
        found.map_or(Operand::Unknown(Reason::Segment), Operand::Object)
    }

    /// Returns the sum of an address beside the thread pointer and a number; `lost` if it can be anywhere. The access
    /// says which variable it is in: gcc for Arm adds an index to the address of one variable (a section anchor), and
    /// reaches others by the displacement.
    pub(super) fn beside_thread_pointer(
        &mut self,
        at: StridedValue,
        number: StridedValue,
        lost: Value,
    ) -> Value {
        let sum = StridedValue { symbol: 0, ..at.plus(number) };
        if number.stride == 0 || self.image.thread_local_offset(sum.base).is_some() {
            return Value::Thread(sum);
        }
        // an index from below the first element of the block's first array
        if let Some(start) = self.thread_variable(at) {
            return self.stepped(start, number);
        }
        // A number of which nothing is known may be the offset of another file's variable, from the global offset
        // table. What is added to that is an offset in the variable: where variables lie behind the pointer, it would
        // be taken for one of them.
        match (self.image.machine(), sum.magnitude()) {
            (Machine::Aarch64, 1) => lost,
            _ => Value::Thread(sum),
        }
    }

    /// Returns the variable at an offset from the thread pointer, with the stride of further possible addresses; `None`
    /// if they are not all in it.
    pub(super) fn thread_variable(&mut self, at: StridedValue) -> Option<Pointer> {
        let offset = self.image.thread_local_offset(at.base)?;
        let pointer = self.thread_variable_by_symbol(offset);
        let pointer = pointer.or_else(|| self.fixed(Fixed::ThreadLocal(offset)))?;
        match at.alternatives() {
            Some([one, other]) => Some(pointer.either(self.beside(pointer, other.checked_sub(one)?)?)),
            // of elements further apart than the variable is long the others are not in it
            None => {
                let is_inside = at.magnitude() <= self.catalog.size(pointer.to);
                is_inside.then(|| pointer.with_stride(at.magnitude()))
            }
        }
    }

    /// Returns the offset in an object some bytes from a pointer, perhaps at the object's end; `None` outside of it.
    fn beside(&mut self, pointer: Pointer, by: i64) -> Option<i32> {
        let offset = i64::from(pointer.offset).checked_add(by)?;
        let size = i64::try_from(self.catalog.size(pointer.to)).ok()?;
        i32::try_from(offset).ok().filter(|_| (0..=size).contains(&offset))
    }

    /// Returns two addresses beside the thread pointer as pointers into one variable, the second perhaps at its end.
    pub(super) fn in_one_thread_variable(
        &mut self,
        one: StridedValue,
        other: StridedValue,
    ) -> Option<(Pointer, Pointer)> {
        let first = self.thread_variable(one)?;
        let offset = self.beside(first, other.base.checked_sub(one.base)?)?;
        Some((first, Pointer { offset, ..first }.with_stride(other.magnitude())))
    }

    /// Looks for the thread-local variable at an offset in the program's block by the symbol there, in the own unit
    /// alone: in most cases that has the variable or declares it, and so the others need not be read.
    fn thread_variable_by_symbol(&mut self, offset: u64) -> Option<Pointer> {
        let image = self.image;
        let symbol = image.thread_local_at(offset)?;
        let unit = self.unit.clone()?;
        let function = self.function;
        let inside = u32::try_from(offset.checked_sub(symbol.address)?).ok()?;
        let start = Fixed::ThreadLocal(symbol.address);
        if let Some(global) = starting(start, &function.globals, &unit.globals) {
            return self.variable_at(global.entry, global.offset.checked_add(inside)?);
        }
        // gcc and LLVM do not say where thread-local variables of Arm's programs are
        let named = unit.unplaced.iter().find(|(own, _)| *own == symbol.name.as_bytes());
        let named = named.map(|(_, entry)| *entry).or_else(|| internal(&symbol.name, &unit.unplaced));
        if let Some(entry) = named {
            return self.variable_at(entry, inside);
        }
        let variable = self.static_without_location(&symbol.name)?;
        let ty = self.variable_type(variable)?;
        let is_inside = u64::from(inside) < self.catalog.size(ty).max(1);
        is_inside.then_some(Pointer::at(self.catalog.object(ty), i32::try_from(inside).ok()?))
    }

    /// Returns the index of the function's own static variable that has a symbol, where debug information omits the
    /// location.
    fn static_without_location(&self, symbol: &str) -> Option<u32> {
        let function = self.function;
        let index = function
            .variables
            .iter()
            .position(|variable| !variable.parameter && is_symbol_of_static(symbol, &variable.name))?;
        let index = u32::try_from(index).ok()?;
        let is_located = function.locations.iter().any(|location| location.variable == index);
        (!is_located).then_some(index)
    }
}

/// Returns the DIE of the only one of some variables whose mangled name, as one with internal linkage, a symbol can be
/// (`_ZN4shopL4mineE`): of those gcc does not say the linkage name.
fn internal(symbol: &str, variables: &[(&[u8], u64)]) -> Option<u64> {
    let mangled = symbol.strip_prefix("_Z")?;
    let mangled = mangled.strip_suffix('E').unwrap_or(mangled).as_bytes();
    let is_it = |name: &[u8]| {
        let start = mangled.strip_suffix(name);
        start.is_some_and(|start| start.ends_with(format!("L{}", name.len()).as_bytes()))
    };
    let mut found = variables.iter().filter(|(name, _)| is_it(name)).map(|(_, entry)| *entry);
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// Returns `true` if compilers give a function's static variable with this name such a symbol: in C the name with a
/// number (`last.0`), in C++ the mangled name of the function and that of the variable (`_ZZ6insidevE4last`).
fn is_symbol_of_static(symbol: &str, name: &str) -> bool {
    if let Some(mangled) = symbol.strip_prefix("_ZZ") {
        let length = mangled.strip_suffix(name).and_then(|before| before.rsplit_once('E'));
        return length.is_some_and(|(_, length)| length.parse() == Ok(name.len()));
    }
    let number = symbol.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_with_internal_linkage_names_the_only_variable_that_it_can_be() {
        let variables: [(&[u8], u64); 4] = [(b"mine", 1), (b"own", 2), (b"own", 3), (b"", 4)];
        assert_eq!(internal("_ZN4shopL4mineE", &variables), Some(1));
        assert_eq!(internal("_ZL4mine", &variables), Some(1));
        for symbol in ["_ZN4shop4mineE", "_ZN4shopL3ownE", "_ZL6hismine", "mine", "_Z"] {
            assert_eq!(internal(symbol, &variables), None, "{symbol}");
        }
    }

    #[test]
    fn symbols_of_a_function_s_static_variables_name_them() {
        assert!(is_symbol_of_static("last.0", "last") && is_symbol_of_static("_ZZ6insidevE4last", "last"));
        for symbol in
            ["last", "last.", "last.part", "at_last.0", "_ZZ6insidevE7at_last", "_ZN4shop4lastE", ""]
        {
            assert!(!is_symbol_of_static(symbol, "last"), "{symbol}");
        }
    }
}
