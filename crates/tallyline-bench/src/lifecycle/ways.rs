//! The ways to keep the statistics of a flow: packets, bytes, when it was last used, TCP flags.

use super::super::fill::{Counting, Real};
use anyhow::{Context as _, Result, ensure};
use statctr::topology::{CpuId, Topology};
use statctr::{Combine, Event, Group, LazyGroup, LazyPool, Placement, Pool, Scope, SyntheticCpu, Unit};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// CPUs of the made-up machine that write.
pub(super) const CPUS: usize = 64;

/// A way to keep flows.
pub(super) trait FlowMethod: Sync {
    /// The statistics of one flow.
    type Flow: Send + Sync;

    /// Creates a new flow.
    fn create(&self) -> Result<Self::Flow>;

    /// Counts a packet of `bytes` at `time`, on the CPU that runs this.
    fn update(&self, flow: &Self::Flow, bytes: u64, time: u64);

    /// The state of a thread that counts as synthetic CPUs, one at a time.
    type Impostor;

    /// Returns the right to count as the made-up CPUs of these numbers, below [`CPUS`].
    fn impersonate(&self, cpus: Range<usize>) -> Result<Self::Impostor>;

    /// Counts a packet on one of these CPUs.
    fn update_as(
        &self,
        impostor: &mut Self::Impostor,
        flow: &Self::Flow,
        cpu: usize,
        bytes: u64,
        time: u64,
    ) -> Result<()>;

    /// Returns a flow's packets, bytes, last use and flags.
    fn read(&self, flow: &Self::Flow) -> [u64; 4];

    /// Returns bytes that `flows` flows take now.
    fn bytes(&self, flows: usize) -> Result<usize>;
}

/// Returns a machine with [`CPUS`] CPUs that are not there, and those CPUs.
pub(super) fn made_up() -> Result<(Topology, Vec<CpuId>)> {
    let real = Real::find()?;
    // behind all that this kernel could have
    let possible = Topology::current()?.possible().last().map_or(0, |cpu| cpu.get() + 1);
    let topology = Topology::synthetic(possible + CPUS as u32).build()?;
    let all = real.countable(possible + CPUS as u32);
    let cpus: Vec<CpuId> =
        all.into_iter().filter(|counting| matches!(counting, Counting::As(_))).map(Counting::cpu).collect();
    ensure!(cpus.len() >= CPUS, "the made-up machine has too few CPUs");
    Ok((topology, cpus))
}

const FLAGS: u64 = 0x10;
const ITEMS: [Combine; 4] = [Combine::Sum, Combine::Sum, Combine::Max, Combine::Or];

/// `lazy`: an object of statctr.
pub(super) struct Lazy<S: Scope> {
    pool: LazyPool<S>,
    cpus: Vec<CpuId>,
}

impl<S: Scope> Lazy<S> {
    pub(super) fn new() -> Result<Self> {
        let (topology, cpus) = made_up()?;
        Ok(Lazy { pool: LazyPool::builder(ITEMS).topology(topology.clone()).build()?, cpus })
    }
}

/// Scopes in which a made-up CPU can write.
pub(super) trait Impersonating: Scope {
    /// Whoever counts as a CPU.
    type Cpu;

    fn impersonate(pool: &LazyPool<Self>, cpu: CpuId) -> Result<Self::Cpu>
    where
        Self: Sized;

    fn update_as(cpu: &mut Self::Cpu, flow: &LazyGroup<Self>, values: [u64; 4]) -> Result<()>
    where
        Self: Sized;
}

impl Impersonating for statctr::PerCpu {
    type Cpu = SyntheticCpu;

    fn impersonate(pool: &LazyPool<Self>, cpu: CpuId) -> Result<SyntheticCpu> {
        Ok(pool.impersonate(cpu)?)
    }

    #[inline(always)]
    fn update_as(cpu: &mut SyntheticCpu, flow: &LazyGroup<Self>, values: [u64; 4]) -> Result<()> {
        Ok(cpu.update(flow, values)?)
    }
}

impl Impersonating for statctr::PerNode {
    type Cpu = ();

    fn impersonate(_: &LazyPool<Self>, _: CpuId) -> Result<()> {
        Ok(())
    }

    fn update_as((): &mut (), flow: &LazyGroup<Self>, values: [u64; 4]) -> Result<()> {
        // the made-up machine has one node, as its CPUs have
        flow.update(values);
        Ok(())
    }
}

impl<S: Impersonating> FlowMethod for Lazy<S> {
    type Flow = LazyGroup<S>;

    fn create(&self) -> Result<Self::Flow> {
        Ok(self.pool.create()?)
    }

    #[inline(always)]
    fn update(&self, flow: &Self::Flow, bytes: u64, time: u64) {
        flow.update([1, bytes, time, FLAGS]);
    }

    type Impostor = (usize, Vec<S::Cpu>);

    fn impersonate(&self, cpus: Range<usize>) -> Result<Self::Impostor> {
        let first = cpus.start;
        let cpus = self.cpus.get(cpus).context("there are no such CPUs")?;
        let cpus: Result<_> = cpus.iter().map(|&cpu| S::impersonate(&self.pool, cpu)).collect();
        Ok((first, cpus?))
    }

    #[inline(always)]
    fn update_as(
        &self,
        (first, cpus): &mut Self::Impostor,
        flow: &Self::Flow,
        cpu: usize,
        bytes: u64,
        time: u64,
    ) -> Result<()> {
        S::update_as(&mut cpus[cpu - *first], flow, [1, bytes, time, FLAGS])
    }

    fn read(&self, flow: &Self::Flow) -> [u64; 4] {
        flow.read()
    }

    fn bytes(&self, flows: usize) -> Result<usize> {
        Ok(self.pool.memory()?.resident + flows * size_of::<Self::Flow>())
    }
}

statctr::group! {
    /// Statistics of a flow, as far as sums can keep them.
    pub(super) struct Flow {
        /// Counts a packet of the flow.
        event packet(packets, bytes, last, flags);
        item packets: Unit::PACKETS, "packets";
        item bytes: Unit::BYTES, "bytes";
        item last: Unit::NONE, "times, summed up";
        item flags: Unit::NONE, "flags, summed up";
    }
}

/// `fixed`: a group of statctr in the fixed placement, with a unit for each of the CPUs.
pub(super) struct Fixed {
    pool: Pool,
    cpus: Vec<CpuId>,
}

impl Fixed {
    pub(super) fn new() -> Result<Self> {
        let (topology, cpus) = made_up()?;
        Ok(Fixed { pool: Pool::builder().topology(topology).placement(Placement::Fixed).build()?, cpus })
    }
}

impl FlowMethod for Fixed {
    type Flow = Group;

    fn create(&self) -> Result<Group> {
        Ok(Group::new_in(&self.pool, Flow::schema()?)?)
    }

    #[inline(always)]
    fn update(&self, flow: &Group, bytes: u64, time: u64) {
        flow.commit(Event::at(0), [1, bytes, time, FLAGS]);
    }

    type Impostor = ();

    fn impersonate(&self, _cpus: Range<usize>) -> Result<()> {
        Ok(())
    }

    /// Updates one item of the four only: each takes the pool's lock anew.
    fn update_as(&self, (): &mut (), flow: &Group, cpu: usize, _bytes: u64, _time: u64) -> Result<()> {
        Ok(flow.add_on_synthetic(self.cpus[cpu], Flow::packets, 1)?)
    }

    fn read(&self, flow: &Group) -> [u64; 4] {
        let mut values = [0; 4];
        // as long as the schema
        let _ = flow.fold_into(&mut values);
        values
    }

    fn bytes(&self, flows: usize) -> Result<usize> {
        Ok(self.pool.memory()?.resident + flows * size_of::<Group>())
    }
}

#[repr(align(64))]
#[derive(Default)]
pub(super) struct Line([AtomicU64; 4]);

impl Line {
    /// Updates the line as its only writer, without atomics.
    fn plainly(&self, values: [u64; 4]) {
        let add = |index: usize, value: fn(u64, u64) -> u64| {
            let word = &self.0[index];
            word.store(value(word.load(Ordering::Relaxed), values[index]), Ordering::Relaxed);
        };
        add(0, u64::wrapping_add);
        add(1, u64::wrapping_add);
        add(2, u64::max);
        add(3, |old, new| old | new);
    }

    fn atomically(&self, values: [u64; 4]) {
        self.0[0].fetch_add(values[0], Ordering::Relaxed);
        self.0[1].fetch_add(values[1], Ordering::Relaxed);
        self.0[2].fetch_max(values[2], Ordering::Relaxed);
        self.0[3].fetch_or(values[3], Ordering::Relaxed);
    }

    fn values(&self) -> [u64; 4] {
        std::array::from_fn(|index| self.0[index].load(Ordering::Relaxed))
    }
}

/// The overhead of an allocation of the C library, in bytes.
const MALLOC: usize = 16;

/// `per-cpu-lines`: a line for each CPU, allocated and written up front.
pub(super) struct Lines;

impl FlowMethod for Lines {
    type Flow = Box<[Line]>;

    fn create(&self) -> Result<Self::Flow> {
        // writes every line
        Ok((0..CPUS).map(|_| Line::default()).collect())
    }

    /// Updates without finding the CPU's number: a lower bound of the cost.
    #[inline(always)]
    fn update(&self, flow: &Self::Flow, bytes: u64, time: u64) {
        flow[0].atomically([1, bytes, time, FLAGS]);
    }

    type Impostor = ();

    fn impersonate(&self, _cpus: Range<usize>) -> Result<()> {
        Ok(())
    }

    fn update_as(&self, (): &mut (), flow: &Self::Flow, cpu: usize, bytes: u64, time: u64) -> Result<()> {
        flow[cpu].plainly([1, bytes, time, FLAGS]);
        Ok(())
    }

    fn read(&self, flow: &Self::Flow) -> [u64; 4] {
        flow.iter().map(Line::values).fold([0; 4], |sum, line| {
            [sum[0] + line[0], sum[1] + line[1], sum[2].max(line[2]), sum[3] | line[3]]
        })
    }

    fn bytes(&self, flows: usize) -> Result<usize> {
        Ok(flows * (CPUS * size_of::<Line>() + MALLOC + size_of::<Self::Flow>()))
    }
}

/// `lock`: one lock for each object, as Open vSwitch had it before.
pub(super) struct Locked;

impl FlowMethod for Locked {
    type Flow = Box<Mutex<[u64; 4]>>;

    fn create(&self) -> Result<Self::Flow> {
        Ok(Box::default())
    }

    #[inline(always)]
    fn update(&self, flow: &Self::Flow, bytes: u64, time: u64) {
        let mut values = flow.lock().unwrap_or_else(PoisonError::into_inner);
        values[0] += 1;
        values[1] = values[1].wrapping_add(bytes);
        values[2] = values[2].max(time);
        values[3] |= FLAGS;
    }

    type Impostor = ();

    fn impersonate(&self, _cpus: Range<usize>) -> Result<()> {
        Ok(())
    }

    fn update_as(&self, (): &mut (), flow: &Self::Flow, _cpu: usize, bytes: u64, time: u64) -> Result<()> {
        self.update(flow, bytes, time);
        Ok(())
    }

    fn read(&self, flow: &Self::Flow) -> [u64; 4] {
        *flow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bytes(&self, flows: usize) -> Result<usize> {
        Ok(flows * (size_of::<Mutex<[u64; 4]>>() + MALLOC + size_of::<Self::Flow>()))
    }
}

/// `atomics`: a line of atomic words.
pub(super) struct Atomics;

impl FlowMethod for Atomics {
    type Flow = Box<Line>;

    fn create(&self) -> Result<Self::Flow> {
        Ok(Box::default())
    }

    #[inline(always)]
    fn update(&self, flow: &Self::Flow, bytes: u64, time: u64) {
        flow.atomically([1, bytes, time, FLAGS]);
    }

    type Impostor = ();

    fn impersonate(&self, _cpus: Range<usize>) -> Result<()> {
        Ok(())
    }

    fn update_as(&self, (): &mut (), flow: &Self::Flow, _cpu: usize, bytes: u64, time: u64) -> Result<()> {
        self.update(flow, bytes, time);
        Ok(())
    }

    fn read(&self, flow: &Self::Flow) -> [u64; 4] {
        flow.values()
    }

    fn bytes(&self, flows: usize) -> Result<usize> {
        Ok(flows * (size_of::<Line>() + MALLOC + size_of::<Self::Flow>()))
    }
}
