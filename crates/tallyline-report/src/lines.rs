//! Source lines of places, from the line tables of those units that hold one.

use super::binaries::Binaries;
use super::index::PlaceId;
use super::profile::Symbol;
use super::programs::{Debug, Program};
use super::samples::Samples;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tallyline_debuginfo::program;
use tallyline_perf_data::spaces::DsoId;

/// A file's path as debug information has it, and a line.
type Line = (String, u64);

/// Looks up the source file and line of some code addresses (as linked) of a program; those without one are absent
/// from the map.
pub fn source_lines(program: &Program, addresses: &[u64]) -> FxHashMap<u64, Line> {
    let mut addresses = addresses.to_vec();
    addresses.sort_unstable();
    addresses.dedup();
    program.debug.as_ref().map_or_else(FxHashMap::default, |debug| lines_of(debug, &addresses))
}

/// Looks up the source files and lines of the calls that were inlined around some code addresses (as linked) of a
/// program, the innermost first; addresses in no inlined code are absent from the map.
pub fn inlined_call_lines(program: &Program, addresses: &[u64]) -> FxHashMap<u64, Vec<Line>> {
    let mut addresses = addresses.to_vec();
    addresses.sort_unstable();
    addresses.dedup();
    program.debug.as_ref().map_or_else(FxHashMap::default, |debug| {
        program::inlined_call_lines(&debug.file, debug.companions.as_ref(), &addresses)
    })
}

/// Finds source files and lines. A place without one gets its symbol, as in perf.
pub(super) fn look_up(samples: &mut Samples, symbols: &[Symbol], binaries: &Binaries) {
    let mut wanted: FxHashMap<DsoId, Vec<u64>> = FxHashMap::default();
    for (_, place, address) in samples.places.linked() {
        if let Some(dso) = place.dso {
            wanted.entry(dso).or_default().push(address);
        }
    }
    let found: FxHashMap<DsoId, FxHashMap<u64, Line>> = wanted
        .into_par_iter()
        .filter_map(|(dso, mut addresses)| {
            let debug = binaries.get(dso)?.debug.as_ref()?;
            addresses.sort_unstable();
            addresses.dedup();
            Some((dso, lines_of(debug, &addresses)))
        })
        .collect();
    let mut lines = Vec::with_capacity(samples.places.len());
    for (id, place, address) in samples.places.linked() {
        let line = place.dso.and_then(|dso| found.get(&dso)?.get(&address));
        let (file, text) = match line {
            Some((path, line)) => {
                // without its folders, as perf shows it
                let file = path.rsplit('/').next().unwrap_or_default();
                (file, format!("{file}:{line}"))
            }
            None => (".", without_line(samples, symbols, id)),
        };
        lines.push((file.to_owned(), text));
    }
    let names = &mut samples.names;
    let lines = lines.iter().map(|(file, line)| (names.intern(file), names.intern(line))).collect();
    samples.places.set_lines(lines);
}

fn without_line(samples: &Samples, symbols: &[Symbol], id: PlaceId) -> String {
    let resolved = samples.at(id);
    match resolved.symbol.and_then(|symbol| symbols.get(symbol.position())) {
        Some(symbol) if symbol.is_known => {
            format!("{}+{}", samples.names.get(symbol.name), resolved.address.wrapping_sub(symbol.start))
        }
        _ => format!("{}[{:x}]", samples.dso_name(samples.places.get(id).dso), resolved.address),
    }
}

fn lines_of(debug: &Debug, addresses: &[u64]) -> FxHashMap<u64, Line> {
    program::source_lines(&debug.file, debug.companions.as_ref(), addresses)
}
