//! Drains: a CPU's counts go into the residue of each reservation, and its blocks go free.
//!
//! ```text
//! drain(cpu), under the pool's lock:
//!   for each reservation: lock (nobody announces there); table[cpu] := 0
//!   membarrier on cpu: no section that saw the old entry is under way; the blocks are frozen
//!   for each reservation: residue of the next view := residue of this view + block
//!                         publish the next view, in which the CPU is missing
//!                         take the block from the CPU; unlock
//! ```
//! Meanwhile the CPU counts in the fallback cells: its writers see at most one abort and no wait. It
//! gets a new block with its next update after. Where the kernel refuses the membarrier the entries
//! are put back and everything stays as it was.

use super::arena::{Arena, ReservationEntry};
use super::layout::CHUNK_WORDS;
use super::signal_safe_lock::SignalSafeLockGuard;
use crate::cpu::{CpuId, CpuSet};
use crate::error::{Error, Result};
use crate::rseq;

/// The result of draining a CPU, moving its counts to shared words and freeing its memory: numbers of memory blocks,
/// and of bytes of counts, that were moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Drained {
    /// Blocks of memory that the CPU counted in and that are free now.
    pub blocks: usize,
    /// Bytes of counts that were moved into residues.
    pub bytes: usize,
}

impl Arena {
    /// Moves `cpu`'s counts in the arena (a pool's counter memory) to the residue (words with the counts of drained
    /// CPUs, which reads add), and frees its memory.
    pub(crate) fn drain(&self, cpu: CpuId) -> Result<Drained> {
        let Some(depot) = self.depot() else { return Ok(Drained::default()) };
        let cpu = cpu.index();
        let state = self.lock();
        let closed: Vec<(&ReservationEntry, SignalSafeLockGuard<'_>)> = state
            .reservations
            .values()
            .filter_map(|held| held.reservation.close(cpu).map(|guard| (held, guard)))
            .collect();
        if closed.is_empty() {
            return Ok(Drained::default());
        }
        if let Err(errno) = rseq::end_sections_on(cpu) {
            closed.iter().for_each(|(held, guard)| held.reservation.reopen(cpu, guard));
            return Err(Error::System { operation: "membarrier", errno });
        }
        let mut drained = Drained::default();
        for (held, guard) in closed {
            let words = held.slots.used_extent() * CHUNK_WORDS;
            if let Some(block) = held.reservation.fold_away(cpu, words, &held.shapes, &guard) {
                drop(guard);
                depot.give(cpu, block);
                drained.blocks += 1;
                drained.bytes += words * 8;
            }
        }
        depot.refill();
        Ok(drained)
    }

    /// Gives these CPUs memory blocks for their words of all counters in the arena (a pool's counter memory), and
    /// stocks some more, so that their first updates of any counter need no system call.
    pub(crate) fn expect(&self, cpus: &CpuSet) {
        if self.depot().is_some() {
            let mut state = self.lock();
            state.expected = cpus.clone();
            self.give_blocks(&state);
        }
    }
}
