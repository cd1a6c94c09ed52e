//! The program that comes with the demo, in a folder of its own.

use anyhow::{Context, Result, bail};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The file name of the source.
pub(super) const SOURCE: &str = "gateway.rs";

/// A description of the program.
pub(super) const ABOUT: &str = "a gateway whose two workers take packets and count them";

const TEXT: &str = include_str!("gateway.rs");

/// A folder with the program's source; removed in the end.
pub(super) struct Project {
    folder: PathBuf,
    compiler: String,
}

impl Project {
    /// Creates a temporary folder with the source of the demo's program.
    pub(super) fn create() -> Result<Project> {
        let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        if compiler.contains('\'') {
            bail!("RUSTC={compiler}: a path with a quotation mark cannot be run by a shell here");
        }
        let path = std::env::temp_dir().join(format!("tallyline-demo-{}", std::process::id()));
        // it must not be there already: it could be another's
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot make the folder {}", path.display()))?;
        let mut project = Project { folder: path, compiler };
        project.folder = project.folder.canonicalize().context("cannot read a folder that was just made")?;
        let source = project.folder.join(SOURCE);
        std::fs::write(&source, TEXT).with_context(|| format!("cannot write {}", source.display()))?;
        Ok(project)
    }

    /// Returns the temporary folder of the demo's program.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of the demo's compiled program.
    pub(super) fn program(&self) -> PathBuf {
        self.folder.join("gateway")
    }

    /// Returns the shell command that builds the program in its folder.
    pub(super) fn build_command(&self) -> String {
        format!("'{}' --edition 2021 -O -g -o gateway {SOURCE}", self.compiler)
    }

    /// Returns the shell command that runs the program on this number of packets per worker.
    pub(super) fn run_command(&self, packets: u64) -> String {
        format!("./gateway 2 {packets}")
    }

    /// Builds the demo's program in its folder.
    pub(super) fn build(&self) -> Result<()> {
        let mut shell = Command::new("sh");
        let output = shell.args(["-c", &self.build_command()]).current_dir(&self.folder).output();
        let output = output.context("cannot run sh")?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let last = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message");
        bail!(
            "the demo's program cannot be built by {} ({last}); RUSTC names another compiler, and `tallyline demo \
             counters` needs none",
            self.compiler
        )
    }

    /// Returns the number of packets with which a run takes some seconds, about.
    pub(super) fn packets(&self, seconds: f64) -> Result<u64> {
        const TRIED: u64 = 1 << 20;
        let started = Instant::now();
        let output = Command::new(self.program()).args(["2", &TRIED.to_string()]).output();
        let output = output.with_context(|| format!("cannot run {}", self.program().display()))?;
        anyhow::ensure!(output.status.success(), "the demo's program ended with {}", output.status);
        let factor = seconds / started.elapsed().as_secs_f64().max(1e-4);
        Ok((TRIED as f64 * factor.clamp(0.05, 100.0)) as u64)
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
