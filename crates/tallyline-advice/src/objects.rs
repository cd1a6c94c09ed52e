//! Objects in memory: which of them an address is in, where an instruction's type does not tell.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The largest object that is looked for around an address.
const LARGEST: u64 = 1 << 16;

/// The most objects that are known.
const OBJECTS_LIMIT: usize = 1 << 21;

/// The number of size classes: powers of two up to [`LARGEST`].
const CLASSES: usize = LARGEST.ilog2() as usize + 1;

/// A look-up from addresses of a traced program to the objects that contain them.
///
/// Each size class has a map of its own, so that a lookup passes the few objects of a class that can hold an address,
/// and not the thousand elements of an array in front of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectMap {
    by_start: [BTreeMap<u64, (usize, u64)>; CLASSES],
    len: usize,
}

impl ObjectMap {
    /// Adds an object of `size` bytes at the address `start` of the traced program; `subject` is the index of its type
    /// or variable. Of two objects with the same start, the larger stays.
    pub(crate) fn add(&mut self, start: u64, size: u64, subject: usize) {
        if size == 0 || size > LARGEST || self.len >= OBJECTS_LIMIT {
            return;
        }
        match self.by_start[size.ilog2() as usize].entry(start) {
            Entry::Occupied(mut known) if known.get().1 < size => {
                known.insert((subject, size));
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(free) => {
                free.insert((subject, size));
                self.len += 1;
            }
        }
    }

    /// Returns the start address and the type or variable (its index) of the traced program's largest object that
    /// contains an address; `None` if no known object does.
    ///
    /// Passes at most 4096 objects of each size class.
    pub(crate) fn around(&self, address: u64) -> Option<(u64, usize)> {
        self.by_start.iter().enumerate().rev().find_map(|(class, objects)| {
            // sizes of the class are below twice its power of two
            let first = address.saturating_sub((2 << class) - 1);
            let holds = |(start, (_, size)): &(&u64, &(usize, u64))| address - **start < *size;
            let before = objects.range(first..=address).rev().take(1 << 12);
            before
                .filter(holds)
                .max_by_key(|(_, (_, size))| *size)
                .map(|(start, (subject, _))| (*start, *subject))
        })
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

    #[test]
    fn of_objects_with_one_start_the_larger_is_found() {
        let mut objects = ObjectMap::default();
        for size in [24, 16, 31, 40, 8] {
            objects.add(0x1000, size, size as usize);
        }
        assert_eq!(objects.around(0x1000), Some((0x1000, 40)));
        assert_eq!(objects.around(0x1027), Some((0x1000, 40)));
        assert_eq!(objects.around(0x1028), None);
    }

    #[test]
    fn an_array_is_found_at_its_last_byte_whatever_elements_are_in_it() {
        let mut objects = ObjectMap::default();
        objects.add(0x10000, LARGEST, 1);
        for element in 0..LARGEST / 8 {
            objects.add(0x10000 + 8 * element, 8, 2);
        }
        assert_eq!(objects.around(0x10000 + LARGEST - 1), Some((0x10000, 1)));
        assert_eq!(objects.around(0x10000 + LARGEST), None);
    }
}
