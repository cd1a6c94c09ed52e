//! The usual way without restartable sequences: ask for the CPU, then add atomically to that
//! CPU's word, as the thread may have been moved in between.
//!
//! `sched_getcpu` of glibc since 2.35 reads the number from the thread's rseq area, which is the
//! fastest it can be; older ones go through the vDSO.

use super::looped::{Looped, Step};
use super::{Padded, Side};
use std::sync::atomic::{AtomicU64, Ordering};

struct Inc;

impl Step for Inc {
    type State = Vec<Padded<AtomicU64>>;

    #[inline(always)]
    fn step(slots: &Vec<Padded<AtomicU64>>, _turn: u64) {
        // SAFETY: has no preconditions. -1, where it is not supported, falls on the last slot.
        let cpu = unsafe { libc::sched_getcpu() } as usize;
        if let Some(slot) = slots.get(cpu & (slots.len() - 1)) {
            slot.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Returns the benchmark loop `getcpu-atomic/inc`: it asks `getcpu` for the current CPU and atomically increments
/// that CPU's slot, one of `cpus`. With `think`, it computes between increments.
pub(crate) fn inc(cpus: usize, think: bool) -> Box<dyn Side> {
    let slots = (0..cpus.next_power_of_two()).map(|_| Padded::default()).collect();
    let total =
        |slots: &Vec<Padded<AtomicU64>>| slots.iter().map(|slot| slot.0.load(Ordering::Relaxed)).sum();
    Looped::<Inc>::with_shared_state(slots, total).thinking(think).boxed()
}
