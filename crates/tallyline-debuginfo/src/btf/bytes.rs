//! Reading numbers of either byte order from a slice, with every access checked.

use crate::error::{Error, Result};

/// A cursor over one section of a BTF blob that reads 32-bit numbers in the file's byte order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    slice: &'a [u8],
    position: usize,
    // what the position is counted from, for messages
    origin: u64,
    big_endian: bool,
}

impl<'a> Bytes<'a> {
    /// Creates a cursor at the start of `slice`, which lies at offset `origin` of the BTF blob; the offset serves error
    /// messages.
    pub(crate) fn new(slice: &'a [u8], origin: u64, big_endian: bool) -> Bytes<'a> {
        Bytes { slice, position: 0, origin, big_endian }
    }

    /// Returns `true` if the cursor is at the end of its section of the BTF blob.
    pub(crate) fn is_empty(&self) -> bool {
        self.position >= self.slice.len()
    }

    /// Returns the offset of the next byte to be read, from the start of the whole BTF blob.
    pub(crate) fn offset(&self) -> u64 {
        self.origin + self.position as u64
    }

    /// Returns the offset of the next byte to be read, from the start of the cursor's section of the BTF blob.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Moves the cursor to an offset in its section of the BTF blob, at most to the section's end.
    pub(crate) fn seek(&mut self, position: usize) {
        self.position = position.min(self.slice.len());
    }

    /// Returns the number of bytes of the cursor's BTF section that are still to be read.
    pub(crate) fn remaining(&self) -> usize {
        self.slice.len() - self.position
    }

    /// Creates the error "invalid BTF" with this reason and the cursor's offset.
    pub(crate) fn error(&self, reason: &'static str) -> Error {
        Error::Btf { offset: self.offset(), reason }
    }

    /// Reads a 32-bit number of the BTF and advances the cursor past it; an error at the section's end.
    pub(crate) fn u32(&mut self) -> Result<u32> {
        let Some(&word) = self.slice[self.position..].first_chunk::<4>() else {
            return Err(self.error("the data ends within an entry"));
        };
        self.position += 4;
        Ok(if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
    }

    /// Advances the cursor by a number of bytes of its BTF section; an error if the section ends before.
    pub(crate) fn skip(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.remaining() {
            return Err(self.error("the data ends within an entry"));
        }
        self.position += bytes;
        Ok(())
    }
}
