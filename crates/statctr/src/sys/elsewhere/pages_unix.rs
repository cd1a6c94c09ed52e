//! Address space from a Unix: zero until touched, and writable from the start.

use crate::errno::ENOMEM;
use crate::error::Error;
use crate::sys::PAGE;
use std::ptr::NonNull;

/// Support for write-protecting parts of a mapping: `false`, as memory that was mapped is always writable.
pub(crate) const PROTECTS: bool = false;

/// Support for asking for huge pages: `false`.
pub(crate) const HAS_HUGE_PAGES: bool = false;

/// Returns the system's page size in bytes, the granularity at which memory is returned to it.
pub(crate) fn page_size() -> usize {
    // SAFETY: asks for a constant.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).map_or(PAGE, |size| size.clamp(1, PAGE))
}

fn map(start: *mut libc::c_void, len: usize, flags: libc::c_int) -> Result<NonNull<u8>, i32> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: fresh address space, or the pages that the caller gives away.
    let mapped = unsafe { libc::mmap(start, len, access, libc::MAP_PRIVATE | libc::MAP_ANON | flags, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return Err(Error::last_errno());
    }
    NonNull::new(mapped.cast()).ok_or(ENOMEM)
}

/// Maps `total` bytes of zeroed memory (`mmap`), always writable.
///
/// # Errors
/// The system's error number.
pub(crate) fn reserve(total: usize, _writable: bool) -> Result<NonNull<u8>, i32> {
    map(std::ptr::null_mut(), total, 0)
}

/// Unmaps memory that [`reserve`] mapped (`munmap`).
///
/// # Safety
/// `whole` and `total` are those of one call of [`reserve`], and no access to the memory follows.
pub(crate) unsafe fn release(whole: NonNull<u8>, total: usize) {
    // SAFETY: by the caller's promise.
    unsafe { libc::munmap(whole.as_ptr().cast(), total) };
}

/// Does nothing: huge pages are asked for on Linux alone.
///
/// # Safety
/// None needed here.
pub(crate) unsafe fn advise_huge_pages(_start: NonNull<u8>, _len: usize) {}

/// Does nothing and returns `true`, as all mapped pages are writable.
///
/// # Safety
/// None needed here.
pub(crate) unsafe fn make_writable(_start: NonNull<u8>, _len: usize) -> bool {
    true
}

/// Does nothing: POSIX has no call that prefaults pages without changing their contents.
///
/// # Errors
/// None.
///
/// # Safety
/// None needed here.
pub(crate) unsafe fn populate(_first: usize, _len: usize) -> Result<(), i32> {
    Ok(())
}

/// Returns whole pages to the system by mapping new, zeroed ones in their place. Always `true` where it succeeds: the
/// pages are zero.
///
/// # Errors
/// The system's error number.
///
/// # Safety
/// The pages belong to a live mapping, and no thread counts in them.
pub(crate) unsafe fn discard(pages: NonNull<u8>, len: usize) -> Result<bool, i32> {
    map(pages.as_ptr().cast(), len, libc::MAP_FIXED).map(|_| true)
}
