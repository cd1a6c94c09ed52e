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
    /// Creates the range of a model's table from one position up to another.
    pub(crate) fn of(start: usize, end: usize) -> Result<Range> {
        Ok(Range { start: index(start)?, end: index(end)? })
    }
}

impl Types {
    /// Creates a model of types that has nothing but `void`.
    pub fn new(origin: Origin, pointer_size: u8) -> Types {
        Types { origin, pointer_size, types: vec![Type::Void], ..Types::default() }
    }

    /// Adds a type to the model and returns its id.
    pub fn push(&mut self, ty: Type) -> Result<TypeId> {
        let id = TypeId(index(self.types.len())?);
        self.types.push(ty);
        Ok(id)
    }

    /// Adds a name to the model's names, unless it is there, and returns its id.
    pub(crate) fn intern(&mut self, name: &[u8]) -> Result<NameId> {
        self.names.intern(name).ok_or(Error::Limit { what: "bytes of names", limit: u64::from(u32::MAX) })
    }

    /// Adds a struct, class or union without members to the model.
    pub fn push_record(&mut self, record: Record) -> Result<RecordId> {
        let id = RecordId(index(self.records.len())?);
        self.records.push(record);
        Ok(id)
    }

    /// Adds a struct, class or union with these members to the model.
    pub fn push_record_of(&mut self, record: Record, members: &[Member]) -> Result<RecordId> {
        let members = self.push_members(members)?;
        self.push_record(record.with_members(members))
    }

    /// Adds an enumeration to the model.
    pub(crate) fn push_enum(&mut self, item: Enum) -> Result<EnumId> {
        let id = EnumId(index(self.enums.len())?);
        self.enums.push(item);
        Ok(id)
    }

    /// Adds an array type to the model, with its dimensions outermost first.
    pub(crate) fn push_array(&mut self, of: TypeId, dimensions: &[u64], vector: bool) -> Result<ArrayId> {
        let dimensions = append(&mut self.dimensions, dimensions.iter().copied())?;
        let id = ArrayId(index(self.arrays.len())?);
        self.arrays.push(Array { of, dimensions, vector });
        Ok(id)
    }

    /// Adds a function type to the model, with its result and its parameters.
    pub fn push_function(
        &mut self,
        returns: TypeId,
        parameters: &[Parameter],
        variadic: bool,
    ) -> Result<FunctionId> {
        let parameters = append(&mut self.parameters, parameters.iter().copied())?;
        self.push_function_of(returns, parameters, variadic)
    }

    /// Adds a function type to the model whose parameters were added before.
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

    /// Adds members to the model's table; returns their range, which goes into a record or a variant.
    pub(crate) fn push_members(&mut self, members: &[Member]) -> Result<Range> {
        append(&mut self.members, members.iter().copied())
    }

    /// Adds the variants of a Rust enum to the model's table; returns their range, which goes into the
    /// record.
    pub(crate) fn push_variants(&mut self, variants: &[Variant]) -> Result<Range> {
        append(&mut self.variants, variants.iter().copied())
    }

    /// Adds the constants of an enumeration to the model's table.
    pub(crate) fn push_enumerators(&mut self, items: &[Enumerator]) -> Result<Range> {
        append(&mut self.enumerators, items.iter().copied())
    }

    /// Turns bitfield members that are as wide as their types, and lie where a member of the type would, into
    /// plain members.
    pub fn widen_bitfields(&mut self) {
        for member in &mut self.members {
            let is_whole =
                |field: Bitfield| field.offset == 0 && u64::from(field.size) == member.size.saturating_mul(8);
            if member.bitfield.is_some_and(is_whole) {
                member.bitfield = None;
            }
        }
    }

    /// Frees the unused capacity of the model's tables.
    pub(crate) fn shrink(&mut self) {
        self.types.shrink_to_fit();
        self.members.shrink_to_fit();
        self.records.shrink_to_fit();
        self.enumerators.shrink_to_fit();
        self.parameters.shrink_to_fit();
    }
}
