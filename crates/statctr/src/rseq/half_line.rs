//! `store_half_line` where no section does it: an architecture without a store of 32 bytes that an
//! interrupt cannot split. Lazy objects count in their atomic words there.

use std::sync::atomic::{AtomicU64, Ordering};

/// `store_half_line` of the specification, never done here.
///
/// # Safety
/// None needed here.
pub(crate) unsafe fn store_half_line(
    _width: u32,
    _area: isize,
    _field: usize,
    _index: u32,
    _line: *mut u64,
    _old: [u64; 4],
    _new: [u64; 4],
) -> bool {
    false
}

/// Four words, each as of some moment.
///
/// # Safety
/// `line` leads to four live words.
pub(crate) unsafe fn load_half_line(line: *const u64) -> [u64; 4] {
    // SAFETY: four live words by the caller's promise, only written as atomics here.
    let words = unsafe { &*line.cast::<[AtomicU64; 4]>() };
    std::array::from_fn(|index| words[index].load(Ordering::Relaxed))
}

/// A field of the calling thread's area: there is none that sections compare with here.
///
/// # Safety
/// None needed here.
pub(crate) unsafe fn area_field(_area: isize, _field: usize) -> u32 {
    u32::MAX
}
