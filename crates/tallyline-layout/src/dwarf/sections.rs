//! The sections that types are read from, inflated and relocated in parallel.

use super::Slice;
use crate::INFLATED_LIMIT;
use crate::elf::{File, join};
use crate::error::Result;
use gimli::{RunTimeEndian, SectionId};
use object::ReadRef;
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::atomic::AtomicU64;

/// The sections that types need; the others are left alone. The last is for positions only.
const NEEDED: [SectionId; 7] = [
    SectionId::DebugInfo,
    SectionId::DebugTypes,
    SectionId::DebugAbbrev,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugLineStr,
    SectionId::DebugLine,
];

/// The bytes of the needed sections.
pub(super) struct Sections<'a> {
    bytes: Vec<Cow<'a, [u8]>>,
    endian: RunTimeEndian,
}

impl<'a> Sections<'a> {
    /// Takes the sections from a file: read one after another, inflated and relocated in parallel.
    pub(super) fn load<R: ReadRef<'a>>(file: &File<'a, R>, positions: bool) -> Result<Sections<'a>> {
        let budget = AtomicU64::new(INFLATED_LIMIT);
        let needed = NEEDED.iter().filter(|id| positions || **id != SectionId::DebugLine);
        let parts = needed.map(|id| file.parts(id.name())).collect::<Result<Vec<_>>>()?;
        let bytes = parts.par_iter().map(|parts| join(parts, &budget)).collect::<Result<Vec<_>>>()?;
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        Ok(Sections { bytes, endian })
    }

    /// The sections as gimli wants them.
    pub(super) fn dwarf(&self) -> gimli::Dwarf<Slice<'_>> {
        let section = |id: SectionId| -> std::result::Result<Slice<'_>, std::convert::Infallible> {
            let index = NEEDED.iter().position(|needed| *needed == id);
            let bytes = index.and_then(|index| self.bytes.get(index)).map_or(&[] as &[u8], |bytes| &**bytes);
            Ok(Slice::new(bytes, self.endian))
        };
        match gimli::Dwarf::load(section) {
            Ok(dwarf) => dwarf,
            Err(never) => match never {},
        }
    }
}
