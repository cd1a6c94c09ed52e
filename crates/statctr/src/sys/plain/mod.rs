//! Threads and mutexes of the standard library, where there is neither `fork` nor a signal.

use std::sync::{Condvar, Mutex, PoisonError};

/// A mutex that is unlocked without a guard.
#[derive(Debug)]
pub(crate) struct RawMutex {
    held: Mutex<bool>,
    freed: Condvar,
}

impl RawMutex {
    /// Creates a mutex.
    pub(crate) fn new(_rank: usize) -> RawMutex {
        RawMutex { held: Mutex::new(false), freed: Condvar::new() }
    }

    /// Waits for the mutex.
    pub(crate) fn lock(&self) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.freed.wait_while(held, |held| *held);
        *free.unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Unlocks the mutex.
    ///
    /// # Safety
    /// The calling thread holds it.
    pub(crate) unsafe fn unlock(&self) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.freed.notify_one();
    }
}

/// Returns 0: no process is forked.
pub(crate) fn forks() -> u64 {
    0
}

/// Starts a detached thread. Returns `false` if the system cannot start one.
pub(crate) fn detach_helper_thread(work: impl FnOnce() + Send + 'static) -> bool {
    std::thread::Builder::new().spawn(work).is_ok()
}

/// Runs `start`: there are no signals.
pub(crate) fn without_signals<R>(start: impl FnOnce() -> R) -> R {
    start()
}
