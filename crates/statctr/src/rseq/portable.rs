//! The seam for architectures without a section of their own: rseq is never available, so no
//! handle leads to the functions below, and each of them says "not done".

pub(crate) use super::one_cpu::*;

use std::sync::atomic::AtomicPtr;

mod instance;
pub(crate) use instance::*;

/// Returns `None`: on this machine no critical sections are written, so a registration of glibc is of no use.
pub(crate) fn glibc_registration() -> Option<(isize, u32)> {
    None
}

/// Returns no CPU number of the calling thread's rseq area: no critical sections are written for this
/// machine.
pub(crate) fn area_cpu_id(_offset: isize) -> i32 {
    -1
}

/// Returns `false`: no critical sections are written for this machine.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn has_area(_table: *const u8) -> bool {
    false
}

/// Returns null: no critical sections are written for this machine, so nobody needs the pointer.
#[inline(always)]
pub(crate) fn load_stored_once(_place: &'static AtomicPtr<u8>) -> *const u8 {
    std::ptr::null()
}

/// Does nothing: no critical section here loads the header in front of a reservation's table.
pub(crate) fn publish_header(_header: *const u8) {}

/// Does nothing: no critical sections are written for this machine.
pub(crate) fn clear_section(_offset: isize) {}

/// Never adds to a counter, and returns `false`: no critical sections are written for this machine.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn add(_base: *mut u8, _table: *const u8, _value: u64) -> bool {
    false
}

/// Never adds to a counter, and returns `false`: no critical sections are written for this machine.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn inc(_base: *mut u8, _table: *const u8) -> bool {
    false
}

/// Never subtracts from a counter, and returns `false`: no critical sections are written for this machine.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn dec(_base: *mut u8, _table: *const u8) -> bool {
    false
}

/// Never adds to a floating-point sum, and returns `false`: no critical sections are written for this machine.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn add_float(_base: *mut u8, _table: *const u8, _epoch: *const u64, _value: f64) -> bool {
    false
}

/// Never adds to a counter, and returns `false`: no critical sections are written for this machine.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn add_bounded(_base: *mut u8, _table: *const u8, _limit: u64, _value: u64) -> bool {
    false
}

/// Never notes anything as flushed, and returns `false`: no critical sections are written for this machine.
///
/// # Safety
/// None needed here.
pub(crate) unsafe fn claim(_base: *mut u8, _table: *const u8, _claimed: *mut u64) -> bool {
    false
}

/// Never raises a maximum, and returns `false`: no critical sections are written for this machine.
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

/// Never commits an event, and returns `false`: no critical sections are written for this machine.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn commit<const N: usize>(_base: *mut u8, _table: *const u8, _deltas: &[u64; N]) -> bool {
    false
}

/// Never commits to a latched line, and returns `false`: no critical sections are written for this machine.
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

/// Never adds to a latched line, and returns `false`: no critical sections are written for this machine.
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
