//! A maximum that can be taken and begun anew: [`Maximum`].
//!
//! ```text
//! for each of two epochs, the last one and this, by their last bit:
//!   per CPU (two words):   m, the CPU's maximum │ e, the epoch that it belongs to
//!   in the owner:          fallback, the maximum of what ran in no section, and what the epoch began with
//! in the owner:            E, the epoch
//!
//! raise(v), in a section on CPU c, with the words of e = E:      begin(v), one at a time:
//!   if E ≠ e     leave: try again                                  fallback[(E + 1) mod 2] := v
//!   if e[c] = e  m[c] := v if that is more                         E := E + 1
//!   else         m[c] := v
//!                e[c] := e    (commit)                           take():  e := E
//!                                                                         begin(0)
//! raise(v) where that fails:                                              end all sections (membarrier)
//!   fallback[E mod 2] := max(that, v); again if E changed                 return the maximum of epoch e
//!
//! read():  the maximum of fallback[E mod 2] and of m[c] where e[c] = E; again if E changed
//! ```
//! The words of the epoch that ended stay as they are until the one after the next begins, so a take finds all
//! that was observed in it: sections that began before are over, those that begin now see the new epoch, and
//! an update of the fallback cell looks at the epoch once more.
//!
//! Without rseq the fallback cell is all that there is, and no stripe: it is written by a new maximum alone, so CPUs
//! load it from their own caches as long as values stay below it.

use super::arena::Arena;
use super::handle::Handle;
use super::owner::{adopt, arena_of, release};
use crate::error::Result;
use crate::rseq::{self, HandleTag};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Owner of two words for each CPU: a maximum, and the epoch that it belongs to.
#[derive(Debug)]
struct EpochWords(Handle);

impl EpochWords {
    fn take(arena: &Arc<Arena>) -> Result<EpochWords> {
        arena.take_maximum().map(|handle| EpochWords(adopt(handle, arena)))
    }

    /// Returns the maximum over the CPUs that observed in `epoch`; 0 where there is none.
    fn maximum_of(&self, epoch: u64) -> u64 {
        // SAFETY: ours, as is the first.
        let epochs = unsafe { self.0.word(1) };
        self.0.reservation().cpus().consistently(|walk| {
            let mut maximum = 0;
            walk.for_each(|displacement| {
                if epochs.at(displacement).load(Ordering::Acquire) == epoch {
                    maximum = maximum.max(self.0.at(displacement).load(Ordering::Relaxed));
                }
            });
            maximum
        })
    }
}

impl Drop for EpochWords {
    fn drop(&mut self) {
        // SAFETY: the count that `adopt` took, once.
        unsafe { release(self.0, |arena| _ = arena.free_pair(self.0)) };
    }
}

/// Owner of the memory of a per-CPU maximum, a statistic that keeps the largest value observed since the last reset:
/// words for the last two epochs (a reset starts an epoch) for each CPU, and shared words.
///
/// On a line of its own: all writers load the epoch.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Maximum {
    /// The words of an epoch, by its last bit.
    words: [EpochWords; 2],
    epoch: AtomicU64,
    /// The maximum of what was observed in no section, by the epoch's last bit.
    fallback: [AtomicU64; 2],
}

// SAFETY: as for `Word`; all else are atomics.
unsafe impl Send for Maximum {}
// SAFETY: as above.
unsafe impl Sync for Maximum {}

impl Maximum {
    /// Allocates memory in `arena` (a pool's counter memory) for a per-CPU maximum that has observed no values.
    pub(crate) fn take_memory(arena: &Arc<Arena>) -> Result<Maximum> {
        let words = [EpochWords::take(arena)?, EpochWords::take(arena)?];
        // the CPUs' words are zero, and so is no epoch
        let fallback = [AtomicU64::new(0), AtomicU64::new(0)];
        Ok(Maximum { words, epoch: AtomicU64::new(1), fallback })
    }

    /// Raises the per-CPU maximum (the largest value observed) to `value` if it is smaller, in the word of the calling
    /// thread's CPU.
    #[inline(always)]
    pub(crate) fn raise(&self, value: u64) {
        if cfg!(feature = "uniprocessor") || !self.raise_in_section(value) {
            self.raise_slow(value);
        }
    }

    #[inline(always)]
    fn raise_in_section(&self, value: u64) -> bool {
        let epoch = self.epoch.load(Ordering::Relaxed);
        let Handle { base, table } = self.words[slot(epoch)].0;
        // SAFETY: both words are ours, for this section alone, and the epoch lives as long as they do.
        unsafe { rseq::raise(base.as_ptr(), table.as_ptr(), self.epoch.as_ptr(), epoch, value) }
    }

    /// Raises the maximum after the rseq critical section failed to commit, or where there is none. Async-signal-safe.
    #[cold]
    #[inline(never)]
    fn raise_slow(&self, value: u64) {
        if self.words[0].0.is(HandleTag::Rseq) {
            for _ in 0..rseq::TRIES {
                let words = &self.words[slot(self.epoch.load(Ordering::Relaxed))];
                if !words.0.reservation().announce_current() {
                    break;
                }
                if self.raise_in_section(value) {
                    return;
                }
            }
        }
        for _ in 0..rseq::TRIES {
            let epoch = self.epoch.load(Ordering::SeqCst);
            let fallback = &self.fallback[slot(epoch)];
            if fallback.load(Ordering::SeqCst) < value {
                fallback.fetch_max(value, Ordering::SeqCst);
            }
            // Whoever ends the epoch changes it before he reads the cell: either he reads this value, or it
            // has changed here.
            if self.epoch.load(Ordering::SeqCst) == epoch {
                return;
            }
        }
    }

    /// Begins another epoch, with the maximum `value`, and returns the one that is over. The arena's lock is held.
    fn begin_locked(&self, value: u64) -> u64 {
        let ended = self.epoch.load(Ordering::Relaxed);
        let next = ended + 1;
        // Who reads in the epoch before reads this cell, and sees when it looks at the epoch again that its
        // time is over.
        fence(Ordering::Release);
        self.fallback[slot(next)].store(value, Ordering::SeqCst);
        self.epoch.store(next, Ordering::SeqCst);
        ended
    }

    /// Sets the per-CPU maximum (the largest value observed) to `value`, dropping what CPUs observed before. Takes the
    /// arena's lock.
    pub(crate) fn set(&self, value: u64) {
        arena_of(self.words[0].0).while_locked(|| _ = self.begin_locked(value));
    }

    /// Resets the per-CPU maximum (the largest value observed) and returns its value until then. Takes the arena's
    /// lock.
    pub(crate) fn take(&self) -> u64 {
        arena_of(self.words[0].0).while_locked(|| {
            let ended = self.begin_locked(0);
            // Where the kernel refuses, what a section is just storing may be missed.
            let _ = rseq::end_sections();
            self.maximum_of(ended)
        })
    }

    /// Returns the value of the per-CPU maximum: the largest of all CPUs' words. Async-signal-safe.
    pub(crate) fn read(&self) -> u64 {
        let epoch = self.epoch.load(Ordering::Acquire);
        let maximum = self.maximum_of(epoch);
        fence(Ordering::Acquire);
        if self.epoch.load(Ordering::Relaxed) == epoch { maximum } else { self.read_begun() }
    }

    fn maximum_of(&self, epoch: u64) -> u64 {
        let maximum = self.words[slot(epoch)].maximum_of(epoch);
        maximum.max(self.fallback[slot(epoch)].load(Ordering::SeqCst))
    }

    /// Returns the maximum at the beginning of an epoch: for a reader during whose read it began.
    #[cold]
    fn read_begun(&self) -> u64 {
        loop {
            let epoch = self.epoch.load(Ordering::Acquire);
            let value = self.fallback[slot(epoch)].load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if self.epoch.load(Ordering::Relaxed) == epoch {
                return value;
            }
        }
    }
}

/// Returns the index of an epoch's words.
#[inline(always)]
fn slot(epoch: u64) -> usize {
    (epoch & 1) as usize
}
