//! The instruments that count per CPU.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundSyncInstrument, SyncInstrument};
use statctr::{Registry, SharedCounter};
use statctr_facade::SeriesMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// The largest number of attribute sets of an instrument that are counted per CPU, and of an observed array, or a gauge of
/// an observed registry, that have values of their own.
pub const CARDINALITY_LIMIT: usize = 2000;

/// Returns the only attribute, `otel.metric.overflow=true` by the specification, of the value that stands for all
/// attribute sets of an observed array or gauge beyond [`CARDINALITY_LIMIT`].
pub(crate) fn overflow_attribute() -> KeyValue {
    KeyValue::new("otel.metric.overflow", true)
}

/// A per-CPU statistic of one attribute set (counter, gauge or floating-point gauge) to which an instrument adds values
/// of type `T`.
pub(crate) trait Cell<T>: Sized + Send + Sync + 'static {
    /// A reference to the cell's word that a bound instrument keeps, where that saves loads.
    type Bound: Send + Sync + 'static;

    fn zero() -> statctr::Result<Self>;
    fn add(&self, value: T);
    fn read(&self) -> T;
    fn bind(&self) -> Self::Bound;
    fn add_bound(&self, bound: &Self::Bound, value: T);

    /// Returns `true` if values that are added to the cell later keep their digits beside this one; others go to the
    /// SDK's counter at once.
    #[inline(always)]
    fn fits(_value: T) -> bool {
        true
    }

    /// Returns `true` if the SDK's counter counts the value.
    fn is_counted(_value: T) -> bool {
        true
    }

    fn sum(first: T, second: T) -> T;
    fn difference(first: T, second: T) -> T;
}

impl Cell<u64> for SharedCounter {
    type Bound = SharedCounter;

    fn zero() -> statctr::Result<Self> {
        SharedCounter::new(0)
    }

    fn bind(&self) -> SharedCounter {
        self.clone()
    }

    #[inline(always)]
    fn add_bound(&self, bound: &SharedCounter, value: u64) {
        bound.add(value);
    }

    #[inline(always)]
    fn add(&self, value: u64) {
        self.add(value);
    }

    fn read(&self) -> u64 {
        self.counter().read()
    }

    fn sum(first: u64, second: u64) -> u64 {
        first.wrapping_add(second)
    }

    fn difference(first: u64, second: u64) -> u64 {
        first.wrapping_sub(second)
    }
}

impl Cell<i64> for statctr::Gauge {
    type Bound = ();

    fn bind(&self) {}

    #[inline(always)]
    fn add_bound(&self, (): &(), value: i64) {
        self.add(value);
    }

    fn zero() -> statctr::Result<Self> {
        statctr::Gauge::new(0)
    }

    #[inline(always)]
    fn add(&self, value: i64) {
        self.add(value);
    }

    fn read(&self) -> i64 {
        self.read()
    }

    fn sum(first: i64, second: i64) -> i64 {
        first.wrapping_add(second)
    }

    fn difference(first: i64, second: i64) -> i64 {
        first.wrapping_sub(second)
    }
}

/// The smallest floating-point value that is added to the SDK's counter at once, 2⁴⁰: it takes thousands below it until
/// a sum has no room for a 1 (2⁵³).
const FLOAT_LIMIT: f64 = (1u64 << 40) as f64;

impl Cell<f64> for statctr::FloatGauge {
    type Bound = ();

    fn bind(&self) {}

    #[inline(always)]
    fn add_bound(&self, (): &(), value: f64) {
        self.add(value);
    }

    fn zero() -> statctr::Result<Self> {
        statctr::FloatGauge::new(0.0)
    }

    #[inline(always)]
    fn add(&self, value: f64) {
        self.add(value);
    }

    fn read(&self) -> f64 {
        self.read()
    }

    /// The cell adds up from its first value on, where the SDK's counter with delta temporality begins anew at each
    /// collection: one value of 10¹⁶ would swallow ones for ever, and two of `f64::MAX` all.
    #[inline(always)]
    fn fits(value: f64) -> bool {
        value.abs() < FLOAT_LIMIT
    }

    /// Refuses NaN and infinities, after which no sum is finite again; so does `Sum::call` of opentelemetry_sdk 0.33.1
    /// (src/metrics/internal/sum.rs), which counts negative values.
    fn is_counted(value: f64) -> bool {
        value.is_finite()
    }

    fn sum(first: f64, second: f64) -> f64 {
        first + second
    }

    fn difference(first: f64, second: f64) -> f64 {
        first - second
    }
}

/// The state of a cell when what was added to it was last recorded in the SDK's counter.
#[derive(Clone, Copy)]
struct Recorded<T> {
    /// The cell's value.
    value: T,
    /// The sum of all that was recorded: in floating point rounding may leave it beside the value.
    sum: T,
}

impl<T: Copy + PartialEq + Default> Recorded<T> {
    fn nothing() -> Recorded<T> {
        Recorded { value: T::default(), sum: T::default() }
    }

    /// Adds to the SDK's counter, by `add_to_sdk`, what was added to a cell since.
    fn record<C: Cell<T>>(&mut self, cell: &C, add_to_sdk: impl FnOnce(T)) {
        let value = cell.read();
        if value != self.value {
            self.record_value::<C>(value, add_to_sdk);
        }
    }

    fn record_value<C: Cell<T>>(&mut self, value: T, add_to_sdk: impl FnOnce(T)) {
        let added = C::difference(value, self.sum);
        if C::is_counted(added) {
            add_to_sdk(added);
            *self = Recorded { value, sum: C::sum(self.sum, added) };
        }
    }
}

/// The cell of one attribute set, and how much of it the SDK's counter has.
///
/// The SDK keeps values of the sets that come first, up to a limit; all others share one. With delta temporality it
/// forgets a set if nothing is added between two collections (`ValueMap` in src/metrics/internal/mod.rs of
/// opentelemetry_sdk 0.33.1). A set that reached the SDK's counter only at a collection would find the limit reached by
/// sets without cells. Therefore its first value after each collection goes to the SDK's counter at once, which thus
/// gets the sets in the order in which they come; the values after that go to the cell. In a child of fork all do.
struct Series<T, C> {
    /// [`NEW`], [`IN_SDK`] or [`COLLECTED`]. Beside the cell, as an update loads both.
    state: AtomicU8,
    cell: C,
    /// The process that made the series.
    process: u32,
    attributes: Arc<[KeyValue]>,
    add_to_sdk: AddToSdk<T>,
    recorded: Mutex<Recorded<T>>,
}

/// The state of a series of which the SDK's counter never had a value.
const NEW: u8 = 0;
/// The state of a series of which the SDK's counter got a value since the last collection.
const IN_SDK: u8 = 1;
/// The state of a series of which the SDK's counter got no value since the last collection.
const COLLECTED: u8 = 2;

impl<T: Copy + PartialEq + Default, C: Cell<T>> Series<T, C> {
    /// Creates the series of these attributes for an instrument that `process` made.
    fn new(
        process: u32,
        attributes: Arc<[KeyValue]>,
        add_to_sdk: AddToSdk<T>,
    ) -> statctr::Result<Series<T, C>> {
        let recorded = Mutex::new(Recorded::nothing());
        Ok(Series { state: AtomicU8::new(NEW), cell: C::zero()?, process, attributes, add_to_sdk, recorded })
    }

    /// Returns `true` if the SDK's counter got a value of the series since the last collection, so that further ones go
    /// to the cell.
    #[inline(always)]
    fn is_in_sdk(&self) -> bool {
        self.state.load(Ordering::Relaxed) == IN_SDK
    }

    #[inline(always)]
    fn add(&self, value: T) {
        if self.is_in_sdk() { self.cell.add(value) } else { self.add_to_sdk(value) }
    }

    /// Adds to the SDK's counter the first value since the last collection, or one that does not fit into the cell.
    #[cold]
    #[inline(never)]
    fn add_to_sdk(&self, value: T) {
        if self.process == std::process::id() {
            (self.add_to_sdk)(value, &self.attributes);
        } else {
            // In a child of fork the SDK's locks may be held by a thread that only the parent has, as by a collection.
            self.cell.add(value);
        }
        // Behind the addition: until then other threads' values go to the SDK's counter, too, and not to the cell alone.
        // If a collection comes between, the set reaches the SDK's counter at the next one.
        self.state.store(IN_SDK, Ordering::Relaxed);
    }

    fn bind(self: &Arc<Self>) -> Bound<T, C> {
        // the SDK's own `bind` has the set counted from then on, too
        if self.state.load(Ordering::Relaxed) == NEW {
            self.add_to_sdk(T::default());
        }
        Bound { bound: self.cell.bind(), series: Arc::clone(self) }
    }

    /// Adds to the SDK's counter what was added to the cell since it was last recorded.
    fn record(&self) {
        if self.is_in_sdk() {
            self.state.store(COLLECTED, Ordering::Relaxed);
        }
        // held until the SDK has the value, as another reader's collection relies on what it finds recorded
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.record(&self.cell, |added| (self.add_to_sdk)(added, &self.attributes));
    }
}

/// The function that adds a value to the SDK's counter, by attributes.
type AddToSdk<T> = Arc<dyn Fn(T, &[KeyValue]) + Send + Sync>;

/// A counter of which a collection records in the SDK's counter what was added since the one before.
pub(crate) trait DeferredCounter: Send + Sync {
    /// Records in the SDK's counter what was added since the last call, for each attribute set.
    fn record(&self);
}

/// An OpenTelemetry instrument that counts per CPU: a statistic (cell) for each attribute set.
///
/// OpenTelemetry's handles point to it. The cell of the empty attribute set is a part of it, so that its updates follow
/// a single pointer.
pub(crate) struct Instrument<T, C> {
    /// The cell without attributes, made by its first update.
    plain: OnceLock<C>,
    /// The cells with attributes, by attribute set: sorted by key, each key once.
    series: SeriesMap<Arc<[KeyValue]>, Arc<Series<T, C>>>,
    /// `true` once there is no room for further cells.
    full: AtomicBool,
    hasher: foldhash::fast::RandomState,
    /// The SDK's counter, which gets at once what has no cell.
    add_to_sdk: AddToSdk<T>,
    recorded_plain: Mutex<Option<Recorded<T>>>,
    /// The process that made the instrument.
    process: u32,
    /// The instrument itself, for handles that are bound to no attributes.
    this: Weak<Instrument<T, C>>,
}

impl<T: Copy + PartialEq + Default, C: Cell<T>> Instrument<T, C> {
    /// Creates an instrument whose sums go to a counter of the SDK's, to which `add_to_sdk` adds.
    pub(crate) fn new(add_to_sdk: AddToSdk<T>) -> Arc<Instrument<T, C>> {
        Arc::new_cyclic(|this| Instrument {
            plain: OnceLock::new(),
            series: SeriesMap::new(CARDINALITY_LIMIT),
            full: AtomicBool::new(false),
            hasher: foldhash::fast::RandomState::default(),
            add_to_sdk,
            recorded_plain: Mutex::new(None),
            process: std::process::id(),
            this: Weak::clone(this),
        })
    }

    /// Adds to the cell without attributes.
    #[inline(always)]
    fn add_plain(&self, value: T) {
        match self.plain.get() {
            Some(cell) => cell.add(value),
            None => self.add_first(value),
        }
    }

    /// Makes the cell without attributes, and adds to it; to the SDK's counter where the system has no memory.
    #[cold]
    #[inline(never)]
    fn add_first(&self, value: T) {
        if let Ok(cell) = C::zero() {
            // A child forked in the middle of `set` would wait for it for ever: a fork waits for this lock. Where another
            // thread was faster that one's cell stays.
            let _ = Registry::global().while_locked(|| self.plain.set(cell));
        }
        match self.plain.get() {
            Some(cell) => cell.add(value),
            None => (self.add_to_sdk)(value, &[]),
        }
    }

    /// Adds a value that fits into no cell to the SDK's counter, if it counts such a value.
    #[cold]
    #[inline(never)]
    fn add_large(&self, value: T, attributes: &[KeyValue]) {
        if !C::is_counted(value) {
            return;
        }
        // in a child of fork as in `Series::add_to_sdk`
        match (self.process == std::process::id(), attributes) {
            (true, _) => (self.add_to_sdk)(value, attributes),
            (false, []) => self.add_plain(value),
            (false, _) => self.add_to(value, attributes),
        }
    }

    /// Adds to the cell of these attributes, of which there are some.
    #[inline(never)]
    fn add_to(&self, value: T, attributes: &[KeyValue]) {
        match self.series(attributes) {
            Some(series) => series.add(value),
            None => (self.add_to_sdk)(value, attributes),
        }
    }

    /// Returns the series of these attributes, of which there are some; `None` where they have no cell.
    #[inline]
    fn series(&self, attributes: &[KeyValue]) -> Option<&Arc<Series<T, C>>> {
        let hash = self.hash(attributes);
        let series = self.series.get(hash, |there| is_permutation(there, attributes));
        series.or_else(|| self.make(attributes))
    }

    /// Returns a hash that does not depend on the order.
    #[inline]
    fn hash(&self, attributes: &[KeyValue]) -> u64 {
        let hash_one = |attribute| self.hasher.hash_one(attribute);
        attributes.iter().map(hash_one).fold(0, u64::wrapping_add)
    }

    /// Returns the series of attributes that were not found as they are: some may be given twice. `None` beyond the
    /// limit, and where the system has no memory.
    #[cold]
    fn make(&self, attributes: &[KeyValue]) -> Option<&Arc<Series<T, C>>> {
        // without a key twice they are the set that was not found, of which nothing is made at the limit
        if self.full.load(Ordering::Relaxed) && differ_in_keys(attributes) {
            return None;
        }
        let attributes = canonical(attributes);
        let hash = self.hash(&attributes);
        let is = |there: &Arc<[KeyValue]>| is_permutation(there, &attributes);
        if let Some(series) = self.series.get(hash, is) {
            return Some(series);
        }
        // at the limit nothing is made for each further set
        if self.full.load(Ordering::Relaxed) {
            return None;
        }
        let attributes: Arc<[KeyValue]> = attributes.as_slice().into();
        let series = Series::new(self.process, Arc::clone(&attributes), Arc::clone(&self.add_to_sdk)).ok()?;
        let added = self.series.get_or_insert(hash, is, || (attributes, Arc::new(series)));
        if added.is_none() {
            self.full.store(true, Ordering::Relaxed);
        }
        added
    }

    /// Adds to the SDK's counter what was added to the cell without attributes since it was last recorded; the first
    /// time also 0.
    fn record_plain(&self, cell: &C) {
        let add_to_sdk = |added| (self.add_to_sdk)(added, &[]);
        // as in `Series::record`
        let mut recorded = self.recorded_plain.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *recorded {
            Some(recorded) => recorded.record(cell, add_to_sdk),
            None => recorded.insert(Recorded::nothing()).record_value::<C>(cell.read(), add_to_sdk),
        }
    }
}

impl<T, C> DeferredCounter for Instrument<T, C>
where
    T: Copy + PartialEq + Default + Send + Sync,
    C: Cell<T>,
{
    fn record(&self) {
        if let Some(plain) = self.plain.get() {
            self.record_plain(plain);
        }
        self.series.iter().for_each(|(_, series)| series.record());
    }
}

impl<T, C> SyncInstrument<T> for Instrument<T, C>
where
    T: Copy + PartialEq + Default + Send + Sync + 'static,
    C: Cell<T>,
{
    fn measure(&self, measurement: T, attributes: &[KeyValue]) {
        if !C::fits(measurement) {
            return self.add_large(measurement, attributes);
        }
        if !attributes.is_empty() {
            unlikely();
            return self.add_to(measurement, attributes);
        }
        self.add_plain(measurement);
    }

    fn bind(&self, attributes: &[KeyValue]) -> Box<dyn BoundSyncInstrument<T> + Send + Sync> {
        // instruments are made in an `Arc`, so that this is there
        match (self.this.upgrade(), attributes) {
            (Some(this), []) => Box::new(BoundPlain(this)),
            _ => match self.series(attributes) {
                Some(series) => Box::new(series.bind()),
                None => Box::new(BoundToSdk(Arc::clone(&self.add_to_sdk), attributes.to_vec())),
            },
        }
    }
}

/// Marks the path of its caller as the one that jumps: what it costs to look attributes up hides a jump, an
/// update without attributes takes five cycles.
#[cold]
fn unlikely() {}

/// The cell of one set of attributes.
struct Bound<T, C: Cell<T>> {
    bound: C::Bound,
    series: Arc<Series<T, C>>,
}

impl<T, C> BoundSyncInstrument<T> for Bound<T, C>
where
    T: Copy + PartialEq + Default + Send + Sync,
    C: Cell<T>,
{
    fn measure(&self, measurement: T) {
        if self.series.is_in_sdk() && C::fits(measurement) {
            self.series.cell.add_bound(&self.bound, measurement);
        } else if C::is_counted(measurement) {
            self.series.add_to_sdk(measurement);
        }
    }
}

/// The cell without attributes.
struct BoundPlain<T, C>(Arc<Instrument<T, C>>);

impl<T, C> BoundSyncInstrument<T> for BoundPlain<T, C>
where
    T: Copy + PartialEq + Default + Send + Sync,
    C: Cell<T>,
{
    fn measure(&self, measurement: T) {
        if C::fits(measurement) {
            self.0.add_plain(measurement);
        } else {
            self.0.add_large(measurement, &[]);
        }
    }
}

/// The SDK's counter with attributes that have no cell. No bound instrument of the SDK's, which without a feature of its
/// own drops what is added.
struct BoundToSdk<T>(AddToSdk<T>, Vec<KeyValue>);

impl<T> BoundSyncInstrument<T> for BoundToSdk<T> {
    fn measure(&self, measurement: T) {
        (self.0)(measurement, &self.1);
    }
}

/// The largest number of attributes that are compared each with each other, and not sorted.
const FEW_ATTRIBUTES: usize = 16;

/// Returns `true` if `there`, which is [`canonical`], has the same attributes in whatever order.
#[inline]
fn is_permutation(there: &[KeyValue], attributes: &[KeyValue]) -> bool {
    if there.len() != attributes.len() {
        return false;
    }
    if there == attributes {
        return true;
    }
    if there.len() > FEW_ATTRIBUTES {
        return is_sorted_form(there, attributes);
    }
    // as many, all different, and each among the others: therefore those are all of them
    there.iter().all(|attribute| attributes.contains(attribute))
}

/// Returns `true` if `there` has these attributes, of which there are many, sorted by their keys.
#[cold]
fn is_sorted_form(there: &[KeyValue], attributes: &[KeyValue]) -> bool {
    let mut sorted: Vec<&KeyValue> = attributes.iter().collect();
    sorted.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    // a key that is given twice is there once, and the next one differs
    there.iter().eq(sorted)
}

/// Returns `true` if the attributes are few and no key is given twice.
fn differ_in_keys(attributes: &[KeyValue]) -> bool {
    let is_first = |(index, attribute): (usize, &KeyValue)| {
        attributes[..index].iter().all(|earlier| earlier.key != attribute.key)
    };
    attributes.len() <= FEW_ATTRIBUTES && attributes.iter().enumerate().all(is_first)
}

/// Returns the attributes sorted by their keys; of those with one key the last one.
fn canonical(attributes: &[KeyValue]) -> Vec<KeyValue> {
    let mut sorted: Vec<KeyValue> = attributes.iter().rev().cloned().collect();
    // stable: of equal keys the last one given comes first, and stays
    sorted.sort_by(|a, b| a.key.cmp(&b.key));
    sorted.dedup_by(|later, first| later.key == first.key);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_a_child_of_fork_go_to_the_cell_alone() {
        let own = std::process::id();
        // a process of another number is one that the maker of the series forked
        for (process, at_once) in [(own, 3), (own.wrapping_add(1), 0)] {
            let sdk = Arc::new(Mutex::new(0));
            let sum = Arc::clone(&sdk);
            let add_to_sdk = move |value: u64, _: &[KeyValue]| *sum.lock().expect("not poisoned") += value;
            let series = Series::<u64, SharedCounter>::new(process, Arc::from([]), Arc::new(add_to_sdk));
            let series = series.expect("memory");
            [3, 4, 5].into_iter().for_each(|value| series.add(value));
            assert_eq!((*sdk.lock().expect("not poisoned"), series.cell.read()), (at_once, 12 - at_once));
            series.record();
            assert_eq!(*sdk.lock().expect("not poisoned"), 12);
        }
    }
}
