//! `add_stamped` and `commit_stamped` where there are none: lines are not stamped, and folds read all of them.

use super::Stamps;

/// Support for stamping cache lines of counters as written, so that an incremental fold rereads only those: `false`, as
/// the architecture's stores become visible in any order or it has no rseq critical sections.
pub(crate) const CAN_STAMP: bool = false;

/// Adds nothing to the counter and returns `false`: a stub for architectures on which cache lines cannot be stamped as
/// written.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn add_stamped(_base: *mut u8, _table: *const u8, _stamps: Stamps, _value: u64) -> bool {
    false
}

/// Adds nothing to the items of an event (statistics updated together) and returns `false`: a stub for architectures on
/// which cache lines cannot be stamped as written.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn commit_stamped<const N: usize>(
    _base: *mut u8,
    _table: *const u8,
    _stamps: Stamps,
    _deltas: &[u64; N],
) -> bool {
    false
}
