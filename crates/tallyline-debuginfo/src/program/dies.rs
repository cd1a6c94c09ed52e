//! Entries of debug information, one after the other.

use crate::dwarf::{DebugInfo, Slice, UnitEntries};
use gimli::constants::{self, DwAt, DwTag};
use gimli::{Attribute, AttributeValue, UnitOffset};

/// A DIE that a walk visits: its offset, tag, depth and attributes.
pub(super) struct Entry<'a> {
    pub(super) offset: UnitOffset<usize>,
    pub(super) tag: DwTag,
    /// The depth below the DIE that the walk started at.
    pub(super) depth: isize,
    pub(super) has_children: bool,
    attributes: Vec<Attribute<Slice<'a>>>,
}

impl<'a> Entry<'a> {
    /// Returns the value of an attribute, by what it means.
    pub(super) fn value(&self, name: DwAt) -> Option<AttributeValue<Slice<'a>>> {
        self.attributes.iter().find(|attribute| attribute.name() == name).map(Attribute::value)
    }

    /// Returns the value of an attribute, as it is stored: what strings and references are found by.
    pub(super) fn raw(&self, name: DwAt) -> Option<AttributeValue<Slice<'a>>> {
        self.attributes.iter().find(|attribute| attribute.name() == name).map(Attribute::raw_value)
    }

    /// Returns the value of an attribute as an unsigned number; `None` if it is absent or not a number.
    pub(super) fn number(&self, name: DwAt) -> Option<u64> {
        self.value(name)?.udata_value()
    }

    /// Returns `true` if the DIE has an attribute of this name.
    pub(super) fn has(&self, name: DwAt) -> bool {
        self.attributes.iter().any(|attribute| attribute.name() == name)
    }

    /// Returns the attributes that say where the code of the entry is.
    pub(super) fn ranges(
        &self,
        dwarf: &gimli::Dwarf<Slice<'a>>,
        unit: &gimli::Unit<Slice<'a>>,
    ) -> Vec<std::ops::Range<u64>> {
        let mut found = Vec::new();
        if let Some(value) = self.value(constants::DW_AT_ranges)
            && let Ok(Some(mut ranges)) = dwarf.attr_ranges(unit, value)
        {
            while let Ok(Some(range)) = ranges.next() {
                found.push(range.begin..range.end);
                // a damaged list can go on for as long as its section
                if found.len() > RANGES_LIMIT {
                    break;
                }
            }
        }
        let low = self.value(constants::DW_AT_low_pc).and_then(|value| address(dwarf, unit, value));
        if found.is_empty()
            && let Some(low) = low
        {
            let high = self.value(constants::DW_AT_high_pc);
            let end = match high {
                Some(AttributeValue::Addr(_) | AttributeValue::DebugAddrIndex(_)) => {
                    high.and_then(|value| address(dwarf, unit, value))
                }
                Some(value) => value.udata_value().and_then(|size| low.checked_add(size)),
                None => None,
            };
            found.extend(end.filter(|end| *end > low).map(|end| low..end));
        }
        found.retain(|range| range.start < range.end);
        found
    }
}

/// The most ranges of one entry.
pub(super) const RANGES_LIMIT: usize = 1 << 16;

/// Returns the address that a value is, or leads to.
pub(super) fn address<'a>(
    dwarf: &gimli::Dwarf<Slice<'a>>,
    unit: &gimli::Unit<Slice<'a>>,
    value: AttributeValue<Slice<'a>>,
) -> Option<u64> {
    dwarf.attr_address(unit, value).ok().flatten()
}

/// The next step of the walk behind a DIE.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Go {
    /// A step into the DIE's children.
    Inside,
    /// A step past the DIE's children.
    Past,
    /// The end of the walk.
    Stop,
}

/// Goes over an entry and what is in it. Damage ends the walk: what was read before counts.
pub(super) fn walk<'a>(
    info: &DebugInfo<'_, 'a>,
    unit: usize,
    entries: &UnitEntries,
    start: Option<UnitOffset<usize>>,
    mut each: impl FnMut(&Entry<'a>) -> Go,
) {
    let (header, _) = info.unit(unit);
    let abbreviations = entries.abbreviations();
    let Ok(mut raw) = header.entries_raw(abbreviations, start) else { return };
    let mut entry = Entry {
        offset: UnitOffset(0),
        tag: constants::DW_TAG_null,
        depth: 0,
        has_children: false,
        attributes: Vec::new(),
    };
    // children of entries at this depth are left out
    let mut skip: Option<isize> = None;
    let mut base = 0;
    while !raw.is_empty() {
        let depth = base + raw.next_depth();
        entry.offset = raw.next_offset();
        let Ok(abbreviation) = raw.read_abbreviation() else { return };
        let Some(abbreviation) = abbreviation else {
            if depth <= 1 {
                return;
            }
            continue;
        };
        if skip.is_some_and(|skip| depth > skip) {
            if raw.skip_attributes(abbreviation.attributes()).is_err() {
                return;
            }
            continue;
        }
        skip = None;
        entry.depth = depth;
        entry.tag = abbreviation.tag();
        entry.has_children = abbreviation.has_children();
        if raw.read_attributes(abbreviation.attributes(), &mut entry.attributes).is_err() {
            return;
        }
        match each(&entry) {
            Go::Stop => return,
            Go::Inside => {}
            Go::Past if !entry.has_children => {}
            Go::Past => match entry.raw(constants::DW_AT_sibling) {
                Some(AttributeValue::UnitRef(sibling)) if sibling.0 > entry.offset.0 => {
                    let Ok(behind) = header.entries_raw(abbreviations, Some(sibling)) else { return };
                    raw = behind;
                    base = depth;
                }
                _ => skip = Some(depth),
            },
        }
        if depth == 0 && !entry.has_children {
            return;
        }
    }
}

/// Returns the string that an attribute of an entry is.
pub(super) fn string<'a>(
    info: &DebugInfo<'_, 'a>,
    unit: usize,
    entries: &UnitEntries,
    entry: &Entry<'a>,
    name: DwAt,
) -> Option<&'a [u8]> {
    info.string(unit, entries, &entry.raw(name)?)
}
