//! A floating-point sum that can be set: [`FloatSum`].
//!
//! ```text
//! per CPU (two words):   s, the CPU's sum │ e, the epoch that it belongs to
//! in the owner:          E, the epoch │ values[E mod 2], set when it began │ fallback[E mod 2]
//!
//! add(v), in a section on CPU c:            set(v), one at a time:
//!   if e[c] = E    s[c] := s[c] + v           values[(E + 1) mod 2] := v
//!   else           s[c] := v                  fallback[(E + 1) mod 2] := 0
//!                  e[c] := E    (commit)      E := E + 1
//!
//! read():  values[E mod 2] + fallback[E mod 2] + the sum of s[c] where e[c] = E; again if E changed
//! ```
//! A set writes no CPU's word: it makes them stale, and the CPU's next section replaces what is. So a read
//! after a set is that number and nothing of what was there before, no rounding, no infinity, no NaN. The
//! first store of a section that finds its words stale goes to a word that no reader adds, as its epoch is
//! not the current one and never is again: an abort behind it leaves nothing that counts.

use super::arena::Arena;
use super::handle::Handle;
use super::owner::{adopt, arena_of, release};
use crate::error::Result;
use crate::rseq::{self, HandleTag};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Owner of the memory of a floating-point gauge: a sum for each CPU, with the epoch (time between two sets) that it
/// belongs to, and the shared value that was set last.
///
/// On a line of its own: all writers load the epoch.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct FloatSum {
    /// The first of the two words.
    handle: Handle,
    epoch: AtomicU64,
    /// The value that began an epoch, by the epoch's last bit.
    values: [AtomicU64; 2],
    /// The sum of the updates that ran in no section, by the epoch's last bit.
    fallback: [AtomicU64; 2],
}

// SAFETY: as for `Word`; all else are atomics.
unsafe impl Send for FloatSum {}
// SAFETY: as above.
unsafe impl Sync for FloatSum {}

impl FloatSum {
    /// Allocates memory in `arena` (a pool's counter memory) for a floating-point gauge with the value `initial`.
    pub(crate) fn take(arena: &Arc<Arena>, initial: f64) -> Result<FloatSum> {
        let handle = adopt(arena.take_float_sum()?, arena);
        let zero = || AtomicU64::new(0);
        // the CPUs' words are zero, and so is no epoch
        Ok(FloatSum {
            handle,
            epoch: AtomicU64::new(1),
            values: [zero(), AtomicU64::new(initial.to_bits())],
            fallback: [zero(), zero()],
        })
    }

    #[inline(always)]
    pub(crate) fn add(&self, value: f64) {
        // SAFETY: both words are ours, for this section alone, and the epoch lives as long as they do.
        let done = !cfg!(feature = "uniprocessor")
            && unsafe {
                rseq::add_float(
                    self.handle.base.as_ptr(),
                    self.handle.table.as_ptr(),
                    self.epoch.as_ptr(),
                    value,
                )
            };
        if !done {
            self.add_slow(value);
        }
    }

    /// Adds `value` after the rseq critical section failed to commit, or where there is none. Async-signal-safe.
    #[cold]
    #[inline(never)]
    fn add_slow(&self, value: f64) {
        if self.handle.table.addr().get() & HandleTag::Rseq as usize != 0 {
            for _ in 0..rseq::TRIES {
                if !self.handle.reservation().announce_current() {
                    break;
                }
                // SAFETY: as in `add`.
                let done = unsafe {
                    rseq::add_float(
                        self.handle.base.as_ptr(),
                        self.handle.table.as_ptr(),
                        self.epoch.as_ptr(),
                        value,
                    )
                };
                if done {
                    return;
                }
            }
        }
        let fallback = &self.fallback[slot(self.epoch.load(Ordering::Acquire))];
        let add = |bits| Some((f64::from_bits(bits) + value).to_bits());
        // the closure refuses nothing
        let _ = fallback.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Sets the floating-point gauge by starting a new epoch (time between two sets), in which CPUs' earlier sums do
    /// not count. Takes the arena's lock.
    pub(crate) fn set(&self, value: f64) {
        arena_of(self.handle).while_locked(|| {
            let next = self.epoch.load(Ordering::Relaxed) + 1;
            // Who reads the epoch before this one reads these words, and sees when it looks at the epoch
            // again that its time is over.
            fence(Ordering::Release);
            self.values[slot(next)].store(value.to_bits(), Ordering::Relaxed);
            self.fallback[slot(next)].store(0, Ordering::Relaxed);
            self.epoch.store(next, Ordering::Release);
        });
    }

    /// Returns the floating-point gauge's value: what was set last and the CPUs' sums of this epoch (the time since).
    /// Async-signal-safe.
    pub(crate) fn read(&self) -> f64 {
        let epoch = self.epoch.load(Ordering::Acquire);
        let value = f64::from_bits(self.values[slot(epoch)].load(Ordering::Relaxed));
        let mut sum = f64::from_bits(self.fallback[slot(epoch)].load(Ordering::Relaxed));
        sum += self.handle.reservation().cpus().consistently(|walk| {
            let mut counted = 0.0;
            walk.for_each(|displacement| {
                if self.second_word().at(displacement).load(Ordering::Acquire) == epoch {
                    counted += f64::from_bits(self.handle.at(displacement).load(Ordering::Relaxed));
                }
            });
            counted
        });
        fence(Ordering::Acquire);
        if self.epoch.load(Ordering::Relaxed) == epoch {
            return value + sum;
        }
        self.read_set()
    }

    /// Returns the value that was set last: for a reader that was overtaken by a set, whose read is then at
    /// that moment, when nothing was added yet.
    #[cold]
    fn read_set(&self) -> f64 {
        loop {
            let epoch = self.epoch.load(Ordering::Acquire);
            let value = f64::from_bits(self.values[slot(epoch)].load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if self.epoch.load(Ordering::Relaxed) == epoch {
                return value;
            }
        }
    }

    fn second_word(&self) -> Handle {
        // SAFETY: ours, as is the first.
        unsafe { self.handle.word(1) }
    }
}

/// Returns the index of an epoch's words.
fn slot(epoch: u64) -> usize {
    (epoch & 1) as usize
}

impl Drop for FloatSum {
    fn drop(&mut self) {
        // SAFETY: the count that `adopt` took, once.
        unsafe { release(self.handle, |arena| _ = arena.free_pair(self.handle)) };
    }
}
