//! Source lines of addresses, from the line tables of those units that hold one.

use super::dies::{Go, walk};
use super::unit::Unit;
use crate::companion::Companions;
use crate::dwarf::{DebugInfo, Slice};
use crate::with_debug_info;
use gimli::AttributeValue;
use gimli::constants;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fs::File;

/// A file's path as debug information has it, and a line.
type Line = (String, u64);

/// The depth of entries below a function's up to which inlined calls are looked for.
const CALLS_LIMIT: isize = 256;

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

/// Returns the source files and lines of the calls that were inlined around each of some code addresses (sorted), the
/// innermost first; addresses in no inlined code are not in the map.
pub fn inlined_call_lines(
    file: &File,
    companions: &dyn Companions,
    addresses: &[u64],
) -> FxHashMap<u64, Vec<Line>> {
    let found = with_debug_info(file, companions, |info| {
        let mut lines = FxHashMap::default();
        for unit in info.units() {
            if holds_one(info, *unit, addresses).is_ok_and(|holds| holds) {
                add_calls(info, *unit, addresses, &mut lines);
            }
        }
        lines.values_mut().for_each(|calls: &mut Vec<Line>| calls.reverse());
        Ok(lines)
    });
    found.map_or_else(|_| FxHashMap::default(), |(lines, _)| lines)
}

fn add_calls(
    info: &DebugInfo<'_, '_>,
    index: usize,
    addresses: &[u64],
    lines: &mut FxHashMap<u64, Vec<Line>>,
) {
    let Some(unit) = Unit::open(info, index) else { return };
    // lines stay with what a unit was split off from
    let (header, dwarf) = info.unit(info.skeleton(index).unwrap_or(index));
    let Ok(own) = dwarf.unit(*header) else { return };
    let Some(header) = own.line_program.as_ref().map(gimli::IncompleteLineProgram::header) else { return };
    let mut by_function: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for address in addresses {
        if let Some(function) = unit.function_at(*address) {
            by_function.entry(function).or_default().push(*address);
        }
    }
    for (function, addresses) in by_function {
        walk(info, index, &unit.entries, Some(unit.functions[function].offset), |entry| match entry.tag {
            constants::DW_TAG_subprogram if entry.depth > 0 => Go::Past,
            constants::DW_TAG_subprogram | constants::DW_TAG_lexical_block => Go::Inside,
            constants::DW_TAG_inlined_subroutine => {
                let ranges = entry.ranges(unit.dwarf(), &unit.unit);
                let mut inside: Vec<u64> = Vec::new();
                for range in ranges {
                    let first = addresses.partition_point(|address| *address < range.start);
                    let of_range = addresses[first..].iter().take_while(|address| **address < range.end);
                    inside.extend(of_range);
                }
                inside.sort_unstable();
                inside.dedup();
                let file = match entry.value(constants::DW_AT_call_file).filter(|_| !inside.is_empty()) {
                    Some(AttributeValue::FileIndex(index)) => Some(index),
                    value => value.and_then(|value| value.udata_value()),
                };
                let path = file.and_then(|file| path_of(dwarf, &own, header, file));
                if let (Some(path), Some(line)) = (path, entry.number(constants::DW_AT_call_line)) {
                    for address in &inside {
                        // outer ones come first
                        lines.entry(*address).or_default().push((path.clone(), line));
                    }
                }
                match inside.is_empty() || entry.depth >= CALLS_LIMIT {
                    true => Go::Past,
                    false => Go::Inside,
                }
            }
            _ => Go::Past,
        });
    }
}

/// Returns `true` if a unit's code includes one of some sorted addresses.
fn holds_one(info: &DebugInfo<'_, '_>, index: usize, addresses: &[u64]) -> gimli::Result<bool> {
    // ranges stay with what a unit was split off from
    let (header, dwarf) = info.unit(info.skeleton(index).unwrap_or(index));
    let unit = dwarf.unit(*header)?;
    let mut ranges = dwarf.unit_ranges(&unit)?;
    while let Some(range) = ranges.next()? {
        let first = addresses.partition_point(|address| *address < range.begin);
        if addresses.get(first).is_some_and(|address| *address < range.end) {
            return Ok(true);
        }
    }
    Ok(false)
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
    let holds_one = holds_one(info, index, addresses)?;
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
