//! A registry of the program's own, as instruments.

use crate::collection::{at_each_collection, build_direct};
use crate::ended::{EndedObservation, RegistryRef};
use crate::instrument::{CARDINALITY_LIMIT, overflow_attribute};
use crate::observe::{non_empty, ucum_unit};
use crate::reading::SharedReading;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Counter, Meter};
use statctr::{Min, Registry, RegistryValues, Sample, SampleItem, Snapshot, Value};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// The name of the instrument whose callback begins each collection; as it never has a value, it is not exported.
const WATCHING_INSTRUMENT: &str = "statctr.registry";
/// The number of the watching instrument's callback.
const WATCHING_CALLBACK: usize = 0;

/// Exports what a [`Registry`] contains at each collection as instruments of `meter`: all statistics, arrays and groups of
/// counters, and of the global registry also statics and their families.
///
/// | kind | instruments |
/// |---|---|
/// | counter, approximate counter | counter |
/// | gauge, float gauge, maximum, minimum | observable gauge; none of a minimum without values, of NaN and of infinities |
/// | average | two counters: `NAME.count`, the number of values, and `NAME.sum` |
/// | item of a group | counter `NAME.ITEM`, with its own unit and help text |
/// | array of counters | counter, with the position in the attribute `index` |
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
/// # Sums
/// A collection adds to the SDK's counters what was counted since the one before. The SDK's sums therefore never go down,
/// all views and temporalities apply, and two statistics of one name and with the same labels are one sum. A counter
/// whose value went down (`set`, `sub`) was reset, by the rule of Prometheus: its value is then what is new.
///
/// # Entries that come and go
/// An entry that is gone is in no further collection, but the sum of a counter stays, and grows by an entry that gets its
/// name and labels later. What a counter counts between the last collection and its end is not exported.
///
/// A new entry is in the next collection if an instrument of its name exists, and in the one after that otherwise: the SDK
/// holds a lock while it collects, which making an instrument needs, so the collection starts a thread, `statctr-otel`,
/// that makes the missing ones afterwards. [`RegistryObserver::refresh`] makes them at once. The SDK keeps an instrument
/// as long as the meter.
///
/// # Consistency
/// A collection reads the registry once, and each group in it at once: what was committed together appears together. If
/// several readers collect at the same time, the values of one collection may come from two reads, as the SDK passes
/// what a callback observes to all of its readers.
///
/// # Bounds
/// Of a counter as many sets of attributes have a sum of their own as the SDK or a view says, also those that are gone;
/// further ones are combined under `otel.metric.overflow=true`. Of a gauge these are the first [`CARDINALITY_LIMIT`] ones
/// in the order of the registry, and the value of the others is their sum, or the extreme.
///
/// # Several observers
/// Observe a registry once per meter at a time: two observers would each add what is counted. An observation that begins
/// after another one has ended continues from there, for a registry in an `Arc` or a `static`, as long as the provider of
/// the first one lives. That holds for another provider, too: no count is exported by both.
///
/// # Cost
/// Updates of what is registered cost what they did before. A collection costs a [`Registry::snapshot`], which is kept
/// until the next one, and some allocations for each value.
///
/// # Errors
/// None. An instrument that the SDK refuses, as its name has more than 255 letters, is reported by the SDK's own log,
/// and its values are left out.
pub fn observe_registry<R>(meter: &Meter, registry: R) -> RegistryObserver
where
    R: Deref<Target = Registry> + Send + Sync + 'static,
{
    let registry_ref = RegistryRef::of(&registry);
    let last = registry_ref.as_ref().and_then(EndedObservation::take_last);
    let observed = Arc::new(ObservedRegistry {
        registry: Box::new(registry),
        meter: meter.clone(),
        reading: SharedReading::new(Collected { last, gauges: HashMap::new(), has_ended: false }, 1),
        instruments: Mutex::default(),
        refreshing: Mutex::default(),
        has_thread: AtomicBool::new(false),
        is_told: OnceLock::new(),
    });
    // weak: the meter's provider owns the callback, and what is observed owns the meter
    let this = Arc::downgrade(&observed);
    // owned by the callback, and so by the provider
    let provider_lives = Arc::new(());
    let provider = Arc::downgrade(&provider_lives);
    let is_told = at_each_collection(meter, WATCHING_INSTRUMENT, move || {
        let _ = &provider_lives;
        this.upgrade().iter().for_each(|this| this.begin(WATCHING_CALLBACK));
    });
    let _ = observed.is_told.set(is_told);
    observed.refresh();
    RegistryObserver { observed, registry_ref, provider }
}

/// The observation of a [`Registry`] by a meter, from [`observe_registry`]. It ends when this is dropped: gauges then have
/// no values, and counters the sums that they had.
#[must_use = "the registry is observed until this is dropped"]
pub struct RegistryObserver {
    observed: Arc<ObservedRegistry>,
    /// `None` for a registry that later observations cannot recognise.
    registry_ref: Option<RegistryRef>,
    /// A reference that is alive as long as the provider of the meter.
    provider: Weak<()>,
}

impl RegistryObserver {
    /// Makes instruments for the names that are new in the registry, so that the next collection has their values.
    /// Costs a [`Registry::visit`]; waits for a collection that is under way.
    ///
    /// # Deadlocks
    /// In a callback of an instrument, as the SDK then holds the lock that making an instrument needs.
    pub fn refresh(&self) {
        self.observed.refresh();
    }
}

/// Adds to the counters what was counted since the last collection, and leaves the rest to a later observation. Not in a
/// callback of an instrument: see [`RegistryObserver::refresh`].
impl Drop for RegistryObserver {
    fn drop(&mut self) {
        let last = self.observed.end();
        if let (Some(registry), Some(last)) = (self.registry_ref.take(), last) {
            EndedObservation::keep(registry, Weak::clone(&self.provider), last);
        }
    }
}

impl fmt::Debug for RegistryObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryObserver")
            .field("instruments", &self.observed.instruments().made.len())
            .finish()
    }
}

/// A registry, the meter that observes it, and the instruments that were made for it.
struct ObservedRegistry {
    registry: Box<dyn Deref<Target = Registry> + Send + Sync>,
    meter: Meter,
    reading: SharedReading<Collected>,
    /// Taken for moments only, as callbacks wait for it.
    instruments: Mutex<Instruments>,
    /// Held while instruments are made, so that a refresh waits for those that another thread makes.
    refreshing: Mutex<()>,
    /// `true` while a thread makes instruments.
    has_thread: AtomicBool,
    /// `true` if the watching instrument tells the beginning of collections, which a view may drop.
    is_told: OnceLock<bool>,
}

/// The values of a collection.
struct Collected {
    /// All values when they were last read, from which the next increases of counters count.
    last: Option<Snapshot<RegistryValues>>,
    /// The values of gauges.
    gauges: HashMap<InstrumentKey, Series>,
    /// `true` once the observation has ended, after which nothing is read.
    has_ended: bool,
}

/// The instruments that were made, and their names in small letters: OpenTelemetry's do not depend on case.
#[derive(Default)]
struct Instruments {
    /// Also those that are being made.
    made: HashSet<InstrumentKey>,
    names: HashSet<String>,
    counters: HashMap<InstrumentKey, Counter<u64>>,
    /// The increases of counters that are not made yet.
    pending: HashMap<InstrumentKey, PendingCounter>,
}

/// The help text of a counter that is not made yet, and what it has counted by its attributes.
struct PendingCounter {
    help: Option<Cow<'static, str>>,
    increases: HashMap<Vec<KeyValue>, u64>,
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

    /// Adds the increase of a counter to the SDK's, or keeps it until that is made.
    fn count(&mut self, key: InstrumentKey, help: &str, attributes: Vec<KeyValue>, increase: u64) {
        match self.counters.get(&key) {
            Some(counter) => counter.add(increase, &attributes),
            None => {
                let new = || PendingCounter { help: non_empty(help), increases: HashMap::new() };
                let pending = self.pending.entry(key).or_insert_with(new);
                let sum = pending.increases.entry(attributes).or_default();
                *sum = sum.wrapping_add(increase);
            }
        }
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

/// The values of a gauge by their attributes, and those beyond the limit as one.
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
        (Value::Gauge(a), Value::Gauge(b)) => Value::Gauge(a.wrapping_add(b)),
        (Value::FloatGauge(a), Value::FloatGauge(b)) => Value::FloatGauge(a + b),
        (Value::Max(a), Value::Max(b)) => Value::Max(a.max(b)),
        (Value::Min(a), Value::Min(b)) => Value::Min(a.min(b)),
        (first, _) => first,
    }
}

impl ObservedRegistry {
    /// Reads the registry for a collection, of which `callback` is the first, and has instruments made for new names when
    /// the collection is over.
    fn begin(self: &Arc<Self>, callback: usize) {
        let read = |collected: &mut _| self.read(collected);
        let has_new = |collected: &Collected| {
            let instruments = self.instruments();
            let is_new = |key: &InstrumentKey| !instruments.made.contains(key);
            collected.gauges.keys().any(is_new) || instruments.pending.keys().any(is_new)
        };
        if !self.reading.with(callback, read, has_new) || self.has_thread.swap(true, Ordering::AcqRel) {
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
        self.registry.visit(|sample| {
            split(&sample, sample.value, |key, help, _, _, _| {
                if let Some(name) = self.instruments().add(&key) {
                    missing.push((key, name, non_empty(help)));
                }
            });
        });
        {
            // also for what was counted by entries that are gone
            let instruments = &mut *self.instruments();
            let pending: Vec<_> = instruments
                .pending
                .iter()
                .map(|(key, pending)| (key.clone(), pending.help.clone()))
                .collect();
            for (key, help) in pending {
                missing.extend(instruments.add(&key).map(|name| (key, name, help)));
            }
        }
        // with no lock that a callback takes: the SDK's, which this waits for, is held by those that call it
        missing.into_iter().for_each(|(key, name, help)| self.make(key, name, help));
    }

    /// Creates the SDK's instrument that exports the values of `key`, under `name`.
    fn make(self: &Arc<Self>, key: InstrumentKey, name: String, help: Option<Cow<'static, str>>) {
        macro_rules! make {
            ($instrument:ident, $Kind:ident) => {{
                let (this, callback) = (Arc::downgrade(self), self.reading.add_callback());
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
            Kind::Counter => self.make_counter(key, name, help),
            Kind::Gauge => make!(i64_observable_gauge, Gauge),
            Kind::FloatGauge => make!(f64_observable_gauge, FloatGauge),
            Kind::Max => make!(u64_observable_gauge, Max),
            Kind::Min => make!(u64_observable_gauge, Min),
        };
    }

    /// Creates the SDK's counter of `key`, under `name`, and adds to it what was counted before.
    fn make_counter(self: &Arc<Self>, key: InstrumentKey, name: String, help: Option<Cow<'static, str>>) {
        if self.is_told.get() == Some(&false) {
            // a view that drops the watching instrument has let this name pass, perhaps
            let (this, callback) = (Arc::downgrade(self), self.reading.add_callback());
            let begin = move || this.upgrade().iter().for_each(|this| this.begin(callback));
            self.meter.u64_observable_counter(name.clone()).with_callback(move |_| begin()).build();
        }
        let mut builder = self.meter.u64_counter(name);
        builder.description = help;
        builder.unit = key.unit.clone();
        let counter = build_direct(builder);
        let pending = {
            let mut instruments = self.instruments();
            let pending = instruments.pending.remove(&key);
            instruments.counters.insert(key, counter.clone());
            pending
        };
        for (attributes, increase) in pending.into_iter().flat_map(|pending| pending.increases) {
            counter.add(increase, &attributes);
        }
    }

    /// Ends the observation: adds what was counted since the last collection to the counters, and returns the values of the
    /// registry that these have.
    fn end(self: &Arc<Self>) -> Option<Snapshot<RegistryValues>> {
        let mut last = None;
        let read = |collected: &mut Collected| {
            self.read(collected);
            last = collected.last.take();
            collected.has_ended = true;
        };
        self.reading.with(WATCHING_CALLBACK, read, |_| ());
        if !self.instruments().pending.is_empty() {
            self.refresh();
        }
        last
    }

    /// Passes the values of an instrument to `sink`; none after the observation's end.
    fn observe(
        this: &Weak<Self>,
        callback: usize,
        key: &InstrumentKey,
        mut sink: impl FnMut(&Value, &[KeyValue]),
    ) {
        let Some(this) = this.upgrade() else { return };
        let read = |collected: &mut _| this.read(collected);
        this.reading.with(callback, read, |collected| {
            let Some(series) = collected.gauges.get(key) else { return };
            let values = series.values.iter().map(|(attributes, value)| (value, &**attributes));
            let overflow_attributes = [overflow_attribute()];
            let overflow = series.overflow.iter().map(|value| (value, &overflow_attributes[..]));
            let all = values.chain(overflow).filter(|(value, _)| **value != Value::Min(Min::IDENTITY));
            all.for_each(|(value, attributes)| sink(value, attributes));
        });
    }

    /// Reads the registry, and adds to the counters what was counted since it was last read.
    fn read(&self, collected: &mut Collected) {
        collected.gauges.clear();
        if collected.has_ended {
            return;
        }
        let snapshot = self.registry.snapshot();
        // values of a registry always have a difference
        let since = collected.last.as_ref().and_then(|last| snapshot.since(last).ok());
        let changes = since.as_ref().map_or(snapshot.values(), |change| change.delta());
        let mut instruments = self.instruments();
        // the change of each value is at its position
        for (sample, change) in snapshot.values().iter().zip(changes.iter()) {
            split(&sample, change.value, |key, help, attributes, value, change| match (&value, change) {
                (Value::Counter(value), Value::Counter(change)) => {
                    instruments.count(key, help, attributes, increase(*value, change));
                }
                _ => collected.gauges.entry(key).or_default().add(attributes, value),
            });
        }
        drop(instruments);
        collected.last = Some(snapshot);
    }

    fn instruments(&self) -> MutexGuard<'_, Instruments> {
        self.instruments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the increase of a counter by its value and the change of it, by the rule of [`Snapshot::increase_since`]: where
/// the value went down, the counter was reset.
fn increase(value: u64, change: u64) -> u64 {
    if change.cast_signed() < 0 { value } else { change }
}

/// Calls `sink` with each number of a registry's value that an instrument can have: the instrument, its help text, the
/// attributes, the number, and the change of it.
fn split(
    sample: &Sample<'_>,
    change: &Value,
    mut sink: impl FnMut(InstrumentKey, &str, Vec<KeyValue>, Value, Value),
) {
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
    if let (Value::Average(average), Value::Average(change)) = (sample.value, change) {
        let count = [average, change].map(|average| Value::Counter(average.count()));
        let sum = [average, change].map(|average| Value::Counter(average.sum()));
        for (part, unit, [value, change]) in [("count", "", count), ("sum", unit, sum)] {
            sink(key(Some(part), Kind::Counter, unit), help, attributes.clone(), value, change);
        }
    } else if let Some(kind) = Kind::of(sample.value) {
        sink(key(part, kind, unit), help, attributes, sample.value.clone(), change.clone());
    }
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
