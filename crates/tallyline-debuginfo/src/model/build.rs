//! The construction of [`Types`] by readers: the tables only grow, and never beyond what ids can name.

use super::{
    Array, ArrayId, Bitfield, Enum, EnumId, Enumerator, Function, FunctionId, Member, NameId, Origin,
    Parameter, Range, Record, RecordId, Type, TypeId, Types, Variant,
};
use crate::error::{Error, Result};

/// The most entries of a table: ids are 32 bits, and one bit is kept free.
const LIMIT: usize = 1 << 31;

fn index(len: usize) -> Result<u32> {
    if len >= LIMIT {
        return Err(Error::Limit { what: "entries in a table of types", limit: LIMIT as u64 });
    }
    Ok(len as u32)
}

fn append<T>(table: &mut Vec<T>, items: impl IntoIterator<Item = T>) -> Result<Range> {
    let start = table.len();
    table.extend(items);
    Range::of(start, table.len())
}

impl Range {
    /// Creates the range of elements from position `start` up to but not including `end` of one table of the type model
    /// (members, enumerators, …); an error from 2^31 on.
    pub(crate) fn of(start: usize, end: usize) -> Result<Range> {
        Ok(Range { start: index(start)?, end: index(end)? })
    }
}

impl Types {
    /// Creates a set of types that contains only `void`, for types from this debug format (DWARF or BTF) and pointers
    /// of this size in bytes.
    pub fn new(origin: Origin, pointer_size: u8) -> Types {
        Types { origin, pointer_size, types: vec![Type::Void], ..Types::default() }
    }

    /// Adds a type to the set and returns its id; an error from 2^31 types on.
    pub fn push(&mut self, ty: Type) -> Result<TypeId> {
        let id = TypeId(index(self.types.len())?);
        self.types.push(ty);
        Ok(id)
    }

    /// Returns the id of a name (of a type, member and so on), which is stored if it is new; an error if the
    /// names exceed 4 GiB in all.
    pub(crate) fn intern(&mut self, name: &[u8]) -> Result<NameId> {
        self.names.intern(name).ok_or(Error::Limit { what: "bytes of names", limit: u64::from(u32::MAX) })
    }

    /// Adds a struct, class or union, whose members, if any, are already in the table of members, and returns its
    /// record id.
    pub fn push_record(&mut self, record: Record) -> Result<RecordId> {
        let id = RecordId(index(self.records.len())?);
        self.records.push(record);
        Ok(id)
    }

    /// Adds a struct, class or union together with these members and returns its record id.
    pub fn push_record_of(&mut self, record: Record, members: &[Member]) -> Result<RecordId> {
        let members = self.push_members(members)?;
        self.push_record(record.with_members(members))
    }

    /// Adds an enumeration, whose constants were added by [`push_enumerators`](Self::push_enumerators), and returns its
    /// id.
    pub(crate) fn push_enum(&mut self, item: Enum) -> Result<EnumId> {
        let id = EnumId(index(self.enums.len())?);
        self.enums.push(item);
        Ok(id)
    }

    /// Adds an array type with this element type and these dimensions, outermost first, and returns its id; `vector`
    /// marks a SIMD vector.
    pub(crate) fn push_array(&mut self, of: TypeId, dimensions: &[u64], vector: bool) -> Result<ArrayId> {
        let dimensions = append(&mut self.dimensions, dimensions.iter().copied())?;
        let id = ArrayId(index(self.arrays.len())?);
        self.arrays.push(Array { of, dimensions, vector });
        Ok(id)
    }

    /// Adds a function type with this result and these parameters and returns its id; `variadic` marks a final `...`.
    pub fn push_function(
        &mut self,
        returns: TypeId,
        parameters: &[Parameter],
        variadic: bool,
    ) -> Result<FunctionId> {
        let parameters = append(&mut self.parameters, parameters.iter().copied())?;
        self.push_function_of(returns, parameters, variadic)
    }

    /// Adds a function type whose parameters are already in the table of parameters, at this range, and returns its id.
    pub(crate) fn push_function_of(
        &mut self,
        returns: TypeId,
        parameters: Range,
        variadic: bool,
    ) -> Result<FunctionId> {
        let id = FunctionId(index(self.functions.len())?);
        self.functions.push(Function { returns, parameters, variadic });
        Ok(id)
    }

    /// Adds members to the table of members; returns their range there, for the record or variant that they belong to.
    pub(crate) fn push_members(&mut self, members: &[Member]) -> Result<Range> {
        append(&mut self.members, members.iter().copied())
    }

    /// Adds the variants of a tagged union (a Rust enum) to the table of variants; returns their range there, for the
    /// record.
    pub(crate) fn push_variants(&mut self, variants: &[Variant]) -> Result<Range> {
        append(&mut self.variants, variants.iter().copied())
    }

    /// Adds the constants of an enumeration to the table of constants; returns their range there.
    pub(crate) fn push_enumerators(&mut self, items: &[Enumerator]) -> Result<Range> {
        append(&mut self.enumerators, items.iter().copied())
    }

    /// Turns each bitfield that is as wide as its type, and aligned as a plain member would be, into a plain member.
    pub fn widen_bitfields(&mut self) {
        for member in &mut self.members {
            let is_whole =
                |field: Bitfield| field.offset == 0 && u64::from(field.size) == member.size.saturating_mul(8);
            if member.bitfield.is_some_and(is_whole) {
                member.bitfield = None;
            }
        }
    }

    /// Frees the unused capacity of the tables of types, members, records, enumerators and parameters.
    pub(crate) fn shrink(&mut self) {
        self.types.shrink_to_fit();
        self.members.shrink_to_fit();
        self.records.shrink_to_fit();
        self.enumerators.shrink_to_fit();
        self.parameters.shrink_to_fit();
    }
}
