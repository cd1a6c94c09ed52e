//! Files that hold no types, pipes, and the ways in which people write names.

mod common;

use common::{compiles, folder, object, run_in, stderr, stdout, tallyline};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = "struct record { char a; long b; }; union both { int i; char c[9]; };\n\
                       struct record r; union both b;\n";

/// The first bytes of a process's core file.
const CORE: &[u8] = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0";

/// Returns each type-reading command's messages about a file.
fn complaints(folder: &Path, file: &str) -> Vec<(String, Option<i32>)> {
    fs::write(folder.join("layout.toml"), "[[type]]\nname = \"foo\"\nmax-size = 1\n").expect("written");
    let commands: [&[&str]; 8] = [
        &["layout", "foo", file],
        &["layout", file],
        &["layout", "--sizes", "--format", "json", file],
        &["groups", "foo", file],
        &["reorganize", "foo", file],
        &["check", file],
        &["check", "--suggest", "foo", file],
        &["diff", file, file],
    ];
    let said = |args: &&[&str]| {
        let output = run_in(folder, args);
        assert_eq!(stdout(&output), "", "{args:?}");
        (stderr(&output), output.status.code())
    };
    commands.iter().map(said).collect()
}

#[test]
fn a_file_without_types_is_named_with_what_it_is() {
    let folder = folder("wrong-files");
    fs::create_dir_all(folder.join("directory.o")).expect("made");
    let files: [(&str, &[u8], &str); 10] = [
        ("empty.o", b"", "is empty"),
        ("windows.exe", b"MZ\x90\0\x03", "is a PE file"),
        ("apple.o", b"\xcf\xfa\xed\xfe\x07", "is a Mach-O file"),
        ("archive.a", b"!<arch>\nmember", "is an archive"),
        ("./script", b"#!/bin/sh\n", "is a script"),
        ("./text", b"hello\n", "is text"),
        ("packed.gz", b"\x1f\x8b\x08\0", "is compressed"),
        ("./perf.data", b"PERFILE2\0", "is a recording"),
        ("./core", CORE, "is a core file: name the program"),
        ("./noise", &[3, 200, 7, 0, 9], "is no file with types"),
    ];
    for (name, bytes, _) in files {
        fs::write(folder.join(name), bytes).expect("written");
    }
    let others = [
        ("nonexist.o", "No such file"),
        ("directory.o", "is a directory"),
        ("/dev/zero", "is a character device"),
    ];
    for (name, what) in files.iter().map(|(name, _, what)| (*name, *what)).chain(others) {
        for (text, status) in complaints(&folder, name) {
            assert!(text.contains(name) && text.contains(what), "{name}: {text}");
            assert!(!text.contains("vmlinux") && text.lines().count() == 1, "{name}: {text}");
            assert_eq!(status, Some(2), "{name}: {text}");
        }
    }
    // a file behind types is no type, whatever it is called
    fs::write(folder.join("plain"), "hello\n").expect("written");
    let text = stderr(&run_in(&folder, &["layout", "foo", "plain"]));
    assert!(text.contains("plain is text"), "{text}");
}

#[test]
fn pahole_says_of_a_wrong_file_what_pahole_says() {
    let folder = folder("wrong-files-pahole");
    fs::write(folder.join("empty.o"), "").expect("written");
    let output = run_in(&folder, &["pahole", "./empty.o"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("file './empty.o' has no supported type information."), "{output:?}");
    fs::write(folder.join("core"), CORE).expect("written");
    let output = run_in(&folder, &["pahole", "./core"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("file './core' has no supported type information."), "{output:?}");
}

#[test]
fn pahole_says_that_an_archive_is_not_read() {
    let folder = folder("wrong-files-archive");
    fs::write(folder.join("lib.a"), "!<arch>\n").expect("written");
    fs::write(folder.join("thin.a"), "!<thin>\n").expect("written");
    for name in ["lib.a", "thin.a"] {
        let output = run_in(&folder, &["pahole", "-C", "one", name]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let expected = format!("pahole: file '{name}' is an archive: name one of its members");
        assert!(stderr(&output).starts_with(&expected), "{output:?}");
    }
}

fn with_input(folder: &Path, args: &[&str], input: Stdio) -> Output {
    tallyline().args(args).current_dir(folder).stdin(input).output().expect("the program runs")
}

#[test]
fn standard_input_and_pipes_are_read() {
    let folder = folder("pipes");
    let Some(file) = object(&folder, "program", PROGRAM) else { return };
    let expected = stdout(&run_in(&folder, &["layout", "record", &file]));
    assert!(expected.contains("struct record {"), "{expected}");
    let from_file = with_input(&folder, &["layout", "record", "-"], File::open(&file).expect("open").into());
    assert_eq!(stdout(&from_file), expected, "{from_file:?}");
    let bytes = fs::read(&file).expect("read");
    for args in [["layout", "record", "-"], ["layout", "record", "/dev/stdin"]] {
        let mut command = tallyline();
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("started");
        child.stdin.take().expect("piped").write_all(&bytes).expect("taken");
        let output = child.wait_with_output().expect("ended");
        assert_eq!(stdout(&output), expected, "{output:?}");
    }
    // process substitution; a name that is not there makes the file be read once more
    let program = env!("CARGO_BIN_EXE_tallyline");
    for (name, expected) in [("record", expected.as_str()), ("recird", "there is record")] {
        let script = format!("'{program}' layout {name} <(cat '{file}') 2>&1");
        let Ok(output) = Command::new("bash").args(["-c", &script]).output() else { return };
        assert!(stdout(&output).contains(expected), "{output:?}");
    }
    let script = format!("'{program}' diff <(cat '{file}') <(cat '{file}')");
    let output = Command::new("bash").args(["-c", &script]).output().expect("started above");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn names_are_understood_as_people_write_them() {
    let folder = folder("spelled");
    let Some(file) = object(&folder, "program", PROGRAM) else { return };
    for (name, expected) in [("struct record", "struct record {"), ("union both", "union both {")] {
        let output = run_in(&folder, &["layout", name, &file]);
        assert!(stdout(&output).contains(expected), "{name}: {output:?}");
    }
    let source = "template <class T, int N = 1> struct P { T t; char c; }; namespace n { class Y { long a; }; }\n\
                  P<long> a; P<unsigned> b; P<unsigned long long, 3> c; P<P<short>> d; n::Y y;\n\
                  template <class T, unsigned long N> struct A { T t[N]; }; A<int, 3> e;\n";
    fs::write(folder.join("p.cc"), source).expect("written");
    for compiler in ["g++", "clang++"] {
        let mut command = Command::new(compiler);
        if !compiles(command.current_dir(&folder).args(["-g", "-c", "p.cc", "-o", "p.o"])) {
            continue;
        }
        let names = [
            "P<long, 1>",
            "P<long int,1>",
            "struct P<long,1>",
            "P<unsigned, 1>",
            "P<unsigned int, 1>",
            "P<unsigned long long, 3>",
            "P<long long unsigned int,3>",
            "P<P<short, 1>, 1>",
            "P<P<short int,1> ,1>",
            "class n::Y",
            "Y",
            "A<int, 3>",
            "A<int, 3ul>",
        ];
        for name in names {
            let output = run_in(&folder, &["layout", "--sizes", name, "p.o"]);
            let lines = stdout(&output).lines().filter(|line| !line.is_empty()).count();
            assert_eq!((lines, output.status.code()), (1, Some(0)), "{compiler} {name}: {output:?}");
        }
        let output = run_in(&folder, &["layout", "P<int, 1>", "p.o"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}

#[test]
fn columns_are_the_same_in_json() {
    let folder = folder("columns");
    let Some(file) = object(&folder, "program", PROGRAM) else { return };
    for (option, key) in [("--sizes", "size"), ("--nr-members", "members"), ("--definitions", "definitions")]
    {
        for types in [&["record"][..], &[]] {
            let text = run_in(&folder, &[&["layout", option], types, &[file.as_str()]].concat());
            let json =
                run_in(&folder, &[&["layout", "--format", "json", option], types, &[file.as_str()]].concat());
            let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
            let column =
                |ty: &serde_json::Value| format!("{}\t{}", ty["name"].as_str().expect("named"), ty[key]);
            let columns: Vec<String> = json["types"].as_array().expect("types").iter().map(column).collect();
            let text = stdout(&text);
            let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
            assert_eq!(columns.len(), lines.len(), "{option}");
            assert!(
                lines.iter().zip(&columns).all(|(line, column)| line.starts_with(column)),
                "{columns:?} {lines:?}"
            );
            assert!(json["types"][0].get("align").is_none(), "only the columns");
        }
    }
    for wrong in [["--compile", "json"], ["--sizes", "html"]] {
        let output = run_in(&folder, &["layout", wrong[0], "--format", wrong[1], &file]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}

#[test]
fn colours_are_there_where_they_are_asked_for_and_nowhere_else() {
    let folder = folder("colours");
    let Some(file) = object(&folder, "program", PROGRAM) else { return };
    for types in [&["record"][..], &[]] {
        let said = |when: &str, more: &[&str]| {
            stdout(&run_in(&folder, &[&["--color", when, "layout"], more, types, &[file.as_str()]].concat()))
        };
        let (always, never) = (said("always", &[]), said("never", &[]));
        assert!(
            always.contains("\u{1b}[1mstruct record {") && always.contains("\u{1b}[33m/* XXX"),
            "{always}"
        );
        assert!(!never.contains('\u{1b}') && said("auto", &[]) == never, "{never}");
        assert_eq!(anstream::adapter::strip_str(&always).to_string(), never);
        for more in [["--format", "json"], ["--format", "html"]] {
            assert_eq!(said("always", &more), said("never", &more));
        }
        assert_eq!(said("always", &["--sizes"]), said("never", &["--sizes"]));
    }
}

#[test]
fn a_stripped_file_is_a_failure_in_both_faces() {
    let folder = folder("stripped");
    fs::write(folder.join("main.c"), "struct x { int a; } y; int main(void) { return 0; }\n")
        .expect("written");
    let mut command = Command::new("cc");
    if !compiles(command.current_dir(&folder).args(["-g", "-s", "-Wl,--build-id", "main.c", "-o", "main"])) {
        return;
    }
    for args in [&["pahole", "./main"][..], &["pahole", "-C", "x", "./main"]] {
        let output = run_in(&folder, args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(stderr(&output), "pahole: file './main' has no supported type information.\n");
    }
    let output = run_in(&folder, &["layout", "./main"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("./main: no type information, and no debug file of this build"));
    assert!(stderr(&output).contains("; build it with -g, or install its debug file"), "{output:?}");
}
