//! The reader of DWARF 2 to 5.
//!
//! Leaves are the file's parts ([`sections`], [`source`], [`abbreviations`], [`strings`]); [`units`] indexes the units
//! that they hold, [`context`] reads what a unit's other DIEs need, [`entry`] reads DIEs.
//!
//! Two passes. The first ([`scan`]) walks every unit in parallel and finds which entries define the
//! wanted types, equal ones once: of each it keeps an offset and a hash. The second ([`load`]) makes
//! types of those and of what they need, again in parallel, each worker with the entries of its own
//! units. So memory follows the types that are wanted, not the file.
//!
//! References are offsets in the section whatever unit they lead to, so nothing is merged for
//! units that refer to each other. A type that is only pointed to is read for its name. Companions
//! ([`split`] units, dwz's [`alternate`] file) are further sections whose offsets go on from those
//! of the file. dwz's partial units have the language and the name of a unit that [`imports`] them.

mod abbreviations;
mod alternate;
mod classes;
mod contents;
mod context;
mod debug_info;
mod definitions;
mod entry;
mod finish;
mod found;
mod hash;
mod hierarchy;
mod imports;
mod lists;
mod load;
mod near;
mod offset;
mod on_demand;
mod outlines;
mod position;
mod presence;
mod scan;
mod scan_deep;
mod scan_scoped;
mod scopes;
mod sections;
mod slice;
mod source;
mod split;
mod strings;
mod tags;
mod unit;
mod units;
mod variant;
mod virtual_bases;
mod windows;

pub(crate) use debug_info::UnitEntries;
pub(crate) use debug_info::with_debug_info;
pub use debug_info::{DebugInfo, TypeReader, VariablesOf};
pub(crate) use slice::Slice;

use crate::Request;
use crate::companion::Companions;
use crate::elf::{File, Naming};
use crate::error::{Error, Result};
use crate::model::{Origin, Types};
use definitions::Definitions;
use found::FoundDie;
use lists::LocationListSection;
use load::{Classes, Loaded, Loader};
use object::ReadRef;
use on_demand::OnDemand;
use rayon::prelude::*;
use scan::{KnownKeys, PriorScan};
use sections::{Reading, Sections};
use source::{Role, UnitSections};
use std::ops::ControlFlow;
use units::Units;
use windows::{Windows, WindowsResult};

/// Reads the requested types from the DWARF of an ELF file and its companion files (`.dwo`, `.dwp`, dwz's alternate
/// file). `naming` says which of the file's DWARF sections to use.
pub(crate) fn read<'a, R: ReadRef<'a>>(
    file: &File<'a, R>,
    naming: Naming,
    request: &Request,
    companions: &dyn Companions,
) -> Result<Types> {
    let mut parts = Vec::new();
    read_parts(file, naming, request, companions, &mut |part| {
        parts.push(part);
        ControlFlow::Continue(())
    })?;
    let mut parts = parts.into_iter();
    let mut types = parts.next().unwrap_or_else(|| Types::new(Origin::Dwarf, 8));
    parts.try_for_each(|part| types.append(part))?;
    types.shrink();
    Ok(types)
}

/// Reads the requested types from the DWARF of an ELF file and its companion files (`.dwo`, `.dwp`, dwz's alternate
/// file), and calls `each` with one part after the other in the order of the file, until it breaks. Equal types come
/// once.
pub(crate) fn read_parts<'a, R: ReadRef<'a>>(
    file: &File<'a, R>,
    naming: Naming,
    request: &Request,
    companions: &dyn Companions,
    each: &mut dyn FnMut(Types) -> ControlFlow<()>,
) -> Result<()> {
    match windows::read(file, naming, request, Windows::default(), each)? {
        WindowsResult::Done => Ok(()),
        WindowsResult::From(start) => {
            let _ = each(read_whole(file, naming, request, companions, start)?);
            Ok(())
        }
    }
}

/// Reads the wanted types from a place on, with all of the file at hand.
fn read_whole<'a, R: ReadRef<'a>>(
    file: &File<'a, R>,
    naming: Naming,
    request: &Request,
    companions: &dyn Companions,
    start: usize,
) -> Result<Types> {
    let reading = Reading { positions: request.positions, ..Reading::default() };
    let opened = with_units(file, naming, &reading, companions, |units| read_units(units, request, start))?;
    let WithCompanions { result: mut types, mut warnings, without_alternate, missing } = opened;
    if without_alternate && let Some(warning) = warnings.first_mut() {
        let left_out = alternate::leave_out_incomplete(&mut types);
        warning.push_str(&format!("; types in it are left out, and {left_out} that need it"));
    }
    warnings.extend(missing);
    if types.listed.is_empty() && !warnings.is_empty() {
        return Err(Error::Companion(warnings.join("; ")));
    }
    types.target = file.target();
    types.warnings.extend(warnings);
    Ok(types)
}

/// The result of reading a file's units, and the files that were missing.
struct WithCompanions<T> {
    /// The result of reading the units.
    result: T,
    /// Warnings about the alternate file.
    warnings: Vec<String>,
    /// `true` if the alternate file is missing.
    without_alternate: bool,
    /// A message about the missing split units.
    missing: Option<String>,
}

/// Opens the sections of an ELF file with DWARF, and of the files that belong to it.
fn with_units<'a, R: ReadRef<'a>, T>(
    file: &File<'a, R>,
    naming: Naming,
    reading: &Reading,
    companions: &dyn Companions,
    each: impl FnOnce(&Units<'_>) -> Result<T>,
) -> Result<WithCompanions<T>> {
    let role = if naming == Naming::Split { Role::Split } else { Role::Main };
    let mut warnings = Vec::new();
    let little_endian = file.is_little_endian();
    let (there, lists) = match reading.code {
        true => (OnDemand::find(file, naming)?, LocationListSection::find(file, naming)?),
        false => (None, None),
    };
    let mut left_out = Vec::new();
    left_out.extend(there.as_ref().map(|_| gimli::SectionId::DebugInfo));
    left_out.extend(lists.as_ref().map(|_| gimli::SectionId::DebugLocLists));
    let sections = Sections::load_without(&left_out, file, naming, reading)?;
    let mut units = match &there {
        Some(there) => Units::on_demand(
            UnitSections::without_units(&sections, role, there.size())?,
            there,
            little_endian,
        )?,
        None => Units::index(UnitSections::new(&sections, role, String::new(), 0)?, little_endian)?,
    };
    units.set_lists(lists.as_ref());

    let alternate = alternate::open(file, companions, &mut warnings)?;
    let alternate_sections = alternate.as_ref().and_then(|file| file.load(reading, &mut warnings));
    let skeletons = if role == Role::Main { split::skeletons(&units)? } else { Vec::new() };
    let mut missing = split::Missing::default();
    let opened = split::open(&skeletons, companions, &mut missing);
    let loaded = split::load(&opened, reading, &mut missing);

    // from here on it borrows from the companions too
    let mut units = units;
    let added = match (&alternate, &alternate_sections) {
        (Some(file), Some(sections)) => {
            let source = UnitSections::new(sections, Role::Alternate, file.name(), units.end())?;
            Some(units.add(source)?)
        }
        _ => None,
    };
    imports::connect(&mut units, added.as_ref()).map_err(|error| units.localized(error))?;
    split::add(&mut units, &skeletons, &loaded, &mut missing).map_err(|error| units.localized(error))?;
    let result = each(&units).map_err(|error| units.localized(error))?;
    let missing = missing.warning(skeletons.len());
    Ok(WithCompanions { result, warnings, without_alternate: alternate_sections.is_none(), missing })
}

fn read_units(units: &Units<'_>, request: &Request, start: usize) -> Result<Types> {
    let before = PriorScan {
        known: &KnownKeys::default(),
        outlines: None,
        definitions: None,
        presence: None,
        near: None,
    };
    let mut found = scan::scan(units, request, before)?.found;
    found.retain(|found| found.place.0 >= start);
    let mut types = Types::new(Origin::Dwarf, units.pointer_size());
    let mut parts = load_found(units, request, &found, Parts::OfUnits, Classes::OfTheirUnits)?;
    if units.has_undefined() {
        let definitions = Definitions::find(units)?;
        parts = load_found(units, request, &found, Parts::OfUnits, Classes::Defined(&definitions))?;
    }
    for part in parts {
        types.append(part.types)?;
    }
    types.shrink();
    Ok(types)
}

/// Makes types of what was found, in several parts. With all units at hand, what one of them only
/// declares is looked for in the others.
fn load_found(
    units: &Units<'_>,
    request: &Request,
    found: &[FoundDie],
    parts: Parts,
    classes: Classes<'_>,
) -> Result<Vec<Loaded>> {
    let load = |chunk| Loader::new(units, request).with(classes).load(chunk);
    chunks(found, parts).into_par_iter().map(load).collect()
}

/// The division of the found types into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parts {
    /// Between units: entries of one unit share types, which have one id then, and say of each other
    /// whether they are packed.
    OfUnits,
    /// Also in a unit that would leave workers without work. What its halves share is read for each.
    Even,
}

/// Fewer types are not worth another worker.
const FEW: usize = 256;

/// Cuts what was found into parts for the workers.
fn chunks(found: &[FoundDie], parts: Parts) -> Vec<&[FoundDie]> {
    let workers = rayon::current_num_threads();
    let size = found.len().div_ceil(workers * 4).max(64);
    let most = match parts {
        Parts::OfUnits => found.len(),
        Parts::Even => found.len().div_ceil(workers).max(FEW),
    };
    let mut chunks = Vec::new();
    let mut rest = found;
    while !rest.is_empty() {
        let mut end = size.min(rest.len());
        while end < rest.len().min(most) && rest[end].unit == rest[end - 1].unit {
            end += 1;
        }
        let (chunk, tail) = rest.split_at(end);
        chunks.push(chunk);
        rest = tail;
    }
    chunks
}

/// Returns an error at an offset of the units' section.
fn damaged(offset: usize, reason: impl ToString) -> Error {
    Error::Dwarf { section: ".debug_info", offset: offset as u64, reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_cut_between_units_and_evenly_only_where_that_is_asked_for() {
        let units = [10, 5000, 1, 1, 300, 0, 70];
        let of_unit = |(unit, count)| std::iter::repeat_n(FoundDie { unit, ..FoundDie::default() }, count);
        let found: Vec<FoundDie> = units.into_iter().enumerate().flat_map(of_unit).collect();
        for parts in [Parts::OfUnits, Parts::Even] {
            let chunks = chunks(&found, parts);
            assert_eq!(chunks.iter().map(|chunk| chunk.len()).sum::<usize>(), found.len());
            let ends = || chunks.windows(2).map(|pair| (pair[0].last(), pair[1].first()));
            let shared = ends().filter(|(end, start)| end.map(|one| one.unit) == start.map(|one| one.unit));
            let workers = rayon::current_num_threads();
            assert_eq!(shared.count() != 0, parts == Parts::Even && workers > 1, "{parts:?}");
            let even = found.len().div_ceil(workers).max(FEW);
            assert!(parts == Parts::OfUnits || chunks.iter().all(|chunk| chunk.len() <= even));
        }
    }
}
