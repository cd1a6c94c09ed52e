//! The instruments that count per CPU.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, BoundSyncInstrument, SyncInstrument};
use statctr_facade::SeriesMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The most sets of attributes of an instrument, the one for the rest not included.
pub const CARDINALITY_LIMIT: usize = 2000;

/// A statistic that values of type `T` are added to.
pub(crate) trait Cell<T>: Sized + Send + Sync + 'static {
    fn zero() -> statctr::Result<Self>;
    fn add(&self, value: T);
    fn read(&self) -> T;
}

impl Cell<u64> for statctr::Counter {
    fn zero() -> statctr::Result<Self> {
        statctr::Counter::new(0)
    }

    #[inline(always)]
    fn add(&self, value: u64) {
        self.add(value);
    }

    fn read(&self) -> u64 {
        self.read()
    }
}

impl Cell<i64> for statctr::Gauge {
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
}

/// An instrument: a cell for each set of attributes. Clones are the same one.
pub(crate) struct Instrument<C>(Arc<Inner<C>>);

struct Inner<C> {
    /// The cell without attributes; `None` where the system had no memory for it.
    plain: OnceLock<Option<Arc<C>>>,
    /// The other cells, by their attributes: sorted by their keys, of which each is there once.
    cells: SeriesMap<Vec<KeyValue>, Arc<C>>,
    /// The cell for what is beyond the limit.
    overflow: Arc<C>,
    overflowed: AtomicBool,
    hasher: foldhash::fast::RandomState,
}

impl<C> Clone for Instrument<C> {
    fn clone(&self) -> Self {
        Instrument(Arc::clone(&self.0))
    }
}

impl<C> Instrument<C> {
    pub(crate) fn new<T>() -> statctr::Result<Instrument<C>>
    where
        C: Cell<T>,
    {
        Ok(Instrument(Arc::new(Inner {
            plain: OnceLock::new(),
            cells: SeriesMap::new(CARDINALITY_LIMIT),
            overflow: Arc::new(C::zero()?),
            overflowed: AtomicBool::new(false),
            hasher: foldhash::fast::RandomState::default(),
        })))
    }

    /// Hands each set of attributes and its value on.
    pub(crate) fn observe<T>(&self, observer: &dyn AsyncInstrument<T>)
    where
        C: Cell<T>,
    {
        if let Some(Some(plain)) = self.0.plain.get() {
            observer.observe(plain.read(), &[]);
        }
        for (attributes, cell) in self.0.cells.iter() {
            observer.observe(cell.read(), attributes);
        }
        if self.0.overflowed.load(Ordering::Relaxed) {
            observer.observe(self.0.overflow.read(), &[KeyValue::new("otel.metric.overflow", true)]);
        }
    }

    #[inline]
    fn cell<T>(&self, attributes: &[KeyValue]) -> &Arc<C>
    where
        C: Cell<T>,
    {
        if attributes.is_empty() {
            return match self.0.plain.get() {
                Some(Some(cell)) => cell,
                _ => self.make_plain(),
            };
        }
        let hash = self.hash(attributes);
        match self.0.cells.get(hash, |there| is_permutation(there, attributes)) {
            Some(cell) => cell,
            None => self.make(attributes),
        }
    }

    /// Returns a hash that does not depend on the order.
    #[inline]
    fn hash(&self, attributes: &[KeyValue]) -> u64 {
        let hash_one = |attribute| self.0.hasher.hash_one(attribute);
        attributes.iter().map(hash_one).fold(0, u64::wrapping_add)
    }

    #[cold]
    fn make_plain<T>(&self) -> &Arc<C>
    where
        C: Cell<T>,
    {
        let plain = self.0.plain.get_or_init(|| C::zero().ok().map(Arc::new));
        plain.as_ref().unwrap_or_else(|| self.overflow())
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
        if let Some(cell) = self.0.cells.get(hash, is) {
            return cell;
        }
        // at the limit nothing is made for each further set
        let full = self.0.overflowed.load(Ordering::Relaxed);
        let made = if full { None } else { C::zero().ok() };
        let added = made
            .and_then(|made| self.0.cells.get_or_insert(hash, is, || (attributes.clone(), Arc::new(made))));
        added.unwrap_or_else(|| self.overflow())
    }

    fn overflow(&self) -> &Arc<C> {
        self.0.overflowed.store(true, Ordering::Relaxed);
        &self.0.overflow
    }
}

impl<T, C: Cell<T>> SyncInstrument<T> for Instrument<C> {
    fn measure(&self, measurement: T, attributes: &[KeyValue]) {
        self.cell(attributes).add(measurement);
    }

    fn bind(&self, attributes: &[KeyValue]) -> Box<dyn BoundSyncInstrument<T> + Send + Sync> {
        Box::new(Bound(Arc::clone(self.cell(attributes))))
    }
}

/// The cell of one set of attributes.
struct Bound<C>(Arc<C>);

impl<T, C: Cell<T>> BoundSyncInstrument<T> for Bound<C> {
    fn measure(&self, measurement: T) {
        self.0.add(measurement);
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
