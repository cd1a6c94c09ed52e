//! A lock that a writer may try, also in a signal handler, and that a fork cannot leave held.
//!
//! Who holds it is written into it as the number of forks that led to the process: a flag that a
//! thread of the parent held when the child was made counts as free in the child. What is done
//! under it must therefore leave a whole state after each of its stores.

use super::lock::forks;
use std::sync::atomic::{AtomicU64, Ordering};

/// Free, or held by a thread of this process.
#[derive(Debug)]
pub(crate) struct Flag(AtomicU64);

/// The flag while it is held.
#[derive(Debug)]
pub(crate) struct Raised<'a>(&'a Flag);

impl Flag {
    pub(crate) const fn new() -> Flag {
        Flag(AtomicU64::new(0))
    }

    /// Takes it where it is free. Async-signal-safe.
    pub(crate) fn try_raise(&self) -> Option<Raised<'_>> {
        let ours = forks() + 1;
        let seen = self.0.load(Ordering::Relaxed);
        let free = seen != ours;
        let taken = free && self.0.compare_exchange(seen, ours, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // not made, and so not dropped, where it was not taken
        taken.then(|| Raised(self))
    }

    /// Waits for it. Not for writers, nor for signal handlers.
    pub(crate) fn raise(&self) -> Raised<'_> {
        loop {
            match self.try_raise() {
                Some(raised) => return raised,
                // held for a few instructions, or by a thread that wants this CPU
                None => std::thread::yield_now(),
            }
        }
    }
}

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        self.0.0.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_held_by_one() {
        let flag = Flag::new();
        let raised = flag.try_raise();
        assert!(raised.is_some() && flag.try_raise().is_none() && flag.try_raise().is_none());
        drop(raised);
        drop(flag.raise());
        assert!(flag.try_raise().is_some());
    }

    #[test]
    fn a_flag_that_the_parent_of_a_fork_held_is_free() {
        let flag = Flag(AtomicU64::new(forks()));
        let of_another = Flag(AtomicU64::new(forks() + 7));
        assert!(flag.try_raise().is_some() && of_another.try_raise().is_some());
    }
}
