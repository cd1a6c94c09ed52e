//! The command line.

use crate::annotate;
use crate::beside;
use crate::check;
use crate::demo;
use crate::diff;
use crate::doctor;
use crate::evlist;
use crate::groups;
use crate::layout;
use crate::manual;
use crate::mem;
use crate::pahole;
use crate::record;
use crate::reorganize;
use crate::replay;
use crate::report;
use crate::sharing;
use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use std::process::ExitCode;
use tallyline_support::output::{Color, Output};

/// Makes statistics and hot data structures scale on machines with many CPUs.
#[derive(Debug, Parser)]
#[command(name = "tallyline", version, after_help = EXAMPLES, propagate_version = true)]
#[command(arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Use of colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto, global = true)]
    color: Color,

    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  tallyline demo                         what counting costs here, in half a minute
  tallyline-bench update                 what an update costs here, against the other ways to count
  tallyline layout task_struct           a struct of the running kernel: offsets, holes, cache lines
  tallyline layout connection ./server   a struct of a program with debug information
  tallyline reorganize --verify ./server what could be smaller, checked by compiling it
  tallyline groups tcp_sock              cache line groups, and what else is on their lines
  tallyline check ./server --policy layout.toml
  tallyline diff ./server.old ./server   what grew, shrank or moved to another line
  tallyline doctor                       what works on this machine, and what to do for the rest
  tallyline completions bash > ~/.local/share/bash-completion/completions/tallyline
  tallyline man layout                   the manual page of a sub-command

Environment: TALLYLINE_DEBUG_FOLDER is where debug files of stripped programs are, if not in /usr/lib/debug. With DEBUGINFOD_URLS, debuginfod's client (debuginfod-find) is asked for what is nowhere else.

Exit status: 0 for success, 1 for findings (check, diff), 2 for an error. A reader that closes the pipe is no error.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run tallyline-bench, which measures the counters and the tool against others
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Bench {
        /// Its arguments; see `tallyline-bench --help`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        words: Vec<std::ffi::OsString>,
    },

    /// Count packets with all CPUs, shared words against ours; shows a table and writes a page
    Demo(demo::DemoArgs),

    /// Show structs as the cache sees them: offsets, holes, padding, cache lines
    Layout(Box<layout::LayoutArgs>),

    /// Show cache line groups: what lies in them, on which lines, and what else does
    Groups(groups::GroupsArgs),

    /// Hold layouts against a policy: sizes, holes, groups, what shares a cache line
    Check(check::CheckArgs),
    /// Propose smaller structs: members reordered by the ABI's rules, checked by compiling them
    Reorganize(reorganize::ReorganizeArgs),

    /// Show what differs between the layouts of two files: types that grew, members on other lines
    Diff(diff::DiffArgs),

    /// Record where a command, a process or the machine spends its time, and the registers there
    Record(Box<record::RecordArgs>),

    /// Replay a trace on a model of coherent caches: who takes lines from whom, by type and field
    Replay(replay::ReplayArgs),

    /// List the events of a recording
    Evlist(evlist::EvlistArgs),

    /// Show which data types, fields and cache lines the samples of a recording go to
    Report(Box<report::ReportArgs>),

    /// Show types field by field: which members the samples go to, and how they access them
    Annotate(Box<annotate::AnnotateArgs>),

    /// Show memory accesses: where the data came from, and what it cost
    #[command(after_help = mem::EXAMPLES)]
    Mem(Box<mem::MemArgs>),

    /// Show cache lines that CPUs pass between them, with the types and fields on them
    Sharing(sharing::SharingArgs),

    /// Answer pahole's command line: its options, abbreviations and exit codes
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Pahole {
        /// pahole's arguments; see `tallyline pahole --help`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION… FILE")]
        words: Vec<std::ffi::OsString>,
    },

    /// Show what works on this machine, what does not, and what to do
    Doctor(doctor::DoctorArgs),

    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },

    /// Show a manual page
    Man(manual::ManArgs),
}

/// Does what the command line says; the exit status of what looks for something says if it found it.
pub(crate) fn run(mut cli: Cli) -> Result<ExitCode> {
    match &mut cli.command {
        Command::Bench { words } => beside::run_bench(words),
        Command::Demo(args) => demo::run(args, cli.color),
        Command::Layout(args) => layout::run(args, cli.color),
        Command::Pahole { words } => return Ok(pahole::run(words)),
        Command::Groups(args) => groups::run(args, cli.color),
        Command::Check(args) => return check::run(args, cli.color),
        Command::Diff(args) => return diff::run(args, cli.color),
        Command::Reorganize(args) => reorganize::run(args, cli.color),
        Command::Record(args) => return record::run(args),
        Command::Replay(args) => replay::run(args, cli.color),
        Command::Evlist(args) => evlist::run(args, cli.color),
        Command::Report(args) => report::run(args, cli.color),
        Command::Annotate(args) => annotate::run(args, cli.color),
        Command::Mem(args) => mem::run(args, cli.color),
        Command::Sharing(args) => sharing::run(args, cli.color),
        Command::Doctor(args) => return doctor::run(args, cli.color),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "tallyline", &mut script);
            Output::open(None, Color::Always)?.write(|out| Ok(out.write_all(&script)?))
        }
        Command::Man(args) => manual::run(args, Cli::command()),
    }?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paragraphs are filled by clap to the width of the terminal: a line break in one would be a second one.
    #[test]
    fn epilogues_have_paragraphs_in_one_line_and_examples_that_fit() {
        let mut wrong = Vec::new();
        let mut commands = vec![Cli::command()];
        commands[0].build();
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            let Some(text) = command.get_after_help().map(ToString::to_string) else { continue };
            let is_prose = |line: &&str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
            let mut before = "";
            for line in text.lines() {
                let is_broken = is_prose(&line) && is_prose(&before);
                let is_wide = line.starts_with(' ') && line.chars().count() > 100;
                if is_broken || is_wide {
                    wrong.push(format!("{}: {line}", command.get_name()));
                }
                before = line;
            }
        }
        assert_eq!(wrong, [""; 0]);
    }
}
