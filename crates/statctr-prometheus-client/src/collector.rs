//! A [`Collector`] for a registry of the other crate, of all that a registry of the counters has.

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Unit;
use statctr::{Registry, SampleItem};
use std::collections::BTreeMap;
use std::fmt;

/// A `prometheus-client` collector that exports all counters, and arrays and groups of counters, of a [`statctr`]
/// registry, and of the global registry also static counters and their families.
///
/// Each item (statistic) of a group is a metric of its own, `GROUP_ITEM`; all items of a group come from one read.
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
    /// Creates a collector that exports what this registry contains at each scrape.
    #[must_use]
    pub fn new(registry: &'static Registry) -> Collector {
        Collector(registry)
    }
}

/// The values of one name.
#[derive(Default)]
struct Metric {
    help: String,
    unit: String,
    values: Vec<(Vec<(String, String)>, u64)>,
}

impl prometheus_client::collector::Collector for Collector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
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
            let metric = metrics.entry(name).or_default();
            if metric.values.is_empty() {
                (metric.help, metric.unit) = (help.to_owned(), unit.to_owned());
            }
            metric.values.push((labels, sample.value));
        });
        for (name, metric) in &metrics {
            // the encoder appends both to the name
            let name = name.strip_suffix("_total").unwrap_or(name);
            let name = name.strip_suffix(&format!("_{}", metric.unit)).unwrap_or(name);
            let unit = (!metric.unit.is_empty()).then(|| Unit::Other(metric.unit.clone()));
            let mut of_name =
                encoder.encode_descriptor(name, &metric.help, unit.as_ref(), MetricType::Counter)?;
            for (labels, value) in &metric.values {
                ConstCounter::new(*value).encode(of_name.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}
