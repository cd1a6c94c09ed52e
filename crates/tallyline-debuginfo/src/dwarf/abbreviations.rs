//! The abbreviations of a unit's entries, made ready for reading them: most entries are left out, and
//! that takes one step where all entries of an abbreviation are of one size.

use super::Slice;
use gimli::constants::{self, DwAt, DwForm, DwTag};
use gimli::{Encoding, Error, Reader, Result};
use rustc_hash::FxHashMap;

/// The abbreviations of a unit.
pub(super) struct Abbreviations {
    // by code: compilers count from 1
    dense: Vec<Abbreviation>,
    // how far it is from one entry to the next, of the same
    strides: Vec<Stride>,
    runs: Vec<Run>,
    others: FxHashMap<u64, Abbreviation>,
    attributes: Vec<Attribute>,
    members: Vec<Fields>,
    /// The encoding on which the sizes of values depend.
    pub(super) encoding: Encoding,
}

/// An abbreviation: the shape of all DIEs with one code.
#[derive(Clone, Copy)]
pub(super) struct Abbreviation {
    pub(super) tag: DwTag,
    pub(super) has_children: bool,
    /// The size of all values together in bytes, if it is the same for all DIEs.
    pub(super) size: Option<u32>,
    /// The attribute with the offset of the next sibling.
    pub(super) sibling: Option<Sibling>,
    start: u32,
    end: u32,
    // of what is not of one size: the runs that it is made of
    runs: [u32; 2],
    // which of the members it is, counted from 1
    member: u32,
}

/// The attributes that tell members apart, in this order, if they are numbers.
pub(super) const PLACES: [DwAt; 4] = [
    constants::DW_AT_data_member_location,
    constants::DW_AT_data_bit_offset,
    constants::DW_AT_bit_offset,
    constants::DW_AT_bit_size,
];

/// The offsets of the attributes that tell members apart, for all DIEs of an abbreviation.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    /// The bytes before the name, which is an offset of a string in `.debug_str`.
    pub(super) name: Option<u32>,
    /// The numbers of [`PLACES`].
    pub(super) numbers: [Field; PLACES.len()],
}

/// The location of a number in the DIEs of an abbreviation.
#[derive(Clone, Copy)]
pub(super) enum Field {
    /// A number that the DIEs do not have.
    Absent,
    /// A number that is the same for all DIEs.
    Constant(i64),
    /// A number in the DIE itself: the bytes before it, and its size in bytes.
    At(u32, u32),
}

/// The attribute with the offset of a DIE's next sibling.
#[derive(Clone, Copy)]
pub(super) struct Sibling {
    /// The index of the attribute.
    pub(super) index: u32,
    /// The number of bytes before it, if it is the same for all DIEs.
    pub(super) before: Option<u32>,
}

/// The distance from the end of a DIE's code to the next DIE, where it is the same for all DIEs of the
/// abbreviation, and whether that DIE is a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stride(u32);

impl Stride {
    /// The stride of an abbreviation that does not fix it: a DIE has to be read to find the next one.
    const UNKNOWN: Stride = Stride(u32::MAX);

    fn of(abbreviation: &Abbreviation) -> Stride {
        let known = abbreviation.size.filter(|size| *size < 1 << 31 && abbreviation.sibling.is_none());
        known.map_or(Stride::UNKNOWN, |size| Stride(size << 1 | u32::from(abbreviation.has_children)))
    }

    /// Returns the bytes, and the change of depth to the next DIE.
    #[inline]
    pub(super) fn get(self) -> Option<(usize, isize)> {
        (self != Stride::UNKNOWN).then_some(((self.0 >> 1) as usize, (self.0 & 1) as isize))
    }
}

/// Values of an entry: some that are always of one size together, and one that is not.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) size: u32,
    pub(super) then: Option<DwForm>,
}

/// An attribute, and how its value is stored.
#[derive(Clone, Copy)]
pub(super) struct Attribute {
    pub(super) name: DwAt,
    pub(super) form: DwForm,
    /// The value where the abbreviation has it.
    pub(super) constant: i64,
}

impl Abbreviations {
    /// Parses a table of abbreviations.
    pub(super) fn parse(mut table: Slice<'_>, encoding: Encoding) -> Result<Abbreviations> {
        let mut all = Abbreviations {
            dense: Vec::new(),
            strides: Vec::new(),
            runs: Vec::new(),
            others: FxHashMap::default(),
            attributes: Vec::new(),
            members: Vec::new(),
            encoding,
        };
        loop {
            let code = table.read_uleb128()?;
            if code == 0 {
                return Ok(all);
            }
            let abbreviation = all.parse_one(&mut table)?;
            if code == all.dense.len() as u64 + 1 && all.others.is_empty() {
                all.dense.push(abbreviation);
                all.strides.push(Stride::of(&abbreviation));
            } else if all.get(code).is_some() {
                return Err(Error::DuplicateAbbreviationCode(code));
            } else {
                all.others.insert(code, abbreviation);
            }
        }
    }

    fn parse_one(&mut self, table: &mut Slice<'_>) -> Result<Abbreviation> {
        let tag = DwTag(table.read_uleb128_u16()?);
        if tag == constants::DW_TAG_null {
            return Err(Error::AbbreviationTagZero);
        }
        let has_children = match constants::DwChildren(table.read_u8()?) {
            constants::DW_CHILDREN_no => false,
            constants::DW_CHILDREN_yes => true,
            other => return Err(Error::InvalidAbbreviationChildren(other)),
        };
        let start = self.attributes.len() as u32;
        let mut size = Some(0_u32);
        let mut sibling = None;
        loop {
            let (name, form) = (DwAt(table.read_uleb128_u16()?), DwForm(table.read_uleb128_u16()?));
            match (name, form) {
                (constants::DW_AT_null, constants::DW_FORM_null) => break,
                (constants::DW_AT_null, _) => return Err(Error::AttributeNameZero),
                (_, constants::DW_FORM_null) => return Err(Error::AttributeFormZero),
                _ => {}
            }
            let constant = if form == constants::DW_FORM_implicit_const { table.read_sleb128()? } else { 0 };
            if name == constants::DW_AT_sibling && has_children && sibling.is_none() {
                sibling = Some(Sibling { index: self.attributes.len() as u32 - start, before: size });
            }
            size = size.zip(size_of(form, self.encoding)).and_then(|(sum, size)| sum.checked_add(size));
            self.attributes.push(Attribute { name, form, constant });
        }
        let end = self.attributes.len() as u32;
        let runs = if size.is_none() { self.add_runs(start as usize) } else { [0, 0] };
        let mut abbreviation = Abbreviation { tag, has_children, size, sibling, start, end, runs, member: 0 };
        if matches!(tag, constants::DW_TAG_member | constants::DW_TAG_inheritance) && size.is_some() {
            let fields = fields(self.attributes(&abbreviation), self.encoding);
            self.members.extend(fields);
            abbreviation.member = self.members.len() as u32 * u32::from(fields.is_some());
        }
        Ok(abbreviation)
    }

    /// Makes runs of the attributes from one on.
    fn add_runs(&mut self, start: usize) -> [u32; 2] {
        let first = self.runs.len() as u32;
        let mut run = 0_u32;
        for Attribute { form, .. } in self.attributes.get(start..).unwrap_or(&[]) {
            match size_of(*form, self.encoding).and_then(|size| run.checked_add(size)) {
                Some(sum) => run = sum,
                None => {
                    self.runs.push(Run { size: run, then: Some(*form) });
                    run = 0;
                }
            }
        }
        self.runs.push(Run { size: run, then: None });
        [first, self.runs.len() as u32]
    }

    /// Returns `true` if every entry but the first one of a unit stores its name in itself, or as an offset
    /// in `.debug_str`.
    pub(super) fn store_names_plainly(&self) -> bool {
        let mut entries = self.dense.iter().chain(self.others.values());
        entries.all(|abbreviation| {
            matches!(
                abbreviation.tag,
                constants::DW_TAG_compile_unit
                    | constants::DW_TAG_partial_unit
                    | constants::DW_TAG_skeleton_unit
            ) || self.attributes(abbreviation).iter().all(|attribute| {
                attribute.name != constants::DW_AT_name
                    || matches!(attribute.form, constants::DW_FORM_string | constants::DW_FORM_strp)
            })
        })
    }

    /// Returns the distance from a DIE with a code to the next one, and its change of depth.
    #[inline]
    pub(super) fn stride(&self, code: usize) -> Option<(usize, isize)> {
        self.strides.get(code.wrapping_sub(1))?.get()
    }

    /// Returns the runs of values of such DIEs, if they are not all of one size.
    pub(super) fn runs(&self, of: &Abbreviation) -> &[Run] {
        self.runs.get(of.runs[0] as usize..of.runs[1] as usize).unwrap_or(&[])
    }

    /// Returns the abbreviation with a code.
    pub(super) fn get(&self, code: u64) -> Option<&Abbreviation> {
        match usize::try_from(code.wrapping_sub(1)).ok().and_then(|index| self.dense.get(index)) {
            None if !self.others.is_empty() => self.others.get(&code),
            found => found,
        }
    }

    /// Returns the offsets of the attributes that tell members apart, if they are the same for all such DIEs.
    pub(super) fn fields(&self, of: &Abbreviation) -> Option<&Fields> {
        self.members.get((of.member as usize).checked_sub(1)?)
    }

    /// Returns the attributes of such entries.
    pub(super) fn attributes(&self, of: &Abbreviation) -> &[Attribute] {
        self.attributes.get(of.start as usize..of.end as usize).unwrap_or(&[])
    }
}

/// Returns the offsets of the attributes that tell members apart; none if they have to be read.
fn fields(attributes: &[Attribute], encoding: Encoding) -> Option<Fields> {
    let mut fields = Fields { name: None, numbers: [Field::Absent; PLACES.len()] };
    let mut before = 0;
    for Attribute { name, form, constant } in attributes {
        let size = size_of(*form, encoding)?;
        if *name == constants::DW_AT_name {
            (*form == constants::DW_FORM_strp).then_some(())?;
            fields.name = Some(before);
        } else if let Some(index) = PLACES.iter().position(|place| place == name) {
            fields.numbers[index] = match *form {
                constants::DW_FORM_implicit_const => Field::Constant(*constant),
                constants::DW_FORM_data1
                | constants::DW_FORM_data2
                | constants::DW_FORM_data4
                | constants::DW_FORM_data8 => Field::At(before, size),
                _ => return None,
            };
        }
        before = before.checked_add(size)?;
    }
    Some(fields)
}

/// Returns the size of a value in bytes; none if it varies.
fn size_of(form: DwForm, encoding: Encoding) -> Option<u32> {
    use constants as c;
    Some(match form {
        c::DW_FORM_flag_present | c::DW_FORM_implicit_const => 0,
        c::DW_FORM_data1 | c::DW_FORM_flag | c::DW_FORM_ref1 | c::DW_FORM_strx1 | c::DW_FORM_addrx1 => 1,
        c::DW_FORM_data2 | c::DW_FORM_ref2 | c::DW_FORM_strx2 | c::DW_FORM_addrx2 => 2,
        c::DW_FORM_strx3 | c::DW_FORM_addrx3 => 3,
        c::DW_FORM_data4 | c::DW_FORM_ref4 | c::DW_FORM_strx4 | c::DW_FORM_ref_sup4 | c::DW_FORM_addrx4 => 4,
        c::DW_FORM_data8 | c::DW_FORM_ref8 | c::DW_FORM_ref_sig8 | c::DW_FORM_ref_sup8 => 8,
        c::DW_FORM_data16 => 16,
        c::DW_FORM_addr => encoding.address_size.into(),
        // in version 2 it is as large as an address
        c::DW_FORM_ref_addr if encoding.version == 2 => encoding.address_size.into(),
        c::DW_FORM_ref_addr
        | c::DW_FORM_sec_offset
        | c::DW_FORM_GNU_ref_alt
        | c::DW_FORM_strp
        | c::DW_FORM_strp_sup
        | c::DW_FORM_GNU_strp_alt
        | c::DW_FORM_line_strp => encoding.format.word_size().into(),
        _ => return None,
    })
}

/// Leaves out a value.
pub(super) fn skip(input: &mut Slice<'_>, mut form: DwForm, encoding: Encoding) -> Result<()> {
    use constants as c;
    loop {
        if let Some(size) = size_of(form, encoding) {
            return input.skip(size as usize);
        }
        let size = match form {
            c::DW_FORM_indirect => {
                form = DwForm(input.read_uleb128_u16()?);
                continue;
            }
            c::DW_FORM_block1 => input.read_u8()?.into(),
            c::DW_FORM_block2 => input.read_u16()?.into(),
            c::DW_FORM_block4 => input.read_u32()? as usize,
            c::DW_FORM_block | c::DW_FORM_exprloc => usize_of(input.read_uleb128()?)?,
            c::DW_FORM_string => return input.read_null_terminated_slice().map(|_| ()),
            c::DW_FORM_udata
            | c::DW_FORM_sdata
            | c::DW_FORM_ref_udata
            | c::DW_FORM_strx
            | c::DW_FORM_GNU_str_index
            | c::DW_FORM_addrx
            | c::DW_FORM_GNU_addr_index
            | c::DW_FORM_loclistx
            | c::DW_FORM_rnglistx => return input.skip_leb128(),
            _ => return Err(Error::UnknownForm(form)),
        };
        return input.skip(size);
    }
}

pub(super) fn usize_of(number: u64) -> Result<usize> {
    usize::try_from(number).map_err(|_| Error::UnsupportedOffset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::{Format, RunTimeEndian};

    const ENCODING: Encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 5 };

    fn parse(table: &[u8]) -> Result<Abbreviations> {
        Abbreviations::parse(Slice::new(table, RunTimeEndian::Little), ENCODING)
    }

    // base_type: byte_size data1, name strp; structure_type with children: name string, sibling ref4
    const BASE: [u8; 8] = [0x24, 0, 0x0b, 0x0b, 0x03, 0x0e, 0, 0];
    const STRUCT: [u8; 8] = [0x13, 1, 0x03, 0x08, 0x01, 0x13, 0, 0];

    #[test]
    fn codes_are_found_whatever_their_order() {
        let table = [&[1][..], &BASE, &[9], &STRUCT, &[2], &BASE, &[0xff, 0x7f], &BASE, &[0]].concat();
        let all = parse(&table).expect("well formed");
        for code in [1, 2, 0x3fff] {
            let base = all.get(code).expect("there");
            assert_eq!((base.tag, base.size), (constants::DW_TAG_base_type, Some(5)), "{code}");
        }
        let record = all.get(9).expect("there");
        assert_eq!((record.tag, record.size), (constants::DW_TAG_structure_type, None));
        let sibling = record.sibling.expect("there");
        assert_eq!((sibling.index, sibling.before), (1, None));
        assert!([0, 3, 8, u64::MAX].iter().all(|code| all.get(*code).is_none()));
    }

    #[test]
    fn a_table_that_is_damaged_is_an_error() {
        let twice = [&[1][..], &BASE, &[1], &BASE, &[0]].concat();
        assert!(matches!(parse(&twice), Err(Error::DuplicateAbbreviationCode(1))));
        for end in 0..BASE.len() + 1 {
            assert!(parse(&[&[1][..], &BASE].concat()[..end]).is_err(), "{end}");
        }
        assert!(matches!(parse(&[1, 0x24, 2, 0, 0, 0]), Err(Error::InvalidAbbreviationChildren(_))));
        assert!(matches!(parse(&[1, 0, 0, 0, 0, 0]), Err(Error::AbbreviationTagZero)));
    }

    #[test]
    fn members_of_one_shape_need_no_reading() {
        // member: name strp, decl_line data2, type ref4, data_member_location data1, bit_size constant 3
        let member = [0x0d, 0, 0x03, 0x0e, 0x3b, 0x05, 0x49, 0x13, 0x38, 0x0b, 0x0d, 0x21, 3, 0, 0];
        let inline = [0x0d, 0, 0x03, 0x08, 0x38, 0x0b, 0, 0];
        let all = parse(&[&[1][..], &member, &[2], &inline, &[0]].concat()).expect("well formed");
        let fields = all.fields(all.get(1).expect("there")).expect("of one shape");
        assert_eq!(fields.name, Some(0));
        let [location, data_bit, bit, bits] = fields.numbers;
        assert!(matches!(location, Field::At(10, 1)), "behind the name, the line and the type");
        assert!(matches!((data_bit, bit, bits), (Field::Absent, Field::Absent, Field::Constant(3))));
        assert!(all.fields(all.get(2).expect("there")).is_none());
    }
}
