//! `tallyline advise`: what to change in a program's data, with evidence and the effect by a model.

mod args;
mod attach;
mod code_log;
mod edits;
mod json;
mod load;
mod model;
mod names;
mod observed_run;
mod recording;
mod text;
mod traced_run;
mod undebugged;
mod window;

pub(crate) use args::{AdviseArgs, ModelArgs};
pub(crate) use model::{ModelledTrace, evidence_of};
pub(crate) use window::sample;

use crate::apply;
use anyhow::{Context, Result, anyhow};
use edits::Edits;
use load::{CommandRun, RunTime};
use observed_run::ObservedRun;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tallyline_advice::evidence::Evidence;
use tallyline_advice::{AddressMap, Finding, Model, predict, rules, run_times};
use tallyline_support::output::{Color, Output};
use tallyline_timing::Code;
use tallyline_trace::Trace;
use tallyline_trace::coherence::Excerpt;
use tallyline_trace::emulator;
use traced_run::TracedRun;
use window::Window;

/// The most proposals whose effect is predicted.
const PREDICTED: usize = 8;

/// The most waits without a finding that are named.
const WAITS: usize = 3;

/// The evidence that advice is based on: a trace replayed in a simulation, or accesses observed by samples and
/// breakpoints.
pub(crate) enum Basis {
    /// A trace on a model: the evidence is in cycles.
    Model(Model),
    /// Samples, with or without breakpoints: the evidence is in samples.
    Observed(ObservedRun),
}

/// The result of `tallyline advise`: findings (contended counters, false sharing, bad layouts) with their evidence, the
/// basis of that, and notes.
pub(crate) struct Advice {
    pub(crate) evidence: Evidence,
    pub(crate) findings: Vec<Finding>,
    pub(crate) basis: Basis,
    pub(crate) process: u32,
    pub(crate) machine: String,
    pub(crate) accesses: u64,
    /// Proposals that the model did not confirm.
    pub(crate) dropped: Vec<Finding>,
    /// The functions that were traced; none where all were.
    pub(crate) window: Option<WindowSummary>,
    /// Seconds of the run under QEMU; none of a trace that was there.
    pub(crate) traced_seconds: Option<f64>,
    /// Seconds of that run after which its trace had the largest size; none where it stayed below.
    pub(crate) full_after: Option<f64>,
    pub(crate) notes: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

/// A summary of a traced run of a program of which only some functions were traced: their number, their share of the
/// clock samples, and the slowdown by tracing.
pub(crate) struct WindowSummary {
    pub(crate) functions: usize,
    /// Samples of the clock, and those in the functions.
    pub(crate) samples: (u64, u64),
    /// Samples in loops that only wait for other threads, which are not traced.
    pub(crate) waiting: u64,
    /// The functions with these loops, those with the most samples first.
    pub(crate) waiting_in: Vec<String>,
    /// The traced run's time over the plain one's, for the same work; none where their work differs.
    pub(crate) slowdown: Option<f64>,
    /// The plain and the traced run.
    pub(crate) times: Option<(RunTime, RunTime)>,
    /// The trace had its largest size before the end, and the rest of the run was not traced.
    pub(crate) is_full: bool,
}

impl WindowSummary {
    fn new(window: &Window, times: Option<(RunTime, RunTime)>, is_full: bool) -> Self {
        let is_same = |plain: RunTime, traced: RunTime| !is_full && !plain.is_cut && !traced.is_cut;
        let slowdown = times.filter(|(plain, traced)| is_same(*plain, *traced) && plain.seconds > 0.0);
        Self {
            functions: window.len(),
            samples: window.samples,
            waiting: window.waiting,
            waiting_in: window.waiting_in.clone(),
            slowdown: slowdown.map(|(plain, traced)| traced.seconds / plain.seconds),
            times,
            is_full,
        }
    }

    /// Returns the summary as a note.
    fn note(&self) -> String {
        let (all, inside) = self.samples;
        let percent = |part: u64| 100.0 * part as f64 / all.max(1) as f64;
        let share = percent(inside);
        let price = match (self.slowdown, self.times) {
            (Some(times), _) => format!(", at {times:.1} times the run's time"),
            (None, _) if self.is_full => {
                "; the trace was full before the run's end, so the slow-down is not known (a smaller load, or a larger \
                 --max-size, tells it)"
                    .to_owned()
            }
            (None, Some((plain, traced))) => format!(
                "; the time was up after {:.0} s, and after {:.0} s under QEMU, so the slow-down is not known (a --load \
                 that ends by itself tells it)",
                plain.seconds, traced.seconds
            ),
            (None, None) => String::new(),
        };
        let mut note = format!(
            "only {} functions were traced, which {share:.1} % of {all} samples of the clock fell on{price}; --whole \
             traces all",
            self.functions
        );
        if self.waiting > 0 {
            const SHOWN: usize = 4;
            let more = if self.waiting_in.len() > SHOWN { ", …" } else { "" };
            let names = self.waiting_in.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
            note += &format!(
                "; {:.1} % fell on loops that only wait for other threads ({names}{more}), whose time and reads are left out",
                percent(self.waiting)
            );
        }
        note
    }
}

/// Runs the sub-command `tallyline advise`: prints findings about a program's data (contended counters, false sharing,
/// bad layouts), and applies them if asked.
pub(crate) fn run(args: &AdviseArgs, color: Color) -> Result<()> {
    let output = Output::open(args.output.as_deref(), color)?;
    if args.apply.undo {
        let restored = apply::undo(&args.apply)?;
        return output.write(|out| {
            restored.iter().try_for_each(|path| Ok(writeln!(out, "restored {}", path.display())?))
        });
    }
    let folder = TemporaryFolder::new()?;
    let observed = match (args.pid, &args.recording) {
        (Some(pid), _) => Some(attach::advise(args, pid, &folder.0)?),
        (None, Some(path)) => Some(recording::advise(args, path)?),
        (None, None) => None,
    };
    if let Some(advice) = observed {
        return show(args, &advice, output);
    }
    let path = match (&args.trace, &args.keep_trace) {
        (Some(path), _) => path.clone(),
        (None, Some(path)) => path.clone(),
        (None, None) => folder.0.join("advise.trace"),
    };
    if args.trace.is_none() {
        find_program(&args.command)?;
    }
    let window = match args.trace.is_none() && !args.whole {
        true => window(args, &folder.0, args.command_output()?.as_ref())?,
        false => None,
    };
    let traced = match args.trace.is_none() {
        true => Some(TracedRun::of_even_threads(
            args,
            &folder.0,
            &path,
            window.as_ref().map(|(window, _)| window),
        )?),
        false => None,
    };
    let full_after = traced.as_ref().and_then(|traced| traced.full_after);
    let mut advice = advise(args, &path, full_after)?;
    let traced_time = traced.as_ref().map(|traced| traced.time);
    advice.window = window
        .as_ref()
        .map(|(window, plain)| WindowSummary::new(window, plain.zip(traced_time), full_after.is_some()));
    advice.traced_seconds = traced_time.map(|time| time.seconds);
    advice.notes.extend(advice.window.as_ref().map(WindowSummary::note));
    let failed = traced.and_then(|traced| traced.failed);
    advice.notes.extend(failed.map(|status| format!("the traced command failed ({status})")));
    show(args, &advice, output)
}

/// Fails if there is no program of the command's name: it would be sampled first, and only said not to be sampled.
fn find_program(command: &[OsString]) -> Result<()> {
    let program = command.first().context("no command")?;
    emulator::find(program)
        .map(drop)
        .with_context(|| format!("{}: no such program", Path::new(program).display()))
}

/// Writes advice, and carries it out where that is asked for.
fn show(args: &AdviseArgs, advice: &Advice, output: Output) -> Result<()> {
    for warning in &advice.warnings {
        eprintln!("tallyline: {warning}");
    }
    let edits = match args.apply.edits() {
        true => Edits::plan(advice, args)?,
        false => None,
    };
    let done = edits.map(|edits| edits.carry_out(args)).transpose()?;
    output.write(|out| match &done {
        _ if args.json => json::write(advice, done.as_ref(), out),
        Some(done) if args.apply.patch => Ok(out.write_all(&done.patch())?),
        done => {
            text::write(advice, args.limit, out)?;
            done.as_ref().map_or(Ok(()), |done| done.write(out))
        }
    })?;
    done.map_or(Ok(()), |done| done.complain())
}

/// Samples the command, and returns its hot functions, or those that were named, with the time that it ran; none where
/// it cannot be sampled and none are named.
fn window(
    args: &AdviseArgs,
    folder: &Path,
    stdout: Option<&File>,
) -> Result<Option<(Window, Option<RunTime>)>> {
    let recording = folder.join("samples.data");
    // names that the program does not have are known before it runs
    let named = match args.functions.as_slice() {
        [] => None,
        names => Some(Window::of_names(names, &args.command)?),
    };
    let run = CommandRun::begin(args.load.as_deref(), args.seconds);
    let sampled = window::sample(&args.command, recording.clone(), &|| run.is_over(), stdout);
    let time = run.finish();
    if let Err(error) = sampled {
        match &named {
            Some(_) => eprintln!("tallyline: the command cannot be sampled ({error:#})"),
            None => eprintln!("tallyline: the command cannot be sampled ({error:#}): all of it is traced"),
        }
        return Ok(named.map(|window| (window, None)));
    }
    let seconds = Some(time?);
    if let Some(mut window) = named {
        window.count(&recording)?;
        return Ok(Some((window, seconds)));
    }
    let window = Window::of_recording(&recording)?;
    if window.is_none() {
        eprintln!("tallyline: {}: all of the command is traced", no_hot_functions(&recording)?);
    }
    Ok(window.map(|window| (window, seconds)))
}

/// Samples outside of loops that wait from which only missing symbols keep hot functions from being found.
const ENOUGH_SAMPLES: u64 = 50;

/// Says why no hot functions are found in a recording.
fn no_hot_functions(recording: &Path) -> Result<String> {
    let mut samples = Window::default();
    samples.count(recording)?;
    let working = samples.samples.0 - samples.waiting;
    Ok(match working < ENOUGH_SAMPLES {
        true => format!("{working} samples of the clock are too few to find hot functions"),
        false => format!(
            "none of {working} samples of the clock fell on a function with a symbol, so that hot functions cannot be found \
             (build the program with -g, and do not strip it)"
        ),
    })
}

/// A folder for what the command needs, that goes with it.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("tallyline-advise-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Advises on a trace, which had its largest size after so many seconds.
fn advise(args: &AdviseArgs, path: &Path, full_after: Option<f64>) -> Result<Advice> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    let trace = Trace::open(&file).with_context(|| name.to_string())?;
    let ModelledTrace { model, process, excerpt, code, evidence, runs, mut warnings } =
        model::evidence_of(&args.model, &trace).with_context(|| name.to_string())?;
    let mut candidates = rules::findings(&evidence);
    // of what is applied the effect is on top of nothing else
    let mut first_candidates = match args.apply.edits() {
        true => rules::edits(&evidence),
        false => Vec::new(),
    };
    if args.apply.edits() {
        candidates.retain(|candidate| !candidate.is_edit(&evidence));
    }
    let (refused, mut candidates): (Vec<_>, Vec<_>) = candidates.into_iter().partition(Finding::is_refused);
    first_candidates.truncate(PREDICTED);
    candidates.truncate(PREDICTED);
    let mut findings = Vec::new();
    let mut dropped = Vec::new();
    if !candidates.is_empty() || !first_candidates.is_empty() {
        let mut before: Vec<(u64, u64)> = runs.iter().map(run_times).collect();
        let more = model.run_all(&excerpt, &code, None, runs.len() as u64..model.seeds);
        before.extend(more.map_err(|why| anyhow!("{name}: {why}"))?.iter().map(run_times));
        let mut confirmed = Confirmed { before, ..Confirmed::default() };
        for candidates in [first_candidates, candidates] {
            confirmed.add(&excerpt, &model, &code, candidates).map_err(|why| anyhow!("{name}: {why}"))?;
        }
        (findings, dropped) = (confirmed.findings, confirmed.dropped);
    }
    dropped.extend(refused);
    warnings.sort();
    warnings.dedup();
    let mut notes = notes(&trace, process, full_after);
    if findings.is_empty() {
        notes.extend(undebugged::note(&trace, process, args.model.symfs.as_deref()));
    }
    let waits = rules::left_open(&evidence, &findings, &dropped);
    notes.extend(waits.iter().take(WAITS).map(|field| text::wait_left_open(&evidence, field)));
    let accesses = trace.threads().iter().filter(|thread| thread.process() == process);
    Ok(Advice {
        accesses: accesses.map(|thread| thread.accesses()).sum(),
        machine: trace.header().machine().to_owned(),
        evidence,
        findings,
        basis: Basis::Model(model),
        process,
        dropped,
        window: None,
        traced_seconds: None,
        full_after,
        notes,
        warnings,
    })
}

/// Findings that the model confirms, and others.
#[derive(Default)]
struct Confirmed {
    findings: Vec<Finding>,
    dropped: Vec<Finding>,
    /// The changes of the findings together.
    taken: Option<AddressMap>,
    /// The end and the cores' time of each schedule with these changes.
    before: Vec<(u64, u64)>,
}

impl Confirmed {
    /// Tells the candidates that the model confirms from the others. Each is predicted alone; the best is taken, and the
    /// rest is predicted again on top of those that were taken: what one cures, another does not have to.
    fn add(
        &mut self,
        excerpt: &Excerpt<'_>,
        model: &Model,
        code: &dyn Code,
        mut candidates: Vec<Finding>,
    ) -> Result<(), String> {
        let mut evident: Vec<_> = candidates.iter().map(|candidate| candidate.confidence).collect();
        let with_taken = |map: &AddressMap, taken: &Option<AddressMap>| {
            let mut map = map.clone();
            taken.iter().for_each(|taken| map.merge(taken));
            map
        };
        while !candidates.is_empty() {
            let mut best: Option<(usize, f64)> = None;
            for (at, candidate) in candidates.iter_mut().enumerate() {
                let map = with_taken(&candidate.map, &self.taken);
                let outlook = predict(model, excerpt, code, &map, &self.before)?;
                let gain = outlook.run.median.max(outlook.cores.median);
                if candidate.judge(outlook, evident[at]) && best.is_none_or(|(_, most)| gain > most) {
                    best = Some((at, gain));
                }
            }
            let Some((at, _)) = best else { break };
            let finding = candidates.remove(at);
            evident.remove(at);
            let map = with_taken(&finding.map, &self.taken);
            self.findings.push(finding);
            let runs = model.run_all(excerpt, code, Some(&map), 0..model.seeds)?;
            self.before = runs.iter().map(run_times).collect();
            self.taken = Some(map);
        }
        self.dropped.append(&mut candidates);
        Ok(())
    }
}

/// Names the parts of the run that the trace leaves open.
fn notes(trace: &Trace<'_>, process: u32, full_after: Option<f64>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(seconds) = full_after {
        notes.push(format!(
            "the trace was full (--max-size) after {seconds:.1} s under QEMU: what came later is missing"
        ));
    }
    match trace.ends().iter().find(|end| end.process() == process) {
        Some(end) if end.full() && full_after.is_none() => {
            notes.push("the trace ended at its --max-size".to_owned())
        }
        Some(_) => {}
        None => notes.push("the program was killed: the last accesses of its threads are missing".to_owned()),
    }
    let others = trace.threads().iter().filter(|thread| thread.accesses() > 0).map(|thread| thread.process());
    let others: BTreeSet<u32> = others.filter(|other| *other != process).collect();
    if !others.is_empty() {
        let (processes, them) = if others.len() == 1 { ("process", "it") } else { ("processes", "them") };
        notes.push(format!(
            "{} other traced {processes}, and memory shared with {them}: a replay is of one process (--process PID)",
            others.len()
        ));
    }
    let untraced = trace.executed_programs().count();
    if untraced > 0 {
        notes.push(format!("{untraced} programs that it started ran untraced"));
    }
    notes
}
