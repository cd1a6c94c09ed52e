//! The units of a file and of its companions: where they are, and what their entries need to be read.

use super::abbreviations::Abbreviations;
use super::lists::LocationListSection;
use super::offset::GlobalDieOffset;
use super::on_demand::{OnDemand, Slots};
use super::source::{Role, UnitSections};
use super::unit::Unit;
use super::{Slice, damaged};
use crate::error::{Error, Result};
use crate::model::Language;
use gimli::{
    AttributeValue, DebugAbbrevOffset, DebugStrOffsetsBase, DwarfFileType, Reader, Section, UnitHeader,
    UnitType,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::hash::Hasher;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Every unit of a file and of its companions, by place.
pub(super) struct Units<'a> {
    sources: Vec<UnitSections<'a>>,
    units: Vec<Unit<'a>>,
    // the units that types are looked for in, in the order of the file that is read
    order: Vec<usize>,
    // of type units: where the type is
    signatures: FxHashMap<u64, GlobalDieOffset>,
    // of partial units: the first units that import them
    importers: FxHashMap<usize, Importer>,
    pub(super) little_endian: bool,
    // whether a class was needed that its unit only declares
    undefined: AtomicBool,
    // whether equal strings of `.debug_str` are one string
    merged: bool,
    // the first units, where they are read when they are asked for
    slots: Option<Slots<'a>>,
    // the file's lists of places, where they are not in its sections
    lists: Option<&'a LocationListSection<'a>>,
    // of a choice of a file's units: the places in others that were asked for
    missing: Option<Mutex<BTreeSet<GlobalDieOffset>>>,
}

/// The unit that a partial unit belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Importer {
    pub(super) unit: usize,
    pub(super) language: u64,
}

/// The context in which the DIEs of one unit are read.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) abbreviations: Arc<Abbreviations>,
    pub(super) strings_base: DebugStrOffsetsBase<usize>,
    pub(super) language: u64,
    /// The offset of the compiler's name in `.debug_str`, if it is there.
    pub(super) producer: Option<usize>,
}

impl Context {
    /// Returns the unit's language.
    pub(super) fn language(&self) -> Language {
        Language(u16::try_from(self.language).unwrap_or(0))
    }

    /// Returns `true` if types are declared in scopes in the unit's language.
    pub(super) fn has_scopes(&self) -> bool {
        self.language().has_scopes()
    }

    /// Returns `true` if the unit's language is C++.
    pub(super) fn is_cpp(&self) -> bool {
        self.language().is_cpp()
    }
}

impl<'a> Units<'a> {
    /// Finds the units of a file; their entries are not looked at.
    pub(super) fn index(source: UnitSections<'a>, little_endian: bool) -> Result<Units<'a>> {
        let mut units = Units {
            sources: Vec::new(),
            units: Vec::new(),
            order: Vec::new(),
            signatures: FxHashMap::default(),
            importers: FxHashMap::default(),
            little_endian,
            undefined: AtomicBool::new(false),
            merged: false,
            slots: None,
            lists: None,
            missing: None,
        };
        units.order = units.add(source)?.collect();
        Ok(units)
    }

    /// Indexes some of the units of a file, in its order; places in others are noted when asked for.
    pub(super) fn choice(
        windows: impl IntoIterator<Item = UnitSections<'a>>,
        little_endian: bool,
    ) -> Result<Option<Units<'a>>> {
        let mut windows = windows.into_iter();
        let Some(first) = windows.next() else { return Ok(None) };
        let mut units = Units::index(first, little_endian)?;
        for window in windows {
            let added = units.add(window)?;
            units.order.extend(added);
        }
        units.missing = Some(Mutex::default());
        Ok(Some(units))
    }

    /// Returns the units of a file whose section is not in `source` but read as they are asked for.
    pub(super) fn on_demand(
        source: UnitSections<'a>,
        there: &'a OnDemand<'a>,
        little_endian: bool,
    ) -> Result<Units<'a>> {
        let mut units = Units::index(source, little_endian)?;
        for (index, stub) in there.stubs().iter().enumerate() {
            let header = there.head(index).ok_or_else(|| damaged(stub.start, "a unit that has gone"))?;
            units.push(header, 0);
            if let Some(unit) = units.units.last_mut() {
                unit.size = stub.size;
            }
        }
        units.order = (0..units.units.len()).collect();
        units.slots = Some(Slots::new(there));
        Ok(units)
    }

    /// Says that the lists of places of the first file are not in its sections.
    pub(super) fn set_lists(&mut self, lists: Option<&'a LocationListSection<'a>>) {
        self.lists = lists;
    }

    /// Returns the lists of places of a unit, where they are not in its sections.
    pub(super) fn lists(&self, unit: usize) -> Option<&'a LocationListSection<'a>> {
        let Unit { source, header, .. } = &self.units[unit];
        self.lists.filter(|_| *source == 0 && header.version() >= 5)
    }

    /// Adds the units of a companion. Types are not looked for in them until their order is said.
    pub(super) fn add(&mut self, source: UnitSections<'a>) -> Result<Range<usize>> {
        let first = self.units.len();
        let (mut units, mut types) = (source.dwarf.units(), source.dwarf.type_units());
        let index = self.sources.len();
        self.sources.push(source);
        while let Some(header) = units.next().map_err(|error| self.next_is_damaged(error))? {
            self.push(header, index);
        }
        while let Some(header) = types.next().map_err(|error| self.next_is_damaged(error))? {
            self.push(header, index);
        }
        Ok(first..self.units.len())
    }

    fn push(&mut self, header: UnitHeader<Slice<'a>>, source: usize) {
        let start = self.sources[source].start_of(&header);
        if let UnitType::Type { type_signature, type_offset }
        | UnitType::SplitType { type_signature, type_offset } = header.type_()
        {
            // the first one: companions repeat those of others
            let place = GlobalDieOffset(start.saturating_add(type_offset.0));
            self.signatures.entry(type_signature.0).or_insert(place);
        }
        let contribution = self.sources[source].contribution(&header);
        let size = header.length_including_self();
        self.units.push(Unit { header, start, size, source, contribution, skeleton: None });
    }

    fn next_is_damaged(&self, error: gimli::Error) -> Error {
        let end = self.units.last().map_or(0, |unit| unit.start + unit.size);
        let base = self.sources.last().map_or(0, |source| source.base);
        damaged(end.max(base), error)
    }

    /// Returns the units that types are looked for in, in order.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// Says in which units types are looked for.
    pub(super) fn set_order(&mut self, order: Vec<usize>) {
        self.order = order;
    }

    /// Says which unit another one was split off from.
    pub(super) fn set_skeleton(&mut self, unit: usize, skeleton: usize) {
        self.units[unit].skeleton = Some(skeleton);
    }

    /// Says which units import the partial ones.
    pub(super) fn set_importers(&mut self, importers: FxHashMap<usize, Importer>) {
        self.importers = importers;
    }

    /// Returns the first unit that imports a partial one, directly or not; `None` if none does, or the unit is not
    /// partial.
    pub(super) fn importer(&self, unit: usize) -> Option<Importer> {
        self.importers.get(&unit).copied()
    }

    /// Returns the skeleton of a split unit, or the unit itself: the skeleton knows about the source.
    pub(super) fn skeleton_of(&self, unit: usize) -> usize {
        self.units[unit].skeleton.unwrap_or(unit)
    }

    /// Returns a unit, read if it was not before.
    pub(super) fn get(&self, index: usize) -> &Unit<'a> {
        let unit = &self.units[index];
        let read = |header| Unit { header, ..*unit };
        self.slots.as_ref().and_then(|slots| slots.get(index, read)).unwrap_or(unit)
    }

    /// Returns a unit of which only the header, and at least its first bytes, may have been read.
    pub(super) fn head(&self, index: usize) -> &Unit<'a> {
        &self.units[index]
    }

    /// Returns the role of the file that a unit is from.
    pub(super) fn role(&self, unit: usize) -> Role {
        self.source(unit).role
    }

    /// Returns the sections that a unit is in.
    pub(super) fn dwarf(&self, unit: usize) -> &gimli::Dwarf<Slice<'a>> {
        &self.source(unit).dwarf
    }

    /// Returns the sections of a unit that was split off, from where its part of them starts.
    pub(super) fn own_sections(&self, unit: usize) -> gimli::Dwarf<Slice<'a>> {
        let dwarf = self.dwarf(unit);
        let contribution = self.units[unit].contribution;
        // old sections come before new ones
        let parts = [contribution.locations, contribution.location_lists];
        let mut parts = parts.into_iter().chain([0, contribution.range_lists]);
        let mut from = |section: &Slice<'a>| from_start(section, parts.next().unwrap_or(0));
        gimli::Dwarf {
            locations: dwarf.locations.borrow(&mut from),
            ranges: dwarf.ranges.borrow(&mut from),
            debug_abbrev: from_start(dwarf.debug_abbrev.reader(), contribution.abbreviations).into(),
            debug_str_offsets: from_start(dwarf.debug_str_offsets.reader(), contribution.strings).into(),
            debug_info: dwarf.debug_info,
            debug_types: dwarf.debug_types,
            debug_str: dwarf.debug_str,
            debug_line: dwarf.debug_line,
            debug_line_str: dwarf.debug_line_str,
            file_type: DwarfFileType::Dwo,
            ..gimli::Dwarf::default()
        }
    }

    fn source(&self, unit: usize) -> &UnitSections<'a> {
        &self.sources[self.units[unit].source]
    }

    /// Returns the end of the global offsets of all files.
    pub(super) fn end(&self) -> usize {
        self.sources.last().map_or(0, |source| source.end)
    }

    /// Returns an upper limit of the number of DIEs: each takes a byte.
    pub(super) fn total_bytes(&self) -> usize {
        self.end()
    }

    /// Returns the size of a pointer, which every unit repeats.
    pub(super) fn pointer_size(&self) -> u8 {
        self.units.first().map_or(8, |unit| unit.header.address_size())
    }

    /// Returns the unit that a place is in.
    pub(super) fn index_of(&self, place: GlobalDieOffset) -> Option<usize> {
        let index = self.units.partition_point(|unit| unit.start <= place.0).checked_sub(1)?;
        let unit = &self.units[index];
        (place.0 - unit.start < unit.size).then_some(index)
    }

    /// Returns the place of an entry of a unit.
    pub(super) fn place(&self, unit: usize, offset: gimli::UnitOffset<usize>) -> GlobalDieOffset {
        GlobalDieOffset(self.units[unit].start.saturating_add(offset.0))
    }

    /// Returns the global offset behind a unit.
    pub(super) fn end_of(&self, unit: usize) -> usize {
        let unit = &self.units[unit];
        unit.start.saturating_add(unit.size)
    }

    /// Returns the offset in its unit of a place.
    pub(super) fn offset(&self, unit: usize, place: GlobalDieOffset) -> gimli::UnitOffset<usize> {
        gimli::UnitOffset(place.0.saturating_sub(self.units[unit].start))
    }

    /// Returns the target of a DIE's reference; none if it refers to a type unit that is missing.
    pub(super) fn target(&self, unit: usize, value: &AttributeValue<Slice<'a>>) -> Option<GlobalDieOffset> {
        match *value {
            AttributeValue::UnitRef(offset) => Some(self.place(unit, offset)),
            AttributeValue::DebugInfoRef(offset) if self.missing.is_some() => Some(GlobalDieOffset(offset.0))
                .filter(|place| self.has(*place))
                .or(Some(GlobalDieOffset::NOWHERE)),
            AttributeValue::DebugInfoRef(offset) => Some(self.source(unit).place(offset.0)),
            AttributeValue::DebugInfoRefSup(offset) => {
                Some(self.alternate().map_or(GlobalDieOffset::MISSING, |source| source.place(offset.0)))
            }
            AttributeValue::DebugTypesRef(signature) => self.signatures.get(&signature.0).copied(),
            _ => None,
        }
    }

    /// Returns the file that is read, unless it is nothing but what was split off.
    pub(super) fn main(&self) -> Option<&UnitSections<'a>> {
        self.sources.first().filter(|source| source.role == Role::Main)
    }

    fn alternate(&self) -> Option<&UnitSections<'a>> {
        // it is added first, before thousands of split files
        self.sources.iter().take(2).find(|source| source.role == Role::Alternate)
    }

    /// Returns `true` if these are units of a window, and a DIE has referred to others.
    pub(super) fn refers_outside(&self) -> bool {
        self.sources.iter().any(UnitSections::refers_outside)
    }

    /// Notes that a class was needed that its unit only declares.
    pub(super) fn note_undefined(&self) {
        self.undefined.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if a class was needed that its unit only declares.
    pub(super) fn has_undefined(&self) -> bool {
        self.undefined.load(Ordering::Relaxed)
    }

    /// Returns `true` if the unit of a place is there; in a choice of a file's units, notes a place without one.
    pub(super) fn has(&self, place: GlobalDieOffset) -> bool {
        let is_there = self.index_of(place).is_some();
        if let (false, Some(missing)) = (is_there, &self.missing) {
            missing.lock().unwrap_or_else(PoisonError::into_inner).insert(place);
        }
        is_there
    }

    /// Returns the noted places, whose units are missing.
    pub(super) fn missing(self) -> BTreeSet<GlobalDieOffset> {
        let missing =
            self.missing.map(|missing| missing.into_inner().unwrap_or_else(PoisonError::into_inner));
        missing.unwrap_or_default()
    }

    /// Returns the start and the size of each unit.
    pub(super) fn spans(&self) -> impl Iterator<Item = (usize, usize)> {
        self.units.iter().map(|unit| (unit.start, unit.size))
    }

    /// Returns `true` if there are type units, in which types may be defined.
    pub(super) fn has_type_units(&self) -> bool {
        !self.signatures.is_empty()
    }

    /// Returns `true` if a unit is a type unit, and another one before it has the same type.
    pub(super) fn repeats(&self, unit: usize) -> bool {
        match self.units[unit].header.type_() {
            UnitType::Type { type_signature, .. } | UnitType::SplitType { type_signature, .. } => {
                let known = self.signatures.get(&type_signature.0);
                known.is_some_and(|place| self.index_of(*place) != Some(unit))
            }
            _ => false,
        }
    }

    /// Returns the abbreviations of a unit's entries, as gimli has them.
    pub(super) fn abbreviations(&self, unit: usize) -> Result<gimli::Abbreviations> {
        let Unit { header, start, contribution, .. } = &self.units[unit];
        let offset = header.debug_abbrev_offset().0.saturating_add(contribution.abbreviations);
        let table = self.source(unit).dwarf.debug_abbrev.abbreviations(DebugAbbrevOffset(offset));
        table.map_err(|error| damaged(*start, error))
    }

    /// Returns the bytes that a unit's abbreviations start with.
    pub(super) fn abbreviation_bytes(&self, unit: usize) -> gimli::Result<Slice<'a>> {
        let Unit { header, contribution, .. } = &self.units[unit];
        let offset = header.debug_abbrev_offset().0.saturating_add(contribution.abbreviations);
        let mut bytes = *self.source(unit).dwarf.debug_abbrev.reader();
        bytes.skip(offset)?;
        Ok(bytes)
    }

    /// Returns the bytes of a string; `None` if it lies outside of its section, or in a file that is missing.
    pub(super) fn string(
        &self,
        unit: usize,
        context: &Context,
        value: &AttributeValue<Slice<'a>>,
    ) -> Option<&'a [u8]> {
        let source = self.source(unit);
        let dwarf = &source.dwarf;
        let slice = match *value {
            AttributeValue::String(slice) => slice,
            AttributeValue::DebugStrRef(offset) => return source.string(offset),
            AttributeValue::DebugStrRefSup(offset) => return self.alternate()?.string(offset),
            AttributeValue::DebugLineStrRef(offset) => dwarf.line_string(offset).ok()?,
            AttributeValue::DebugStrOffsetsIndex(index) => {
                let format = self.units[unit].header.format();
                let offsets = &dwarf.debug_str_offsets;
                return source.string(offsets.get_str_offset(format, context.strings_base, index).ok()?);
            }
            _ => return None,
        };
        Some(slice.slice())
    }

    /// Says that a linker has put equal strings of the only file into one place.
    pub(super) fn set_merged(&mut self) {
        self.merged = true;
    }

    /// Returns a string of the first file's `.debug_str`.
    pub(super) fn string_at(&self, offset: usize) -> Option<&'a [u8]> {
        self.sources.first()?.string(gimli::DebugStrOffset(offset))
    }

    /// Adds to a hash what tells a string from others; false if there is no string. Where equal strings
    /// are one it need not be looked at.
    pub(super) fn hash_string(
        &self,
        unit: usize,
        context: &Context,
        value: &AttributeValue<Slice<'a>>,
        hash: &mut impl Hasher,
    ) -> bool {
        if let (AttributeValue::DebugStrRef(offset), true) = (value, self.merged) {
            hash.write_u64(offset.0 as u64);
            // the section ends with the end of a string
            return offset.0 < self.source(unit).strings_len();
        }
        let string = self.string(unit, context, value);
        hash.write(string.unwrap_or_default());
        string.is_some()
    }

    /// Returns the header of a unit's line program; `None` if it is damaged.
    pub(super) fn line_program(
        &self,
        unit: usize,
        offset: gimli::DebugLineOffset<usize>,
    ) -> Option<gimli::LineProgramHeader<Slice<'a>>> {
        let size = self.units[unit].header.address_size();
        let program = self.source(unit).dwarf.debug_line.program(offset, size, None, None).ok()?;
        Some(program.header().clone())
    }

    /// Returns an error with the place as the file that it is in counts, and with that file's name.
    pub(super) fn localized(&self, error: Error) -> Error {
        let Error::Dwarf { offset, reason, section } = error else { return error };
        let place = usize::try_from(offset).unwrap_or(usize::MAX);
        let Some(source) = self.sources.iter().find(|source| (source.base..source.end).contains(&place))
        else {
            return Error::Dwarf { section, offset, reason };
        };
        let (section, offset) = match place.checked_sub(source.types_start) {
            Some(offset) => (".debug_types", offset),
            None => (".debug_info", place - source.origin),
        };
        let reason = match source.name.as_str() {
            "" => reason,
            name => format!("{reason} (in {name})"),
        };
        Error::Dwarf { section, offset: offset as u64, reason }
    }
}

/// Returns a section without its first bytes; nothing of it where it has less.
fn from_start<'a>(section: &Slice<'a>, start: usize) -> Slice<'a> {
    let mut left = *section;
    match left.skip(start) {
        Ok(()) => left,
        Err(_) => Slice::new(&[], left.endian()),
    }
}
