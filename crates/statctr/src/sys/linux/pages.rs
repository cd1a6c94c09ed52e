//! Address space from Linux: read-only, writable and locked page by page.

use crate::errno::{EINVAL, ENOMEM};
use crate::error::Error;
use crate::sys::PAGE;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Support for write-protecting parts of a mapping (`mprotect`), such as memory of CPUs that have not counted yet:
/// `true`.
pub(crate) const PROTECTS: bool = true;

/// Support for asking for transparent huge pages: `true`, though a kernel may have none.
pub(crate) const HAS_HUGE_PAGES: bool = true;

/// Returns the kernel's page size in bytes, the granularity at which memory is prefaulted and returned.
pub(crate) fn page_size() -> usize {
    // SAFETY: asks for a constant.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).map_or(PAGE, |size| size.clamp(1, PAGE))
}

/// Maps `total` bytes of address space between guard pages (the first and last [`PAGE`] are never accessible); what
/// lies between is readable, and writable if `writable`. Async-signal-safe, but for `errno`.
///
/// # Errors
/// The system's error number.
pub(crate) fn reserve(total: usize, writable: bool) -> Result<NonNull<u8>, i32> {
    // SAFETY: asks for fresh address space, touches no existing one.
    let whole = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            total,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if whole == libc::MAP_FAILED {
        return Err(Error::last_errno());
    }
    let whole = NonNull::new(whole.cast::<u8>()).ok_or(ENOMEM)?;
    // SAFETY: the guard page is part of the mapping.
    let start = unsafe { whole.add(PAGE) }.as_ptr().cast::<libc::c_void>();
    let len = total - 2 * PAGE;
    let access = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
    // SAFETY: the mapping just made, which holds nothing.
    let locked = unsafe { unlock_if_locked(start, len) };
    // SAFETY: [start, start + len) lies inside the mapping just made.
    if unsafe { libc::mprotect(start, len, access) } != 0 {
        let errno = Error::last_errno();
        // SAFETY: as it was made, and nobody's yet.
        unsafe { release(whole, total) };
        return Err(errno);
    }
    if locked {
        // SAFETY: as above. Refused where the process may lock no more, and by kernels before 4.4:
        // then these pages can be swapped out.
        unsafe { libc::syscall(libc::SYS_mlock2, start, len, MLOCK_ONFAULT) };
    }
    // SAFETY: as above. Both calls are advice: huge pages would give every unused CPU two
    // megabytes, the name is for readers of /proc/self/smaps. Kernels without them refuse.
    unsafe {
        libc::madvise(start, len, libc::MADV_NOHUGEPAGE);
        libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, start, len, c"statctr".as_ptr());
    }
    Ok(whole)
}

/// Asks for transparent huge pages (`madvise(MADV_HUGEPAGE)`) for what lies in whole ones of the range. Advice: kernels
/// without them refuse it, and others follow it where they have such memory.
///
/// # Safety
/// The range is pages of address space that [`reserve`] returned.
pub(crate) unsafe fn advise_huge_pages(start: NonNull<u8>, len: usize) {
    let errno = Error::last_errno();
    // SAFETY: by the caller's promise; no contents change.
    unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
    crate::sys::set_errno(errno);
}

/// Unmaps address space that [`reserve`] mapped.
///
/// # Safety
/// `whole` and `total` are those of one call of [`reserve`], and no access to the memory follows.
pub(crate) unsafe fn release(whole: NonNull<u8>, total: usize) {
    // SAFETY: by the caller's promise.
    unsafe { libc::munmap(whole.as_ptr().cast(), total) };
}

/// Makes whole pages writable (`mprotect`); returns `false` if the kernel refuses. Async-signal-safe, but for `errno`.
///
/// # Safety
/// Pages of address space that [`reserve`] returned, between the inaccessible ones.
pub(crate) unsafe fn make_writable(start: NonNull<u8>, len: usize) -> bool {
    // SAFETY: nothing is taken from anybody.
    unsafe { libc::mprotect(start.as_ptr().cast(), len, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// `MLOCK_ONFAULT` of the kernel: pages are locked when they are there, and are not made to be.
const MLOCK_ONFAULT: libc::c_uint = 1;

/// Takes the lock from a mapping that the kernel locked as soon as it was made
/// (`mlockall(MCL_FUTURE)`), and says whether there was one.
///
/// A locked mapping is populated, whole, as soon as it becomes accessible: 50 MB for one counter on a
/// machine with 192 possible CPUs. So it becomes accessible unlocked, and is locked page by page from
/// then on. No call asks for the lock itself; `MADV_DONTNEED` refuses locked mappings, and these only.
///
/// Source: Linux `mm/mprotect.c` (`mprotect_fixup`: private, locked, becoming writable), `mm/mlock.c`.
///
/// # Safety
/// Fresh address space from `start` on, which nobody has anything in.
unsafe fn unlock_if_locked(start: *mut libc::c_void, len: usize) -> bool {
    // SAFETY: by the caller's promise there is nothing to lose.
    let accepted = unsafe { libc::madvise(start, page_size(), libc::MADV_DONTNEED) } == 0;
    if accepted || Error::last_errno() != EINVAL {
        return false;
    }
    // SAFETY: as above.
    unsafe { libc::munlock(start, len) == 0 }
}

/// Prefaults whole pages without changing their contents.
///
/// # Errors
/// The system's error number.
///
/// # Safety
/// Pages of a mapping that lives.
pub(crate) unsafe fn populate(first: usize, len: usize) -> Result<(), i32> {
    let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(first);
    // SAFETY: pages of a mapping by the caller's promise; populating changes no value.
    if unsafe { libc::madvise(start, len, libc::MADV_POPULATE_WRITE) } == 0 {
        return Ok(());
    }
    match Error::last_errno() {
        // Linux before 5.14
        EINVAL => {
            for offset in (first..first + len).step_by(page_size()) {
                // SAFETY: an aligned word of the mapping. A plain add by the word's CPU may run in
                // between and overwrite this: that loses the nothing that is added, and no count.
                let word = unsafe { &*std::ptr::with_exposed_provenance::<AtomicU64>(offset) };
                word.fetch_add(0, Ordering::Relaxed);
            }
            Ok(())
        }
        errno => Err(errno),
    }
}

/// Returns whole pages to the system, which then read as zero (`madvise`). Returns `false` if the pages are locked and
/// stay, so that the caller has to store zeros.
///
/// # Errors
/// The system's error number.
///
/// # Safety
/// The pages belong to a live mapping, and no thread counts in them.
pub(crate) unsafe fn discard(pages: NonNull<u8>, len: usize) -> Result<bool, i32> {
    /// `MADV_DONTNEED_LOCKED` of the kernel (Linux 5.18 and later).
    const DONTNEED_LOCKED: libc::c_int = 24;
    // SAFETY: passed on.
    let advised = |advice| unsafe { libc::madvise(pages.as_ptr().cast(), len, advice) } == 0;
    if advised(libc::MADV_DONTNEED) {
        return Ok(true);
    }
    match Error::last_errno() {
        EINVAL => Ok(advised(DONTNEED_LOCKED)),
        errno => Err(errno),
    }
}
