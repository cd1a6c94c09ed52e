//! The memory that units are made of, and the updates that found none.

use super::depot::Depot;
use super::layout::Layout;
use crate::cpu::{CpuSet, NodeId};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The source of memory for CPUs' counter words in an arena (a pool's counter memory): an allocator of blocks where
/// memory is given on demand, and the number of updates that found none.
pub(crate) struct UnitSupply {
    /// Blocks, where units are movable.
    depot: Option<Depot>,
    /// Updates that found the words of their CPU not writable.
    refusals: AtomicU64,
    /// `true` where one of them came after the last [`clear_short`](Self::clear_short).
    short: AtomicBool,
}

impl UnitSupply {
    /// Returns the supply for units of this layout. `several`: the nodes, where there is more than
    /// one.
    pub(super) fn new(layout: &Layout, several: &[(NodeId, CpuSet)]) -> UnitSupply {
        let depot = layout.movable.then(|| Depot::new(layout, several));
        UnitSupply { depot, refusals: AtomicU64::new(0), short: AtomicBool::new(false) }
    }

    /// Returns a supply without blocks.
    pub(super) const fn none() -> UnitSupply {
        UnitSupply { depot: None, refusals: AtomicU64::new(0), short: AtomicBool::new(false) }
    }

    /// Returns the blocks that movable units are made of.
    pub(super) fn depot(&self) -> Option<&Depot> {
        self.depot.as_ref()
    }

    /// Returns the number of updates that found no memory of their own and went to the fallback
    /// cell, and `true` where that may be so at present.
    pub(super) fn shortfalls(&self) -> (u64, bool) {
        let (blocks, short) = self.depot.as_ref().map_or((0, false), Depot::shortfalls);
        (blocks + self.refusals.load(Ordering::Relaxed), short || self.short.load(Ordering::Relaxed))
    }

    /// Notes that an update was refused its CPU's words. Async-signal-safe.
    pub(super) fn note_refusal(&self) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
        self.short.store(true, Ordering::Relaxed);
    }

    /// Notes that memory is asked for again: earlier refusals no longer count as present.
    pub(super) fn clear_short(&self) {
        self.short.store(false, Ordering::Relaxed);
    }
}
