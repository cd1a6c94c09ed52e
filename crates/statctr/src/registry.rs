//! Names for statistics, so that something can export them.
//!
//! A registry does not keep what is registered alive: an entry goes away with its statistic, and
//! reading through the registry costs a statistic's writers nothing.

mod entries;
mod prometheus;
mod values;
use entries::{Entries, HeldSources, Life, SourceRef};
pub use values::RegistryValues;

use crate::description::{Description, Key, is_name, printable_name};
use crate::error::{Error, Result};
use crate::memory::{StaticKind, listed_foreign_statics};
use crate::schema::Unit;
use crate::statics::{self, StaticCounter};
use crate::sys::OnceBox;
use crate::sys::{Lock, Rank};
use crate::value::{Kind, SampleItem, Source, Value, sealed};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A registry's reference to a statistic that C code owns, usable until [`end`](Self::end).
pub(crate) struct BorrowedStatistic {
    kind: Kind,
    read: Lock<Option<Box<dyn Fn() -> Value + Send>>>,
}

impl BorrowedStatistic {
    /// Creates a registry's reference to a statistic of this kind that C code owns, and that `read` reads.
    pub(crate) fn new(kind: Kind, read: impl Fn() -> Value + Send + 'static) -> BorrowedStatistic {
        BorrowedStatistic { kind, read: Lock::new(Rank::Borrowed, Some(Box::new(read))) }
    }

    /// Ends the registry's use of the statistic that C code owns: waits for a read that is under way, and prevents
    /// further ones.
    pub(crate) fn end(&self) {
        *self.read.lock() = None;
    }

    /// Returns the value; `None` after the end.
    fn read(&self) -> Option<Value> {
        self.read.lock().as_ref().map(|read| read())
    }
}

impl sealed::Sealed for BorrowedStatistic {
    fn kind(&self) -> Kind {
        self.kind
    }
}

impl Source for BorrowedStatistic {
    fn values(&self, sink: &mut dyn FnMut(SampleItem<'_>, Value)) {
        if let Some(value) = self.read() {
            sink(SampleItem::Only, value);
        }
    }
}

/// One value of a registered statistic, or array or group of counters, with its description, as passed to the closure
/// of [`Registry::visit`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The description that was registered.
    pub description: &'a Description,
    /// The position of the value among those of the source.
    pub item: SampleItem<'a>,
    /// The value of the statistic, array element or group item.
    pub value: &'a Value,
}

/// The key of the statics that are exported as one: name and labels, kind, and shape of the value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct StaticKey(Key, Kind, Option<(u64, u32)>);

impl StaticKey {
    /// Returns the key of a value with this description.
    fn of(description: &Description, value: &Value) -> StaticKey {
        StaticKey(description.key(), value.kind(), value.shape())
    }
}

/// A registry of named statistics of every kind, and of arrays and groups of counters, which exporters of metrics read.
///
/// ```
/// use statctr::{Counter, Description, Gauge, Registry};
/// use std::sync::Arc;
///
/// let registry = Registry::new();
/// let requests = Arc::new(Counter::new(0)?);
/// let open = Arc::new(Gauge::new(0)?);
/// registry.register(Description::new("requests").label("method", "get"), &requests)?;
/// registry.register(Description::new("open").help("open connections"), &open)?;
/// requests.add(3);
/// open.dec();
/// let mut seen = Vec::new();
/// registry.visit(|sample| seen.push((sample.description.name().to_owned(), sample.value.number())));
/// assert_eq!(seen, [("requests".to_owned(), 3.0), ("open".to_owned(), -1.0)]);
///
/// assert!(registry.prometheus_text().contains("# TYPE open gauge\nopen -1\n"));
/// # Ok::<(), statctr::Error>(())
/// ```
///
/// The program's own registry ([`global`](Registry::global)) also contains all statics that were ever used or listed
/// ([`StaticCounter`] and the like), and the members of families ([`StaticFamily`](crate::StaticFamily)).
pub struct Registry {
    entries: Lock<Entries>,
    with_statics: bool,
}

impl Default for Registry {
    fn default() -> Self {
        Registry::new()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("entries", &self.len()).finish()
    }
}

impl Registry {
    /// Creates an empty registry of statistics.
    #[must_use]
    pub fn new() -> Registry {
        Registry::having(false)
    }

    fn having(with_statics: bool) -> Registry {
        Registry { entries: Lock::new(Rank::Registry, Entries::default()), with_statics }
    }

    /// Returns the program's own registry of statistics, in which statics (`static`s of the program) and members of
    /// families appear by themselves.
    #[must_use]
    pub fn global() -> &'static Registry {
        static GLOBAL: OnceBox<Registry> = OnceBox::new();
        GLOBAL.get_or_make(|| Registry::having(true))
    }

    /// Registers a statistic, or an array or group of counters, under a description, for as long as it lives: until its
    /// last owner drops it, also while a visit or a scrape reads it. Takes a few hundred nanoseconds, however much is
    /// registered.
    ///
    /// # Errors
    /// [`Error::BadName`] for a name, a label or a group's item that exporters would not take, or a label or an item
    /// given twice; [`Error::NameTaken`] where something that lives has this name with these labels, or
    /// this name with another kind, unit or help text.
    pub fn register<S: Source>(&self, description: Description, source: &Arc<S>) -> Result<()> {
        self.register_until_removed(description, source).map(|_| ())
    }

    /// Registers a statistic, or an array or group of counters, as [`register`](Self::register) does, and returns the
    /// number by which it can be [removed](Self::remove).
    pub(crate) fn register_until_removed<S: Source>(
        &self,
        description: Description,
        source: &Arc<S>,
    ) -> Result<u64> {
        let source: Arc<dyn Source> = Arc::clone(source) as Arc<dyn Source>;
        self.insert(description, &*source, SourceRef::Weak(Arc::downgrade(&source)))
    }

    /// Takes the statistic, or array or group of counters, that was registered with this number out of the registry.
    /// Its name is free at once, also where a visit still holds the source.
    pub(crate) fn remove(&self, number: u64) {
        self.entries.lock().remove(number);
    }

    /// Registers a statistic, or an array or group of counters, that lives as long as the program: one in a `LazyLock`
    /// of a `static`, or one that was leaked. Takes a few hundred nanoseconds.
    ///
    /// ```
    /// use statctr::{Description, Histogram, Registry, Unit};
    /// use std::sync::LazyLock;
    ///
    /// // nanoseconds up to a minute, to 5 %
    /// static LATENCY: LazyLock<Histogram> =
    ///     LazyLock::new(|| Histogram::new(60_000_000_000, 0.05).expect("address space"));
    ///
    /// let registry = Registry::new();
    /// registry.register_static(Description::new("latency").unit(Unit::NANOSECONDS), &*LATENCY)?;
    /// LATENCY.observe(1500);
    /// assert!(registry.prometheus_text().contains("latency_sum 1500\n"));
    /// # Ok::<(), statctr::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails as [`register`](Self::register) does.
    pub fn register_static<S: Source>(&self, description: Description, source: &'static S) -> Result<()> {
        self.insert(description, source, SourceRef::Static(source)).map(|_| ())
    }

    fn insert(&self, description: Description, of: &dyn Source, source: SourceRef) -> Result<u64> {
        description.check()?;
        let (kind, reserved, items) = (of.kind(), of.reserved_label(), of.item_names());
        if let Some((label, _)) = description.labels().find(|(label, _)| Some(*label) == reserved) {
            return Err(Error::BadName(label.to_owned()));
        }
        for (index, item) in items.iter().enumerate().filter(|(_, item)| !item.is_empty()) {
            if !is_name(item, true) || items[..index].contains(item) {
                return Err(Error::BadName((*item).to_owned()));
            }
        }
        let key = description.key();
        // Bounded, as in the child of a fork a read of another thread never ends to give its sources up.
        let mut attempts = 1000;
        loop {
            let mut entries = self.entries.lock();
            match entries.rival(&description, &key, kind) {
                Life::Gone => return Ok(entries.insert(description, key, kind, source)),
                Life::Unclear if attempts > 0 => attempts -= 1,
                _ => return Err(Error::NameTaken(description.name().to_owned())),
            }
            drop(entries);
            std::thread::yield_now();
        }
    }

    /// Returns the number of registered statistics, and arrays and groups of counters, that still live.
    #[must_use]
    pub fn len(&self) -> usize {
        let registered = self.entries.lock().living();
        registered + if self.with_statics { self.statics().len() } else { 0 }
    }

    /// Runs `work` with the lock of the registry of statistics held, so that nothing is registered, visited or taken
    /// out meanwhile, and a fork waits for its end; for the C API and for other crates' maps of statistics.
    #[doc(hidden)]
    pub fn while_locked<R>(&self, work: impl FnOnce() -> R) -> R {
        let _entries = self.entries.lock();
        work()
    }

    /// Returns `true` if no statistic, array or group of counters that still lives is registered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the listed statics, by name, labels and kind. Where several have the same ones (a static of a header, or of
    /// a crate that is there in two versions), their values are merged.
    fn statics(&self) -> Vec<(StaticKey, Cow<'static, Description>, Value)> {
        let c: Vec<(Cow<'static, Description>, Value)> = {
            // nothing leaves the list meanwhile
            let _entries = self.entries.lock();
            let described = |([name, help, unit], kind, value): ([String; 3], StaticKind, u64)| {
                let description = Description::new(printable_name(name)).help(help).unit(Unit::new(unit));
                (Cow::Owned(description), Value::of_foreign_static(kind, value))
            };
            listed_foreign_statics().map(described).collect()
        };
        let keyed = |(description, value): (Cow<'static, Description>, Value)| {
            (StaticKey::of(&description, &value), description, value)
        };
        let mut statics: Vec<_> = statics::listed().chain(c).map(keyed).collect();
        statics.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        statics.dedup_by(|(key, _, value), (first, _, sum)| *key == *first && sum.merge(value));
        statics
    }

    /// Calls `sink` with each value, summed over the CPUs, of all registered statistics, and arrays and groups of
    /// counters, in the order of registration. A static with the name, the labels and the kind of a registered statistic
    /// is part of that one's value.
    ///
    /// No lock is held while `sink` runs: it may register, make and drop counters. What it drops is still passed on by
    /// this visit, and its name is free.
    pub fn visit(&self, mut sink: impl FnMut(Sample<'_>)) {
        let mut statics = self.living_statics();
        for (_, description, source) in self.living().iter() {
            source.values(&mut |item, mut value| {
                if item == SampleItem::Only && !statics.is_empty() {
                    let key = StaticKey::of(description, &value);
                    if let Ok(place) = statics.binary_search_by(|(of, ..)| of.cmp(&key))
                        && value.merge(&statics[place].2)
                    {
                        statics.remove(place);
                    }
                }
                sink(Sample { description, item, value: &value });
            });
        }
        for (_, description, value) in &statics {
            sink(Sample { description, item: SampleItem::Only, value });
        }
    }

    /// Returns what is registered and lives, in the order of registration, with the number of the registration.
    fn living(&self) -> HeldSources<'_> {
        HeldSources::of(&self.entries)
    }

    /// Returns the values of the statics, where this registry has them, by name, labels and kind.
    fn living_statics(&self) -> Vec<(StaticKey, Cow<'static, Description>, Value)> {
        if !self.with_statics {
            return Vec::new();
        }
        StaticCounter::prepare();
        self.statics()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::average::Average;
    use crate::counter::{Counter, CounterArray};
    use crate::gauge::Gauge;
    use crate::group::Group;
    use crate::histogram::Histogram;
    use crate::placement::Pool;
    use crate::schema::{ItemSpec, Schema};
    use crate::statics::StaticGauge;
    use crate::topology::Topology;

    // also in a build for one CPU, on a machine with more: each test counts on one thread
    fn pool() -> Pool {
        let one = Topology::synthetic(1).build().expect("topology");
        Pool::builder().topology(one).build().expect("pool")
    }

    fn counter() -> Arc<Counter> {
        Arc::new(Counter::new_in(&pool(), 7).expect("counter"))
    }

    #[test]
    fn bad_and_taken_names_are_refused() {
        let registry = Registry::new();
        let (a, b) = (counter(), counter());
        for name in ["", "1a", "a-b", "a b", "ä"] {
            assert!(
                matches!(registry.register(Description::new(name), &a), Err(Error::BadName(_))),
                "{name}"
            );
        }
        let labelled = |value: &'static str| Description::new("x").label("l", value);
        assert!(registry.register(labelled("1").label("l", "2"), &a).is_err());
        for label in ["", "1a", "a:b", "__name__"] {
            let refused = registry.register(labelled("1").label(label, "2"), &a);
            assert!(matches!(refused, Err(Error::BadName(_))), "{label}");
        }
        registry.register(labelled("1"), &a).expect("free");
        assert!(matches!(registry.register(labelled("1"), &b), Err(Error::NameTaken(_))));
        assert!(matches!(registry.register(labelled("2").help("other"), &b), Err(Error::NameTaken(_))));
        registry.register(labelled("2"), &b).expect("other label");
        assert_eq!(registry.len(), 2);
    }

    #[test]
    fn an_entry_goes_with_its_counter_and_its_name_is_free_again() {
        let registry = Registry::new();
        let first = counter();
        registry.register(Description::new("x"), &first).expect("free");
        drop(first);
        assert!(registry.is_empty());
        let second = counter();
        registry.register(Description::new("x"), &second).expect("free again");
        let mut values = Vec::new();
        registry.visit(|sample| values.push(sample.value.clone()));
        assert_eq!(values, [Value::Counter(7)]);
    }

    #[test]
    fn a_family_whose_entries_are_all_dead_may_come_back_with_another_unit() {
        let registry = Registry::new();
        let first = counter();
        registry.register(Description::new("x").label("l", "1").unit(Unit::BYTES), &first).expect("free");
        let second = counter();
        let packets = || Description::new("x").label("l", "2").unit(Unit::PACKETS);
        assert!(registry.register(packets(), &second).is_err());
        drop(first);
        registry.register(packets(), &second).expect("nobody else has the name");
        assert_eq!(registry.len(), 1);
    }

    #[test]
    fn the_order_of_labels_does_not_make_another_name_and_dead_entries_do_not_pile_up() {
        let registry = Registry::new();
        let counter = counter();
        let labels = |a: &'static str, b: &'static str| Description::new("x").label(a, "v").label(b, "v");
        registry.register(labels("a", "b"), &counter).expect("free");
        assert!(registry.register(labels("b", "a"), &counter).is_err());
        let pool = pool();
        for round in 0..1000 {
            let short_lived = Arc::new(Counter::new_in(&pool, 0).expect("counter"));
            registry.register(Description::new(format!("n{round}")), &short_lived).expect("free");
        }
        assert!(registry.entries.lock().len() <= 64);
        assert_eq!(registry.len(), 1);
    }

    #[test]
    fn groups_and_arrays_hand_on_every_item() {
        let registry = Registry::new();
        let items = [ItemSpec::new("a").unit(Unit::BYTES).help("first"), ItemSpec::new("b")];
        let schema = Schema::new(items, &[]).expect("schema");
        let group = Arc::new(Group::new_in(&pool(), &schema).expect("group"));
        let array = Arc::new(CounterArray::new_in(&pool(), 3, 1).expect("array"));
        registry.register(Description::new("g"), &group).expect("free");
        registry.register(Description::new("n"), &array).expect("free");
        group.add(schema.item(1).expect("two"), 5);
        let mut seen = Vec::new();
        registry.visit(|sample| {
            // a sink may use the registry
            assert_eq!(registry.len(), 2);
            seen.push((format!("{:?}", sample.item), sample.value.number()));
        });
        assert_eq!(seen.len(), 5);
        assert!(seen[0].0.contains("first") && seen[0].1 == 0.0 && seen[1].1 == 5.0);
        assert_eq!(seen[4], ("Index(2)".to_owned(), 1.0));
    }

    #[test]
    fn a_name_is_of_one_kind() {
        let registry = Registry::new();
        let labelled = |value: &'static str| Description::new("x").label("l", value);
        let counter = counter();
        registry.register(labelled("1"), &counter).expect("free");
        let gauge = Arc::new(Gauge::new_in(&pool(), -4).expect("gauge"));
        assert!(matches!(registry.register(labelled("2"), &gauge), Err(Error::NameTaken(_))));
        drop(counter);
        registry.register(labelled("2"), &gauge).expect("the counter is gone");
        registry.visit(|sample| assert_eq!(*sample.value, Value::Gauge(-4)));
    }

    #[test]
    fn labels_that_the_text_format_adds_are_refused() {
        let registry = Registry::new();
        let histogram = Arc::new(Histogram::new_in(&pool(), 10, 0.5).expect("histogram"));
        let bound = || Description::new("x").label("le", "5");
        assert!(matches!(registry.register(bound(), &histogram), Err(Error::BadName(_))));
        registry.register(bound(), &counter()).expect("only histograms have bounds");
        let array = Arc::new(CounterArray::new_in(&pool(), 3, 1).expect("array"));
        let numbered = || Description::new("n").label("index", "5");
        assert!(matches!(registry.register(numbered(), &array), Err(Error::BadName(_))));
        registry.register(numbered(), &counter()).expect("only arrays are numbered");
        let average = Arc::new(Average::new_in(&pool()).expect("average"));
        let part = || Description::new("a").label("quantile", "0.5");
        assert!(matches!(registry.register(part(), &average), Err(Error::BadName(_))));
    }

    #[test]
    fn items_of_a_group_have_names_that_exporters_take_or_none() {
        let registry = Registry::new();
        let group = |names: &[&'static str]| {
            let items = names.iter().map(|name| ItemSpec::new(*name));
            Arc::new(Group::new_in(&pool(), &Schema::new(items, &[]).expect("schema")).expect("group"))
        };
        for names in [&["rx-bytes"][..], &["a b"], &["twice", "once", "twice"], &["1st"], &["a\n# TYPE b"]] {
            let refused = registry.register(Description::new("g"), &group(names));
            assert!(matches!(refused, Err(Error::BadName(_))), "{names:?}");
        }
        let group = group(&["first", "", "third", ""]);
        registry.register(Description::new("g"), &group).expect("good names");
        let mut seen = 0;
        registry.visit(|sample| {
            assert!(matches!(sample.item, SampleItem::Named { name: "first" | "third", .. }));
            seen += 1;
        });
        assert_eq!(seen, 2, "the others are not exported");
    }

    #[test]
    fn a_static_is_part_of_what_is_registered_under_its_name_labels_and_kind() {
        static REQUESTS: StaticCounter = StaticCounter::new("requests_of_both", "", Unit::NONE);
        static OPEN: StaticGauge = StaticGauge::new("open_of_both", "", Unit::NONE);
        REQUESTS.add(3);
        OPEN.add(4);
        let registered = Arc::new(Counter::new_in(&pool(), 5).expect("counter"));
        let registry = Registry::global();
        for name in ["requests_of_both", "open_of_both"] {
            registry.register(Description::new(name), &registered).expect("free");
        }
        let values = |name: &str| {
            let mut values = Vec::new();
            registry.visit(|sample| {
                if sample.description.name() == name {
                    values.push(sample.value.clone());
                }
            });
            values
        };
        assert_eq!(values("requests_of_both"), [Value::Counter(8)]);
        assert_eq!(values("open_of_both"), [Value::Counter(5), Value::Gauge(4)], "of two kinds");
    }

    // members of families are in the global pool, which a build for one CPU has not on other machines
    #[cfg(not(feature = "uniprocessor"))]
    #[test]
    fn histograms_of_one_name_with_other_buckets_change_by_their_own_values() {
        use crate::statics::StaticFamily;
        static NARROW: StaticFamily<1, Histogram> =
            StaticFamily::of_histograms("sizes_of_two_shapes", "", Unit::NONE, ["of"], 100, 0.1);
        static WIDE: StaticFamily<1, Histogram> =
            StaticFamily::of_histograms("sizes_of_two_shapes", "", Unit::NONE, ["of"], 1000, 0.1);
        let registry = Registry::global();
        (0..7).for_each(|_| NARROW.get(["a"]).expect("memory").observe(3));
        WIDE.get(["a"]).expect("memory").observe(500);
        let before = registry.snapshot();
        WIDE.get(["a"]).expect("memory").observe(500);
        let now = registry.snapshot();
        let change = now.since(&before).expect("time passed");
        let of_two =
            change.delta().iter().filter(|sample| sample.description.name() == "sizes_of_two_shapes");
        let mut counts: Vec<f64> = of_two
            .map(|sample| match sample.value {
                Value::Histogram(snapshot) => snapshot.count() as f64,
                _ => f64::NAN,
            })
            .collect();
        counts.sort_by(f64::total_cmp);
        assert_eq!(counts, [0.0, 1.0]);
    }

    #[test]
    fn a_static_changes_by_what_it_counts_whether_something_has_its_name_or_not() {
        static REQUESTS: StaticCounter = StaticCounter::new("requests_of_one", "", Unit::NONE);
        REQUESTS.add(100);
        let registry = Registry::global();
        let of_one = |values: &RegistryValues| {
            let named: Vec<Value> = { values.iter() }
                .filter(|sample| sample.description.name() == "requests_of_one")
                .map(|sample| sample.value.clone())
                .collect();
            let [Value::Counter(value)] = named[..] else { panic!("{named:?}") };
            value
        };
        let mut before = registry.snapshot();
        let mut change = || {
            REQUESTS.inc();
            let now = registry.snapshot();
            let change = of_one(now.since(&before).expect("time passed").delta());
            let value = of_one(now.values());
            before = now;
            (change, value)
        };
        assert_eq!(change(), (1, 101));
        let registered = Arc::new(Counter::new_in(&pool(), 5).expect("counter"));
        registry.register(Description::new("requests_of_one"), &registered).expect("free");
        assert_eq!(change(), (1 + 5, 107), "all of what came");
        registered.add(2);
        assert_eq!(change(), (1 + 2, 110));
        drop(registered);
        assert_eq!(change(), (1, 104), "none of what went");
    }

    #[test]
    fn a_static_source_stays() {
        // The gauge alone would refer to its pool from mapped memory, where leak detectors do not look.
        static POOL: OnceBox<Pool> = OnceBox::new();
        static OPEN: OnceBox<Gauge> = OnceBox::new();
        let open = OPEN.get_or_make(|| Gauge::new_in(POOL.get_or_make(pool), 0).expect("gauge"));
        let registry = Registry::new();
        registry.register_static(Description::new("open"), open).expect("free");
        assert!(matches!(registry.register_static(Description::new("open"), open), Err(Error::NameTaken(_))));
        open.sub(2);
        assert_eq!(registry.len(), 1);
        registry.visit(|sample| assert_eq!(*sample.value, Value::Gauge(-2)));
    }

    #[test]
    fn a_removed_name_is_free_while_its_source_is_held() {
        let registry = Registry::new();
        let (first, second) = (counter(), counter());
        let number = registry.register_until_removed(Description::new("x"), &first).expect("free");
        let held = registry.living();
        registry.remove(number);
        registry.register(Description::new("x"), &second).expect("free again");
        registry.remove(number);
        assert_eq!((registry.len(), held.len()), (1, 1));
    }

    #[test]
    fn a_name_is_free_once_its_source_is_dropped_also_while_a_visit_reads_it() {
        let registry = Registry::new();
        let mut first = Some(counter());
        registry.register(Description::new("x"), first.as_ref().expect("first")).expect("free");
        let kept = counter();
        registry.register(Description::new("y"), &kept).expect("free");
        let mut second = None;
        let mut seen = Vec::new();
        registry.visit(|sample| {
            seen.push(sample.description.name().to_owned());
            if first.take().is_some() {
                assert_eq!(registry.len(), 1, "the first is gone");
                let added = Arc::new(Gauge::new_in(&pool(), 8).expect("gauge"));
                registry.register(Description::new("x"), &added).expect("only the visit has the first one");
                second = Some(added);
            }
            assert!(registry.register(Description::new("y"), &counter()).is_err(), "kept by others, too");
        });
        assert_eq!(seen, ["x", "y"], "what lived when the visit began");
        let mut values = Vec::new();
        registry.visit(|sample| values.push(sample.value.clone()));
        assert_eq!(values, [Value::Counter(7), Value::Gauge(8)]);
    }

    #[test]
    fn a_source_that_only_a_visit_owns_is_in_no_other_one() {
        let registry = Registry::new();
        let mut first = Some(counter());
        registry.register(Description::new("x"), first.as_ref().expect("first")).expect("free");
        let mut visits = 0;
        registry.visit(|_| {
            registry.visit(|_| visits += 1);
            drop(first.take());
            registry.visit(|_| visits += 1);
            assert!(registry.prometheus_text().is_empty());
        });
        assert_eq!(visits, 1);
    }
}
