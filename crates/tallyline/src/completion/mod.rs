//! Completion in shells: scripts, and the answers that they ask for.
//!
//! Options and sub-commands are in the scripts. Names of types and members come from the file on the command line,
//! by the hidden sub-command `complete`, which by default has a second for it.

mod candidates;
mod line;
mod script;
mod word;

pub(crate) use script::script;

use anyhow::Result;
use clap::{Args, Command, ValueEnum};
use line::CommandLine;
use std::process::ExitCode;
use tallyline_support::output::{Color, Output};

/// Print the possible completions of a word, for completion scripts
#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// Quote as this shell needs it; without it names are as they are, one a line
    #[arg(long, value_enum, value_name = "SHELL")]
    shell: Option<QuotingShell>,

    /// The command line, as a text
    #[arg(
        long,
        value_name = "LINE",
        requires = "point",
        conflicts_with = "words",
        allow_hyphen_values = true
    )]
    line: Option<String>,

    /// The number of bytes of the line before the cursor
    #[arg(long, value_name = "BYTES")]
    point: Option<usize>,

    /// The index of the word at the cursor
    #[arg(long, value_name = "N", default_value_t = 0)]
    index: usize,

    /// The words of the command line, the program's first
    #[arg(last = true, value_name = "WORD")]
    words: Vec<String>,
}

/// A shell that does not quote what it inserts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum QuotingShell {
    Bash,
}

/// Runs the hidden sub-command that completion scripts call: prints the possible completions of a word. The exit
/// code is 1 if the shell should complete it by itself, as for file names.
pub(crate) fn run(args: &CompleteArgs, program: &Command) -> Result<ExitCode> {
    let nothing = Ok(ExitCode::from(crate::FINDINGS));
    let (words, index, quote) = match (&args.line, args.point) {
        (Some(line), Some(point)) => {
            let Some((words, index, quote)) = word::split(line, point) else { return nothing };
            (words, index, quote)
        }
        _ => (args.words.clone(), args.index, None),
    };
    let Some(line) = CommandLine::parse(program, &words, index) else { return nothing };
    let found = candidates::find(&line);
    if found.is_empty() {
        return nothing;
    }
    Output::open(None, Color::Never)?.write(|out| {
        for name in &found {
            let whole = format!("{}{name}", line.head);
            match args.shell {
                Some(QuotingShell::Bash) => {
                    writeln!(out, "{}", word::for_bash(&words[index], &whole, quote))?
                }
                None => writeln!(out, "{whole}")?,
            }
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}
