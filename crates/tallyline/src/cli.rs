//! The command line.

use crate::advise;
use crate::annotate;
use crate::beside;
use crate::check;
use crate::completion;
use crate::config;
use crate::demo;
use crate::diff;
use crate::doctor;
use crate::evlist;
use crate::groups;
use crate::layout;
use crate::lsp;
use crate::manual;
use crate::mem;
use crate::on_call::{self, OnCall};
use crate::pahole;
use crate::path_map::{Paths, PrefixMap};
use crate::profile;
use crate::record;
use crate::reorganize;
use crate::replay;
use crate::report;
use crate::settings::{
    self, CACHE, DEBUG_FOLDERS, HYPERLINK_FORMAT, HYPERLINKS, PAGER, PATH_PREFIX_MAP, Settings, paths,
};
use crate::sharing;
use crate::sharing_check;
use anyhow::{Context, Result};
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use std::io::{self, Write};
use std::process::ExitCode;
use tallyline_support::hyperlink::{Links, terminal_has_links};
use tallyline_support::output::{Color, Output, Presentation};

/// Makes statistics and hot data structures scale on machines with many CPUs.
#[derive(Debug, Parser)]
#[command(name = "tallyline", version, after_help = EXAMPLES, propagate_version = true)]
#[command(arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Use colours in the output
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto, global = true)]
    color: Color,

    /// Do not show long output in a pager
    #[arg(long, global = true)]
    no_pager: bool,

    /// Make FILE:LINE a link to the file
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto, hide_possible_values = true)]
    #[arg(global = true)]
    hyperlinks: Color,

    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  tallyline demo                         find, fix and measure false sharing, in half a minute
  tallyline-bench update                 the cost of counter updates, compared with other methods
  tallyline layout task_struct           a struct of the running kernel: offsets, holes, cache lines
  tallyline layout connection ./server   a struct of a program with debug information
  tallyline reorganize --verify ./server smaller structs, verified by compiling them
  tallyline groups tcp_sock              cache line groups, and the lines they occupy
  tallyline check ./server --policy layout.toml
  tallyline diff ./server.old ./server   types that grew, shrank, or have members on other lines
  tallyline doctor                       what works on this machine, and what to do otherwise
  tallyline config                       the settings, and where each comes from
  tallyline completions bash > ~/.local/share/bash-completion/completions/tallyline
  tallyline man layout                   the manual page of a sub-command

Settings: ~/.config/tallyline/config.toml, below $XDG_CONFIG_HOME or named by $TALLYLINE_CONFIG (off for none), sets the defaults of options; tallyline config --example prints one. Options override variables (TALLYLINE_…), which override the file.

Environment: TALLYLINE_DEBUG_FOLDER is the folder of debug files of stripped programs [default: /usr/lib/debug]. TALLYLINE_PAGER, the setting pager, or PAGER names the pager for long output on a terminal. With DEBUGINFOD_URLS, debuginfod-find fetches debug files that are not on this machine.

Exit status: 0 for success, 1 for findings (check, diff), 2 for an error. It is no error if the reader of a pipe closes it.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run tallyline-bench, which measures the counters and the tool against others
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Bench {
        /// Its arguments; see `tallyline-bench --help`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        words: Vec<std::ffi::OsString>,
    },

    /// Make a slow program faster, step by step: record, find, advise, apply, verify, measure
    Demo(OnCall<demo::DemoArgs>),

    /// Show structs as the cache sees them: offsets, holes, padding, cache lines
    Layout(OnCall<layout::LayoutArgs>),

    /// Show cache line groups: their members, and the lines they occupy
    Groups(OnCall<groups::GroupsArgs>),

    /// Check layouts against a policy: sizes, holes, groups, members that share a cache line
    Check(OnCall<check::CheckArgs>),
    /// Propose smaller structs by reordering members, verified by compiling them
    Reorganize(OnCall<reorganize::ReorganizeArgs>),

    /// Compare the layouts of two files: types that grew, members on other lines
    Diff(OnCall<diff::DiffArgs>),

    /// Sample a command, a process or the whole machine into a perf.data file
    Record(OnCall<record::RecordArgs>),

    /// Replay a trace on a model of coherent caches: misses by type and field, and their causes
    Replay(OnCall<replay::ReplayArgs>),

    /// Find contended counters, false sharing and bad layouts in a program, and propose changes
    Advise(OnCall<advise::AdviseArgs>),

    /// List the events of a recording
    Evlist(OnCall<evlist::EvlistArgs>),

    /// Show the samples of a recording by data type, field and cache line
    Report(OnCall<report::ReportArgs>),

    /// Show types field by field, with the samples that access each member
    Annotate(OnCall<annotate::AnnotateArgs>),

    /// Show memory accesses: where the data came from, and how long it took
    #[command(after_help = mem::EXAMPLES)]
    Mem(OnCall<mem::MemArgs>),

    /// Show the cache lines that CPUs contend for, with the types and fields on them
    Sharing(OnCall<sharing::SharingArgs>),

    /// Run a language server that shows layouts: hovers, inlay hints, reordering, findings of the policy
    Lsp(OnCall<lsp::LspArgs>),

    /// Compare two builds by the cost of the cache lines that their threads share
    SharingCheck(OnCall<sharing_check::SharingCheckArgs>),

    /// Answer pahole's command line: its options, abbreviations and exit codes
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Pahole {
        /// pahole's arguments; see `tallyline pahole --help`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION… FILE")]
        words: Vec<std::ffi::OsString>,
    },

    /// Show what works on this machine, what does not, and what to do
    Doctor(OnCall<doctor::DoctorArgs>),

    /// Show all settings, their values, and where each comes from
    Config(OnCall<config::ConfigArgs>),

    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },

    #[command(hide = true)]
    Complete(OnCall<completion::CompleteArgs>),

    /// Show a manual page
    Man(OnCall<manual::ManArgs>),
}

/// The parsed command line with the settings (configuration file, environment variables) that apply to it.
pub(crate) struct Invocation {
    cli: Cli,
    settings: Settings,
}

/// Parses the command line of `tallyline`, taking the settings as defaults of its options. Exits with a message if
/// it is invalid, and after it has printed the help or the version.
///
/// # Errors
/// A configuration file or a variable with a mistake, unless the sub-command does not depend on them; a help or
/// version that cannot be written.
pub(crate) fn parse() -> Result<Invocation> {
    let loaded = Settings::load();
    let (settings, mistake) = match loaded {
        Ok(settings) => (settings, None),
        Err(error) => (Settings::defaults(), Some(error)),
    };
    settings.make_defaults();
    let matches = settings::give_defaults(Cli::command()).try_get_matches();
    let matches = match matches {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() => with_json_hint(error).exit(),
        Err(help) => {
            // clap's exit() would leave out that it cannot be written
            help.print().and_then(|()| io::stdout().flush()).context("cannot write standard output")?;
            std::process::exit(0)
        }
    };
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match (mistake, &cli.command) {
        // what somebody with a wrong file needs most
        (
            Some(_),
            Command::Man(_) | Command::Completions { .. } | Command::Complete(_) | Command::Bench { .. },
        )
        | (None, _) => {}
        (Some(error), _) => return Err(error),
    }
    Ok(Invocation { settings: with_options(settings, &cli, &matches), cli })
}

/// Adds how a sub-command with several formats writes JSON to the error that it has no `--json`.
fn with_json_hint(mut error: clap::Error) -> clap::Error {
    let is_json = error.get(ContextKind::InvalidArg).is_some_and(|word| word.to_string() == "--json");
    if error.kind() != ErrorKind::UnknownArgument || !is_json {
        return error;
    }
    let program = on_call::whole(Cli::command);
    let called = std::env::args_os().skip(1).find_map(|word| program.find_subcommand(word));
    let mut options = called.into_iter().flat_map(clap::Command::get_arguments);
    let formats = options.find(|option| option.get_id() == "format").map(clap::Arg::get_possible_values);
    if formats.into_iter().flatten().any(|value| value.get_name() == "json") {
        let hint = StyledStr::from("JSON is a format here: --format json");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint]));
    }
    error
}

/// Takes over the options of all sub-commands, for a sub-command that shows the settings.
fn with_options(mut settings: Settings, cli: &Cli, matches: &ArgMatches) -> Settings {
    let is_given = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
    let word = |color| match color {
        Color::Auto => "auto",
        Color::Always => "always",
        Color::Never => "never",
    };
    if is_given("color") {
        settings.set_by_option("color", word(cli.color));
    }
    if is_given("hyperlinks") {
        settings.set_by_option(HYPERLINKS, word(cli.hyperlinks));
    }
    if cli.no_pager {
        settings.set_by_option(PAGER, "");
    }
    settings
}

/// Hands settings that are no options to the parts that they are for.
fn configure(settings: &Settings) {
    if settings.is_set(DEBUG_FOLDERS) {
        tallyline_debuginfo::locate::set_debug_folders(paths(settings.list(DEBUG_FOLDERS)));
    }
    if settings.is_set(CACHE) && !settings.text(CACHE).is_empty() {
        profile::set_cache_folder(settings.text(CACHE));
    }
    let mut presentation = Presentation::default().with_pager(settings.text(PAGER));
    let has_links = match settings.text(HYPERLINKS) {
        "always" => true,
        "never" => false,
        _ => presentation.hands_on_links() && terminal_has_links(|name| std::env::var(name).ok()),
    };
    if has_links {
        let maps = prefix_maps(settings);
        let resolve = move |path: &str| Paths::new(&maps).shown(path).into();
        presentation = presentation.with_links(Links::new(settings.text(HYPERLINK_FORMAT), resolve));
    }
    presentation.set();
}

/// Returns the maps of source paths; they were checked when they were read.
fn prefix_maps(settings: &Settings) -> Vec<PrefixMap> {
    settings.list(PATH_PREFIX_MAP).iter().filter_map(|map| map.parse().ok()).collect()
}

/// Runs the sub-command of the parsed command line and returns its exit code.
pub(crate) fn run(invocation: Invocation) -> Result<ExitCode> {
    let Invocation { mut cli, settings } = invocation;
    configure(&settings);
    match &mut cli.command {
        Command::Bench { words } => beside::run_bench(words),
        Command::Demo(OnCall(args)) => demo::run(args, cli.color),
        Command::Layout(OnCall(args)) => layout::run(args, cli.color),
        Command::Pahole { words } => return Ok(pahole::run(words)),
        Command::Groups(OnCall(args)) => groups::run(args, cli.color),
        Command::Check(OnCall(args)) => return check::run(args, cli.color),
        Command::Diff(OnCall(args)) => return diff::run(args, cli.color),
        Command::Reorganize(OnCall(args)) => reorganize::run(args, cli.color),
        Command::Record(OnCall(args)) => return record::run(args),
        Command::Replay(OnCall(args)) => replay::run(args, cli.color),
        Command::Advise(OnCall(args)) => advise::run(args, cli.color),
        Command::Evlist(OnCall(args)) => evlist::run(args, cli.color),
        Command::Report(OnCall(args)) => report::run(args, cli.color),
        Command::Annotate(OnCall(args)) => annotate::run(args, cli.color),
        Command::Mem(OnCall(args)) => mem::run(args, cli.color),
        Command::SharingCheck(OnCall(args)) => return sharing_check::run(args, cli.color),
        Command::Sharing(OnCall(args)) => sharing::run(args, cli.color),
        Command::Doctor(OnCall(args)) => return doctor::run(args, cli.color),
        Command::Lsp(OnCall(args)) => return lsp::run(args, prefix_maps(&settings)),
        Command::Config(OnCall(args)) => config::run(args, &settings, cli.color),
        Command::Completions { shell } => {
            let script = completion::script(*shell, &mut on_call::whole(Cli::command));
            Output::open(None, Color::Always)?.write(|out| Ok(out.write_all(script.as_bytes())?))
        }
        Command::Complete(OnCall(args)) => {
            let mut program = on_call::whole(Cli::command);
            program.build();
            return completion::run(args, &program);
        }
        Command::Man(OnCall(args)) => manual::run(args, on_call::whole(Cli::command)),
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
        let mut commands = vec![on_call::whole(Cli::command)];
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

    #[test]
    fn help_of_a_called_sub_command_is_that_of_the_whole_program() {
        let help = |program: clap::Command, words: [&str; 2]| {
            let shown = program.try_get_matches_from(["tallyline"].iter().chain(&words)).expect_err("help");
            assert_eq!(shown.kind(), ErrorKind::DisplayHelp, "{words:?}");
            shown.to_string()
        };
        let whole = on_call::whole(Cli::command);
        // these two hand all words on
        let is_called = |name: &&str| !["bench", "pahole"].contains(name);
        for name in whole.get_subcommands().map(clap::Command::get_name).filter(is_called) {
            for words in [[name, "--help"], [name, "-h"], ["help", name]] {
                assert_eq!(help(Cli::command(), words), help(whole.clone(), words), "{words:?}");
            }
        }
    }
}
