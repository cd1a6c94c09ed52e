//! `tallyline replay --cost`: the time that accesses cost by a model of caches and out-of-order cores.

mod code;
mod findings;
mod json;
mod text;

use super::args::ReplayArgs;
use super::places::Programs;
use crate::columns::Fit;
use anyhow::{Context, Result, anyhow, bail};
pub(crate) use code::ProcessCode;
use findings::CostFindings;
use tallyline_support::output::Output;
use tallyline_timing::TimedCores;
use tallyline_trace::Trace;
use tallyline_trace::coherence::{ReplayOptions, replay_on};

/// Replays a trace on timed cores, and prints what its fields cost.
pub(super) fn run(
    args: &ReplayArgs,
    trace: &Trace<'_>,
    plan: ReplayOptions,
    cores: u16,
    programs: &Programs<'_>,
    output: Output,
) -> Result<()> {
    let header = trace.header();
    if header.whole_machine() || header.machine() != "x86_64" {
        bail!(
            "--cost: the model knows programs for x86-64; this trace is of {}{}",
            if header.whole_machine() { "a whole machine, " } else { "" },
            header.machine()
        );
    }
    let processor = args.processor.processor(args.cacheline_size);
    let mut warnings = Vec::new();
    let code = ProcessCode::open(trace, plan.process, programs.symfs, &mut warnings);
    let mut model =
        TimedCores::new(&processor, cores, trace.instructions(), &code).map_err(|why| anyhow!(why))?;
    let course = replay_on(trace, &mut model, plan).with_context(|| args.trace().display().to_string())?;
    drop(code);
    let findings = CostFindings::new(trace, processor, plan, course, model.finish(), programs, &mut warnings);
    warnings.dedup();
    for warning in &warnings {
        eprintln!("tallyline: {warning}");
    }
    let fit = Fit::of_terminal(args.wide, args.output.is_some());
    output
        .write(|out| if args.json { json::write(&findings, out) } else { text::write(&findings, &fit, out) })
}
