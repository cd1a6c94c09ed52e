//! Distributions of values: [`Histogram`], and what was read of one: [`HistogramSnapshot`].

use crate::error::{Error, Result};
use crate::memory::{CHUNK_WORDS, LatchLayout, Lines, fold_piece_tiles, highest_bit};
use crate::placement::Pool;
use std::fmt;

/// Buckets in a chunk: each is a number of values and their sum.
const CHUNK_BUCKETS: usize = CHUNK_WORDS / 2;
/// The most bits of a value that tell buckets apart, below its highest one.
const MOST_BITS: u32 = 12;

/// A per-CPU histogram of integers, such as latencies in nanoseconds or sizes in bytes, with quantiles of a bounded
/// relative error.
///
/// Buckets are log-linear: each power of two is divided into 2ᵏ of equal width, and k is as small as
/// the relative error of quantiles allows. Each has the number of its values and their sum, and one
/// commit updates both, so a mean is as exact as a counter, and a reader sees no value of which it does
/// not see the sum.
///
/// ```
/// use statctr::Histogram;
///
/// // up to a minute in nanoseconds, quantiles to 1 %
/// let latencies = Histogram::new(60_000_000_000, 0.01)?;
/// (1..=1000).for_each(|microseconds| latencies.observe(microseconds * 1000));
/// let seen = latencies.snapshot();
/// assert_eq!((seen.count(), seen.sum()), (1000, 500_500_000));
/// let median = seen.quantile(0.5).expect("not empty") as f64;
/// assert!((median / 500_000.0 - 1.0).abs() < 0.01);
/// # Ok::<(), statctr::Error>(())
/// ```
///
/// # Cost
/// [`observe`](Self::observe) is an event of two items and some five instructions. 16 bytes for each
/// bucket and CPU that counts, of which only the pages that have values are memory; for values up to a
/// minute in nanoseconds 1900 buckets at 1 %, 260 at 10 %. A snapshot reads all lines of all CPUs that
/// counted: microseconds.
///
/// # Arithmetic, ordering, threads, signals, forks
/// Those of [`Counter`](crate::Counter), whose guarantees hold for each bucket.
#[derive(Debug)]
pub struct Histogram {
    lines: Lines,
    scale: Scale,
}

/// Division of the values into buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scale {
    /// Bits that tell buckets apart below the highest one of a value.
    bits: u32,
    /// The largest value that has a bucket.
    max: u64,
    /// The index of the bucket for values above that.
    beyond: usize,
}

impl Scale {
    fn new(max: u64, error: f64) -> Result<Scale> {
        // not so for NaN, either
        let usable = error > 0.0 && error < 1.0;
        // half of a bucket's width, over its least value
        let bits = (0..=MOST_BITS).find(|bits| 0.5f64.powi(*bits as i32 + 1) <= error);
        let Some(bits) = bits.filter(|_| usable) else {
            return Err(Error::BadSetting("a histogram's relative error is not between 0.000123 and 1"));
        };
        let scale = Scale { bits, max, beyond: usize::MAX };
        Ok(Scale { beyond: scale.index(max) + 1, ..scale })
    }

    /// Returns the index of a value's bucket.
    #[inline(always)]
    fn index(self, value: u64) -> usize {
        let shift = highest_bit(value | 1 << self.bits) - self.bits;
        let index = ((shift as usize) << self.bits) + (value >> shift) as usize;
        if value > self.max { self.beyond } else { index }
    }

    /// Returns the least and the largest value of a bucket.
    fn bounds(self, index: usize) -> (u64, u64) {
        if index >= self.beyond {
            return (self.max.saturating_add(1), u64::MAX);
        }
        let shift = (index >> self.bits).saturating_sub(1);
        let least = ((index - (shift << self.bits)) as u64) << shift;
        (least, (least + ((1 << shift) - 1)).min(self.max))
    }

    fn buckets(self) -> usize {
        self.beyond + 1
    }
}

impl Histogram {
    /// Creates a histogram for values up to `max`, in the process's global pool of counter memory, whose quantiles have
    /// at most the relative error `error` (0.01 for 1 %).
    ///
    /// # Errors
    /// Fails as [`new_in`](Self::new_in) and [`Pool::global`] do.
    pub fn new(max: u64, error: f64) -> Result<Histogram> {
        Histogram::new_in(Pool::global()?, max, error)
    }

    /// Creates a histogram for values up to `max`, in the counter memory of `pool`, whose quantiles have at most the
    /// relative error `error` (0.01 for 1 %).
    ///
    /// # Errors
    /// [`Error::BadSetting`] for an error that is not between 0.000123 and 1, [`Error::TooMany`] where
    /// there would be more buckets than a unit of the pool holds (16 384, unless it was built with
    /// others), and [`Error::OutOfMemory`] for address space.
    pub fn new_in(pool: &Pool, max: u64, error: f64) -> Result<Histogram> {
        let scale = Scale::new(max, error)?;
        let chunks = scale.buckets().div_ceil(CHUNK_BUCKETS);
        // where no store holds both numbers their lines have two copies
        let latch = (pool.cost().vector_bytes < 16).then_some(LatchLayout { lines: chunks });
        let lines = Lines::take_group(pool.arena(), chunks, latch)?;
        Ok(Histogram { lines, scale })
    }

    /// Returns the histogram's parts, for C: its cache lines, and how values map to buckets (largest value, bits that
    /// select a bucket within a power of two, index of the bucket for larger values).
    pub(crate) fn parts(&self) -> (&Lines, (u64, u32, u32)) {
        // a unit has fewer buckets than that
        (&self.lines, (self.scale.max, self.scale.bits, self.scale.beyond as u32))
    }

    /// Recreates a histogram, for C, from its cache lines and its mapping of values to buckets, as returned by
    /// [`parts`](Self::parts).
    #[inline]
    pub(crate) fn from_parts(lines: Lines, (max, bits, beyond): (u64, u32, u32)) -> Histogram {
        Histogram { lines, scale: Scale { bits, max, beyond: beyond as usize } }
    }

    /// Counts a value in its bucket of the histogram, and adds it to the bucket's sum. Never waits; async-signal-safe.
    /// Values above the largest one are counted with their right sum; quantiles take them for the largest value.
    #[inline(always)]
    pub fn observe(&self, value: u64) {
        self.lines.commit(2 * self.scale.index(value), &[1, value]);
    }

    /// Counts a value `times` times in its bucket of the histogram by one update; see [`observe`](Self::observe).
    #[inline(always)]
    pub fn observe_many(&self, value: u64, times: u64) {
        self.lines.commit(2 * self.scale.index(value), &[times, value.wrapping_mul(times)]);
    }

    /// Returns the number of the histogram's buckets (ranges of values that it does not tell apart), including the one
    /// for values above the largest.
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.scale.buckets()
    }

    /// Reads all buckets of the histogram, summed over the CPUs, into a snapshot. Takes microseconds and stops no
    /// writer.
    ///
    /// A value that is counted meanwhile is in it or not, with its part of the sum if that was one commit
    /// ([`Mode::Rseq`](crate::Mode::Rseq)); else its count and its part of the sum are added one after the other.
    #[must_use]
    pub fn snapshot(&self) -> HistogramSnapshot {
        let mut buckets = vec![Bucket::default(); self.scale.buckets()];
        fold_piece_tiles(&self.lines, self.lines.item_chunks(), |first, sums| {
            let pairs = sums.chunks_exact(2).map(|pair| Bucket { count: pair[0], sum: pair[1] });
            buckets.iter_mut().skip(first / 2).zip(pairs).for_each(|(bucket, read)| *bucket = read);
        });
        HistogramSnapshot { scale: self.scale, buckets }
    }
}

/// A bucket: its values and their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Bucket {
    count: u64,
    sum: u64,
}

impl Bucket {
    /// Returns the sum of the values, which lie within these bounds, from the remainder that the bucket has.
    fn whole_sum(self, (least, largest): (u64, u64)) -> u128 {
        let [count, least, largest, sum] = [self.count, least, largest, self.sum].map(u128::from);
        let below = count * least;
        let whole = below + u128::from(self.sum.wrapping_sub(below as u64));
        // Without rseq a value may be counted, and its part of the sum not there yet.
        if whole <= count * largest { whole } else { whole.checked_sub(1 << 64).unwrap_or(sum) }
    }
}

/// The counts and sums of a [`Histogram`]'s buckets at one reading, with quantiles; snapshots can be merged and
/// subtracted.
///
/// Counts and sums are modulo 2⁶⁴, as all counters are.
#[derive(Clone, PartialEq, Eq)]
pub struct HistogramSnapshot {
    scale: Scale,
    buckets: Vec<Bucket>,
}

impl HistogramSnapshot {
    /// Returns the number of values in the snapshot.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, bucket| sum.wrapping_add(bucket.count))
    }

    /// Returns the sum of the values in the snapshot, modulo 2⁶⁴.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, bucket| sum.wrapping_add(bucket.sum))
    }

    /// Returns the arithmetic mean of the values in the snapshot; `None` without values.
    ///
    /// A sum of 2⁶⁴ or more is found bucket by bucket, from the remainders: exactly as long as the number of a bucket's
    /// values times its width is less than 2⁶⁴, and beyond that to twice the histogram's relative error. The sum of the
    /// values above the largest one, which have one bucket, may be taken for too small by a multiple of 2⁶⁴.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        let sums = self.buckets.iter().enumerate().filter(|(_, bucket)| **bucket != Bucket::default());
        let sums = sums.map(|(index, bucket)| bucket.whole_sum(self.scale.bounds(index)));
        (count > 0).then(|| sums.fold(0, u128::saturating_add) as f64 / count as f64)
    }

    /// Returns the quantile `part` of the values (0.5: the median; clamped to 0 and 1), off by at most the histogram's
    /// relative error; `None` without values, and for NaN.
    ///
    /// Precisely, it is the middle of the bucket that contains the value of rank ⌈`part` · count⌉ (at least 1), or the
    /// histogram's largest value for values above it. A `part` nearest to a fraction of `count` is that: 0.07 of 100
    /// values has rank 7.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<u64> {
        let count = self.count();
        if count == 0 || part.is_nan() {
            return None;
        }
        let part = part.clamp(0.0, 1.0);
        let product = part * count as f64;
        // 0.07 · 100 is more than 7, as 0.07 is rounded, and 7 / 100 is that same number
        let is_whole = product.round() / count as f64 == part;
        let rank = if is_whole { product.round() } else { product.ceil() };
        let rank = (rank as u64).clamp(1, count);
        let mut below = 0u64;
        let index = self.buckets.iter().position(|bucket| {
            below = below.wrapping_add(bucket.count);
            below >= rank
        })?;
        if index == self.scale.beyond {
            return Some(self.scale.max);
        }
        let (least, largest) = self.scale.bounds(index);
        Some(least + (largest - least) / 2)
    }

    /// Returns the largest value that has a bucket of the histogram, and the number of bits that tell buckets apart below
    /// the highest one of a value: histograms that agree in both have the same buckets.
    pub(crate) fn shape(&self) -> (u64, u32) {
        (self.scale.max, self.scale.bits)
    }

    /// Returns the number of values in buckets that end at or below `bound`, for Prometheus' classic buckets (`le`).
    /// Exact if a bucket ends at `bound`, else too low by the values of the bucket that contains it.
    #[must_use]
    pub fn count_up_to(&self, bound: u64) -> u64 {
        let counts = self.buckets().filter(|(_, largest, _)| *largest <= bound).map(|(.., count)| count);
        // of a change to an earlier snapshot they are below 0
        counts.fold(0, u64::wrapping_add)
    }

    /// Returns Prometheus' classic buckets, one for each power of two up to the histogram's largest value, as (largest
    /// value of the bucket, number of values up to that one), in ascending order. The numbers are exact.
    ///
    /// The bounds are 2ᵏ − 1 and depend on the histogram's largest value alone, so that the series are always the same.
    #[must_use]
    pub fn classic_buckets(&self) -> Vec<(u64, u64)> {
        let mut classic = Vec::new();
        let (mut filled, mut below) = (self.buckets().peekable(), 0u64);
        let bounds = (0..=64u32).map(|bits| u64::MAX.checked_shr(64 - bits).unwrap_or(0));
        for bound in bounds.take_while(|bound| *bound < self.scale.max).chain([self.scale.max]) {
            while let Some((.., count)) = filled.next_if(|(_, largest, _)| *largest <= bound) {
                below = below.wrapping_add(count);
            }
            classic.push((bound, below));
        }
        classic
    }

    /// Returns each non-empty bucket of the snapshot as (smallest value, largest value, number of values), in ascending
    /// order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let filled = self.buckets.iter().enumerate().filter(|(_, bucket)| bucket.count != 0);
        filled.map(|(index, bucket)| {
            let (least, largest) = self.scale.bounds(index);
            (least, largest, bucket.count)
        })
    }

    /// Adds another snapshot's counts and sums to this one's, bucket by bucket. It has to be of a histogram with the
    /// same `max` and `error`.
    ///
    /// # Errors
    /// [`Error::BadSetting`] for another one; nothing is changed then.
    pub fn merge(&mut self, other: &HistogramSnapshot) -> Result<()> {
        self.join(other, u64::wrapping_add)
    }

    /// Returns the difference to an earlier snapshot of the same histogram: the values counted in between.
    ///
    /// # Errors
    /// [`Error::BadSetting`] for one of a histogram with another largest value or error.
    pub fn since(&self, earlier: &HistogramSnapshot) -> Result<HistogramSnapshot> {
        let mut difference = self.clone();
        difference.join(earlier, u64::wrapping_sub)?;
        Ok(difference)
    }

    fn join(&mut self, other: &HistogramSnapshot, join: fn(u64, u64) -> u64) -> Result<()> {
        if self.scale != other.scale {
            return Err(Error::BadSetting("histograms of different buckets cannot be joined"));
        }
        for (bucket, other) in self.buckets.iter_mut().zip(&other.buckets) {
            bucket.count = join(bucket.count, other.count);
            bucket.sum = join(bucket.sum, other.sum);
        }
        Ok(())
    }
}

impl fmt::Debug for HistogramSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HistogramSnapshot")
            .field("count", &self.count())
            .field("sum", &self.sum())
            .field("median", &self.quantile(0.5))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scales() -> Vec<(Scale, f64)> {
        let mut scales = Vec::new();
        for error in [0.5, 0.1, 0.05, 0.01, 0.001] {
            for max in [0, 1, 2, 100, 1023, 1024, 60_000_000_000, u64::MAX - 1, u64::MAX] {
                scales.push((Scale::new(max, error).expect("a scale"), error));
            }
        }
        scales
    }

    #[test]
    fn buckets_lie_side_by_side_and_have_their_values() {
        for (scale, error) in scales() {
            let mut next = 0u64;
            for index in 0..scale.beyond {
                let (least, largest) = scale.bounds(index);
                assert_eq!(least, next, "{scale:?}: no gap in front of bucket {index}");
                assert!(least <= largest);
                assert_eq!((scale.index(least), scale.index(largest)), (index, index), "{scale:?}");
                let middle = least + (largest - least) / 2;
                let off = (largest - middle).max(middle - least) as f64;
                assert!(off <= error * least as f64 || least == largest, "{scale:?}: {least} to {largest}");
                next = largest.wrapping_add(1);
            }
            assert_eq!(next, scale.max.wrapping_add(1), "{scale:?}: up to the largest value");
            if scale.max < u64::MAX {
                assert_eq!(scale.index(scale.max + 1), scale.beyond);
                assert_eq!(scale.index(u64::MAX), scale.beyond);
            }
        }
    }

    /// Half of a bucket's width over its least value where there are as many buckets as may be.
    const SMALLEST_ERROR: f64 = 1.0 / 8192.0;

    #[test]
    fn any_value_is_in_its_bucket_and_within_any_error_of_its_middle() {
        let mut state = 1u64;
        let mut next = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state ^ (state >> 33)
        };
        for case in 0..20_000u64 {
            // the smallest one, powers of two, and evenly over the magnitudes between 0.000123 and 1
            let error = match case % 4 {
                0 => [0.000_123, SMALLEST_ERROR][case as usize / 4 % 2],
                1 => 0.5f64.powi(1 + (next() % 13) as i32),
                _ => 0.000_123f64.powf((next() >> 11) as f64 / (1u64 << 53) as f64).min(1.0f64.next_down()),
            };
            let max = next() >> (next() % 64);
            let scale = Scale::new(max, error).expect("an error that is allowed");
            assert!(scale.bits == 0 || 0.5f64.powi(scale.bits as i32) > error, "{scale:?}: too many buckets");
            for draw in 0..50 {
                // any magnitude, the ends of powers of two and of the scale
                let any = next() >> (next() % 64);
                let power = 1u64 << (next() % 64);
                let value = match draw % 5 {
                    0 => power,
                    1 => power - 1,
                    2 => max - any.min(max) % 3,
                    _ => any,
                }
                .min(max);
                let index = scale.index(value);
                let (least, largest) = scale.bounds(index);
                assert!(index < scale.beyond && (least..=largest).contains(&value), "{scale:?}: {value}");
                assert_eq!((scale.index(least), scale.index(largest)), (index, index), "{scale:?}: {value}");
                let middle = least + (largest - least) / 2;
                let off = middle.abs_diff(value) as f64;
                assert!(off <= error * value as f64, "{scale:?}, error {error}: {middle} for {value}");
            }
        }
    }

    #[test]
    fn classic_buckets_end_where_own_ones_do() {
        for (scale, _) in scales() {
            let count = |index: usize| u64::from(index < scale.beyond);
            let buckets = (0..scale.buckets()).map(|index| Bucket { count: count(index), sum: 0 }).collect();
            let seen = HistogramSnapshot { scale, buckets };
            let classic = seen.classic_buckets();
            for &(bound, count) in &classic {
                // a bucket for each index up to that of the bound
                assert_eq!(count, scale.index(bound) as u64 + 1, "{scale:?}: up to {bound}");
                assert_eq!(count, seen.count_up_to(bound), "{scale:?}: up to {bound}");
            }
            assert!(classic.is_sorted() && classic.len() <= 65, "{classic:?}");
            assert_eq!(classic.last().map(|last| last.0), Some(scale.max));
        }
    }

    #[test]
    fn a_change_to_an_earlier_snapshot_has_counts_below_zero() {
        let scale = Scale::new(100, 0.1).expect("an error");
        let with = |counts: [u64; 3]| {
            let bucket = |index: usize| Bucket { count: counts.get(index).copied().unwrap_or(0), sum: 0 };
            HistogramSnapshot { scale, buckets: (0..scale.buckets()).map(bucket).collect() }
        };
        let change = with([1, 0, 0]).since(&with([1, 2, 3])).expect("one scale");
        assert_eq!(change.count_up_to(100).cast_signed(), -5);
        assert_eq!(change.count().cast_signed(), -5);
    }

    #[test]
    fn errors_that_cannot_be_are_refused() {
        let too_small = SMALLEST_ERROR.next_down();
        for error in [0.0, -1.0, 1.0, 2.0, 1e-9, 0.000_122, too_small, f64::NAN, f64::INFINITY] {
            assert!(matches!(Scale::new(100, error), Err(Error::BadSetting(_))), "{error}");
        }
        for error in [SMALLEST_ERROR, 0.000_123, 1.0f64.next_down()] {
            assert!(Scale::new(100, error).is_ok(), "{error}");
        }
    }

    #[test]
    fn means_are_right_beyond_a_sum_of_64_bits() {
        let mean_of = |max, values: &[(u64, u64)]| {
            let scale = Scale::new(max, 0.01).expect("a scale");
            let mut buckets = vec![Bucket::default(); scale.buckets()];
            for &(value, times) in values {
                let bucket = &mut buckets[scale.index(value)];
                bucket.count += times;
                bucket.sum = bucket.sum.wrapping_add(value.wrapping_mul(times));
            }
            HistogramSnapshot { scale, buckets }.mean()
        };
        assert_eq!(mean_of(u64::MAX, &[]), None);
        assert_eq!(mean_of(u64::MAX, &[(u64::MAX, 2)]), Some(u64::MAX as f64));
        assert_eq!(mean_of(u64::MAX, &[(0, 1), (u64::MAX, 3)]), Some(u64::MAX as f64 / 4.0 * 3.0));
        let many = 1u64 << 60;
        assert_eq!(mean_of(1000, &[(5, many), (700, many + 1)]), Some(352.5));
        assert_eq!(mean_of(1000, &[(1, 3), (1000, 1)]), Some(250.75));
        // in the bucket of values above the largest
        assert_eq!(mean_of(1000, &[(5000, 3), (9000, 1)]), Some(6000.0));
        assert_eq!(mean_of(1000, &[(5, 5), (u64::MAX - 1, 1)]), Some((u64::MAX as f64 + 24.0) / 6.0));
    }

    #[test]
    fn a_value_that_is_half_counted_does_not_make_a_mean_of_64_bits() {
        let scale = Scale::new(1000, 0.01).expect("a scale");
        let half = |count, sum| {
            let mut buckets = vec![Bucket::default(); scale.buckets()];
            buckets[scale.index(700)] = Bucket { count, sum };
            HistogramSnapshot { scale, buckets }.mean()
        };
        assert_eq!(half(1, 0), Some(0.0));
        assert_eq!(half(4, 2100), Some(525.0));
        assert_eq!(half(2, 2100), Some(1050.0));
    }
}
