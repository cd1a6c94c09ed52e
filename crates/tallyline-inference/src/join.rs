//! The join of two abstract values, with the types that tell which address wins.

use super::analysis::Analysis;
use super::strided_value::StridedValue;
use super::value::{Pointer, Value, is_near_null};

impl Analysis<'_, '_, '_, '_> {
    /// Returns the join of two values. The unknown part of a number gets the value number `name`.
    pub(super) fn join_values(&mut self, one: Value, other: Value, at: u32, name: u64) -> Value {
        match (one, other) {
            (one, other) if one == other => one,
            (Value::Unknown(one), Value::Unknown(other)) => Value::Unknown(one.min(other)),
            (Value::Unknown(lost), _) | (_, Value::Unknown(lost)) => Value::Unknown(lost),
            // null, or a sentinel that is not an address
            (Value::Constant(number), known @ (Value::Pointer(_) | Value::Vtable | Value::Thread(_)))
            | (known @ (Value::Pointer(_) | Value::Vtable | Value::Thread(_)), Value::Constant(number))
                if is_near_null(number) =>
            {
                known
            }
            (Value::Pointer(one), Value::Pointer(other)) => self.join_pointers(one, other, at),
            // an address that one path keeps as a number, as kernels do: one variable has one type
            (known @ Value::Pointer(_), Value::Number(_)) | (Value::Number(_), known @ Value::Pointer(_)) => {
                known
            }
            (Value::Pointer(pointer), Value::Constant(number))
            | (Value::Constant(number), Value::Pointer(pointer)) => match self.global(number as u64) {
                Some(global) => self.join_pointers(pointer, global, at),
                None => Value::Unknown(at),
            },
            (Value::Pointer(pointer), Value::Thread(sum)) | (Value::Thread(sum), Value::Pointer(pointer)) => {
                match self.thread_variable(sum) {
                    Some(variable) => self.join_pointers(pointer, variable, at),
                    None => Value::Unknown(at),
                }
            }
            (Value::Thread(one), Value::Thread(other)) => match self.in_one_thread_variable(one, other) {
                Some((one, other)) => self.join_pointers(one, other, at),
                None => Value::Unknown(at),
            },
            // addresses in one variable, as of a loop over it
            (Value::Constant(one), Value::Constant(other)) => match self.in_one_global(one, other) {
                Some((one, other)) => self.join_offsets(one, other),
                None => Value::from(StridedValue::known(one).join(StridedValue::known(other), name)),
            },
            (Value::Number(_) | Value::Constant(_), Value::Number(_) | Value::Constant(_)) => {
                Value::from(one.as_number().join(other.as_number(), name))
            }
            _ => Value::Unknown(at),
        }
    }

    /// Returns two addresses as pointers into one variable, the second perhaps at its end.
    fn in_one_global(&mut self, one: i64, other: i64) -> Option<(Pointer, Pointer)> {
        let first = self.global(one as u64)?;
        let offset = i64::from(first.offset).checked_add(other.checked_sub(one)?)?;
        let size = i64::try_from(self.catalog.size(first.to)).ok()?;
        let offset = i32::try_from(offset).ok().filter(|_| (0..=size).contains(&offset))?;
        Some((first, Pointer { offset, ..first }))
    }

    fn join_pointers(&mut self, one: Pointer, other: Pointer, at: u32) -> Value {
        let is_counter = one.is_counter && other.is_counter;
        let ends_elements = one.ends_elements && other.ends_elements;
        let [one, other] = [one, other].map(|pointer| Pointer { is_counter, ends_elements, ..pointer });
        if one.to == other.to {
            return self.join_offsets(one, other);
        }
        match self.catalog.common_part(one, other) {
            Some(part) => {
                Value::Pointer(part.with_stride(one.stride.into()).with_stride(other.stride.into()))
            }
            None => Value::Unknown(at),
        }
    }

    fn join_offsets(&mut self, one: Pointer, other: Pointer) -> Value {
        let size = i64::try_from(self.catalog.size(one.to)).unwrap_or(i64::MAX);
        let is_inside = |pointer: Pointer| (0..size).contains(&i64::from(pointer.offset));
        let apart = i64::from(one.offset).abs_diff(other.offset.into());
        if let (Some(mine), Some(theirs)) = (one.alternatives(), other.alternatives())
            && let Some(either) = either(mine, theirs)
        {
            return Value::Pointer(Pointer { stride: 0, offset: either[0], ..one }.either(either[1]));
        }
        let kept = if !is_inside(one) && is_inside(other) { other } else { one };
        let joined = kept.with_stride(one.stride.into()).with_stride(other.stride.into()).with_stride(apart);
        // both are above the elements
        Value::Pointer(Pointer { ends_elements: one.ends_elements && other.ends_elements, ..joined })
    }
}

/// Returns the two distinct numbers among four, or one number twice; `None` if there are more.
fn either(mine: [i32; 2], theirs: [i32; 2]) -> Option<[i32; 2]> {
    let mut all = [mine[0], mine[1], theirs[0], theirs[1]];
    all.sort_unstable();
    let (least, most) = (all[0], all[3]);
    all.iter().all(|number| *number == least || *number == most).then_some([least, most])
}
