//! A floating-point value that goes up and down: [`FloatGauge`].

use crate::error::Result;
use crate::memory::FloatSum;
use crate::placement::Pool;
use std::fmt;

/// A per-CPU gauge of floating-point values, which can be added to, subtracted from and set: temperatures, loads,
/// seconds of work in progress.
///
/// Costs 64 bytes for the handle, which is aligned to a cache line, and sixteen per CPU that counts.
///
/// ```
/// use statctr::FloatGauge;
///
/// let busy = FloatGauge::new(0.0)?;
/// busy.add(2.5);
/// busy.dec();
/// assert_eq!(busy.read(), 1.5);
/// busy.set(0.1);
/// assert_eq!(busy.read(), 0.1);
/// # Ok::<(), statctr::Error>(())
/// ```
///
/// # Without rseq
/// Each CPU has a sum of its own there, too ([`Placement::Striped`](crate::Placement::Striped)): a compare-and-swap
/// adds to it, on a line that threads of other CPUs rarely write. Where a CPU has no memory for that, and for a
/// moment after a `set`, a thread adds to a word that all share.
///
/// # Rounding
/// Each CPU adds its updates to a sum of its own, which is rounded after each, and a read adds these sums and
/// the value that was set last. While all of these are whole numbers of at most 2⁵³ (or multiples of one power
/// of two, up to 2⁵³ of them) nothing is rounded and a read is exact. Else n updates on P CPUs since the
/// last set are off by at most (n + P) · 2⁻⁵³ of the sum of their absolute values and that of the value that was
/// set, and the same updates may be read with another last digit if they run on other CPUs, or after a drain. So
/// an `add` and a `sub` of the same number need not cancel; a [`set`](Self::set) ends all rounding errors of
/// before.
///
/// Infinities and NaN are added as IEEE 754 says; they go away with the next `set`.
///
/// # Races with `set`
/// An update that runs at the same time as `set` is wholly before it, and gone, or wholly after it, and in
/// all reads until the next `set`. Of two `set`s at the same time one is the last, and the other's value is
/// gone. A read that a `set` overtakes returns the value that was set. A set reads and writes no CPU's words,
/// so its cost does not depend on their number.
///
/// # Ordering, threads, signals, forks
/// Those of [`Counter`](crate::Counter); about reads during updates see [`Gauge`](crate::Gauge).
pub struct FloatGauge(FloatSum);

impl FloatGauge {
    /// Creates a gauge with the value `initial`, in the process's global pool of counter memory.
    ///
    /// # Errors
    /// Fails as [`Counter::new`](crate::Counter::new) does.
    pub fn new(initial: f64) -> Result<FloatGauge> {
        FloatGauge::new_in(Pool::global()?, initial)
    }

    /// Creates a gauge with the value `initial`, in the counter memory of `pool`.
    ///
    /// # Errors
    /// Fails as [`Counter::new_in`](crate::Counter::new_in) does.
    pub fn new_in(pool: &Pool, initial: f64) -> Result<FloatGauge> {
        FloatSum::take(pool.arena(), initial).map(FloatGauge)
    }

    /// Adds 1 to the gauge. Cost as [`add`](Self::add).
    #[inline(always)]
    pub fn inc(&self) {
        self.0.add(1.0);
    }

    /// Subtracts 1 from the gauge. Cost as [`add`](Self::add).
    #[inline(always)]
    pub fn dec(&self) {
        self.0.add(-1.0);
    }

    /// Adds `value` to the gauge. One to two nanoseconds; back-to-back updates of one gauge take 10 to 12 cycles each
    /// (store-to-load forwarding and an addition). Without rseq a locked instruction more. Never waits;
    /// async-signal-safe.
    #[inline(always)]
    pub fn add(&self, value: f64) {
        self.0.add(value);
    }

    /// Subtracts `value` from the gauge. Cost as [`add`](Self::add).
    #[inline(always)]
    pub fn sub(&self, value: f64) {
        self.0.add(-value);
    }

    /// Sets the gauge's value, whatever CPUs added before. Takes the pool's lock: not for signal handlers.
    pub fn set(&self, value: f64) {
        self.0.set(value);
    }

    /// Returns the gauge's value: what was set last and the sum of all updates since. Cost: a cache line per CPU that
    /// counts. Async-signal-safe.
    #[must_use]
    pub fn read(&self) -> f64 {
        self.0.read()
    }
}

impl fmt::Debug for FloatGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FloatGauge").field(&self.read()).finish()
    }
}
