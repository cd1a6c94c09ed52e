//! The reader of DWARF 2 to 5.
//!
//! Two passes. The first ([`scan`]) walks every unit in parallel and finds which entries define the
//! wanted types, equal ones once: of each it keeps an offset and a hash. The second ([`load`]) makes
//! types of those and of what they need, again in parallel, each worker with the entries of its own
//! units. So memory follows the types that are wanted, not the file.
//!
//! References are offsets in the section whatever unit they lead to, so nothing is merged for
//! units that refer to each other. A type that is only pointed to is read for its name.

mod entry;
mod finish;
mod load;
mod member;
mod position;
mod scan;
mod sections;
mod units;
mod variant;

use crate::Request;
use crate::elf::File;
use crate::error::{Error, Result};
use crate::model::{Origin, Types};
use load::Loader;
use object::ReadRef;
use rayon::prelude::*;
use scan::Found;
use sections::Sections;
use units::Units;

/// What gimli reads from: a slice of a section, with the byte order of the file.
type Slice<'a> = gimli::EndianSlice<'a, gimli::RunTimeEndian>;

/// Reads the wanted types of an ELF file with DWARF.
pub(crate) fn read<'a, R: ReadRef<'a>>(file: &File<'a, R>, request: &Request) -> Result<Types> {
    let sections = Sections::load(file, request.positions)?;
    let dwarf = sections.dwarf();
    let units = Units::index(&dwarf, file.is_little_endian())?;
    let found = scan::scan(&units, request)?;
    let mut types = Types::new(Origin::Dwarf, units.pointer_size());
    let parts = chunks(&found)
        .into_par_iter()
        .map(|chunk| Loader::new(&units, request.positions).load(chunk))
        .collect::<Result<Vec<_>>>()?;
    for part in parts {
        types.append(part)?;
    }
    types.target = file.target();
    types.warnings.extend(units.warnings());
    types.shrink();
    Ok(types)
}

/// Cuts what was found into parts for the workers, between units: entries of one unit share types.
fn chunks(found: &[Found]) -> Vec<&[Found]> {
    let wanted = rayon::current_num_threads() * 4;
    let size = found.len().div_ceil(wanted).max(64);
    let mut chunks = Vec::new();
    let mut rest = found;
    while !rest.is_empty() {
        let mut end = size.min(rest.len());
        while end < rest.len() && rest[end].unit == rest[end - 1].unit {
            end += 1;
        }
        let (chunk, tail) = rest.split_at(end);
        chunks.push(chunk);
        rest = tail;
    }
    chunks
}

/// An error at an offset of the units' section.
fn damaged(offset: usize, reason: impl ToString) -> Error {
    Error::Dwarf { section: ".debug_info", offset: offset as u64, reason: reason.to_string() }
}
