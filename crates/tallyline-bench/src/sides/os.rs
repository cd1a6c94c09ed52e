//! The system's services for the benchmarks: memory of a known kind, the rseq area.

use std::io;
use std::sync::atomic::AtomicU64;

pub(crate) use tallyline_support::cpus::{allowed_cpus, pin};

/// Returns `true` if the whole range of `bytes` bytes at `address` is mapped in this process, whatever its
/// protection.
pub(crate) fn is_mapped(address: usize, bytes: usize) -> bool {
    const PAGE: usize = 4096;
    let start = address / PAGE * PAGE;
    let Some(end) = address.checked_add(bytes) else { return false };
    let mut pages = vec![0u8; (end - start).div_ceil(PAGE)];
    // SAFETY: asks about addresses and touches nothing there; writes one byte for each page.
    unsafe { libc::mincore(start as *mut libc::c_void, end - start, pages.as_mut_ptr()) == 0 }
}

/// An anonymous, zeroed memory mapping in small pages for a benchmark; unmapped when dropped.
pub(crate) struct BenchMemory {
    address: usize,
    bytes: usize,
}

impl BenchMemory {
    /// Maps at least `bytes` bytes of zeroed memory.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        // as the library's units have them: both sides must miss the TLB alike
        BenchMemory::map(bytes, libc::MADV_NOHUGEPAGE)
    }

    /// Maps at least `bytes` bytes of zeroed memory, in huge pages where the kernel gives them.
    pub(crate) fn in_huge_pages(bytes: usize) -> io::Result<Self> {
        BenchMemory::map(bytes, libc::MADV_HUGEPAGE)
    }

    fn map(bytes: usize, advice: libc::c_int) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping where the kernel likes it, of no other memory.
        let address = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // The kernel may not know the advice, and then has no huge pages either.
        // SAFETY: advice about the mapping just made.
        unsafe { libc::madvise(address, bytes, advice) };
        Ok(BenchMemory { address: address as usize, bytes })
    }

    /// Returns the address of the first byte of the benchmark's memory mapping.
    pub(crate) fn address(&self) -> usize {
        self.address
    }

    /// Returns the atomic 64-bit word at byte `offset` (a multiple of 8) of the benchmark's memory mapping.
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.bytes, "word at {offset} of {}", self.bytes);
        // SAFETY: inside the mapping, which lives as long as `self`, aligned, and only ever
        // accessed by machine code and as atomics.
        unsafe { &*((self.address + offset) as *const AtomicU64) }
    }
}

impl Drop for BenchMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, unmapped once; no reference outlives `self`.
        unsafe { libc::munmap(self.address as *mut libc::c_void, self.bytes) };
    }
}
