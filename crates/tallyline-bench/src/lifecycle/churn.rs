//! Flow churn: created, updated once, read, freed. A million alive, and one at a time.

use super::super::report::{Bound, Case, Report, Scale, Target};
use super::super::sides::{Calls, Side};
use super::super::{Context, machine, os, runner};
use super::ways::{Atomics, CPUS, Fixed, FlowMethod, Lazy, Lines, Locked};
use anyhow::{Result, anyhow, ensure};
use statctr::PerCpu;
use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Flows that are alive at once.
const FLOWS: usize = 1_000_000;
/// Flows that a thread makes before readers see them.
const BATCH: usize = 1000;
/// Rounds where nobody says otherwise: each makes and frees millions of flows.
const ROUNDS: usize = 3;
/// The names of the ways, in the order of [`churn`].
const WAYS: [&str; 5] = ["lazy", "fixed", "per-cpu-lines", "lock", "atomics"];

/// The costs of a run of a way: nanoseconds of a thread per flow, and bytes per flow.
struct Run {
    time: f64,
    bytes: f64,
}

pub(super) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let flows = affordable(context, report);
    let rounds = context.rounds.unwrap_or(ROUNDS).min(ROUNDS);
    for &threads in &context.threads {
        let progress = context.progress(&format!("{flows} flows, {threads} threads"));
        let mut series: Vec<(Vec<f64>, f64)> = WAYS.iter().map(|_| (Vec::new(), 0.0)).collect();
        for round in 0..rounds {
            for step in 0..WAYS.len() {
                let index = if round % 2 == 0 { step } else { WAYS.len() - 1 - step };
                let run = churn(index, &context.cpus[..threads], flows)?;
                series[index].0.push(run.time);
                series[index].1 = run.bytes;
                progress.show((round * WAYS.len() + step + 1) as u64, (rounds * WAYS.len()) as u64);
            }
        }
        let scale = Scale { cpus: Some(CPUS as u32), used: None, groups: Some(flows as u64) };
        for (name, (times, bytes)) in WAYS.iter().zip(series) {
            report.cases.extend(Case::new(format!("alive/{name}"), threads, scale, "ns/flow", times));
            let name = format!("alive/{name}/memory");
            report.cases.extend(Case::single(name, threads, scale, "bytes/flow", bytes));
        }
        one_at_a_time(context, report, threads)?;
    }
    compare(report, &context.threads, context.quick);
    Ok(())
}

/// Returns the number of flows that there is memory for, in the method that takes most.
fn affordable(context: &Context, report: &mut Report) -> usize {
    let wanted = if context.quick { 2 * BATCH } else { FLOWS };
    let each = (CPUS * 64 + 64) as u64;
    let free = machine::memory_available().unwrap_or(u64::MAX) / 2;
    let flows = wanted.min(usize::try_from(free / each).unwrap_or(wanted) / BATCH * BATCH).max(BATCH);
    if flows < wanted {
        report.note(&format!(
            "{flows} flows are alive instead of {wanted}: there is no memory for more lines per CPU."
        ));
    }
    flows
}

fn churn(index: usize, cpus: &[usize], flows: usize) -> Result<Run> {
    match index {
        0 => alive(&Lazy::<PerCpu>::new()?, cpus, flows),
        1 => alive(&Fixed::new()?, cpus, flows),
        2 => alive(&Lines, cpus, flows),
        3 => alive(&Locked, cpus, flows),
        _ => alive(&Atomics, cpus, flows),
    }
}

type Published<F> = RwLock<Vec<Arc<Vec<F>>>>;

/// Threads that create flows, each written by a made-up CPU, while one more thread reads what is
/// there; then all are read, and freed.
fn alive<W: FlowMethod>(way: &W, cpus: &[usize], flows: usize) -> Result<Run> {
    let published: Published<W::Flow> = RwLock::default();
    let stop = AtomicBool::new(false);
    let share = flows / cpus.len() / BATCH * BATCH;
    let start = Instant::now();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_on(way, &published, &stop));
        let creators: Vec<_> = cpus
            .iter()
            .enumerate()
            .map(|(thread, &cpu)| {
                let published = &published;
                let made_up = CPUS * thread / cpus.len()..CPUS * (thread + 1) / cpus.len();
                scope.spawn(move || create(way, published, cpu, made_up, share))
            })
            .collect();
        let results = creators.into_iter().map(|creator| creator.join());
        let result = results.map(|result| result.unwrap_or_else(|_| Err(anyhow!("a thread panicked"))));
        let result: Result<()> = result.collect();
        stop.store(true, Ordering::Relaxed);
        reader.join().map_err(|_| anyhow!("the reader panicked"))?;
        result
    })?;
    let made = start.elapsed();
    let bytes = way.bytes(share * cpus.len())?;
    let start = Instant::now();
    let batches = published.into_inner().unwrap_or_else(PoisonError::into_inner);
    let parts = batches.len().div_ceil(cpus.len()).max(1);
    let packets: u64 = std::thread::scope(|scope| {
        let mut batches = batches;
        let mut threads = Vec::new();
        while !batches.is_empty() {
            let part = batches.split_off(batches.len().saturating_sub(parts));
            threads.push(scope.spawn(move || {
                let flows = part.iter().flat_map(|batch| batch.iter());
                flows.map(|flow| way.read(flow)[0]).sum::<u64>()
                // freed here
            }));
        }
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    let time = made + start.elapsed();
    ensure!(packets == (share * cpus.len()) as u64, "{packets} packets were counted");
    let flows = share as f64;
    Ok(Run { time: time.as_nanos() as f64 / flows, bytes: bytes as f64 / (flows * cpus.len() as f64) })
}

/// Creates flows on `cpu`, each written by a random one of the CPUs `made_up`.
fn create<W: FlowMethod>(
    way: &W,
    published: &Published<W::Flow>,
    cpu: usize,
    made_up: Range<usize>,
    share: usize,
) -> Result<()> {
    os::pin(cpu)?;
    let mut impostor = way.impersonate(made_up.clone())?;
    let mut random = cpu as u64 + 1;
    for _ in 0..share / BATCH {
        let mut batch = Vec::with_capacity(BATCH);
        for time in 0..BATCH as u64 {
            let flow = way.create()?;
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let writer = made_up.start + (random >> 33) as usize % made_up.len();
            way.update_as(&mut impostor, &flow, writer, 1500, time)?;
            batch.push(flow);
        }
        published.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(batch));
    }
    Ok(())
}

/// Reads a batch now and then.
fn read_on<W: FlowMethod>(way: &W, published: &Published<W::Flow>, stop: &AtomicBool) {
    let mut turn = 0usize;
    while !stop.load(Ordering::Relaxed) {
        let batch = {
            let all = published.read().unwrap_or_else(PoisonError::into_inner);
            all.get(turn.wrapping_mul(7919).checked_rem(all.len()).unwrap_or(0)).cloned()
        };
        for flow in batch.iter().flat_map(|batch| batch.iter()) {
            black_box(way.read(flow));
        }
        turn += 1;
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Measures flows that are created, updated on the CPU that runs this, read and freed, one after the other.
fn one_at_a_time(context: &Context, report: &mut Report, threads: usize) -> Result<()> {
    let sides: [Box<dyn Side>; 5] = [
        single(Lazy::<PerCpu>::new()?),
        single(Fixed::new()?),
        single(Lines),
        single(Locked),
        single(Atomics),
    ];
    let loops: Vec<&dyn Side> = sides.iter().map(AsRef::as_ref).collect();
    let progress = context.progress(&format!("one flow at a time, {threads} threads"));
    let settings = context.settings(loops.len());
    let outcomes = runner::measure(&context.cpus[..threads], &loops, settings, &mut |done, all| {
        progress.show(done, all)
    })?;
    for (name, outcome) in WAYS.iter().zip(outcomes) {
        let (name, scale) = (format!("one-at-a-time/{name}"), Scale::default());
        report.cases.extend(Case::measured(name, threads, scale, "ns/flow", outcome));
    }
    Ok(())
}

fn single<W: FlowMethod + 'static>(way: W) -> Box<dyn Side> {
    Box::new(Calls(move |_thread, n| {
        for time in 0..n {
            // without memory there is nothing to measure
            if let Ok(flow) = way.create() {
                way.update(&flow, 1500, time);
                black_box(way.read(&flow));
            }
        }
    }))
}

fn compare(report: &mut Report, threads: &[usize], quick: bool) {
    for name in &WAYS[1..] {
        report.compare(&format!("alive/{name}"), "alive/lazy");
        report.compare(&format!("alive/{name}/memory"), "alive/lazy/memory");
        report.compare(&format!("one-at-a-time/{name}"), "one-at-a-time/lazy");
    }
    if quick {
        return;
    }
    for (over, unit, limit) in [
        ("alive/per-cpu-lines", "", 20.0),
        ("alive/per-cpu-lines", "/memory", 15.0),
        ("alive/fixed", "", 1.0),
        ("alive/fixed", "/memory", 1.0),
    ] {
        let (over, under) = (format!("{over}{unit}"), format!("alive/lazy{unit}"));
        for &threads in threads {
            if let Some(figure) = report.find_ratio(&over, &under, threads, None) {
                let plural = if threads == 1 { "thread" } else { "threads" };
                let what = format!("{over} over {under}, {threads} {plural} as {CPUS} CPUs");
                report.targets.push(Target::new(what, Bound::AtLeast, limit, "x", figure));
            }
        }
    }
}
