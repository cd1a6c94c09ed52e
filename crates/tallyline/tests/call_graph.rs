//! Callers in recordings whose call chains are copies of the stack.

mod common;

use common::{compiles, folder, run_in, stderr, stdout};
use serde_json::Value;
use std::process::Command;

/// Two functions call one that takes all the time; none of them has a frame pointer.
const PROGRAM: &str = "\
struct cell { volatile long value; } cell;
static void busy(struct cell *c, long n) { for (long i = 0; i < n; i++) c->value += i; }
void often(void) { busy(&cell, 30000000); cell.value = 1; }
void rarely(void) { busy(&cell, 10000000); cell.value = 2; }
int main(void) { for (int i = 0; i < 10; i++) { often(); rarely(); } return 0; }
";

#[test]
fn callers_are_unwound_from_copies_of_the_stack() {
    let folder = folder("call-graph");
    let (source, program) = (folder.join("calls.c"), folder.join("calls"));
    std::fs::write(&source, PROGRAM).expect("written");
    let mut compiler = Command::new("cc");
    compiler.args(["-g", "-O1", "-fno-inline", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o"]);
    if !compiles(compiler.arg(&program).arg(&source)) {
        return;
    }
    let program = program.to_str().expect("a plain path");
    let args = ["record", "-e", "cpu-clock:u", "--call-graph", "dwarf", "-o", "it.data", "--", program];
    let output = run_in(&folder, &args);
    if !output.status.success() {
        eprintln!("skipped: {}", stderr(&output).trim());
        return;
    }
    for keys in ["caller,sym", "caller,sym,type"] {
        let output = run_in(&folder, &["report", "-i", "it.data", "-s", keys, "--json"]);
        let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
        let rows = document["rows"].as_array().expect("rows");
        let of = |caller: &str| -> u64 {
            let is_it = |row: &&Value| row["keys"]["sym"] == "[.] busy" && row["keys"]["caller"] == caller;
            rows.iter().filter(is_it).map(|row| row["samples"].as_u64().expect("a number")).sum()
        };
        let (often, rarely, none) = (of("[.] often"), of("[.] rarely"), of("(no call chain)"));
        assert!(often > rarely && rarely > 0 && none == 0, "{keys}: {document}");
        // each sample is still there, once
        let sum: u64 = rows.iter().map(|row| row["samples"].as_u64().expect("a number")).sum();
        assert_eq!(document["samples"], sum);
    }
    let text = stdout(&run_in(&folder, &["report", "-i", "it.data", "-s", "caller,sym"]));
    assert!(text.contains("[.] often") && text.contains("[.] busy"), "{text}");
    std::fs::remove_dir_all(&folder).expect("removed");
}
