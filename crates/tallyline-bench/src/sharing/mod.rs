//! `tallyline-bench sharing`: the speed-up of small programs whose false sharing is fixed by hand, beside the one that
//! the model predicts from traces of both builds.
//!
//! Programs of others can be measured with `--folder`. Both builds run in turn, each start of a process a pair with the other's; the prediction is `tallyline
//! sharing-check`'s. What is measured moves from start to start, and what is predicted from schedule to schedule and by
//! the model's error, so that both are ranges: a prediction is good if its expected range overlaps the measured
//! 10 to 90 %, and its median is within half as much again of the measured one. What a line takes between two CPUs of a virtual machine
//! changes every few seconds; it is timed between the pairs, and the prediction is for these times.

use crate::positive;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use tallyline_support::Machine;
use tallyline_support::output::{Color, Output};
use tallyline_support::transfers::{self, LineTransfer};

/// The program of all cases.
const SOURCE: &str = include_str!("cases.c");

/// The cases: a name, and the rounds of a measured run.
const CASES: [(&str, u64); 14] = [
    ("bare increments", 60_000_000),
    ("increments, 12 multiplications", 20_000_000),
    ("increments, 50 multiplications", 6_000_000),
    ("atomic additions", 20_000_000),
    ("atomic additions, 12 multiplications", 10_000_000),
    ("a reader beside a writer", 40_000_000),
    ("statistics of two words", 30_000_000),
    ("a chain through the word", 20_000_000),
    ("stores alone", 40_000_000),
    ("nothing shared", 30_000_000),
    ("readers alone", 40_000_000),
    ("increments, 400 multiplications", 1_000_000),
    ("hits and misses of a table", 20_000_000),
    ("a limit beside an atomic count", 20_000_000),
];

/// Rounds of a traced run.
const TRACED: &str = "60000";

/// The factor within which a prediction's median is good.
const CLOSE: f64 = 1.5;

/// Command-line options of the benchmark `sharing` (speed-up without false sharing, predicted against measured): starts
/// of the program, and the output.
#[derive(Debug, Args)]
pub(crate) struct SharingOptions {
    /// Number of pairs of process starts
    #[arg(long, value_name = "N", value_parser = positive, default_value_t = 10)]
    pairs: usize,

    /// Only show that it works: two pairs of short runs; the figures mean little
    #[arg(long)]
    quick: bool,

    /// Run only the cases whose names contain this
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,

    /// The programs of this folder in place of the cases: in each of its folders naive.c and fixed.c, and truth.json with
    /// the words of the compiler (build) and of the program (args_measured, args_traced)
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Write JSON
    #[arg(long)]
    json: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyline-bench sharing
  tallyline-bench sharing --case atomic
  tallyline-bench sharing --folder ./programs
  tallyline-bench sharing --pairs 20 --json | jq '.cases[] | {name, measured, predicted}'

Needs QEMU's user emulation (qemu-user), a C compiler and two CPUs.";

/// A range with its middle.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    low: f64,
    median: f64,
    high: f64,
}

/// A case with the ranges of its measured and its predicted speed-up.
struct Case {
    name: String,
    measured: Range,
    predicted: Range,
}

impl Case {
    fn overlaps(&self) -> bool {
        self.predicted.low <= self.measured.high && self.measured.low <= self.predicted.high
    }

    fn is_close(&self) -> bool {
        let ratio = self.predicted.median / self.measured.median;
        (1.0 / CLOSE..=CLOSE).contains(&ratio)
    }
}

/// Runs the benchmark `sharing`: the measured speed-up of small programs after their false sharing was removed by
/// hand, against the speed-up that the simulation predicts.
pub(crate) fn run(options: &SharingOptions, color: Color) -> Result<()> {
    let output = Output::open(options.output.as_deref(), color)?;
    let folder = std::env::temp_dir().join(format!("tallyline-bench-sharing-{}", std::process::id()));
    fs::create_dir_all(&folder).with_context(|| format!("cannot write to {}", folder.display()))?;
    let cases = all(options, &folder);
    let _ = fs::remove_dir_all(&folder);
    let cases = cases?;
    let machine = Machine::describe(crate::sides::c::COMPILER);
    output
        .write(|out| if options.json { as_json(&machine, &cases, out) } else { text(&machine, &cases, out) })
}

/// A program in two builds, with its arguments.
struct Program {
    name: String,
    naive: PathBuf,
    fixed: PathBuf,
    measured: Vec<String>,
    traced: Vec<String>,
}

fn all(options: &SharingOptions, folder: &Path) -> Result<Vec<Case>> {
    let tool = crate::tool()?;
    let programs = match &options.folder {
        Some(programs) => of_folder(programs, folder)?,
        None => own(options, folder)?,
    };
    let is_asked = |program: &Program| options.case.as_ref().is_none_or(|text| program.name.contains(text));
    let programs: Vec<Program> = programs.into_iter().filter(is_asked).collect();
    let progress = crate::progress("sharing");
    let mut cases = Vec::new();
    for (at, program) in programs.iter().enumerate() {
        progress.show(at as u64, programs.len() as u64);
        let pairs = if options.quick { 2 } else { options.pairs };
        let (measured, transfers) = measure(&program.naive, &program.fixed, &program.measured, pairs)?;
        let predicted = predict(&tool, &program.naive, &program.fixed, &program.traced, &transfers)?;
        cases.push(Case { name: program.name.clone(), measured, predicted });
    }
    Ok(cases)
}

/// Compiles a C program from its source file.
fn compile(words: &[String], source: &Path, program: &Path) -> Result<()> {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let status = Command::new(compiler).args(words).arg("-o").arg(program).arg(source).status();
    if !status.context("cannot run the C compiler")?.success() {
        bail!("the C compiler cannot build {}", source.display());
    }
    Ok(())
}

/// Builds the benchmark's own cases.
fn own(options: &SharingOptions, folder: &Path) -> Result<Vec<Program>> {
    let source = folder.join("cases.c");
    fs::write(&source, SOURCE).with_context(|| format!("cannot write {}", source.display()))?;
    let build = |(at, (name, rounds)): (usize, (&str, u64))| {
        let [naive, fixed] = ["naive", "fixed"].map(|kind| folder.join(format!("case{}-{kind}", at + 1)));
        let mut words: Vec<String> = ["-O2", "-g", "-pthread"].map(str::to_owned).into();
        words.push(format!("-DCASE={}", at + 1));
        compile(&words, &source, &naive)?;
        words.push("-DFIXED".to_owned());
        compile(&words, &source, &fixed)?;
        let rounds = if options.quick { rounds / 100 } else { rounds };
        let (measured, traced) = (vec![rounds.to_string()], vec![TRACED.to_owned()]);
        Ok(Program { name: name.to_owned(), naive, fixed, measured, traced })
    };
    CASES.into_iter().enumerate().map(build).collect()
}

/// Builds the programs of a folder, in the order of their names.
fn of_folder(programs: &Path, folder: &Path) -> Result<Vec<Program>> {
    let listed = fs::read_dir(programs).with_context(|| format!("cannot read {}", programs.display()))?;
    let mut folders: Vec<PathBuf> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.retain(|path| path.join("truth.json").is_file());
    folders.sort();
    let build = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let about = path.join("truth.json");
        let text = fs::read(&about).with_context(|| format!("cannot read {}", about.display()))?;
        let truth: Value = serde_json::from_slice(&text).with_context(|| about.display().to_string())?;
        let options = compiler_options(&words(&truth["build"]));
        let [naive, fixed] = ["naive", "fixed"].map(|kind| folder.join(format!("{name}-{kind}")));
        compile(&options, &path.join("naive.c"), &naive)?;
        compile(&options, &path.join("fixed.c"), &fixed)?;
        let (measured, traced) = (words(&truth["args_measured"]), words(&truth["args_traced"]));
        Ok(Program { name, naive, fixed, measured, traced })
    };
    folders.iter().map(build).collect()
}

/// Returns the words of a command line, of one string or a list of them.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(line) => line.split_whitespace().map(str::to_owned).collect(),
        Value::Array(all) => all.iter().flat_map(words).collect(),
        Value::Number(number) => vec![number.to_string()],
        _ => Vec::new(),
    }
}

/// Returns the options of a compiler's command line, without the compiler, its input and its output; with debug
/// information.
fn compiler_options(words: &[String]) -> Vec<String> {
    let mut options = vec!["-g".to_owned()];
    let mut follows_output = false;
    for word in words {
        let is_output = std::mem::replace(&mut follows_output, word == "-o");
        if word.starts_with('-') && word != "-o" && !is_output {
            options.push(word.clone());
        }
    }
    options
}

/// Parts of a line's timing in front of each pair.
const TIMED_PARTS: usize = 6;

/// Measures both builds in pairs, and what a line takes between the CPUs meanwhile.
fn measure(naive: &Path, fixed: &Path, words: &[String], pairs: usize) -> Result<(Range, Vec<LineTransfer>)> {
    let time = |program: &Path| -> Result<f64> {
        let started = Instant::now();
        let status = Command::new(program).args(words).stdout(Stdio::null()).status();
        let status = status.with_context(|| format!("cannot run {}", program.display()))?;
        if !status.success() {
            bail!("{} ended with {status}", program.display());
        }
        Ok(started.elapsed().as_secs_f64())
    };
    let (mut ratios, mut transfers) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        transfers.extend(transfers::measure_parts(TIMED_PARTS).context("cannot time lines between CPUs")?);
        let (before, after) = if pair % 2 == 0 {
            let before = time(naive)?;
            (before, time(fixed)?)
        } else {
            let after = time(fixed)?;
            (time(naive)?, after)
        };
        ratios.push(before / after);
    }
    ratios.sort_by(f64::total_cmp);
    transfers.sort_unstable();
    let at = |part: f64| ratios[((ratios.len() - 1) as f64 * part).round() as usize];
    Ok((Range { low: at(0.1), median: at(0.5), high: at(0.9) }, transfers))
}

/// Returns the tool's options for measured times of a line: least, most, usual.
fn transfer_options(transfers: &[LineTransfer]) -> Vec<String> {
    let times = [0.1, 0.9, 0.5].map(|part| transfers::quantile(transfers, part));
    let [Some(least), Some(most), Some(usual)] = times else { return vec!["--calibrate".to_owned()] };
    let words = [least, most, usual].map(|of| format!("{}:{}:{}", of.latency, of.interval, of.hold));
    vec!["--transfer".to_owned(), words.join(",")]
}

/// Returns the tool's prediction.
fn predict(
    tool: &Path,
    naive: &Path,
    fixed: &Path,
    words: &[String],
    transfers: &[LineTransfer],
) -> Result<Range> {
    let output = Command::new(tool)
        .args(["sharing-check", "--format", "json", "--cores", "2"])
        .args(transfer_options(transfers))
        .arg("--base")
        .arg(naive)
        .arg("--head")
        .arg(fixed)
        .arg("--")
        .args(words)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", tool.display()))?;
    let document: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{} sharing-check printed no JSON", tool.display()))?;
    let number = |path: &str| {
        let value = document["speed"].pointer(path).and_then(Value::as_f64);
        value.with_context(|| format!("there is no speed{path}"))
    };
    Ok(Range { low: number("/expected/0")?, median: number("/median")?, high: number("/expected/1")? })
}

/// Returns Spearman's rank correlation of the medians.
fn rank_correlation(cases: &[Case]) -> f64 {
    let ranks = |value: fn(&Case) -> f64| -> Vec<f64> {
        let below = |one: f64| {
            let less = cases.iter().filter(|other| value(other) < one).count();
            let same = cases.iter().filter(|other| value(other) == one).count();
            less as f64 + (same as f64 - 1.0) / 2.0
        };
        cases.iter().map(|case| below(value(case))).collect()
    };
    let (one, other) = (ranks(|case| case.measured.median), ranks(|case| case.predicted.median));
    let mean = (cases.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let scale = (product(&one, &one) * product(&other, &other)).sqrt();
    if scale > 0.0 { product(&one, &other) / scale } else { 0.0 }
}

/// Returns the number of cases whose prediction is good.
fn good(cases: &[Case]) -> usize {
    cases.iter().filter(|case| case.overlaps() && case.is_close()).count()
}

fn text(machine: &Machine, cases: &[Case], out: &mut dyn Write) -> Result<()> {
    writeln!(out, "{machine}\n")?;
    writeln!(
        out,
        "{:<38} {:>22} {:>24}",
        "speed-up by the fix", "measured (10 to 90 %)", "predicted (range)"
    )?;
    for case in cases {
        let range = |range: Range| format!("{:.2} ({:.2} to {:.2})", range.median, range.low, range.high);
        let verdict = match (case.overlaps(), case.is_close()) {
            (true, true) => "",
            (true, false) => "  far",
            (false, true) => "  apart",
            (false, false) => "  far, apart",
        };
        writeln!(
            out,
            "{:<38} {:>22} {:>24}{verdict}",
            case.name,
            range(case.measured),
            range(case.predicted)
        )?;
    }
    writeln!(
        out,
        "\n{} of {} predictions overlap and are within {CLOSE}×; rank correlation {:.2}",
        good(cases),
        cases.len(),
        rank_correlation(cases)
    )?;
    Ok(())
}

fn as_json(machine: &Machine, cases: &[Case], out: &mut dyn Write) -> Result<()> {
    let range = |range: Range| json!({"low": range.low, "median": range.median, "high": range.high});
    let rows: Vec<Value> = cases
        .iter()
        .map(|case| {
            json!({
                "name": case.name,
                "measured": range(case.measured),
                "predicted": range(case.predicted),
                "overlaps": case.overlaps(),
                "close": case.is_close(),
            })
        })
        .collect();
    let document = json!({
        "schema": 1,
        "bench": "sharing",
        "machine": machine.to_string(),
        "cases": rows,
        "good": good(cases),
        "rank_correlation": rank_correlation(cases),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    Ok(writeln!(out)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(measured: f64, predicted: f64) -> Case {
        let range = |median: f64| Range { low: median * 0.9, median, high: median * 1.1 };
        Case { name: String::new(), measured: range(measured), predicted: range(predicted) }
    }

    #[test]
    fn predictions_are_good_where_ranges_meet() {
        assert_eq!(good(&[case(2.0, 2.1), case(2.0, 4.0), case(1.0, 1.0)]), 2);
    }

    #[test]
    fn measured_times_of_a_line_are_stated_as_least_most_and_usual() {
        let near = LineTransfer { latency: 110, interval: 90, hold: 16 };
        let far = LineTransfer { latency: 360, interval: 320, hold: 126 };
        let options = transfer_options(&[near, near, near, near, far]).join(" ");
        assert_eq!(options, "--transfer 110:90:16,360:320:126,110:90:16");
        assert_eq!(transfer_options(&[]), ["--calibrate"]);
    }

    #[test]
    fn a_compilers_options_are_taken_from_its_command() {
        let of = |value: Value| compiler_options(&words(&value)).join(" ");
        assert_eq!(of(json!("gcc -O2 -pthread -o naive naive.c -lm")), "-g -O2 -pthread -lm");
        assert_eq!(of(json!(["-O1", "-DN=2"])), "-g -O1 -DN=2");
    }

    #[test]
    fn ranks_are_correlated_whatever_the_values() {
        assert_eq!(rank_correlation(&[case(1.0, 1.0), case(2.0, 9.0), case(8.0, 10.0)]), 1.0);
        assert_eq!(rank_correlation(&[case(1.0, 10.0), case(2.0, 9.0), case(8.0, 1.0)]), -1.0);
    }
}
