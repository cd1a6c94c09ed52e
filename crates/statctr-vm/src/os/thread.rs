//! Affinities of threads.

use super::checked;
use std::io;

/// Returns the kernel's id of the calling thread.
pub(crate) fn id() -> i32 {
    // SAFETY: has no arguments.
    unsafe { libc::gettid() }
}

/// Restricts a thread, given by its id (0: the calling one), to some CPUs.
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

/// Gives the calling thread the scheduler's lowest weight (nice 19), so that others run first.
pub(crate) fn yield_to_others() {
    // SAFETY: concerns the calling thread only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
}
