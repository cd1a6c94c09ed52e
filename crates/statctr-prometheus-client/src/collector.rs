//! A [`Collector`] for a registry of the other crate, of all that a registry of the counters has.

use crate::metrics::encodable;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use statctr::{Registry, SampleItem, Value};
use statctr_facade::{NativeHistogram, NativeSchema};
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// A `prometheus-client` collector that exports all statistics, and arrays and groups of counters, of a [`statctr`]
/// registry, and of the global registry also statics and their families.
///
/// Each item (statistic) of a group is a metric of its own, `GROUP_ITEM`; all items of a group come from one read.
/// Names end in the unit, unless that has other characters than a name (`req/s`); such a unit is not exported.
/// Of several statistics whose names become equal, as `requests` and `requests_total` do, or belong to one metric, as
/// `requests_created` does to a counter `requests`, and of several types of one name, the first in the order of names and
/// of types (counter, gauge, histogram) keeps the name, and the others' names end in their type:
/// `requests_counter_total`. So do the names of what has the name, the type and the labels of another one, as the item
/// of a group can. Line breaks in help texts become spaces.
///
/// Extremes are gauges, an average is a histogram of one bucket (a label `le` of it becomes `exported_le`), and the buckets of a histogram are those of
/// [`classic_buckets`](statctr::HistogramSnapshot::classic_buckets); in Prometheus' protobuf format it is a native one as
/// well if a schema is [set](Self::native_schema).
///
/// ```
/// use prometheus_client::{encoding::text::encode, registry::Registry};
/// use statctr::{StaticFamily, Unit};
/// use statctr_prometheus_client::Collector;
///
/// static REQUESTS: StaticFamily<1> = StaticFamily::new("requests", "served", Unit::NONE, ["method"]);
/// REQUESTS.get(["GET"]).inc();
///
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(Collector::new(statctr::Registry::global())));
/// let mut text = String::new();
/// encode(&mut text, &registry).expect("a string takes everything");
/// assert!(text.contains("requests_total{method=\"GET\"} 1\n"));
/// ```
#[derive(Debug)]
pub struct Collector {
    registry: &'static Registry,
    native: Option<NativeSchema>,
}

impl Collector {
    /// Creates a `prometheus-client` collector that, at each scrape, exports the statistics that this registry then
    /// contains.
    #[must_use]
    pub fn new(registry: &'static Registry) -> Collector {
        Collector { registry, native: None }
    }

    /// Sets the schema (resolution) of native histograms, those with exponential buckets: with it, each
    /// [`statctr::Histogram`] of the registry is exported as one in Prometheus' protobuf format, which has its classic
    /// buckets as well. Other formats have these alone, as all have without a schema.
    ///
    /// [`NativeHistogram`] states by how much a value may be in another bucket. [`NativeSchema::for_error`] with the
    /// relative error that the histograms were created with gives the finest schema of use.
    #[must_use]
    pub fn native_schema(mut self, schema: NativeSchema) -> Collector {
        self.native = Some(schema);
        self
    }
}

/// The values of one name and type.
#[derive(Default)]
struct Metric {
    help: String,
    unit: String,
    values: Vec<(Vec<(String, String)>, Value)>,
    /// The labels of each value, sorted: series differ by the set of them, whatever the order.
    series: HashSet<Vec<(String, String)>>,
}

/// The exported types of metrics, in the order of precedence for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Type {
    Counter,
    Gauge,
    Histogram,
}

impl Type {
    /// Returns the end that the name of a metric of this type gets where another metric has the name.
    fn end_of_name(self) -> &'static str {
        match self {
            Type::Counter => "_counter",
            Type::Gauge => "_gauge",
            Type::Histogram => "_histogram",
        }
    }

    /// Returns the ends of names that belong to a metric: those that the encoder gives to its samples, and `_created`,
    /// which readers of OpenMetrics refuse as another metric's name though there is no such sample ("Clashing name" of
    /// Python's prometheus_client).
    fn suffixes(self) -> &'static [&'static str] {
        match self {
            Type::Counter => &["", "_total", "_created"],
            Type::Gauge => &[""],
            Type::Histogram => &["", "_bucket", "_sum", "_count", "_created"],
        }
    }
}

impl From<Type> for MetricType {
    fn from(of: Type) -> MetricType {
        match of {
            Type::Counter => MetricType::Counter,
            Type::Gauge => MetricType::Gauge,
            Type::Histogram => MetricType::Histogram,
        }
    }
}

/// The name of a metric as the encoder takes it, without the suffixes `_UNIT` and `_total` that the encoder appends.
struct BareName<'a> {
    name: String,
    unit: Option<&'a str>,
    of: Type,
}

impl<'a> BareName<'a> {
    fn new(registered: &str, of: Type, unit: &'a str) -> BareName<'a> {
        let without_total = registered.strip_suffix("_total").filter(|name| !name.is_empty());
        let name = match of {
            Type::Counter => without_total.unwrap_or(registered),
            _ => registered,
        };
        let unit = unit_of_name(unit);
        let name = match unit {
            Some(unit) => name.strip_suffix(unit).and_then(|name| name.strip_suffix('_')).unwrap_or(name),
            None => name,
        };
        BareName { name: name.to_owned(), unit, of }
    }

    /// Returns the name under which the metric is exported, and those that belong to it.
    fn exported(&self) -> impl Iterator<Item = String> {
        let unit = self.unit.map(|unit| format!("_{unit}")).unwrap_or_default();
        self.of.suffixes().iter().map(move |suffix| format!("{}{unit}{suffix}", self.name))
    }

    /// Takes the exported names of the metric, if all of them are free; returns `false` otherwise.
    fn take(&self, taken: &mut HashSet<String>) -> bool {
        let free = !self.exported().any(|name| taken.contains(&name));
        if free {
            taken.extend(self.exported());
        }
        free
    }
}

/// Returns the name of each metric: that of its registration, or with the type at its end where another has it.
fn bare_names(metrics: &BTreeMap<(String, Type), Metric>) -> Vec<BareName<'_>> {
    let mut names: Vec<BareName<'_>> =
        metrics.iter().map(|((name, of), metric)| BareName::new(name, *of, &metric.unit)).collect();
    let mut taken = HashSet::new();
    // all names that were given first, so that no longer name takes the place of one
    let equal: Vec<&mut BareName<'_>> = names.iter_mut().filter(|name| !name.take(&mut taken)).collect();
    for name in equal {
        name.name.push_str(name.of.end_of_name());
        while !name.take(&mut taken) {
            name.name.push_str(name.of.end_of_name());
        }
    }
    names
}

fn type_of(value: &Value) -> Type {
    match value {
        Value::Counter(_) => Type::Counter,
        Value::Average(_) | Value::Histogram(_) => Type::Histogram,
        _ => Type::Gauge,
    }
}

/// Renames a label `le`, which the encoder gives to the buckets of a histogram, as Prometheus renames a target's label
/// that has the name of one of its own. A registry refuses it for histograms, but averages are exported as such, too.
fn free_bucket_label(labels: &mut [(String, String)]) {
    let Some(index) = labels.iter().position(|(name, _)| name == "le") else { return };
    let mut name = "exported_le".to_owned();
    while labels.iter().any(|(there, _)| *there == name) {
        name.insert_str(0, "exported_");
    }
    labels[index].0 = name;
}

/// Returns the unit of a metric, with which the format ends the name; `None` for one that is no part of a name, as
/// `req/s`.
fn unit_of_name(unit: &str) -> Option<&str> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':');
    (!unit.is_empty() && unit.chars().all(fits)).then_some(unit)
}

fn encode(value: &Value, native: Option<NativeSchema>, mut encoder: MetricEncoder<'_>) -> fmt::Result {
    match value {
        Value::Counter(value) => ConstCounter::new(*value).encode(encoder),
        Value::Gauge(value) => ConstGauge::new(*value).encode(encoder),
        Value::Average(value) => {
            let all = [(f64::INFINITY, value.count())];
            encoder.encode_histogram::<NoLabelSet>(value.sum() as f64, value.count(), &all, None)
        }
        Value::Histogram(value) => {
            let (count, mut below) = (value.count(), 0);
            let mut buckets: Vec<(f64, u64)> = Vec::new();
            for (bound, up_to) in value.classic_buckets() {
                let (bound, own) = (bound as f64, up_to.wrapping_sub(below));
                match buckets.last_mut() {
                    // from 2⁵³ on neighbours may be the same floating-point number
                    Some((last, in_last)) if *last == bound => *in_last = in_last.wrapping_add(own),
                    _ => buckets.push((bound, own)),
                }
                below = up_to;
            }
            buckets.push((f64::INFINITY, count.wrapping_sub(below)));
            let sum = value.sum() as f64;
            let Some(schema) = native else {
                return encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None);
            };
            let native = NativeHistogram::of(value, schema);
            encoder.encode_histogram_with_native::<NoLabelSet>(
                sum,
                count,
                &buckets,
                None,
                encodable(&native, None),
            )
        }
        value => ConstGauge::new(value.number()).encode(encoder),
    }
}

impl prometheus_client::collector::Collector for Collector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut metrics: BTreeMap<(String, Type), Metric> = BTreeMap::new();
        // all values first, and text afterwards: the reads are as near to each other as can be
        self.registry.visit(|sample| {
            let description = sample.description;
            let mut labels: Vec<(String, String)> =
                description.labels().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let (mut name, mut unit, mut help) =
                (description.name().to_owned(), description.unit_name(), description.help_text());
            match sample.item {
                SampleItem::Named { name: item, unit: of_item, help: text } => {
                    name = format!("{name}_{item}");
                    (unit, help) = (of_item, text);
                }
                SampleItem::Index(index) => labels.push(("index".to_owned(), index.to_string())),
                _ => {}
            }
            let of = type_of(sample.value);
            if of == Type::Histogram {
                free_bucket_label(&mut labels);
            }
            let mut sorted = labels.clone();
            sorted.sort_unstable();
            let mut key = (name, of);
            while metrics.get(&key).is_some_and(|metric| metric.series.contains(&sorted)) {
                key.0.push_str(of.end_of_name());
            }
            let metric = metrics.entry(key).or_default();
            if metric.values.is_empty() {
                // prometheus-client 0.26 writes help texts as they are (src/encoding/text.rs)
                (metric.help, metric.unit) = (help.replace('\n', " "), unit.to_owned());
            }
            metric.series.insert(sorted);
            metric.values.push((labels, sample.value.clone()));
        });
        for (BareName { name, unit, of }, metric) in bare_names(&metrics).iter().zip(metrics.values()) {
            let unit = unit.map(|unit| Unit::Other(unit.to_owned()));
            let of = MetricType::from(*of);
            let mut of_name = encoder.encode_descriptor(name, &metric.help, unit.as_ref(), of)?;
            for (labels, value) in &metric.values {
                encode(value, self.native, of_name.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}
