//! The seam for architectures without a section of their own: rseq is never available, so no
//! handle leads to the functions below, and each of them says "not done".

pub(crate) use super::one_cpu::*;

mod instance;
pub(crate) use instance::*;

/// The registration that glibc made, if any: area offset and size.
pub(crate) fn glibc_registration() -> Option<(isize, u32)> {
    None
}

/// The CPU number in the calling thread's area.
pub(crate) fn area_cpu_id(_offset: isize) -> i32 {
    -1
}

/// Between the stores to a header and all uses of its table's address: no section here loads it.
pub(crate) fn publish_header(_header: *const u8) {}

/// Takes the section out of the calling thread's area.
pub(crate) fn clear_section(_offset: isize) {}

/// `add` of the specification, never done here.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn add(_base: *mut u8, _table: *const u8, _value: u64) -> bool {
    false
}

/// `add` of 1, never done here.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn inc(_base: *mut u8, _table: *const u8) -> bool {
    false
}

/// `add` of −1, never done here.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn dec(_base: *mut u8, _table: *const u8) -> bool {
    false
}

/// `commit` of the specification, never done here.
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn commit<const N: usize>(_base: *mut u8, _table: *const u8, _deltas: &[u64; N]) -> bool {
    false
}

/// `latch_commit` of the specification, never done here.
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

/// `latch_add` of the specification, never done here.
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
