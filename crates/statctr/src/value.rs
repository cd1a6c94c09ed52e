//! Values for export, of every kind of statistic: [`Value`], and the types that have some: [`Source`].

use crate::approximate::ApproximateCounter;
use crate::average::{Average, AverageSnapshot};
use crate::counter::{Counter, CounterArray};
use crate::extremes::{Max, Min};
use crate::gauge::{FloatGauge, Gauge};
use crate::group::Group;
use crate::histogram::{Histogram, HistogramSnapshot};
use crate::memory::StaticKind;
use crate::schema::ItemSpec;

/// The value of a statistic (counter, gauge, maximum, histogram, …) at one reading, by the kind of the statistic.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// The sum of a counter, modulo 2⁶⁴.
    Counter(u64),
    /// The value of a [`Gauge`].
    Gauge(i64),
    /// The value of a [`FloatGauge`].
    FloatGauge(f64),
    /// The largest value observed; [`Max::IDENTITY`] where there was none.
    Max(u64),
    /// The smallest value observed; [`Min::IDENTITY`] where there was none.
    Min(u64),
    /// The number and the sum of the values of an [`Average`].
    Average(AverageSnapshot),
    /// The buckets of a [`Histogram`].
    Histogram(HistogramSnapshot),
}

impl Value {
    /// Returns the value of the statistic as one number: the mean of an average or a histogram. NaN for these without
    /// values, and for a minimum of nothing.
    #[must_use]
    pub fn number(&self) -> f64 {
        match self {
            Value::Min(Min::IDENTITY) => f64::NAN,
            Value::Counter(value) | Value::Max(value) | Value::Min(value) => *value as f64,
            Value::Gauge(value) => *value as f64,
            Value::FloatGauge(value) => *value,
            Value::Average(value) => value.mean().unwrap_or(f64::NAN),
            Value::Histogram(value) => value.mean().unwrap_or(f64::NAN),
        }
    }

    /// Creates the value of a statistic that is a static of a C program, from its kind and the 64-bit number `value`
    /// that it reads as.
    pub(crate) fn of_foreign_static(kind: StaticKind, value: u64) -> Value {
        match kind {
            StaticKind::Counter => Value::Counter(value),
            StaticKind::Gauge => Value::Gauge(value.cast_signed()),
            StaticKind::Max => Value::Max(value),
            StaticKind::Min => Value::Min(value),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Value::Counter(_) => Kind::Counter,
            Value::Gauge(_) => Kind::Gauge,
            Value::FloatGauge(_) => Kind::FloatGauge,
            Value::Max(_) => Kind::Max,
            Value::Min(_) => Kind::Min,
            Value::Average(_) => Kind::Average,
            Value::Histogram(_) => Kind::Histogram,
        }
    }

    /// Returns what sets values of one kind apart that cannot be merged: of histograms the largest value that has a
    /// bucket, and the number of bits that tell buckets apart.
    pub(crate) fn shape(&self) -> Option<(u64, u32)> {
        match self {
            Value::Histogram(snapshot) => Some(snapshot.shape()),
            _ => None,
        }
    }

    /// Returns the change of a statistic's value since `earlier`; of extremes, of values of different kinds, and of
    /// histograms with different buckets, which have no difference, the value itself.
    pub(crate) fn since(&self, earlier: &Value) -> Value {
        match (self, earlier) {
            (Value::Counter(now), Value::Counter(earlier)) => Value::Counter(now.wrapping_sub(*earlier)),
            (Value::Gauge(now), Value::Gauge(earlier)) => Value::Gauge(now.wrapping_sub(*earlier)),
            (Value::FloatGauge(now), Value::FloatGauge(earlier)) => Value::FloatGauge(now - earlier),
            (Value::Average(now), Value::Average(earlier)) => Value::Average(now.since(earlier)),
            (Value::Histogram(now), Value::Histogram(earlier)) => {
                Value::Histogram(now.since(earlier).unwrap_or_else(|_| now.clone()))
            }
            _ => self.clone(),
        }
    }

    /// Returns the change per second of a statistic's value, where this is the change ([`since`](Self::since)) in so
    /// many `seconds`: of averages and histograms that of the number of values, of extremes NaN.
    pub(crate) fn rate(&self, seconds: f64) -> f64 {
        let change = match self {
            // a counter that goes down has a change below 0
            Value::Counter(change) => change.cast_signed() as f64,
            Value::Gauge(change) => *change as f64,
            Value::FloatGauge(change) => *change,
            Value::Max(_) | Value::Min(_) => f64::NAN,
            Value::Average(change) => change.count().cast_signed() as f64,
            Value::Histogram(change) => change.count().cast_signed() as f64,
        };
        change / seconds
    }

    /// Combines the values of two statistics of one name into that of both; returns `false`, with nothing changed, for
    /// values of different kinds and for histograms with different buckets.
    pub(crate) fn merge(&mut self, other: &Value) -> bool {
        match (self, other) {
            (Value::Counter(sum), Value::Counter(more)) => *sum = sum.wrapping_add(*more),
            (Value::Gauge(sum), Value::Gauge(more)) => *sum = sum.wrapping_add(*more),
            (Value::FloatGauge(sum), Value::FloatGauge(more)) => *sum += more,
            (Value::Max(value), Value::Max(other)) => *value = (*value).max(*other),
            (Value::Min(value), Value::Min(other)) => *value = (*value).min(*other),
            (Value::Average(sum), Value::Average(more)) => *sum = sum.merged(more),
            (Value::Histogram(sum), Value::Histogram(more)) => return sum.merge(more).is_ok(),
            _ => return false,
        }
        true
    }
}

/// A type whose values can be registered for export: implemented for every kind of statistic, and for arrays and groups
/// of counters.
pub trait Source: Send + Sync + 'static + sealed::Sealed {
    /// Reads the values and passes each to `sink`.
    fn values(&self, sink: &mut dyn FnMut(SampleItem<'_>, Value));
}

pub(crate) mod sealed {
    /// A kind of statistic: statistics of one name are of one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Kind {
        Counter,
        Gauge,
        FloatGauge,
        Max,
        Min,
        Average,
        Histogram,
    }

    impl Kind {
        /// Returns the label that exporters add to series of this kind of statistic, if there is one.
        pub(crate) const fn reserved_label(self) -> Option<&'static str> {
            match self {
                Kind::Histogram => Some("le"),
                // exported as a summary
                Kind::Average => Some("quantile"),
                _ => None,
            }
        }
    }

    pub trait Sealed {
        /// Returns the kind of all values.
        fn kind(&self) -> Kind;

        /// Returns the label that exporters add to each series of this source, if there is one.
        fn reserved_label(&self) -> Option<&'static str> {
            self.kind().reserved_label()
        }

        /// Returns the names of a group's items, of which those without one are not exported; none for other sources.
        fn item_names(&self) -> Vec<&str> {
            Vec::new()
        }
    }
}

pub(crate) use sealed::Kind;

/// The part of a registered statistic, array or group that an exported value belongs to: the only value, an array's
/// element by index, or a group's item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SampleItem<'a> {
    /// The value of a single statistic.
    Only,
    /// The value at this index of an array.
    Index(usize),
    /// An item of a group.
    Named {
        /// The name of the item.
        name: &'a str,
        /// The unit of the item.
        unit: &'a str,
        /// The help text of the item.
        help: &'a str,
    },
}

macro_rules! single_values {
    ($($Statistic:ident: $Kind:ident by $read:ident;)+) => {$(
        impl sealed::Sealed for $Statistic {
            fn kind(&self) -> Kind {
                Kind::$Kind
            }
        }

        impl Source for $Statistic {
            fn values(&self, sink: &mut dyn FnMut(SampleItem<'_>, Value)) {
                sink(SampleItem::Only, Value::$Kind(self.$read()));
            }
        }
    )+};
}

single_values! {
    Counter: Counter by read;
    ApproximateCounter: Counter by read;
    Gauge: Gauge by read;
    FloatGauge: FloatGauge by read;
    Max: Max by read;
    Min: Min by read;
    Average: Average by read;
    Histogram: Histogram by snapshot;
}

impl sealed::Sealed for CounterArray {
    fn kind(&self) -> Kind {
        Kind::Counter
    }

    fn reserved_label(&self) -> Option<&'static str> {
        Some("index")
    }
}

impl Source for CounterArray {
    fn values(&self, sink: &mut dyn FnMut(SampleItem<'_>, Value)) {
        let mut values = vec![0; self.len()];
        // as long as the array
        let _ = self.fold_into(&mut values);
        let values = values.into_iter().enumerate();
        values.for_each(|(index, value)| sink(SampleItem::Index(index), Value::Counter(value)));
    }
}

impl sealed::Sealed for Group {
    fn kind(&self) -> Kind {
        Kind::Counter
    }

    fn item_names(&self) -> Vec<&str> {
        self.schema().specs().iter().map(ItemSpec::name).collect()
    }
}

impl Source for Group {
    fn values(&self, sink: &mut dyn FnMut(SampleItem<'_>, Value)) {
        let specs = self.schema().specs().iter();
        for (spec, value) in specs.zip(self.read()).filter(|(spec, _)| !spec.name().is_empty()) {
            let item =
                SampleItem::Named { name: spec.name(), unit: spec.unit_name(), help: spec.help_text() };
            sink(item, Value::Counter(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Pool;
    use crate::topology::Topology;

    /// Returns a histogram's snapshot with this value in it.
    fn buckets(error: f64, value: u64) -> HistogramSnapshot {
        let one = Topology::synthetic(1).build().expect("topology");
        let pool = Pool::builder().topology(one).build().expect("pool");
        let histogram = Histogram::new_in(&pool, 1000, error).expect("histogram");
        histogram.observe(value);
        histogram.snapshot()
    }

    #[test]
    fn a_change_and_what_came_before_add_up() {
        let pairs = [
            (Value::Counter(3), Value::Counter(u64::MAX)),
            (Value::Gauge(i64::MIN), Value::Gauge(7)),
            (Value::FloatGauge(1.5), Value::FloatGauge(-2.25)),
            (Value::Histogram(buckets(0.1, 5)), Value::Histogram(buckets(0.1, 900))),
        ];
        for (now, earlier) in pairs {
            let mut sum = now.since(&earlier);
            assert!(sum.merge(&earlier));
            assert_eq!(sum, now);
        }
    }

    #[test]
    fn extremes_merge_to_the_extreme_and_have_no_rate() {
        let (mut largest, mut smallest) = (Value::Max(7), Value::Min(7));
        assert!(largest.merge(&Value::Max(9)) && smallest.merge(&Value::Min(9)));
        assert_eq!((&largest, &smallest), (&Value::Max(9), &Value::Min(7)));
        assert_eq!(largest.since(&Value::Max(8)), largest);
        assert!(largest.rate(1.0).is_nan() && Value::Min(Min::IDENTITY).number().is_nan());
    }

    #[test]
    fn values_of_different_kinds_do_not_merge() {
        let mut counter = Value::Counter(1);
        assert!(!counter.merge(&Value::Gauge(1)));
        let mut histogram = Value::Histogram(buckets(0.1, 5));
        assert!(!histogram.merge(&Value::Histogram(buckets(0.5, 5))));
        assert_eq!(histogram.since(&Value::Histogram(buckets(0.5, 5))), histogram);
    }
}
