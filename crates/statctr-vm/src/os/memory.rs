//! The nodes of pages.

use super::checked;
use std::io;

/// Returns the NUMA node that holds the page at an address of this process, faulting the page in if necessary.
pub(crate) fn node_of(address: usize) -> io::Result<u32> {
    const NODE: usize = 1;
    const ADDR: usize = 2;
    let mut node: libc::c_int = -1;
    // SAFETY: the kernel writes one number, and looks at an address of this process.
    checked(unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &raw mut node,
            std::ptr::null_mut::<libc::c_ulong>(),
            0usize,
            address,
            NODE | ADDR,
        )
    })?;
    u32::try_from(node).map_err(io::Error::other)
}

/// Atomically loads (acquire) the word at an address of this process's memory that the caller knows to hold one.
pub(crate) fn load(address: usize) -> usize {
    let pointer = std::ptr::with_exposed_provenance::<std::sync::atomic::AtomicUsize>(address);
    // SAFETY: its only caller takes the address from a counter's handle, whose table has an entry
    // for every CPU of the kernel.
    unsafe { &*pointer }.load(std::sync::atomic::Ordering::Acquire)
}
