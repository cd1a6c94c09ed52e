//! A floating-point sum that can be set: [`FloatSum`].
//!
//! ```text
//! per CPU (two words):   s, the CPU's sum │ e, the epoch that it belongs to
//! in the owner:          E, the epoch │ values[E mod 2], set when it began │ fallback[E mod 2]
//!
//! add(v), in a section on CPU c:            set(v), one at a time:
//!   if e[c] = E    s[c] := s[c] + v           values[(E + 1) mod 2] := v
//!   else           s[c] := v                  fallback[(E + 1) mod 2] := empty(E + 1)
//!                  e[c] := E    (commit)      E := E + 1
//!
//! add(v), without rseq, on stripe c:        join(word, n, v), atomically:
//!   n := E                                    if word = empty(n)   word := v
//!   if e[c] = n          join(s[c], n, v)     if it is a number    word := word + v
//!   if e[c] = replacing  the fallback         else leave: try again with the current E
//!   if e[c] < n          e[c] := replacing, if it is still the same; nobody else does this then
//!                        s[c] := empty(n)   the fallback, and where a section failed:
//!                        e[c] := n            n := E
//!                        try again            join(fallback[n mod 2], n, v)
//!
//! read():  values[E mod 2] + fallback[E mod 2] + the sum of s[c] where e[c] = E; again if E changed
//! ```
//! A set writes no CPU's word: it makes them stale, and the CPU's next section replaces what is. So a read
//! after a set is that number and nothing of what was there before, no rounding, no infinity, no NaN. The
//! first store of a section that finds its words stale goes to a word that no reader adds, as its epoch is
//! not the current one and never is again: an abort behind it leaves nothing that counts.
//!
//! Without rseq several threads add to the words of a stripe, and one may be stopped anywhere while others set
//! and add. Its addition is not lost and damages nothing, whatever epoch it goes to:
//! - `empty(n)` is no number and another one in each epoch, so who stored a number over it saw e\[c\] = n (for
//!   the fallback E = n). Therefore a number of a later epoch than the adder's is one that readers of that epoch
//!   count already, and what the adder adds to it, by a compare-and-swap, is after that set, and visible at once.
//! - To a number whose epoch is over the addition is before the set that ended it, which it overlapped.
//! - e\[c\] only grows, so who makes it `replacing` found no newer epoch there, and until it is done nobody else
//!   stores an `empty`. If it never is (a child of a fork in the middle), the stripe's threads have the fallback.

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
    /// The sum of the updates that ran in no section and on no stripe, by the epoch's last bit; [`empty`] before the
    /// first of them.
    fallback: [AtomicU64; 2],
}

/// The second word of a stripe whose sum is being replaced for a new epoch.
const REPLACING: u64 = u64::MAX;

/// Returns the content of a sum in which nothing was added in an epoch yet.
///
/// A signalling NaN: arithmetic makes quiet ones only, and what callers add is made a quiet one by [`join`].
fn empty(epoch: u64) -> u64 {
    EMPTY | epoch & !(u64::MAX << EMPTY_SHIFT)
}

/// Returns `true` for a sum in which nothing was added in some epoch yet.
fn is_empty(bits: u64) -> bool {
    bits >> EMPTY_SHIFT == EMPTY >> EMPTY_SHIFT
}

const EMPTY_SHIFT: u32 = 50;
const EMPTY: u64 = 0x7ff4 << 48;

/// Returns the number in a sum of this epoch.
fn number(bits: u64, epoch: u64) -> f64 {
    if bits == empty(epoch) { 0.0 } else { f64::from_bits(bits) }
}

/// Adds `value` atomically to a sum that several threads add to; `false`, with nothing added, if it was emptied for
/// another epoch.
fn join(sum: &AtomicU64, epoch: u64, value: f64) -> bool {
    let mut before = sum.load(Ordering::Acquire);
    loop {
        let after = if before == empty(epoch) {
            value
        } else if is_empty(before) {
            return false;
        } else {
            f64::from_bits(before) + value
        };
        // a caller's NaN could be an `empty`
        let after = if after.is_nan() { f64::NAN } else { after };
        // A reader that sees this number must see that the epoch began in which it is counted.
        match sum.compare_exchange_weak(before, after.to_bits(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return true,
            Err(now) => before = now,
        }
    }
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
            fallback: [0, 1].map(|epoch| AtomicU64::new(empty(epoch))),
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
        if self.handle.is(HandleTag::Striped)
            && let Some(displacement) = self.handle.stripe_unit()
            && self.add_on_stripe(displacement, value)
        {
            return;
        }
        loop {
            let epoch = self.epoch.load(Ordering::Acquire);
            if join(&self.fallback[slot(epoch)], epoch, value) {
                return;
            }
        }
    }

    /// Adds `value` to the sum of a stripe, whose words lie `displacement` bytes from the home words; `false`, with
    /// nothing added, while another thread replaces that sum for a new epoch. Async-signal-safe.
    fn add_on_stripe(&self, displacement: usize, value: f64) -> bool {
        let (second, sum) = (self.second_word(), self.handle.at(displacement));
        let sum_epoch = second.at(displacement);
        loop {
            let epoch = self.epoch.load(Ordering::Acquire);
            let found = sum_epoch.load(Ordering::Acquire);
            if found == REPLACING {
                return false;
            }
            if found == epoch {
                if join(sum, epoch, value) {
                    return true;
                }
            } else if found < epoch
                && sum_epoch.compare_exchange(found, REPLACING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {
                // exchanges, as the model has them
                sum.swap(empty(epoch), Ordering::AcqRel);
                sum_epoch.store(epoch, Ordering::Release);
            }
        }
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
            self.fallback[slot(next)].swap(empty(next), Ordering::AcqRel);
            self.epoch.store(next, Ordering::Release);
        });
    }

    /// Returns the floating-point gauge's value: what was set last and the CPUs' sums of this epoch (the time since).
    /// Async-signal-safe.
    pub(crate) fn read(&self) -> f64 {
        let epoch = self.epoch.load(Ordering::Acquire);
        let value = f64::from_bits(self.values[slot(epoch)].load(Ordering::Relaxed));
        let mut sum = number(self.fallback[slot(epoch)].load(Ordering::Relaxed), epoch);
        // a section stores what it was given, whatever NaN that is
        let is_striped = self.handle.is(HandleTag::Striped);
        sum += self.handle.reservation().cpus().consistently(|walk| {
            let mut counted = 0.0;
            walk.for_each(|displacement| {
                if self.second_word().at(displacement).load(Ordering::Acquire) == epoch {
                    let bits = self.handle.at(displacement).load(Ordering::Relaxed);
                    counted += if is_striped { number(bits, epoch) } else { f64::from_bits(bits) };
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

#[cfg(all(test, not(feature = "uniprocessor")))]
mod tests {
    use super::*;
    use crate::placement::{Placement, Pool};

    fn striped() -> (Pool, FloatSum) {
        let pool = Pool::builder().placement(Placement::Striped).build().expect("pool");
        let sum = FloatSum::take(pool.arena(), 0.5).expect("memory");
        (pool, sum)
    }

    fn fallback(sum: &FloatSum) -> f64 {
        let epoch = sum.epoch.load(Ordering::Relaxed);
        number(sum.fallback[slot(epoch)].load(Ordering::Relaxed), epoch)
    }

    #[test]
    fn a_striped_sum_is_not_in_the_shared_word() {
        let (_pool, sum) = striped();
        for round in 0..3 {
            (0..100).for_each(|_| sum.add(1.0));
            assert_eq!((sum.read(), fallback(&sum)), (100.5, 0.0), "{round}");
            sum.set(0.5);
            assert_eq!(sum.read(), 0.5);
        }
    }

    #[test]
    fn a_stripe_whose_sum_is_being_replaced_is_left_alone() {
        let (_pool, sum) = striped();
        sum.add(1.0);
        sum.set(8.0);
        let stripes = sum.handle.reservation().cpus();
        stripes.walk().for_each(|unit| sum.second_word().at(unit).store(REPLACING, Ordering::Relaxed));
        sum.add(2.0);
        // on one that this thread moved to meanwhile, or nowhere but here
        assert!(sum.read() == 10.0 && (fallback(&sum) == 2.0 || stripes.len() > 1), "{}", sum.read());
        sum.set(1.0);
        sum.add(2.0);
        assert_eq!(sum.read(), 3.0);
    }

    #[test]
    fn a_nan_that_looks_as_an_empty_sum_is_one() {
        let (_pool, sum) = striped();
        for epoch in 1..5 {
            sum.add(f64::from_bits(empty(epoch)));
            assert!(sum.read().is_nan());
            sum.add(1.0);
            assert!(sum.read().is_nan());
            sum.set(1.0);
            assert_eq!(sum.read(), 1.0);
        }
    }

    #[test]
    fn an_addition_begun_epochs_ago_is_refused_by_an_empty_sum_and_joins_a_number() {
        let sum = AtomicU64::new(empty(7));
        assert!(!join(&sum, 5, 1.0));
        assert!(join(&sum, 7, 1.0) && join(&sum, 5, 1.0));
        assert_eq!(number(sum.into_inner(), 7), 2.0);
    }
}
