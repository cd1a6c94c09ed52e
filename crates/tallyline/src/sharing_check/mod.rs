//! `tallyline sharing-check`: the lines that threads take from each other, of one build against another.

mod args;
mod formats;

pub(crate) use args::SharingCheckArgs;

use crate::advise::{ModelledTrace, evidence_of};
use crate::record::{TracedCommand, open_dev_null, trace_command};
use anyhow::{Context, Result, anyhow};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tallyline_advice::sharing_diff::{BuildShares, build_shares, sharing_diff};
use tallyline_support::output::{Color, Output};
use tallyline_trace::Trace;

/// Runs the sub-command `tallyline sharing-check`; the exit code is 1 if a shared cache line costs more in the
/// second build than in the first.
pub(crate) fn run(args: &SharingCheckArgs, color: Color) -> Result<ExitCode> {
    let output = Output::open(args.output.as_deref(), color)?;
    let base = shares(args, &args.base, "base")?;
    let head = shares(args, &args.head, "head")?;
    let diff = sharing_diff(&base, &head, args.threshold);
    let fails = !diff.gained.is_empty();
    output.write(|out| formats::write(&diff, args.threshold, args.format, out))?;
    Ok(if fails { ExitCode::from(crate::FINDINGS) } else { ExitCode::SUCCESS })
}

/// A file that goes with this value.
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Traces a build, or opens its trace, and sums what its lines cost.
fn shares(args: &SharingCheckArgs, build: &Path, name: &str) -> Result<BuildShares> {
    let opened = File::open(build).with_context(|| format!("cannot read {}", build.display()))?;
    if Trace::open(&opened).is_ok() {
        return shares_of(args, build);
    }
    let folder = std::env::temp_dir();
    let trace = TemporaryFile(folder.join(format!("tallyline-{name}-{}.trace", std::process::id())));
    let program = match build.components().count() {
        1 => Path::new(".").join(build),
        _ => build.to_path_buf(),
    };
    let mut command = vec![program.into_os_string()];
    command.extend(args.words.iter().cloned());
    let nowhere = open_dev_null()?;
    let traced = TracedCommand {
        max_size: args.max_size,
        seconds: args.seconds,
        stdout: Some(&nowhere),
        ..TracedCommand::new(&command, &trace.0)
    };
    let status = trace_command(&traced)?;
    if !status.success() && args.seconds.is_none() {
        eprintln!("tallyline: {}: the run ended with {status}", build.display());
    }
    shares_of(args, &trace.0)
}

fn shares_of(args: &SharingCheckArgs, path: &Path) -> Result<BuildShares> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    let trace = Trace::open(&file).with_context(|| name.to_string())?;
    let ModelledTrace { model, excerpt, code, evidence, mut runs, warnings, .. } =
        evidence_of(&args.model, &trace).with_context(|| name.to_string())?;
    for warning in warnings {
        eprintln!("tallyline: {warning}");
    }
    let more = model.run_all(&excerpt, &code, None, runs.len() as u64..model.seeds);
    runs.extend(more.map_err(|why| anyhow!("{name}: {why}"))?);
    Ok(build_shares(&evidence, &runs))
}
