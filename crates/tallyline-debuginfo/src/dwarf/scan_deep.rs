//! The first pass where more is wanted than the named records at the top of units: those inside of
//! others, those without a name, and enumerations by their constants.

use super::entry::{Entries, Entry, Step};
use super::found::FoundDie;
use super::hash::Hash;
use super::offset::GlobalDieOffset;
use super::scan::{Scanner, walk_children};
use super::tags::is_record;
use super::units::Context;
use crate::Request;
use crate::error::Result;
use gimli::constants;
use rustc_hash::FxHashMap;
use std::hash::Hasher;

/// A record that is being looked at, and how deep it is.
struct Open {
    place: GlobalDieOffset,
    depth: isize,
    /// `true` if it is declared at the top of its unit, or of a module.
    is_global: bool,
}

impl Scanner<'_, '_> {
    /// Finds all records of a unit, inner ones before the records that contain them.
    pub(super) fn all_records(&mut self, unit: usize, context: &Context, request: &Request) -> Result<()> {
        let mut entry = Entry::default();
        let root = self.units.place(unit, self.units.get(unit).header.root_offset());
        let mut entries = Entries::at(self.units, unit, context, root)?;
        let mut aliases: FxHashMap<GlobalDieOffset, GlobalDieOffset> = FxHashMap::default();
        let mut open: Vec<Open> = Vec::new();
        let mut closed: Vec<Open> = Vec::new();
        // modules of Fortran add no depth: what they declare is global
        let mut modules: Vec<isize> = Vec::new();
        let of_interest =
            |tag| is_record(tag) || matches!(tag, constants::DW_TAG_typedef | constants::DW_TAG_module);
        while !entries.is_empty() {
            let (place, depth) = (entries.place(), entries.depth());
            while let Some(last) = open.pop_if(|last| last.depth >= depth) {
                closed.push(last);
            }
            while modules.pop_if(|module| *module >= depth).is_some() {}
            if entries.read_if(&mut entry, of_interest)? != Step::Wanted {
                continue;
            }
            if entry.tag == constants::DW_TAG_module {
                if entry.has_children {
                    modules.push(depth);
                }
                continue;
            }
            if !is_record(entry.tag) {
                if let Some(target) = entry.target(self.units, unit, constants::DW_AT_type) {
                    aliases.entry(target).or_insert(place);
                }
                continue;
            }
            open.push(Open { place, depth, is_global: depth == 1 + modules.len() as isize });
        }
        closed.extend(open.into_iter().rev());
        for item in closed {
            if item.is_global || request.inner {
                self.one(unit, context, &item, request, &aliases)?;
            }
        }
        Ok(())
    }

    fn one(
        &mut self,
        unit: usize,
        context: &Context,
        item: &Open,
        request: &Request,
        aliases: &FxHashMap<GlobalDieOffset, GlobalDieOffset>,
    ) -> Result<()> {
        let mut entry = Entry::default();
        let mut entries = Entries::at(self.units, unit, context, item.place)?;
        entries.read(&mut entry)?;
        let found = self.record(unit, context, item.place, &mut entries, &mut entry)?;
        if let Some(found) = found.filter(|found| found.named || request.anonymous) {
            let alias = if found.named { None } else { aliases.get(&item.place).copied() };
            self.add(FoundDie { top_level: item.is_global, alias, ..found });
        }
        Ok(())
    }

    /// Finds the enumerations of a unit that have a constant of this name.
    pub(super) fn enumerations(&mut self, unit: usize, context: &Context, wanted: &[u8]) -> Result<()> {
        let units = self.units;
        let mut entry = Entry::default();
        let root = units.place(unit, units.get(unit).header.root_offset());
        let mut entries = Entries::at(units, unit, context, root)?;
        while !entries.is_empty() {
            let (place, depth) = (entries.place(), entries.depth());
            let is_enumeration = |tag| tag == constants::DW_TAG_enumeration_type;
            if entries.read_if(&mut entry, is_enumeration)? != Step::Wanted {
                continue;
            }
            let name = self.name(unit, context, &entry);
            let mut hash = Hash::default();
            hash.write(name.unwrap_or_default());
            let mut has_it = false;
            walk_children(&mut entries, &mut entry, |_, child| {
                if let Some(name) = child.string(units, unit, context, constants::DW_AT_name) {
                    has_it |= name == wanted;
                    hash.write(name);
                    child.hash_numbers(&[constants::DW_AT_const_value], &mut hash);
                }
            })?;
            if has_it {
                let (named, top_level) = (name.is_some(), depth == 1);
                let key = hash.key();
                self.add(FoundDie { unit, place, top_level, named, key, ..FoundDie::default() });
            }
        }
        Ok(())
    }
}
