//! A number of values and their sum, of one commit: [`Average`].

use crate::error::Result;
use crate::memory::{LatchLayout, Lines, fold_piece_tiles};
use crate::placement::Pool;
use std::fmt;

/// A per-CPU average: the number and the sum of the observed values, which one commit updates together.
///
/// For a mean without its distribution, and for the rate of one thing in another (hits in look-ups) as the
/// average of ones and zeros. A [`Histogram`](crate::Histogram) has the quantiles, too.
///
/// ```
/// use statctr::Average;
///
/// let sizes = Average::new()?;
/// sizes.observe(1500);
/// sizes.observe(40);
/// let seen = sizes.read();
/// assert_eq!((seen.count(), seen.sum(), seen.mean()), (2, 1540, Some(770.0)));
///
/// let hits = Average::new()?;
/// [true, false, true, true].map(|is_hit| hits.observe(u64::from(is_hit)));
/// assert_eq!(hits.read().mean(), Some(0.75));
/// # Ok::<(), statctr::Error>(())
/// ```
///
/// # Cost
/// An observation is an event of two items. A cache line per CPU that observes (three where no store holds both
/// numbers, as on aarch64).
///
/// # Arithmetic, ordering, threads, signals, forks
/// Those of [`Counter`](crate::Counter), whose guarantees hold for both numbers. A reader sees no value of which
/// it does not see the sum; where a value is not counted per CPU (a process or thread without rseq, memory that
/// is not there) it may see one of the two before the other.
pub struct Average(Lines);

impl Average {
    /// Creates an average without values, in the process's global pool of counter memory.
    ///
    /// # Errors
    /// Fails as [`Counter::new`](crate::Counter::new) does.
    pub fn new() -> Result<Average> {
        Average::new_in(Pool::global()?)
    }

    /// Creates an average without values, in the counter memory of `pool`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) for address space.
    pub fn new_in(pool: &Pool) -> Result<Average> {
        let latch = (pool.cost().vector_bytes < 16).then_some(LatchLayout { lines: 1 });
        Lines::take_group(pool.arena(), 1, latch).map(Average)
    }

    /// Adds a value to the average: 1 to the count, `value` to the sum. Never waits; async-signal-safe.
    #[inline(always)]
    pub fn observe(&self, value: u64) {
        self.observe_many(1, value);
    }

    /// Adds `count` values with the sum `sum` to the average by one update; see [`observe`](Self::observe).
    #[inline(always)]
    pub fn observe_many(&self, count: u64, sum: u64) {
        self.0.commit(0, &[count, sum]);
    }

    /// Reads the average: the number of values observed and their sum, consistent with each other. Cost: a cache line
    /// per CPU that observes.
    #[must_use]
    pub fn read(&self) -> AverageSnapshot {
        let mut seen = AverageSnapshot::default();
        fold_piece_tiles(&self.0, 1, |_, sums| {
            if let [count, sum, ..] = *sums {
                seen = AverageSnapshot { count, sum };
            }
        });
        seen
    }
}

impl fmt::Debug for Average {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Average").field(&self.read()).finish()
    }
}

/// The number of values and their sum in an [`Average`] at one reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AverageSnapshot {
    count: u64,
    sum: u64,
}

impl AverageSnapshot {
    pub(crate) fn of(count: u64, sum: u64) -> AverageSnapshot {
        AverageSnapshot { count, sum }
    }

    /// Returns the number of observed values in this reading of an average, modulo 2⁶⁴.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of the observed values in this reading of an average, modulo 2⁶⁴.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the arithmetic mean of the observed values in this reading of an average; `None` if there are none. It is
    /// too small once the sum has exceeded 2⁶⁴, by multiples of 2⁶⁴ / count; the mean of a
    /// [`HistogramSnapshot`](crate::HistogramSnapshot) is not.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Returns the difference to an earlier snapshot of the same average: the values observed in between.
    #[must_use]
    pub fn since(&self, earlier: &AverageSnapshot) -> AverageSnapshot {
        AverageSnapshot {
            count: self.count.wrapping_sub(earlier.count),
            sum: self.sum.wrapping_sub(earlier.sum),
        }
    }

    /// Returns a snapshot with the values of both snapshots: their numbers added, and their sums added.
    pub(crate) fn merged(&self, other: &AverageSnapshot) -> AverageSnapshot {
        AverageSnapshot::of(self.count.wrapping_add(other.count), self.sum.wrapping_add(other.sum))
    }
}
