//! The blocks that movable units are made of, by node.
//!
//! A *ready* block can be taken without a lock and without allocation, so also in a signal handler;
//! who holds the pool's lock keeps some ready. Blocks are zero. Their memory stays mapped as long
//! as the pool, because an outdated reader may still look at a block that serves another CPU by
//! now; what is not in use is given back to the system all the same.

use super::lock::{Lock, Rank};
use super::mapping::{Mapping, store_zeros, zero};
use super::reservation::Layout;
use crate::error::Result;
use crate::rseq::is_refused;
use crate::topology::{CpuId, CpuSet, NodeId};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Blocks that are kept ready for each node.
const READY: usize = 32;
/// No slab takes more address space than this, unless a block alone does.
const SLAB_BYTES: usize = 64 << 20;

/// The blocks of a pool.
pub(crate) struct Depot {
    block_bytes: usize,
    stride: usize,
    /// By CPU number; CPUs behind the end are in the last bucket.
    bucket_of: Box<[u16]>,
    /// One per node, and a last one for CPUs whose node is not known.
    buckets: Box<[Bucket]>,
    /// Updates that found no block ready.
    shortfalls: AtomicU64,
    /// Whether one of them came after the last time all that was asked for was made ready.
    short: AtomicU64,
    stock: Lock<Stock>,
}

struct Bucket {
    node: Option<NodeId>,
    ready: [AtomicUsize; READY],
}

struct Stock {
    slabs: Vec<Mapping>,
    /// By bucket.
    spare: Vec<Vec<usize>>,
}

impl Depot {
    /// Blocks for units as `layout` has them. `several`: the nodes, where there is more than one.
    pub(crate) fn new(layout: &Layout, several: &[(NodeId, CpuSet)]) -> Depot {
        let last = several.iter().filter_map(|(_, cpus)| cpus.last()).max();
        let bucket = |cpu: u32| several.iter().position(|(_, cpus)| cpus.contains(CpuId::new(cpu)));
        let bucket_of = (0..last.map_or(0, |last| last.get() + 1))
            .map(|cpu| bucket(cpu).unwrap_or(several.len()) as u16)
            .collect();
        let nodes = several.iter().map(|(node, _)| Some(*node)).chain([None]);
        let buckets: Box<[_]> =
            nodes.map(|node| Bucket { node, ready: [const { AtomicUsize::new(0) }; READY] }).collect();
        let stock = Stock { slabs: Vec::new(), spare: vec![Vec::new(); buckets.len()] };
        Depot {
            block_bytes: layout.unit_bytes,
            stride: layout.stride(),
            bucket_of,
            buckets,
            shortfalls: AtomicU64::new(0),
            short: AtomicU64::new(0),
            stock: Lock::new(Rank::Depot, stock),
        }
    }

    fn bucket_of(&self, cpu: usize) -> usize {
        self.bucket_of.get(cpu).map_or(self.buckets.len() - 1, |&bucket| bucket.into())
    }

    /// The address of a zero block for a CPU, if one is ready. Async-signal-safe.
    pub(crate) fn take_ready(&self, cpu: usize) -> Option<usize> {
        let ready = &self.buckets[self.bucket_of(cpu)].ready;
        let refused = is_refused!(Block);
        let mut blocks = ready.iter().filter(|place| !refused && place.load(Ordering::Relaxed) != 0);
        let taken = blocks.find_map(|place| {
            let block = place.swap(0, Ordering::Acquire);
            (block != 0).then_some(block)
        });
        if taken.is_none() {
            self.shortfalls.fetch_add(1, Ordering::Relaxed);
            self.short.store(1, Ordering::Relaxed);
        }
        taken
    }

    /// The address of a zero block for a CPU. Waits and allocates: not for writers.
    pub(crate) fn take(&self, cpu: usize) -> Option<usize> {
        let bucket = self.bucket_of(cpu);
        let mut stock = self.stock.lock();
        if stock.spare[bucket].is_empty() && self.grow(&mut stock, bucket).is_err() {
            self.short.store(1, Ordering::Relaxed);
        }
        stock.spare[bucket].pop()
    }

    /// Gives a block back that nobody counts in. Readers that are outdated may still look at it.
    pub(crate) fn give(&self, cpu: usize, block: usize) {
        let mut stock = self.stock.lock();
        if let Some(start) = NonNull::new(std::ptr::with_exposed_provenance_mut(block)) {
            // SAFETY: a whole block of a slab of ours, which nobody counts in.
            let given_back = unsafe { zero(start, self.block_bytes) };
            if given_back.is_err() {
                // SAFETY: as above.
                unsafe { store_zeros(start, 0..self.block_bytes) };
            }
            stock.spare[self.bucket_of(cpu)].push(block);
        }
    }

    /// Gives back a block that was taken and never used. Async-signal-safe.
    pub(crate) fn give_unused(&self, cpu: usize, block: usize) {
        let ready = &self.buckets[self.bucket_of(cpu)].ready;
        let put = |place: &AtomicUsize| {
            place.compare_exchange(0, block, Ordering::Release, Ordering::Relaxed).is_ok()
        };
        // no room: its address space is lost until the pool goes
        let _ = ready.iter().any(put);
    }

    /// Makes blocks ready for the slow path of updates.
    pub(crate) fn refill(&self) {
        let mut stock = self.stock.lock();
        self.short.store(0, Ordering::Relaxed);
        for index in 0..self.buckets.len() {
            // the last serves CPUs of no known node: none where all nodes are known
            for place in &self.buckets[index].ready {
                if place.load(Ordering::Relaxed) != 0 {
                    continue;
                }
                if stock.spare[index].is_empty() && self.grow(&mut stock, index).is_err() {
                    self.short.store(1, Ordering::Relaxed);
                    return;
                }
                if let Some(block) = stock.spare[index].pop() {
                    place.store(block, Ordering::Release);
                }
            }
        }
    }

    /// Maps another slab; a smaller one where address space is short.
    fn grow(&self, stock: &mut Stock, bucket: usize) -> Result<()> {
        let mut count = (SLAB_BYTES / self.stride).clamp(1, READY);
        let slab = loop {
            match Mapping::new((count * self.stride).next_multiple_of(super::mapping::PAGE)) {
                Err(_) if count > 1 => count /= 2,
                other => break other?,
            }
        };
        if let Some(node) = self.buckets[bucket].node {
            slab.prefer(node);
        }
        let start = slab.addresses().start;
        stock.spare[bucket].extend((0..count).rev().map(|index| start + index * self.stride));
        stock.slabs.push(slab);
        Ok(())
    }

    /// Makes the pages of the first `bytes` bytes of a block be there.
    pub(crate) fn populate(&self, block: usize, bytes: usize) -> Result<()> {
        let stock = self.stock.lock();
        match stock.slabs.iter().find(|slab| slab.addresses().contains(&block)) {
            Some(slab) => slab.populate(block - slab.addresses().start, bytes.min(self.block_bytes)),
            None => Ok(()),
        }
    }

    /// The addresses of the slabs.
    pub(crate) fn addresses(&self) -> Vec<std::ops::Range<usize>> {
        self.stock.lock().slabs.iter().map(Mapping::addresses).collect()
    }

    /// Updates that found no block ready, and whether there was one since the last refill.
    pub(crate) fn shortfalls(&self) -> (u64, bool) {
        (self.shortfalls.load(Ordering::Relaxed), self.short.load(Ordering::Relaxed) != 0)
    }
}
