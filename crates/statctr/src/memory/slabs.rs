//! Memory that comes by and by and goes all at once: mappings whose records lie in themselves.
//!
//! The slow path of an update adds to it, in a signal handler, too: by system calls alone, without
//! the program's allocator and without a lock. What else such a path needs is here as well: attempts
//! that are further and further apart while the kernel refuses, and an `errno` that is put back.

use super::mapping::Mapping;
use super::signal_safe_lock::{SignalSafeLock, SignalSafeLockGuard};
use crate::error::{Error, Result};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The binary logarithm of the most requests that go by between two attempts to map memory.
const MAX_BACKOFF_SHIFT: u32 = 10;

/// A lock-free list that owns memory mappings; each list entry lies inside its mapping. All are unmapped when the list
/// is dropped.
#[derive(Debug)]
pub(crate) struct Slabs {
    /// The address of the newest record; 0 where there is none.
    newest: AtomicUsize,
}

/// The record of a mapping, inside of it.
#[derive(Debug)]
#[repr(C, align(64))]
struct Record {
    mapping: Mapping,
    /// The address of the record that was the newest before; 0 for the first one.
    older: usize,
}

/// The size, and alignment, in bytes of the list entry that [`Slabs`] keeps inside each mapping.
pub(crate) const RECORD_BYTES: usize = size_of::<Record>();

impl Slabs {
    pub(crate) const fn new() -> Slabs {
        Slabs { newest: AtomicUsize::new(0) }
    }

    /// Adds a mapping to the list, with the list entry at `offset` in it; returns the entry's address.
    /// Async-signal-safe.
    ///
    /// # Safety
    /// Nobody else ever uses those [`RECORD_BYTES`] bytes, which lie in the mapping, at a multiple of
    /// as many.
    pub(crate) unsafe fn add(&self, mapping: Mapping, offset: usize) -> usize {
        debug_assert!(offset.is_multiple_of(RECORD_BYTES) && offset + RECORD_BYTES <= mapping.len());
        // SAFETY: inside the mapping by the caller's promise.
        let place = unsafe { mapping.start().add(offset) }.cast::<Record>();
        let mut older = self.newest.load(Ordering::Relaxed);
        // SAFETY: aligned and nobody else's by the caller's promise.
        unsafe { place.write(Record { mapping, older }) };
        loop {
            let here = place.as_ptr().expose_provenance();
            match self.newest.compare_exchange(older, here, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return here,
                Err(newer) => older = newer,
            }
            // SAFETY: written above, and not in the list yet.
            unsafe { (*place.as_ptr()).older = older };
        }
    }

    /// Returns the mapping that contains a list entry, given by its address; `None` for 0.
    ///
    /// # Safety
    /// 0, or what [`add`](Self::add) returned, and its list lives for `'a`.
    pub(crate) unsafe fn mapping_of<'a>(record: usize) -> Option<&'a Mapping> {
        let place = NonNull::new(std::ptr::with_exposed_provenance_mut::<Record>(record))?;
        // SAFETY: a record that lives, by the caller's promise; it is not changed any more.
        Some(&unsafe { place.as_ref() }.mapping)
    }

    /// Returns an iterator over the mappings in the list, the newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mapping> {
        let record = |address: usize| {
            let place = NonNull::new(std::ptr::with_exposed_provenance_mut::<Record>(address));
            // SAFETY: addresses in the list are those of records, which live as long as it.
            place.map(|place| unsafe { place.as_ref() })
        };
        let newest = record(self.newest.load(Ordering::Acquire));
        std::iter::successors(newest, move |here| record(here.older)).map(|record| &record.mapping)
    }
}

impl Drop for Slabs {
    fn drop(&mut self) {
        let mut next = *self.newest.get_mut();
        while let Some(place) = NonNull::new(std::ptr::with_exposed_provenance_mut::<Record>(next)) {
            // SAFETY: as in `iter`; taken out before the memory that it lies in goes.
            let Record { mapping, older } = unsafe { place.read() };
            next = older;
            drop(mapping);
        }
    }
}

/// A gate through which updates of counters that found no memory ready may map some: one thread at a time, with
/// exponential back-off after the kernel refused.
#[derive(Debug)]
pub(crate) struct Growth {
    lock: SignalSafeLock,
    /// Refusals in a row.
    refusals: AtomicU32,
    /// Requests that still go by before the next attempt.
    backoff: AtomicU32,
    successes: AtomicUsize,
}

impl Growth {
    pub(crate) const fn new() -> Growth {
        Growth {
            lock: SignalSafeLock::new(),
            refusals: AtomicU32::new(0),
            backoff: AtomicU32::new(0),
            successes: AtomicUsize::new(0),
        }
    }

    /// Calls `map` to get memory for an update of a counter, unless `is_there`, another thread is mapping, or the
    /// kernel refused too recently; returns `true` if there is memory now. Restores `errno`; async-signal-safe if `map`
    /// is.
    #[cold]
    pub(crate) fn try_grow(
        &self,
        is_there: impl FnOnce() -> bool,
        map: impl FnOnce(&SignalSafeLockGuard<'_>) -> Result<()>,
    ) -> bool {
        let Some(held) = self.lock.try_lock() else { return false };
        if is_there() {
            return true;
        }
        let backoff = self.backoff.load(Ordering::Relaxed);
        if backoff > 0 {
            self.backoff.store(backoff - 1, Ordering::Relaxed);
            return false;
        }
        let errno = Error::last_errno();
        let mapped = map(&held);
        crate::sys::set_errno(errno);
        if mapped.is_ok() {
            self.refusals.store(0, Ordering::Relaxed);
            self.successes.fetch_add(1, Ordering::Relaxed);
        } else {
            let refusals = self.refusals.load(Ordering::Relaxed);
            self.refusals.store((refusals + 1).min(MAX_BACKOFF_SHIFT), Ordering::Relaxed);
            self.backoff.store((1 << refusals) - 1, Ordering::Relaxed);
        }
        mapped.is_ok()
    }

    /// Waits until no update of a counter is mapping memory, and keeps others from it until the guard is dropped. Not
    /// for updates.
    pub(crate) fn wait(&self) -> SignalSafeLockGuard<'_> {
        self.lock.lock()
    }

    /// Returns the number of times that an update of a counter found no memory ready and mapped some itself.
    pub(crate) fn successes(&self) -> usize {
        self.successes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errno;
    use crate::memory::mapping::PAGE;

    #[test]
    fn mappings_of_all_threads_are_in_the_list_until_it_goes() {
        let slabs = Slabs::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let mapping = Mapping::new(2 * PAGE).expect("memory");
                        // SAFETY: nobody else knows of the mapping.
                        unsafe { slabs.add(mapping, PAGE) };
                    }
                });
            }
        });
        let mut starts: Vec<usize> = slabs.iter().map(|mapping| mapping.addresses().start).collect();
        starts.sort_unstable();
        starts.dedup();
        assert_eq!(starts.len(), 200);
    }

    #[test]
    fn refused_memory_is_asked_for_less_and_less_often_and_errno_stays() {
        let growth = Growth::new();
        let refused = Err(Error::OutOfMemory { bytes: 1, errno: errno::ENOMEM });
        let mut asked = Vec::new();
        crate::sys::set_errno(errno::EEXIST);
        for request in 0..5000 {
            let map = |_: &SignalSafeLockGuard<'_>| {
                asked.push(request);
                crate::sys::set_errno(errno::ENOMEM);
                refused.clone()
            };
            assert!(!growth.try_grow(|| false, map));
        }
        assert_eq!(Error::last_errno(), errno::EEXIST);
        assert_eq!(asked[..4], [0, 1, 3, 7]);
        assert!(asked.windows(2).all(|pair| pair[1] - pair[0] <= 1 << MAX_BACKOFF_SHIFT), "{asked:?}");
        // and once there is some, at once
        let next = (0..=1 << MAX_BACKOFF_SHIFT).find(|_| growth.try_grow(|| false, |_| Ok(())));
        assert!(next.is_some() && growth.try_grow(|| false, |_| Ok(())));
        assert_eq!(growth.successes(), 2);
        let held = growth.wait();
        assert!(!growth.try_grow(|| false, |_| Ok(())), "somebody else is at it");
        drop(held);
        assert!(growth.try_grow(|| true, |_| Err(Error::OutOfMemory { bytes: 1, errno: 1 })), "it is there");
    }
}
