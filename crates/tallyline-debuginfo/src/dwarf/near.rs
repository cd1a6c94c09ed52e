//! The names of records that are nearest to a name that is sought, collected in the pass that seeks it: whether
//! it has a type is known at the end only.

use super::definitions::Definitions;
use super::scopes::{Class, Key, Name, Scoped, Scopes};
use crate::lookup::NearestNames;
use rustc_hash::FxHashSet;

/// The names of records that are nearest to the one that is sought.
#[derive(Clone)]
pub(super) struct Near {
    names: NearestNames,
    /// `true` if the names of all units are compared, also of those that cannot have the one that is sought.
    pub(super) everywhere: bool,
    /// `false` if a unit was passed over.
    pub(super) is_complete: bool,
    // names that were compared
    known: FxHashSet<Key>,
}

impl Near {
    /// Returns an empty collection for a name.
    pub(super) fn new(name: &[u8], everywhere: bool) -> Near {
        let (names, known) = (NearestNames::of(name), FxHashSet::default());
        Near { names, everywhere, is_complete: true, known }
    }

    /// Returns an empty collection for the same name.
    pub(super) fn fork(&self) -> Near {
        let known = FxHashSet::default();
        Near { names: self.names.fork(), everywhere: self.everywhere, is_complete: true, known }
    }

    /// Returns `true` if no name was compared.
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Adds what others collected.
    pub(super) fn append(&mut self, other: Near) {
        self.is_complete &= other.is_complete;
        self.known.extend(other.known);
        self.names.append(other.names);
    }

    /// Compares a name that was not compared in earlier units or here; its key tells it from others.
    pub(super) fn add<'n>(
        &mut self,
        earlier: Option<&Near>,
        key: Key,
        name: impl FnOnce() -> Option<&'n [u8]>,
    ) {
        if !earlier.is_some_and(|earlier| earlier.known.contains(&key)) && self.known.insert(key) {
            name().into_iter().for_each(|name| self.names.add(name));
        }
    }

    /// Returns the names, the nearest first; `None` if a nearer one may have been passed over.
    pub(super) fn into_names(self) -> Option<Vec<String>> {
        self.is_complete.then(|| self.names.into_names())
    }
}

/// The collections that a walk over the types of a unit adds to.
pub(super) struct Collections<'c> {
    /// The definitions of C++ classes that are known, if others are added.
    pub(super) definitions: Option<&'c Definitions>,
    pub(super) defined: &'c mut Vec<Class>,
    /// The near names of earlier units.
    pub(super) earlier: Option<&'c Near>,
    pub(super) near: Option<&'c mut Near>,
}

impl Collections<'_> {
    /// Adds a type, if it is a record that is defined.
    pub(super) fn add<'a>(&mut self, ty: &Scoped<'a>, scopes: &Scopes<'_, 'a>) {
        if ty.is_declaration || !ty.is_record || self.definitions.is_none() && self.near.is_none() {
            return;
        }
        let (hash, named) = scopes.hash(ty.declared.outer, ty.declared.name);
        let key = hash.key();
        if !named || self.definitions.is_some_and(|definitions| definitions.has(key)) {
            return;
        }
        if self.definitions.is_some() && ty.is_shared_record(scopes) {
            self.defined.push(Class { place: ty.place, key, is_declaration: false });
        }
        if let Some(near) = &mut self.near {
            near.add(self.earlier, key, || scopes.string(Name::Stored(ty.declared.name?)));
        }
    }
}
