//! The values of all series: [`Snapshot`].

use statctr_facade::FloatHistogramSnapshot;
use std::sync::Arc;

/// The values of all series (metrics with their labels) of a [`Recorder`](crate::Recorder) at one reading.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot(Vec<Metric>);

/// One series in a snapshot: metric name, labels and value.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Metric {
    /// The name of the metric, as it was given.
    pub name: String,
    /// Names and values of the labels, in the order given.
    pub labels: Vec<(String, String)>,
    /// The help text of the metric; empty if none was given.
    pub help: String,
    /// The unit of the metric; empty if none was given.
    pub unit: String,
    /// The value of the series.
    pub value: Value,
}

/// The value of a series: of a counter, a gauge or a histogram.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// The value of a counter.
    Counter(u64),
    /// The value of a gauge.
    Gauge(f64),
    /// The distribution of a histogram.
    Histogram {
        /// The buckets of the histogram.
        values: FloatHistogramSnapshot,
        /// The upper bounds of the buckets by which it is rendered; `None` for quantiles.
        bounds: Option<Arc<[f64]>>,
    },
}

impl Snapshot {
    pub(crate) fn new(mut metrics: Vec<Metric>) -> Snapshot {
        metrics.sort_by(|a, b| (&a.name, &a.labels).cmp(&(&b.name, &b.labels)));
        Snapshot(metrics)
    }

    /// Returns all series of the snapshot (metrics with labels and value), sorted by name and labels.
    #[must_use]
    pub fn metrics(&self) -> &[Metric] {
        &self.0
    }

    /// Returns the value of the counter with this name and these labels (in any order); `None` if there is none.
    #[must_use]
    pub fn counter(&self, name: &str, labels: &[(&str, &str)]) -> Option<u64> {
        self.find(name, labels, |value| match value {
            Value::Counter(value) => Some(*value),
            _ => None,
        })
    }

    /// Returns the value of the gauge with this name and these labels (in any order); `None` if there is none.
    #[must_use]
    pub fn gauge(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.find(name, labels, |value| match value {
            Value::Gauge(value) => Some(*value),
            _ => None,
        })
    }

    /// Returns the histogram with this name and these labels (in any order); `None` if there is none.
    #[must_use]
    pub fn histogram(&self, name: &str, labels: &[(&str, &str)]) -> Option<&FloatHistogramSnapshot> {
        self.find(name, labels, |value| match value {
            Value::Histogram { values, .. } => Some(values),
            _ => None,
        })
    }

    fn find<'a, T>(
        &'a self,
        name: &str,
        labels: &[(&str, &str)],
        of_kind: impl Fn(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let same = |metric: &&Metric| {
            let has = |(key, value): &(String, String)| labels.contains(&(key, value));
            metric.name == name && metric.labels.len() == labels.len() && metric.labels.iter().all(has)
        };
        self.0.iter().filter(same).find_map(|metric| of_kind(&metric.value))
    }
}
