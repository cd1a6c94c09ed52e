//! Compilers of the machine, for tests that compare with what they lay out.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a folder of a test's own; none, with a message, where a compiler is missing.
pub(crate) fn folder(name: &str, compiler: &str) -> Option<PathBuf> {
    // Go knows no `--version`
    let version = if compiler == "go" { "version" } else { "--version" };
    if !Command::new(compiler).arg(version).output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no {compiler}");
        return None;
    }
    let folder = std::env::temp_dir().join(format!("tallyline-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    Some(folder)
}

/// Runs a command that has to succeed; its output.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().expect("runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Compiles a source to an object; its bytes.
pub(crate) fn compile(folder: &Path, compiler: &str, name: &str, source: &str, flags: &[&str]) -> Vec<u8> {
    let path = folder.join(name);
    std::fs::write(&path, source).expect("writable");
    let object = path.with_extension("o");
    run(Command::new(compiler).args(flags).arg("-c").arg(&path).arg("-o").arg(&object));
    std::fs::read(&object).expect("made")
}
