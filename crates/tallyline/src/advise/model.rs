//! A trace on the model: the machine, its first run, and the evidence.

use super::args::ModelArgs;
use super::names::{ProgramNames, TracedInstructions};
use crate::replay::{ProcessCode, processor};
use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::OnceLock;
use tallyline_advice::evidence::Evidence;
use tallyline_advice::{CollectLimits, Model, collect};
use tallyline_support::transfers::{self, LineTransfer};
use tallyline_timing::{SharingCosts, TraceCosts};
use tallyline_trace::Trace;

/// Cycles that a line from another core takes on machines of one socket, the least.
pub(super) const LEAST_TRANSFER: u32 = 60;
/// Cycles that a line from another core takes on machines of one socket, the most.
pub(super) const MOST_TRANSFER: u32 = 200;

/// Cycles for which a core keeps a line that others ask for.
///
/// On Zen 4 an atomic addition beside another core's takes 25 to 32 cycles, alone 7, with transfers of 100: a core does
/// about twelve before it loses the line.
const HOLD: u32 = 90;

/// A trace of a program with the results of one simulated replay: evidence for the advice, and the cost of each
/// instruction.
pub(crate) struct ModelledTrace<'t> {
    pub(crate) model: Model,
    pub(crate) process: u32,
    pub(crate) code: ProcessCode<'t>,
    pub(crate) evidence: Evidence,
    /// The costs on the schedule of seed 0.
    pub(crate) first: TraceCosts,
    pub(crate) warnings: Vec<String>,
}

/// Replays a trace in the simulation once (thread schedule 0) and collects how the program's threads access and
/// share its data.
pub(crate) fn evidence_of<'t>(args: &ModelArgs, trace: &'t Trace<'t, File>) -> Result<ModelledTrace<'t>> {
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
    let transfer = |at: usize| match &measured {
        Some(measured) => [measured.least, measured.most][at],
        None => args.transfer.get(at).or(args.transfer.last()).copied().unwrap_or(MOST_TRANSFER),
    };
    let model = Model {
        processor: processor::of_host(args.cacheline_size),
        cores: args.cores.unwrap_or_else(|| u16::try_from(threads).unwrap_or(u16::MAX)),
        costs: (SharingCosts::new(transfer(0), HOLD), SharingCosts::new(transfer(1), HOLD)),
        seeds: args.schedules,
        limit: args.accesses,
    };
    let mut warnings = Vec::new();
    let code = ProcessCode::open(trace, process, args.symfs.as_deref(), &mut warnings);
    let first = model.run(trace, process, &code, None, 0).map_err(|why| anyhow!(why))?;
    let instructions = TracedInstructions { trace, process };
    let mut names = ProgramNames::new(&instructions, args.symfs.as_deref());
    let line_size = u64::from(args.cacheline_size);
    let mut evidence = collect(trace, process, line_size, &first, CollectLimits::default(), &mut names)
        .context("the evidence cannot be collected")?;
    for thread in &mut evidence.threads {
        // a thread that has set none has the emulator's
        let name = trace.thread_name(process, thread.thread).filter(|name| !name.starts_with("qemu-"));
        thread.name = name.unwrap_or_default().to_owned();
    }
    warnings.extend(names.into_warnings());
    Ok(ModelledTrace { model, process, code, evidence, first, warnings })
}

/// Measures what lines cost here: once, so that two builds are compared on the same machine.
fn calibrated() -> Option<LineTransfer> {
    static MEASURED: OnceLock<Option<LineTransfer>> = OnceLock::new();
    *MEASURED.get_or_init(|| {
        let measured = transfers::measure().unwrap_or_default();
        match &measured {
            Some(range) => eprintln!("tallyline: a line takes {} to {} cycles here", range.least, range.most),
            None => {
                eprintln!("tallyline: lines cannot be timed here: they cost what --transfer has by default")
            }
        }
        measured
    })
}

/// The process with the most accesses.
fn busiest(trace: &Trace<'_, File>) -> Option<u32> {
    let mut all: BTreeMap<u32, u64> = BTreeMap::new();
    for thread in trace.threads() {
        *all.entry(thread.process()).or_default() += thread.accesses();
    }
    let most = all.into_iter().max_by_key(|(process, accesses)| (*accesses, std::cmp::Reverse(*process)));
    most.map(|(process, _)| process)
}
