//! Affinities of threads.

use super::checked;
use std::io;

/// Returns the calling thread's kernel thread id (`gettid`).
pub(crate) fn id() -> i32 {
    // SAFETY: has no arguments.
    unsafe { libc::gettid() }
}

/// Restricts a thread, given by its thread id (0: the calling thread), to these CPUs (`sched_setaffinity`).
pub(crate) fn pin(thread: i32, to: &[u32]) -> io::Result<()> {
    // SAFETY: a mask of bits; all zeros is one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in to.iter().filter(|&&cpu| cpu < libc::CPU_SETSIZE as u32) {
        // SAFETY: in range.
        unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    }
    // SAFETY: reads the size given.
    checked(unsafe { libc::sched_setaffinity(thread, size_of_val(&set), &raw const set).into() })?;
    Ok(())
}

/// Lowers the calling thread's priority to nice 19, so that the scheduler prefers other threads.
pub(crate) fn lower_priority() {
    // SAFETY: concerns the calling thread only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
}

/// Returns the calling thread's concurrency id (`mm_cid`), from its rseq area, for kernels that maintain it; `None` if
/// the thread has no area.
pub(crate) fn concurrency_id() -> Option<u32> {
    const MM_CID: usize = 24;
    let offset = statctr::raw::rseq_area()?;
    let thread: usize;
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads the thread pointer.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) thread, options(nostack, nomem))
    };
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the thread pointer points to itself.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) thread, options(nostack, readonly))
    };
    let field = thread.wrapping_add_signed(offset) + MM_CID;
    // SAFETY: a field within the thread's area, which has at least 32 bytes.
    Some(unsafe { std::ptr::with_exposed_provenance::<u32>(field).read_volatile() })
}
