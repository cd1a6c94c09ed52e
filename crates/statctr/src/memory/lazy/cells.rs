//! Allocator of cells of one size, zero when they are taken: caches by CPU in front of regions by node.
//!
//! A cache and a region are each held by a [`SignalSafeLock`]. In the slow path of an update nobody waits for
//! one: what is not there at once is not there. Making and dropping objects waits.
//!
//! A region takes its cells from a *slab*, and has the next slab ready before the first one is used
//! up: whoever finds less than the watermark left maps it, be it a thread that makes objects or the
//! slow path of an update, in a signal handler, too. That is safe there because a slab is mapped by
//! system calls alone (see `slabs`). No other update waits for it; the one that maps waits for the
//! kernel as it would for the page fault of its new cell. Where the kernel refuses, the next
//! attempts are further and further apart. Slabs cost address space until cells are used, and stay
//! mapped as long as the pool.

use super::super::mapping::{Mapping, PAGE, populate};
use super::super::signal_safe_lock::{SignalSafeLock, SignalSafeLockGuard};
use super::super::slabs::{Growth, RECORD_BYTES, Slabs};
use super::nodes::Nodes;
use super::run::Run;
use crate::error::Result;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Cells that a cache holds.
const CACHE: usize = 122;
/// Cells that go between a cache and a region at a time, of those that somebody had before: to take one is to load it.
const BATCH: usize = 16;
/// The bytes of a CPU's first run, up to a multiple of as many. A run is cells that nobody ever had, which lie in a row
/// and go to one CPU. Runs of instances lie apart: no prefetcher of one CPU, which brings lines of a page of 4 KiB and of
/// the next, brings what another one writes, as long as nobody gives cells back. Two threads that update the same 256
/// objects with tables took 12.5 ns for an update with runs of 16 cells, 10.9 with 32, 9.4 with a page, and 8.3 with
/// these runs and gaps, as one thread alone does (AMD EPYC, Zen 3, in a virtual machine; where the host had the CPUs far
/// apart 22 and 15 with the first two).
const RUN_BYTES: usize = 4096;
/// The bytes of later runs of instances. Where few of its cells are used, the others are address space alone.
const LONG_RUN_BYTES: usize = 4 * RUN_BYTES;
/// The bytes behind a run of instances that nobody has.
const GAP_BYTES: usize = RUN_BYTES;
/// A slab is a multiple of this.
const SLAB_UNIT: usize = 2 * SIDE;
/// No slab that an update maps is larger, unless a few cells alone are.
const SLAB_LIMIT: usize = 64 << 20;
/// A slab holds at least so many cells.
const SLAB_CELLS: usize = 16;
/// The next slab is mapped when so many bytes of the last one are left.
const WATERMARK: usize = SLAB_UNIT / 2;
/// Cells that have a side lie in the first half of so many bytes, their sides in the second.
pub(super) const SIDE: usize = 1 << 19;
/// No more than this is made to be there at a time.
const AHEAD: usize = 1 << 18;

/// Size and properties of cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellKind {
    /// A divisor or a multiple of 64, at least 16.
    pub(super) bytes: usize,
    /// `true` if each cell has a side.
    pub(super) with_side: bool,
    /// `true` if their pages are populated ahead when many are made.
    pub(super) ahead: bool,
    /// `true` if runs of two CPUs lie where no prefetcher brings both: what one CPU alone writes.
    pub(super) apart: bool,
}

impl CellKind {
    /// Returns the bytes of the run that goes to a cache that has had `runs` before.
    fn run_bytes(self, runs: usize) -> usize {
        if self.apart && runs > 0 { LONG_RUN_BYTES } else { RUN_BYTES }.max(self.bytes)
    }

    /// Returns the bytes behind a run that nobody has.
    fn gap(self) -> usize {
        if self.apart { GAP_BYTES } else { 0 }
    }

    /// Returns the number of bytes of a region's last slab below which an update maps the next one.
    fn watermark(self) -> usize {
        WATERMARK.max(SLAB_CELLS / 2 * self.bytes)
    }
}

/// Zero is an empty one.
#[repr(C, align(64))]
struct Cache {
    lock: SignalSafeLock,
    len: AtomicUsize,
    /// Cells taken less cells given, here.
    balance: AtomicUsize,
    /// Not 0: balances are no longer kept here.
    closed: AtomicUsize,
    run: Run,
    /// Runs so far.
    runs: AtomicUsize,
    /// Cells that somebody had.
    cells: [AtomicUsize; CACHE],
}

#[repr(align(64))]
struct Region {
    lock: SignalSafeLock,
    /// Cells that were given back, each with the address of the next in its first word.
    free: AtomicUsize,
    /// The end of the slab that cells come from, and its first byte that nobody ever had.
    end: AtomicUsize,
    next: AtomicUsize,
    /// End of the populated part.
    there: AtomicUsize,
    /// The record of a slab that nobody has begun with; 0 where there is none.
    spare: AtomicUsize,
    growth: Growth,
}

/// The reason for which no cell can be taken at once: a lock that is held, or no mapped memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shortage {
    /// A cache or region that another thread holds, for a few instructions.
    Busy,
    /// No free cell in mapped memory.
    Memory,
}

/// Value of [`Cells::live`] before the cells are closed: more than there can be.
const OPEN: usize = usize::MAX / 2;

/// Allocator of memory cells of one fixed size, for lazy objects (four statistics each) or their instances (CPUs'
/// copies of these).
pub(crate) struct Cells {
    kind: CellKind,
    /// The last one serves CPUs that nobody expected.
    caches: Mapping,
    last: usize,
    regions: Box<[Region]>,
    /// Cells of all runs, roughly.
    made: AtomicUsize,
    /// Once closed: cells that are not given back yet.
    live: AtomicUsize,
    slabs: Slabs,
}

impl Cells {
    /// Cells for so many CPUs and nodes.
    pub(super) fn new(kind: CellKind, cpus: usize, nodes: usize) -> Result<Cells> {
        let zero = || AtomicUsize::new(0);
        let region = || Region {
            lock: SignalSafeLock::new(),
            free: zero(),
            end: zero(),
            next: zero(),
            there: zero(),
            spare: zero(),
            growth: Growth::new(),
        };
        Ok(Cells {
            kind,
            caches: Mapping::new(((cpus + 1) * size_of::<Cache>()).next_multiple_of(PAGE))?,
            last: cpus,
            regions: (0..nodes).map(|_| region()).collect(),
            made: zero(),
            live: AtomicUsize::new(OPEN),
            slabs: Slabs::new(),
        })
    }

    fn cache(&self, cpu: usize) -> &Cache {
        // SAFETY: inside the mapping, aligned; zeroed memory is a cache, and it is only used as one.
        unsafe { self.caches.start().cast::<Cache>().add(cpu.min(self.last)).as_ref() }
    }

    /// Takes a cell, if one is there at once or the kernel gives memory for one. Async-signal-safe.
    pub(super) fn take_at_once(
        &self,
        cpu: usize,
        nodes: &Nodes,
    ) -> std::result::Result<NonNull<u8>, Shortage> {
        let node = nodes.index_of(cpu);
        match self.take_there(cpu, node) {
            Ok((cell, is_low)) => {
                if is_low {
                    self.grow_at_once(node, nodes);
                }
                Ok(cell)
            }
            Err(Shortage::Memory) if self.grow_at_once(node, nodes) => {
                self.take_there(cpu, node).map(|(cell, _)| cell)
            }
            Err(shortage) => Err(shortage),
        }
    }

    /// Takes a cell that is there; the flag is `true` if the next slab should be mapped.
    fn take_there(&self, cpu: usize, node: usize) -> std::result::Result<(NonNull<u8>, bool), Shortage> {
        let cache = self.cache(cpu);
        let held = cache.lock.try_lock().ok_or(Shortage::Busy)?;
        if let Some(cell) = cache.pop(self.kind, &held) {
            return Ok((cell, false));
        }
        let region = &self.regions[node];
        let region_held = region.lock.try_lock().ok_or(Shortage::Busy)?;
        self.fill(cache, region, &held, &region_held);
        let is_low = region.free.load(Ordering::Relaxed) == 0
            && region.spare.load(Ordering::Relaxed) == 0
            && region.left(self.kind.with_side).1 < self.kind.watermark();
        cache.pop(self.kind, &held).map(|cell| (cell, is_low)).ok_or(Shortage::Memory)
    }

    /// Has a slab ready for updates that find no cells, where the kernel gives one and nobody else is
    /// at it. Returns whether there is one. Async-signal-safe.
    #[cold]
    fn grow_at_once(&self, node: usize, nodes: &Nodes) -> bool {
        let region = &self.regions[node];
        let is_there = || region.spare.load(Ordering::Relaxed) != 0;
        region.growth.try_grow(is_there, |held| {
            // a quarter of all there is: so the number of slabs stays small
            let bytes = (self.made() / 4).saturating_mul(self.kind.bytes).min(SLAB_LIMIT);
            let map = |bytes| self.map_slab(region, node, bytes, nodes, held);
            if bytes > SLAB_UNIT && map(bytes).is_ok() { Ok(()) } else { map(SLAB_UNIT) }
        })
    }

    /// Takes a cell that is counted; the flag is `true` if the cache had none. Waits and maps
    /// memory: not for writers.
    pub(super) fn take(&self, cpu: usize, nodes: &Nodes) -> Result<(NonNull<u8>, bool)> {
        let mut filled = false;
        loop {
            {
                let cache = self.cache(cpu);
                let held = cache.lock.lock();
                if let Some(cell) = cache.pop_counted(self.kind, &held) {
                    return Ok((cell, filled));
                }
                let region = &self.regions[nodes.index_of(cpu)];
                let region_held = region.lock.lock();
                self.look_ahead(region, &region_held);
                self.fill(cache, region, &held, &region_held);
                filled = true;
                if let Some(cell) = cache.pop_counted(self.kind, &held) {
                    return Ok((cell, filled));
                }
            }
            self.keep_ready(nodes.index_of(cpu), (self.made() / 4).max(BATCH), nodes)?;
        }
    }

    fn fill(
        &self,
        cache: &Cache,
        region: &Region,
        held: &SignalSafeLockGuard<'_>,
        region_held: &SignalSafeLockGuard<'_>,
    ) {
        let mut cells = [const { None }; BATCH];
        let mut count = 0;
        while count < BATCH
            && let Some(cell) = region.pop_free(region_held)
        {
            cells[count] = Some(cell);
            count += 1;
        }
        cells.iter().rev().flatten().for_each(|cell| cache.push(*cell, held));
        if count > 0 {
            return;
        }
        let bytes = self.kind.run_bytes(cache.runs.load(Ordering::Relaxed));
        if let Some(run) = region.take_run(self.kind, bytes, region_held) {
            self.made.store(self.made().wrapping_add(run.len() / self.kind.bytes), Ordering::Relaxed);
            cache.run.begin(&run, self.kind.bytes);
            cache.runs.store(cache.runs.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
        }
    }

    /// Makes the pages of the next cells be there, many at a time where many were made: a fault
    /// for each page is most of what a new object costs.
    fn look_ahead(&self, region: &Region, _held: &SignalSafeLockGuard<'_>) {
        let (next, there) = (region.next.load(Ordering::Relaxed), region.there.load(Ordering::Relaxed));
        // no more than an eighth of what there is
        let length = (self.made() * self.kind.bytes / 8).min(AHEAD);
        let room = region.left(self.kind.with_side).0;
        if !self.kind.ahead || next + self.kind.run_bytes(0) <= there || length < 4 * 4096 || room == 0 {
            return;
        }
        let length = length.min(room);
        // SAFETY: inside the region's mapping, which stays.
        // Refused: then page by page, when they are touched.
        let _ = unsafe { populate(next, length) };
        region.there.store(next + length, Ordering::Relaxed);
    }

    /// Gives a cell back, whose words are zero, to the cache of `cpu`, which is of the cell's node.
    pub(super) fn give(&self, cpu: usize, cell: NonNull<u8>, nodes: &Nodes) {
        let cache = self.cache(cpu);
        self.give_in(cache, &cache.lock.lock(), nodes.index_of(cpu), cell);
    }

    fn give_in(&self, cache: &Cache, held: &SignalSafeLockGuard<'_>, node: usize, cell: NonNull<u8>) {
        if cache.len.load(Ordering::Relaxed) >= CACHE {
            let region = &self.regions[node];
            let region_held = region.lock.lock();
            for _ in 0..BATCH {
                if let Some(cell) = cache.pop_given(held) {
                    region.push(cell, &region_held);
                }
            }
        }
        cache.push(cell, held);
    }

    /// Gives a cell back, whose words are zero, to the region of the node at this place.
    pub(super) fn give_far(&self, node: usize, cell: NonNull<u8>) {
        let region = &self.regions[node.min(self.regions.len() - 1)];
        region.push(cell, &region.lock.lock());
    }

    /// Gives back a cell that was counted; `far` is the place of its node where that is not the
    /// CPU's. `true`: it was the last one of closed cells, and nobody uses them any more; else the
    /// cells may be gone when this returns.
    #[must_use]
    pub(super) fn give_counted(
        &self,
        cpu: usize,
        far: Option<usize>,
        cell: NonNull<u8>,
        nodes: &Nodes,
    ) -> bool {
        let cache = self.cache(cpu);
        let held = cache.lock.lock();
        if cache.closed.load(Ordering::Relaxed) != 0 {
            // the lock first: after the subtraction the cells may be gone
            drop(held);
            return self.live.fetch_sub(1, Ordering::AcqRel) == 1;
        }
        match far {
            Some(node) => self.give_far(node, cell),
            None => self.give_in(cache, &held, nodes.index_of(cpu), cell),
        }
        // last: a fork in between makes the child count too many, which keeps memory and no more
        let balance = cache.balance.load(Ordering::Relaxed);
        cache.balance.store(balance.wrapping_sub(1), Ordering::Relaxed);
        false
    }

    /// Ends the taking of counted cells. Returns `true` if none is out, so nobody uses the
    /// cells any more; else they may be gone when this returns.
    #[must_use]
    pub(super) fn close(&self) -> bool {
        let mut out = 0usize;
        for cpu in 0..=self.last {
            let cache = self.cache(cpu);
            let _held = cache.lock.lock();
            out = out.wrapping_add(cache.balance.load(Ordering::Relaxed));
            cache.closed.store(1, Ordering::Relaxed);
        }
        let change = out.wrapping_sub(OPEN);
        self.live.fetch_add(change, Ordering::AcqRel).wrapping_add(change) == 0
    }

    /// Cells that are counted and out, roughly while others take and give.
    pub(super) fn out(&self) -> usize {
        let balance = |cpu| self.cache(cpu).balance.load(Ordering::Relaxed);
        let out = (0..=self.last).map(balance).fold(0, usize::wrapping_add);
        if (out as isize) < 0 { 0 } else { out }
    }

    /// Cells that somebody had or that are in a cache's run, roughly.
    pub(super) fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    /// Gives back a cell that was taken and never used, if that can be done at once; else it is lost
    /// until the pool goes. Async-signal-safe.
    pub(super) fn give_at_once(&self, cpu: usize, cell: NonNull<u8>) {
        let cache = self.cache(cpu);
        if let Some(held) = cache.lock.try_lock() {
            cache.push(cell, &held);
        }
    }

    /// Maps memory where a node's region has less than the bytes of `cells` cells that nobody ever had.
    pub(super) fn keep_ready(&self, node: usize, cells: usize, nodes: &Nodes) -> Result<()> {
        let region = &self.regions[node];
        let wanted = cells.saturating_mul(self.kind.bytes);
        let enough = || region.left(self.kind.with_side).1 + region.in_spare(self.kind.with_side) >= wanted;
        if enough() {
            return Ok(());
        }
        let held = region.growth.wait();
        if enough() {
            return Ok(());
        }
        let sides = if self.kind.with_side { 2 } else { 1 };
        self.map_slab(region, node, wanted.saturating_mul(2 * sides), nodes, &held)
    }

    /// Maps memory where updates of all CPUs could not take `cells` cells in all without mapping some: each cache of the
    /// node may have begun two runs, and where less than the watermark is left an update maps the next slab.
    pub(super) fn keep_ready_for_updates(&self, node: usize, cells: usize, nodes: &Nodes) -> Result<()> {
        let (bytes, gap) = (self.kind.bytes, self.kind.gap());
        let (first, later) = (self.kind.run_bytes(0), self.kind.run_bytes(1));
        let begun = nodes.cpus_at(node) * (first + later + 2 * gap) + self.kind.watermark();
        // a run need not be a whole number of cells
        let run = later - later % bytes;
        let gaps = cells.saturating_mul(bytes) / run * (later - run + gap);
        self.keep_ready(node, cells.saturating_add((begun + gaps).div_ceil(bytes)), nodes)
    }

    /// Maps a slab of at least so many bytes as the region's spare one. Async-signal-safe, but for
    /// `errno`.
    fn map_slab(
        &self,
        region: &Region,
        node: usize,
        bytes: usize,
        nodes: &Nodes,
        _held: &SignalSafeLockGuard<'_>,
    ) -> Result<()> {
        let bytes = bytes.max(SLAB_CELLS * self.kind.bytes);
        let mapping = Mapping::new(bytes.checked_next_multiple_of(SLAB_UNIT).unwrap_or(bytes))?;
        if let Some(node) = nodes.node(node) {
            mapping.prefer(node);
        }
        // SAFETY: the first cell's place is the record's, see `begin_spare`.
        let record = unsafe { self.slabs.add(mapping, 0) };
        // a smaller spare one that is there is address space that nobody ever touched
        region.spare.store(record, Ordering::Release);
        Ok(())
    }

    /// Returns the number of slabs that updates mapped.
    pub(super) fn growths(&self) -> usize {
        self.regions.iter().map(|region| region.growth.successes()).sum()
    }

    /// Returns the addresses of the memory.
    pub(super) fn addresses(&self) -> Vec<Range<usize>> {
        let mut addresses: Vec<_> = self.slabs.iter().map(Mapping::addresses).collect();
        addresses.push(self.caches.addresses());
        addresses
    }
}

fn pointer(address: usize) -> Option<NonNull<u8>> {
    NonNull::new(std::ptr::with_exposed_provenance_mut(address))
}

impl Cache {
    fn pop(&self, kind: CellKind, held: &SignalSafeLockGuard<'_>) -> Option<NonNull<u8>> {
        self.pop_given(held).or_else(|| self.run.pop(kind.bytes))
    }

    /// Pops a cell that somebody had.
    fn pop_given(&self, _held: &SignalSafeLockGuard<'_>) -> Option<NonNull<u8>> {
        let len = self.len.load(Ordering::Relaxed);
        let place = self.cells.get(len.checked_sub(1)?)?;
        self.len.store(len - 1, Ordering::Relaxed);
        // an exchange: a fork within a signal handler can let a second thread in, which finds
        // nothing here then
        pointer(place.swap(0, Ordering::Relaxed))
    }

    /// Pops a cell and counts it. Not for signal handlers, so it does without the exchange.
    fn pop_counted(&self, kind: CellKind, _held: &SignalSafeLockGuard<'_>) -> Option<NonNull<u8>> {
        let len = self.len.load(Ordering::Relaxed);
        let place = len.checked_sub(1).and_then(|last| self.cells.get(last));
        let given = place.and_then(|place| pointer(place.load(Ordering::Relaxed)));
        let cell = given.or_else(|| self.run.pop(kind.bytes));
        if cell.is_some() {
            // first: see `give_counted`
            let balance = self.balance.load(Ordering::Relaxed);
            self.balance.store(balance.wrapping_add(1), Ordering::Relaxed);
        }
        if place.is_some() {
            self.len.store(len - 1, Ordering::Relaxed);
        }
        cell
    }

    fn push(&self, cell: NonNull<u8>, _held: &SignalSafeLockGuard<'_>) {
        let len = self.len.load(Ordering::Relaxed);
        if let Some(place) = self.cells.get(len) {
            place.store(cell.addr().get(), Ordering::Relaxed);
            self.len.store(len + 1, Ordering::Relaxed);
        }
    }
}

impl Region {
    /// Pops a cell that was given back.
    fn pop_free(&self, _held: &SignalSafeLockGuard<'_>) -> Option<NonNull<u8>> {
        let cell = pointer(self.free.load(Ordering::Relaxed))?;
        // SAFETY: a cell that nobody has; its first word is ours to use, and zero afterwards.
        let next = unsafe { cell.cast::<AtomicUsize>().as_ref() };
        self.free.store(next.load(Ordering::Relaxed), Ordering::Relaxed);
        next.store(0, Ordering::Relaxed);
        Some(cell)
    }

    /// Takes a run of cells that nobody ever had: about `bytes`, to a multiple of [`RUN_BYTES`], or what is left in a
    /// row. The gap behind it is passed over.
    fn take_run(
        &self,
        kind: CellKind,
        bytes: usize,
        _held: &SignalSafeLockGuard<'_>,
    ) -> Option<Range<usize>> {
        if self.left(kind.with_side).1 < kind.bytes {
            self.begin_spare(kind)?;
        }
        let (mut room, all) = self.left(kind.with_side);
        if all < kind.bytes {
            return None;
        }
        let next = self.next.load(Ordering::Relaxed);
        let mut start = next;
        if room < kind.bytes {
            // over the sides of the cells before
            start += SIDE;
            room = SIDE;
        }
        let end = (start + bytes) / RUN_BYTES * RUN_BYTES;
        let length = end.saturating_sub(start).max(kind.bytes).min(room);
        let run = start..start + length - length % kind.bytes;
        let mut behind = run.end;
        if kind.apart {
            behind = (run.end + GAP_BYTES).next_multiple_of(RUN_BYTES).min(start + room);
        }
        // an exchange, for the reason of `pop_given`'s
        self.next.compare_exchange(next, behind, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        Some(run)
    }

    /// Takes cells from the spare slab from now on.
    fn begin_spare(&self, kind: CellKind) -> Option<()> {
        // SAFETY: the slabs live as long as the region.
        let addresses = unsafe { Slabs::mapping_of(self.spare.swap(0, Ordering::Acquire)) }?.addresses();
        // the record is in the place of the first cell
        let first = addresses.start + kind.bytes.max(RECORD_BYTES);
        // nothing is left before all is there: a fork may come in between
        self.end.store(0, Ordering::Relaxed);
        self.next.store(first, Ordering::Relaxed);
        self.there.store(first, Ordering::Relaxed);
        self.end.store(addresses.end, Ordering::Relaxed);
        Some(())
    }

    /// Returns the number of bytes for cells in the spare slab.
    fn in_spare(&self, with_side: bool) -> usize {
        // SAFETY: as in `begin_spare`.
        let spare = unsafe { Slabs::mapping_of(self.spare.load(Ordering::Acquire)) };
        let bytes = spare.map_or(0, Mapping::len);
        if with_side { bytes / 2 } else { bytes }
    }

    /// Returns the number of bytes for cells that nobody ever had: in a row, and all. Cells with a
    /// side divide a slab's half.
    fn left(&self, with_side: bool) -> (usize, usize) {
        let end = self.end.load(Ordering::Relaxed);
        let Some(left) = end.checked_sub(self.next.load(Ordering::Relaxed)) else { return (0, 0) };
        if !with_side {
            return (left, left);
        }
        let (slabs, part) = (left / SLAB_UNIT, left % SLAB_UNIT);
        let room = part.saturating_sub(SIDE);
        // a whole number of slabs is left also before the first cell of one
        let room = if part == 0 && slabs > 0 { SIDE } else { room };
        (room, slabs * SIDE + part.saturating_sub(SIDE))
    }

    fn push(&self, cell: NonNull<u8>, _held: &SignalSafeLockGuard<'_>) {
        // SAFETY: as in `pop_free`.
        let next = unsafe { cell.cast::<AtomicUsize>().as_ref() };
        next.store(self.free.load(Ordering::Relaxed), Ordering::Relaxed);
        self.free.store(cell.addr().get(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::NodeId;
    use crate::topology::Topology;
    use std::collections::BTreeSet;

    const PLAIN: CellKind = CellKind { bytes: 32, with_side: false, ahead: false, apart: true };

    #[test]
    fn cells_are_apart_zero_and_come_back_by_node() {
        let topology = Topology::synthetic(4)
            .node(NodeId::new(1), "0-1".parse().expect("list"))
            .node(NodeId::new(2), "2-3".parse().expect("list"))
            .build()
            .expect("topology");
        let nodes = Nodes::new(&topology, 4);
        assert_eq!((nodes.len(), nodes.index_of(1), nodes.index_of(3), nodes.index_of(9)), (3, 0, 1, 2));
        assert_eq!([0, 1, 2, 3, u32::MAX].map(|number| nodes.index_of_node(number)), [2, 0, 1, 2, 2]);
        let cells = Cells::new(PLAIN, 4, nodes.len()).expect("memory");
        assert_eq!(cells.slabs.iter().count(), 0, "nobody has mapped any");
        cells.keep_ready(1, 1000, &nodes).expect("memory");
        let mut taken: Vec<_> =
            (0..1000).map(|_| cells.take_at_once(2, &nodes).expect("kept ready").addr().get()).collect();
        assert_eq!((cells.slabs.iter().count(), cells.growths()), (1, 0));
        let other = cells.take_at_once(0, &nodes).expect("memory").addr().get();
        assert_eq!((cells.slabs.iter().count(), cells.growths()), (2, 1), "of another node");
        assert!(taken.iter().all(|&cell| cell.abs_diff(other) >= 32));
        taken.sort_unstable();
        assert!(taken.windows(2).all(|pair| pair[1] - pair[0] >= 32));
        for &cell in &taken {
            cells.give(2, pointer(cell).expect("a cell"), &nodes);
        }
        let again = (0..1000).filter(|_| {
            let (cell, _) = cells.take(2, &nodes).expect("memory");
            // SAFETY: just taken.
            assert_eq!(unsafe { cell.cast::<[u64; 4]>().read() }, [0; 4]);
            taken.binary_search(&cell.addr().get()).is_ok()
        });
        // a cache takes some at a time that nobody had
        assert!(again.count() >= 1000 - LONG_RUN_BYTES / PLAIN.bytes);
    }

    fn one_node() -> Nodes {
        Nodes::new(&Topology::synthetic(2).build().expect("topology"), 2)
    }

    #[test]
    fn no_cell_lies_where_the_side_of_another_is() {
        let nodes = one_node();
        let cells =
            Cells::new(CellKind { bytes: 64, with_side: true, ahead: true, apart: false }, 2, nodes.len())
                .expect("memory");
        let mut taken = BTreeSet::new();
        // more than two slabs
        for _ in 0..20_000 {
            let (cell, _) = cells.take(0, &nodes).expect("memory");
            for place in [cell.addr().get(), cell.addr().get() + SIDE] {
                assert!(taken.insert(place), "twice");
                // SAFETY: a cell and its side, that nobody else has.
                unsafe { std::ptr::with_exposed_provenance_mut::<u64>(place).write(1) };
            }
        }
        assert!(cells.made() >= 20_000);
    }

    #[test]
    fn cells_of_two_cpus_do_not_lie_where_one_fetch_brings_both() {
        let nodes = one_node();
        for with_side in [false, true] {
            let kind = CellKind { bytes: 64, with_side, ahead: with_side, apart: !with_side };
            let cells = Cells::new(kind, 2, nodes.len()).expect("memory");
            let mut places = [BTreeSet::new(), BTreeSet::new()];
            for turn in 0..2000 {
                let cpu = turn % 2;
                let cell = if with_side {
                    cells.take(cpu, &nodes).expect("memory").0
                } else {
                    cells.take_at_once(cpu, &nodes).expect("memory")
                };
                places[cpu].insert(cell.addr().get() / RUN_BYTES);
            }
            assert!(places[0].is_disjoint(&places[1]), "with a side: {with_side}");
            // the first of a slab has its record, too
            assert!(places.iter().all(|places| places.len() <= 1000 * 64 / RUN_BYTES + 2), "{places:?}");
            let is_apart =
                |page| with_side || !places[1].contains(&(page + 1)) && !places[1].contains(&(page - 1));
            assert!(places[0].iter().all(is_apart), "{places:?}");
        }
    }

    #[test]
    fn updates_of_all_cpus_map_no_memory_where_it_was_kept_ready() {
        let nodes = Nodes::new(&Topology::synthetic(192).build().expect("topology"), 192);
        let cells = Cells::new(CellKind { bytes: 64, ..PLAIN }, 192, nodes.len()).expect("memory");
        for _ in 0..5 {
            cells.keep_ready_for_updates(0, 192 * 70, &nodes).expect("memory");
            // more than a run of each CPU
            for number in 0..192 * 70 {
                cells.take_at_once(number % 192, &nodes).expect("memory");
            }
            assert_eq!(cells.growths(), 0);
        }
        let few = Cells::new(CellKind { bytes: 64, ..PLAIN }, 192, nodes.len()).expect("memory");
        few.keep_ready_for_updates(0, 64, &nodes).expect("memory");
        (0..192).for_each(|cpu| _ = few.take_at_once(cpu, &nodes).expect("memory"));
        assert_eq!(few.growths(), 0);
    }

    #[test]
    fn a_cpus_first_table_leaves_those_that_were_kept_ready_to_the_other_cpus() {
        let nodes = Nodes::new(&Topology::synthetic(64).build().expect("topology"), 64);
        for bytes in [512, 1024, 8192, 1 << 16] {
            let tables = CellKind { bytes, with_side: false, ahead: false, apart: false };
            let cells = Cells::new(tables, 64, nodes.len()).expect("memory");
            let each = (RUN_BYTES / bytes).max(1);
            cells.keep_ready(0, 16 * each, &nodes).expect("memory");
            (0..16).for_each(|cpu| _ = cells.take_at_once(cpu, &nodes).expect("kept ready"));
            let taken = cells.made();
            assert!(taken <= 16 * each, "{bytes}: {taken}");
        }
    }

    #[test]
    fn a_cell_goes_to_one_thread_where_a_fork_let_a_second_one_in() {
        let nodes = one_node();
        let cells = Cells::new(CellKind { bytes: 64, ..PLAIN }, 2, nodes.len()).expect("memory");
        cells.keep_ready(0, 200_000, &nodes).expect("memory");
        let (cache, region) = (cells.cache(0), &cells.regions[0]);
        // the slab is begun: that takes several stores
        assert!(region.take_run(cells.kind, 64, &SignalSafeLock::new().lock()).is_some());
        let take = || {
            // as if each had the locks
            let lock = SignalSafeLock::new();
            let held = lock.lock();
            let mut taken = Vec::new();
            for _ in 0..20_000 {
                match cache.run.pop(cells.kind.bytes) {
                    Some(cell) => taken.push(cell.addr().get()),
                    None => cells.fill(cache, region, &held, &held),
                }
            }
            taken
        };
        let mut taken: Vec<usize> = std::thread::scope(|scope| {
            let threads = [scope.spawn(take), scope.spawn(take)];
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        let all = taken.len();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), all, "twice");
        assert!(all > 30_000, "{all}");
        let addresses = cells.addresses();
        let is_inside = |cell| addresses.iter().any(|slab| slab.start < cell && cell + 64 <= slab.end);
        assert!(taken.into_iter().all(is_inside));
    }

    #[test]
    fn cells_that_updates_take_do_not_end() {
        let nodes = one_node();
        let shared = CellKind { apart: false, ..PLAIN };
        let all = [16, 32, 64, 192, 4096, 1 << 17].map(|bytes| CellKind { bytes, ..shared });
        for kind in [PLAIN, CellKind { bytes: 128, ..PLAIN }].into_iter().chain(all) {
            let cells = Cells::new(kind, 2, nodes.len()).expect("memory");
            let count = if kind.bytes > PAGE { 100 } else { 100_000 };
            let mut taken: Vec<_> = (0..count)
                .map(|number| cells.take_at_once(number % 2, &nodes).expect("memory").addr().get())
                .collect();
            taken.sort_unstable();
            assert!(taken.windows(2).all(|pair| pair[1] - pair[0] >= kind.bytes), "{kind:?}");
            let addresses = cells.addresses();
            let is_inside =
                |cell| addresses.iter().any(|slab| slab.start < cell && cell + kind.bytes <= slab.end);
            assert!(taken.into_iter().all(is_inside), "{kind:?}: beside a slab, or where its record is");
            assert!((2..50).contains(&cells.growths()), "{kind:?}: {}", cells.growths());
        }
    }

    #[test]
    fn nobody_waits_for_a_cache_or_a_region_that_is_held() {
        let nodes = one_node();
        let cells = Cells::new(PLAIN, 2, nodes.len()).expect("memory");
        let held = cells.cache(0).lock.lock();
        assert_eq!(cells.take_at_once(0, &nodes), Err(Shortage::Busy));
        drop(held);
        let held = cells.regions[0].lock.lock();
        assert_eq!(cells.take_at_once(0, &nodes), Err(Shortage::Busy));
        drop(held);
        let held = cells.regions[0].growth.wait();
        assert_eq!(cells.take_at_once(0, &nodes), Err(Shortage::Memory), "somebody else maps");
        drop(held);
        assert!(cells.take_at_once(0, &nodes).is_ok());
    }

    #[test]
    fn closed_cells_are_over_with_the_last_that_is_out() {
        let nodes = one_node();
        let cells = Cells::new(PLAIN, 2, nodes.len()).expect("memory");
        let out: Vec<_> = (0..100).map(|number| cells.take(number % 2, &nodes).expect("memory").0).collect();
        // given back on another CPU than it was taken on
        assert!(!cells.give_counted(1, None, out[0], &nodes));
        assert!(!cells.give_counted(1, Some(0), out[1], &nodes));
        assert_eq!(cells.out(), 98);
        assert!(!cells.close());
        for (left, cell) in out[2..].iter().enumerate() {
            assert_eq!(cells.give_counted(left % 3, None, *cell, &nodes), left == 97);
        }
        let none = Cells::new(PLAIN, 2, nodes.len()).expect("memory");
        let (cell, _) = none.take(0, &nodes).expect("memory");
        assert!(!none.give_counted(1, None, cell, &nodes) && none.close(), "nothing was out");
    }
}
