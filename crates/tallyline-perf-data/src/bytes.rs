//! A cursor over bytes of either order that never reads past their end.

use crate::{Error, Result};

/// The byte order of a perf.data file: that of the machine which recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// The byte order of this machine.
    pub(crate) const NATIVE: Self = if cfg!(target_endian = "little") { Self::Little } else { Self::Big };

    pub(crate) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(crate) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Splits a decoded 64-bit word of a perf.data file into its two 32-bit numbers, the one at the lower offset first.
    #[inline]
    pub(crate) fn halves(self, word: u64) -> [u32; 2] {
        let (low, high) = (word as u32, (word >> 32) as u32);
        match self {
            Self::Little => [low, high],
            Self::Big => [high, low],
        }
    }

    pub(crate) fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }
}

/// A bounds-checked reader of integers from the bytes of a perf.data file, which knows its offset in the file.
///
/// Errors are [`Error::Damaged`] with the offset and the name of the item that is too short.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
    /// The offset of the first of `bytes`, for messages.
    offset: u64,
}

impl<'a> Cursor<'a> {
    /// Creates a reader of integers from `bytes`, which start at `offset` of a perf.data file.
    #[inline]
    pub fn new(bytes: &'a [u8], order: ByteOrder, offset: u64) -> Self {
        Self { bytes, order, offset }
    }

    /// Returns the bytes of the perf.data file that the cursor has not read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns `true` if the cursor has read all bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the byte order in which the cursor reads integers, that of the perf.data file.
    pub(crate) fn order(&self) -> ByteOrder {
        self.order
    }

    /// Returns the offset in the perf.data file of the next byte to read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Creates the error that the perf.data file is damaged at the cursor's current offset, with a reason.
    pub fn error(&self, reason: impl Into<String>) -> Error {
        Error::damaged(self.offset, reason)
    }

    #[cold]
    fn too_short(&self, what: &str, wanted: u64) -> Error {
        self.error(format!("{what}: {wanted} bytes wanted, {} left", self.bytes.len()))
    }

    /// Reads the next `len` bytes; fails if fewer are left, with an error that calls them `what`.
    #[inline]
    pub fn take(&mut self, len: u64, what: &str) -> Result<&'a [u8]> {
        let split = usize::try_from(len).ok().and_then(|len| self.bytes.split_at_checked(len));
        let Some((taken, rest)) = split else {
            return Err(self.too_short(what, len));
        };
        self.bytes = rest;
        self.offset = self.offset.saturating_add(len);
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let Some((taken, rest)) = self.bytes.split_first_chunk::<N>() else {
            return Err(self.too_short(what, N as u64));
        };
        self.bytes = rest;
        self.offset = self.offset.saturating_add(N as u64);
        Ok(*taken)
    }

    /// Reads a 16-bit integer; fails at the end, with an error that calls it `what`.
    #[inline]
    pub fn u16(&mut self, what: &str) -> Result<u16> {
        Ok(self.order.u16(self.array(what)?))
    }

    /// Reads a 32-bit integer; fails at the end, with an error that calls it `what`.
    #[inline]
    pub fn u32(&mut self, what: &str) -> Result<u32> {
        Ok(self.order.u32(self.array(what)?))
    }

    /// Reads a 64-bit integer; fails at the end, with an error that calls it `what`.
    #[inline]
    pub fn u64(&mut self, what: &str) -> Result<u64> {
        Ok(self.order.u64(self.array(what)?))
    }

    /// Reads `count` 64-bit words; `None` if fewer are left, and then reads nothing.
    #[inline]
    pub(crate) fn words_if_there(&mut self, count: u32) -> Option<Words<'a>> {
        let (bytes, rest) = self.bytes.split_at_checked(count as usize * 8)?;
        self.bytes = rest;
        self.offset = self.offset.saturating_add(bytes.len() as u64);
        Some(Words { bytes, order: self.order })
    }

    /// Reads `count` 64-bit words, undecoded; fails if fewer are left, with an error that calls them `what`.
    #[inline]
    pub(crate) fn words(&mut self, count: u64, what: &str) -> Result<Words<'a>> {
        let len = count.checked_mul(8).ok_or_else(|| self.error(format!("{what}: {count} words")))?;
        Ok(Words { bytes: self.take(len, what)?, order: self.order })
    }
}

/// A borrowed array of 64-bit integers in a perf.data file, which are decoded when they are accessed.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> Words<'a> {
    /// Returns the number of 64-bit integers in this array of a perf.data file.
    pub fn len(&self) -> usize {
        self.bytes.len() / 8
    }

    /// Returns `true` if this array of a perf.data file has no integers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Decodes the 64-bit integer at an index of this array of a perf.data file; `None` past its end.
    pub fn get(&self, index: usize) -> Option<u64> {
        let start = index.checked_mul(8)?;
        let bytes = self.bytes.get(start..)?.first_chunk()?;
        Some(self.order.u64(*bytes))
    }

    /// Returns an iterator that decodes all 64-bit integers of this array of a perf.data file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        let order = self.order;
        self.bytes.as_chunks().0.iter().map(move |bytes| order.u64(*bytes))
    }

    pub(crate) fn order(&self) -> ByteOrder {
        self.order
    }
}

impl PartialEq for Words<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Words<'_> {}

/// Returns the bytes before the first zero byte, as of a C string in a fixed field; all if there is none.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_an_error_with_its_offset() {
        let mut cursor = Cursor::new(&[1, 0, 0, 0, 5], ByteOrder::Little, 0x100);
        assert_eq!(cursor.u32("id").expect("four bytes"), 1);
        let error = cursor.u32("time").expect_err("one byte is left");
        assert_eq!(error.to_string(), "damaged perf.data at offset 0x104: time: 4 bytes wanted, 1 left");
        assert!(cursor.take(u64::MAX, "data").is_err());
        assert!(cursor.words(u64::MAX / 2, "call chain").is_err());
        assert_eq!(cursor.rest(), [5], "nothing was consumed by what failed");
    }

    #[test]
    fn words_are_read_in_the_order_of_the_file() {
        let bytes = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0];
        let words = Cursor::new(&bytes, ByteOrder::Big, 0).words(2, "words").expect("two words");
        assert_eq!(words.iter().collect::<Vec<_>>(), [1, 256]);
        assert_eq!((words.get(1), words.get(2), words.len()), (Some(256), None, 2));
        let words = Cursor::new(&bytes, ByteOrder::Little, 0).words(1, "words").expect("one word");
        assert_eq!(words.get(0), Some(1 << 56));
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let mut cursor = Cursor::new(&bytes, order, 0);
            let halves = [cursor.u32("one").expect("there"), cursor.u32("other").expect("there")];
            let mut whole = Cursor::new(&bytes, order, 0);
            assert!(whole.words_if_there(3).is_none() && whole.rest().len() == 16);
            let word = whole.words_if_there(1).and_then(|words| words.get(0)).expect("there");
            assert_eq!((order.halves(word), whole.offset(), whole.rest()), (halves, 8, cursor.rest()));
        }
    }
}
