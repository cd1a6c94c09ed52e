//! Reading numbers of either byte order from a slice, with every access checked.

use crate::error::{Error, Result};

/// A cursor that reads numbers from a part of BTF: position and byte order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    slice: &'a [u8],
    position: usize,
    // what the position is counted from, for messages
    origin: u64,
    big_endian: bool,
}

impl<'a> Bytes<'a> {
    /// Creates a cursor at the start of bytes that lie at offset `origin` of the BTF.
    pub(crate) fn new(slice: &'a [u8], origin: u64, big_endian: bool) -> Bytes<'a> {
        Bytes { slice, position: 0, origin, big_endian }
    }

    /// Returns `true` if all bytes of the BTF's part were read.
    pub(crate) fn is_empty(&self) -> bool {
        self.position >= self.slice.len()
    }

    /// Returns the offset in the whole BTF of the byte that is read next.
    pub(crate) fn offset(&self) -> u64 {
        self.origin + self.position as u64
    }

    /// Returns the offset of the next byte to be read in the cursor's own part.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Moves the cursor to a position in its part of the BTF; a position beyond the end means the end.
    pub(crate) fn seek(&mut self, position: usize) {
        self.position = position.min(self.slice.len());
    }

    /// Returns the number of bytes of the part that were not read yet.
    pub(crate) fn left(&self) -> usize {
        self.slice.len() - self.position
    }

    /// Returns an error that names the cursor's offset in the BTF.
    pub(crate) fn error(&self, reason: &'static str) -> Error {
        Error::Btf { offset: self.offset(), reason }
    }

    /// Reads the next 4-byte number of the BTF.
    pub(crate) fn u32(&mut self) -> Result<u32> {
        let Some(&word) = self.slice[self.position..].first_chunk::<4>() else {
            return Err(self.error("the data ends within an entry"));
        };
        self.position += 4;
        Ok(if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
    }

    /// Moves the cursor over some bytes of the BTF.
    pub(crate) fn skip(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.left() {
            return Err(self.error("the data ends within an entry"));
        }
        self.position += bytes;
        Ok(())
    }
}
