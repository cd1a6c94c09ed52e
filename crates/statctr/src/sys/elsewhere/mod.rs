//! Stand-ins, on systems other than Linux, for calls that these do not have.

#[cfg(any(test, not(unix)))]
#[cfg_attr(unix, allow(dead_code))] // tested here, and used where there is no `mmap`
mod pages_heap;
#[cfg(not(unix))]
pub(crate) use pages_heap::*;
#[cfg(unix)]
mod pages_unix;
#[cfg(unix)]
pub(crate) use pages_unix::*;
mod watch;
pub(crate) use watch::{Wakeup, Watch};

use crate::cpu::{CpuId, CpuSet, NodeId};
use crate::errno::ENOSYS;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns the number of CPUs that the process may use, as far as the system says. It is asked once.
pub(crate) fn cpu_bound() -> Option<usize> {
    static BOUND: AtomicUsize = AtomicUsize::new(0);
    let known = BOUND.load(Ordering::Relaxed);
    if known != 0 {
        return Some(known);
    }
    let bound = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(1 << 16);
    BOUND.store(bound, Ordering::Relaxed);
    Some(bound)
}

/// Returns [`cpu_bound`], if it is no more than 8192.
pub(crate) fn small_cpu_bound() -> Option<usize> {
    cpu_bound().filter(|bound| *bound <= 8192)
}

/// Returns no CPU: they are not told apart here.
pub(crate) fn cpu_now() -> Option<usize> {
    None
}

/// Returns no CPUs: masks of threads are Linux's.
pub(crate) fn affinity(_thread: i32) -> Option<CpuSet> {
    None
}

/// Returns no CPUs: cpusets are Linux's.
pub(crate) fn allowed_by_cpuset() -> Option<CpuSet> {
    None
}

/// Restricts no thread to a CPU, and says so.
pub(crate) fn pin_to(_cpu: CpuId) -> bool {
    false
}

/// Gives no thread another policy, and says so.
pub(crate) fn share_cpu() -> bool {
    false
}

/// Leaves it to the system where pages come from.
pub(crate) fn prefer_for(_start: *mut u8, _len: usize, _node: NodeId) {}

/// Runs `work`; the system decides where pages come from.
pub(crate) fn prefer_node<R>(_node: NodeId, work: impl FnOnce() -> R) -> R {
    work()
}

/// Refuses a barrier: there are no critical sections to end.
pub(crate) fn membarrier(_command: i32, _flags: u32, _cpu: usize) -> Result<(), i32> {
    Err(ENOSYS)
}

/// Returns 0: no thread has an rseq area.
pub(crate) fn rseq_feature_size() -> usize {
    0
}
