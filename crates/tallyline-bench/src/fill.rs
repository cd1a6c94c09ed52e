//! Counting on CPUs: on real ones by a thread that is kept there, on made-up ones by impersonation.

use super::os;
use anyhow::{Context, Result, anyhow};
use statctr::topology::{CpuId, CpuSet, Topology};
use std::panic::resume_unwind;

/// The CPUs of this machine that a synthetic topology may contain: counts on them need a thread that runs
/// there.
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

    /// Returns those of the first `cpus` CPUs on which the benchmark can count: synthetic ones, and real ones
    /// that this process may run on. A real CPU that is offline or outside its affinity mask cannot.
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

/// The method by which a benchmark counts on a CPU: by a thread that runs on it, or as a synthetic CPU.
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
