//! Units that are read when they are first asked for: who follows a few functions of a kernel looks at
//! a hundredth of its units.

use super::Slice;
use super::unit::Unit;
use crate::elf::{File, Naming, Part};
use crate::error::Result;
use gimli::{DebugInfo, RunTimeEndian, SectionId, UnitHeader, UnitSectionOffset};
use object::ReadRef;
use std::sync::OnceLock;

/// A section is read as a whole if it is not larger: that takes a millisecond.
const WHOLE: u64 = if cfg!(fuzzing) { 0 } else { 1 << 20 };

/// The number of bytes that are read of each unit to know where the next one is: mostly the first DIE too.
const HEAD: usize = 128;

/// The units of a file that is open.
pub(super) struct OnDemand<'a> {
    part: Part<'a>,
    endian: RunTimeEndian,
    stubs: Vec<Stub>,
    // the starts of units, as units that are no longer
    heads: Vec<u8>,
    // the rest, by unit
    bytes: Vec<OnceLock<Vec<u8>>>,
}

/// The range of a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stub {
    pub(super) start: usize,
    pub(super) size: usize,
    // where its head ends
    head_end: usize,
}

impl<'a> OnDemand<'a> {
    /// Finds the units of a file that can be read so; none if they have to be read as a whole. That is
    /// also where something is wrong, as who reads all says what.
    pub(super) fn find<R: ReadRef<'a>>(file: &File<'a, R>, naming: Naming) -> Result<Option<OnDemand<'a>>> {
        // units of other files may be meant, or units may have to be looked through for that
        if naming != Naming::Plain
            || file.alternate()?.is_some()
            || !file.parts(SectionId::DebugTypes, naming)?.is_empty()
        {
            return Ok(None);
        }
        let Ok([part]) = <[Part<'a>; 1]>::try_from(file.parts(SectionId::DebugInfo, naming)?) else {
            return Ok(None);
        };
        if part.size() <= WHOLE || !part.is_in_place() {
            return Ok(None);
        }
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let mut there = OnDemand { part, endian, stubs: Vec::new(), heads: Vec::new(), bytes: Vec::new() };
        Ok(there.find_units().is_some().then_some(there))
    }

    fn find_units(&mut self) -> Option<()> {
        let end = usize::try_from(self.part.size()).ok()?;
        let mut start = 0;
        let mut buffer = [0; HEAD];
        while start < end {
            let read = self.part.read_at(start as u64, &mut buffer).ok()?;
            let mut head = buffer.get_mut(..read)?;
            let size = unit_size(head, self.endian)?;
            let next = start.checked_add(size).filter(|next| *next <= end)?;
            if size < head.len() {
                head = head.get_mut(..size)?;
            }
            set_unit_size(head, self.endian)?;
            parse(head, self.endian, start)?;
            self.heads.extend_from_slice(head);
            self.stubs.push(Stub { start, size, head_end: self.heads.len() });
            start = next;
        }
        self.bytes.resize_with(self.stubs.len(), OnceLock::new);
        Some(())
    }

    /// Returns the size of the section in bytes.
    pub(super) fn size(&self) -> usize {
        self.stubs.last().map_or(0, |stub| stub.start.saturating_add(stub.size))
    }

    /// Returns the units in order.
    pub(super) fn stubs(&self) -> &[Stub] {
        &self.stubs
    }

    /// Returns the head of a unit, as a unit that is no longer.
    pub(super) fn head(&'a self, index: usize) -> Option<UnitHeader<Slice<'a>>> {
        let stub = self.stubs.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.stubs[before].head_end);
        parse(&self.heads[start..stub.head_end], self.endian, stub.start)
    }

    /// Returns a unit with all of its bytes; `None` if they cannot be read any more.
    fn unit(&'a self, index: usize) -> Option<UnitHeader<Slice<'a>>> {
        let stub = self.stubs.get(index)?;
        let bytes = self.bytes[index].get_or_init(|| {
            let mut bytes = vec![0; stub.size];
            match self.part.read_at(stub.start as u64, &mut bytes) {
                Ok(read) if read == bytes.len() => bytes,
                _ => Vec::new(),
            }
        });
        parse(bytes, self.endian, stub.start)
    }
}

/// Units that were read.
pub(super) struct Slots<'a> {
    there: &'a OnDemand<'a>,
    units: Vec<OnceLock<Option<Unit<'a>>>>,
}

impl<'a> Slots<'a> {
    pub(super) fn new(there: &'a OnDemand<'a>) -> Slots<'a> {
        let mut units = Vec::new();
        units.resize_with(there.stubs.len(), OnceLock::new);
        Slots { there, units }
    }

    /// Returns a unit, read if it was not before; `None` if it is not one of these, or gone.
    pub(super) fn get(
        &self,
        index: usize,
        read: impl FnOnce(UnitHeader<Slice<'a>>) -> Unit<'a>,
    ) -> Option<&Unit<'a>> {
        self.units.get(index)?.get_or_init(|| self.there.unit(index).map(read)).as_ref()
    }
}

/// Returns a unit from its bytes, which start at an offset of the section.
fn parse(bytes: &[u8], endian: RunTimeEndian, offset: usize) -> Option<UnitHeader<Slice<'_>>> {
    let header = DebugInfo::new(bytes, endian).units().next().ok()??;
    let entries = header.range_from(header.root_offset()..).ok()?;
    Some(UnitHeader::new(
        header.encoding(),
        header.unit_length(),
        header.type_(),
        header.debug_abbrev_offset(),
        SectionId::DebugInfo,
        UnitSectionOffset(offset),
        entries,
    ))
}

/// The first word of a unit in the 64-bit format: its length follows.
const LONG: u32 = u32::MAX;

/// Returns the size of a unit, with the length that it starts with.
fn unit_size(head: &[u8], endian: RunTimeEndian) -> Option<usize> {
    use gimli::Endianity;
    let short = endian.read_u32(head.get(..4)?);
    let size = match short {
        LONG => endian.read_u64(head.get(4..12)?).checked_add(12)?,
        short => u64::from(short).checked_add(4)?,
    };
    usize::try_from(size).ok()
}

/// Makes some bytes a unit of their own.
fn set_unit_size(head: &mut [u8], endian: RunTimeEndian) -> Option<()> {
    use gimli::Endianity;
    let size = head.len();
    if endian.read_u32(head.get(..4)?) == LONG {
        endian.write_u64(head.get_mut(4..12)?, size.checked_sub(12)? as u64);
    } else {
        endian.write_u32(head.get_mut(..4)?, u32::try_from(size.checked_sub(4)?).ok()?);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DebugInfo, NoCompanions, Result};

    fn unit(length: [u8; 4], rest: &[u8]) -> Vec<u8> {
        [&length[..], rest].concat()
    }

    #[test]
    fn a_head_is_a_unit_that_ends_where_it_does() {
        // version 5, a unit of a compiler, addresses of 8 bytes, abbreviations at 16
        let header = [5, 0, 1, 8, 16, 0, 0, 0];
        let mut head = unit([200, 0, 0, 0], &[&header[..], &[7; 20]].concat());
        let endian = RunTimeEndian::Little;
        assert_eq!(unit_size(&head, endian), Some(204));
        assert!(parse(&head, endian, 0).is_none(), "it is cut");
        set_unit_size(&mut head, endian).expect("room for a length");
        let parsed = parse(&head, endian, 0x1234).expect("whole");
        assert_eq!((parsed.length_including_self(), parsed.offset().0), (32, 0x1234));
        assert_eq!(parsed.debug_abbrev_offset().0, 16);

        let long = unit([0xff; 4], &[&[200, 0, 0, 0, 0, 0, 0, 0], &[0; 8][..]].concat());
        assert_eq!(unit_size(&long, endian), Some(212));
        assert_eq!(unit_size(&unit([0xff; 4], &[0xff; 8]), endian), None, "longer than memory");
        assert_eq!(unit_size(&[1, 0], endian), None);
    }

    /// Returns every so many units: where they are, and all of their bytes.
    fn units(info: &DebugInfo<'_, '_>) -> Result<Vec<(u64, Vec<u8>)>> {
        let all = info.units().iter().step_by(info.units().len() / 20 + 1);
        let unit = |unit: &usize| {
            let (header, _) = info.unit(*unit);
            let entries = header.range_from(header.root_offset()..).expect("entries");
            let (head, _) = info.head(*unit);
            assert_eq!((head.offset(), head.version()), (header.offset(), header.version()));
            (info.place(*unit, header.root_offset()), entries.slice().to_vec())
        };
        Ok(all.map(unit).collect())
    }

    #[test]
    fn units_of_a_file_are_those_of_its_bytes() {
        // this very program has more than a megabyte of them
        let path = std::env::current_exe().expect("a program");
        let file = std::fs::File::open(&path).expect("the program");
        let Ok((on_demand, _)) = crate::with_debug_info(&file, &NoCompanions, units) else {
            eprintln!("skipped: no debug information");
            return;
        };
        let bytes = std::fs::read(&path).expect("the program");
        let (whole, _) = crate::with_debug_info_of_bytes(&bytes, &NoCompanions, units).expect("it has some");
        assert!(!whole.is_empty());
        assert!(on_demand == whole);
    }
}
