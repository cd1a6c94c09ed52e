//! Updates on a machine with one possible CPU, for architectures that do not add to memory in one
//! instruction: an interrupt could split a load and a store, so these are atomic.

use std::sync::atomic::{AtomicU64, Ordering};

/// Adds `value` to the counter's 64-bit word at `word`, atomically, for machines with a single possible CPU.
///
/// # Safety
/// `word` is an aligned live `u64` that only these functions write.
#[inline(always)]
pub(crate) unsafe fn add_on_one_cpu(word: *mut u8, value: u64) {
    // SAFETY: by the caller's promise the word is live and aligned.
    unsafe { &*word.cast::<AtomicU64>() }.fetch_add(value, Ordering::Relaxed);
}

/// Adds 1 to the counter's 64-bit word at `word`, atomically, for machines with a single possible CPU.
///
/// # Safety
/// The contract is that of [`add_on_one_cpu`].
#[inline(always)]
pub(crate) unsafe fn inc_on_one_cpu(word: *mut u8) {
    // SAFETY: passed on.
    unsafe { add_on_one_cpu(word, 1) };
}

/// Subtracts 1 from the counter's 64-bit word at `word`, atomically, for machines with a single possible CPU.
///
/// # Safety
/// The contract is that of [`add_on_one_cpu`].
#[inline(always)]
pub(crate) unsafe fn dec_on_one_cpu(word: *mut u8) {
    // SAFETY: passed on.
    unsafe { add_on_one_cpu(word, u64::MAX) };
}

/// Adds `value` to the counter's 64-bit word at `word`, which the calling thread alone writes: atomically, as a signal
/// could split a load and a store.
///
/// # Safety
/// `word` is an aligned live `u64`.
#[inline(always)]
pub(crate) unsafe fn add_by_owner(word: *mut u8, value: u64) {
    // SAFETY: passed on.
    unsafe { add_on_one_cpu(word, value) };
}
