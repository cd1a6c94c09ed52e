//! `tallyline replay`: a trace on a model of coherent caches.

mod args;
mod cost;
mod findings;
mod json;
pub(crate) mod places;
pub(crate) mod processor;
mod text;
mod traced_file;

pub(crate) use args::ReplayArgs;
pub(crate) use cost::ProcessCode;
pub(crate) use traced_file::{TracedFile, TracedInstruction, under};

use crate::columns::Fit;
use crate::profile::Cache;
use anyhow::{Context, Result, anyhow, bail};
use findings::{Findings, Shown, Turns};
use places::Programs;
use std::fs::File;
use tallyline_support::output::{Color, Output};
use tallyline_trace::Trace;
use tallyline_trace::coherence::{AtomicOrder, Geometry, Machine, ReplayOptions, replay};

/// The factor between the turns of a replay and the shorter and longer ones that it is compared with.
const STEP: u64 = 10;

/// Runs the sub-command `tallyline replay`: replays a trace on simulated caches and prints the misses by type and
/// field.
pub(crate) fn run(args: &ReplayArgs, color: Color) -> Result<()> {
    let name = args.trace().display();
    let file = File::open(args.trace()).with_context(|| format!("cannot read {name}"))?;
    let trace = Trace::open(&file).with_context(|| name.to_string())?;
    let process = args.pid.unwrap_or(trace.header().first_process());
    let threads = trace.threads().iter().filter(|thread| thread.process() == process).count();
    if threads == 0 {
        bail!("{name}: there are no accesses of process {process}; there are {}", processes(&trace));
    }
    let cores = args.cores.unwrap_or_else(|| u16::try_from(threads).unwrap_or(u16::MAX));
    let geometry =
        Geometry::new(cores, args.cacheline_size, args.cache, args.ways).map_err(|why| anyhow!(why))?;
    let atomics = match args.atomics {
        args::Order::Free => AtomicOrder::Free,
        args::Order::Recorded => AtomicOrder::Recorded,
    };
    let plan = ReplayOptions { quantum: args.quantum, atomics, process };
    let output = Output::open(args.output.as_deref(), color)?;
    let programs = Programs { symfs: args.symfs.as_deref(), cache: Cache::of_user(args.no_cache) };
    if args.processor.cost {
        return cost::run(args, &trace, plan, cores, &programs, output);
    }
    let (stats, summary) = replay(&trace, Machine::new(geometry), plan).with_context(|| name.to_string())?;
    let mut turns = vec![Turns::of(plan.quantum, &summary.total())];
    if !args.one_quantum && stats.threads().len() > 1 {
        for quantum in [plan.quantum / STEP, plan.quantum.saturating_mul(STEP)] {
            let plan = ReplayOptions { quantum: quantum.max(1), ..plan };
            let (_, other) =
                replay(&trace, Machine::new(geometry), plan).with_context(|| name.to_string())?;
            turns.push(Turns::of(plan.quantum, &other.total()));
        }
        turns.sort_by_key(|turns| turns.quantum);
        turns.dedup_by_key(|turns| turns.quantum);
    }
    let findings = Findings::new(
        &trace,
        geometry,
        plan,
        (stats, summary),
        turns,
        &Shown { lines: args.lines, programs },
    );
    for warning in &findings.warnings {
        eprintln!("tallyline: {warning}");
    }
    let fit = Fit::of_terminal(args.wide, args.output.is_some());
    output
        .write(|out| if args.json { json::write(&findings, out) } else { text::write(&findings, &fit, out) })
}

fn processes(trace: &Trace<'_>) -> String {
    let mut all: Vec<u32> = trace.threads().iter().map(|thread| thread.process()).collect();
    all.sort_unstable();
    all.dedup();
    match all.as_slice() {
        [] => "none".into(),
        all => all.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    }
}
