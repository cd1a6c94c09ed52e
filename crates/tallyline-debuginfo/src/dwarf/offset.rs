//! Offsets of DIEs.

/// The offset of a DIE, counted through `.debug_info` and `.debug_types` of the file, and then through those
/// of its companions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct GlobalDieOffset(pub(super) usize);

impl GlobalDieOffset {
    /// In a file that is not there.
    pub(super) const MISSING: GlobalDieOffset = GlobalDieOffset(usize::MAX);
    /// Beyond the end of a file.
    pub(super) const NOWHERE: GlobalDieOffset = GlobalDieOffset(usize::MAX - 1);
}
