//! Counters that are statics: [`StaticCounter`], and their families by labels: [`StaticFamily`].

use crate::cpu::CpuId;
use crate::description::{Description, is_name};
use crate::error::Result;
use crate::memory::StaticWord;
use crate::placement::{Memory, Mode, measure_statics};
use crate::rseq;
use crate::schema::Unit;
use crate::sys::{Link, Linked, OnceBox, StaticList};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The counters that are listed in the program's registry, the newest first.
static LISTED: StaticList<StaticCounter> = StaticList::new();

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
/// An update is that of a [`Counter`](crate::Counter) that loads its home word each time: in a loop of
/// nothing else 0.58 ns, where a counter whose handle stays in registers takes 0.54 (virtual AMD EPYC, Zen 4);
/// with work in between the same. That is so for the first 4096 static counters of a program; an update of
/// any other, and every update in a loop of nothing else that began before the program's first update of a
/// static, takes a call more. The static itself is about 160 bytes of the program's data. Before the first
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
pub struct StaticCounter {
    word: StaticWord,
    link: Link<StaticCounter>,
    description: Description,
}

impl Linked for StaticCounter {
    fn link(&self) -> &Link<StaticCounter> {
        &self.link
    }
}

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

    const fn described(description: Description) -> StaticCounter {
        StaticCounter { word: StaticWord::new(), link: Link::new(), description }
    }

    /// Adds 1 to the counter. Somewhat more than half a nanosecond after the first time; never waits;
    /// async-signal-safe.
    #[inline(always)]
    pub fn inc(&'static self) {
        if !self.word.try_inc() {
            self.add_slow(1);
        }
    }

    /// Subtracts 1 from the counter. Cost as [`inc`](Self::inc).
    #[inline(always)]
    pub fn dec(&'static self) {
        if !self.word.try_dec() {
            self.add_slow(u64::MAX);
        }
    }

    /// Adds `value` to the counter. Cost as [`Counter::add`](crate::Counter::add); async-signal-safe.
    #[inline(always)]
    pub fn add(&'static self, value: u64) {
        if !self.word.try_add(value) {
            self.add_slow(value);
        }
    }

    /// Subtracts `value` from the counter. Cost as [`add`](Self::add).
    #[inline(always)]
    pub fn sub(&'static self, value: u64) {
        self.add(value.wrapping_neg());
    }

    #[cold]
    #[inline(never)]
    fn add_slow(&'static self, value: u64) {
        LISTED.add(self);
        self.word.add_slow(value);
    }

    /// Returns the counter's value: the sum over the CPUs that ever counted, and what was counted atomically. Takes no
    /// lock and disturbs no writer. Async-signal-safe.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.word.read()
    }

    /// Returns the part of the value that one CPU counted; what was counted atomically belongs to no CPU.
    #[must_use]
    pub fn read_cpu(&self, cpu: CpuId) -> u64 {
        self.word.read_cpu(cpu.index())
    }

    /// Returns the part of the value that was counted atomically, in a word that all CPUs share; for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn fallback_part(&self) -> u64 {
        self.word.fallback_part()
    }

    /// Puts the counter into the program's registry with the value 0, which its first update would do otherwise. Takes
    /// no memory; async-signal-safe.
    pub fn list(&'static self) {
        LISTED.add(self);
    }

    /// Returns the counter's name, help text, unit of measurement and labels.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Returns how the counter is updated: [`Mode::Rseq`] if it has per-CPU words or gets them by its next update,
    /// [`Mode::Striped`] if these are updated atomically as there is no rseq, else [`Mode::AtomicFallback`].
    /// Async-signal-safe.
    #[must_use]
    pub fn mode(&self) -> Mode {
        Mode::of_static(self.word.tag())
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
            .field("name", &self.description.name())
            .field("value", &self.read())
            .finish_non_exhaustive()
    }
}

/// Returns an iterator over the static counters (`static`s) in the program's registry.
pub(crate) fn listed() -> impl Iterator<Item = &'static StaticCounter> {
    LISTED.iter()
}

/// A `static` family of counters with one name, one counter for each combination of values of its `N` labels.
///
/// ```
/// use statctr::{StaticFamily, Unit};
///
/// static REQUESTS: StaticFamily<2> =
///     StaticFamily::new("requests", "requests served", Unit::NONE, ["method", "status"]);
///
/// let found = REQUESTS.get(["GET", "200"]);
/// found.inc();
/// assert_eq!(REQUESTS.get(["GET", "200"]).read(), 1);
/// ```
///
/// # Bounds
/// Values come from outside more often than not, so a family has at most
/// [`DEFAULT_LIMIT`](Self::DEFAULT_LIMIT) counters, or as many as [`limit`](Self::limit) says. What comes
/// when there are that many, or has a value of more than [`MAX_VALUE_BYTES`](Self::MAX_VALUE_BYTES) bytes,
/// is counted by one further counter, whose labels all have the value [`OVERFLOW`](Self::OVERFLOW). So
/// no count is lost, the sum over the family stays exact, and a flood of values takes no memory and
/// makes no lookup slower. Threads that make the same counter at once may find the bound reached by as
/// many counters early.
///
/// # Cost
/// A lookup hashes the values (SipHash, keyed at random) and compares one entry: about 30 ns; keep the
/// `&'static StaticCounter` where the values are known in advance. It takes no lock, and writes nothing
/// where the counter is there. The first one of a family makes a table of 16 to 32 bytes for each
/// counter that it may have; each new counter takes some 250 bytes of heap and its values. Counters are
/// never removed.
pub struct StaticFamily<const N: usize> {
    name: &'static str,
    help: &'static str,
    unit: Unit,
    labels: [&'static str; N],
    limit: usize,
    table: OnceBox<Table<N>>,
}

/// An entry, which is only ever added.
struct Entry<const N: usize> {
    values: [Box<str>; N],
    counter: StaticCounter,
}

/// Hash table with open addressing, at most half full, whose places are filled once.
struct Table<const N: usize> {
    hasher: RandomState,
    places: Box<[OnceBox<Entry<N>>]>,
    /// Places filled, or about to be.
    entries: AtomicUsize,
    overflow: OnceBox<StaticCounter>,
}

impl<const N: usize> StaticFamily<N> {
    /// The largest number of counters in a family, unless [`limit`](Self::limit) sets another.
    pub const DEFAULT_LIMIT: usize = 1000;
    /// The largest length in bytes of a label's value; longer ones are counted by the overflow counter.
    pub const MAX_VALUE_BYTES: usize = 256;
    /// The value that all labels of the overflow counter have; it counts for label values beyond the family's bounds.
    pub const OVERFLOW: &'static str = "overflow";

    /// Creates a family of counters with this name, help text and unit of measurement, and these names of labels.
    ///
    /// # Panics
    /// For bad names, labels that are named twice, and for no label at all; in a static that is an error
    /// of the compilation.
    #[must_use]
    pub const fn new(
        name: &'static str,
        help: &'static str,
        unit: Unit,
        labels: [&'static str; N],
    ) -> StaticFamily<N> {
        assert!(N > 0, "a family has labels");
        assert!(is_name(name, true), "a name has letters, digits, `_` and `:`, and begins with no digit");
        let mut at = 0;
        while at < N {
            assert!(is_name(labels[at], false), "a label's name has letters, digits and `_`");
            let mut before = 0;
            while before < at {
                assert!(!same(labels[at], labels[before]), "a label is named twice");
                before += 1;
            }
            at += 1;
        }
        StaticFamily { name, help, unit, labels, limit: Self::DEFAULT_LIMIT, table: OnceBox::new() }
    }

    /// Sets the largest number of counters in the family, 1 to 65 536, without the overflow counter.
    ///
    /// # Panics
    /// For other numbers; in a static that is an error of the compilation.
    #[must_use]
    pub const fn limit(mut self, counters: usize) -> StaticFamily<N> {
        assert!(counters > 0 && counters <= 1 << 16, "a family has 1 to 65536 counters");
        self.limit = counters;
        self
    }

    /// Returns the counter for these values of the labels, in the order of the labels. Creates it if it does not exist,
    /// and puts it into the program's registry.
    ///
    /// Finding an existing counter takes no lock and does not allocate, so it is async-signal-safe; creating one
    /// allocates.
    #[must_use]
    pub fn get(&'static self, values: [&str; N]) -> &'static StaticCounter {
        let table = self.table.get_or_make(|| Table::new(self.limit));
        if values.iter().any(|value| value.len() > Self::MAX_VALUE_BYTES) || values == [Self::OVERFLOW; N] {
            return self.overflow(table);
        }
        let mask = table.places.len() - 1;
        let mut at = table.hasher.hash_one(values) as usize & mask;
        loop {
            let place = &table.places[at];
            let there = match place.get() {
                Some(entry) => entry,
                None => match self.fill(table, place, values) {
                    Some(entry) => entry,
                    None => return self.overflow(table),
                },
            };
            if there.values.iter().zip(values).all(|(there, value)| **there == *value) {
                there.counter.list();
                return &there.counter;
            }
            at = (at + 1) & mask;
        }
    }

    /// Makes the entry of a free place; returns the one that is there then, whoever made it, and `None`
    /// where the family has all that it may have.
    fn fill(
        &self,
        table: &'static Table<N>,
        place: &'static OnceBox<Entry<N>>,
        values: [&str; N],
    ) -> Option<&'static Entry<N>> {
        let more = |entries: usize| (entries < self.limit).then_some(entries + 1);
        table.entries.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        let counter = StaticCounter::described(self.describe(values));
        match place.try_set(Entry { values: values.map(Box::from), counter }) {
            Ok(made) => Some(made),
            Err(theirs) => {
                table.entries.fetch_sub(1, Ordering::AcqRel);
                Some(theirs)
            }
        }
    }

    fn overflow(&'static self, table: &'static Table<N>) -> &'static StaticCounter {
        let made = || StaticCounter::described(self.describe([Self::OVERFLOW; N]));
        let counter = table.overflow.get_or_make(made);
        counter.list();
        counter
    }

    fn describe(&self, values: [&str; N]) -> Description {
        let plain = Description::new(self.name).help(self.help).unit(self.unit.clone());
        let labels = self.labels.iter().zip(values);
        labels.fold(plain, |description, (label, value)| description.label(*label, value.to_owned()))
    }

    /// Returns the number of counters in the family, without the overflow counter.
    #[must_use]
    pub fn len(&'static self) -> usize {
        self.table.get().map_or(0, |table| table.entries.load(Ordering::Relaxed))
    }

    /// Returns `true` if the family has no counters.
    #[must_use]
    pub fn is_empty(&'static self) -> bool {
        self.len() == 0
    }
}

impl<const N: usize> fmt::Debug for StaticFamily<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticFamily")
            .field("name", &self.name)
            .field("labels", &self.labels)
            .finish_non_exhaustive()
    }
}

impl<const N: usize> Table<N> {
    fn new(limit: usize) -> Table<N> {
        let places = (0..(2 * limit).next_power_of_two()).map(|_| OnceBox::new()).collect();
        Table { hasher: RandomState::new(), places, entries: AtomicUsize::new(0), overflow: OnceBox::new() }
    }
}

/// Returns `true` for equal strings; `==` is not for the compiler's own evaluation.
const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}
