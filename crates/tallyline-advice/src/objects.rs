//! Objects in memory: which of them an address is in, where an instruction's type does not tell.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The largest object that is looked for around an address.
const LARGEST: u64 = 1 << 16;

/// The most objects that are known.
const OBJECTS_LIMIT: usize = 1 << 21;

/// A look-up from addresses of a traced program to the objects that contain them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectMap {
    by_start: BTreeMap<u64, (usize, u64)>,
    by_subject: FxHashMap<usize, u64>,
}

impl ObjectMap {
    /// Adds an object of `size` bytes at `start`; `subject` is the index of its type or variable. Of two objects
    /// with the same start, the larger stays.
    pub(crate) fn add(&mut self, start: u64, size: u64, subject: usize) {
        if size == 0 || size > LARGEST || self.by_start.len() >= OBJECTS_LIMIT {
            return;
        }
        match self.by_start.get_mut(&start) {
            Some(known) if known.1 >= size => {}
            Some(known) => *known = (subject, size),
            None => {
                self.by_start.insert(start, (subject, size));
                *self.by_subject.entry(subject).or_default() += 1;
            }
        }
    }

    /// Returns the start address and the type or variable (its index) of the largest object that contains an
    /// address; `None` if no known object does.
    pub(crate) fn around(&self, address: u64) -> Option<(u64, usize)> {
        let before = self.by_start.range(address.saturating_sub(LARGEST)..=address).rev();
        let holds = |(start, (_, size)): &(&u64, &(usize, u64))| address - **start < *size;
        before
            .take(1 << 12)
            .filter(holds)
            .max_by_key(|(_, (_, size))| *size)
            .map(|(start, (subject, _))| (*start, *subject))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_object_around_an_address_is_found() {
        let mut objects = ObjectMap::default();
        objects.add(0x1000, 256, 7);
        objects.add(0x1040, 16, 8);
        objects.add(0x2000, 16, 8);
        assert_eq!(objects.around(0x1044), Some((0x1000, 7)));
        assert_eq!(objects.around(0x200f), Some((0x2000, 8)));
        assert_eq!(objects.around(0x2010), None);
        assert_eq!(objects.around(0xfff), None);
    }
}
