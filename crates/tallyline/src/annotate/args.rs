//! The command line of `tallyline annotate`.

use crate::columns::Fit;
use crate::profile::{InputArgs, Patterns};
use clap::Args;
use std::path::PathBuf;

/// Show types field by field, with the samples that access each member
///
/// For each member: its share of the type's samples, loads and stores, cache lines and, if recorded, latencies,
/// data sources and CPUs. With --code, shows functions instruction by instruction instead, with source lines and
/// types. Of a recording with several events each has its own account: their periods do not add up.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AnnotateArgs {
    /// The types: a name with or without struct, scopes and template arguments, a glob ('tcp_*') or a regular
    /// expression ('/^tcp_/') [default: all with samples]
    #[arg(value_name = "TYPE", value_parser = Patterns::parse)]
    pub(super) name: Option<Patterns>,

    #[command(flatten)]
    pub(super) input: InputArgs,

    /// Print text on a terminal, too, instead of starting the browser (press h there for its keys)
    #[arg(long)]
    pub(super) stdio: bool,

    /// Show only the columns of perf annotate --data-type
    #[arg(long)]
    pub(super) plain: bool,

    /// Do not shorten names to fit lines into the terminal; in files and pipes they are never shortened
    #[arg(long)]
    pub(super) wide: bool,

    /// Compute percentages from the weights of memory samples instead of periods
    #[arg(long)]
    pub(super) mem_mode: bool,

    /// Only this event: a name, a glob or a regular expression [default: all, one after the other]
    #[arg(short, long, value_name = "EVENT", value_parser = Patterns::parse)]
    pub(super) event: Vec<Patterns>,

    /// Begin with statistics: how many instructions have a type, and why the others have none
    #[arg(long)]
    pub(super) type_stat: bool,

    /// Show functions with samples instruction by instruction (see --symbol)
    #[arg(long, conflicts_with_all = ["name", "plain", "data_type_json", "read_json"])]
    pub(super) code: bool,

    /// Also write the types to this file, in the format that perf and pahole exchange
    #[arg(long, value_name = "FILE")]
    pub(super) data_type_json: Option<PathBuf>,

    /// Show the types in such a file instead of those of a recording
    #[arg(long, value_name = "FILE")]
    pub(super) read_json: Option<PathBuf>,

    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

impl AnnotateArgs {
    /// Returns the limits on the width of lines.
    pub(super) fn fit(&self) -> Fit {
        Fit::of_terminal(self.wide, self.output.is_some())
    }

    /// Returns `true` if only the types are requested, so that they may be browsed.
    pub(super) fn is_browsable(&self) -> bool {
        let is_text = self.stdio || self.plain || self.code || self.type_stat;
        !is_text && self.output.is_none() && self.data_type_json.is_none()
    }
}

const EXAMPLES: &str = "\
Examples:
  tallyline annotate                         all types of perf.data, field by field
  tallyline annotate order -i server.data    one of them
  tallyline annotate '_Rb_tree_node*'        all whose names match
  tallyline annotate order -e page-faults    by the samples of one of several events
  tallyline annotate --code --symbol walk    a function with the type that each instruction accesses
  tallyline annotate --type-stat --plain     what perf annotate --data-type --type-stat shows
  tallyline annotate --data-type-json types.json
  tallyline annotate --read-json types.json order

Exit status: 0 for success, 2 for an error.";
