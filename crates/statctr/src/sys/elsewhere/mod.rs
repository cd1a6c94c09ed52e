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

/// Returns the number of CPUs that the process may use, 1 if the system does not say, on systems other than Linux;
/// never `None`. Asked once.
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

/// Returns the number of CPUs that the process may use ([`cpu_bound`]), on systems other than Linux; `None` if it is
/// above 8192.
pub(crate) fn small_cpu_bound() -> Option<usize> {
    cpu_bound().filter(|bound| *bound <= 8192)
}

/// Returns `None`, as the calling thread's CPU is not known: a stub for systems other than Linux.
pub(crate) fn cpu_now() -> Option<usize> {
    None
}

/// Returns `None` in place of a thread's affinity mask: a stub for systems other than Linux.
pub(crate) fn affinity(_thread: i32) -> Option<CpuSet> {
    None
}

/// Returns `None` in place of the process's cpuset: a stub for systems other than Linux.
pub(crate) fn allowed_by_cpuset() -> Option<CpuSet> {
    None
}

/// Does not pin the thread, and returns `false`: a stub for systems other than Linux.
pub(crate) fn pin_to(_cpu: CpuId) -> bool {
    false
}

/// Does not change the thread's scheduling policy, and returns `false`: a stub for systems other than Linux.
pub(crate) fn share_cpu() -> bool {
    false
}

/// Sets no preferred NUMA node for the pages: a stub for systems other than Linux.
pub(crate) fn prefer_for(_start: *mut u8, _len: usize, _node: NodeId) {}

/// Runs `work` without a preferred NUMA node and returns its result: a stub for systems other than Linux.
pub(crate) fn prefer_node<R>(_node: NodeId, work: impl FnOnce() -> R) -> R {
    work()
}

/// Returns an error: a stub for systems other than Linux, which have no rseq critical sections to end.
pub(crate) fn membarrier(_command: i32, _flags: u32, _cpu: usize) -> Result<(), i32> {
    Err(ENOSYS)
}

/// Returns 0, as threads have no rseq area: a stub for systems other than Linux.
pub(crate) fn rseq_feature_size() -> usize {
    0
}
