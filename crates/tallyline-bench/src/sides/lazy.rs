//! Ours: lazy objects, of which one CPU writes, or more than an object's line has places for.

use super::looped::{Looped, PLACEMENTS, Step};
use super::{Available, PACKET_LENGTH, Side, packet_length};
use statctr::raw::RawLazy;
use statctr::topology::{CpuId, Topology};
use statctr::{Combine, LazyGroup, LazyPool, PerCpu};

/// Objects of a side. Those with a table take three lines for an update.
const LEN: usize = 256;

/// Synthetic CPUs that write before the measurement, so that the threads that are measured are found in the table:
/// more than an object's line has places for.
const OTHERS: usize = 8;

/// Returns the index that is updated in this turn: all in an irregular order.
#[inline(always)]
fn index(turn: u64) -> usize {
    (turn.wrapping_mul(0x9e37_79b9) >> 8) as usize % LEN
}

struct Update;

impl Step for Update {
    type State = Vec<LazyGroup<PerCpu>>;

    #[inline(always)]
    fn step(flows: &Self::State, turn: u64) {
        if let Some(flow) = flows.get(index(turn)) {
            flow.update([1, packet_length(), turn, 1]);
        }
    }
}

/// Returns objects that nobody wrote yet, or that were written by many CPUs.
fn flows(tables: bool) -> statctr::Result<Vec<LazyGroup<PerCpu>>> {
    let possible = Topology::current()?.possible().last().map_or(0, |cpu| cpu.get() + 1);
    // behind all that this kernel could have
    let first = possible.max(64);
    let topology = Topology::synthetic(first + OTHERS as u32).build()?;
    let items = [Combine::Sum, Combine::Sum, Combine::Max, Combine::Or];
    let pool = LazyPool::<PerCpu>::builder(items).topology(topology).build()?;
    let flows = (0..LEN).map(|_| pool.create()).collect::<statctr::Result<Vec<_>>>()?;
    if tables {
        for other in 0..OTHERS as u32 {
            let mut cpu = pool.impersonate(CpuId::new(first + other))?;
            flows.iter().try_for_each(|flow| cpu.update(flow, [0, 0, 0, 1]))?;
        }
    }
    Ok(flows)
}

/// Returns the benchmark loop `lazy/own` or, with `tables`, `lazy/table`: it updates one of 256 lazy objects (four
/// statistics whose per-CPU copies are created when a CPU first writes), whose per-CPU part is found in the object's
/// own cache line or through its table.
pub(crate) fn update(tables: bool) -> statctr::Result<Box<dyn Side>> {
    let bytes = |flows: &Vec<LazyGroup<PerCpu>>| flows.iter().map(|flow| flow.read()[1]).sum();
    Ok(Looped::<Update>::with_shared_state(flows(tables)?, bytes).counting(PACKET_LENGTH).boxed())
}

/// A loop of C's, over [`LEN`] objects.
type Loop = unsafe extern "C" fn(*const RawLazy, u64);

#[cfg(c_lazy)]
unsafe extern "C" {
    // the declaration of `lazy.c`
    static tallyline_c_lazy_update: [Loop; PLACEMENTS];
}

struct Flows {
    flows: Vec<RawLazy>,
    loops: &'static [Loop; PLACEMENTS],
}

impl Side for Flows {
    fn placements(&self) -> usize {
        PLACEMENTS
    }

    fn run(&self, _thread: usize, placement: usize, n: u64) {
        // SAFETY: the loop of lazy.c on as many live objects as it expects.
        unsafe { self.loops[placement % PLACEMENTS](self.flows.as_ptr(), n) };
    }

    fn total(&self) -> Option<u64> {
        // SAFETY: live objects.
        self.flows.iter().map(|flow| unsafe { flow.read() }.map(|(values, _)| values[1])).sum()
    }

    fn per_operation(&self) -> u64 {
        PACKET_LENGTH
    }
}

impl Drop for Flows {
    fn drop(&mut self) {
        for flow in &self.flows {
            // SAFETY: made by `from_group`, freed once.
            let _ = unsafe { flow.clean_up() };
        }
    }
}

/// Returns the benchmark loop `lazy/own-c` or, with `tables`, `lazy/table-c`: it updates one of 256 lazy objects (four
/// statistics with per-CPU copies) as [`update`] does, in C with the library's inline functions.
#[cfg(c_lazy)]
pub(crate) fn update_c(tables: bool) -> Available {
    if !std::arch::is_x86_feature_detected!("avx2") {
        return Err("compiled for AVX2".into());
    }
    let flows = flows(tables).map_err(|error| error.to_string())?;
    let flows = flows.into_iter().map(RawLazy::from_group).collect();
    // SAFETY: a constant, never written.
    Ok(Box::new(Flows { flows, loops: unsafe { &tallyline_c_lazy_update } }))
}

/// Returns an error with the reason why the C loops on lazy objects (four statistics with per-CPU copies) were not
/// built.
#[cfg(not(c_lazy))]
pub(crate) fn update_c(_tables: bool) -> Available {
    let _ = (Flows::total, |flows, loops: &'static [Loop; PLACEMENTS]| Flows { flows, loops });
    Err(super::c::COMPILER.into())
}
