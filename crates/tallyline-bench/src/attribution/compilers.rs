//! The compilers of this machine, and the programs that they make of the shapes.

use super::truth::Language;
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SHAPES_H: &str = include_str!("programs/shapes.h");
const SHAPES_C: &str = include_str!("programs/shapes.c");
const SHAPES_CPP: &str = include_str!("programs/shapes.cpp");
const SHAPES_RS: &str = include_str!("programs/shapes.rs");

/// The compilers that are looked for where none is named.
pub(super) const USUAL: [&str; 5] = ["gcc", "clang", "g++", "clang++", "rustc"];

/// A compiler of the shapes' programs.
#[derive(Debug)]
pub(super) struct Compiler {
    /// The path of the compiler, as it was named.
    pub(super) program: PathBuf,
    /// The name of the compiler, without folders.
    pub(super) name: String,
    /// The first line of the output of `--version`.
    pub(super) version: String,
    pub(super) language: Language,
}

impl Compiler {
    /// Finds a compiler and its version; none where it does not run.
    pub(super) fn find(program: &Path) -> Option<Compiler> {
        let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.lines().next().filter(|_| output.status.success())?.trim().to_owned();
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
        let language = match () {
            () if name.contains("rustc") => Language::Rust,
            () if name.contains("++") => Language::Cpp,
            () => Language::C,
        };
        Some(Compiler { program: program.to_owned(), name, version, language })
    }

    /// Compiles the shapes of its language into a program in a folder.
    pub(super) fn compile(&self, folder: &Path) -> Result<PathBuf> {
        let program = folder.join(format!("shapes-{}", self.name));
        let (file, text, words): (_, _, &[&str]) = match self.language {
            Language::C => ("shapes.c", SHAPES_C, &["-std=gnu11", "-O2", "-g"]),
            Language::Cpp => ("shapes.cpp", SHAPES_CPP, &["-std=c++17", "-O2", "-g"]),
            Language::Rust => (
                "shapes.rs",
                SHAPES_RS,
                &["--edition=2024", "-Copt-level=3", "-g", "-Cpanic=abort", "-Clto=fat"],
            ),
        };
        for (name, text) in [("shapes.h", SHAPES_H), (file, text)] {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        let mut command = Command::new(&self.program);
        command.current_dir(folder).args(words);
        // the same program comes out in each folder
        command.arg(format!(
            "{}={}=.",
            if self.language == Language::Rust { "--remap-path-prefix" } else { "-ffile-prefix-map" },
            folder.display()
        ));
        command.arg("-o").arg(&program).arg(file);
        output(&mut command)?;
        Ok(program)
    }
}

/// Runs a program, and returns what it prints.
pub(super) fn output(command: &mut Command) -> Result<String> {
    let name = Path::new(command.get_program()).file_name().unwrap_or(OsStr::new("?"));
    let name = name.to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let complaint = complaint.trim().trim_start_matches("tallyline: ");
        bail!("{name} failed: {}", if complaint.is_empty() { "without a message" } else { complaint });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
