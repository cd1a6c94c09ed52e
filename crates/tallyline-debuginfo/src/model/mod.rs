//! The one type model behind every reader.
//!
//! [`Types`] is an arena: one small [`Type`] per id, with the long parts (members, enumerators,
//! parameters, dimensions, names) in tables of their own. Its size is proportional to the types in
//! it, not to the file they came from. Ids index the arena; [`TypeId::VOID`] is always there.
//!
//! Nothing in here trusts the file: an id that leads nowhere reads as [`Type::Missing`], and every
//! walk along references is bounded.

mod append;
mod build;
mod ids;
mod language;
mod names;
mod pack;
mod replace;
mod types;

pub(crate) use ids::Range;
pub use ids::{ArrayId, EnumId, FunctionId, NameId, RecordId, TypeId};
pub use language::Language;
pub use names::Names;
pub(crate) use names::are_distinct;
pub use pack::{Packer, Unpacker};
pub use replace::Original;
pub(crate) use types::DeclarationScope;
pub(crate) use types::UNPLACED;
pub use types::{
    Access, Array, Bitfield, Enum, Enumerator, Function, Member, MemberKind, Parameter, Pointer, Position,
    Qualifier, Record, RecordKind, Type, TypeSource, Variant,
};

use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The longest chain of typedefs, qualifiers and arrays that is followed. Real programs stay below
/// twenty; a longer chain is a loop or an attack.
const CHAIN_LIMIT: usize = 256;

/// The format that a model's types were read from: DWARF or BTF. Some facts exist only in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Origin {
    /// DWARF: alignment and positions are as the compiler wrote them.
    #[default]
    Dwarf,
    /// BTF: it carries no alignment, so alignment is inferred from offsets and sizes.
    Btf,
}

/// The machine that a model's types are laid out for: ELF's machine number and the byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Target {
    /// ELF's number of the machine (`e_machine`); 0 where it is not known, as in BTF alone.
    pub machine: u16,
    /// `true` if the high byte comes first.
    pub big_endian: bool,
}

/// A model of a file's types: structs, arrays, typedefs and so on, which refer to each other by ids.
#[derive(Debug, Default)]
pub struct Types {
    pub(crate) origin: Origin,
    pub(crate) target: Target,
    pub(crate) pointer_size: u8,
    pub(crate) types: Vec<Type>,
    pub(crate) records: Vec<Record>,
    pub(crate) enums: Vec<Enum>,
    pub(crate) arrays: Vec<Array>,
    pub(crate) functions: Vec<Function>,
    pub(crate) members: Vec<Member>,
    pub(crate) variants: Vec<Variant>,
    pub(crate) enumerators: Vec<Enumerator>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) dimensions: Vec<u64>,
    pub(crate) names: Names,
    pub(crate) listed: Vec<TypeId>,
    // of enumerations and typedefs; a record has its own
    pub(crate) paths: FxHashMap<TypeId, NameId>,
    // none, or one for each that is listed
    pub(crate) sources: Vec<TypeSource>,
    // by type; few have one
    pub(crate) alignments: FxHashMap<TypeId, u64>,
    // natural ones, by record, where the reader computed them; none is 0
    pub(crate) natural: Vec<u64>,
    pub(crate) warnings: Vec<String>,
    // where a name that was asked for has no type
    pub(crate) nearest: Option<Vec<String>>,
}

impl Types {
    /// Returns the format (DWARF or BTF) that the model's types were read from.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the machine that the model's types are laid out for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Returns the alignment in bytes that a type other than a record was declared with, such as a typedef's
    /// `aligned`; it may be less than the type's own.
    pub fn declared_alignment(&self, id: TypeId) -> Option<u64> {
        self.alignments.get(&id).copied()
    }

    /// Returns the size of a pointer of the target, in bytes.
    pub fn pointer_size(&self) -> u64 {
        u64::from(self.pointer_size)
    }

    /// Returns the model's type with an id; [`Type::Missing`] where there is none.
    pub fn get(&self, id: TypeId) -> Type {
        self.types.get(id.index()).copied().unwrap_or(Type::Missing)
    }

    /// Returns the ids of the types that were asked for, in the order of the file.
    pub fn listed(&self) -> &[TypeId] {
        &self.listed
    }

    /// Returns where each listed type is defined (unit, file and line); nothing where positions were not
    /// asked for, or are not known.
    pub fn sources(&self) -> impl Iterator<Item = (TypeId, TypeSource)> + '_ {
        self.listed.iter().copied().zip(self.sources.iter().copied())
    }

    /// Returns what the reader left out of the model, and why, one line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the names of records that are nearest to the one name that was asked for and that no type has;
    /// `None` where they were not collected.
    pub fn nearest(&self) -> Option<&[String]> {
        self.nearest.as_deref()
    }

    /// Returns all types of the model with their ids, `void` included.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (TypeId, Type)> + '_ {
        (0..self.types.len() as u32).map(TypeId).zip(self.types.iter().copied())
    }

    /// Returns the ids of all structs, classes and unions of the model.
    pub fn record_ids(&self) -> impl ExactSizeIterator<Item = RecordId> + use<> {
        (0..self.records.len() as u32).map(RecordId)
    }

    /// Returns the number of types in the model, `void` included.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Returns `true` if the model has no type but `void`.
    pub fn is_empty(&self) -> bool {
        self.types.len() <= 1
    }

    /// Returns the bytes of the model's name with an id; empty for no name.
    pub fn name(&self, name: NameId) -> &[u8] {
        self.names.get(name)
    }

    /// Returns the struct, class or union with a record id.
    pub fn record(&self, id: RecordId) -> &Record {
        &self.records[id.index()]
    }

    /// Returns the number of structs, classes and unions in the model: their ids are 0 to one less.
    pub fn record_count(&self) -> usize {
        self.records.len()
    }

    /// Returns the record id of a type that is itself a struct, class or union (no typedef is followed).
    pub fn as_record(&self, id: TypeId) -> Option<(RecordId, &Record)> {
        match self.get(id) {
            Type::Record(record) => Some((record, self.record(record))),
            _ => None,
        }
    }

    /// Returns the enumeration with an id: its size and its constants.
    pub fn enumeration(&self, id: EnumId) -> &Enum {
        &self.enums[id.index()]
    }

    /// Returns the array type with an id: its element type and dimensions.
    pub fn array(&self, id: ArrayId) -> Array {
        self.arrays[id.index()]
    }

    /// Returns the function type with an id: its result and parameters.
    pub fn function(&self, id: FunctionId) -> Function {
        self.functions[id.index()]
    }

    /// Returns the members and bases of a struct, class or union, in the order of the file.
    pub fn members(&self, record: &Record) -> &[Member] {
        slice(&self.members, record.members)
    }

    /// Returns the member of a Rust enum (its discriminant) that says which variant a value is; `None` where
    /// there is one variant only.
    ///
    /// It may lie in the bytes of a variant's member: a niche.
    pub fn tag(&self, record: &Record) -> Option<&Member> {
        slice(&self.members, record.tag).first()
    }

    /// Returns the variants of a Rust enum, each with its members.
    pub fn variants(&self, record: &Record) -> &[Variant] {
        slice(&self.variants, record.variants)
    }

    /// Returns the members of one variant of a Rust enum.
    pub fn variant_members(&self, variant: &Variant) -> &[Member] {
        slice(&self.members, variant.members)
    }

    /// Returns the constants of an enumeration, with their names and values.
    pub fn enumerators(&self, of: &Enum) -> &[Enumerator] {
        slice(&self.enumerators, of.enumerators)
    }

    /// Returns the types of a function type's parameters.
    pub fn parameters(&self, of: Function) -> &[Parameter] {
        slice(&self.parameters, of.parameters)
    }

    /// Returns the lengths of an array's dimensions, outermost first; 0 where a length is not given.
    pub fn dimensions(&self, of: Array) -> &[u64] {
        slice(&self.dimensions, of.dimensions)
    }

    /// Returns the name that a type was declared with, if it is of a kind that has one.
    pub fn type_name(&self, id: TypeId) -> NameId {
        match self.get(id) {
            Type::Base { name, .. } | Type::Typedef { name, .. } | Type::Opaque { name } => name,
            Type::Record(record) => self.record(record).name,
            Type::Enum(id) => self.enumeration(id).name,
            _ => NameId::NONE,
        }
    }

    /// Returns the namespaces and classes that a type is declared in, outermost first; none where they are
    /// not known.
    pub fn path(&self, id: TypeId) -> NameId {
        match self.get(id) {
            Type::Record(record) => self.record(record).path,
            _ => self.paths.get(&id).copied().unwrap_or(NameId::NONE),
        }
    }

    pub(crate) fn set_path(&mut self, id: TypeId, path: NameId) {
        match self.get(id) {
            Type::Record(record) => self.records[record.index()].path = path,
            _ => _ = self.paths.insert(id, path),
        }
    }

    /// Returns the name of a type behind those of the namespaces and classes that it is declared in, as far
    /// as they are known.
    pub fn qualified_name(&self, id: TypeId) -> Cow<'_, [u8]> {
        let name = self.name(self.type_name(id));
        let path = self.path(id);
        if !path.is_some() {
            return name.into();
        }
        let language = self.as_record(id).map_or(Language::default(), |(_, record)| record.language);
        [self.name(path), language.separator(), name].concat().into()
    }

    /// Returns the type that remains without typedefs, qualifiers and annotations; arrays are left alone.
    pub fn strip(&self, mut id: TypeId) -> TypeId {
        for _ in 0..CHAIN_LIMIT {
            match self.get(id) {
                Type::Typedef { of, .. } | Type::Qualified { of, .. } | Type::Annotated { of } => id = of,
                _ => return id,
            }
        }
        TypeId::VOID
    }
}

fn slice<T>(table: &[T], range: Range) -> &[T] {
    table.get(range.start as usize..range.end as usize).unwrap_or(&[])
}
