//! `tallyline sharing-check`: the lines that threads take from each other, of one build against another.

mod args;
mod formats;

pub(crate) use args::SharingCheckArgs;

use crate::advise::{ModelledTrace, evidence_of};
use crate::interrupt;
use crate::record::{TracedCommand, open_dev_null, trace_command};
use anyhow::{Context, Result, anyhow, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tallyline_advice::sharing_diff::{TraceShares, sharing_diff, trace_shares};
use tallyline_support::output::{Color, Output};
use tallyline_trace::Trace;

/// Runs the sub-command `tallyline sharing-check`; the exit code is 1 if a shared cache line costs more in the
/// second build than in the first.
pub(crate) fn run(args: &SharingCheckArgs, color: Color) -> Result<ExitCode> {
    let output = Output::open(args.output.as_deref(), color)?;
    let mut base = Build::open(args, &args.base, "base")?;
    let mut head = Build::open(args, &args.head, "head")?;
    // the builds in turns: other work on the machine, which comes and goes, is to meet both
    for _ in 0..FIRST_RUNS {
        trace_both(args, &mut base, &mut head)?;
    }
    let diff = loop {
        let diff = sharing_diff(&base.traces, &head.traces, args.threshold);
        // more traces only widen the range of a growth: a check that passes with few would pass with all
        if diff.gained.is_empty() || !trace_both(args, &mut base, &mut head)? {
            break diff;
        }
    };
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

/// Runs of a build that are traced in any case: one alone does not show how much runs differ.
const FIRST_RUNS: u64 = 2;

/// The traces of one build.
struct Build {
    /// The program; `None` if traces of it are given.
    program: Option<PathBuf>,
    /// The name of the build in those of temporary files.
    name: &'static str,
    /// The costs of the shared lines in each trace.
    traces: Vec<TraceShares>,
}

impl Build {
    /// Opens a build: its traces, or its program, of which no run is traced yet.
    fn open(args: &SharingCheckArgs, files: &[PathBuf], name: &'static str) -> Result<Self> {
        let mut build = Self { program: None, name, traces: Vec::new() };
        for path in files {
            let opened = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
            if Trace::open(&opened).is_ok() {
                build.add(args, path)?;
            } else if files.len() > 1 {
                bail!("{} is no trace: of several files of a build each has to be one", path.display());
            } else {
                build.program = Some(path.clone());
            }
        }
        Ok(build)
    }

    /// Traces one more run of the program; `false` if there is none or no more are wanted.
    fn trace_again(&mut self, args: &SharingCheckArgs) -> Result<bool> {
        let Some(program) = self.program.as_deref().filter(|_| (self.traces.len() as u64) < args.runs) else {
            return Ok(false);
        };
        let trace = trace_run(args, program, self.name, self.traces.is_empty())?;
        self.add(args, &trace.0)?;
        Ok(true)
    }

    /// Replays a trace and adds what its lines cost. The warnings of one trace are those of all.
    fn add(&mut self, args: &SharingCheckArgs, path: &Path) -> Result<()> {
        let (shares, warnings) = shares_of(args, path)?;
        for warning in warnings.iter().filter(|_| self.traces.is_empty()) {
            eprintln!("tallyline: {warning}");
        }
        self.traces.push(shares);
        Ok(())
    }
}

/// Traces one more run of each build; `false` if there are no programs or no more are wanted.
fn trace_both(args: &SharingCheckArgs, base: &mut Build, head: &mut Build) -> Result<bool> {
    Ok(base.trace_again(args)? | head.trace_again(args)?)
}

/// Traces a run of a program; of the first one an exit status other than 0 is reported.
fn trace_run(args: &SharingCheckArgs, build: &Path, name: &str, is_first: bool) -> Result<TemporaryFile> {
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
    interrupt::check()?;
    if is_first && !status.success() && args.seconds.is_none() {
        eprintln!("tallyline: {}: the run ended with {status}", build.display());
    }
    Ok(trace)
}

/// Replays a trace and sums what its lines cost; returns that and the warnings about the trace's programs.
fn shares_of(args: &SharingCheckArgs, path: &Path) -> Result<(TraceShares, Vec<String>)> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    let trace = Trace::open(&file).with_context(|| name.to_string())?;
    let ModelledTrace { model, excerpt, code, evidence, mut runs, warnings, .. } =
        evidence_of(&args.model, &trace).with_context(|| name.to_string())?;
    let more = model.run_all(&excerpt, &code, None, runs.len() as u64..model.seeds);
    runs.extend(more.map_err(|why| anyhow!("{name}: {why}"))?);
    Ok((trace_shares(&evidence, &runs), warnings))
}
