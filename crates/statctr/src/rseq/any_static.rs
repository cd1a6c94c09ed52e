//! `add_to_static` of the specification where it is `add` with a home word that is loaded before.

use super::first_block::FirstBlock;
use super::{add, dec, has_area, inc, load_stored_once};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Returns a static's home word and the table that a section works with, if the table is for one and there is a home
/// word. The table comes first, so that a loop asks for it once; where the function that the loop is in asked before
/// there was a table, it is loaded anew.
#[inline(always)]
fn loaded(home: &AtomicPtr<u8>, block: &'static FirstBlock) -> Option<(*mut u8, *const u8)> {
    let mut table = load_stored_once(&block.table);
    // SAFETY: null, or the table of a live reservation, by the promise of whoever calls the functions below.
    if !unsafe { has_area(table) } {
        table = block.table();
        // SAFETY: as above.
        if !unsafe { has_area(table) } {
            return None;
        }
    }
    let home = home.load(Ordering::Relaxed);
    (!home.is_null()).then_some((home, table))
}

/// Adds `value` to the current CPU's word of a static counter (a `static` of the program) in an rseq critical section;
/// `home` holds the address of the counter's word that belongs to no CPU, null before it has one. Returns `false`, with
/// nothing added, if that is null, rseq is not in use, the CPU has no word yet, or the kernel aborted the section.
/// (`add_to_static` of the specification.)
///
/// # Safety
/// The block's table is null or the tagged address of a live table; `home` is null or as `base` of [`add`].
#[inline(always)]
pub(crate) unsafe fn add_to_static(
    home: &'static AtomicPtr<u8>,
    block: &'static FirstBlock,
    value: u64,
) -> bool {
    // SAFETY: passed on.
    loaded(home, block).is_some_and(|(base, table)| unsafe { add(base, table, value) })
}

/// Adds 1 to the current CPU's word of a static counter (a `static` of the program) in an rseq critical section; `home`
/// holds the address of the counter's word that belongs to no CPU, null before it has one. Returns `false`, with
/// nothing added, if that is null, rseq is not in use, the CPU has no word yet, or the kernel aborted the section.
///
/// # Safety
/// The contract is that of [`add_to_static`].
#[inline(always)]
pub(crate) unsafe fn inc_static(home: &'static AtomicPtr<u8>, block: &'static FirstBlock) -> bool {
    // SAFETY: passed on.
    loaded(home, block).is_some_and(|(base, table)| unsafe { inc(base, table) })
}

/// Subtracts 1 from the current CPU's word of a static counter (a `static` of the program) in an rseq critical section;
/// `home` holds the address of the counter's word that belongs to no CPU, null before it has one. Returns `false`, with
/// nothing subtracted, if that is null, rseq is not in use, the CPU has no word yet, or the kernel aborted the section.
///
/// # Safety
/// The contract is that of [`add_to_static`].
#[inline(always)]
pub(crate) unsafe fn dec_static(home: &'static AtomicPtr<u8>, block: &'static FirstBlock) -> bool {
    // SAFETY: passed on.
    loaded(home, block).is_some_and(|(base, table)| unsafe { dec(base, table) })
}
