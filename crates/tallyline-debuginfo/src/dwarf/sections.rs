//! The sections that types are read from, read, inflated and relocated in parallel.

use super::Slice;
use crate::INFLATED_LIMIT;
use crate::companion::Contents;
use crate::elf::{File, Input, Naming, join};
use crate::error::{Error, Result};
use gimli::{DebugCuIndex, DebugTuIndex, RunTimeEndian, SectionId, UnitIndex};
use object::ReadRef;
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::atomic::AtomicU64;

/// The sections that types need; the others are left alone.
const NEEDED: [SectionId; 15] = [
    SectionId::DebugInfo,
    SectionId::DebugTypes,
    SectionId::DebugAbbrev,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugLineStr,
    // of packages only
    SectionId::DebugCuIndex,
    SectionId::DebugTuIndex,
    // for positions only
    SectionId::DebugLine,
    // for code only
    SectionId::DebugAranges,
    SectionId::DebugAddr,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
];

/// The way in which files are read, one for all that belong together.
pub(super) struct Reading {
    /// `true` if the units and their strings are left out, as they are read a piece at a time.
    pub(super) in_windows: bool,
    /// `true` if sections that only positions need are read too.
    pub(super) positions: bool,
    /// `true` if sections that only code needs are read too.
    pub(super) code: bool,
    /// `true` if, of those, the sections with line numbers are read.
    pub(super) lines: bool,
    /// The number of bytes that may still be inflated.
    pub(super) budget: AtomicU64,
}

impl Default for Reading {
    fn default() -> Reading {
        let budget = AtomicU64::new(INFLATED_LIMIT);
        Reading { in_windows: false, positions: false, code: false, lines: false, budget }
    }
}

impl Reading {
    fn needs(&self, section: SectionId) -> bool {
        match section {
            SectionId::DebugInfo | SectionId::DebugStr => !self.in_windows,
            SectionId::DebugLine => self.positions || self.lines,
            SectionId::DebugAranges
            | SectionId::DebugAddr
            | SectionId::DebugLoc
            | SectionId::DebugLocLists
            | SectionId::DebugRanges
            | SectionId::DebugRngLists => self.code,
            _ => true,
        }
    }
}

/// The bytes of the needed sections.
pub(super) struct Sections<'a> {
    bytes: Vec<Cow<'a, [u8]>>,
    endian: RunTimeEndian,
    /// The identifier by which other files refer to this one.
    pub(super) id: Option<Vec<u8>>,
}

impl<'a> Sections<'a> {
    /// Takes the sections from a file.
    pub(super) fn load<R: ReadRef<'a>>(
        file: &File<'a, R>,
        naming: Naming,
        reading: &Reading,
    ) -> Result<Sections<'a>> {
        Self::load_without(&[], file, naming, reading)
    }

    /// Loads the sections without some of them.
    pub(super) fn load_without<R: ReadRef<'a>>(
        left_out: &[SectionId],
        file: &File<'a, R>,
        naming: Naming,
        reading: &Reading,
    ) -> Result<Sections<'a>> {
        let parts = |id: &SectionId| match reading.needs(*id) && !left_out.contains(id) {
            true => file.parts(*id, naming),
            false => Ok(Vec::new()),
        };
        let parts = NEEDED.iter().map(parts).collect::<Result<Vec<_>>>()?;
        let join = |parts: &Vec<_>| join(parts, &reading.budget);
        let bytes = parts.par_iter().map(join).collect::<Result<Vec<_>>>()?;
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        Ok(Sections { bytes, endian, id: file.id()? })
    }

    /// Takes the sections from a companion.
    pub(super) fn of(contents: &'a Contents, naming: Naming, reading: &Reading) -> Result<Sections<'a>> {
        match contents {
            Contents::Bytes(bytes) => {
                Sections::load(&File::parse(&bytes[..], Input::Bytes(bytes))?, naming, reading)
            }
            Contents::File(file) => {
                // what this keeps are headers; the sections are read beside it
                let headers = object::ReadCache::new(file);
                let sections = Sections::load(&File::parse(&headers, Input::File(file))?, naming, reading)?;
                Ok(sections.owned())
            }
        }
    }

    /// Returns the sections without a borrow of the parsed headers.
    fn owned<'b>(self) -> Sections<'b> {
        let owned = |bytes: Cow<'a, [u8]>| Cow::Owned(bytes.into_owned());
        let bytes = self.bytes.into_iter().map(owned).collect();
        Sections { bytes, endian: self.endian, id: self.id }
    }

    /// Returns `true` if the numbers in the sections are little-endian.
    pub(super) fn is_little_endian(&self) -> bool {
        self.endian == RunTimeEndian::Little
    }

    /// Returns the sections as gimli wants them.
    pub(super) fn dwarf(&self) -> gimli::Dwarf<Slice<'_>> {
        self.dwarf_with(self.slice(SectionId::DebugInfo).slice())
    }

    /// Returns gimli's sections with these units.
    pub(super) fn dwarf_with<'s>(&'s self, units: &'s [u8]) -> gimli::Dwarf<Slice<'s>> {
        let section = |id| -> std::result::Result<Slice<'s>, std::convert::Infallible> {
            Ok(match id {
                SectionId::DebugInfo => Slice::new(units, self.endian),
                _ => self.slice(id),
            })
        };
        match gimli::Dwarf::load(section) {
            Ok(dwarf) => dwarf,
            Err(never) => match never {},
        }
    }

    /// Returns a package's indices of units and of type units. Both are empty in a file that is no package.
    pub(super) fn indices(&self) -> Result<[UnitIndex<Slice<'_>>; 2]> {
        let at = |section: SectionId| {
            move |error: gimli::Error| Error::Dwarf {
                section: section.name(),
                offset: 0,
                reason: error.to_string(),
            }
        };
        let units = self.slice(SectionId::DebugCuIndex);
        let types = self.slice(SectionId::DebugTuIndex);
        Ok([
            DebugCuIndex::from(units).index().map_err(at(SectionId::DebugCuIndex))?,
            DebugTuIndex::from(types).index().map_err(at(SectionId::DebugTuIndex))?,
        ])
    }

    fn slice(&self, id: SectionId) -> Slice<'_> {
        let index = NEEDED.iter().position(|needed| *needed == id);
        let bytes = index.and_then(|index| self.bytes.get(index)).map_or(&[] as &[u8], |bytes| &**bytes);
        Slice::new(bytes, self.endian)
    }
}
