//! Values that go up and down: [`Gauge`], and in floating point [`FloatGauge`].

mod float;
pub use float::FloatGauge;

use crate::counter::Counter;
use crate::error::Result;
use crate::placement::Pool;
use std::fmt;

/// A per-CPU gauge of signed integers, which goes up and down and can be set: open connections, bytes in use.
///
/// A [`Counter`] that is read as a signed number, with the same cost, ordering and guarantees; modulo 2⁶⁴.
///
/// ```
/// use statctr::Gauge;
///
/// let open = Gauge::new(0)?;
/// open.inc();
/// open.sub(3);
/// assert_eq!((open.read(), open.read_clamped()), (-2, 0));
/// open.set(7);
/// assert_eq!(open.read(), 7);
/// # Ok::<(), statctr::Error>(())
/// ```
///
/// # Reads during updates
/// A read sums the CPUs one after the other. If a thread adds on a CPU that the reader has already passed, and then
/// subtracts on one that it has not, the reader sees only the subtraction. So a gauge that never was negative may be
/// read as negative for a moment; [`read_clamped`](Self::read_clamped) returns 0 then. When writers have stopped, or
/// were waited for, a read is exact.
///
/// # Races with `set`
/// An update that runs at the same time as [`set`](Self::set) is wholly before it, and gone, or wholly
/// after it. Of two that run at the same time one is the last.
pub struct Gauge(Counter);

impl Gauge {
    /// Creates a gauge with the value `initial`, in the process's global pool of counter memory.
    ///
    /// # Errors
    /// Fails as [`Counter::new`] does.
    pub fn new(initial: i64) -> Result<Gauge> {
        Gauge::new_in(Pool::global()?, initial)
    }

    /// Creates a gauge with the value `initial`, in the counter memory of `pool`.
    ///
    /// # Errors
    /// Fails as [`Counter::new_in`] does.
    pub fn new_in(pool: &Pool, initial: i64) -> Result<Gauge> {
        Counter::new_in(pool, initial.cast_unsigned()).map(Gauge)
    }

    /// Adds 1 to the gauge. Cost as [`Counter::inc`]; async-signal-safe.
    #[inline(always)]
    pub fn inc(&self) {
        self.0.inc();
    }

    /// Subtracts 1 from the gauge. Cost as [`Counter::dec`]; async-signal-safe.
    #[inline(always)]
    pub fn dec(&self) {
        self.0.dec();
    }

    /// Adds `value` to the gauge. Cost as [`Counter::add`]; async-signal-safe.
    #[inline(always)]
    pub fn add(&self, value: i64) {
        self.0.add(value.cast_unsigned());
    }

    /// Subtracts `value` from the gauge. Cost as [`Counter::add`]; async-signal-safe.
    #[inline(always)]
    pub fn sub(&self, value: i64) {
        self.0.sub(value.cast_unsigned());
    }

    /// Sets the gauge's value; see [`Counter::set`]. Takes the pool's lock: not for signal handlers.
    pub fn set(&self, value: i64) {
        self.0.set(value.cast_unsigned());
    }

    /// Returns the gauge's value, the sum over the CPUs. Cost as [`Counter::read`]; async-signal-safe.
    #[must_use]
    pub fn read(&self) -> i64 {
        self.0.read().cast_signed()
    }

    /// Returns the gauge's value, or 0 if a read gives a negative one, for quantities that cannot be negative.
    #[must_use]
    pub fn read_clamped(&self) -> u64 {
        u64::try_from(self.read()).unwrap_or(0)
    }
}

impl fmt::Debug for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gauge").field(&self.read()).finish()
    }
}
