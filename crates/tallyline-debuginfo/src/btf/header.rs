//! The header and the sections it names.

use super::Bytes;
use crate::error::{Error, Result};

/// The parsed header of a BTF blob: its byte order, and its type and string sections.
#[derive(Debug)]
pub(crate) struct Header<'a> {
    /// The entries of the types.
    pub(crate) types: &'a [u8],
    /// The offset of the types in the BTF.
    pub(crate) types_offset: u64,
    /// The strings, each ended by a zero.
    pub(crate) strings: &'a [u8],
    /// `true` if numbers are big-endian.
    pub(crate) big_endian: bool,
}

const VERSION: u8 = 1;
const SMALLEST: u32 = 24;

impl<'a> Header<'a> {
    /// Parses and checks the header of a BTF blob; an error if its version is unknown or a section lies beyond the
    /// data.
    pub(crate) fn parse(btf: &'a [u8]) -> Result<Header<'a>> {
        let [magic0, magic1, version, _flags, ..] = *btf else {
            return Err(Error::Btf { offset: 0, reason: "shorter than a header" });
        };
        let big_endian = match [magic0, magic1] {
            [0x9f, 0xeb] => false,
            [0xeb, 0x9f] => true,
            _ => return Err(Error::Btf { offset: 0, reason: "no BTF magic" }),
        };
        if version != VERSION {
            return Err(Error::Btf { offset: 2, reason: "a version other than 1" });
        }
        let mut bytes = Bytes::new(btf, 0, big_endian);
        bytes.skip(4)?;
        let length = bytes.u32()?;
        if length < SMALLEST {
            return Err(Error::Btf { offset: 4, reason: "a header shorter than 24 bytes" });
        }
        let (types_at, types_length) = (bytes.u32()?, bytes.u32()?);
        let (strings_at, strings_length) = (bytes.u32()?, bytes.u32()?);
        let section = |at: u32, size: u32, field: u64| {
            let start = length as usize + at as usize;
            btf.get(start..start + size as usize)
                .ok_or(Error::Btf { offset: field, reason: "a section beyond the end of the data" })
        };
        Ok(Header {
            types: section(types_at, types_length, 8)?,
            types_offset: u64::from(length) + u64::from(types_at),
            strings: section(strings_at, strings_length, 16)?,
            big_endian,
        })
    }
}
