//! Memory of the counters: those of a pool, and many on a large synthetic machine.

use crate::reading::POSSIBLE;
use crate::{Error, Result, Tick, report};
use serde::Serialize;
use statctr::topology::{CpuId, Topology};
use statctr::{CounterArray, Placement, Pool};
use std::time::Duration;
use tallyline_support::cpus;

/// The memory that the counters of a pool of per-CPU counters take, in bytes: in total and for each counter.
#[derive(Debug, Clone, Serialize)]
pub struct Footprint {
    /// The number of counters in use.
    pub counters: usize,
    /// The number of CPUs that the pool is laid out for.
    pub possible_cpus: usize,
    /// The number of CPUs that counted in the pool.
    pub counting_cpus: usize,
    /// Counters that there is room for on the cache lines in use: groups take whole lines.
    pub slots: usize,
    /// Bytes of one counter on one CPU.
    pub bytes_per_counter_per_cpu: usize,
    /// The pool's resident memory in bytes, by the kernel's account; whole pages.
    pub resident_bytes: usize,
    /// The pool's address space in bytes.
    pub reserved_bytes: usize,
    /// Bytes that it would be with memory for every possible CPU. Arithmetic, not measured.
    pub bytes_if_all_cpus_had_memory: usize,
}

impl Footprint {
    /// Returns `true` if each CPU that counts has its own memory for the pool's counters, `false` if all CPUs share one
    /// word for each counter.
    pub fn is_apart(&self) -> bool {
        self.counting_cpus > 0
    }
}

/// Measures the memory that a pool of per-CPU counters with `counters` counters takes.
///
/// # Errors
/// [`Error::Memory`] if the kernel does not say what is resident.
pub fn of(pool: &Pool, counters: usize) -> Result<Footprint> {
    let (cost, memory) = (pool.cost(), pool.memory().map_err(Error::Memory)?);
    Ok(Footprint {
        counters,
        slots: memory.slots,
        possible_cpus: pool.topology().possible().len(),
        counting_cpus: pool.active_cpus().len(),
        bytes_per_counter_per_cpu: cost.bytes_per_counter_per_cpu,
        resident_bytes: memory.resident,
        reserved_bytes: memory.reserved,
        bytes_if_all_cpus_had_memory: cost.bytes_per_counter_per_cpu * memory.slots * cost.cpus.max(1),
    })
}

/// Creates `counters` per-CPU counters on a synthetic machine (one with made-up CPUs), increments each on up to two
/// real CPUs, and measures their memory. `tick` is called before each CPU counts.
///
/// # Errors
/// Pools and arrays that cannot be created, memory that cannot be measured, and [`Error::Stopped`] if `tick` wants
/// the end.
pub fn of_many(counters: usize, cpus: &[usize], tick: Tick<'_>) -> Result<Footprint> {
    // the numbers of the real CPUs are among the possible ones: their threads count there
    let real = Topology::current()?.possible().last().map_or(0, CpuId::get);
    let topology = Topology::synthetic(POSSIBLE.max(real + 1)).build()?;
    let pool = Pool::builder().topology(topology).placement(Placement::Fixed).build()?;
    let array = CounterArray::new_in(&pool, counters, 0)?;
    for &cpu in cpus.iter().take(2) {
        report(tick, Duration::ZERO)?;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // where this is forbidden the count of CPUs below says on how many it was
                let _ = cpus::pin(cpu);
                (0..counters).filter_map(|index| array.get(index)).for_each(|counter| counter.inc());
            });
        });
    }
    of(&pool, counters)
}
