//! The project's own checks, run as `cargo xtask …`.
//!
//! - `book` runs the commands of the book and compares what they print with what it shows.
//! - `check` holds properties of the sources as ratchets: numbers in `xtask/ratchets.toml` that may only
//!   go down.
//! - `baseline` compares the outputs of an old binary with a new one's, byte for byte, and their speed.
//! - `dependencies` checks licences, versions and sources by the rules of deny.toml.
//! - `peer-report` compares reports with perf's.
//! - `skips` fails where tests skipped themselves for want of something.
//! - `names` prints names with their signatures and doc lines, drawn by a seed, to test them on readers.
//! - `plan` lists the edges of the module graph that a plan of crates would turn upwards.

mod baseline;
mod book;
mod check;
mod config;
mod dependencies;
mod names;
mod peers;
mod plan;
mod skips;
mod source;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The project's own checks
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare the ratchets with their recorded numbers
    Check {
        /// Write numbers that went down to the record
        #[arg(long)]
        record: bool,
        /// Print the places that a ratchet counts
        #[arg(long, value_name = "NAME")]
        list: Option<String>,
    },
    /// Compare the outputs and the speed of an old binary with a new one's
    #[command(subcommand)]
    Baseline(baseline::Baseline),
    /// Run the commands of the book and compare what they print with what it shows
    Book(book::Book),
    /// Fail if tests skipped themselves, by the output of `cargo test … -- --show-output`
    Skips {
        /// The output
        log: PathBuf,
        /// List them, and don't fail
        #[arg(long)]
        list: bool,
    },
    /// Check licences, versions and sources of dependencies by cargo metadata's output on standard input
    Dependencies,
    /// Compare reports with perf's on the same recordings
    PeerReport {
        /// perf
        perf: PathBuf,
        /// tallyline
        tallyline: PathBuf,
        /// The folder with memory.data and, where the kernel allows sampling, clock.data
        folder: PathBuf,
        /// A recording of a machine with memory events
        #[arg(long, value_name = "FILE")]
        recorded: Option<PathBuf>,
    },
    /// Print public and crate-public names with their signatures and doc lines, for readers who do not know the project
    Names {
        /// The seed that names are drawn by; all names without it
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
        /// The number of names to draw
        #[arg(long, default_value_t = 20, value_name = "N")]
        count: usize,
    },
    /// List the edges that a plan of crates would turn upwards, as Markdown
    Plan {
        /// The plan: modules and the crates they go to, and the crates' dependencies
        file: PathBuf,
    },
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the workspace that cargo runs this in. The folder that it was compiled in may be another clone's, which
/// shares the target folder.
fn workspace_root() -> Result<PathBuf> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").context("not run by cargo: use cargo xtask")?;
    let root = Path::new(&manifest).parent().context("the folder of xtask has no parent")?;
    Ok(root.to_path_buf())
}

fn run() -> Result<()> {
    let root = &workspace_root()?;
    match Arguments::parse().command {
        Command::Check { record, list } => check::run(root, record, list.as_deref()),
        Command::Baseline(command) => baseline::run(root, &command),
        Command::Book(args) => book::run(root, &args),
        Command::Skips { log, list } => skips::run(root, &log, list),
        Command::Dependencies => dependencies::run(root),
        Command::PeerReport { perf, tallyline, folder, recorded } => {
            peers::report::run(&perf, &tallyline, &folder, recorded.as_deref())
        }
        Command::Names { seed, count } => names::run(root, seed, count),
        Command::Plan { file } => plan::run(root, &file),
    }
}
