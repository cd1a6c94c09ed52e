//! `tallyline diff`: two versions of a program, made by the machine's compiler.

mod common;
mod recorded;

use common::{data, folder, object, run, run_in, stderr, stdout};
use recorded::{Access, GET_A, GET_Y, PROGRAM, SET_B, access};
use serde_json::Value;
use std::path::PathBuf;

const OLD: &str = "\
struct grown { int a; char b; long c; unsigned f : 3; };
struct gone { int x; };
struct same { int x; };
struct retyped { int x; };
struct lines { char start[56]; long last; };
struct nested { struct { int a; int b; } in; };
union both { int a; long b; };
struct grown grown; struct gone gone; struct same same; struct retyped retyped; struct lines lines;
struct nested nested; union both both;
";

const NEW: &str = "\
struct grown { int a; int d; char b; long c; unsigned f : 5; };
struct fresh { int x; };
struct same { int x; };
struct retyped { unsigned x; };
struct lines { char start[64]; long last; };
struct nested { struct { int b; int a; } in; };
union both { int a; long b[2]; };
struct grown grown; struct fresh fresh; struct same same; struct retyped retyped; struct lines lines;
struct nested nested; union both both;
";

fn versions(name: &str) -> Option<PathBuf> {
    let folder = folder(name);
    for (version, text) in [("old", OLD), ("new", NEW)] {
        let source = object(&folder, "program", text)?;
        std::fs::rename(&source, folder.join(format!("{version}.o"))).expect("renamed");
    }
    Some(folder)
}

fn diff(folder: &std::path::Path, more: &[&str]) -> String {
    let output = run_in(folder, &[&["diff", "old.o", "new.o"], more].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    stdout(&output).replace(folder.to_str().expect("a plain path"), "")
}

#[test]
fn types_and_members_that_differ_are_shown() {
    let Some(folder) = versions("diff-text") else { return };
    let expected = "\
grown   struct grown: 24 -> 32 bytes, 3 -> 7 bytes of holes, /program.c:1
    + d at 4 on line 0: int
    ~ f 16:0 -> 24:0: 3 bits -> 5 bits
    2 members moved on the same cache line
added   struct fresh: 4 bytes, /program.c:2
grown   struct lines: 64 -> 72 bytes, 1 -> 2 lines, /program.c:5
    ~ start at 0: 56 bytes -> 64 bytes, char[56] -> char[64]
    ~ last 56 -> 64: line 0 -> 1
moved   struct nested: 8 bytes, /program.c:6
    2 members moved on the same cache line
grown   union both: 8 -> 16 bytes, /program.c:7
    ~ b at 0: 8 bytes -> 16 bytes, long int -> long int[2]
removed struct gone: 4 bytes, /program.c:2
1 added, 1 removed, 3 grown, 0 shrunk, 1 of the same size with other members or places; 1 with members on other \
cache lines; 2 the same
";
    assert_eq!(diff(&folder, &["--all"]), expected);
    let verbose = diff(&folder, &["--verbose"]);
    assert!(verbose.contains("    ~ in.b 4 -> 0\n    ~ in.a 0 -> 4\n"), "{verbose}");
}

#[test]
fn a_changed_type_of_a_member_is_a_difference_if_it_is_asked_for() {
    let Some(folder) = versions("diff-types") else { return };
    assert!(!diff(&folder, &[]).contains("retyped"));
    let text = diff(&folder, &["--types", "-C", "retyped"]);
    assert!(text.contains("    ~ x at 0: int -> unsigned int\n"), "{text}");
}

#[test]
fn the_same_has_no_differences_and_exits_with_0() {
    for (format, words) in [
        ("text", "no differences in"),
        ("markdown", "No differences"),
        ("json", "\"types\":[\n\n],\"counts\""),
        ("codiff", ""),
    ] {
        let file = data("holes.o");
        let output = run(&["diff", "--format", format, &file, &file]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(stdout(&output).contains(words), "{output:?}");
    }
}

#[test]
fn dwarf_and_btf_of_one_file_are_laid_out_alike() {
    for name in ["holes", "nesting", "kinds", "bitfields"] {
        let output = run(&["diff", &data(&format!("{name}.o")), &data(&format!("{name}.btf"))]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
}

#[test]
fn patterns_choose_and_leave_out_types() {
    let Some(folder) = versions("diff-filter") else { return };
    let text = diff(&folder, &["-C", "g*,lines", "--exclude", "gone"]);
    assert!(text.contains("struct grown") && text.contains("struct lines"), "{text}");
    assert!(!text.contains("struct gone") && !text.contains("union both"), "{text}");
    let output = run_in(&folder, &["diff", "-C", "same", "old.o", "new.o"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn json_has_old_and_new_of_everything() {
    let Some(folder) = versions("diff-json") else { return };
    let value: Value = serde_json::from_str(&diff(&folder, &["--format", "json"])).expect("JSON");
    let types = value["types"].as_array().expect("types");
    let names: Vec<_> = types.iter().map(|ty| (ty["name"].as_str(), ty["change"].as_str())).collect();
    let expected = [
        ("grown", "grown"),
        ("fresh", "added"),
        ("lines", "grown"),
        ("nested", "rearranged"),
        ("both", "grown"),
        ("gone", "removed"),
    ];
    assert_eq!(names, expected.map(|(name, change)| (Some(name), Some(change))));
    let last = &types[2]["members"][1];
    assert_eq!((&last["old"]["line"], &last["new"]["line"]), (&0.into(), &1.into()));
    assert_eq!(value["counts"]["across_lines"], 1);
    assert!(types[1]["old"].is_null() && types[5]["new"].is_null());
}

#[test]
fn markdown_is_a_table_and_codiff_s_style_is_short() {
    let Some(folder) = versions("diff-tables") else { return };
    let table = diff(&folder, &["--format", "markdown"]);
    assert!(table.starts_with("| type | bytes |"), "{table}");
    assert!(table.contains(
        "| struct `lines` | 64 → 72 (**+8**) | 1 → 2 | 0 | 0 | `start` resized, `last` line 0 → 1 |"
    ));
    assert!(table.contains("| struct `gone` | 4 | 1 | 0 | 0 | **removed** |"), "{table}");
    let expected = "\
/program.c:
  struct grown  |   +8
  struct lines  |   +8
  struct nested |   +0
 3 structs changed
";
    assert_eq!(diff(&folder, &["--format", "codiff"]), expected);
    let verbose = diff(&folder, &["--format", "codiff", "-v", "-C", "grown"]);
    assert!(verbose.contains("   nr_members: +1\n    d\n     added:   int      "), "{verbose}");
}

#[test]
fn files_that_cannot_be_read_are_errors_and_no_differences() {
    let output = run(&["diff", &data("holes.o"), "no/such/file"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn the_root_cause_comes_first_and_its_followers_are_folded() {
    let folder = folder("diff-causes");
    let source = |more: &str| {
        let mut text = format!(
            "struct device {{ long a, b; {more} }};\nstruct pci {{ struct device dev; long id; }};\n"
        );
        text.push_str("struct small { int x; };\nstruct pci pci; struct small small;\n");
        for number in 0..60 {
            text.push_str(&format!("struct card{number} {{ struct pci pci; long x; }} card{number};\n"));
        }
        text
    };
    let old = source("");
    let new = source("long c;").replace("int x; };", "int x, y; };");
    for (version, text) in [("old", old), ("new", new)] {
        let Some(made) = object(&folder, "program", &text) else { return };
        std::fs::rename(&made, folder.join(format!("{version}.o"))).expect("renamed");
    }
    let text = diff(&folder, &[]);
    let expected = "\
grown   struct device: 16 -> 24 bytes, /program.c:1
    + c at 16 on line 0: long int
    61 types grow with it: struct pci (+8), struct card0 (+8), struct card1 (+8), struct card2 (+8), struct card3 (+8), \
struct card4 (+8), 55 more
grown   struct small: 4 -> 8 bytes, /program.c:3
    + y at 4 on line 0: int
0 added, 0 removed, 63 grown";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.lines().count() < 40, "{text}");
    assert_eq!(diff(&folder, &["--all"]).lines().filter(|line| line.starts_with("grown ")).count(), 63);
    let table = diff(&folder, &["--format", "markdown"]);
    assert!(table.find("`device`") < table.find("`small`"), "{table}");
    assert!(table.contains("<details><summary>61 types that contain them</summary>"), "{table}");
    assert!(table.contains("\n21 not shown\n"), "{table}");
    let value: Value = serde_json::from_str(&diff(&folder, &["--format", "json"])).expect("JSON");
    let types = value["types"].as_array().expect("types");
    assert_eq!(types.len(), 63);
    let causes = |name: &str| types.iter().find(|ty| ty["name"] == name).map(|ty| ty["causes"].clone());
    assert_eq!(causes("device"), Some(serde_json::json!([])));
    assert_eq!(causes("pci"), Some(serde_json::json!(["device"])));
    assert_eq!(causes("card7"), Some(serde_json::json!(["pci"])));
}

#[test]
fn more_differences_than_a_screen_are_folded_and_counted() {
    let folder = folder("diff-many");
    for (version, member) in [("old", "int"), ("new", "long")] {
        let text: String =
            (0..200).map(|number| format!("struct t{number} {{ {member} x; }} v{number};\n")).collect();
        let Some(made) = object(&folder, "program", &text) else { return };
        std::fs::rename(&made, folder.join(format!("{version}.o"))).expect("renamed");
    }
    let text = diff(&folder, &[]);
    assert!(text.lines().count() < 40, "{text}");
    let shown = text.lines().filter(|line| line.starts_with("grown ")).count();
    assert!(
        text.contains(&format!("\n{} more types that differ; --all shows them\n", 200 - shown)),
        "{text}"
    );
}

#[test]
fn impact_is_ranked_by_broken_rules_samples_and_instances() {
    let more = "struct cold { long x; }; struct cold cold; struct many { int x; }; struct many many;\n";
    let old = PROGRAM.to_owned() + more;
    let samples: Vec<_> = [(GET_A, 60), (SET_B, 20), (GET_Y, 20)]
        .iter()
        .flat_map(|(name, count)| vec![access(name); *count])
        .collect();
    let Some(recorded) = recorded::record_program("diff-impact", &old, &["-g"], true, &samples) else {
        return;
    };
    let folder = &recorded.folder;
    let new = old
        .replace("long a; long b;", "long c; long a; long b;")
        .replace("struct cold { long x; }", "struct cold { long x[90]; }")
        .replace("struct many { int x; }", "struct many { int x, y; }");
    let Some(made) = object(folder, "new", &new) else { return };
    std::fs::write(
        folder.join("layout.toml"),
        "[[type]]\nname = \"many\"\nmax-size = 4\n\n[[type]]\nname = \"pair\"\n        max-size = 400\n",
    )
    .expect("written");
    std::fs::write(folder.join("instances"), "many 1000\n").expect("written");
    let run = |more: &[&str]| {
        let output = run_in(folder, &[&["diff", "pair", &made], more].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        stdout(&output)
    };
    let order = |text: &str| {
        let mut names: Vec<_> = ["struct pair:", "struct cold:", "struct many:"]
            .iter()
            .map(|name| (text.find(name).unwrap_or_else(|| panic!("{name}: {text}")), name[7..11].to_owned()))
            .collect();
        names.sort();
        names.into_iter().map(|(_, name)| name).collect::<Vec<_>>()
    };
    // bytes alone
    assert_eq!(order(&run(&[])), ["cold", "pair", "many"]);
    let hot = run(&["--profile", "perf.data"]);
    assert_eq!(order(&hot), ["pair", "cold", "many"]);
    assert!(hot.contains("\n    100.0 % of the samples: a 60.0 %, b 20.0 %, in 20.0 %\n"), "{hot}");
    let many = run(&["--instances", "instances"]);
    assert_eq!(order(&many), ["many", "cold", "pair"]);
    assert!(many.contains("\n    1000 instances: +4000 bytes\n"), "{many}");
    let held = run(&["--policy", "layout.toml", "--profile", "perf.data"]);
    assert_eq!(order(&held), ["many", "pair", "cold"]);
    assert!(held.contains("\n    breaks max-size of layout.toml:1 ([[type]])\n"), "{held}");
    assert!(held.contains("\n    held by layout.toml:5 ([[type]])\n"), "{held}");
    let table = run(&["--policy", "layout.toml", "--profile", "perf.data", "--format", "markdown"]);
    assert!(table.contains("; breaks max-size of layout.toml:1"), "{table}");
    let json = run(&[
        "--policy",
        "layout.toml",
        "--profile",
        "perf.data",
        "--instances",
        "instances",
        "--format",
        "json",
    ]);
    let value: Value = serde_json::from_str(&json).expect("JSON");
    let of = |name: &str| {
        value["types"].as_array().expect("types").iter().find(|ty| ty["name"] == name).expect("there").clone()
    };
    assert_eq!(of("pair")["samples"]["share"], 1.0);
    assert_eq!(of("pair")["samples"]["fields"][0], serde_json::json!({"name": "a", "share": 0.6}));
    assert_eq!(
        of("many")["rules"],
        serde_json::json!({"about": [{"line": 1, "kind": "type"}], "broken": ["max-size"]})
    );
    assert_eq!((&of("many")["instances"], &of("many")["samples"]), (&1000.into(), &Value::Null));
}

#[test]
fn samples_of_several_events_are_not_added_up() {
    let of = |event, function, count| vec![Access { event, ..access(function) }; count];
    let samples = [of(0, GET_A, 60), of(1, GET_Y, 10), of(0, SET_B, 40)].concat();
    let Some(recorded) = recorded::record_program("diff-events", PROGRAM, &["-g"], true, &samples) else {
        return;
    };
    let folder = &recorded.folder;
    let Some(made) = object(folder, "new", &PROGRAM.replace("long a; long b;", "long c; long a; long b;"))
    else {
        return;
    };
    let run =
        |more: &[&str]| run_in(folder, &[&["diff", "pair", &made, "--profile", "perf.data"], more].concat());
    // a fault counts as a thousand loads
    let first = stdout(&run(&[]));
    let line = "\n    100.0 % of the samples of event 'loads': a 60.0 %, b 40.0 %\n";
    assert!(first.contains(line), "{first}");
    let second = stdout(&run(&["--event", "faults"]));
    assert!(second.contains("\n    100.0 % of the samples of event 'faults': in 100.0 %\n"), "{second}");
    let json: Value = serde_json::from_str(&stdout(&run(&["-e", "f*", "--format", "json"]))).expect("JSON");
    let of_pair = json["types"].as_array().expect("types").iter().find(|ty| ty["name"] == "pair");
    assert_eq!(of_pair.expect("there")["samples"]["event"], "faults");
    let refused = |event, why: &str| {
        let output = run(&["--event", event]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && errors.contains(why), "{errors}");
    };
    refused("*", "--event: loads, faults: the periods of different events do not add up; name one");
    refused("cycles", "no samples of event cycles; there are faults, loads");
}

const UNTAGGED: [&str; 2] = [
    "typedef struct { int x; } conn_t; struct named { int x; }; typedef struct named named_t;
struct holder { conn_t conn; } h; named_t n;",
    "typedef struct { int x; long y; } conn_t; struct named { int x; long y; }; typedef struct named named_t;
struct holder { conn_t conn; } h; named_t n;",
];

#[test]
fn structs_that_only_a_typedef_names_are_compared_by_its_name() {
    let folder = folder("diff-typedefs");
    for (version, text) in ["old", "new"].into_iter().zip(UNTAGGED) {
        let Some(made) = object(&folder, "program", text) else { return };
        std::fs::rename(&made, folder.join(format!("{version}.o"))).expect("renamed");
    }
    let all = diff(&folder, &["--all"]);
    for name in ["conn_t", "named", "holder"] {
        assert_eq!(all.matches(&format!("struct {name}: ")).count(), 1, "{name}: {all}");
    }
    // one cause, which the struct that contains it follows
    let json: Value = serde_json::from_str(&diff(&folder, &["--format", "json"])).expect("JSON");
    let holder = json["types"].as_array().expect("types").iter().find(|ty| ty["name"] == "holder");
    assert_eq!(holder.expect("there")["causes"], serde_json::json!(["conn_t"]), "{json}");
    let one = diff(&folder, &["-C", "conn_t"]);
    assert!(one.contains("struct conn_t: 4 -> 16 bytes") && !one.contains("named"), "{one}");
    // a typedef means the struct behind it
    assert!(diff(&folder, &["-C", "named_t"]).contains("struct named: 4 -> 16 bytes"));
    let rest = diff(&folder, &["-x", "conn*"]);
    assert!(!rest.contains("struct conn_t") && rest.contains("struct named: "), "{rest}");
}

#[test]
fn an_unknown_name_is_an_error() {
    let Some(folder) = versions("diff-unknown") else { return };
    for names in ["nope", "nope*", "grown,nope"] {
        let output = run_in(&folder, &["diff", "-C", names, "old.o", "new.o"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let unknown = names.trim_start_matches("grown,");
        assert!(stderr(&output).contains(&format!("old.o, new.o: no type named {unknown}\n")), "{output:?}");
    }
    // a type of one of the files is known
    let output = run_in(&folder, &["diff", "-C", "fresh", "old.o", "new.o"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
