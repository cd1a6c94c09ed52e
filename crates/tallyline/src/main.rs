//! `tallyline`: makes statistics and hot data structures scale on machines with many CPUs.
//!
//! This is the program; the counters are the crate `statctr`. One folder or file per sub-command;
//! results go to standard output, progress and complaints to standard error.

mod advise;
mod allocator;
mod annotate;
mod apply;
mod beside;
mod browser;
mod check;
mod cli;
mod columns;
mod completion;
mod config;
mod demo;
mod diff;
mod doctor;
mod evlist;
mod groups;
mod heat;
mod instances;
mod interrupt;
mod layout;
mod listing;
mod lsp;
mod manual;
mod mem;
mod on_call;
mod pahole;
mod path_map;
mod position;
mod profile;
mod record;
mod reorganize;
mod replay;
mod report;
mod settings;
mod sharing;
mod sharing_check;

use std::ffi::OsString;
use std::process::ExitCode;

/// The exit status of a command that looks for something and found it.
const FINDINGS: u8 = 1;

/// The exit status for errors.
const ERROR: u8 = 2;

fn main() -> ExitCode {
    allocator::give_large_blocks_back();
    let words: Vec<OsString> = std::env::args_os().collect();
    match words.as_slice() {
        [program, rest @ ..] if pahole::is_called(program) => return pahole::run(rest),
        [_, command, rest @ ..] if command == "pahole" => return pahole::run(rest),
        _ => {}
    }
    // a command line that cannot be understood ends here, with status 2
    match cli::parse().and_then(cli::run) {
        // what could be read of a recording was shown
        Ok(_) if profile::is_damaged() => ExitCode::from(ERROR),
        Ok(status) => status,
        Err(error) if tallyline_support::output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<interrupt::Interrupted>() => interrupt::end(),
        Err(error) => {
            eprintln!("tallyline: {error:#}");
            ExitCode::from(ERROR)
        }
    }
}
