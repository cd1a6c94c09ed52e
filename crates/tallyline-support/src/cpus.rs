//! The CPUs that a process may run on.
#![expect(unsafe_code, reason = "the kernel's calls on CPU masks")]

use std::io;

/// Words of the kernel's CPU masks: room for 65 536 CPUs.
const MASK_WORDS: usize = 1024;

/// Returns the numbers of the CPUs in the calling thread's affinity mask (`sched_getaffinity`), ascending.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let mut mask = [0u64; MASK_WORDS];
    // SAFETY: the kernel writes at most the given number of bytes into the mask.
    let status = unsafe { libc::sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((0..MASK_WORDS * 64).filter(|cpu| mask[cpu / 64] >> (cpu % 64) & 1 == 1).collect())
}

/// Restricts the calling thread to one CPU (`sched_setaffinity`).
pub fn pin(cpu: usize) -> io::Result<()> {
    let mut mask = [0u64; MASK_WORDS];
    let word = mask.get_mut(cpu / 64).ok_or(io::ErrorKind::InvalidInput)?;
    *word |= 1 << (cpu % 64);
    // SAFETY: the kernel reads the given number of bytes from the mask.
    let status = unsafe { libc::sched_setaffinity(0, size_of_val(&mask), mask.as_ptr().cast()) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
