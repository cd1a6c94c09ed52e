//! A counter with an approximate value that is never off by more than a bound: [`BoundedSum`].
//!
//! ```text
//! per CPU (two words):       c, what was counted │ f, the part of it that was flushed
//! at the home words:         direct │ flushed, which is the sum of all f but for one flush under way
//! value:                     direct + the sum of all c        (as of any counter)
//! approximate value:         direct + flushed                 (one line)
//!
//! add(v), in a section on CPU c:     flush, while the counter's flush lock is held:
//!   s := c + v                         d := c − f  and  f := c     in a section on the CPU
//!   if |s − f| >= batch                flushed := flushed + d
//!       leave: flush, try again
//!   c := s                (commit)
//! ```
//! A section refuses what would leave a batch unflushed, so each CPU has less than one; and whoever finds the
//! lock taken adds to `direct`, atomically, so one flush is under way at most. Therefore the approximate value
//! is off by less than (CPUs + 1) · batch, whatever threads are stopped in between, and nobody waits.
//!
//! The initial value is in `direct`, and a set adds to it what is missing. A baseline, as other counters have, would be
//! a second line for approximate reads.
//!
//! Without rseq all updates go to `direct`. On stripes one would have to test s − f and store s in one step: f may
//! change in between, and a thread that is stopped after its addition, before its flush, holds back what it added, so
//! the bound would grow with the number of threads.

use super::arena::Arena;
use super::handle::Handle;
use super::owner::{adopt, arena_of, release};
use super::signal_safe_lock::SignalSafeLock;
use crate::error::{Error, Result};
use crate::rseq::{self, HandleTag};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// Owner of the memory of an approximate counter: per-CPU words, each with less than a batch not flushed yet, and the
/// shared word that they are flushed to.
#[derive(Debug)]
pub(crate) struct BoundedSum {
    /// The word that is counted in; the next one is the part that was flushed.
    handle: Handle,
    /// The most that a CPU leaves unflushed.
    limit: u64,
    lock: SignalSafeLock,
    /// `true` while a flush is under way: found under the lock, it is one of a fork's parent.
    is_flushing: AtomicBool,
}

// SAFETY: as for `Word`; all else are atomics.
unsafe impl Send for BoundedSum {}
// SAFETY: as above.
unsafe impl Sync for BoundedSum {}

impl BoundedSum {
    /// Allocates memory in `arena` (a pool's counter memory) for an approximate counter with the value `initial`.
    pub(crate) fn take(arena: &Arc<Arena>, initial: u64, batch: u64) -> Result<BoundedSum> {
        let handle = adopt(arena.take_bounded_sum(initial)?, arena);
        let sum = BoundedSum {
            handle,
            limit: batch.wrapping_sub(1),
            lock: SignalSafeLock::new(),
            is_flushing: AtomicBool::new(false),
        };
        let bound = sum.limit.checked_mul(sum.cpus() + 1);
        // comparisons are of signed differences
        if batch == 0 || bound.is_none_or(|bound| bound > i64::MAX as u64 / 2) {
            return Err(Error::BadSetting("the batch of an approximate counter is 0 or too large"));
        }
        Ok(sum)
    }

    fn cpus(&self) -> u64 {
        self.handle.reservation().cpus().len() as u64
    }

    #[inline(always)]
    pub(crate) fn add(&self, value: u64) {
        let (base, table) = (self.handle.base.as_ptr(), self.handle.table.as_ptr());
        // SAFETY: both words are ours, for these sections alone.
        let done =
            !cfg!(feature = "uniprocessor") && unsafe { rseq::add_bounded(base, table, self.limit, value) };
        if !done {
            self.add_slow(value);
        }
    }

    /// Adds `value` after the section failed to commit or refused: flushes what the CPU has counted, or counts
    /// atomically. Async-signal-safe.
    #[cold]
    #[inline(never)]
    fn add_slow(&self, value: u64) {
        if !self.handle.is(HandleTag::Rseq) {
            return self.add_to_direct(value);
        }
        let fits = value.wrapping_add(self.limit) <= 2 * self.limit;
        for _ in 0..if fits { rseq::TRIES } else { 0 } {
            if !self.handle.reservation().announce_current() {
                break;
            }
            // SAFETY: as in `add`.
            if unsafe {
                rseq::add_bounded(self.handle.base.as_ptr(), self.handle.table.as_ptr(), self.limit, value)
            } {
                return;
            }
            if !self.flush() {
                break;
            }
        }
        self.add_to_direct(value);
    }

    /// Adds `value` to the word that all CPUs share, in one step.
    fn add_to_direct(&self, value: u64) {
        if self.handle.is(HandleTag::Rseq) || self.handle.is(HandleTag::Striped) {
            // a stripe would flush nothing
            self.handle.add_to_fallback(value);
        } else {
            self.handle.add_elsewhere(value);
        }
    }

    /// Flushes what the calling thread's CPU has counted; `false` where somebody else is flushing, or draining while
    /// there is a parent's flush to make up for.
    fn flush(&self) -> bool {
        let Some(_held) = self.lock.try_lock() else { return false };
        if self.is_flushing.swap(true, Ordering::Relaxed) {
            // The parent forked in the middle of another thread's flush, of which nobody knows how far it
            // came. Nobody flushes but us; a drain, which flushes what it moves, adds that here before readers see
            // it moved.
            let Some(_nothing_moves) = self.handle.reservation().cpus().changing().try_lock() else {
                return false;
            };
            self.flushed().store(self.sum_of_flushed(), Ordering::Relaxed);
        }
        let mut claimed = 0;
        // SAFETY: as in `add`; an aborted section may leave anything in `claimed`.
        if unsafe { rseq::claim(self.handle.base.as_ptr(), self.handle.table.as_ptr(), &raw mut claimed) } {
            self.flushed().fetch_add(claimed, Ordering::Relaxed);
        }
        self.is_flushing.store(false, Ordering::Relaxed);
        true
    }

    fn second_word(&self) -> Handle {
        // SAFETY: ours, as is the first.
        unsafe { self.handle.word(1) }
    }

    fn sum_of_flushed(&self) -> u64 {
        let second = self.second_word();
        second.reservation().cpus().consistently(|walk| {
            let mut sum = 0u64;
            walk.for_each(|displacement| {
                sum = sum.wrapping_add(second.at(displacement).load(Ordering::Relaxed));
            });
            sum
        })
    }

    /// Returns the word with the sum of what was flushed.
    fn flushed(&self) -> &AtomicU64 {
        // SAFETY: the home word of the second word, which is ours and lives as long as we do.
        unsafe { self.handle.base.add(8).cast().as_ref() }
    }

    /// Returns the approximate counter's exact value, the sum over the CPUs.
    pub(crate) fn read(&self) -> u64 {
        self.handle.read()
    }

    /// Returns the approximate counter's value without what CPUs have not flushed (added to the shared word) yet: off
    /// by at most [`bound`](Self::bound).
    #[inline]
    pub(crate) fn approximate(&self) -> u64 {
        // Where updates also subtract, what one of these words gained and the other lost must not be seen in
        // part: so they are read again until the first stayed the same, as it does unless another CPU added to it
        // between two loads of one line.
        let mut direct = self.handle.at(0).load(Ordering::Acquire);
        loop {
            let flushed = self.flushed().load(Ordering::Acquire);
            let again = self.handle.at(0).load(Ordering::Acquire);
            // without sections nothing is ever flushed
            if again == direct || !self.handle.is(HandleTag::Rseq) {
                return direct.wrapping_add(flushed);
            }
            direct = again;
        }
    }

    /// Returns the largest possible error of an approximate read of the counter ([`approximate`](Self::approximate)).
    pub(crate) fn bound(&self) -> u64 {
        self.limit * (self.cpus() + 1)
    }

    /// Sets the approximate counter's value by adding what is missing to the word that all CPUs share. Takes the arena's
    /// lock.
    pub(crate) fn set(&self, value: u64) {
        arena_of(self.handle).while_locked(|| {
            let missing = value.wrapping_sub(self.read());
            if missing != 0 {
                // whoever sees it sees at least the counts it was made from
                fence(Ordering::Release);
                self.add_to_direct(missing);
            }
        });
    }
}

#[cfg(all(test, not(feature = "uniprocessor")))]
impl BoundedSum {
    /// Adds `value` to the counter's word of a synthetic CPU, which this kernel cannot have, and flushes nothing: what no
    /// update does with a batch or more, so that the approximate value tells that this word was not read.
    pub(crate) fn add_unflushed_on_synthetic(&self, cpu: usize, value: u64) {
        let add = || self.handle.add_on_synthetic_locked(cpu, value);
        assert!(arena_of(self.handle).while_locked(add), "the CPU has a word");
    }
}

impl Drop for BoundedSum {
    fn drop(&mut self) {
        // SAFETY: the count that `adopt` took, once.
        unsafe { release(self.handle, |arena| _ = arena.free_pair(self.handle)) };
    }
}

// with sections, which a build for one CPU has not
#[cfg(all(test, not(feature = "uniprocessor")))]
mod tests {
    use super::*;
    use crate::counter::Counter;
    use crate::placement::{Mode, Placement, Pool};
    use crate::topology::Topology;

    #[test]
    fn a_flush_of_a_parent_is_made_up_for_only_while_nothing_is_drained() {
        let pool = Pool::builder().placement(Placement::Flexible).build().expect("pool");
        if pool.mode() != Mode::Rseq {
            return;
        }
        let sum = BoundedSum::take(pool.arena(), 0, 1000).expect("memory");
        sum.add(5);
        // a parent forked when it had claimed these, and not added them
        let mut claimed = 0;
        // SAFETY: as in `flush`.
        while !unsafe { rseq::claim(sum.handle.base.as_ptr(), sum.handle.table.as_ptr(), &raw mut claimed) } {
        }
        sum.is_flushing.store(true, Ordering::Relaxed);
        let drains = sum.handle.reservation().cpus().changing().lock();
        assert!(!sum.flush(), "a drain adds what it moves before readers see it moved");
        assert_eq!(sum.approximate(), 0);
        drop(drains);
        assert!(sum.flush());
        assert_eq!((sum.approximate(), sum.read()), (5, 5));
    }

    #[test]
    fn an_approximate_read_loads_one_line_also_where_counters_were_set_and_dropped() {
        const CPUS: usize = 1000;
        let topology = Topology::synthetic(CPUS as u32).build().expect("topology");
        let pool = Pool::builder().topology(topology).build().expect("pool");
        drop(BoundedSum::take(pool.arena(), 9, 64).expect("memory"));
        Counter::new_in(&pool, 1).expect("counter").set(7);
        let sum = BoundedSum::take(pool.arena(), 3, 64).expect("memory");
        sum.set(5);
        let line = |address: *const AtomicU64| address.addr() / 64;
        assert_eq!(line(sum.handle.at(0)), line(sum.flushed()));
        let reservation = sum.handle.reservation();
        assert!(reservation.baselines_in_use(), "the counter's");
        // all other words of it say something else
        sum.add_unflushed_on_synthetic(CPUS - 1, 1 << 40);
        let others = [reservation.cpus().displacement(CPUS - 1), Some(reservation.baseline_displacement())];
        for displacement in others.into_iter().flatten() {
            sum.handle.at(displacement).fetch_add(1 << 41, Ordering::Relaxed);
            sum.second_word().at(displacement).fetch_add(1 << 42, Ordering::Relaxed);
        }
        assert_eq!((sum.approximate(), sum.read()), (5, 5 + (1 << 40) + (2 << 41)));
    }
}
