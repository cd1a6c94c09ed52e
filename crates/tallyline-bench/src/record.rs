//! `tallyline-bench record`: what it costs a program to be recorded.
//!
//! This process does the same work again and again, now with `tallyline record` attached to it, now
//! without; each pair of phases gives one ratio. In a third phase the same event interrupts it as often and
//! writes nothing: what no recorder can do without. Time is that on the CPU, as the scheduler counts it:
//! what other programs take away is not in it, what interrupts and cold caches take is.

use super::report::{Bound, Case, Report, Scale, Target};
use super::{os, progress};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tallyline_perf_data::recorder::{Pmus, SamplingInterrupts, parse};

/// Pairs where nobody says otherwise.
const ROUNDS: usize = 15;

/// The time that the recorder may take until it samples.
const PATIENCE: Duration = Duration::from_secs(10);

/// Command-line options of the benchmark `record` (the slowdown of a sampled program): the recorder's options, and the
/// rounds.
#[derive(Debug, Args)]
pub(crate) struct RecordBenchOptions {
    /// Samples per second
    #[arg(short = 'F', long = "freq", value_name = "FREQ", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    frequency: u64,

    /// The event to sample [default: as for tallyline record]
    #[arg(short, long, value_name = "EVENT")]
    event: Option<String>,

    /// Record call chains
    #[arg(short = 'g')]
    call_chains: bool,

    /// Number of pairs of phases of one second each
    #[arg(long, value_name = "N", value_parser = super::positive)]
    rounds: Option<usize>,

    /// Only show that it works: two short pairs
    #[arg(long)]
    pub(super) quick: bool,

    /// Write JSON (`schema` 1) instead of a table
    #[arg(long)]
    pub(super) json: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

/// Nanoseconds on the CPU in each phase.
#[derive(Default)]
struct Times {
    alone: Vec<f64>,
    /// With nothing but the event's interrupts.
    interrupted: Vec<f64>,
    recorded: Vec<f64>,
    /// Of the recorder itself while it records.
    recorder: Vec<f64>,
}

/// Runs the benchmark `record`: the slowdown of a program that `tallyline record` samples.
pub(crate) fn run(options: &RecordBenchOptions, report: &mut Report) -> Result<()> {
    // the recorder has the other CPUs
    if let Some(cpu) = os::allowed_cpus().ok().and_then(|cpus| cpus.last().copied()) {
        os::pin(cpu).context("cannot stay on one CPU")?;
    }
    if on_cpu("/proc/thread-self/schedstat").is_none() {
        report.skip("record", "this kernel does not count time on the CPU (CONFIG_SCHED_INFO)");
        return Ok(());
    }
    let folder = std::env::temp_dir().join(format!("tallyline-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).with_context(|| format!("cannot write to {}", folder.display()))?;
    let result = measure(options, &folder, report);
    let _ = fs::remove_dir_all(&folder);
    let Some(times) = result? else { return Ok(()) };

    let title = format!("{} samples a second", options.frequency);
    let [alone, interrupted, recorded, both] =
        ["alone", "only interrupted", "recorded", "with recorder"].map(|side| format!("{title}/{side}"));
    let total =
        times.recorded.iter().zip(&times.recorder).map(|(program, recorder)| program + recorder).collect();
    let series = [
        (&alone, times.alone),
        (&interrupted, times.interrupted),
        (&recorded, times.recorded),
        (&both, total),
    ];
    for (name, series) in series {
        report.cases.extend(Case::new(name, 1, Scale::default(), "ns", series));
    }
    report.compare(&interrupted, &alone);
    report.compare(&recorded, &alone);
    report.compare(&recorded, &interrupted);
    report.compare(&both, &alone);
    for (what, over, under) in [
        ("the program recorded over alone", &recorded, &alone),
        ("recorded over only interrupted", &recorded, &interrupted),
        ("with the recorder's own time", &both, &alone),
    ] {
        if let Some(figure) = report.find_ratio(over, under, 1, None) {
            report.targets.push(Target::new(format!("{title}, {what}"), Bound::AtMost, 1.01, "x", figure));
        }
    }
    report.note("time on the CPU for the same work, phases with and without the recorder in turn");
    report.note("only interrupted: the same event as often, which writes nothing; no recorder costs less");
    Ok(())
}

fn measure(options: &RecordBenchOptions, folder: &Path, report: &mut Report) -> Result<Option<Times>> {
    let events: Vec<String> = options.event.iter().cloned().collect();
    let events = parse(&events, &Pmus::default()).map_err(|reason| anyhow!("{reason}"))?;
    let rounds = options.rounds.unwrap_or(if options.quick { 2 } else { ROUNDS });
    let phase = Duration::from_millis(if options.quick { 50 } else { 1000 });
    let mut work = Work::new();
    let steps = work.steps_for(phase);
    let bar = progress("record");
    let mut times = Times::default();
    for round in 0..rounds {
        bar.show(round as u64, rounds as u64);
        // each comes first in turn
        let mut sides = [Side::NoCompanions, Side::Interrupted, Side::Recorded];
        sides.rotate_left(round % 3);
        for side in sides {
            if side == Side::NoCompanions {
                times.alone.push(work.time(steps)?);
                continue;
            }
            if side == Side::Interrupted {
                // where it is forbidden recording is, too, and says why
                if let Ok(_interrupts) = SamplingInterrupts::start(&events, options.frequency) {
                    times.interrupted.push(work.time(steps)?);
                }
                continue;
            }
            let recorder = match Recorder::start(options, &folder.join("perf.data")) {
                Ok(recorder) => recorder,
                Err(error) => {
                    report.skip("record", &format!("{error:#}"));
                    return Ok(None);
                }
            };
            let before = recorder.on_cpu()?;
            times.recorded.push(work.time(steps)?);
            times.recorder.push(recorder.on_cpu()? - before);
            recorder.stop()?;
        }
    }
    Ok(Some(times))
}

/// The condition that the work of a phase runs under.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    NoCompanions,
    Interrupted,
    Recorded,
}

/// Returns nanoseconds that a task was on a CPU.
fn on_cpu(path: &str) -> Option<f64> {
    fs::read_to_string(path).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

/// A walk through memory that the second-level cache holds, with some arithmetic.
struct Work {
    next: Vec<u32>,
    place: u32,
}

impl Work {
    const ENTRIES: u32 = 1 << 15;

    fn new() -> Self {
        // an odd stride visits all
        let next = (0..Self::ENTRIES).map(|index| (index + 7919) % Self::ENTRIES).collect();
        Self { next, place: 0 }
    }

    fn step(&mut self, steps: u64) {
        for _ in 0..steps {
            self.place = black_box(self.next[self.place as usize]);
        }
    }

    /// Returns the number of steps that take so long.
    fn steps_for(&mut self, phase: Duration) -> u64 {
        const TRIAL: u64 = 1 << 20;
        self.step(TRIAL);
        let start = Instant::now();
        self.step(TRIAL);
        let ratio = phase.as_secs_f64() / start.elapsed().as_secs_f64().max(1e-9);
        (TRIAL as f64 * ratio) as u64
    }

    fn time(&mut self, steps: u64) -> Result<f64> {
        const TASK: &str = "/proc/thread-self/schedstat";
        let read = || on_cpu(TASK).with_context(|| format!("cannot read {TASK}"));
        let before = read()?;
        self.step(steps);
        Ok(read()? - before)
    }
}

/// The process of `tallyline record`, attached to this one.
struct Recorder {
    child: Child,
    file: PathBuf,
}

impl Recorder {
    fn start(options: &RecordBenchOptions, file: &Path) -> Result<Self> {
        let _ = fs::remove_file(file);
        let mut command = Command::new(crate::tool()?);
        command.args([
            "record",
            "-q",
            "-p",
            &std::process::id().to_string(),
            "-F",
            &options.frequency.to_string(),
        ]);
        if let Some(event) = &options.event {
            command.args(["-e", event]);
        }
        if options.call_chains {
            command.arg("-g");
        }
        // it ends with its command, which ends with its input
        command.arg("-o").arg(file).args(["--", "cat"]);
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run this program")?;
        let mut recorder = Self { child, file: file.to_owned() };
        recorder.wait_until_it_samples()?;
        Ok(recorder)
    }

    /// Waits until the recorder samples: it writes what existed before once the events count, more than a header.
    fn wait_until_it_samples(&mut self) -> Result<()> {
        let start = Instant::now();
        while fs::metadata(&self.file).map_or(0, |file| file.len()) < 1024 {
            if self.child.try_wait().context("cannot wait for the recorder")?.is_some() {
                bail!("{}", self.complaint());
            }
            if start.elapsed() > PATIENCE {
                bail!("the recorder did not begin within {PATIENCE:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // its start is not what is measured
        std::thread::sleep(Duration::from_millis(100));
        Ok(())
    }

    fn complaint(&mut self) -> String {
        let mut text = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            let _ = std::io::Read::read_to_string(stderr, &mut text);
        }
        text.trim().trim_start_matches("tallyline: ").to_owned()
    }

    fn on_cpu(&self) -> Result<f64> {
        let path = format!("/proc/{}/schedstat", self.child.id());
        on_cpu(&path).with_context(|| format!("cannot read {path}"))
    }

    fn stop(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait().context("cannot wait for the recorder")?;
        if !status.success() {
            bail!("the recorder failed: {}", self.complaint());
        }
        Ok(())
    }
}
