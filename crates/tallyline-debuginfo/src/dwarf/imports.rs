//! Partial units, into which dwz moves what several units share, and the units that import them.
//!
//! A partial unit has neither language nor name: both are those of the units that import it.

use super::entry::{Entries, Entry, Step};
use super::units::{Importer, Units};
use crate::error::Result;
use gimli::{UnitType, constants};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The language of a unit, and the units that it imports.
#[derive(Default)]
struct Imports {
    language: u64,
    units: Vec<usize>,
}

/// Finds the units that import partial ones. Of the alternate file, whose units are `alternate`, adds those to the
/// order that are imported, by the file itself or by each other: the rest of them is of other files.
pub(super) fn connect(units: &mut Units<'_>, alternate: Option<&Range<usize>>) -> Result<()> {
    if alternate.is_none() && !has_partial_units(units) {
        return Ok(());
    }
    let order = units.order().to_vec();
    let all = order.par_iter().map(|unit| match imports(units, *unit) {
        // who reads the unit says what is wrong
        Err(_) if alternate.is_none() => Ok((*unit, Imports::default())),
        imports => imports.map(|imports| (*unit, imports)),
    });
    let mut all: FxHashMap<usize, Imports> = all.collect::<Result<_>>()?;
    if let Some(alternate) = alternate {
        add_imported(units, alternate, &mut all)?;
    }
    let mut importers = FxHashMap::default();
    for unit in order {
        if is_partial(units, unit) {
            continue;
        }
        let language = all.get(&unit).map_or(0, |imports| imports.language);
        let mut pending = vec![unit];
        while let Some(next) = pending.pop() {
            for imported in all.get(&next).map_or(&[][..], |imports| &imports.units) {
                if !importers.contains_key(imported) && is_partial(units, *imported) {
                    importers.insert(*imported, Importer { unit, language });
                    pending.push(*imported);
                }
            }
        }
    }
    units.set_importers(importers);
    Ok(())
}

/// Returns `true` if types are looked for in a partial unit.
pub(super) fn has_partial_units(units: &Units<'_>) -> bool {
    units.order().iter().any(|unit| is_partial(units, *unit))
}

/// Returns `true` if a unit is partial.
fn is_partial(units: &Units<'_>, unit: usize) -> bool {
    let header = &units.head(unit).header;
    match header.type_() {
        UnitType::Partial => true,
        UnitType::Compilation => {
            let root = if header.version() < 5 { units.root_abbreviation(unit).ok() } else { None };
            root.is_some_and(|root| root.tag == constants::DW_TAG_partial_unit)
        }
        _ => false,
    }
}

fn add_imported(
    units: &mut Units<'_>,
    alternate: &Range<usize>,
    all: &mut FxHashMap<usize, Imports>,
) -> Result<()> {
    let mut pending: Vec<usize> = all.values().flat_map(|imports| imports.units.iter().copied()).collect();
    let mut order = units.order().to_vec();
    let first = order.len();
    while let Some(unit) = pending.pop() {
        if alternate.contains(&unit) && !all.contains_key(&unit) {
            let imports = imports(units, unit)?;
            pending.extend(&imports.units);
            order.push(unit);
            all.insert(unit, imports);
        }
    }
    order[first..].sort_unstable();
    units.set_order(order);
    Ok(())
}

/// Returns the language of a unit, and the units that it imports at its top.
fn imports(units: &Units<'_>, unit: usize) -> Result<Imports> {
    let context = units.context(unit)?;
    let mut found = Imports { language: context.language, units: Vec::new() };
    let mut entry = Entry::default();
    let root = units.place(unit, units.get(unit).header.root_offset());
    let mut entries = Entries::at(units, unit, &context, root)?;
    if entries.is_empty() || !entries.read(&mut entry)? || !entry.has_children {
        return Ok(found);
    }
    while !entries.is_empty() && entries.depth() > 0 {
        match entries.read_if(&mut entry, |tag| tag == constants::DW_TAG_imported_unit)? {
            Step::End => {}
            // dwz writes all imports in front of the other children
            Step::Other => break,
            Step::Wanted => {
                let place = entry.target(units, unit, constants::DW_AT_import);
                found.units.extend(place.and_then(|place| units.index_of(place)));
                entries.skip_children(&mut entry)?;
            }
        }
    }
    Ok(found)
}
