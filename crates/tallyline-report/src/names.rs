//! Texts by number: rows are compared by numbers, and texts are made once.

use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The number of a text. Equal texts have equal numbers within one profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// Texts by number.
#[derive(Clone, Debug, Default)]
pub struct Names {
    texts: Vec<Arc<str>>,
    ids: FxHashMap<Arc<str>, NameId>,
}

impl Names {
    /// The number of a text.
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

    /// The text with a number; empty for one that was never given out.
    pub fn get(&self, id: NameId) -> &str {
        self.texts.get(id.0 as usize).map_or("", |text| text)
    }

    /// The number of a text that is there already.
    pub fn find(&self, text: &str) -> Option<NameId> {
        self.ids.get(text).copied()
    }
}
