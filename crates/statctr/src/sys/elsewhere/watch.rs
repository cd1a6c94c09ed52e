//! Waiting, where the system sends no messages about CPUs.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
struct State {
    woken: Mutex<bool>,
    changed: Condvar,
}

/// A timer on which a thread sleeps until its time is over or another thread wakes it by the [`Wakeup`] made with it.
#[derive(Debug)]
pub(crate) struct Watch(Arc<State>);

/// A handle by which another thread ends the waiting of the thread that sleeps on a timer ([`Watch`]).
#[derive(Debug)]
pub(crate) struct Wakeup(Arc<State>);

impl Watch {
    /// Creates a [`Watch`], an interruptible timer, and the [`Wakeup`] that ends its waiting.
    ///
    /// # Errors
    /// None here.
    pub(crate) fn new() -> std::io::Result<(Watch, Wakeup)> {
        let state = Arc::<State>::default();
        Ok((Watch(Arc::clone(&state)), Wakeup(state)))
    }

    /// Waits for `span` or until the [`Wakeup`] made with this timer is used; returns `true` in the latter case.
    pub(crate) fn wait(&self, span: Duration) -> bool {
        let woken = self.0.woken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.changed.wait_timeout_while(woken, span, |woken| !*woken);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Returns `None`: systems other than Linux send no messages about CPU hotplug here.
    pub(crate) fn next<'a>(&self, _buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        None
    }
}

impl Wakeup {
    /// Wakes the thread that waits on the [`Watch`] made with this; present and future waits then end at once.
    pub(crate) fn wake(self) {
        *self.0.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}
