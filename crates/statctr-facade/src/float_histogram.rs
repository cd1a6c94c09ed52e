//! Distributions of floating-point values: [`FloatHistogram`].

use statctr::{Histogram, HistogramSnapshot, Result};
use std::fmt;

/// The largest number of units that has a bucket of its own; what is larger is beyond any use.
const MOST_UNITS: u64 = 1 << 62;
/// The relative error of quantiles where nobody asks for another.
const DEFAULT_ERROR: f64 = 0.01;

/// A per-CPU histogram of non-negative floating-point values, such as latencies in seconds.
///
/// It is a [`Histogram`] of whole multiples of a *resolution*, to which values are rounded. So a value, and its part of
/// the sum, is off by at most half a resolution, and a quantile by at most 1 % in addition. Negative values count as 0,
/// values above 2⁶² resolutions as 2⁶² resolutions; NaN is not counted.
///
/// ```
/// use statctr_facade::FloatHistogram;
///
/// let seconds = FloatHistogram::new(1e-9)?;
/// (1..=1000).for_each(|ms| seconds.observe(f64::from(ms) / 1000.0));
/// let seen = seconds.snapshot();
/// assert_eq!((seen.count(), seen.sum()), (1000, 500.5));
/// assert!((seen.quantile(0.5).expect("not empty") / 0.5 - 1.0).abs() < 0.01);
/// # Ok::<(), statctr::Error>(())
/// ```
///
/// # Sums
/// The sum is exact (but for the rounding of each value) up to 2⁶³ · 100 resolutions: it is kept modulo 2⁶⁴
/// resolutions, and the buckets tell it to 1 %, which gives the missing high bits (with a larger error the limit is as
/// much smaller). With a resolution of a nanosecond that is 29 000 years.
pub struct FloatHistogram {
    histogram: Histogram,
    /// Units in 1; a multiplication is cheaper than a division.
    per_one: f64,
}

impl FloatHistogram {
    /// Creates a histogram in the global pool that rounds values to multiples of `resolution` (10⁻⁹ for seconds
    /// measured in nanoseconds), with quantiles at most 1 % off.
    ///
    /// # Errors
    /// Fails as [`Histogram::new`] does, also for a resolution that is not positive and finite.
    pub fn new(resolution: f64) -> Result<FloatHistogram> {
        FloatHistogram::with_error(resolution, DEFAULT_ERROR)
    }

    /// Creates a histogram that rounds values to multiples of `resolution`, with quantiles of at most this relative
    /// error (0.01 for 1 %).
    ///
    /// # Errors
    /// Fails as [`new`](Self::new) does; errors are between 0.002 and 0.5.
    pub fn with_error(resolution: f64, error: f64) -> Result<FloatHistogram> {
        let exact = 1.0 / resolution;
        // 1 / 10⁻⁹ is not 10⁹, as 10⁻⁹ is no multiple of a power of two; a sum of a second is 1, then
        let near = (exact - exact.round()).abs() <= exact * 4.0 * f64::EPSILON;
        let per_one = if near { exact.round() } else { exact };
        if !(resolution > 0.0 && resolution.is_finite() && per_one.is_finite()) {
            return Err(statctr::Error::BadSetting("a histogram's resolution is not a positive number"));
        }
        Ok(FloatHistogram { histogram: Histogram::new(MOST_UNITS, error)?, per_one })
    }

    /// Counts a value in the histogram. Never waits; async-signal-safe.
    #[inline]
    pub fn observe(&self, value: f64) {
        if !value.is_nan() {
            self.histogram.observe(self.units(value));
        }
    }

    /// Counts a value `times` times, by one update; see [`observe`](Self::observe).
    #[inline]
    pub fn observe_many(&self, value: f64, times: u64) {
        if !value.is_nan() {
            self.histogram.observe_many(self.units(value), times);
        }
    }

    #[inline]
    fn units(&self, value: f64) -> u64 {
        // with 0.5 the sum of the number below 0.5 would be 1, and that of an odd number from 2⁵² on the next even one;
        // half a unit is still rounded up, as 0.5 + 0.49999999999999994 is 1
        const BELOW_HALF: f64 = 0.5_f64.next_down();
        // below 0 it is 0
        ((value * self.per_one + BELOW_HALF) as u64).min(MOST_UNITS)
    }

    /// Reads all buckets of the histogram, summed over the CPUs, into a snapshot. Takes microseconds and stops no
    /// writer.
    #[must_use]
    pub fn snapshot(&self) -> FloatHistogramSnapshot {
        FloatHistogramSnapshot { units: self.histogram.snapshot(), per_one: self.per_one }
    }
}

impl fmt::Debug for FloatHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(f)
    }
}

/// The counts of a [`FloatHistogram`]'s buckets at one reading, with count, sum and quantiles.
#[derive(Clone, PartialEq)]
pub struct FloatHistogramSnapshot {
    units: HistogramSnapshot,
    per_one: f64,
}

impl FloatHistogramSnapshot {
    /// Returns the underlying integer histogram's snapshot, whose values are multiples of the resolution, and the
    /// number of resolutions in 1.0.
    pub(crate) fn units(&self) -> (&HistogramSnapshot, f64) {
        (&self.units, self.per_one)
    }

    /// Returns the number of values counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.units.count()
    }

    /// Returns the sum of the values counted, each rounded to the resolution.
    #[must_use]
    pub fn sum(&self) -> f64 {
        let middle = |(least, largest, count): (u64, u64, u64)| {
            // the bucket beyond a histogram's largest value has no middle
            let middle = if largest == u64::MAX { least } else { least + (largest - least) / 2 };
            u128::from(middle) * u128::from(count)
        };
        let about = self.units.buckets().map(middle).fold(0, u128::saturating_add);
        unwrap_near(self.units.sum(), about) as f64 / self.per_one
    }

    /// Returns the value at the quantile `part` (0.5: the median), off by at most the histogram's relative error;
    /// `None` without values.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<f64> {
        self.units.quantile(part).map(|units| units as f64 / self.per_one)
    }

    /// Returns the number of values up to `bound`, those in buckets whose middle is at most `bound`: as exact as the
    /// quantiles are.
    #[must_use]
    pub fn count_up_to(&self, bound: f64) -> u64 {
        self.counts_up_to(&[bound])[0]
    }

    /// Returns the number of values up to each of these bounds, which are in ascending order, as
    /// [`count_up_to`](Self::count_up_to) does for one. Reads the buckets once for all bounds.
    #[must_use]
    pub fn counts_up_to(&self, bounds: &[f64]) -> Vec<u64> {
        let (mut filled, mut below) = (self.units.buckets().peekable(), 0u64);
        let count = |&bound: &f64| {
            let up_to = |&(least, largest, _): &(u64, u64, u64)| {
                (least as f64 + (largest - least) as f64 / 2.0) / self.per_one <= bound * (1.0 + f64::EPSILON)
            };
            while let Some((.., count)) = filled.next_if(up_to) {
                below = below.wrapping_add(count);
            }
            below
        };
        bounds.iter().map(count).collect()
    }

    /// Returns each non-empty bucket as (smallest value, largest value, number of values), in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, f64, u64)> + '_ {
        let per_one = self.per_one;
        let scaled = move |(least, largest, count)| (least as f64 / per_one, largest as f64 / per_one, count);
        self.units.buckets().map(scaled)
    }
}

/// The snapshot of a histogram of integers, as one with the resolution 1. The sum of values above the largest one is
/// right up to 2⁶³.
impl From<HistogramSnapshot> for FloatHistogramSnapshot {
    fn from(units: HistogramSnapshot) -> FloatHistogramSnapshot {
        FloatHistogramSnapshot { units, per_one: 1.0 }
    }
}

impl fmt::Debug for FloatHistogramSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FloatHistogramSnapshot")
            .field("count", &self.count())
            .field("sum", &self.sum())
            .field("median", &self.quantile(0.5))
            .finish_non_exhaustive()
    }
}

/// Returns the number nearest to `about` that is `rest` modulo 2⁶⁴.
fn unwrap_near(rest: u64, about: u128) -> u128 {
    let above = (about >> 64 << 64) | u128::from(rest);
    let candidates = [above.checked_sub(1 << 64), Some(above), above.checked_add(1 << 64)];
    candidates.into_iter().flatten().min_by_key(|sum| sum.abs_diff(about)).unwrap_or(above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_beyond_64_bits_are_right() {
        let histogram = FloatHistogram::new(1.0).expect("histogram");
        let value = (1u64 << 61) as f64;
        (0..300).for_each(|_| histogram.observe(value));
        histogram.observe_many(value, 100);
        histogram.observe(12_345.0);
        let seen = histogram.snapshot();
        assert_eq!(seen.count(), 401);
        assert_eq!(seen.sum(), value * 400.0 + 12_345.0);
    }

    #[test]
    fn a_value_is_off_by_half_a_resolution_at_most() {
        let two_to_52 = (1u64 << 52) as f64;
        for (value, rounded) in [
            (0.5_f64.next_down(), 0.0),
            (0.5, 1.0),
            (1.5_f64.next_down(), 1.0),
            (1.5, 2.0),
            (2.5, 3.0),
            (two_to_52 - 0.5, two_to_52),
            (two_to_52 + 1.0, two_to_52 + 1.0),
            (2.0 * two_to_52 - 1.0, 2.0 * two_to_52 - 1.0),
        ] {
            let histogram = FloatHistogram::new(1.0).expect("histogram");
            histogram.observe(value);
            assert_eq!(histogram.snapshot().sum(), rounded, "{value}");
        }
    }

    #[test]
    fn the_nearest_sum_is_taken_on_either_side() {
        let turn = 1u128 << 64;
        for sum in [0, 1, turn - 1, turn, 5 * turn + 3, 7 * turn - 1] {
            for off in [0, 1, turn / 2 - 1] {
                assert_eq!(unwrap_near(sum as u64, sum + off), sum);
                assert_eq!(unwrap_near(sum as u64, sum.saturating_sub(off)), sum);
            }
        }
    }

    #[test]
    fn values_beyond_the_largest_of_a_histogram_of_integers_are_in_its_sum() {
        let histogram = Histogram::new(6, 0.1).expect("histogram");
        [3, 100, 200, 300].into_iter().for_each(|value| histogram.observe(value));
        let seen = FloatHistogramSnapshot::from(histogram.snapshot());
        assert_eq!((seen.count(), seen.sum(), seen.count_up_to(6.0)), (4, 603.0, 1));
    }

    #[test]
    fn values_that_are_none_are_clamped_or_left_out() {
        let histogram = FloatHistogram::new(0.5).expect("histogram");
        [f64::NAN, -3.0, f64::NEG_INFINITY, 2.0].into_iter().for_each(|value| histogram.observe(value));
        let seen = histogram.snapshot();
        assert_eq!((seen.count(), seen.sum()), (3, 2.0));
        histogram.observe(f64::INFINITY);
        assert_eq!(histogram.snapshot().count(), 4);
        for resolution in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE / 8.0] {
            assert!(FloatHistogram::new(resolution).is_err(), "{resolution}");
        }
    }

    #[test]
    fn bounds_divide_the_values_as_exactly_as_quantiles() {
        let histogram = FloatHistogram::new(1e-9).expect("histogram");
        (1..=10_000).for_each(|value| histogram.observe(f64::from(value) / 1000.0));
        let seen = histogram.snapshot();
        for bound in [0.01, 0.5, 1.0, 2.5, 9.9] {
            let off = seen.count_up_to(bound) as f64 / (bound * 1000.0) - 1.0;
            assert!(off.abs() <= 0.1001 / (bound * 10.0) + 0.01, "{bound}: {off}");
        }
        assert_eq!((seen.count_up_to(0.0), seen.count_up_to(f64::INFINITY)), (0, 10_000));
    }

    #[test]
    fn bounds_that_are_read_together_divide_the_values_as_each_alone() {
        let histogram = FloatHistogram::new(0.5).expect("histogram");
        [0.0, 0.5, 1.0, 7.0, 100.0, 1e6, f64::INFINITY]
            .into_iter()
            .for_each(|value| histogram.observe(value));
        let seen = histogram.snapshot();
        let bounds = [-1.0, 0.0, 0.2, 1.0, 1.0, 99.0, 101.0, 1.1e6, 1e9, f64::INFINITY];
        assert_eq!(seen.counts_up_to(&bounds), [0, 1, 1, 3, 3, 4, 5, 6, 6, 7]);
        assert_eq!(seen.counts_up_to(&bounds), bounds.map(|bound| seen.count_up_to(bound)));
        assert_eq!(seen.counts_up_to(&[]), []);
    }
}
