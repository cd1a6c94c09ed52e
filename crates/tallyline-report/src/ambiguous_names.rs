//! Names that several types have without their scopes.

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use tallyline_debuginfo::model::{Type, TypeId, Types};
use tallyline_debuginfo::{qualified_type_text, type_text};

/// The depth of arrays, pointers and qualifiers around a type at which it is no longer looked for.
const DEPTH_LIMIT: usize = 64;

/// The names without scopes that types of different scopes have.
#[derive(Clone, Debug, Default)]
pub(crate) struct AmbiguousNames {
    names: FxHashSet<String>,
}

impl AmbiguousNames {
    /// Returns the ambiguous ones among the names of all these types. Of arrays, pointers and qualified types the name
    /// inside counts, so that arrays of `ns::T` are told from a struct `T`.
    pub(super) fn among<'t>(all: impl Iterator<Item = (&'t Types, TypeId)>) -> Self {
        let mut names: FxHashMap<String, BTreeSet<String>> = FxHashMap::default();
        for (types, id) in all {
            // annotate names the elements of arrays, also where a typedef names the array
            let element = element_of(types, id).map(|element| innermost(types, element));
            let named = innermost(types, id);
            for id in std::iter::once(named).chain(element.filter(|element| *element != named)) {
                let whole = qualified_type_text(types, id);
                names.entry(type_text(types, id)).or_default().insert(whole);
            }
        }
        let ambiguous = names.into_iter().filter(|(_, whole)| whole.len() > 1).map(|(name, _)| name);
        Self { names: ambiguous.collect() }
    }

    /// Returns `true` if no name is ambiguous.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns `true` if a type is named with its scopes, as another one has its name without.
    pub(super) fn has(&self, types: &Types, id: TypeId) -> bool {
        !self.names.is_empty() && self.names.contains(&type_text(types, innermost(types, id)))
    }

    /// Formats a type in C's syntax, with the scopes of names if it is ambiguous without.
    pub(crate) fn text(&self, types: &Types, id: TypeId) -> String {
        if self.has(types, id) { qualified_type_text(types, id) } else { type_text(types, id) }
    }
}

/// Returns the type inside of arrays, pointers and qualifiers: that whose name their text has.
fn innermost(types: &Types, id: TypeId) -> TypeId {
    let mut inner = id;
    for _ in 0..DEPTH_LIMIT {
        inner = match types.get(inner) {
            Type::Array(array) => types.array(array).of,
            Type::Pointer { to, .. } => to,
            Type::Qualified { of, .. } | Type::Annotated { of } | Type::Descriptor { of, .. } => of,
            _ => return inner,
        };
    }
    id
}

/// Returns the type of an array's elements, in all of its dimensions; none unless those have members.
pub(super) fn element_of(types: &Types, id: TypeId) -> Option<TypeId> {
    let mut of = id;
    // a damaged file may have an array of itself
    for _ in 0..DEPTH_LIMIT {
        let Type::Array(array) = types.get(types.strip(of)) else { return None };
        of = types.array(array).of;
        if types.as_record(types.strip(of)).is_some() {
            return Some(of);
        }
    }
    None
}
