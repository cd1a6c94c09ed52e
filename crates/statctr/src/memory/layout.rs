//! The geometry of memory: units in a reservation, and latched lines in a unit.

use super::mapping::PAGE;
use crate::cpu::CpuSet;

/// The bytes of a chunk, a cache line with the words of eight counters.
pub(crate) const CHUNK_BYTES: usize = 64;
/// The number of 64-bit counter words in a chunk (a cache line).
pub(crate) const CHUNK_WORDS: usize = CHUNK_BYTES / 8;

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
}

impl Layout {
    /// Returns the distance in bytes from one CPU's unit (its part of the counter memory) to the next: a unit, plus a
    /// page so that no page holds words of CPUs on two nodes, plus a cache line so that a counter's words of different
    /// CPUs fall into different cache sets.
    pub(crate) fn stride(&self) -> usize {
        self.unit_bytes + PAGE + CHUNK_BYTES
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
