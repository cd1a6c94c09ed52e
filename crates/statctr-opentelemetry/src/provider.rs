//! The provider: [`MeterProvider`].

use crate::collection::DeferredCounters;
use crate::instrument::Instrument;
use opentelemetry::InstrumentationScope;
use opentelemetry::metrics::{
    AsyncInstrumentBuilder, Counter, Gauge, Histogram, HistogramBuilder, InstrumentBuilder,
    InstrumentProvider, Meter, ObservableCounter, ObservableGauge, ObservableUpDownCounter, UpDownCounter,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A meter provider that wraps another one: its counters and up-down counters count per CPU and are exported through
/// the wrapped provider, which also makes all other instruments.
///
/// The wrapped provider has a counter of the same kind, name, unit and description, to which each collection adds what
/// was counted since the one before: its views, limits and temporality apply. Counters of one name (in any case) and one
/// meter's scope are one counter.
///
/// The collections are told by an instrument without values, `statctr.counters`, of each meter. If a view drops all
/// instruments of that name, or the provider has no reader, the meter's counters are those of the wrapped provider.
#[derive(Debug)]
pub struct MeterProvider<P> {
    inner: P,
    meters: Mutex<HashMap<InstrumentationScope, Meter>>,
}

impl<P: opentelemetry::metrics::MeterProvider> MeterProvider<P> {
    /// Creates a meter provider that counts per CPU, and exports through the provider `inner` that it wraps.
    pub fn new(inner: P) -> MeterProvider<P> {
        MeterProvider { inner, meters: Mutex::default() }
    }

    /// Returns the wrapped meter provider.
    pub fn inner(&self) -> &P {
        &self.inner
    }
}

impl<P: opentelemetry::metrics::MeterProvider> opentelemetry::metrics::MeterProvider for MeterProvider<P> {
    fn meter_with_scope(&self, scope: InstrumentationScope) -> Meter {
        let mut meters = self.meters.lock().unwrap_or_else(PoisonError::into_inner);
        let meter = meters.entry(scope).or_insert_with_key(|scope| {
            let inner = self.inner.meter_with_scope(scope.clone());
            Meter::new(Arc::new(Instruments {
                inner,
                deferred: DeferredCounters::default(),
                of_counters: Named::default(),
                of_floats: Named::default(),
                of_up_down: Named::default(),
                of_float_up_down: Named::default(),
            }))
        });
        meter.clone()
    }
}

/// The instruments of one kind, by their names in small letters.
struct Named<T, C>(Mutex<HashMap<String, Arc<Instrument<T, C>>>>);

impl<T, C> Default for Named<T, C> {
    fn default() -> Self {
        Named(Mutex::default())
    }
}

impl<T, C> Named<T, C> {
    /// Returns the instrument of this name, which `make` makes if there is none.
    fn get(&self, name: &str, make: impl FnOnce() -> Arc<Instrument<T, C>>) -> Arc<Instrument<T, C>> {
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(named.entry(name.to_ascii_lowercase()).or_insert_with(make))
    }
}

/// The instruments of a meter.
struct Instruments {
    inner: Meter,
    deferred: DeferredCounters,
    of_counters: Named<u64, statctr::SharedCounter>,
    of_floats: Named<f64, statctr::FloatGauge>,
    of_up_down: Named<i64, statctr::Gauge>,
    of_float_up_down: Named<f64, statctr::FloatGauge>,
}

/// Gives a builder of the other provider what this one was given.
macro_rules! described {
    ($builder:expr, $asked:expr) => {{
        let mut builder = $builder;
        builder.description = $asked.description;
        builder.unit = $asked.unit;
        builder
    }};
}

/// Counts per CPU, for a counter of the other provider.
macro_rules! per_cpu {
    ($method:ident, $type:ident, $value:ty, $field:ident) => {
        fn $method(&self, asked: InstrumentBuilder<'_, $type<$value>>) -> $type<$value> {
            if !self.deferred.are_recorded(&self.inner) {
                return described!(self.inner.$method(asked.name), asked).build();
            }
            let name = asked.name.clone();
            $type::new(self.$field.get(&name, || {
                let counter = described!(self.inner.$method(asked.name), asked).build();
                let instrument =
                    Instrument::new(Arc::new(move |value, attributes: &[_]| counter.add(value, attributes)));
                self.deferred.add(Arc::clone(&instrument) as Arc<_>);
                instrument
            }))
        }
    };
}

/// Hands an instrument on to the other provider.
macro_rules! handed_on {
    ($method:ident, $type:ident, $value:ty) => {
        fn $method(&self, asked: InstrumentBuilder<'_, $type<$value>>) -> $type<$value> {
            described!(self.inner.$method(asked.name), asked).build()
        }
    };
}

/// Hands an instrument with callbacks on to the other provider.
macro_rules! observable_handed_on {
    ($method:ident, $type:ident, $value:ty) => {
        fn $method(&self, asked: AsyncInstrumentBuilder<'_, $type<$value>, $value>) -> $type<$value> {
            let mut builder = described!(self.inner.$method(asked.name), asked);
            builder.callbacks = asked.callbacks;
            builder.build()
        }
    };
}

/// Hands a histogram on to the other provider.
macro_rules! histogram_handed_on {
    ($method:ident, $value:ty) => {
        fn $method(&self, asked: HistogramBuilder<'_, Histogram<$value>>) -> Histogram<$value> {
            let mut builder = described!(self.inner.$method(asked.name), asked);
            builder.boundaries = asked.boundaries;
            builder.build()
        }
    };
}

impl InstrumentProvider for Instruments {
    per_cpu!(u64_counter, Counter, u64, of_counters);
    per_cpu!(f64_counter, Counter, f64, of_floats);
    per_cpu!(i64_up_down_counter, UpDownCounter, i64, of_up_down);
    per_cpu!(f64_up_down_counter, UpDownCounter, f64, of_float_up_down);

    handed_on!(u64_gauge, Gauge, u64);
    handed_on!(i64_gauge, Gauge, i64);
    handed_on!(f64_gauge, Gauge, f64);

    observable_handed_on!(u64_observable_counter, ObservableCounter, u64);
    observable_handed_on!(f64_observable_counter, ObservableCounter, f64);
    observable_handed_on!(i64_observable_up_down_counter, ObservableUpDownCounter, i64);
    observable_handed_on!(f64_observable_up_down_counter, ObservableUpDownCounter, f64);
    observable_handed_on!(u64_observable_gauge, ObservableGauge, u64);
    observable_handed_on!(i64_observable_gauge, ObservableGauge, i64);
    observable_handed_on!(f64_observable_gauge, ObservableGauge, f64);

    histogram_handed_on!(f64_histogram, f64);
    histogram_handed_on!(u64_histogram, u64);
}
