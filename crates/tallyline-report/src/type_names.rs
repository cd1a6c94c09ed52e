//! The names of types in reports: perf's, or with scopes where those are ambiguous.

use super::index::JoinedId;
use super::names::{NameId, Names};
use super::operand::{Joined, Outcome};
use super::profile::Profile;
use super::samples::Operands;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use tallyline_debuginfo::{qualified_type_text, type_text};

/// Returns the names without scopes that types of different scopes have.
fn ambiguous_names<'j>(all: impl Iterator<Item = &'j Joined>) -> FxHashSet<String> {
    let mut names: FxHashMap<String, BTreeSet<String>> = FxHashMap::default();
    for joined in all {
        for (table, id) in joined.ids().filter_map(|ty| joined.get(ty)) {
            let whole = qualified_type_text(table.types(), id);
            names.entry(type_text(table.types(), id)).or_default().insert(whole);
        }
    }
    names.into_iter().filter(|(_, whole)| whole.len() > 1).map(|(name, _)| name).collect()
}

/// Names types with their scopes, such as `struct ns::T`, where types of different scopes have one name. The types of
/// all these profiles count, so that rows of one name are of one type in each.
pub fn tell_types_apart(profiles: &mut [&mut Profile]) {
    let ambiguous = ambiguous_names(profiles.iter().map(|profile| profile.joined()));
    profiles.iter_mut().for_each(|profile| profile.operands.qualify(&mut profile.samples.names, &ambiguous));
}

impl Operands {
    /// Names the types of one profile's samples as [`tell_types_apart`] does, before the profile is complete.
    pub(super) fn tell_types_apart(&mut self, names: &mut Names) {
        let ambiguous = ambiguous_names(std::iter::once(&self.joined));
        self.qualify(names, &ambiguous);
    }

    /// Names those types with their scopes whose names without are ambiguous.
    fn qualify(&mut self, names: &mut Names, ambiguous: &FxHashSet<String>) {
        if ambiguous.is_empty() {
            return;
        }
        for ty in self.joined.ids() {
            let is_ambiguous = self
                .joined
                .get(ty)
                .is_some_and(|(table, id)| ambiguous.contains(&type_text(table.types(), id)));
            if is_ambiguous {
                self.joined.qualified.insert(ty);
            }
        }
        let mut renamed: FxHashMap<JoinedId, NameId> = FxHashMap::default();
        let joined = &self.joined;
        for operand in self.outcomes.iter_mut().filter_map(|outcome| match outcome {
            Outcome::Typed(operand) => Some(operand),
            _ => None,
        }) {
            let old = operand.object();
            let mut rename = |ty: JoinedId, name: &mut NameId| {
                if joined.qualified.contains(&ty) {
                    *name = *renamed.entry(ty).or_insert_with(|| names.intern(&joined.name(ty)));
                }
            };
            rename(operand.ty, &mut operand.name);
            if let Some(node) = &mut operand.within {
                rename(node.ty, &mut node.name);
            }
            let new = operand.object();
            if new != old
                && let Some(place) = names.get(operand.text).strip_prefix(names.get(old))
            {
                let text = format!("{}{place}", names.get(new));
                operand.text = names.intern(&text);
            }
        }
    }
}
