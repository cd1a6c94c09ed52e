//! The geometry of memory: units in a reservation, and latched lines in a unit.

use super::mapping::{HUGE_PAGE, PAGE};
use crate::cpu::CpuSet;

/// The bytes of a chunk, a cache line with the words of eight counters.
pub(crate) const CHUNK_BYTES: usize = 64;
/// The number of 64-bit counter words in a chunk (a cache line).
pub(crate) const CHUNK_WORDS: usize = CHUNK_BYTES / 8;

/// Bytes by which a unit begins further behind the start of its huge pages than the one before.
///
/// Not one line: Zen guesses the way of the first-level cache by address bits of which 12 and 27 cancel out then. One
/// counter of 158 units took 751 ns to read, with one line and with two 569; with five, as with a page and a line, 90
/// (AMD EPYC, Zen 3).
const OFF_HUGE_PAGES: usize = 5 * CHUNK_BYTES;

/// Units that are not a CPU's: the home words and the baselines.
pub(super) const COMMON_UNITS: usize = 2;
/// Two more where CPUs' units are movable: the residues of the two views.
pub(super) const RESIDUES: usize = 2;

/// The sizes and distances of the units (each a CPU's part) in an address range of counter memory.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// CPUs that get a unit.
    pub(crate) cpus: CpuSet,
    /// Number of the units that belong to a thread each, and the offset by which threads know theirs.
    pub(crate) owned: (usize, isize),
    /// `true` if CPUs get their unit from the depot when they first count, and a drain takes it back.
    pub(crate) movable: bool,
    /// Bytes of a unit: whole pages.
    pub(crate) unit_bytes: usize,
    /// Bytes of the widest vector store that may be used.
    pub(crate) width: u32,
    /// `true` if home words are written from the start, as in the shared and uniprocessor placements.
    pub(crate) home_in_use: bool,
    /// `true` if each unit lies in huge pages of its own, which the kernel is asked for; not with movable units.
    pub(crate) huge_pages: bool,
}

impl Layout {
    /// Returns the distance in bytes from one CPU's unit (its part of the counter memory) to the next: a unit, plus a
    /// page so that no page holds words of CPUs on two nodes, plus a cache line so that a counter's words of different
    /// CPUs fall into different cache sets. With huge pages each unit has huge pages of its own, and begins some lines
    /// further behind their start than the one before.
    pub(crate) fn stride(&self) -> usize {
        if self.huge_pages {
            return (self.unit_bytes + self.lines_in_front()).next_multiple_of(HUGE_PAGE) + OFF_HUGE_PAGES;
        }
        self.unit_bytes + PAGE + CHUNK_BYTES
    }

    /// Returns the bytes by which the last unit begins behind the start of its huge pages, rounded up to pages.
    fn lines_in_front(&self) -> usize {
        (self.own_units() * OFF_HUGE_PAGES).next_multiple_of(PAGE)
    }

    /// Makes units as large as the huge pages that they would take anyway.
    pub(crate) fn fill_huge_pages(&mut self) {
        self.unit_bytes = self.stride() - OFF_HUGE_PAGES - self.lines_in_front();
    }

    /// Returns the number of units that the reservation's own mapping holds.
    pub(super) fn own_units(&self) -> usize {
        COMMON_UNITS + if self.movable { RESIDUES } else { self.cpus.len() + self.owned.0 }
    }
}

/// The layout of latched cache lines of counters: each line twice, and a sequence number that says which copy is
/// current and not being written (as the kernel's `seqcount_latch`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LatchLayout {
    /// Lines that hold items.
    pub(crate) lines: usize,
}

impl LatchLayout {
    /// Returns the number of cache lines that latched lines of counters take: both copies of each, and the sequence
    /// numbers.
    #[inline]
    pub(crate) fn chunks(self) -> usize {
        2 * self.lines + self.lines.div_ceil(CHUNK_WORDS)
    }

    /// Returns the bytes from copy 0 to copy 1 of a line.
    pub(super) fn copies(self) -> usize {
        self.lines * CHUNK_BYTES
    }

    /// Returns the bytes from the piece's start to the sequence number of a line.
    pub(super) fn sequence(self, line: usize) -> usize {
        2 * self.copies() + line * 8
    }
}

/// Words in a unit of what is more than a counter there: its sum, and what that is by.
pub(super) const PAIR_WORDS: usize = 2;

/// Meaning of the words of a piece that are not a counter each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceShape {
    /// Latched lines: only one of two copies counts.
    Latched(LatchLayout),
    /// A floating-point sum, and the epoch that it belongs to.
    FloatSum,
    /// A maximum, and the epoch that it belongs to.
    Maximum,
    /// A counter, and the part of it that was flushed.
    BoundedSum,
}

impl PieceShape {
    /// Returns the number of words of the piece.
    pub(super) fn words(self) -> usize {
        match self {
            PieceShape::Latched(layout) => layout.chunks() * CHUNK_WORDS,
            PieceShape::FloatSum | PieceShape::Maximum | PieceShape::BoundedSum => PAIR_WORDS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_huge_page_has_words_of_two_units() {
        for cpus in [1, 2, 3, 160, 1000, 70_000] {
            for unit_bytes in [PAGE, 256 << 10, HUGE_PAGE, HUGE_PAGE + PAGE, 1 << 30] {
                let cpus = CpuSet::from_iter((0..cpus).map(crate::cpu::CpuId::new));
                let mut layout = Layout {
                    cpus,
                    owned: (0, 0),
                    movable: false,
                    unit_bytes,
                    width: 16,
                    home_in_use: false,
                    huge_pages: true,
                };
                layout.fill_huge_pages();
                assert!(layout.unit_bytes >= unit_bytes && layout.unit_bytes.is_multiple_of(PAGE));
                // some are beyond the addresses of 32 bits
                let huge_pages_of = |unit: usize| {
                    let start = unit as u64 * layout.stride() as u64;
                    start / HUGE_PAGE as u64..(start + layout.unit_bytes as u64).div_ceil(HUGE_PAGE as u64)
                };
                let units = layout.own_units();
                for unit in [0, 1, units / 2, units - 2] {
                    assert!(
                        huge_pages_of(unit).end <= huge_pages_of(unit + 1).start,
                        "{units} units, {unit}"
                    );
                }
                // as where address space is short
                layout.unit_bytes /= 2;
                assert!(layout.stride() > layout.unit_bytes);
            }
        }
    }
}
