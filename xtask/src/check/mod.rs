//! Ratchets: properties of the sources as numbers that may only go down.

mod cycles;
mod docs;
mod foreign;
mod length;
mod public;
mod record;
mod timed;
mod tree;

use crate::source::{self, Sources};
use anyhow::Result;
use std::path::Path;

/// The file of the recorded numbers, relative to the root.
const RECORD: &str = "xtask/ratchets.toml";

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
    for (measure, verdict) in measures.iter().zip(&verdicts) {
        print!("{:>6}  {} ({})", measure.count, measure.title, measure.name);
        if let Some(target) = config.target(measure.name) {
            print!(", target {target}");
        }
        println!("{}", measure.note.as_ref().map_or(String::new(), |note| format!("; {note}")));
        if let record::Verdict::Higher(recorded) = verdict {
            println!("        higher than the recorded {recorded}:");
            measure.places.iter().for_each(|place| println!("        {place}"));
        }
    }
    if record {
        record::write(&root.join(RECORD), &measures, &config)?;
    }
    record::conclude(&measures, &verdicts, record)
}
