//! The seam for architectures without a section of their own: rseq is never available, so no
//! handle leads to the functions below, and each of them says "not done".

pub(crate) use super::one_cpu::*;

use std::sync::atomic::AtomicPtr;

mod instance;
pub(crate) use instance::*;

/// Returns `None`, as a registration of glibc would be of no use: a stub for architectures without rseq critical
/// sections.
pub(crate) fn glibc_registration() -> Option<(isize, u32)> {
    None
}

/// Returns −1, no CPU number, in place of the one in a thread's rseq area: a stub for architectures without rseq
/// critical sections.
pub(crate) fn area_cpu_id(_offset: isize) -> i32 {
    -1
}

/// Returns `false`: on this architecture no counters are updated by rseq critical sections.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn has_area(_table: *const u8) -> bool {
    false
}

/// Returns 0 in place of the offset of threads' rseq areas that a table of per-CPU counters stores: a stub for
/// architectures without rseq critical sections.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn offset_of_table(_table: *const u8) -> usize {
    0
}

/// Returns null in place of the pointer at `_place`: a stub for architectures without rseq critical sections.
#[inline(always)]
pub(crate) fn load_stored_once(_place: &'static AtomicPtr<u8>) -> *const u8 {
    std::ptr::null()
}

/// Does nothing in place of making the header of a table of per-CPU counters visible: a stub for architectures without
/// rseq critical sections, of which none would load the header.
pub(crate) fn publish_header(_header: *const u8) {}

/// Does nothing, as no thread's rseq area has a pointer to a critical section to clear: a stub for architectures
/// without rseq critical sections.
pub(crate) fn clear_section(_offset: isize) {}

/// Adds nothing to the counter and returns `false`: a stub for architectures without rseq critical sections.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn add(_base: *mut u8, _table: *const u8, _value: u64) -> bool {
    false
}

/// Adds nothing to the counter and returns `false`: a stub for architectures without rseq critical sections.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn add_in_area(_area: usize, _base: *mut u8, _table: *const u8, _value: u64) -> bool {
    false
}

/// Adds nothing to the counter and returns `false`: a stub for architectures without rseq critical sections.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn inc(_base: *mut u8, _table: *const u8) -> bool {
    false
}

/// Adds nothing to the counter and returns `false`: a stub for architectures without rseq critical sections.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn inc_in_area(_area: usize, _base: *mut u8, _table: *const u8) -> bool {
    false
}

/// Subtracts nothing from the counter and returns `false`: a stub for architectures without rseq critical sections.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn dec(_base: *mut u8, _table: *const u8) -> bool {
    false
}

/// Subtracts nothing from the counter and returns `false`: a stub for architectures without rseq critical sections.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn dec_in_area(_area: usize, _base: *mut u8, _table: *const u8) -> bool {
    false
}

/// Adds nothing to the floating-point sum and returns `false`: a stub for architectures without rseq critical sections.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn add_float(_base: *mut u8, _table: *const u8, _epoch: *const u64, _value: f64) -> bool {
    false
}

/// Adds nothing to the approximate counter and returns `false`: a stub for architectures without rseq critical
/// sections.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn add_bounded(_base: *mut u8, _table: *const u8, _limit: u64, _value: u64) -> bool {
    false
}

/// Marks nothing of an approximate counter as flushed (added to its shared word) and returns `false`: a stub for
/// architectures without rseq critical sections.
///
/// # Safety
/// None needed here.
pub(crate) unsafe fn claim(_base: *mut u8, _table: *const u8, _claimed: *mut u64) -> bool {
    false
}

/// Leaves the maximum as it is and returns `false`: a stub for architectures without rseq critical sections.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn raise(
    _base: *mut u8,
    _table: *const u8,
    _epoch: *const u64,
    _number: u64,
    _value: u64,
) -> bool {
    false
}

/// Adds nothing to the items of an event (statistics updated together) and returns `false`: a stub for architectures
/// without rseq critical sections.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn commit_in_area<const N: usize>(
    _area: usize,
    _base: *mut u8,
    _table: *const u8,
    _deltas: &[u64; N],
) -> bool {
    false
}

/// Adds nothing to a latched cache line of counters (kept twice, with a sequence number, for consistent reads) and
/// returns `false`: a stub for architectures without rseq critical sections.
///
/// # Safety
/// None needed here.
pub(crate) unsafe fn latch_commit(
    _line: *mut u8,
    _table: *const u8,
    _copies: usize,
    _sequence: usize,
    _deltas: &[u64; 8],
) -> bool {
    false
}

/// Adds nothing to a latched cache line of counters (kept twice, with a sequence number, for consistent reads) and
/// returns `false`: a stub for architectures without rseq critical sections.
///
/// # Safety
/// None needed here.
pub(crate) unsafe fn latch_add(
    _word: *mut u8,
    _table: *const u8,
    _copies: usize,
    _sequence: *mut u8,
    _value: u64,
) -> bool {
    false
}
