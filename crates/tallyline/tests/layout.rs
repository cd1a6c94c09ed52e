//! `tallyline layout`: operands, names, and how it ends.

mod common;

use common::{compiles, data, folder, run, run_in, stderr, stdout, tallyline};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

fn golden(name: &str) -> String {
    std::fs::read_to_string(data(name)).expect("committed")
}

#[test]
fn a_file_alone_means_every_type_of_it() {
    for (file, format) in [("holes.o", "dwarf"), ("holes.btf", "btf")] {
        let output = run(&["layout", &data(file)]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(stdout(&output), golden(&format!("holes.{format}.plain.txt")));
        assert_eq!(stderr(&output), "");
    }
}

#[test]
fn files_have_names_of_any_bytes() {
    let folder = folder("layout-bytes");
    let path = folder.join(std::ffi::OsStr::from_bytes(b"caf\xe9.o"));
    fs::copy(data("holes.o"), &path).expect("copied");
    for command in ["layout", "groups", "reorganize"] {
        let output = tallyline().arg(command).arg(&path).output().expect("runs");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(stdout(&output), stdout(&run(&[command, &data("holes.o")])), "{command}");
    }
    let output = tallyline().current_dir(&folder).args(["layout"]).arg("no-such").arg(&path).output();
    let text = stderr(&output.expect("runs"));
    assert!(text.contains("no-such"), "{text}");
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn pahole_s_names_of_options_are_known() {
    let file = data("nesting.o");
    for (option, name) in [
        ("--expand_types", "expand"),
        ("-E", "expand"),
        ("--hex", "hex"),
        ("--sizes", "sizes"),
        ("-s", "sizes"),
        ("--quiet", "quiet"),
        ("--cacheline_size=32", "line32"),
        ("-c32", "line32"),
        ("--rel_offset", "relative"),
        ("--flat_arrays", "flat"),
        ("--unions", "unions"),
    ] {
        let output = run(&["layout", option, &file]);
        assert_eq!(stdout(&output), golden(&format!("nesting.dwarf.{name}.txt")), "{option}");
    }
}

#[test]
fn types_come_before_the_file_and_an_empty_line_behind_each() {
    let file = data("holes.o");
    let one = stdout(&run(&["layout", "dense", &file]));
    assert!(one.starts_with("struct dense {\n") && one.ends_with("};\n\n"), "{one}");
    let two = stdout(&run(&["layout", "dense", "padded", &file]));
    assert!(two.starts_with(&one) && two.contains("\nstruct padded {\n"), "{two}");
    assert_eq!(stdout(&run(&["layout", "-C", "dense,padded", "--file", &file])), two);
    let patterns = stdout(&run(&["layout", "p*d", &file]));
    assert_eq!(patterns.matches("\nstruct ").count() + 1, 3, "{patterns}");
}

#[test]
fn enumerations_and_typedefs_are_found_by_name() {
    let signs = stdout(&run(&["layout", "signs", &data("kinds.o")]));
    assert_eq!(signs, "enum signs {\n\tMINUS = -3,\n\tZERO  = -2,\n\tPLUS  = 70000,\n};\n\n");
    let callback = stdout(&run(&["layout", "callback_t", &data("kinds.btf")]));
    assert_eq!(callback, "typedef int (*callback_t)(void *, const char  *);\n\n");
}

#[test]
fn what_is_not_there_is_named_and_ends_with_status_2() {
    let file = data("holes.o");
    let output = run(&["layout", "dense", "nonesuch", &file]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).starts_with("struct dense {\n"), "{output:?}");
    assert!(stderr(&output).contains("nonesuch"), "{output:?}");
    for args in [
        &["layout", "--file", "no/such/file"][..],
        &["layout", "--file", &data("holes.c")],
        &["layout", "-F", "btf", "--file", &file],
        &["layout", "--contains", "nonesuch", &file],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert_eq!(stderr(&output).lines().count(), 1, "{args:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{args:?}: {output:?}");
    }
}

#[test]
fn what_holds_and_what_points_to_a_type() {
    let holders = stdout(&run(&["layout", "--contains", "one_hole", &data("holes.o")]));
    assert_eq!(holders, "inner_holes\n");
    for file in ["kinds.o", "kinds.btf"] {
        assert_eq!(
            stdout(&run(&["layout", "--contains", "callback_t", &data(file)])),
            "functions\n",
            "{file}"
        );
    }
    let pointers = stdout(&run(&["layout", "--find-pointers-to", "pointers", &data("kinds.o")]));
    assert_eq!(pointers, "pointers: h\n");
}

#[test]
fn the_debug_file_of_a_stripped_program_is_found_by_its_link() {
    let folder = common::folder("debug-link");
    let path = |name: &str| folder.join(name).to_str().expect("a plain path").to_string();
    let (program, debug) = (path("program"), path("program.debug"));
    std::fs::write(path("main.c"), "struct seen { char a; long b; } seen; int main(void) { return 0; }\n")
        .expect("written");
    let link = format!("--add-gnu-debuglink={debug}");
    let main = path("main.c");
    for command in [
        &["cc", "-g", "-o", &program, &main][..],
        &["objcopy", "--only-keep-debug", &program, &debug],
        &["strip", "--strip-debug", &program],
        &["objcopy", &link, &program],
    ] {
        let done = std::process::Command::new(command[0]).args(&command[1..]).output();
        if !done.is_ok_and(|done| done.status.success()) {
            eprintln!("skipped: {command:?}");
            return;
        }
    }
    let output = run(&["layout", "seen", &program]);
    assert!(stdout(&output).starts_with("struct seen {\n"), "{output:?}");
    std::fs::remove_file(&debug).expect("removable");
    let output = run(&["layout", "seen", &program]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("no type information"), "{output:?}");
}

/// Commands that take a type's name, each with what it says of one.
const BY_NAME: [&[&str]; 3] = [&["layout"], &["layout", "--sizes"], &["reorganize"]];

#[test]
fn the_package_of_a_go_type_need_not_be_typed() {
    let folder = folder("go-names");
    let source = "package main\nimport \"fmt\"\ntype Server struct { open bool; count int64; done bool }\n
        type Pair[T any] struct { one, other T }\n
        func main() { s := &Server{count: 2}; p := &Pair[int32]{1, 2}; fmt.Println(s, p) }\n";
    fs::write(folder.join("main.go"), source).expect("written");
    let mut go = Command::new("go");
    go.args(["build", "-ldflags=-compressdwarf=false", "-o", "served", "main.go"]).current_dir(&folder);
    if !compiles(go.env("GOFLAGS", "-mod=mod").env("GO111MODULE", "off")) {
        return;
    }
    for command in BY_NAME {
        let shown = |name: &str| {
            let output = run_in(&folder, &[command, &[name, "./served"]].concat());
            let text = stdout(&output) + &stderr(&output);
            assert!(!text.contains("no type named"), "{command:?} {name}: {text}");
            text
        };
        assert!(shown("Server").contains("main.Server"), "{command:?}");
        assert_eq!(shown("Server"), shown("main.Server"), "{command:?}");
        assert_eq!(shown("Pair[int32]"), shown("main.Pair[int32]"), "{command:?}");
    }
    let output = run_in(&folder, &["layout", "erver", "./served"]);
    assert!(!output.status.success(), "a part of a name is not the name");
}

#[test]
fn a_file_in_front_of_types_is_said_to_come_last() {
    let folder = folder("file-first");
    fs::write(folder.join("one.c"), "struct seen { char a; long b; } seen; int main(void) { return 0; }\n")
        .expect("written");
    let mut compiler = Command::new("cc");
    if !compiles(compiler.args(["-g", "-o", "one", "one.c"]).current_dir(&folder)) {
        return;
    }
    std::os::unix::fs::symlink("one", folder.join("again")).expect("linked");
    let output = run_in(&folder, &["layout", "./again", "seen", "./one"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let expected = "tallyline: ./one: no type named ./again; the file ./again comes last, behind the types\n";
    assert_eq!(stderr(&output), expected);
}

#[test]
fn scopes_that_tell_versions_apart_need_not_be_typed() {
    let folder = folder("versions");
    let source = "#include <string>\n#include <list>\nnamespace net { inline namespace v2 { struct Peer { char a; long b; char c; }; } }
        struct Peer { int other; };
        std::string text; std::list<int> all; net::Peer peer; Peer plain; int main() { return 0; }\n";
    fs::write(folder.join("versions.cc"), source).expect("written");
    let mut compiler = Command::new("g++");
    if !compiles(compiler.args(["-g", "-o", "versions", "versions.cc"]).current_dir(&folder)) {
        return;
    }
    for command in BY_NAME {
        let shown = |name: &str| {
            let output = run_in(&folder, &[command, &[name, "./versions"]].concat());
            let text = stdout(&output) + &stderr(&output);
            assert!(!text.contains("no type named"), "{command:?} {name}: {text}");
            text
        };
        assert_eq!(shown("net::Peer"), shown("net::v2::Peer"), "{command:?}");
        assert!(!shown("net::Peer").contains("other"), "{command:?}");
        let list = "list<int, std::allocator<int> >";
        let typed = shown(&format!("std::{list}"));
        assert_eq!(typed, shown(&format!("std::__cxx11::{list}")), "{command:?}");
        assert!(typed.contains("list<int"), "{typed}");
    }
}

#[test]
fn a_pattern_and_a_misspelt_name_find_what_is_in_the_file() {
    let folder = folder("patterns");
    let source = "namespace ring { struct Buffer { char a; long b; }; struct Head { int c; }; struct Outer { struct In { int d; } in; }; }
        struct Plain { int e; }; typedef Plain Alias;
        ring::Buffer b; ring::Head h; ring::Outer o; Alias p;
        int main() { struct Inside { int f; } i{}; return i.f; }\n";
    fs::write(folder.join("patterns.cc"), source).expect("written");
    let mut compiler = Command::new("g++");
    if !compiles(compiler.args(["-g", "-o", "patterns", "patterns.cc"]).current_dir(&folder)) {
        return;
    }
    let names = |pattern: &str| {
        let output = run_in(&folder, &["layout", "--sizes", pattern, "./patterns"]);
        assert!(output.status.success(), "{pattern}: {}", stderr(&output));
        let text = stdout(&output);
        let first = text.lines().filter_map(|line| line.split('\t').next());
        first.filter(|name| !name.is_empty()).map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(names("ring::*"), ["ring::Buffer", "ring::Head", "ring::Outer", "ring::Outer::In"]);
    assert_eq!(names("*d"), ["ring::Head"]);
    assert_eq!(names("In*"), ["ring::Outer::In"]);
    assert_eq!(names("P*n"), ["Plain"]);
    let wrong = |name: &str| {
        let output = run_in(&folder, &["layout", name, "./patterns"]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        stderr(&output)
    };
    assert!(wrong("ring::Bufer").contains("there is Buffer"), "{}", wrong("ring::Bufer"));
    assert!(wrong("Plainn").contains("there is Plain"), "{}", wrong("Plainn"));
    assert!(!wrong("no*such*").contains("there is"), "{}", wrong("no*such*"));
}
