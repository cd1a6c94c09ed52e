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

/// Granularity of a lazy object's instances: [`PerCpu`], [`PerNode`] or [`PerConcurrencyId`].
pub trait Scope: sealed::Scope + Send + Sync + 'static {}

/// Scope of lazy objects with one instance per CPU that writes. The items of an update are one commit.
#[derive(Debug, Clone, Copy)]
pub struct PerCpu;

/// Scope of lazy objects with one instance per NUMA node whose CPUs write: fewer instances to read and to
/// keep, but its CPUs share them, so each item is updated atomically, and is exact on its own.
#[derive(Debug, Clone, Copy)]
pub struct PerNode;

/// Scope of lazy objects with an instance per concurrency id (Linux 6.3 and later): a number below that of
/// the process's threads, for few threads on many CPUs. The items of an update are one commit. Refused where
/// the kernel has no such id.
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

/// Pool of memory for lazy objects (groups of four counters) of one kind. Cheap to clone; the memory lives as
/// long as the last object.
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

/// Builds a [`LazyPool`] with settings other than this machine's.
#[derive(Debug, Clone)]
#[must_use]
pub struct LazyPoolBuilder<S: Scope> {
    items: [Combine; ITEMS],
    topology: Option<Topology>,
    max_vector: VectorWidth,
    scope: PhantomData<S>,
}

impl<S: Scope> LazyPoolBuilder<S> {
    /// Sets the machine whose CPUs and nodes the pool is laid out for; by default the one we run on.
    pub fn topology(mut self, topology: Topology) -> Self {
        self.topology = Some(topology);
        self
    }

    /// Forgoes vector stores wider than this in updates, as on a machine that does not have them.
    pub fn max_vector(mut self, width: VectorWidth) -> Self {
        self.max_vector = width;
        self
    }

    /// Builds the pool of lazy objects.
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
        let nodes = Nodes::new(&topology, cpus);
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
            indices,
            items: self.items,
        })?;
        let impersonated = Arc::new(Lock::new(Rank::Pool, BTreeSet::new()));
        let memory = Arc::new(LazyOwner::new(memory));
        Ok(LazyPool { memory, impersonated, mode, scope: PhantomData })
    }
}

impl<S: Scope> LazyPool<S> {
    /// Creates a pool of lazy objects on this machine, with the operation by which updates join each of the
    /// four items; see [`builder`](Self::builder).
    ///
    /// # Errors
    /// [`Error::BadSetting`] for concurrency ids where the kernel has none.
    pub fn new(items: [Combine; ITEMS]) -> Result<LazyPool<S>> {
        Self::builder(items).build()
    }

    /// Starts to build a pool of lazy objects, with the operation by which updates join each of the four
    /// items.
    pub fn builder(items: [Combine; ITEMS]) -> LazyPoolBuilder<S> {
        LazyPoolBuilder { items, topology: None, max_vector: VectorWidth::Bytes64, scope: PhantomData }
    }

    /// Creates a lazy object of the pool, all zero.
    ///
    /// Cost: some tens of nanoseconds and a cache line (two on aarch64), from a cache of the CPU.
    /// Now and then maps memory: not for signal handlers.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for address space.
    pub fn create(&self) -> Result<LazyGroup<S>> {
        Ok(LazyGroup { object: Object::new(&self.memory)?, scope: PhantomData })
    }

    /// Returns the mode of updates: [`Mode::Rseq`] where the items of an update are one commit,
    /// [`Mode::ShortOfMemory`] where some are not because there was no memory for an instance at
    /// once, [`Mode::Shared`] in the scope of nodes, [`Mode::Striped`] where there is no rseq
    /// or, on x86-64, no store of 32 bytes: then each item is updated atomically, in an instance of the
    /// CPU's.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match self.mode {
            Mode::Rseq if self.memory.shortfalls().1 => Mode::ShortOfMemory,
            mode => mode,
        }
    }

    /// Returns the number of updates that were added atomically to an object's own shared words, because
    /// there was no memory for an instance at once, or another thread was just taking some.
    #[must_use]
    pub fn shortfalls(&self) -> u64 {
        self.memory.shortfalls().0
    }

    /// Maps memory ahead of need: enough for one more instance of each existing object of the pool.
    ///
    /// Nobody has to call this. Creating objects does so, too, and an update that finds less than the
    /// watermark ready maps some itself, which takes some microseconds now and then (once for 16 000
    /// instances, later more) and a few system calls (`mmap`, `mprotect`, `madvise`, `prctl`, with
    /// several nodes `mbind`). It is for programs whose updates must not make any: that give up the
    /// right to these calls, or count in threads of real time.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for address space.
    pub fn keep_ready(&self) -> Result<()> {
        self.memory.keep_ready()
    }

    /// Returns the address space and, by the kernel's account, the memory that this pool occupies.
    /// A slot here is an object.
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

/// The statistics of one object, such as a flow: four items, whose per-CPU instances are created as writers
/// come.
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

    /// Joins one value to each of the four items, by the operations of the pool; 0 leaves an item as it is.
    ///
    /// By one commit per CPU (concurrency id), item by item per node. Cost: a few nanoseconds; the
    /// first of an index takes an instance, and now and then maps memory
    /// ([`keep_ready`](LazyPool::keep_ready)). Waits for no other thread; async-signal-safe.
    #[inline(always)]
    pub fn update(&self, values: [u64; ITEMS]) {
        self.object.update(values);
    }

    /// Returns the values of the four items, joined over the object's instances. Items 0 and 1, and items 2
    /// and 3, of one update are seen together where the update was one commit. Cost: a cache line for the
    /// object and one for each further instance.
    #[must_use]
    pub fn read(&self) -> [u64; ITEMS] {
        self.object.read()
    }

    /// Returns the number of the object's instances that are written: 1 while one CPU (node) writes.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.object.instances()
    }

    /// Returns the part of the four values that is in the object's shared atomic words; for tests of how
    /// often these are used.
    #[doc(hidden)]
    #[must_use]
    pub fn shared_part(&self) -> [u64; ITEMS] {
        self.object.shared_part()
    }

    /// Returns the addresses of the object's instances, each with the CPU, node (by its place among the
    /// nodes) or concurrency id that it is for; `None` before anyone wrote. For tests of where memory lies.
    #[doc(hidden)]
    #[must_use]
    pub fn instance_addresses(&self) -> Vec<(Option<usize>, usize)> {
        self.object.instance_addresses()
    }
}

/// The right to count as a CPU of a synthetic topology that this kernel cannot have, to measure what a
/// million objects cost on large machines. At most one exists for a CPU at a time.
pub struct SyntheticCpu {
    pool: LazyPool<PerCpu>,
    cpu: CpuId,
}

impl LazyPool<PerCpu> {
    /// Returns the right to update objects of the pool as the synthetic CPU `cpu`, until it is dropped. Takes
    /// the pool's lock.
    ///
    /// # Errors
    /// [`Error::CannotImpersonate`] for a CPU that may be real, and where somebody is this CPU.
    pub fn impersonate(&self, cpu: CpuId) -> Result<SyntheticCpu> {
        if Pool::could_be_real(cpu.get()) || !self.impersonated.lock().insert(cpu) {
            return Err(Error::CannotImpersonate { cpu: cpu.get() });
        }
        Ok(SyntheticCpu { pool: self.clone(), cpu })
    }
}

impl SyntheticCpu {
    /// Joins one value to each item of a lazy object, as the synthetic CPU.
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
