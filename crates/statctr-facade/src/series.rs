//! Series by their labels: [`SeriesMap`].

use statctr::Registry;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Entries of a bucket.
const WAYS: usize = 4;
/// Buckets of each level: what does not fit into a bucket of one goes to the next.
const BUCKETS: [usize; 6] = [1 << 4, 1 << 7, 1 << 10, 1 << 13, 1 << 16, 1 << 19];

/// An entry, which is only ever added.
struct Entry<K, V> {
    hash: u64,
    key: K,
    value: V,
}

type Place<K, V> = OnceLock<Box<Entry<K, V>>>;
/// Places that are filled from the first to the last, once.
type Bucket<K, V> = [Place<K, V>; WAYS];
type Table<K, V> = Box<[Bucket<K, V>]>;

/// An insert-only concurrent hash map whose look-ups take no lock and write no shared memory, for a metric's series by
/// their labels.
///
/// It is meant for the series of a metric: few, created once, and looked up by each update. A key is looked up by its
/// hash and a comparison, so that borrowed data can find an owned key.
///
/// ```
/// use statctr_facade::SeriesMap;
///
/// let lengths: SeriesMap<String, usize> = SeriesMap::new(1000);
/// // of a hasher with a random key, where keys come from outside
/// let hash = 42;
/// let find = |key: &String| key == "get";
/// assert_eq!(lengths.get(hash, find), None);
/// assert_eq!(lengths.get_or_insert(hash, find, || ("get".to_owned(), 3)), Some(&3));
/// assert_eq!(lengths.get(hash, find), Some(&3));
/// ```
///
/// # Cost
/// A lookup compares the hashes of at most 24 entries, and of one or two as a rule. The first entry takes
/// one KiB; tables grow eightfold.
///
/// # Bounds
/// A map has at most as many entries as it was made for. It is full earlier where many keys have one hash:
/// 24 of exactly the same hash.
///
/// # Forks
/// A child of `fork` goes on with the entries of its parent, and may add some, whatever other threads of the parent were
/// adding.
pub struct SeriesMap<K, V> {
    levels: [OnceLock<Table<K, V>>; BUCKETS.len()],
    len: AtomicUsize,
    limit: usize,
}

impl<K, V> SeriesMap<K, V> {
    /// Creates an empty map of at most `limit` entries (a metric's series, by their labels). Allocates nothing before
    /// the first entry.
    #[must_use]
    pub const fn new(limit: usize) -> SeriesMap<K, V> {
        SeriesMap { levels: [const { OnceLock::new() }; BUCKETS.len()], len: AtomicUsize::new(0), limit }
    }

    /// Returns the value whose key has this hash and satisfies `is`; `None` if there is none. Takes no lock.
    #[inline]
    pub fn get(&self, hash: u64, is: impl Fn(&K) -> bool) -> Option<&V> {
        for (level, table) in self.levels.iter().enumerate() {
            let table = table.get()?;
            for place in &table[bucket(hash, level)] {
                // places are filled in order: behind a free one there is nothing
                let entry = place.get()?;
                if entry.hash == hash && is(&entry.key) {
                    return Some(&entry.value);
                }
            }
        }
        None
    }

    /// Returns the value whose key has this hash and satisfies `is`; if there is none, inserts the entry that `make`
    /// returns. `None` if the map is full.
    ///
    /// Takes a lock only if there is no such key, and room for it: that of [`Registry::global`]. `make` runs without it.
    /// Of the entries that several threads make for one key, one is kept.
    #[inline]
    pub fn get_or_insert(
        &self,
        hash: u64,
        is: impl Fn(&K) -> bool,
        make: impl FnOnce() -> (K, V),
    ) -> Option<&V> {
        let is_full = self.is_full();
        match self.get(hash, &is) {
            Some(value) => Some(value),
            None if is_full => None,
            None => self.insert(hash, is, make),
        }
    }

    #[cold]
    fn insert(&self, hash: u64, is: impl Fn(&K) -> bool, make: impl FnOnce() -> (K, V)) -> Option<&V> {
        if self.has_no_room(hash) {
            // Another thread may have added the key since the caller's look-up. What the buckets have was added before
            // they were seen to be full, therefore this look-up finds it, and nothing is added later.
            return self.get(hash, is);
        }
        if let Err(there) = while_adding(|| self.place_for(hash, &is)) {
            return there;
        }
        let (key, value) = make();
        let mut made = Some(Box::new(Entry { hash, key, value }));
        while_adding(|| {
            let place = match self.place_for(hash, &is) {
                Ok(place) => place,
                Err(there) => return there,
            };
            if made.take().is_some_and(|entry| place.set(entry).is_ok()) {
                // after the entry, for `is_full`
                self.len.fetch_add(1, Ordering::Release);
            }
            place.get().map(|entry| &entry.value)
        })
    }

    /// Returns `true` if all buckets of keys with this hash are full: from then on for ever, as entries stay.
    fn has_no_room(&self, hash: u64) -> bool {
        self.levels.iter().enumerate().all(|(level, table)| {
            let bucket = table.get().map(|table| &table[bucket(hash, level)]);
            bucket.is_some_and(|bucket| bucket.iter().all(|place| place.get().is_some()))
        })
    }

    /// Returns the free place of a key with this hash; the error is the value that the key has already, or `None` if the
    /// map is full. Others do not add meanwhile.
    fn place_for(&self, hash: u64, is: impl Fn(&K) -> bool) -> Result<&Place<K, V>, Option<&V>> {
        if let Some(value) = self.get(hash, is) {
            return Err(Some(value));
        }
        if self.len() >= self.limit {
            return Err(None);
        }
        let place = self.levels.iter().enumerate().find_map(|(level, table)| {
            let table = table.get_or_init(|| (0..BUCKETS[level]).map(|_| Bucket::default()).collect());
            table[bucket(hash, level)].iter().find(|place| place.get().is_none())
        });
        place.ok_or(None)
    }

    /// Returns the number of entries (a metric's series) in the map.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Returns `true` if the map has as many entries (a metric's series) as it was made for; none is added from then on.
    /// A key that a later [`get`](Self::get) does not find will never be there, and no lock is needed to know that.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        // entries are added before they are counted, therefore all of a full map are seen from here on
        self.len.load(Ordering::Acquire) >= self.limit
    }

    /// Returns `true` if the map has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all entries of the map (a metric's series) as key and value, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let tables = self.levels.iter().filter_map(OnceLock::get);
        let places = tables.flat_map(|table| table.iter().flatten());
        places.filter_map(OnceLock::get).map(|entry| (&entry.key, &entry.value))
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SeriesMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Calls `add` under the lock that one thread at a time adds under, to whatever map. A fork waits for that lock: the
/// child of one that another thread of its parent held would wait for ever, and so it would where a place is being
/// filled.
fn while_adding<R>(add: impl FnOnce() -> R) -> R {
    Registry::global().while_locked(add)
}

/// Returns the bucket of a hash on a level. Levels use other bits of it, so that those who meet in a bucket
/// of one part on the next.
#[inline]
fn bucket(hash: u64, level: usize) -> usize {
    let spread = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (spread.rotate_left(11 * level as u32) >> 32) as usize & (BUCKETS[level] - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn all_that_was_added_is_found_and_nothing_else() {
        let map = SeriesMap::new(usize::MAX);
        for key in 0..50_000u64 {
            assert_eq!(map.get_or_insert(key, |there| *there == key, || (key, key * 2)), Some(&(key * 2)));
        }
        for key in 0..50_000 {
            assert_eq!(map.get(key, |there| *there == key), Some(&(key * 2)));
            assert_eq!(map.get(key + 50_000, |there| *there == key + 50_000), None);
        }
        assert_eq!(map.len(), 50_000);
        let mut keys: Vec<u64> = map.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        assert!(keys.into_iter().eq(0..50_000));
    }

    #[test]
    fn a_full_map_keeps_what_it_has() {
        let map = SeriesMap::new(10);
        for key in 0..1000u64 {
            assert_eq!(map.get_or_insert(key, |there| *there == key, || (key, ())).is_some(), key < 10);
        }
        assert!((0..10).all(|key| map.get(key, |there| *there == key).is_some()));
        assert_eq!(map.len(), 10);
    }

    #[test]
    fn keys_of_one_hash_are_told_apart_and_bounded() {
        let map = SeriesMap::new(1000);
        let added =
            (0..100u64).filter(|key| map.get_or_insert(7, |there| there == key, || (*key, *key)).is_some());
        assert_eq!(added.count(), WAYS * BUCKETS.len());
        assert_eq!(map.get(7, |there| *there == 5), Some(&5));
    }

    #[test]
    fn a_key_that_finds_no_room_takes_no_lock() {
        let map = SeriesMap::new(10);
        let add = |map: &SeriesMap<u64, ()>, hash: u64, key: u64| {
            map.get_or_insert(hash, |there| *there == key, || (key, ())).is_some()
        };
        (0..10).for_each(|key| assert!(add(&map, key, key)));
        let of_one_hash = SeriesMap::new(1000);
        (0..24).for_each(|key| assert!(add(&of_one_hash, 7, key)));
        Registry::global().while_locked(|| {
            assert!(!add(&map, 10, 10));
            assert!(add(&map, 9, 9));
            assert!(!add(&SeriesMap::new(0), 1, 1));
            assert!(!add(&of_one_hash, 7, 24));
            assert!(add(&of_one_hash, 7, 23));
        });
        // other hashes have room
        assert!(add(&of_one_hash, 8, 24));
    }

    #[test]
    fn the_last_key_that_finds_room_is_found_by_all_threads() {
        for round in 0..3000 {
            let limit = round % 3 + 1;
            let map = SeriesMap::new(limit);
            let start = std::sync::Barrier::new(2);
            let add = || {
                start.wait();
                (0..limit as u64)
                    .map(|key| map.get_or_insert(key, |there| *there == key, || (key, key)).copied())
                    .collect::<Vec<_>>()
            };
            let (first, second) = std::thread::scope(|scope| {
                let other = scope.spawn(add);
                (add(), other.join().expect("adds"))
            });
            assert!(first == second && first.iter().all(Option::is_some), "{first:?} {second:?}");
        }
    }

    #[test]
    fn an_entry_is_made_without_a_lock() {
        let map = SeriesMap::new(10);
        let inner = || map.get_or_insert(2, |there| *there == 2, || (2, "inner"));
        assert_eq!(map.get_or_insert(1, |there| *there == 1, || (1, inner().expect("room"))), Some(&"inner"));
        // that of its own key, too, which stays then
        let first = || map.get_or_insert(3, |there| *there == 3, || (3, "first"));
        let outer = || {
            first().expect("room");
            (3, "outer")
        };
        assert_eq!(map.get_or_insert(3, |there| *there == 3, outer), Some(&"first"));
        assert_eq!(map.len(), 3);
    }

    #[test]
    fn threads_that_add_one_key_get_one_value() {
        let map = SeriesMap::new(10_000);
        let made = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..40_000u64 {
                        let key = round % 2000;
                        let make = || {
                            made.fetch_add(1, Ordering::Relaxed);
                            (key, AtomicU64::new(0))
                        };
                        let counter = map.get_or_insert(key.wrapping_mul(0x1234_5677), |k| *k == key, make);
                        counter.expect("room").fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        // all that were made at the same time but one are dropped
        assert!(made.into_inner() >= 2000);
        assert_eq!(map.len(), 2000);
        assert!(map.iter().all(|(_, counter)| counter.load(Ordering::Relaxed) == 80));
    }
}
