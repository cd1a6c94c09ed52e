//! A value made on first use, without a lock.
//!
//! The standard library's `OnceLock` makes others wait while one thread makes the value; a child
//! forked in that moment would wait for ever. Here every thread that comes too early makes one, and
//! all but the first are dropped.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A cell in a `static` that is set once, without a lock, and whose value is never dropped.
#[derive(Debug)]
pub struct OnceBox<T>(AtomicPtr<T>, PhantomData<Box<T>>);

impl<T: Send + Sync + 'static> OnceBox<T> {
    /// Creates an empty cell, to be set once.
    #[must_use]
    #[allow(clippy::new_without_default)] // for statics
    pub const fn new() -> OnceBox<T> {
        OnceBox(AtomicPtr::new(std::ptr::null_mut()), PhantomData)
    }

    /// Returns the value of the cell; `None` if it was not set.
    #[must_use]
    #[inline]
    pub fn get(&'static self) -> Option<&'static T> {
        // SAFETY: null, or a box that `get_or` leaked, published with release ordering.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Returns the cell's value, which is set to `value` if it was empty.
    pub fn get_or(&'static self, value: T) -> &'static T {
        self.get().unwrap_or_else(|| self.try_set(value).unwrap_or_else(|first| first))
    }

    /// Sets the value of an empty cell and returns it.
    ///
    /// # Errors
    /// The value that there is already; `value` is dropped.
    pub fn try_set(&'static self, value: T) -> Result<&'static T, &'static T> {
        let new = Box::into_raw(Box::new(value));
        match self.0.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: now nobody's but the static's, and never freed.
            Ok(_) => Ok(unsafe { &*new }),
            Err(first) => {
                // SAFETY: `new` was not published; `first` was, by the thread that was faster.
                unsafe {
                    drop(Box::from_raw(new));
                    Err(&*first)
                }
            }
        }
    }

    /// Returns the cell's value, created by `make` if it was empty. Several threads may call `make`; one result is
    /// kept.
    pub fn get_or_make(&'static self, make: impl FnOnce() -> T) -> &'static T {
        match self.get() {
            Some(there) => there,
            None => self.get_or(make()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_see_the_value_of_the_first() {
        static ONCE: OnceBox<usize> = OnceBox::new();
        assert!(ONCE.get().is_none());
        let seen: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|id| scope.spawn(move || *ONCE.get_or(id))).collect();
            threads.into_iter().map(|thread| thread.join().expect("joined")).collect()
        });
        assert!(seen.iter().all(|value| *value == seen[0]));
        assert_eq!(ONCE.get_or_make(|| 99), &seen[0]);
        assert_eq!(ONCE.try_set(99), Err(&seen[0]));
    }
}
