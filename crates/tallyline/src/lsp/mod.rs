//! `tallyline lsp`: layouts in an editor, by the language server protocol.
//!
//! It reads what the last build left: the types are those of its debug information, by name, whatever the text says
//! by now. It is meant beside a server that knows the language.

mod actions;
mod database;
mod declarations;
mod diagnostics;
mod document;
mod entry;
mod hints;
mod hover;
mod index;
mod rpc;
mod server;
mod workspace;

use crate::path_map::PrefixMap;
use crate::profile::Patterns;
use anyhow::{Context, Result};
use clap::Args;
use server::{Event, Server};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::channel;

/// Run a language server that shows layouts: hovers, inlay hints, reordering, findings of the policy
///
/// Speaks the language server protocol on standard input and output, beside a server for the
/// language. Types are read from the debug information of the last build: the files named here or
/// in the initialization options (files, recording, event, policy), or the object of each source by
/// compile_commands.json, and the newest programs in the workspace, build/, bin/, out/ and
/// target/debug or target/release.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LspArgs {
    /// Read the types of these files only
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Show the share of samples at each field from this recording [default: perf.data of the workspace]
    #[arg(long, value_name = "FILE")]
    recording: Option<PathBuf>,

    /// Show shares of this event's samples: a name, a glob or a regular expression [default: the first with samples]
    #[arg(short, long, value_name = "EVENT", value_parser = Patterns::parse)]
    event: Option<Patterns>,

    /// Report findings of this policy [default: layout.toml of the workspace]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    /// The size of a cache line in bytes
    #[arg(short, long, value_name = "BYTES", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 16))]
    cacheline_size: u64,

    /// Accepted, as editors give it: there is no other way of talking
    #[arg(long, hide = true)]
    stdio: bool,
}

const EXAMPLES: &str = "\
Examples:
  tallyline lsp                          started by an editor; docs/editor.md says how
  tallyline lsp --recording perf.data ./server

Exit status: 0 after an orderly shutdown by the editor, 1 otherwise, 2 for an error.";

/// Runs the sub-command `tallyline lsp`: a language server that shows struct layouts in an editor, over standard input
/// and output.
pub(crate) fn run(args: &LspArgs, maps: Vec<PrefixMap>) -> Result<ExitCode> {
    let (send, events) = channel();
    let messages = send.clone();
    std::thread::spawn(move || {
        let mut input = std::io::BufReader::new(std::io::stdin());
        loop {
            let event = match rpc::read(&mut input) {
                Ok(Some(Ok(message))) => Event::Message(message),
                Ok(Some(Err(error))) => Event::Undecodable(error.to_string()),
                Ok(None) => Event::Closed(None),
                Err(error) => Event::Closed(Some(error)),
            };
            let is_last = matches!(event, Event::Closed(_));
            if messages.send(event).is_err() || is_last {
                break;
            }
        }
    });
    let mut out = std::io::stdout();
    let in_order =
        Server::new(args, maps, send, &mut out).run(&events).context("the editor cannot be served")?;
    Ok(if in_order { ExitCode::SUCCESS } else { ExitCode::from(crate::FINDINGS) })
}
