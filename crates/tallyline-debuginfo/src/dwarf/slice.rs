//! The bytes that gimli reads.

/// The bytes of a DWARF section with the byte order of the file, as gimli reads them.
pub(crate) type Slice<'a> = gimli::EndianSlice<'a, gimli::RunTimeEndian>;
