//! Updates of flows that stay: one hot flow, many with one writer each, many with all writers.

use super::super::report::{Case, Report, Scale};
use super::super::sides::looped::opaque;
use super::super::sides::{Calls, Side};
use super::super::{Context, runner};
use super::ways::{Atomics, Fixed, FlowMethod, Lazy, Locked};
use anyhow::Result;
use statctr::{PerCpu, PerNode};

/// Flows of a thread.
const FLOWS: usize = 1024;

pub(super) fn run(context: &Context, report: &mut Report) -> Result<()> {
    for &threads in &context.threads {
        let mut sides: Vec<(String, Box<dyn Side>)> = Vec::new();
        add(&mut sides, "lazy", Lazy::<PerCpu>::new, threads)?;
        add(&mut sides, "lazy-per-node", Lazy::<PerNode>::new, threads)?;
        add(&mut sides, "fixed", Fixed::new, threads)?;
        add(&mut sides, "lock", || Ok(Locked), threads)?;
        add(&mut sides, "atomics", || Ok(Atomics), threads)?;
        let loops: Vec<&dyn Side> = sides.iter().map(|(_, side)| side.as_ref()).collect();
        let progress = context.progress(&format!("updates of flows, {threads} threads"));
        let settings = context.settings(loops.len());
        let outcomes = runner::measure(&context.cpus[..threads], &loops, settings, &mut |done, all| {
            progress.show(done, all)
        })?;
        for ((name, _), outcome) in sides.iter().zip(outcomes) {
            report.cases.extend(Case::measured(name, threads, Scale::default(), "ns/update", outcome));
        }
    }
    for shape in ["hot", "own", "common"] {
        for way in ["lazy-per-node", "fixed", "lock", "atomics"] {
            report.compare(&format!("{shape}/{way}"), &format!("{shape}/lazy"));
        }
    }
    report.note("hot/…: all threads update one flow; own/…: each thread its 1024; common/…: all threads the same 1024.");
    Ok(())
}

fn add<W: FlowMethod + 'static>(
    sides: &mut Vec<(String, Box<dyn Side>)>,
    name: &str,
    way: impl Fn() -> Result<W>,
    threads: usize,
) -> Result<()> {
    for (shape, flows, of_thread) in [("hot", 1, 0), ("own", FLOWS * threads, FLOWS), ("common", FLOWS, 0)] {
        let way = way()?;
        let all = (0..flows).map(|_| way.create()).collect::<Result<Vec<_>>>()?;
        let count = if shape == "hot" { 1 } else { FLOWS };
        let side = Calls(move |thread: usize, n| {
            let first = thread * of_thread;
            let flows = &all[first..first + count];
            for time in 0..n {
                way.update(&flows[time as usize % count], opaque(1500), time);
            }
        });
        sides.push((format!("{shape}/{name}"), Box::new(side)));
    }
    Ok(())
}
