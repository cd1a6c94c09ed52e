//! Whom reports blame, by raw samples of the CPUs that were to be had: `tallyline bench attribution
//! --save-fixtures` wrote them, beside the programs that they are of.

mod common;

use common::{run, stderr};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The shapes that miss their bars.
const MISSED: [&str; 3] = ["store", "call_memory", "tail_call"];

fn folders() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/attribution");
    let entries = std::fs::read_dir(all).expect("fixtures");
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    folders.sort();
    folders
}

fn judged(folder: &Path, words: &[&str]) -> Value {
    let folder = folder.to_str().expect("a plain path");
    let output = run(&[&["bench", "attribution", "--fixtures", folder, "--json"], words].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The shapes of a document: compiler, and results.
fn shapes(document: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let programs = document["programs"].as_array().expect("programs");
    programs.iter().flat_map(|program| {
        let compiler = program["compiler"].as_str().expect("a name");
        program["shapes"].as_array().expect("shapes").iter().map(move |shape| (compiler, shape))
    })
}

#[test]
fn samples_of_each_recorded_cpu_are_those_of_the_access_that_stalled() {
    for folder in folders() {
        let document = judged(&folder, &[]);
        let mut judged = 0;
        for (compiler, result) in shapes(&document) {
            let shape = result["shape"].as_str().expect("a name");
            let verdict = result["ours"]["verdict"].as_str().expect("a verdict");
            judged += 1;
            if !MISSED.contains(&shape) {
                let is_met = ["met", "within_error"].contains(&verdict);
                assert!(is_met, "{}: {shape} by {compiler}: {result:#}", folder.display());
            }
        }
        assert!(judged > 0, "{}", folder.display());
    }
}

#[test]
fn samples_without_correction_name_the_instruction_behind() {
    let folder = folders().into_iter().find(|folder| folder.ends_with("AuthenticAMD-26-2-1")).expect("Zen 5");
    let document = judged(&folder, &["--shape", "load", "--shape", "member"]);
    let mut all = shapes(&document).peekable();
    assert!(all.peek().is_some());
    for (_, result) in all {
        let share = |side: &str, of: &str| result[side][of].as_f64().expect("a share");
        assert!(share("uncorrected", "right") < 5.0 && share("uncorrected", "other") > 85.0, "{result:#}");
        assert!(share("ours", "right") > 85.0 && share("ours", "other") < 5.0, "{result:#}");
    }
}
