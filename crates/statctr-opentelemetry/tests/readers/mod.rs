//! Readers of each temporality that keep what was exported in all.

use crate::points::{Values, points};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{PeriodicReader, Temporality};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The values exported since the program's start: the last ones, or the sums of all deltas.
#[derive(Clone)]
pub(crate) struct Totals {
    temporality: Temporality,
    pub(crate) values: Arc<Mutex<Values>>,
}

impl Totals {
    /// Creates totals, and a reader of this temporality and interval that exports to them.
    pub(crate) fn new(temporality: Temporality, interval: Duration) -> (Totals, PeriodicReader<Totals>) {
        let totals = Totals { temporality, values: Arc::default() };
        let reader = PeriodicReader::builder(totals.clone()).with_interval(interval).build();
        (totals, reader)
    }

    pub(crate) fn values(&self) -> Values {
        self.values.lock().expect("not poisoned").clone()
    }

    /// Returns the sum of all values of a metric.
    pub(crate) fn sum(&self, name: &str) -> f64 {
        self.values().iter().filter(|((there, _), _)| there == name).map(|(_, value)| value).sum()
    }
}

impl PushMetricExporter for Totals {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let mut values = self.values.lock().expect("not poisoned");
        if self.temporality == Temporality::Cumulative {
            values.clear();
        }
        for metric in metrics.scope_metrics().flat_map(|scope| scope.metrics()) {
            let (_, points) = points(metric.data()).expect("a kind that is tested");
            for (attributes, value) in points {
                *values.entry((metric.name().to_owned(), attributes)).or_default() += value;
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
        self.temporality
    }
}
