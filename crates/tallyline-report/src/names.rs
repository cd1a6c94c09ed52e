//! An interner of texts.

use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The id of an interned string (function, type, file name); equal strings of one profile have equal ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// Interner for the strings of a profile: stores each function, type and file name once.
#[derive(Clone, Debug, Default)]
pub struct Names {
    texts: Vec<Arc<str>>,
    ids: FxHashMap<Arc<str>, NameId>,
}

impl Names {
    /// Returns the id of a string, which is stored on first use.
    pub(crate) fn intern(&mut self, text: &str) -> NameId {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        // one text for each sample at most, and a file has fewer than four billion
        let id = NameId(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.ids.insert(text, id);
        id
    }

    /// Returns the string with an id; empty for an unknown id.
    pub fn get(&self, id: NameId) -> &str {
        self.texts.get(id.0 as usize).map_or("", |text| text)
    }

    /// Returns the id of a string; `None` if it was never interned.
    pub fn find(&self, text: &str) -> Option<NameId> {
        self.ids.get(text).copied()
    }
}
