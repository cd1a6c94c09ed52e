//! The provider: [`MeterProvider`].

use crate::instrument::{Cell, Instrument};
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
/// The wrapped provider sees a counter as an observable counter of the same name, unit and description. Counters of one
/// name (in any case) and one meter's scope are one counter. If there is no memory for a counter, the wrapped provider
/// creates it instead.
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
struct Named<C>(Mutex<HashMap<String, Arc<Instrument<C>>>>);

impl<C> Default for Named<C> {
    fn default() -> Self {
        Named(Mutex::default())
    }
}

impl<C> Named<C> {
    /// Returns the instrument of this name; of a new one `register` tells the other provider. `None` where
    /// the system has no memory.
    fn get<T>(&self, name: &str, register: impl FnOnce(Arc<Instrument<C>>)) -> Option<Arc<Instrument<C>>>
    where
        C: Cell<T>,
    {
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = name.to_ascii_lowercase();
        if let Some(there) = named.get(&name) {
            return Some(there.clone());
        }
        let instrument = Instrument::new().ok()?;
        register(instrument.clone());
        named.insert(name, instrument.clone());
        Some(instrument)
    }
}

/// The instruments of a meter.
struct Instruments {
    inner: Meter,
    of_counters: Named<statctr::SharedCounter>,
    of_floats: Named<statctr::FloatGauge>,
    of_up_down: Named<statctr::Gauge>,
    of_float_up_down: Named<statctr::FloatGauge>,
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

/// Counts per CPU, and shows the other provider an observable instrument.
macro_rules! per_cpu {
    ($method:ident, $observable:ident, $type:ident, $value:ty, $field:ident) => {
        fn $method(&self, asked: InstrumentBuilder<'_, $type<$value>>) -> $type<$value> {
            let (name, description, unit) =
                (asked.name.clone(), asked.description.clone(), asked.unit.clone());
            let instrument = self.$field.get(&asked.name, |instrument| {
                let mut builder = self.inner.$observable(name);
                builder.description = description;
                builder.unit = unit;
                builder.with_callback(move |observer| instrument.observe(observer)).build();
            });
            match instrument {
                Some(instrument) => $type::new(instrument),
                None => described!(self.inner.$method(asked.name), asked).build(),
            }
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
    per_cpu!(u64_counter, u64_observable_counter, Counter, u64, of_counters);
    per_cpu!(f64_counter, f64_observable_counter, Counter, f64, of_floats);
    per_cpu!(i64_up_down_counter, i64_observable_up_down_counter, UpDownCounter, i64, of_up_down);
    per_cpu!(f64_up_down_counter, f64_observable_up_down_counter, UpDownCounter, f64, of_float_up_down);

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
