//! The result of a benchmark, as JSON with a schema version and as a table for the terminal.

use super::machine::Machine;
use super::runner::SideResult;
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use serde::Serialize;
use std::fmt;
use std::io::Write;
use tallyline_support::quiet;
use tallyline_support::{Summary, ratios};

/// The version of the benchmarks' JSON output. It is incremented when a field changes its meaning or disappears;
/// fields may be added without.
pub(crate) const SCHEMA: u32 = 1;

/// The note of reports with figures of quiet rounds.
const QUIET: &str = "quiet: the rounds in which a loop of known work, in front of and behind the run, was within a tenth of its fastest on all threads.";

/// The results of one run of `tallyline-bench`: measured cases (figures of each implementation), ratios between them,
/// targets, notes.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The version of the JSON output, [`SCHEMA`].
    pub(crate) schema: u32,
    /// The name of the benchmark.
    pub(crate) bench: &'static str,
    /// The machine that it ran on.
    pub(crate) machine: Machine,
    /// The cost of each side.
    pub(crate) cases: Vec<Case>,
    /// The ratios between sides.
    pub(crate) ratios: Vec<Ratio>,
    /// The figures that this project wants to reach, where this run has them.
    pub(crate) targets: Vec<Target>,
    /// Sides that could not be run here.
    pub(crate) not_run: Vec<NotRun>,
    /// Notes without which the figures would mislead.
    pub(crate) notes: Vec<String>,
}

/// The size (number of groups, CPUs, …) at which a benchmark case was measured; it distinguishes cases (measured
/// figures) of one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Scale {
    /// CPUs of the made-up machine, for those who read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpus: Option<u32>,
    /// The number of them that have counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) used: Option<u32>,
    /// Groups folded at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) groups: Option<u64>,
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut part = |text: String| {
            let result = write!(f, "{separator}{text}");
            separator = ", ";
            result
        };
        match (self.used, self.cpus) {
            (Some(used), Some(cpus)) if used != cpus => part(format!("{used} of {cpus} CPUs"))?,
            (_, Some(cpus)) => part(format!("{cpus} CPUs"))?,
            _ => {}
        }
        if let Some(groups) = self.groups {
            part(format!("{groups} groups"))?;
        }
        Ok(())
    }
}

/// One measured figure of a benchmark, such as nanoseconds for an update of `fixed/inc` by two threads, with its
/// spread.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Case {
    /// The name of the case.
    pub(crate) case: String,
    /// The number of threads that ran the case at once.
    pub(crate) threads: usize,
    /// The scale of the case: the numbers of CPUs and of groups.
    #[serde(flatten)]
    pub(crate) scale: Scale,
    /// The unit of the figures.
    pub(crate) unit: &'static str,
    /// The figure over all rounds.
    #[serde(flatten)]
    pub(crate) figure: Summary,
    /// Bytes that one pass reads, where it reads memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    /// The bytes of a pass divided by the median time, in gigabytes (10^9) a second and thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gb_per_s: Option<f64>,
    /// The number of units that a scan read side by side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) streams: Option<u32>,
    /// `true` if every count was found again at the end; absent where nothing is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exact: Option<bool>,
    /// Rounds that took less than half of their time, so that the start and the clock weigh in them;
    /// absent where each round does a fixed amount of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) short_rounds: Option<usize>,
    /// Rounds whose figure is more than twice the median: something else ran meanwhile.
    pub(crate) interrupted_rounds: usize,
    /// The figure over the quiet rounds, in which probes found no core slowed by others; absent where they are few, or
    /// all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quiet: Option<Summary>,
    /// The rounds themselves, to take ratios from.
    #[serde(skip)]
    pub(crate) series: Vec<f64>,
    /// By round, `true` if it was quiet; empty where nobody looked.
    #[serde(skip)]
    pub(crate) is_quiet: Vec<bool>,
}

impl Case {
    /// Creates a case (a named, measured figure at one number of threads and scale) from one figure for each round;
    /// `None` if a figure is not finite.
    pub(crate) fn new(
        case: impl Into<String>,
        threads: usize,
        scale: Scale,
        unit: &'static str,
        series: Vec<f64>,
    ) -> Option<Self> {
        let figure = Summary::of(&series)?;
        let case = case.into();
        let interrupted_rounds = series.iter().filter(|round| **round > 2.0 * figure.median).count();
        Some(Case {
            case,
            threads,
            scale,
            unit,
            figure,
            bytes: None,
            gb_per_s: None,
            streams: None,
            exact: None,
            short_rounds: None,
            interrupted_rounds,
            quiet: None,
            series,
            is_quiet: Vec::new(),
        })
    }

    /// Creates a case (a named, measured figure at one number of threads and scale) from the time per operation that
    /// the runner measured in each round; `None` if a round has no time.
    pub(crate) fn measured(
        case: impl Into<String>,
        threads: usize,
        scale: Scale,
        unit: &'static str,
        outcome: SideResult,
    ) -> Option<Self> {
        let mut case = Case::new(case, threads, scale, unit, outcome.rounds)?;
        (case.exact, case.short_rounds) = (outcome.exact, Some(outcome.short));
        case.quiet = quiet::summarize(&case.series, |round| outcome.quiet.get(round) == Some(&true));
        case.is_quiet = outcome.quiet;
        Some(case)
    }

    /// Returns a warning where too many rounds were too short or interrupted to trust the figure.
    fn caveat(&self) -> Option<String> {
        let rounds = self.figure.rounds;
        let many = |count: usize| count * 10 >= rounds && count > 0 && rounds > 1;
        let short = self.short_rounds.filter(|&short| many(short));
        let short = short.map(|short| format!("{short} of {rounds} rounds too short"));
        let interrupted = self.interrupted_rounds;
        let interrupted = many(interrupted).then(|| format!("{interrupted} of {rounds} rounds interrupted"));
        let caveats: Vec<String> = short.into_iter().chain(interrupted).collect();
        (!caveats.is_empty()).then(|| caveats.join(", "))
    }

    /// Creates a case (a named, measured figure at one number of threads and scale) from one figure, such as a number
    /// of bytes, that was read once; `None` if it is not finite.
    pub(crate) fn single(
        case: impl Into<String>,
        threads: usize,
        scale: Scale,
        unit: &'static str,
        figure: f64,
    ) -> Option<Self> {
        Case::new(case, threads, scale, unit, vec![figure])
    }
}

/// The figure of one benchmark case divided by another's, round by round, with its median and spread.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Ratio {
    /// The case whose time is divided.
    pub(crate) over: String,
    /// The case whose time it is divided by.
    pub(crate) under: String,
    /// The number of threads that ran both.
    pub(crate) threads: usize,
    /// The scale of both cases: the numbers of CPUs and of groups.
    #[serde(flatten)]
    pub(crate) scale: Scale,
    /// The ratio over all rounds.
    #[serde(flatten)]
    pub(crate) figure: Summary,
    /// The ratio over the rounds in which both cases were quiet; absent where they are few, or all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quiet: Option<Summary>,
}

/// A benchmark case (a figure of one implementation, such as `fixed/inc`) that could not be measured, with the reason.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub(crate) struct NotRun {
    /// The name of the case.
    pub(crate) case: String,
    /// The reason why the case could not be measured.
    pub(crate) reason: String,
}

/// The sense of a target for a benchmark figure: the figure has to be at least, or at most, the limit.
#[derive(Debug, Clone, Copy, Serialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    /// At the limit or above.
    AtLeast,
    /// At the limit or below.
    AtMost,
}

/// A goal of the project for a benchmark figure, such as a ratio of at most 1.2, with the figure that was measured.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Target {
    /// The quantity that is measured.
    pub(crate) what: String,
    /// The bound that it should keep.
    pub(crate) bound: Bound,
    /// The limit that the figure is compared with.
    pub(crate) limit: f64,
    /// The unit of limit and figure: `x` for a ratio.
    pub(crate) unit: &'static str,
    /// The measured figure, compared with the limit; absent where a side of it did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) figure: Option<f64>,
    /// `true` if there is a figure and it keeps the bound.
    pub(crate) met: bool,
    /// The figure over the quiet rounds alone; absent where they are few, or all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quiet: Option<QuietFigure>,
}

/// A target's figure over those rounds of a benchmark in which probes found no core slowed by others.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct QuietFigure {
    /// The median of the quiet rounds.
    pub(crate) figure: f64,
    /// The number of quiet rounds.
    pub(crate) rounds: usize,
    /// `true` if the figure keeps the target's bound.
    pub(crate) met: bool,
}

impl Target {
    /// Creates a target (a goal of the project for the benchmark figure `what`) from its limit and the measured figure,
    /// which say if it is met; without a figure it is not measured here, and not met.
    pub(crate) fn new(
        what: impl Into<String>,
        bound: Bound,
        limit: f64,
        unit: &'static str,
        figure: impl Into<Option<f64>>,
    ) -> Self {
        let figure = figure.into();
        Target {
            what: what.into(),
            bound,
            limit,
            unit,
            figure,
            met: figure.is_some_and(|figure| bound.is_kept(limit, figure)),
            quiet: None,
        }
    }

    /// Adds the figure over the quiet rounds of the benchmark, if there are enough, and compares it with the target's
    /// bound.
    pub(crate) fn with_quiet(self, quiet: Option<Summary>) -> Self {
        let quiet = quiet.map(|quiet| QuietFigure {
            figure: quiet.median,
            rounds: quiet.rounds,
            met: self.bound.is_kept(self.limit, quiet.median),
        });
        Target { quiet, ..self }
    }
}

impl Bound {
    /// Returns `true` if a figure is on the right side of a limit.
    fn is_kept(self, limit: f64, figure: f64) -> bool {
        match self {
            Bound::AtLeast => figure >= limit,
            Bound::AtMost => figure <= limit,
        }
    }
}

impl Report {
    /// Creates an empty report of the benchmark `bench`, with the description of the machine that it ran on.
    pub(crate) fn new(bench: &'static str, machine: Machine) -> Self {
        Report {
            schema: SCHEMA,
            bench,
            machine,
            cases: Vec::new(),
            ratios: Vec::new(),
            targets: Vec::new(),
            not_run: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the case (measured figure) with a name, measured with this number of threads at this scale; `None` if it
    /// is not in the report.
    pub(crate) fn case(&self, name: &str, threads: usize, scale: Scale) -> Option<&Case> {
        self.cases.iter().find(|case| case.case == name && case.threads == threads && case.scale == scale)
    }

    /// Adds the ratio `over` / `under` of two cases (measured figures, by name) to the report, for each number of
    /// threads and each scale at which both were measured.
    pub(crate) fn compare(&mut self, over: &str, under: &str) {
        let ratios: Vec<Ratio> = self
            .cases
            .iter()
            .filter(|case| case.case == over)
            .filter_map(|case| self.ratio(case, self.case(under, case.threads, case.scale)?))
            .collect();
        self.ratios.extend(ratios);
    }

    /// Computes the ratio of two cases (measured figures of a benchmark), round by round; it gets the number of threads
    /// and the scale of the first. `None` if their rounds do not match.
    pub(crate) fn ratio(&self, over: &Case, under: &Case) -> Option<Ratio> {
        let (threads, scale) = (over.threads, over.scale);
        let ratios = ratios(&over.series, &under.series);
        let figure = Summary::of(&ratios)?;
        let is_quiet =
            |round: usize| [over, under].iter().all(|case| case.is_quiet.get(round) == Some(&true));
        let quiet = quiet::summarize(&ratios, is_quiet);
        let (over, under) = (&over.case, &under.case);
        Some(Ratio { over: over.clone(), under: under.clone(), threads, scale, figure, quiet })
    }

    /// Returns the median of the report's ratio between the cases (measured figures, by name) `over` and `under` at
    /// this number of threads and CPUs; `None` if the report has none.
    pub(crate) fn find_ratio(
        &self,
        over: &str,
        under: &str,
        threads: usize,
        cpus: Option<u32>,
    ) -> Option<f64> {
        self.find(over, under, threads, cpus).map(|ratio| ratio.figure.median)
    }

    fn find(&self, over: &str, under: &str, threads: usize, cpus: Option<u32>) -> Option<&Ratio> {
        let found = |ratio: &&Ratio| {
            ratio.over == over
                && ratio.under == under
                && ratio.threads == threads
                && (cpus.is_none() || ratio.scale.cpus == cpus)
        };
        self.ratios.iter().find(found)
    }

    /// Adds a target (a goal of the project) to the benchmark report: the ratio between the cases (measured figures, by
    /// name) `over` and `under` is to be at least or at most (`bound`) `limit`. It has no figure if the ratio was not
    /// measured.
    pub(crate) fn aim(
        &mut self,
        over: &str,
        under: &str,
        threads: usize,
        cpus: Option<u32>,
        bound: Bound,
        limit: f64,
    ) {
        let ratio = self.find(over, under, threads, cpus);
        let (figure, quiet) = (ratio.map(|ratio| ratio.figure.median), ratio.and_then(|ratio| ratio.quiet));
        let at = cpus.map_or(String::new(), |cpus| format!(", {cpus} CPUs"));
        let s = if threads == 1 { "" } else { "s" };
        let what = format!("{over} over {under}{at}, {threads} thread{s}");
        self.targets.push(Target::new(what, bound, limit, "x", figure).with_quiet(quiet));
    }

    /// Adds a remark for the report's reader; adding the same one twice has no effect.
    pub(crate) fn note(&mut self, note: &str) {
        if !self.notes.iter().any(|noted| noted == note) {
            self.notes.push(note.into());
        }
    }

    /// Records that a benchmark case (a figure of one implementation, such as `fixed/inc`) could not be measured and
    /// why; repeating it has no effect.
    pub(crate) fn skip(&mut self, case: &str, reason: &str) {
        let not_run = NotRun { case: case.into(), reason: reason.into() };
        if !self.not_run.contains(&not_run) {
            self.not_run.push(not_run);
        }
    }

    /// Writes the benchmark report as JSON.
    pub(crate) fn write_json(&self, out: &mut dyn Write) -> Result<()> {
        serde_json::to_writer_pretty(&mut *out, self)?;
        writeln!(out)?;
        Ok(())
    }

    /// Writes the report as tables for people, with colours that the stream drops where they are not wanted.
    pub(crate) fn write_table(&self, out: &mut dyn Write) -> Result<()> {
        let bold = Style::new().bold();
        writeln!(out, "{bold}tallyline-bench {}{bold:#}", self.bench)?;
        writeln!(out, "{}", self.machine)?;
        if self.machine.build == "debug" {
            writeln!(out, "This is a debug build: its figures mean nothing.")?;
        }
        self.write_cases(out)?;
        self.write_ratios(out)?;
        for not_run in &self.not_run {
            writeln!(out, "{}: {}", not_run.case, not_run.reason)?;
        }
        let has_quiet = self.cases.iter().any(|case| case.quiet.is_some())
            || self.targets.iter().any(|target| target.quiet.is_some());
        if has_quiet || !self.notes.is_empty() {
            writeln!(out)?;
        }
        if has_quiet {
            writeln!(out, "{QUIET}")?;
        }
        for note in &self.notes {
            writeln!(out, "{note}")?;
        }
        self.write_targets(out)
    }

    fn write_cases(&self, out: &mut dyn Write) -> Result<()> {
        let name = widest(self.cases.iter().map(|case| case.case.len()));
        let scale = widest(self.cases.iter().map(|case| case.scale.to_string().len()));
        let mut last = None;
        for case in &self.cases {
            if last.replace(case.threads) != Some(case.threads) {
                self.write_heading(out, case.threads)?;
            }
            write!(
                out,
                "{:name$}  {:scale$}  {}",
                case.case,
                case.scale.to_string(),
                with_unit(case.figure.median, case.unit)
            )?;
            if case.figure.rounds > 1 {
                write!(out, "  {}", spread(&case.figure))?;
            }
            write!(out, "{}", quiet_figure(case.quiet))?;
            if let Some(bandwidth) = case.gb_per_s {
                write!(out, "  {bandwidth:.1} GB/s")?;
            }
            if case.exact == Some(false) {
                write!(out, "  LOST OR DOUBLED COUNTS")?;
            }
            if let Some(caveat) = case.caveat() {
                write!(out, "  {caveat}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn write_heading(&self, out: &mut dyn Write, threads: usize) -> Result<()> {
        let bold = Style::new().bold();
        let rounds = self
            .cases
            .iter()
            .filter(|case| case.threads == threads)
            .map(|case| case.figure.rounds)
            .max()
            .unwrap_or(0);
        let s = if threads == 1 { "" } else { "s" };
        write!(out, "\n{bold}{threads} thread{s}{bold:#}")?;
        if rounds > 1 {
            write!(out, ": median of up to {rounds} rounds (middle half; all)")?;
        }
        writeln!(out)?;
        Ok(())
    }

    fn write_ratios(&self, out: &mut dyn Write) -> Result<()> {
        if self.ratios.is_empty() {
            return Ok(());
        }
        let bold = Style::new().bold();
        writeln!(out, "\n{bold}Ratios: median of the rounds' ratios (middle half; all){bold:#}")?;
        let name = |ratio: &Ratio| format!("{} over {}", ratio.over, ratio.under);
        let at = |ratio: &Ratio| {
            let s = if ratio.threads == 1 { "" } else { "s" };
            let scale = ratio.scale.to_string();
            let separator = if scale.is_empty() { "" } else { ", " };
            format!("{} thread{s}{separator}{scale}", ratio.threads)
        };
        let name_width = widest(self.ratios.iter().map(|ratio| name(ratio).len()));
        let at_width = widest(self.ratios.iter().map(|ratio| at(ratio).len()));
        for ratio in &self.ratios {
            let (figure, spread) = (with_unit(ratio.figure.median, "x"), spread(&ratio.figure));
            let quiet = quiet_figure(ratio.quiet);
            writeln!(out, "{:name_width$}  {:at_width$}  {figure}  {spread}{quiet}", name(ratio), at(ratio))?;
        }
        Ok(())
    }

    fn write_targets(&self, out: &mut dyn Write) -> Result<()> {
        if self.targets.is_empty() {
            return Ok(());
        }
        let bold = Style::new().bold();
        writeln!(out, "\n{bold}Against the targets{bold:#}")?;
        let width = widest(self.targets.iter().map(|target| target.what.len()));
        for target in &self.targets {
            let verdict = |met| {
                let (word, color) =
                    if met { ("met", AnsiColor::Green) } else { ("not met", AnsiColor::Yellow) };
                let color = color.on_default();
                format!("{color}{word}{color:#}")
            };
            let bound = match target.bound {
                Bound::AtLeast => "at least",
                Bound::AtMost => "at most",
            };
            write!(out, "{:width$}  {bound} {}: ", target.what, limit(target))?;
            match target.figure.map(|figure| with_unit(figure, target.unit)) {
                Some(figure) => write!(out, "{}  {}", figure.trim_start(), verdict(target.met))?,
                None => write!(out, "not measured here")?,
            }
            if let Some(QuietFigure { figure, rounds, met }) = target.quiet {
                let figure = with_unit(figure, target.unit);
                write!(out, "; {} in {rounds} quiet rounds  {}", figure.trim_start(), verdict(met))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

fn widest(lengths: impl Iterator<Item = usize>) -> usize {
    lengths.max().unwrap_or(0)
}

/// Returns the middle half of the rounds, and all of them.
fn spread(figure: &Summary) -> String {
    let [q1, q3, min, max] = [figure.q1, figure.q3, figure.min, figure.max].map(number);
    format!("({q1} to {q3}; {min} to {max})")
}

/// Returns the median of the quiet rounds and their number, to be appended; empty where they are few.
fn quiet_figure(quiet: Option<Summary>) -> String {
    quiet.map_or(String::new(), |quiet| format!("  quiet {} of {}", number(quiet.median), quiet.rounds))
}

/// Returns three or four significant digits, without an exponent.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "x" => format!("{:>8}x", number(value)),
        "bytes" => format!("{:>9}", bytes(value)),
        _ => format!("{:>9} {unit}", number(value)),
    }
}

/// Returns a limit as it was set: `20x`, `70 %`.
fn limit(target: &Target) -> String {
    match target.unit {
        "x" => format!("{}x", target.limit),
        "bytes" => bytes(target.limit),
        unit => format!("{} {unit}", target.limit),
    }
}

/// Megabytes of 10^6 bytes, as the targets are stated.
fn bytes(value: f64) -> String {
    if value.abs() >= 1e5 { format!("{:.2} MB", value / 1e6) } else { format!("{value:.0} bytes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(rounds: &[f64], short: usize) -> Case {
        let outcome = SideResult { rounds: rounds.to_vec(), short, quiet: Vec::new(), exact: None };
        Case::measured("side", 1, Scale::default(), "ns/op", outcome).expect("a case")
    }

    #[test]
    fn rounds_that_were_too_short_or_interrupted_are_told() {
        let mut rounds = vec![7.0; 18];
        assert_eq!(case(&rounds, 0).caveat(), None);
        rounds.extend([1177.0, 14.1]);
        let one = case(&rounds, 1);
        assert_eq!((one.short_rounds, one.interrupted_rounds), (Some(1), 2));
        assert_eq!(one.caveat().as_deref(), Some("2 of 20 rounds interrupted"));
        let both = case(&rounds, 3);
        assert_eq!(both.caveat().as_deref(), Some("3 of 20 rounds too short, 2 of 20 rounds interrupted"));
        let json = serde_json::to_value(&both).expect("JSON");
        assert_eq!((&json["short_rounds"], &json["interrupted_rounds"]), (&3.into(), &2.into()));
    }

    #[test]
    fn quiet_rounds_are_judged_on_their_own() {
        let case = |name: &str, busy: f64, free: f64, quiet_rounds: usize| {
            let rounds = [vec![busy; 30], vec![free; quiet_rounds]].concat();
            let quiet = [vec![false; 30], vec![true; quiet_rounds]].concat();
            let outcome = SideResult { rounds, short: 0, quiet, exact: None };
            Case::measured(name, 1, Scale::default(), "ns/op", outcome).expect("a case")
        };
        for (quiet_rounds, expected) in
            [(quiet::MIN_QUIET_ROUNDS - 1, None), (quiet::MIN_QUIET_ROUNDS, Some(1.5))]
        {
            let mut report = Report::new("update", Machine::describe(crate::sides::c::COMPILER));
            report.cases.extend([case("a", 8.0, 3.0, quiet_rounds), case("b", 4.0, 2.0, quiet_rounds)]);
            report.compare("a", "b");
            report.aim("a", "b", 1, None, Bound::AtMost, 1.6);
            let target = &report.targets[0];
            assert_eq!((target.figure, target.met), (Some(2.0), false));
            assert_eq!(target.quiet.map(|quiet| quiet.figure), expected);
            assert!(target.quiet.is_none_or(|quiet| quiet.met && quiet.rounds == quiet_rounds));
            let mut text = Vec::new();
            report.write_table(&mut text).expect("written");
            let text = String::from_utf8(text).expect("UTF-8");
            assert_eq!(text.contains("1.500x in 9 quiet rounds"), expected.is_some(), "{text}");
        }
    }

    #[test]
    fn a_target_whose_side_did_not_run_is_shown_without_a_figure() {
        let mut report = Report::new("update", Machine::describe(crate::sides::c::COMPILER));
        report.cases.push(case(&[7.0; 20], 0));
        report.aim("side", "other", 2, None, Bound::AtMost, 1.1);
        let json = serde_json::to_value(&report.targets[0]).expect("JSON");
        assert_eq!((json.get("figure"), &json["met"]), (None, &false.into()));
        let mut text = Vec::new();
        report.write_table(&mut text).expect("written");
        let text = String::from_utf8(text).expect("UTF-8");
        let line = text.lines().find(|line| line.starts_with("side over other, 2 threads"));
        assert!(line.is_some_and(|line| line.ends_with(": not measured here")), "{text}");
    }

    #[test]
    fn the_table_says_which_side_was_disturbed() {
        let mut report = Report::new("update", Machine::describe(crate::sides::c::COMPILER));
        report.cases.push(case(&[7.0; 20], 5));
        report.cases.push(case(&[7.0; 20], 0));
        let mut text = Vec::new();
        report.write_table(&mut text).expect("written");
        let text = String::from_utf8(text).expect("UTF-8");
        assert_eq!(text.matches("rounds too short").count(), 1, "{text}");
    }
}
