//! One unit of a file.

use super::Slice;
use super::source::Contribution;
use gimli::UnitHeader;

/// A unit of a file or of one of its companions: header, global offset and size.
pub(super) struct Unit<'a> {
    pub(super) header: UnitHeader<Slice<'a>>,
    pub(super) start: usize,
    // with its header; that of a unit that is read on demand knows only what was read of it
    pub(super) size: usize,
    pub(super) source: usize,
    pub(super) contribution: Contribution,
    // of what was split off: the unit it was split off from
    pub(super) skeleton: Option<usize>,
}
