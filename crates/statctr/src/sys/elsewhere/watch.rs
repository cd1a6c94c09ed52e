//! Waiting, where the system sends no messages about CPUs.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
struct State {
    woken: Mutex<bool>,
    changed: Condvar,
}

/// Waits for the end of a span of time, or to be woken.
#[derive(Debug)]
pub(crate) struct Watch(Arc<State>);

/// Wakes a [`Watch`].
#[derive(Debug)]
pub(crate) struct Wakeup(Arc<State>);

impl Watch {
    /// Creates a watch, and what wakes it.
    ///
    /// # Errors
    /// None here.
    pub(crate) fn new() -> std::io::Result<(Watch, Wakeup)> {
        let state = Arc::<State>::default();
        Ok((Watch(Arc::clone(&state)), Wakeup(state)))
    }

    /// Waits. Returns `true` if it was woken.
    pub(crate) fn wait(&self, span: Duration) -> bool {
        let woken = self.0.woken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.changed.wait_timeout_while(woken, span, |woken| !*woken);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Returns no message.
    pub(crate) fn next<'a>(&self, _buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        None
    }
}

impl Wakeup {
    /// Ends the waiting, for good.
    pub(crate) fn wake(self) {
        *self.0.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}
