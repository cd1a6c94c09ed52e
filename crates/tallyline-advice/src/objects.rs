//! Objects in memory: where accesses say that they begin, and which of them an address is in, where an instruction's type
//! does not tell.

use super::resolve::Resolved;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The largest object that is looked for around an address.
const LARGEST: u64 = 1 << 16;

/// The most objects that are known.
const OBJECTS_LIMIT: usize = 1 << 21;

/// The number of size classes: powers of two up to [`LARGEST`].
const CLASSES: usize = LARGEST.ilog2() as usize + 1;

/// The most objects of a type that are told apart.
const STARTS_LIMIT: usize = 1 << 20;

/// Instructions that are counted for each object.
const VOTES_LIMIT: usize = 16;

/// Members of their own at known offsets, of which an object has to be accessed in some to be one beside a better known
/// object that it overlaps.
const MEMBERS_LEAST: usize = 4;

/// Objects larger than so many lines are not looked for on each of their lines.
pub(crate) const SPAN: u64 = 64;

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

/// Objects found in a traced program's memory: their start addresses by type, and look-ups by address.
#[derive(Default)]
pub(crate) struct Found {
    /// The objects of the program's own types.
    pub(crate) map: ObjectMap,
    /// The objects of a library's types, such as a shared pointer's control block.
    pub(crate) library: ObjectMap,
    /// By subject: the starts.
    pub(crate) starts: FxHashMap<usize, Vec<u64>>,
    /// By instruction: the most bytes that it accesses at once; empty where accesses are not traced.
    pub(crate) sizes: FxHashMap<u32, u64>,
}

impl Found {
    /// Returns `true` if an object of a type begins at an address.
    pub(crate) fn has(&self, subject: usize, start: u64) -> bool {
        self.starts.get(&subject).is_some_and(|starts| starts.binary_search(&start).is_ok())
    }
}

/// Accumulator that infers the start addresses of objects from accesses: an access at an address, to a field at a
/// known offset, votes for the object that starts at their difference.
#[derive(Default)]
pub(crate) struct ObjectVotes(FxHashMap<usize, FxHashMap<u64, FxHashSet<u32>>>);

impl ObjectVotes {
    /// Adds one access as a vote for an object's start, if the type and field that the instruction accesses are
    /// known.
    pub(crate) fn add(&mut self, instruction: u32, address: u64, resolved: &Resolved) {
        let Some(operand) = resolved.operands.get(&instruction) else { return };
        let start = address.wrapping_sub(operand.offset);
        let starts = self.0.entry(operand.subject).or_default();
        if starts.len() < STARTS_LIMIT || starts.contains_key(&start) {
            let of_start = starts.entry(start).or_default();
            if of_start.len() < VOTES_LIMIT {
                of_start.insert(instruction);
            }
        }
    }

    /// Returns the objects in the program's memory for whose start addresses accesses voted; of overlapping ones of a
    /// type, those with the most votes and those with accesses to as many members. Only objects that overlap a cache
    /// line whose number `admits` accepts can be looked up by address.
    pub(crate) fn finish(self, line_size: u64, admits: &dyn Fn(u64) -> bool, resolved: &Resolved) -> Found {
        let mut found = Found::default();
        for (subject, starts) in self.0 {
            let size = resolved.subjects.get(subject).map_or(0, |subject| subject.size);
            let support = |(start, instructions): (u64, FxHashSet<u32>)| Support {
                start,
                votes: instructions.len(),
                members: members_of(&instructions, resolved),
            };
            let kept = objects_of(starts.into_iter().map(support).collect(), size);
            // what holds the program's objects is not their owner: `ArcInner<Server>` of a `Server`, malloc's
            // `malloc_chunk`
            let subject_of = resolved.subjects.get(subject);
            let is_library_type = subject_of.is_some_and(|subject| subject.is_library_type);
            // an allocator's header reaches into the program's memory
            let is_of_namespace = subject_of.is_some_and(|subject| subject.name.contains("::"));
            let map = if is_library_type { &mut found.library } else { &mut found.map };
            for start in kept.iter().filter(|_| !is_library_type || is_of_namespace) {
                let (first, last) = (start / line_size, start.saturating_add(size.max(1) - 1) / line_size);
                if last - first <= SPAN && (first..=last).any(admits) {
                    map.add(*start, size, subject);
                }
            }
            found.starts.insert(subject, kept);
        }
        found
    }
}

/// The accesses that speak for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Support {
    start: u64,
    /// The number of instructions.
    votes: usize,
    /// The number of members that they access at offsets which no index can change.
    members: usize,
}

/// Returns the number of members that some instructions access, without elements of arrays: code that goes through an
/// array seems to access as many objects as it has elements.
fn members_of(instructions: &FxHashSet<u32>, resolved: &Resolved) -> usize {
    let operands = instructions.iter().filter_map(|instruction| resolved.operands.get(instruction));
    let mut offsets: Vec<u64> =
        operands.filter(|operand| !operand.field.contains('[')).map(|operand| operand.offset).collect();
    offsets.sort_unstable();
    offsets.dedup();
    offsets.len()
}

/// Returns the starts of objects, sorted: of those that overlap the one with the most votes, and those that code accesses
/// in no fewer than half as many members, as it does where memory is freed and used for another object.
fn objects_of(mut all: Vec<Support>, size: u64) -> Vec<u64> {
    all.sort_unstable();
    let mut best: Vec<Support> = Vec::with_capacity(all.len());
    for object in &all {
        match best.last_mut() {
            Some(last) if object.start - last.start < size => {
                if object.votes > last.votes {
                    *last = *object;
                }
            }
            _ => best.push(*object),
        }
    }
    let is_object = |object: &Support| {
        let before = best.partition_point(|known| known.start <= object.start);
        let around = &best[before.saturating_sub(1)..(before + 1).min(best.len())];
        let overlapped = around.iter().filter(|known| known.start.abs_diff(object.start) < size);
        let members = overlapped.map(|known| known.members).max().unwrap_or(0);
        object.members >= MEMBERS_LEAST && object.members * 2 >= members
    };
    let is_best = |object: &Support| best.binary_search_by_key(&object.start, |known| known.start).is_ok();
    all.iter().filter(|object| is_best(object) || is_object(object)).map(|object| object.start).collect()
}

/// Returns the first of some object addresses, which are sorted, and their common distance, if all are multiples of
/// it apart, as in an array. The distance is 0 if they are not, or if there is only one.
pub(crate) fn grid(all: &[u64]) -> (u64, u64) {
    let Some(first) = all.first().copied() else { return (0, 0) };
    let distances = all.windows(2).map(|pair| pair[1] - pair[0]);
    let Some(step) = distances.clone().min() else { return (first, 0) };
    let fits = distances.filter(|distance| distance.is_multiple_of(step)).count();
    (first, if fits + 1 == all.len() { step } else { 0 })
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

    #[test]
    fn of_objects_that_overlap_the_better_known_one_stays() {
        let support = |start, votes, members| Support { start, votes, members };
        let all =
            vec![support(0x1008, 1, 1), support(0x1000, 3, 3), support(0x1040, 1, 1), support(0x1048, 2, 1)];
        assert_eq!(objects_of(all, 64), [0x1000, 0x1048]);
    }

    #[test]
    fn objects_that_were_in_the_same_memory_one_after_the_other_stay() {
        let support = |start, votes, members| Support { start, votes, members };
        let all = vec![
            support(0x1000, 16, 9),
            support(0x1028, 16, 8),
            support(0x1030, 5, 5),
            support(0x1038, 16, 0),
            support(0x2000, 2, 2),
        ];
        assert_eq!(objects_of(all, 64), [0x1000, 0x1028, 0x1030, 0x2000]);
    }

    #[test]
    fn objects_of_an_array_lie_on_a_grid() {
        assert_eq!(grid(&[0x1000, 0x1060, 0x10c0, 0x1180]), (0x1000, 0x60));
        assert_eq!(grid(&[0x1000, 0x1060, 0x10c1]), (0x1000, 0));
        assert_eq!(grid(&[0x1000]), (0x1000, 0));
    }
}
