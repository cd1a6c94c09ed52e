//! Nodes of containers are shown as one object each, whichever of their parts the code knows.

mod common;

use common::{compiles, folder, run, stderr, stdout};
use std::path::Path;
use std::process::Command;

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
    // by the name of the part it is found, too
    let by_part = run(&["annotate", "-i", data, "struct pair<long int const, Order>"]);
    assert!(by_part.status.success() && stdout(&by_part).contains("_Rb_tree_node<"), "{}", stderr(&by_part));
    std::fs::remove_dir_all(&folder).expect("removed");
}
