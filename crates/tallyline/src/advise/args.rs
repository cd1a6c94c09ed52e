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
    #[arg(short, long, value_name = "BYTES", default_value_t = 64, value_parser = line_size)]
    pub(super) cacheline_size: u32,

    /// Cycles that a line from another core takes: the least and the most
    #[arg(long, value_name = "LEAST,MOST", value_delimiter = ',', num_args = 1..=2)]
    #[arg(default_values_t = [super::model::LEAST_TRANSFER, super::model::MOST_TRANSFER])]
    pub(super) transfer: Vec<u32>,

    /// Measure what a line takes between two CPUs here, in a fifth of a second, in place of --transfer
    #[arg(long, conflicts_with = "transfer")]
    pub(super) calibrate: bool,

    /// Number of schedules
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(super) schedules: u64,

    /// Replay at most so many accesses of each thread, the last ones
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
/// The command is traced under QEMU, and the trace is replayed on a model of cores that take cache lines from each
/// other. Each finding has its evidence, a proposal, the proposal's effect by the model on several schedules, and the
/// check that holds it. Nothing to advise is the usual answer. A model, not a measurement: --apply edits the sources
/// as proposed, once a compiler confirms the layouts, and --measure says what it brings. Without a model: -p looks at a
/// process that runs, -i at a recording, and both say what that leaves open.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AdviseArgs {
    /// Use a trace that tallyline record --trace made
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(super) trace: Option<PathBuf>,

    /// Look at a process that runs, as it runs: samples of the clock, then hardware breakpoints on its hot words that show
    /// which threads read and write them; nothing is modelled
    #[arg(short, long, value_name = "PID", conflicts_with_all = ["command", "trace"])]
    #[arg(value_parser = clap::value_parser!(i32).range(1..))]
    pub(super) pid: Option<i32>,

    /// Use a recording that tallyline record or perf record made: samples alone, nothing is modelled
    #[arg(short = 'i', long = "input", value_name = "RECORDING", conflicts_with_all = ["command", "trace", "pid"])]
    pub(super) recording: Option<PathBuf>,

    /// Trace everything, and not only the functions that samples of the clock find hot
    #[arg(long, conflicts_with_all = ["pid", "recording"])]
    pub(super) whole: bool,

    /// Run this beside the command, each time that it runs, and ask the command to end with it
    ///
    /// What serves has nothing to do by itself. The load is a command line of the shell. It is started when the command,
    /// or a process that it started, listens on a socket; at the latest after ten seconds. It runs twice: beside the
    /// command as it is, and beside the command under QEMU, which is slower. A load with a fixed amount of work tells how
    /// much slower.
    #[arg(long, value_name = "COMMAND", requires = "command", conflicts_with_all = ["trace", "pid", "recording"])]
    pub(super) load: Option<String>,

    /// Trace these functions of the program, instead of those that samples find hot
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "command")]
    #[arg(conflicts_with_all = ["whole", "trace", "pid", "recording"])]
    pub(super) functions: Vec<String>,

    /// Ask the command to end after so many seconds of its load, or of its own, each time that it runs. With -p the time
    /// to look at the process, 10 seconds if it is not given
    #[arg(long, value_name = "N", conflicts_with_all = ["trace", "recording"])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
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
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present_any = ["trace", "undo", "pid", "recording"])]
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

fn line_size(text: &str) -> Result<u32, String> {
    let size: u32 = text.parse().map_err(|_| "not a number".to_owned())?;
    match size.is_power_of_two() && (8..=4096).contains(&size) {
        true => Ok(size),
        false => Err("expected a power of two from 8 to 4096".to_owned()),
    }
}

const EXAMPLES: &str = "\
Examples:
  tallyline advise -- ./server --threads 4
  tallyline advise --load './bench --requests 20000' -- ./server --port 7000
  tallyline advise -p $(pidof server) --seconds 5     a process that is running, and goes on
  tallyline advise -i perf.data                       samples of tallyline record or perf record
  tallyline advise --trace perf.trace -n 16           on sixteen cores, if it has as many threads
  tallyline advise --apply --build make --measure './server --bench' --keep-if 1.05 -- ./server
  tallyline advise --json -o advice.json -- ./server

Exit status: 0 for success, also with findings; 2 for an error.";
