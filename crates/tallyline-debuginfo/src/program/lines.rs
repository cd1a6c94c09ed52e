//! Source lines of addresses, from the line tables of those units that hold one.

use crate::companion::Companions;
use crate::dwarf::{DebugInfo, Slice};
use crate::with_debug_info;
use rustc_hash::FxHashMap;
use std::fs::File;

/// A file's path as debug information has it, and a line.
type Line = (String, u64);

/// Returns the source file and line of each of some code addresses (sorted), from a program's line tables; addresses
/// without one are not in the map.
pub fn source_lines(file: &File, companions: &dyn Companions, addresses: &[u64]) -> FxHashMap<u64, Line> {
    let found = with_debug_info(file, companions, |info| {
        let mut lines = FxHashMap::default();
        for unit in info.units() {
            // what a unit lacks, the others may have
            let _ = in_unit(info, *unit, addresses, &mut lines);
        }
        Ok(lines)
    });
    found.map_or_else(|_| FxHashMap::default(), |(lines, _)| lines)
}

fn in_unit(
    info: &DebugInfo<'_, '_>,
    index: usize,
    addresses: &[u64],
    lines: &mut FxHashMap<u64, Line>,
) -> gimli::Result<()> {
    // lines and ranges stay with what a unit was split off from
    let (header, dwarf) = info.unit(info.skeleton(index).unwrap_or(index));
    let unit = dwarf.unit(*header)?;
    let mut ranges = dwarf.unit_ranges(&unit)?;
    let mut holds_one = false;
    while let Some(range) = ranges.next()? {
        let first = addresses.partition_point(|address| *address < range.begin);
        holds_one |= addresses.get(first).is_some_and(|address| *address < range.end);
    }
    let Some(program) = unit.line_program.clone().filter(|_| holds_one) else { return Ok(()) };
    let mut rows = program.rows();
    let mut before: Option<(u64, u64, u64)> = None;
    while let Some((header, row)) = rows.next_row()? {
        if let Some((start, file, line)) = before {
            let first = addresses.partition_point(|address| *address < start);
            for address in addresses[first..].iter().take_while(|address| **address < row.address()) {
                if let Some(name) = path_of(dwarf, &unit, header, file) {
                    lines.insert(*address, (name, line));
                }
            }
        }
        let line = row.line().map_or(0, std::num::NonZeroU64::get);
        before = (!row.end_sequence()).then(|| (row.address(), row.file_index(), line));
    }
    Ok(())
}

/// Returns the path of a source file.
fn path_of<'a>(
    dwarf: &gimli::Dwarf<Slice<'a>>,
    unit: &gimli::Unit<Slice<'a>>,
    header: &gimli::LineProgramHeader<Slice<'a>>,
    index: u64,
) -> Option<String> {
    let file = header.file(index)?;
    let text =
        |value| Some(String::from_utf8_lossy(dwarf.attr_string(unit, value).ok()?.slice()).into_owned());
    let mut path = text(file.path_name())?;
    let folder = file.directory(header).and_then(text);
    let own = unit.comp_dir.as_ref().map(|folder| String::from_utf8_lossy(folder.slice()).into_owned());
    for folder in folder.into_iter().chain(own) {
        if !path.starts_with('/') {
            path = format!("{folder}/{path}");
        }
    }
    Some(path)
}
