//! Reports on a recording whose every sample is known.

mod common;
mod recorded;

use common::{run, run_in, stderr, stdout};
use recorded::{
    Access, GET_A, GET_Y, LOAD_HITM, NOTHING, PROGRAM, Recorded, SET_B, STORE_L1, access, record,
    record_program,
};
use serde_json::Value;

/// Returns 40 loads of `a`, 20 stores to `b`, 10 loads of `in.y` and 5 instructions without an access.
fn usual() -> Vec<Access> {
    let mut all = Vec::new();
    for (function, samples) in [(GET_A, 40), (SET_B, 20), (GET_Y, 10), (NOTHING, 5)] {
        for index in 0..samples {
            let store = function == SET_B;
            let source = if store { STORE_L1 } else { access(function).source };
            let cpu = if store { 1 } else { index % 2 * 2 };
            let offset = [(GET_A, 0), (SET_B, 8), (GET_Y, 84), (NOTHING, 0)];
            let offset = offset.iter().find(|(name, _)| *name == function).expect("listed").1;
            let weight = 10 + u64::from(index);
            all.push(Access { address: 0x7000_0000 + offset, cpu, source, weight, ..access(function) });
        }
    }
    all
}

fn json(recorded: &Recorded, args: &[&str]) -> Value {
    let output = run(&[&["report", "--json", "-i", recorded.path()], args].concat());
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("a document")
}

fn samples_of(document: &Value, key: &str, text: &str) -> u64 {
    let rows = document["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["keys"][key] == text);
    row.unwrap_or_else(|| panic!("no row {text} in {document}"))["samples"].as_u64().expect("a number")
}

#[test]
fn samples_are_counted_by_type_and_field_and_all_are_accounted_for() {
    let Some(recorded) = record("report-types", true, &usual()) else { return };
    let document = json(&recorded, &["-s", "type,typeoff"]);
    for (field, samples) in [
        ("struct pair +0 (a)", 40),
        ("struct pair +0x8 (b)", 20),
        ("struct pair +0x54 (in.y)", 10),
        ("(no memory)", 5),
    ] {
        assert_eq!(samples_of(&document, "typeoff", field), samples, "{field}");
    }
    assert_eq!(
        (&document["samples"], &document["eligible"], &document["typed"]),
        (&75.into(), &70.into(), &70.into())
    );
    assert_eq!(document["weighs"], "period");
    let types = json(&recorded, &["-s", "type"]);
    assert_eq!(samples_of(&types, "type", "struct pair"), 70);
    let share = types["rows"][0]["percent"].as_f64().expect("a number");
    assert!((share - 70.0 * 100.0 / 75.0).abs() < 1e-9, "{share}");
}

#[test]
fn every_sample_is_in_exactly_one_row_whatever_the_keys_and_the_filter() {
    let Some(recorded) = record("report-all", true, &usual()) else { return };
    let help = stdout(&run(&["report", "--help"]));
    let keys = help.split("Sort keys:").nth(1).expect("the list").split("; period").next().expect("the list");
    let keys: Vec<&str> = keys.split_whitespace().collect();
    assert!(keys.len() > 30, "{keys:?}");
    let filters: [(&[&str], u64); 5] = [
        (&[], 75),
        (&["--symbol", "get_a,nothing"], 45),
        (&["--cpu", "1-2"], 20 + 20 + 5 + 2),
        (&["--type", "pair"], 70),
        (&["--comm", "pa*"], 75),
    ];
    for (index, key) in keys.iter().enumerate() {
        // each key with each filter in turn, and all of them without
        for (filter, expected) in [filters[0], filters[index % filters.len()]] {
            let args = [&["-s", key], filter].concat();
            let document = json(&recorded, &args);
            let rows = document["rows"].as_array().expect("rows");
            let sum: u64 = rows.iter().map(|row| row["samples"].as_u64().expect("a number")).sum();
            assert_eq!(sum, expected, "{args:?}");
            let period: u64 = rows.iter().map(|row| row["period"].as_u64().expect("a number")).sum();
            assert_eq!(period, expected * 1000, "{args:?}");
        }
    }
}

#[test]
fn memory_mode_weighs_latencies_and_says_where_data_came_from() {
    let Some(recorded) = record("report-mem", true, &usual()) else { return };
    let document = json(&recorded, &["--mem-mode", "-s", "mem"]);
    assert_eq!(document["weighs"], "weight");
    let stores = document["rows"].as_array().expect("rows").iter().find(|row| row["keys"]["mem"] == "L1 hit");
    let weight: u64 = (10..30).sum();
    assert_eq!(stores.expect("stores")["weight"], weight);
    let output = run(&["mem", "-i", recorded.path(), "-t", "store", "-s", "mem,sym"]);
    let text = stdout(&output);
    assert!(text.contains("L1 hit") && text.contains("[.] set_b") && !text.contains("L3 hit"), "{text}");
    assert!(text.contains(&format!("# Total weight : {weight}")), "{text}");
}

#[test]
fn text_is_laid_out_as_perf_does() {
    let Some(recorded) = record("report-stdio", true, &usual()) else { return };
    let output = run(&["report", "-i", recorded.path(), "-s", "comm,type", "-n"]);
    let text = stdout(&output);
    let expected = "\
# Overhead       Samples  Command  Data Type
# ........  ............  .......  ...........
#
    93.33%            70  pair     struct pair
     6.67%             5  pair     (no memory)
";
    assert!(text.contains(expected), "{text}");
    let tree = stdout(&run(&["report", "-i", recorded.path(), "-s", "type,typeoff", "-H"]));
    let expected = "\
#    Overhead  Data Type / Data Type Offset
# ...........  ............................
#
    93.33%     struct pair
       53.33%     struct pair +0 (a)
";
    assert!(tree.contains(expected), "{tree}");
}

#[test]
fn an_imprecise_sample_is_charged_to_the_instruction_before() {
    let Some(recorded) = record("report-skid", false, &usual()) else { return };
    let corrected = json(&recorded, &["-s", "typeoff"]);
    assert_eq!(samples_of(&corrected, "typeoff", "struct pair +0x8 (b)"), 20);
    assert!(corrected["skid"].as_str().expect("a text").starts_with("corrected"), "{corrected}");
    let as_it_is = json(&recorded, &["-s", "typeoff", "--skid", "none"]);
    // the instruction behind each access is the return
    assert_eq!(samples_of(&as_it_is, "typeoff", "(stack operation)"), 75);
    assert_eq!(as_it_is["skid"], "not corrected");
}

#[test]
fn two_recordings_are_compared_by_type_and_field() {
    let Some(old) = record("diff-old", true, &usual()) else { return };
    let mut more = usual();
    // as many loads of a again, and the rest as it was
    more.extend(usual().into_iter().filter(|access| access.function == GET_A));
    let Some(new) = record("diff-new", true, &more) else { return };
    let document = json(&new, &["--diff", old.path()]);
    assert_eq!((&document["old"], &document["new"]), (&75.into(), &115.into()));
    let first = &document["rows"][0];
    assert_eq!(first["keys"]["typeoff"], "struct pair +0 (a)");
    let delta = first["delta"].as_f64().expect("a number");
    assert!((delta - (80.0 / 115.0 - 40.0 / 75.0) * 100.0).abs() < 1e-9, "{delta}");
    assert_eq!(first["noise"], false);
    let text = stdout(&run(&["report", "-i", old.path(), "--diff", old.path()]));
    assert!(text.contains("+0.00%~  struct pair  struct pair +0 (a)"), "{text}");
}

#[test]
fn a_sample_is_explained_with_both_readings() {
    let Some(recorded) = record("report-explain", false, &usual()) else { return };
    let text = stdout(&run(&["report", "--explain", "#0", "-i", recorded.path()]));
    for part in [
        "one of 40",
        "in pair",
        "ret",
        "without correction it would be (stack operation)",
        "parameter p (struct pair *)",
        "struct pair +0 (a)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let output = run(&["report", "--explain", "#75", "-i", recorded.path()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("there are 75"), "{}", stderr(&output));
}

#[test]
fn a_sample_without_a_type_has_a_reason() {
    let Some(recorded) = record("report-reason", true, &usual()) else { return };
    std::fs::remove_file(recorded.folder.join("pair")).expect("it was there");
    let document = json(&recorded, &["-s", "type"]);
    assert_eq!((&document["eligible"], &document["typed"]), (&0.into(), &0.into()));
    let reason = document["untyped"][0]["reason"].as_str().expect("a reason").to_owned();
    assert!(reason.contains("--symfs"), "{reason}");
    assert_eq!(document["untyped"][0]["samples"], 75);
}

#[test]
fn a_type_is_shown_field_by_field() {
    let Some(recorded) = record("annotate", true, &usual()) else { return };
    let plain = stdout(&run(&["annotate", "pair", "--plain", "-i", recorded.path()]));
    let expected = " Percent     offset       size  field
  100.00          0       0x58  struct pair\t {
   57.14          0        0x8      long int\ta;
   28.57        0x8        0x8      long int\tb;
    0.00       0x10       0x40      char[64]\tgap;
   14.29       0x50        0x8      struct inner\tin {
    0.00       0x50        0x4          int\tx;
   14.29       0x54        0x4          int\ty;
                                    };
                                };
";
    assert!(plain.contains(expected), "{plain}");
    let full = stdout(&run(&["annotate", "pair", "-i", recorded.path()]));
    let row: Vec<&str> =
        full.lines().find(|line| line.contains("\tb;")).expect("a row").split_whitespace().collect();
    assert_eq!(row[..6], ["28.57", "20", "0", "20", "19", "1"], "{full}");
    assert!(full.contains("cache line 1") && full.contains("L3 hit"), "{full}");
    let code = stdout(&run(&["annotate", "--code", "--symbol", "set_b", "-i", recorded.path()]));
    let line = code.lines().find(|line| line.contains("100.00")).expect("the store");
    assert!(line.contains("pair.c:5") && line.contains("struct pair +0x8 (b)"), "{code}");
}

#[test]
fn types_go_to_the_exchange_format_and_come_back() {
    let Some(recorded) = record("exchange", true, &usual()) else { return };
    let output = run_in(
        &recorded.folder,
        &["annotate", "-i", "perf.data", "--data-type-json", "types.json", "--plain"],
    );
    let direct = stdout(&output);
    let bytes = std::fs::read(recorded.folder.join("types.json")).expect("written");
    let document: Value = serde_json::from_slice(&bytes).expect("a document");
    let of_type = &document["dsos"][0]["types"][0];
    assert_eq!((&of_type["type"], &of_type["size"]), (&"struct pair".into(), &88.into()));
    let histogram = &of_type["histograms"][0];
    assert_eq!((&histogram["total_samples"], &histogram["total_period"]), (&70.into(), &70_000.into()));
    let stores = &histogram["samples"][1];
    assert_eq!(
        (&stores["offset"], &stores["nr_samples_store"], &stores["period_load"]),
        (&8.into(), &20.into(), &0.into())
    );
    let back = stdout(&run_in(&recorded.folder, &["annotate", "--read-json", "types.json", "--plain"]));
    assert_eq!(back, direct);
}

#[test]
fn false_and_true_sharing_are_told_apart_by_bytes() {
    let line = 0x7000_0000;
    let one = |function, address, cpu, source| Access { address, cpu, source, ..access(function) };
    let mut accesses = Vec::new();
    for _ in 0..5 {
        // on one line: CPU 0 reads a, CPU 1 writes b
        accesses.push(one(GET_A, line, 0, LOAD_HITM));
        accesses.push(one(SET_B, line + 8, 1, STORE_L1));
        // on another: CPU 3 writes what CPU 2 reads
        accesses.push(one(GET_A, line + 64, 2, LOAD_HITM));
        accesses.push(one(SET_B, line + 64, 3, STORE_L1));
        // one CPU alone
        accesses.push(one(SET_B, line + 128, 3, STORE_L1));
    }
    accesses.push(one(GET_A, line + 64, 2, LOAD_HITM));
    let Some(recorded) = record("sharing", true, &accesses) else { return };
    let output = run(&["sharing", "--json", "-i", recorded.path()]);
    let document: Value = serde_json::from_str(&stdout(&output)).expect("a document");
    assert_eq!(document["measured"], true);
    let lines = document["lines"].as_array().expect("lines");
    let shown: Vec<_> =
        lines.iter().map(|line| (line["sharing"].as_str().expect("a word"), line["hitm"].clone())).collect();
    assert_eq!(shown, [("true", 6.into()), ("false", 5.into())], "{document}");
    let parts = lines[1]["parts"].as_array().expect("parts");
    let fields: Vec<_> = parts.iter().map(|part| part["what"].as_str().expect("a text")).collect();
    assert_eq!(fields, ["struct pair +0 (a)", "struct pair +0x8 (b)"]);
    assert_eq!(
        (&parts[0]["readers"], &parts[1]["writers"]),
        (&serde_json::json!([0]), &serde_json::json!([1]))
    );
    let text = stdout(&run(&["sharing", "-i", recorded.path()]));
    assert!(
        text.contains("HITM, which the hardware counted") && text.contains("written by 1, in set_b"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_done_says_what_to_do() {
    let output = run(&["report", "-i", "/nowhere/perf.data"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("record first"), "{}", stderr(&output));
    let output = run(&["report", "-s", "tpye"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no sort key tpye"), "{}", stderr(&output));
    let Some(recorded) = record("report-errors", true, &usual()) else { return };
    let output = run(&["annotate", "nonsense", "-i", recorded.path()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("report -s type"), "{}", stderr(&output));
    let output = run(&["report", "-e", "stores", "-i", recorded.path()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("there are loads"), "{}", stderr(&output));
}

#[test]
fn names_are_found_by_globs_expressions_and_parts() {
    let Some(recorded) = record("report-names", true, &usual()) else { return };
    for (filter, samples) in [
        (["--symbol", "get_*"], 50),
        (["--symbol", "/^(get_a|set_b)$/"], 60),
        (["--symbol", "[gs]et_[ab],nothing"], 65),
        (["--symbol", "noth"], 5),
        (["--type", "struct p*,(no memory)"], 75),
        (["--type", "/^struct (pair|inner)$/"], 70),
        (["--dso", "*/pair"], 75),
        (["--comm", "/^p/"], 75),
        (["--event", "l*"], 75),
    ] {
        let document = json(&recorded, &filter);
        assert_eq!(document["samples"], samples, "{filter:?}");
    }
    for name in ["pair", "struct pair", "pa?r", "/^struct p/", "air"] {
        let output = run(&["annotate", name, "--plain", "-i", recorded.path()]);
        assert!(stdout(&output).contains("Annotate type: 'struct pair'"), "{name}: {}", stderr(&output));
    }
    let part = run(&["report", "--json", "--symbol", "noth", "-i", recorded.path()]);
    assert!(stderr(&part).contains("no function is named noth; showing nothing"), "{}", stderr(&part));
    let text = stdout(&run(&["report", "--explain", "set_*", "-i", recorded.path()]));
    assert!(text.contains("one of 20") && text.contains("struct pair +0x8 (b)"), "{text}");
}

#[test]
fn what_matches_nothing_is_an_error_that_names_what_there_is() {
    let Some(recorded) = record("report-nothing", true, &usual()) else { return };
    for (args, said) in [
        (["report", "--symbol", "got_a"], "the nearest names are get_a"),
        (["report", "--symbol", "zzz*"], "there are get_a, get_y, nothing, set_b: tallyline report -s sym"),
        (["report", "--symbol", "get"], "2 have that in their names: get_a, get_y"),
        (["report", "--type", "struct pear"], "the nearest names are struct pair"),
        (["report", "--comm", "other"], "there are pair: tallyline report -s comm"),
        (["report", "--dso", "libx.so"], "tallyline report -s dso"),
        (["report", "--event", "stores"], "there are loads"),
        (["report", "--pid", "8"], "no samples of process 8; there are 7"),
        (["report", "--tid", "8"], "no samples of thread 8; there are 7"),
        (["report", "--cpu", "5-6"], "no samples of CPU 5, 6; there are 0, 1, 2"),
        (["report", "--symbol", "/a(/"], "not a regular expression"),
        (["annotate", "--symbol", "got_a"], "the nearest names are get_a"),
        (["annotate", "nonsense", "--stdio"], "no samples of type nonsense"),
        (["sharing", "--type", "pear"], "the nearest names are struct pair"),
        (["mem", "--comm", "other"], "there are pair"),
        (["report", "--explain", "got_a"], "the nearest names are get_a"),
    ] {
        let output = run(&[&args[..], &["-i", recorded.path()]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stdout(&output));
        assert!(
            stderr(&output).contains(said) && stdout(&output).is_empty(),
            "{args:?}: {}",
            stderr(&output)
        );
    }
    let both = ["report", "--symbol", "set_b", "--cpu", "0", "-i", recorded.path()];
    let output = run(&both);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no sample passes all filters"), "{}", stderr(&output));
    // with two recordings a name may be in one of them
    let Some(other) = record("report-nothing-other", true, &[access(GET_A)]) else { return };
    let output = run(&["report", "--diff", other.path(), "--symbol", "set_b", "-i", recorded.path()]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_long_name_is_whole_in_files_and_pushes_no_other_row_apart() {
    let long = "l".repeat(692);
    let text = PROGRAM.replace("struct inner", &format!("struct {long}"));
    let Some(recorded) = record_program("report-long", &text, &["-g"], true, &usual()) else { return };
    let args = ["report", "-s", "type,sym", "-i", recorded.path()];
    let whole = stdout(&run(&args));
    assert!(whole.lines().all(|line| line.chars().count() < 120), "{whole}");
    // one of the type itself is in a row now
    let text = text
        .replace(
            "int get_y(struct pair *p) { return p->in.y; }",
            &format!("int get_y(struct {long} *p) {{ return p->y; }}"),
        )
        .replace("get_y(&shared_pair)", "get_y(&shared_pair.in)");
    let Some(recorded) = record_program("report-longer", &text, &["-g"], true, &usual()) else { return };
    let args = ["report", "-s", "type,sym", "-i", recorded.path()];
    let whole = stdout(&run(&args));
    assert!(whole.contains(&format!("struct {long}  [.] get_y")), "{whole}");
    let other = whole.lines().find(|line| line.contains("set_b")).expect("a row");
    assert!(other.chars().count() < 60, "{other}");
    let narrow = stdout(&run(&[&args[..], &["-w", "0,20"]].concat()));
    assert!(narrow.contains("struct lll…lllllllll  [.] get_y"), "{narrow}");
    let csv = stdout(&run(&[&args[..], &["--csv"]].concat()));
    assert!(csv.contains(&format!("struct {long}")), "{csv}");
}

#[test]
fn a_read_and_write_by_one_instruction_counts_as_a_load_and_a_store() {
    let text = PROGRAM.replace("{ p->b = v; }", "{ p->b += v; }");
    let mut accesses = usual();
    // nothing but the instruction says what it does
    accesses.iter_mut().for_each(|access| access.source = 0);
    let Some(recorded) = record_program("annotate-update", &text, &["-g"], true, &accesses) else { return };
    let text = stdout(&run(&["annotate", "pair", "-i", recorded.path()]));
    let row = text.lines().find(|line| line.contains("\tb;")).expect("a row");
    let row: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(row[1..4], ["20", "20", "20"], "samples, loads, stores: {text}");
    let whole = text.lines().find(|line| line.contains("struct pair\t")).expect("a row");
    let whole: Vec<&str> = whole.split_whitespace().collect();
    assert_eq!(whole[1..4], ["70", "70", "20"], "{text}");
    // the format has one of both for each sample
    let output = run_in(
        &recorded.folder,
        &["annotate", "-i", "perf.data", "--data-type-json", "types.json", "--plain"],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let bytes = std::fs::read(recorded.folder.join("types.json")).expect("written");
    let document: Value = serde_json::from_slice(&bytes).expect("a document");
    let offset = &document["dsos"][0]["types"][0]["histograms"][0]["samples"][1];
    assert_eq!((&offset["nr_samples_load"], &offset["nr_samples_store"]), (&0.into(), &20.into()));
}

#[test]
fn code_has_source_lines_and_labels() {
    let text = PROGRAM.replace(
        "long get_a(struct pair *p) { return p->a; }",
        "long get_a(struct pair *p) {\n  long sum = p->a;\n  while (sum < 1000)\n    sum += p->b;\n  return sum;\n}",
    );
    let Some(recorded) = record_program("annotate-lines", &text, &["-g"], true, &usual()) else { return };
    let code = stdout(&run(&["annotate", "--code", "--symbol", "get_a", "-i", recorded.path()]));
    assert!(code.contains("long sum = p->a;") && code.contains("sum += p->b;"), "{code}");
    let label = code.lines().find(|line| line.trim() == "L1:").unwrap_or_else(|| panic!("no label: {code}"));
    assert!(label.starts_with(' ') && code.contains("-> L1"), "{code}");
    // without the source it is as before
    std::fs::remove_file(recorded.folder.join("pair.c")).expect("it was there");
    let code = stdout(&run(&["annotate", "--code", "--symbol", "get_a", "-i", recorded.path()]));
    assert!(!code.contains("long sum") && code.contains("pair.c:5"), "{code}");
}

#[test]
fn a_recording_without_samples_and_a_program_without_debug_information_say_what_to_do() {
    let Some(recorded) = record("report-empty", true, &[]) else { return };
    for command in ["report", "annotate"] {
        let output = run(&[command, "--stdio", "-i", recorded.path()]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(
            stderr(&output).contains("no samples of loads") && stderr(&output).contains("-F"),
            "{}",
            stderr(&output)
        );
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    }
    let Some(recorded) = record_program("report-stripped", PROGRAM, &["-Wl,--build-id"], true, &usual())
    else {
        return;
    };
    let text = stdout(&run(&["report", "-i", recorded.path()]));
    let hint = text.lines().find(|line| line.contains("No debug information:")).unwrap_or_default();
    for part in ["75 samples in ", "/pair: ", "compile it with -g", "DEBUGINFOD_URLS=", "build-id "] {
        assert!(hint.contains(part), "{part}: {text}");
    }
    let output = run(&["annotate", "--stdio", "-i", recorded.path()]);
    assert!(stderr(&output).contains("compile it with -g"), "{}", stderr(&output));
}

#[test]
fn a_page_and_comma_separated_values_hold_the_same_rows() {
    let Some(recorded) = record("report-forms", true, &usual()) else { return };
    let csv = stdout(&run(&["report", "--csv", "-s", "typeoff,sample", "-i", recorded.path()]));
    assert!(csv.starts_with("event,percent,samples,period,typeoff\n"), "{csv}");
    assert!(csv.contains("loads,53.3333,40,40000,struct pair +0 (a)\n"), "{csv}");
    let page = stdout(&run(&["report", "--html", "-s", "typeoff", "-i", recorded.path()]));
    assert!(page.contains("<code>struct pair +0 (a)</code>") && page.ends_with("</html>\n"), "{page}");
    assert!(!page.contains("src=\"") && !page.contains("//"), "it loads nothing: {page}");
}

#[test]
fn reports_are_the_same_with_types_that_were_kept() {
    let Some(recorded) = record("report-cache", true, &usual()) else { return };
    let folder = common::folder("report-cache-kept");
    let report = |args: &[&str], cache: &std::ffi::OsStr| {
        let output = common::tallyline()
            .args(args)
            .args(["-i", recorded.path()])
            .env("TALLYLINE_CACHE", cache)
            .output()
            .expect("the program runs");
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        (stdout(&output), stderr(&output))
    };
    let kept = folder.join("kept");
    let files =
        || std::fs::read_dir(&kept).map_or(Vec::new(), |all| all.flatten().map(|file| file.path()).collect());
    let jobs: [&[&str]; 4] = [
        &["report", "--json", "-s", "type,typeoff,sym", "--symbol", "get_a"],
        &["report", "--json", "-s", "type,typeoff,typecln"],
        &["annotate"],
        &["annotate", "--code"],
    ];
    for job in jobs {
        let cold = report(job, "off".as_ref());
        assert_eq!(report(&[job, &["--no-cache"]].concat(), kept.as_os_str()), cold);
        assert!(files().is_empty(), "--no-cache keeps none");
    }
    for job in jobs.iter().chain(&jobs) {
        assert_eq!(report(job, kept.as_os_str()), report(job, "off".as_ref()), "{job:?}");
        assert_eq!(files().len(), 1, "a file for the program");
    }
    let file = files().pop().expect("a file");
    let bytes = std::fs::read(&file).expect("readable");
    for damaged in [&bytes[..bytes.len() / 2], b"", b"tallyline types\nnothing of that kind"] {
        std::fs::write(&file, damaged).expect("writable");
        assert_eq!(report(jobs[1], kept.as_os_str()), report(jobs[1], "off".as_ref()));
        assert_eq!(std::fs::read(&file).expect("made anew").len(), bytes.len());
    }
    // a place that is none: no cache, and no word about it
    let nowhere = file.join("below-a-file");
    assert_eq!(report(jobs[1], nowhere.as_os_str()), report(jobs[1], "off".as_ref()));
    std::fs::remove_dir_all(&folder).expect("removable");
}
