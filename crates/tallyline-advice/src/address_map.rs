//! A change of where data lies: addresses of a trace as they would be after a proposal was carried out.

use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The first address of memory that no program has.
const FRESH: u64 = 1 << 56;

/// A proposed change of a program's data layout as a map of addresses: from those that a recorded trace has to
/// those that the changed program would access.
#[derive(Clone, Debug)]
pub struct AddressMap {
    line_size: u64,
    next: u64,
    // by line: the first bytes of the ranges in it, each with what is added to its addresses
    ranges: FxHashMap<u64, Vec<(u64, u64, u64)>>,
    // by instruction and address: what is added to the address
    accesses: FxHashMap<(u32, u64), u64>,
    // ranges that each thread has its own copy of: start, end, first copy
    per_thread: FxHashMap<u64, Vec<(u64, u64, u64)>>,
    // by instruction: base of objects, sizes before and after, what is added to the offset
    objects: FxHashMap<u32, ObjectMove>,
    // by instruction: objects that move one by one
    relocated: FxHashMap<u32, Relocation>,
    plain: FxHashSet<u32>,
}

/// The starts of objects that move one by one, before and after.
pub(crate) type NewStarts = Arc<FxHashMap<u64, u64>>;

/// The move of the objects whose field one instruction accesses.
#[derive(Clone, Debug)]
struct Relocation {
    /// The offset of the field before and after.
    offsets: (u64, u64),
    /// The parts in which one access may be reported.
    parts: u64,
    starts: NewStarts,
    /// The distance by which the new starts are moved once more.
    shift: u64,
}

/// The move of one field to another offset in all objects of a type, for one instruction that accesses it: offsets,
/// and sizes of objects, before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectMove {
    /// The offset before and after.
    pub(crate) offsets: (u64, u64),
    /// The first object, the distance between two before and after; none where objects stay.
    pub(crate) grid: Option<(u64, u64, u64)>,
}

/// Threads that have copies of their own; a later one shares the copy of its number modulo this.
const COPIES: u64 = 256;

impl AddressMap {
    /// Creates a map of a proposed data layout that leaves all addresses as they are, for cache lines of `line_size`
    /// bytes.
    pub fn new(line_size: u64) -> Self {
        Self {
            line_size: line_size.max(1),
            next: FRESH,
            ranges: FxHashMap::default(),
            accesses: FxHashMap::default(),
            per_thread: FxHashMap::default(),
            objects: FxHashMap::default(),
            relocated: FxHashMap::default(),
            plain: FxHashSet::default(),
        }
    }

    /// Reserves `count` cache lines of addresses that no data uses, to which the proposed change can move data, and
    /// returns their start. They are more than a line away from earlier ones, so that adjacent-line prefetchers do not
    /// couple them.
    pub fn fresh_lines(&mut self, count: u64) -> u64 {
        let start = self.next;
        self.next = start.saturating_add(count.saturating_add(2).saturating_mul(self.line_size));
        start
    }

    /// Records that the proposed layout has the `size` bytes at the recorded address `start`, which must lie in one
    /// cache line, at the same offset in the cache line at `to`.
    pub fn move_range(&mut self, start: u64, size: u64, to: u64) {
        self.move_bytes(start, size, to.wrapping_add(start % self.line_size));
    }

    /// Records that the proposed layout has the `size` bytes at the recorded address `start`, which must lie in one
    /// cache line, at the address `to`.
    pub(crate) fn move_bytes(&mut self, start: u64, size: u64, to: u64) {
        let ranges = self.ranges.entry(start / self.line_size).or_default();
        ranges.push((start, start.saturating_add(size), to.wrapping_sub(start)));
    }

    /// Records that the proposed layout has what an instruction (its index in the trace) accesses at the recorded address
    /// `address` at the address `to`: of memory that other objects had before or after.
    pub(crate) fn move_access(&mut self, instruction: u32, address: u64, to: u64) {
        self.accesses.insert((instruction, address), to.wrapping_sub(address));
    }

    /// Records that the proposed layout has a copy of the `size` bytes at the recorded address `start` for each thread,
    /// each on a cache line of its own, as if they were a per-CPU counter.
    pub fn split_by_thread(&mut self, start: u64, size: u64) {
        let to = self.fresh_lines(COPIES);
        let ranges = self.per_thread.entry(start / self.line_size).or_default();
        ranges.push((start, start.saturating_add(size), to));
    }

    /// Adds the proposed changes of data layout in `other` to this map; where both move the same bytes, this map's
    /// change stays.
    pub fn merge(&mut self, other: &AddressMap) {
        let shift = self.next - FRESH;
        let moved = |to: u64| if to >= FRESH { to.saturating_add(shift) } else { to };
        for (line, ranges) in &other.ranges {
            let of = self.ranges.entry(*line).or_default();
            of.extend(ranges.iter().map(|(start, end, distance)| {
                (*start, *end, moved(start.wrapping_add(*distance)).wrapping_sub(*start))
            }));
        }
        for ((instruction, address), distance) in &other.accesses {
            let distance = moved(address.wrapping_add(*distance)).wrapping_sub(*address);
            self.accesses.entry((*instruction, *address)).or_insert(distance);
        }
        for (line, ranges) in &other.per_thread {
            let of = self.per_thread.entry(*line).or_default();
            of.extend(ranges.iter().map(|(start, end, to)| (*start, *end, moved(*to))));
        }
        for (instruction, object) in &other.objects {
            if !self.relocated.contains_key(instruction) {
                self.objects.entry(*instruction).or_insert(*object);
            }
        }
        for (instruction, moved) in &other.relocated {
            if !self.objects.contains_key(instruction) {
                let shifted = Relocation { shift: moved.shift.saturating_add(shift), ..moved.clone() };
                self.relocated.entry(*instruction).or_insert(shifted);
            }
        }
        self.plain.extend(&other.plain);
        self.next = other.next.saturating_add(shift);
    }

    /// Records that the proposed change of the program replaces this atomic instruction (its index in the trace) by a
    /// non-atomic one.
    pub fn make_plain(&mut self, instruction: u32) {
        self.plain.insert(instruction);
    }

    /// Returns the instructions that the proposed change of the program makes non-atomic, as their indices in the
    /// trace, sorted.
    pub fn plain(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.plain.iter().copied().collect();
        all.sort_unstable();
        all
    }

    /// Records that the proposed layout has the field that an instruction (its index in the trace) accesses at another
    /// offset, in all objects that it accesses.
    pub(crate) fn move_field(&mut self, instruction: u32, moved: ObjectMove) {
        self.objects.insert(instruction, moved);
    }

    /// Records that the proposed layout has the field that an instruction (its index in the trace) accesses at another
    /// offset, in objects of which each has a new start, in fresh lines; other objects stay as they are. The instruction
    /// accesses at most `size` bytes at once.
    pub(crate) fn move_objects(
        &mut self,
        instruction: u32,
        offsets: (u64, u64),
        size: u64,
        starts: &NewStarts,
    ) {
        let parts = size.div_ceil(PART).clamp(1, PARTS_LIMIT);
        let moved = Relocation { offsets, parts, starts: Arc::clone(starts), shift: 0 };
        self.relocated.insert(instruction, moved);
    }

    /// Returns the address that a recorded memory access would have in the proposed layout: `address` is the recorded
    /// one, `thread` and `instruction` made the access.
    #[inline]
    pub fn map(&self, thread: usize, instruction: u32, address: u64) -> u64 {
        if let Some(moved) = self.objects.get(&instruction) {
            return moved.apply(address);
        }
        self.data(thread, instruction, address).unwrap_or_else(|| {
            self.relocated.get(&instruction).and_then(|of| of.apply(address)).unwrap_or(address)
        })
    }

    /// Returns the address that data at a recorded address has in the proposed layout, if the data is moved by its
    /// address; `instruction` accesses it.
    #[inline]
    pub(crate) fn data(&self, thread: usize, instruction: u32, address: u64) -> Option<u64> {
        if !self.accesses.is_empty()
            && let Some(distance) = self.accesses.get(&(instruction, address))
        {
            return Some(address.wrapping_add(*distance));
        }
        let line = address / self.line_size;
        let holds = |(start, end, _): &&(u64, u64, u64)| (*start..*end).contains(&address);
        if let Some((start, _, to)) = self.per_thread.get(&line).and_then(|ranges| ranges.iter().find(holds))
        {
            let copy = (thread as u64 % COPIES).wrapping_mul(self.line_size);
            return Some(to.wrapping_add(copy).wrapping_add(address - start));
        }
        let (_, _, distance) = self.ranges.get(&line)?.iter().find(holds)?;
        Some(address.wrapping_add(*distance))
    }
}

/// Bytes of the parts in which an emulator reports a vector's access.
const PART: u64 = 8;

/// The most parts of one access.
const PARTS_LIMIT: u64 = 8;

impl Relocation {
    /// Returns an address in the new objects; `None` if the object of the old one stays.
    fn apply(&self, address: u64) -> Option<u64> {
        (0..self.parts).map(|part| part * PART).find_map(|part| {
            let start = self.starts.get(&address.wrapping_sub(self.offsets.0).wrapping_sub(part))?;
            Some(start.wrapping_add(self.shift).wrapping_add(self.offsets.1).wrapping_add(part))
        })
    }
}

impl ObjectMove {
    fn apply(self, address: u64) -> u64 {
        let base = address.wrapping_sub(self.offsets.0);
        let base = match self.grid {
            Some((first, before, after)) if before > 0 && base >= first => {
                let (element, inside) = ((base - first) / before, (base - first) % before);
                first.wrapping_add(element.wrapping_mul(after)).wrapping_add(inside)
            }
            _ => base,
        };
        base.wrapping_add(self.offsets.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_a_line_go_to_lines_of_their_own() {
        let mut map = AddressMap::new(64);
        let (one, other) = (map.fresh_lines(1), map.fresh_lines(1));
        map.move_range(0x1000, 8, one);
        map.move_range(0x1008, 8, other);
        assert_eq!(map.map(0, 0, 0x1004), one + 4);
        assert_eq!(map.map(0, 0, 0x1008), other + 8);
        assert_eq!(map.map(0, 0, 0x1010), 0x1010, "the rest stays");
        assert!(one.abs_diff(other) >= 128);
    }

    #[test]
    fn what_one_instruction_accesses_moves_alone() {
        let (mut one, mut other) = (AddressMap::new(64), AddressMap::new(64));
        let line = one.fresh_lines(1);
        one.move_range(0x1000, 16, line);
        let alone = other.fresh_lines(1);
        other.move_access(3, 0x1008, alone + 8);
        one.merge(&other);
        assert_eq!(one.map(0, 2, 0x1008), line + 8);
        let moved = one.map(0, 3, 0x1008);
        assert_eq!((moved % 64, moved / 64 == line / 64), (8, false));
        assert_eq!(one.map(0, 3, 0x1000), line);
    }

    #[test]
    fn each_thread_has_a_copy() {
        let mut map = AddressMap::new(64);
        map.split_by_thread(0x1008, 8);
        let copies: Vec<u64> = (0..4).map(|thread| map.map(thread, 0, 0x1008) / 64).collect();
        assert!(copies.windows(2).all(|pair| pair[0] != pair[1]), "{copies:?}");
        assert_eq!(map.map(1, 0, 0x1000), 0x1000);
    }

    #[test]
    fn merged_maps_keep_their_lines_apart() {
        let (mut one, mut other) = (AddressMap::new(64), AddressMap::new(64));
        let (first, second) = (one.fresh_lines(1), other.fresh_lines(1));
        one.move_range(0x1000, 8, first);
        other.move_range(0x1008, 8, second);
        other.split_by_thread(0x2000, 8);
        one.merge(&other);
        let lines =
            [one.map(0, 0, 0x1000), one.map(0, 0, 0x1008), one.map(0, 0, 0x2000), one.map(1, 0, 0x2000)];
        let distinct: std::collections::BTreeSet<u64> = lines.iter().map(|address| address / 64).collect();
        assert_eq!(distinct.len(), 4, "{lines:x?}");
    }

    #[test]
    fn objects_move_one_by_one_and_stay_apart_in_merged_maps() {
        let (mut one, mut other) = (AddressMap::new(64), AddressMap::new(64));
        let fresh = one.fresh_lines(2);
        let starts = |to: u64| Arc::new(FxHashMap::from_iter([(0x1000, to), (0x5000, to + 64)]));
        one.move_objects(3, (8, 0), 24, &starts(fresh));
        let second = other.fresh_lines(2);
        other.move_objects(3, (8, 16), 8, &starts(second));
        other.move_objects(4, (8, 16), 8, &starts(second));
        one.merge(&other);
        assert_eq!(one.map(0, 3, 0x5008), fresh + 64, "the first map's change stays");
        assert_eq!(one.map(0, 3, 0x6008), 0x6008, "another object");
        assert_eq!(one.map(0, 3, 0x5018), fresh + 64 + 16, "the third part of a vector");
        assert!(one.map(0, 4, 0x1008) >= fresh + 128, "{:x}", one.map(0, 4, 0x1008));
        assert_eq!(one.map(0, 4, 0x1010), 0x1010, "a neighbour that stays");
        // what was moved off a shared line stays off it
        let apart = one.fresh_lines(1);
        one.move_range(0x1008, 8, apart);
        assert_eq!(one.map(0, 3, 0x1008), apart + 8);
    }

    #[test]
    fn a_field_moves_in_every_object_and_objects_move_with_their_size() {
        let mut map = AddressMap::new(64);
        map.move_field(3, ObjectMove { offsets: (40, 8), grid: Some((0x1000, 96, 64)) });
        assert_eq!(map.map(0, 3, 0x1000 + 40), 0x1000 + 8);
        assert_eq!(map.map(0, 3, 0x1000 + 96 * 5 + 40), 0x1000 + 64 * 5 + 8);
        assert_eq!(map.map(0, 4, 0x1028), 0x1028, "another instruction");
    }
}
