//! Lists of places of variables, a unit's part of their section when it is first asked for.

use super::Slice;
use crate::elf::{File, Naming, Part};
use crate::error::Result;
use gimli::{
    AttributeValue, DebugLocListsBase, Endianity, LocListIter, LocationLists, LocationListsOffset,
    RunTimeEndian, SectionId,
};
use object::ReadRef;
use std::sync::OnceLock;

/// A section is read as a whole if it is not larger.
const WHOLE: u64 = 1 << 20;

/// The section of an open file, from version 5 on: parts of units, each with a header.
pub(super) struct LocationListSection<'a> {
    part: Part<'a>,
    endian: RunTimeEndian,
    // where each part ends, and its bytes
    parts: Vec<(u64, OnceLock<Vec<u8>>)>,
}

impl<'a> LocationListSection<'a> {
    /// Finds the parts; none if the section has to be read as a whole.
    pub(super) fn find<R: ReadRef<'a>>(
        file: &File<'a, R>,
        naming: Naming,
    ) -> Result<Option<LocationListSection<'a>>> {
        let Ok([part]) = <[Part<'a>; 1]>::try_from(file.parts(SectionId::DebugLocLists, naming)?) else {
            return Ok(None);
        };
        if part.size() <= WHOLE || !part.is_in_place() {
            return Ok(None);
        }
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let mut lists = LocationListSection { part, endian, parts: Vec::new() };
        Ok(lists.find_parts().is_some().then_some(lists))
    }

    fn find_parts(&mut self) -> Option<()> {
        let mut start = 0;
        while start < self.part.size() {
            let mut head = [0; 4];
            if self.part.read_at(start, &mut head).ok()? < head.len() {
                return None;
            }
            // units of 64 bits are for those who read all
            let length = u64::from(self.endian.read_u32(&head));
            let end = start.checked_add(length)?.checked_add(4)?;
            if length >= 0xffff_fff0 || end > self.part.size() {
                return None;
            }
            self.parts.push((end, OnceLock::new()));
            start = end;
        }
        Some(())
    }

    /// Returns the part that an offset is in, and where it starts; nothing if it cannot be read.
    fn at(&self, offset: u64) -> Option<(&[u8], usize)> {
        let index = self.parts.partition_point(|(end, _)| *end <= offset);
        let (end, bytes) = self.parts.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.parts[before].0);
        let size = usize::try_from(end - start).ok()?;
        let bytes = bytes.get_or_init(|| {
            let mut bytes = vec![0; size];
            match self.part.read_at(start, &mut bytes) {
                Ok(read) if read == size => bytes,
                _ => Vec::new(),
            }
        });
        Some((bytes, usize::try_from(start).ok()?))
    }

    /// Returns the list that an attribute of a unit leads to; `None` for what is no list.
    pub(super) fn list(
        &'a self,
        dwarf: &gimli::Dwarf<Slice<'a>>,
        unit: &gimli::Unit<Slice<'a>>,
        value: &AttributeValue<Slice<'a>>,
    ) -> gimli::Result<Option<LocListIter<Slice<'a>>>> {
        let place = match *value {
            AttributeValue::LocationListsRef(offset) => offset.0,
            AttributeValue::DebugLocListsIndex(_) => unit.loclists_base.0,
            _ => return Ok(None),
        };
        let (bytes, start) = self.at(place as u64).ok_or(gimli::Error::OffsetOutOfBounds(place as u64))?;
        let lists =
            LocationLists::new(Slice::new(&[], self.endian).into(), Slice::new(bytes, self.endian).into());
        let (encoding, inside) = (unit.encoding(), place - start);
        let offset = match *value {
            AttributeValue::DebugLocListsIndex(index) => {
                lists.get_offset(encoding, DebugLocListsBase(inside), index)?
            }
            _ => LocationListsOffset(inside),
        };
        lists.locations(offset, encoding, unit.low_pc, &dwarf.debug_addr, unit.addr_base).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Input;
    use std::io::Write;

    /// Returns a section in a file of its own, which is gone when it is closed.
    fn stored(bytes: &[u8], name: &str) -> std::fs::File {
        let path = std::env::temp_dir().join(format!("tallyline-lists-{name}-{}", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.read(true).write(true).create_new(true).open(&path).expect("writable");
        file.write_all(bytes).expect("writable");
        std::fs::remove_file(path).expect("own file");
        file
    }

    fn parts(file: &std::fs::File, size: usize) -> (LocationListSection<'_>, bool) {
        let part = Part::plain(Input::File(file), size as u64);
        let mut lists = LocationListSection { part, endian: RunTimeEndian::Little, parts: Vec::new() };
        let found = lists.find_parts().is_some();
        (lists, found)
    }

    #[test]
    fn each_offset_is_in_the_part_that_a_header_says() {
        let bytes = [&[3, 0, 0, 0, 1, 2, 3][..], &[0; 4], &[1, 0, 0, 0, 9]].concat();
        let file = stored(&bytes, "parts");
        let (lists, found) = parts(&file, bytes.len());
        assert!(found);
        for (offset, part) in [(0, 0..7), (6, 0..7), (7, 7..11), (11, 11..16), (15, 11..16)] {
            assert_eq!(lists.at(offset), Some((&bytes[part.clone()], part.start)), "{offset}");
        }
        assert_eq!(lists.at(16), None);
    }

    #[test]
    fn a_part_that_reaches_beyond_the_section_leaves_it_to_those_who_read_all() {
        for bytes in [&[4, 0, 0, 0, 1, 2, 3][..], &[3, 0], &[0xff; 20]] {
            let file = stored(bytes, "beyond");
            assert!(!parts(&file, bytes.len()).1, "{bytes:?}");
        }
    }
}
