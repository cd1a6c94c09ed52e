//! Names for counters and groups, so that something can export them.
//!
//! A registry does not keep what is registered alive: an entry goes away with its counter, and
//! reading through the registry costs a counter's writers nothing.

mod values;
pub use values::RegistryValues;

use crate::counter::{Counter, CounterArray};
use crate::description::{Description, Key};
use crate::error::{Error, Result};
use crate::group::Group;
use crate::memory::listed_foreign_statics;
use crate::schema::Unit;
use crate::static_counter::{self, StaticCounter};
use crate::sys::OnceBox;
use crate::sys::{Lock, Rank};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Weak};

/// A type whose values can be registered for export: implemented for counters, and for arrays and groups of counters.
pub trait Source: Send + Sync + 'static + sealed::Sealed {
    /// Hands every value on.
    fn values(&self, sink: &mut dyn FnMut(SampleItem<'_>, u64));
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Counter {}
    impl Sealed for super::CounterArray {}
    impl Sealed for super::Group {}
    impl Sealed for super::BorrowedCounter {}
}

/// The part of a registered source that an exported value belongs to: the only value, an array's element by index, or a
/// group's item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SampleItem<'a> {
    /// The value of a counter.
    Only,
    /// The value at this index of an array.
    Index(usize),
    /// An item of a group.
    Named {
        /// Its name.
        name: &'a str,
        /// Unit of the item.
        unit: &'a str,
        /// Its help text.
        help: &'a str,
    },
}

impl Source for Counter {
    fn values(&self, sink: &mut dyn FnMut(SampleItem<'_>, u64)) {
        sink(SampleItem::Only, self.read());
    }
}

/// A registry's reference to a counter that C code owns, usable until [`end`](Self::end).
pub(crate) struct BorrowedCounter(Lock<Option<ManuallyDrop<Counter>>>);

impl BorrowedCounter {
    pub(crate) fn new(counter: ManuallyDrop<Counter>) -> BorrowedCounter {
        BorrowedCounter(Lock::new(Rank::Reader, Some(counter)))
    }

    /// Ends the use of the counter: waits for a read that is under way, and prevents further ones.
    pub(crate) fn end(&self) {
        *self.0.lock() = None;
    }

    /// Returns the value; `None` after the end.
    fn read(&self) -> Option<u64> {
        self.0.lock().as_ref().map(|counter| counter.read())
    }
}

impl Source for BorrowedCounter {
    fn values(&self, sink: &mut dyn FnMut(SampleItem<'_>, u64)) {
        if let Some(value) = self.read() {
            sink(SampleItem::Only, value);
        }
    }
}

impl Source for CounterArray {
    fn values(&self, sink: &mut dyn FnMut(SampleItem<'_>, u64)) {
        let mut values = vec![0; self.len()];
        // as long as the array
        let _ = self.fold_into(&mut values);
        values.into_iter().enumerate().for_each(|(index, value)| sink(SampleItem::Index(index), value));
    }
}

impl Source for Group {
    fn values(&self, sink: &mut dyn FnMut(SampleItem<'_>, u64)) {
        for (spec, value) in self.schema().specs().iter().zip(self.read()) {
            let item =
                SampleItem::Named { name: spec.name(), unit: spec.unit_name(), help: spec.help_text() };
            sink(item, value);
        }
    }
}

/// One value of a registered counter, or array or group of counters, with its description, as passed to the closure of
/// [`Registry::visit`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// Description that was registered.
    pub description: &'a Description,
    /// Position among the values of the source.
    pub item: SampleItem<'a>,
    /// The value.
    pub value: u64,
}

struct Entry {
    description: Arc<Description>,
    source: Weak<dyn Source>,
}

impl Entry {
    fn lives(&self) -> bool {
        self.source.strong_count() > 0
    }
}

/// All entries of one name have one unit and one help text.
struct Family {
    unit: Unit,
    help: Cow<'static, str>,
    entries: usize,
}

/// The entries, by their order of registration, and what finds them.
#[derive(Default)]
struct Entries {
    list: BTreeMap<u64, Entry>,
    by_key: HashMap<Key, u64>,
    families: HashMap<Cow<'static, str>, Family>,
    registered: u64,
    /// Dead entries are taken out when there are this many in all, so that a registration costs
    /// the same however many there are.
    sweep_at: usize,
}

impl Entries {
    fn remove(&mut self, place: u64) {
        let Some(entry) = self.list.remove(&place) else { return };
        self.by_key.remove(&entry.description.key());
        if let Some(family) = self.families.get_mut(entry.description.name()) {
            family.entries -= 1;
            if family.entries == 0 {
                self.families.remove(entry.description.name());
            }
        }
    }

    fn sweep(&mut self) {
        let dead: Vec<u64> =
            self.list.iter().filter(|(_, entry)| !entry.lives()).map(|(&place, _)| place).collect();
        dead.into_iter().for_each(|place| self.remove(place));
        self.sweep_at = (self.list.len() * 2).max(64);
    }

    fn is_taken(&mut self, description: &Description, key: &Key) -> bool {
        if let Some(&place) = self.by_key.get(key) {
            if self.list.get(&place).is_some_and(Entry::lives) {
                return true;
            }
            self.remove(place);
        }
        let other_kind = |entries: &Entries| {
            let family = entries.families.get(description.name());
            family.is_some_and(|family| {
                family.unit != *description.unit_of_values() || family.help != description.help_text()
            })
        };
        // perhaps all of the other kind are dead
        other_kind(self) && {
            self.sweep();
            other_kind(self)
        }
    }

    fn insert(&mut self, description: Description, key: Key, source: Weak<dyn Source>) {
        if self.list.len() >= self.sweep_at {
            self.sweep();
        }
        let (unit, help) =
            (description.unit_of_values().clone(), Cow::Owned(description.help_text().to_owned()));
        let family = self.families.entry(key.0.clone()).or_insert(Family { unit, help, entries: 0 });
        family.entries += 1;
        self.by_key.insert(key, self.registered);
        self.list.insert(self.registered, Entry { description: Arc::new(description), source });
        self.registered += 1;
    }
}

/// A registry of named counters, and arrays and groups of counters, which exporters of metrics read.
///
/// ```
/// use statctr::{Counter, Description, Registry};
/// use std::sync::Arc;
///
/// let registry = Registry::new();
/// let requests = Arc::new(Counter::new(0)?);
/// registry.register(Description::new("requests").label("method", "get"), &requests)?;
/// requests.add(3);
/// let mut seen = Vec::new();
/// registry.visit(|sample| seen.push((sample.description.name().to_owned(), sample.value)));
/// assert_eq!(seen, [("requests".to_owned(), 3)]);
/// # Ok::<(), statctr::Error>(())
/// ```
///
/// The program's own registry ([`global`](Registry::global)) also contains all statics that were ever used or listed
/// ([`StaticCounter`], [`StaticFamily`](crate::StaticFamily)).
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
    /// Creates an empty registry.
    #[must_use]
    pub fn new() -> Registry {
        Registry::having(false)
    }

    fn having(with_statics: bool) -> Registry {
        Registry { entries: Lock::new(Rank::Registry, Entries::default()), with_statics }
    }

    /// Returns the program's own registry, in which static counters appear by themselves.
    #[must_use]
    pub fn global() -> &'static Registry {
        static GLOBAL: OnceBox<Registry> = OnceBox::new();
        GLOBAL.get_or_make(|| Registry::having(true))
    }

    /// Registers a counter, or an array or group of counters, under a description, for as long as it lives. Takes a few
    /// hundred nanoseconds, however much is registered.
    ///
    /// # Errors
    /// [`Error::BadName`] for a name or a label that exporters would not take, or a label given
    /// twice; [`Error::NameTaken`] where something that lives has this name with these labels, or
    /// this name with another unit or help text.
    pub fn register<S: Source>(&self, description: Description, source: &Arc<S>) -> Result<()> {
        description.check()?;
        let source: Arc<dyn Source> = Arc::clone(source) as Arc<dyn Source>;
        let key = description.key();
        let mut entries = self.entries.lock();
        if entries.is_taken(&description, &key) {
            return Err(Error::NameTaken(description.name().to_owned()));
        }
        entries.insert(description, key, Arc::downgrade(&source));
        Ok(())
    }

    /// Returns the number of registered counters, and arrays and groups of counters, that still live.
    #[must_use]
    pub fn len(&self) -> usize {
        let registered = self.entries.lock().list.values().filter(|entry| entry.lives()).count();
        registered + if self.with_statics { self.statics().len() } else { 0 }
    }

    /// Runs `work` with the registry's lock held, so that nothing is registered, visited or taken out meanwhile; for
    /// the C API.
    #[doc(hidden)]
    pub fn while_locked<R>(&self, work: impl FnOnce() -> R) -> R {
        let _entries = self.entries.lock();
        work()
    }

    /// Returns `true` if nothing that still lives is registered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the listed statics, by name and labels. Where several have the same ones (a static of a
    /// header, or of a crate that is there in two versions), their values are added up.
    fn statics(&self) -> Vec<(Cow<'static, Description>, u64)> {
        let mut statics: Vec<(Key, Cow<'static, Description>, u64)> = {
            // nothing leaves the lists meanwhile
            let _entries = self.entries.lock();
            let listed = static_counter::listed();
            let rust = listed.map(|counter| (Cow::Borrowed(counter.description()), counter.read()));
            let c = listed_foreign_statics().map(|([name, help, unit], value)| {
                let description = Description::new(name).help(help).unit(Unit::new(unit));
                (Cow::Owned(description), value)
            });
            rust.chain(c).map(|(description, value)| (description.key(), description, value)).collect()
        };
        statics.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        statics.dedup_by(|(key, _, value), (first, _, sum)| {
            let same = key == first;
            if same {
                *sum = sum.wrapping_add(*value);
            }
            same
        });
        statics.into_iter().map(|(_, description, value)| (description, value)).collect()
    }

    /// Calls `sink` with each value, summed over the CPUs, of all registered counters, and arrays and groups of
    /// counters, in the order of registration.
    ///
    /// No lock is held while `sink` runs: it may register, make and drop counters.
    pub fn visit(&self, mut sink: impl FnMut(Sample<'_>)) {
        for (_, description, source) in &self.living() {
            source.values(&mut |item, value| sink(Sample { description, item, value }));
        }
        for (description, value) in &self.living_statics() {
            sink(Sample { description, item: SampleItem::Only, value: *value });
        }
    }

    /// Returns what is registered and lives, in the order of registration, with the number of the registration.
    fn living(&self) -> Vec<(u64, Arc<Description>, Arc<dyn Source>)> {
        let entries = self.entries.lock();
        let living = |(&number, entry): (&u64, &Entry)| {
            Some((number, Arc::clone(&entry.description), entry.source.upgrade()?))
        };
        entries.list.iter().filter_map(living).collect()
    }

    /// Returns the values of the statics, where this registry has them.
    fn living_statics(&self) -> Vec<(Cow<'static, Description>, u64)> {
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
    use crate::placement::Pool;
    use crate::schema::{ItemSpec, Schema};
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
        registry.visit(|sample| values.push(sample.value));
        assert_eq!(values, [7]);
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
        for round in 0..1000 {
            let short_lived = Arc::new(Counter::new(0).expect("counter"));
            registry.register(Description::new(format!("n{round}")), &short_lived).expect("free");
        }
        assert!(registry.entries.lock().list.len() <= 64);
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
            seen.push((format!("{:?}", sample.item), sample.value));
        });
        assert_eq!(seen.len(), 5);
        assert!(seen[0].0.contains("first") && seen[0].1 == 0 && seen[1].1 == 5);
        assert_eq!(seen[4], ("Index(2)".to_owned(), 1));
    }
}
