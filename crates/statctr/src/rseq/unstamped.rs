//! `add_stamped` and `commit_stamped` where there are none: lines are not stamped, and folds read all of them.

use super::Stamps;

/// No section of this machine stamps lines: its stores become visible in any order, or there are no sections.
pub(crate) const CAN_STAMP: bool = false;

/// Never adds to a counter, and returns `false`: no lines are stamped on this machine.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn add_stamped(_base: *mut u8, _table: *const u8, _stamps: Stamps, _value: u64) -> bool {
    false
}

/// Never adds to an event's items, and returns `false`: no lines are stamped on this machine.
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
