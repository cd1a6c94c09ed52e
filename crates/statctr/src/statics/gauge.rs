//! Gauges that are statics: [`StaticGauge`].

use super::NamedWord;
use crate::description::Description;
use crate::schema::Unit;
use crate::sys::{Lock, OnceBox, Rank};
use crate::value::Kind;
use std::fmt;

/// A per-CPU gauge of signed integers that is a `static` of the program: usable before `main`, without initialisation,
/// and known to exporters by its name.
///
/// ```
/// use statctr::{StaticGauge, Unit};
///
/// static OPEN: StaticGauge = StaticGauge::new("open_connections", "connections that are open", Unit::NONE);
///
/// OPEN.inc();
/// OPEN.sub(3);
/// assert_eq!((OPEN.read(), OPEN.read_clamped()), (-2, 0));
/// OPEN.set(7);
/// assert_eq!(OPEN.read(), 7);
/// ```
///
/// Cost, and where the first update may be, are those of a [`StaticCounter`](crate::StaticCounter): a gauge is one of the
/// first 4096 static counters and gauges of the program, or an update takes a call more. Reads while others update are
/// those of a [`Gauge`](crate::Gauge).
///
/// # Races with `set`
/// An update that runs at the same time as [`set`](Self::set) is wholly before it, and gone, or wholly after it. Of two
/// sets at the same time one is the last. A read that a set overtakes may return the value from before, with updates
/// from after it.
#[repr(C)]
pub struct StaticGauge(NamedWord);

impl StaticGauge {
    /// Creates a gauge that is a `static` of the program, of this name (letters, digits, `_` and `:`, no digit first),
    /// with a help text and a unit of measurement for exporters. Its value is 0.
    ///
    /// # Panics
    /// For a bad name, which in a static is an error of the compilation.
    #[must_use]
    pub const fn new(name: &'static str, help: &'static str, unit: Unit) -> StaticGauge {
        StaticGauge::described(Description::of_static(name, help, unit))
    }

    pub(super) const fn described(description: Description) -> StaticGauge {
        StaticGauge(NamedWord::new(Kind::Gauge, description))
    }

    /// Adds 1 to the gauge. Cost as [`StaticCounter::inc`](crate::StaticCounter::inc); async-signal-safe.
    #[inline(always)]
    pub fn inc(&'static self) {
        self.0.inc();
    }

    /// Subtracts 1 from the gauge. Cost as [`inc`](Self::inc); async-signal-safe.
    #[inline(always)]
    pub fn dec(&'static self) {
        self.0.dec();
    }

    /// Adds `value` to the gauge. Cost as [`StaticCounter::add`](crate::StaticCounter::add); async-signal-safe.
    #[inline(always)]
    pub fn add(&'static self, value: i64) {
        self.0.add(value.cast_unsigned());
    }

    /// Subtracts `value` from the gauge. Cost as [`add`](Self::add); async-signal-safe.
    #[inline(always)]
    pub fn sub(&'static self, value: i64) {
        self.0.add(value.cast_unsigned().wrapping_neg());
    }

    /// Sets the gauge's value, whatever CPUs added before, and writes no CPU's word. Cost: a lock and a read. Not for
    /// signal handlers.
    pub fn set(&'static self, value: i64) {
        static SETS: OnceBox<Lock<()>> = OnceBox::new();
        self.0.list();
        // two sets at the same time would both make up for what is there
        let _one_at_a_time = SETS.get_or_make(|| Lock::new(Rank::Reader, ())).lock();
        self.0.word.set_alone(value.cast_unsigned());
    }

    /// Returns the gauge's value, the sum over the CPUs. Cost: a cache line per CPU that counts. Async-signal-safe.
    #[must_use]
    pub fn read(&self) -> i64 {
        self.0.word.read().cast_signed()
    }

    /// Returns the gauge's value, or 0 if a read gives a negative one, for quantities that cannot be negative.
    #[must_use]
    pub fn read_clamped(&self) -> u64 {
        u64::try_from(self.read()).unwrap_or(0)
    }

    /// Puts the gauge into the program's registry with the value 0, which its first update would do otherwise. Takes no
    /// memory; async-signal-safe.
    pub fn list(&'static self) {
        self.0.list();
    }

    /// Returns the gauge's name, help text, unit of measurement and labels.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.0.description
    }
}

impl fmt::Debug for StaticGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticGauge")
            .field("name", &self.description().name())
            .field("value", &self.read())
            .finish_non_exhaustive()
    }
}
