//! The cores with their caches, the protocol between them, and the counts.

use super::cache::{Cache, State, Way};
use super::lines::{CopyStatus, Directory, Invalidation, MissKind};
use super::{Geometry, LineCounts};
use crate::Result;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// The most pairs of who lost a line and who took it that are told apart.
const CONFLICTS_LIMIT: usize = 1 << 20;

/// Totals over all accesses of a replay on simulated caches: hits, misses by cause, upgrades, write-backs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessCounts {
    /// Accesses to a line: one that crosses the end of a line is two.
    pub(crate) accesses: u64,
    /// The number of accesses that found their line in the core's cache.
    pub(crate) hits: u64,
    /// The numbers of reads, of writes, of misses by cause, and of copies that writes invalidated.
    pub(crate) lines: LineCounts,
    /// Hits that had to take the line from others before they could write.
    pub(crate) upgrades: u64,
    /// Modified lines that had to be written to memory.
    pub(crate) writebacks: u64,
}

impl AccessCounts {
    /// Returns the number of replayed accesses; one that crosses a cache line's end counts twice.
    #[inline]
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Returns the number of replayed accesses that found their line in the accessing core's cache.
    #[inline]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Returns the numbers of reads, writes and misses by cause of all replayed accesses, and of copies that writes
    /// invalidated.
    #[inline]
    pub fn lines(&self) -> LineCounts {
        self.lines
    }

    /// Returns the number of write hits on a shared line, whose copies in other caches had to be invalidated first.
    #[inline]
    pub fn upgrades(&self) -> u64 {
        self.upgrades
    }

    /// Returns the number of times that a modified line was written back from a simulated cache to memory.
    #[inline]
    pub fn writebacks(&self) -> u64 {
        self.writebacks
    }

    /// Returns the number of replayed accesses whose line was not in the accessing core's cache, whatever the
    /// cause.
    pub fn misses(&self) -> u64 {
        self.lines.cold + self.lines.replaced + self.lines.sharing_misses()
    }
}

/// A kind of sharing miss in a replay: the *victim* instruction missed at an offset of a cache line, because the
/// *culprit* instruction, on another core, had taken the line away by a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conflict {
    /// The line's number: its address by its size.
    pub(crate) line: u64,
    /// The first byte in the line that the access that missed touches.
    pub(crate) victim_offset: u16,
    /// The instruction that missed.
    pub(crate) victim: u32,
    /// The offset that was written when the core lost the line.
    pub(crate) culprit_offset: u16,
    /// The instruction that wrote it.
    pub(crate) culprit: u32,
    /// `true` if bytes that the victim touches were written since.
    pub(crate) is_true: bool,
}

impl Conflict {
    /// Returns the number of the cache line that was missed: its address divided by the line size.
    #[inline]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns the offset in the cache line, in bytes, at which the access that missed begins.
    #[inline]
    pub fn victim_offset(&self) -> u16 {
        self.victim_offset
    }

    /// Returns the instruction whose access missed, as its index in the trace's list of instructions.
    #[inline]
    pub fn victim(&self) -> u32 {
        self.victim
    }

    /// Returns the offset in the cache line, in bytes, of the write that took the line from the victim's core.
    #[inline]
    pub fn culprit_offset(&self) -> u16 {
        self.culprit_offset
    }

    /// Returns the instruction whose write took the line from the victim's core, as its index in the trace's list
    /// of instructions.
    #[inline]
    pub fn culprit(&self) -> u32 {
        self.culprit
    }

    /// Returns `true` for true sharing: bytes that the victim accesses were written after its core lost the line.
    /// `false` is false sharing.
    #[inline]
    pub fn is_true(&self) -> bool {
        self.is_true
    }
}

/// Counts of the hits, reads, writes and misses of one instruction in a replay on simulated caches, over all cache
/// lines that it accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionCounts {
    /// Accesses that found their line.
    pub(crate) hits: u64,
    /// Accesses and what they caused.
    pub(crate) lines: LineCounts,
    /// The lowest address that it accessed; [`u64::MAX`] if it accessed none.
    pub(crate) lowest: u64,
    /// The highest first byte of its accesses.
    pub(crate) highest: u64,
}

impl InstructionCounts {
    /// Returns the number of the instruction's accesses that found their line in the accessing core's cache.
    #[inline]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Returns the numbers of the instruction's reads, writes and misses by cause (cold, replaced, true or false
    /// sharing), and of the copies in other caches that its writes invalidated.
    #[inline]
    pub fn lines(&self) -> LineCounts {
        self.lines
    }

    /// Returns the lowest memory address that the instruction accessed; [`u64::MAX`] if it accessed none.
    #[inline]
    pub fn lowest(&self) -> u64 {
        self.lowest
    }

    /// Returns the highest address at which an access of the instruction begins; 0 if it accessed none.
    #[inline]
    pub fn highest(&self) -> u64 {
        self.highest
    }
}

impl Default for InstructionCounts {
    fn default() -> Self {
        Self { hits: 0, lines: LineCounts::default(), lowest: u64::MAX, highest: 0 }
    }
}

/// The result of replaying a trace on simulated coherent caches: counts in total, by cache line and by instruction,
/// and the pairs of instructions that conflict.
#[derive(Clone, Debug, Default)]
pub struct CoherenceSummary {
    /// The totals over all accesses.
    pub(crate) total: AccessCounts,
    /// The number of each cache line, with its counts.
    pub(crate) lines: Vec<(u64, LineCounts)>,
    /// The counts of each instruction, by its index in the trace.
    pub(crate) instructions: Vec<InstructionCounts>,
    /// The pairs of instructions of which one took lines from the other, and the number of times.
    pub(crate) conflicts: Vec<(Conflict, u64)>,
    /// Misses of the kind of `conflicts` that are not in there, as there are too many different ones.
    pub(crate) other_conflicts: u64,
}

impl CoherenceSummary {
    /// Returns the totals of the replay on simulated caches over all cache lines and cores: hits, misses by cause,
    /// upgrades and write-backs.
    #[inline]
    pub fn total(&self) -> AccessCounts {
        self.total
    }

    /// Returns the reads, writes and misses by cause of each accessed cache line, as pairs of its number (address
    /// divided by the line size) and these counts, in no particular order.
    #[inline]
    pub fn lines(&self) -> &[(u64, LineCounts)] {
        &self.lines
    }

    /// Returns the hits, reads, writes and misses by cause of each instruction in the replay, indexed as the trace's
    /// list of instructions.
    #[inline]
    pub fn instructions(&self) -> &[InstructionCounts] {
        &self.instructions
    }

    /// Returns the sharing misses of the replay by the instruction that missed (victim) and the one whose write took
    /// the line away (culprit), each with the number of times that it happened, in no particular order.
    #[inline]
    pub fn conflicts(&self) -> &[(Conflict, u64)] {
        &self.conflicts
    }

    /// Returns the number of sharing misses that [`conflicts`](Self::conflicts) does not list, because more than a
    /// million different ones occurred.
    #[inline]
    pub fn other_conflicts(&self) -> u64 {
        self.other_conflicts
    }
}

/// A simulated machine with one cache for each core, kept coherent by the MESI protocol, on which a trace's memory
/// accesses are replayed and counted.
#[derive(Clone, Debug)]
pub struct Machine {
    geometry: Geometry,
    caches: Vec<Cache>,
    directory: Directory,
    total: AccessCounts,
    instructions: Vec<InstructionCounts>,
    conflicts: FxHashMap<Conflict, u64>,
    other_conflicts: u64,
}

/// An access to one line.
#[derive(Clone, Copy)]
struct LineAccess {
    core: u16,
    line: u64,
    offset: u16,
    bytes: u64,
    store: bool,
    instruction: u32,
}

impl LineAccess {
    fn culprit(&self) -> Invalidation {
        (self.instruction, self.offset)
    }
}

impl Machine {
    /// Creates a simulated machine of the given shape with empty caches.
    pub fn new(geometry: Geometry) -> Self {
        Self {
            geometry,
            caches: vec![Cache::default(); usize::from(geometry.cores())],
            directory: Directory::default(),
            total: AccessCounts::default(),
            instructions: Vec::new(),
            conflicts: FxHashMap::default(),
            other_conflicts: 0,
        }
    }

    /// Returns the number of simulated cores and the size, associativity and line size of their caches.
    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Simulates a read, or a write if `store`, of `size` bytes by a core, and counts it for the instruction with
    /// that index. `core` is taken modulo the number of cores; bytes past the end of the address space are ignored.
    ///
    /// # Errors
    /// [`Error::Limit`](crate::Error::Limit) with too many different lines.
    #[inline]
    pub(crate) fn access(
        &mut self,
        core: u16,
        address: u64,
        size: u8,
        store: bool,
        instruction: u32,
    ) -> Result<()> {
        let core = core % self.geometry.cores();
        let last = address.saturating_add(u64::from(size.max(1)) - 1);
        let (mut line, end) = (self.geometry.line_of(address), self.geometry.line_of(last));
        let mut from = address;
        let length = u64::from(self.geometry.line());
        loop {
            let offset = from % length;
            let to = if line == end { last % length } else { length - 1 };
            let bytes = self.geometry.byte_mask(offset, to - offset + 1);
            self.touch(LineAccess { core, line, offset: offset as u16, bytes, store, instruction })?;
            if line == end {
                return Ok(());
            }
            line += 1;
            from = line * length;
        }
    }

    #[inline]
    fn touch(&mut self, touch: LineAccess) -> Result<()> {
        let place = touch.instruction as usize;
        if place >= self.instructions.len() {
            self.instructions.resize(place + 1, InstructionCounts::default());
        }
        self.total.accesses += 1;
        let address = touch.line * u64::from(self.geometry.line()) + u64::from(touch.offset);
        let counts = &mut self.instructions[place];
        counts.lines.writes += u64::from(touch.store);
        counts.lines.reads += u64::from(!touch.store);
        counts.lowest = counts.lowest.min(address);
        counts.highest = counts.highest.max(address);
        let Some(way) = self.caches[usize::from(touch.core)].find(self.geometry, touch.line) else {
            return self.miss(touch);
        };
        count_use(way, touch.store);
        self.total.hits += 1;
        self.instructions[place].hits += 1;
        if touch.store {
            way.written |= touch.bytes;
            let before = std::mem::replace(&mut way.state, State::Modified);
            if before == State::Shared {
                let index = way.index;
                self.total.upgrades += 1;
                self.take_from_others(&touch, index);
            }
        }
        Ok(())
    }

    #[cold]
    fn miss(&mut self, touch: LineAccess) -> Result<()> {
        let index = self.directory.index(touch.line)?;
        let was_modified = self.publish_of_owner(index);
        self.count_miss(&touch, index, was_modified);
        let state = if touch.store {
            self.take_from_others(&touch, index);
            State::Modified
        } else if self.share_with_others(index) {
            State::Shared
        } else {
            State::Exclusive
        };
        self.directory.line(index).set(touch.core, CopyStatus::Held);
        let cache = &mut self.caches[usize::from(touch.core)];
        let evicted = cache.insert(self.geometry, touch.line, index, state);
        if let Some(way) = cache.peek(self.geometry, touch.line) {
            count_use(way, touch.store);
            way.written = if touch.store { touch.bytes } else { 0 };
        }
        if let Some(evicted) = evicted {
            self.replace(touch.core, &evicted);
        }
        Ok(())
    }

    fn count_miss(&mut self, touch: &LineAccess, index: u32, was_modified: bool) {
        let line = self.directory.line(index);
        let status = line.status(touch.core);
        let miss = match status {
            Some(CopyStatus::Lost { written, .. }) if written & touch.bytes != 0 => MissKind::TrueSharing,
            Some(CopyStatus::Lost { .. }) => MissKind::FalseSharing,
            Some(_) => MissKind::Replaced,
            None => MissKind::Cold,
        };
        let instruction = &mut self.instructions[touch.instruction as usize].lines;
        for counts in [&mut line.counts, &mut self.total.lines, instruction] {
            counts.count(miss);
            counts.hitm += u64::from(was_modified);
        }
        if let Some(CopyStatus::Lost { by: (culprit, culprit_offset), .. }) = status {
            let conflict = Conflict {
                line: touch.line,
                victim_offset: touch.offset,
                victim: touch.instruction,
                culprit_offset,
                culprit,
                is_true: miss == MissKind::TrueSharing,
            };
            let is_full = self.conflicts.len() >= CONFLICTS_LIMIT;
            match self.conflicts.entry(conflict) {
                Entry::Occupied(mut count) => *count.get_mut() += 1,
                Entry::Vacant(_) if is_full => self.other_conflicts += 1,
                Entry::Vacant(place) => drop(place.insert(1)),
            }
        }
    }

    /// Publishes the writes of the core that has the line modified to the cores that lost it, if there is
    /// one.
    fn publish_of_owner(&mut self, index: u32) -> bool {
        let line = self.directory.line(index);
        // who has it modified has it alone
        let Some(owner) = line.holders().next() else { return false };
        let Some(way) = self.caches[usize::from(owner)].peek(self.geometry, line.number) else {
            return false;
        };
        line.publish(way.written);
        way.written = 0;
        way.state == State::Modified
    }

    /// Takes the line from all other cores, for a write.
    fn take_from_others(&mut self, touch: &LineAccess, index: u32) {
        let line = self.directory.line(index);
        let others: Vec<u16> = line.holders().filter(|core| *core != touch.core).collect();
        for core in &others {
            line.set(*core, CopyStatus::Lost { by: touch.culprit(), written: 0 });
            if let Some(way) = self.caches[usize::from(*core)].peek(self.geometry, line.number) {
                leave(&mut line.counts, way);
                way.state = State::Invalid;
            }
        }
        let taken = others.len() as u64;
        line.counts.invalidations += taken;
        self.total.lines.invalidations += taken;
        self.instructions[touch.instruction as usize].lines.invalidations += taken;
    }

    /// Makes the copies of a line in other cores shared, and returns `true` if there were any.
    fn share_with_others(&mut self, index: u32) -> bool {
        let line = self.directory.line(index);
        let mut any = false;
        for core in line.holders() {
            any = true;
            if let Some(way) = self.caches[usize::from(core)].peek(self.geometry, line.number) {
                self.total.writebacks += u64::from(way.state == State::Modified);
                way.state = State::Shared;
            }
        }
        any
    }

    /// Counts the eviction of a line.
    fn replace(&mut self, core: u16, evicted: &Way) {
        let line = self.directory.line(evicted.index);
        line.publish(evicted.written);
        line.set(core, CopyStatus::Replaced);
        leave(&mut line.counts, evicted);
        self.total.writebacks += u64::from(evicted.state == State::Modified);
    }

    /// Ends the simulation of a trace's memory accesses and returns the counts of hits, misses and conflicts between
    /// instructions; lines and conflicts are in no particular order.
    pub fn finish(mut self) -> CoherenceSummary {
        for cache in &self.caches {
            for way in cache.lines() {
                leave(&mut self.directory.line(way.index).counts, way);
            }
        }
        let lines: Vec<_> = self.directory.lines().iter().map(|line| (line.number, line.counts)).collect();
        for (_, counts) in &lines {
            self.total.lines.reads += counts.reads;
            self.total.lines.writes += counts.writes;
        }
        CoherenceSummary {
            total: self.total,
            lines,
            instructions: self.instructions,
            conflicts: self.conflicts.into_iter().collect(),
            other_conflicts: self.other_conflicts,
        }
    }
}

#[inline]
fn count_use(way: &mut Way, store: bool) {
    way.writes += u64::from(store);
    way.reads += u64::from(!store);
}

/// Adds the accesses of a line that leaves a cache to the line's counts.
fn leave(counts: &mut LineCounts, way: &Way) {
    counts.reads += way.reads;
    counts.writes += way.writes;
}

#[cfg(test)]
mod tests;
