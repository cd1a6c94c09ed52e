//! `tallyline record`: samples of a command, a process or the machine into a file that perf reads.

mod args;
mod trace;

pub(crate) use args::{RecordArgs, size};

use crate::interrupt;
use anyhow::{Result, anyhow};
use std::process::ExitCode;
use tallyline_profile::perfdata::recorder::{self, Options, Pmus, Scope, Summary, Target};

/// Records; the exit status is the command's.
pub(crate) fn run(args: &RecordArgs) -> Result<ExitCode> {
    if args.trace.trace {
        return trace::run(args);
    }
    let options = options(args)?;
    interrupt::listen()?;
    let summary = recorder::record(&options, &|| interrupt::asked())?;
    if !args.quiet {
        tell(args, &summary);
    }
    Ok(ExitCode::from(summary.status.map_or(0, |status| status as u8)))
}

fn options(args: &RecordArgs) -> Result<Options> {
    let target = match args.pid {
        Some(pid) => Target::Process(pid),
        None if args.all_cpus => Target::System,
        None => Target::Command,
    };
    let events = match args.events.as_slice() {
        [] => Vec::new(),
        texts => recorder::parse(texts, &Pmus::default()).map_err(|error| anyhow!(error))?,
    };
    Ok(Options {
        target,
        events,
        frequency: args.frequency,
        call_chains: args.call_chains,
        scope: match (args.all_user, args.all_kernel) {
            (true, _) => Scope::User,
            (_, true) => Scope::Kernel,
            _ => Scope::Permitted,
        },
        output: args.output().to_path_buf(),
        max_size: args.max_size,
        ring_pages: recorder::ring_pages(args.ring_size),
        command: args.command.clone(),
        command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
    })
}

/// Diagnostics: what was sampled, and what came of it.
fn tell(args: &RecordArgs, summary: &Summary) {
    for note in &summary.notes {
        eprintln!("tallyline: {note}");
    }
    if summary.reached_limit {
        eprintln!("tallyline: stopped: the file is as large as --max-size permits");
    }
    if summary.lost > 0 {
        eprintln!("tallyline: {} samples were lost: use a larger --ring-size, or a lower -F", summary.lost);
    }
    if summary.packets_full > 0 {
        eprintln!(
            "tallyline: the hardware's buffer was full {} times, and accesses were missed: use a larger --ring-size, \
             or a longer period (period=N among the event's terms)",
            summary.packets_full
        );
    }
    let events: Vec<_> = summary.events.iter().map(|(name, scope)| format!("{name} ({scope})")).collect();
    let samples = match (summary.samples, summary.packets) {
        (samples, 0) => format!("{samples} samples"),
        (0, packets) => format!("{:.1} MB of packets", packets as f64 / 1e6),
        (samples, packets) => format!("{samples} samples and {:.1} MB of packets", packets as f64 / 1e6),
    };
    eprintln!(
        "tallyline: {samples} of {}, {:.1} MB in {}",
        events.join(", "),
        summary.bytes as f64 / 1e6,
        args.output().display()
    );
}
