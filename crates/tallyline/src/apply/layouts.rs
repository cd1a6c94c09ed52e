//! The layouts of structs, as they are and as edits promise them.

/// A member of a struct's layout: its name, its offset in bits, and its size in bits.
pub(crate) type PlacedMember = (String, u64, u64);

/// The layout of a struct, to compare the one promised by an edit with the one compiled: its size, and the offsets
/// and sizes of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The size in bytes.
    pub(crate) size: u64,
    /// The members that take place, in order.
    pub(crate) members: Vec<PlacedMember>,
}
