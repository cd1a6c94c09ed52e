//! Placements: where a counter's per-CPU versions live, and the [`Pool`] that hands them out.
//!
//! A placement is a file here, with its variant of [`Placement`] and its arm in [`Placement::plan`].

mod drain_callbacks;
mod fixed;
mod flexible;
mod shared;
mod striped;
mod uniprocessor;
mod usage;

use crate::cpu::{CpuId, CpuSet};
use crate::error::{Error, Result};
use crate::memory::{Arena, ArenaSettings, CHUNK_WORDS, Drained, Layout, Trimmed};
use crate::rseq::{self, HandleTag};
use crate::sys::{HAS_HUGE_PAGES, OnceBox, cpu_bound, prefer_node};
use crate::topology::Topology;
pub use drain_callbacks::DrainCallbackGuard;
use drain_callbacks::DrainCallbacks;
use std::fmt;
use std::sync::Arc;
pub use usage::Memory;
pub(crate) use usage::{measure_statics, resident};

/// The choice of where a pool's counters have their per-CPU words and how these are updated: one shared word, plain on
/// one CPU, fixed, flexible, or striped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Placement {
    /// One atomic word for all CPUs: small, but slow as soon as two CPUs write.
    Shared,
    /// A plain word, on machines with one possible CPU. Never chosen unless it is asked for: two
    /// threads on two CPUs would lose counts.
    ///
    /// Refused where any of these knows of a second CPU: the topology's possible and present CPUs
    /// (`/sys/devices/system/cpu/`), `/proc/softirqs` (possible CPUs) and `/proc/stat` (CPUs online),
    /// `sched_getaffinity(2)` of every thread of the process and of process 1, and the cpuset, which
    /// a short-lived thread finds out by asking for all CPUs (`sched_setaffinity(2)`). Files that are
    /// not there are passed over; without the list of possible CPUs it is refused.
    ///
    /// What cannot be detected: a container in which all of these show one CPU, and whose cpuset
    /// grows, or is another one, after the pool was made (`docker update --cpuset-cpus`, a process
    /// that is restored on another machine). Updates from two CPUs lose counts there.
    Uniprocessor,
    /// A word per possible CPU, interlaced in chunks of eight counters.
    Fixed,
    /// A word per CPU that counts, whatever CPUs were expected, interlaced likewise; its memory is
    /// given back when the CPU is drained ([`Pool::drain`]). Where updates are not by rseq they cannot be
    /// drained: then it is as [`Placement::Striped`].
    Flexible,
    /// A word per possible CPU, as [`Placement::Fixed`], updated by locked instructions: what the others
    /// are where there is no rseq ([`Mode::Striped`]), and a choice where it is not to be used. On x86-64 under
    /// Linux two more for each CPU, each of which belongs to one thread at a time, and is updated without a lock;
    /// threads keep theirs until they end. Threads without one ask for their CPU now and then only. So what
    /// [`read_cpu`](crate::Counter::read_cpu) returns may have been counted on another CPU.
    ///
    /// A [`FloatGauge`](crate::FloatGauge) has the words per CPU, and none of threads. [`Max`](crate::Max),
    /// [`Min`](crate::Min) and [`ApproximateCounter`](crate::ApproximateCounter) have one shared word here instead.
    Striped,
}

impl Placement {
    fn plan(self, machine: &Machine<'_>) -> Result<Plan> {
        match self {
            Placement::Shared => shared::plan(machine),
            Placement::Uniprocessor => uniprocessor::plan(machine),
            Placement::Fixed => fixed::plan(machine),
            Placement::Flexible => flexible::plan(machine),
            Placement::Striped => Ok(striped::plan(machine)),
        }
    }

    /// Returns the placement where none is asked for. Never a plain word unless the build says so:
    /// whether there is one CPU is only ever a guess.
    fn default_for_build() -> Placement {
        if cfg!(feature = "uniprocessor") { Placement::Uniprocessor } else { Placement::Fixed }
    }
}

/// The mechanism by which counters are updated at present: restartable sequences (rseq) on per-CPU words, atomic
/// instructions on per-CPU or shared words, or plain instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// A restartable sequence on the CPU's own word: a few plain instructions.
    Rseq,
    /// A locked instruction on one shared word: of a thread that is not registered with the kernel, while
    /// others count by rseq ([`thread_mode`]); of a static counter before it has words of its own.
    AtomicFallback,
    /// An unlocked instruction on the one word, on a machine with one CPU.
    Uniprocessor,
    /// A locked instruction on one shared word, as [`Placement::Shared`] asks for.
    Shared,
    /// [`Mode::Rseq`], while a CPU found no memory for words of its own, and counts in the
    /// fallback cell until there is some: its updates ask for it, less and less often while the
    /// kernel refuses; [`Pool::expect`], [`Pool::trim`] and making counters do, too.
    ShortOfMemory,
    /// A plain instruction on a word that belongs to the thread (x86-64 under Linux, two threads of each CPU), or a
    /// locked one on a word of the CPU, as a rule, that the thread runs on (elsewhere than on
    /// Linux on one of as many words as there are CPUs, by the thread): there is no rseq here, or it
    /// cannot be relied on, and [`fallback_reason`] says why; or [`Placement::Striped`] was asked for.
    Striped,
}

impl Mode {
    /// Returns the update mode (rseq, atomic, …) of a static counter (a `static` of the program) whose handle has this
    /// tag; `None` stands for no per-CPU words.
    pub(crate) fn of_static(tag: Option<HandleTag>) -> Mode {
        match tag {
            Some(HandleTag::Striped) => Mode::Striped,
            Some(_) => Mode::Rseq,
            None => Mode::AtomicFallback,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Rseq => "rseq",
            Mode::AtomicFallback => "atomic fallback",
            Mode::Uniprocessor => "uniprocessor",
            Mode::Shared => "shared",
            Mode::ShortOfMemory => "rseq, short of memory",
            Mode::Striped => "striped",
        })
    }
}

/// Returns how the calling thread updates counters in a pool of the mode [`Mode::Rseq`]: [`Mode::Rseq`],
/// [`Mode::AtomicFallback`] if this thread is not registered for rseq, or [`Mode::Striped`] if no thread of the process
/// uses rseq.
///
/// Cost: a few nanoseconds. Async-signal-safe, once a pool was built. Registers the thread where that is
/// the library's to do ([`registration`](crate::registration)).
#[must_use]
pub fn thread_mode() -> Mode {
    rseq::settle();
    match rseq::current_cpu() {
        Some(_) => Mode::Rseq,
        None if rseq::is_ruled_out() => Mode::Striped,
        None => Mode::AtomicFallback,
    }
}

/// The reason why a process updates counters atomically and not by rseq: no registration, a kernel that failed the
/// test, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FallbackReason {
    /// Threads are not registered with the kernel: a kernel, a sandbox, a tool or a setting
    /// (`STATCTR_REGISTER=0` beside `GLIBC_TUNABLES=glibc.pthread.rseq=0`) without rseq; a library that
    /// musl loaded late (`dlopen`), for which there is no area; or an architecture without sections here.
    NotRegistered,
    /// Registration of the threads by another library, with an area that it does not expose (`__rseq_abi`): a thread
    /// has only one area, and this library does not take it away.
    RegisteredElsewhere,
    /// A kernel that continued a section whose thread was preempted, instead of aborting it. On aarch64 the first pool
    /// that is built tests that.
    SectionsNotAborted,
    /// A test of the kernel for aborts of preempted sections that gave no result: no second thread, no way to keep both
    /// on one CPU, or too few preemptions in two seconds.
    AbortsNotProven,
}

impl fmt::Display for FallbackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FallbackReason::NotRegistered => "threads are not registered for rseq",
            FallbackReason::RegisteredElsewhere => "another library registers threads for rseq",
            FallbackReason::SectionsNotAborted => "the kernel does not abort preempted rseq sections",
            FallbackReason::AbortsNotProven => "the kernel could not be tested for aborts of rseq sections",
        })
    }
}

/// Returns the reason why pools of this process count atomically ([`Mode::Striped`]); `None` if they count by rseq, as
/// far as is known: on aarch64 it is tested when the first pool is built whether the kernel aborts rseq critical
/// sections.
#[must_use]
pub fn fallback_reason() -> Option<FallbackReason> {
    match rseq::settle() {
        rseq::Outcome::Nobody => return Some(FallbackReason::NotRegistered),
        rseq::Outcome::Foreign => return Some(FallbackReason::RegisteredElsewhere),
        rseq::Outcome::Libc | rseq::Outcome::Own | rseq::Outcome::Adopted => {}
    }
    match rseq::verdict()? {
        rseq::Verdict::Aborts => None,
        rseq::Verdict::Continues => Some(FallbackReason::SectionsNotAborted),
        rseq::Verdict::Unproven => Some(FallbackReason::AbortsNotProven),
    }
}

/// The width of the widest vector store, by which the items of an event (statistics updated together) are stored at
/// once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum VectorWidth {
    /// A store of one item: aarch64, where an interrupt may come between the halves of a wider store. Events of more
    /// items live in two copies there.
    Bytes8,
    /// A store of two items: SSE2, which every x86-64 machine has.
    Bytes16,
    /// A store of four items: AVX2.
    Bytes32,
    /// A store of eight items: AVX-512F with AVX-512VL.
    Bytes64,
}

impl VectorWidth {
    /// Detects the widest vector store of this machine; the result is cached.
    #[must_use]
    pub fn detect() -> VectorWidth {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            if std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512vl") {
                return VectorWidth::Bytes64;
            }
            if std::is_x86_feature_detected!("avx2") {
                return VectorWidth::Bytes32;
            }
        }
        if cfg!(target_arch = "aarch64") { VectorWidth::Bytes8 } else { VectorWidth::Bytes16 }
    }

    /// Returns the width of the vector store in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            VectorWidth::Bytes8 => 8,
            VectorWidth::Bytes16 => 16,
            VectorWidth::Bytes32 => 32,
            VectorWidth::Bytes64 => 64,
        }
    }
}

/// Properties of the machine that a placement decides by.
struct Machine<'a> {
    topology: &'a Topology,
    rseq: bool,
}

/// The decisions of a placement, among mechanisms that exist: CPUs, ways of update, and whether units may move. The
/// geometry of the memory is that of [`Layout`].
struct Plan {
    /// The mode of the pool, as [`Pool::mode`] reports it; in [`Mode::Striped`] threads may own units besides.
    mode: Mode,
    /// The CPUs that have a unit (their part of the memory) from the start; none if all share the home words. Where
    /// units are movable, any CPU gets one when it first counts.
    cpus: CpuSet,
    /// The way of update of single counters and arrays, as the tag in their handles.
    counters: HandleTag,
    /// The way of update of groups, as the tag in their handles: a commit of several items may need a section where a
    /// single counter needs none. [`HandleTag::Rseq`] becomes [`HandleTag::Latch`] where lines are latched.
    groups: HandleTag,
    /// `true` if counters are updated in their home words (words that belong to no CPU), so that every read adds these;
    /// otherwise reads add them from the first use of one as a fallback cell on.
    home_in_use: bool,
    /// `true` if a CPU gets its unit when it first counts and a drain takes it back, which only rseq makes safe;
    /// otherwise units lie at fixed addresses.
    movable: bool,
}

/// A pool of memory from which counters, arrays, groups and histograms are allocated. Clones share the pool; its memory
/// lives as long as the last counter in it.
///
/// ```
/// use statctr::{Counter, Pool};
/// use statctr::topology::Topology;
///
/// let pool = Pool::builder().topology(Topology::synthetic(192).build()?).build()?;
/// let counter = Counter::new_in(&pool, 0)?;
/// counter.inc();
/// assert_eq!(counter.read(), 1);
/// println!("{}: {} bytes per counter and CPU", pool.mode(), pool.cost().bytes_per_counter_per_cpu);
/// # Ok::<(), statctr::Error>(())
/// ```
#[derive(Clone)]
pub struct Pool {
    arena: Arc<Arena>,
    topology: Arc<Topology>,
    placement: Placement,
    mode: Mode,
    drain_callbacks: DrainCallbacks,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("placement", &self.placement)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// The memory costs of a pool of counters: bytes per counter and CPU, size of a unit (one CPU's part), distance between
/// units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cost {
    /// Bytes that one counter takes in one unit.
    pub bytes_per_counter_per_cpu: usize,
    /// CPUs that have a unit. Memory is used only in the units of those that count.
    pub cpus: usize,
    /// Bytes of a unit.
    pub unit_bytes: usize,
    /// Bytes of address space from one unit to the next.
    pub stride: usize,
    /// Bytes of the widest store that commits an event.
    pub vector_bytes: usize,
}

/// Builder of a [`Pool`] of counter memory with other settings than the defaults.
#[derive(Debug, Clone)]
#[must_use]
pub struct PoolBuilder {
    topology: Option<Topology>,
    placement: Option<Placement>,
    unit_bytes: usize,
    huge_pages: bool,
    max_vector: VectorWidth,
}

/// 32 768 counters a reservation.
const DEFAULT_UNIT_BYTES: usize = 256 << 10;

impl PoolBuilder {
    /// Sets the topology (CPUs and NUMA nodes) that the pool of counters is laid out for; by default this machine's.
    pub fn topology(mut self, topology: Topology) -> Self {
        self.topology = Some(topology);
        self
    }

    /// Sets where the pool's counters have their per-CPU words; by default [`Placement::Fixed`]
    /// ([`Placement::Uniprocessor`] in a build with the feature `uniprocessor`).
    ///
    /// A synthetic topology with one CPU is believed: whoever builds a uniprocessor pool from one must keep the threads
    /// that count in it on one CPU.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = Some(placement);
        self
    }

    /// Sets the size in bytes of a unit, one CPU's part of a block of counters: whole pages of 4096 bytes, 4 KiB to 1
    /// GiB, by default 256 KiB. It bounds the longest group (one counter takes 8 bytes); in the flexible placement it
    /// is also the size of the blocks that a CPU gets and gives back.
    pub fn unit_bytes(mut self, bytes: usize) -> Self {
        self.unit_bytes = bytes;
        self
    }

    /// Asks for huge pages of 2 MiB for the pool's counters, if `true`: folds of large arrays then spend less time on
    /// translating addresses, an incremental one in a virtual machine whose memory is scattered half as much in all. Off
    /// by default, as a CPU that counts takes 2 MiB with its first counter, and as a unit takes whole huge pages:
    /// [`unit_bytes`](Self::unit_bytes) is rounded up to what they hold ([`Cost::unit_bytes`]), and address space is
    /// reserved for each possible CPU. No huge page has words of two CPUs.
    ///
    /// They are transparent huge pages (`madvise(MADV_HUGEPAGE)`, Linux), which the kernel gives where it can; where it
    /// does not (`/sys/kernel/mm/transparent_hugepage/enabled` is `never`, no such memory, other systems), or where
    /// address space is short, the pool has pages as ever. Not in the flexible placement, whose units move.
    pub fn huge_pages(mut self, wanted: bool) -> Self {
        self.huge_pages = wanted;
        self
    }

    /// Limits the vector stores that update several of the pool's counters at once to this width, as if the machine had
    /// no wider ones; for tests.
    pub fn max_vector(mut self, width: VectorWidth) -> Self {
        self.max_vector = width;
        self
    }

    /// Creates the pool of counter memory with the builder's settings. No memory is taken before its first counter is
    /// created.
    ///
    /// # Errors
    /// [`Error::BadSetting`] for a unit size out of range, and for huge pages in the flexible placement;
    /// [`Error::NotUniprocessor`].
    pub fn build(self) -> Result<Pool> {
        if !self.unit_bytes.is_multiple_of(4096) || !(4096..=1 << 30).contains(&self.unit_bytes) {
            return Err(Error::BadSetting("unit_bytes is not a multiple of 4096 between 4 KiB and 1 GiB"));
        }
        let topology = match self.topology {
            Some(topology) => topology,
            None => Topology::current()?,
        };
        let placement = self.placement.unwrap_or_else(Placement::default_for_build);
        if cfg!(feature = "uniprocessor") && placement != Placement::Uniprocessor {
            return Err(Error::BadSetting("a build for one CPU has the uniprocessor placement only"));
        }
        let machine = Machine { topology: &topology, rseq: rseq::tested_offset().is_some() };
        let plan = placement.plan(&machine)?;
        if self.huge_pages && plan.movable {
            return Err(Error::BadSetting("huge pages are for placements whose units do not move"));
        }
        let last = plan.cpus.last().map_or(0, |cpu| cpu.index() + 1);
        let mut layout = Layout {
            // where most numbers are no CPU's, the units of threads would be mostly in vain
            owned: if plan.mode == Mode::Striped && last <= 2 * plan.cpus.len() {
                rseq::prepare_owned_stripes(last)
            } else {
                (0, 0)
            },
            cpus: plan.cpus,
            unit_bytes: self.unit_bytes,
            width: self.max_vector.min(VectorWidth::detect()).bytes() as u32,
            home_in_use: plan.home_in_use,
            movable: plan.movable,
            // elsewhere what is reserved may be memory
            huge_pages: self.huge_pages && HAS_HUGE_PAGES,
        };
        if layout.huge_pages {
            layout.fill_huge_pages();
        }
        let nodes: Vec<_> = topology.nodes().map(|(node, cpus)| (node, cpus.clone())).collect();
        let arena = Arena::new(ArenaSettings {
            layout,
            counters: plan.counters,
            groups: plan.groups,
            // of a synthetic machine no CPU counts by itself
            expected: if topology.is_synthetic() { CpuSet::new() } else { topology.online().clone() },
            nodes: if nodes.len() > 1 { nodes } else { Vec::new() },
        });
        let drain_callbacks = DrainCallbacks::new();
        Ok(Pool { arena, topology: Arc::new(topology), placement, mode: plan.mode, drain_callbacks })
    }
}

impl Pool {
    /// Returns a builder for a pool of counter memory with other settings than the defaults.
    pub fn builder() -> PoolBuilder {
        PoolBuilder {
            topology: None,
            placement: None,
            unit_bytes: DEFAULT_UNIT_BYTES,
            huge_pages: false,
            max_vector: VectorWidth::Bytes64,
        }
    }

    /// Returns the process's default pool (this machine, default placement), which is created on first use and from
    /// which counters are allocated if no pool is named.
    ///
    /// # Errors
    /// Fails as [`PoolBuilder::build`] does, at each call anew.
    pub fn global() -> Result<&'static Pool> {
        static GLOBAL: OnceBox<Pool> = OnceBox::new();
        if let Some(pool) = GLOBAL.get() {
            return Ok(pool);
        }
        let pool = Pool::builder().build()?;
        Ok(GLOBAL.get_or(pool))
    }

    pub(crate) fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Returns the mechanism by which the pool's counters are updated at present: rseq, atomic or plain.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match self.mode {
            Mode::Rseq if self.arena.shortfalls().1 => Mode::ShortOfMemory,
            mode => mode,
        }
    }

    /// Returns the number of updates that were added atomically to a shared word because their CPU had no memory of its
    /// own and none was available (in flexible pools). They are counted all the same.
    #[must_use]
    pub fn shortfalls(&self) -> u64 {
        self.arena.shortfalls().0
    }

    /// Moves the counts of `cpu` in the pool's counters to words that belong to no CPU and frees the CPU's memory: for
    /// a CPU that went offline, or no longer counts here. Does nothing in other placements than the flexible one.
    ///
    /// Reads go on meanwhile and see neither a loss nor a double count. The CPU may go on counting,
    /// too, or come back at any moment: its updates go to the fallback cell meanwhile, at most one
    /// of them is aborted, and its first update after this has returned takes a new block, in each
    /// part of the pool that it counts in.
    ///
    /// Cost: one `membarrier(2)` (about 10 µs), and a pass over the CPU's words. Takes the pool's
    /// lock: not for signal handlers.
    ///
    /// # Errors
    /// [`Error::System`] where the kernel refuses the barrier (before Linux 5.10, and in some
    /// sandboxes): then the memory stays, and all counts with it.
    pub fn drain(&self, cpu: CpuId) -> Result<Drained> {
        let drained = self.arena.drain(cpu)?;
        if drained.blocks > 0 {
            self.drain_callbacks.call(cpu, drained);
        }
        Ok(drained)
    }

    /// Registers a callback that is called after each drain of a CPU (move of its counts to shared words) in this pool,
    /// on the thread that drained it, with the CPU and what was moved. Dropping the result unregisters it; a call under
    /// way is completed.
    pub fn on_moved(&self, callback: impl Fn(CpuId, Drained) + Send + Sync + 'static) -> DrainCallbackGuard {
        self.drain_callbacks.add(callback)
    }

    /// Prepares memory in a flexible pool (which gives CPUs memory for counters on demand) for these CPUs, and a few
    /// others, so that their first updates need no system call. Initially the CPUs that are online when the pool is
    /// created are prepared for.
    ///
    /// If there is none, updates use the shared fallback cell until there is, and [`mode`](Self::mode) says so.
    pub fn expect(&self, cpus: &CpuSet) {
        self.arena.expect(cpus);
    }

    /// Returns the placement (where counters have their per-CPU words) that the pool was built with.
    #[must_use]
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// Returns the topology (CPUs and NUMA nodes) that the pool of counters is laid out for.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns the pool's memory costs: bytes per counter and CPU, size of a unit (one CPU's part) and distance between
    /// units.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let layout = &self.arena.settings().layout;
        Cost {
            bytes_per_counter_per_cpu: 64 / CHUNK_WORDS,
            cpus: layout.cpus.len(),
            unit_bytes: layout.unit_bytes,
            stride: layout.stride(),
            vector_bytes: layout.width as usize,
        }
    }

    /// Returns the bytes of address space that the pool of counters occupies, and how many of them are resident by the
    /// kernel's account.
    ///
    /// Reads `/proc/self/smaps`: milliseconds in a large program.
    ///
    /// # Errors
    /// [`Error::System`] where that file cannot be read.
    pub fn memory(&self) -> Result<Memory> {
        usage::measure(&self.arena)
    }

    /// Returns the CPUs that counted in this pool and were not drained (their counts moved to shared words) since.
    #[must_use]
    pub fn active_cpus(&self) -> CpuSet {
        self.arena.active_cpus()
    }

    /// Prefaults these CPUs' words of all existing counters, on the CPUs' NUMA nodes, so that later updates there take
    /// no page fault.
    ///
    /// CPUs without memory in this pool are skipped. The node is a request to the kernel, and omitted where a sandbox
    /// forbids it.
    ///
    /// # Errors
    /// [`Error::System`] where there is no memory.
    pub fn prefault(&self, cpus: &CpuSet) -> Result<()> {
        let several_nodes = self.topology.nodes().count() > 1;
        for cpu in cpus.iter() {
            match self.topology.node_of(cpu).filter(|_| several_nodes) {
                Some(node) => prefer_node(node, || self.arena.prefault(cpu))?,
                None => self.arena.prefault(cpu)?,
            }
        }
        Ok(())
    }

    /// Returns the memory of dropped counters to the system, in whole pages (with [huge
    /// pages](PoolBuilder::huge_pages) in whole ones of these); the result says how much.
    ///
    /// # Errors
    /// [`Error::System`] where the kernel refuses; nothing is lost then.
    pub fn trim(&self) -> Result<Trimmed> {
        self.arena.trim()
    }

    /// Returns `true` if a thread could run on this CPU under this kernel, so that it must not be used as a synthetic
    /// CPU (one made up for tests).
    pub(crate) fn could_be_real(cpu: u32) -> bool {
        static REAL: OnceBox<Option<CpuSet>> = OnceBox::new();
        let real = REAL.get_or_make(|| Topology::current().ok().map(|topology| topology.possible().clone()));
        let in_mask = cpu_bound().is_none_or(|bound| (cpu as usize) < bound);
        real.as_ref().map_or(in_mask, |possible| possible.contains(CpuId::new(cpu)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_take_whole_huge_pages_on_linux_only() {
        let topology = Topology::synthetic(1).build().expect("topology");
        let pool = Pool::builder().topology(topology).huge_pages(true).build().expect("pool");
        let is_linux = cfg!(all(target_os = "linux", not(feature = "portable")));
        assert_eq!(pool.cost().unit_bytes > DEFAULT_UNIT_BYTES, is_linux, "{:?}", pool.cost());
    }
}
