//! Units of a project, compiled in a copy of its tree.

use super::commands::CompileCommand;
use super::project::FileEdit;
use super::scratch::Scratch;
use crate::interrupt;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A compilation unit (source file as compiled) of a project: its compiler call, and those of the project's files that
/// it includes.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    /// The compiler call of the unit.
    pub(crate) command: CompileCommand,
    /// The project's files that the unit includes, and its source.
    pub(crate) files: BTreeSet<PathBuf>,
}

/// The purpose of a compiler call: to list included files, to compile an object, or to find initialisers by
/// position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Lists the included files.
    Dependencies,
    /// Compiles to an object with debug information.
    Object,
    /// Parses, and warns of initialisers by position.
    Probe,
}

/// Runner of a project's compiler calls in a temporary copy of its sources, so that edits can be tried.
pub(crate) struct Builder {
    /// The temporary copy of the project's sources.
    pub(crate) scratch: Scratch,
    root: PathBuf,
}

impl Builder {
    /// Creates a runner of compiler calls with a temporary copy of the project whose root folder is `root`.
    pub(crate) fn new(root: &Path) -> Result<Builder> {
        Ok(Builder { scratch: Scratch::new(root)?, root: root.to_path_buf() })
    }

    /// Returns the compilation units that include at least one of `files`, and one error message for each unit
    /// whose includes cannot be determined.
    pub(crate) fn units(
        &self,
        commands: &[CompileCommand],
        files: &BTreeSet<PathBuf>,
    ) -> (Vec<Unit>, Vec<String>) {
        let ours: Vec<&CompileCommand> = commands
            .iter()
            .filter(|command| command.source.starts_with(&self.root) && is_source(&command.source))
            .collect();
        let listed = in_parallel(&ours, |_, command| self.dependencies(command));
        let (mut units, mut failed) = (Vec::new(), Vec::new());
        for (command, listed) in ours.iter().zip(listed) {
            match listed {
                Ok(included) if included.iter().any(|file| files.contains(file)) => {
                    units.push(Unit { command: (*command).clone(), files: included });
                }
                Ok(_) => {}
                Err(error) => failed.push(format!("{}: {error:#}", command.source.display())),
            }
        }
        (units, failed)
    }

    fn dependencies(&self, command: &CompileCommand) -> Result<BTreeSet<PathBuf>> {
        let output = self.call(command, Call::Dependencies, Path::new("/dev/null"))?;
        anyhow::ensure!(output.status.success(), "{}", first_error(&output));
        let text = String::from_utf8_lossy(&output.stdout).replace("\\\n", " ");
        let copy = self.scratch.path(&self.root);
        let folder = self.scratch.path(&command.folder);
        let names = text.split_once(':').map_or("", |(_, names)| names);
        let files = super::commands::split(names).into_iter().filter_map(|name| {
            let path = super::place::normal(&folder.join(name));
            let path = path.strip_prefix(&copy).ok().map(|rest| self.root.join(rest))?;
            // a link in the project leads to the file that is edited
            Some(path.canonicalize().unwrap_or(path))
        });
        Ok(files.collect())
    }

    /// Runs the compiler call of a compilation unit in the temporary copy of the project, for one purpose (list
    /// includes, compile, find initialisers by position), and returns its result. `output` is the object file to write.
    pub(crate) fn call(&self, command: &CompileCommand, call: Call, output: &Path) -> Result<Output> {
        let mut words = command.bare().into_iter().map(|word| self.scratch.word(&word));
        let program = words.next().context("an empty compiler's call")?;
        // only GCC knows `designated_init`
        let program = match program.as_str() {
            clang if call == Call::Probe && command.is_clang() && !clang.contains("++") => "gcc".to_string(),
            _ => program,
        };
        let mut compiler = Command::new(&program);
        let folder = self.scratch.path(&command.folder);
        compiler.current_dir(&folder).stdin(Stdio::null()).env("LC_ALL", "C").env("CCACHE_DISABLE", "1");
        match call {
            Call::Dependencies => compiler.args(words).arg("-M"),
            Call::Object => compiler.args(words).args(["-g", "-c", "-o"]).arg(output),
            Call::Probe => compiler.args(words.filter(|word| word != "-w")).args([
                "-fsyntax-only",
                "-fdiagnostics-color=never",
                // columns are bytes, also behind tabs
                "-ftabstop=1",
                "-Wno-error",
            ]),
        };
        compiler.stdout(Stdio::piped()).stderr(Stdio::piped());
        interrupt::output(&mut compiler)
            .with_context(|| format!("cannot run {program} in {}", folder.display()))
    }

    /// Returns the path of the object file that the compiler call for the compilation unit with this index writes.
    pub(crate) fn output(&self, index: usize) -> PathBuf {
        self.scratch.folder().join(format!("unit-{index}.o"))
    }

    /// Makes the copy of the project contain the edits `now` in place of the edits `before`.
    pub(crate) fn set(&self, now: &[FileEdit], before: &[FileEdit]) -> Result<()> {
        for edit in before.iter().filter(|edit| now.iter().all(|other| other.path != edit.path)) {
            self.scratch.restore(&edit.path)?;
        }
        self.scratch.put(now)
    }
}

/// Returns `true` if a path is taken for a C or C++ source, not for assembly, Rust, Go or Fortran.
fn is_source(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    !matches!(end, "s" | "S" | "asm" | "rs" | "go" | "f" | "f90")
}

/// Returns the first error line in a compiler's output, else the first line.
pub(crate) fn first_error(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let error = text.lines().find(|line| line.contains("error:"));
    let line = error.or_else(|| text.lines().find(|line| !line.trim().is_empty()));
    line.unwrap_or("the compiler failed").trim().to_string()
}

/// Returns `true` if the value at a byte of a line is that of `{0}`, which relies on no order of members.
pub(super) fn is_null_initialiser(line: &[u8], at: usize) -> bool {
    let rest = line.get(at..).unwrap_or_default();
    let before = line.get(..at).unwrap_or_default().trim_ascii_end();
    let is_null =
        |word: &[u8]| rest.starts_with(word) && rest[word.len()..].trim_ascii_start().starts_with(b"}");
    (before.ends_with(b"{") && (is_null(b"0") || is_null(b"NULL")))
        // the warning may be at the brace or at the variable: `= { 0 }`
        || rest.strip_prefix(b"{").is_some_and(|rest| {
            let rest = rest.trim_ascii_start();
            rest.strip_prefix(b"0").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"}"))
        })
}

/// Finds those of some structs, given by their indices, for which a check fails, by halves; returns them with what the
/// check says. Of structs for which it fails only together, the last is returned.
pub(super) fn by_halves(
    some: &[usize],
    check: &mut dyn FnMut(&[usize]) -> Result<Option<String>>,
) -> Result<Vec<(usize, String)>> {
    if some.is_empty() {
        return Ok(Vec::new());
    }
    let Some(said) = check(some)? else { return Ok(Vec::new()) };
    if let [one] = some {
        return Ok(vec![(*one, said)]);
    }
    let (left, right) = some.split_at(some.len() / 2);
    let mut found = by_halves(left, check)?;
    found.extend(by_halves(right, check)?);
    if found.is_empty() {
        found.extend(some.last().map(|one| (*one, said)));
    }
    Ok(found)
}

/// Calls a function for each value (with its index) on all CPUs, and returns the results in order.
pub(crate) fn in_parallel<T: Sync, R: Send>(all: &[T], each: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let results: Mutex<Vec<Option<R>>> = Mutex::new(all.iter().map(|_| None).collect());
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(all.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(index) else { break };
                    let result = each(index, one);
                    if let Ok(mut results) = results.lock() {
                        results[index] = Some(result);
                    }
                }
            });
        }
    });
    results.into_inner().unwrap_or_default().into_iter().flatten().collect()
}
