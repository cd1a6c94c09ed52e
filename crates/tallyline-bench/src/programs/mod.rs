//! `tallyline-bench programs`: the share of samples that each field of whole programs gets, beside the share of time
//! that the model of costs predicts for it from a trace of the same run.
//!
//! Each program is recorded on the clock, several times, and traced once, with the same arguments. A field that the
//! samples blame and the model does not, or the other way round, is wrong in one of the two: this finds it, it does
//! not say which.

mod compare;
mod latencies;
mod output;
mod subjects;

use super::Machine;
use anyhow::{Context, Result, bail};
use clap::Args;
use compare::{Comparison, Shares};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use subjects::Subject;
use tallyline_support::output::{Color, Output};

/// Samples of each program where nobody says otherwise.
const SAMPLES: u64 = 10_000;

/// Samples a second: as many as kernels let through.
const FREQUENCY: u64 = 10_000;

/// The file beside kept recordings with the options of the model that were measured with them.
const MODEL: &str = "model";

/// The most runs of a program for its samples.
const RUNS: u64 = 200;

/// Command-line options of the benchmark `programs`: the programs to record, and the model's caches.
#[derive(Debug, Args)]
pub(crate) struct ProgramsOptions {
    /// Run only these programs: store, index, cache, lua, sqlite3, python; may be repeated
    #[arg(long = "program", value_name = "NAME")]
    programs: Vec<String>,

    /// The folder with lua, sqlite3 and python, with debug information, as ci/programs builds them
    #[arg(long, value_name = "FOLDER", default_value = "target/programs/bin")]
    foreign: PathBuf,

    /// The fewest samples of each program
    #[arg(long, value_name = "N", default_value_t = SAMPLES, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    samples: u64,

    /// Levels of caches for the model: size, ways and cycles, such as 48K:12:4,1M:16:14 [default: as measured here]
    #[arg(long, value_name = "SIZE:WAYS:CYCLES")]
    level: Option<String>,

    /// Cycles that the model takes for memory, together with --level
    #[arg(long, value_name = "CYCLES", requires = "level")]
    memory: Option<u32>,

    /// Keep programs, recordings and traces in this folder
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,

    /// Compare the recordings and traces that --keep left there, without running anything
    #[arg(long, requires = "keep")]
    kept: bool,

    /// Only see that it works: small runs, few samples; the figures mean little
    #[arg(long)]
    quick: bool,

    /// Write JSON
    #[arg(long)]
    json: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The results of all programs.
struct Programs {
    machine: Machine,
    /// The model's caches, in words.
    model: String,
    compared: Vec<Comparison>,
    /// Programs that could not be run, and why.
    not_run: Vec<(String, String)>,
}

/// Runs the benchmark `programs`: the shares of fields in the samples of whole programs, beside those of the model.
pub(super) fn run(options: &ProgramsOptions, color: Color) -> Result<()> {
    let output = Output::open(options.output.as_deref(), color)?;
    if let Some(unknown) = options.programs.iter().find(|name| !subjects::NAMES.contains(&name.as_str())) {
        bail!("there is no program {unknown}: {}", subjects::NAMES.join(", "));
    }
    let own = std::env::temp_dir().join(format!("tallyline-bench-{}", std::process::id()));
    let folder = options.keep.as_deref().unwrap_or(&own);
    fs::create_dir_all(folder).with_context(|| format!("cannot write to {}", folder.display()))?;
    let found = compare_all(options, folder);
    if options.keep.is_none() {
        let _ = fs::remove_dir_all(&own);
    }
    let found = found?;
    output.write(|out| if options.json { output::json(&found, out) } else { output::text(&found, out) })
}

fn compare_all(options: &ProgramsOptions, folder: &Path) -> Result<Programs> {
    let bench = Bench { ours: crate::tool()?, model: model(options, folder)?, options, folder };
    let mut found = Programs {
        machine: Machine::describe(crate::sides::c::COMPILER),
        model: bench.model.join(" "),
        compared: Vec::new(),
        not_run: Vec::new(),
    };
    for name in subjects::NAMES {
        if !options.programs.is_empty() && !options.programs.iter().any(|wanted| wanted == name) {
            continue;
        }
        match Subject::prepare(name, folder, &options.foreign, options.quick)
            .and_then(|subject| bench.compare(&subject))
        {
            Ok(comparison) => found.compared.push(comparison),
            Err(why) => found.not_run.push((name.to_owned(), format!("{why:#}"))),
        }
    }
    Ok(found)
}

/// Returns the options of `replay --cost`.
fn model(options: &ProgramsOptions, folder: &Path) -> Result<Vec<String>> {
    let Some(level) = &options.level else {
        let kept = folder.join(MODEL);
        // recordings go with the machine as it was: what is left of a shared cache changes by the minute
        if options.kept && kept.exists() {
            let words =
                fs::read_to_string(&kept).with_context(|| format!("cannot read {}", kept.display()))?;
            return Ok(words.split_whitespace().map(str::to_owned).collect());
        }
        let measured = latencies::measure().context("--level names the caches instead")?.options();
        if options.keep.is_some() {
            fs::write(&kept, measured.join(" "))
                .with_context(|| format!("cannot write {}", kept.display()))?;
        }
        return Ok(measured);
    };
    let memory = options.memory.map(|cycles| ["--memory".to_owned(), cycles.to_string()]);
    Ok(["--level".to_owned(), level.clone()].into_iter().chain(memory.into_iter().flatten()).collect())
}

/// The surroundings of all comparisons.
struct Bench<'o> {
    ours: PathBuf,
    model: Vec<String>,
    options: &'o ProgramsOptions,
    folder: &'o Path,
}

impl Bench<'_> {
    /// Records and traces a program, and compares its fields.
    fn compare(&self, subject: &Subject) -> Result<Comparison> {
        let sampled = self.sampled(subject)?;
        let modelled = self.modelled(subject)?;
        Ok(Comparison::new(&subject.name, sampled, modelled))
    }

    /// Records the program as often as its samples need.
    fn sampled(&self, subject: &Subject) -> Result<Shares> {
        let mut shares = Shares::default();
        let wanted = if self.options.quick { 1 } else { self.options.samples };
        for run in 0..RUNS {
            let recording = self.folder.join(format!("{}.{run}.data", subject.name));
            if self.options.kept {
                if !recording.exists() {
                    break;
                }
            } else {
                let mut command = self.command(["record", "-q", "--all-user", "-e", "cpu-clock", "-N"]);
                command.args(["-F", &FREQUENCY.to_string(), "-o"]).arg(&recording).arg("--");
                subject.add_to(&mut command)?;
                output(&mut command)?;
            }
            // the model names parts of nodes, too
            let mut command = self.command(["report", "--json", "--parts", "-s", "type,typeoff", "-i"]);
            let report = json_of(command.arg(&recording))?;
            shares.add_report(&report).with_context(|| format!("{}: report", subject.name))?;
            if self.options.keep.is_none() {
                fs::remove_file(&recording).with_context(|| format!("{}", recording.display()))?;
            }
            if shares.total() >= wanted as f64 && !self.options.kept {
                break;
            }
        }
        Ok(shares)
    }

    /// Traces the program once, and lets the model run it.
    fn modelled(&self, subject: &Subject) -> Result<Shares> {
        let trace = self.folder.join(format!("{}.trace", subject.name));
        if !self.options.kept {
            let mut command = self.command(["record", "-q", "--trace", "-o"]);
            command.arg(&trace).arg("--");
            subject.add_to(&mut command)?;
            output(&mut command)?;
        }
        let mut command = self.command(["replay", "--cost", "--json"]);
        let model = json_of(command.args(&self.model).arg("-i").arg(&trace))?;
        if self.options.keep.is_none() {
            fs::remove_file(&trace).with_context(|| format!("{}", trace.display()))?;
        }
        let mut shares = Shares::default();
        shares.add_model(&model).with_context(|| format!("{}: model", subject.name))?;
        Ok(shares)
    }

    fn command<const N: usize>(&self, words: [&str; N]) -> Command {
        let mut command = Command::new(&self.ours);
        command.args(words.map(OsStr::new));
        command
    }
}

fn json_of(command: &mut Command) -> Result<Value> {
    serde_json::from_slice(&output(command)?).context("cannot understand tallyline's JSON")
}

/// Runs a command to its end; what it printed.
fn output(command: &mut Command) -> Result<Vec<u8>> {
    command.stderr(Stdio::piped());
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().last().unwrap_or("").to_owned();
        bail!("{name} failed ({}): {said}", output.status);
    }
    Ok(output.stdout)
}
