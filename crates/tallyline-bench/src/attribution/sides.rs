//! Recording the shapes, and reading who is blamed: by this program with and without correction, and by perf.

use super::compilers::output;
use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The samples of one shape by the field that they are charged to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Blame {
    /// The number of all samples of the shape.
    pub(super) samples: u64,
    /// The number of samples that name a field, by field.
    pub(super) fields: BTreeMap<String, u64>,
}

/// The samples of all shapes of a recording, by the name of the shape.
pub(super) type Blames = BTreeMap<String, Blame>;

/// The two tools that are compared: this program, and perf where it runs.
pub(super) struct Sides {
    pub(super) ours: PathBuf,
    /// The path of perf, with its version.
    pub(super) perf: Option<(PathBuf, String)>,
}

impl Sides {
    /// Finds both; `perf` where it runs.
    pub(super) fn find(perf: &Path) -> Result<Sides> {
        let ours = crate::tool()?;
        let version = Command::new(perf).arg("--version").stdin(Stdio::null()).output().ok();
        let version = version.filter(|output| output.status.success());
        let perf = version
            .map(|output| (perf.to_owned(), String::from_utf8_lossy(&output.stdout).trim().to_owned()));
        Ok(Sides { ours, perf })
    }

    /// Records shapes, each for so many seconds on a CPU.
    pub(super) fn record(
        &self,
        program: &Path,
        shapes: &[&str],
        (frequency, seconds): (u64, f64),
        recording: &Path,
    ) -> Result<()> {
        let mut command = Command::new(&self.ours);
        command.args(["record", "-q", "-e", "cpu-clock:u", "-F", &frequency.to_string(), "-o"]);
        command.arg(recording).arg("--").arg(program).arg(seconds.to_string()).args(shapes);
        output(&mut command).map(drop)
    }

    /// Returns whom this program blames.
    pub(super) fn ours(&self, recording: &Path, has_skid: bool) -> Result<Blames> {
        let skid = if has_skid { "auto" } else { "none" };
        let document = self.report(recording, &["-s", "sym,typeoff", "--skid", skid])?;
        let rows = document["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |row: &Value, key: &str| row["keys"][key].as_str().unwrap_or_default().to_owned();
        Ok(blames(rows.iter().map(|row| {
            let samples = row["samples"].as_u64().unwrap_or(0);
            (text(row, "sym"), text(row, "typeoff"), samples)
        })))
    }

    /// Runs a report of a recording.
    pub(super) fn report(&self, recording: &Path, words: &[&str]) -> Result<Value> {
        let mut command = Command::new(&self.ours);
        command.args(["report", "--no-cache", "--json", "-i"]).arg(recording).args(words);
        serde_json::from_str(&output(&mut command)?).context("cannot understand tallyline report")
    }

    /// Returns whom perf blames.
    pub(super) fn perf(&self, perf: &Path, recording: &Path) -> Result<Blames> {
        let mut command = Command::new(perf);
        command.args(["report", "-s", "sym,typeoff", "--stdio", "-n", "-t", "\x01", "-i"]).arg(recording);
        let text = output(&mut command)?;
        let rows = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let mut words = line.split('\x01').map(str::trim);
            let samples = words.nth(1)?.parse().ok()?;
            Some((words.next()?.to_owned(), words.next()?.to_owned(), samples))
        });
        Ok(blames(rows))
    }
}

/// Adds up rows of symbol, place in a type, and samples.
fn blames(rows: impl Iterator<Item = (String, String, u64)>) -> Blames {
    let mut blames = Blames::new();
    for (symbol, place, samples) in rows {
        let Some(shape) = shape_of(&symbol) else { continue };
        let blame = blames.entry(shape.to_owned()).or_default();
        blame.samples += samples;
        if let Some(field) = field_of(&place) {
            *blame.fields.entry(field.to_owned()).or_default() += samples;
        }
    }
    blames
}

/// Returns the shape that a function is of, by its name: `[.] shape_load`, `Node::shape_member__add(int)`.
fn shape_of(symbol: &str) -> Option<&str> {
    let (_, name) = symbol.split_once("shape_")?;
    let end = name.find(|character: char| character != '_' && !character.is_ascii_alphanumeric());
    let name = &name[..end.unwrap_or(name.len())];
    Some(name.split_once("__").map_or(name, |(shape, _)| shape))
}

/// Returns the field of a place: `cold` of `struct node +0x8 (cold)`. perf cuts the last bracket off.
fn field_of(place: &str) -> Option<&str> {
    let (_, place) = place.rsplit_once(" +")?;
    let (_, field) = place.split_once(" (")?;
    let field = field.strip_suffix(')').unwrap_or(field);
    (!field.is_empty() && field != "no field" && !field.starts_with('[')).then_some(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_belong_to_the_shape_in_their_name() {
        for (symbol, shape) in [
            ("[.] shape_load", "load"),
            ("shape_leaf_return__leaf.isra.0", "leaf_return"),
            ("[.] Node::shape_member__increment(unsigned long)", "member"),
        ] {
            assert_eq!(shape_of(symbol), Some(shape));
        }
        assert_eq!(shape_of("[.] main"), None);
    }

    #[test]
    fn rows_are_added_up_by_shape_and_field() {
        let row = |symbol: &str, place: &str, samples| (symbol.to_owned(), place.to_owned(), samples);
        let rows = [
            row("[.] shape_load", "struct node +0x8 (cold)", 90),
            row("[.] shape_load", "struct node +0x8 (cold", 2),
            row("[.] shape_load__part", "struct node +0x20 (uses._M_i)", 3),
            row("[.] shape_load", "long unsigned int +0 (no field)", 2),
            row("[.] shape_load", "uint64_t[2] +0 ([])", 1),
            row("[.] shape_load", "(no memory)", 2),
            row("[.] main", "struct node +0x8 (cold)", 7),
        ];
        let fields = BTreeMap::from([("cold".to_owned(), 92), ("uses._M_i".to_owned(), 3)]);
        assert_eq!(blames(rows.into_iter()), Blames::from([("load".into(), Blame { samples: 100, fields })]));
    }
}
