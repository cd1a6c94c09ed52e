//! Names, each stored once.

use super::NameId;
use foldhash::fast::RandomState;
use std::hash::BuildHasher;

/// An interner of the names of types and members: each distinct name is stored once and referred to by an id.
///
/// A name costs its bytes and about 20 more. A string table of a file can be adopted whole instead: then offsets in it
/// are the ids, and a name costs only its bytes.
#[derive(Debug, Default)]
pub struct Names {
    // strings that each end in a zero, no two of them equal: the offset of one is its id
    section: Vec<u8>,
    // ids from the end of the section on
    bytes: Vec<u8>,
    ends: Vec<u32>,
    // open addressing; 0 is free, as no name is stored under it. The strings of a section are only
    // in it once something was interned.
    table: Vec<u32>,
    filled: usize,
    // keyed: a file cannot be made so that all of its names collide
    state: RandomState,
}

impl Names {
    /// Returns the name with this id, which must come from this interner: another one's may name anything. Empty for
    /// [`NameId::NONE`] and for ids past the last.
    pub fn get(&self, id: NameId) -> &[u8] {
        let Some(index) = id.index().checked_sub(self.interned_from()) else {
            return match id {
                NameId::NONE => &[],
                _ => until_zero(&self.section[id.index()..]),
            };
        };
        let Some(end) = self.ends.get(index) else { return &[] };
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..*end as usize]
    }

    /// Returns the id of a name, which is stored if it is new; `None` if the interner is full (4 GiB of names).
    pub(crate) fn intern(&mut self, name: &[u8]) -> Option<NameId> {
        if !self.section.is_empty() && self.table.is_empty() {
            self.resize(64);
        }
        if (self.filled + 1) * 4 > self.table.len() * 3 {
            self.resize((self.table.len() * 2).max(64));
        }
        let mut slot = self.first_slot(name, self.table.len());
        loop {
            match self.table[slot] {
                0 => break,
                id if self.get(NameId(id)) == name => return Some(NameId(id)),
                _ => slot = (slot + 1) & (self.table.len() - 1),
            }
        }
        let end = u32::try_from(self.bytes.len() + name.len()).ok()?;
        let id = u32::try_from(self.interned_from() + self.ends.len()).ok()?;
        self.bytes.extend_from_slice(name);
        self.ends.push(end);
        self.table[slot] = id;
        self.filled += 1;
        Some(NameId(id))
    }

    /// Adopts a string table (strings ended by zeros, no two equal: see [`are_distinct`]) into an empty interner; ids
    /// are offsets in the table.
    pub(crate) fn take_section(&mut self, section: Vec<u8>) {
        debug_assert!(self.ends.is_empty() && section.last() == Some(&0));
        self.section = section;
    }

    /// Returns the ids of all names: those in the adopted string table, and the consecutive range of those interned.
    pub(crate) fn ids(&self) -> (impl Iterator<Item = NameId> + '_, std::ops::Range<u32>) {
        let from = self.interned_from() as u32;
        (starts(&self.section).map(NameId), from..from + self.ends.len() as u32)
    }

    /// Reserves memory for this many names with this many bytes in all.
    pub(crate) fn reserve(&mut self, names: usize, bytes: usize) {
        self.bytes.reserve(bytes);
        self.ends.reserve(names);
        let size = (names.saturating_mul(4) / 3 + 1).next_power_of_two();
        if size > self.table.len() {
            self.resize(size);
        }
    }

    /// Returns the first id that is not an offset into the adopted table.
    fn interned_from(&self) -> usize {
        self.section.len().max(1)
    }

    fn first_slot(&self, name: &[u8], slots: usize) -> usize {
        self.state.hash_one(name) as usize & (slots - 1)
    }

    /// Makes the table anew, of this size at least.
    fn resize(&mut self, size: usize) {
        let filled = starts(&self.section).count() + self.ends.len();
        let least = (filled + 1).saturating_mul(4) / 3 + 1;
        let size = size.max(least.next_power_of_two());
        let mut table = vec![0; size];
        let (section, interned) = self.ids();
        for id in section.map(|id| id.0).chain(interned) {
            let mut slot = self.first_slot(self.get(NameId(id)), size);
            while table[slot] != 0 {
                slot = (slot + 1) & (size - 1);
            }
            table[slot] = id;
        }
        self.table = table;
        self.filled = filled;
    }
}

/// Returns `true` if all strings of a zero-separated string table differ. Compares hashes, so it may also return
/// `false` for distinct strings, in one of thousands of tables.
pub(crate) fn are_distinct(section: &[u8]) -> bool {
    let state = RandomState::default();
    // names are of some 18 bytes
    let bits = (section.len() / 10).max(64).next_power_of_two().ilog2();
    // a part of the hash says where, and another one what; 0 is free
    let mut table = vec![0_u32; 1 << bits];
    let mut ends = memchr::memchr_iter(0, section);
    let Some(mut start) = ends.next().map(|end| end + 1) else { return true };
    let mut left = table.len() / 8 * 7;
    for end in ends {
        let hash = state.hash_one(&section[start..end]);
        start = end + 1;
        let Some(less) = left.checked_sub(1) else { return false };
        left = less;
        let mut slot = (hash >> (u64::BITS - bits)) as usize;
        let what = hash as u32 | 1;
        while table[slot] != 0 {
            if table[slot] == what {
                return false;
            }
            slot = (slot + 1) & (table.len() - 1);
        }
        table[slot] = what;
    }
    true
}

/// Returns the offsets of the strings of a table. The one at 0 is no name.
fn starts(section: &[u8]) -> impl Iterator<Item = u32> + '_ {
    memchr::memchr_iter(0, section)
        .map(|zero| zero as u32 + 1)
        .filter(|start| (*start as usize) < section.len())
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_have_equal_ids_and_none_is_nobodys() {
        let mut names = Names::default();
        let ids: Vec<_> =
            (0..1000).map(|n| names.intern(format!("name{n}").as_bytes()).expect("room")).collect();
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(names.get(*id), format!("name{n}").as_bytes());
            assert_eq!(names.intern(format!("name{n}").as_bytes()), Some(*id));
        }
        let empty = names.intern(b"").expect("room");
        assert!(empty.is_some());
        assert_eq!(names.get(empty), b"");
        assert_eq!(names.get(NameId::NONE), b"");
        assert_eq!(names.get(NameId(99_999)), b"");
    }

    #[test]
    fn names_of_a_table_that_was_taken_over_are_its_offsets_and_more_can_be_added() {
        let mut names = Names::default();
        names.take_section(b"\0one\0two\0".to_vec());
        assert_eq!(names.get(NameId::NONE), b"");
        assert_eq!(names.get(NameId(1)), b"one");
        assert_eq!(names.get(NameId(5)), b"two");
        assert_eq!(names.intern(b"two"), Some(NameId(5)));
        let more: Vec<_> =
            (0..1000).map(|n| names.intern(format!("name{n}").as_bytes()).expect("room")).collect();
        for (n, id) in more.iter().enumerate() {
            assert_eq!(names.get(*id), format!("name{n}").as_bytes());
            assert_eq!(names.intern(format!("name{n}").as_bytes()), Some(*id));
        }
        assert_eq!(names.intern(b"one"), Some(NameId(1)));
        let (section, interned) = names.ids();
        assert_eq!(section.collect::<Vec<_>>(), [NameId(1), NameId(5)]);
        assert_eq!(interned.len(), 1000);
    }

    #[test]
    fn a_table_with_equal_strings_is_told() {
        assert!(are_distinct(b"\0one\0two\0"));
        assert!(are_distinct(b"\0"));
        assert!(are_distinct(b"\0\0one\0"), "a name may be empty");
        assert!(!are_distinct(b"\0one\0two\0one\0"));
        let letters: Vec<u8> = (b'a'..=b'z').flat_map(|letter| [0, letter]).chain([0]).collect();
        assert!(are_distinct(&letters));
    }
}
