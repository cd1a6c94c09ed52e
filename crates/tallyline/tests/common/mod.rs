//! Running the program.

#![allow(dead_code)] // each test file uses a part of it

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Returns the program, ready to be given arguments.
pub(crate) fn tallyline() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tallyline"));
    command.stdin(Stdio::null()).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    // what one test kept is no other's
    command.env("TALLYLINE_CACHE", "off");
    // nor is what the machine's user has set, and nobody presses a key
    command.env("TALLYLINE_CONFIG", "off").env("TALLYLINE_PAGER", "cat").env("TALLYLINE_HYPERLINKS", "never");
    command
}

/// Runs the program to its end.
pub(crate) fn run(args: &[&str]) -> Output {
    tallyline().args(args).output().expect("the program runs")
}

/// Runs the program in a folder.
pub(crate) fn run_in(folder: &Path, args: &[&str]) -> Output {
    tallyline().args(args).current_dir(folder).output().expect("the program runs")
}

/// Returns the text on standard output.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Returns the text on standard error.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Returns a new folder for one test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Returns a file of the layout crate's tests, made by a real compiler, or what pahole prints of it.
pub(crate) fn data(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/layout").join(name);
    path.to_str().expect("a plain path").to_string()
}

/// Compiles a C program to an object file with debug information; none, with a message, where there
/// is no compiler.
pub(crate) fn object(folder: &Path, name: &str, source: &str) -> Option<String> {
    let (from, to) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.o")));
    std::fs::write(&from, source).expect("written");
    let to = to.to_str().expect("a plain path").to_string();
    compiles(Command::new("cc").args(["-g", "-c", "-o", &to]).arg(&from)).then_some(to)
}

/// Returns whether a compiler accepts a program; `false`, with a message, if there is no compiler.
pub(crate) fn compiles(compiler: &mut Command) -> bool {
    match compiler.output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => panic!("{compiler:?}: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            eprintln!("skipped: {compiler:?}: {error}");
            false
        }
    }
}
