//! The return of freed memory to the system.

#![allow(unsafe_code, reason = "the C library's allocator has no other interface")]

/// Has large blocks go back to the system when they are freed. The C library takes each for small that is
/// smaller than one freed before, and keeps those: after one unit of 13 MB no window of a file went back,
/// and reading a large program's sizes took 61 MB instead of 48.
pub(crate) fn give_large_blocks_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it sets a number, before there are other threads. Any up to half the size of a heap will do.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
    }
}
