//! The limit: a word that one thread owns, and the one instruction that adds to it. Nothing that
//! counts can be faster. And the loop with nothing in it but the thinking, to be taken off.

use super::Side;
use super::looped::{Looped, Step};
#[cfg(target_arch = "x86_64")]
use std::arch::asm;
use std::sync::atomic::{AtomicU64, Ordering};

struct Inc;

impl Step for Inc {
    type State = AtomicU64;

    #[inline(always)]
    fn step(word: &AtomicU64, _turn: u64) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: adds to a live, aligned word that only this thread writes.
        unsafe {
            asm!("add qword ptr [{0}], 1", in(reg) word.as_ptr(), options(nostack));
        }
        #[cfg(not(target_arch = "x86_64"))]
        word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

/// Returns the benchmark loop `plain/inc`: each thread adds to its own plain word, without atomics. With `think`,
/// it computes between increments.
pub(crate) fn inc(threads: usize, think: bool) -> Box<dyn Side> {
    let words = (0..threads).map(|_| AtomicU64::new(0)).collect();
    Looped::<Inc>::with_state_per_thread(words, |word| word.load(Ordering::Relaxed)).thinking(think).boxed()
}

struct Nothing;

impl Step for Nothing {
    type State = ();

    #[inline(always)]
    fn step((): &(), _turn: u64) {}
}

/// Returns the benchmark loop `nothing`: the empty loop, with the computation in between if `think`; it shows what
/// the loop itself costs.
pub(crate) fn nothing(think: bool) -> Box<dyn Side> {
    Looped::<Nothing>::with_shared_state((), |()| 0).counting(0).thinking(think).boxed()
}
