//! The command line of `tallyline replay`.

use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Replay a trace on a model of coherent caches: misses by type and field, and their causes
///
/// This is a model, not a measurement: MESI, one level of cache for each core, no time. Threads take turns of a
/// fixed number of instructions; the recorded order is kept only where a thread waited for others in the kernel
/// (the start of a thread, a futex, the end of a thread).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// The trace, recorded by `tallyline record --trace`
    #[arg(value_name = "TRACE", default_value = "perf.trace")]
    trace: PathBuf,

    /// The trace, by the option's name in other commands
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

    /// Replay once, without comparing turns a tenth and ten times as long
    #[arg(long)]
    pub(super) one_quantum: bool,

    /// The order of atomic instructions: by the threads' turns, or as recorded
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = Order::Free)]
    pub(super) atomics: Order,

    /// The process to replay [default: the first]
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

    /// Do not shorten names to fit lines into the terminal; in files and pipes they are never shortened
    #[arg(long)]
    pub(super) wide: bool,

    /// Write JSON
    #[arg(long)]
    pub(super) json: bool,

    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

impl ReplayArgs {
    /// Returns the path of the trace to replay.
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

The length of the turns decides how often threads collide. Figures are for the given --quantum, and are shown beside those for a tenth of it and ten times as much. Which threads share which lines does not depend on it.";

/// The order of atomic instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Order {
    /// By the threads' turns
    Free,
    /// As recorded
    Recorded,
}
