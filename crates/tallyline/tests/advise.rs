//! `tallyline advise` and `tallyline sharing-check`. What needs QEMU and a C compiler is left out, with a message,
//! where they are not.

mod common;

use common::{compiles, folder, run, stderr, stdout};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A trace of two threads that each write a field of one struct 400 times, and the program's folder.
fn pair() -> (String, String) {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/trace");
    let text = |path: &Path| path.to_str().expect("a plain path").to_string();
    (text(&data.join("pair.trace")), text(&data))
}

fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(path)
}

/// Builds an example; none, with a message, where that or a trace of it cannot be had.
fn built(folder: &Path, source: &str, name: &str, words: &[&str]) -> Option<String> {
    if !example(source).is_file() {
        eprintln!("skipped: no {}; the package alone does not have the examples", example(source).display());
        return None;
    }
    let has_emulator = Command::new("qemu-x86_64").arg("--version").output().is_ok();
    if !cfg!(target_arch = "x86_64") || !has_emulator {
        eprintln!("skipped: needs x86-64 and qemu-x86_64");
        return None;
    }
    let program = folder.join(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-g", "-pthread", "-o"]).arg(&program).arg(example(source)).args(words);
    compiles(&mut compiler).then_some(())?;
    Some(program.to_str().expect("a plain path").to_owned())
}

fn advice(words: &[&str]) -> Value {
    let output = run(&[&["advise", "--json"], words].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    // the document alone: what the program prints is no part of it
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

#[test]
fn the_same_trace_gives_the_same_advice() {
    let (trace, programs) = pair();
    let words = ["--trace", &trace, "--symfs", &programs];
    let (one, other) = (advice(&words), advice(&words));
    assert_eq!(one, other);
    assert_eq!(one["schema"], 1);
    assert_eq!(one["model"]["schedules"], 6);
}

#[test]
fn a_trace_against_itself_passes_the_check() {
    let (trace, programs) = pair();
    let words =
        ["sharing-check", "--base", &trace, "--head", &trace, "--symfs", &programs, "--format", "json"];
    let output = run(&words);
    assert!(output.status.success(), "{}", stderr(&output));
    let json: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(json["percent"][0], json["percent"][1]);
    assert_eq!(json["gained"], Value::Array(Vec::new()));
}

#[test]
fn a_file_that_is_no_trace_is_named() {
    let output = run(&["advise", "--trace", "/dev/null"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("/dev/null"), "{}", stderr(&output));
}

#[test]
fn shared_counters_become_statctrs_and_packed_statistics_get_lines() {
    let folder = folder("advise-flow");
    let Some(program) = built(&folder, "flow-table/flow_table.c", "flow_table", &[]) else { return };
    let json = advice(&["--whole", "--schedules", "2", "--accesses", "8000", "--", &program, "2", "5000"]);
    let findings = json["findings"].as_array().expect("findings");
    let counter = findings.iter().find(|finding| finding["kind"] == "contended-counter").expect("a counter");
    let names: Vec<&str> =
        counter["proposal"]["names"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
    assert_eq!(names, ["flow_table.packets", "flow_table.bytes"]);
    let site = &counter["fields"][0]["sites"][0];
    assert!(site["file"].as_str().is_some_and(|file| file.ends_with("flow_table.c")), "{site}");
    assert!(counter["effect"]["run"]["median"].as_f64().is_some_and(|median| median > 1.5), "{counter}");
    std::fs::remove_dir_all(folder).expect("removed");
}

/// The reduced cases, and the field that is on their lines.
const CASES: [(&str, &str); 4] = [
    ("per_thread_memory", "used_memory.bytes"),
    ("pending_writes", "pending.count"),
    ("barrier", "pool.passed"),
    ("shared_events", "events.rows"),
];

#[test]
fn reduced_cases_of_real_changes_are_told_from_their_fixed_forms() {
    for (name, field) in CASES {
        let folder = folder(&format!("sharing-{name}"));
        let source = format!("cases/{name}.c");
        let Some(naive) = built(&folder, &source, "naive", &[]) else { return };
        let fixed = built(&folder, &source, "fixed", &["-DFIXED"]).expect("built as the other");
        let check = |base: &str, head: &str, format: &str| {
            let words =
                ["sharing-check", "--base", base, "--head", head, "--schedules", "2", "--format", format];
            run(&[&words[..], &["--accesses", "8000", "--", "2000"]].concat())
        };
        let worse = check(&fixed, &naive, "json");
        assert_eq!(worse.status.code(), Some(1), "{name}: {}", stderr(&worse));
        let json: Value = serde_json::from_str(&stdout(&worse)).expect("JSON");
        let fields = json["gained"][0]["fields"].as_array().expect("fields");
        assert!(fields.iter().any(|found| found == field), "{name}: {fields:?}");
        std::fs::remove_dir_all(folder).expect("removed");
    }
}

#[test]
fn hot_functions_alone_have_the_finding_of_the_whole_program() {
    let folder = folder("advise-window");
    let Some(program) = built(&folder, "cases/shared_events.c", "events", &[]) else { return };
    for more in [&["--whole"][..], &[]] {
        let json = advice(
            &[&["--schedules", "2", "--accesses", "8000"], more, &["--", &program, "100000"]].concat(),
        );
        assert_eq!(json["findings"][0]["kind"], "contended-counter", "{more:?}: {json}");
    }
    std::fs::remove_dir_all(folder).expect("removed");
}
