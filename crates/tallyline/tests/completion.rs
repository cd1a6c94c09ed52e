//! Completion in real shells: types and members of the file on the command line.

mod common;
mod pty;

use common::{folder, object, run, stdout};
use pty::Terminal;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "\
struct connection { int first; char second; long third; } connection;
struct connector { int a; } connector;
struct other { int a; } other;
";

/// Returns a folder with a program that has types, and the shell's script; none without a compiler.
fn prepared(name: &str, shell: &str) -> Option<PathBuf> {
    let folder = folder(name);
    object(&folder, "program", SOURCE)?;
    let script = run(&["completions", shell]);
    assert!(script.status.success(), "{script:?}");
    // zsh finds functions by the names of files
    let file = if shell == "zsh" { "_tallyline".to_owned() } else { format!("script.{shell}") };
    std::fs::write(folder.join(file), &script.stdout).expect("written");
    Some(folder)
}

/// Returns the search path with the program in front.
fn search_path() -> String {
    let own = Path::new(env!("CARGO_BIN_EXE_tallyline")).parent().expect("a folder");
    format!("{}:{}", own.display(), std::env::var("PATH").unwrap_or_default())
}

fn shell(name: &str, folder: &Path) -> Option<Command> {
    let found = Command::new(name).arg("--version").output();
    if found.is_err() {
        eprintln!("skipped: {name}: not installed");
        return None;
    }
    let mut command = Command::new(name);
    command.current_dir(folder).env("PATH", search_path()).env("HOME", folder).env("TALLYLINE_CONFIG", "off");
    command.env("TERM", "xterm").env_remove("ZDOTDIR").env_remove("ENV");
    // whole answers, however busy the machine is
    command.env("TALLYLINE_COMPLETE_SECONDS", common::PATIENCE.as_secs().to_string());
    Some(command)
}

/// Runs a shell's script and returns the lines that it prints.
fn lines(command: &mut Command) -> Vec<String> {
    let output = command.output().expect("the shell runs");
    assert!(output.status.success(), "{output:?}");
    let mut lines: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn bash_completes_types_and_members() {
    let Some(folder) = prepared("completion-bash", "bash") else { return };
    let complete = |line: &str, point: usize| {
        let mut bash = shell("bash", &folder)?;
        // as readline calls it: bash has no command for that
        let program = format!(
            "source ./script.bash; COMP_LINE='{line}'; COMP_POINT={point}; COMP_WORDS=(${{COMP_LINE:0:{point}}}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); [[ ${{COMP_LINE:{point}-1:1}} == ' ' ]] && COMP_WORDS+=('') && \
             COMP_CWORD=$((COMP_CWORD + 1)); spec=$(complete -p tallyline); [[ $spec =~ -F\\ ([^ ]+) ]]; \
             ${{BASH_REMATCH[1]}} tallyline \"${{COMP_WORDS[COMP_CWORD]}}\" x 2>/dev/null; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        Some(lines(bash.args(["--norc", "-c", &program])))
    };
    let Some(found) = complete("tallyline layout conn ./program.o", 21) else { return };
    assert_eq!(found, ["connection", "connector"]);
    assert_eq!(
        complete("tallyline layout -C other,connectio ./program.o", 35).expect("bash"),
        ["other,connection"]
    );
    let line = "tallyline reorganize connection ./program.o --pin s";
    assert_eq!(complete(line, line.len()).expect("bash"), ["second"]);
    // options are the script's
    assert_eq!(complete("tallyline layout --nr", 21).expect("bash"), ["--nr-members"]);
    assert_eq!(complete("tallyline reorg", 15).expect("bash"), ["reorganize"]);
}

#[test]
fn fish_completes_types_and_members() {
    let Some(folder) = prepared("completion-fish", "fish") else { return };
    let complete = |line: &str| {
        let mut fish = shell("fish", &folder)?;
        let program = format!("source script.fish; complete -C '{line}'");
        let lines = lines(fish.args(["--no-config", "-c", &program]));
        Some(
            lines
                .into_iter()
                .map(|line| line.split('\t').next().unwrap_or_default().to_owned())
                .collect::<Vec<_>>(),
        )
    };
    let Some(found) = complete("tallyline layout --file ./program.o conn") else { return };
    assert_eq!(found, ["connection", "connector"]);
    assert_eq!(complete("tallyline diff ./program.o ./program.o -C oth").expect("fish"), ["other"]);
    assert_eq!(
        complete("tallyline reorganize connection ./program.o --pin first,th").expect("fish"),
        ["first,third"]
    );
    assert_eq!(complete("tallyline layout --nr").expect("fish"), ["--nr-members"]);
}

/// Types into an interactive shell until some text appears.
fn typed(command: Command, setup: &str, keys: &str, expected: &str) -> String {
    let mut terminal = Terminal::start(120, 40, command);
    terminal.press(&format!("{setup}; echo rea''dy\n"), "ready");
    terminal.press(keys, expected)
}

#[test]
fn an_interactive_bash_inserts_what_is_unique() {
    let Some(folder) = prepared("completion-bash-keys", "bash") else { return };
    let Some(mut bash) = shell("bash", &folder) else { return };
    bash.args(["--norc", "--noprofile", "-i"]).env("INPUTRC", "/dev/null");
    let shown =
        typed(bash, "source ./script.bash", "tallyline layout --file ./program.o ot\t", "program.o other");
    assert!(!shown.contains("command not found"), "{shown}");
}

#[test]
fn an_interactive_zsh_inserts_what_is_unique() {
    let Some(folder) = prepared("completion-zsh", "zsh") else { return };
    for (keys, expected) in [
        ("tallyline layout --file ./program.o ot\t", "program.o other"),
        ("tallyline layout -C other,connectio\x1b[D\x1b[C\t", "layout -C other,connectio"),
        ("tallyline reorganize connection ./program.o --pin sec\t", "--pin second"),
        ("tallyline layout --nr\t", "layout --nr-members"),
    ] {
        let Some(mut zsh) = shell("zsh", &folder) else { return };
        zsh.args(["-f", "-i"]);
        let setup = "fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; PS1='> '";
        typed(zsh, setup, keys, expected);
    }
}

#[test]
fn an_answer_that_is_not_ours_to_give_is_left_to_the_script() {
    let folder = folder("completion-left");
    for words in
        [&["tallyline", "layout", "./x"][..], &["tallyline", "record", "x"], &["tallyline", "layout", "--x"]]
    {
        let index = (words.len() - 1).to_string();
        let output = common::run_in(&folder, &[&["complete", "--index", &index, "--"][..], words].concat());
        assert_eq!(
            (output.status.code(), &*output.stdout, &*output.stderr),
            (Some(1), &b""[..], &b""[..]),
            "{words:?}"
        );
    }
    // a file that is damaged or not there says nothing in the middle of a line
    std::fs::write(folder.join("damaged.o"), b"\x7fELF\x02\x01\x01").expect("written");
    for file in ["damaged.o", "absent.o"] {
        let args = ["complete", "--index", "2", "--", "tallyline", "layout", "x", file];
        let output = common::run_in(&folder, &args);
        assert_eq!((output.status.code(), &*output.stderr), (Some(1), &b""[..]), "{output:?}");
    }
}
