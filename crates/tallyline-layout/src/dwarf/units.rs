//! The units of a file: where they are, and what their entries need to be read.

use super::{Slice, damaged};
use crate::error::{Error, Result};
use crate::model::Language;
use gimli::{Abbreviations, AttributeValue, DebugStrOffsetsBase, Section, UnitHeader, UnitType, constants};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where an entry is: an offset that counts `.debug_types` on from the end of `.debug_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place(pub(super) usize);

/// One unit.
pub(super) struct Unit<'a> {
    pub(super) header: UnitHeader<Slice<'a>>,
    start: usize,
}

/// Every unit of a file, in order.
pub(super) struct Units<'a> {
    dwarf: &'a gimli::Dwarf<Slice<'a>>,
    units: Vec<Unit<'a>>,
    // of type units: where the type is
    signatures: FxHashMap<u64, Place>,
    types_start: usize,
    // whether a unit was seen whose types are in another file
    split: AtomicBool,
    pub(super) little_endian: bool,
}

/// What an entry of one unit needs to be read.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) abbreviations: Arc<Abbreviations>,
    strings_base: DebugStrOffsetsBase<usize>,
    pub(super) language: u64,
}

impl Context {
    /// Whether the unit is C++'s.
    pub(super) fn is_cpp(&self) -> bool {
        u16::try_from(self.language).is_ok_and(|language| Language(language).is_cpp())
    }
}

impl<'a> Units<'a> {
    /// Finds the units; their entries are not looked at.
    pub(super) fn index(dwarf: &'a gimli::Dwarf<Slice<'a>>, little_endian: bool) -> Result<Units<'a>> {
        let types_start = dwarf.debug_info.reader().slice().len();
        let mut units = Units {
            dwarf,
            units: Vec::new(),
            signatures: FxHashMap::default(),
            types_start,
            split: AtomicBool::new(false),
            little_endian,
        };
        let mut headers = dwarf.units();
        while let Some(header) = headers.next().map_err(|error| units.next_is_damaged(error))? {
            units.add(header);
        }
        let mut headers = dwarf.type_units();
        while let Some(header) = headers.next().map_err(|error| units.next_is_damaged(error))? {
            units.add(header);
        }
        Ok(units)
    }

    fn add(&mut self, header: UnitHeader<Slice<'a>>) {
        let start = match header.debug_types_offset() {
            Some(offset) => self.types_start + offset.0,
            None => header.offset().0,
        };
        if let UnitType::Type { type_signature, type_offset }
        | UnitType::SplitType { type_signature, type_offset } = header.type_()
        {
            self.signatures.insert(type_signature.0, Place(start.saturating_add(type_offset.0)));
        }
        self.units.push(Unit { header, start });
    }

    fn next_is_damaged(&self, error: gimli::Error) -> Error {
        let end = self.units.last().map_or(0, |unit| unit.start + unit.header.length_including_self());
        damaged(end, error)
    }

    /// How many units there are.
    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    /// A unit.
    pub(super) fn get(&self, index: usize) -> &Unit<'a> {
        &self.units[index]
    }

    /// The most entries that there can be: each takes a byte.
    pub(super) fn total_bytes(&self) -> usize {
        self.types_start + self.dwarf.debug_types.reader().slice().len()
    }

    /// The size of a pointer, which every unit repeats.
    pub(super) fn pointer_size(&self) -> u8 {
        self.units.first().map_or(8, |unit| unit.header.address_size())
    }

    /// The unit that a place is in.
    pub(super) fn index_of(&self, place: Place) -> Option<usize> {
        let index = self.units.partition_point(|unit| unit.start <= place.0).checked_sub(1)?;
        let unit = &self.units[index];
        (place.0 - unit.start < unit.header.length_including_self()).then_some(index)
    }

    /// The place of an entry of a unit.
    pub(super) fn place(&self, unit: usize, offset: gimli::UnitOffset<usize>) -> Place {
        Place(self.units[unit].start.saturating_add(offset.0))
    }

    /// The offset in its unit of a place.
    pub(super) fn offset(&self, unit: usize, place: Place) -> gimli::UnitOffset<usize> {
        gimli::UnitOffset(place.0.saturating_sub(self.units[unit].start))
    }

    /// Where a reference of an entry leads; nowhere if it leads out of the file.
    pub(super) fn target(&self, unit: usize, value: &AttributeValue<Slice<'a>>) -> Option<Place> {
        match *value {
            AttributeValue::UnitRef(offset) => Some(self.place(unit, offset)),
            AttributeValue::DebugInfoRef(offset) => Some(Place(offset.0)),
            AttributeValue::DebugTypesRef(signature) => self.signatures.get(&signature.0).copied(),
            _ => None,
        }
    }

    /// Whether types may be defined in units of their own.
    pub(super) fn has_type_units(&self) -> bool {
        !self.signatures.is_empty()
    }

    /// Reads what the entries of a unit need.
    pub(super) fn context(&self, index: usize) -> Result<Context> {
        let unit = &self.units[index];
        let at = |error| damaged(unit.start, error);
        let abbreviations = self.dwarf.abbreviations(&unit.header).map_err(at)?;
        let encoding = unit.header.encoding();
        let mut context = Context {
            abbreviations: abbreviations.clone(),
            strings_base: DebugStrOffsetsBase::default_for_encoding_and_file(
                encoding,
                gimli::DwarfFileType::Main,
            ),
            language: 0,
        };
        let mut entries = unit.header.entries_raw(&abbreviations, None).map_err(at)?;
        let Some(root) = entries.read_abbreviation().map_err(at)? else { return Ok(context) };
        for spec in root.attributes() {
            let attribute = entries.read_attribute(*spec).map_err(at)?;
            match (attribute.name(), attribute.value()) {
                (constants::DW_AT_str_offsets_base, AttributeValue::DebugStrOffsetsBase(base)) => {
                    context.strings_base = base;
                }
                (constants::DW_AT_language, AttributeValue::Language(language)) => {
                    context.language = u64::from(language.0);
                }
                (constants::DW_AT_dwo_name | constants::DW_AT_GNU_dwo_name, _) => {
                    self.split.store(true, Ordering::Relaxed);
                }
                _ => {}
            }
        }
        Ok(context)
    }

    /// The bytes of a string; none if it lies outside of its section.
    pub(super) fn string(
        &self,
        unit: usize,
        context: &Context,
        value: &AttributeValue<Slice<'a>>,
    ) -> Option<&'a [u8]> {
        let slice = match *value {
            AttributeValue::String(slice) => slice,
            AttributeValue::DebugStrRef(offset) => self.dwarf.string(offset).ok()?,
            AttributeValue::DebugLineStrRef(offset) => self.dwarf.line_string(offset).ok()?,
            AttributeValue::DebugStrOffsetsIndex(index) => {
                let format = self.units[unit].header.format();
                let offsets = &self.dwarf.debug_str_offsets;
                let offset = offsets.get_str_offset(format, context.strings_base, index).ok()?;
                self.dwarf.string(offset).ok()?
            }
            _ => return None,
        };
        Some(slice.slice())
    }

    /// The header of a line program; none if it is damaged.
    pub(super) fn line_program(
        &self,
        offset: gimli::DebugLineOffset<usize>,
        address_size: u8,
    ) -> Option<gimli::LineProgramHeader<Slice<'a>>> {
        let program = self.dwarf.debug_line.program(offset, address_size, None, None).ok()?;
        Some(program.header().clone())
    }

    /// What could not be read, one line each.
    pub(super) fn warnings(&self) -> Option<String> {
        self.split
            .load(Ordering::Relaxed)
            .then(|| "split DWARF: the types are in .dwo files, which are not followed".to_string())
    }
}
