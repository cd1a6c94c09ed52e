//! Zeroed atomics, on the heap or in memory that is never freed.
//!
//! The latter are for what a signal handler makes: by a mapping, and without the program's allocator.

use super::mapping::Mapping;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// An atomic of which all bits zero are the value zero.
pub(super) trait Zeroed: Default {}
impl Zeroed for AtomicU64 {}
impl Zeroed for AtomicUsize {}

/// Slice of atomics that are zero at first.
#[derive(Debug)]
pub(super) struct Atomics<T> {
    start: NonNull<T>,
    len: usize,
    on_heap: bool,
}

// SAFETY: an owned slice of atomics.
unsafe impl<T: Send> Send for Atomics<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Atomics<T> {}

impl<T: Zeroed> Atomics<T> {
    /// Creates zeros on the heap.
    pub(super) fn new(len: usize) -> Atomics<T> {
        let atomics: Box<[T]> = (0..len).map(|_| T::default()).collect();
        Atomics { start: NonNull::from(Box::leak(atomics)).cast(), len, on_heap: true }
    }
}

impl<T> Deref for Atomics<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: so many live atomics, which nobody refers to alone.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> Drop for Atomics<T> {
    fn drop(&mut self) {
        if self.on_heap {
            let slice = std::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.len);
            // SAFETY: the box that `new` leaked, once.
            drop(unsafe { Box::from_raw(slice) });
        }
    }
}

/// Room in a mapping, which is handed out from its start.
#[derive(Debug)]
pub(super) struct Room {
    next: NonNull<u8>,
    left: usize,
}

impl Room {
    /// Returns the room of a mapping.
    ///
    /// # Safety
    /// The mapping is writable, fresh, and lives longer than all that is taken from here; nobody else
    /// uses it.
    pub(super) unsafe fn new(mapping: &Mapping) -> Room {
        Room { next: mapping.start(), left: mapping.len() }
    }

    /// Returns the bytes that [`take`](Self::take) needs for so many words of 8 bytes.
    pub(super) const fn bytes(words: usize) -> usize {
        words * 8
    }

    fn advance(&mut self, bytes: usize) {
        // SAFETY: the callers have seen that so many are left.
        self.next = unsafe { self.next.add(bytes) };
        self.left -= bytes;
    }

    /// Takes aligned space for one `T` from the room; `None` if too few bytes are left. Async-signal-safe.
    pub(super) fn place<T>(&mut self) -> Option<NonNull<T>> {
        let skip = self.next.as_ptr().align_offset(align_of::<T>());
        let bytes = skip.checked_add(size_of::<T>()).filter(|bytes| *bytes <= self.left)?;
        // SAFETY: inside the mapping.
        let place = unsafe { self.next.add(skip) };
        self.advance(bytes);
        Some(place.cast())
    }

    /// Takes `len` zeroed atomics from the room; `None` if too few bytes are left. Async-signal-safe.
    pub(super) fn take<T: Zeroed>(&mut self, len: usize) -> Option<Atomics<T>> {
        let skip = self.next.as_ptr().align_offset(align_of::<T>());
        let bytes = len.checked_mul(size_of::<T>())?.checked_add(skip)?;
        if bytes > self.left {
            return None;
        }
        // SAFETY: inside the mapping, whose bytes are zero.
        let start = unsafe { self.next.add(skip) }.cast();
        self.advance(bytes);
        Some(Atomics { start, len, on_heap: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::mapping::PAGE;
    use std::sync::atomic::Ordering;

    #[test]
    fn what_is_taken_from_a_room_is_zero_apart_and_bounded() {
        let mapping = Mapping::new(PAGE).expect("memory");
        // SAFETY: the mapping lives to the end of the test.
        let mut room = unsafe { Room::new(&mapping) };
        let value = room.place::<u8>().expect("room");
        let (first, second) = (room.take::<AtomicU64>(3).expect("room"), room.take::<AtomicUsize>(2));
        let second = second.expect("room");
        assert!(first.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        first[2].store(7, Ordering::Relaxed);
        assert_eq!(second[0].load(Ordering::Relaxed), 0);
        assert!(value.as_ptr().cast_const() < first.as_ptr().cast());
        assert!(room.take::<AtomicU64>(PAGE / 8).is_none() && room.take::<AtomicU64>(usize::MAX).is_none());
        assert!(room.place::<[u64; 1 << 20]>().is_none());
    }

    #[test]
    fn heap_atomics_are_freed() {
        let atomics = Atomics::<AtomicU64>::new(5);
        atomics[4].store(1, Ordering::Relaxed);
        assert_eq!((atomics.len(), Atomics::<AtomicU64>::new(0).len()), (5, 0));
    }
}
