//! The numbers of holes and padding.

/// The unused bytes and bits of a struct, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub(crate) holes: u32,
    pub(crate) bit_holes: u32,
    pub(crate) padding: u64,
    pub(crate) bit_padding: u8,
}

impl Summary {
    /// Returns the number of holes of whole bytes.
    pub fn holes(&self) -> u32 {
        self.holes
    }

    /// Returns the number of holes of bits.
    pub fn bit_holes(&self) -> u32 {
        self.bit_holes
    }

    /// Returns the number of bytes behind the last member.
    pub fn padding(&self) -> u64 {
        self.padding
    }

    /// Returns the number of bits behind the last bitfield, if it is the last member.
    pub fn bit_padding(&self) -> u8 {
        self.bit_padding
    }
}
