//! The CPUs that ever wrote (and were not drained since): a mask in two levels.
//!
//! A writer announces its CPU before its first store there and a reader walks only announced CPUs
//! (contract 2). The upper level has a bit per 64 CPUs, so that finding one CPU among a thousand
//! takes two loads instead of sixteen.

use super::atomics::{Atomics, Room};
use std::sync::atomic::{AtomicU64, Ordering};

/// The bit mask of the CPUs that ever wrote to a piece of per-CPU counter memory; readers sum these CPUs' words. A bit
/// is set atomically and never cleared in place.
#[derive(Debug)]
pub(crate) struct ActiveCpuMask {
    summary: Atomics<AtomicU64>,
    words: Atomics<AtomicU64>,
}

impl ActiveCpuMask {
    /// Creates an empty mask of active CPUs (those that ever wrote to a piece of counter memory), for this number of
    /// CPUs.
    pub(crate) fn new(cpus: usize) -> Self {
        let words = cpus.div_ceil(64);
        ActiveCpuMask { summary: Atomics::new(words.div_ceil(64)), words: Atomics::new(words) }
    }

    /// Creates an empty mask for CPUs 0 to `cpus` − 1 in a room, which takes
    /// [`words`](Self::words_for) words of it. Async-signal-safe.
    pub(super) fn within(room: &mut Room, cpus: usize) -> Option<Self> {
        let words = cpus.div_ceil(64);
        Some(ActiveCpuMask { summary: room.take(words.div_ceil(64))?, words: room.take(words)? })
    }

    /// Returns the number of words of a mask for so many CPUs.
    pub(super) const fn words_for(cpus: usize) -> usize {
        cpus.div_ceil(64) + cpus.div_ceil(4096)
    }

    /// Sets a CPU's bit in the mask of active CPUs, so that readers sum its words, too; the calling thread's later
    /// stores are ordered after it.
    ///
    /// Lower level first: a reader that finds the upper bit finds the lower one.
    pub(crate) fn insert(&self, cpu: usize) {
        self.words[cpu / 64].fetch_or(1 << (cpu % 64), Ordering::SeqCst);
        self.summary[cpu / 4096].fetch_or(1 << (cpu / 64 % 64), Ordering::SeqCst);
    }

    /// Overwrites this mask of active CPUs with a copy of `other` without `cpu`. Both have room for the same CPUs, and
    /// no bit is set meanwhile; concurrent walks may see either content.
    pub(crate) fn copy_without(&self, other: &ActiveCpuMask, cpu: usize) {
        for (index, (word, theirs)) in self.words.iter().zip(&*other.words).enumerate() {
            let mut bits = theirs.load(Ordering::Relaxed);
            if index == cpu / 64 {
                bits &= !(1 << (cpu % 64));
            }
            word.store(bits, Ordering::Relaxed);
        }
        for (index, summary) in self.summary.iter().enumerate() {
            let words = self.words.iter().skip(index * 64).take(64).enumerate();
            let used = words.filter(|(_, word)| word.load(Ordering::Relaxed) != 0);
            summary.store(used.fold(0, |bits, (bit, _)| bits | 1 << bit), Ordering::Relaxed);
        }
    }

    pub(crate) fn contains(&self, cpu: usize) -> bool {
        self.words.get(cpu / 64).is_some_and(|word| word.load(Ordering::Acquire) >> (cpu % 64) & 1 == 1)
    }

    /// Calls `visit` with each CPU in the mask of active CPUs, in ascending order; a CPU that is inserted meanwhile may
    /// be missed.
    #[inline]
    pub(crate) fn for_each(&self, mut visit: impl FnMut(usize)) {
        for (outer, summary) in self.summary.iter().enumerate() {
            let mut groups = summary.load(Ordering::Acquire);
            while groups != 0 {
                let group = outer * 64 + groups.trailing_zeros() as usize;
                groups &= groups - 1;
                // run by run: CPUs mostly come in rows, and a plain loop over a row is three
                // times as fast as looking for the next bit each time
                let mut cpus = self.words[group].load(Ordering::Acquire);
                while cpus != 0 {
                    let first = cpus.trailing_zeros();
                    let run = (cpus >> first).trailing_ones();
                    for cpu in first..first + run {
                        visit(group * 64 + cpu as usize);
                    }
                    cpus = cpus.checked_shr(first + run).map_or(0, |rest| rest << (first + run));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserted_cpus_are_walked_in_order() {
        let mask = ActiveCpuMask::new(8192);
        let cpus = [0, 1, 63, 64, 4095, 4096, 8191];
        for cpu in cpus.iter().rev() {
            mask.insert(*cpu);
            mask.insert(*cpu);
        }
        let mut walked = Vec::new();
        mask.for_each(|cpu| walked.push(cpu));
        assert_eq!(walked, cpus);
        assert!(mask.contains(4096) && !mask.contains(2) && !mask.contains(1 << 20));
    }

    #[test]
    fn copy_without_drops_one_cpu_and_the_former_content() {
        let (mask, copy) = (ActiveCpuMask::new(8192), ActiveCpuMask::new(8192));
        [3, 70, 8191].into_iter().for_each(|cpu| mask.insert(cpu));
        copy.insert(5000);
        copy.copy_without(&mask, 70);
        let mut walked = Vec::new();
        copy.for_each(|cpu| walked.push(cpu));
        assert_eq!(walked, [3, 8191]);
    }
}
