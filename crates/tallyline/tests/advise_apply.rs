//! `tallyline advise --apply`: from a program to its edited, verified and measured source. What needs QEMU and compilers
//! is left out, with a message, where they are not.

mod common;

use common::{compiles, folder, run_in, stderr, stdout};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies an example to a folder of its own and builds it; none, with a message, where that or a trace of it cannot be
/// had.
fn project(name: &str, example: &str, build: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example);
    if !source.is_file() {
        eprintln!("skipped: no {}; the package alone does not have the examples", source.display());
        return None;
    }
    let has_emulator = Command::new("qemu-x86_64").arg("--version").output().is_ok();
    if !cfg!(target_arch = "x86_64") || !has_emulator {
        eprintln!("skipped: needs x86-64 and qemu-x86_64");
        return None;
    }
    let folder = folder(name).canonicalize().expect("it is there");
    // a project of its own, whatever is around it
    std::fs::create_dir_all(folder.join(".git")).expect("a folder");
    std::fs::copy(&source, folder.join(source.file_name().expect("a name"))).expect("copied");
    compiles(Command::new("sh").current_dir(&folder).args(["-c", build])).then_some(folder)
}

/// Applies the advice on the program `./a` of a project.
fn applied(folder: &Path, more: &[&str], words: &[&str]) -> Value {
    let first = ["advise", "--apply", "--json", "--schedules", "2", "--accesses", "60000", "--whole"];
    let output = run_in(folder, &[&first, more, &["--", "./a"], words].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn text(folder: &Path, file: &str) -> String {
    std::fs::read_to_string(folder.join(file)).expect("read")
}

fn undone(folder: &Path) {
    let output = run_in(folder, &["advise", "--undo"]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn elements_of_threads_get_lines_of_their_own() {
    let build = "cc -O2 -g -pthread pending_writes.c -o a";
    let Some(folder) = project("advise-apply-pending", "cases/pending_writes.c", build) else { return };
    let before = text(&folder, "pending_writes.c");
    // nothing says how it is built
    let words = ["--schedules", "2", "--accesses", "8000", "--whole", "--", "./a", "2000"];
    let output = run_in(&folder, &[&["advise", "--apply"], &words[..]].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("--build verifies by the project's own build"), "{}", stderr(&output));
    assert_eq!(text(&folder, "pending_writes.c"), before);

    // what does not pay is not kept, and no program is a million times faster by this
    let measured = ["--build", build, "--measure", "./a 2000", "--pairs", "2", "--keep-if", "1000000"];
    let json = applied(&folder, &measured, &["2000"]);
    let edits = &json["edits"];
    assert_eq!((&edits["applied"], &edits["built"]), (&false.into(), &true.into()), "{edits}");
    assert_eq!(edits["speed_up"]["pairs"], 2, "{edits}");
    assert_eq!(text(&folder, "pending_writes.c"), before);

    let entry = serde_json::json!([{
        "directory": folder, "file": "pending_writes.c", "command": "cc -O2 -c pending_writes.c",
    }]);
    std::fs::write(folder.join("compile_commands.json"), entry.to_string()).expect("written");
    let json = applied(&folder, &[], &["2000"]);
    let edits = &json["edits"];
    assert_eq!((&edits["applied"], &edits["verified"]["units"]), (&true.into(), &1.into()), "{edits}");
    assert_ne!(text(&folder, "pending_writes.c"), before);
    assert!(compiles(Command::new("sh").current_dir(&folder).args(["-c", build])));
    let layout = stdout(&run_in(&folder, &["layout", "--sizes", "./a"]));
    assert!(layout.contains("pending\t64\t"), "{layout}");
    undone(&folder);
    assert_eq!(text(&folder, "pending_writes.c"), before);
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn members_of_a_class_keep_their_initialisers() {
    let build = "c++ -std=c++17 -O2 -g -pthread order_book.cc -o a";
    let Some(folder) = project("advise-apply-book", "order-book/order_book.cc", build) else { return };
    let before = text(&folder, "order_book.cc");
    // so many orders that the sides overlap under load, too: where one ends before the other starts nothing is shared
    let json = applied(&folder, &["--build", build], &["40000"]);
    let edits = &json["edits"];
    assert_eq!((&edits["applied"], &edits["built"]), (&true.into(), &true.into()), "{edits}");
    let after = text(&folder, "order_book.cc");
    assert!(after.contains(" alignas(64) = 0;\n"), "{after}");
    assert!(after.contains("std::uint32_t lot = 10;\n"), "{after}");
    assert!(compiles(Command::new("sh").current_dir(&folder).args(["-c", build])));
    let status = Command::new(folder.join("a")).arg("1000").output().expect("run");
    assert!(status.status.success(), "{status:?}");
    undone(&folder);
    assert_eq!(text(&folder, "order_book.cc"), before);
    std::fs::remove_dir_all(folder).expect("removed");
}
