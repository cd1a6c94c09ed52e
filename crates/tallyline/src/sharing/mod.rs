//! `tallyline sharing`: lines that CPUs pass between them, as `perf c2c report` shows them, with types.

mod json;
mod text;

use crate::columns::Fit;
use crate::profile::{self, InputArgs};
use anyhow::{Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use tallyline_report::keys::Needs;
use tallyline_report::sharing::{sharing, sharing_by_registers};
use tallyline_support::output::{Color, Output};

/// Show the cache lines that CPUs contend for, with the types and fields on them
///
/// For each line: which CPUs read and write which bytes. True sharing: several access the same bytes. False
/// sharing: they access different bytes of one line. Lines are ranked by loads that found them modified in another
/// cache (HITM) if the hardware reports these, else by an estimate from the order of the samples. Where no sample has an
/// address of data, as none has of cycles or a clock, addresses are computed from the sampled registers. Lines of memory
/// that processes share are found if mappings of data were recorded (record -d).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SharingArgs {
    #[command(flatten)]
    input: InputArgs,

    /// The size of a cache line in bytes [default: the recorded machine's]
    #[arg(short, long, value_name = "BYTES", value_parser = line_size)]
    cacheline_size: Option<u32>,

    /// Show only this many lines
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    limit: usize,

    /// Do not shorten names to fit lines into the terminal; in files and pipes they are never shortened
    #[arg(long)]
    wide: bool,

    /// Print a JSON document
    #[arg(long)]
    json: bool,

    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tallyline record -e mem-loads -e mem-stores -- ./server && tallyline sharing
  tallyline record -- ./server && tallyline sharing        # by registers, on any machine
  tallyline sharing -i mem.data --limit 5
  tallyline sharing --cacheline-size 128 --json -o lines.json

Exit status: 0 for success, 2 for an error, also if no sample's data address is known.";

fn line_size(text: &str) -> Result<u32, String> {
    let size: u32 = text.parse().map_err(|_| "not a number".to_owned())?;
    if size.is_power_of_two() && (8..=4096).contains(&size) {
        return Ok(size);
    }
    Err("a power of two from 8 to 4096".to_owned())
}

/// Runs the sub-command `tallyline sharing`: prints the cache lines that CPUs pass to each other, from a recording.
pub(crate) fn run(args: &SharingArgs, color: Color) -> Result<()> {
    let output = Output::open(args.output.as_deref(), color)?;
    let needs = Needs::TYPES.and(Needs::SYMBOLS).and(Needs::DATA).and(Needs::SAMPLES);
    let load = |needs| -> Result<_> {
        let mut profile = profile::load(&args.input, needs)?;
        if let Some(size) = args.cacheline_size {
            profile.set_line_size(size);
        }
        let filter = args.input.filter(&[&profile], None)?;
        Ok((profile, filter))
    };
    let (mut profile, filter) = load(needs)?;
    let mut found = sharing(&profile, &filter);
    let name = args.input.input.display();
    if found.addressed() == 0 && args.input.input == Path::new("-") {
        bail!(
            "{name}: no sample has an address of data; to compute addresses from registers, read a file (-i FILE)"
        );
    }
    if found.addressed() == 0 {
        let (by_registers, filter) = load(needs.and(Needs::ADDRESSES))?;
        found = sharing_by_registers(&by_registers, &filter);
        profile = by_registers;
    }
    if found.addressed() == 0 {
        bail!(
            "{name}: no sample has an address of data, nor registers that tell it; record memory events (tallyline \
             record -e mem-loads -e mem-stores), registers (tallyline record), or every access (tallyline record --trace)"
        );
    }
    let fit = Fit::of_terminal(args.wide, args.output.is_some());
    output.write(|out| match args.json {
        true => json::write(&profile, &found, args.limit, out),
        false => text::write(&profile, &found, args.limit, &fit, out),
    })
}
