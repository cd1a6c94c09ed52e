//! The programs: three that are compiled here, three of others.

use super::output;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The names of all programs of the benchmark.
pub(super) const NAMES: [&str; 6] = ["store", "index", "cache", "lua", "sqlite3", "python"];

/// Rounds of our own programs; as few as that, as traces have every access.
const ROUNDS: &str = "2";

/// A program with its arguments.
pub(super) struct Subject {
    pub(super) name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
    input: Option<PathBuf>,
}

impl Subject {
    /// Writes and compiles what a program needs.
    ///
    /// # Errors
    /// If a compiler or the program is missing.
    pub(super) fn prepare(name: &str, folder: &Path, foreign: &Path, quick: bool) -> Result<Subject> {
        let program = folder.join(name);
        let rounds = OsString::from(if quick { "1" } else { ROUNDS });
        let compiled = |source: &str, text: &str, variable: &str, compiler: &str, flags: &[&str]| {
            let source = write(folder, source, text)?;
            let compiler = std::env::var_os(variable).unwrap_or_else(|| compiler.into());
            let mut command = Command::new(&compiler);
            output(command.args(flags).arg("-o").arg(&program).arg(source))?;
            Ok(Subject {
                name: name.to_owned(),
                program: program.clone(),
                arguments: vec![rounds.clone()],
                input: None,
            })
        };
        match name {
            "store" => {
                compiled("store.c", include_str!("sources/store.c"), "CC", "cc", &["-O2", "-g", "-std=gnu11"])
            }
            "index" => {
                let flags = ["-O2", "-g", "-std=c++17"];
                compiled("index.cpp", include_str!("sources/index.cpp"), "CXX", "c++", &flags)
            }
            "cache" => {
                let flags = ["--edition", "2024", "-O", "-g"];
                compiled("cache.rs", include_str!("sources/cache.rs"), "RUSTC", "rustc", &flags)
            }
            "lua" => {
                let script = write(folder, "table.lua", include_str!("sources/table.lua"))?;
                Subject::foreign(name, foreign, vec![script.into()], None)
            }
            "sqlite3" => {
                let script = write(folder, "orders.sql", include_str!("sources/orders.sql"))?;
                Subject::foreign(name, foreign, vec!["-batch".into(), ":memory:".into()], Some(script))
            }
            "python" => {
                let script = write(folder, "objects.py", include_str!("sources/objects.py"))?;
                // nothing of the machine's own configuration
                Subject::foreign(name, foreign, vec!["-I".into(), "-S".into(), script.into()], None)
            }
            other => bail!("there is no program {other}"),
        }
    }

    fn foreign(
        name: &str,
        folder: &Path,
        arguments: Vec<OsString>,
        input: Option<PathBuf>,
    ) -> Result<Subject> {
        let program = folder.join(name);
        let program = fs::canonicalize(&program)
            .with_context(|| format!("{} is missing: ci/programs builds it", program.display()))?;
        Ok(Subject { name: name.to_owned(), program, arguments, input })
    }

    /// Adds the program and its arguments to a command that runs them.
    pub(super) fn add_to(&self, command: &mut Command) -> Result<()> {
        command.arg(&self.program).args(&self.arguments);
        // Python's hashes of strings would differ from run to run, and with them its tables
        command.env("PYTHONHASHSEED", "0");
        let input = match &self.input {
            Some(path) => File::open(path).with_context(|| format!("cannot read {}", path.display()))?.into(),
            None => Stdio::null(),
        };
        command.stdin(input);
        Ok(())
    }
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
