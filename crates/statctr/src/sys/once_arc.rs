//! A shared value made on first use, without a lock: as `once_box`, for values that have owners elsewhere.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};

/// A cell that is set once, without a lock, to a reference-counted value, of which it keeps one reference.
///
/// The cell is the pointer to the value, so that an access follows no other.
// the marker makes it `Send` and `Sync` under the conditions of `OnceLock`: whoever sets it may be another thread than
// the one that drops it
#[derive(Debug)]
pub struct OnceArc<T>(AtomicPtr<T>, PhantomData<OnceLock<Arc<T>>>);

impl<T> OnceArc<T> {
    /// Creates an empty cell, to be set once to a reference-counted value.
    #[must_use]
    pub const fn new() -> OnceArc<T> {
        OnceArc(AtomicPtr::new(std::ptr::null_mut()), PhantomData)
    }

    /// Returns another reference to the cell's value; `None` if the cell was not set. Takes no lock.
    #[must_use]
    #[inline]
    pub fn get(&self) -> Option<Arc<T>> {
        let value = self.0.load(Ordering::Acquire);
        if value.is_null() {
            return None;
        }
        // SAFETY: of `Arc::into_raw`, published with release ordering, and the cell's own reference lives as long as
        // the cell: the count is not 0.
        unsafe {
            Arc::increment_strong_count(value);
            Some(Arc::from_raw(value))
        }
    }

    /// Returns another reference to the cell's value, created by `make` if the cell was empty. Several threads, or a
    /// thread and its signal handler, may call `make`; one result is kept, and nobody waits.
    #[inline]
    pub fn get_or_make(&self, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        match self.get() {
            Some(value) => value,
            None => self.make(make),
        }
    }

    #[cold]
    fn make(&self, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        let value = make();
        let new = Arc::into_raw(Arc::clone(&value)).cast_mut();
        match self.0.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => value,
            Err(_) => {
                // SAFETY: of `Arc::into_raw` above, and not published.
                drop(unsafe { Arc::from_raw(new) });
                // somebody was faster, and cells are not emptied
                self.get().unwrap_or(value)
            }
        }
    }
}

impl<T> Default for OnceArc<T> {
    fn default() -> OnceArc<T> {
        OnceArc::new()
    }
}

impl<T> Drop for OnceArc<T> {
    fn drop(&mut self) {
        let value = *self.0.get_mut();
        if !value.is_null() {
            // SAFETY: the cell's own reference, of `Arc::into_raw`, which nobody can ask for any more.
            drop(unsafe { Arc::from_raw(value) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_see_the_value_of_the_first() {
        let once = OnceArc::new();
        assert!(once.get().is_none());
        let seen: Vec<Arc<usize>> = std::thread::scope(|scope| {
            let make = |id| once.get_or_make(|| Arc::new(id));
            let threads: Vec<_> = (0..8).map(|id| scope.spawn(move || make(id))).collect();
            threads.into_iter().map(|thread| thread.join().expect("joined")).collect()
        });
        assert!(seen.iter().all(|value| Arc::ptr_eq(value, &seen[0])));
        assert!(Arc::ptr_eq(&once.get().expect("set"), &seen[0]));
        // the cell's own reference, too
        assert_eq!(Arc::strong_count(&seen[0]), 9);
    }

    #[test]
    fn a_value_lives_as_long_as_its_last_owner() {
        let value = Arc::new(1);
        let once = OnceArc::new();
        let of_cell = once.get_or_make(|| Arc::clone(&value));
        assert_eq!(Arc::strong_count(&value), 3);
        drop(once);
        assert_eq!(Arc::strong_count(&value), 2);
        drop(value);
        assert_eq!(Arc::strong_count(&of_cell), 1);
        drop(OnceArc::<u64>::new());
    }

    #[test]
    fn a_value_that_is_made_while_another_is_made_is_dropped() {
        let once = OnceArc::new();
        let (first, second) = (Arc::new(1), Arc::new(2));
        let seen = once.get_or_make(|| {
            once.get_or_make(|| Arc::clone(&first));
            Arc::clone(&second)
        });
        assert!(Arc::ptr_eq(&seen, &first));
        assert_eq!(Arc::strong_count(&second), 1);
    }
}
