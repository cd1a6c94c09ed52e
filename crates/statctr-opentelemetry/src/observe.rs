//! Statistics that the program has itself, as observable instruments.

use crate::instrument::{CARDINALITY_LIMIT, overflow_attribute};
use crate::reading::SharedReading;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};
use statctr::{
    ApproximateCounter, Average, AverageSnapshot, Counter, CounterArray, FloatGauge, Gauge, Group,
    GroupArray, Max, Min, Schema,
};
use std::borrow::Cow;
use std::sync::Arc;

macro_rules! single_values {
    ($($(#[$doc:meta])* $function:ident: $Statistic:ty as $instrument:ident;)+) => {$(
        $(#[$doc])*
        pub fn $function(
            meter: &Meter,
            name: impl Into<Cow<'static, str>>,
            attributes: &[KeyValue],
            statistic: &Arc<$Statistic>,
        ) {
            let (attributes, statistic) = (attributes.to_vec(), Arc::clone(statistic));
            let builder = meter.$instrument(name);
            builder.with_callback(move |observer| observer.observe(statistic.read(), &attributes)).build();
        }
    )+};
}

single_values! {
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
    observe_counter: Counter as u64_observable_counter;

    /// Exports the exact value of an [`ApproximateCounter`] of the program as an observable counter of `meter`, with
    /// this name and these attributes.
    observe_approximate_counter: ApproximateCounter as u64_observable_counter;

    /// Exports a [`Gauge`] of the program as an observable gauge of `meter`, with this name and these attributes.
    observe_gauge: Gauge as i64_observable_gauge;

    /// Exports a [`FloatGauge`] of the program as an observable gauge of `meter`, with this name and these attributes.
    /// The SDK leaves out NaN and infinities.
    observe_float_gauge: FloatGauge as f64_observable_gauge;

    /// Exports a [`Gauge`] of the program as an observable up-down counter of `meter`, with this name and these
    /// attributes: for values whose sum over attributes or processes has a meaning, such as open connections.
    observe_up_down_counter: Gauge as i64_observable_up_down_counter;

    /// Exports a [`FloatGauge`] of the program as an observable up-down counter of `meter`, with this name and these
    /// attributes: for values whose sum over attributes or processes has a meaning. The SDK leaves out NaN and
    /// infinities.
    observe_float_up_down_counter: FloatGauge as f64_observable_up_down_counter;

    /// Exports a [`Max`] of the program as an observable gauge of `meter`, with this name and these attributes; 0 where
    /// nothing was observed.
    observe_max: Max as u64_observable_gauge;
}

/// Exports a [`Min`] (smallest observed value) of the program as an observable gauge of `meter`, with this name and
/// these attributes. A collection has no value of it where nothing was observed.
pub fn observe_min(
    meter: &Meter,
    name: impl Into<Cow<'static, str>>,
    attributes: &[KeyValue],
    statistic: &Arc<Min>,
) {
    let (attributes, statistic) = (attributes.to_vec(), Arc::clone(statistic));
    let builder = meter.u64_observable_gauge(name).with_callback(move |observer| {
        let value = statistic.read();
        if value != Min::IDENTITY {
            observer.observe(value, &attributes);
        }
    });
    builder.build();
}

/// Exports an [`Average`] of the program as two observable counters of `meter` with these attributes: `NAME.count`, the
/// number of values, and `NAME.sum`. The quotient of their changes is the mean of an interval.
///
/// Both numbers in one collection come from one read. If several readers collect at the same time, they may come from
/// two.
pub fn observe_average(meter: &Meter, name: &str, attributes: &[KeyValue], average: &Arc<Average>) {
    let reading = Arc::new(SharedReading::new(AverageSnapshot::default(), 2));
    let parts = [("count", AverageSnapshot::count as fn(&_) -> _), ("sum", AverageSnapshot::sum)];
    for (callback, (part, value)) in parts.into_iter().enumerate() {
        let (reading, average, attributes) = (Arc::clone(&reading), Arc::clone(average), attributes.to_vec());
        let builder = meter.u64_observable_counter(format!("{name}.{part}"));
        let read = move |values: &mut AverageSnapshot| *values = average.read();
        builder
            .with_callback(move |observer| {
                observer.observe(reading.with(callback, &read, value), &attributes);
            })
            .build();
    }
}

/// Exports a [`CounterArray`] of the program as an observable counter of `meter`, with this name and these attributes,
/// and each counter's position in the attribute `index`.
///
/// Positions from [`CARDINALITY_LIMIT`] on are counted together under `otel.metric.overflow=true`.
pub fn observe_counter_array(
    meter: &Meter,
    name: impl Into<Cow<'static, str>>,
    attributes: &[KeyValue],
    counters: &Arc<CounterArray>,
) {
    let (attributes, counters) = (attributes.to_vec(), Arc::clone(counters));
    let builder = meter.u64_observable_counter(name).with_callback(move |observer| {
        let mut values = vec![0; counters.len()];
        // as many values as counters
        let _ = counters.fold_into(&mut values);
        observe_elements(observer, &attributes, values.into_iter());
    });
    builder.build();
}

/// Exports each item (statistic) of a [`Group`] of counters as an observable counter of `meter` named `NAME.ITEM`, with
/// the item's unit and help text and these attributes.
///
/// The values of all items in one collection come from one read: what was committed together appears together. If
/// several readers collect at the same time, the values of one collection may come from two reads, as the SDK passes
/// what a callback observes to all of its readers.
pub fn observe_group(meter: &Meter, name: &str, attributes: &[KeyValue], group: &Arc<Group>) {
    let attributes = attributes.to_vec();
    let read = {
        let group = Arc::clone(group);
        move |values: &mut [u64]| group.fold_into(values)
    };
    observe_items(meter, name, group.schema(), 1, read, move |observer, values| {
        values.for_each(|value| observer.observe(value, &attributes));
    });
}

/// Exports each item (statistic) of a [`GroupArray`] of the program as an observable counter of `meter` named
/// `NAME.ITEM`, with the item's unit and help text, these attributes, and each group's position in the attribute
/// `index`.
///
/// The values of one collection come from one read of each group, as those of [`observe_group`] do. Positions from
/// [`CARDINALITY_LIMIT`] on are counted together under `otel.metric.overflow=true`.
pub fn observe_group_array(meter: &Meter, name: &str, attributes: &[KeyValue], groups: &Arc<GroupArray>) {
    let attributes = attributes.to_vec();
    let read = {
        let groups = Arc::clone(groups);
        move |values: &mut [u64]| groups.fold_into(values)
    };
    observe_items(meter, name, groups.schema(), groups.len(), read, move |observer, values| {
        observe_elements(observer, &attributes, values);
    });
}

/// Makes an observable counter for each item of `groups` groups, all of whose values are of one `read`, group by group.
fn observe_items(
    meter: &Meter,
    name: &str,
    schema: &Schema,
    groups: usize,
    read: impl Fn(&mut [u64]) -> statctr::Result<()> + Send + Sync + 'static,
    observe: impl Fn(&dyn AsyncInstrument<u64>, &mut dyn Iterator<Item = u64>) + Send + Sync + 'static,
) {
    let items = schema.len();
    let reading = SharedReading::new(vec![0; groups * items], items);
    let shared = Arc::new((reading, read, observe));
    for (index, spec) in schema.specs().iter().enumerate() {
        let mut builder = meter.u64_observable_counter(format!("{name}.{}", spec.name()));
        builder.description = non_empty(spec.help_text());
        builder.unit = ucum_unit(spec.unit_name());
        let shared = Arc::clone(&shared);
        builder
            .with_callback(move |observer| {
                let (reading, read, observe) = &*shared;
                // as many values as the groups have items
                let read = |values: &mut Vec<u64>| drop(read(values));
                reading.with(index, read, |values| {
                    observe(observer, &mut values.iter().copied().skip(index).step_by(items));
                });
            })
            .build();
    }
}

/// Reports the values of an array's elements, each with its position; those beyond the limit as one.
fn observe_elements(
    observer: &dyn AsyncInstrument<u64>,
    attributes: &[KeyValue],
    mut values: impl Iterator<Item = u64>,
) {
    let mut attributes = attributes.to_vec();
    for (index, value) in values.by_ref().take(CARDINALITY_LIMIT).enumerate() {
        attributes.push(KeyValue::new("index", index as i64));
        observer.observe(value, &attributes);
        attributes.pop();
    }
    if let Some(overflow) = values.reduce(u64::wrapping_add) {
        observer.observe(overflow, &[overflow_attribute()]);
    }
}

/// Returns a copy of a help text or unit of measurement for a builder of OpenTelemetry instruments; `None` for an empty
/// text.
pub(crate) fn non_empty(text: &str) -> Option<Cow<'static, str>> {
    (!text.is_empty()).then(|| Cow::Owned(text.to_owned()))
}

/// Returns the name that OpenTelemetry has for a unit of measurement, which is UCUM's: `By` for bytes. A name that is
/// not known stays as it is; `None` for no unit, and for a name with which the SDK refuses an instrument.
pub(crate) fn ucum_unit(name: &str) -> Option<Cow<'static, str>> {
    // INSTRUMENT_UNIT_NAME_MAX_LENGTH in src/metrics/meter.rs of opentelemetry_sdk 0.33.1
    const MAX_LENGTH: usize = 63;
    match name {
        "bytes" => Some("By".into()),
        "nanoseconds" => Some("ns".into()),
        "seconds" => Some("s".into()),
        "packets" => Some("{packet}".into()),
        "operations" => Some("{operation}".into()),
        other if other.is_ascii() && other.len() <= MAX_LENGTH => non_empty(other),
        _ => None,
    }
}
