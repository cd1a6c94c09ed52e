//! The command line of `tallyline diff`.

use crate::profile::Patterns;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Compare the layouts of two files: types that grew, members on other lines
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DiffArgs {
    /// The old file
    #[arg(value_name = "OLD")]
    pub(super) old: PathBuf,

    /// The new file
    #[arg(value_name = "NEW")]
    pub(super) new: PathBuf,

    /// Compare only these types: comma-separated names, or patterns with * and ?
    #[arg(short = 'C', long = "class", value_name = "TYPE")]
    pub(super) classes: Vec<String>,

    /// Leave out these types
    #[arg(short = 'x', long, value_name = "TYPE")]
    pub(super) exclude: Vec<String>,

    /// Also show members that changed their type but not their offset
    #[arg(short, long)]
    pub(super) types: bool,

    /// Show all types in the order of their declarations. By default, unless -C or --verbose is given, the root
    /// causes of the differences come first, and types that merely contain changed ones are folded
    #[arg(long)]
    pub(super) all: bool,

    /// Show every member that moved, not only those that moved to another cache line
    #[arg(short, long)]
    pub(super) verbose: bool,

    /// The size of a cache line in bytes
    #[arg(short, long, alias = "cacheline_size", value_name = "BYTES", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(super) cacheline_size: u64,

    /// Rank types by the samples of their fields in this recording
    #[arg(long, value_name = "FILE", help_heading = "Impact")]
    pub(super) profile: Option<PathBuf>,

    /// Rank by the samples of this event: a name, a glob or a regular expression [default: the first with samples]
    #[arg(short, long, value_name = "EVENT", requires = "profile", help_heading = "Impact")]
    #[arg(value_parser = Patterns::parse)]
    pub(super) event: Option<Patterns>,

    /// Number of instances of each type, to rank by: lines `TYPE COUNT`, or /proc/slabinfo
    #[arg(long, value_name = "FILE", help_heading = "Impact")]
    pub(super) instances: Option<PathBuf>,

    /// Put types first that newly break a rule of this policy, and name each type's rules
    #[arg(short, long, value_name = "FILE", help_heading = "Impact")]
    pub(super) policy: Option<PathBuf>,

    /// Output format of the differences
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub(super) format: Format,

    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tallyline diff ./server.old ./server
  tallyline diff --all ./server.old ./server
  tallyline diff -C 'tcp_*,sock' vmlinux-6.12 vmlinux-6.18
  tallyline diff --format markdown base/server head/server > comment.md
  tallyline diff --profile perf.data --policy layout.toml ./server.old ./server
  tallyline diff --format codiff old.o new.o >> commit-message

The root causes are ranked: rules newly broken (--policy), then types that changed their size or a member's cache line, then samples (--profile), then bytes times instances (--instances).

Exit status: 0 if nothing differs, 1 with differences, 2 for an error.";

/// The output format of differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Text,
    /// For programs, one type per line
    Json,
    /// A table for a pull request
    Markdown,
    /// As codiff does, for a commit message
    Codiff,
}
