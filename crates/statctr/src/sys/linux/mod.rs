//! Linux's own calls: masks of CPUs, policies of memory, messages about hotplug, mappings.

mod affinity;
mod mempolicy;
#[cfg(all(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    not(any(miri, feature = "portable"))
))]
mod objects;
mod pages;
mod uevents;

pub(crate) use affinity::{
    affinity, allowed_by_cpuset, cpu_bound, cpu_now, pin_to, share_cpu, small_cpu_bound,
};

pub(crate) use mempolicy::{prefer_for, prefer_node};
#[cfg(all(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    not(any(miri, feature = "portable"))
))]
pub(crate) use objects::keep_loaded;
#[cfg(all(target_arch = "x86_64", not(any(miri, feature = "portable"))))]
pub(crate) use objects::keep_this_object;
pub(crate) use pages::{
    HAS_HUGE_PAGES, PROTECTS, advise_huge_pages, discard, make_writable, page_size, populate, release,
    reserve,
};
pub(crate) use uevents::{Wakeup, Watch};

/// Makes the system call `membarrier`, which ends rseq critical sections of this process's threads on a CPU or on all,
/// by `command`; an error is the system's error number.
pub(crate) fn membarrier(command: i32, flags: u32, cpu: usize) -> Result<(), i32> {
    // SAFETY: takes three numbers.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, command, flags, cpu as libc::c_int) };
    if result == 0 { Ok(()) } else { Err(crate::error::Error::last_errno()) }
}

/// Returns the number of bytes of a thread's rseq area that this kernel maintains (`AT_RSEQ_FEATURE_SIZE`); 0 if it
/// does not say.
pub(crate) fn rseq_feature_size() -> usize {
    const AT_RSEQ_FEATURE_SIZE: libc::c_ulong = 27;
    // SAFETY: takes a number.
    unsafe { libc::getauxval(AT_RSEQ_FEATURE_SIZE) as usize }
}
