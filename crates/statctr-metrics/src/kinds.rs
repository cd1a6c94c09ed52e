//! The three kinds of series, and the handles to them.

use metrics::{CounterFn, GaugeFn, HistogramFn};
use statctr::{OnceArc, SharedCounter};
use statctr_facade::FloatHistogram;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Handles of a series that threads divide among them.
const STRIPES: usize = 16;

/// A series (a metric with its labels), and sixteen handles to it that threads share out among them.
///
/// The macros of `metrics` clone a handle for each update and drop it afterwards, both of which write its reference
/// count. So there are several handles on cache lines of their own, and threads use different ones.
pub(crate) struct Series<T> {
    series: T,
    /// Made on first use, without a lock: a child of `fork` would wait for a thread that it does not have, and a
    /// signal handler for the thread that it interrupted.
    handles: [OnceArc<Handle<T>>; STRIPES],
}

/// A clone of a series (a metric with its labels) that some of the threads update, with a reference count of its own,
/// on cache lines of its own: a counter's word is found from here without another pointer.
#[repr(align(128))]
pub(crate) struct Handle<T>(T);

impl<T: Clone> Series<T> {
    pub(crate) fn new(series: T) -> Series<T> {
        Series { series, handles: [const { OnceArc::new() }; STRIPES] }
    }

    /// Returns a reference-counted pointer to that one of the series' sixteen handles by which the calling thread
    /// updates the metric.
    pub(crate) fn handle(&self) -> Arc<Handle<T>> {
        self.handles[stripe()].get_or_make(|| Arc::new(Handle(self.series.clone())))
    }

    pub(crate) fn get(&self) -> &T {
        &self.series
    }
}

/// Returns the calling thread's number, modulo the number of stripes.
fn stripe() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) });
    // while the thread's variables are dropped any will do
    let number = NUMBER.try_with(|number| {
        if number.get() == usize::MAX {
            number.set(THREADS.fetch_add(1, Ordering::Relaxed) % STRIPES);
        }
        number.get()
    });
    number.unwrap_or(0)
}

/// A counter series (a metric with its labels): the increments, which are counted per CPU, and what the update
/// `absolute` raised their sum by. Clones are the same series.
#[derive(Clone)]
pub(crate) struct CounterSeries {
    increments: SharedCounter,
    /// The sum of what `absolute` added, modulo 2⁶⁴.
    raised: Arc<AtomicU64>,
}

impl CounterSeries {
    pub(crate) fn new() -> statctr::Result<CounterSeries> {
        Ok(CounterSeries { increments: SharedCounter::new(0)?, raised: Arc::default() })
    }

    /// Returns the counter's value, the sum of both parts. Neither goes down, therefore nor do successive reads.
    pub(crate) fn read(&self) -> u64 {
        self.raised.load(Ordering::Acquire).wrapping_add(self.increments.read())
    }

    /// Raises the counter to a value, if it is below. Takes no lock; async-signal-safe.
    fn raise_to(&self, value: u64) {
        let mut raised = self.raised.load(Ordering::Acquire);
        loop {
            let missing = value.saturating_sub(raised.wrapping_add(self.increments.read()));
            if missing == 0 {
                return;
            }
            // This succeeds only if nobody else has raised the counter since, therefore nothing is added twice. An
            // increment that the read did not see stays in the sum, as if it came after; one that it saw came before.
            let sum = raised.wrapping_add(missing);
            match self.raised.compare_exchange(raised, sum, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => raised = now,
            }
        }
    }
}

impl CounterFn for Handle<CounterSeries> {
    fn increment(&self, value: u64) {
        self.0.increments.add(value);
    }

    fn absolute(&self, value: u64) {
        self.0.raise_to(value);
    }
}

/// A gauge series (a metric with its labels): a per-CPU floating-point gauge. Clones are the same series.
#[derive(Clone)]
pub(crate) struct GaugeSeries(Arc<statctr::FloatGauge>);

impl GaugeSeries {
    pub(crate) fn new() -> statctr::Result<GaugeSeries> {
        statctr::FloatGauge::new(0.0).map(|gauge| GaugeSeries(Arc::new(gauge)))
    }

    pub(crate) fn read(&self) -> f64 {
        self.0.read()
    }
}

impl GaugeFn for Handle<GaugeSeries> {
    fn increment(&self, value: f64) {
        self.0.0.add(value);
    }

    fn decrement(&self, value: f64) {
        self.0.0.sub(value);
    }

    fn set(&self, value: f64) {
        self.0.0.set(value);
    }
}

/// A histogram series (a metric with its labels), with the bounds of its classic buckets if it is exported by buckets.
/// Clones are the same series.
#[derive(Clone)]
pub(crate) struct HistogramSeries {
    pub(crate) histogram: Arc<FloatHistogram>,
    pub(crate) bounds: Option<Arc<[f64]>>,
}

impl HistogramFn for Handle<HistogramSeries> {
    fn record(&self, value: f64) {
        self.0.histogram.observe(value);
    }

    fn record_many(&self, value: f64, count: usize) {
        self.0.histogram.observe_many(value, count as u64);
    }
}
