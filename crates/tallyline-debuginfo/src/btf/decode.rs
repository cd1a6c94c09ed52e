//! From entries to types.

use super::{Bytes, Header};
use crate::error::{Error, Result};
use crate::model::{
    Bitfield, Enum, Enumerator, Member, NameId, Origin, Parameter, Pointer, Position, Qualifier, Range,
    Record, RecordKind, Type, TypeId, Types, are_distinct,
};
use rustc_hash::FxHashMap;

/// The kinds of entries, by their numbers in the format.
pub(super) mod kind {
    pub(in crate::btf) const INT: u32 = 1;
    pub(in crate::btf) const PTR: u32 = 2;
    pub(in crate::btf) const ARRAY: u32 = 3;
    pub(in crate::btf) const STRUCT: u32 = 4;
    pub(in crate::btf) const UNION: u32 = 5;
    pub(in crate::btf) const ENUM: u32 = 6;
    pub(in crate::btf) const FWD: u32 = 7;
    pub(in crate::btf) const TYPEDEF: u32 = 8;
    pub(in crate::btf) const VOLATILE: u32 = 9;
    pub(in crate::btf) const CONST: u32 = 10;
    pub(in crate::btf) const RESTRICT: u32 = 11;
    pub(in crate::btf) const FUNC: u32 = 12;
    pub(in crate::btf) const FUNC_PROTO: u32 = 13;
    pub(in crate::btf) const VAR: u32 = 14;
    pub(in crate::btf) const DATASEC: u32 = 15;
    pub(in crate::btf) const FLOAT: u32 = 16;
    pub(in crate::btf) const DECL_TAG: u32 = 17;
    pub(in crate::btf) const TYPE_TAG: u32 = 18;
    pub(in crate::btf) const ENUM64: u32 = 19;
}

/// The start of every entry.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) name: u32,
    pub(super) kind: u32,
    count: usize,
    flag: bool,
    // a size or the id of a type, by kind
    pub(super) word: u32,
}

/// The way in which equal names are told apart.
#[derive(Debug)]
enum Naming {
    /// By its offset among the strings, of which no two are equal. What says so may find an offset
    /// that is not the start of a string.
    Offset { all_start: bool },
    /// By its text; these are the offsets that were met.
    Text(FxHashMap<u32, NameId>),
}

/// Decoder of the type section of a BTF blob into [`Types`].
pub(crate) struct Decoder<'a> {
    pub(super) bytes: Bytes<'a>,
    base_strings: &'a [u8],
    strings: &'a [u8],
    names: Naming,
}

impl<'a> Decoder<'a> {
    /// Creates a decoder of the type section that `header` describes. `base_strings` is the string table of the base
    /// BTF (empty without one), which string offsets count first.
    pub(crate) fn new(header: &Header<'a>, base_strings: &'a [u8]) -> Decoder<'a> {
        Decoder {
            bytes: Bytes::new(header.types, header.types_offset, header.big_endian),
            base_strings,
            strings: header.strings,
            names: Naming::Text(FxHashMap::default()),
        }
    }

    /// Decodes all types of the BTF and appends them to `types`, which holds those of the base BTF if there is one.
    pub(crate) fn decode(mut self, types: &mut Types) -> Result<()> {
        // names are of some 15 bytes, and nearly every string is one
        let names = self.strings.len() / 15;
        types.names.reserve(names, self.strings.len());
        self.names = Naming::Text(FxHashMap::with_capacity_and_hasher(names, Default::default()));
        self.entries(types)
    }

    /// Decodes all types of a BTF without a base, taking over its string table: name ids are offsets in it. Returns
    /// `None` if the table has equal strings or names that start within a string; then [`decode`](Self::decode) is
    /// needed.
    pub(crate) fn decode_by_offsets(mut self) -> Option<Result<Types>> {
        self.names = Naming::Offset { all_start: true };
        let strings = self.strings;
        if strings.last() != Some(&0) {
            return None;
        }
        let decoded = || {
            let mut types = Types::new(Origin::Btf, 8);
            let done = self.entries(&mut types);
            let all_start = matches!(self.names, Naming::Offset { all_start: true });
            types.names.take_section(strings.to_vec());
            all_start.then(|| done.map(|()| types))
        };
        let (distinct, types) = rayon::join(|| are_distinct(strings), decoded);
        types.filter(|_| distinct)
    }

    fn entries(&mut self, types: &mut Types) -> Result<()> {
        // a type takes 12 bytes at least, and most take 12 to 24
        types.types.reserve(self.bytes.remaining() / 20);
        while !self.bytes.is_empty() {
            let entry = self.entry()?;
            let ty = self.type_of(entry, types)?;
            types.push(ty)?;
        }
        Ok(())
    }

    /// Reads the start of the next entry.
    pub(super) fn entry(&mut self) -> Result<Entry> {
        let (name, info, word) = (self.bytes.u32()?, self.bytes.u32()?, self.bytes.u32()?);
        Ok(Entry {
            name,
            kind: info >> 24 & 0x1f,
            count: (info & 0xffff) as usize,
            flag: info >> 31 != 0,
            word,
        })
    }

    /// Reads the type of an entry whose start was read.
    pub(super) fn type_of(&mut self, entry: Entry, types: &mut Types) -> Result<Type> {
        let to = TypeId(entry.word);
        Ok(match entry.kind {
            kind::INT => self.integer(entry, types)?,
            kind::FLOAT => {
                Type::Base { name: self.name(entry.name, types)?, bits: entry.word.saturating_mul(8) }
            }
            kind::PTR => Type::Pointer { kind: Pointer::Pointer, to },
            kind::ARRAY => {
                let (of, _index, count) = (self.bytes.u32()?, self.bytes.u32()?, self.bytes.u32()?);
                Type::Array(types.push_array(TypeId(of), &[u64::from(count)], false)?)
            }
            kind::STRUCT => self.record(entry, RecordKind::Struct, types)?,
            kind::UNION => self.record(entry, RecordKind::Union, types)?,
            kind::FWD => self.declaration(entry, entry.flag, types)?,
            kind::ENUM | kind::ENUM64 => self.enumeration(entry, types)?,
            kind::TYPEDEF => Type::Typedef { name: self.name(entry.name, types)?, of: to },
            kind::VOLATILE => Type::Qualified { qualifier: Qualifier::Volatile, of: to },
            kind::CONST => Type::Qualified { qualifier: Qualifier::Const, of: to },
            kind::RESTRICT => Type::Qualified { qualifier: Qualifier::Restrict, of: to },
            kind::TYPE_TAG => Type::Annotated { of: to },
            kind::FUNC_PROTO => self.prototype(entry, types)?,
            // these take an id, but are no types
            kind::FUNC => Type::Missing,
            kind::VAR | kind::DECL_TAG => self.skipped(4)?,
            kind::DATASEC => self.skipped(12 * entry.count)?,
            unknown => self.unknown(unknown, types)?,
        })
    }

    /// Leaves out the rest of an entry whose start was read.
    pub(super) fn skip(&mut self, entry: Entry, types: &mut Types) -> Result<Type> {
        let each = match entry.kind {
            kind::INT | kind::VAR | kind::DECL_TAG => return self.skipped(4),
            kind::ARRAY => return self.skipped(12),
            kind::STRUCT | kind::UNION | kind::ENUM64 | kind::DATASEC => 12,
            kind::ENUM | kind::FUNC_PROTO => 8,
            kind::PTR | kind::FWD | kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT => 0,
            kind::FUNC | kind::FLOAT | kind::TYPE_TAG => 0,
            unknown => return self.unknown(unknown, types),
        };
        self.skipped(each * entry.count)
    }

    /// Returns `true` if the name at an offset of the string section is `name`.
    pub(super) fn is_called(&self, offset: u32, name: &[u8]) -> bool {
        let text = self.text(offset).and_then(|text| text.strip_prefix(name));
        text.is_some_and(|rest| rest.first() == Some(&0))
    }

    /// Returns the name at an offset among the strings; empty where there is none.
    pub(super) fn called(&self, offset: u32) -> &'a [u8] {
        let text = self.text(offset).unwrap_or_default();
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(0);
        &text[..end]
    }

    /// Returns the strings from an offset on.
    fn text(&self, offset: u32) -> Option<&'a [u8]> {
        match (offset as usize).checked_sub(self.base_strings.len()) {
            Some(start) => self.strings.get(start..),
            None => self.base_strings.get(offset as usize..),
        }
    }

    fn skipped(&mut self, bytes: usize) -> Result<Type> {
        self.bytes.skip(bytes)?;
        Ok(Type::Missing)
    }

    /// Skips an entry of a kind that is newer than this reader. Its length is unknown; that it is only its
    /// start is the one guess under which the entries that follow can be read.
    fn unknown(&mut self, kind: u32, types: &mut Types) -> Result<Type> {
        if kind == 0 {
            return Err(self.bytes.error("an entry of kind 0"));
        }
        types.warnings.push(format!("BTF type {}: kind {kind} is not known and was skipped", types.len()));
        Ok(Type::Missing)
    }

    fn integer(&mut self, entry: Entry, types: &mut Types) -> Result<Type> {
        let bits = self.bytes.u32()? & 0xff;
        Ok(Type::Base { name: self.name(entry.name, types)?, bits })
    }

    fn record(&mut self, entry: Entry, kind: RecordKind, types: &mut Types) -> Result<Type> {
        let start = types.members.len();
        for _ in 0..entry.count {
            let (name, ty, place) = (self.bytes.u32()?, self.bytes.u32()?, self.bytes.u32()?);
            let (bit_offset, bits) = if entry.flag { (place & 0xff_ffff, place >> 24) } else { (place, 0) };
            let name = self.name(name, types)?;
            types.members.push(Member {
                bit_offset: u64::from(bit_offset),
                bitfield: (bits != 0).then_some(Bitfield { offset: 0, size: bits }),
                ..Member::new(name, TypeId(ty), u64::from(bit_offset / 8))
            });
        }
        let range = Range::of(start, types.members.len())?;
        let record = self.bare_record(entry, kind, types)?;
        Ok(Type::Record(types.push_record(Record {
            members: range,
            size: u64::from(entry.word),
            declaration: false,
            ..record
        })?))
    }

    /// Adds a record of which only the name is known.
    pub(super) fn declaration(&mut self, entry: Entry, is_union: bool, types: &mut Types) -> Result<Type> {
        let kind = if is_union { RecordKind::Union } else { RecordKind::Struct };
        let record = self.bare_record(entry, kind, types)?;
        Ok(Type::Record(types.push_record(record)?))
    }

    fn bare_record(&mut self, entry: Entry, kind: RecordKind, types: &mut Types) -> Result<Record> {
        Ok(Record { declaration: true, ..Record::new(kind, self.name(entry.name, types)?, 0) })
    }

    fn enumeration(&mut self, entry: Entry, types: &mut Types) -> Result<Type> {
        let start = types.enumerators.len();
        for _ in 0..entry.count {
            let name = self.bytes.u32()?;
            let low = self.bytes.u32()?;
            let value = match (entry.kind, entry.flag) {
                (kind::ENUM64, _) => u64::from(self.bytes.u32()?) << 32 | u64::from(low),
                (_, true) => i64::from(low as i32) as u64,
                (_, false) => u64::from(low),
            };
            let name = self.name(name, types)?;
            types.enumerators.push(Enumerator { name, value });
        }
        let enumerators = Range::of(start, types.enumerators.len())?;
        let name = self.name(entry.name, types)?;
        Ok(Type::Enum(types.push_enum(Enum {
            name,
            size: if entry.word == 0 { 4 } else { u64::from(entry.word) },
            signed: entry.flag,
            declaration: false,
            enumerators,
            declared_at: Position::default(),
        })?))
    }

    fn prototype(&mut self, entry: Entry, types: &mut Types) -> Result<Type> {
        let start = types.parameters.len();
        let mut variadic = false;
        for _ in 0..entry.count {
            let (name, ty) = (self.bytes.u32()?, self.bytes.u32()?);
            if ty == 0 {
                variadic = true;
            } else {
                let name = self.name(name, types)?;
                types.parameters.push(Parameter { name, ty: TypeId(ty) });
            }
        }
        let parameters = Range::of(start, types.parameters.len())?;
        Ok(Type::Function(types.push_function_of(TypeId(entry.word), parameters, variadic)?))
    }

    /// Returns the name at an offset among the strings; offset 0 is no name.
    fn name(&mut self, offset: u32, types: &mut Types) -> Result<NameId> {
        if offset == 0 {
            return Ok(NameId::NONE);
        }
        let known = match &mut self.names {
            Naming::Offset { all_start } => {
                let Some(before) = self.strings.get(offset as usize - 1..offset as usize + 1) else {
                    return Err(self.beyond());
                };
                *all_start &= before[0] == 0;
                return Ok(NameId(offset));
            }
            Naming::Text(known) => known,
        };
        if let Some(name) = known.get(&offset) {
            return Ok(*name);
        }
        let rest = self.text(offset).unwrap_or(&[]);
        let Some(end) = memchr::memchr(0, rest) else { return Err(self.beyond()) };
        let name = types.intern(&rest[..end])?;
        if let Naming::Text(known) = &mut self.names {
            known.insert(offset, name);
        }
        Ok(name)
    }

    fn beyond(&self) -> Error {
        self.bytes.error("a name beyond the end of the strings")
    }
}
