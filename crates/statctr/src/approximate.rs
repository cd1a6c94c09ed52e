//! A counter that can be read approximately, at one cache line's cost: [`ApproximateCounter`].

use crate::error::Result;
use crate::memory::BoundedSum;
use crate::placement::Pool;
use std::cmp::Ordering;
use std::fmt;

/// A per-CPU counter with a second, approximate read of bounded error that loads one cache line, however many CPUs
/// count.
///
/// For limits that are looked at often, such as a quota: [`compare`](Self::compare) reads all CPUs only where
/// the value is near. Each CPU adds what it counted to a shared word whenever that comes to a `batch`; a
/// larger batch makes that rarer and the approximation worse.
///
/// ```
/// use statctr::ApproximateCounter;
/// use std::cmp::Ordering;
///
/// let blocks = ApproximateCounter::new(0, 64)?;
/// (0..1000).for_each(|_| blocks.inc());
/// assert_eq!(blocks.read(), 1000);
/// assert!(blocks.approximate().abs_diff(1000) <= blocks.bound());
/// assert_eq!(blocks.compare(1_000_000), Ordering::Less);
/// assert_eq!(blocks.compare(1000), Ordering::Equal);
/// # Ok::<(), statctr::Error>(())
/// ```
///
/// # Bound
/// [`bound`](Self::bound) is (batch − 1) · (P + 1) for the P CPUs that there can be. Where only additions run at
/// the same time, [`approximate`](Self::approximate) is off by at most that from a value that the counter had
/// during the call; without concurrent updates, from the value. It holds whatever threads are preempted,
/// migrated or stopped in an update. The kernel's `percpu_counter` has the same bound but for the 1.
///
/// # Cost
/// 48 bytes for the handle, and 16 per CPU that counts. An update costs one to two times
/// [`Counter::add`](crate::Counter::add); one of a batch or more is added to the shared word atomically, and
/// so is one that comes to a batch while another thread adds its own there.
///
/// # Without rseq
/// All CPUs add atomically to the one word that approximate reads load, also in a pool that is striped
/// ([`Placement::Striped`](crate::Placement::Striped)); so approximate reads are exact there, and updates from several
/// CPUs as slow as those of one atomic. The bound needs an update that looks at two words and stores to one of
/// them without another update between, which a section does and an atomic instruction does not.
///
/// # Arithmetic, ordering, threads, signals, forks
/// Those of [`Counter`](crate::Counter). Approximate values are not monotone: one may be below another of
/// before, by no more than twice the bound.
///
/// Source: Linux `lib/percpu_counter.c`.
pub struct ApproximateCounter(BoundedSum);

impl ApproximateCounter {
    /// Creates a counter with the value `initial`, in the process's global pool of counter memory. Each CPU keeps less
    /// than `batch` to itself before it adds to the shared word that approximate reads load.
    ///
    /// # Errors
    /// Fails as [`new_in`](Self::new_in) and [`Pool::global`] do.
    pub fn new(initial: u64, batch: u64) -> Result<ApproximateCounter> {
        ApproximateCounter::new_in(Pool::global()?, initial, batch)
    }

    /// Creates a counter with the value `initial`, in the counter memory of `pool`. Each CPU keeps less than `batch` to
    /// itself before it adds to the shared word that approximate reads load.
    ///
    /// # Errors
    /// [`Error::BadSetting`](crate::Error::BadSetting) for a batch of 0, or one whose bound is 2⁶² or more,
    /// and [`Error::OutOfMemory`](crate::Error::OutOfMemory) for address space.
    pub fn new_in(pool: &Pool, initial: u64, batch: u64) -> Result<ApproximateCounter> {
        BoundedSum::take(pool.arena(), initial, batch).map(ApproximateCounter)
    }

    /// Adds 1 to the counter. Never waits; async-signal-safe.
    #[inline(always)]
    pub fn inc(&self) {
        self.0.add(1);
    }

    /// Subtracts 1 from the counter. Never waits; async-signal-safe.
    #[inline(always)]
    pub fn dec(&self) {
        self.0.add(u64::MAX);
    }

    /// Adds `value` to the counter. Never waits; async-signal-safe.
    #[inline(always)]
    pub fn add(&self, value: u64) {
        self.0.add(value);
    }

    /// Subtracts `value` from the counter. Never waits; async-signal-safe.
    #[inline(always)]
    pub fn sub(&self, value: u64) {
        self.0.add(value.wrapping_neg());
    }

    /// Returns the counter's exact value, summed over the CPUs that count. Cost and guarantees as
    /// [`Counter::read`](crate::Counter::read).
    #[must_use]
    pub fn read(&self) -> u64 {
        self.0.read()
    }

    /// Returns the counter's approximate value, without what CPUs counted but have not added to the shared word yet:
    /// off by at most [`bound`](Self::bound). Async-signal-safe.
    ///
    /// Cost: one cache line with counts, at any number of CPUs; its two words are loaded again where another CPU added to
    /// the first of them in between.
    #[must_use]
    #[inline]
    pub fn approximate(&self) -> u64 {
        self.0.approximate()
    }

    /// Returns the largest possible error of an approximate read of the counter ([`approximate`](Self::approximate)).
    #[must_use]
    pub fn bound(&self) -> u64 {
        self.0.bound()
    }

    /// Compares the counter's exact value with `other` (`Less` if the counter is below it). Reads all CPUs only if the
    /// approximate value is no further than the bound from `other`, or from the value 2⁶³ away from it. Values 2⁶³ or
    /// more apart are compared as if the counter had wrapped. Async-signal-safe.
    #[must_use]
    pub fn compare(&self, other: u64) -> Ordering {
        let (difference, bound) = (self.approximate().wrapping_sub(other).cast_signed(), self.bound());
        // near to half of all numbers the sign of the exact difference may be another one, as it is near to 0
        let near_half = i64::MIN.unsigned_abs() - bound;
        if difference.unsigned_abs() > bound && difference.unsigned_abs() < near_half {
            return difference.cmp(&0);
        }
        self.read().wrapping_sub(other).cast_signed().cmp(&0)
    }

    /// Sets the counter's value; see [`Counter::set`](crate::Counter::set). Takes the pool's lock: not for signal
    /// handlers.
    pub fn set(&self, value: u64) {
        self.0.set(value);
    }
}

impl fmt::Debug for ApproximateCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ApproximateCounter").field(&self.read()).finish()
    }
}

// with words of CPUs, which a build for one CPU has not
#[cfg(all(test, not(feature = "uniprocessor")))]
mod tests {
    use super::*;
    use crate::topology::Topology;

    #[test]
    fn a_comparison_reads_cpus_only_where_the_approximate_value_is_near() {
        const CPUS: u32 = 1000;
        const APPROXIMATE: u64 = 1 << 20;
        let topology = Topology::synthetic(CPUS).build().expect("topology");
        let pool = Pool::builder().topology(topology).build().expect("pool");
        let counter = ApproximateCounter::new_in(&pool, APPROXIMATE, 64).expect("counter");
        // further from the approximate value than updates leave it: the result tells which of the two was taken
        counter.0.add_unflushed_on_synthetic(CPUS as usize - 1, 1 << 40);
        let bound = counter.bound();
        assert_eq!((counter.approximate(), bound), (APPROXIMATE, 63 * 1001));
        for (other, of_approximate) in [
            (0, Ordering::Greater),
            (APPROXIMATE - bound - 1, Ordering::Greater),
            (APPROXIMATE + bound + 1, Ordering::Less),
            (1 << 39, Ordering::Less),
        ] {
            assert_eq!(counter.compare(other), of_approximate, "{other} is far");
        }
        for near in [APPROXIMATE - bound, APPROXIMATE, APPROXIMATE + bound] {
            assert_eq!(counter.compare(near), Ordering::Greater, "{near}: of all CPUs");
        }
    }
}
