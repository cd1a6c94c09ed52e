//! The recordings of quipper that perf does not read, and what is said of them. The folder is the variable QUIPPER, or
//! `../shared/corpora/quipper` beside the project; the gate fails without it (`ci/quipper`).
//! Those that perf reads are compared with it by `ci/profile-peers`.

mod common;

use common::{run, stderr, stdout};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Returns the folder; `None` where a developer does not have it.
fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora/quipper");
    match std::env::var_os("QUIPPER") {
        Some(named) => {
            // of the workspace, where it is relative
            let named = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(named);
            assert!(named.is_dir(), "QUIPPER: no folder {}", named.display());
            Some(named)
        }
        None if beside.is_dir() => Some(beside),
        None => {
            eprintln!("skipped: no recordings; set QUIPPER to their folder");
            None
        }
    }
}

/// Samples by event, how many were lost, what is said beside, and the status.
type Shown = (Vec<(String, u64)>, u64, Vec<String>, Option<i32>);

/// Runs `report` on a file: samples by event, lost ones; the messages without the file's name; the status.
fn report(folder: &Path, name: &str) -> Shown {
    let path = folder.join(format!("perf.data.{name}"));
    let path = path.to_str().expect("a path");
    let output = run(&["report", "--json", "-s", "comm", "--skid", "none", "-i", path]);
    let said = stderr(&output);
    let said = said.lines().map(|line| line.replace(&format!("tallyline: {path}: "), "")).collect();
    let document: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{said:?}"));
    let mut samples: Vec<(String, u64)> = Vec::new();
    for row in document["rows"].as_array().expect("rows") {
        let event = row["event"].as_str().expect("an event");
        let count = row["samples"].as_u64().expect("a number");
        match samples.iter_mut().find(|(known, _)| known == event) {
            Some((_, known)) => *known += count,
            None => samples.push((event.to_owned(), count)),
        }
    }
    (samples, document["lost"].as_u64().expect("a number"), said, output.status.code())
}

#[test]
fn the_readable_part_of_a_damaged_file_is_shown_with_a_warning_and_status_2() {
    let Some(folder) = folder() else { return };
    // its features end early: perf says "incompatible file format"
    let (samples, lost, said, status) = report(&folder, "armv7.perf_3.14-3.8");
    assert_eq!((samples, lost, status), (vec![("cycles".to_owned(), 700)], 0, Some(2)));
    assert_eq!(said, ["damaged perf.data at offset 0x30d5c: length of a text: 4 bytes wanted, 0 left"]);

    // a sample without a size: perf says "bad event header size"; the other 227 are read
    let (samples, lost, said, status) = report(&folder, "piped.corrupted.zero_size_sample-3.2");
    assert_eq!((samples, lost, status), (vec![("cycles".to_owned(), 227)], 0, Some(2)));
    let expected = [
        "damaged perf.data at offset 0xbfd0: a record of 0 bytes: its header alone has 8",
        "48 bytes of the records, at offset 0xbfd0, cannot be read",
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_stream_with_an_unaligned_record_is_read() {
    let Some(folder) = folder() else { return };
    // a record whose size is no multiple of 8: perf says "is not 8-byte aligned, aborting"
    let (samples, lost, said, status) = report(&folder, "piped.header_features-4.16");
    assert_eq!((samples, lost, status), (vec![("cpu-clock".to_owned(), 2)], 0, Some(0)));
    assert_eq!(said, [""; 0]);
}

#[test]
fn an_empty_file_is_said_to_be_empty() {
    let Some(folder) = folder() else { return };
    for name in ["busy.5-3.4", "busy.5-3.8"] {
        let path = folder.join(format!("perf.data.{name}"));
        let path = path.to_str().expect("a path");
        for command in ["report", "annotate", "evlist", "sharing"] {
            let output = run(&[command, "-i", path]);
            assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{command}");
            let said = stderr(&output);
            assert!(said.contains(path) && said.contains("the file is empty"), "{command}: {said}");
        }
    }
}

#[test]
fn branch_stacks_are_said_to_be_there() {
    let Some(folder) = folder() else { return };
    for (name, count) in [("branch-4.14", 13), ("callgraph_and_branch-3.4", 923)] {
        let (_, _, said, status) = report(&folder, name);
        assert_eq!(status, Some(0), "{said:?}");
        assert!(said[0].contains(" samples have branch stacks"), "{said:?}");
        assert!(said[0].starts_with(&format!("{count} ")), "{said:?}");
    }
}

#[test]
fn a_recording_that_is_read_twice_repeats_no_warning() {
    let Some(folder) = folder() else { return };
    // without addresses of data it is read again, for registers
    let path = folder.join("perf.data.piped.intel_pt-4.14");
    let output = run(&["sharing", "-i", path.to_str().expect("a path")]);
    let said = stderr(&output);
    assert_eq!(said.matches("144592 bytes of traces").count(), 1, "{said}");
    assert_eq!(output.status.code(), Some(2), "{said}");
}
