//! The SDK with an exporter that keeps what it is given.

use crate::points::{Values, points};
use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};
use statctr_opentelemetry::MeterProvider;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The last collection that was exported.
#[derive(Default)]
struct Collection {
    values: Values,
    /// For each metric its kind, name, unit and description.
    metrics: Vec<String>,
}

#[derive(Clone, Default)]
pub(crate) struct Exporter(Arc<Mutex<Collection>>);

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

/// Sets a flag when it is dropped, also by a failed assertion: threads that wait for the flag end then, too.
pub(crate) struct SetOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
