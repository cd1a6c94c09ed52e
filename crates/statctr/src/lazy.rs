//! Statistics of a million objects: [`LazyGroup`], whose instances come as writers come.
//!
//! An object of which one CPU writes is one cache line (two on aarch64), whatever the number of
//! CPUs. The second CPU gets an instance of its own, near to it, without waiting; where there is no
//! memory at once, the object's atomic words serve until the next update finds some.
//!
//! ```
//! use statctr::{Combine, LazyPool, PerCpu};
//!
//! // the statistics of a flow: packets, bytes, last used, TCP flags seen
//! let flows = LazyPool::<PerCpu>::new([Combine::Sum, Combine::Sum, Combine::Max, Combine::Or])?;
//! let flow = flows.create()?;
//! flow.update([1, 1500, 17, 0x02]);
//! flow.update([1, 40, 12, 0x10]);
//! assert_eq!(flow.read(), [2, 1540, 17, 0x12]);
//! # Ok::<(), statctr::Error>(())
//! ```
//!
//! Source: Open vSwitch, *Per NUMA node flow stats* and what became of it: per CPU, lazily, with a
//! preallocated instance.

use crate::combine::Combine;
use crate::cpu::CpuId;
use crate::error::{Error, Result};
use crate::memory::{IndexKind, LazyMemory, LazyOwner, LazySettings, Nodes, Object};
use crate::placement::{Memory, Mode, Pool, VectorWidth, resident};
use crate::rseq::{self, ITEMS};
use crate::sys::{Lock, Rank, cpu_bound};
use crate::topology::Topology;
use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

mod sealed {
    pub trait Scope {
        const INDEX: crate::memory::IndexKind;
    }
}

/// The granularity at which a lazy object (a group of four statistics) keeps separate copies of these, each created at
/// the first write there: per CPU, per NUMA node or per concurrency id ([`PerCpu`], [`PerNode`], [`PerConcurrencyId`]).
pub trait Scope: sealed::Scope + Send + Sync + 'static {}

/// The scope of lazy objects (groups of four statistics) with one instance, a copy of the four, for each CPU that
/// writes. An update of all four is one commit (a single store).
#[derive(Debug, Clone, Copy)]
pub struct PerCpu;

/// The scope of lazy objects (groups of four statistics) with one instance, a copy of the four, for each NUMA node that
/// writes: fewer to keep and read, but updates are atomic, item by item, as CPUs share an instance. A thread's node is
/// what the kernel writes to its rseq area (Linux 6.3), and on older kernels what the topology has for its CPU.
#[derive(Debug, Clone, Copy)]
pub struct PerNode;

/// The scope of lazy objects (groups of four statistics) with one instance, a copy of the four, for each concurrency id
/// that writes. The kernel gives running threads of a process small unique ids (`mm_cid`, Linux 6.3), so few threads on
/// many CPUs need few instances. An update of all four is one commit (a single store).
#[derive(Debug, Clone, Copy)]
pub struct PerConcurrencyId;

impl sealed::Scope for PerCpu {
    const INDEX: IndexKind = IndexKind::Cpu;
}
impl sealed::Scope for PerNode {
    const INDEX: IndexKind = IndexKind::Node;
}
impl sealed::Scope for PerConcurrencyId {
    const INDEX: IndexKind = IndexKind::Concurrency;
}
impl Scope for PerCpu {}
impl Scope for PerNode {}
impl Scope for PerConcurrencyId {}

/// A pool from which lazy objects are allocated: groups of four counters whose per-CPU instances are created when a CPU
/// first writes. Clones share the pool; its memory lives as long as its last object.
pub struct LazyPool<S: Scope> {
    memory: Arc<LazyOwner>,
    /// Synthetic CPUs that somebody counts as.
    impersonated: Arc<Lock<BTreeSet<CpuId>>>,
    mode: Mode,
    scope: PhantomData<S>,
}

impl<S: Scope> Clone for LazyPool<S> {
    fn clone(&self) -> Self {
        LazyPool {
            memory: Arc::clone(&self.memory),
            impersonated: Arc::clone(&self.impersonated),
            mode: self.mode,
            scope: PhantomData,
        }
    }
}

impl<S: Scope> fmt::Debug for LazyPool<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyPool").field("mode", &self.mode()).finish_non_exhaustive()
    }
}

/// Builder of a [`LazyPool`], from which groups of four counters are allocated, with other settings than the defaults.
#[derive(Debug, Clone)]
#[must_use]
pub struct LazyPoolBuilder<S: Scope> {
    items: [Combine; ITEMS],
    topology: Option<Topology>,
    max_vector: VectorWidth,
    scope: PhantomData<S>,
}

impl<S: Scope> LazyPoolBuilder<S> {
    /// Sets the topology (CPUs and NUMA nodes) that the pool of lazy objects (groups of four statistics) is laid out
    /// for; by default this machine's.
    pub fn topology(mut self, topology: Topology) -> Self {
        self.topology = Some(topology);
        self
    }

    /// Limits the vector stores by which lazy objects (groups of four statistics) of the pool are updated to this
    /// width, as if the machine had no wider ones; for tests.
    pub fn max_vector(mut self, width: VectorWidth) -> Self {
        self.max_vector = width;
        self
    }

    /// Creates the pool of lazy objects (four statistics whose per-CPU copies are created when a CPU first writes).
    ///
    /// # Errors
    /// [`Error::BadSetting`] for concurrency ids where the kernel has none.
    pub fn build(self) -> Result<LazyPool<S>> {
        let topology = match self.topology {
            Some(topology) => topology,
            None => Topology::current()?,
        };
        let rseq = rseq::tested_offset().is_some();
        if S::INDEX == IndexKind::Concurrency && !rseq::has_mm_cid() {
            return Err(Error::BadSetting("this kernel gives no concurrency ids: use PerCpu"));
        }
        let last = topology.possible().last().map_or(0, CpuId::index);
        let cpus = cpu_bound().unwrap_or(0).max(last + 1);
        let (nodes, is_synthetic) = (Nodes::new(&topology, cpus), topology.is_synthetic());
        let indices = if S::INDEX == IndexKind::Node { nodes.len() } else { cpus };
        let width = self.max_vector.min(VectorWidth::detect()).bytes() as u32;
        let one_commit = rseq && rseq::can_join(width as usize);
        let mode = match S::INDEX {
            IndexKind::Node => Mode::Shared,
            _ if one_commit => Mode::Rseq,
            _ => Mode::Striped,
        };
        let memory = LazyMemory::new(LazySettings {
            index: S::INDEX,
            rseq: if S::INDEX == IndexKind::Node { rseq } else { one_commit },
            width,
            nodes,
            // of a synthetic machine the kernel knows nothing
            node_ids: S::INDEX == IndexKind::Node && !is_synthetic && rseq::has_node_id(),
            indices,
            items: self.items,
        })?;
        let impersonated = Arc::new(Lock::new(Rank::Pool, BTreeSet::new()));
        let memory = Arc::new(LazyOwner::new(memory));
        Ok(LazyPool { memory, impersonated, mode, scope: PhantomData })
    }
}

impl<S: Scope> LazyPool<S> {
    /// Creates a pool of lazy objects (four statistics whose per-CPU copies are created when a CPU first writes) for
    /// this machine; `items` are the operations (sum, maximum, or) of the four items.
    ///
    /// # Errors
    /// [`Error::BadSetting`] for concurrency ids where the kernel has none.
    pub fn new(items: [Combine; ITEMS]) -> Result<LazyPool<S>> {
        Self::builder(items).build()
    }

    /// Returns a builder of a pool of lazy objects (four statistics whose per-CPU copies are created when a CPU first
    /// writes); `items` are the operations (sum, maximum, or) of the four items.
    pub fn builder(items: [Combine; ITEMS]) -> LazyPoolBuilder<S> {
        LazyPoolBuilder { items, topology: None, max_vector: VectorWidth::Bytes64, scope: PhantomData }
    }

    /// Creates a lazy object (four statistics whose per-CPU copies are created when a CPU first writes) in the pool,
    /// all zero.
    ///
    /// Cost: some tens of nanoseconds and a cache line (two on aarch64), from a cache of the CPU.
    /// Now and then maps memory: not for signal handlers.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for address space.
    pub fn create(&self) -> Result<LazyGroup<S>> {
        Ok(LazyGroup { object: Object::new(&self.memory)?, scope: PhantomData })
    }

    /// Returns the way in which lazy objects (groups of four statistics) of the pool are updated: [`Mode::Rseq`] if the
    /// items of an update are applied by one commit; [`Mode::ShortOfMemory`] if some are not, as there was no memory
    /// for an instance (a CPU's copy); [`Mode::Shared`] in scope [`PerNode`]; [`Mode::Striped`] without rseq or, on
    /// x86-64, without 32-byte stores, where each item is updated atomically.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match self.mode {
            Mode::Rseq if self.memory.shortfalls().1 => Mode::ShortOfMemory,
            mode => mode,
        }
    }

    /// Returns the number of updates of the pool's lazy objects (groups of four statistics) that went to an object's
    /// shared atomic words because no memory for a per-CPU instance (copy) was available at that moment.
    #[must_use]
    pub fn shortfalls(&self) -> u64 {
        self.memory.shortfalls().0
    }

    /// Maps memory ahead of need: enough for one more instance (a CPU's copy of the four statistics) of each existing
    /// lazy object of the pool.
    ///
    /// Calling it is never necessary. Creating objects maps memory ahead, too, and an update that finds too little of
    /// it maps some itself, which now and then (once in some thousand instances) takes some microseconds and a few
    /// system calls (`mmap`, `mprotect`, `madvise`, `prctl`, with several nodes `mbind`). It is for programs whose
    /// updates must not make system calls: in real-time threads, or in sandboxes that forbid these calls.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for address space.
    pub fn keep_ready(&self) -> Result<()> {
        self.memory.keep_ready()
    }

    /// Returns the address space that the pool of lazy objects (groups of four statistics) occupies, and how much of it
    /// is resident by the kernel's account. A slot here is an object.
    ///
    /// # Errors
    /// [`Error::System`] where `/proc/self/smaps` cannot be read.
    pub fn memory(&self) -> Result<Memory> {
        let addresses = self.memory.addresses();
        Ok(Memory {
            reservations: addresses.len(),
            reserved: addresses.iter().map(ExactSizeIterator::len).sum(),
            resident: resident(&addresses)?,
            slots: self.memory.objects(),
        })
    }
}

/// A lazy object: the four counters (items) of something such as a flow, of which a CPU gets its own instance when it
/// first writes.
///
/// Sixteen bytes here and a cache line in its [`LazyPool`]; another line for each CPU (node) that
/// writes, where it is not the only one. Two lines each on aarch64.
///
/// Arithmetic, ordering, and where updates are allowed: as for [`Counter`](crate::Counter). Items
/// have no baseline: an object is zero when it is made, and cannot be set.
pub struct LazyGroup<S: Scope> {
    object: Object,
    scope: PhantomData<S>,
}

impl<S: Scope> LazyGroup<S> {
    pub(crate) fn into_object(self) -> Object {
        self.object
    }

    /// Combines one value with each of the four items (statistics) of the lazy object, in the instance (copy) of the
    /// calling thread's CPU, node or concurrency id, by the pool's operations (sum, maximum, or); 0 leaves an item
    /// unchanged.
    ///
    /// By one commit per CPU (concurrency id), item by item per node. Cost: a few nanoseconds; the
    /// first of an index takes an instance, and now and then maps memory
    /// ([`keep_ready`](LazyPool::keep_ready)). Waits for no other thread; async-signal-safe.
    #[inline(always)]
    pub fn update(&self, values: [u64; ITEMS]) {
        self.object.update(values);
    }

    /// Returns the values of the lazy object's four items (statistics), combined over its instances (the CPUs' copies).
    /// Items 0 and 1, and items 2 and 3, of one update are seen together if the update was one commit. Cost: a cache
    /// line for the object and one for each further instance.
    #[must_use]
    pub fn read(&self) -> [u64; ITEMS] {
        self.object.read()
    }

    /// Returns the number of the lazy object's instances (copies of its four statistics) in use: 1 while a single CPU
    /// (or node, or concurrency id) writes.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.object.instances()
    }

    /// Returns the part of the lazy object's four values that is in its shared atomic words, which updates use if there
    /// is no memory for an instance (a CPU's copy); for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn shared_part(&self) -> [u64; ITEMS] {
        self.object.shared_part()
    }

    /// Returns the owner (number of the CPU, node or concurrency id; `None` before the first write) and address of each
    /// instance of the lazy object (copy of its four statistics); for tests of where memory lies.
    #[doc(hidden)]
    #[must_use]
    pub fn instance_addresses(&self) -> Vec<(Option<usize>, usize)> {
        self.object.instance_addresses()
    }
}

/// A permit to update lazy objects (four statistics whose per-CPU copies are created when a CPU first writes) as a
/// synthetic CPU, one that this kernel cannot have, to measure the cost of large machines. One exists for a CPU at a
/// time.
pub struct SyntheticCpu {
    pool: LazyPool<PerCpu>,
    cpu: CpuId,
}

impl LazyPool<PerCpu> {
    /// Returns a permit to update lazy objects (groups of four statistics) of the pool as the synthetic CPU `cpu` (one
    /// that this kernel cannot have, for measurements), valid until it is dropped. Takes the pool's lock.
    ///
    /// # Errors
    /// [`Error::CannotImpersonate`] for a CPU that may be real, for a number above [`CpuId::MAX`], and where somebody
    /// is this CPU.
    pub fn impersonate(&self, cpu: CpuId) -> Result<SyntheticCpu> {
        if cpu > CpuId::MAX || Pool::could_be_real(cpu.get()) || !self.impersonated.lock().insert(cpu) {
            return Err(Error::CannotImpersonate { cpu: cpu.get() });
        }
        Ok(SyntheticCpu { pool: self.clone(), cpu })
    }
}

impl SyntheticCpu {
    /// Combines one value with each of the four items (statistics) of a lazy object, in the instance (copy) of this
    /// permit's synthetic CPU.
    ///
    /// # Errors
    /// [`Error::CannotImpersonate`] for an object of another pool.
    pub fn update(&mut self, flow: &LazyGroup<PerCpu>, values: [u64; ITEMS]) -> Result<()> {
        if !flow.object.is_of(&self.pool.memory) {
            return Err(Error::CannotImpersonate { cpu: self.cpu.get() });
        }
        flow.object.update_on_synthetic(self.cpu.get(), values);
        Ok(())
    }
}

impl Drop for SyntheticCpu {
    fn drop(&mut self) {
        self.pool.impersonated.lock().remove(&self.cpu);
    }
}

impl fmt::Debug for SyntheticCpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SyntheticCpu").field(&self.cpu).finish()
    }
}

impl<S: Scope> fmt::Debug for LazyGroup<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LazyGroup").field(&self.read()).finish()
    }
}
