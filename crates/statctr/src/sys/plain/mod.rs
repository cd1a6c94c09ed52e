//! Threads and mutexes of the standard library, where there is neither `fork` nor a signal.

use std::sync::{Condvar, Mutex, PoisonError};

/// A mutex without a guard object, for systems without `fork`.
#[derive(Debug)]
pub(crate) struct RawMutex {
    held: Mutex<bool>,
    freed: Condvar,
}

impl RawMutex {
    /// Creates an unlocked mutex; the rank is not used here.
    pub(crate) fn new(_rank: usize) -> RawMutex {
        RawMutex { held: Mutex::new(false), freed: Condvar::new() }
    }

    /// Waits until the mutex is locked by the calling thread.
    pub(crate) fn lock(&self) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.freed.wait_while(held, |held| *held);
        *free.unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Unlocks the mutex, which the calling thread has locked.
    ///
    /// # Safety
    /// The calling thread holds it.
    pub(crate) unsafe fn unlock(&self) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.freed.notify_one();
    }
}

/// Returns 0, the number of forks so far, on systems without `fork`.
pub(crate) fn forks() -> u64 {
    0
}

/// Returns 0 for every thread: without `fork` and signals nobody asks which thread holds a lock.
pub(crate) fn thread_identity() -> usize {
    0
}

/// Starts a detached thread that runs `work`; returns `false` if the system cannot start one.
pub(crate) fn detach_helper_thread(work: impl FnOnce() + Send + 'static) -> bool {
    std::thread::Builder::new().spawn(work).is_ok()
}

/// Runs `start` and returns its result, on systems without signals to block.
pub(crate) fn without_signals<R>(start: impl FnOnce() -> R) -> R {
    start()
}
