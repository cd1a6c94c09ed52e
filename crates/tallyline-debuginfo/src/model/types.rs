//! The kinds of types and their parts.

use super::{ArrayId, EnumId, FunctionId, Language, NameId, Range, RecordId, TypeId};

/// A type: a base type, pointer, array, typedef, record and so on. Small and `Copy`; lists of members and the like are
/// in the tables of [`Types`](super::Types).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// The `void` type, or the absence of a type.
    Void,
    /// A missing type: its id leads nowhere, or the reader does not know its kind.
    Missing,
    /// A base type: a number, a character or a truth value.
    Base {
        /// The name of the base type.
        name: NameId,
        /// The width of the base type in bits.
        bits: u32,
    },
    /// A pointer or a reference.
    Pointer {
        /// The kind of pointer.
        kind: Pointer,
        /// The type that the pointer or reference points to.
        to: TypeId,
    },
    /// A C++ pointer to a member.
    MemberPointer {
        /// The class that the member is in.
        class: TypeId,
        /// The type of the member: a function for pointers to member functions.
        to: TypeId,
    },
    /// A type qualified by `const`, `volatile`, `restrict` or `_Atomic`.
    Qualified {
        /// The qualifier of the type.
        qualifier: Qualifier,
        /// The type without the qualifier.
        of: TypeId,
    },
    /// A typedef.
    Typedef {
        /// The name of the typedef.
        name: NameId,
        /// The type that the typedef names.
        of: TypeId,
    },
    /// An array or a vector.
    Array(ArrayId),
    /// A function type.
    Function(FunctionId),
    /// A struct, class or union.
    Record(RecordId),
    /// An enumeration.
    Enum(EnumId),
    /// A type with a compiler's annotation (`btf_type_tag`), which changes nothing about the layout.
    Annotated {
        /// The type without the annotation.
        of: TypeId,
    },
    /// A Fortran array that is reached through a descriptor, which holds its bounds: an allocatable or a pointer.
    Descriptor {
        /// The type of the array's elements.
        of: TypeId,
        /// The number of dimensions of the array.
        rank: u8,
        /// The size of the array's descriptor in bytes.
        bytes: u16,
    },
    /// A Fortran character string of fixed length.
    Text {
        /// The length of the string in bytes.
        length: u32,
    },
    /// A type with a name and no known form, such as `decltype(nullptr)`.
    Opaque {
        /// The name of the type.
        name: NameId,
    },
}

/// The kinds of pointers and references: pointer (`*`), reference (`&`), rvalue reference (`&&`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// A pointer (`*`).
    Pointer,
    /// An lvalue reference (`&`).
    Reference,
    /// An rvalue reference (`&&`).
    RvalueReference,
}

/// The kinds of type qualifiers: `const`, `volatile`, `restrict`, `_Atomic`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Qualifier {
    /// The qualifier `const`.
    Const,
    /// The qualifier `volatile`.
    Volatile,
    /// The qualifier `restrict`.
    Restrict,
    /// The qualifier `_Atomic`.
    Atomic,
}

/// An array or SIMD vector type: element type and dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array {
    /// The type of the array's elements.
    pub of: TypeId,
    pub(crate) dimensions: Range,
    /// `true` if the type is a SIMD vector (`vector_size`).
    pub vector: bool,
}

/// A function type: return type, parameters, variadic or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// The return type of the function.
    pub returns: TypeId,
    pub(crate) parameters: Range,
    /// `true` if the function is variadic: more parameters may follow (`...`).
    pub variadic: bool,
}

/// A parameter of a function type: name and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name of the parameter, if it has one.
    pub name: NameId,
    /// The type of the parameter.
    pub ty: TypeId,
}

/// The kinds of records: `struct`, `class`, `interface`, `union`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// A `struct`.
    Struct,
    /// A `class`.
    Class,
    /// An `interface`.
    Interface,
    /// A `union`.
    Union,
}

/// The kind of scope that a record is declared in: the top level of a compilation unit, or a namespace, function or
/// type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeclarationScope {
    /// At the top of a unit.
    File,
    /// In a namespace, a function or another type.
    Inner,
}

/// The source position of a declaration (of a type or member): file name and line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Position {
    /// The file's name as the compiler wrote it.
    pub file: NameId,
    /// The line, counted from 1; 0 where it is not known.
    pub line: u32,
}

/// The origin of a requested type: compilation unit, DIE offset, source position, and the number of compilation units
/// that define it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TypeSource {
    /// The name of the compilation unit that the type is read from.
    pub unit: NameId,
    /// The global offset of the type's DIE, across all unit sections.
    pub entry: u64,
    /// The file and line of the type's declaration.
    pub declared_at: Position,
    /// The number of compilation units that define the type.
    pub definitions: u32,
}

/// A struct, class or union: name, scopes, size, alignment, members.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// The name of the record, if it has one, without the scopes that the record is declared in.
    pub name: NameId,
    /// The scopes that the record is declared in, with `::` between, outermost first; none at the top of a unit, and
    /// where the type is only known from what refers to it.
    pub path: NameId,
    /// The language of the record's compilation unit.
    pub language: Language,
    /// The kind of record.
    pub kind: RecordKind,
    /// The kind of scope that the record is declared in.
    pub(crate) scope: DeclarationScope,
    /// `true` if the record's members are not known here: a declaration, or read for its name only.
    pub declaration: bool,
    /// The size of the record in bytes; the minimum if it depends on the contents.
    pub size: u64,
    /// `true` if the size of the record depends on its contents, as of Ada's records with discriminants.
    pub is_dynamic: bool,
    /// The declared alignment of the record in bytes; 0 if there is none. In BTF it is inferred.
    pub align: u64,
    pub(crate) members: Range,
    pub(crate) variants: Range,
    // one member at most: what says which variant a value is
    pub(crate) tag: Range,
    pub(crate) tag_signed: bool,
    /// The source position of the record's declaration.
    pub declared_at: Position,
}

impl Record {
    /// Returns the record (struct, class or union) with its members set to a range of the table of members, from
    /// [`Types::push_members`](super::Types::push_members).
    pub(crate) fn with_members(self, members: Range) -> Record {
        Record { members, ..self }
    }

    /// Creates a struct, class or union of this name and size in bytes, without members.
    pub fn new(kind: RecordKind, name: NameId, size: u64) -> Record {
        Record {
            name,
            path: NameId::NONE,
            language: Language::default(),
            kind,
            scope: DeclarationScope::File,
            declaration: false,
            size,
            is_dynamic: false,
            align: 0,
            members: Range::default(),
            variants: Range::default(),
            tag: Range::default(),
            tag_signed: false,
            declared_at: Position::default(),
        }
    }

    /// Returns `true` if the record is a struct, class or interface, whose members lie one after the other.
    pub fn is_struct(&self) -> bool {
        self.kind != RecordKind::Union
    }

    /// Returns `true` if the record is a union, whose members overlap.
    pub fn is_union(&self) -> bool {
        self.kind == RecordKind::Union
    }
}

/// The kinds of members: data member, static member, base class, virtual base class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberKind {
    /// A data member of each object.
    Data,
    /// A base class that is not virtual.
    Base,
    /// A virtual base class: in an object of a derived class its offset may differ.
    VirtualBase,
    /// A static member, which occupies no bytes of the record.
    Static,
}

/// The bits of a bitfield member: the first, counted from the member's byte offset, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bitfield {
    /// The first bit, counted from [`Member::offset`].
    pub offset: u32,
    /// The number of bits.
    pub size: u32,
}

/// The access specifier of a member: public, protected, private.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Access {
    /// Access from everywhere; also where the file does not say.
    #[default]
    Public,
    /// Access from the class and those derived from it.
    Protected,
    /// Access from the class alone.
    Private,
}

/// A member or base class of a record: name, type, offset, size, alignment, bits.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// The name of the member, if it has one.
    pub name: NameId,
    /// The type of the member.
    pub ty: TypeId,
    /// The byte offset of the member in the record; for a bitfield, that of the unit that holds it.
    pub offset: u64,
    /// The offset of the member in the record in bits.
    pub bit_offset: u64,
    /// The size of the member in bytes; for a bitfield, that of the unit that holds it.
    pub size: u64,
    /// The bits of the member, if it is a bitfield.
    pub bitfield: Option<Bitfield>,
    /// The declared alignment of the member in bytes; 0 if there is none. In BTF it is inferred.
    pub align: u64,
    /// The kind of member.
    pub kind: MemberKind,
    /// The access to the member that the language grants.
    pub access: Access,
    /// `true` if the compiler made the member, as it does pointers to virtual tables.
    pub artificial: bool,
    /// `true` if the member takes no bytes of its own: an empty class that lies over something else, or one of Rust's
    /// functions, which is described as a pointer.
    pub overlaid: bool,
    /// The position of the member in the declaration, bases first; a record's members are kept in offset order.
    pub declared: u16,
    /// The source position of the member's declaration.
    pub declared_at: Position,
}

impl Member {
    /// Creates a data member of this name and type at this byte offset, with its size still 0.
    pub fn new(name: NameId, ty: TypeId, offset: u64) -> Member {
        Member {
            name,
            ty,
            offset,
            bit_offset: offset.saturating_mul(8),
            size: 0,
            bitfield: None,
            align: 0,
            kind: MemberKind::Data,
            access: Access::default(),
            artificial: false,
            overlaid: false,
            declared: 0,
            declared_at: Position::default(),
        }
    }

    /// Returns `true` if the member is a base class, virtual or not.
    pub fn is_base(&self) -> bool {
        matches!(self.kind, MemberKind::Base | MemberKind::VirtualBase)
    }

    /// Returns `true` if the member has a fixed [`offset`](Member::offset) in the record. Static members have none;
    /// virtual bases, and members after an array of dynamic length, may have theirs only at run time.
    pub fn is_placed(&self) -> bool {
        self.kind != MemberKind::Static && self.offset != UNPLACED
    }

    /// Returns `true` if the member occupies bytes of the record that are its own; `false` for members without a fixed
    /// offset (such as static ones), empty base classes and members laid over others.
    pub fn takes_bytes(&self) -> bool {
        self.is_placed() && !self.overlaid && !(self.is_base() && self.size == 0)
    }
}

/// The value of [`Member::offset`] that means that the offset is unknown before run time.
pub(crate) const UNPLACED: u64 = u64::MAX;

/// A variant of a tagged union (a Rust enum): its name, the discriminant value that selects it, and its members.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// The name of the variant, if it has one.
    pub name: NameId,
    /// The value of the discriminant that selects the variant; `None` for the one that takes every other value.
    pub tag: Option<i128>,
    /// The type of the variant's contents.
    pub ty: TypeId,
    pub(crate) members: Range,
}

/// An enumeration: name, size in bytes, constants.
#[derive(Clone, Copy, Debug)]
pub struct Enum {
    /// The name of the enumeration, if it has one.
    pub name: NameId,
    /// The size of the enumeration in bytes.
    pub size: u64,
    /// `true` if the values of the enumeration are signed.
    pub signed: bool,
    /// `true` if the constants of the enumeration are not known here.
    pub declaration: bool,
    pub(crate) enumerators: Range,
    /// The source position of the enumeration's declaration.
    pub declared_at: Position,
}

/// A constant of an enumeration: name and value.
#[derive(Clone, Copy, Debug)]
pub struct Enumerator {
    /// The name of the constant.
    pub name: NameId,
    /// The value of the constant, sign-extended.
    pub value: u64,
}
