//! Recordings with a known truth: functions in each of which only one access stalls, recorded by the clock of a CPU
//! that retires compares and jumps as one instruction. `SKID` names the folder that they are in.

mod common;

use common::{run, stderr, stdout};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The function of each recording, the field that stalls, and the shares of it and of other fields that are held.
const SHAPES: [(&str, &str, f64, f64); 11] = [
    ("load", "cold", 85.0, 5.0),
    ("load_test", "cold", 85.0, 5.0),
    ("cmp_taken", "cold", 85.0, 5.0),
    ("cmp_not_taken", "cold", 85.0, 5.0),
    ("cmp_imm", "cold", 85.0, 5.0),
    ("test_imm", "cold", 85.0, 5.0),
    ("sub_mem", "cold", 85.0, 5.0),
    ("loop_end", "cold", 85.0, 5.0),
    ("rmw", "cold", 85.0, 5.0),
    ("join", "cold", 75.0, 10.0),
    // the function that the call enters has one caller with samples
    ("call_mem", "handler", 85.0, 5.0),
];

/// Percentages of the samples of some functions by the field of `struct node` that they are charged to.
fn shares(folder: &Path, shape: &str, functions: &[&str]) -> BTreeMap<String, f64> {
    let (data, root) = (folder.join(format!("{shape}.data")), folder.join("root"));
    let (data, root) = (data.to_str().expect("a plain path"), root.to_str().expect("a plain path"));
    let output = run(&["report", "-i", data, "--symfs", root, "-s", "sym,typeoff", "--json"]);
    assert!(output.status.success(), "{shape}: {}", stderr(&output));
    let document: Value = serde_json::from_str(&stdout(&output)).expect("a document");
    let mut samples: BTreeMap<String, f64> = BTreeMap::new();
    let mut all = 0.0;
    for row in document["rows"].as_array().expect("rows") {
        let (keys, count) = (&row["keys"], row["samples"].as_f64().expect("a number"));
        let symbol = keys["sym"].as_str().and_then(|symbol| symbol.split(' ').next_back());
        if symbol.is_none_or(|symbol| !functions.contains(&symbol)) {
            continue;
        }
        all += count;
        let place = keys["typeoff"].as_str().unwrap_or_default();
        if let Some((_, field)) = place.strip_prefix("struct node +").and_then(|place| place.split_once('('))
        {
            *samples.entry(field.trim_end_matches(')').to_owned()).or_default() += count;
        }
    }
    samples.values_mut().for_each(|count| *count *= 100.0 / all);
    samples
}

#[test]
fn samples_of_a_cpu_that_fuses_pairs_are_those_of_the_access_that_stalled() {
    let Some(folder) = std::env::var_os("SKID") else {
        eprintln!("skipped: SKID names no folder with recordings");
        return;
    };
    let folder = Path::new(&folder).join("intel-6-207");
    for (shape, field, right, other) in SHAPES {
        let mut shares = shares(&folder, shape, &[shape]);
        let share = shares.remove(field).unwrap_or(0.0);
        let others: f64 = shares.values().sum();
        assert!(share >= right && others <= other, "{shape}: {share} % of {field}, others {shares:?}");
    }
}

/// Recordings without the word on top of the stack do not say which call a function's first instruction was reached
/// by: samples there have no field rather than a wrong one.
#[test]
fn samples_behind_a_call_through_memory_are_not_those_of_the_callees_access() {
    let Some(folder) = std::env::var_os("SKID") else {
        eprintln!("skipped: SKID names no folder with recordings");
        return;
    };
    let shares = shares(&Path::new(&folder).join("intel-6-207"), "call_mem", &["call_mem", "handle"]);
    assert!(!shares.is_empty());
    let others: f64 = shares.iter().filter(|(field, _)| *field != "handler").map(|(_, share)| share).sum();
    assert!(others <= 5.0, "{shares:?}");
}
