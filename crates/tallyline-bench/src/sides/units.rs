//! Per-CPU memory as a kernel has it: for each CPU a unit with the same groups at the same places,
//! every unit written. Item by item over all CPUs is how statistics were read before the CPUs were
//! the outer loop (`snmp_fold_field`), and still are in most programs.
//!
//! These ways read the library's own units where they can, the same bytes as its folds: a second
//! copy would share the caches with the first, and both sides would be measured with half of them.

use super::looped::{Looped, Step, opaque};
use super::os::{self, BenchMemory};
use super::scan;
use super::{Calls, Side};
use statctr::raw::RawGroup;
use statctr::{Group, Schema};
use std::hint::black_box;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The number of counter groups, and of items (64-bit statistics) in each, in the memory that the benchmark `fold`
/// reads for each CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    /// Items of a group.
    pub(crate) items: usize,
    /// Words from one group to the next.
    pub(crate) group_words: usize,
    /// Groups in a unit.
    pub(crate) groups: usize,
    /// Bytes from one unit to the next.
    pub(crate) stride: usize,
}

impl Shape {
    /// Returns the size in bytes of one CPU's copy of all counter groups, rounded up to a multiple of
    /// [`TURN_BYTES`](super::scan::TURN_BYTES).
    pub(crate) fn unit_bytes(&self) -> usize {
        (self.groups * self.group_words * 8).next_multiple_of(scan::TURN_BYTES)
    }
}

/// The addresses of each CPU's copy of the counters (its *unit*), which the benchmark `fold` reads by other
/// algorithms than the library's.
pub(crate) struct Units {
    memory: Memory,
    /// The address that the first group would have in a unit with the offset 0.
    home: usize,
    /// From there to each CPU's unit: the table that a kernel calls `__per_cpu_offset`.
    offsets: Vec<usize>,
    shape: Shape,
}

enum Memory {
    /// Memory of the benchmark's own.
    Own(BenchMemory),
    /// Memory of the library, kept by the groups that it belongs to.
    Library(#[expect(dead_code, reason = "keeps the memory")] Arc<Vec<Group>>),
}

impl Units {
    /// Maps zeroed memory of the benchmark's own for the copies of the counters of CPUs 0 to `cpus` − 1.
    pub(crate) fn new(cpus: usize, shape: Shape) -> io::Result<Self> {
        Units::within(cpus, shape, BenchMemory::new)
    }

    /// Maps memory as [`new`](Self::new) does, in huge pages where the kernel gives them.
    pub(crate) fn in_huge_pages(cpus: usize, shape: Shape) -> io::Result<Self> {
        Units::within(cpus, shape, BenchMemory::in_huge_pages)
    }

    fn within(cpus: usize, shape: Shape, map: impl Fn(usize) -> io::Result<BenchMemory>) -> io::Result<Self> {
        let stride = shape.stride.max(shape.unit_bytes()).next_multiple_of(64);
        let memory = map(cpus * stride)?;
        let home = memory.address();
        let offsets = (0..cpus).map(|cpu| cpu * stride).collect();
        Ok(Units { memory: Memory::Own(memory), home, offsets, shape })
    }

    /// Finds the library's own memory in which `cpus` keep the counters of `groups`; `real` is a CPU that has counted
    /// in one of them. `None` if it cannot be found: without restartable sequences, or if the groups are not adjacent.
    pub(crate) fn of_groups(
        groups: &Arc<Vec<Group>>,
        cpus: impl Iterator<Item = usize>,
        real: usize,
        shape: Shape,
    ) -> Option<Self> {
        let handles: Vec<Handle> = groups.iter().map(handle_of).collect();
        let first = *handles.first()?;
        let side_by_side = |(index, handle): (usize, &Handle)| {
            handle.table == first.table && handle.base == first.base + index * shape.group_words * 8
        };
        if !handles.iter().enumerate().all(side_by_side) {
            return None;
        }
        // The units follow one another by the stride, in the order of the CPUs, and the table says
        // where one of them is.
        let offset = (first.displacement(real)?).checked_sub(real * shape.stride)?;
        let offsets: Vec<usize> = cpus.map(|cpu| offset + cpu * shape.stride).collect();
        let mapped = |offset: &usize| os::is_mapped(first.base + offset, shape.unit_bytes());
        let units = Units { memory: Memory::Library(Arc::clone(groups)), home: first.base, offsets, shape };
        units.offsets.iter().all(mapped).then_some(units)
    }

    /// Returns `true` if the memory that the benchmark reads is that of the library's counters, `false` if the
    /// benchmark mapped it.
    pub(crate) fn is_library(&self) -> bool {
        matches!(self.memory, Memory::Library(_))
    }

    /// Writes `value(CPU, group, item)` to every item (64-bit statistic) of every CPU; does nothing if the memory is
    /// the library's.
    pub(crate) fn populate(&self, value: impl Fn(usize, usize, usize) -> u64) {
        let Memory::Own(memory) = &self.memory else { return };
        for (cpu, offset) in self.offsets.iter().enumerate() {
            for group in 0..self.shape.groups {
                for item in 0..self.shape.items {
                    let word = memory.word(offset + (group * self.shape.group_words + item) * 8);
                    word.store(value(cpu, group, item), Ordering::Relaxed);
                }
            }
        }
    }

    /// Reads one item of one group, CPU after CPU into one accumulator.
    #[inline(always)]
    fn read_item(&self, group: usize, item: usize) -> u64 {
        let home = self.home + (group * self.shape.group_words + item) * 8;
        let mut sum = 0u64;
        for offset in &self.offsets {
            // SAFETY: a word of a unit, which is mapped for as long as `self.memory` is there: by
            // `new`, or as `of_groups` has seen. All accesses are atomic.
            let word = unsafe { &*((home + offset) as *const AtomicU64) };
            sum = sum.wrapping_add(word.load(Ordering::Relaxed));
        }
        sum
    }

    fn scan(&self, streams: Streams, width: usize) -> u64 {
        let units: Vec<usize> = self.offsets.iter().map(|offset| self.home + offset).collect();
        let bytes = self.shape.unit_bytes();
        // SAFETY: `unit_bytes` bytes, a multiple of a turn, are mapped from each of these addresses
        // on, by `new` or as `of_groups` has seen; they are multiples of 64, as groups begin at
        // cache lines; `width` is what the library found out about the processor.
        unsafe {
            match streams {
                Streams::One => scan::one_stream(&units, bytes, width),
                Streams::Four => scan::four_streams(&units, bytes, width),
            }
        }
    }
}

/// The two words that lead to a group: where its home words are, and its table of displacements.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Handle {
    base: usize,
    table: usize,
}

/// The tag of a table whose counters are updated by restartable sequences.
const RSEQ: usize = 1;

impl Handle {
    /// Returns the distance from the home words to those of a CPU that has counted, found as the inline
    /// update finds it; part of the C ABI.
    fn displacement(&self, cpu: usize) -> Option<usize> {
        if self.table & RSEQ == 0 {
            return None;
        }
        let entry = (self.table - RSEQ + cpu * 8) as *const AtomicUsize;
        // SAFETY: the table has an entry for every CPU that this kernel may have, and lives as long
        // as the group that the handle is from.
        Some(unsafe { &*entry }.load(Ordering::Acquire)).filter(|displacement| *displacement != 0)
    }
}

/// Looks at a group's handle.
fn handle_of(group: &Group) -> Handle {
    // SAFETY: a second copy of the group, of which nothing is dropped: the handle owns nothing that
    // is dropped with it, and the copy of the schema is taken out of its box without that.
    let raw = unsafe {
        let raw = RawGroup::from_group(std::ptr::read(group));
        drop(Box::from_raw(raw.schema.cast::<ManuallyDrop<Schema>>()));
        raw
    };
    Handle { base: raw.counter.base, table: raw.counter.table }
}

/// The number of CPUs' counters that a memory scan reads side by side: one or four.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Streams {
    /// The counters of one CPU after the other.
    One,
    /// The counters of four CPUs side by side.
    Four,
}

struct ItemMajor;

/// The units, and where one thread puts the sums.
struct Reader {
    units: Arc<Units>,
    sums: Box<[AtomicU64]>,
}

impl Step for ItemMajor {
    type State = Reader;

    #[inline(always)]
    fn step(reader: &Reader, _turn: u64) {
        let shape = reader.units.shape;
        for (group, sums) in reader.sums.chunks_exact(shape.items).enumerate() {
            for (item, sum) in sums.iter().enumerate() {
                sum.store(reader.units.read_item(group, item), Ordering::Relaxed);
            }
        }
    }
}

/// Returns the benchmark loop `item-major`: it sums each item (64-bit statistic) over all CPUs before it goes to the
/// next item; one operation is a pass over all items.
pub(crate) fn item_major(units: &Arc<Units>, threads: usize) -> Box<dyn Side> {
    let reader = || Reader {
        units: Arc::clone(units),
        sums: (0..units.shape.groups * units.shape.items).map(|_| AtomicU64::new(0)).collect(),
    };
    Looped::<ItemMajor>::with_state_per_thread((0..threads).map(|_| reader()).collect(), |_| 0)
        .counting(0)
        .boxed()
}

/// Returns the sum of each item (64-bit statistic) over all CPUs as the loop `item-major` computes it, to check its
/// result.
pub(crate) fn item_major_sums(units: &Arc<Units>) -> Vec<u64> {
    let shape = units.shape;
    (0..shape.groups * shape.items)
        .map(|index| units.read_item(index / shape.items, index % shape.items))
        .collect()
}

/// Returns the benchmark loop `read-bandwidth`: it reads all CPUs' counter memory with vectors of `width` bytes;
/// one operation is a pass over all memory.
pub(crate) fn read_bandwidth(units: &Arc<Units>, streams: Streams, width: usize) -> Box<dyn Side> {
    let units = Arc::clone(units);
    Box::new(Calls(move |_thread, n| {
        for _ in 0..n {
            black_box(units.scan(streams, width));
        }
    }))
}

/// Returns the sum of all words of all CPUs' counters as the loop `read-bandwidth` computes it, to check its
/// result.
pub(crate) fn scan_sum(units: &Units, streams: Streams, width: usize) -> u64 {
    units.scan(streams, width)
}

struct ReadOne;

impl Step for ReadOne {
    type State = Units;

    #[inline(always)]
    fn step(units: &Units, _turn: u64) {
        opaque(units.read_item(0, 0));
    }
}

/// Returns a benchmark loop that sums one item (64-bit statistic) over every possible CPU: a counter's read that does
/// not know which CPUs have counted.
pub(crate) fn read_one(units: Units) -> Box<dyn Side> {
    Looped::<ReadOne>::with_shared_state(units, |_| 0).counting(0).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_read_the_units_agree() {
        let shape = Shape { items: 36, group_words: 40, groups: 7, stride: 4096 + 64 };
        let units = Arc::new(Units::new(6, shape).expect("memory"));
        units.populate(|cpu, group, item| (cpu * 1_000_000 + group * 1000 + item) as u64);
        let sums = item_major_sums(&units);
        assert_eq!(sums.len(), 7 * 36);
        assert_eq!(sums[36 * 2 + 5], (0..6).map(|cpu| cpu * 1_000_000 + 2005).sum::<u64>());
        let width = statctr::VectorWidth::detect().bytes();
        for streams in [Streams::One, Streams::Four] {
            assert_eq!(scan_sum(&units, streams, width), sums.iter().sum::<u64>());
        }
    }
}
