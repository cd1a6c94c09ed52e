//! One debugging information entry, and how its attributes are understood.

use super::units::{Context, Place, Units};
use super::{Slice, damaged};
use crate::error::Result;
use gimli::constants::{self, DwAt, DwTag};
use gimli::{Attribute, AttributeValue, EntriesRaw};

/// The entries of one unit, in order.
pub(super) struct Entries<'u, 'a> {
    raw: EntriesRaw<'u, Slice<'a>>,
    // the depth at which `raw` starts
    base: isize,
    unit: usize,
    units: &'u Units<'a>,
}

/// One entry. Its attributes are kept between entries, to keep their memory.
pub(super) struct Entry<'a> {
    pub(super) tag: DwTag,
    pub(super) has_children: bool,
    attributes: Vec<Attribute<Slice<'a>>>,
}

impl Default for Entry<'_> {
    fn default() -> Self {
        Entry { tag: constants::DW_TAG_null, has_children: false, attributes: Vec::new() }
    }
}

impl<'u, 'a> Entries<'u, 'a> {
    /// The entries from a place on; the first is at depth 0.
    pub(super) fn at(units: &'u Units<'a>, unit: usize, context: &'u Context, place: Place) -> Result<Self> {
        let offset = units.offset(unit, place);
        let raw = units.get(unit).header.entries_raw(&context.abbreviations, Some(offset));
        Ok(Entries { raw: raw.map_err(|error| damaged(place.0, error))?, base: 0, unit, units })
    }

    /// The place of the next entry.
    pub(super) fn place(&self) -> Place {
        self.units.place(self.unit, self.raw.next_offset())
    }

    /// How deep the next entry is below the first.
    pub(super) fn depth(&self) -> isize {
        self.base + self.raw.next_depth()
    }

    /// Whether there is nothing more in the unit.
    pub(super) fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Reads the next entry; false for the end of a list of children.
    pub(super) fn read(&mut self, entry: &mut Entry<'a>) -> Result<bool> {
        let place = self.place();
        let at = |error| damaged(place.0, error);
        let Some(abbreviation) = self.raw.read_abbreviation().map_err(at)? else { return Ok(false) };
        entry.tag = abbreviation.tag();
        entry.has_children = abbreviation.has_children();
        self.raw.read_attributes(abbreviation.attributes(), &mut entry.attributes).map_err(at)?;
        Ok(true)
    }

    /// Reads the next entry's tag, and its attributes only if the tag is of interest.
    pub(super) fn read_if(&mut self, entry: &mut Entry<'a>, wanted: impl Fn(DwTag) -> bool) -> Result<Step> {
        let place = self.place();
        let at = |error| damaged(place.0, error);
        let Some(abbreviation) = self.raw.read_abbreviation().map_err(at)? else { return Ok(Step::End) };
        entry.tag = abbreviation.tag();
        entry.has_children = abbreviation.has_children();
        if wanted(entry.tag) {
            self.raw.read_attributes(abbreviation.attributes(), &mut entry.attributes).map_err(at)?;
            return Ok(Step::Wanted);
        }
        entry.attributes.clear();
        let specs = abbreviation.attributes();
        let sibling = specs.iter().position(|spec| spec.name() == constants::DW_AT_sibling);
        if let Some(index) = sibling.filter(|_| entry.has_children) {
            // the sibling comes first in practice, so the rest needs no reading
            self.raw.skip_attributes(&specs[..index]).map_err(at)?;
            entry.attributes.push(self.raw.read_attribute(specs[index]).map_err(at)?);
            self.raw.skip_attributes(&specs[index + 1..]).map_err(at)?;
        } else {
            self.raw.skip_attributes(specs).map_err(at)?;
        }
        Ok(Step::Other)
    }

    /// Leaves out the children of an entry that was just read.
    pub(super) fn skip_children(&mut self, entry: &mut Entry<'a>, context: &'u Context) -> Result<()> {
        if !entry.has_children {
            return Ok(());
        }
        let here = self.place();
        let depth = self.depth();
        if let Some(sibling) = entry.target(self.units, self.unit, constants::DW_AT_sibling)
            && sibling > here
            && self.units.index_of(sibling) == Some(self.unit)
        {
            let start = Entries::at(self.units, self.unit, context, sibling)?;
            self.raw = start.raw;
            self.base = depth - 1;
            return Ok(());
        }
        while !self.is_empty() && self.depth() >= depth {
            self.read_if(entry, |_| false)?;
        }
        Ok(())
    }
}

/// What the next entry was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The end of a list of children.
    End,
    /// An entry whose attributes were read.
    Wanted,
    /// Another entry.
    Other,
}

impl<'a> Entry<'a> {
    /// The value of an attribute, as it is stored.
    pub(super) fn value(&self, name: DwAt) -> Option<AttributeValue<Slice<'a>>> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name() == name)
            .map(|attribute| attribute.raw_value())
    }

    /// Whether there is such an attribute.
    pub(super) fn has(&self, name: DwAt) -> bool {
        self.attributes.iter().any(|attribute| attribute.name() == name)
    }

    /// A number; small signed ones are sign-extended.
    pub(super) fn number(&self, name: DwAt) -> Option<u64> {
        number(&self.value(name)?)
    }

    /// A flag, or a number that is not 0.
    pub(super) fn flag(&self, name: DwAt) -> bool {
        match self.value(name) {
            Some(AttributeValue::Flag(flag)) => flag,
            Some(value) => number(&value).is_some_and(|number| number != 0),
            None => false,
        }
    }

    /// An offset in a record: a number, or an expression that adds one.
    pub(super) fn offset(&self, name: DwAt) -> Option<u64> {
        let value = self.value(name)?;
        let bytes = match value {
            AttributeValue::Block(block) => block,
            AttributeValue::Exprloc(expression) => expression.0,
            _ => return number(&value),
        };
        let (&operation, rest) = bytes.slice().split_first()?;
        match constants::DwOp(operation) {
            constants::DW_OP_plus_uconst | constants::DW_OP_constu => uleb(rest),
            _ => None,
        }
    }

    /// Where a reference leads.
    pub(super) fn target(&self, units: &Units<'a>, unit: usize, name: DwAt) -> Option<Place> {
        units.target(unit, &self.value(name)?)
    }

    /// The bytes of a string.
    pub(super) fn string(
        &self,
        units: &Units<'a>,
        unit: usize,
        context: &Context,
        name: DwAt,
    ) -> Option<&'a [u8]> {
        units.string(unit, context, &self.value(name)?)
    }

    /// The attributes that say where the entry's things lie, for comparing entries of two units.
    pub(super) fn hash_numbers(&self, names: &[DwAt], hasher: &mut impl std::hash::Hasher) {
        for name in names {
            match self.offset(*name) {
                Some(number) => hasher.write_u64(number),
                None => hasher.write_u8(u8::from(self.has(*name))),
            }
        }
    }
}

fn number(value: &AttributeValue<Slice<'_>>) -> Option<u64> {
    Some(match *value {
        AttributeValue::Data1(number) => number.into(),
        AttributeValue::Data2(number) => number.into(),
        AttributeValue::Data4(number) => number.into(),
        AttributeValue::Data8(number) | AttributeValue::Udata(number) => number,
        AttributeValue::Sdata(number) => number as u64,
        AttributeValue::Flag(flag) => flag.into(),
        AttributeValue::SecOffset(offset) => offset as u64,
        _ => return None,
    })
}

fn uleb(bytes: &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(index as u32 * 7)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
