//! The state of each line: the cores that have it, the reasons others lost it, and counts of events.

use crate::{Error, Result};
use rustc_hash::FxHashMap;

/// The most lines that a replay may touch; about 150 bytes of memory each.
const LINES_LIMIT: u64 = 1 << 25;

/// The cause of a cache miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissKind {
    /// The core never had the line.
    Cold,
    /// The core had replaced the line by another one, for lack of room in the cache or in the set.
    Replaced,
    /// Another core had written to the line, to bytes that the access touches.
    TrueSharing,
    /// Another core had written to the line, but only to other bytes.
    FalseSharing,
}

/// Counts of a replay on simulated caches, over all cores: reads, writes, and misses by cause. They are those of
/// one cache line, of one instruction, or of all accesses, depending on where they come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// The number of reads.
    pub(crate) reads: u64,
    /// The number of writes.
    pub(crate) writes: u64,
    /// The number of misses of cores that never had the line.
    pub(crate) cold: u64,
    /// The number of misses of cores that had replaced the line.
    pub(crate) replaced: u64,
    /// The number of misses of cores that lost the line to another core's write, with writes to the accessed bytes.
    pub(crate) true_sharing: u64,
    /// The number of misses of cores that lost the line to another core's write, without writes to the accessed bytes.
    pub(crate) false_sharing: u64,
    /// Copies that writes took from other cores.
    pub(crate) invalidations: u64,
    /// Misses that another core's modified copy answered; hardware calls them HITM.
    pub(crate) hitm: u64,
}

impl LineCounts {
    /// Returns the number of reads among the memory accesses of a replay that are counted here.
    #[inline]
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Returns the number of writes among the memory accesses of a replay that are counted here; one that reads and
    /// writes is a write.
    #[inline]
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Returns the number of cold misses: the core had never had the cache line before.
    #[inline]
    pub fn cold(&self) -> u64 {
        self.cold
    }

    /// Returns the number of capacity and conflict misses: the core had evicted the cache line to make room for
    /// another.
    #[inline]
    pub fn replaced(&self) -> u64 {
        self.replaced
    }

    /// Returns the number of true-sharing misses: another core had taken the line away by a write, and bytes that
    /// this access touches were written since.
    #[inline]
    pub fn true_sharing(&self) -> u64 {
        self.true_sharing
    }

    /// Returns the number of false-sharing misses: another core had taken the line away by a write, but only other
    /// bytes of it were written since.
    #[inline]
    pub fn false_sharing(&self) -> u64 {
        self.false_sharing
    }

    /// Returns the number of copies of cache lines in other cores' caches that the counted writes invalidated.
    #[inline]
    pub fn invalidations(&self) -> u64 {
        self.invalidations
    }

    /// Returns the number of misses that another core's modified copy of the line served (HITM, as hardware events
    /// and `perf c2c` call it).
    #[inline]
    pub fn hitm(&self) -> u64 {
        self.hitm
    }

    /// Returns the number of misses that other cores' writes caused: true sharing plus false sharing.
    pub fn sharing_misses(&self) -> u64 {
        self.true_sharing + self.false_sharing
    }

    pub(super) fn count(&mut self, miss: MissKind) {
        *match miss {
            MissKind::Cold => &mut self.cold,
            MissKind::Replaced => &mut self.replaced,
            MissKind::TrueSharing => &mut self.true_sharing,
            MissKind::FalseSharing => &mut self.false_sharing,
        } += 1;
    }
}

impl std::ops::AddAssign for LineCounts {
    fn add_assign(&mut self, other: Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.cold += other.cold;
        self.replaced += other.replaced;
        self.true_sharing += other.true_sharing;
        self.false_sharing += other.false_sharing;
        self.invalidations += other.invalidations;
        self.hitm += other.hitm;
    }
}

/// The writer that took a line away: its instruction, and the offset in the line that it wrote to.
pub(super) type Invalidation = (u32, u16);

/// A core and a line that it has or had.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineCopy {
    pub(super) core: u16,
    pub(super) status: CopyStatus,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum CopyStatus {
    /// The line is in the core's cache.
    Held,
    /// The line was in the core's cache, and was replaced there by another one.
    Replaced,
    /// A write of another core took the line away; `written` has the bytes that others wrote since.
    Lost { by: Invalidation, written: u64 },
}

/// A cache line: its state in each core, and the events that it took part in.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) number: u64,
    /// The states of the line in cores, sorted by core.
    parts: Vec<LineCopy>,
    pub(super) counts: LineCounts,
}

impl Line {
    /// Returns the state of the line in a core; none if it never was there.
    pub(super) fn status(&self, core: u16) -> Option<CopyStatus> {
        let at = self.parts.binary_search_by_key(&core, |part| part.core).ok()?;
        self.parts.get(at).map(|part| part.status)
    }

    pub(super) fn set(&mut self, core: u16, status: CopyStatus) {
        match self.parts.binary_search_by_key(&core, |part| part.core) {
            Ok(at) => self.parts[at].status = status,
            Err(at) => self.parts.insert(at, LineCopy { core, status }),
        }
    }

    /// Returns the cores that have it.
    pub(super) fn holders(&self) -> impl Iterator<Item = u16> {
        self.parts.iter().filter(|part| matches!(part.status, CopyStatus::Held)).map(|part| part.core)
    }

    /// Says to all cores that lost the line what was written since.
    pub(super) fn publish(&mut self, bytes: u64) {
        for part in &mut self.parts {
            if let CopyStatus::Lost { written, .. } = &mut part.status {
                *written |= bytes;
            }
        }
    }
}

/// The lines that were touched.
#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    by_number: FxHashMap<u64, u32>,
    lines: Vec<Line>,
}

impl Directory {
    /// Returns the index of a line.
    pub(super) fn index(&mut self, number: u64) -> Result<u32> {
        let next = self.lines.len() as u32;
        let index = *self.by_number.entry(number).or_insert(next);
        if index == next {
            if u64::from(next) >= LINES_LIMIT {
                return Err(Error::Limit { what: "cache lines in a replay", limit: LINES_LIMIT });
            }
            self.lines.push(Line { number, ..Line::default() });
        }
        Ok(index)
    }

    #[inline]
    pub(super) fn line(&mut self, index: u32) -> &mut Line {
        &mut self.lines[index as usize]
    }

    pub(super) fn lines(&self) -> &[Line] {
        &self.lines
    }
}
