//! The numbers of holes and padding.

/// The unused bytes and bits of a struct, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Holes of whole bytes.
    pub holes: u32,
    /// Holes of bits.
    pub bit_holes: u32,
    /// Bytes behind the last member.
    pub padding: u64,
    /// Bits behind the last bitfield, if it is the last member.
    pub bit_padding: u8,
}
