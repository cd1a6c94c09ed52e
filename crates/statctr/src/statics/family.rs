//! Families of statistics by labels: [`StaticFamily`].

use super::label_table::{Entry, LARGEST_LIMIT, LabelTable, MAX_VALUE_BYTES, OVERFLOW};
use super::{StaticCounter, StaticGauge, StaticMax, StaticMin};
use crate::average::Average;
use crate::description::{Description, is_label, is_name};
use crate::error::Error;
use crate::gauge::FloatGauge;
use crate::histogram::Histogram;
use crate::schema::Unit;
use crate::sys::OnceBox;
use crate::value::{Kind, Source};
use std::convert::Infallible;
use std::fmt;

mod sealed {
    pub trait Sealed {
        /// The label that exporters add to series of this kind of statistic, if there is one.
        const RESERVED_LABEL: Option<&'static str> = None;
    }
}

/// A kind of statistic of which a [`StaticFamily`] has one for each combination of values of its labels.
pub trait FamilyMember: Sized + Send + Sync + 'static + sealed::Sealed {
    /// The settings that all members of a family share: of histograms the largest value and the relative error.
    type Settings: Copy + Send + Sync + 'static;
    /// The result of a look-up: `&'static Self`, or a [`Result`](crate::Result) with that for kinds whose members are
    /// in the process's global pool of counter memory.
    type Found;
    #[doc(hidden)]
    type Failure;

    #[doc(hidden)]
    fn make(
        description: impl FnOnce() -> Description,
        settings: Self::Settings,
    ) -> Result<Self, Self::Failure>;

    #[doc(hidden)]
    fn found(member: Result<&'static Self, Self::Failure>) -> Self::Found;

    /// Puts the member into the program's registry, or returns it for its family to do so.
    #[doc(hidden)]
    fn list(&'static self) -> Option<&'static dyn Source>;
}

macro_rules! statics {
    ($($Member:ident),+) => {$(
        impl sealed::Sealed for $Member {}

        /// A member without memory of a pool: a look-up cannot fail.
        impl FamilyMember for $Member {
            type Settings = ();
            type Found = &'static $Member;
            type Failure = Infallible;

            fn make(description: impl FnOnce() -> Description, (): ()) -> Result<$Member, Infallible> {
                Ok($Member::described(description()))
            }

            fn found(member: Result<&'static $Member, Infallible>) -> &'static $Member {
                let Ok(member) = member;
                member
            }

            fn list(&'static self) -> Option<&'static dyn Source> {
                $Member::list(self);
                None
            }
        }
    )+};
}

statics!(StaticCounter, StaticGauge, StaticMax, StaticMin);

macro_rules! objects {
    ($($Member:ident($settings:pat): $Settings:ty = $make:expr;)+) => {$(
        impl sealed::Sealed for $Member {
            const RESERVED_LABEL: Option<&'static str> = Kind::$Member.reserved_label();
        }

        /// A member in the process's global pool of counter memory: a look-up fails where that has no address space for
        /// a new member, nor for the one of further values.
        impl FamilyMember for $Member {
            type Settings = $Settings;
            type Found = crate::error::Result<&'static $Member>;
            type Failure = Error;

            fn make(_: impl FnOnce() -> Description, $settings: $Settings) -> Result<$Member, Error> {
                $make
            }

            fn found(member: Result<&'static $Member, Error>) -> Result<&'static $Member, Error> {
                member
            }

            fn list(&'static self) -> Option<&'static dyn Source> {
                Some(self)
            }
        }
    )+};
}

objects! {
    FloatGauge(()): () = FloatGauge::new(0.0);
    Average(()): () = Average::new();
    Histogram((max, error)): (u64, f64) = Histogram::new(max, error);
}

/// A `static` family of statistics of one kind and name, one for each combination of values of its `N` labels:
/// counters, if nothing else is said.
///
/// ```
/// use statctr::{Histogram, StaticFamily, StaticGauge, Unit};
///
/// static REQUESTS: StaticFamily<2> =
///     StaticFamily::new("requests", "requests served", Unit::NONE, ["method", "status"]);
/// static OPEN: StaticFamily<1, StaticGauge> =
///     StaticFamily::new("open", "open connections", Unit::NONE, ["listener"]);
/// // up to a minute in nanoseconds, quantiles to 5 %
/// static LATENCY: StaticFamily<1, Histogram> = StaticFamily::of_histograms(
///     "latency", "time to serve", Unit::NANOSECONDS, ["method"], 60_000_000_000, 0.05,
/// );
///
/// REQUESTS.get(["GET", "200"]).inc();
/// assert_eq!(REQUESTS.get(["GET", "200"]).read(), 1);
/// OPEN.get(["https"]).dec();
/// // in memory of a pool, which may fail
/// LATENCY.get(["GET"])?.observe(1500);
/// # Ok::<(), statctr::Error>(())
/// ```
///
/// # Kinds
/// [`StaticCounter`], [`StaticGauge`], [`StaticMax`] and [`StaticMin`], whose look-ups return `&'static` members, and
/// [`FloatGauge`], [`Average`] and [`Histogram`] in the process's global pool of counter memory, whose look-ups return
/// a `Result`.
///
/// # Bounds
/// Values come from outside more often than not, so a family has at most
/// [`DEFAULT_LIMIT`](Self::DEFAULT_LIMIT) members, or as many as [`limit`](Self::limit) says. What comes
/// when there are that many, or has a value of more than [`MAX_VALUE_BYTES`](Self::MAX_VALUE_BYTES) bytes,
/// is counted by one further member, whose labels all have the value [`OVERFLOW`](Self::OVERFLOW). So
/// nothing is lost, the sum over the family stays exact, and a flood of values takes no memory and
/// makes no lookup slower. Threads that make the same member at once may find the bound reached by as
/// many members early. Where a pool has no memory for a new member, its values are counted by the further one, too.
///
/// # Cost
/// An update of a member that is kept is that of its kind. Counters and gauges have inline updates as long as they are
/// among the first 4096 static counters and gauges of the program, members included, by their first updates; an update of
/// any later one takes a call more: 3.0 ns in a loop of nothing else in place of 0.3 (AMD EPYC, Zen 5).
///
/// A lookup hashes the values (SipHash, keyed at random) and compares one entry: about 30 ns; keep the
/// `&'static` member where the values are known in advance. It takes no lock, and writes nothing
/// where the member is there. The first one of a family makes a table of 16 to 32 bytes for each
/// member that it may have; each new member takes some 250 bytes of heap and its values, and what a statistic of its
/// kind takes: a thousand histograms of 1900 buckets 30 kB for each CPU that counts in all of them. Members are never
/// removed.
pub struct StaticFamily<const N: usize, K: FamilyMember = StaticCounter> {
    name: &'static str,
    help: &'static str,
    unit: Unit,
    labels: [&'static str; N],
    limit: usize,
    settings: K::Settings,
    table: OnceBox<LabelTable<[Box<str>; N], K>>,
}

impl<const N: usize, K: FamilyMember<Settings = ()>> StaticFamily<N, K> {
    /// Creates a family of statistics with this name, help text and unit of measurement, and these names of labels.
    ///
    /// # Panics
    /// For bad names, labels that are named twice, no label at all, and the label `quantile` of averages, which exporters
    /// add; in a static that is an error of the compilation.
    #[must_use]
    pub const fn new(
        name: &'static str,
        help: &'static str,
        unit: Unit,
        labels: [&'static str; N],
    ) -> StaticFamily<N, K> {
        StaticFamily::with_settings(name, help, unit, labels, ())
    }
}

impl<const N: usize> StaticFamily<N, Histogram> {
    /// Creates a family of histograms for values up to `max`, whose quantiles have at most the relative error `error`
    /// (0.01 for 1 %), with this name, help text and unit of measurement, and these names of labels.
    ///
    /// # Panics
    /// For bad names, labels that are named twice, no label at all, the label `le`, which exporters add, and an error
    /// that is not between 0.000123 and 1; in a static that is an error of the compilation.
    #[must_use]
    pub const fn of_histograms(
        name: &'static str,
        help: &'static str,
        unit: Unit,
        labels: [&'static str; N],
        max: u64,
        error: f64,
    ) -> StaticFamily<N, Histogram> {
        assert!(error > 0.000_123 && error < 1.0, "a relative error is between 0.000123 and 1");
        StaticFamily::with_settings(name, help, unit, labels, (max, error))
    }
}

impl<const N: usize, K: FamilyMember> StaticFamily<N, K> {
    /// The largest number of members (statistics, one for each combination of label values) in a family, unless
    /// [`limit`](Self::limit) sets another.
    pub const DEFAULT_LIMIT: usize = 1000;
    /// The largest length in bytes of a label's value with which a family has a statistic of its own; longer ones are
    /// counted by the overflow member.
    pub const MAX_VALUE_BYTES: usize = MAX_VALUE_BYTES;
    /// The value that all labels of the overflow member have: the statistic of a family that counts for label values
    /// beyond the family's bounds.
    pub const OVERFLOW: &'static str = OVERFLOW;

    const fn with_settings(
        name: &'static str,
        help: &'static str,
        unit: Unit,
        labels: [&'static str; N],
        settings: K::Settings,
    ) -> StaticFamily<N, K> {
        assert!(N > 0, "a family has labels");
        assert!(is_name(name, true), "a name has letters, digits, `_` and `:`, and begins with no digit");
        let mut at = 0;
        while at < N {
            assert!(
                is_label(labels[at]),
                "a label's name has letters, digits and `_`, and is not `__name__`"
            );
            if let Some(reserved) = K::RESERVED_LABEL {
                assert!(!same(labels[at], reserved), "exporters add this label to series of this kind");
            }
            let mut before = 0;
            while before < at {
                assert!(!same(labels[at], labels[before]), "a label is named twice");
                before += 1;
            }
            at += 1;
        }
        let (limit, table) = (Self::DEFAULT_LIMIT, OnceBox::new());
        StaticFamily { name, help, unit, labels, limit, settings, table }
    }

    /// Sets the largest number, 1 to 65 536, of members (statistics, one for each combination of label values) in the
    /// family, without the overflow member.
    ///
    /// # Panics
    /// For other numbers; in a static that is an error of the compilation.
    #[must_use]
    pub const fn limit(mut self, members: usize) -> StaticFamily<N, K> {
        assert!(members > 0 && members <= LARGEST_LIMIT, "a family has 1 to 65536 members");
        self.limit = members;
        self
    }

    /// Returns the family's member (statistic) for these values of the labels, in the order of the labels. Creates it
    /// if it does not exist, and puts it into the program's registry.
    ///
    /// Finding an existing member takes no lock and does not allocate, so it is async-signal-safe; creating one
    /// allocates.
    ///
    /// # Errors
    /// Of kinds in memory of a pool, where [`Found`](FamilyMember::Found) is a `Result`: those of their constructors.
    #[must_use]
    pub fn get(&'static self, values: [&str; N]) -> K::Found {
        let table = self.table.get_or_make(|| LabelTable::new(self.limit));
        let make = |values: [&str; N]| {
            K::make(|| self.describe(values), self.settings).map(|member| (values.map(Box::from), member))
        };
        K::found(table.get(values, [OVERFLOW; N], make).map(|entry| self.listed(entry)))
    }

    /// Returns the member of an entry, which is in the program's registry from now on.
    fn listed(&self, entry: &'static Entry<[Box<str>; N], K>) -> &'static K {
        if let Some(source) = entry.member.list() {
            entry.list(source, |values| self.describe(std::array::from_fn(|label| &*values[label])));
        }
        &entry.member
    }

    fn describe(&self, values: [&str; N]) -> Description {
        let plain = Description::new(self.name).help(self.help).unit(self.unit.clone());
        let labels = self.labels.iter().zip(values);
        labels.fold(plain, |description, (label, value)| description.label(*label, value.to_owned()))
    }

    /// Returns the number of members (statistics, one for each combination of label values in use) that the family has
    /// so far, without the overflow member, which stands for all combinations beyond the limit.
    #[must_use]
    pub fn len(&'static self) -> usize {
        self.table.get().map_or(0, LabelTable::len)
    }

    /// Returns `true` if the family has no members (statistics, one for each combination of label values in use) so
    /// far.
    #[must_use]
    pub fn is_empty(&'static self) -> bool {
        self.len() == 0
    }
}

impl<const N: usize, K: FamilyMember> fmt::Debug for StaticFamily<N, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticFamily")
            .field("name", &self.name)
            .field("labels", &self.labels)
            .finish_non_exhaustive()
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
