//! Types of one name in several namespaces: samples of each are its own, and names with and without scopes find them.

mod common;
mod recorded;

use common::{compiles, run, stderr, stdout};
use recorded::{GET_A, GET_Y, NOTHING, Recorded, SET_B, access, record_program};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Two types `Node`, accessed by `get_a` and `set_b`; types of other names by `get_y` and `nothing`.
const SOURCE: &str = "\
namespace a { struct Node { long x; long y; }; }
namespace b { struct Node { long z; long w; }; }
namespace shop {
struct Never { long n; };
template <typename T> struct Queue { long head; T tail; };
struct Holder { Never inner; long count; };
}
extern \"C\" {
long get_a(a::Node *p) { return p->y; }
void set_b(b::Node *p, long v) { p->w = v; }
long get_y(shop::Queue<a::Node> *p) { return p->head; }
long nothing(shop::Holder *p) { return p->count; }
}
a::Node node_a;
b::Node node_b;
shop::Queue<a::Node> queue;
shop::Holder holder;
int main() { set_b(&node_b, 1); return (int)(get_a(&node_a) + get_y(&queue) + nothing(&holder)); }
";

/// Records one sample for each function named; none without a compiler of C++.
fn record(name: &str, options: &[&str], functions: &[&'static str]) -> Option<Recorded> {
    // cc may be without that of C++
    if !compiles(Command::new("c++").arg("--version")) {
        return None;
    }
    let accesses: Vec<_> = functions.iter().map(|function| access(function)).collect();
    record_program(name, SOURCE, &[&["-g", "-x", "c++"], options].concat(), true, &accesses)
}

/// Returns the samples of each type, by its name.
fn types(args: &[&str]) -> BTreeMap<String, u64> {
    let output = run(&[&["report", "--json", "-s", "type"], args].concat());
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    let document: Value = serde_json::from_str(&stdout(&output)).expect("a document");
    let row = |row: &Value| {
        let name = row["keys"]["type"].as_str().expect("a name").to_owned();
        (name, row["samples"].as_u64().expect("a number"))
    };
    document["rows"].as_array().expect("rows").iter().map(row).collect()
}

fn counts<const N: usize>(expected: [(&str, u64); N]) -> BTreeMap<String, u64> {
    expected.into_iter().map(|(name, samples)| (name.to_owned(), samples)).collect()
}

#[test]
fn types_of_one_name_are_told_apart_by_their_scopes() {
    for (name, options) in [("scopes-plain", &[][..]), ("scopes-units", &["-fdebug-types-section"])] {
        let Some(recorded) = record(name, options, &[GET_A, GET_A, SET_B, GET_Y]) else { return };
        let data = recorded.path();
        let (of_a, of_b) = ("struct a::Node", "struct b::Node");
        let queue = "struct Queue<a::Node>";
        assert_eq!(types(&["-i", data]), counts([(of_a, 2), (of_b, 1), (queue, 1)]), "{options:?}");
        // the short name means all, one with scopes its own
        assert_eq!(types(&["-i", data, "--type", "Node"]), counts([(of_a, 2), (of_b, 1)]));
        assert_eq!(types(&["-i", data, "--type", "b::Node"]), counts([(of_b, 1)]));
        assert_eq!(types(&["-i", data, "--type", "a::*"]), counts([(of_a, 2)]));
        let annotated = stdout(&run(&["annotate", "-i", data, "a::Node"]));
        assert!(annotated.starts_with("Annotate type: 'struct a::Node' in "), "{annotated}");
        assert_eq!(annotated.matches("Annotate type:").count(), 1, "{annotated}");
        let both = stdout(&run(&["annotate", "-i", data, "Node"]));
        assert!(both.contains("'struct a::Node'") && both.contains("'struct b::Node'"), "{both}");
        let fields = stdout(&run(&["report", "-i", data, "-s", "typeoff"]));
        assert!(fields.contains("struct b::Node +0x8 (w)"), "{fields}");
        let code = stdout(&run(&["annotate", "-i", data, "--code", "--symbol", "set_b"]));
        assert!(code.contains("struct b::Node +0x8 (w)"), "{code}");
        let output = run(&["annotate", "-i", data, "c::Node"]);
        assert!(stderr(&output).contains("no samples of type c::Node; the nearest names are "), "{output:?}");
        std::fs::remove_dir_all(recorded.folder).expect("removed");
    }
}

#[test]
fn arrays_and_pointers_are_told_apart_by_what_is_in_them() {
    let source = "\
struct Node { long g; };
namespace a { struct Node { long x; long y; }; }
namespace b { struct Node { long z; Node *next; }; }
template <typename T> struct Box { T item; };
typedef a::Node Pair[2];
a::Node nodes[4];
Pair pair;
const a::Node *volatile pointers[4];
Box<b::Node> box;
Node node;
extern \"C\" {
long get_a() { return nodes[2].y; }
long get_b() { return pair[1].x; }
void set_b(Node *p, long v) { p->g = v; }
long get_y(Box<b::Node> *p) { return p->item.z; }
long nothing() { return (long)pointers[1]; }
}
int main(int count, char **) {
    set_b(&node, count);
    return (int)(get_a() + get_b() + get_y(&box) + nothing());
}
";
    if !compiles(Command::new("c++").arg("--version")) {
        return;
    }
    let options = ["-g", "-x", "c++"];
    let record = |name: &str, functions: &[&'static str]| {
        let accesses: Vec<_> = functions.iter().map(|function| access(function)).collect();
        record_program(name, source, &options, true, &accesses)
    };
    let Some(all) = record("scopes-arrays", &[GET_A, "get_b", SET_B, GET_Y, NOTHING]) else { return };
    let data = all.path();
    let (array, pointers) = ("struct a::Node[4]", "const struct a::Node *volatile [4]");
    let boxed = "struct Box<b::Node>";
    let expected = [(array, 1), ("Pair", 1), ("struct Node", 1), (boxed, 1), (pointers, 1)];
    assert_eq!(types(&["-i", data]), counts(expected));
    for pattern in ["Node[4]", "a::Node[4]", "struct a::Node[4]"] {
        assert_eq!(types(&["-i", data, "--type", pattern]), counts([(array, 1)]), "{pattern}");
    }
    let fields = stdout(&run(&["report", "-i", data, "-s", "typeoff"]));
    assert!(fields.contains("struct a::Node[4] +0x28 ("), "{fields}");
    let element = |data: &str, ty: &str| {
        let annotated = stdout(&run(&["annotate", "-i", data, ty]));
        annotated.lines().nth(1).map(str::to_owned)
    };
    assert_eq!(element(data, array).as_deref(), Some(" by the element: struct a::Node"));
    // that of a typedef is no row, but a name of the same listing
    let Some(few) = record("scopes-typedef", &["get_b", SET_B]) else { return };
    assert_eq!(types(&["-i", few.path()]), counts([("Pair", 1), ("struct Node", 1)]));
    assert_eq!(element(few.path(), "Pair").as_deref(), Some(" by the element: struct a::Node"));
    // where one type has the name, it is short
    let Some(one) = record("scopes-array", &[GET_A, GET_Y]) else { return };
    assert_eq!(types(&["-i", one.path()]), counts([("struct Node[4]", 1), (boxed, 1)]));
    assert_eq!(element(one.path(), "Node[4]").as_deref(), Some(" by the element: struct Node"));
    for recorded in [all, few, one] {
        std::fs::remove_dir_all(recorded.folder).expect("removed");
    }
}

#[test]
fn a_name_that_is_unique_is_short_and_found_with_its_scopes() {
    let Some(recorded) = record("scopes-unique", &[], &[GET_A, GET_Y]) else { return };
    let data = recorded.path();
    let (node, queue) = ("struct Node", "struct Queue<a::Node>");
    assert_eq!(types(&["-i", data]), counts([(node, 1), (queue, 1)]));
    for pattern in ["a::Node", "::a::Node", "struct a::Node", "Node"] {
        assert_eq!(types(&["-i", data, "--type", pattern]), counts([(node, 1)]), "{pattern}");
    }
    for pattern in ["shop::Queue<a::Node>", "shop::Queue", "shop::*"] {
        assert_eq!(types(&["-i", data, "--type", pattern]), counts([(queue, 1)]), "{pattern}");
        let output = run(&["annotate", "-i", data, pattern]);
        assert!(stdout(&output).starts_with(&format!("Annotate type: '{queue}'")), "{pattern}: {output:?}");
    }
    // another type of that name has no samples
    let output = run(&["annotate", "-i", data, "b::Node"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("no samples of type b::Node"), "{output:?}");
    std::fs::remove_dir_all(recorded.folder).expect("removed");
}

#[test]
fn a_part_of_a_name_that_a_type_without_samples_has_is_said() {
    let Some(recorded) = record("scopes-part", &[], &[NOTHING]) else { return };
    let note = |pattern: &str| stderr(&run(&["annotate", "-i", recorded.path(), pattern]));
    assert_eq!(note("old"), "tallyline: no type is named old; showing struct Holder\n");
    // it is a member of what has samples
    assert!(note("Never").starts_with("tallyline: no samples of type Never; "), "{}", note("Never"));
    std::fs::remove_dir_all(recorded.folder).expect("removed");
}

#[test]
fn recordings_are_compared_by_types_and_not_by_their_short_names() {
    let Some(old) = record("scopes-old", &[], &[GET_A, GET_Y]) else { return };
    let Some(new) = record("scopes-new", &[], &[SET_B, GET_Y]) else { return };
    let output = run(&["report", "-i", new.path(), "--diff", old.path(), "-s", "type", "--json"]);
    let document: Value = serde_json::from_str(&stdout(&output)).expect("a document");
    let row = |row: &Value| row["keys"]["type"].as_str().expect("a name").to_owned();
    let mut names: Vec<String> = document["rows"].as_array().expect("rows").iter().map(row).collect();
    names.sort();
    assert_eq!(names, ["struct Queue<a::Node>", "struct a::Node", "struct b::Node"]);
    for recorded in [old, new] {
        std::fs::remove_dir_all(recorded.folder).expect("removed");
    }
}

#[test]
fn samples_of_a_type_in_a_namespace_are_evidence_of_its_change() {
    let Some(recorded) = record("scopes-heat", &[], &[GET_A, GET_A, SET_B, GET_Y]) else { return };
    let (old, new) = (recorded.folder.join("pair"), recorded.folder.join("new"));
    let source = recorded.folder.join("new.cpp");
    std::fs::write(&source, SOURCE.replace("long y; }", "long y; long more; }")).expect("written");
    assert!(compiles(Command::new("c++").args(["-g", "-o"]).arg(&new).arg(&source)));
    let [old, new] = [&old, &new].map(|path| path.to_str().expect("a plain path"));
    let output = run(&["diff", "--format", "json", "--profile", recorded.path(), old, new]);
    let text = stdout(&output);
    let document: Value = serde_json::from_str(&text).expect("a document");
    let changes = document["types"].as_array().expect("types");
    let change = changes.iter().find(|change| change["name"] == "a::Node").expect("a change of a::Node");
    assert_eq!(change["samples"]["share"], 0.5, "{change:#}");
    std::fs::remove_dir_all(recorded.folder).expect("removed");
}
