//! The second pass: types of the entries that were found, and of what they need.

mod array;
mod definitions;
mod member;
mod position;
mod variant;

use crate::dwarf::definitions::{Definitions, Names};
use crate::dwarf::entry::{Entries, Entry, Interest, Step};
use crate::dwarf::found::FoundDie;
use crate::dwarf::offset::GlobalDieOffset;
use crate::dwarf::position::Paths;
use crate::dwarf::tags::is_record;
use crate::dwarf::units::{Context, Units};
use crate::dwarf::variant as variants;
use crate::dwarf::{damaged, finish};
use crate::error::{Error, Result};
use crate::model::{
    DeclarationScope, Enum, Enumerator, Language, Member, NameId, Origin, Parameter, Pointer, Qualifier,
    Record, RecordKind, Type, TypeId, Types,
};
use crate::{PointerTargets, Request};
use gimli::constants::{self, DwAt, DwTag};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The part of a type that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::dwarf) enum Need {
    /// The name of the type, for types that only point to it.
    Name,
    /// The size of the type, for types that contain it, if nothing else of it is asked for.
    Size,
    /// The layout of the type.
    Layout,
}

/// A type that has an id, and may still have to be read.
struct QueuedType {
    id: TypeId,
    need: Need,
}

/// Contexts of units that were read last; entries of one unit mostly refer to each other.
const CONTEXTS: usize = 8;

/// The number of bytes that a skipped DIE counts: at most as many as DIEs have.
const BYTES_AN_ENTRY: usize = 16;

/// A worker's loader of types, with those that it has read so far.
pub(in crate::dwarf) struct Loader<'u, 'a> {
    pub(in crate::dwarf) units: &'u Units<'a>,
    pub(in crate::dwarf) types: Types,
    known: FxHashMap<GlobalDieOffset, QueuedType>,
    // where the types are, by id
    by_id: Vec<GlobalDieOffset>,
    pending: VecDeque<GlobalDieOffset>,
    contexts: VecDeque<(usize, Context)>,
    // entries that may still be read: a damaged file can have the same ones read again and again
    budget: usize,
    pub(in crate::dwarf) members: Vec<Member>,
    // records that were read and are not completed, and how many members are
    unfinished: Vec<usize>,
    finished_members: usize,
    // none where positions are not wanted
    pub(in crate::dwarf) paths: Option<Paths<'a>>,
    pointer_targets: PointerTargets,
    // whether of what types are made of only the size is read
    shallow: bool,
    // where classes are defined that units only declare; none before it is known that there are any
    pub(in crate::dwarf) definitions: Option<&'u Definitions>,
    // or that they are looked for later: the types that are only declared so far, and where
    later: bool,
    wanted: Vec<(TypeId, GlobalDieOffset)>,
    pub(in crate::dwarf) names: Names,
}

/// The definitions of classes that a unit only declares.
#[derive(Clone, Copy)]
pub(in crate::dwarf) enum Classes<'u> {
    /// Definitions in the same unit only; the need of others is noted.
    OfTheirUnits,
    /// The DIEs that define the classes.
    Defined(&'u Definitions),
    /// Definitions whose sizes come later: types that need them are left unfinished.
    Later,
}

/// Types that were read.
pub(in crate::dwarf) struct Loaded {
    pub(in crate::dwarf) types: Types,
    /// The records that are not completed, as they need what is wanted.
    pub(in crate::dwarf) records: Vec<usize>,
    /// The classes that are only declared, and where.
    pub(in crate::dwarf) wanted: Vec<(TypeId, GlobalDieOffset)>,
}

/// The number that an enumeration or a record of bits is based on.
pub(in crate::dwarf) struct Underlying {
    pub(in crate::dwarf) size: u64,
    pub(in crate::dwarf) bits: u64,
    signed: bool,
}

/// An entry that is being read, with its children ahead.
pub(in crate::dwarf) struct Cursor<'c, 'u, 'a> {
    pub(in crate::dwarf) unit: usize,
    pub(in crate::dwarf) context: &'c Context,
    pub(in crate::dwarf) entries: Entries<'c, 'a>,
    pub(in crate::dwarf) entry: Entry<'a>,
    pub(in crate::dwarf) place: GlobalDieOffset,
    marker: std::marker::PhantomData<&'u ()>,
}

impl<'u, 'a> Loader<'u, 'a> {
    /// Creates a worker without types.
    pub(in crate::dwarf) fn new(units: &'u Units<'a>, request: &Request) -> Loader<'u, 'a> {
        Loader {
            units,
            types: Types::new(Origin::Dwarf, units.pointer_size()),
            known: FxHashMap::default(),
            by_id: Vec::new(),
            pending: VecDeque::new(),
            contexts: VecDeque::new(),
            budget: units.total_bytes().saturating_mul(2).saturating_add(1000),
            members: Vec::new(),
            unfinished: Vec::new(),
            finished_members: 0,
            paths: request.positions.then(Paths::default),
            pointer_targets: request.pointer_targets,
            shallow: request.shallow,
            definitions: None,
            later: false,
            wanted: Vec::new(),
            names: Names::default(),
        }
    }

    /// Sets the definitions of classes.
    pub(in crate::dwarf) fn with(self, classes: Classes<'u>) -> Loader<'u, 'a> {
        match classes {
            Classes::OfTheirUnits => self,
            Classes::Defined(definitions) => Loader { definitions: Some(definitions), ..self },
            Classes::Later => Loader { later: true, ..self },
        }
    }

    /// Reads the types that were found, and what they need.
    pub(in crate::dwarf) fn load(mut self, found: &[FoundDie]) -> Result<Loaded> {
        for found in found {
            let id = self.refer(Some(found.place), Need::Layout)?;
            self.types.listed.push(id);
            self.note_source(found)?;
            if found.alias.is_some() {
                self.refer(found.alias, Need::Layout)?;
            }
            self.drain()?;
            if let Some(path) = &found.path {
                let path = self.types.intern(path)?;
                self.types.set_path(id, path);
            }
            if !found.top_level
                && let Type::Record(record) = self.types.get(id)
            {
                self.types.records[record.index()].scope = DeclarationScope::Inner;
            }
        }
        if self.wanted.is_empty() {
            self.finish();
        }
        Ok(Loaded { types: self.types, records: self.unfinished, wanted: self.wanted })
    }

    /// Completes the records that were read since it was last called.
    pub(in crate::dwarf) fn finish(&mut self) {
        let records = std::mem::take(&mut self.unfinished);
        finish::finish(&mut self.types, self.finished_members, &records, self.units.little_endian);
        variants::finish(&mut self.types, &records);
        self.finished_members = self.types.members.len();
    }

    /// Returns the id of the type at an offset, which is read later; void if there is no offset.
    pub(in crate::dwarf) fn refer(&mut self, place: Option<GlobalDieOffset>, need: Need) -> Result<TypeId> {
        let Some(place) = place else { return Ok(TypeId::VOID) };
        if let Some(known) = self.known.get_mut(&place) {
            if known.need < need {
                known.need = need;
                self.pending.push_back(place);
            }
            return Ok(known.id);
        }
        let id = self.types.push(Type::Missing)?;
        self.by_id.resize(id.index(), GlobalDieOffset::MISSING);
        self.by_id.push(place);
        // what is in a file that is not there stays missing, whatever is needed of it
        let is_there = place != GlobalDieOffset::MISSING;
        self.known.insert(place, QueuedType { id, need: if is_there { need } else { Need::Layout } });
        if is_there {
            self.pending.push_back(place);
        }
        Ok(id)
    }

    /// Returns the DIE of a type; none for types that the reader made, and in a file that is missing.
    pub(in crate::dwarf) fn place_of(&self, id: TypeId) -> Option<GlobalDieOffset> {
        self.by_id.get(id.index()).copied().filter(|place| *place != GlobalDieOffset::MISSING)
    }

    /// Counts entries that are read.
    pub(in crate::dwarf) fn spend(&mut self, entries: usize) -> Result<()> {
        self.budget = self.budget.checked_sub(entries).ok_or(Error::Limit {
            what: "entries read again and again",
            limit: self.units.total_bytes() as u64 * 2,
        })?;
        Ok(())
    }

    pub(in crate::dwarf) fn drain(&mut self) -> Result<()> {
        while let Some(place) = self.pending.pop_front() {
            let Some(&QueuedType { id, need }) = self.known.get(&place) else { continue };
            self.read(place, id, need)?;
        }
        Ok(())
    }

    pub(in crate::dwarf) fn context(&mut self, unit: usize) -> Result<Context> {
        if let Some((_, context)) = self.contexts.iter().find(|(index, _)| *index == unit) {
            return Ok(context.clone());
        }
        let context = self.units.context(unit)?;
        self.contexts.push_front((unit, context.clone()));
        self.contexts.truncate(CONTEXTS);
        Ok(context)
    }

    fn read(&mut self, place: GlobalDieOffset, id: TypeId, need: Need) -> Result<()> {
        self.read_at(place, id, need, false)
    }

    /// Reads an entry, or where it only declares a class the definition. `is_found` says that this is
    /// the definition.
    fn read_at(&mut self, place: GlobalDieOffset, id: TypeId, need: Need, is_found: bool) -> Result<()> {
        let unit =
            self.units.index_of(place).ok_or_else(|| damaged(place.0, "a reference beyond every unit"))?;
        let context = self.context(unit)?;
        let mut entries = Entries::at(self.units, unit, &context, place)?;
        let mut entry = Entry::default();
        self.spend(1)?;
        if entries.is_empty() || !entries.read(&mut entry)? {
            return Err(damaged(place.0, "a reference to no entry"));
        }
        if need == Need::Layout
            && context.is_cpp()
            && is_record(entry.tag)
            && entry.flag(constants::DW_AT_declaration)
            && !is_found
        {
            if self.later {
                self.wanted.push((id, place));
            } else if let Some(there) = self.defined_elsewhere(unit, place)? {
                return self.read_at(there, id, need, true);
            }
        }
        let marker = std::marker::PhantomData;
        let mut cursor = Cursor { unit, context: &context, entries, entry, place, marker };
        // a record keeps its own
        let align = cursor.entry.number(constants::DW_AT_alignment).filter(|align| *align != 0);
        let ty = self.type_of(&mut cursor, id, need)?;
        if let (Some(align), false) = (align, matches!(ty, Type::Record(_))) {
            self.types.alignments.insert(id, align);
        }
        self.types.types[id.index()] = ty;
        Ok(())
    }

    fn type_of(&mut self, cursor: &mut Cursor<'_, '_, 'a>, id: TypeId, need: Need) -> Result<Type> {
        use constants as c;
        Ok(match cursor.entry.tag {
            c::DW_TAG_base_type => self.base(cursor, need)?,
            c::DW_TAG_pointer_type => self.pointer(cursor, Pointer::Pointer)?,
            c::DW_TAG_reference_type => self.pointer(cursor, Pointer::Reference)?,
            c::DW_TAG_rvalue_reference_type => self.pointer(cursor, Pointer::RvalueReference)?,
            c::DW_TAG_ptr_to_member_type => Type::MemberPointer {
                class: self.refer_by(cursor, c::DW_AT_containing_type, Need::Name)?,
                to: self.refer_by(cursor, c::DW_AT_type, Need::Name)?,
            },
            c::DW_TAG_const_type => self.qualified(cursor, Qualifier::Const, need)?,
            c::DW_TAG_volatile_type => self.qualified(cursor, Qualifier::Volatile, need)?,
            c::DW_TAG_restrict_type => self.qualified(cursor, Qualifier::Restrict, need)?,
            c::DW_TAG_atomic_type => self.qualified(cursor, Qualifier::Atomic, need)?,
            c::DW_TAG_typedef | c::DW_TAG_template_alias => {
                let name = self.name_for(cursor, need)?;
                let of = match need {
                    _ if self.pointer_targets > PointerTargets::Names => {
                        self.refer_by(cursor, c::DW_AT_type, Need::Layout)?
                    }
                    Need::Layout | Need::Size => self.refer_by(cursor, c::DW_AT_type, need)?,
                    Need::Name => TypeId::VOID,
                };
                Type::Typedef { name, of }
            }
            // ranges and the like are laid out as what they are based on
            c::DW_TAG_subrange_type => self.range(cursor, need)?,
            c::DW_TAG_packed_type | c::DW_TAG_shared_type | c::DW_TAG_immutable_type => {
                Type::Annotated { of: self.refer_by(cursor, c::DW_AT_type, need)? }
            }
            c::DW_TAG_array_type => self.array(cursor, need)?,
            c::DW_TAG_subroutine_type | c::DW_TAG_subprogram => self.function(cursor)?,
            c::DW_TAG_structure_type => self.record(cursor, RecordKind::Struct, id, need)?,
            c::DW_TAG_class_type => self.record(cursor, RecordKind::Class, id, need)?,
            c::DW_TAG_interface_type => self.record(cursor, RecordKind::Interface, id, need)?,
            c::DW_TAG_union_type => self.record(cursor, RecordKind::Union, id, need)?,
            c::DW_TAG_enumeration_type => self.enumeration(cursor, id, need)?,
            c::DW_TAG_unspecified_type => Type::Opaque { name: self.name(cursor)? },
            c::DW_TAG_string_type => {
                let length = cursor.entry.number(c::DW_AT_byte_size).unwrap_or(1);
                Type::Text { length: u32::try_from(length).unwrap_or(u32::MAX).max(1) }
            }
            _ => Type::Missing,
        })
    }

    /// Returns the name of the entry; none for the anonymous.
    pub(in crate::dwarf) fn name(&mut self, cursor: &Cursor<'_, '_, 'a>) -> Result<NameId> {
        let name = cursor.entry.string(self.units, cursor.unit, cursor.context, constants::DW_AT_name);
        name.map_or(Ok(NameId::NONE), |name| self.types.intern(name))
    }

    /// Returns the name of the entry, if more than its size is needed.
    fn name_for(&mut self, cursor: &Cursor<'_, '_, 'a>, need: Need) -> Result<NameId> {
        if need == Need::Size { Ok(NameId::NONE) } else { self.name(cursor) }
    }

    /// Returns `true` if the types in this unit need only the sizes of those that they contain: in C and Rust, if the
    /// request is shallow. In other languages a type's layout depends on the contents of its members.
    fn is_shallow(&self, cursor: &Cursor<'_, '_, 'a>) -> bool {
        let language = cursor.context.language();
        self.shallow && (language.is_rust() || language.is_c())
    }

    /// Returns the part that is needed of the type of a member.
    pub(in crate::dwarf) fn need_of_part(&self, cursor: &Cursor<'_, '_, 'a>) -> Need {
        if self.is_shallow(cursor) { Need::Size } else { Need::Layout }
    }

    /// Returns the type that an attribute of the entry refers to.
    pub(in crate::dwarf) fn refer_by(
        &mut self,
        cursor: &Cursor<'_, '_, 'a>,
        name: DwAt,
        need: Need,
    ) -> Result<TypeId> {
        let place = self.target_of(cursor, name)?;
        self.refer(place, need)
    }

    /// Returns the DIE that an attribute of the entry refers to; of a type with a unit of its own, the one in there.
    pub(in crate::dwarf) fn target_of(
        &mut self,
        cursor: &Cursor<'_, '_, 'a>,
        name: DwAt,
    ) -> Result<Option<GlobalDieOffset>> {
        match cursor.entry.target(self.units, cursor.unit, name) {
            Some(place) if self.units.has_type_units() => Ok(Some(self.definition(place)?)),
            place => Ok(place),
        }
    }

    /// Returns the definition of a type that may be declared here and defined in a unit of its own.
    pub(in crate::dwarf) fn definition(&mut self, place: GlobalDieOffset) -> Result<GlobalDieOffset> {
        if self.known.contains_key(&place) {
            return Ok(place);
        }
        let Some(unit) = self.units.index_of(place) else { return Ok(place) };
        let context = self.context(unit)?;
        let mut entry = Entry::default();
        Entries::at(self.units, unit, &context, place)?.read(&mut entry)?;
        Ok(entry.target(self.units, unit, constants::DW_AT_signature).unwrap_or(place))
    }

    fn base(&mut self, cursor: &Cursor<'_, '_, 'a>, need: Need) -> Result<Type> {
        let bytes = cursor.entry.number(constants::DW_AT_byte_size).unwrap_or(0);
        let name = match self.complex(cursor, bytes) {
            Some(name) if need != Need::Size => self.types.intern(&name)?,
            _ => self.name_for(cursor, need)?,
        };
        Ok(Type::Base { name, bits: u32::try_from(bytes.saturating_mul(8)).unwrap_or(0) })
    }

    /// Returns how C spells a complex number: gcc calls it `complex float`, which is a macro's name, and
    /// clang `complex`, whatever it is made of.
    fn complex(&self, cursor: &Cursor<'_, '_, 'a>, bytes: u64) -> Option<Vec<u8>> {
        let language = cursor.context.language();
        let encoding = cursor.entry.number(constants::DW_AT_encoding)?;
        let is_float = encoding == u64::from(constants::DW_ATE_complex_float.0);
        // of integers, which DWARF has no code for
        if !(language.is_c() || language.is_cpp())
            || !is_float && encoding != u64::from(constants::DW_ATE_lo_user.0)
        {
            return None;
        }
        let name = cursor.entry.string(self.units, cursor.unit, cursor.context, constants::DW_AT_name)?;
        match name.strip_prefix(b"complex") {
            Some(part @ [b' ', ..]) => return Some([b"_Complex", part].concat()),
            Some(b"") => {}
            _ if name == b"__unknown__" => {}
            _ => return None,
        }
        let part: &[u8] = match (is_float, bytes) {
            (true, 4) => b"_Float16",
            (true, 8) => b"float",
            (true, 16) => b"double",
            (true, 20 | 24 | 32) => b"long double",
            (false, 2) => b"char",
            (false, 4) => b"short",
            (false, 8) => b"int",
            (false, 16) => b"long long",
            _ => return None,
        };
        Some([b"_Complex ", part].concat())
    }

    fn pointer(&mut self, cursor: &Cursor<'_, '_, 'a>, kind: Pointer) -> Result<Type> {
        if self.is_shallow(cursor) {
            return Ok(Type::Pointer { kind, to: TypeId::VOID });
        }
        let is_complete = self.pointer_targets == PointerTargets::Contents;
        let need = if is_complete { Need::Layout } else { Need::Name };
        Ok(Type::Pointer { kind, to: self.refer_by(cursor, constants::DW_AT_type, need)? })
    }

    fn qualified(&mut self, cursor: &Cursor<'_, '_, 'a>, qualifier: Qualifier, need: Need) -> Result<Type> {
        Ok(Type::Qualified { qualifier, of: self.refer_by(cursor, constants::DW_AT_type, need)? })
    }

    fn function(&mut self, cursor: &mut Cursor<'_, '_, 'a>) -> Result<Type> {
        let mut parameters = Vec::new();
        if self.is_shallow(cursor) {
            return Ok(Type::Function(self.types.push_function(TypeId::VOID, &parameters, false)?));
        }
        let returns = self.refer_by(cursor, constants::DW_AT_type, Need::Name)?;
        let mut variadic = false;
        let tags = [constants::DW_TAG_formal_parameter, constants::DW_TAG_unspecified_parameters];
        self.children(cursor, &tags, |loader, child| {
            match child.entry.tag {
                constants::DW_TAG_formal_parameter => parameters.push(Parameter {
                    name: loader.name(child)?,
                    ty: loader.refer_by(child, constants::DW_AT_type, Need::Name)?,
                }),
                constants::DW_TAG_unspecified_parameters => variadic = true,
                _ => {}
            }
            Ok(())
        })?;
        Ok(Type::Function(self.types.push_function(returns, &parameters, variadic)?))
    }

    fn enumeration(&mut self, cursor: &mut Cursor<'_, '_, 'a>, id: TypeId, need: Need) -> Result<Type> {
        let name = self.name_for(cursor, need)?;
        let size = match cursor.entry.number(constants::DW_AT_byte_size).filter(|size| *size != 0) {
            Some(size) => size,
            None => self.underlying(cursor)?.map_or(4, |under| under.size),
        };
        let declaration = cursor.entry.flag(constants::DW_AT_declaration);
        let signed = self.is_signed(cursor)?;
        let declared_at = self.position(cursor)?;
        let mut items = Vec::new();
        // an anonymous one is printed where it is used
        let is_shown = need == Need::Layout || need == Need::Name && !name.is_some();
        if is_shown || self.pointer_targets > PointerTargets::Names {
            self.children(cursor, &[constants::DW_TAG_enumerator], |loader, child| {
                let name = loader.name(child)?;
                let value = child.entry.number(constants::DW_AT_const_value).unwrap_or(0);
                items.push(Enumerator { name, value });
                Ok(())
            })?;
        }
        let enumerators = self.types.push_enumerators(&items)?;
        let item = Enum { name, size, signed, declaration, enumerators, declared_at };
        if let Type::Enum(known) = self.types.get(id) {
            self.types.enums[known.index()] = item;
            return Ok(Type::Enum(known));
        }
        Ok(Type::Enum(self.types.push_enum(item)?))
    }

    /// Returns `true` if the type that an enumeration is based on is signed.
    pub(in crate::dwarf) fn is_signed(&mut self, cursor: &Cursor<'_, '_, 'a>) -> Result<bool> {
        Ok(self.underlying(cursor)?.is_some_and(|under| under.signed))
    }

    /// Returns the number that a type is based on; `None` if it is not based on any.
    pub(in crate::dwarf) fn underlying(&mut self, cursor: &Cursor<'_, '_, 'a>) -> Result<Option<Underlying>> {
        let Some(place) = cursor.entry.target(self.units, cursor.unit, constants::DW_AT_type) else {
            return Ok(None);
        };
        let Some(unit) = self.units.index_of(place) else { return Ok(None) };
        let context = self.context(unit)?;
        let mut entry = Entry::default();
        self.spend(1)?;
        let mut entries = Entries::at(self.units, unit, &context, place)?;
        if entries.is_empty() || !entries.read(&mut entry)? {
            return Ok(None);
        }
        let encoding = entry.number(constants::DW_AT_encoding).unwrap_or(0);
        let is = |signed: constants::DwAte| encoding == u64::from(signed.0);
        let Some(size) = entry.number(constants::DW_AT_byte_size).filter(|size| *size != 0) else {
            return Ok(None);
        };
        Ok(Some(Underlying {
            size,
            bits: entry.number(constants::DW_AT_bit_size).unwrap_or(size.saturating_mul(8)),
            signed: is(constants::DW_ATE_signed) || is(constants::DW_ATE_signed_char),
        }))
    }

    /// Goes over the entries of some tags directly below the one that was read.
    pub(in crate::dwarf) fn children(
        &mut self,
        cursor: &mut Cursor<'_, '_, 'a>,
        tags: &[DwTag],
        mut each: impl FnMut(&mut Self, &mut Cursor<'_, '_, 'a>) -> Result<()>,
    ) -> Result<()> {
        if !cursor.entry.has_children {
            return Ok(());
        }
        let depth = cursor.entries.depth();
        while !cursor.entries.is_empty() && cursor.entries.depth() >= depth {
            let below = cursor.entries.depth() > depth;
            cursor.place = cursor.entries.place();
            let interest = |tag| match tags.contains(&tag) {
                _ if below => Interest::Inside,
                true => Interest::Read,
                false => Interest::Leave,
            };
            let step = cursor.entries.read_as(&mut cursor.entry, interest)?;
            self.spend(1 + (cursor.entries.place().0 - cursor.place.0) / BYTES_AN_ENTRY)?;
            if step == Step::Wanted {
                each(self, cursor)?;
            }
        }
        Ok(())
    }

    fn record(
        &mut self,
        cursor: &mut Cursor<'_, '_, 'a>,
        kind: RecordKind,
        id: TypeId,
        need: Need,
    ) -> Result<Type> {
        // without a size its own, it has to be found
        let has_size = cursor.entry.has(constants::DW_AT_byte_size);
        let need = if need == Need::Size && !has_size { Need::Layout } else { need };
        let name = if need == Need::Size { NameId::NONE } else { self.record_name(cursor)? };
        let mut record = Record {
            language: Language(cursor.context.language as u16),
            declaration: true,
            align: cursor.entry.number(constants::DW_AT_alignment).unwrap_or(0),
            // an expression that needs the object
            is_dynamic: has_size && cursor.entry.number(constants::DW_AT_byte_size).is_none(),
            declared_at: self.position(cursor)?,
            ..Record::new(kind, name, cursor.entry.number(constants::DW_AT_byte_size).unwrap_or(0))
        };
        // Zig leaves padding out
        if record.language.notes_alignment() {
            record.size = record.size.checked_next_multiple_of(record.align.max(1)).unwrap_or(record.size);
        }
        // an anonymous one is printed where it is used
        if need == Need::Layout || need == Need::Name && !name.is_some() {
            record.declaration = cursor.entry.flag(constants::DW_AT_declaration);
            self.record_members(cursor, &mut record)?;
        }
        let known = match self.types.get(id) {
            Type::Record(known) => {
                self.types.records[known.index()] = record;
                known
            }
            _ => self.types.push_record(record)?,
        };
        self.unfinished.push(known.index());
        Ok(Type::Record(known))
    }

    /// Returns the name of a record, which may stand where it is declared.
    fn record_name(&mut self, cursor: &Cursor<'_, '_, 'a>) -> Result<NameId> {
        let name = self.name(cursor)?;
        if name.is_some() {
            return Ok(name);
        }
        let declared = cursor.entry.target(self.units, cursor.unit, constants::DW_AT_specification);
        let Some(place) = declared.filter(|place| *place != cursor.place) else { return Ok(name) };
        let Some(unit) = self.units.index_of(place) else { return Ok(name) };
        let context = self.context(unit)?;
        let mut entry = Entry::default();
        self.spend(1)?;
        let mut entries = Entries::at(self.units, unit, &context, place)?;
        if entries.is_empty() || !entries.read(&mut entry)? {
            return Ok(name);
        }
        let name = entry.string(self.units, unit, &context, constants::DW_AT_name);
        name.map_or(Ok(NameId::NONE), |name| self.types.intern(name))
    }
}
