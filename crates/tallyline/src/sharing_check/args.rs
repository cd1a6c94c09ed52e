//! The command line of `tallyline sharing-check`.

use crate::advise::ModelArgs;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Schedules that each trace is replayed on: with two traces of each build, twelve. On some schedules a line's cost depends
/// on a few cycles by which one trace of a build deviates from the next, so that fewer say less.
const SCHEDULES: &str = "6";

/// Compare two builds by the cost of the cache lines that their threads share
///
/// Both are traced under QEMU with the same arguments and replayed on the same modelled cores and schedules: two runs of
/// each, and up to --runs where a line costs more. A line is identified by the fields on it, whatever its address. This
/// is a model, not a measurement.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_arg("schedules", |schedules| schedules.default_value(SCHEDULES)))]
pub(crate) struct SharingCheckArgs {
    /// The build to compare with: a program, or a trace recorded by tallyline record --trace
    ///
    /// Traces of several runs are given by --base each.
    #[arg(long, value_name = "OLD", required = true)]
    pub(super) base: Vec<PathBuf>,

    /// The build to check: a program or traces
    #[arg(long, value_name = "NEW", required = true)]
    pub(super) head: Vec<PathBuf>,

    /// Trace at most this many runs of each build
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64), default_value_t = 4)]
    pub(super) runs: u64,

    /// The growth of a line's cost that fails the check, in percent of the cores' total time
    ///
    /// Growth that is within what runs of one build differ by does not fail it.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub(super) threshold: f64,

    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub(super) format: Format,

    /// Ask each build to end after this many seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) seconds: Option<u64>,

    /// Stop tracing when a trace reaches this size: a number with K, M or G
    #[arg(long, value_name = "SIZE", value_parser = tallyline_support::parse_size, default_value = "1G")]
    pub(super) max_size: u64,

    #[command(flatten)]
    pub(super) model: ModelArgs,

    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// Arguments for both builds
    #[arg(value_name = "ARGUMENT", last = true)]
    pub(super) words: Vec<OsString>,
}

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
    /// For a comment on a pull request
    Markdown,
    /// For code scanning
    Sarif,
}

const EXAMPLES: &str = "\
Examples:
  tallyline sharing-check --base ./server.old --head ./server -- --selftest
  tallyline sharing-check --base main.trace --head ./server --format markdown -- --selftest

Exit status: 0 if no line's cost has grown by the threshold, 1 if one has, 2 for an error.";
