//! A trace on the model: the machine, its first run, and the evidence.

use super::args::{ModelArgs, Transfer};
use super::names::{ProgramNames, TracedInstructions};
use crate::replay::{ProcessCode, processor};
use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use tallyline_advice::evidence::Evidence;
use tallyline_advice::{CollectLimits, Model, collect};
use tallyline_support::transfers::{self, LineTransfer};
use tallyline_timing::{SharingCosts, TraceCosts};
use tallyline_trace::Trace;
use tallyline_trace::coherence::Excerpt;

/// Cycles that a line from another core takes on machines of one socket: the least.
pub(super) const LEAST_TRANSFER: u32 = 60;
/// Cycles that a line from another core takes on machines of one socket: the most.
pub(super) const MOST_TRANSFER: u32 = 200;

/// The largest number of accesses of a thread that are replayed where the command line says none.
const ACCESSES_EACH: u64 = 200_000;
/// The largest number of accesses that are replayed of a program's only thread: it is soon replayed, and a cache as large
/// as the second level needs that many to fill. A shuffled table of 3 MB gained nothing by fewer lines with a fifth of
/// them, where it gains a sixth.
const ACCESSES_ALONE: u64 = 1_000_000;

/// The parts of all measurements that have less than the least, the most, and what lies between.
const QUANTILES: [f64; 3] = [0.1, 0.9, 0.5];

/// The schedules whose losses together are the evidence. What two threads lose where a line comes soon and where it
/// comes late are different things: on Zen 3 increments with 12 multiplications between lose nothing between near CPUs.
const EVIDENCE: u64 = 2;

/// A trace of a program's memory accesses with the results of its first replays on a model of coherent caches: evidence
/// for the advice (how threads access and share data), and the cost of each instruction.
pub(crate) struct ModelledTrace<'t> {
    pub(crate) model: Model,
    pub(crate) process: u32,
    pub(crate) excerpt: Excerpt<'t>,
    pub(crate) code: ProcessCode<'t>,
    pub(crate) evidence: Evidence,
    /// The costs on the schedules of the first seeds.
    pub(crate) runs: Vec<TraceCosts>,
    pub(crate) warnings: Vec<String>,
}

/// Replays a trace of a program's memory accesses on a model of coherent caches, under the first thread schedules, and
/// collects how the program's threads access and share its data.
pub(crate) fn evidence_of<'t>(args: &ModelArgs, trace: &'t Trace<'t>) -> Result<ModelledTrace<'t>> {
    if trace.header().whole_machine() {
        bail!("a trace of a whole machine: programs only are advised on");
    }
    let process = match args.process {
        Some(process) => process,
        None => busiest(trace).ok_or_else(|| anyhow!("there are no accesses in it"))?,
    };
    let threads = trace.threads().iter().filter(|thread| thread.process() == process).count();
    if threads == 0 {
        bail!("there are no accesses of process {process}");
    }
    let measured = if args.calibrate { calibrated() } else { None };
    let model = Model {
        processor: processor::of_host(args.cacheline_size),
        cores: args.cores.unwrap_or_else(|| u16::try_from(threads).unwrap_or(u16::MAX)),
        costs: measured.unwrap_or_else(|| stated(&args.transfer)),
        seeds: args.schedules,
    };
    let accesses = args.accesses.unwrap_or(if threads == 1 { ACCESSES_ALONE } else { ACCESSES_EACH });
    let excerpt = Excerpt::read(trace, process, accesses)?;
    let mut warnings = Vec::new();
    let code = ProcessCode::open(trace, process, args.symfs.as_deref(), &mut warnings);
    let seeds = 0..EVIDENCE.min(model.seeds);
    let runs = model.run_all(&excerpt, &code, None, seeds).map_err(|why| anyhow!(why))?;
    let average = TraceCosts::average(&runs);
    let instructions = TracedInstructions { trace, process };
    let mut names = ProgramNames::new(&instructions, args.symfs.as_deref());
    let line_size = u64::from(args.cacheline_size);
    let mut evidence = collect(trace, process, line_size, &average, CollectLimits::default(), &mut names)
        .context("the evidence cannot be collected")?;
    for thread in &mut evidence.threads {
        // a thread that has set none has the emulator's
        let name = trace.thread_name(process, thread.thread).filter(|name| !name.starts_with("qemu-"));
        thread.name = name.unwrap_or_default().to_owned();
    }
    warnings.extend(names.into_warnings());
    Ok(ModelledTrace { model, process, excerpt, code, evidence, runs, warnings })
}

/// Returns the costs that a command line states: the least, the most, and one between, which is their geometric mean
/// where it is not stated.
fn stated(transfers: &[Transfer]) -> [SharingCosts; 3] {
    let default = Transfer { latency: MOST_TRANSFER, contention: None };
    let at = |index: usize| transfers.get(index).or(transfers.last()).copied().unwrap_or(default);
    let (least, most) = (at(0), at(1));
    let mean = |one: u32, other: u32| (f64::from(one) * f64::from(other)).sqrt().round() as u32;
    let between = Transfer {
        latency: mean(least.latency, most.latency),
        contention: least
            .contention
            .zip(most.contention)
            .map(|(least, most)| (mean(least.0, most.0), mean(least.1, most.1))),
    };
    [least, most, transfers.get(2).copied().unwrap_or(between)].map(Transfer::costs)
}

impl Transfer {
    fn costs(self) -> SharingCosts {
        let costs = SharingCosts::new(self.latency);
        self.contention.map_or(costs, |(interval, hold)| costs.with_contention(interval, hold))
    }
}

/// Measures what lines cost here: once, so that two builds are compared on the same machine.
fn calibrated() -> Option<[SharingCosts; 3]> {
    static MEASURED: OnceLock<Option<[SharingCosts; 3]>> = OnceLock::new();
    *MEASURED.get_or_init(|| {
        let parts = transfers::measure().unwrap_or_default();
        let [Some(least), Some(most), Some(between)] =
            QUANTILES.map(|part| transfers::quantile(&parts, part))
        else {
            eprintln!("tallyline: lines cannot be timed here: they cost what --transfer has by default");
            return None;
        };
        eprintln!("tallyline: a line takes {} to {} cycles here", least.latency, most.latency);
        let costs = |of: LineTransfer| SharingCosts::new(of.latency).with_contention(of.interval, of.hold);
        Some([least, most, between].map(costs))
    })
}

/// The process with the most accesses.
fn busiest(trace: &Trace<'_>) -> Option<u32> {
    let mut all: BTreeMap<u32, u64> = BTreeMap::new();
    for thread in trace.threads() {
        *all.entry(thread.process()).or_default() += thread.accesses();
    }
    let most = all.into_iter().max_by_key(|(process, accesses)| (*accesses, std::cmp::Reverse(*process)));
    most.map(|(process, _)| process)
}
