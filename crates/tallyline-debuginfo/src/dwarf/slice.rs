//! The bytes that gimli reads.

/// Bytes of a DWARF section with the file's byte order: the reader type that gimli is used with.
pub(crate) type Slice<'a> = gimli::EndianSlice<'a, gimli::RunTimeEndian>;
