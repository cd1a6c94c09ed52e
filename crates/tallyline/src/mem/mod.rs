//! `tallyline mem`: memory accesses, as `perf mem report` shows them.

use crate::report::{self, ReportArgs};
use anyhow::Result;
use clap::{Args, ValueEnum};
use tallyline_report::filter::Operation;
use tallyline_support::output::Color;

/// Show memory accesses: where the data came from, and how long it took
///
/// Reports samples of memory events (mem-loads, mem-stores, IBS, SPE), weighted by latency.
#[derive(Debug, Args)]
pub(crate) struct MemArgs {
    #[command(flatten)]
    report: ReportArgs,

    /// Show only loads, or only stores
    #[arg(short = 't', long, value_enum, value_name = "WHICH")]
    op: Option<OperationArg>,
}

/// The examples at the end of the help text of `tallyline mem`.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyline record -e mem-loads -e mem-stores -- ./server && tallyline mem
  tallyline mem -t load -s mem,type -n              levels by type
  tallyline mem -H -s type,mem -i mem.data          each type with where its data came from
  tallyline mem --json -s type,typeoff,mem

Exit status: 0 for success, 2 for an error, also if the recording has no memory accesses.";

/// The kind of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OperationArg {
    /// Those that read
    Load,
    /// Those that write
    Store,
}

/// Runs the sub-command `tallyline mem`: `tallyline report` on samples of memory accesses, weighed by latency.
pub(crate) fn run(args: &mut MemArgs, color: Color) -> Result<()> {
    let operation = args.op.map(|op| match op {
        OperationArg::Load => Operation::Load,
        OperationArg::Store => Operation::Store,
    });
    report::run_memory(&mut args.report, operation, color)
}
