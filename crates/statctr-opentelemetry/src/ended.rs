//! Observations of registries that ended, and from which later ones continue: [`EndedObservation`].

use statctr::{Registry, RegistryValues, Snapshot};
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A reference by which a registry is recognised, and which does not keep it.
pub(crate) enum RegistryRef {
    Static(&'static Registry),
    /// One whose address no other registry gets, as the reference keeps the memory.
    Shared(Weak<Registry>),
}

impl RegistryRef {
    /// Returns a reference to a registry; `None` for one that is neither `static` nor in an `Arc`.
    pub(crate) fn of(registry: &dyn Any) -> Option<RegistryRef> {
        let of_static = || registry.downcast_ref().copied().map(RegistryRef::Static);
        registry.downcast_ref().map(Arc::downgrade).map(RegistryRef::Shared).or_else(of_static)
    }

    fn lives(&self) -> bool {
        match self {
            RegistryRef::Static(_) => true,
            RegistryRef::Shared(registry) => registry.strong_count() > 0,
        }
    }
}

impl PartialEq for RegistryRef {
    fn eq(&self, other: &RegistryRef) -> bool {
        match (self, other) {
            (RegistryRef::Static(one), RegistryRef::Static(other)) => std::ptr::eq(*one, *other),
            (RegistryRef::Shared(one), RegistryRef::Shared(other)) => Weak::ptr_eq(one, other),
            _ => false,
        }
    }
}

/// An observation of a registry that ended.
///
/// The SDK's counters keep what it added: an observation of the same meter that began at 0 would add that again. A meter
/// does not tell if it is the same one, so that it is enough that the provider lives.
pub(crate) struct EndedObservation {
    registry: RegistryRef,
    provider: Weak<()>,
    /// The values of the registry that the SDK's counters have.
    last: Snapshot<RegistryValues>,
}

static ENDED: Mutex<Vec<EndedObservation>> = Mutex::new(Vec::new());

impl EndedObservation {
    /// Keeps the last values that an observation of a registry has exported, as long as the registry and the provider
    /// live.
    pub(crate) fn keep(registry: RegistryRef, provider: Weak<()>, last: Snapshot<RegistryValues>) {
        EndedObservation::lock().push(EndedObservation { registry, provider, last });
    }

    /// Returns the last values that the latest observation of this registry has exported, and forgets them; `None` if there
    /// is none that ended.
    pub(crate) fn take_last(registry: &RegistryRef) -> Option<Snapshot<RegistryValues>> {
        let mut ended = EndedObservation::lock();
        let latest = ended.iter().rposition(|ended| ended.registry == *registry)?;
        Some(ended.remove(latest).last)
    }

    /// Returns the observations that can be continued.
    fn lock() -> MutexGuard<'static, Vec<EndedObservation>> {
        let mut ended = ENDED.lock().unwrap_or_else(PoisonError::into_inner);
        ended.retain(|ended| ended.registry.lives() && ended.provider.strong_count() > 0);
        ended
    }
}
