//! Classes that a unit only declares, although one of its own classes holds or extends them: compilers
//! leave the definition out where another unit is sure to have it (clang does by default). They are
//! found there by their name with all of its scopes, which C++ says is one class in all of a program.

use super::offset::GlobalDieOffset;
use super::scopes::{Class, Key, classes};
use super::units::Units;
use crate::error::Result;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// The definitions of the classes of all units, by name.
#[derive(Default)]
pub(super) struct Definitions(pub(super) FxHashMap<Key, GlobalDieOffset>);

impl Definitions {
    /// Adds the definitions of later units; the first one of each name stays.
    pub(super) fn add(&mut self, classes: impl IntoIterator<Item = Class>) {
        for class in classes {
            self.0.entry(class.key).or_insert(class.place);
        }
    }

    /// Returns `true` if the definition of a class of this name is known.
    pub(super) fn has(&self, key: Key) -> bool {
        self.0.contains_key(&key)
    }

    /// Finds the definitions of the classes of all units.
    pub(super) fn find(units: &Units<'_>) -> Result<Definitions> {
        let parts = units.order().par_iter().map(|unit| all_classes(units, *unit));
        let mut all = Definitions::default();
        for classes in parts.collect::<Result<Vec<_>>>()? {
            all.add(classes.into_iter().filter(|class| !class.is_declaration));
        }
        Ok(all)
    }
}

/// Returns the classes of a unit, by name.
pub(super) fn all_classes(units: &Units<'_>, unit: usize) -> Result<Vec<Class>> {
    let context = units.context(unit)?;
    if context.is_cpp() { classes(units, unit, &context) } else { Ok(Vec::new()) }
}

/// The names of the records of units that were asked about last.
pub(super) type Names = FxHashMap<usize, FxHashMap<GlobalDieOffset, Key>>;
