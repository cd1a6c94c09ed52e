//! A registry of the program's own, as observable instruments.

use crate::instrument::{CARDINALITY_LIMIT, overflow_attribute};
use crate::observe::{non_empty, ucum_unit};
use crate::reading::SharedReading;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};
use statctr::{Min, Registry, SampleItem, Value};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The name of the instrument whose callback begins each collection; as it never has a value, it is not exported.
const WATCHING_INSTRUMENT: &str = "statctr.registry";

/// Exports what a [`Registry`] contains at each collection as observable instruments of `meter`: all statistics, arrays
/// and groups of counters, and of the global registry also statics and their families.
///
/// | kind | instruments |
/// |---|---|
/// | counter, approximate counter | observable counter |
/// | gauge, float gauge, maximum, minimum | observable gauge; none of a minimum without values, of NaN and of infinities |
/// | average | two observable counters: `NAME.count`, the number of values, and `NAME.sum` |
/// | item of a group | observable counter `NAME.ITEM`, with its own unit and help text |
/// | array of counters | observable counter, with the position in the attribute `index` |
/// | histogram | none |
///
/// Labels are attributes. A colon in a name becomes a dot, and a name that begins with no letter gets `statctr` in front,
/// as OpenTelemetry's names have neither. A name that an instrument of another kind or unit has already, in any case,
/// gets the kind at its end (`NAME.gauge`). The units of [`statctr::Unit`] have UCUM's names (`By`).
///
/// OpenTelemetry has no observable histogram: record such values by a histogram of the meter, which is the SDK's.
///
/// ```
/// use opentelemetry::metrics::MeterProvider as _;
/// use opentelemetry_sdk::metrics::SdkMeterProvider;
/// use statctr::{Registry, StaticFamily, Unit};
///
/// static REQUESTS: StaticFamily<1> = StaticFamily::new("requests", "served", Unit::NONE, ["method"]);
///
/// let sdk = SdkMeterProvider::builder().build(); // with a reader and an exporter
/// let observer = statctr_opentelemetry::observe_registry(&sdk.meter("server"), Registry::global());
/// REQUESTS.get(["GET"]).inc();
/// # drop(observer);
/// ```
///
/// # Entries that come and go
/// An entry that is gone is in no further collection. A new entry is in the next collection if an instrument of its name
/// exists, and in the one after that otherwise: the SDK holds a lock while it collects, which making an instrument needs,
/// so the collection starts a thread, `statctr-otel`, that makes the missing ones afterwards.
/// [`RegistryObserver::refresh`] makes them at once. The SDK keeps an instrument, without values, as long as the meter.
///
/// # Consistency
/// A collection reads the registry once, and each group in it at once: what was committed together appears together. If
/// several readers collect at the same time, the values of one collection may come from two reads, as the SDK passes
/// what a callback observes to all of its readers.
///
/// # Bounds
/// Of an instrument the first [`CARDINALITY_LIMIT`] sets of attributes, in the order of the registry, have a value of
/// their own. Further ones are combined under `otel.metric.overflow=true`: to their sum, or to the extreme.
///
/// # Cost
/// Updates of what is registered cost what they did before. A collection costs a [`Registry::visit`], and some
/// allocations for each value.
///
/// # Errors
/// None. An instrument that the SDK refuses, as its name has more than 255 letters, is reported by the SDK's own log,
/// and its values are left out.
pub fn observe_registry<R>(meter: &Meter, registry: R) -> RegistryObserver
where
    R: Deref<Target = Registry> + Send + Sync + 'static,
{
    let observed = Arc::new(ObservedRegistry {
        registry: Box::new(registry),
        meter: meter.clone(),
        reading: SharedReading::new(HashMap::new(), 1),
        instruments: Mutex::default(),
        refreshing: Mutex::default(),
        has_thread: AtomicBool::new(false),
    });
    // weak: the meter's provider owns the callback, and what is observed owns the meter
    let this = Arc::downgrade(&observed);
    let builder = meter.u64_observable_gauge(WATCHING_INSTRUMENT);
    builder.with_callback(move |_| this.upgrade().iter().for_each(ObservedRegistry::begin)).build();
    observed.refresh();
    RegistryObserver(observed)
}

/// The observation of a [`Registry`] by a meter, from [`observe_registry`]. It ends when this is dropped: the
/// instruments then have no values.
#[must_use = "the registry is observed until this is dropped"]
pub struct RegistryObserver(Arc<ObservedRegistry>);

impl RegistryObserver {
    /// Makes instruments for the names that are new in the registry, so that the next collection has their values.
    /// Costs a [`Registry::visit`]; waits for a collection that is under way.
    ///
    /// # Deadlocks
    /// In a callback of an instrument, as the SDK then holds the lock that making an instrument needs.
    pub fn refresh(&self) {
        self.0.refresh();
    }
}

impl fmt::Debug for RegistryObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryObserver").field("instruments", &self.0.instruments().made.len()).finish()
    }
}

/// A registry, the meter that observes it, and the instruments that were made for it.
struct ObservedRegistry {
    registry: Box<dyn Deref<Target = Registry> + Send + Sync>,
    meter: Meter,
    /// The values of a collection. Callback 0 is that of the watching instrument.
    reading: SharedReading<HashMap<InstrumentKey, Series>>,
    /// Taken for moments only, as callbacks wait for it.
    instruments: Mutex<Instruments>,
    /// Held while instruments are made, so that a refresh waits for those that another thread makes.
    refreshing: Mutex<()>,
    /// `true` while a thread makes instruments.
    has_thread: AtomicBool,
}

/// The instruments that were made, and their names in small letters: OpenTelemetry's do not depend on case.
#[derive(Default)]
struct Instruments {
    made: HashSet<InstrumentKey>,
    names: HashSet<String>,
}

impl Instruments {
    /// Adds an instrument and returns its name, which no other one has; `None` if it was there.
    fn add(&mut self, key: &InstrumentKey) -> Option<String> {
        if !self.made.insert(key.clone()) {
            return None;
        }
        let mut name = instrument_name(&key.metric, key.part.as_deref());
        while !self.names.insert(name.to_ascii_lowercase()) {
            name = format!("{name}.{}", key.kind.suffix());
        }
        Some(name)
    }
}

/// The properties in which all values of one instrument agree.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct InstrumentKey {
    /// Name in the registry.
    metric: String,
    /// Item of a group, or one of the numbers of an average.
    part: Option<String>,
    kind: Kind,
    unit: Option<Cow<'static, str>>,
}

/// The kinds of statistics that have an observable instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Counter,
    Gauge,
    FloatGauge,
    Max,
    Min,
}

impl Kind {
    fn of(value: &Value) -> Option<Kind> {
        match value {
            Value::Counter(_) => Some(Kind::Counter),
            Value::Gauge(_) => Some(Kind::Gauge),
            Value::FloatGauge(_) => Some(Kind::FloatGauge),
            Value::Max(_) => Some(Kind::Max),
            Value::Min(_) => Some(Kind::Min),
            _ => None,
        }
    }

    /// Returns the end of a name that something of another kind has, too.
    fn suffix(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge | Kind::FloatGauge => "gauge",
            Kind::Max => "max",
            Kind::Min => "min",
        }
    }
}

/// The values of an instrument by their attributes, and those beyond the limit as one.
#[derive(Default)]
struct Series {
    values: Vec<(Vec<KeyValue>, Value)>,
    overflow: Option<Value>,
}

impl Series {
    fn add(&mut self, attributes: Vec<KeyValue>, value: Value) {
        if self.values.len() < CARDINALITY_LIMIT {
            self.values.push((attributes, value));
        } else {
            self.overflow = Some(match self.overflow.take() {
                Some(overflow) => combined(overflow, value),
                None => value,
            });
        }
    }
}

/// Combines two values of one kind: to their sum, or to the extreme.
fn combined(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::Counter(a), Value::Counter(b)) => Value::Counter(a.wrapping_add(b)),
        (Value::Gauge(a), Value::Gauge(b)) => Value::Gauge(a.wrapping_add(b)),
        (Value::FloatGauge(a), Value::FloatGauge(b)) => Value::FloatGauge(a + b),
        (Value::Max(a), Value::Max(b)) => Value::Max(a.max(b)),
        (Value::Min(a), Value::Min(b)) => Value::Min(a.min(b)),
        (first, _) => first,
    }
}

impl ObservedRegistry {
    /// Reads the registry for a collection, and has instruments made for new names when the collection is over.
    fn begin(self: &Arc<Self>) {
        let has_new = self.reading.with(
            0,
            |series| self.read(series),
            |series| {
                let instruments = self.instruments();
                series.keys().any(|key| !instruments.made.contains(key))
            },
        );
        if !has_new || self.has_thread.swap(true, Ordering::AcqRel) {
            return;
        }
        // Not here: `Pipeline::produce` of opentelemetry_sdk 0.33.1 (src/metrics/pipeline.rs) holds its lock while it
        // calls callbacks, and `Pipeline::add_sync` takes it for each new instrument.
        let this = Arc::downgrade(self);
        let make = move || {
            let Some(this) = this.upgrade() else { return };
            this.refresh();
            this.has_thread.store(false, Ordering::Release);
        };
        if std::thread::Builder::new().name("statctr-otel".to_owned()).spawn(make).is_err() {
            // the next collection tries again
            self.has_thread.store(false, Ordering::Release);
        }
    }

    /// Makes the instruments that are missing.
    fn refresh(self: &Arc<Self>) {
        let _refreshing = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut missing = Vec::new();
        visit(&self.registry, |key, help, _, _| {
            if let Some(name) = self.instruments().add(&key) {
                missing.push((key, name, non_empty(help)));
            }
        });
        // with no lock that a callback takes: the SDK's, which this waits for, is held by those that call it
        missing.into_iter().for_each(|(key, name, help)| self.make(key, name, help));
    }

    /// Creates the observable instrument of the SDK that reports the values of `key`, under `name`.
    fn make(self: &Arc<Self>, key: InstrumentKey, name: String, help: Option<Cow<'static, str>>) {
        let (this, callback) = (Arc::downgrade(self), self.reading.add_callback());
        macro_rules! make {
            ($instrument:ident, $Kind:ident) => {{
                let mut builder = self.meter.$instrument(name);
                builder.description = help;
                builder.unit = key.unit.clone();
                let observe =
                    move |value: &Value, attributes: &[KeyValue], observer: &dyn AsyncInstrument<_>| {
                        if let Value::$Kind(value) = value {
                            observer.observe(*value, attributes);
                        }
                    };
                builder
                    .with_callback(move |observer| {
                        ObservedRegistry::observe(&this, callback, &key, |value, attributes| {
                            observe(value, attributes, observer);
                        });
                    })
                    .build();
            }};
        }
        match key.kind {
            Kind::Counter => make!(u64_observable_counter, Counter),
            Kind::Gauge => make!(i64_observable_gauge, Gauge),
            Kind::FloatGauge => make!(f64_observable_gauge, FloatGauge),
            Kind::Max => make!(u64_observable_gauge, Max),
            Kind::Min => make!(u64_observable_gauge, Min),
        };
    }

    /// Passes the values of an instrument to `sink`; none after the observation's end.
    fn observe(
        this: &Weak<Self>,
        callback: usize,
        key: &InstrumentKey,
        mut sink: impl FnMut(&Value, &[KeyValue]),
    ) {
        let Some(this) = this.upgrade() else { return };
        let read = |series: &mut _| this.read(series);
        this.reading.with(callback, read, |series| {
            let Some(series) = series.get(key) else { return };
            let values = series.values.iter().map(|(attributes, value)| (value, &**attributes));
            let overflow_attributes = [overflow_attribute()];
            let overflow = series.overflow.iter().map(|value| (value, &overflow_attributes[..]));
            let all = values.chain(overflow).filter(|(value, _)| **value != Value::Min(Min::IDENTITY));
            all.for_each(|(value, attributes)| sink(value, attributes));
        });
    }

    fn read(&self, series: &mut HashMap<InstrumentKey, Series>) {
        series.clear();
        visit(&self.registry, |key, _, attributes, value| {
            series.entry(key).or_default().add(attributes, value);
        });
    }

    fn instruments(&self) -> MutexGuard<'_, Instruments> {
        self.instruments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls `sink` with each value of a registry that an instrument can have: the instrument, its help text, and the
/// attributes.
fn visit(registry: &Registry, mut sink: impl FnMut(InstrumentKey, &str, Vec<KeyValue>, Value)) {
    registry.visit(|sample| {
        let description = sample.description;
        let attribute = |(name, value): (&str, &str)| KeyValue::new(name.to_owned(), value.to_owned());
        let mut attributes: Vec<KeyValue> = description.labels().map(attribute).collect();
        let (mut part, mut unit, mut help) = (None, description.unit_name(), description.help_text());
        match sample.item {
            SampleItem::Named { name, unit: of_item, help: text } => {
                (part, unit, help) = (Some(name), of_item, text);
            }
            SampleItem::Index(index) => attributes.push(KeyValue::new("index", index as i64)),
            _ => {}
        }
        let key = |part: Option<&str>, kind, unit| {
            let (metric, part) = (description.name().to_owned(), part.map(str::to_owned));
            InstrumentKey { metric, part, kind, unit: ucum_unit(unit) }
        };
        if let Value::Average(average) = sample.value {
            let (count, sum) = (Value::Counter(average.count()), Value::Counter(average.sum()));
            sink(key(Some("count"), Kind::Counter, ""), help, attributes.clone(), count);
            sink(key(Some("sum"), Kind::Counter, unit), help, attributes, sum);
        } else if let Some(kind) = Kind::of(sample.value) {
            sink(key(part, kind, unit), help, attributes, sample.value.clone());
        }
    });
}

/// Returns OpenTelemetry's name for a metric of the registry, or for a part of one: it begins with a letter and has dots,
/// not colons.
fn instrument_name(metric: &str, part: Option<&str>) -> String {
    let prefix = if metric.starts_with(|first: char| first.is_ascii_alphabetic()) { "" } else { "statctr" };
    let name = format!("{prefix}{}", metric.replace(':', "."));
    match part {
        Some(part) => format!("{name}.{part}"),
        None => name,
    }
}
