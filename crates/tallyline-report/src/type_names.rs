//! The names of types in reports: perf's, or with scopes where those are ambiguous.

use super::ambiguous_names::AmbiguousNames;
use super::index::JoinedId;
use super::names::{NameId, Names};
use super::operand::Outcome;
use super::profile::Profile;
use super::samples::Operands;
use rustc_hash::FxHashMap;
use tallyline_debuginfo::model::{TypeId, Types};

/// Names types with their scopes, such as `struct ns::T`, where types of different scopes have one name. The types of
/// all these profiles count, so that rows of one name are of one type in each.
pub fn tell_types_apart(profiles: &mut [&mut Profile]) {
    let ambiguous = AmbiguousNames::among(profiles.iter().flat_map(|profile| profile.joined().all()));
    profiles.iter_mut().for_each(|profile| profile.operands.qualify(&mut profile.samples.names, &ambiguous));
}

/// Returns the names of these types, one for each: with their scopes where those of different scopes have one name.
pub fn type_names(types: &[(&Types, TypeId)]) -> Vec<String> {
    let ambiguous = AmbiguousNames::among(types.iter().copied());
    types.iter().map(|(types, id)| ambiguous.text(types, *id)).collect()
}

impl Operands {
    /// Names the types of one profile's samples as [`tell_types_apart`] does, before the profile is complete.
    pub(super) fn tell_types_apart(&mut self, names: &mut Names) {
        let ambiguous = AmbiguousNames::among(self.joined.all());
        self.qualify(names, &ambiguous);
    }

    /// Names those types with their scopes whose names without are ambiguous.
    fn qualify(&mut self, names: &mut Names, ambiguous: &AmbiguousNames) {
        if ambiguous.is_empty() {
            return;
        }
        self.joined.ambiguous = ambiguous.clone();
        let joined = &self.joined;
        let is_ambiguous =
            |ty: &JoinedId| joined.get(*ty).is_some_and(|(table, id)| ambiguous.has(table.types(), id));
        let renamed: FxHashMap<JoinedId, NameId> =
            joined.ids().filter(is_ambiguous).map(|ty| (ty, names.intern(&joined.name(ty)))).collect();
        for operand in self.outcomes.iter_mut().filter_map(|outcome| match outcome {
            Outcome::Typed(operand) => Some(operand),
            _ => None,
        }) {
            let old = operand.object();
            let rename = |ty: JoinedId, name: &mut NameId| {
                if let Some(new) = renamed.get(&ty) {
                    *name = *new;
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
