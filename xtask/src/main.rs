//! The project's own checks, run as `cargo xtask …`.
//!
//! - `check` holds properties of the sources as ratchets: numbers in `xtask/ratchets.toml` that may only
//!   go down.
//! - `baseline` compares the outputs of an old binary with a new one's, byte for byte, and their speed.
//! - `plan` lists the edges of the module graph that a plan of crates would turn upwards.

mod baseline;
mod check;
mod config;
mod plan;
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

fn run() -> Result<()> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = manifest.parent().context("the folder of xtask has no parent")?;
    match Arguments::parse().command {
        Command::Check { record, list } => check::run(root, record, list.as_deref()),
        Command::Baseline(command) => baseline::run(root, &command),
        Command::Plan { file } => plan::run(root, &file),
    }
}
