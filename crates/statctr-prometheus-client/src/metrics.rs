//! The metrics: [`Counter`], [`Gauge`], [`FloatGauge`], [`Histogram`].

use prometheus_client::encoding::{self, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};
use statctr::SharedCounter;
use statctr_facade::{FloatHistogram, NativeHistogram, NativeSchema};
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// A per-CPU counter that `prometheus-client` exports. Clones count in the same one.
#[derive(Debug, Clone)]
pub struct Counter(SharedCounter);

impl Counter {
    /// Creates a counter with the value 0.
    ///
    /// # Errors
    /// Fails as [`statctr::Counter::new`] does.
    pub fn new() -> statctr::Result<Counter> {
        SharedCounter::new(0).map(Counter)
    }

    /// Adds 1 to the counter. Cost as [`statctr::Counter::inc`]; async-signal-safe.
    #[inline(always)]
    pub fn inc(&self) {
        self.0.inc();
    }

    /// Adds `value` to the counter. Cost as [`inc`](Self::inc).
    #[inline(always)]
    pub fn inc_by(&self, value: u64) {
        self.0.add(value);
    }

    /// Returns the counter's value, the sum over the CPUs. Cost: a cache line for each CPU that counts.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.read()
    }
}

impl TypedMetric for Counter {
    const TYPE: MetricType = MetricType::Counter;
}

impl EncodeMetric for Counter {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_counter::<NoLabelSet, u64, u64>(&self.get(), None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// A per-CPU gauge of signed integers that `prometheus-client` exports. Clones share the value.
#[derive(Debug, Clone)]
pub struct Gauge(Arc<statctr::Gauge>);

impl Gauge {
    /// Creates a gauge with the value 0.
    ///
    /// # Errors
    /// Fails as [`statctr::Gauge::new`] does.
    pub fn new() -> statctr::Result<Gauge> {
        statctr::Gauge::new(0).map(|gauge| Gauge(Arc::new(gauge)))
    }

    /// Adds 1 to the gauge.
    #[inline(always)]
    pub fn inc(&self) {
        self.0.inc();
    }

    /// Adds `value` to the gauge.
    #[inline(always)]
    pub fn inc_by(&self, value: i64) {
        self.0.add(value);
    }

    /// Subtracts 1 from the gauge.
    #[inline(always)]
    pub fn dec(&self) {
        self.0.dec();
    }

    /// Subtracts `value` from the gauge.
    #[inline(always)]
    pub fn dec_by(&self, value: i64) {
        self.0.sub(value);
    }

    /// Sets the gauge's value, which takes a lock; see [`statctr::Gauge::set`].
    pub fn set(&self, value: i64) {
        self.0.set(value);
    }

    /// Returns the gauge's value, the sum over the CPUs.
    #[must_use]
    pub fn get(&self) -> i64 {
        self.0.read()
    }
}

impl TypedMetric for Gauge {
    const TYPE: MetricType = MetricType::Gauge;
}

impl EncodeMetric for Gauge {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_gauge(&self.get())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// A per-CPU gauge of floating-point values that `prometheus-client` exports. Clones share the value.
#[derive(Debug, Clone)]
pub struct FloatGauge(Arc<statctr::FloatGauge>);

impl FloatGauge {
    /// Creates a gauge with the value 0.
    ///
    /// # Errors
    /// Fails as [`statctr::FloatGauge::new`] does.
    pub fn new() -> statctr::Result<FloatGauge> {
        statctr::FloatGauge::new(0.0).map(|gauge| FloatGauge(Arc::new(gauge)))
    }

    /// Adds `value` to the gauge.
    #[inline]
    pub fn inc_by(&self, value: f64) {
        self.0.add(value);
    }

    /// Subtracts `value` from the gauge.
    #[inline]
    pub fn dec_by(&self, value: f64) {
        self.0.sub(value);
    }

    /// Sets the gauge's value, which takes a lock; see [`statctr::FloatGauge::set`].
    pub fn set(&self, value: f64) {
        self.0.set(value);
    }

    /// Returns the gauge's value, the sum over the CPUs.
    #[must_use]
    pub fn get(&self) -> f64 {
        self.0.read()
    }
}

impl TypedMetric for FloatGauge {
    const TYPE: MetricType = MetricType::Gauge;
}

impl EncodeMetric for FloatGauge {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_gauge(&self.get())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// A per-CPU histogram of floating-point values that `prometheus-client` exports. Clones count in the same one.
///
/// Values are counted in fine log-linear buckets ([`FloatHistogram`]), from which the exported ones are computed: a
/// value within 1 % of a bound may be counted on the bound's other side. In Prometheus' protobuf format it can also be
/// exported as a native histogram, with exponential buckets.
#[derive(Debug, Clone)]
pub struct Histogram(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    values: FloatHistogram,
    bounds: Box<[f64]>,
    native: Option<NativeSchema>,
    created: SystemTime,
}

impl Histogram {
    /// Creates a histogram that rounds values to multiples of `resolution` (10⁻⁹ for seconds measured in nanoseconds)
    /// and is exported by classic buckets with these upper bounds.
    ///
    /// # Errors
    /// Fails as [`FloatHistogram::new`] does.
    pub fn new(resolution: f64, bounds: impl IntoIterator<Item = f64>) -> statctr::Result<Histogram> {
        Histogram::with_form(resolution, bounds, None)
    }

    /// Creates a histogram that is exported as a native one (with exponential buckets) in Prometheus' protobuf format,
    /// at the resolution of this schema; there and in other formats also by classic buckets with these upper bounds
    /// (without any: by count and sum alone).
    ///
    /// [`NativeHistogram`] states by how much a value may be in another bucket; [`NativeSchema::for_error`]
    /// with 0.01 gives the finest schema of use.
    ///
    /// # Errors
    /// Fails as [`FloatHistogram::new`] does.
    pub fn native(
        resolution: f64,
        bounds: impl IntoIterator<Item = f64>,
        schema: NativeSchema,
    ) -> statctr::Result<Histogram> {
        Histogram::with_form(resolution, bounds, Some(schema))
    }

    fn with_form(
        resolution: f64,
        bounds: impl IntoIterator<Item = f64>,
        native: Option<NativeSchema>,
    ) -> statctr::Result<Histogram> {
        let mut bounds: Vec<f64> = bounds.into_iter().filter(|bound| bound.is_finite()).collect();
        bounds.sort_by(f64::total_cmp);
        bounds.dedup();
        let values = FloatHistogram::new(resolution)?;
        let created = SystemTime::now();
        Ok(Histogram(Arc::new(Inner { values, bounds: bounds.into(), native, created })))
    }

    /// Counts a value in the histogram. Never waits.
    #[inline]
    pub fn observe(&self, value: f64) {
        self.0.values.observe(value);
    }

    /// Reads the histogram's own fine buckets (relative error 1 %), not those of the exported bounds.
    #[must_use]
    pub fn snapshot(&self) -> statctr_facade::FloatHistogramSnapshot {
        self.0.values.snapshot()
    }
}

/// Returns a native histogram as the encoder takes it.
pub(crate) fn encodable(
    native: &NativeHistogram,
    created: Option<SystemTime>,
) -> encoding::NativeHistogram<'_> {
    encoding::NativeHistogram {
        schema: native.schema().number().into(),
        zero_threshold: native.zero_threshold(),
        zero_count: native.zero_count(),
        negative: encoding::NativeHistogramBuckets { spans: &[], deltas: &[] },
        positive: encoding::NativeHistogramBuckets { spans: native.spans(), deltas: native.deltas() },
        created,
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let seen = self.snapshot();
        let (count, sum) = (seen.count(), seen.sum());
        let mut below = 0;
        let mut buckets = Vec::with_capacity(self.0.bounds.len() + 1);
        for (&bound, up_to) in self.0.bounds.iter().zip(seen.counts_up_to(&self.0.bounds)) {
            buckets.push((bound, up_to.saturating_sub(below)));
            below = up_to;
        }
        buckets.push((f64::INFINITY, count.saturating_sub(below)));
        let Some(schema) = self.0.native else {
            return encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None);
        };
        let native = NativeHistogram::of_floats(&seen, schema);
        let native = encodable(&native, Some(self.0.created));
        encoder.encode_histogram_with_native::<NoLabelSet>(sum, count, &buckets, None, native)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}
