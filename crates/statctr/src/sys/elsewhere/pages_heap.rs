//! Zeroed memory from the system's allocator, where the system maps none.
//!
//! Not from the program's allocator, which may count what it does in counters of this library. Not for
//! signal handlers, which such systems do not have.

use crate::errno::ENOMEM;
use crate::sys::PAGE;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;

/// Support for write-protecting parts of a mapping: `false`, as memory from the allocator is always writable.
pub(crate) const PROTECTS: bool = false;

/// Support for asking for huge pages: `false`.
pub(crate) const HAS_HUGE_PAGES: bool = false;

/// Returns the granularity in bytes at which memory would be returned to the system; from the allocator it never is.
pub(crate) fn page_size() -> usize {
    PAGE
}

/// Allocates `total` zeroed bytes, aligned to [`PAGE`], from the system's allocator; always writable.
///
/// # Errors
/// An error number.
pub(crate) fn reserve(total: usize, _writable: bool) -> Result<NonNull<u8>, i32> {
    let layout = Layout::from_size_align(total, PAGE).map_err(|_| ENOMEM)?;
    // SAFETY: the callers ask for more than two pages.
    NonNull::new(unsafe { System.alloc_zeroed(layout) }).ok_or(ENOMEM)
}

/// Frees memory that [`reserve`] allocated.
///
/// # Safety
/// `whole` and `total` are those of one call of [`reserve`], and no access to the memory follows.
pub(crate) unsafe fn release(whole: NonNull<u8>, total: usize) {
    if let Ok(layout) = Layout::from_size_align(total, PAGE) {
        // SAFETY: as it was allocated, by the caller's promise.
        unsafe { System.dealloc(whole.as_ptr(), layout) };
    }
}

/// Does nothing: huge pages are asked for on Linux alone.
///
/// # Safety
/// None needed here.
pub(crate) unsafe fn advise_huge_pages(_start: NonNull<u8>, _len: usize) {}

/// Does nothing and returns `true`, as all memory from the allocator is writable.
///
/// # Safety
/// None needed here.
pub(crate) unsafe fn make_writable(_start: NonNull<u8>, _len: usize) -> bool {
    true
}

/// Does nothing: memory from the allocator need not be prefaulted.
///
/// # Errors
/// None.
///
/// # Safety
/// None needed here.
pub(crate) unsafe fn populate(_first: usize, _len: usize) -> Result<(), i32> {
    Ok(())
}

/// Returns no memory to the system; the result `false` tells the caller to store zeros instead.
///
/// # Errors
/// None.
///
/// # Safety
/// None needed here.
pub(crate) unsafe fn discard(_pages: NonNull<u8>, _len: usize) -> Result<bool, i32> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_aligned_and_freed() {
        let memory = reserve(3 * PAGE, false).expect("memory");
        assert_eq!(memory.addr().get() % PAGE, 0);
        // SAFETY: as many bytes, nobody else's until they are freed.
        unsafe {
            let bytes = std::slice::from_raw_parts_mut(memory.as_ptr(), 3 * PAGE);
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(7);
            assert_eq!(discard(memory, PAGE), Ok(false), "zeros are to be stored");
            release(memory, 3 * PAGE);
        }
        assert!(reserve(usize::MAX, true).is_err());
    }
}
