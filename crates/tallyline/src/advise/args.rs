//! The command line of `tallyline advise`.

use crate::apply::ApplyArgs;
use anyhow::{Context, Result};
use clap::Args;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Command-line options that describe the modelled machine and the number of thread schedules to simulate on it, for
/// `advise` and `sharing-check`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// Number of cores of the modelled machine [default: the number of threads]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) cores: Option<u16>,

    /// The size of a cache line in bytes
    #[arg(short, long, value_name = "BYTES", default_value_t = 64, value_parser = line_size)]
    pub(super) cacheline_size: u32,

    /// Cycles to transfer a line from another core: the least and the most, and the usual
    ///
    /// CYCLES, or CYCLES:INTERVAL:HOLD: a line comes CYCLES after it is asked for; if two cores want it all the time, it
    /// passes from one to the other every INTERVAL cycles, of which a core has it for HOLD.
    #[arg(long, value_name = "LEAST,MOST", value_delimiter = ',', num_args = 1..=3, value_parser = transfer)]
    #[arg(default_values_t = [super::model::LEAST_TRANSFER, super::model::MOST_TRANSFER].map(Transfer::of))]
    pub(super) transfer: Vec<Transfer>,

    /// Measure the transfer of a line between two CPUs of this machine, in a fifth of a second, instead of
    /// --transfer
    #[arg(long, conflicts_with = "transfer")]
    pub(super) calibrate: bool,

    /// Number of thread schedules
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(super) schedules: u64,

    /// Replay at most this many accesses of each thread, in pieces from all of its run [default: 200000; 1000000 of
    /// the only thread of a program]
    #[arg(long, value_name = "N")]
    pub(super) accesses: Option<u64>,

    /// The process to analyse [default: the one with the most accesses]
    #[arg(long, value_name = "PID")]
    pub(super) process: Option<u32>,

    /// Look for programs under this folder
    #[arg(long, value_name = "FOLDER")]
    pub(super) symfs: Option<PathBuf>,
}

/// Find contended counters, false sharing and bad layouts in a program, and propose changes
///
/// The command is traced under QEMU, and the trace is replayed on a model of cores that take cache lines from each
/// other. Each finding has evidence, a proposal, the effect of the proposal by the model on several thread
/// schedules, and a check that keeps it. For most programs there is nothing to advise. The effect is modelled, not
/// measured: --apply edits the sources as proposed, once a compiler has confirmed the layouts, and --measure
/// measures the speed-up. Without a model, -p observes a running process and -i analyses a recording; both say what
/// they cannot know.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AdviseArgs {
    /// Analyse an existing trace, recorded by tallyline record --trace
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(super) trace: Option<PathBuf>,

    /// Observe a running process: clock samples, then hardware breakpoints on its hot words, which show the threads
    /// that read and write them; nothing is modelled
    #[arg(short, long, value_name = "PID", conflicts_with_all = ["command", "trace"])]
    #[arg(value_parser = clap::value_parser!(i32).range(1..))]
    pub(super) pid: Option<i32>,

    /// Analyse an existing recording, by tallyline record or perf record: samples only; nothing is modelled
    #[arg(short = 'i', long = "input", value_name = "RECORDING", conflicts_with_all = ["command", "trace", "pid"])]
    pub(super) recording: Option<PathBuf>,

    /// Trace the whole program, not only the functions that clock samples find hot
    #[arg(long, conflicts_with_all = ["pid", "recording"])]
    pub(super) whole: bool,

    /// Run this shell command as the load of a server, and ask the server to end when it has ended
    ///
    /// For a command that has nothing to do without clients. The load is started when the command, or a process
    /// that it started, listens on a socket, and after ten seconds at the latest. It runs twice: first with the
    /// command as it is, then with the command under QEMU, which is slower. If the load does a fixed amount of
    /// work, the slow-down is reported.
    #[arg(long, value_name = "COMMAND", requires = "command", conflicts_with_all = ["trace", "pid", "recording"])]
    pub(super) load: Option<String>,

    /// Trace these functions of the program, with the parts that compilers split off (NAME.cold), instead of those that
    /// samples find hot
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "command")]
    #[arg(conflicts_with_all = ["whole", "trace", "pid", "recording"])]
    pub(super) functions: Vec<String>,

    /// Ask the command to end after this many seconds (of its load, if there is one) in each run. With -p, the time
    /// to observe the process, 10 seconds by default
    #[arg(long, value_name = "N", conflicts_with_all = ["trace", "recording"])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) seconds: Option<u64>,

    /// Keep the trace, in this file
    #[arg(long, value_name = "FILE", requires = "command")]
    pub(super) keep_trace: Option<PathBuf>,

    #[command(flatten)]
    pub(super) apply: ApplyArgs,

    #[command(flatten)]
    pub(super) model: ModelArgs,

    /// Stop tracing when the trace reaches this size: a number with K, M or G
    #[arg(long, value_name = "SIZE", value_parser = tallyline_support::parse_size, default_value = "1G")]
    pub(super) max_size: u64,

    /// Show at most this many findings
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(super) limit: usize,

    /// Write JSON; the command's own output goes to standard error unless -o names a file
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

/// The cycles that a line from another core takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    /// From the request to the data, if nobody else wants the line.
    pub(super) latency: u32,
    /// From one owner to the next where two want it all the time, and how long each has it.
    pub(super) contention: Option<(u32, u32)>,
}

impl Transfer {
    fn of(latency: u32) -> Self {
        Self { latency, contention: None }
    }
}

impl std::fmt::Display for Transfer {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.contention {
            None => write!(to, "{}", self.latency),
            Some((interval, hold)) => write!(to, "{}:{interval}:{hold}", self.latency),
        }
    }
}

fn transfer(text: &str) -> Result<Transfer, String> {
    let numbers: Result<Vec<u32>, _> = text.split(':').map(str::parse).collect();
    match numbers.as_deref() {
        Ok([latency]) => Ok(Transfer::of(*latency)),
        Ok([latency, interval, hold]) if hold <= interval => {
            Ok(Transfer { latency: *latency, contention: Some((*interval, *hold)) })
        }
        _ => Err("expected CYCLES or CYCLES:INTERVAL:HOLD".to_owned()),
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
  tallyline advise -p $(pidof server) --seconds 5     a running process, which goes on running
  tallyline advise -i perf.data                       samples of tallyline record or perf record
  tallyline advise --trace perf.trace -n 16           on sixteen cores (with as many threads)
  tallyline advise --apply --build make --measure './server --bench' --keep-if 1.05 -- ./server
  tallyline advise --json -o advice.json -- ./server

Exit status: 0 for success, also with findings; 2 for an error.";
