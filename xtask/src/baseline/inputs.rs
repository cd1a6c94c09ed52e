//! The inputs of a baseline: debug files, recordings, traces.

use super::outcome;
use crate::source;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The inputs, relative to their folder where they are kept there.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// Files with DWARF or BTF.
    pub(super) debug_files: Vec<String>,
    /// Recordings.
    pub(super) recordings: Vec<String>,
    /// Traces of every access.
    pub(super) traces: Vec<String>,
}

/// The number of debug files of the system, the largest ones.
const SYSTEM_FILES: usize = 24;

/// The largest size of a file that all options are tried on, in bytes.
const SMALL: u64 = 128 << 10;

/// A program of which recordings and a trace are made.
const PROGRAM: &str = "\
#include <stdlib.h>
struct order { struct order *next; char pad[50]; int flags; char rest[112]; };
struct total { long sum; unsigned odd : 3, even : 13; };
__attribute__((noinline)) static long walk(struct order *order, struct total *total, long steps) {
  for (; steps > 0; steps--) {
    total->sum += order->flags;
    total->even += steps & 1;
    order = order->next;
  }
  return total->sum;
}
int main(int argc, char **argv) {
  int count = argc > 1 ? 200 : 20000;
  long steps = argc > 1 ? 3000 : 60000000;
  struct order *orders = calloc(count, sizeof *orders);
  struct total total = {0};
  for (int i = 0; i < count; i++) orders[i].next = &orders[(i * 7919L + 1) % count];
  return walk(orders, &total, steps) != 0;
}
";

/// Compilers of sources that tests have, by the ending of the source.
const COMPILERS: [(&str, &str, &[&str]); 7] = [
    ("c", "gcc", &["-g", "-O2", "-c"]),
    ("c", "clang-14", &["-gdwarf-4", "-O1", "-c"]),
    ("cpp", "g++", &["-g", "-O2", "-c"]),
    ("cpp", "clang++-14", &["-gdwarf-4", "-O1", "-c"]),
    ("f90", "gfortran", &["-g", "-c"]),
    ("rs", "rustc", &["--edition=2024", "--crate-type=lib", "-Cdebuginfo=2", "--emit=obj"]),
    ("go", "go", &["tool", "compile", "-p=main"]),
];

/// Returns true for a file that all options are tried on.
pub(super) fn is_small(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|metadata| metadata.len() <= SMALL)
}

/// Collects the inputs in a folder: copies of the tests' files and what compilers make of their sources;
/// the system's debug files and recordings are named where they are.
pub(super) fn gather(root: &Path, binary: &Path, folder: &Path, more: &[PathBuf]) -> Result<Inputs> {
    let mut inputs = Inputs::default();
    for file in source::files(root, &["crates/*/tests/data/*"])? {
        let Some(ending) = file.extension().and_then(|ending| ending.to_str()) else { continue };
        let name: PathBuf = file.components().skip_while(|part| part.as_os_str() != "data").collect();
        if ["o", "so", "btf", "dwo", "dwp", "dwz"].contains(&ending) {
            let copy = folder.join(&name);
            std::fs::create_dir_all(copy.parent().unwrap_or(folder))?;
            std::fs::copy(root.join(&file), &copy).with_context(|| file.display().to_string())?;
            inputs.debug_files.push(name.display().to_string());
        }
        for (_, compiler, words) in COMPILERS.iter().filter(|(of, ..)| *of == ending) {
            let object = Path::new("compiled").join(&name).with_extension(format!("{ending}.{compiler}.o"));
            let path = folder.join(&object);
            std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
            if succeeds(
                Command::new(compiler)
                    .args(*words)
                    .arg("-o")
                    .arg(&path)
                    .arg(root.join(&file))
                    .current_dir(folder),
            ) {
                inputs.debug_files.push(object.display().to_string());
            }
        }
    }
    inputs.debug_files.sort();
    inputs.debug_files.extend(system_files()?);
    for file in more {
        inputs
            .debug_files
            .push(file.canonicalize().with_context(|| file.display().to_string())?.display().to_string());
    }
    own(binary, folder, &mut inputs)?;
    for (variable, depth) in [("QUIPPER", 1), ("SKID", 2)] {
        match std::env::var_os(variable) {
            Some(recordings) => {
                let found = below(Path::new(&recordings), depth)?;
                let is_recording = |name: &str| name.starts_with("perf.data") || name.ends_with(".data");
                let found = found
                    .into_iter()
                    .filter(|file| file.file_name().and_then(|name| name.to_str()).is_some_and(is_recording));
                inputs.recordings.extend(found.map(|file| file.display().to_string()));
            }
            None => eprintln!("{variable} names no folder of recordings: left out"),
        }
    }
    Ok(inputs)
}

/// Makes recordings and a trace with the binary.
fn own(binary: &Path, folder: &Path, inputs: &mut Inputs) -> Result<()> {
    let own = folder.join("own");
    std::fs::create_dir_all(&own)?;
    std::fs::write(own.join("program.c"), PROGRAM)?;
    let compiled = succeeds(
        Command::new("gcc")
            .args(["-g", "-O2", "-fno-omit-frame-pointer", "-o", "own/program", "own/program.c"])
            .current_dir(folder),
    );
    anyhow::ensure!(compiled, "gcc cannot compile the program to record");
    for (name, words) in [
        ("clock", "-e cpu-clock:u"),
        ("kernel", "-e cpu-clock"),
        ("chains", "-g -e cpu-clock:u,page-faults:u -F 4000"),
        ("stacks", "--call-graph dwarf -e cpu-clock:u -F 200"),
        ("data", "-d -e cpu-clock:u"),
    ] {
        let file = format!("own/{name}.data");
        let words = format!("record -q {words} -o {file} -- own/program");
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        if succeeds(&mut outcome::command(binary, folder, &words)) {
            inputs.recordings.push(file);
        } else {
            eprintln!("no recording can be made here by {}: left out", words.join(" "));
        }
    }
    let words = "record -q --trace -o own/whole.trace -- own/program few";
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    if succeeds(&mut outcome::command(binary, folder, &words)) {
        inputs.traces.push("own/whole.trace".to_owned());
    } else {
        eprintln!("no trace can be made here: left out");
    }
    Ok(())
}

fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Returns the largest debug files of the system.
fn system_files() -> Result<Vec<String>> {
    let folder = Path::new("/usr/lib/debug");
    let mut files = Vec::new();
    for file in if folder.is_dir() { below(folder, 4)? } else { Vec::new() } {
        if file.extension().is_some_and(|ending| ending == "debug") {
            files.push((std::fs::metadata(&file)?.len(), file.display().to_string()));
        }
    }
    files.sort_by(|a, b| b.cmp(a));
    files.truncate(SYSTEM_FILES);
    Ok(files.into_iter().map(|(_, file)| file).collect())
}

/// Returns the files of a folder and of those in it, so many levels deep.
fn below(folder: &Path, depth: usize) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("{}: cannot read", folder.display()))? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        } else if depth > 1 && path.is_dir() {
            files.extend(below(&path, depth - 1)?);
        }
    }
    files.sort();
    Ok(files)
}
