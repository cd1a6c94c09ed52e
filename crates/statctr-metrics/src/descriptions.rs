//! The units and help texts of metrics by name: [`Descriptions`].

use metrics::{KeyName, SharedString, Unit};
use statctr::Registry;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The unit and the help text of a name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Described {
    pub(crate) unit: Option<Unit>,
    pub(crate) help: SharedString,
}

/// The descriptions of one kind of metrics, by name.
#[derive(Debug, Default)]
pub(crate) struct Descriptions(Mutex<HashMap<KeyName, Described>>);

impl Descriptions {
    /// Sets the description of a name; the last one holds.
    pub(crate) fn insert(&self, name: KeyName, described: Described) {
        self.with(|all| all.insert(name, described));
    }

    /// Returns the description of a name; an empty one if it has none.
    pub(crate) fn get(&self, name: &str) -> Described {
        self.with(|all| all.get(name).cloned()).unwrap_or_default()
    }

    /// Returns all descriptions, by name.
    pub(crate) fn all(&self) -> HashMap<KeyName, Described> {
        self.with(|all| all.clone())
    }

    /// Calls `work` with the descriptions. A fork waits for its end: it takes the registry's lock, and this one is
    /// held only together with that. The child of a thread that forked while another one held it would wait for ever.
    fn with<R>(&self, work: impl FnOnce(&mut HashMap<KeyName, Described>) -> R) -> R {
        Registry::global().while_locked(|| work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}
