//! The blocks that movable units are made of, by node.
//!
//! A *ready* block can be taken without a lock and without allocation, so also in a signal handler;
//! who holds the pool's lock keeps some ready. Where there is none left, the slow path of an update
//! maps some, by system calls alone (see `slabs`). Blocks are zero. Their memory stays mapped as long
//! as the pool, because an outdated reader may still look at a block that serves another CPU by
//! now; what is not in use is given back to the system all the same.

use super::layout::Layout;
use super::mapping::{Mapping, PAGE, store_zeros, zero};
use super::slabs::{Growth, RECORD_BYTES, Slabs};
use crate::cpu::{CpuId, CpuSet, NodeId};
use crate::errno;
use crate::error::{Error, Result};
use crate::rseq::is_refused;
use crate::sys::{self, Lock, Rank};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Blocks that are kept ready for each node.
const READY: usize = 32;
/// No slab takes more address space than this, unless a block alone does.
const SLAB_BYTES: usize = 64 << 20;

/// Allocator of the zeroed memory blocks that flexible pools (with memory only for CPUs that count or are expected to)
/// give to CPUs for their counter words, with a stock for each NUMA node.
pub(crate) struct Depot {
    block_bytes: usize,
    stride: usize,
    /// The index of each CPU's bucket, by CPU number; CPUs beyond the end are in the last bucket.
    bucket_of: Box<[u16]>,
    /// The buckets of blocks: one for each NUMA node, and a last one for CPUs of unknown node.
    buckets: Box<[Bucket]>,
    /// Updates that found no block ready.
    shortfalls: AtomicU64,
    /// 1 if an update found no block ready after the last complete [`refill`](Self::refill).
    short: AtomicU64,
    /// Spare blocks by bucket: neither ready nor in use.
    spare: Lock<Vec<Vec<usize>>>,
    slabs: Slabs,
}

struct Bucket {
    node: Option<NodeId>,
    ready: [AtomicUsize; READY],
    growth: Growth,
}

impl Depot {
    /// Creates an allocator of blocks of one unit (a CPU's part of the counter memory) each; `several` lists the NUMA
    /// nodes, empty if there is only one.
    pub(crate) fn new(layout: &Layout, several: &[(NodeId, CpuSet)]) -> Depot {
        let last = several.iter().filter_map(|(_, cpus)| cpus.last()).max();
        let bucket = |cpu: u32| several.iter().position(|(_, cpus)| cpus.contains(CpuId::new(cpu)));
        let bucket_of = (0..last.map_or(0, |last| last.get() + 1))
            .map(|cpu| bucket(cpu).unwrap_or(several.len()) as u16)
            .collect();
        let nodes = several.iter().map(|(node, _)| Some(*node)).chain([None]);
        let bucket =
            |node| Bucket { node, ready: [const { AtomicUsize::new(0) }; READY], growth: Growth::new() };
        let buckets: Box<[_]> = nodes.map(bucket).collect();
        let spare = vec![Vec::new(); buckets.len()];
        Depot {
            block_bytes: layout.unit_bytes,
            stride: layout.stride(),
            bucket_of,
            buckets,
            shortfalls: AtomicU64::new(0),
            short: AtomicU64::new(0),
            spare: Lock::new(Rank::Depot, spare),
            slabs: Slabs::new(),
        }
    }

    fn bucket_of(&self, cpu: usize) -> usize {
        self.bucket_of.get(cpu).map_or(self.buckets.len() - 1, |&bucket| bucket.into())
    }

    /// Allocates a zeroed block for a CPU's counter words from the stock, or maps memory for more; returns its address,
    /// `None` if that fails. Async-signal-safe.
    pub(crate) fn take_ready(&self, cpu: usize) -> Option<usize> {
        let bucket = &self.buckets[self.bucket_of(cpu)];
        let taken =
            if is_refused!(Block) { None } else { bucket.take().or_else(|| self.grow_at_once(bucket)) };
        if taken.is_none() {
            self.shortfalls.fetch_add(1, Ordering::Relaxed);
            self.short.store(1, Ordering::Relaxed);
        }
        taken
    }

    /// Maps a slab for an update that found no block, where nobody else is at it: a block of it; the
    /// others are ready.
    #[cold]
    fn grow_at_once(&self, bucket: &Bucket) -> Option<usize> {
        let mut taken = None;
        let is_there = || bucket.ready.iter().any(|place| place.load(Ordering::Relaxed) != 0);
        let grown = bucket.growth.try_grow(is_there, |_| {
            let mut blocks = self.map_slab(bucket.node)?;
            taken = blocks.next();
            blocks.for_each(|block| bucket.put(block));
            self.short.store(0, Ordering::Relaxed);
            Ok(())
        });
        taken.or_else(|| if grown { bucket.take() } else { None })
    }

    /// Allocates a zeroed block for a CPU's counter words and returns its address; `None` without memory. May wait for
    /// a lock: not for updates.
    pub(crate) fn take(&self, cpu: usize) -> Option<usize> {
        let bucket = self.bucket_of(cpu);
        let mut spare = self.spare.lock();
        if spare[bucket].is_empty() && self.grow(&mut spare[bucket], bucket).is_err() {
            self.short.store(1, Ordering::Relaxed);
        }
        spare[bucket].pop()
    }

    /// Frees the block with a CPU's counter words, which nobody writes any more. Readers that started earlier may still
    /// load from it.
    pub(crate) fn give(&self, cpu: usize, block: usize) {
        let mut spare = self.spare.lock();
        if let Some(start) = NonNull::new(std::ptr::with_exposed_provenance_mut(block)) {
            // SAFETY: a whole block of a slab of ours, which nobody counts in.
            let given_back = unsafe { zero(start, self.block_bytes, sys::page_size()) };
            if given_back.is_err() {
                // SAFETY: as above.
                unsafe { store_zeros(start, 0..self.block_bytes) };
            }
            spare[self.bucket_of(cpu)].push(block);
        }
    }

    /// Frees a block (memory for a CPU's counter words) that was allocated and never written. Async-signal-safe.
    pub(crate) fn give_unused(&self, cpu: usize, block: usize) {
        self.buckets[self.bucket_of(cpu)].put(block);
    }

    /// Refills the stock of zeroed blocks (memory for CPUs' counter words), so that slow paths of updates find one
    /// without a system call.
    pub(crate) fn refill(&self) {
        let mut spare = self.spare.lock();
        self.short.store(0, Ordering::Relaxed);
        for index in 0..self.buckets.len() {
            // the last serves CPUs of no known node: none where all nodes are known
            for place in &self.buckets[index].ready {
                if place.load(Ordering::Relaxed) != 0 {
                    continue;
                }
                if spare[index].is_empty() && self.grow(&mut spare[index], index).is_err() {
                    self.short.store(1, Ordering::Relaxed);
                    return;
                }
                // an update that maps a slab may be at this place, too
                let Some(block) = spare[index].pop() else { continue };
                if place.compare_exchange(0, block, Ordering::Release, Ordering::Relaxed).is_err() {
                    spare[index].push(block);
                }
            }
        }
    }

    /// Maps another slab, for spare blocks.
    fn grow(&self, spare: &mut Vec<usize>, bucket: usize) -> Result<()> {
        let mut blocks: Vec<usize> = self.map_slab(self.buckets[bucket].node)?.collect();
        blocks.reverse();
        spare.append(&mut blocks);
        Ok(())
    }

    /// Returns the blocks of a new slab; of a smaller one where address space is short.
    /// Async-signal-safe, but for `errno`.
    fn map_slab(&self, node: Option<NodeId>) -> Result<impl Iterator<Item = usize> + use<>> {
        let mut count = (SLAB_BYTES / self.stride).clamp(1, READY);
        let slab = loop {
            match Mapping::read_only((count * self.stride).next_multiple_of(PAGE), count + 1) {
                Err(_) if count > 1 => count /= 2,
                other => break other?,
            }
        };
        if let Some(node) = node {
            slab.prefer(node);
        }
        let (start, stride, last) = (slab.addresses().start, self.stride, slab.len() - RECORD_BYTES);
        if !slab.make_writable(last, RECORD_BYTES) {
            return Err(Error::OutOfMemory { bytes: slab.len(), errno: errno::ENOMEM });
        }
        // SAFETY: the end of the pad behind the last block, more than a page away from it.
        unsafe { self.slabs.add(slab, last) };
        Ok((0..count).map(move |index| start + index * stride))
    }

    /// Makes the first `bytes` of a block (memory for a CPU's counter words) writable, for good; returns `false` if the
    /// kernel refuses. Async-signal-safe.
    pub(crate) fn make_writable(&self, block: usize, bytes: usize) -> bool {
        match self.slabs.iter().find(|slab| slab.addresses().contains(&block)) {
            Some(slab) => slab.make_writable(block - slab.addresses().start, bytes.min(self.block_bytes)),
            None => false,
        }
    }

    /// Prefaults the first `bytes` of a block (memory for a CPU's counter words), so that later stores take no page
    /// fault.
    pub(crate) fn populate(&self, block: usize, bytes: usize) -> Result<()> {
        match self.slabs.iter().find(|slab| slab.addresses().contains(&block)) {
            Some(slab) => slab.populate(block - slab.addresses().start, bytes.min(self.block_bytes)),
            None => Ok(()),
        }
    }

    /// Returns the address ranges of the mappings that blocks (memory for CPUs' counter words) are cut from.
    pub(crate) fn addresses(&self) -> Vec<std::ops::Range<usize>> {
        self.slabs.iter().map(Mapping::addresses).collect()
    }

    /// Returns the number of updates that got no block (memory for a CPU's counter words) from the stock or from a new
    /// mapping, and `true` if blocks have run short since memory for more was last mapped.
    pub(crate) fn shortfalls(&self) -> (u64, bool) {
        (self.shortfalls.load(Ordering::Relaxed), self.short.load(Ordering::Relaxed) != 0)
    }
}

impl Bucket {
    /// Returns a block that is ready.
    fn take(&self) -> Option<usize> {
        let mut blocks = self.ready.iter().filter(|place| place.load(Ordering::Relaxed) != 0);
        blocks.find_map(|place| {
            let block = place.swap(0, Ordering::Acquire);
            (block != 0).then_some(block)
        })
    }

    /// Makes a zero block ready. Where there is no room its address space is lost until the pool
    /// goes.
    fn put(&self, block: usize) {
        let put = |place: &AtomicUsize| {
            place.compare_exchange(0, block, Ordering::Release, Ordering::Relaxed).is_ok()
        };
        let _ = self.ready.iter().any(put);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn blocks_that_updates_take_do_not_end() {
        let layout = Layout {
            cpus: CpuSet::new(),
            owned: (0, 0),
            movable: true,
            unit_bytes: 8192,
            width: 16,
            home_in_use: false,
            huge_pages: false,
        };
        let depot = Depot::new(&layout, &[]);
        let mut blocks = BTreeSet::new();
        for cpu in 0..5 * READY {
            assert!(blocks.insert(depot.take_ready(cpu).expect("memory")));
        }
        let blocks: Vec<usize> = blocks.into_iter().collect();
        assert!(blocks.windows(2).all(|pair| pair[1] - pair[0] >= 8192 + PAGE));
        assert_eq!((depot.slabs.iter().count(), depot.shortfalls()), (5, (0, false)));
        // given back, they are taken again
        blocks.iter().for_each(|&block| depot.give(0, block));
        depot.refill();
        assert!(depot.take_ready(0).is_some_and(|block| blocks.contains(&block)));
        assert_eq!(depot.slabs.iter().count(), 5);
    }
}
