//! Values with the time of their reading: [`Snapshot`], and the [`Change`] from one to the next.

use crate::average::AverageSnapshot;
use crate::counter::{Counter, CounterArray};
use crate::error::{Error, Result};
use crate::gauge::{FloatGauge, Gauge};
use crate::group::{Group, GroupArray};
use crate::histogram::HistogramSnapshot;
use crate::registry::{Registry, RegistryValues};
use crate::tracked::TrackedGroupArray;
use std::time::{Duration, Instant};

mod sealed {
    pub trait Sealed {}
}

/// A type of values read from counters that can be subtracted to give a change and a rate: integers, floats, lists of
/// integers, histograms, registries.
pub trait Reading: Sized + sealed::Sealed {
    /// The change per second: an `f64` for each number; of averages and histograms the number of values.
    type Rate;

    /// Returns what came to `earlier` since it was read.
    ///
    /// # Errors
    /// [`Error::BadSetting`] for readings of things that are not alike: of different lengths, or of
    /// histograms of different buckets.
    fn since(&self, earlier: &Self) -> Result<Self>;

    /// Returns a change as one per second, after so many seconds.
    fn rate(&self, seconds: f64) -> Self::Rate;
}

macro_rules! numbers {
    ($($Number:ty, $since:expr, $float:expr;)+) => {$(
        impl sealed::Sealed for $Number {}
        impl Reading for $Number {
            type Rate = f64;

            fn since(&self, earlier: &Self) -> Result<Self> {
                let since: fn($Number, $Number) -> $Number = $since;
                Ok(since(*self, *earlier))
            }

            fn rate(&self, seconds: f64) -> f64 {
                let float: fn($Number) -> f64 = $float;
                float(*self) / seconds
            }
        }
    )+};
}

numbers! {
    // a counter that goes down has a change below 0
    u64, u64::wrapping_sub, |change| change.cast_signed() as f64;
    i64, i64::wrapping_sub, |change| change as f64;
    f64, |now, earlier| now - earlier, |change| change;
}

impl<const N: usize> sealed::Sealed for [u64; N] {}
impl<const N: usize> Reading for [u64; N] {
    type Rate = [f64; N];

    fn since(&self, earlier: &Self) -> Result<Self> {
        Ok(std::array::from_fn(|index| self[index].wrapping_sub(earlier[index])))
    }

    fn rate(&self, seconds: f64) -> [f64; N] {
        self.map(|change| change.rate(seconds))
    }
}

impl sealed::Sealed for Vec<u64> {}
impl Reading for Vec<u64> {
    type Rate = Vec<f64>;

    fn since(&self, earlier: &Self) -> Result<Self> {
        if self.len() != earlier.len() {
            return Err(Error::BadSetting("snapshots of different lengths have no difference"));
        }
        Ok(self.iter().zip(earlier).map(|(now, earlier)| now.wrapping_sub(*earlier)).collect())
    }

    fn rate(&self, seconds: f64) -> Vec<f64> {
        self.iter().map(|change| change.rate(seconds)).collect()
    }
}

impl sealed::Sealed for HistogramSnapshot {}
impl Reading for HistogramSnapshot {
    type Rate = f64;

    fn since(&self, earlier: &Self) -> Result<Self> {
        HistogramSnapshot::since(self, earlier)
    }

    fn rate(&self, seconds: f64) -> f64 {
        self.count().rate(seconds)
    }
}

impl sealed::Sealed for AverageSnapshot {}
impl Reading for AverageSnapshot {
    type Rate = f64;

    fn since(&self, earlier: &Self) -> Result<Self> {
        Ok(AverageSnapshot::since(self, earlier))
    }

    fn rate(&self, seconds: f64) -> f64 {
        self.count().rate(seconds)
    }
}

impl sealed::Sealed for RegistryValues {}
impl Reading for RegistryValues {
    type Rate = Vec<f64>;

    fn since(&self, earlier: &Self) -> Result<Self> {
        Ok(self.changes_since(earlier))
    }

    fn rate(&self, seconds: f64) -> Vec<f64> {
        self.iter().map(|sample| sample.value.rate(seconds)).collect()
    }
}

/// Values read from counters with the time of the reading; two of them give a [`Change`] and a rate.
///
/// ```
/// use statctr::{Counter, Snapshot};
///
/// let requests = Counter::new(0)?;
/// let before = requests.snapshot();
/// requests.add(3);
/// let change = requests.snapshot().since(&before)?;
/// assert_eq!(*change.delta(), 3);
/// println!("{:?} requests per second", change.per_second());
///
/// // of whatever is read: a gauge, the items of a group, a histogram
/// let sizes = statctr::Histogram::new(1 << 20, 0.05)?;
/// let before = Snapshot::take(|| sizes.snapshot());
/// sizes.observe(1500);
/// let change = Snapshot::take(|| sizes.snapshot()).since(&before)?;
/// assert_eq!((change.delta().count(), change.delta().sum()), (1, 1500));
/// # Ok::<(), statctr::Error>(())
/// ```
///
/// # Arithmetic
/// Changes of counters are modulo 2⁶⁴, as counters are: exact across a wrap-around. Nothing is counted twice
/// or lost between snapshots that follow each other: their changes add up to what was counted.
///
/// # Resets
/// A [`set`](Counter::set) between two snapshots is part of the change, as what it added or took away. For
/// counters that are otherwise only added to, [`increase_since`](Self::increase_since) starts again at 0 where
/// the value went down. Of a registry, a counter that was dropped and registered anew under its name is
/// another one, which began at 0.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Snapshot<V> {
    values: V,
    taken: Instant,
}

impl<V> Snapshot<V> {
    /// Takes a snapshot: notes the time, then calls `read` for the values.
    pub fn take(read: impl FnOnce() -> V) -> Snapshot<V> {
        let taken = Instant::now();
        Snapshot { values: read(), taken }
    }

    /// Creates a snapshot of values that the caller read at the time `taken`.
    pub fn at(taken: Instant, values: V) -> Snapshot<V> {
        Snapshot { values, taken }
    }

    /// Returns the values of counters that the snapshot holds.
    #[must_use]
    pub fn values(&self) -> &V {
        &self.values
    }

    /// Returns the time at which the reading of the snapshot's values began.
    #[must_use]
    pub fn taken(&self) -> Instant {
        self.taken
    }
}

impl<V: Reading> Snapshot<V> {
    /// Returns the change from an earlier snapshot of the same counters to this one.
    ///
    /// # Errors
    /// [`Error::BadSetting`] for one of something else: of another length, or of a histogram of other buckets.
    pub fn since(&self, earlier: &Snapshot<V>) -> Result<Change<V>> {
        let elapsed = self.taken.saturating_duration_since(earlier.taken);
        Ok(Change { delta: self.values.since(&earlier.values)?, elapsed })
    }
}

impl Snapshot<u64> {
    /// Returns the increase of a counter since an earlier snapshot, by the rule of Prometheus' `increase`: if the value
    /// went down (as a signed difference), the counter was reset, and its present value is the increase.
    #[must_use]
    pub fn increase_since(&self, earlier: &Snapshot<u64>) -> u64 {
        let difference = self.values.wrapping_sub(earlier.values);
        if difference.cast_signed() < 0 { self.values } else { difference }
    }
}

/// The difference of two [`Snapshot`]s and the time between them.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Change<V> {
    delta: V,
    elapsed: Duration,
}

impl<V: Reading> Change<V> {
    /// Returns the difference of the values of the two snapshots of counters, modulo 2⁶⁴ for unsigned numbers.
    #[must_use]
    pub fn delta(&self) -> &V {
        &self.delta
    }

    /// Returns the time between the two snapshots; zero if they were passed in the wrong order.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Returns the difference of the values of the two snapshots of counters, per second of the time between them;
    /// `None` if no time elapsed. Unsigned differences count as signed, so that a value that went down has a negative
    /// rate.
    #[must_use]
    pub fn per_second(&self) -> Option<V::Rate> {
        let seconds = self.elapsed.as_secs_f64();
        (seconds > 0.0).then(|| self.delta.rate(seconds))
    }
}

impl Counter {
    /// Reads the counter's value and the time. Cost: a [`read`](Self::read) and reading the clock.
    pub fn snapshot(&self) -> Snapshot<u64> {
        Snapshot::take(|| self.read())
    }
}

impl CounterArray {
    /// Reads the values of all counters of the array, each summed over the CPUs ([`fold_into`](Self::fold_into)), and
    /// the time.
    pub fn snapshot(&self) -> Snapshot<Vec<u64>> {
        Snapshot::take(|| {
            let mut values = vec![0; self.len()];
            // as long as the array
            let _ = self.fold_into(&mut values);
            values
        })
    }
}

impl Gauge {
    /// Reads the gauge's value and the time. Cost: a [`read`](Self::read) and reading the clock.
    pub fn snapshot(&self) -> Snapshot<i64> {
        Snapshot::take(|| self.read())
    }
}

impl FloatGauge {
    /// Reads the gauge's value and the time. Cost: a [`read`](Self::read) and reading the clock.
    pub fn snapshot(&self) -> Snapshot<f64> {
        Snapshot::take(|| self.read())
    }
}

impl Group {
    /// Reads all items (64-bit statistics) of the group, each summed over the CPUs, in the order of declaration, by one
    /// [`read`](Self::read), and the time.
    pub fn snapshot(&self) -> Snapshot<Vec<u64>> {
        Snapshot::take(|| self.read())
    }
}

impl GroupArray {
    /// Reads all items (64-bit statistics) of all groups of the array, each summed over the CPUs, group by group
    /// ([`fold_into`](Self::fold_into)), and the time.
    pub fn snapshot(&self) -> Snapshot<Vec<u64>> {
        Snapshot::take(|| {
            let mut values = vec![0; self.len() * self.schema().len()];
            // as long as the array
            let _ = self.fold_into(&mut values);
            values
        })
    }
}

impl TrackedGroupArray {
    /// Reads all items (64-bit statistics) of all groups of the array, also unchanged ones, each summed over the CPUs,
    /// group by group ([`fold_into`](Self::fold_into)), and the time. Of an incremental fold it is
    /// `Snapshot::take(|| fold.fold().to_vec())`.
    pub fn snapshot(&self) -> Snapshot<Vec<u64>> {
        Snapshot::take(|| {
            let mut values = vec![0; self.len() * self.schema().len()];
            // as long as the array
            let _ = self.fold_into(&mut values);
            values
        })
    }
}

impl Registry {
    /// Reads the values of all statistics, arrays and groups in the registry, and the time. Each is read once, so that
    /// the items of a group, and the buckets of a histogram, belong together. Cost: a [`visit`](Self::visit), and
    /// allocations.
    pub fn snapshot(&self) -> Snapshot<RegistryValues> {
        Snapshot::take(|| self.read())
    }
}
