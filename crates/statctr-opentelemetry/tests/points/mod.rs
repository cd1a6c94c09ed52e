//! Values of exported metrics.

use opentelemetry::KeyValue;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use std::collections::BTreeMap;

/// Exported values, by name and sorted attributes.
pub(crate) type Values = BTreeMap<(String, Vec<String>), f64>;

pub(crate) type Points = Vec<(Vec<String>, f64)>;

/// Returns the kind of a metric, and its values by their attributes.
pub(crate) fn points(data: &AggregatedMetrics) -> Option<(&'static str, Points)> {
    macro_rules! points {
        ($data:expr) => {
            match $data {
                MetricData::Sum(sum) => {
                    let points =
                        sum.data_points().map(|point| (texts(point.attributes()), point.value() as f64));
                    (if sum.is_monotonic() { "counter" } else { "up-down counter" }, points.collect())
                }
                MetricData::Gauge(gauge) => {
                    let points =
                        gauge.data_points().map(|point| (texts(point.attributes()), point.value() as f64));
                    ("gauge", points.collect())
                }
                MetricData::Histogram(histogram) => {
                    let points =
                        histogram.data_points().map(|point| (texts(point.attributes()), point.sum() as f64));
                    ("histogram", points.collect())
                }
                _ => return None,
            }
        };
    }
    Some(match data {
        AggregatedMetrics::U64(data) => points!(data),
        AggregatedMetrics::I64(data) => points!(data),
        AggregatedMetrics::F64(data) => points!(data),
    })
}

fn texts<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> Vec<String> {
    let mut texts: Vec<String> =
        attributes.map(|attribute| format!("{}={}", attribute.key, attribute.value)).collect();
    texts.sort();
    texts
}

pub(crate) fn value(values: &Values, name: &str, attributes: &[&str]) -> Option<f64> {
    let attributes = attributes.iter().map(|&text| text.to_owned()).collect();
    values.get(&(name.to_owned(), attributes)).copied()
}
