//! Callbacks for drains of a pool.

use crate::cpu::CpuId;
use crate::memory::Drained;
use crate::sys::{Lock, Rank};
use std::fmt;
use std::sync::Arc;

type Callback = Arc<dyn Fn(CpuId, Drained) + Send + Sync>;

/// The callbacks of a pool.
#[derive(Clone)]
pub(super) struct DrainCallbacks(Arc<Lock<Vec<Callback>>>);

impl DrainCallbacks {
    pub(super) fn new() -> DrainCallbacks {
        DrainCallbacks(Arc::new(Lock::new(Rank::Registry, Vec::new())))
    }

    pub(super) fn add(
        &self,
        callback: impl Fn(CpuId, Drained) + Send + Sync + 'static,
    ) -> DrainCallbackGuard {
        let callback: Callback = Arc::new(callback);
        self.0.lock().push(Arc::clone(&callback));
        DrainCallbackGuard { callback, all: self.clone() }
    }

    pub(super) fn call(&self, cpu: CpuId, drained: Drained) {
        // not under the lock: a callback may read, and make others
        let callbacks = self.0.lock().clone();
        callbacks.iter().for_each(|callback| callback(cpu, drained));
    }
}

/// The registration of a callback for drains of CPUs, whose counts are moved to shared words
/// ([`Pool::on_moved`](super::Pool::on_moved)); dropping it unregisters the callback.
#[must_use = "the callback is unregistered when this is dropped"]
pub struct DrainCallbackGuard {
    callback: Callback,
    all: DrainCallbacks,
}

impl fmt::Debug for DrainCallbackGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrainCallbackGuard").finish_non_exhaustive()
    }
}

impl Drop for DrainCallbackGuard {
    fn drop(&mut self) {
        let mut callbacks = self.all.0.lock();
        let place = callbacks.iter().position(|other| Arc::ptr_eq(other, &self.callback));
        let gone = place.map(|place| callbacks.swap_remove(place));
        drop(callbacks);
        drop(gone);
    }
}
