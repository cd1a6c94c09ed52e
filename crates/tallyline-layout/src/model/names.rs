//! Names, each stored once.

use super::NameId;
use foldhash::fast::RandomState;
use std::hash::BuildHasher;

/// A set of byte strings with dense ids. Id 0 is "no name".
///
/// The table holds ids only, so a name costs its bytes and about 20 more.
#[derive(Debug, Default)]
pub struct Names {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    // open addressing; 0 is free, as no name is stored under it
    table: Vec<u32>,
    // keyed: a file cannot be made so that all of its names collide
    state: RandomState,
}

impl Names {
    /// The bytes of a name; empty for [`NameId::NONE`] and for ids from elsewhere.
    pub fn get(&self, id: NameId) -> &[u8] {
        let Some(end) = id.index().checked_sub(1).and_then(|index| self.ends.get(index)) else { return &[] };
        let start = id.index().checked_sub(2).map_or(0, |index| self.ends[index]);
        &self.bytes[start as usize..*end as usize]
    }

    /// How many names there are; their ids start at 1.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The id of a name, which is added if it is new. None when 4 GiB of names are full.
    pub fn intern(&mut self, name: &[u8]) -> Option<NameId> {
        if (self.ends.len() + 1) * 4 > self.table.len() * 3 {
            self.grow();
        }
        let mut slot = self.first_slot(name);
        loop {
            match self.table[slot] {
                0 => break,
                id if self.get(NameId(id)) == name => return Some(NameId(id)),
                _ => slot = (slot + 1) & (self.table.len() - 1),
            }
        }
        let end = u32::try_from(self.bytes.len() + name.len()).ok()?;
        let id = u32::try_from(self.ends.len() + 1).ok()?;
        self.bytes.extend_from_slice(name);
        self.ends.push(end);
        self.table[slot] = id;
        Some(NameId(id))
    }

    /// Makes room for so many names in all, so that their table does not grow step by step.
    pub(crate) fn reserve(&mut self, names: usize, bytes: usize) {
        self.bytes.reserve(bytes);
        self.ends.reserve(names);
        let size = (names.saturating_mul(4) / 3 + 1).next_power_of_two();
        if size > self.table.len() {
            self.resize(size);
        }
    }

    fn first_slot(&self, name: &[u8]) -> usize {
        self.state.hash_one(name) as usize & (self.table.len() - 1)
    }

    fn grow(&mut self) {
        self.resize((self.table.len() * 2).max(64));
    }

    fn resize(&mut self, size: usize) {
        self.table = vec![0; size];
        for id in 1..=self.ends.len() as u32 {
            let mut slot = self.first_slot(self.get(NameId(id)));
            while self.table[slot] != 0 {
                slot = (slot + 1) & (size - 1);
            }
            self.table[slot] = id;
        }
    }
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
}
