//! `tallyline-bench attribution`: whom reports blame, on functions whose truth is known.
//!
//! Shapes in C, C++ and Rust, in each of which one access can stall, are compiled, recorded by the clock, and
//! reported three ways: by this program, by it without correction of skid, and by perf. What each blames is
//! held against the truth (`truth`) and its bars.

mod compilers;
mod document;
mod fixtures;
mod sides;
mod truth;
mod verdict;

use super::{machine::Machine, progress};
use anyhow::{Context, Result, bail};
use clap::Args;
use compilers::{Compiler, USUAL};
use document::{Document, Program, ShapeResult, Side};
use fixtures::{Fixture, Origin};
use sides::{Blames, Sides};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tallyline_report::pattern::{NameKind, NamePattern, PatternMatch};
use tallyline_support::output::{Color, Output};
use truth::{SHAPES, Shape, Truth};
use verdict::Verdict;

/// Seconds on a CPU of each shape where nobody says otherwise; with `--quick`.
const SECONDS: [f64; 2] = [2.0, 0.2];

/// The most repetitions of a shape that misses a bar, by `--check`. A machine whose host takes its CPUs away
/// has, in phases, a tenth and more of its samples at the very access that stalls.
const REPETITIONS: usize = 2;

/// Samples a second where nobody says otherwise; with `--quick`.
const FREQUENCY: [u64; 2] = [4000, 10_000];

pub(super) const EXAMPLES: &str = "\
Examples:
  tallyline-bench attribution                          all shapes, by each compiler that is installed
  tallyline-bench attribution --shape 'cmp_*' --compiler clang
  tallyline-bench attribution --quick --check          short; status 1 where a bar is missed
  tallyline-bench attribution --keep shapes            keeps programs and recordings

Shares are those of a shape's samples: `right` name the field that the time goes to, `other` another field, `none` no field.";

/// Command-line options of the benchmark `attribution` (which access reports blame, on functions with a known stalling
/// access): the code shapes to record, and how.
#[derive(Debug, Args)]
pub(crate) struct AttributionOptions {
    /// Only shapes whose name a glob matches; may be repeated
    #[arg(long = "shape", value_name = "GLOB", value_parser = NamePattern::parse)]
    shapes: Vec<NamePattern>,

    /// A compiler of C, C++ (by `++` in its name) or Rust (`rustc`); may be repeated [default: gcc, clang, g++, clang++, rustc]
    #[arg(long = "compiler", value_name = "PROGRAM")]
    compilers: Vec<PathBuf>,

    /// The perf to compare with [default: what PERF names, else the one on the PATH]
    #[arg(long, value_name = "PROGRAM")]
    perf: Option<PathBuf>,

    /// Samples a second [default: 4000]
    #[arg(short = 'F', long = "freq", value_name = "FREQ")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    frequency: Option<u64>,

    /// Seconds on a CPU for each shape [default: 2]
    #[arg(long, value_name = "SECONDS", value_parser = super::seconds)]
    seconds: Option<f64>,

    /// Short recordings, with more samples a second
    #[arg(long)]
    quick: bool,

    /// End with status 1 where a shape misses a bar in three recordings by more than chance explains
    #[arg(long)]
    check: bool,

    /// Keep programs and recordings in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,

    /// Write the raw samples and the programs to this folder, for tests on other machines
    #[arg(long, value_name = "DIR", conflicts_with = "fixtures")]
    save_fixtures: Option<PathBuf>,

    /// Record nothing: judge the raw samples of another machine that --save-fixtures wrote
    #[arg(long, value_name = "DIR", conflicts_with_all = ["compilers", "frequency", "seconds", "quick"])]
    fixtures: Option<PathBuf>,

    /// List the shapes with their truth
    #[arg(long)]
    list: bool,

    /// Write JSON, and no table
    #[arg(long)]
    json: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the benchmark; the status says whether the bars are met, if that is asked for.
pub(super) fn run(options: &AttributionOptions, color: Color) -> Result<ExitCode> {
    let shapes = selected(options)?;
    let output = Output::open(options.output.as_deref(), color)?;
    if options.list {
        return list(&shapes, output);
    }
    let perf = options.perf.clone().or_else(|| std::env::var_os("PERF").map(PathBuf::from));
    let sides = Sides::find(&perf.clone().unwrap_or_else(|| "perf".into()))?;
    let mut document =
        Document::new(Machine::describe(crate::sides::c::COMPILER), frequency(options), seconds(options));
    match (&sides.perf, perf) {
        (Some((path, version)), _) => document.perf = Some(format!("{version} ({})", path.display())),
        (None, Some(named)) => bail!("{} does not run", named.display()),
        (None, None) => document.skip("perf", "not installed; --perf names it"),
    }
    let folder = Folder::make(options.keep.as_deref())?;
    let bench = Bench { options, sides, shapes, folder: &folder.path };
    match &options.fixtures {
        Some(fixtures) => bench.judge_fixtures(fixtures, &mut document)?,
        None => bench.record_all(&mut document)?,
    }
    drop(folder);
    let is_missed = document.programs.iter().flat_map(|program| &program.shapes).any(ShapeResult::is_missed);
    output.write(|out| if options.json { document.write_json(out) } else { document.write_table(out) })?;
    Ok(if options.check && is_missed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn frequency(options: &AttributionOptions) -> u64 {
    options.frequency.unwrap_or(FREQUENCY[usize::from(options.quick)])
}

fn seconds(options: &AttributionOptions) -> f64 {
    options.seconds.unwrap_or(SECONDS[usize::from(options.quick)])
}

/// Returns the shapes that are asked for.
fn selected(options: &AttributionOptions) -> Result<Vec<&'static Shape>> {
    let all: BTreeSet<&str> = SHAPES.iter().map(|shape| shape.name).collect();
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for pattern in &options.shapes {
        match pattern.find(NameKind::Event, &all) {
            PatternMatch::Names(names, _) => named.extend(names),
            PatternMatch::Ambiguous(names) => {
                let names: Vec<&str> = names.into_iter().collect();
                bail!("no shape is named {pattern}; these have it in their names: {}", names.join(", "))
            }
            PatternMatch::Nothing(_) => bail!("no shape is named {pattern}; --list shows them"),
        }
    }
    Ok(SHAPES.iter().filter(|shape| options.shapes.is_empty() || named.contains(shape.name)).collect())
}

fn list(shapes: &[&Shape], output: Output) -> Result<ExitCode> {
    let width = shapes.iter().map(|shape| shape.name.len()).max().unwrap_or(0);
    output.write(|out| {
        for shape in shapes {
            writeln!(out, "{:width$}  {:4}  {}", shape.name, shape.language, shape.truth)?;
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Finds the compilers: those that are named have to be there, of the others those that are.
fn compilers(options: &AttributionOptions, document: &mut Document) -> Result<Vec<Compiler>> {
    if !options.compilers.is_empty() {
        let find = |program: &PathBuf| {
            Compiler::find(program).with_context(|| format!("{} does not run", program.display()))
        };
        return options.compilers.iter().map(find).collect();
    }
    let mut found = Vec::new();
    for name in USUAL {
        match Compiler::find(Path::new(name)) {
            Some(compiler) => found.push(compiler),
            None => document.skip(name, "not installed"),
        }
    }
    Ok(found)
}

/// A run of the benchmark: options, tools to compare, shapes, and the folder for its files.
struct Bench<'b> {
    options: &'b AttributionOptions,
    sides: Sides,
    shapes: Vec<&'static Shape>,
    folder: &'b Path,
}

impl Bench<'_> {
    /// Measures the shapes of each compiler.
    fn record_all(&self, document: &mut Document) -> Result<()> {
        for compiler in compilers(self.options, document)? {
            let shapes = self.shapes.iter().filter(|shape| shape.language == compiler.language);
            let shapes: Vec<&Shape> = shapes.copied().collect();
            if shapes.is_empty() {
                continue;
            }
            match self.measure(&compiler, &shapes, document) {
                Ok(program) => document.programs.push(program),
                Err(error) => document.skip(&compiler.name, &format!("{error:#}")),
            }
        }
        Ok(())
    }

    /// Compiles, records and reports the shapes of one compiler.
    fn measure(&self, compiler: &Compiler, shapes: &[&Shape], document: &mut Document) -> Result<Program> {
        let bar = progress(&compiler.name);
        let program = compiler.compile(self.folder)?;
        bar.show(1, 5);
        let recording = self.folder.join(format!("{}.data", compiler.name));
        let names: Vec<&str> = shapes.iter().map(|shape| shape.name).collect();
        let frequency = frequency(self.options);
        self.sides.record(&program, &names, (frequency, seconds(self.options)), &recording)?;
        bar.show(3, 5);
        if let Some(fixtures) = &self.options.save_fixtures {
            let origin = Origin { machine: &document.machine, compiler, frequency, shapes };
            Fixture::of(&origin, &program, &recording)?.save(fixtures)?;
        }
        let mut results = self.judge(shapes, &recording, document)?;
        if self.options.check {
            for attempt in 1..=REPETITIONS {
                let missed: Vec<&Shape> = shapes
                    .iter()
                    .zip(&results)
                    .filter(|(_, result)| result.is_missed())
                    .map(|(shape, _)| *shape)
                    .collect();
                if missed.is_empty() {
                    break;
                }
                let recording = self.folder.join(format!("{}-{attempt}.data", compiler.name));
                let names: Vec<&str> = missed.iter().map(|shape| shape.name).collect();
                self.sides.record(&program, &names, (frequency, seconds(self.options)), &recording)?;
                for again in self.judge(&missed, &recording, document)? {
                    let result = results.iter_mut().find(|result| result.shape == again.shape);
                    result.into_iter().for_each(|result| result.repeat(again.clone()));
                }
            }
        }
        Ok(Program {
            cpu: document.machine.model(),
            compiler: compiler.name.clone(),
            version: compiler.version.clone(),
            language: compiler.language,
            shapes: results,
        })
    }

    /// Reports the raw samples of other machines.
    fn judge_fixtures(&self, folder: &Path, document: &mut Document) -> Result<()> {
        for fixture in Fixture::load_all(folder)? {
            let header = &fixture.header;
            let is_there =
                |shape: &&Shape| shape.language == header.language && header.truth.contains_key(shape.name);
            let shapes: Vec<&Shape> = self.shapes.iter().copied().filter(is_there).collect();
            if shapes.is_empty() {
                continue;
            }
            let recording = self.folder.join(format!("{}.data", document.programs.len()));
            fixture.write_recording(&recording)?;
            let shapes = self.judge(&shapes, &recording, document)?;
            document.programs.push(Program {
                cpu: format!("{} ({})", header.cpu, header.cpu_id),
                compiler: header.compiler.clone(),
                version: header.version.clone(),
                language: header.language,
                shapes,
            });
        }
        Ok(())
    }

    /// Reports a recording by all sides, and holds each shape against its truth.
    fn judge(
        &self,
        shapes: &[&Shape],
        recording: &Path,
        document: &mut Document,
    ) -> Result<Vec<ShapeResult>> {
        let ours = self.sides.ours(recording, true)?;
        let uncorrected = self.sides.ours(recording, false)?;
        // a perf without types does not know the key
        let perf = match &self.sides.perf {
            Some((perf, _)) => {
                let blames = self.sides.perf(perf, recording).ok().filter(|blames| !blames.is_empty());
                if blames.is_none() {
                    document.skip("perf", "does not report types; --perf names another");
                }
                blames
            }
            None => None,
        };
        let side = |blames: &Blames, shape: &Shape| {
            Side::new(blames.get(shape.name).cloned().unwrap_or_default(), &shape.truth)
        };
        let results = shapes.iter().map(|shape| ShapeResult {
            shape: shape.name,
            truth: shape.truth.to_string(),
            recordings: 1,
            has_shares: matches!(shape.truth, Truth::Shares { .. }),
            ours: side(&ours, shape),
            uncorrected: side(&uncorrected, shape),
            perf: perf.as_ref().map(|perf| side(perf, shape)),
        });
        Ok(results.collect())
    }
}

/// The folder of programs and recordings.
struct Folder {
    path: PathBuf,
    is_kept: bool,
}

impl Folder {
    fn make(kept: Option<&Path>) -> Result<Folder> {
        let path = match kept {
            Some(path) => std::path::absolute(path).context("cannot find the current folder")?,
            None => std::env::temp_dir().join(format!("tallyline-attribution-{}", std::process::id())),
        };
        fs::create_dir_all(&path).with_context(|| format!("cannot write to {}", path.display()))?;
        Ok(Folder { path, is_kept: kept.is_some() })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

impl ShapeResult {
    /// Returns `true` if this program misses a bar by more than chance explains.
    fn is_missed(&self) -> bool {
        self.ours.verdict == Verdict::Missed
    }

    /// Takes the results of another recording, if they are judged better.
    fn repeat(&mut self, other: ShapeResult) {
        let recordings = self.recordings + 1;
        if matches!(other.ours.verdict, Verdict::Met | Verdict::WithinError) {
            *self = other;
        }
        self.recordings = recordings;
    }
}
