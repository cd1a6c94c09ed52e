//! Counters that are statics: [`StaticCounter`].

use super::NamedWord;
use crate::cpu::CpuId;
use crate::description::Description;
use crate::error::Result;
use crate::placement::{Memory, Mode, measure_statics};
use crate::rseq;
use crate::schema::Unit;
use crate::value::Kind;
use std::fmt;

/// A per-CPU counter that is a `static` of the program: usable before `main`, without initialisation, and known to
/// exporters by its name.
///
/// ```
/// use statctr::{Registry, StaticCounter, Unit};
///
/// static REQUESTS: StaticCounter = StaticCounter::new("requests", "requests served", Unit::NONE);
///
/// REQUESTS.inc();
/// assert_eq!(REQUESTS.read(), 1);
/// // listed since its first use, without a registration
/// let mut seen = Vec::new();
/// Registry::global().visit(|sample| seen.push((sample.description.name().to_owned(), sample.value.number())));
/// assert_eq!(seen, [("requests".to_owned(), 1.0)]);
/// ```
///
/// # Cost
/// An update is that of a [`Counter`](crate::Counter) whose handle a loop loads once. That is so for the first
/// 4096 static counters of a program; an update of any other takes a call more. In a function that had begun before
/// the static's first update, which may be its own, updates load all of that anew until it returns: 1.3 to 1.5 ns in
/// place of 0.5 (AMD EPYC, Zen 5). The static itself is about 160 bytes of the program's data. Before the first
/// update it has no other memory, and neither has the library; the first update takes 8 bytes for each CPU
/// that counts, from blocks of 4096 counters that all static counters share ([`memory`](Self::memory)).
/// They are never given back.
///
/// # The first update
/// May be anywhere: in a constructor that runs before `main`, in a signal handler in the middle of
/// an allocation, on several threads at once, in a child of `fork`. It takes no lock and uses no heap:
/// it makes system calls, and where those are refused, or another thread is making them, it counts
/// on the static's own word, atomically, and a later update tries again.
///
/// On aarch64, which tests the kernel first, and in programs whose threads this library registers
/// ([`registration`](crate::registration)), per-CPU memory takes steps that a signal handler must not do.
/// There static counters count atomically until a pool is built, the registry is visited or
/// [`prepare`](Self::prepare) is called; [`mode`](Self::mode) says so.
///
/// # Arithmetic, ordering, threads, signals, forks
/// Those of [`Counter`](crate::Counter). There is no initial value and no `set`. Nothing panics.
#[repr(C)]
pub struct StaticCounter(NamedWord);

impl StaticCounter {
    /// Creates a counter that is a `static` of the program, of this name (letters, digits, `_` and `:`, no digit
    /// first), with a help text and a unit of measurement for exporters.
    ///
    /// Names are the program's to keep apart: the values of static counters of equal name are
    /// added up by [`Registry::visit`](crate::Registry::visit).
    ///
    /// # Panics
    /// For a bad name, which in a static is an error of the compilation.
    #[must_use]
    pub const fn new(name: &'static str, help: &'static str, unit: Unit) -> StaticCounter {
        StaticCounter::described(Description::of_static(name, help, unit))
    }

    pub(super) const fn described(description: Description) -> StaticCounter {
        StaticCounter(NamedWord::new(Kind::Counter, description))
    }

    /// Adds 1 to the counter. Somewhat more than half a nanosecond after the first time; never waits;
    /// async-signal-safe.
    #[inline(always)]
    pub fn inc(&'static self) {
        self.0.inc();
    }

    /// Subtracts 1 from the counter. Cost as [`inc`](Self::inc).
    #[inline(always)]
    pub fn dec(&'static self) {
        self.0.dec();
    }

    /// Adds `value` to the counter. Cost as [`Counter::add`](crate::Counter::add); async-signal-safe.
    #[inline(always)]
    pub fn add(&'static self, value: u64) {
        self.0.add(value);
    }

    /// Subtracts `value` from the counter. Cost as [`add`](Self::add).
    #[inline(always)]
    pub fn sub(&'static self, value: u64) {
        self.add(value.wrapping_neg());
    }

    /// Returns the counter's value: the sum over the CPUs that ever counted, and what was counted atomically. Takes no
    /// lock and disturbs no writer. Async-signal-safe.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.0.word.read()
    }

    /// Returns the part of the counter's value that one CPU counted; what was counted atomically belongs to no CPU.
    #[must_use]
    pub fn read_cpu(&self, cpu: CpuId) -> u64 {
        self.0.word.read_cpu(cpu.index())
    }

    /// Returns the part of the counter's value that was counted atomically, in a word that all CPUs share; for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn fallback_part(&self) -> u64 {
        self.0.word.fallback_part()
    }

    /// Puts the counter into the program's registry with the value 0, which its first update would do otherwise. Takes
    /// no memory; async-signal-safe.
    pub fn list(&'static self) {
        self.0.list();
    }

    /// Returns the counter's name, help text, unit of measurement and labels.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.0.description
    }

    /// Returns how the counter is updated: [`Mode::Rseq`] if it has per-CPU words or gets them by its next update,
    /// [`Mode::Striped`] if these are updated atomically as there is no rseq, else [`Mode::AtomicFallback`].
    /// Async-signal-safe.
    #[must_use]
    pub fn mode(&self) -> Mode {
        Mode::of_static(self.0.word.tag())
    }

    /// Registers threads for rseq where libc does not, and tests on aarch64 whether the kernel aborts rseq critical
    /// sections: what updates of static counters cannot do, as they may be in signal handlers. To be called once, at
    /// the start of `main`; building a pool does it too.
    ///
    /// Cost: on x86-64 with glibc nothing; elsewhere a thread, on aarch64 some milliseconds, and two
    /// seconds at most. Not for signal handlers.
    pub fn prepare() {
        let _ = rseq::tested_offset();
    }

    /// Measures the address space and resident memory of all static counters of the process; none before the first
    /// update.
    ///
    /// Reads `/proc/self/smaps`: milliseconds in a large program.
    ///
    /// # Errors
    /// [`Error::System`](crate::Error::System) where that file cannot be read.
    pub fn memory() -> Result<Memory> {
        measure_statics()
    }
}

impl fmt::Debug for StaticCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticCounter")
            .field("name", &self.description().name())
            .field("value", &self.read())
            .finish_non_exhaustive()
    }
}
