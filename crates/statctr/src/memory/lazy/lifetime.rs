//! The lifetime of a pool's memory, which ends with the last handle of the pool and the last object.
//!
//! Objects are not counted in one word, which every thread that makes or drops some would fetch, but
//! in the caches that they come from and go to. When the last handle goes, these sums are closed and
//! come to one number, and from then on each object that is dropped is counted there.
//!
//! Source: Linux `lib/percpu-refcount.c`, for the idea.

use super::pool::LazyMemory;
use std::ops::Deref;
use std::ptr::NonNull;

/// A reference-counted handle to the memory of a pool of lazy objects (four statistics whose per-CPU copies are created
/// when a CPU first writes), through which objects are created; the pool ends with the last one.
pub(crate) struct LazyOwner(NonNull<LazyMemory>);

// SAFETY: what it leads to is `Sync`, and is dropped by any thread.
unsafe impl Send for LazyOwner {}
// SAFETY: as above.
unsafe impl Sync for LazyOwner {}

impl LazyOwner {
    pub(crate) fn new(memory: LazyMemory) -> LazyOwner {
        LazyOwner(NonNull::from(Box::leak(Box::new(memory))))
    }

    pub(super) fn memory(&self) -> NonNull<LazyMemory> {
        self.0
    }
}

impl Deref for LazyOwner {
    type Target = LazyMemory;
    fn deref(&self) -> &LazyMemory {
        // SAFETY: lives at least until this is dropped.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for LazyOwner {
    fn drop(&mut self) {
        if self.close() {
            // SAFETY: neither owner nor object is left.
            unsafe { free(self.0) };
        }
    }
}

/// Ends a pool's memory.
///
/// # Safety
/// `memory` is that of a [`LazyOwner`], and nobody uses it any more.
pub(super) unsafe fn free(memory: NonNull<LazyMemory>) {
    // SAFETY: came from a box, and this is its end.
    drop(unsafe { Box::from_raw(memory.as_ptr()) });
}
