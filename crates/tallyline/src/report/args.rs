//! The command line of `tallyline report`.

use crate::columns::Fit;
use crate::profile::{InputArgs, Patterns};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use tallyline_report::keys::{ALL, Column, parse};

/// Show which data types, fields and cache lines the samples of a recording go to
///
/// Reads perf.data, made by tallyline record or by perf. Rows are samples with equal sort keys;
/// the percentages weigh what the header says. Every sample is accounted for: it has a type, or a
/// reason why not.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(super) input: InputArgs,

    /// Comma-separated sort keys (perf's names)
    #[arg(short, long, value_name = "KEY,…", value_parser = Columns::parse)]
    pub(super) sort: Option<Columns>,

    /// A tree with a level for each key
    #[arg(short = 'H', long)]
    pub(super) hierarchy: bool,

    /// Weigh by the weights of memory samples instead of by periods
    #[arg(long)]
    pub(super) mem_mode: bool,

    /// `true` if samples without a data source are an error: those of `tallyline mem`.
    #[arg(skip)]
    pub(super) needs_source: bool,

    /// Show the number of samples of each row
    #[arg(short = 'n', long)]
    pub(super) show_nr_samples: bool,

    /// Leave out rows below this share in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    pub(super) percent_limit: f64,

    /// Base of percentages: all samples of the event, or those that the filters let through
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Percentage::Absolute)]
    pub(super) percentage: Percentage,

    /// Events side by side in one table, not one after the other
    #[arg(long)]
    pub(super) group: bool,

    /// Only this event: a name, a glob or a regular expression
    #[arg(short, long, value_name = "EVENT", value_parser = Patterns::parse)]
    pub(super) event: Vec<Patterns>,

    /// Show what changed since this recording, by the same keys
    #[arg(long, value_name = "OLD", conflicts_with_all = ["csv", "html", "hierarchy", "explain"])]
    pub(super) diff: Option<PathBuf>,

    /// Say how a sample (#12), the first one at an address, or one of a function came to its type
    #[arg(long, value_name = "ADDRESS|SAMPLE|FUNCTION", value_parser = super::explain::Subject::parse)]
    #[arg(conflicts_with_all = ["form", "hierarchy"])]
    pub(super) explain: Option<super::explain::Subject>,

    /// Print text, also on a terminal, where there is a browser otherwise (h for its keys)
    #[arg(long, group = "form", help_heading = "Output")]
    pub(super) stdio: bool,

    /// Print names whole also where a line is longer than the terminal; files and pipes have them whole
    #[arg(long, help_heading = "Output")]
    pub(super) wide: bool,

    /// The width of each column, with commas between; 0 for as wide as its rows
    #[arg(short = 'w', long, value_name = "WIDTH,…", value_delimiter = ',', help_heading = "Output")]
    pub(super) column_widths: Vec<usize>,

    /// Print a JSON document
    #[arg(long, group = "form", help_heading = "Output")]
    pub(super) json: bool,

    /// Print comma-separated values
    #[arg(long, group = "form", help_heading = "Output")]
    pub(super) csv: bool,

    /// Print a page that needs no other file
    #[arg(long, group = "form", help_heading = "Output")]
    pub(super) html: bool,

    /// Write to this file
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,
}

impl ReportArgs {
    /// Returns the limits on the width of lines and of text columns.
    pub(super) fn fit(&self) -> Fit {
        let is_wide = self.wide || !self.column_widths.is_empty();
        Fit { columns: self.column_widths.clone(), ..Fit::of_terminal(is_wide, self.output.is_some()) }
    }

    /// Returns whether only text is requested, so that it may be browsed.
    pub(super) fn is_text(&self) -> bool {
        let is_form = self.stdio || self.json || self.csv || self.html;
        !is_form && self.output.is_none() && self.diff.is_none() && self.explain.is_none()
    }
}

const EXAMPLES: &str = "\
Examples:
  tallyline report                                  types and fields of perf.data
  tallyline report -s type,sym --percent-limit 1
  tallyline report -H -s type,typecln,typeoff,mem   by cache lines of each type
  tallyline report --mem-mode -s mem -i mem.data    what perf report --mem-mode shows
  tallyline report --diff before.data               types and fields that got more, or less
  tallyline report --explain 0x401136               why the samples there have their type, or none
  tallyline report --comm server --json -o report.json
  tallyline report --type 'tcp_*' --symbol '/^tcp_(v4|v6)/'
  tallyline report --symfs ./archive --vmlinux ./vmlinux -i other-machine.data
  mkdir archive && tar -xf perf.data.tar.bz2 -C archive && tallyline report --symfs archive
                                                    what perf archive packed there
";

/// Returns the examples, the sort keys, and the exit status.
fn after_help() -> String {
    let names: Vec<&str> = ALL.iter().map(|key| key.name).collect();
    let (all, mut lines) = (names.len(), vec![String::from(" ")]);
    for (position, name) in names.into_iter().enumerate() {
        let last = if position + 1 == all { "; period and sample are columns that add up." } else { "" };
        for word in format!("{name}{last}").split(' ') {
            if lines.last().is_none_or(|line| line.len() + 1 + word.len() > KEYS_WIDTH) {
                lines.push(String::from(" "));
            }
            if let Some(line) = lines.last_mut() {
                line.push(' ');
                line.push_str(word);
            }
        }
    }
    format!("{EXAMPLES}\nSort keys:\n{}\n\nExit status: 0 for success, 2 for an error.", lines.join("\n"))
}

/// The width of the lines with sort keys.
const KEYS_WIDTH: usize = 98;

/// The columns of a report that `-s` selects.
#[derive(Clone, Debug)]
pub(crate) struct Columns(pub(crate) Vec<Column>);

impl Columns {
    /// Parses the argument of `-s`, a comma-separated list of columns.
    pub(crate) fn parse(list: &str) -> Result<Columns, String> {
        parse(list).map(Columns)
    }
}

/// The base of percentages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Percentage {
    /// All samples of the event
    Absolute,
    /// Those that the filters let through
    Relative,
}
