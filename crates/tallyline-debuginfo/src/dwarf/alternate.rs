//! The alternate file, into which dwz moves what several files share.

use super::entry::{Entries, Entry, Step};
use super::sections::{Reading, Sections};
use super::units::Units;
use crate::companion::{Companion, Companions, Contents, looked_in};
use crate::elf::{self, File, Naming};
use crate::error::Result;
use crate::model::{Type, TypeId, Types};
use gimli::constants;
use object::ReadRef;
use rayon::prelude::*;
use std::ops::Range;

/// A debug file's alternate file, opened.
pub(super) struct OpenedAlternate {
    contents: Contents,
    wanted: elf::Alternate,
}

/// Opens the file that a file's types are in too; none if there is none. One that is missing is a
/// warning.
pub(super) fn open<'a, R: ReadRef<'a>>(
    file: &File<'a, R>,
    companions: &dyn Companions,
    warnings: &mut Vec<String>,
) -> Result<Option<OpenedAlternate>> {
    let Some(wanted) = file.alternate()? else { return Ok(None) };
    let companion = Companion::Alternate { name: &wanted.name, build_id: &wanted.build_id };
    match companions.open(companion) {
        Ok(contents) => Ok(Some(OpenedAlternate { contents, wanted })),
        Err(places) => {
            warnings.push(format!("what dwz took out is missing: {}{}", wanted.name(), looked_in(&places)));
            Ok(None)
        }
    }
}

impl OpenedAlternate {
    /// Reads the sections; none, and a warning, if the file is not the one that is wanted.
    pub(super) fn load(&self, reading: &Reading, warnings: &mut Vec<String>) -> Option<Sections<'_>> {
        let name = self.wanted.name();
        let problem = match Sections::of(&self.contents, Naming::Plain, reading) {
            Ok(sections) if sections.id.as_deref() == Some(&self.wanted.build_id[..]) => {
                return Some(sections);
            }
            Ok(_) => "it is of another build".to_string(),
            Err(error) => error.to_string(),
        };
        warnings.push(format!("what dwz took out is missing: {name}: {problem}"));
        None
    }

    /// Returns the name of the file.
    pub(super) fn name(&self) -> String {
        self.wanted.name()
    }
}

/// The depth to which anonymous records are searched.
const DEPTH: usize = 16;

/// Takes from the list what has members whose types are in the missing file: their sizes would be
/// 0, and the layout a wrong one. How many those are.
pub(super) fn leave_out_incomplete(types: &mut Types) -> usize {
    let keep: Vec<bool> = types.listed.iter().map(|id| is_complete(types, *id, DEPTH)).collect();
    let mut kept = keep.iter();
    types.listed.retain(|_| kept.next() == Some(&true));
    let mut kept = keep.iter();
    types.sources.retain(|_| kept.next() == Some(&true));
    keep.iter().filter(|kept| !**kept).count()
}

fn is_complete(types: &Types, id: TypeId, depth: usize) -> bool {
    let id = types.strip(id);
    match types.get(id) {
        Type::Missing => false,
        Type::Array(array) if depth != 0 => is_complete(types, types.array(array).of, depth - 1),
        Type::Record(record) if depth != 0 && (depth == DEPTH || !types.type_name(id).is_some()) => {
            types.members(types.record(record)).iter().all(|member| is_complete(types, member.ty, depth - 1))
        }
        _ => true,
    }
}

/// Adds the units of the other file that are imported, by the file itself or by each other: the
/// rest of them is of other files.
pub(super) fn add_imported(units: &mut Units<'_>, added: &Range<usize>) -> Result<()> {
    let direct = units.order().par_iter().map(|unit| imports(units, *unit)).collect::<Result<Vec<_>>>()?;
    let mut pending: Vec<usize> = direct.into_iter().flatten().collect();
    let mut seen = vec![false; added.len()];
    let mut order = units.order().to_vec();
    let first = order.len();
    while let Some(unit) = pending.pop() {
        let Some(index) = unit.checked_sub(added.start).filter(|index| *index < seen.len()) else { continue };
        if !std::mem::replace(&mut seen[index], true) {
            order.push(unit);
            pending.extend(imports(units, unit)?);
        }
    }
    order[first..].sort_unstable();
    units.set_order(order);
    Ok(())
}

/// Returns the units that a unit imports at its top.
fn imports(units: &Units<'_>, unit: usize) -> Result<Vec<usize>> {
    let mut found = Vec::new();
    let context = units.context(unit)?;
    let mut entry = Entry::default();
    let root = units.place(unit, units.get(unit).header.root_offset());
    let mut entries = Entries::at(units, unit, &context, root)?;
    if entries.is_empty() || !entries.read(&mut entry)? || !entry.has_children {
        return Ok(found);
    }
    while !entries.is_empty() && entries.depth() > 0 {
        match entries.read_if(&mut entry, |tag| tag == constants::DW_TAG_imported_unit)? {
            Step::End => {}
            Step::Other => entries.skip_children(&mut entry)?,
            Step::Wanted => {
                let place = entry.target(units, unit, constants::DW_AT_import);
                found.extend(place.and_then(|place| units.index_of(place)));
                entries.skip_children(&mut entry)?;
            }
        }
    }
    Ok(found)
}
