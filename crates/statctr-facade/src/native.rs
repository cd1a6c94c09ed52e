//! Histograms in the native form of Prometheus: [`NativeHistogram`], [`NativeSchema`].

use crate::FloatHistogramSnapshot;
use statctr::HistogramSnapshot;

/// Empty buckets that are written rather than left out, as a span takes more bytes than two of them.
const FILLED_GAP: i32 = 2;

/// The resolution (*schema*) of a native Prometheus histogram: schema n divides each power of two into 2ⁿ buckets with
/// bounds of constant ratio; for negative n, a bucket spans 2⁻ⁿ powers of two.
///
/// ```
/// use statctr_facade::NativeSchema;
///
/// let schema = NativeSchema::for_error(0.01);
/// assert_eq!((schema.number(), (schema.growth() * 1000.0).round()), (5, 1022.0));
/// assert_eq!(NativeSchema::new(9), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NativeSchema(i8);

impl NativeSchema {
    /// The schema (resolution of a native Prometheus histogram) with the widest buckets, −4: each bucket spans 16
    /// powers of two.
    pub const COARSEST: NativeSchema = NativeSchema(-4);
    /// The schema (resolution of a native Prometheus histogram) with the narrowest buckets, 8: each power of two has
    /// 256 buckets.
    pub const FINEST: NativeSchema = NativeSchema(8);

    /// Returns the schema (resolution of a native Prometheus histogram) with this number, −4 to 8; `None` for other
    /// numbers.
    #[must_use]
    pub const fn new(number: i8) -> Option<NativeSchema> {
        if number >= NativeSchema::COARSEST.0 && number <= NativeSchema::FINEST.0 {
            Some(NativeSchema(number))
        } else {
            None
        }
    }

    /// Returns the finest schema (resolution of a native Prometheus histogram) whose buckets are no narrower than those
    /// of a histogram with this relative error. A finer one would leave buckets empty between others, as the histogram
    /// cannot tell their values apart.
    #[must_use]
    pub fn for_error(error: f64) -> NativeSchema {
        let wide = |schema: &NativeSchema| schema.growth() >= 1.0 + 2.0 * error;
        let all = (NativeSchema::COARSEST.0..=NativeSchema::FINEST.0).rev().map(NativeSchema);
        all.into_iter().find(wide).unwrap_or(NativeSchema::COARSEST)
    }

    /// Returns the number of the schema (resolution of a native histogram), −4 to 8, as Prometheus' format writes it.
    #[must_use]
    pub const fn number(self) -> i8 {
        self.0
    }

    /// Returns the ratio of a bucket's upper bound to its lower bound in a native Prometheus histogram of this schema
    /// (resolution), 2^(2⁻ⁿ) for schema n.
    #[must_use]
    pub fn growth(self) -> f64 {
        (-f64::from(self.0)).exp2().exp2()
    }

    /// Returns the index of the bucket that a positive value belongs to in a native Prometheus histogram of this schema
    /// (resolution). A bucket's upper bound, [`growth`](Self::growth) to the power of its index, belongs to it; bounds
    /// that are powers of two are exact.
    #[must_use]
    pub fn bucket(self, value: f64) -> i32 {
        // smaller ones are not normal
        let value = value.clamp(f64::MIN_POSITIVE, f64::MAX);
        let bits = value.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as i32 - 1023;
        // from 1 to below 2
        let fraction = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
        if self.0 > 0 {
            let parts = f64::from(1 << self.0);
            (exponent << self.0) + (fraction.log2() * parts).ceil() as i32
        } else {
            let powers = exponent + i32::from(fraction > 1.0);
            let shift = -i32::from(self.0);
            (powers + (1 << shift) - 1) >> shift
        }
    }
}

/// A histogram's snapshot converted to Prometheus' native form (exponential buckets, only non-empty ones written),
/// which its protobuf format carries.
///
/// ```
/// use statctr_facade::{NativeHistogram, NativeSchema};
///
/// let sizes = statctr::Histogram::new(1 << 30, 0.01)?;
/// [0, 1, 2, 3, 4, 1000].into_iter().for_each(|size| sizes.observe(size));
/// let native = NativeHistogram::of(&sizes.snapshot(), NativeSchema::new(0).expect("from -4 to 8"));
/// // (0.5, 1], (1, 2], (2, 4] and, with an offset of 7, (512, 1024]
/// assert_eq!((native.spans(), native.deltas()), (&[(0, 3), (7, 1)][..], &[1, 0, 1, -1][..]));
/// assert_eq!((native.zero_count(), native.count(), native.sum()), (1, 6, 1010.0));
/// # Ok::<(), statctr::Error>(())
/// ```
///
/// # Error
/// The number of values and their sum are the snapshot's, exactly. The histogram's own buckets are linear within a
/// power of two and native ones are not, so that few bounds coincide. Values of an own bucket that lies within a native
/// one (most do, among them all that hold a single value, below 2/error units) are counted there, exactly. An own
/// bucket that a native bound divides is counted as a whole on the side of its middle. Values on the wrong side are
/// nearer to the bound than the histogram's relative error; there are at most [`uncertain`](Self::uncertain) of them.
/// As the side never changes, no native bucket's count ever goes down.
///
/// Values that the histogram counts as above its largest value are put into the native bucket of the next larger value.
/// Values of 0 (in a [`FloatHistogramSnapshot`], values below half of its resolution) are in the zero bucket.
#[derive(Debug, Clone, PartialEq)]
pub struct NativeHistogram {
    schema: NativeSchema,
    count: u64,
    sum: f64,
    zero_threshold: f64,
    zero_count: u64,
    uncertain: u64,
    spans: Vec<(i32, u32)>,
    deltas: Vec<i64>,
}

impl NativeHistogram {
    /// Converts a snapshot of an integer histogram to Prometheus' native (exponential) buckets of this schema
    /// (resolution).
    #[must_use]
    pub fn of(read: &HistogramSnapshot, schema: NativeSchema) -> NativeHistogram {
        NativeHistogram::scaled(read, schema, 1.0, read.sum() as f64)
    }

    /// Converts a snapshot of a floating-point histogram to Prometheus' native (exponential) buckets of this schema
    /// (resolution).
    #[must_use]
    pub fn of_floats(read: &FloatHistogramSnapshot, schema: NativeSchema) -> NativeHistogram {
        let (units, per_one) = read.units();
        NativeHistogram::scaled(units, schema, per_one, read.sum())
    }

    /// Converts what was read in units, of which `per_one` are 1.
    fn scaled(read: &HistogramSnapshot, schema: NativeSchema, per_one: f64, sum: f64) -> NativeHistogram {
        let mut native = NativeHistogram {
            schema,
            count: read.count(),
            sum,
            zero_threshold: 0.5 / per_one,
            zero_count: 0,
            uncertain: 0,
            spans: Vec::new(),
            deltas: Vec::new(),
        };
        let mut buckets: Vec<(i32, u64)> = Vec::new();
        for (least, largest, count) in read.buckets() {
            if largest == 0 {
                native.zero_count = count;
                continue;
            }
            // the last one has no end, or is as narrow as the others
            let largest = if largest == u64::MAX { least } else { largest };
            let bucket = |units: f64| schema.bucket(units / per_one);
            let (lower, upper) = (least as f64, largest as f64);
            if bucket(lower) != bucket(upper) {
                native.uncertain = native.uncertain.wrapping_add(count);
            }
            let middle = bucket(lower + (upper - lower) / 2.0);
            match buckets.last_mut() {
                // in the order of their values
                Some((last, so_far)) if *last == middle => *so_far = so_far.wrapping_add(count),
                _ => buckets.push((middle, count)),
            }
        }
        native.write(&buckets);
        native
    }

    /// Writes the buckets, which are in order, as spans and differences.
    fn write(&mut self, buckets: &[(i32, u64)]) {
        let mut previous = 0u64;
        // the bucket behind the last one that was written
        let mut next = 0;
        for &(bucket, count) in buckets {
            let gap = bucket - next;
            match self.spans.last_mut() {
                Some((_, length)) if gap <= FILLED_GAP => {
                    for _ in 0..gap {
                        self.deltas.push(0u64.wrapping_sub(previous).cast_signed());
                        previous = 0;
                    }
                    *length += gap.unsigned_abs() + 1;
                }
                _ => self.spans.push((gap, 1)),
            }
            self.deltas.push(count.wrapping_sub(previous).cast_signed());
            (previous, next) = (count, bucket + 1);
        }
    }

    /// Returns the schema (resolution) of the native buckets, Prometheus' exponential ones.
    #[must_use]
    pub fn schema(&self) -> NativeSchema {
        self.schema
    }

    /// Returns the number of values in all buckets, the zero bucket (of values that round to 0) included.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of all values that the histogram counted, as exact as in the snapshot that was converted.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Returns the upper bound of the zero bucket, which holds values that round to 0: half of the histogram's
    /// resolution.
    #[must_use]
    pub fn zero_threshold(&self) -> f64 {
        self.zero_threshold
    }

    /// Returns the number of values in the zero bucket, those that round to 0.
    #[must_use]
    pub fn zero_count(&self) -> u64 {
        self.zero_count
    }

    /// Returns the number of values that may have been put into the native (exponential) bucket next to their own.
    #[must_use]
    pub fn uncertain(&self) -> u64 {
        self.uncertain
    }

    /// Returns the runs of consecutive buckets as Prometheus encodes them: (offset, length), where the offset is the
    /// first run's first bucket index, for later runs the gap to the run before.
    #[must_use]
    pub fn spans(&self) -> &[(i32, u32)] {
        &self.spans
    }

    /// Returns the counts of the buckets in all runs as Prometheus encodes them: each less the count of the bucket
    /// before it.
    #[must_use]
    pub fn deltas(&self) -> &[i64] {
        &self.deltas
    }

    /// Returns each native (exponential) bucket as (upper bound, number of values), in ascending order: those of all
    /// runs of consecutive buckets, empty ones within a run included, without the zero bucket.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let growth = -f64::from(self.schema.0);
        let mut next = 0;
        let numbers = self.spans.iter().flat_map(move |&(offset, length)| {
            let first = next + offset;
            next = first + length.cast_signed();
            first..next
        });
        let mut count = 0u64;
        numbers.zip(&self.deltas).map(move |(number, delta)| {
            count = count.wrapping_add_signed(*delta);
            ((f64::from(number) * growth.exp2()).exp2(), count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FloatHistogram;
    use statctr::Histogram;

    fn schemas() -> impl Iterator<Item = NativeSchema> {
        (-4..=8).filter_map(NativeSchema::new)
    }

    #[test]
    fn a_value_is_in_the_bucket_that_ends_at_or_above_it() {
        for schema in schemas() {
            for value in [1e-300, 1e-9, 0.3, 1.0, 1.5, 2.0, 3.0, 4.0, 1e6, 65_536.0, 65_537.0, 1e300] {
                let bucket = f64::from(schema.bucket(value));
                let width = (-f64::from(schema.number())).exp2();
                // as logarithms: bounds of the coarsest are beyond any number
                let (lower, upper) = ((bucket - 1.0) * width, bucket * width);
                let place = value.log2();
                assert!(
                    lower - 1e-9 < place && place <= upper + 1e-9,
                    "{schema:?}: {value}: {lower} to {upper}"
                );
            }
            // powers of two are exact where they are bounds
            for exponent in [-32, -16, 0, 16, 48] {
                let bound = f64::from(exponent).exp2();
                let above = bound * (1.0 + f64::EPSILON);
                assert_eq!(schema.bucket(bound) + 1, schema.bucket(above), "{schema:?}: 2^{exponent}");
            }
        }
    }

    #[test]
    fn buckets_hold_all_values_with_at_most_the_uncertain_ones_beside_their_own() {
        let histogram = Histogram::new(1 << 40, 0.01).expect("histogram");
        let mut values: Vec<u64> = (0..20_000u64).map(|n| n * n % 1_000_003 * (n % 7) + n % 3).collect();
        values.sort_unstable();
        values.iter().for_each(|&value| histogram.observe(value));
        let read = histogram.snapshot();
        for schema in schemas() {
            let native = NativeHistogram::of(&read, schema);
            let total = native.zero_count() + native.buckets().map(|(_, count)| count).sum::<u64>();
            assert_eq!((total, native.count()), (20_000, 20_000), "{schema:?}");
            assert_eq!(native.sum(), values.iter().sum::<u64>() as f64);
            let mut cumulative = native.zero_count();
            for (bound, count) in native.buckets() {
                cumulative += count;
                let at_most =
                    |bound: f64| values.iter().filter(|&&value| value as f64 <= bound).count() as u64;
                // nobody is on the wrong side who is farther from the bound than 1 %
                assert!(at_most(bound * 0.99) <= cumulative, "{schema:?}: {bound}");
                assert!(cumulative <= at_most(bound * 1.01), "{schema:?}: {bound}");
                assert!(at_most(bound).abs_diff(cumulative) <= native.uncertain(), "{schema:?}: {bound}");
            }
        }
    }

    #[test]
    fn buckets_of_one_value_each_are_exact() {
        let histogram = Histogram::new(1000, 0.01).expect("histogram");
        (0..=100).for_each(|value| histogram.observe(value));
        for schema in schemas() {
            let native = NativeHistogram::of(&histogram.snapshot(), schema);
            assert_eq!((native.uncertain(), native.zero_count()), (0, 1));
            let mut cumulative = 1;
            for (bound, count) in native.buckets() {
                cumulative += count;
                let expected = (0..=100).filter(|&value| f64::from(value) <= bound * (1.0 + 1e-12)).count();
                assert_eq!(cumulative, expected as u64, "{schema:?}: {bound}");
            }
        }
    }

    #[test]
    fn no_bucket_goes_down_as_values_come() {
        let histogram = FloatHistogram::new(1e-9).expect("histogram");
        let schema = NativeSchema::for_error(0.01);
        let mut before: Vec<(f64, u64)> = Vec::new();
        for round in 1..200u32 {
            histogram.observe(f64::from(round * round) * 1e-6);
            histogram.observe(0.0);
            let now: Vec<(f64, u64)> =
                NativeHistogram::of_floats(&histogram.snapshot(), schema).buckets().collect();
            for (bound, count) in before {
                let found = now.iter().find(|(there, _)| *there == bound).map_or(0, |(_, count)| *count);
                assert!(found >= count, "{bound}");
            }
            before = now;
        }
    }

    #[test]
    fn values_above_the_largest_and_none_at_all_are_written() {
        let schema = NativeSchema::new(2).expect("a schema");
        let histogram = Histogram::new(1000, 0.01).expect("histogram");
        let empty = NativeHistogram::of(&histogram.snapshot(), schema);
        assert_eq!((empty.count(), empty.spans(), empty.deltas()), (0, &[][..], &[][..]));
        histogram.observe(u64::MAX);
        let native = NativeHistogram::of(&histogram.snapshot(), schema);
        assert_eq!(native.buckets().collect::<Vec<_>>(), [(1024.0, 1)]);
        let all = Histogram::new(u64::MAX, 0.5).expect("histogram");
        all.observe(u64::MAX);
        assert_eq!(NativeHistogram::of(&all.snapshot(), schema).count(), 1);
    }

    #[test]
    fn a_schema_for_an_error_is_no_finer_than_the_buckets() {
        for (error, number) in [(0.002, 7), (0.005, 6), (0.01, 5), (0.05, 2), (0.1, 1), (0.5, 0)] {
            assert_eq!(NativeSchema::for_error(error).number(), number, "{error}");
        }
        assert_eq!(NativeSchema::for_error(1e-9), NativeSchema::FINEST);
        assert_eq!(NativeSchema::for_error(f64::NAN), NativeSchema::COARSEST);
    }
}
