//! The command line of `tallyline advise`.

use crate::apply::ApplyArgs;
use anyhow::{Context, Result};
use clap::Args;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Command-line options that describe the modelled machine and the number of its schedules, for `advise` and
/// `sharing-check`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// Number of cores of the modelled machine [default: the number of threads]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) cores: Option<u16>,

    /// The size of a cache line in bytes
    #[arg(short, long, value_name = "BYTES", default_value_t = 64)]
    pub(super) cacheline_size: u32,

    /// Cycles that a line from another core takes: the least and the most
    #[arg(long, value_name = "LEAST,MOST", value_delimiter = ',', num_args = 1..=2)]
    #[arg(default_values_t = [super::model::LEAST_TRANSFER, super::model::MOST_TRANSFER])]
    pub(super) transfer: Vec<u32>,

    /// Number of schedules
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(super) schedules: u64,

    /// Replay at most so many accesses of each thread
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    pub(super) accesses: u64,

    /// The process to look at; without it the one with the most accesses
    #[arg(long, value_name = "PID")]
    pub(super) process: Option<u32>,

    /// Look for programs under this folder
    #[arg(long, value_name = "FOLDER")]
    pub(super) symfs: Option<PathBuf>,
}

/// Advise on a program's data: contended counters, false sharing, layouts of hot paths
///
/// The program is traced under QEMU, and the trace is replayed on a model of cores that take cache lines from each
/// other. Each finding has its evidence, a proposal, the proposal's effect by the model on several schedules, and the
/// check that holds it. Nothing to advise is the usual answer. A model, not a measurement: --apply edits the sources
/// as proposed, once a compiler confirms the layouts, and --measure says what it brings.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AdviseArgs {
    /// Use a trace that tallyline record --trace made
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(super) trace: Option<PathBuf>,

    /// Trace everything, and not only the functions that samples of the clock find hot
    #[arg(long)]
    pub(super) whole: bool,

    /// Ask the command to end after so many seconds, each time that it runs: what serves does not end by itself
    #[arg(long, value_name = "N", requires = "command", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) seconds: Option<u64>,

    /// Keep the trace in this file
    #[arg(long, value_name = "FILE", requires = "command")]
    pub(super) keep_trace: Option<PathBuf>,

    #[command(flatten)]
    pub(super) apply: ApplyArgs,

    #[command(flatten)]
    pub(super) model: ModelArgs,

    /// Stop tracing when the trace has this size: a number with K, M or G
    #[arg(long, value_name = "SIZE", value_parser = tallyline_support::parse_size, default_value = "1G")]
    pub(super) max_size: u64,

    /// Show at most so many findings
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(super) limit: usize,

    /// Write JSON: the document alone, and the command's own output to standard error unless -o names a file
    #[arg(long)]
    pub(super) json: bool,

    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// The command to run
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present_any = ["trace", "undo"])]
    pub(super) command: Vec<OsString>,
}

impl AdviseArgs {
    /// Returns the stream that the command's standard output goes to: ours, or standard error where a document goes to
    /// ours, as with `record -o -`.
    pub(super) fn command_output(&self) -> Result<Option<File>> {
        let is_stdout = self.output.as_deref().is_none_or(|path| path == Path::new("-"));
        if !is_stdout || !(self.json || self.apply.patch) {
            return Ok(None);
        }
        let stream = std::io::stderr().as_fd().try_clone_to_owned().context("cannot copy standard error")?;
        Ok(Some(File::from(stream)))
    }
}

const EXAMPLES: &str = "\
Examples:
  tallyline advise -- ./server --threads 4
  tallyline advise --trace perf.trace -n 16     on sixteen cores, if it has as many threads
  tallyline advise --apply --build make --measure './server --bench' --keep-if 1.05 -- ./server
  tallyline advise --json -o advice.json -- ./server

Exit status: 0 for success, also with findings; 2 for an error.";
