//! `add_to_static` of the specification where it is `add` with a home word that is loaded before.

use super::{add, dec, has_area, inc};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Returns what a section works with, if the table is for one and there is a home word. The table comes first, so that
/// a loop asks for it once.
#[inline(always)]
fn loaded(home: &AtomicPtr<u8>, table: *const u8) -> Option<*mut u8> {
    // SAFETY: null, or the table of a live reservation, by the promise of whoever calls the functions below.
    let is_ready = unsafe { has_area(table) };
    let home = home.load(Ordering::Relaxed);
    (is_ready && !home.is_null()).then_some(home)
}

/// Adds `value` to the current CPU's word of a static counter (a `static` of the program) in an rseq critical section;
/// `home` holds the address of the counter's word that belongs to no CPU, null before it has one. Returns `false`, with
/// nothing added, if that is null, rseq is not in use, the CPU has no word yet, or the kernel aborted the section.
/// (`add_to_static` of the specification.)
///
/// # Safety
/// `table` is null or the tagged address of a live table; `home` is null or as `base` of [`add`].
#[inline(always)]
pub(crate) unsafe fn add_to_static(home: &'static AtomicPtr<u8>, table: *const u8, value: u64) -> bool {
    // SAFETY: passed on.
    loaded(home, table).is_some_and(|base| unsafe { add(base, table, value) })
}

/// Adds 1 to the current CPU's word of a static counter (a `static` of the program) in an rseq critical section; `home`
/// holds the address of the counter's word that belongs to no CPU, null before it has one. Returns `false`, with
/// nothing added, if that is null, rseq is not in use, the CPU has no word yet, or the kernel aborted the section.
///
/// # Safety
/// The contract is that of [`add_to_static`].
#[inline(always)]
pub(crate) unsafe fn inc_static(home: &'static AtomicPtr<u8>, table: *const u8) -> bool {
    // SAFETY: passed on.
    loaded(home, table).is_some_and(|base| unsafe { inc(base, table) })
}

/// Subtracts 1 from the current CPU's word of a static counter (a `static` of the program) in an rseq critical section;
/// `home` holds the address of the counter's word that belongs to no CPU, null before it has one. Returns `false`, with
/// nothing subtracted, if that is null, rseq is not in use, the CPU has no word yet, or the kernel aborted the section.
///
/// # Safety
/// The contract is that of [`add_to_static`].
#[inline(always)]
pub(crate) unsafe fn dec_static(home: &'static AtomicPtr<u8>, table: *const u8) -> bool {
    // SAFETY: passed on.
    loaded(home, table).is_some_and(|base| unsafe { dec(base, table) })
}
