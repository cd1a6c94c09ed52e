//! Arrays: their bounds, in which order their dimensions lie, and descriptors.

use super::{Cursor, Loader, Need};
use crate::dwarf::Slice;
use crate::dwarf::entry::{Entries, Entry};
use crate::error::Result;
use crate::model::{NameId, Type};
use gimli::constants::{self, DwAt, DwTag};
use gimli::{AttributeValue, Encoding, Expression, Operation};

/// A dimension of what has as many as it is given (Fortran's assumed rank).
const DW_TAG_GENERIC_SUBRANGE: DwTag = constants::DW_TAG_generic_subrange;

/// The most operations of an expression that are looked at; compilers write some ten.
const OPERATIONS: usize = 256;

/// The largest descriptor in bytes. Fortran has at most 15 dimensions, of 24 bytes each.
const DESCRIPTOR_LIMIT: u64 = 4096;

/// The attributes whose expressions read a descriptor.
const READERS: [DwAt; 9] = [
    constants::DW_AT_data_location,
    constants::DW_AT_allocated,
    constants::DW_AT_associated,
    constants::DW_AT_rank,
    constants::DW_AT_lower_bound,
    constants::DW_AT_upper_bound,
    constants::DW_AT_count,
    constants::DW_AT_byte_stride,
    constants::DW_AT_bit_stride,
];

impl<'a> Loader<'_, 'a> {
    /// Reads an array, a vector or a descriptor.
    pub(in crate::dwarf) fn array(&mut self, cursor: &mut Cursor<'_, '_, 'a>, need: Need) -> Result<Type> {
        let vector = cursor.entry.flag(constants::DW_AT_GNU_vector);
        let is_descriptor = cursor.entry.has(constants::DW_AT_data_location);
        let bit_stride = cursor.entry.number(constants::DW_AT_bit_stride);
        let column_major = match cursor.entry.number(constants::DW_AT_ordering) {
            Some(order) => order == u64::from(constants::DW_ORD_col_major.0),
            None => cursor.context.language().is_column_major(),
        };
        let encoding = self.units.get(cursor.unit).header.encoding();
        let mut extent = extent(&cursor.entry, encoding);
        let of = match bit_stride {
            // elements that share bytes are numbers of so many bits
            Some(bits @ 1..) if !is_descriptor && !bits.is_multiple_of(8) => {
                let name = self.name_of_target(cursor)?;
                self.types.push(Type::Base { name, bits: u32::try_from(bits).unwrap_or(u32::MAX) })?
            }
            _ => {
                let need = if is_descriptor { need.min(Need::Name) } else { need };
                self.refer_by(cursor, constants::DW_AT_type, need)?
            }
        };
        let mut dimensions = Vec::new();
        let bounds =
            [constants::DW_TAG_subrange_type, constants::DW_TAG_enumeration_type, DW_TAG_GENERIC_SUBRANGE];
        self.children(cursor, &bounds, |loader, child| {
            extent = extent.max(self::extent(&child.entry, encoding));
            dimensions.push(loader.dimension(child)?);
            Ok(())
        })?;
        if is_descriptor {
            let rank = u8::try_from(dimensions.len()).unwrap_or(u8::MAX);
            let bytes = extent.max(self.types.pointer_size()).min(DESCRIPTOR_LIMIT);
            return Ok(Type::Descriptor { of, rank, bytes: bytes as u16 });
        }
        if column_major {
            dimensions.reverse();
        }
        Ok(Type::Array(self.types.push_array(of, &dimensions, vector)?))
    }

    /// Reads a range of another type's values, which may be stored in fewer bytes.
    pub(in crate::dwarf) fn range(&mut self, cursor: &Cursor<'_, '_, 'a>, need: Need) -> Result<Type> {
        let own = if need == Need::Size { NameId::NONE } else { self.name(cursor)? };
        if let Some(bytes) = cursor.entry.number(constants::DW_AT_byte_size) {
            let name = if own.is_some() { own } else { self.name_of_target(cursor)? };
            return Ok(Type::Base { name, bits: u32::try_from(bytes.saturating_mul(8)).unwrap_or(0) });
        }
        let of = self.refer_by(cursor, constants::DW_AT_type, need)?;
        Ok(if own.is_some() { Type::Typedef { name: own, of } } else { Type::Annotated { of } })
    }

    /// Returns the length of one dimension; 0 where it is not known before the program runs.
    fn dimension(&mut self, cursor: &Cursor<'_, '_, 'a>) -> Result<u64> {
        let default = cursor.context.language().lower_bound();
        if has_bounds(&cursor.entry) {
            return Ok(length(&cursor.entry, default));
        }
        // the bounds may be those of the type of its indices
        let Some(index) = self.read_target(cursor)? else { return Ok(0) };
        Ok(if index.tag == constants::DW_TAG_subrange_type { length(&index, default) } else { 0 })
    }

    /// Reads the entry of the type that an entry refers to.
    fn read_target(&mut self, cursor: &Cursor<'_, '_, 'a>) -> Result<Option<Entry<'a>>> {
        let place = cursor.entry.target(self.units, cursor.unit, constants::DW_AT_type);
        let Some((place, unit)) = place.and_then(|place| Some((place, self.units.index_of(place)?))) else {
            return Ok(None);
        };
        let context = self.context(unit)?;
        let mut entry = Entry::default();
        self.spend(1)?;
        let mut entries = Entries::at(self.units, unit, &context, place)?;
        Ok((!entries.is_empty() && entries.read(&mut entry)?).then_some(entry))
    }

    /// Returns the name of the type that an entry refers to.
    fn name_of_target(&mut self, cursor: &Cursor<'_, '_, 'a>) -> Result<NameId> {
        let Some(place) = cursor.entry.target(self.units, cursor.unit, constants::DW_AT_type) else {
            return Ok(NameId::NONE);
        };
        let (Some(unit), Some(entry)) = (self.units.index_of(place), self.read_target(cursor)?) else {
            return Ok(NameId::NONE);
        };
        let context = self.context(unit)?;
        let name = entry.string(self.units, unit, &context, constants::DW_AT_name);
        name.map_or(Ok(NameId::NONE), |name| self.types.intern(name))
    }
}

fn has_bounds(entry: &Entry<'_>) -> bool {
    [constants::DW_AT_upper_bound, constants::DW_AT_count].into_iter().any(|name| entry.has(name))
}

/// Returns the number of elements from one bound to the other; 0 where they are not numbers.
fn length(entry: &Entry<'_>, default: i64) -> u64 {
    if let Some(count) = entry.number(constants::DW_AT_count) {
        return count;
    }
    let first = match entry.number(constants::DW_AT_lower_bound) {
        Some(first) => first.cast_signed(),
        None if entry.has(constants::DW_AT_lower_bound) => return 0,
        None => default,
    };
    match entry.number(constants::DW_AT_upper_bound) {
        // -1 of 4 or 8 bytes is how "no elements" is written
        Some(last) if last == u64::from(u32::MAX) => 0,
        Some(last) => {
            let length = i128::from(last.cast_signed()) - i128::from(first) + 1;
            u64::try_from(length).unwrap_or(0)
        }
        None => 0,
    }
}

/// A value on the stack of an expression, as far as it matters.
#[derive(Clone, Copy)]
enum Value {
    /// An address in the object.
    Inside(u64),
    Number(u64),
    Unknown,
}

/// Returns the number of bytes at the start of an object that the expressions of an entry read.
fn extent(entry: &Entry<'_>, encoding: Encoding) -> u64 {
    let expressions = entry.attributes().iter().filter_map(|(name, value)| match value {
        AttributeValue::Block(block) if READERS.contains(name) => Some(*block),
        _ => None,
    });
    expressions.map(|expression| extent_of(expression, encoding)).max().unwrap_or(0)
}

fn extent_of(expression: Slice<'_>, encoding: Encoding) -> u64 {
    let mut operations = Expression(expression).operations(encoding);
    let mut stack: Vec<Value> = Vec::new();
    let mut extent = 0;
    for _ in 0..OPERATIONS {
        let Ok(Some(operation)) = operations.next() else { break };
        match operation {
            Operation::PushObjectAddress => stack.push(Value::Inside(0)),
            Operation::UnsignedConstant { value } => stack.push(Value::Number(value)),
            Operation::SignedConstant { value } => stack.push(Value::Number(value.cast_unsigned())),
            Operation::PlusConstant { value } => {
                let sum = plus(stack.pop(), Some(Value::Number(value)));
                stack.push(sum);
            }
            Operation::Plus => {
                let (one, other) = (stack.pop(), stack.pop());
                stack.push(plus(one, other));
            }
            Operation::Deref { size, .. } => {
                if let Some(Value::Inside(at)) = stack.pop() {
                    extent = extent.max(at.saturating_add(size.into()));
                }
                stack.push(Value::Unknown);
            }
            Operation::Pick { index } => {
                let at = stack.len().checked_sub(usize::from(index) + 1);
                stack.push(at.and_then(|at| stack.get(at)).copied().unwrap_or(Value::Unknown));
            }
            // of what it does to the stack it only matters that no address is taken for another
            _ => stack.clear(),
        }
    }
    extent
}

fn plus(one: Option<Value>, other: Option<Value>) -> Value {
    match (one, other) {
        (Some(Value::Inside(at)), Some(Value::Number(more)))
        | (Some(Value::Number(more)), Some(Value::Inside(at))) => Value::Inside(at.saturating_add(more)),
        (Some(Value::Number(one)), Some(Value::Number(other))) => Value::Number(one.wrapping_add(other)),
        _ => Value::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::{Format, RunTimeEndian};

    fn extent(bytes: &[u8]) -> u64 {
        let encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 5 };
        extent_of(Slice::new(bytes, RunTimeEndian::Little), encoding)
    }

    #[test]
    fn a_descriptor_reaches_as_far_as_its_expressions_read() {
        // gfortran's base address, and the upper bound of its first dimension
        assert_eq!(extent(&[0x97, 0x06]), 8);
        assert_eq!(extent(&[0x97, 0x23, 0x38, 0x06]), 64);
        // the product of a stride and the size of an element, as it is written
        assert_eq!(extent(&[0x97, 0x23, 0x28, 0x06, 0x97, 0x23, 0x20, 0x06, 0x1e]), 48);
        // GNAT's bounds lie where a second pointer leads
        assert_eq!(extent(&[0x97, 0x23, 0x08, 0x06, 0x94, 0x04]), 16);
        assert_eq!(extent(&[0x97, 0x08, 0x10, 0x22, 0x06]), 24);
    }

    #[test]
    fn expressions_that_make_no_sense_read_nothing() {
        for bytes in [&[][..], &[0x06], &[0x22, 0x06], &[0x23], &[0x97, 0x1e, 0x06], &[0x15, 0x09, 0x06]] {
            assert_eq!(extent(bytes), 0, "{bytes:x?}");
        }
        assert_eq!(extent(&[0x97; 100_000]), 0);
    }
}
