//! The instruments that count per CPU.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, BoundSyncInstrument, SyncInstrument};
use statctr::SharedCounter;
use statctr_facade::SeriesMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// The largest number of attribute sets of an instrument; further sets are counted together in one overflow set, which
/// is not included in the number.
pub const CARDINALITY_LIMIT: usize = 2000;

/// Returns the only attribute, `otel.metric.overflow=true` by the specification, of the value that stands for all
/// attribute sets of an instrument beyond [`CARDINALITY_LIMIT`].
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
}

/// An OpenTelemetry instrument that counts per CPU: a statistic (cell) for each attribute set.
///
/// OpenTelemetry's handles point to it. The cell of the empty attribute set is a part of it, so that its updates follow
/// a single pointer.
pub(crate) struct Instrument<C> {
    /// The cell without attributes, made by its first update.
    plain: OnceLock<C>,
    /// The cells with attributes, by attribute set: sorted by key, each key once.
    cells: SeriesMap<Vec<KeyValue>, Arc<C>>,
    /// The cell for attribute sets beyond the limit.
    overflow: Arc<C>,
    overflowed: AtomicBool,
    hasher: foldhash::fast::RandomState,
    /// The instrument itself, for handles that are bound to no attributes.
    this: Weak<Instrument<C>>,
}

impl<C> Instrument<C> {
    pub(crate) fn new<T>() -> statctr::Result<Arc<Instrument<C>>>
    where
        C: Cell<T>,
    {
        let overflow = Arc::new(C::zero()?);
        Ok(Arc::new_cyclic(|this| Instrument {
            plain: OnceLock::new(),
            cells: SeriesMap::new(CARDINALITY_LIMIT),
            overflow,
            overflowed: AtomicBool::new(false),
            hasher: foldhash::fast::RandomState::default(),
            this: Weak::clone(this),
        }))
    }

    /// Reports each attribute set with its present value, summed over the CPUs, to an OpenTelemetry observer.
    pub(crate) fn observe<T>(&self, observer: &dyn AsyncInstrument<T>)
    where
        C: Cell<T>,
    {
        if let Some(plain) = self.plain.get() {
            observer.observe(plain.read(), &[]);
        }
        for (attributes, cell) in self.cells.iter() {
            observer.observe(cell.read(), attributes);
        }
        if self.overflowed.load(Ordering::Relaxed) {
            observer.observe(self.overflow.read(), &[overflow_attribute()]);
        }
    }

    /// Adds to the cell without attributes.
    #[inline(always)]
    fn add_plain<T>(&self, value: T)
    where
        C: Cell<T>,
    {
        match self.plain.get() {
            Some(cell) => cell.add(value),
            None => self.add_first(value),
        }
    }

    /// Makes the cell without attributes, and adds to it; to the cell of the rest where the system has no
    /// memory.
    #[cold]
    #[inline(never)]
    fn add_first<T>(&self, value: T)
    where
        C: Cell<T>,
    {
        if let Ok(cell) = C::zero() {
            // where another thread was faster that one's stays
            let _ = self.plain.set(cell);
        }
        self.plain.get().unwrap_or_else(|| self.overflow()).add(value);
    }

    /// Adds to the cell of these attributes, of which there are some.
    #[inline(never)]
    fn add_to<T>(&self, value: T, attributes: &[KeyValue])
    where
        C: Cell<T>,
    {
        self.cell(attributes).add(value);
    }

    /// Returns the cell of these attributes, of which there are some.
    #[inline]
    fn cell<T>(&self, attributes: &[KeyValue]) -> &Arc<C>
    where
        C: Cell<T>,
    {
        let hash = self.hash(attributes);
        match self.cells.get(hash, |there| is_permutation(there, attributes)) {
            Some(cell) => cell,
            None => self.make(attributes),
        }
    }

    /// Returns a hash that does not depend on the order.
    #[inline]
    fn hash(&self, attributes: &[KeyValue]) -> u64 {
        let hash_one = |attribute| self.hasher.hash_one(attribute);
        attributes.iter().map(hash_one).fold(0, u64::wrapping_add)
    }

    /// Returns the cell of attributes that were not found as they are: some may be given twice.
    #[cold]
    fn make<T>(&self, attributes: &[KeyValue]) -> &Arc<C>
    where
        C: Cell<T>,
    {
        let attributes = canonical(attributes);
        let hash = self.hash(&attributes);
        let is = |there: &Vec<KeyValue>| is_permutation(there, &attributes);
        if let Some(cell) = self.cells.get(hash, is) {
            return cell;
        }
        // at the limit nothing is made for each further set
        let full = self.overflowed.load(Ordering::Relaxed);
        let made = if full { None } else { C::zero().ok() };
        let added =
            made.and_then(|made| self.cells.get_or_insert(hash, is, || (attributes.clone(), Arc::new(made))));
        added.unwrap_or_else(|| self.overflow())
    }

    fn overflow(&self) -> &Arc<C> {
        self.overflowed.store(true, Ordering::Relaxed);
        &self.overflow
    }
}

impl<T: Copy + 'static, C: Cell<T>> SyncInstrument<T> for Instrument<C> {
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
        match self.this.upgrade() {
            Some(this) if attributes.is_empty() => Box::new(BoundPlain(this)),
            // instruments are made in an `Arc`, so that this is one with attributes
            _ => Box::new(Bound::<T, C>(C::bind(self.cell(attributes)))),
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
struct BoundPlain<C>(Arc<Instrument<C>>);

impl<T: Copy, C: Cell<T>> BoundSyncInstrument<T> for BoundPlain<C> {
    fn measure(&self, measurement: T) {
        if C::accepts(measurement) {
            self.0.add_plain(measurement);
        }
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
