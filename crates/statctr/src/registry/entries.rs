//! The entries of a registry, and their sources, which reads hold for a while.

use crate::description::{Description, Key};
use crate::schema::Unit;
use crate::sys::Lock;
use crate::value::{Kind, Source};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::{Arc, Weak};

/// A registry's reference to a source.
pub(super) enum SourceRef {
    /// A source that others own.
    Weak(Weak<dyn Source>),
    /// A source that lives as long as the program.
    Static(&'static dyn Source),
}

impl SourceRef {
    /// Returns the number of the source's owners, among which are the reads that hold it.
    fn owners(&self) -> usize {
        match self {
            SourceRef::Weak(source) => source.strong_count(),
            SourceRef::Static(_) => usize::MAX,
        }
    }

    /// Returns the source, which lives as long as what is returned; `None` for one that is gone.
    fn living(&self) -> Option<Living> {
        match self {
            SourceRef::Weak(source) => source.upgrade().map(Living::Shared),
            SourceRef::Static(source) => Some(Living::Static(*source)),
        }
    }
}

/// A registered source that lives at least as long as this.
pub(super) enum Living {
    Shared(Arc<dyn Source>),
    Static(&'static dyn Source),
}

impl Deref for Living {
    type Target = dyn Source;

    fn deref(&self) -> &(dyn Source + 'static) {
        match self {
            Living::Shared(source) => &**source,
            Living::Static(source) => *source,
        }
    }
}

/// State of an entry's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Living,
    /// A read gives the source up at this moment, and may be its last owner.
    Unclear,
    Gone,
}

struct Entry {
    description: Arc<Description>,
    source: SourceRef,
    /// The number of reads of the registry that own the source meanwhile. Without them a source that a long read holds
    /// would keep its name.
    reads: usize,
    /// The number of reads that have begun to give the source up, and may own it still or no longer.
    releases: usize,
}

impl Entry {
    /// Returns the state of the source: what is owned by reads alone is gone.
    fn life(&self) -> Life {
        match self.source.owners() {
            owners if owners.saturating_sub(self.reads) > self.releases => Life::Living,
            owners if owners > self.reads => Life::Unclear,
            _ => Life::Gone,
        }
    }

    fn lives(&self) -> bool {
        self.life() != Life::Gone
    }
}

/// The living sources of a registry in the order of their registration, held for a read.
pub(super) struct HeldSources<'a> {
    entries: &'a Lock<Entries>,
    sources: Vec<(u64, Arc<Description>, Living)>,
}

impl<'a> HeldSources<'a> {
    /// Holds all sources of these entries that live.
    pub(super) fn of(entries: &'a Lock<Entries>) -> HeldSources<'a> {
        let living = |(&number, entry): (&u64, &mut Entry)| {
            // or reads that overlap would keep a source for ever
            let source = if entry.lives() { entry.source.living()? } else { return None };
            entry.reads += 1;
            Some((number, Arc::clone(&entry.description), source))
        };
        let sources = entries.lock().list.iter_mut().filter_map(living).collect();
        HeldSources { entries, sources }
    }
}

impl Deref for HeldSources<'_> {
    type Target = [(u64, Arc<Description>, Living)];

    fn deref(&self) -> &Self::Target {
        &self.sources
    }
}

impl Drop for HeldSources<'_> {
    fn drop(&mut self) {
        let mark = |numbers: &[u64], change: fn(&mut Entry)| {
            let mut numbers = numbers.iter().peekable();
            // side by side, as both are in order: look-ups took 60 ns more of a source, for which a visit takes 37 (EPYC)
            for (number, entry) in &mut self.entries.lock().list {
                // those that were removed meanwhile
                while numbers.next_if(|held| *held < number).is_some() {}
                if numbers.next_if_eq(&number).is_some() {
                    change(entry);
                }
            }
        };
        let numbers: Vec<u64> = self.sources.iter().map(|&(number, ..)| number).collect();
        mark(&numbers, |entry| {
            entry.reads -= 1;
            entry.releases += 1;
        });
        // Without the lock: the last owner of a pool drops the pool's lock, which nobody may do who holds another.
        self.sources.clear();
        mark(&numbers, |entry| entry.releases -= 1);
    }
}

/// The properties that all entries of one name share (kind, unit, help text), and the number of entries.
struct Family {
    kind: Kind,
    unit: Unit,
    help: Cow<'static, str>,
    entries: usize,
}

/// The entries, by their order of registration, and what finds them.
#[derive(Default)]
pub(super) struct Entries {
    list: BTreeMap<u64, Entry>,
    by_key: HashMap<Key, u64>,
    families: HashMap<Cow<'static, str>, Family>,
    registered: u64,
    /// Dead entries are taken out when there are this many in all, so that a registration costs
    /// the same however many there are.
    sweep_at: usize,
}

impl Entries {
    /// Returns the number of entries, of which some may be dead.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the number of entries that live.
    pub(super) fn living(&self) -> usize {
        self.list.values().filter(|entry| entry.lives()).count()
    }

    pub(super) fn remove(&mut self, place: u64) {
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

    /// Returns the state of the sources that keep a source of this kind from being registered under a description.
    pub(super) fn rival(&mut self, description: &Description, key: &Key, kind: Kind) -> Life {
        if let Some(&place) = self.by_key.get(key) {
            match self.list.get(&place).map_or(Life::Gone, Entry::life) {
                Life::Gone => self.remove(place),
                life => return life,
            }
        }
        let differs = |entries: &Entries| {
            let family = entries.families.get(description.name());
            family.is_some_and(|family| {
                family.kind != kind
                    || family.unit != *description.unit_of_values()
                    || family.help != description.help_text()
            })
        };
        if !differs(self) {
            return Life::Gone;
        }
        // perhaps all that differ are dead
        self.sweep();
        if !differs(self) {
            return Life::Gone;
        }
        let mut rivals = self.list.values().filter(|entry| entry.description.name() == description.name());
        if rivals.any(|entry| entry.life() == Life::Living) { Life::Living } else { Life::Unclear }
    }

    /// Adds an entry and returns its place in the list.
    pub(super) fn insert(
        &mut self,
        description: Description,
        key: Key,
        kind: Kind,
        source: SourceRef,
    ) -> u64 {
        if self.list.len() >= self.sweep_at {
            self.sweep();
        }
        let (unit, help) =
            (description.unit_of_values().clone(), Cow::Owned(description.help_text().to_owned()));
        let family = self.families.entry(key.0.clone()).or_insert(Family { kind, unit, help, entries: 0 });
        family.entries += 1;
        self.by_key.insert(key, self.registered);
        let description = Arc::new(description);
        self.list.insert(self.registered, Entry { description, source, reads: 0, releases: 0 });
        self.registered += 1;
        self.registered - 1
    }
}
