//! `tallyline doctor`: the state of this machine, and advice.

mod host;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use clap::Args;
use host::{Finding, Host, Status};
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use tallyline_support::output::{Color, Output, printable};

/// Check what works on this machine, and what to do otherwise: rseq, hardware events, permissions, debug files
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Print a JSON document
    #[arg(long)]
    json: bool,

    /// Exit with 1 if anything is limited or missing
    #[arg(long)]
    strict: bool,
}

const EXAMPLES: &str = "\
Examples:
  tallyline doctor
  tallyline doctor --json | jq '.checks[] | select(.status != \"works\")'

Exit status: 0, or 1 with --strict if anything is limited or missing.";

/// Runs the sub-command `tallyline doctor`: checks which features work on this machine, and prints what to do about
/// others.
pub(crate) fn run(args: &DoctorArgs, color: Color) -> Result<ExitCode> {
    let found = Host::here().check();
    Output::open(None, color)?.write(|out| if args.json { json(&found, out) } else { text(&found, out) })?;
    let fails = args.strict && found.iter().any(|one| one.status != Status::Works);
    Ok(if fails { ExitCode::from(crate::FINDINGS) } else { ExitCode::SUCCESS })
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Works => "works",
        Status::Limited => "limited",
        Status::Missing => "missing",
    }
}

fn text(found: &[Finding], out: &mut dyn Write) -> Result<()> {
    for one in found {
        let color = match one.status {
            Status::Works => AnsiColor::Green,
            Status::Limited => AnsiColor::Yellow,
            Status::Missing => AnsiColor::Red,
        };
        let (style, word) = (Style::new().fg_color(Some(color.into())), word(one.status));
        let name = one.name;
        writeln!(out, "{style}{word:<8}{style:#} {name:<16} {}", printable(one.found.as_bytes()))?;
        if !one.advice.is_empty() {
            writeln!(out, "{:<26}to do: {}", "", one.advice)?;
        }
    }
    Ok(())
}

/// Writes `{"schema":1,"checks":[{"name","status","found","advice"}]}`: `status` is `works`, `limited` or
/// `missing`, `advice` is null where there is nothing to do.
fn json(found: &[Finding], out: &mut dyn Write) -> Result<()> {
    let check = |one: &Finding| {
        let advice = Some(&one.advice).filter(|advice| !advice.is_empty());
        json!({"name": one.name, "status": word(one.status), "found": one.found, "advice": advice})
    };
    let checks: Vec<Value> = found.iter().map(check).collect();
    serde_json::to_writer_pretty(&mut *out, &json!({"schema": 1, "checks": checks}))?;
    Ok(writeln!(out)?)
}
