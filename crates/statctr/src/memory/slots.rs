//! The free list of a reservation's slots.
//!
//! Single words share chunks; groups take whole chunks in a row. Freed chunks that touch become
//! one run again, and the smallest run that fits is taken first.

use super::layout::CHUNK_WORDS;
use std::collections::{BTreeMap, BTreeSet};

/// Number of cache lines with room that are searched for two words side by side.
const PAIR_SEARCH: usize = 8;

/// Allocator of counters' places (slots) in each CPU's unit of memory: single 64-bit words and runs of cache lines, by
/// index.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Per chunk, a bit per word that is taken.
    taken: Box<[u8]>,
    /// Per chunk, a bit per word that something lived in since its memory was last known to be zero.
    used: Box<[u8]>,
    /// Chunks that single words live in and that have room.
    partial: BTreeSet<u32>,
    /// Free runs: first chunk to length, and (length, first chunk).
    runs: BTreeMap<u32, u32>,
    by_length: BTreeSet<(u32, u32)>,
    words: usize,
}

/// An allocated word or run of cache lines of counter memory, as an index of words in the unit (a CPU's part of the
/// memory), with a flag that says whether it has to be zeroed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AllocatedSlots {
    /// Index of the first word in the unit.
    pub(crate) word: usize,
    /// `true` if the slots were used before: their words may then hold old counts.
    pub(crate) used: bool,
}

impl Slots {
    /// Returns a bound of the bytes on the heap that slots of this number of chunks take at first.
    pub(crate) const fn heap_bytes(chunks: usize) -> usize {
        // two arrays, and nodes of trees
        2 * chunks + 8192
    }

    pub(crate) fn new(chunks: usize) -> Self {
        let chunks = u32::try_from(chunks).unwrap_or(u32::MAX);
        let mut slots = Slots {
            taken: vec![0; chunks as usize].into(),
            used: vec![0; chunks as usize].into(),
            partial: BTreeSet::new(),
            runs: BTreeMap::new(),
            by_length: BTreeSet::new(),
            words: 0,
        };
        slots.insert_run(0, chunks);
        slots
    }

    /// Returns the number of allocated counter words.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    fn insert_run(&mut self, first: u32, length: u32) {
        if length > 0 {
            self.runs.insert(first, length);
            self.by_length.insert((length, first));
        }
    }

    fn remove_run(&mut self, first: u32, length: u32) {
        self.runs.remove(&first);
        self.by_length.remove(&(length, first));
    }

    /// Takes the smallest run of at least `length` chunks; its first chunk.
    fn take_run(&mut self, length: u32) -> Option<u32> {
        let &(found, first) = self.by_length.range((length, 0)..).next()?;
        self.remove_run(first, found);
        self.insert_run(first + length, found - length);
        Some(first)
    }

    /// Allocates `length` consecutive cache lines of each CPU's unit (its part of the counter memory); `None` if there
    /// is no free run.
    pub(crate) fn take_chunks(&mut self, length: usize) -> Option<AllocatedSlots> {
        let first = self.take_run(u32::try_from(length).ok().filter(|&length| length > 0)?)? as usize;
        let range = first..first + length;
        let used = self.used[range.clone()].iter().any(|&bits| bits != 0);
        self.used[range.clone()].fill(0xff);
        self.taken[range].fill(0xff);
        self.words += length * CHUNK_WORDS;
        Some(AllocatedSlots { word: first * CHUNK_WORDS, used })
    }

    /// Allocates one counter's word, preferably in a cache line that other single counters use; `None` if the unit (a
    /// CPU's part of the memory) is full.
    pub(crate) fn take_word(&mut self) -> Option<AllocatedSlots> {
        let chunk = match self.partial.first() {
            Some(&chunk) => chunk,
            None => {
                let chunk = self.take_run(1)?;
                self.partial.insert(chunk);
                chunk
            }
        };
        let (taken, used) = (&mut self.taken[chunk as usize], &mut self.used[chunk as usize]);
        let place = taken.trailing_ones() as usize;
        let bit = 1u8 << place;
        let result = AllocatedSlots { word: chunk as usize * CHUNK_WORDS + place, used: *used & bit != 0 };
        *taken |= bit;
        *used |= bit;
        if *taken == 0xff {
            self.partial.remove(&chunk);
        }
        self.words += 1;
        Some(result)
    }

    /// Allocates two words at an even index, for a statistic that needs two (such as a maximum and its epoch),
    /// preferably in a cache line that other single counters use; `None` if the unit (a CPU's part of the memory) is
    /// full.
    pub(crate) fn take_pair(&mut self) -> Option<AllocatedSlots> {
        // of the chunks with room only the first few: a program may have many with one word left
        let with_room = self.partial.iter().take(PAIR_SEARCH).find_map(|&chunk| {
            let taken = self.taken[chunk as usize];
            (0..CHUNK_WORDS).step_by(2).find(|place| taken >> place & 0b11 == 0).map(|place| (chunk, place))
        });
        let (chunk, place) = match with_room {
            Some(found) => found,
            None => {
                let chunk = self.take_run(1)?;
                self.partial.insert(chunk);
                (chunk, 0)
            }
        };
        let (taken, used) = (&mut self.taken[chunk as usize], &mut self.used[chunk as usize]);
        let bits = 0b11u8 << place;
        let result = AllocatedSlots { word: chunk as usize * CHUNK_WORDS + place, used: *used & bits != 0 };
        *taken |= bits;
        *used |= bits;
        if *taken == 0xff {
            self.partial.remove(&chunk);
        }
        self.words += 2;
        Some(result)
    }

    /// Frees the allocated word of one counter, by its index in the unit (a CPU's part of the memory); returns `false`
    /// if it was not allocated.
    pub(crate) fn free_word(&mut self, word: usize) -> bool {
        let (chunk, bit) = (word / CHUNK_WORDS, 1u8 << (word % CHUNK_WORDS));
        if self.taken.get(chunk).is_none_or(|taken| taken & bit == 0) {
            return false;
        }
        self.taken[chunk] &= !bit;
        self.words -= 1;
        if self.taken[chunk] == 0 {
            self.partial.remove(&(chunk as u32));
            self.free_run(chunk as u32, 1);
        } else {
            self.partial.insert(chunk as u32);
        }
        true
    }

    /// Frees `length` cache lines of counter memory, beginning with the one that contains word `word`; returns `false`
    /// if one of them was not allocated as a whole.
    pub(crate) fn free_chunks(&mut self, word: usize, length: usize) -> bool {
        let first = word / CHUNK_WORDS;
        let range = first..first.saturating_add(length);
        if length == 0
            || self.taken.get(range.clone()).is_none_or(|taken| taken.iter().any(|&bits| bits != 0xff))
        {
            return false;
        }
        self.taken[range].fill(0);
        self.words -= length * CHUNK_WORDS;
        self.free_run(first as u32, length as u32);
        true
    }

    fn free_run(&mut self, mut first: u32, mut length: u32) {
        if let Some((&before, &its_length)) = self.runs.range(..first).next_back()
            && before + its_length == first
        {
            self.remove_run(before, its_length);
            first = before;
            length += its_length;
        }
        if let Some(&its_length) = self.runs.get(&(first + length)) {
            self.remove_run(first + length, its_length);
            length += its_length;
        }
        self.insert_run(first, length);
    }

    /// Returns the runs of free cache lines of counter memory that may not be zero, as they were allocated before:
    /// (first line, number of lines).
    pub(crate) fn used_runs(&self) -> Vec<(usize, usize)> {
        let used = |&(first, length): &(usize, usize)| {
            self.used[first..first + length].iter().any(|&bits| bits != 0)
        };
        self.runs.iter().map(|(&first, &length)| (first as usize, length as usize)).filter(used).collect()
    }

    /// Records that `length` free cache lines of counter memory, from line `first` on, have been zeroed.
    pub(crate) fn mark_unused(&mut self, first: usize, length: usize) {
        self.used[first..first + length].fill(0);
    }

    /// Returns the number of cache lines, from the start of a unit (a CPU's part of the counter memory), that contain
    /// all words allocated since the memory was last zero.
    pub(crate) fn used_extent(&self) -> usize {
        self.used.iter().rposition(|&bits| bits != 0).map_or(0, |last| last + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_fill_chunk_after_chunk_and_are_reused() {
        let mut slots = Slots::new(2);
        let words: Vec<_> = std::iter::from_fn(|| slots.take_word()).collect();
        assert_eq!(words.iter().map(|taken| taken.word).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
        assert!(words.iter().all(|taken| !taken.used));
        assert!(slots.free_word(11) && !slots.free_word(11) && !slots.free_word(999));
        assert_eq!(slots.take_word(), Some(AllocatedSlots { word: 11, used: true }));
        assert_eq!(slots.words(), 16);
    }

    #[test]
    fn freed_chunks_join_and_the_smallest_fitting_run_is_taken() {
        let mut slots = Slots::new(10);
        let taken: Vec<_> = [2, 3, 4].map(|length| slots.take_chunks(length).expect("room").word / 8).into();
        assert_eq!(taken, [0, 2, 5]);
        assert!(slots.take_chunks(2).is_none(), "one chunk is left");
        assert!(slots.free_chunks(0, 2) && slots.free_chunks(16, 3));
        assert!(!slots.free_chunks(16, 3), "given back twice");
        assert_eq!(slots.take_chunks(1).map(|taken| (taken.word, taken.used)), Some((72, false)));
        assert_eq!(slots.take_chunks(5).map(|taken| (taken.word, taken.used)), Some((0, true)));
    }

    #[test]
    fn a_chunk_whose_words_are_all_back_serves_groups_again() {
        let mut slots = Slots::new(1);
        let word = slots.take_word().expect("room").word;
        assert!(slots.take_chunks(1).is_none());
        assert!(slots.free_word(word));
        assert_eq!(slots.used_runs(), [(0, 1)]);
        slots.mark_unused(0, 1);
        assert_eq!(slots.used_runs(), []);
        assert_eq!(slots.take_chunks(1), Some(AllocatedSlots { word: 0, used: false }));
    }

    #[test]
    fn any_order_of_taking_and_giving_back_keeps_slots_apart() {
        let mut slots = Slots::new(64);
        let (mut words, mut rows) = (Vec::new(), Vec::new());
        let mut seed = 12345u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % below
        };
        for _ in 0..20_000 {
            match random(5) {
                0 => words.extend(slots.take_word().map(|taken| taken.word)),
                4 => {
                    let pair = slots.take_pair().map(|taken| taken.word);
                    assert!(pair.is_none_or(|word| word % 2 == 0));
                    words.extend(pair.into_iter().flat_map(|word| [word, word + 1]));
                }
                1 => {
                    let length = 1 + random(5);
                    rows.extend(slots.take_chunks(length).map(|taken| (taken.word, length)));
                }
                2 if !words.is_empty() => assert!(slots.free_word(words.swap_remove(random(words.len())))),
                3 if !rows.is_empty() => {
                    let (word, length) = rows.swap_remove(random(rows.len()));
                    assert!(slots.free_chunks(word, length));
                }
                _ => {}
            }
            let in_use = words.len() + rows.iter().map(|(_, length)| length * 8).sum::<usize>();
            assert_eq!(slots.words(), in_use);
        }
        let mut owners = vec![0; 64 * 8];
        words.iter().for_each(|&word| owners[word] += 1);
        rows.iter().for_each(|&(word, length)| (word..word + length * 8).for_each(|word| owners[word] += 1));
        assert!(owners.iter().all(|&owners| owners <= 1));
    }
}
