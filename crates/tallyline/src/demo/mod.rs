//! `tallyline demo`: from a slow program to a faster one, in the steps that a user takes: record, find, advise, apply,
//! verify, measure.
//!
//! The first thing that a new user runs: it needs what built it, cargo and its compiler, neither hardware counters nor
//! privileges, and leaves nothing but its page. [`project`] has the program that comes with it, a gateway whose workers
//! count in neighbouring elements of an array; [`samples`] finds the type by samples of the clock; [`prediction`] asks
//! `tallyline advise`, where QEMU is there. The edit, its verification and the measurement are those of
//! `tallyline reorganize --apply`. [`counters`] is the comparison of counters.

mod counters;
mod page;
mod prediction;
mod project;
mod samples;

use crate::apply::{self, ApplyArgs, NewLayout, Target};
use crate::interrupt;
use crate::layout::source;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use prediction::Prediction;
use project::Project;
use samples::HotType;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tallyline_debuginfo::lookup::Definitions;
use tallyline_debuginfo::{Request, Wanted};
use tallyline_support::cpus::allowed_cpus;
use tallyline_support::output::{Color, Output};
use tallyline_support::replacement::Replacement;

/// Options of `tallyline demo`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    #[command(subcommand)]
    part: Option<Part>,

    /// Only show that it works, in a few seconds; the figures mean little
    #[arg(long)]
    quick: bool,

    /// Write an HTML page of all steps to this file [default: tallyline-demo.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Do not write an HTML page
    #[arg(long, conflicts_with = "output")]
    no_html: bool,
}

/// Other demonstrations.
#[derive(Debug, Subcommand)]
enum Part {
    /// Compare the cost of shared atomics and statctr counters
    Counters(counters::CountersArgs),
}

const EXAMPLES: &str = "\
Examples:
  tallyline demo              from a slow program to a faster one, and tallyline-demo.html
  tallyline demo counters     what counting costs here, in half a minute

Needs rustc (or the compiler named by RUSTC). With QEMU's user-mode emulation and a C compiler, the speed-up is predicted, too.";

/// The default path of a page.
const PAGE: &str = "tallyline-demo.html";

/// Bytes of a cache line.
const LINE: u64 = 64;

/// The speed-up below which the edit is not kept.
const LEAST: f64 = 1.05;

/// The error that ends the demo after Ctrl-C was pressed.
#[derive(Debug)]
struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped by Ctrl-C; nothing was written")
    }
}

impl std::error::Error for Stopped {}

impl Stopped {
    fn check() -> Result<(), Stopped> {
        if interrupt::asked() { Err(Stopped) } else { Ok(()) }
    }
}

/// Runs the sub-command `tallyline demo`: finds, edits and measures false sharing in a small program, step by step.
pub(crate) fn run(args: &DemoArgs, color: Color) -> Result<()> {
    if let Some(Part::Counters(args)) = &args.part {
        return counters::run(args, color);
    }
    match show(args, color) {
        // what a child says of its end by Ctrl-C is beside the point
        Err(_) if interrupt::asked() => {
            eprintln!("tallyline: {Stopped}");
            interrupt::end()
        }
        other => other,
    }
}

/// The results of all steps.
struct Steps {
    /// Packets of each worker in a measured run.
    packets: u64,
    before: HotType,
    size: u64,
    prediction: Result<Prediction, String>,
    patch: String,
    new_size: u64,
    speed_up: apply::SpeedUp,
    /// The samples with the edit; none where it was not kept.
    after: Option<HotType>,
    /// CPUs that the program may use.
    cpus: usize,
}

fn show(args: &DemoArgs, color: Color) -> Result<()> {
    let path = match &args.output {
        Some(path) => Some(path.as_path()),
        None if args.no_html => None,
        None => Some(Path::new(PAGE)),
    };
    // before there is a file to leave behind
    interrupt::listen()?;
    // before the steps: nobody waits to hear that a file cannot be written
    let cannot = |path: &Path| {
        format!("cannot write {}; name another file with -o, or do without with --no-html", path.display())
    };
    let page = path.map(|path| Replacement::create(path).with_context(|| cannot(path))).transpose()?;
    let output = Output::open(None, color)?;
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(ProgressStyle::with_template("{spinner} {msg}").context("cannot draw a bar")?);
    bar.enable_steady_tick(Duration::from_millis(200));
    let steps = steps(args.quick, &bar);
    bar.finish_and_clear();
    let steps = steps?;
    Stopped::check()?;
    if let Some(mut page) = page {
        let path = page.path().to_path_buf();
        page.write_all(page::render(&steps)?.as_bytes()).with_context(|| cannot(&path))?;
        page.finish().with_context(|| cannot(&path))?;
    }
    output.write(|out| write(&steps, path, out))
}

/// Goes from the program as it is to the faster one.
fn steps(quick: bool, bar: &ProgressBar) -> Result<Steps> {
    bar.set_message("building a gateway in small, and recording it");
    let project = Project::create()?;
    project.build()?;
    Stopped::check()?;
    let packets = project.packets(if quick { 0.02 } else { 0.3 })?;
    let before = samples::hottest(&project, packets)?;
    Stopped::check()?;
    let Some(before) = before else {
        bail!(
            "the clock's samples name no type that two threads write: `tallyline doctor` says what recording lacks; \
             `tallyline demo counters` needs none"
        );
    };
    bar.set_message("tracing it, and predicting the speed-up");
    let prediction = prediction::of(&project, &before.name, quick);
    Stopped::check()?;

    bar.set_message("editing its source, building both, measuring in pairs");
    let program = project.program();
    let request = Request {
        wanted: Wanted::named([before.name.as_str()]),
        positions: true,
        exact: true,
        ..Request::default()
    };
    let types = source::read(&program, &request, None)?;
    let ids = Definitions::new(&types).called(before.name.as_bytes());
    let (record, found) = ids
        .into_iter()
        .find_map(|id| types.as_record(types.strip(id)))
        .with_context(|| format!("{}: no {} in its debug information", program.display(), before.name))?;
    let (size, new_size) = (found.size, found.size.next_multiple_of(LINE));
    let new = NewLayout { align: Some(LINE), size: new_size, ..NewLayout::default() };
    let target = Target::of_layout(&types, &before.name, record, &new)
        .map_err(|why| anyhow::anyhow!("{}: {why}", before.name))?;
    let promised = target.promised.clone();
    let arguments = ApplyArgs {
        apply: true,
        build: Some(project.build_command()),
        measure: Some(project.run_command(packets)),
        pairs: if quick { 2 } else { 9 },
        keep_if: Some(if quick { 0.0 } else { LEAST }),
        root: Some(project.folder().to_path_buf()),
        ..ApplyArgs::default()
    };
    let plan = apply::plan(
        &program,
        vec![target],
        &|some| some.iter().map(|_| Some(promised.clone())).collect(),
        &arguments,
    )?;
    if let Some((_, Some(refused))) = plan.targets.first() {
        bail!("{}: not edited: {refused}", before.name);
    }
    let applied = apply::carry_out(&plan, &program, &arguments)?.context("the source is not edited")?;
    let speed_up = applied.speed_up().context("nothing was measured")?.clone();
    Stopped::check()?;
    let after = match applied.is_kept() {
        true => {
            project.build()?;
            Some(samples::of_type(&project, packets, &before.name)?)
        }
        false => None,
    };
    Ok(Steps {
        packets,
        before,
        size,
        prediction,
        patch: String::from_utf8_lossy(&plan.patch()).into_owned(),
        new_size,
        speed_up,
        after,
        cpus: allowed_cpus().context("cannot read the CPUs that this process may use")?.len(),
    })
}

impl Steps {
    /// Returns each step: its name, and its result in lines.
    fn lines(&self) -> Vec<(&'static str, Vec<String>)> {
        let before = &self.before;
        let fields = |of: &HotType| {
            let fields = of.fields.iter().map(|field| format!("{} {}", field.name, percent(field.share)));
            fields.collect::<Vec<_>>().join(", ")
        };
        let predicted = match &self.prediction {
            Ok(Prediction { low, median, high }) => format!(
                "predicted by a model, not measured: {median:.1} times the speed ({low:.1} to {high:.1})"
            ),
            Err(why) => format!("no prediction: {why}"),
        };
        let mut measured = vec![self.measured()];
        measured.extend(self.after.as_ref().map(|after| {
            let share = self.of_before(after.share);
            let name = &before.name;
            format!(
                "time at {name}: {} of a run before, {} of that time now",
                percent(before.share),
                percent(share)
            )
        }));
        measured.extend(self.doubts());
        vec![
            (
                "record",
                vec![format!("{} samples of the clock; no hardware counters, no privileges", before.samples)],
            ),
            (
                "find",
                vec![
                    format!("{} of them at {}: {}", percent(before.share), before.name, fields(before)),
                    format!(
                        "{} threads write objects of {} bytes, which share a cache line of {LINE}",
                        before.writers, self.size
                    ),
                ],
            ),
            (
                "advise",
                vec![format!("a line for each: {} instead of {} bytes", self.new_size, self.size), predicted],
            ),
            ("apply", self.changed()),
            (
                "verify",
                vec![format!("built again: {} has {} bytes, as promised", before.name, self.new_size)],
            ),
            ("measure", measured),
        ]
    }

    /// Returns the measured speed-up, and the decision.
    fn measured(&self) -> String {
        let apply::SpeedUp { low, median, high, pairs, .. } = self.speed_up;
        let decision = match self.after {
            Some(_) if median >= LEAST => "kept".to_owned(),
            Some(_) => "kept, as a quick run does not tell".to_owned(),
            None => format!("not kept, as it is less than {LEAST} on this machine"),
        };
        format!(
            "{median:.2} times the speed (middle half {low:.2} to {high:.2} of {pairs} pairs of runs): {decision}"
        )
    }

    /// Returns the part of a run's time before the edit that a part of a run with it takes.
    fn of_before(&self, share: f64) -> f64 {
        share / self.speed_up.median.max(1e-9)
    }

    /// Returns the reasons for which a figure says less than on an idle machine with more than one CPU.
    fn doubts(&self) -> Option<String> {
        /// CPUs of two workers, less what starting and ending take.
        const BOTH: f64 = 1.6;
        match (self.cpus, self.speed_up.cpus) {
            (1, _) => Some(
                "this machine lets the program use one CPU: its workers run in turn, and no line moves between CPUs".to_owned(),
            ),
            (_, Some(cpus)) if cpus < BOTH => Some(format!(
                "the two workers had {cpus:.1} CPUs together: other programs ran, and made the difference smaller"
            )),
            _ => None,
        }
    }

    /// Returns the lines that the patch adds.
    fn changed(&self) -> Vec<String> {
        let added = self.patch.lines().filter(|line| line.starts_with('+') && !line.starts_with("+++"));
        added.map(|line| format!("{}: {line}", project::SOURCE)).collect()
    }
}

fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

fn write(steps: &Steps, page: Option<&Path>, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "From a slow program to a faster one: {}\n", project::ABOUT)?;
    for (number, (name, lines)) in steps.lines().into_iter().enumerate() {
        for (at, line) in lines.iter().enumerate() {
            match at {
                0 => writeln!(out, "{} {name:<8} {line}", number + 1)?,
                _ => writeln!(out, "{:10} {line}", "")?,
            }
        }
    }
    writeln!(out)?;
    if let Some(page) = page {
        writeln!(out, "Each step with its cache lines: {}", page.display())?;
    }
    writeln!(out, "For your program: tallyline advise --apply --build BUILD --measure COMMAND -- COMMAND")?;
    Ok(())
}
