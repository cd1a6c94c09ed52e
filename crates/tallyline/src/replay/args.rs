//! The command line of `tallyline replay`.

use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Replay a trace on a model of coherent caches: who takes lines from whom, by type and field
///
/// A model, not a measurement: MESI, one level of cache for each core, no time. Threads run by turns of
/// a fixed number of instructions; the recorded order holds only where one waited for others with the
/// kernel's help (a thread's beginning, a futex, the end of a thread).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// The trace, as `tallyline record --trace` made it
    #[arg(value_name = "TRACE", default_value = "perf.trace")]
    trace: PathBuf,

    /// Trace file, by the other reports' name for the option
    #[arg(short, long, value_name = "TRACE", conflicts_with = "trace")]
    input: Option<PathBuf>,

    /// Number of cores of the modelled machine [default: the number of threads]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) cores: Option<u16>,

    /// The size of a cache line in bytes
    #[arg(short, long, alias = "cacheline_size", value_name = "BYTES", default_value_t = 64)]
    pub(super) cacheline_size: u32,

    /// The size of each core's cache: a number with K, M or G
    #[arg(long, value_name = "SIZE", value_parser = tallyline_support::parse_size, default_value = "1M")]
    pub(super) cache: u64,

    /// Associativity: the number of lines in a set of the cache
    #[arg(long, value_name = "WAYS", default_value_t = 16)]
    pub(super) ways: u32,

    /// Instructions that a thread runs before the next one's turn
    #[arg(short, long, value_name = "N", default_value_t = 200)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) quantum: u64,

    /// Replay once, without the comparison with turns a tenth as long and ten times as long
    #[arg(long)]
    pub(super) one_quantum: bool,

    /// The order of atomic instructions: as the turns have it, or as it was recorded
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = Order::Free)]
    pub(super) atomics: Order,

    /// The process to replay; without it the first
    #[arg(short, long, value_name = "PID")]
    pub(super) pid: Option<u32>,

    /// Look for programs under this folder
    #[arg(long, value_name = "FOLDER")]
    pub(super) symfs: Option<PathBuf>,

    /// Bypass the type cache, as with tallyline report
    #[arg(long)]
    pub(super) no_cache: bool,

    #[command(flatten)]
    pub(super) processor: super::processor::ProcessorArgs,

    /// Number of cache lines to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(super) lines: usize,

    /// Print names whole also where a line is longer than the terminal; files and pipes have them whole
    #[arg(long)]
    pub(super) wide: bool,

    /// Write JSON; its schema is in the documentation of the module `json`
    #[arg(long)]
    pub(super) json: bool,

    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

impl ReplayArgs {
    /// Returns the trace.
    pub(super) fn trace(&self) -> &Path {
        self.input.as_deref().unwrap_or(&self.trace)
    }
}

const EXAMPLES: &str = "\
Examples:
  tallyline record --trace -- ./server && tallyline replay
  tallyline replay -n 64 --cache 2M -c 128 server.trace   64 cores and larger lines
  tallyline replay --quantum 1000 --atomics recorded -i server.trace
  tallyline replay --cost server.trace           what accesses to each field cost, by a model

The turns decide how often threads meet: figures are of the model with that --quantum, and are shown beside those with a tenth of it and ten times as much. What stays the same is who shares a line with whom.";

/// The order of atomic instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Order {
    /// As the turns have it
    Free,
    /// As it was recorded
    Recorded,
}
