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
