//! One file's part of the units, and what a package says about each.

use super::Slice;
use super::offset::GlobalDieOffset;
use super::sections::Sections;
use super::strings::Strings;
use crate::error::Result;
use gimli::{IndexSectionId, Section, UnitHeader, UnitIndex};
use std::sync::atomic::{AtomicBool, Ordering};

/// The relation of a file to the one that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The file that is read.
    Main,
    /// A file with units that were split off from the one that is read: a `.dwo` file or a package of them.
    Split,
    /// The alternate file that dwz wrote.
    Alternate,
}

/// The DWARF sections of one file (program, split file, alternate file) with the range of its units.
pub(super) struct UnitSections<'a> {
    pub(super) dwarf: gimli::Dwarf<Slice<'a>>,
    pub(super) role: Role,
    /// The name of the file in messages; empty for the one that is read.
    pub(super) name: String,
    /// The place of the first byte of `.debug_info`, or of the window of it that is there.
    pub(super) base: usize,
    /// The place that offsets in `.debug_info` count from.
    pub(super) origin: usize,
    /// The place of the first byte of `.debug_types`.
    pub(super) types_start: usize,
    /// The first place behind.
    pub(super) end: usize,
    contributions: Contributions,
    // of a window: the file's strings
    strings: Option<&'a Strings<'a>>,
    refers_outside: AtomicBool,
}

impl<'a> UnitSections<'a> {
    /// Creates the source of a file whose global offsets continue from `base`.
    pub(super) fn new(sections: &'a Sections<'_>, role: Role, name: String, base: usize) -> Result<Self> {
        let dwarf = sections.dwarf();
        let types_start = base.saturating_add(dwarf.debug_info.reader().slice().len());
        let end = types_start.saturating_add(dwarf.debug_types.reader().slice().len());
        let contributions = Contributions::new(&sections.indices()?);
        let refers_outside = AtomicBool::new(false);
        let source = UnitSections {
            dwarf,
            role,
            name,
            base,
            origin: base,
            types_start,
            end,
            contributions,
            strings: None,
            refers_outside,
        };
        Ok(source)
    }

    /// Makes a source whose section of units is not in memory but has this size.
    pub(super) fn without_units(sections: &'a Sections<'_>, role: Role, size: usize) -> Result<Self> {
        let source = UnitSections::new(sections, role, String::new(), 0)?;
        let end = size.saturating_add(source.end);
        Ok(UnitSections { types_start: size, end, ..source })
    }

    /// Creates the source of some units of a file, which start at an offset of its section.
    pub(super) fn window(
        sections: &'a Sections<'_>,
        strings: &'a Strings<'a>,
        units: &'a [u8],
        base: usize,
    ) -> Self {
        let end = base.saturating_add(units.len());
        UnitSections {
            dwarf: sections.dwarf_with(units),
            role: Role::Main,
            name: String::new(),
            base,
            origin: 0,
            types_start: end,
            end,
            contributions: Contributions::none(),
            strings: Some(strings),
            refers_outside: AtomicBool::new(false),
        }
    }

    /// Returns the place of an offset in `.debug_info`; nowhere beyond its end, so that one file's damage
    /// does not lead into another.
    pub(super) fn place(&self, offset: usize) -> GlobalDieOffset {
        match self.origin.checked_add(offset) {
            Some(place) if (self.base..self.types_start).contains(&place) => GlobalDieOffset(place),
            _ => {
                self.refers_outside.fetch_or(self.strings.is_some(), Ordering::Relaxed);
                GlobalDieOffset::NOWHERE
            }
        }
    }

    /// Returns the string at an offset of `.debug_str`.
    pub(super) fn string(&self, offset: gimli::DebugStrOffset) -> Option<&'a [u8]> {
        match self.strings {
            Some(strings) => strings.get(offset.0),
            None => Some(self.dwarf.string(offset).ok()?.slice()),
        }
    }

    /// Returns the size of `.debug_str` in bytes.
    pub(super) fn strings_len(&self) -> usize {
        self.strings.map_or_else(|| self.dwarf.debug_str.reader().slice().len(), Strings::len)
    }

    /// Returns `true` if these are the sections of a window, and a DIE has referred to a part of the file outside it.
    pub(super) fn refers_outside(&self) -> bool {
        self.refers_outside.load(Ordering::Relaxed)
    }

    /// Returns the global offset of a unit.
    pub(super) fn start_of(&self, header: &UnitHeader<Slice<'a>>) -> usize {
        match header.debug_types_offset() {
            Some(offset) => self.types_start.saturating_add(offset.0),
            None => self.base.saturating_add(header.offset().0),
        }
    }

    /// Returns the offsets at which a unit's parts of the other sections start.
    pub(super) fn contribution(&self, header: &UnitHeader<Slice<'a>>) -> Contribution {
        match header.debug_types_offset() {
            Some(offset) => self.contributions.types.at(offset.0),
            None => self.contributions.units.at(header.offset().0),
        }
    }
}

/// The offsets of a unit's parts of other sections: 0 in anything but a package.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Contribution {
    pub(super) abbreviations: usize,
    pub(super) strings: usize,
    /// The offset of the unit's part of `.debug_loc`, which DWARF 5 replaced by `.debug_loclists`.
    pub(super) locations: usize,
    pub(super) location_lists: usize,
    pub(super) range_lists: usize,
}

/// The contents of a package's indices.
struct Contributions {
    units: Spans,
    types: Spans,
}

/// Parts of a section by where they start.
#[derive(Default)]
struct Spans(Vec<(usize, usize, Contribution)>);

impl Spans {
    fn at(&self, offset: usize) -> Contribution {
        let index = self.0.partition_point(|(start, ..)| *start <= offset);
        match index.checked_sub(1).map(|index| self.0[index]) {
            Some((_, end, contribution)) if offset < end => contribution,
            _ => Contribution::default(),
        }
    }
}

impl Contributions {
    fn none() -> Contributions {
        Contributions { units: Spans::default(), types: Spans::default() }
    }

    fn new(indices: &[UnitIndex<Slice<'_>>]) -> Contributions {
        let mut all = Contributions::none();
        // an index without columns says nothing, however many rows it claims to have
        for index in indices.iter().filter(|index| index.section_count() != 0) {
            for row in 1..=index.unit_count() {
                let Ok(sections) = index.sections(row) else { break };
                all.add(sections);
            }
        }
        all.units.0.sort_unstable_by_key(|(start, ..)| *start);
        all.types.0.sort_unstable_by_key(|(start, ..)| *start);
        all
    }

    fn add(&mut self, sections: gimli::UnitIndexSectionIterator<'_, Slice<'_>>) {
        let mut contribution = Contribution::default();
        let (mut unit, mut ty) = (None, None);
        for section in sections {
            let (offset, size) = (section.offset as usize, section.size as usize);
            let span = (offset, offset.saturating_add(size));
            match section.section {
                IndexSectionId::DebugInfo => unit = Some(span),
                IndexSectionId::DebugTypes => ty = Some(span),
                IndexSectionId::DebugAbbrev => contribution.abbreviations = offset,
                IndexSectionId::DebugStrOffsets => contribution.strings = offset,
                IndexSectionId::DebugLoc => contribution.locations = offset,
                IndexSectionId::DebugLocLists => contribution.location_lists = offset,
                IndexSectionId::DebugRngLists => contribution.range_lists = offset,
                _ => {}
            }
        }
        self.units.0.extend(unit.map(|(start, end)| (start, end, contribution)));
        self.types.0.extend(ty.map(|(start, end)| (start, end, contribution)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_in_a_span_has_its_contribution() {
        let contribution = Contribution { abbreviations: 7, strings: 9, ..Contribution::default() };
        let spans = Spans(vec![(10, 20, contribution), (30, 31, Contribution::default())]);
        assert_eq!(spans.at(10), contribution);
        assert_eq!(spans.at(19), contribution);
        for outside in [0, 9, 20, 30, 31, 1000] {
            assert_eq!(spans.at(outside), Contribution::default(), "{outside}");
        }
    }
}
