//! The pager and links on a terminal.

mod common;
mod pty;

use common::{data, folder, object, tallyline};
use pty::Terminal;
use std::path::Path;
use std::process::Command;

/// Returns the program with a pager, to be run on a terminal.
fn paged(pager: &str, args: &[&str]) -> Command {
    let mut command = tallyline();
    command.args(args).env("TERM", "xterm").env("TALLYLINE_PAGER", pager).env_remove("PAGER");
    command
}

/// Runs it to its end: what is on the terminal, without carriage returns, and the status.
fn shown(command: Command) -> (String, Option<i32>) {
    let (text, status) = Terminal::start(120, 40, command).finish_with_status();
    (text.replace('\r', ""), status.code())
}

#[test]
fn the_pager_is_that_of_the_variable_the_file_or_of_all_programs_in_this_order() {
    let holes = data("holes.o");
    let file = folder("pager-file").join("config.toml");
    std::fs::write(&file, "pager = \"sed s/^/file:/\"\n").expect("written");
    let run = |own: Option<&str>, file: Option<&Path>, common: Option<&str>| {
        let mut command = paged("", &["layout", "--sizes", &holes]);
        command.env_remove("TALLYLINE_PAGER");
        command.envs(own.map(|value| ("TALLYLINE_PAGER", value))).envs(common.map(|value| ("PAGER", value)));
        command.envs(file.map(|path| ("TALLYLINE_CONFIG", path)));
        shown(command).0
    };
    let (own, common) = (Some("sed s/^/own:/"), Some("sed s/^/common:/"));
    assert!(run(own, Some(&file), common).starts_with("own:"));
    assert!(run(None, Some(&file), common).starts_with("file:"));
    assert!(run(None, None, common).starts_with("common:"));
    assert!(run(Some("cat | sed 's/^/shell: /'"), None, None).starts_with("shell: "));
    // an empty one is none, as with git
    assert!(!run(Some(""), Some(&file), common).contains("file:"));
}

#[test]
fn only_a_terminal_has_a_pager_and_an_option_takes_it_away() {
    let holes = data("holes.o");
    let plain = common::run(&["layout", &holes]).stdout;
    let piped = paged("sed s/^/paged:/", &["layout", &holes]).output().expect("the program runs");
    assert_eq!(piped.stdout, plain);
    let (text, _) = shown(paged("sed s/^/paged:/", &["layout", "--no-pager", &holes]));
    assert!(!text.contains("paged:") && text.contains("struct"), "{text}");
    // one that is not there is none
    let (text, code) = shown(paged("no-such-pager -x", &["layout", &holes]));
    assert!(text.contains("struct") && code == Some(0), "{text}");
}

#[test]
fn a_dumb_terminal_has_no_pager() {
    let holes = data("holes.o");
    for term in [Some("dumb"), Some(""), None] {
        let mut command = paged("sed s/^/paged:/", &["layout", &holes]);
        command.env_remove("TERM").envs(term.map(|term| ("TERM", term)));
        let (text, code) = shown(command);
        assert!(!text.contains("paged:") && text.contains("struct"), "{term:?}: {text}");
        assert_eq!(code, Some(0), "{term:?}");
    }
}

#[test]
fn who_leaves_the_pager_early_changes_no_exit_status() {
    let folder = folder("pager-status");
    let members: String =
        (0..20_000).map(|number| format!("struct s{number} {{ int a; }} v{number};\n")).collect();
    let Some(many) = object(&folder, "many", &members) else { return };
    let (text, code) = shown(paged("head -1", &["layout", &many]));
    assert_eq!((text.lines().count(), code), (1, Some(0)), "{text}");
    let policy = folder.join("policy.toml");
    std::fs::write(&policy, "[[type]]\nname = \"*\"\nmax-size = 0\n").expect("written");
    let policy = policy.to_str().expect("plain");
    let (_, code) = shown(paged("head -1", &["check", &many, "--policy", policy]));
    assert_eq!(code, Some(1));
    // what is missing is an error behind what is shown
    let (text, code) = shown(paged("cat -n", &["layout", "s1", "s1_", &many]));
    assert!(code == Some(2) && text.contains("no type named s1_"), "{text}");
}

#[test]
fn places_in_sources_are_links_in_terminals_that_know_them() {
    let folder = folder("pager-links");
    let Some(program) = object(&folder, "linked", "struct s { int a; char b; } s;\n") else { return };
    let source = folder.join("linked.c");
    let policy = folder.join("policy.toml");
    std::fs::write(&policy, "[[type]]\nname = \"s\"\nmax-size = 0\n").expect("written");
    let policy = policy.to_str().expect("plain");
    let args = ["check", &program, "--policy", policy];
    let run = |when: &str, term: &str, more: &[&str]| {
        let mut command = paged("cat", &[&args[..], more].concat());
        command
            .env("TALLYLINE_HYPERLINKS", when)
            .env("TERM", term)
            .env("TALLYLINE_HYPERLINK_FORMAT", "x:{path}#{line}");
        for variable in ["VTE_VERSION", "KITTY_WINDOW_ID", "TERM_PROGRAM", "TMUX", "STY"] {
            command.env_remove(variable);
        }
        shown(command).0
    };
    let link = format!("\x1b]8;;x:{}#1\x1b\\", source.display());
    assert!(run("auto", "xterm-kitty", &[]).contains(&link), "{:?}", run("auto", "xterm-kitty", &[]));
    assert!(!run("auto", "xterm", &[]).contains("\x1b]8"));
    assert!(!run("never", "xterm-kitty", &[]).contains("\x1b]8"));
    assert!(run("never", "xterm", &["--hyperlinks", "always"]).contains(&link));
    // a pipe has them on request alone
    let piped = paged("cat", &args).env("TALLYLINE_HYPERLINKS", "auto").output().expect("the program runs");
    assert!(!String::from_utf8_lossy(&piped.stdout).contains('\x1b'));
}
