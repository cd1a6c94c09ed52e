//! Types as bytes, for those who keep them in a file of their own and read them again.
//!
//! Numbers are of variable length, tables follow each other. The form may change with every version: who keeps such bytes says in front which it is.

use super::{
    Access, Array, ArrayId, Bitfield, DeclarationScope, Enum, EnumId, Enumerator, Function, FunctionId,
    Language, Member, MemberKind, NameId, Origin, Parameter, Pointer, Position, Qualifier, Range, Record,
    RecordId, RecordKind, Target, Type, TypeId, TypeSource, Types, Variant,
};
use rustc_hash::FxHashMap;

/// An encoder that appends numbers, byte strings and whole [`Types`] to a compact byte buffer, for caches.
#[derive(Debug, Default)]
pub struct Packer {
    bytes: Vec<u8>,
}

impl Packer {
    /// Appends an unsigned number to the encoder's buffer in LEB128, 7 bits a byte.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Appends one byte to the encoder's buffer, as it is.
    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Appends a signed number to the encoder's buffer, zigzag-encoded, so that numbers near zero take few bytes.
    pub fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)).cast_unsigned());
    }

    /// Appends a `bool` to the encoder's buffer as one byte.
    pub fn flag(&mut self, flag: bool) {
        self.bytes.push(u8::from(flag));
    }

    /// Appends a byte string to the encoder's buffer, preceded by its length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends the id of a type, whose [`Types`] is packed too, to the encoder's buffer.
    pub fn type_id(&mut self, id: TypeId) {
        self.number(id.0.into());
    }

    /// Consumes the encoder and returns its buffer: the numbers, byte strings and types appended so far, encoded.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// A decoder of bytes that a [`Packer`] encoded (numbers, byte strings, whole [`Types`]). Damaged bytes decode to
/// `None` or to other values; no table is allocated larger than the remaining bytes can fill.
#[derive(Clone, Copy, Debug)]
pub struct Unpacker<'b> {
    rest: &'b [u8],
}

impl<'b> Unpacker<'b> {
    /// Creates a decoder of bytes that a [`Packer`] encoded.
    pub fn new(bytes: &'b [u8]) -> Self {
        Unpacker { rest: bytes }
    }

    /// Returns `true` if all bytes that a [`Packer`] encoded were decoded.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Decodes one byte that a [`Packer`] encoded; `None` at the end.
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Decodes an unsigned number of up to 64 bits that a [`Packer`] encoded; `None` if the bytes are damaged.
    #[inline]
    pub fn number(&mut self) -> Option<u64> {
        match self.rest {
            // most are small
            [first @ ..0x80, rest @ ..] => {
                self.rest = rest;
                Some((*first).into())
            }
            _ => self.large_number(),
        }
    }

    fn large_number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            number |= bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Decodes an unsigned number that a [`Packer`] encoded and that must fit the type `T`; `None` if it does not, or
    /// the bytes are damaged.
    pub fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.number()?.try_into().ok()
    }

    /// Decodes a signed number that a [`Packer`] encoded; `None` if the bytes are damaged.
    pub fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// Decodes a `bool` that a [`Packer`] encoded; `None` at the end, or if the byte is neither 0 nor 1.
    pub fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Decodes a byte string with its length that a [`Packer`] encoded; `None` if the bytes are damaged.
    pub fn bytes(&mut self) -> Option<&'b [u8]> {
        let size = self.small()?;
        let (bytes, rest) = self.rest.split_at_checked(size)?;
        self.rest = rest;
        Some(bytes)
    }

    /// Decodes the id of a type that a [`Packer`] encoded; `None` if the bytes are damaged. An id that the unpacked
    /// [`Types`] does not have leads to [`Type::Missing`] there.
    pub fn type_id(&mut self) -> Option<TypeId> {
        // as many as can be counted on from
        self.small().filter(|id| *id < 1 << 31).map(TypeId)
    }

    /// Decodes a table, encoded as its length and then that many entries, each decoded by a call of `each`; `None` if
    /// one fails, or if the length exceeds the bytes that are left.
    pub fn table<T>(&mut self, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count: usize = self.small()?;
        if count > self.rest.len() {
            return None;
        }
        // what is only claimed to be there gets no room
        let mut entries = Vec::with_capacity(count.min(ROOM));
        for _ in 0..count {
            entries.push(each(self)?);
        }
        Some(entries)
    }
}

/// The entries of a table that room is made for at once.
const ROOM: usize = 1 << 12;

/// Numbers of kinds, by their positions.
const POINTERS: [Pointer; 3] = [Pointer::Pointer, Pointer::Reference, Pointer::RvalueReference];
const QUALIFIERS: [Qualifier; 4] =
    [Qualifier::Const, Qualifier::Volatile, Qualifier::Restrict, Qualifier::Atomic];
const RECORDS: [RecordKind; 4] =
    [RecordKind::Struct, RecordKind::Class, RecordKind::Interface, RecordKind::Union];
const SCOPES: [DeclarationScope; 2] = [DeclarationScope::File, DeclarationScope::Inner];
const MEMBERS: [MemberKind; 4] =
    [MemberKind::Data, MemberKind::Base, MemberKind::VirtualBase, MemberKind::Static];
const ACCESSES: [Access; 3] = [Access::Public, Access::Protected, Access::Private];
const ORIGINS: [Origin; 2] = [Origin::Dwarf, Origin::Btf];

fn put<T: PartialEq>(out: &mut Packer, kinds: &[T], kind: &T) {
    out.number(kinds.iter().position(|one| one == kind).unwrap_or(kinds.len()) as u64);
}

fn take<T: Copy>(from: &mut Unpacker<'_>, kinds: &[T]) -> Option<T> {
    kinds.get(from.small::<usize>()?).copied()
}

impl Types {
    /// Encodes all types, with their names and tables (members, enumerators, …), into the byte buffer of a [`Packer`].
    pub fn pack(&self, out: &mut Packer) {
        put(out, &ORIGINS, &self.origin);
        out.number(self.target.machine.into());
        out.flag(self.target.big_endian);
        out.number(self.pointer_size.into());
        let names = &Numbers::of(self);
        let (of_section, others) = self.names.ids();
        out.number((names.of_section.len() + others.len()) as u64);
        of_section.chain(others.map(NameId)).for_each(|id| out.bytes(self.name(id)));
        table(out, &self.dimensions, |out, number| out.number(*number));
        table(out, &self.parameters, |out, parameter| {
            names.put(out, parameter.name);
            out.number(parameter.ty.0.into());
        });
        table(out, &self.enumerators, |out, item| {
            names.put(out, item.name);
            out.number(item.value);
        });
        table(out, &self.members, |out, member| pack_member(out, names, member));
        table(out, &self.variants, |out, variant| {
            names.put(out, variant.name);
            out.flag(variant.tag.is_some());
            if let Some(tag) = variant.tag {
                out.number(tag as u64);
                out.number((tag >> 64) as u64);
            }
            out.number(variant.ty.0.into());
            range(out, variant.members);
        });
        table(out, &self.arrays, |out, array| {
            out.number(array.of.0.into());
            range(out, array.dimensions);
            out.flag(array.vector);
        });
        table(out, &self.functions, |out, function| {
            out.number(function.returns.0.into());
            range(out, function.parameters);
            out.flag(function.variadic);
        });
        table(out, &self.enums, |out, item| {
            names.put(out, item.name);
            out.number(item.size);
            out.flag(item.signed);
            out.flag(item.declaration);
            range(out, item.enumerators);
            names.position(out, item.declared_at);
        });
        table(out, &self.records, |out, record| pack_record(out, names, record));
        table(out, &self.types, |out, ty| pack_type(out, names, *ty));
        let mut paths: Vec<_> = self.paths.iter().collect();
        paths.sort_unstable();
        table(out, &paths, |out, (id, name)| {
            out.number(id.0.into());
            names.put(out, **name);
        });
        let mut alignments: Vec<_> = self.alignments.iter().collect();
        alignments.sort_unstable();
        table(out, &alignments, |out, (id, align)| {
            out.number(id.0.into());
            out.number(**align);
        });
        table(out, &self.warnings, |out, line| out.bytes(line.as_bytes()));
        table(out, &self.listed, |out, id| out.number(id.0.into()));
        table(out, &self.sources, |out, source| {
            names.put(out, source.unit);
            out.number(source.entry);
            names.position(out, source.declared_at);
            out.number(source.definitions.into());
        });
    }

    /// Decodes types that [`pack`](Types::pack) encoded; `None` if the bytes are damaged. All ids are checked.
    pub fn unpack(from: &mut Unpacker<'_>) -> Option<Types> {
        let mut types = Types { origin: take(from, &ORIGINS)?, ..Types::default() };
        types.target = Target { machine: from.small()?, big_endian: from.flag()? };
        types.pointer_size = from.small()?;
        let names = from.table(|from| from.bytes())?;
        types.names.reserve(names.len(), names.iter().map(|name| name.len()).sum());
        for (index, name) in names.iter().enumerate() {
            // each once
            types.names.intern(name).filter(|id| id.index() == index + 1)?;
        }
        let names = Limit(u32::try_from(names.len()).ok()?);
        types.dimensions = from.table(|from| from.number())?;
        types.parameters = from.table(|from| Some(Parameter { name: names.name(from)?, ty: id(from)? }))?;
        types.enumerators =
            from.table(|from| Some(Enumerator { name: names.name(from)?, value: from.number()? }))?;
        types.members = from.table(|from| unpack_member(from, names))?;
        let members = types.members.len();
        types.variants = from.table(|from| unpack_variant(from, names, members))?;
        let dimensions = types.dimensions.len();
        types.arrays = from.table(|from| {
            Some(Array { of: id(from)?, dimensions: within(from, dimensions)?, vector: from.flag()? })
        })?;
        let parameters = types.parameters.len();
        types.functions = from.table(|from| {
            let (returns, parameters) = (id(from)?, within(from, parameters)?);
            Some(Function { returns, parameters, variadic: from.flag()? })
        })?;
        let enumerators = types.enumerators.len();
        types.enums = from.table(|from| {
            Some(Enum {
                name: names.name(from)?,
                size: from.number()?,
                signed: from.flag()?,
                declaration: from.flag()?,
                enumerators: within(from, enumerators)?,
                declared_at: names.position(from)?,
            })
        })?;
        let variants = types.variants.len();
        types.records = from.table(|from| unpack_record(from, names, members, variants))?;
        types.types = from.table(|from| unpack_type(from, names))?;
        types.paths = from.table(|from| Some((id(from)?, names.name(from)?)))?.into_iter().collect();
        types.alignments = from.table(|from| Some((id(from)?, from.number()?)))?.into_iter().collect();
        types.warnings = from.table(|from| String::from_utf8(from.bytes()?.to_vec()).ok())?;
        types.listed = from.table(id)?;
        types.sources = from.table(|from| {
            Some(TypeSource {
                unit: names.name(from)?,
                entry: from.number()?,
                declared_at: names.position(from)?,
                definitions: from.small()?,
            })
        })?;
        types.is_sound().then_some(types)
    }

    /// Returns `true` if the first type is void and the index of every other type is within its table.
    fn is_sound(&self) -> bool {
        let is_there = |ty: &Type| match ty {
            Type::Array(id) => id.index() < self.arrays.len(),
            Type::Function(id) => id.index() < self.functions.len(),
            Type::Record(id) => id.index() < self.records.len(),
            Type::Enum(id) => id.index() < self.enums.len(),
            _ => true,
        };
        self.types.first() == Some(&Type::Void) && self.types.iter().all(is_there)
    }
}

fn table<T>(out: &mut Packer, entries: &[T], mut each: impl FnMut(&mut Packer, &T)) {
    out.number(entries.len() as u64);
    entries.iter().for_each(|entry| each(out, entry));
}

fn range(out: &mut Packer, range: Range) {
    out.number(range.start.into());
    out.number(range.len() as u64);
}

/// Names by their positions among those that are written, from 1; 0 is none.
struct Numbers {
    // of a table that was taken over
    of_section: FxHashMap<NameId, u64>,
    // the first of the others, which are consecutive
    from: u32,
}

impl Numbers {
    fn of(types: &Types) -> Numbers {
        let (of_section, others) = types.names.ids();
        Numbers { of_section: of_section.zip(1..).collect(), from: others.start }
    }

    fn number(&self, name: NameId) -> u64 {
        match name.0.checked_sub(self.from) {
            Some(index) => self.of_section.len() as u64 + u64::from(index) + 1,
            None => self.of_section.get(&name).copied().unwrap_or(0),
        }
    }

    fn put(&self, out: &mut Packer, name: NameId) {
        out.number(self.number(name));
    }

    fn position(&self, out: &mut Packer, position: Position) {
        self.put(out, position.file);
        out.number(position.line.into());
    }
}

fn pack_member(out: &mut Packer, names: &Numbers, member: &Member) {
    names.put(out, member.name);
    out.number(member.ty.0.into());
    out.number(member.offset);
    // most follow from the offset
    out.number(member.bit_offset.wrapping_sub(member.offset.saturating_mul(8)));
    out.number(member.size);
    out.flag(member.bitfield.is_some());
    if let Some(bits) = member.bitfield {
        out.number(bits.offset.into());
        out.number(bits.size.into());
    }
    out.number(member.align);
    put(out, &MEMBERS, &member.kind);
    put(out, &ACCESSES, &member.access);
    out.flag(member.artificial);
    out.flag(member.overlaid);
    out.number(member.declared.into());
    names.position(out, member.declared_at);
}

fn pack_record(out: &mut Packer, names: &Numbers, record: &Record) {
    names.put(out, record.name);
    names.put(out, record.path);
    out.number(record.language.0.into());
    put(out, &RECORDS, &record.kind);
    put(out, &SCOPES, &record.scope);
    out.flag(record.declaration);
    out.number(record.size);
    out.flag(record.is_dynamic);
    out.number(record.align);
    range(out, record.members);
    range(out, record.variants);
    range(out, record.tag);
    out.flag(record.tag_signed);
    names.position(out, record.declared_at);
}

fn pack_type(out: &mut Packer, names: &Numbers, ty: Type) {
    let mut kind = |number: u64, parts: &[u64]| {
        out.number(number);
        parts.iter().for_each(|part| out.number(*part));
    };
    match ty {
        Type::Void => kind(0, &[]),
        Type::Missing => kind(1, &[]),
        Type::Base { name, bits } => kind(2, &[names.number(name), bits.into()]),
        Type::Pointer { kind: pointer, to } => {
            kind(3, &[]);
            put(out, &POINTERS, &pointer);
            out.number(to.0.into());
        }
        Type::MemberPointer { class, to } => kind(4, &[class.0.into(), to.0.into()]),
        Type::Qualified { qualifier, of } => {
            kind(5, &[]);
            put(out, &QUALIFIERS, &qualifier);
            out.number(of.0.into());
        }
        Type::Typedef { name, of } => kind(6, &[names.number(name), of.0.into()]),
        Type::Array(id) => kind(7, &[id.0.into()]),
        Type::Function(id) => kind(8, &[id.0.into()]),
        Type::Record(id) => kind(9, &[id.0.into()]),
        Type::Enum(id) => kind(10, &[id.0.into()]),
        Type::Annotated { of } => kind(11, &[of.0.into()]),
        Type::Text { length } => kind(12, &[length.into()]),
        Type::Opaque { name } => kind(13, &[names.number(name)]),
        Type::Descriptor { of, rank, bytes } => kind(14, &[of.0.into(), rank.into(), bytes.into()]),
    }
}

/// The number of names.
#[derive(Clone, Copy)]
struct Limit(u32);

impl Limit {
    fn name(self, from: &mut Unpacker<'_>) -> Option<NameId> {
        from.small().filter(|id| *id <= self.0).map(NameId)
    }

    fn position(self, from: &mut Unpacker<'_>) -> Option<Position> {
        Some(Position { file: self.name(from)?, line: from.small()? })
    }
}

fn id(from: &mut Unpacker<'_>) -> Option<TypeId> {
    from.type_id()
}

/// Reads a range of a table of so many entries.
fn within(from: &mut Unpacker<'_>, entries: usize) -> Option<Range> {
    let start: u32 = from.small()?;
    let end = start.checked_add(from.small()?)?;
    (end as usize <= entries).then_some(Range { start, end })
}

fn unpack_member(from: &mut Unpacker<'_>, names: Limit) -> Option<Member> {
    let (name, ty, offset) = (names.name(from)?, id(from)?, from.number()?);
    Some(Member {
        name,
        ty,
        offset,
        bit_offset: offset.saturating_mul(8).wrapping_add(from.number()?),
        size: from.number()?,
        bitfield: match from.flag()? {
            true => Some(Bitfield { offset: from.small()?, size: from.small()? }),
            false => None,
        },
        align: from.number()?,
        kind: take(from, &MEMBERS)?,
        access: take(from, &ACCESSES)?,
        artificial: from.flag()?,
        overlaid: from.flag()?,
        declared: from.small()?,
        declared_at: names.position(from)?,
    })
}

fn unpack_variant(from: &mut Unpacker<'_>, names: Limit, members: usize) -> Option<Variant> {
    let name = names.name(from)?;
    let tag = match from.flag()? {
        true => {
            let low = i128::from(from.number()?);
            Some(i128::from(from.number()?.cast_signed()) << 64 | low)
        }
        false => None,
    };
    Some(Variant { name, tag, ty: id(from)?, members: within(from, members)? })
}

fn unpack_record(from: &mut Unpacker<'_>, names: Limit, members: usize, variants: usize) -> Option<Record> {
    Some(Record {
        name: names.name(from)?,
        path: names.name(from)?,
        language: Language(from.small()?),
        kind: take(from, &RECORDS)?,
        scope: take(from, &SCOPES)?,
        declaration: from.flag()?,
        size: from.number()?,
        is_dynamic: from.flag()?,
        align: from.number()?,
        members: within(from, members)?,
        variants: within(from, variants)?,
        tag: within(from, members)?,
        tag_signed: from.flag()?,
        declared_at: names.position(from)?,
    })
}

fn unpack_type(from: &mut Unpacker<'_>, names: Limit) -> Option<Type> {
    Some(match from.number()? {
        0 => Type::Void,
        1 => Type::Missing,
        2 => Type::Base { name: names.name(from)?, bits: from.small()? },
        3 => Type::Pointer { kind: take(from, &POINTERS)?, to: id(from)? },
        4 => Type::MemberPointer { class: id(from)?, to: id(from)? },
        5 => Type::Qualified { qualifier: take(from, &QUALIFIERS)?, of: id(from)? },
        6 => Type::Typedef { name: names.name(from)?, of: id(from)? },
        7 => Type::Array(ArrayId(from.small()?)),
        8 => Type::Function(FunctionId(from.small()?)),
        9 => Type::Record(RecordId(from.small()?)),
        10 => Type::Enum(EnumId(from.small()?)),
        11 => Type::Annotated { of: id(from)? },
        12 => Type::Text { length: from.small()? },
        13 => Type::Opaque { name: names.name(from)? },
        14 => Type::Descriptor { of: id(from)?, rank: from.small()?, bytes: from.small()? },
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
