//! Classes that a unit only declares, as the loader asks for them.

use super::Loader;
use crate::dwarf::definitions::all_classes;
use crate::dwarf::entry::{Entries, Entry};
use crate::dwarf::offset::GlobalDieOffset;
use crate::dwarf::scopes::Key;
use crate::dwarf::tags::is_template_argument;
use crate::error::Result;
use gimli::constants;

/// The number of units whose records' names are kept: those asked for last.
const UNITS: usize = 32;

impl Loader<'_, '_> {
    /// Returns the DIE that defines a class which its unit only declares; none if it is not known. Before
    /// definitions are known, the need of one is noted.
    pub(in crate::dwarf) fn defined_elsewhere(
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
    pub(in crate::dwarf) fn one_for_all(
        &mut self,
        place: Option<GlobalDieOffset>,
    ) -> Result<Option<GlobalDieOffset>> {
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

    /// Returns `true` if the name of a class has the arguments of its template, or the class is no instance of one:
    /// otherwise two classes may share the name.
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
