//! The layouts of structs, as they are and as edits promise them.

/// A member's name, first bit and number of bits.
pub(crate) type PlacedMember = (String, u64, u64);

/// The layout of a struct that its edited declaration must have: size and places of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The size in bytes.
    pub(crate) size: u64,
    /// The members that take place, in order.
    pub(crate) members: Vec<PlacedMember>,
}
