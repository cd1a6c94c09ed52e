//! Cells of one size, zero when they are taken: caches by CPU in front of regions by node.
//!
//! A cache and a region are each held by a [`Flag`]. In the slow path of an update nobody waits for
//! one and nothing is mapped: what is not there at once is not there. Making and dropping objects
//! waits, and maps regions ahead of what updates may ask for; they cost address space until cells
//! are used. Memory stays mapped as long as the pool.

use crate::error::Result;
use crate::memory::flag::{Flag, Raised};
use crate::memory::lock::{Lock, Rank};
use crate::memory::mapping::Mapping;
use crate::topology::{CpuId, NodeId, Topology};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Cells that a cache holds.
const CACHE: usize = 48;
/// Cells that go between a cache and a region at a time.
const BATCH: usize = 16;
/// A region is at least this long.
const REGION_BYTES: usize = 1 << 20;

/// Which region a CPU takes cells from.
#[derive(Debug)]
pub(crate) struct Nodes {
    /// By CPU number: the place of its node in `nodes`.
    by_cpu: Box<[u16]>,
    /// The nodes; none in the last place, for CPUs of no known node.
    nodes: Box<[Option<NodeId>]>,
}

impl Nodes {
    pub(crate) fn new(topology: &Topology, cpus: usize) -> Nodes {
        let nodes: Vec<_> = topology.nodes().map(|(node, _)| Some(node)).collect();
        let place = |cpu| {
            let node = topology.node_of(CpuId::new(cpu as u32));
            nodes.iter().position(|known| known.is_some() && *known == node).unwrap_or(nodes.len()) as u16
        };
        let by_cpu = (0..cpus).map(place).collect();
        // memory policies are for machines with several nodes
        let one = nodes.len() <= 1;
        let nodes = nodes.into_iter().map(|node| node.filter(|_| !one)).chain([None]).collect();
        Nodes { by_cpu, nodes }
    }

    /// The place of a CPU's node.
    #[inline]
    pub(crate) fn place(&self, cpu: usize) -> usize {
        self.by_cpu.get(cpu).map_or(self.nodes.len() - 1, |&place| place.into())
    }

    /// How many places there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }
}

#[repr(align(64))]
struct Cache {
    flag: Flag,
    len: AtomicUsize,
    cells: [AtomicUsize; CACHE],
}

#[repr(align(64))]
struct Region {
    flag: Flag,
    /// Cells that were given back, each with the address of the next in its first word.
    free: AtomicUsize,
    /// Cells that nobody ever had.
    next: AtomicUsize,
    end: AtomicUsize,
}

/// Cells of one size.
pub(crate) struct Cells {
    bytes: usize,
    caches: Box<[Cache]>,
    regions: Box<[Region]>,
    mappings: Lock<Vec<Mapping>>,
}

impl Cells {
    /// Cells of so many bytes, a divisor or a multiple of 64, for so many CPUs and nodes.
    pub(crate) fn new(bytes: usize, cpus: usize, nodes: usize) -> Cells {
        let cache = || Cache {
            flag: Flag::new(),
            len: AtomicUsize::new(0),
            cells: [const { AtomicUsize::new(0) }; CACHE],
        };
        let region = || Region {
            flag: Flag::new(),
            free: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
        };
        Cells {
            bytes,
            // the last serves CPUs that nobody expected
            caches: (0..=cpus).map(|_| cache()).collect(),
            regions: (0..nodes).map(|_| region()).collect(),
            mappings: Lock::new(Rank::Depot, Vec::new()),
        }
    }

    fn cache(&self, cpu: usize) -> &Cache {
        &self.caches[cpu.min(self.caches.len() - 1)]
    }

    /// A cell, if one is there at once. Async-signal-safe.
    pub(crate) fn take_at_once(&self, cpu: usize, nodes: &Nodes) -> Option<NonNull<u8>> {
        let cache = self.cache(cpu);
        let held = cache.flag.try_raise()?;
        if let Some(cell) = cache.pop(&held) {
            return Some(cell);
        }
        let region = &self.regions[nodes.place(cpu)];
        let region_held = region.flag.try_raise()?;
        self.fill(cache, region, &held, &region_held);
        cache.pop(&held)
    }

    /// A cell. Waits and maps memory: not for writers.
    pub(crate) fn take(&self, cpu: usize, nodes: &Nodes) -> Result<NonNull<u8>> {
        loop {
            {
                let cache = self.cache(cpu);
                let held = cache.flag.raise();
                if let Some(cell) = cache.pop(&held) {
                    return Ok(cell);
                }
                let region = &self.regions[nodes.place(cpu)];
                self.fill(cache, region, &held, &region.flag.raise());
                if let Some(cell) = cache.pop(&held) {
                    return Ok(cell);
                }
            }
            self.keep_ready(nodes.place(cpu), BATCH, nodes)?;
        }
    }

    fn fill(&self, cache: &Cache, region: &Region, held: &Raised<'_>, region_held: &Raised<'_>) {
        for _ in 0..BATCH {
            let Some(cell) = region.pop(self.bytes, region_held) else { return };
            cache.push(cell, held);
        }
    }

    /// Gives a cell back, whose words are zero, to the cache of `cpu`.
    pub(crate) fn give(&self, cpu: usize, cell: NonNull<u8>, nodes: &Nodes) {
        let cache = self.cache(cpu);
        let held = cache.flag.raise();
        if cache.len.load(Ordering::Relaxed) == CACHE {
            let region = &self.regions[nodes.place(cpu)];
            let region_held = region.flag.raise();
            for _ in 0..BATCH {
                if let Some(cell) = cache.pop(&held) {
                    region.push(cell, &region_held);
                }
            }
        }
        cache.push(cell, &held);
    }

    /// Gives back a cell that was taken and never used, if that can be done at once; else it is lost
    /// until the pool goes. Async-signal-safe.
    pub(crate) fn give_at_once(&self, cpu: usize, cell: NonNull<u8>) {
        let cache = self.cache(cpu);
        if let Some(held) = cache.flag.try_raise() {
            cache.push(cell, &held);
        }
    }

    /// Maps memory where a node's region has less than `cells` cells that nobody ever had.
    pub(crate) fn keep_ready(&self, place: usize, cells: usize, nodes: &Nodes) -> Result<()> {
        let region = &self.regions[place];
        let left = || region.end.load(Ordering::Relaxed).saturating_sub(region.next.load(Ordering::Relaxed));
        if left() >= cells * self.bytes {
            return Ok(());
        }
        let mut mappings = self.mappings.lock();
        if left() >= cells * self.bytes {
            return Ok(());
        }
        let mapping =
            Mapping::new((2 * cells * self.bytes).max(REGION_BYTES).next_multiple_of(REGION_BYTES))?;
        if let Some(node) = nodes.nodes[place] {
            mapping.prefer(node);
        }
        let addresses = mapping.addresses();
        mappings.push(mapping);
        // the rest of the old region is address space that nobody ever touched
        let _held = region.flag.raise();
        region.end.store(0, Ordering::Relaxed);
        region.next.store(addresses.start, Ordering::Relaxed);
        region.end.store(addresses.end, Ordering::Relaxed);
        Ok(())
    }

    /// The addresses of the memory.
    pub(crate) fn addresses(&self) -> Vec<std::ops::Range<usize>> {
        self.mappings.lock().iter().map(Mapping::addresses).collect()
    }
}

fn pointer(address: usize) -> Option<NonNull<u8>> {
    NonNull::new(std::ptr::with_exposed_provenance_mut(address))
}

impl Cache {
    fn pop(&self, _held: &Raised<'_>) -> Option<NonNull<u8>> {
        let len = self.len.load(Ordering::Relaxed);
        let place = self.cells.get(len.checked_sub(1)?)?;
        self.len.store(len - 1, Ordering::Relaxed);
        // an exchange: a fork within a signal handler can let a second thread in, which finds
        // nothing here then
        pointer(place.swap(0, Ordering::Relaxed))
    }

    fn push(&self, cell: NonNull<u8>, _held: &Raised<'_>) {
        let len = self.len.load(Ordering::Relaxed);
        if let Some(place) = self.cells.get(len) {
            place.store(cell.addr().get(), Ordering::Relaxed);
            self.len.store(len + 1, Ordering::Relaxed);
        }
    }
}

impl Region {
    fn pop(&self, bytes: usize, _held: &Raised<'_>) -> Option<NonNull<u8>> {
        if let Some(cell) = pointer(self.free.load(Ordering::Relaxed)) {
            // SAFETY: a cell that nobody has; its first word is ours to use, and zero afterwards.
            let next = unsafe { cell.cast::<AtomicUsize>().as_ref() };
            self.free.store(next.load(Ordering::Relaxed), Ordering::Relaxed);
            next.store(0, Ordering::Relaxed);
            return Some(cell);
        }
        let next = self.next.load(Ordering::Relaxed);
        if self.end.load(Ordering::Relaxed).checked_sub(next)? < bytes {
            return None;
        }
        self.next.store(next + bytes, Ordering::Relaxed);
        pointer(next)
    }

    fn push(&self, cell: NonNull<u8>, _held: &Raised<'_>) {
        // SAFETY: as in `pop`.
        let next = unsafe { cell.cast::<AtomicUsize>().as_ref() };
        next.store(self.free.load(Ordering::Relaxed), Ordering::Relaxed);
        self.free.store(cell.addr().get(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_apart_zero_and_come_back_by_node() {
        let topology = Topology::synthetic(4)
            .node(NodeId::new(1), "0-1".parse().expect("list"))
            .node(NodeId::new(2), "2-3".parse().expect("list"))
            .build()
            .expect("topology");
        let nodes = Nodes::new(&topology, 4);
        assert_eq!((nodes.len(), nodes.place(1), nodes.place(3), nodes.place(9)), (3, 0, 1, 2));
        let cells = Cells::new(32, 4, nodes.len());
        assert!(cells.take_at_once(2, &nodes).is_none(), "nobody has mapped any");
        cells.keep_ready(1, 1000, &nodes).expect("memory");
        let mut taken: Vec<_> =
            (0..1000).map(|_| cells.take_at_once(2, &nodes).expect("kept ready").addr().get()).collect();
        assert!(cells.take_at_once(0, &nodes).is_none(), "of another node");
        taken.sort_unstable();
        assert!(taken.windows(2).all(|pair| pair[1] - pair[0] >= 32));
        for &cell in &taken {
            cells.give(2, pointer(cell).expect("a cell"), &nodes);
        }
        let again = (0..1000).filter(|_| {
            let cell = cells.take(2, &nodes).expect("memory");
            // SAFETY: just taken.
            assert_eq!(unsafe { cell.cast::<[u64; 4]>().read() }, [0; 4]);
            taken.binary_search(&cell.addr().get()).is_ok()
        });
        // a cache takes some at a time that nobody had
        assert!(again.count() >= 1000 - BATCH);
    }
}
