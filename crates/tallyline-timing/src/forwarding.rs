//! Stores that are still in their buffer, and loads that take their data over.
//!
//! A load takes its bytes from the buffer if one store wrote all of them. If a store wrote some, as where the fields of
//! an object are written one by one and the object is copied as a whole, the load waits until the store is in the
//! cache.

use super::calendar::Time;

/// Bytes whose stores are remembered together.
const WORD: u64 = 8;

/// Words that are remembered, by their address.
const WORDS: usize = 1 << 12;

/// The most bytes of a load that are looked at.
const SIZE_LIMIT: u64 = 64;

/// A word with the number of the last store to each of its bytes; 0 for none.
#[derive(Clone, Copy, Debug)]
struct StoredWord {
    word: u64,
    stores: [u32; WORD as usize],
}

/// A store in the buffer: when its data is there, and when it leaves for the cache.
#[derive(Clone, Copy, Debug, Default)]
struct BufferedStore {
    number: u32,
    data: Time,
    left: Time,
}

/// The source of a load's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadSource {
    /// The caches, as no store in the buffer wrote any of the bytes.
    Caches,
    /// One store in the buffer that wrote all bytes, with the time of its data.
    Store(Time),
    /// The caches, from the time at which the stores to a part of the bytes have left their buffer.
    CachesAfter(Time),
}

/// The stores of a thread that may still be in the buffer.
#[derive(Clone, Debug)]
pub(super) struct BufferedStores {
    words: Vec<StoredWord>,
    // by the last bits of their numbers
    stores: Vec<BufferedStore>,
    last: u32,
}

impl BufferedStores {
    /// Starts without stores, for a buffer of so many.
    pub(super) fn new(buffer: u32) -> BufferedStores {
        let words = vec![StoredWord { word: u64::MAX, stores: [0; WORD as usize] }; WORDS];
        let stores = vec![BufferedStore::default(); (buffer as usize).next_power_of_two()];
        BufferedStores { words, stores, last: 0 }
    }

    /// Adds a store of `size` bytes whose data is available at `data`, and which leaves the buffer at `left`.
    pub(super) fn add(&mut self, address: u64, size: u8, data: Time, left: Time) {
        // 0 is nobody's
        self.last = self.last.checked_add(1).unwrap_or(1);
        let index = self.last as usize & (self.stores.len() - 1);
        self.stores[index] = BufferedStore { number: self.last, data, left };
        for (word, bytes) in words(address, size) {
            let entry = &mut self.words[word as usize % WORDS];
            if entry.word != word {
                *entry = StoredWord { word, stores: [0; WORD as usize] };
            }
            entry.stores[bytes].fill(self.last);
        }
    }

    /// Finds the source of a load's data at a time.
    pub(super) fn source(&self, address: u64, size: u8, now: Time) -> LoadSource {
        let (mut only, mut last_left, mut is_part) = (None, 0, false);
        let mut seen = 0_u64;
        for (word, bytes) in words(address, size) {
            let entry = &self.words[word as usize % WORDS];
            let count = bytes.len() as u64;
            if entry.word != word {
                is_part |= only.is_some();
                seen += count;
                continue;
            }
            for number in &entry.stores[bytes] {
                match self.buffered(*number, now) {
                    Some(store) => {
                        is_part |= if only.is_none() { seen > 0 } else { only != Some(store.number) };
                        only = Some(store.number);
                        last_left = last_left.max(store.left);
                    }
                    None => is_part |= only.is_some(),
                }
                seen += 1;
            }
        }
        match only.and_then(|number| self.buffered(number, now)) {
            None => LoadSource::Caches,
            Some(_) if is_part => LoadSource::CachesAfter(last_left),
            Some(store) => LoadSource::Store(store.data),
        }
    }

    fn buffered(&self, number: u32, now: Time) -> Option<BufferedStore> {
        let store = self.stores[number as usize & (self.stores.len() - 1)];
        (number != 0 && store.number == number && store.left > now).then_some(store)
    }
}

/// The words that an access touches, with the bytes in each.
fn words(address: u64, size: u8) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let size = u64::from(size).clamp(1, SIZE_LIMIT);
    let end = address.saturating_add(size - 1);
    (address / WORD..=end / WORD).map(move |word| {
        let first = address.max(word * WORD) - word * WORD;
        let last = end.min(word * WORD + (WORD - 1)) - word * WORD;
        (word, first as usize..last as usize + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer with stores at 100, 200, … whose data is there at 10, 20, …, and which leave at 1000, 2000, …
    fn stores(all: &[(u64, u8)]) -> BufferedStores {
        let mut stores = BufferedStores::new(64);
        for ((address, size), count) in all.iter().zip(1..) {
            stores.add(*address, *size, count * 10, count * 1000);
        }
        stores
    }

    #[test]
    fn a_load_takes_over_what_one_store_wrote() {
        let stores = stores(&[(0x1000, 8), (0x1010, 16), (0x2006, 4)]);
        for (address, size, data) in
            [(0x1000, 8, 10), (0x1004, 2, 10), (0x1018, 8, 20), (0x1010, 16, 20), (0x2006, 4, 30)]
        {
            assert_eq!(stores.source(address, size, 0), LoadSource::Store(data), "{address:#x} {size}");
        }
    }

    #[test]
    fn a_load_of_more_than_a_store_wrote_waits_for_it() {
        // a field of two bytes in an object of 24 that is copied; one in front of it
        let stores = stores(&[(0x1014, 2), (0x1010, 4)]);
        assert_eq!(stores.source(0x1010, 8, 0), LoadSource::CachesAfter(2000));
        assert_eq!(stores.source(0x1014, 4, 0), LoadSource::CachesAfter(1000));
        assert_eq!(stores.source(0x1000, 32, 0), LoadSource::CachesAfter(2000));
        assert_eq!(stores.source(0x100e, 4, 0), LoadSource::CachesAfter(2000));
        assert_eq!(stores.source(0x1016, 2, 0), LoadSource::Caches, "beside it");
    }

    #[test]
    fn a_store_that_has_left_or_is_overwritten_is_not_waited_for() {
        let stores = stores(&[(0x1014, 2), (0x1010, 8)]);
        assert_eq!(stores.source(0x1010, 8, 0), LoadSource::Store(20));
        assert_eq!(stores.source(0x1010, 8, 2000), LoadSource::Caches);
        // more stores since than the buffer holds
        let many: Vec<(u64, u8)> = (0..100).map(|count| (0x9000 + count * 8, 8)).collect();
        assert_eq!(super::tests::stores(&many).source(0x9000, 8, 0), LoadSource::Caches);
    }

    #[test]
    fn addresses_at_the_end_are_no_error() {
        let mut stores = stores(&[]);
        stores.add(u64::MAX - 1, 8, 1, 9);
        assert_eq!(stores.source(u64::MAX, 64, 0), LoadSource::Store(1));
        stores.last = u32::MAX;
        stores.add(0, 0, 2, 9);
        assert_eq!(stores.source(0, 0, 0), LoadSource::Store(2));
    }
}
