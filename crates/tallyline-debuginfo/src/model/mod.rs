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

/// The debug format that a [`Types`] was read from, DWARF or BTF; some facts are recorded in one of them only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Origin {
    /// DWARF: alignment and positions are as the compiler wrote them.
    #[default]
    Dwarf,
    /// BTF: it carries no alignment, so alignment is inferred from offsets and sizes.
    Btf,
}

/// The machine (ELF's `e_machine`) and byte order that types are laid out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Target {
    /// ELF's number of the machine (`e_machine`); 0 where it is not known, as in BTF alone.
    pub machine: u16,
    /// `true` if the high byte comes first.
    pub big_endian: bool,
}

/// All types read from a file (structs, arrays, typedefs and so on), which refer to each other by ids, with their names
/// and tables of members.
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
    /// Returns the debug format, DWARF or BTF, that the types were read from.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the machine and byte order that the types are laid out for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Returns the alignment in bytes that the source declares for a type other than a record, such as a typedef with
    /// `aligned`; `None` if it declares none. It may be smaller than the natural one.
    pub fn declared_alignment(&self, id: TypeId) -> Option<u64> {
        self.alignments.get(&id).copied()
    }

    /// Returns the size in bytes of a pointer on the machine that the types are laid out for.
    pub fn pointer_size(&self) -> u64 {
        u64::from(self.pointer_size)
    }

    /// Returns the type with this id, [`Type::Missing`] if there is none.
    pub fn get(&self, id: TypeId) -> Type {
        self.types.get(id.index()).copied().unwrap_or(Type::Missing)
    }

    /// Returns the ids of the types that were requested, in the order of the file; others were read because these need
    /// them.
    pub fn listed(&self) -> &[TypeId] {
        &self.listed
    }

    /// Returns each listed (requested) type with its source: compilation unit, DIE, file and line. Empty if positions
    /// were not requested.
    pub fn sources(&self) -> impl Iterator<Item = (TypeId, TypeSource)> + '_ {
        self.listed.iter().copied().zip(self.sources.iter().copied())
    }

    /// Returns the warnings of reading the types: messages about what the reader left out, and why, one line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the names of records (structs, classes, unions) most similar to the one requested name that no type has;
    /// `None` if they were not collected.
    pub fn nearest(&self) -> Option<&[String]> {
        self.nearest.as_deref()
    }

    /// Returns an iterator over all types with their ids, `void` included.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (TypeId, Type)> + '_ {
        (0..self.types.len() as u32).map(TypeId).zip(self.types.iter().copied())
    }

    /// Returns an iterator over the ids of all records: structs, classes and unions.
    pub fn record_ids(&self) -> impl ExactSizeIterator<Item = RecordId> + use<> {
        (0..self.records.len() as u32).map(RecordId)
    }

    /// Returns the number of types, `void` included.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Returns `true` if there is no type but `void`.
    pub fn is_empty(&self) -> bool {
        self.types.len() <= 1
    }

    /// Returns the name (of a type, member and so on) with this id as bytes; empty for [`NameId::NONE`].
    pub fn name(&self, name: NameId) -> &[u8] {
        self.names.get(name)
    }

    /// Returns the struct, class or union with this record id.
    pub fn record(&self, id: RecordId) -> &Record {
        &self.records[id.index()]
    }

    /// Returns the number of records (structs, classes and unions); record ids are below it.
    pub fn record_count(&self) -> usize {
        self.records.len()
    }

    /// Returns the record (struct, class or union) that a type is, with its record id; `None` for other types, also for
    /// typedefs of records.
    pub fn as_record(&self, id: TypeId) -> Option<(RecordId, &Record)> {
        match self.get(id) {
            Type::Record(record) => Some((record, self.record(record))),
            _ => None,
        }
    }

    /// Returns the enumeration with this id.
    pub fn enumeration(&self, id: EnumId) -> &Enum {
        &self.enums[id.index()]
    }

    /// Returns the array type with this id.
    pub fn array(&self, id: ArrayId) -> Array {
        self.arrays[id.index()]
    }

    /// Returns the function type with this id.
    pub fn function(&self, id: FunctionId) -> Function {
        self.functions[id.index()]
    }

    /// Returns the members and base classes of a record (struct, class or union), sorted by where they lie.
    pub fn members(&self, record: &Record) -> &[Member] {
        slice(&self.members, record.members)
    }

    /// Returns the discriminant of a tagged union (a Rust enum), the member that says which variant is active; `None`
    /// if there is only one variant. It may overlap bytes of a variant's member (a niche).
    pub fn tag(&self, record: &Record) -> Option<&Member> {
        slice(&self.members, record.tag).first()
    }

    /// Returns the variants of a tagged union (a Rust enum); empty for other records.
    pub fn variants(&self, record: &Record) -> &[Variant] {
        slice(&self.variants, record.variants)
    }

    /// Returns the members of one variant of a tagged union (a Rust enum).
    pub fn variant_members(&self, variant: &Variant) -> &[Member] {
        slice(&self.members, variant.members)
    }

    /// Returns the constants of an enumeration, with names and values.
    pub fn enumerators(&self, of: &Enum) -> &[Enumerator] {
        slice(&self.enumerators, of.enumerators)
    }

    /// Returns the parameters of a function type, with names and types.
    pub fn parameters(&self, of: Function) -> &[Parameter] {
        slice(&self.parameters, of.parameters)
    }

    /// Returns the lengths of an array's dimensions, outermost first; 0 for a length that is not given.
    pub fn dimensions(&self, of: Array) -> &[u64] {
        slice(&self.dimensions, of.dimensions)
    }

    /// Returns the id of the name that a type is declared with; [`NameId::NONE`] for anonymous types and kinds without
    /// names, such as pointers.
    pub fn type_name(&self, id: TypeId) -> NameId {
        match self.get(id) {
            Type::Base { name, .. } | Type::Typedef { name, .. } | Type::Opaque { name } => name,
            Type::Record(record) => self.record(record).name,
            Type::Enum(id) => self.enumeration(id).name,
            _ => NameId::NONE,
        }
    }

    /// Returns the id of the scopes that a type is declared in, a text such as `ns::Outer`; [`NameId::NONE`] at the top
    /// level or if they are unknown.
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

    /// Returns the name of a type with its scopes, such as `ns::Outer::T`, as far as they are known.
    pub fn qualified_name(&self, id: TypeId) -> Cow<'_, [u8]> {
        let name = self.name(self.type_name(id));
        let path = self.path(id);
        if !path.is_some() {
            return name.into();
        }
        let language = self.as_record(id).map_or(Language::default(), |(_, record)| record.language);
        [self.name(path), language.separator(), name].concat().into()
    }

    /// Returns the type that remains without typedefs, qualifiers and annotations around it; array elements and pointer
    /// targets are not looked at.
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
