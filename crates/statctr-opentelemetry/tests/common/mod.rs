//! The SDK with an exporter that keeps what it is given.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};
use statctr_opentelemetry::MeterProvider;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The last values exported, by name and sorted attributes.
pub(crate) type Values = BTreeMap<(String, Vec<String>), f64>;

/// The last collection that was exported.
#[derive(Default)]
struct Collection {
    values: Values,
    /// For each metric its kind, name, unit and description.
    metrics: Vec<String>,
}

#[derive(Clone, Default)]
pub(crate) struct Exporter(Arc<Mutex<Collection>>);

type Points = Vec<(Vec<String>, f64)>;

/// Returns the kind of a metric, and its values by their attributes.
fn points(data: &AggregatedMetrics) -> Option<(&'static str, Points)> {
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

impl PushMetricExporter for Exporter {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let mut seen = self.0.lock().expect("not poisoned");
        *seen = Collection::default();
        for metric in metrics.scope_metrics().flat_map(|scope| scope.metrics()) {
            let (kind, points) = points(metric.data()).expect("a kind that is tested");
            seen.metrics.push(format!("{kind} {} {} {}", metric.name(), metric.unit(), metric.description()));
            for (attributes, value) in points {
                let key = (metric.name().to_owned(), attributes);
                assert!(seen.values.insert(key, value).is_none(), "twice");
            }
        }
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}

fn texts<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> Vec<String> {
    let mut texts: Vec<String> =
        attributes.map(|attribute| format!("{}={}", attribute.key, attribute.value)).collect();
    texts.sort();
    texts
}

/// The SDK with an exporter that keeps the last values, behind our provider.
pub(crate) struct Kit {
    pub(crate) provider: MeterProvider<SdkMeterProvider>,
    exporter: Exporter,
}

impl Kit {
    pub(crate) fn new() -> Kit {
        let exporter = Exporter::default();
        let reader =
            PeriodicReader::builder(exporter.clone()).with_interval(Duration::from_secs(3600)).build();
        let sdk = SdkMeterProvider::builder().with_reader(reader).build();
        Kit { provider: MeterProvider::new(sdk), exporter }
    }

    pub(crate) fn meter(&self) -> Meter {
        self.provider.meter("tests")
    }

    pub(crate) fn values(&self) -> Values {
        // a collection without values is not exported
        *self.exporter.0.lock().expect("not poisoned") = Collection::default();
        self.provider.inner().force_flush().expect("exported");
        self.exporter.0.lock().expect("not poisoned").values.clone()
    }

    /// Returns for each metric of the last collection its kind, name, unit and description.
    pub(crate) fn metrics(&self) -> Vec<String> {
        self.exporter.0.lock().expect("not poisoned").metrics.clone()
    }
}

pub(crate) fn value(values: &Values, name: &str, attributes: &[&str]) -> Option<f64> {
    let attributes = attributes.iter().map(|&text| text.to_owned()).collect();
    values.get(&(name.to_owned(), attributes)).copied()
}

/// Sets a flag when it is dropped, also by a failed assertion: threads that wait for the flag end then, too.
pub(crate) struct SetOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
