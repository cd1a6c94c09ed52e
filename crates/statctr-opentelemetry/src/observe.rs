//! Counters that the program has itself, as observable instruments.

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use statctr::{Counter, FloatGauge, Gauge, Group};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

/// Exports a [`Counter`] of the program as an observable counter of `meter`, with this name and these attributes.
///
/// ```
/// use std::sync::Arc;
///
/// let requests = Arc::new(statctr::Counter::new(0)?);
/// let meter = opentelemetry::global::meter("server");
/// statctr_opentelemetry::observe_counter(&meter, "requests", &[], &requests);
/// requests.inc();
/// # Ok::<(), statctr::Error>(())
/// ```
pub fn observe_counter(
    meter: &Meter,
    name: impl Into<Cow<'static, str>>,
    attributes: &[KeyValue],
    counter: &Arc<Counter>,
) {
    let (attributes, counter) = (attributes.to_vec(), Arc::clone(counter));
    let builder = meter.u64_observable_counter(name);
    builder.with_callback(move |observer| observer.observe(counter.read(), &attributes)).build();
}

/// Exports a [`Gauge`] of the program as an observable gauge of `meter`, with this name and these attributes.
pub fn observe_gauge(
    meter: &Meter,
    name: impl Into<Cow<'static, str>>,
    attributes: &[KeyValue],
    gauge: &Arc<Gauge>,
) {
    let (attributes, gauge) = (attributes.to_vec(), Arc::clone(gauge));
    let builder = meter.i64_observable_gauge(name);
    builder.with_callback(move |observer| observer.observe(gauge.read(), &attributes)).build();
}

/// Exports a [`FloatGauge`] of the program as an observable gauge of `meter`, with this name and these attributes.
pub fn observe_float_gauge(
    meter: &Meter,
    name: impl Into<Cow<'static, str>>,
    attributes: &[KeyValue],
    gauge: &Arc<FloatGauge>,
) {
    let (attributes, gauge) = (attributes.to_vec(), Arc::clone(gauge));
    let builder = meter.f64_observable_gauge(name);
    builder.with_callback(move |observer| observer.observe(gauge.read(), &attributes)).build();
}

/// Exports each item (statistic) of a [`Group`] of counters as an observable counter of `meter` named `NAME.ITEM`, with
/// the item's unit of measurement and help text and these attributes.
///
/// A collection that asks for the items one after the other, as the SDK does, gets all of them from one read of the
/// group. If two readers collect at the same time, the items may come from different reads.
pub fn observe_group(meter: &Meter, name: &str, attributes: &[KeyValue], group: &Arc<Group>) {
    let snapshot = Arc::new(Mutex::new(Snapshot {
        values: vec![0; group.schema().len()],
        // nothing was read: the first item that is asked for reads
        handed_out: vec![true; group.schema().len()],
    }));
    for (index, spec) in group.schema().specs().iter().enumerate() {
        let mut builder = meter.u64_observable_counter(format!("{name}.{}", spec.name()));
        if !spec.help_text().is_empty() {
            builder = builder.with_description(spec.help_text().to_owned());
        }
        if !spec.unit_name().is_empty() {
            builder = builder.with_unit(spec.unit_name().to_owned());
        }
        let (snapshot, group, attributes) = (Arc::clone(&snapshot), Arc::clone(group), attributes.to_vec());
        let value = move || snapshot.lock().unwrap_or_else(PoisonError::into_inner).value(index, &group);
        builder.with_callback(move |observer| observer.observe(value(), &attributes)).build();
    }
}

/// The values of a group, and which of them a collection has had.
struct Snapshot {
    values: Vec<u64>,
    handed_out: Vec<bool>,
}

impl Snapshot {
    /// Returns the value of an item: of the last read where nobody had it yet, else of a new one.
    fn value(&mut self, index: usize, group: &Group) -> u64 {
        if self.handed_out[index] {
            // as many values as items
            let _ = group.fold_into(&mut self.values);
            self.handed_out.fill(false);
        }
        self.handed_out[index] = true;
        self.values[index]
    }
}
