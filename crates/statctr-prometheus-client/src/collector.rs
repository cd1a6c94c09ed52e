//! A [`Collector`] for a registry of the other crate, of all that a registry of the counters has.

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use statctr::{Registry, SampleItem, Value};
use std::collections::BTreeMap;
use std::fmt;

/// A `prometheus-client` collector that exports all statistics, and arrays and groups of counters, of a [`statctr`]
/// registry, and of the global registry also statics and their families.
///
/// Each item (statistic) of a group is a metric of its own, `GROUP_ITEM`; all items of a group come from one read.
/// Names end in the unit, unless that has other characters than a name (`req/s`); such a unit is not exported.
/// Extremes are gauges, an average is a histogram of one bucket, and the buckets of a histogram are those of
/// [`classic_buckets`](statctr::HistogramSnapshot::classic_buckets).
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
pub struct Collector(&'static Registry);

impl Collector {
    /// Creates a `prometheus-client` collector that, at each scrape, exports the statistics that this registry then
    /// contains.
    #[must_use]
    pub fn new(registry: &'static Registry) -> Collector {
        Collector(registry)
    }
}

/// The values of one name and type.
#[derive(Default)]
struct Metric {
    help: String,
    unit: String,
    values: Vec<(Vec<(String, String)>, Value)>,
}

/// The exported types of metrics, in the order in which metrics of one name are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Type {
    Counter,
    Gauge,
    Histogram,
}

fn type_of(value: &Value) -> Type {
    match value {
        Value::Counter(_) => Type::Counter,
        Value::Average(_) | Value::Histogram(_) => Type::Histogram,
        _ => Type::Gauge,
    }
}

/// Returns the unit of a metric, with which the format ends the name; `None` for one that is no part of a name, as
/// `req/s`.
fn unit_of_name(unit: &str) -> Option<&str> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':');
    (!unit.is_empty() && unit.chars().all(fits)).then_some(unit)
}

fn encode(value: &Value, mut encoder: MetricEncoder<'_>) -> fmt::Result {
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
            encoder.encode_histogram::<NoLabelSet>(value.sum() as f64, count, &buckets, None)
        }
        value => ConstGauge::new(value.number()).encode(encoder),
    }
}

impl prometheus_client::collector::Collector for Collector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut metrics: BTreeMap<(String, Type), Metric> = BTreeMap::new();
        // all values first, and text afterwards: the reads are as near to each other as can be
        self.0.visit(|sample| {
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
            let metric = metrics.entry((name, type_of(sample.value))).or_default();
            if metric.values.is_empty() {
                (metric.help, metric.unit) = (help.to_owned(), unit.to_owned());
            }
            metric.values.push((labels, sample.value.clone()));
        });
        let mut last = None;
        for ((full_name, of), metric) in &metrics {
            // the encoder appends both to the name
            let name = match of {
                Type::Counter => full_name.strip_suffix("_total").unwrap_or(full_name),
                _ => full_name,
            };
            let unit = unit_of_name(&metric.unit);
            let name = match unit {
                Some(unit) => name.strip_suffix(unit).and_then(|name| name.strip_suffix('_')).unwrap_or(name),
                None => name,
            };
            let (of, suffix) = match of {
                Type::Counter => (MetricType::Counter, "_counter"),
                Type::Gauge => (MetricType::Gauge, "_gauge"),
                Type::Histogram => (MetricType::Histogram, "_histogram"),
            };
            // of statics one name may have several types, which the format does not know
            let suffix = if last.replace(full_name) == Some(full_name) { suffix } else { "" };
            let name = format!("{name}{suffix}");
            let unit = unit.map(|unit| Unit::Other(unit.to_owned()));
            let mut of_name = encoder.encode_descriptor(&name, &metric.help, unit.as_ref(), of)?;
            for (labels, value) in &metric.values {
                encode(value, of_name.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}
