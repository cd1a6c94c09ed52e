//! The results as JSON and as tables.

use super::super::machine::Machine;
use super::super::report::{NotRun, SCHEMA};
use super::sides::Blame;
use super::truth::{Language, Truth};
use super::verdict::{Shares, Verdict};
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use serde::Serialize;
use std::io::Write;

/// The results of one run.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    schema: u32,
    bench: &'static str,
    pub(super) machine: Machine,
    /// Samples a second that were asked for.
    frequency: u64,
    /// Seconds on a CPU of each shape.
    seconds: f64,
    /// perf's version and path.
    pub(super) perf: Option<String>,
    pub(super) programs: Vec<Program>,
    not_run: Vec<NotRun>,
}

/// The shapes that one compiler made.
#[derive(Debug, Serialize)]
pub(super) struct Program {
    /// The CPU that the samples are of.
    pub(super) cpu: String,
    pub(super) compiler: String,
    pub(super) version: String,
    pub(super) language: Language,
    pub(super) shapes: Vec<ShapeResult>,
}

/// The samples of a shape by three sides.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ShapeResult {
    pub(super) shape: &'static str,
    pub(super) truth: String,
    /// The recordings until the bars were met.
    pub(super) recordings: usize,
    /// The truth has shares of several fields.
    #[serde(skip)]
    pub(super) has_shares: bool,
    pub(super) ours: Side,
    /// Without correction of skid.
    pub(super) uncorrected: Side,
    pub(super) perf: Option<Side>,
}

/// The samples of a shape by one side.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Side {
    #[serde(flatten)]
    blame: Blame,
    #[serde(flatten)]
    shares: Shares,
    pub(super) verdict: Verdict,
}

impl Side {
    pub(super) fn new(blame: Blame, truth: &Truth) -> Side {
        let (shares, verdict) = (Shares::of(&blame, truth), Verdict::of(&blame, truth));
        Side { blame, shares, verdict }
    }

    /// Returns the shares that name a field, the right one first.
    fn fields(&self) -> String {
        let mut fields: Vec<(&String, &u64)> = self.blame.fields.iter().collect();
        fields.sort_by_key(|(name, samples)| (std::cmp::Reverse(**samples), *name));
        let percent = |samples: u64| 100.0 * samples as f64 / self.blame.samples.max(1) as f64;
        let shown = fields.iter().filter(|(_, samples)| percent(**samples) >= 1.0);
        shown
            .map(|(name, samples)| format!("{name} {:.0}", percent(**samples)))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl Document {
    pub(super) fn new(machine: Machine, frequency: u64, seconds: f64) -> Document {
        let (perf, programs, not_run) = (None, Vec::new(), Vec::new());
        Document {
            schema: SCHEMA,
            bench: "attribution",
            machine,
            frequency,
            seconds,
            perf,
            programs,
            not_run,
        }
    }

    /// Notes what could not be run.
    pub(super) fn skip(&mut self, case: &str, reason: &str) {
        let not_run = NotRun { case: case.to_owned(), reason: reason.to_owned() };
        if !self.not_run.contains(&not_run) {
            self.not_run.push(not_run);
        }
    }

    pub(super) fn write_json(&self, out: &mut dyn Write) -> Result<()> {
        serde_json::to_writer_pretty(&mut *out, self)?;
        writeln!(out)?;
        Ok(())
    }

    pub(super) fn write_table(&self, out: &mut dyn Write) -> Result<()> {
        let bold = Style::new().bold();
        writeln!(out, "{bold}tallyline-bench attribution{bold:#}")?;
        writeln!(out, "{}", self.machine)?;
        writeln!(out, "{} samples a second, {} s of each shape on a CPU", self.frequency, self.seconds)?;
        if let Some(perf) = &self.perf {
            writeln!(out, "{perf}")?;
        }
        for not_run in &self.not_run {
            writeln!(out, "{}: not run: {}", not_run.case, not_run.reason)?;
        }
        for program in &self.programs {
            self.write_program(program, out)?;
        }
        self.write_summary(out)
    }

    fn write_program(&self, program: &Program, out: &mut dyn Write) -> Result<()> {
        let bold = Style::new().bold();
        let Program { cpu, compiler, version, language, shapes } = program;
        let has_perf = shapes.iter().any(|shape| shape.perf.is_some());
        writeln!(out, "\n{bold}{language} by {compiler}{bold:#} ({version}) on {cpu}")?;
        let width = shapes.iter().map(|shape| shape.shape.len()).max().unwrap_or(0);
        let three = "right other  none";
        let perf = if has_perf { format!("  {:>17}", "perf") } else { String::new() };
        writeln!(out, "{:width$}           {:>17}  {:>17}{perf}", "", "tallyline", "--skid none")?;
        let perf = if has_perf { format!("  {three}") } else { String::new() };
        writeln!(out, "{:width$}  samples  {three}  {three}{perf}  bars", "")?;
        for shape in shapes {
            write!(out, "{:width$}  {:>7}", shape.shape, shape.ours.blame.samples)?;
            for side in
                [Some(&shape.ours), Some(&shape.uncorrected), shape.perf.as_ref()].into_iter().flatten()
            {
                let Shares { right, other, none } = side.shares;
                write!(out, "  {right:>5.1} {other:>5.1} {none:>5.1}")?;
            }
            let color = match shape.ours.verdict {
                Verdict::Met => AnsiColor::Green,
                Verdict::WithinError | Verdict::TooFew => AnsiColor::Yellow,
                Verdict::Missed => AnsiColor::Red,
            };
            let color = color.on_default();
            write!(out, "  {color}{}{color:#}", shape.ours.verdict.text())?;
            if shape.ours.verdict != Verdict::Met {
                write!(out, ": {}", shape.truth)?;
            }
            if shape.recordings > 1 {
                write!(out, "; recorded {} times", shape.recordings)?;
            }
            // shares that are held field by field are not in the columns
            if shape.ours.verdict != Verdict::Met || shape.has_shares {
                write!(out, "; fields: {}", shape.ours.fields())?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// Writes how many shapes each side gets right.
    fn write_summary(&self, out: &mut dyn Write) -> Result<()> {
        let all: Vec<&ShapeResult> = self.programs.iter().flat_map(|program| &program.shapes).collect();
        if all.is_empty() {
            writeln!(out, "nothing was judged")?;
            return Ok(());
        }
        writeln!(out)?;
        let ours = all.iter().map(|shape| &shape.ours).collect::<Vec<_>>();
        let uncorrected = all.iter().map(|shape| &shape.uncorrected).collect::<Vec<_>>();
        let perf = all.iter().filter_map(|shape| shape.perf.as_ref()).collect::<Vec<_>>();
        for (name, sides) in [("tallyline", ours), ("--skid none", uncorrected), ("perf", perf)] {
            let judged: Vec<&Side> =
                sides.into_iter().filter(|side| side.verdict != Verdict::TooFew).collect();
            if judged.is_empty() {
                continue;
            }
            let met = judged.iter().filter(|side| side.verdict != Verdict::Missed).count();
            let [right, other] = [|side: &&Side| side.shares.right, |side: &&Side| side.shares.other]
                .map(|share| median(judged.iter().map(share).collect()));
            writeln!(
                out,
                "{name:12} meets the bars of {met} of {} shapes; median right {right:.0} %, other {other:.0} %",
                judged.len()
            )?;
        }
        let few = all.iter().filter(|shape| shape.ours.verdict == Verdict::TooFew).count();
        if few > 0 {
            writeln!(out, "{few} shapes have too few samples to judge")?;
        }
        Ok(())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
