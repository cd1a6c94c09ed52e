//! `add_predicted` of the specification where it is `add`: the displacement is the table's entry.

use super::{add_in_area, dec_in_area, inc_in_area};

/// Support for predicting the address of a CPU's word of a counter, so that an update need not wait for the entry of
/// the table of these addresses: `false`, as the target's critical sections load that entry.
pub(crate) const CAN_PREDICT: bool = false;

/// Adds `value` to the current CPU's word of a counter in an rseq critical section. Returns `false`, with nothing
/// added, if the CPU has no word yet or the kernel aborted the section.
///
/// # Safety
/// The contract is that of [`add_in_area`].
#[inline(always)]
pub(crate) unsafe fn add_predicted(
    area: usize,
    base: *mut u8,
    table: *const u8,
    _displacement: usize,
    value: u64,
) -> bool {
    // SAFETY: passed on.
    unsafe { add_in_area(area, base, table, value) }
}

/// Adds 1 to the current CPU's word of a counter in an rseq critical section. Returns `false`, with nothing added, if
/// the CPU has no word yet or the kernel aborted the section.
///
/// # Safety
/// The contract is that of [`add_in_area`].
#[inline(always)]
pub(crate) unsafe fn inc_predicted(
    area: usize,
    base: *mut u8,
    table: *const u8,
    _displacement: usize,
) -> bool {
    // SAFETY: passed on.
    unsafe { inc_in_area(area, base, table) }
}

/// Subtracts 1 from the current CPU's word of a counter in an rseq critical section. Returns `false`, with nothing
/// subtracted, if the CPU has no word yet or the kernel aborted the section.
///
/// # Safety
/// The contract is that of [`add_in_area`].
#[inline(always)]
pub(crate) unsafe fn dec_predicted(
    area: usize,
    base: *mut u8,
    table: *const u8,
    _displacement: usize,
) -> bool {
    // SAFETY: passed on.
    unsafe { dec_in_area(area, base, table) }
}
