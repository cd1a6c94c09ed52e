//! Outputs of an old binary against a new one's, byte for byte, and their speed in pairs.
//!
//! `record` keeps a binary's outputs over debug files, recordings and the running kernel in a folder with
//! whatever of the inputs may go away; `compare` runs another binary on the same. A text that was changed
//! on purpose is listed in `xtask/baseline-changes.toml` with its reason.

mod cases;
mod changes;
mod compare;
mod inputs;
mod outcome;
mod time;

use anyhow::{Context, Result};
use clap::Subcommand;
use std::path::{Path, PathBuf};

/// Outputs of an old binary against a new one's
#[derive(Subcommand)]
pub(crate) enum Baseline {
    /// Keep the outputs of a binary in a folder
    ///
    /// QUIPPER and SKID name folders of recordings; others are made by the binary itself.
    Record {
        /// The binary
        binary: PathBuf,
        /// The folder: inputs, outputs, and the list of cases
        folder: PathBuf,
        /// Another debug file to read; may be given again
        #[arg(long, value_name = "FILE")]
        file: Vec<PathBuf>,
    },
    /// Compare the outputs of a binary with those that were kept
    Compare {
        /// The binary
        binary: PathBuf,
        /// The folder that `record` made
        folder: PathBuf,
        /// Only cases whose name contains this
        #[arg(long, value_name = "TEXT")]
        only: Option<String>,
    },
    /// Time two binaries alternately: benchmarks of counters, layouts, reports
    Time {
        /// The old binary
        old: PathBuf,
        /// The new binary
        new: PathBuf,
        /// The folder that `record` made, for recordings to report on
        folder: PathBuf,
        /// Pairs of runs
        #[arg(long, default_value_t = 11, value_name = "N")]
        rounds: usize,
    },
}

/// Runs a command on baselines.
pub(crate) fn run(root: &Path, command: &Baseline) -> Result<()> {
    match command {
        Baseline::Record { binary, folder, file } => compare::record(root, &absolute(binary)?, folder, file),
        Baseline::Compare { binary, folder, only } => {
            compare::compare(root, &absolute(binary)?, &absolute(folder)?, only.as_deref())
        }
        Baseline::Time { old, new, folder, rounds } => {
            time::run(&absolute(old)?, &absolute(new)?, &absolute(folder)?, *rounds)
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    path.canonicalize().with_context(|| format!("{}: cannot find", path.display()))
}
