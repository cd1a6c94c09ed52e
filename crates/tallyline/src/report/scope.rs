//! The samples that a line of the browser is about.

use tallyline_report::SampleGroup;
use tallyline_report::keys::Key;
use tallyline_report::{Counts, Profile};

/// Samples of some events with the same values of some keys.
#[derive(Clone, Default)]
pub(super) struct Scope {
    /// The indices of the sampled events; none for all.
    pub(super) events: Option<Vec<usize>>,
    /// The keys, each with its value.
    pub(super) keys: Vec<(&'static Key, u64)>,
}

impl Scope {
    /// Returns `true` if a sample belongs to the scope.
    pub(super) fn accepts(&self, profile: &Profile, point: &SampleGroup) -> bool {
        self.events.as_ref().is_none_or(|events| events.contains(&(point.event as usize)))
            && self.keys.iter().all(|(key, value)| (key.value)(profile, point) == *value)
    }

    /// Returns `true` if a key of the scope is about types, so that its line in the report is about a type.
    pub(super) fn has_types(&self) -> bool {
        self.keys.iter().any(|(key, _)| key.needs.types)
    }

    /// Returns the samples that only the other keys select: all fields of a line's type.
    pub(super) fn without_types(&self) -> Scope {
        let keys = self.keys.iter().filter(|(key, _)| !key.needs.types).copied().collect();
        Scope { keys, ..self.clone() }
    }

    /// Returns the values as reports show them; empty without keys.
    pub(super) fn text(&self, profile: &Profile) -> String {
        let texts = self.keys.iter().map(|(key, value)| (key.text)(profile, *value, &Counts::default()));
        texts.map(|text| text.trim().to_owned()).collect::<Vec<_>>().join(", ")
    }
}
