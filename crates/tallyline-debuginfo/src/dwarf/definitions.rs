//! Classes that a unit only declares, although one of its own classes holds or extends them: compilers
//! leave the definition out where another unit is sure to have it (clang does by default). They are
//! found there by their name with all of its scopes, which C++ says is one class in all of a program.

use super::entry::{Entries, Entry};
use super::load::Loader;
use super::scan_scoped::{Class, Key, classes};
use super::units::{GlobalDieOffset, Units};
use crate::error::Result;
use gimli::constants;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// The definitions of the classes of all units, by name.
#[derive(Default)]
pub(super) struct Definitions(FxHashMap<Key, GlobalDieOffset>);

impl Definitions {
    /// Adds the definitions of later units; the first one of each name stays.
    pub(super) fn add(&mut self, classes: impl IntoIterator<Item = Class>) {
        for class in classes {
            self.0.entry(class.key).or_insert(class.place);
        }
    }

    /// Returns whether a class of this name is known.
    pub(super) fn has(&self, key: Key) -> bool {
        self.0.contains_key(&key)
    }

    /// Looks for them.
    pub(super) fn find(units: &Units<'_>) -> Result<Definitions> {
        let parts = units.order().par_iter().map(|unit| all_classes(units, *unit));
        let mut all = Definitions::default();
        for classes in parts.collect::<Result<Vec<_>>>()? {
            all.add(classes.into_iter().filter(|class| !class.is_declaration));
        }
        Ok(all)
    }
}

/// The classes of a unit, by name.
fn all_classes(units: &Units<'_>, unit: usize) -> Result<Vec<Class>> {
    let context = units.context(unit)?;
    if context.is_cpp() { classes(units, unit, &context) } else { Ok(Vec::new()) }
}

/// Of how many units the names of records are kept.
const UNITS: usize = 32;

/// The names of the records of units that were asked about last.
pub(super) type Names = FxHashMap<usize, FxHashMap<GlobalDieOffset, Key>>;

impl Loader<'_, '_> {
    /// Returns the DIE that defines a class which its unit only declares; none if it is not known. Before
    /// definitions are known, the need of one is noted.
    pub(super) fn defined_elsewhere(
        &mut self,
        unit: usize,
        place: GlobalDieOffset,
    ) -> Result<Option<GlobalDieOffset>> {
        if self.definitions.is_none() {
            self.units.note_undefined();
        }
        self.definition_of(unit, place)
    }

    /// Returns the one definition, for all units, of a class, so that it is one class in all of them.
    pub(super) fn one_for_all(&mut self, place: Option<GlobalDieOffset>) -> Result<Option<GlobalDieOffset>> {
        let unit = place.and_then(|place| self.units.index_of(place));
        let (Some(unit), Some(there)) = (unit, place) else { return Ok(place) };
        Ok(self.definition_of(unit, there)?.or(place))
    }

    fn definition_of(&mut self, unit: usize, place: GlobalDieOffset) -> Result<Option<GlobalDieOffset>> {
        let Some(definitions) = self.definitions else { return Ok(None) };
        let there = self.key_of(unit, place)?.and_then(|key| definitions.0.get(&key).copied());
        match there {
            Some(there) if self.is_named_in_full(there)? => Ok(Some(there)),
            _ => Ok(None),
        }
    }

    /// Returns the key that stands for the name of a class.
    fn key_of(&mut self, unit: usize, place: GlobalDieOffset) -> Result<Option<Key>> {
        if !self.names.contains_key(&unit) {
            if self.names.len() >= UNITS {
                self.names.clear();
            }
            let names = all_classes(self.units, unit)?;
            self.names.insert(unit, names.into_iter().map(|class| (class.place, class.key)).collect());
        }
        Ok(self.names.get(&unit).and_then(|names| names.get(&place)).copied())
    }

    /// Returns whether the arguments of a template are part of the name of a class: otherwise two may share
    /// it.
    fn is_named_in_full(&mut self, place: GlobalDieOffset) -> Result<bool> {
        if !self.units.has(place) {
            return Ok(false);
        }
        let Some(unit) = self.units.index_of(place) else { return Ok(false) };
        let context = self.context(unit)?;
        let mut entry = Entry::default();
        let mut entries = Entries::at(self.units, unit, &context, place)?;
        if entries.is_empty() || !entries.read(&mut entry)? {
            return Ok(false);
        }
        let name = entry.string(self.units, unit, &context, constants::DW_AT_name).unwrap_or_default();
        if name.contains(&b'<') || !entry.has_children {
            return Ok(true);
        }
        while !entries.is_empty() && entries.depth() > 0 {
            self.spend(1)?;
            let depth = entries.depth();
            if entries.read(&mut entry)? && depth == 1 && is_template_argument(entry.tag) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns whether a tag is that of a template argument, of the template that the parent is an instance of.
pub(super) fn is_template_argument(tag: constants::DwTag) -> bool {
    matches!(
        tag,
        constants::DW_TAG_template_type_parameter
            | constants::DW_TAG_template_value_parameter
            | constants::DW_TAG_GNU_template_template_param
            | constants::DW_TAG_GNU_template_parameter_pack
    )
}
