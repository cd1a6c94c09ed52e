//! The return of freed memory to the system.

#![allow(unsafe_code, reason = "the C library's allocator has no other interface")]

/// Makes the C library return freed blocks of 1 MiB or more to the system at once (`M_MMAP_THRESHOLD`).
///
/// By default glibc raises that threshold to the largest block freed so far, and keeps smaller ones: after one unit
/// of 13 MB, no window of a file went back, and reading a large program's sizes took 61 MB instead of 48.
pub(crate) fn give_large_blocks_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it sets a number, before there are other threads. Any up to half the size of a heap will do.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
    }
}
