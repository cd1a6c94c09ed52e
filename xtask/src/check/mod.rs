//! Ratchets: properties of the sources as numbers that may only go down.

mod cycles;
mod docs;
mod foreign;
mod length;
mod public;
mod record;
mod since;
mod timed;
mod tree;

use crate::source::{self, Sources};
use anyhow::Result;
use std::path::Path;

/// The file of the recorded numbers, relative to the root.
const RECORD: &str = "xtask/ratchets.toml";

/// The most places that are listed where the newer ones are not known.
const MAX_SHOWN: usize = 40;

/// The sources as the checks see them.
struct Tree<'a> {
    /// The root of the workspace.
    root: &'a Path,
    /// Its crates.
    sources: Sources,
}

/// A measured number.
struct Measure {
    /// The ratchet's name in the record.
    name: &'static str,
    /// The subject of the number, in the plural.
    title: &'static str,
    /// The number.
    count: usize,
    /// The places that are counted, each as `file:line: text` where there is a file.
    places: Vec<String>,
    /// A line that says more than the number.
    note: Option<String>,
}

/// Measures everything and compares it with the record. With `record`, numbers that went down are
/// written to it; `list` names a ratchet whose places are printed.
pub(crate) fn run(root: &Path, record: bool, list: Option<&str>) -> Result<()> {
    let tree = Tree { root, sources: source::load(root)? };
    let config = record::Config::read(&root.join(RECORD))?;
    let mut measures = docs::measure(&tree)?;
    measures.extend(cycles::measure(&tree.sources));
    measures.extend(foreign::measure(&tree, &config)?);
    measures.extend(public::measure(&tree.sources, &config));
    measures.push(length::measure(&tree)?);
    measures.push(timed::measure(&tree)?);
    measures.extend(tree::measure(&tree)?);
    if let Some(name) = list {
        let wanted = measures.iter().find(|measure| measure.name == name);
        let wanted = wanted.ok_or_else(|| anyhow::anyhow!("no ratchet is called {name}"))?;
        wanted.places.iter().for_each(|place| println!("{place}"));
    }
    let verdicts = record::compare(&measures, &config);
    let went_up = verdicts.iter().any(|verdict| matches!(verdict, record::Verdict::Higher(_)));
    // without the history, as in a shallow clone, all places are the ones
    let added = if went_up { since::Added::since(root, RECORD).ok() } else { None };
    for (measure, verdict) in measures.iter().zip(&verdicts) {
        print!("{:>6}  {} ({})", measure.count, measure.title, measure.name);
        if let Some(target) = config.target(measure.name) {
            print!(", target {target}");
        }
        println!("{}", measure.note.as_ref().map_or(String::new(), |note| format!("; {note}")));
        if let record::Verdict::Higher(recorded) = verdict {
            println!("        higher than the recorded {recorded}:");
            let (places, more) = offending(&measure.places, measure.count - recorded, added.as_ref());
            places.iter().for_each(|place| println!("        {}", place.trim_start()));
            if more > 0 {
                println!("        and {more} more: cargo xtask check --list {}", measure.name);
            }
        }
    }
    if record {
        record::write(&root.join(RECORD), &measures, &config)?;
    }
    record::conclude(&measures, &verdicts, record)
}

/// Returns the places on lines that are newer than the record; where these are fewer than the number went up
/// by, the first of all. The second value is the number of those left out.
fn offending<'a>(places: &'a [String], up: usize, added: Option<&since::Added>) -> (Vec<&'a str>, usize) {
    let newer = |place: &&String| added.is_some_and(|added| added.has(place));
    let new: Vec<&str> = places.iter().filter(newer).map(String::as_str).collect();
    if new.len() >= up {
        return (new, 0);
    }
    let first: Vec<&str> = places.iter().take(MAX_SHOWN).map(String::as_str).collect();
    let more = places.len() - first.len();
    (first, more)
}

#[cfg(test)]
mod tests {
    use super::{MAX_SHOWN, offending};

    #[test]
    fn without_newer_lines_the_first_places_are_listed() {
        let places: Vec<String> = (0..100).map(|line| format!("a.rs:{line}: x")).collect();
        let (shown, more) = offending(&places, 1, None);
        assert_eq!((shown.len(), more), (MAX_SHOWN, 100 - MAX_SHOWN));
    }
}
