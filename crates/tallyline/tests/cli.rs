//! The command line: what it refuses, what it explains, and how it ends.

mod common;

use common::{folder, run, stderr, stdout, tallyline};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn what_cannot_be_understood_ends_with_status_2_and_a_reason() {
    let bad: [&[&str]; 13] = [
        &[],
        &["bench"],
        &["count"],
        &["bench", "everything"],
        &["bench", "update", "--threads", "0"],
        &["bench", "update", "--threads", "two"],
        &["bench", "update", "--threads", "100000"],
        &["bench", "update", "--rounds", "-1"],
        &["bench", "update", "--seconds", "0"],
        &["bench", "update", "--seconds", "NaN"],
        &["bench", "memory", "--quick", "-o", "no/such/folder/result"],
        &["bench", "memory", "--color", "sometimes"],
        &["completions", "cmd"],
    ];
    for args in bad {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert!(!stderr(&output).is_empty(), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}: {output:?}");
    }
}

#[test]
fn json_is_a_format_of_commands_that_have_several() {
    for command in ["layout", "groups", "check", "diff", "sharing-check"] {
        let output = run(&[command, "--json"]);
        assert_eq!(output.status.code(), Some(2), "{command}: {output:?}");
        let text = stderr(&output);
        assert!(text.contains("tip: JSON is a format here: --format json\n"), "{command}: {text}");
        assert!(!text.contains("-- --json"), "{command}: {text}");
    }
    let text = stderr(&run(&["lsp", "--json"]));
    assert!(text.contains("unexpected argument '--json'") && !text.contains("--format"), "{text}");
}

/// Returns whether a command can be run: `bench` is another program, which a package of this crate alone does not have.
fn can_run(args: &[&str]) -> bool {
    let beside = std::path::Path::new(env!("CARGO_BIN_EXE_tallyline")).with_file_name("tallyline-bench");
    let can = args[0] != "bench" || beside.is_file();
    if !can {
        eprintln!("skipped: {args:?}: no tallyline-bench beside tallyline");
    }
    can
}

#[test]
fn help_has_examples() {
    for args in [&["--help"][..], &["bench", "update", "--help"], &["bench", "fold", "--help"]] {
        if !can_run(args) {
            continue;
        }
        let output = run(args);
        assert!(output.status.success(), "{output:?}");
        assert!(stdout(&output).contains("Examples:"), "{args:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for args in [
        &["man"][..],
        &["completions", "bash"],
        &["bench", "memory", "--quick", "--threads", "1"],
        &["bench", "memory", "--quick", "--json"],
    ] {
        if !can_run(args) {
            continue;
        }
        let mut child =
            tallyline().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
        drop(child.stdout.take());
        let mut complaints = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut complaints).expect("read");
        let status = child.wait().expect("ended");
        assert!(status.success(), "{args:?}: {status}, {complaints}");
        assert_eq!(complaints, "", "{args:?}");
    }
}

#[test]
fn completions_are_there_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(&["completions", shell]);
        assert!(output.status.success(), "{output:?}");
        let script = stdout(&output);
        assert!(script.contains("tallyline") && script.contains("bench"), "{shell}");
    }
}

#[test]
fn every_sub_command_has_a_manual_page() {
    let folder = folder("man");
    let output = run(&["man", "--folder", folder.to_str().expect("a plain path")]);
    assert!(output.status.success(), "{output:?}");
    for name in ["", "-layout", "-bench", "-reorganize", "-check", "-man"] {
        let page = std::fs::read_to_string(folder.join(format!("tallyline{name}.1"))).expect("a page");
        assert!(page.contains(".TH") && page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{name}");
    }
    let page = run(&["man", "layout"]);
    assert!(stdout(&page).contains(".SH EXAMPLES"), "{page:?}");
    assert_eq!(page.stdout, std::fs::read(folder.join("tallyline-layout.1")).expect("a page"));
    let program = stdout(&run(&["man"]));
    assert!(program.contains("tallyline\\-layout") && program.lines().count() < 200, "{program}");
    let wrong = run(&["man", "layuot"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("there is"), "{wrong:?}");
}

/// Returns `tallyline bench` as a program in a folder of its own, with `search_path` as the search path.
fn bench_in(folder: &Path, search_path: &Path) -> Command {
    let program = folder.join("tallyline");
    let _ = std::fs::remove_file(&program);
    let built = env!("CARGO_BIN_EXE_tallyline");
    // a symbolic link would lead back to the build folder
    std::fs::hard_link(built, &program).expect("the test folder is in the build folder");
    let mut command = Command::new(program);
    command.arg("bench").env("PATH", search_path).stdin(Stdio::null());
    command
}

#[test]
fn bench_hands_arguments_and_status_to_the_program_beside_it_or_on_the_search_path() {
    let (own, other) = (folder("bench-own"), folder("bench-other"));
    // a shell in the place of the benchmarks shows what they are started with
    let shell_as_bench = |folder: &Path| {
        let link = folder.join("tallyline-bench");
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink("/bin/sh", link).expect("linked");
    };
    let script = ["-c", "echo $1; exit 7", "sh", "--quick"];
    shell_as_bench(&other);
    let on_search_path = bench_in(&own, &other).args(script).output().expect("started");
    assert_eq!(stdout(&on_search_path), "--quick\n", "{on_search_path:?}");
    assert_eq!(on_search_path.status.code(), Some(7));

    shell_as_bench(&own);
    std::fs::remove_file(other.join("tallyline-bench")).expect("removed");
    let beside = bench_in(&own, &other).args(script).output().expect("started");
    assert_eq!(stdout(&beside), "--quick\n", "{beside:?}");
    assert_eq!(beside.status.code(), Some(7));
}

#[test]
fn bench_without_its_program_says_how_to_build_it() {
    let (own, empty) = (folder("bench-missing"), folder("bench-empty"));
    let output = bench_in(&own, &empty).args(["update", "--quick"]).output().expect("started");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert!(stderr(&output).contains("cargo build --release -p tallyline-bench"), "{output:?}");
}
