//! Source lines of places, from the line tables of those units that hold one.

use super::names::NameId;
use super::profile::Profile;
use super::programs::{Debug, Program};
use super::resolve::Binaries;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tallyline_debuginfo::{DebugInfo, Slice, explore};

/// A file's path as debug information has it, and a line.
type Line = (String, u64);

/// Finds the source lines of some addresses of a program: the path of the file and the line.
pub fn source_lines(program: &Program, addresses: &[u64]) -> FxHashMap<u64, Line> {
    let mut addresses = addresses.to_vec();
    addresses.sort_unstable();
    addresses.dedup();
    program.debug.as_ref().map_or_else(FxHashMap::default, |debug| in_file(debug, &addresses))
}

/// Fills in source files and lines. A place without one gets its symbol, as in perf.
pub(super) fn look_up(profile: &mut Profile, binaries: &Binaries) {
    let mut wanted: FxHashMap<u32, Vec<u64>> = FxHashMap::default();
    for (place, resolved) in profile.places.iter().zip(&profile.resolved) {
        wanted.entry(place.dso).or_default().push(resolved.address);
    }
    let found: FxHashMap<u32, FxHashMap<u64, Line>> = wanted
        .into_par_iter()
        .filter_map(|(dso, mut addresses)| {
            let debug = binaries.get(dso)?.debug.as_ref()?;
            addresses.sort_unstable();
            addresses.dedup();
            Some((dso, in_file(debug, &addresses)))
        })
        .collect();
    for index in 0..profile.places.len() {
        let (place, resolved) = (profile.places[index], profile.resolved[index]);
        let line = found.get(&place.dso).and_then(|lines| lines.get(&resolved.address));
        let (file, line) = match line {
            Some((path, line)) => {
                // without its folders, as perf shows it
                let file = path.rsplit('/').next().unwrap_or_default();
                (profile.names.intern(file), profile.names.intern(&format!("{file}:{line}")))
            }
            None => without_line(profile, index),
        };
        profile.resolved[index].source_file = file;
        profile.resolved[index].source_line = line;
    }
}

fn without_line(profile: &mut Profile, index: usize) -> (NameId, NameId) {
    let (place, resolved) = (profile.places[index], profile.resolved[index]);
    let text = match profile.symbol(resolved.symbol) {
        Some(symbol) if symbol.is_known => {
            format!("{}+{}", profile.text(symbol.name), resolved.address.wrapping_sub(symbol.start))
        }
        _ => format!("{}[{:x}]", profile.dso_name(place.dso), resolved.address),
    };
    (profile.names.intern("."), profile.names.intern(&text))
}

/// The lines of some addresses of one file; a damaged table has none.
fn in_file(debug: &Debug, addresses: &[u64]) -> FxHashMap<u64, Line> {
    let found = explore(&debug.file, debug.companions.as_ref(), |info| {
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

/// The path of a source file.
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
