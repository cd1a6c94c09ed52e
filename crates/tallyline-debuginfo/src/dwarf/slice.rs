//! The bytes that gimli reads.

/// The reader that gimli reads from: a slice of a section, with the byte order of the file.
pub(crate) type Slice<'a> = gimli::EndianSlice<'a, gimli::RunTimeEndian>;
