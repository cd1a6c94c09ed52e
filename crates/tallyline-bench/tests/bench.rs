//! The program's benchmarks from outside: what they write, and how they end. Never how fast
//! anything is.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn run_in(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tallyline-bench"));
    command
        .stdin(Stdio::null())
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env("TALLYLINE_CACHE", "off");
    command.args(args).current_dir(folder).output().expect("the program runs")
}

fn run(args: &[&str]) -> Output {
    run_in(Path::new("."), args)
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Returns a short run of a benchmark, as JSON.
fn measured(bench: &str) -> Value {
    let output = run(&[bench, "--quick", "--rounds", "2", "--threads", "1", "--json"]);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["schema"], 1);
    assert_eq!(report["bench"], bench);
    assert!(report["machine"]["cpus"].as_u64().is_some_and(|cpus| cpus > 0));
    assert!(report["machine"]["cpu"].is_string());
    report
}

fn cases(report: &Value) -> &[Value] {
    report["cases"].as_array().expect("cases")
}

fn names(report: &Value) -> Vec<&str> {
    cases(report).iter().map(|case| case["case"].as_str().expect("name")).collect()
}

fn check_figures(report: &Value, unit: &str) {
    for case in cases(report) {
        assert_eq!(case["unit"], unit, "{case}");
        assert!(case["threads"].as_u64().is_some_and(|threads| threads > 0), "{case}");
        assert!(case["rounds"].as_u64().is_some_and(|rounds| rounds > 0), "{case}");
        let figure = |name: &str| case[name].as_f64().expect("figure");
        let (min, median, max) = (figure("min"), figure("median"), figure("max"));
        assert!(min <= median && median <= max, "{case}");
    }
    for ratio in report["ratios"].as_array().expect("ratios") {
        assert!(ratio["over"].is_string() && ratio["under"].is_string(), "{ratio}");
        assert!(ratio["threads"].is_u64() && ratio["median"].is_f64(), "{ratio}");
    }
}

/// Checks that each wanted side is measured or listed with the reason why not.
fn check_sides(report: &Value, wanted: &[&str]) {
    let there = names(report);
    let not_run = report["not_run"].as_array().expect("not run");
    for name in wanted {
        let excused = not_run.iter().any(|case| case["case"] == *name && case["reason"].is_string());
        assert!(there.contains(name) || excused, "{name}: {there:?}, {not_run:?}");
    }
}

#[test]
fn updates_have_all_sides_and_lose_no_count() {
    let report = measured("update");
    check_figures(&report, "ns/op");
    check_sides(
        &report,
        &[
            "fixed/inc",
            "fixed/inc-c",
            "fixed/inc-c-call",
            "fixed/add",
            "fixed/add-c",
            "fixed/event2",
            "fixed/observe",
            "fixed/max",
            "fixed/average",
            "static/inc",
            "static/inc-c",
            "fixed/packet4",
            "fixed/packet4-1group",
            "fixed/inc4",
            "fixed/inc4-1group",
            "shared-atomic/inc",
            "shared-atomic/packet4",
            "shared-atomic/packet4-1group",
            "plain/inc",
            "rseq-minimal/inc",
            "getcpu-atomic/inc",
            "percpu-atomic/inc",
            "thread-slots/inc",
            "contatori/inc",
            "fixed/inc+think",
            "shared-atomic/inc+think",
            "vec/inc",
            "vec/add",
            "counter-array/inc",
            "group-array/add",
            "lazy/own",
            "lazy/own-c",
            "lazy/table",
            "lazy/table-c",
        ],
    );
    for case in cases(&report) {
        assert_eq!(case["exact"], true, "{case}");
    }
    let ratio = |over: &str, under: &str| {
        let ratios = report["ratios"].as_array().expect("ratios");
        ratios.iter().any(|ratio| ratio["over"] == over && ratio["under"] == under)
    };
    assert!(ratio("shared-atomic/inc", "fixed/inc"));
    assert!(ratio("shared-atomic/packet4", "fixed/packet4"));
    assert!(ratio("fixed/packet4", "fixed/inc4"));
}

#[test]
fn folds_have_all_ways_with_their_cpus() {
    let report = measured("fold");
    check_figures(&report, "ns/group");
    for name in ["item-major", "cpu-major", "bulk", "read-bandwidth"] {
        for cpus in [8, 32] {
            let there = |case: &&Value| case["case"] == name && case["cpus"] == cpus;
            let case = cases(&report).iter().find(there).unwrap_or_else(|| panic!("{name} at {cpus}"));
            assert!(case["gb_per_s"].is_f64() && case["bytes"].is_u64(), "{case}");
        }
    }
    check_sides(&report, &["possible-192", "present-32", "possible-192-cow"]);
}

#[test]
fn incremental_folds_have_all_shares_of_written_groups() {
    let report = measured("incremental");
    let shares = ["5 %", "25 %", "100 %", "5 % scattered"];
    let names: Vec<String> = shares.iter().map(|share| format!("incremental, {share}")).collect();
    let mut wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    wanted.extend(["one-thread", "two-threads", "two-threads-read", "two-threads-in-llc", "tracked/add"]);
    check_sides(&report, &wanted);
    for case in cases(&report) {
        assert_ne!(case["exact"], false, "{case}");
    }
}

#[test]
fn reads_have_used_and_possible_cpus() {
    let report = measured("read");
    check_figures(&report, "ns/read");
    let there = |used: u32, cpus: u32| {
        cases(&report)
            .iter()
            .any(|case| case["case"] == "fixed/read" && case["used"] == used && case["cpus"] == cpus)
    };
    assert!(there(1, 32) && there(1, 8), "{report:#}");
}

#[test]
fn memory_tells_what_comes_on_top() {
    let report = measured("memory");
    check_figures(&report, "bytes");
    check_sides(&report, &["pool/counted", "+handles-of-single-counters", "+initial-values-other-than-0"]);
}

#[test]
fn targets_are_of_all_benchmarks_of_counters() {
    let report = measured("targets");
    let notes = report["notes"].as_array().expect("notes");
    assert!(notes.iter().any(|note| note == "Every count was found again in the sum."), "{notes:?}");
    // short runs have none; each side that is missing is named with its benchmark
    assert_eq!(report["targets"], serde_json::json!([]));
    for side in report["not_run"].as_array().expect("not run") {
        let case = side["case"].as_str().expect("name");
        assert!(
            ["update: ", "read: ", "incremental: ", "memory: "].iter().any(|part| case.starts_with(part)),
            "{case}"
        );
    }
}

#[test]
fn nodes_have_reads_and_memory_of_both_placements() {
    let report = measured("nodes");
    check_sides(&report, &["call/one-word", "call/fixed", "call/flexible", "walk-possible", "walk-present"]);
    check_sides(&report, &["fixed/memory", "flexible/memory"]);
}

#[test]
fn lifecycles_have_all_ways_and_lose_no_count() {
    let report = measured("lifecycle");
    check_sides(
        &report,
        &["flexible/inc", "flexible/packet4", "hot/lazy", "own/lazy-per-node", "common/lock"],
    );
    for way in ["lazy", "fixed", "per-cpu-lines", "lock", "atomics"] {
        for what in ["alive/", "one-at-a-time/"] {
            check_sides(&report, &[&format!("{what}{way}")]);
        }
        check_sides(&report, &[&format!("alive/{way}/memory")]);
    }
    for case in cases(&report) {
        assert_ne!(case["exact"], false, "{case}");
    }
}

#[test]
fn a_table_has_a_unit_behind_each_figure() {
    let output = run(&["update", "--quick", "--threads", "1"]);
    assert!(output.status.success(), "{output:?}");
    let table = stdout(&output);
    let line = table.lines().find(|line| line.starts_with("fixed/inc ")).expect("a line for fixed/inc");
    assert!(line.contains(" ns/op"), "{line}");
    assert!(table.contains("Every count was found again"), "{table}");
    assert!(!table.contains('\x1b'), "colours where nobody looks");
}

#[test]
fn colours_can_be_asked_for_and_refused() {
    let always = run(&["memory", "--quick", "--threads", "1", "--color", "always"]);
    assert!(stdout(&always).contains('\x1b'));
    let never = run(&["memory", "--quick", "--threads", "1", "--color", "never"]);
    assert!(!stdout(&never).contains('\x1b'));
}

#[test]
fn results_go_to_the_file_that_is_named() {
    let folder = folder("results");
    let args = ["memory", "--quick", "--threads", "1", "--json", "-o", "memory.json"];
    let output = run_in(&folder, &args);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let text = std::fs::read_to_string(folder.join("memory.json")).expect("the file");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["bench"], "memory");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn layouts_are_compared_by_time_and_memory() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/holes.o");
    let args = ["layout", "--quick", "--pahole", "./no such program", "--json", "--file", file];
    let output = run(&args);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for what in ["time", "memory"] {
        let name = format!("holes.o dwarf: sizes, warm, {what}/tallyline");
        let case =
            cases(&report).iter().find(|case| case["case"] == name).unwrap_or_else(|| panic!("{name}"));
        assert!(case["median"].as_f64().is_some_and(|figure| figure > 0.0), "{case}");
    }
    check_sides(&report, &["pahole"]);
    let output = run(&["layout", "--quick", "--file", "no/such/file"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn the_recorders_cost_is_a_ratio_of_pairs_or_the_reason_why_not() {
    let output = run(&["record", "--quick", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    if report["not_run"].as_array().is_some_and(|skipped| !skipped.is_empty()) {
        assert!(report["not_run"][0]["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
        return;
    }
    let sides = ["alone", "only interrupted", "recorded", "with recorder"];
    let cases: Vec<_> = cases(&report).iter().map(|case| case["case"].clone()).collect();
    assert_eq!(cases, sides.map(|side| format!("1000 samples a second/{side}")));
    assert_eq!(report["ratios"].as_array().map(Vec::len), Some(4));
    assert!(report["ratios"][0]["median"].as_f64().is_some_and(|ratio| ratio > 0.1));
}

#[test]
fn attribution_lists_shapes_with_their_truth_and_refuses_others() {
    let output = run(&["attribution", "--list", "--shape", "join_*", "--shape", "expires"]);
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["join_two", "join_three", "expires"]);
    assert!(text.lines().all(|line| line.contains("at least 75 %")), "{text}");
    let output = run(&["attribution", "--list", "--shape", "cmp_"]);
    assert!(stderr(&output).contains("cmp_either, cmp_immediate"), "{output:?}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn attribution_has_every_sample_of_each_shape_by_each_side() {
    if !std::process::Command::new("gcc").arg("--version").output().is_ok_and(|gcc| gcc.status.success()) {
        eprintln!("skipped: no gcc");
        return;
    }
    let words = ["--seconds", "0.05", "--freq", "4000", "--compiler", "gcc", "--json"];
    let shapes = ["--shape", "load", "--shape", "hot"];
    let output = run(&[&["attribution"], &words[..], &shapes[..]].concat());
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["schema"], &report["bench"]), (&1.into(), &"attribution".into()));
    assert!(report["machine"]["cpu_id"].is_string(), "{report}");
    let not_run = report["not_run"].as_array().expect("not run");
    if not_run.iter().any(|case| case["case"] == "gcc") {
        eprintln!("skipped: {not_run:?}");
        return;
    }
    let results = report["programs"][0]["shapes"].as_array().expect("shapes");
    assert_eq!(results.len(), 2);
    for result in results {
        for side in ["ours", "uncorrected"] {
            let share = |name: &str| result[side][name].as_f64().expect("a share");
            let sum = share("right") + share("other") + share("none");
            let samples = result[side]["samples"].as_u64().expect("samples");
            assert!(samples == 0 || (sum - 100.0).abs() < 1e-6, "{result}");
        }
        // one at the first instruction of the shape's function is charged to the call of it, which is none of the shape's
        let of = |side: &str| result[side]["samples"].as_u64().expect("samples");
        let (ours, uncorrected) = (of("ours"), of("uncorrected"));
        assert!(ours <= uncorrected && uncorrected - ours <= 1 + uncorrected / 50, "{result}");
    }
}

#[test]
fn programs_that_are_missing_are_named_with_what_builds_them() {
    let folder = folder("bench-programs");
    let foreign = folder.to_str().expect("a name");
    let words = ["programs", "--level", "48K:12:4,1M:16:14", "--foreign", foreign, "--program", "lua"];
    let output = run(&[&words[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["programs"], serde_json::json!([]));
    assert_eq!(report["not_run"][0]["program"], "lua");
    assert!(report["not_run"][0]["why"].as_str().is_some_and(|why| why.contains("ci/programs")), "{report}");
    let text = stdout(&run(&words));
    assert!(text.contains("lua: not run: ") && text.contains("first in 0 of 0"), "{text}");
    let unknown = run(&["programs", "--program", "nothing"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("there is no program nothing: store, index"), "{}", stderr(&unknown));
}
