//! One debugging information entry, and how its attributes are understood.

use super::abbreviations::{Abbreviation, Abbreviations, Attribute, Field, PLACES, Run, skip, usize_of};
use super::offset::GlobalDieOffset;
use super::units::{Context, Units};
use super::{Slice, damaged};
use crate::error::Result;
use gimli::constants::{self, DwAt, DwForm, DwTag};
use gimli::{AttributeValue, Encoding, Reader};

/// The entries of one unit, in order.
pub(super) struct Entries<'u, 'a> {
    // what is left of the unit
    input: Slice<'a>,
    // where the unit ends, and the depth of the next entry
    end: usize,
    depth: isize,
    abbreviations: &'u Abbreviations,
    unit: usize,
    units: &'u Units<'a>,
}

/// A DIE with the attributes that were read. It is reused for the next DIE, to keep their memory.
pub(super) struct Entry<'a> {
    pub(super) tag: DwTag,
    pub(super) has_children: bool,
    attributes: Vec<(DwAt, AttributeValue<Slice<'a>>)>,
    /// The attributes that tell the DIE from others, if it is a member that was to be compared.
    pub(super) traits: Traits<'a>,
}

/// The attributes that tell a member from others, whatever its type is.
#[derive(Clone, Copy, Default)]
pub(super) struct Traits<'a> {
    /// The name of the member, as it is stored.
    pub(super) name: Option<AttributeValue<Slice<'a>>>,
    /// The numbers of the member's attributes of [`PLACES`].
    pub(super) numbers: [Trait; PLACES.len()],
}

/// A number that a member may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Trait {
    #[default]
    Absent,
    /// An attribute that is there, and is no number.
    Odd,
    Number(u64),
}

impl Trait {
    /// Adds it to what tells types apart.
    pub(super) fn hash(self, hasher: &mut impl std::hash::Hasher) {
        match self {
            Trait::Absent => hasher.write_u8(0),
            Trait::Odd => hasher.write_u8(1),
            Trait::Number(number) => hasher.write_u64(number),
        }
    }
}

impl Default for Entry<'_> {
    fn default() -> Self {
        Entry {
            tag: constants::DW_TAG_null,
            has_children: false,
            attributes: Vec::new(),
            traits: Traits::default(),
        }
    }
}

/// The treatment of a DIE, by its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interest {
    /// A DIE whose attributes are read.
    Read,
    /// A DIE of which only the attributes are found that tell it from others.
    Compare,
    /// A DIE that is passed over; its children, if it has any, are next.
    Inside,
    /// A DIE that is passed over with its children.
    Leave,
}

impl<'u, 'a> Entries<'u, 'a> {
    /// Returns the entries from a place on; the first is at depth 0.
    pub(super) fn at(
        units: &'u Units<'a>,
        unit: usize,
        context: &'u Context,
        place: GlobalDieOffset,
    ) -> Result<Self> {
        let (offset, end) = (units.offset(unit, place), units.end_of(unit));
        let input = units.get(unit).header.range_from(offset..).map_err(|error| damaged(place.0, error))?;
        Ok(Entries { input, end, depth: 0, abbreviations: &context.abbreviations, unit, units })
    }

    /// Returns the place of the next entry.
    pub(super) fn place(&self) -> GlobalDieOffset {
        GlobalDieOffset(self.end - self.input.len())
    }

    /// Returns the depth of the next DIE below the first.
    pub(super) fn depth(&self) -> isize {
        self.depth
    }

    /// Returns `true` if the unit has no more DIEs.
    pub(super) fn is_empty(&self) -> bool {
        self.input.is_empty()
    }

    /// Reads the next entry; false for the end of a list of children.
    pub(super) fn read(&mut self, entry: &mut Entry<'a>) -> Result<bool> {
        Ok(self.read_as(entry, |_| Interest::Read)? == Step::Wanted)
    }

    /// Reads the next entry's tag, and its attributes only if the tag is of interest.
    pub(super) fn read_if(&mut self, entry: &mut Entry<'a>, wanted: impl Fn(DwTag) -> bool) -> Result<Step> {
        self.read_as(entry, |tag| if wanted(tag) { Interest::Read } else { Interest::Inside })
    }

    /// Reads the next entry's tag, and does what is to be done about it.
    pub(super) fn read_as(
        &mut self,
        entry: &mut Entry<'a>,
        interest: impl Fn(DwTag) -> Interest,
    ) -> Result<Step> {
        let place = self.place();
        self.step(entry, interest).map_err(|error| damaged(place.0, error))
    }

    fn step(&mut self, entry: &mut Entry<'a>, interest: impl Fn(DwTag) -> Interest) -> gimli::Result<Step> {
        let Some(abbreviation) = self.abbreviation()? else { return Ok(Step::End) };
        entry.tag = abbreviation.tag;
        entry.has_children = abbreviation.has_children;
        match interest(abbreviation.tag) {
            Interest::Read => {
                self.attributes(abbreviation, entry)?;
                return Ok(Step::Wanted);
            }
            Interest::Compare => {
                self.compare(abbreviation, entry)?;
                return Ok(Step::Wanted);
            }
            Interest::Inside => self.skip_attributes(abbreviation)?,
            Interest::Leave => self.leave(abbreviation)?,
        }
        Ok(Step::Other)
    }

    /// Returns the abbreviation of the next DIE; none for the end of a list of children.
    #[inline]
    fn abbreviation(&mut self) -> gimli::Result<Option<&'u Abbreviation>> {
        let code = self.input.read_uleb128()?;
        if code == 0 {
            self.depth -= 1;
            return Ok(None);
        }
        let found = self.abbreviations.get(code).ok_or(gimli::Error::InvalidAbbreviationCode(code))?;
        self.depth += isize::from(found.has_children);
        Ok(Some(found))
    }

    fn attributes(&mut self, abbreviation: &Abbreviation, entry: &mut Entry<'a>) -> gimli::Result<()> {
        let encoding = self.abbreviations.encoding;
        entry.attributes.clear();
        for attribute in self.abbreviations.attributes(abbreviation) {
            if let Some(value) = value(&mut self.input, attribute, encoding)? {
                entry.attributes.push((attribute.name, value));
            }
        }
        Ok(())
    }

    /// Finds out what tells a member from others, without reading it where that can be.
    fn compare(&mut self, abbreviation: &Abbreviation, entry: &mut Entry<'a>) -> gimli::Result<()> {
        let (Some(size), Some(fields)) = (abbreviation.size, self.abbreviations.fields(abbreviation)) else {
            self.attributes(abbreviation, entry)?;
            entry.traits = entry.find_traits();
            return Ok(());
        };
        let bytes = self.input.split(size as usize)?;
        let number = |start: u32, size: u32| {
            let mut at = bytes;
            at.skip(start as usize)?;
            match size {
                1 => at.read_u8().map(u64::from),
                2 => at.read_u16().map(u64::from),
                4 => at.read_u32().map(u64::from),
                _ => at.read_u64(),
            }
        };
        entry.attributes.clear();
        entry.traits.name = match fields.name {
            Some(start) => {
                let size = self.abbreviations.encoding.format.word_size();
                let offset = usize_of(number(start, size.into())?)?;
                Some(AttributeValue::DebugStrRef(gimli::DebugStrOffset(offset)))
            }
            None => None,
        };
        for (slot, field) in entry.traits.numbers.iter_mut().zip(&fields.numbers) {
            *slot = match *field {
                Field::Absent => Trait::Absent,
                Field::Constant(value) => Trait::Number(value as u64),
                Field::At(start, size) => Trait::Number(number(start, size)?),
            };
        }
        Ok(())
    }

    #[inline]
    fn skip_attributes(&mut self, abbreviation: &Abbreviation) -> gimli::Result<()> {
        match abbreviation.size {
            Some(size) => self.input.skip(size as usize),
            None => self.skip_runs(self.abbreviations.runs(abbreviation)),
        }
    }

    fn skip_runs(&mut self, runs: &[Run]) -> gimli::Result<()> {
        let encoding = self.abbreviations.encoding;
        runs.iter().try_for_each(|run| {
            self.input.skip(run.size as usize)?;
            run.then.map_or(Ok(()), |form| skip(&mut self.input, form, encoding))
        })
    }

    fn skip_one_by_one(&mut self, attributes: &[Attribute]) -> gimli::Result<()> {
        let encoding = self.abbreviations.encoding;
        attributes.iter().try_for_each(|attribute| skip(&mut self.input, attribute.form, encoding))
    }

    /// Leaves out an entry of which the code was read, and its children.
    fn leave(&mut self, abbreviation: &Abbreviation) -> gimli::Result<()> {
        if let Some(sibling) = abbreviation.sibling {
            let attributes = self.abbreviations.attributes(abbreviation);
            let (before, rest) = attributes.split_at(sibling.index as usize);
            match sibling.before {
                Some(before) => self.input.skip(before as usize)?,
                None => self.skip_one_by_one(before)?,
            }
            let (sibling, after) = rest.split_first().ok_or(gimli::Error::UnknownForm(DwForm(0)))?;
            let there = value(&mut self.input, sibling, self.abbreviations.encoding)?;
            if there.is_some_and(|there| self.jump(&there)) {
                self.depth -= 1;
                return Ok(());
            }
            self.skip_one_by_one(after)?;
        } else {
            self.skip_attributes(abbreviation)?;
        }
        let depth = self.depth;
        while abbreviation.has_children && self.skim(depth) {
            if let Some(below) = self.abbreviation()? {
                match below.sibling {
                    Some(_) => self.leave_below(below)?,
                    None => self.skip_attributes(below)?,
                }
            }
        }
        Ok(())
    }

    /// Leaves out entries that are of one size, down to a depth; whether there is another one to leave out.
    fn skim(&mut self, until: isize) -> bool {
        let bytes = self.input.slice();
        let (mut next, mut depth) = (0, self.depth);
        while depth >= until {
            // real codes have one byte or two
            let (code, start) = match bytes.get(next..) {
                Some([code, ..]) if *code < 0x80 => (usize::from(*code), next + 1),
                Some([low, high, ..]) if *high < 0x80 => {
                    (usize::from(*low & 0x7f) | usize::from(*high) << 7, next + 2)
                }
                _ => break,
            };
            if code == 0 {
                (next, depth) = (start, depth - 1);
                continue;
            }
            let Some((size, deeper)) = self.abbreviations.stride(code) else { break };
            if size > bytes.len() - start {
                break;
            }
            (next, depth) = (start + size, depth + deeper);
        }
        self.depth = depth;
        self.input.skip(next).is_ok() && !self.is_empty() && depth >= until
    }

    /// Skips the children of a DIE inside another one, as far as that needs no walk.
    fn leave_below(&mut self, abbreviation: &Abbreviation) -> gimli::Result<()> {
        let start = self.input;
        if let Some(sibling) = abbreviation.sibling
            && let Some(before) = sibling.before
            && let Some(attribute) = self.abbreviations.attributes(abbreviation).get(sibling.index as usize)
        {
            self.input.skip(before as usize)?;
            let there = value(&mut self.input, attribute, self.abbreviations.encoding)?;
            if there.is_some_and(|there| self.jump(&there)) {
                self.depth -= 1;
                return Ok(());
            }
            self.input = start;
        }
        self.skip_attributes(abbreviation)
    }

    /// Goes on at a place in what is left of the unit; not elsewhere.
    fn jump(&mut self, to: &AttributeValue<Slice<'a>>) -> bool {
        let Some(place) = self.units.target(self.unit, to) else { return false };
        let Some(far) = place.0.checked_sub(self.place().0) else { return false };
        far > 0 && far < self.input.len() && self.input.skip(far).is_ok()
    }

    /// Leaves out the children of an entry that was just read.
    pub(super) fn skip_children(&mut self, entry: &mut Entry<'a>) -> Result<()> {
        if !entry.has_children {
            return Ok(());
        }
        let depth = self.depth;
        if entry.value(constants::DW_AT_sibling).is_some_and(|there| self.jump(&there)) {
            self.depth = depth - 1;
            return Ok(());
        }
        while !self.is_empty() && self.depth >= depth {
            self.read_as(entry, |_| Interest::Leave)?;
        }
        Ok(())
    }
}

/// Reads a value as it is stored; none of a kind that nobody asks for.
fn value<'a>(
    input: &mut Slice<'a>,
    attribute: &Attribute,
    encoding: Encoding,
) -> gimli::Result<Option<AttributeValue<Slice<'a>>>> {
    use AttributeValue as Value;
    use constants as c;
    let unit = |offset: usize| Value::UnitRef(gimli::UnitOffset(offset));
    let indexed = |index: usize| Value::DebugStrOffsetsIndex(gimli::DebugStrOffsetsIndex(index));
    let mut form = attribute.form;
    if form == c::DW_FORM_indirect {
        form = DwForm(input.read_uleb128_u16()?);
    }
    Ok(Some(match form {
        c::DW_FORM_data1 => Value::Data1(input.read_u8()?),
        c::DW_FORM_data2 => Value::Data2(input.read_u16()?),
        c::DW_FORM_data4 => Value::Data4(input.read_u32()?),
        c::DW_FORM_data8 => Value::Data8(input.read_u64()?),
        c::DW_FORM_udata => Value::Udata(input.read_uleb128()?),
        c::DW_FORM_sdata => Value::Sdata(input.read_sleb128()?),
        c::DW_FORM_implicit_const if attribute.form != form => {
            return Err(gimli::Error::InvalidImplicitConst);
        }
        c::DW_FORM_implicit_const => Value::Sdata(attribute.constant),
        c::DW_FORM_flag => Value::Flag(input.read_u8()? != 0),
        c::DW_FORM_flag_present => Value::Flag(true),
        c::DW_FORM_sec_offset => Value::SecOffset(input.read_offset(encoding.format)?),
        c::DW_FORM_block1 => block(input, |input| Ok(input.read_u8()?.into()))?,
        c::DW_FORM_block2 => block(input, |input| Ok(input.read_u16()?.into()))?,
        c::DW_FORM_block4 => block(input, |input| Ok(input.read_u32()?.into()))?,
        c::DW_FORM_block | c::DW_FORM_exprloc => block(input, Reader::read_uleb128)?,
        c::DW_FORM_ref1 => unit(input.read_u8()?.into()),
        c::DW_FORM_ref2 => unit(input.read_u16()?.into()),
        c::DW_FORM_ref4 => unit(input.read_u32()? as usize),
        c::DW_FORM_ref8 => unit(usize_of(input.read_u64()?)?),
        c::DW_FORM_ref_udata => unit(usize_of(input.read_uleb128()?)?),
        c::DW_FORM_ref_addr => Value::DebugInfoRef(gimli::DebugInfoOffset(match encoding.version {
            // there it is as large as an address
            2 => input.read_sized_offset(encoding.address_size)?,
            _ => input.read_offset(encoding.format)?,
        })),
        c::DW_FORM_ref_sig8 => Value::DebugTypesRef(gimli::DebugTypeSignature(input.read_u64()?)),
        c::DW_FORM_ref_sup4 => Value::DebugInfoRefSup(gimli::DebugInfoOffset(input.read_u32()? as usize)),
        c::DW_FORM_ref_sup8 => Value::DebugInfoRefSup(gimli::DebugInfoOffset(usize_of(input.read_u64()?)?)),
        c::DW_FORM_GNU_ref_alt => {
            Value::DebugInfoRefSup(gimli::DebugInfoOffset(input.read_offset(encoding.format)?))
        }
        c::DW_FORM_string => Value::String(input.read_null_terminated_slice()?),
        c::DW_FORM_strp => Value::DebugStrRef(gimli::DebugStrOffset(input.read_offset(encoding.format)?)),
        c::DW_FORM_strp_sup | c::DW_FORM_GNU_strp_alt => {
            Value::DebugStrRefSup(gimli::DebugStrOffset(input.read_offset(encoding.format)?))
        }
        c::DW_FORM_line_strp => {
            Value::DebugLineStrRef(gimli::DebugLineStrOffset(input.read_offset(encoding.format)?))
        }
        c::DW_FORM_strx | c::DW_FORM_GNU_str_index => indexed(usize_of(input.read_uleb128()?)?),
        c::DW_FORM_strx1 => indexed(input.read_u8()?.into()),
        c::DW_FORM_strx2 => indexed(input.read_u16()?.into()),
        c::DW_FORM_strx3 => indexed(usize_of(input.read_uint(3)?)?),
        c::DW_FORM_strx4 => indexed(input.read_u32()? as usize),
        // addresses, and what is found by them
        _ => {
            skip(input, form, encoding)?;
            return Ok(None);
        }
    }))
}

fn block<'a>(
    input: &mut Slice<'a>,
    size: impl Fn(&mut Slice<'a>) -> gimli::Result<u64>,
) -> gimli::Result<AttributeValue<Slice<'a>>> {
    let size = usize_of(size(input)?)?;
    Ok(AttributeValue::Block(input.split(size)?))
}

/// The kind of the next DIE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The end of a list of children.
    End,
    /// A DIE whose attributes were read.
    Wanted,
    /// A DIE that was passed over.
    Other,
}

impl<'a> Entry<'a> {
    /// Returns the value of an attribute, as it is stored.
    pub(super) fn value(&self, name: DwAt) -> Option<AttributeValue<Slice<'a>>> {
        self.attributes.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }

    /// Returns the attributes that were read.
    pub(super) fn attributes(&self) -> &[(DwAt, AttributeValue<Slice<'a>>)] {
        &self.attributes
    }

    /// Returns `true` if the DIE has an attribute.
    pub(super) fn has(&self, name: DwAt) -> bool {
        self.attributes.iter().any(|(own, _)| *own == name)
    }

    /// Returns the value of an attribute as an integer; those of signed forms are sign-extended.
    pub(super) fn number(&self, name: DwAt) -> Option<u64> {
        number(&self.value(name)?)
    }

    /// Returns true for a flag that is set, or a number that is not 0.
    pub(super) fn flag(&self, name: DwAt) -> bool {
        match self.value(name) {
            Some(AttributeValue::Flag(flag)) => flag,
            Some(value) => number(&value).is_some_and(|number| number != 0),
            None => false,
        }
    }

    /// Returns an offset in a record: a number, or an expression that adds one.
    pub(super) fn offset(&self, name: DwAt) -> Option<u64> {
        let value = self.value(name)?;
        let bytes = match value {
            AttributeValue::Block(block) => block,
            _ => return number(&value),
        };
        let (&operation, rest) = bytes.slice().split_first()?;
        match constants::DwOp(operation) {
            constants::DW_OP_plus_uconst | constants::DW_OP_constu => {
                // what goes on computes something else
                let end = rest.iter().position(|byte| byte & 0x80 == 0)?;
                uleb(rest).filter(|_| end + 1 == rest.len())
            }
            _ => None,
        }
    }

    /// Returns the target of a reference.
    pub(super) fn target(&self, units: &Units<'a>, unit: usize, name: DwAt) -> Option<GlobalDieOffset> {
        units.target(unit, &self.value(name)?)
    }

    /// Returns the bytes of a string.
    pub(super) fn string(
        &self,
        units: &Units<'a>,
        unit: usize,
        context: &Context,
        name: DwAt,
    ) -> Option<&'a [u8]> {
        units.string(unit, context, &self.value(name)?)
    }

    /// Finds out what tells a member that was read from others.
    pub(super) fn note_traits(&mut self) {
        self.traits = self.find_traits();
    }

    /// Hashes the attributes that give the offsets of a DIE's members, to compare DIEs of two units.
    pub(super) fn hash_numbers(&self, names: &[DwAt], hasher: &mut impl std::hash::Hasher) {
        for name in names {
            self.number_of(*name).hash(hasher);
        }
    }

    fn number_of(&self, name: DwAt) -> Trait {
        match self.offset(name) {
            Some(number) => Trait::Number(number),
            None if self.has(name) => Trait::Odd,
            None => Trait::Absent,
        }
    }

    /// Returns the attributes that tell a member that was read from others.
    pub(super) fn find_traits(&self) -> Traits<'a> {
        Traits { name: self.value(constants::DW_AT_name), numbers: PLACES.map(|name| self.number_of(name)) }
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
