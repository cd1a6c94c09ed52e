//! Tables of the members of a family, by the values of its labels.

use super::{ListedObject, OBJECTS};
use crate::description::Description;
use crate::sys::{Link, OnceBox};
use crate::value::Source;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest length in bytes of a label's value with which a family of statistics has a member of its own; longer
/// ones are counted by the overflow member.
pub(crate) const MAX_VALUE_BYTES: usize = 256;
/// The value that all labels of the overflow member have: the statistic of a family that counts for label values beyond
/// the family's bounds.
pub(crate) const OVERFLOW: &str = "overflow";
/// The largest number of members (statistics, one for each combination of label values) that a family can have.
pub(crate) const LARGEST_LIMIT: usize = 1 << 16;

/// A member (statistic) of a family with the values of its labels, in the family's hash table. Entries are only ever
/// added.
pub(crate) struct Entry<V, M> {
    values: V,
    pub(crate) member: M,
    /// The place in the program's registry of a member that does not list itself.
    listed: OnceBox<ListedObject>,
}

/// A hash table of the members (statistics) of a family by the values of their labels, with open addressing, at most
/// half full, whose places are filled once, and an overflow member for all that does not fit.
///
/// Finding a member takes no lock and does not allocate, so it is async-signal-safe.
pub(crate) struct LabelTable<V, M> {
    hasher: RandomState,
    places: Box<[OnceBox<Entry<V, M>>]>,
    limit: usize,
    /// Places filled, or about to be.
    entries: AtomicUsize,
    overflow: OnceBox<Entry<V, M>>,
}

impl<V, M> LabelTable<V, M>
where
    V: AsRef<[Box<str>]> + Send + Sync + 'static,
    M: Send + Sync + 'static,
{
    /// Creates a table for at most `limit` members (statistics) of a family, without the overflow member.
    pub(crate) fn new(limit: usize) -> LabelTable<V, M> {
        let places = (0..(2 * limit).next_power_of_two()).map(|_| OnceBox::new()).collect();
        let (entries, overflow) = (AtomicUsize::new(0), OnceBox::new());
        LabelTable { hasher: RandomState::new(), places, limit, entries, overflow }
    }

    /// Returns the entry of a family's member (statistic) for these values of the labels, created by `make` if it does
    /// not exist; the overflow member's, which has the values `overflow`, for values that are too long, beyond the
    /// limit, and where `make` fails.
    ///
    /// # Errors
    /// Those of `make` for the overflow member.
    pub(crate) fn get<'a, A: AsRef<[&'a str]> + Copy, E>(
        &'static self,
        values: A,
        overflow: A,
        make: impl Fn(A) -> Result<(V, M), E>,
    ) -> Result<&'static Entry<V, M>, E> {
        let make =
            |values| make(values).map(|(values, member)| Entry { values, member, listed: OnceBox::new() });
        let texts = values.as_ref();
        let is_known = texts.iter().all(|value| value.len() <= MAX_VALUE_BYTES) && texts != overflow.as_ref();
        if let Some(entry) = is_known.then(|| self.look_up(values, &make)).flatten() {
            return Ok(entry);
        }
        match self.overflow.get() {
            Some(entry) => Ok(entry),
            None => make(overflow).map(|entry| self.overflow.get_or(entry)),
        }
    }

    /// Returns the entry for these values, made if it is not there; `None` where it may not or cannot be made.
    fn look_up<'a, A: AsRef<[&'a str]> + Copy, E>(
        &'static self,
        values: A,
        make: &impl Fn(A) -> Result<Entry<V, M>, E>,
    ) -> Option<&'static Entry<V, M>> {
        let mask = self.places.len() - 1;
        let mut at = self.hasher.hash_one(values.as_ref()) as usize & mask;
        loop {
            let place = &self.places[at];
            let there = match place.get() {
                Some(entry) => entry,
                None => self.fill(place, || make(values))?,
            };
            if there.values.as_ref().iter().zip(values.as_ref()).all(|(there, value)| **there == **value) {
                return Some(there);
            }
            at = (at + 1) & mask;
        }
    }

    /// Makes the entry of a free place; returns the one that is there then, whoever made it, and `None`
    /// where the family has all that it may have, and where there is no memory.
    fn fill<E>(
        &self,
        place: &'static OnceBox<Entry<V, M>>,
        make: impl FnOnce() -> Result<Entry<V, M>, E>,
    ) -> Option<&'static Entry<V, M>> {
        let more = |entries: usize| (entries < self.limit).then_some(entries + 1);
        self.entries.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        let made = make().ok().map(|entry| place.try_set(entry));
        if let Some(Ok(entry)) = made {
            return Some(entry);
        }
        self.entries.fetch_sub(1, Ordering::AcqRel);
        // another thread's
        made?.err()
    }

    /// Returns the number of members (statistics of the family) in the table, without the overflow member. Those that
    /// threads are making at this moment count, too, of which one of the same labels is given up.
    pub(crate) fn len(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }
}

impl<V: AsRef<[Box<str>]> + Send + Sync + 'static, M: Send + Sync + 'static> Entry<V, M> {
    /// Puts the entry's member (a statistic of a family) into the program's registry as `source`, under the description
    /// that `describe` makes of the values of its labels, unless it is there.
    pub(crate) fn list(
        &'static self,
        source: &'static dyn Source,
        describe: impl FnOnce(&'static V) -> Description,
    ) {
        let listed = || ListedObject { link: Link::new(), description: describe(&self.values), source };
        OBJECTS.add(self.listed.get_or_make(listed));
    }
}
