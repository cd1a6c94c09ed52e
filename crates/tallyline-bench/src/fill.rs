//! Counting on CPUs: on real ones by a thread that is kept there, on made-up ones by impersonation.

use super::os;
use anyhow::{Context, Result, anyhow};
use statctr::topology::{CpuId, CpuSet, Topology};
use std::panic::resume_unwind;

/// The real CPUs of this machine, as opposed to the synthetic ones of a test topology: on a real CPU only a thread
/// that runs there can count.
pub(crate) struct Real {
    possible: CpuSet,
    allowed: Vec<usize>,
}

impl Real {
    pub(crate) fn find() -> Result<Self> {
        let possible = Topology::current()?.possible().clone();
        let allowed = os::allowed_cpus().context("cannot find out which CPUs to run on")?;
        Ok(Real { possible, allowed })
    }

    /// Returns how to count on each of the CPUs numbered below `cpus`: real ones by a pinned thread, synthetic ones
    /// by impersonation. Real CPUs that are offline or outside of the process's affinity mask are left out.
    pub(crate) fn countable(&self, cpus: u32) -> Vec<Counting> {
        (0..cpus)
            .filter_map(|cpu| {
                let id = CpuId::new(cpu);
                match (self.possible.contains(id), self.allowed.contains(&id.index())) {
                    (false, _) => Some(Counting::As(id)),
                    (true, true) => Some(Counting::On(id)),
                    (true, false) => None,
                }
            })
            .collect()
    }
}

/// The way in which a benchmark updates counters as a given CPU: from a thread pinned to it, or by impersonating a
/// synthetic one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Counting {
    /// By a thread that runs on it.
    On(CpuId),
    /// By impersonation, as it is made up.
    As(CpuId),
}

impl Counting {
    pub(crate) fn cpu(self) -> CpuId {
        match self {
            Counting::On(cpu) | Counting::As(cpu) => cpu,
        }
    }
}

/// Runs `work` on a new thread that is pinned to `cpu`, and returns its result.
pub(crate) fn on_cpu<R: Send>(cpu: CpuId, work: impl FnOnce() -> R + Send) -> Result<R> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            os::pin(cpu.index()).map_err(|error| anyhow!("cannot keep a thread on CPU {cpu}: {error}"))?;
            Ok(work())
        });
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
