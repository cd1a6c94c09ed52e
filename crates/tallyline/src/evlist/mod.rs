//! `tallyline evlist`: the events of a recording.

use crate::profile::{self, DATA};
use anyhow::{Context, Result};
use clap::Args;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tallyline_perf_data::Recording;
use tallyline_perf_data::file::Event;
use tallyline_support::output::{Color, Output, printable};

/// List the events of a recording
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EvlistArgs {
    /// The recording: a file, a folder that perf record --threads wrote, or - for standard input
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    input: PathBuf,

    /// Show the events of a group in braces
    #[arg(short, long)]
    group: bool,

    /// Show the sampling rate of each event
    #[arg(short = 'F', long, conflicts_with = "group")]
    freq: bool,
}

const EXAMPLES: &str = "\
Examples:
  tallyline evlist
  tallyline evlist -g -i mem.data
  zstd -dc perf.data.zst | tallyline evlist -i -";

/// Runs the sub-command `tallyline evlist`: prints the sampled events (such as `cycles`) of a recording, one event or
/// event group in a line.
pub(crate) fn run(args: &EvlistArgs, color: Color) -> Result<()> {
    let name = args.input.display();
    // of a recording in several files one describes all
    let path = if args.input.is_dir() { args.input.join(DATA) } else { args.input.clone() };
    let mut bytes = Vec::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin().lock().read_to_end(&mut bytes),
        false => File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)),
    };
    read.with_context(|| format!("cannot read {name}"))?;
    let recording = Recording::parse(&bytes).with_context(|| name.to_string())?;
    if !recording.warnings().is_empty() {
        profile::note_damage();
    }
    for warning in recording.warnings() {
        eprintln!("tallyline: {name}: {warning}");
    }
    let mut text = String::new();
    let events: Vec<_> = recording.events().iter().collect();
    let mut rest = events.as_slice();
    while let [event, others @ ..] = rest {
        let members = event.group().as_ref().filter(|_| args.group).map_or(1, |group| group.members());
        let (members, behind) = rest.split_at(members.clamp(1, rest.len()));
        rest = if members.len() > 1 { behind } else { others };
        let names: Vec<_> = members.iter().map(|event| line(event, args.freq)).collect();
        let names = names.join(",");
        let _ = if members.len() > 1 { writeln!(text, "{{{names}}}") } else { writeln!(text, "{names}") };
    }
    Output::open(None, color)?.write(|out| Ok(out.write_all(text.as_bytes())?))
}

fn line(event: &Event, with_frequency: bool) -> String {
    let name = printable(event.name().as_bytes());
    match (with_frequency, event.attr().is_frequency()) {
        (false, _) => name.into_owned(),
        (true, true) => format!("{name}: sample_freq={}", event.attr().sample_period),
        (true, false) => format!("{name}: sample_period={}", event.attr().sample_period),
    }
}
