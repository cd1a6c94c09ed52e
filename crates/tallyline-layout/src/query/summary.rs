//! The numbers of holes and padding.

/// The unused space of a struct in numbers: holes, bit holes, bytes and bits of padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub(crate) holes: u32,
    pub(crate) bit_holes: u32,
    pub(crate) padding: u64,
    pub(crate) bit_padding: u8,
}

impl Summary {
    /// Returns the number of holes (runs of unused bytes) between the struct's members.
    pub fn holes(&self) -> u32 {
        self.holes
    }

    /// Returns the number of bit holes (runs of unused bits) between the struct's bitfields.
    pub fn bit_holes(&self) -> u32 {
        self.bit_holes
    }

    /// Returns the number of unused bytes after the struct's last member.
    pub fn padding(&self) -> u64 {
        self.padding
    }

    /// Returns the number of unused bits after the struct's last bitfield, if that is the last member; else 0.
    pub fn bit_padding(&self) -> u8 {
        self.bit_padding
    }
}
