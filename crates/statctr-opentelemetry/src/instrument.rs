//! The instruments that count per CPU.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundSyncInstrument, SyncInstrument};
use statctr::SharedCounter;
use statctr_facade::SeriesMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// A reference that keeps the cell and reaches its word with as few loads as can be.
    type Bound: Send + Sync + 'static;

    fn zero() -> statctr::Result<Self>;
    fn add(&self, value: T);
    fn read(&self) -> T;
    fn bind(cell: &Arc<Self>) -> Self::Bound;
    fn add_bound(bound: &Self::Bound, value: T);

    /// Returns `true` if the cell's sum stays a number when this value is added.
    #[inline(always)]
    fn accepts(_value: T) -> bool {
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

    fn bind(cell: &Arc<Self>) -> Self::Bound {
        SharedCounter::clone(cell)
    }

    #[inline(always)]
    fn add_bound(bound: &Self::Bound, value: u64) {
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
    type Bound = Arc<statctr::Gauge>;

    fn bind(cell: &Arc<Self>) -> Self::Bound {
        Arc::clone(cell)
    }

    #[inline(always)]
    fn add_bound(bound: &Self::Bound, value: i64) {
        bound.add(value);
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

impl Cell<f64> for statctr::FloatGauge {
    type Bound = Arc<statctr::FloatGauge>;

    fn bind(cell: &Arc<Self>) -> Self::Bound {
        Arc::clone(cell)
    }

    #[inline(always)]
    fn add_bound(bound: &Self::Bound, value: f64) {
        bound.add(value);
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

    /// Refuses NaN and infinities, after which no sum is finite again; so does `Sum::call` of opentelemetry_sdk 0.33.1
    /// (src/metrics/internal/sum.rs), which counts negative values.
    #[inline(always)]
    fn accepts(value: f64) -> bool {
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

/// The cell of one attribute set, and how much of it the SDK's counter has.
struct Series<T, C> {
    cell: Arc<C>,
    recorded: Mutex<Option<Recorded<T>>>,
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
    series: SeriesMap<Vec<KeyValue>, Series<T, C>>,
    /// `true` once there is no room for further cells.
    full: AtomicBool,
    hasher: foldhash::fast::RandomState,
    /// The SDK's counter, which gets at once what has no cell.
    add_to_sdk: AddToSdk<T>,
    recorded_plain: Mutex<Option<Recorded<T>>>,
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
            // where another thread was faster that one's stays
            let _ = self.plain.set(cell);
        }
        match self.plain.get() {
            Some(cell) => cell.add(value),
            None => (self.add_to_sdk)(value, &[]),
        }
    }

    /// Adds to the cell of these attributes, of which there are some.
    #[inline(never)]
    fn add_to(&self, value: T, attributes: &[KeyValue]) {
        match self.cell(attributes) {
            Some(cell) => cell.add(value),
            None => (self.add_to_sdk)(value, attributes),
        }
    }

    /// Returns the cell of these attributes, of which there are some; `None` where they have none.
    #[inline]
    fn cell(&self, attributes: &[KeyValue]) -> Option<&Arc<C>> {
        let hash = self.hash(attributes);
        match self.series.get(hash, |there| is_permutation(there, attributes)) {
            Some(series) => Some(&series.cell),
            None => self.make(attributes),
        }
    }

    /// Returns a hash that does not depend on the order.
    #[inline]
    fn hash(&self, attributes: &[KeyValue]) -> u64 {
        let hash_one = |attribute| self.hasher.hash_one(attribute);
        attributes.iter().map(hash_one).fold(0, u64::wrapping_add)
    }

    /// Returns the cell of attributes that were not found as they are: some may be given twice. `None` beyond the limit,
    /// and where the system has no memory.
    #[cold]
    fn make(&self, attributes: &[KeyValue]) -> Option<&Arc<C>> {
        let attributes = canonical(attributes);
        let hash = self.hash(&attributes);
        let is = |there: &Vec<KeyValue>| is_permutation(there, &attributes);
        if let Some(series) = self.series.get(hash, is) {
            return Some(&series.cell);
        }
        // at the limit nothing is made for each further set
        if self.full.load(Ordering::Relaxed) {
            return None;
        }
        let series = Series { cell: Arc::new(C::zero().ok()?), recorded: Mutex::new(None) };
        let added = self.series.get_or_insert(hash, is, || (attributes.clone(), series));
        if added.is_none() {
            self.full.store(true, Ordering::Relaxed);
        }
        added.map(|series| &series.cell)
    }

    /// Adds to the SDK's counter what was added to a cell since it was last recorded; the first time also 0.
    fn record_cell(&self, cell: &C, recorded: &Mutex<Option<Recorded<T>>>, attributes: &[KeyValue]) {
        // held until the SDK has the value, as another reader's collection relies on what it finds recorded
        let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let value = cell.read();
        if recorded.is_some_and(|recorded| recorded.value == value) {
            return;
        }
        let sum = recorded.map_or_else(T::default, |recorded| recorded.sum);
        let added = C::difference(value, sum);
        if C::accepts(added) {
            (self.add_to_sdk)(added, attributes);
            *recorded = Some(Recorded { value, sum: C::sum(sum, added) });
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
            self.record_cell(plain, &self.recorded_plain, &[]);
        }
        for (attributes, series) in self.series.iter() {
            self.record_cell(&series.cell, &series.recorded, attributes);
        }
    }
}

impl<T, C> SyncInstrument<T> for Instrument<T, C>
where
    T: Copy + PartialEq + Default + Send + Sync + 'static,
    C: Cell<T>,
{
    fn measure(&self, measurement: T, attributes: &[KeyValue]) {
        if !C::accepts(measurement) {
            return;
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
            _ => match self.cell(attributes) {
                Some(cell) => Box::new(Bound::<T, C>(C::bind(cell))),
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
struct Bound<T, C: Cell<T>>(C::Bound);

impl<T: Copy, C: Cell<T>> BoundSyncInstrument<T> for Bound<T, C> {
    fn measure(&self, measurement: T) {
        if C::accepts(measurement) {
            C::add_bound(&self.0, measurement);
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
        if C::accepts(measurement) {
            self.0.add_plain(measurement);
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

/// Returns `true` if `there`, whose keys differ, has the same attributes in whatever order.
#[inline]
fn is_permutation(there: &[KeyValue], attributes: &[KeyValue]) -> bool {
    // as many, all different, and each among the others: therefore those are all of them
    there.len() == attributes.len()
        && (there == attributes || there.iter().all(|attribute| attributes.contains(attribute)))
}

/// Returns the attributes sorted by their keys; of those with one key the last one.
fn canonical(attributes: &[KeyValue]) -> Vec<KeyValue> {
    let mut sorted: Vec<KeyValue> = attributes.iter().rev().cloned().collect();
    // stable: of equal keys the last one given comes first, and stays
    sorted.sort_by(|a, b| a.key.cmp(&b.key));
    sorted.dedup_by(|later, first| later.key == first.key);
    sorted
}
