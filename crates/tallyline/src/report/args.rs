//! The command line of `tallyline report`.

use crate::columns::Fit;
use crate::profile::{InputArgs, Patterns};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use tallyline_report::keys::{ALL, Column, parse};

/// Show the samples of a recording by data type, field and cache line
///
/// Reads perf.data of tallyline record or perf record. A row stands for the samples with equal sort keys; the
/// header says what the percentages are of. Every sample is accounted for: it has a type, or a reason why not.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(super) input: InputArgs,

    /// Comma-separated sort keys (perf's names)
    #[arg(short, long, value_name = "KEY,…", value_parser = Columns::parse)]
    pub(super) sort: Option<Columns>,

    /// Show a tree with a level for each key
    #[arg(short = 'H', long)]
    pub(super) hierarchy: bool,

    /// Compute percentages from the weights of memory samples instead of periods
    #[arg(long)]
    pub(super) mem_mode: bool,

    /// `true` if samples without a data source are an error: those of `tallyline mem`.
    #[arg(skip)]
    pub(super) needs_source: bool,

    /// Show the number of samples of each row
    #[arg(short = 'n', long)]
    pub(super) show_nr_samples: bool,

    /// Leave out rows below this share in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = finite)]
    pub(super) percent_limit: f64,

    /// The samples that percentages refer to
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Percentage::Absolute)]
    pub(super) percentage: Percentage,

    /// Show all events side by side in one table
    #[arg(long)]
    pub(super) group: bool,

    /// Only this event: a name, a glob or a regular expression
    #[arg(short, long, value_name = "EVENT", value_parser = Patterns::parse)]
    pub(super) event: Vec<Patterns>,

    /// Show the changes since this older recording, by the same keys
    #[arg(long, value_name = "OLD", conflicts_with_all = ["csv", "html", "hierarchy", "explain", "group"])]
    pub(super) diff: Option<PathBuf>,

    /// Explain how the type of a sample (#12), of the first one at an address, or of one in a function was found
    #[arg(long, value_name = "ADDRESS|SAMPLE|FUNCTION", value_parser = super::explain::Subject::parse)]
    #[arg(conflicts_with_all = ["form", "hierarchy"])]
    pub(super) explain: Option<super::explain::Subject>,

    /// Print text on a terminal, too, instead of starting the browser (press h there for its keys)
    #[arg(long, group = "form", help_heading = "Output")]
    pub(super) stdio: bool,

    /// Do not shorten names to fit lines into the terminal; in files and pipes they are never shortened
    #[arg(long, help_heading = "Output")]
    pub(super) wide: bool,

    /// The width of each column, comma-separated; 0 for the width of its contents
    #[arg(short = 'w', long, value_name = "WIDTH,…", value_delimiter = ',', help_heading = "Output")]
    pub(super) column_widths: Vec<u16>,

    /// Print a JSON document
    #[arg(long, group = "form", help_heading = "Output")]
    pub(super) json: bool,

    /// Print comma-separated values
    #[arg(long, group = "form", help_heading = "Output")]
    pub(super) csv: bool,

    /// Print a self-contained HTML page
    #[arg(long, group = "form", help_heading = "Output")]
    pub(super) html: bool,

    /// Write to this file
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,
}

/// The writer of a report's tables: the document that an option asks for, or text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Exporter {
    Text,
    Json,
    Csv,
    Html,
}

impl ReportArgs {
    /// Returns the writer that the options choose; text without one of them.
    pub(super) fn exporter(&self) -> Exporter {
        match () {
            () if self.json => Exporter::Json,
            () if self.csv => Exporter::Csv,
            () if self.html => Exporter::Html,
            () => Exporter::Text,
        }
    }

    /// Returns the limits on the width of lines and of text columns.
    pub(super) fn fit(&self) -> Fit {
        let is_wide = self.wide || !self.column_widths.is_empty();
        Fit {
            columns: self.column_widths.iter().map(|width| usize::from(*width)).collect(),
            ..Fit::of_terminal(is_wide, self.output.is_some())
        }
    }

    /// Returns `true` if no option asks for a document, a file or plain text, so that a terminal may show the browser.
    pub(super) fn may_be_browsed(&self) -> bool {
        let is_text = self.exporter() == Exporter::Text && !self.stdio;
        is_text && self.output.is_none() && self.diff.is_none() && self.explain.is_none()
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

/// The columns of the tables of `tallyline report`, as its option `-s` selects them.
#[derive(Clone, Debug)]
pub(crate) struct Columns(pub(crate) Vec<Column>);

impl Columns {
    /// Parses the argument of the option `-s` of `tallyline report`, a comma-separated list of columns.
    pub(crate) fn parse(list: &str) -> Result<Columns, String> {
        parse(list).map(Columns)
    }
}

/// The base of percentages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Percentage {
    /// All samples of the event
    Absolute,
    /// Those that pass the filters
    Relative,
}

fn finite(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "invalid float literal".to_owned())?;
    if number.is_finite() { Ok(number) } else { Err("expected a finite number".into()) }
}
