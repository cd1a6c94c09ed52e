//! The numbers of holes and padding.

/// The numbers of holes, and of unused bytes and bits, of a struct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub(crate) holes: u32,
    pub(crate) bit_holes: u32,
    pub(crate) padding: u64,
    pub(crate) bit_padding: u8,
}

impl Summary {
    /// Returns the number of the struct's holes of whole bytes.
    pub fn holes(&self) -> u32 {
        self.holes
    }

    /// Returns the number of the struct's holes of bits between bitfields.
    pub fn bit_holes(&self) -> u32 {
        self.bit_holes
    }

    /// Returns the number of unused bytes behind the struct's last member.
    pub fn padding(&self) -> u64 {
        self.padding
    }

    /// Returns the number of unused bits behind the struct's last bitfield, if it is the last member.
    pub fn bit_padding(&self) -> u8 {
        self.bit_padding
    }
}
