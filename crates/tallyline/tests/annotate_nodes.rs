//! Nodes of containers are shown as one object each, whichever of their parts the code knows.

mod common;

use common::{compiles, folder, run, stderr, stdout};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Returns whether a key of a row starts with a name.
fn named(row: &Value, key: &str, name: &str) -> bool {
    row[key].as_str().is_some_and(|text| text.starts_with(name))
}

#[test]
fn a_node_is_one_object_with_its_base_and_its_element() {
    let folder = folder("annotate-nodes");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/nodes.cc");
    let (program, data) = (folder.join("nodes"), folder.join("nodes.data"));
    if !compiles(Command::new("g++").args(["-O2", "-g", "-std=c++17", "-o"]).arg(&program).arg(source)) {
        return;
    }
    let (program, data) = (program.to_str().expect("a path"), data.to_str().expect("a path"));
    let recorded =
        run(&["record", "-q", "-F", "5000", "-e", "cpu-clock:u", "-o", data, "--", program, "more"]);
    if !recorded.status.success() {
        eprintln!("skipped: nothing is recorded here: {}", stderr(&recorded));
        return;
    }
    let shown = run(&["annotate", "-i", data, "*"]);
    assert!(shown.status.success(), "{}", stderr(&shown));
    let text = stdout(&shown);
    for node in ["_Rb_tree_node<", "_Hash_node<"] {
        let head = |line: &&str| line.starts_with("Annotate type: ") && line.contains(node);
        let mut lines = text.lines().skip_while(|line| !head(line));
        let head = lines.next().unwrap_or_else(|| panic!("no {node} in {text}"));
        let parts = lines.next().unwrap_or_default();
        assert!(parts.contains("with samples of its parts") && parts.contains("pair<"), "{head}: {parts}");
        // its element's members stand where it only has room for bytes
        let body: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
        assert!(body.iter().any(|line| line.contains("quantity")), "{head}: {body:#?}");
    }
    let part = |line: &&str| line.starts_with("Annotate type: 'struct pair<long int const, Order>");
    assert!(!text.lines().any(|line| part(&line)), "{text}");
    // so do rows of reports, with the node's offsets; the parts by themselves are there on request
    let rows = |more: &[&str]| {
        let words = [&["report", "--json", "-s", "type,typeoff,typecln", "-i", data], more].concat();
        let shown = run(&words);
        let document: Value = serde_json::from_str(&stdout(&shown)).expect("JSON");
        let keys = document["rows"].as_array().expect("rows").iter().map(|row| row["keys"].clone());
        keys.collect::<Vec<_>>()
    };
    let has = |rows: &[Value], name: &str| {
        rows.iter().any(|row| ["type", "typeoff", "typecln"].iter().all(|key| named(row, key, name)))
    };
    let (whole, parts) = (rows(&[]), rows(&["--parts"]));
    let element = "struct pair<long int const, Order>";
    assert!(has(&whole, "struct _Rb_tree_node<") && has(&whole, "struct _Hash_node<"), "{whole:#?}");
    assert!(!has(&whole, element) && !has(&whole, "struct _Hash_node_base"), "{whole:#?}");
    // Not the base: where the element's load comes first, the link in the same line may have no sample (AMD Zen 5).
    assert!(has(&parts, element), "{parts:#?}");
    // the element is behind the base of four words
    let is_quantity = |row: &Value| {
        named(row, "typeoff", "struct _Rb_tree_node<") && {
            row["typeoff"].as_str().is_some_and(|text| text.ends_with("> +0x30 (second.quantity)"))
        }
    };
    assert!(whole.iter().any(is_quantity), "{whole:#?}");
    // by the name of the part it is found, too
    let by_part = run(&["annotate", "-i", data, "struct pair<long int const, Order>"]);
    assert!(by_part.status.success() && stdout(&by_part).contains("_Rb_tree_node<"), "{}", stderr(&by_part));
    std::fs::remove_dir_all(&folder).expect("removed");
}
