//! The recorder: [`Recorder`], and its settings: [`Builder`].

use crate::descriptions::{Described, Descriptions};
use crate::kinds::{CounterSeries, GaugeSeries, Handle, HistogramSeries, Series};
use crate::snapshot::{Metric, Snapshot, Value};
use crate::{protobuf, render};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Metadata, SharedString, Unit};
use statctr::{Registry, SampleItem};
use statctr_facade::{FloatHistogram, FloatHistogramSnapshot, NativeSchema, SeriesMap};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most names that get a series for what is beyond the limit.
const MOST_OVERFLOWS: usize = 10_000;

/// The name and value of the label of a series for what is beyond the limit.
const OVERFLOW: (&str, &str) = ("overflow", "true");

/// A `metrics::Recorder` whose counters, gauges and histograms are counted per CPU. Clones share their series.
///
/// Give one clone to [`metrics::set_global_recorder`], and keep another to read.
///
/// ```
/// let recorder = statctr_metrics::Recorder::new();
/// metrics::with_local_recorder(&recorder, || {
///     metrics::describe_counter!("sent_bytes", metrics::Unit::Bytes, "bytes sent");
///     metrics::counter!("sent_bytes", "device" => "eth0").increment(1500);
/// });
/// assert_eq!(
///     recorder.render(),
///     "# HELP sent_bytes bytes sent\n# TYPE sent_bytes counter\nsent_bytes{device=\"eth0\"} 1500\n"
/// );
/// ```
#[derive(Clone)]
pub struct Recorder(Arc<Inner>);

struct Inner {
    settings: Builder,
    hasher: RandomState,
    counters: Kind<CounterSeries>,
    gauges: Kind<GaugeSeries>,
    histograms: Kind<HistogramSeries>,
    /// The number of series for which the system had no memory, and of look-ups beyond the overflow series.
    refused: AtomicU64,
}

/// The series of one kind.
struct Kind<T> {
    series: SeriesMap<Key, Option<Series<T>>>,
    /// The series for what is beyond the limit, by name.
    overflows: SeriesMap<KeyName, Option<Series<T>>>,
    descriptions: Descriptions,
}

/// Builder of a [`Recorder`] with other settings than the defaults.
///
/// ```
/// let recorder = statctr_metrics::Recorder::builder()
///     .limit(1000)
///     .buckets_of("latency_seconds", &[0.001, 0.01, 0.1, 1.0])
///     .build();
/// # drop(recorder);
/// ```
#[derive(Clone)]
#[must_use = "makes no recorder before `build`"]
pub struct Builder {
    limit: usize,
    error: f64,
    resolutions: HashMap<String, f64>,
    bounds: HashMap<String, Arc<[f64]>>,
    all_bounds: Option<Arc<[f64]>>,
    registry: Option<&'static Registry>,
    schema: Option<NativeSchema>,
}

impl Builder {
    /// The default of [`limit`](Self::limit): the largest number of series (metrics with their labels) of each kind
    /// (counter, gauge, histogram) in a recorder.
    pub const DEFAULT_LIMIT: usize = 100_000;

    /// Sets the largest number of counter, gauge and histogram series each. Further series of a name are counted
    /// together in one overflow series, which is not included in the number. Up to 10 000 names of each kind get one;
    /// updates of further names are dropped, and [`Recorder::refused`] counts them.
    pub fn limit(mut self, series: usize) -> Builder {
        self.limit = series;
        self
    }

    /// Sets the relative error of the quantiles of histograms, from 0.002 to 0.5; 0.01 by default.
    pub fn error(mut self, error: f64) -> Builder {
        self.error = error.clamp(0.002, 0.5);
        self
    }

    /// Sets the resolution of the histogram of this name, to multiples of which its values are rounded; values above 2⁶²
    /// resolutions count as that many. Ignored if it is not positive.
    pub fn resolution(mut self, name: impl Into<String>, resolution: f64) -> Builder {
        if resolution.is_normal() && resolution > 0.0 {
            self.resolutions.insert(name.into(), resolution);
        }
        self
    }

    /// Sets the upper bounds of the classic buckets by which all histograms are exported; without them, they are
    /// exported as summaries with quantiles.
    pub fn buckets(mut self, bounds: &[f64]) -> Builder {
        self.all_bounds = Some(sorted(bounds));
        self
    }

    /// Sets the upper bounds of the classic buckets by which the histogram of this name is exported.
    pub fn buckets_of(mut self, name: impl Into<String>, bounds: &[f64]) -> Builder {
        self.bounds.insert(name.into(), sorted(bounds));
        self
    }

    /// Sets the schema (resolution) of native histograms, those with exponential buckets, in Prometheus' protobuf
    /// format; by default the finest whose buckets are no narrower than the histograms' own. Those of a
    /// [registry](Self::registry) have this schema, too, whatever their relative error.
    pub fn native_schema(mut self, schema: NativeSchema) -> Builder {
        self.schema = Some(schema);
        self
    }

    /// Adds the statistics of every kind, and groups of counters, of a [`statctr`] registry to all snapshots and
    /// exports: extremes as gauges, averages as two counters, `NAME_sum` and `NAME_count`. The items (statistics) of a
    /// group are read together.
    pub fn registry(mut self, registry: &'static Registry) -> Builder {
        self.registry = Some(registry);
        self
    }

    /// Creates the recorder for the crate `metrics` with the builder's settings. Memory for counters is taken with the
    /// first of them.
    #[must_use]
    pub fn build(self) -> Recorder {
        Recorder(Arc::new(Inner {
            counters: Kind::new(self.limit),
            gauges: Kind::new(self.limit),
            histograms: Kind::new(self.limit),
            settings: self,
            hasher: RandomState::new(),
            refused: AtomicU64::new(0),
        }))
    }
}

fn sorted(bounds: &[f64]) -> Arc<[f64]> {
    let mut bounds: Vec<f64> = bounds.iter().copied().filter(|bound| bound.is_finite()).collect();
    bounds.sort_by(f64::total_cmp);
    bounds.dedup();
    bounds.into()
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder::new()
    }
}

impl Recorder {
    /// The HTTP content type of Prometheus' text format, as [`render`](Self::render) returns it.
    pub const TEXT: &'static str = "text/plain; version=0.0.4";
    /// The HTTP content type of Prometheus' protobuf format, which Prometheus accepts when it scrapes native histograms
    /// (those with exponential buckets).
    pub const PROTOBUF: &'static str =
        "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

    /// Creates a recorder for the crate `metrics` with the default settings.
    #[must_use]
    pub fn new() -> Recorder {
        Recorder::builder().build()
    }

    /// Returns a builder for a recorder for the crate `metrics` with other settings than the defaults.
    pub fn builder() -> Builder {
        Builder {
            limit: Builder::DEFAULT_LIMIT,
            error: 0.01,
            resolutions: HashMap::new(),
            bounds: HashMap::new(),
            all_bounds: None,
            registry: None,
            schema: None,
        }
    }

    /// Returns the number of series (metrics with their labels) whose updates are dropped, because there was no memory
    /// to create them, or no overflow series: those are for 10 000 names of a kind beyond the [limit](Builder::limit).
    /// In the second case a series counts again with each look-up, since nothing is kept for it.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Reads all series (metrics with their labels) of the recorder into a snapshot, sorted by name and labels. Takes
    /// no lock that an update takes.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let mut metrics = Vec::new();
        self.0.counters.read(&mut metrics, |series| Value::Counter(series.read()));
        self.0.gauges.read(&mut metrics, |series| Value::Gauge(series.read()));
        self.0.histograms.read(&mut metrics, |series| Value::Histogram {
            values: series.histogram.snapshot(),
            bounds: series.bounds.clone(),
        });
        if let Some(registry) = self.0.settings.registry {
            registry.visit(|sample| of_registry(&sample, &mut metrics));
        }
        Snapshot::new(metrics)
    }

    /// Reads all series of the recorder and formats them in Prometheus' text format (0.0.4), sorted by name. Characters
    /// that names must not have become `_`.
    ///
    /// Names that become equal are one family. Counters that then have equal labels, too, are exported as their sum;
    /// of such gauges or histograms only the last in the order of the given names is exported. Where series of several
    /// types have one name, the first type of counter, gauge, histogram and summary keeps it, and the others' names end
    /// in their type: `size_gauge`. Of labels whose names become equal the last is exported; labels of the format itself
    /// (`le` of a histogram, `quantile` of a summary, `__name__`) are exported as `exported_le` and so on.
    #[must_use]
    pub fn render(&self) -> String {
        render::text(&self.snapshot())
    }

    /// Reads all series and encodes them in Prometheus' protobuf format with native histograms
    /// ([`NativeHistogram`](crate::NativeHistogram)), and with classic buckets as well where bounds are set. Histograms of a
    /// [registry](Builder::registry) are native, too, and have classic buckets with the bounds 2ᵏ − 1. Its content type
    /// is [`PROTOBUF`](Self::PROTOBUF); names are changed as in the text format.
    ///
    /// ```
    /// let recorder = statctr_metrics::Recorder::new();
    /// metrics::with_local_recorder(&recorder, || metrics::counter!("a").increment(1));
    /// // 16 bytes: the name (field 1), and a metric (field 4) with a counter
    /// assert_eq!(recorder.render_protobuf()[..6], [16, 10, 1, b'a', 34, 11]);
    /// ```
    #[must_use]
    pub fn render_protobuf(&self) -> Vec<u8> {
        let settings = &self.0.settings;
        let schema = settings.schema.unwrap_or_else(|| NativeSchema::for_error(settings.error));
        protobuf::encode(&self.snapshot(), schema)
    }

    fn made<T: Clone>(&self, made: statctr::Result<T>) -> Option<Series<T>> {
        match made {
            Ok(series) => Some(Series::new(series)),
            Err(_) => {
                self.0.refused.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    fn histogram(&self, name: &str) -> statctr::Result<HistogramSeries> {
        let settings = &self.0.settings;
        let resolution = match settings.resolutions.get(name) {
            Some(resolution) => *resolution,
            None => usual_resolution(self.0.histograms.descriptions.get(name).unit, name),
        };
        let bounds = settings.bounds.get(name).or(settings.all_bounds.as_ref()).cloned();
        let histogram = FloatHistogram::with_error(resolution, settings.error)?;
        Ok(HistogramSeries { histogram: Arc::new(histogram), bounds })
    }
}

/// Returns the resolution of a histogram that has none by setting.
fn usual_resolution(unit: Option<Unit>, name: &str) -> f64 {
    match unit {
        Some(Unit::Seconds) => 1e-9,
        Some(Unit::Milliseconds) => 1e-6,
        Some(Unit::Microseconds) => 1e-3,
        Some(Unit::Nanoseconds | Unit::Bytes) => 1.0,
        Some(_) => 1e-6,
        None if name.ends_with("_seconds") => 1e-9,
        None if name.ends_with("_bytes") || name.ends_with("_nanoseconds") => 1.0,
        None => 1e-6,
    }
}

impl<T: Clone> Kind<T> {
    fn new(limit: usize) -> Kind<T> {
        Kind {
            series: SeriesMap::new(limit),
            overflows: SeriesMap::new(MOST_OVERFLOWS),
            descriptions: Descriptions::default(),
        }
    }

    /// Returns the calling thread's handle of the series of `key`, made where it is not there; `None` where
    /// the system has no memory, or all overflow series have other names.
    fn get(&self, shared: &Inner, key: &Key, make: impl Fn() -> Option<Series<T>>) -> Option<Arc<Handle<T>>> {
        // before the look-up, which then needs no lock to know that nobody adds the key meanwhile
        let is_full = self.series.is_full();
        // the key's own hash has no secret: a map bounds what those of one hash cost
        let series = self.series.get(key.get_hash(), |there| there == key);
        let series = match series {
            Some(series) => Some(series),
            None if is_full => self.overflow(shared, key, make),
            None => self.insert(shared, key, make),
        };
        series?.as_ref().map(Series::handle)
    }

    /// Returns the series of a key that has none so far: a new one, or that for what is beyond the limit; `None`, which
    /// counts as refused, if there are no more of the latter.
    #[cold]
    fn insert(
        &self,
        shared: &Inner,
        key: &Key,
        make: impl Fn() -> Option<Series<T>>,
    ) -> Option<&Option<Series<T>>> {
        // a series of its own would be exported with the same labels as what is beyond the limit
        let series = if is_overflow(key) {
            None
        } else {
            let retained = || (key.clone(), make());
            self.series.get_or_insert(key.get_hash(), |there| there == key, retained)
        };
        series.or_else(|| self.overflow(shared, key, make))
    }

    /// Returns the series of the key's name for what is beyond the limit; `None`, which counts as refused, if there are
    /// no more of them. Takes a lock only to add one.
    fn overflow(
        &self,
        shared: &Inner,
        key: &Key,
        make: impl Fn() -> Option<Series<T>>,
    ) -> Option<&Option<Series<T>>> {
        let name = key.name();
        let is = |there: &KeyName| there.as_str() == name;
        let retained = || (key.name_shared(), make());
        let series = self.overflows.get_or_insert(shared.hasher.hash_one(name), is, retained);
        if series.is_none() {
            shared.refused.fetch_add(1, Ordering::Relaxed);
        }
        series
    }

    fn read(&self, metrics: &mut Vec<Metric>, read: impl Fn(&T) -> Value) {
        let usual = self.series.iter().map(|(key, series)| (key.clone(), series));
        let overflow = |(name, series)| {
            let label = Label::from_static_parts(OVERFLOW.0, OVERFLOW.1);
            (Key::from_parts(KeyName::clone(name), vec![label]), series)
        };
        let all: Vec<_> = usual.chain(self.overflows.iter().map(overflow)).collect();
        // afterwards: what was described before its first series is described in every snapshot that has that
        let descriptions = self.descriptions.all();
        for (key, series) in all {
            let Some(series) = series else { continue };
            let Described { unit, help } = descriptions.get(key.name()).cloned().unwrap_or_default();
            let labels = key.labels().map(|label| (label.key().to_owned(), label.value().to_owned()));
            metrics.push(Metric {
                name: key.name().to_owned(),
                labels: labels.collect(),
                help: help.into_owned(),
                unit: unit.map_or("", |unit| unit.as_str()).to_owned(),
                value: read(series.get()),
            });
        }
    }
}

/// Returns `true` if a key's only label is that of the series for what is beyond the limit.
fn is_overflow(key: &Key) -> bool {
    let mut labels = key.labels();
    labels.len() == 1 && labels.all(|label| (label.key(), label.value()) == OVERFLOW)
}

/// Adds the metric of a value that a registry has: of an average those of the sum and of the number of its values.
fn of_registry(sample: &statctr::Sample<'_>, metrics: &mut Vec<Metric>) {
    let description = sample.description;
    let mut labels: Vec<(String, String)> =
        description.labels().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let (name, help, unit) = match sample.item {
        SampleItem::Named { name, unit, help } => (format!("{}_{name}", description.name()), help, unit),
        SampleItem::Index(index) => {
            labels.push(("index".to_owned(), index.to_string()));
            (description.name().to_owned(), description.help_text(), description.unit_name())
        }
        _ => (description.name().to_owned(), description.help_text(), description.unit_name()),
    };
    let metric = |name: String, value: Value| Metric {
        name,
        labels: labels.clone(),
        help: help.to_owned(),
        unit: unit.to_owned(),
        value,
    };
    match sample.value {
        statctr::Value::Counter(value) => metrics.push(metric(name, Value::Counter(*value))),
        statctr::Value::Average(value) => {
            metrics.push(metric(format!("{name}_sum"), Value::Counter(value.sum())));
            metrics.push(metric(format!("{name}_count"), Value::Counter(value.count())));
        }
        statctr::Value::Histogram(value) => {
            let mut bounds: Vec<f64> =
                value.classic_buckets().into_iter().map(|(bound, _)| bound as f64).collect();
            // from 2⁵³ on neighbours may be the same floating-point number
            bounds.dedup();
            let values = FloatHistogramSnapshot::from(value.clone());
            metrics.push(metric(name, Value::Histogram { values, bounds: Some(bounds.into()) }));
        }
        // gauges and extremes
        value => metrics.push(metric(name, Value::Gauge(value.number()))),
    }
}

impl metrics::Recorder for Recorder {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, help: SharedString) {
        self.0.counters.descriptions.insert(key, Described { unit, help });
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, help: SharedString) {
        self.0.gauges.descriptions.insert(key, Described { unit, help });
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, help: SharedString) {
        self.0.histograms.descriptions.insert(key, Described { unit, help });
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let handle = self.0.counters.get(&self.0, key, || self.made(CounterSeries::new()));
        handle.map_or_else(Counter::noop, Counter::from_arc)
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let handle = self.0.gauges.get(&self.0, key, || self.made(GaugeSeries::new()));
        handle.map_or_else(Gauge::noop, Gauge::from_arc)
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        let make = || self.made(self.histogram(key.name()));
        let handle = self.0.histograms.get(&self.0, key, make);
        handle.map_or_else(Histogram::noop, Histogram::from_arc)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("counters", &self.0.counters.series.len())
            .field("gauges", &self.0.gauges.series.len())
            .field("histograms", &self.0.histograms.series.len())
            .finish_non_exhaustive()
    }
}
