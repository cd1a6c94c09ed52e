//! Source lines of places, from the line tables of those units that hold one.

use super::binaries::Binaries;
use super::names::NameId;
use super::profile::Profile;
use super::programs::{Debug, Program};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tallyline_debuginfo::program;

/// A file's path as debug information has it, and a line.
type Line = (String, u64);

/// Finds the source lines of some addresses of a program: the path of the file and the line.
pub fn source_lines(program: &Program, addresses: &[u64]) -> FxHashMap<u64, Line> {
    let mut addresses = addresses.to_vec();
    addresses.sort_unstable();
    addresses.dedup();
    program.debug.as_ref().map_or_else(FxHashMap::default, |debug| lines_of(debug, &addresses))
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
            Some((dso, lines_of(debug, &addresses)))
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

fn lines_of(debug: &Debug, addresses: &[u64]) -> FxHashMap<u64, Line> {
    program::source_lines(&debug.file, debug.companions.as_ref(), addresses)
}
