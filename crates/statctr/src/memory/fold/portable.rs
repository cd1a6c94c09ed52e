//! The kernel for machines without one of their own.

use std::sync::atomic::{AtomicU64, Ordering};

/// Adds `chunks` chunks of each unit to `sums`.
///
/// # Safety
/// `sums` has room for them; `first + d` is a live row of chunks for each displacement d.
pub(super) unsafe fn add_units(
    _width: u32,
    sums: *mut u64,
    chunks: usize,
    first: *const u8,
    displacements: &[usize],
    _next: usize,
) {
    for &displacement in displacements {
        for word in 0..chunks * 8 {
            // SAFETY: in range by the caller's promise; the words are only written as atomics here.
            unsafe {
                let address = first.addr().wrapping_add(displacement).wrapping_add(word * 8);
                let value =
                    (*std::ptr::with_exposed_provenance::<AtomicU64>(address)).load(Ordering::Relaxed);
                *sums.add(word) = (*sums.add(word)).wrapping_add(value);
            }
        }
    }
}

/// Returns `None`: pieces of a run are folded no faster than the whole.
pub(super) fn piece_lines(_width: u32) -> Option<usize> {
    None
}
