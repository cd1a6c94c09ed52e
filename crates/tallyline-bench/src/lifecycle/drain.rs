//! Drains: how long one takes, and what a writer sees of them. And what an update costs in the
//! flexible placement against the fixed one.

use super::super::report::{Bound, Case, Report, Scale, Target};
use super::super::sides::looped::{Looped, Step};
use super::super::sides::{self, Side};
use super::super::{Context, os, runner};
use anyhow::{Context as _, Result, ensure};
use statctr::topology::CpuId;
use statctr::{Counter, CounterArray, Placement, Pool};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Counters that updates go round.
const COUNTERS: usize = 1024;
/// For how long a writer is watched at a time.
const SPAN: Duration = Duration::from_millis(200);
/// From one drain to the next.
const PAUSE: Duration = Duration::from_millis(1);

pub(super) fn run(context: &Context, report: &mut Report) -> Result<()> {
    updates(context, report)?;
    stalls(context, report)
}

struct Round;

impl Step for Round {
    type State = Vec<Counter>;

    #[inline(always)]
    fn step(counters: &Vec<Counter>, turn: u64) {
        if let Some(counter) = counters.get(turn as usize % COUNTERS) {
            counter.inc();
        }
    }
}

fn round(pool: &Pool) -> Result<Box<dyn Side>> {
    let counters = (0..COUNTERS).map(|_| Counter::new_in(pool, 0)).collect::<statctr::Result<Vec<_>>>()?;
    let sum = |counters: &Vec<Counter>| counters.iter().map(Counter::read).sum();
    Ok(Looped::<Round>::with_shared_state(counters, sum).boxed())
}

/// Measures updates of one counter and of 1024 counters, in both placements, each at the best of eight places
/// in the code.
fn updates(context: &Context, report: &mut Report) -> Result<()> {
    for &threads in &context.threads {
        let mut sides: Vec<(String, Box<dyn Side>)> = Vec::new();
        for (name, placement) in [("fixed", Placement::Fixed), ("flexible", Placement::Flexible)] {
            let pool = Pool::builder().placement(placement).build()?;
            sides.push((format!("{name}/inc"), sides::fixed::inc(&pool, false)?));
            sides.push((format!("{name}/inc of {COUNTERS}"), round(&pool)?));
            sides.push((format!("{name}/packet4"), sides::fixed::packet4(&pool, false)?));
        }
        let loops: Vec<&dyn Side> = sides.iter().map(|(_, side)| side.as_ref()).collect();
        let progress = context.progress(&format!("flexible updates, {threads} threads"));
        let settings = context.settings(loops.len());
        let outcomes = runner::measure(&context.cpus[..threads], &loops, settings, &mut |done, all| {
            progress.show(done, all)
        })?;
        for ((name, _), outcome) in sides.iter().zip(outcomes) {
            report.cases.extend(Case::measured(name, threads, Scale::default(), "ns/op", outcome));
        }
    }
    for what in ["inc".to_owned(), format!("inc of {COUNTERS}"), "packet4".to_owned()] {
        let (over, under) = (format!("flexible/{what}"), format!("fixed/{what}"));
        report.compare(&over, &under);
        if !context.quick {
            report.aim(&over, &under, 1, None, Bound::AtMost, 1.35);
        }
    }
    Ok(())
}

/// A writer's view of one span: how long its updates took.
#[derive(Default)]
struct Seen {
    /// The 99.99th percentile, in nanoseconds.
    high: f64,
    longest: f64,
    updates: u64,
    /// The part of the span in which the writer could have run and others did; 0 where the kernel does
    /// not say.
    waited: f64,
    /// Nanoseconds of each drain.
    drains: Vec<f64>,
}

impl Seen {
    /// Returns `true` if the writer had to wait so much that its percentiles describe other tasks on its CPU.
    fn is_disturbed(&self) -> bool {
        self.waited > 0.1
    }
}

/// Spans that are watched for one round where the writer is disturbed.
const ATTEMPTS: usize = 3;

/// Watches until a span was not disturbed, at most [`ATTEMPTS`] times; the least disturbed one, and the
/// updates of all.
fn least_disturbed(mut watch: impl FnMut() -> Result<Seen>) -> Result<(Seen, u64)> {
    let mut best = watch()?;
    let mut updates = best.updates;
    for _ in 1..ATTEMPTS {
        if !best.is_disturbed() {
            break;
        }
        let again = watch()?;
        updates += again.updates;
        if again.waited < best.waited {
            best = again;
        }
    }
    Ok((best, updates))
}

/// Measures the longest pauses of a writer that looks at the clock after each update, while another thread
/// drains it or not.
fn stalls(context: &Context, report: &mut Report) -> Result<()> {
    let pool = Pool::builder().placement(Placement::Flexible).build()?;
    let array = CounterArray::new_in(&pool, COUNTERS, 0)?;
    let cpu = context.cpus[0];
    let rounds = context.rounds.unwrap_or(if context.quick { 2 } else { 7 });
    let span = if context.quick { SPAN / 10 } else { SPAN };
    let progress = context.progress("drains");
    let (mut calm, mut drained) = (Vec::new(), Vec::new());
    let mut updates = 0;
    for round in 0..rounds {
        for draining in [round % 2 == 0, round % 2 == 1] {
            let (seen, all) = least_disturbed(|| watch(&pool, &array, cpu, span, draining))?;
            updates += all;
            if draining { drained.push(seen) } else { calm.push(seen) }
        }
        progress.show(round as u64 + 1, rounds as u64);
    }
    let mut values = vec![0; COUNTERS];
    array.fold_into(&mut values)?;
    ensure!(values.iter().sum::<u64>() == updates, "counts were lost or doubled by a drain");
    let of = |seen: &[Seen], what: fn(&Seen) -> f64| seen.iter().map(what).collect::<Vec<_>>();
    let drains = drained.iter().flat_map(|seen| seen.drains.iter().copied()).collect();
    let case = Case::new("drain (of 1024 counters, while it is written)", 1, Scale::default(), "ns", drains);
    report.cases.extend(case);
    type Figure = (&'static str, fn(&Seen) -> f64);
    let figures: [Figure; 2] =
        [("99.99th percentile", |seen| seen.high), ("longest update", |seen| seen.longest)];
    for (figure, what) in figures {
        for (seen, drains) in [(&calm, "no drains"), (&drained, "a drain a millisecond")] {
            let name = format!("writer's {figure}, {drains}");
            let case = Case::new(name, 1, Scale::default(), "ns", of(seen, what));
            report.cases.extend(case.map(|mut case| {
                let disturbed = seen.iter().filter(|seen| seen.is_disturbed()).count();
                case.interrupted_rounds = case.interrupted_rounds.max(disturbed);
                case
            }));
        }
    }
    if !context.quick {
        let median =
            |seen: &[Seen]| super::super::Summary::of(&of(seen, |seen| seen.high)).map(|all| all.median);
        let rise = median(&drained).zip(median(&calm)).map(|(with, without)| (with - without) / 1000.0);
        let rise = rise.context("no writer was watched")?;
        let what = "rise of a writer's 99.99th percentile by a drain a millisecond";
        report.targets.push(Target::new(what, Bound::AtMost, 50.0, "µs", rise));
    }
    report.note("A writer's updates are timed one by one, which takes some 20 ns each; on a busy machine its longest update is when it does not run. A span in which it waited for its CPU for more than a tenth of the time is watched again, twice at most.");
    Ok(())
}

fn watch(pool: &Pool, array: &CounterArray, cpu: usize, span: Duration, draining: bool) -> Result<Seen> {
    let mut drains = Vec::new();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(array, cpu, &stop));
        let start = Instant::now();
        let mut result = Ok(());
        while start.elapsed() < span && result.is_ok() {
            std::thread::sleep(PAUSE);
            if draining {
                let start = Instant::now();
                result = pool.drain(CpuId::new(cpu as u32)).map(|drained| {
                    if drained.blocks > 0 {
                        drains.push(start.elapsed().as_nanos() as f64);
                    }
                });
            }
        }
        stop.store(true, Ordering::Relaxed);
        let seen = writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))?;
        result.context("this kernel or sandbox does not let us drain")?;
        Ok(Seen { drains, ..seen? })
    })
}

fn write(array: &CounterArray, cpu: usize, stop: &AtomicBool) -> Result<Seen> {
    os::pin(cpu)?;
    // by the number of bits of the time and the four bits below the first
    let mut histogram = [0u64; 64 * 16];
    let (mut updates, mut longest) = (0u64, 0u64);
    let waited = waited();
    let start = Instant::now();
    let mut before = start;
    while !stop.load(Ordering::Relaxed) {
        if let Some(counter) = array.get(updates as usize % COUNTERS) {
            counter.inc();
        }
        updates += 1;
        let now = Instant::now();
        let time = (now - before).as_nanos() as u64;
        before = now;
        longest = longest.max(time);
        histogram[place(time)] += 1;
    }
    let mut above = updates / 10_000;
    let high = histogram.iter().enumerate().rev().find_map(|(place, &count)| {
        let left = above.checked_sub(count);
        above = left.unwrap_or(0);
        left.is_none().then(|| time_of(place))
    });
    let waited = self::waited().zip(waited).map_or(0, |(after, before)| after.saturating_sub(before));
    let waited = waited as f64 / start.elapsed().as_nanos().max(1) as f64;
    Ok(Seen { high: high.unwrap_or(0) as f64, longest: longest as f64, updates, waited, drains: Vec::new() })
}

/// Returns nanoseconds that the calling thread could have run and others did; `None` where the kernel does
/// not say.
fn waited() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

fn place(time: u64) -> usize {
    let time = time.max(16);
    let bits = 63 - time.leading_zeros() as usize;
    bits * 16 + (time >> (bits - 4)) as usize % 16
}

fn time_of(place: usize) -> u64 {
    (16 + place as u64 % 16) << (place / 16 - 4).min(59)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_that_was_disturbed_is_watched_again() {
        let watched = |waits: &[f64]| {
            let mut left = waits.iter();
            let (seen, updates) = least_disturbed(|| {
                let waited = *left.next().expect("no further attempt");
                Ok(Seen { waited, updates: 10, ..Seen::default() })
            })
            .expect("watched");
            (seen.waited, updates)
        };
        assert_eq!(watched(&[0.0]), (0.0, 10));
        assert_eq!(watched(&[0.9, 0.05]), (0.05, 20));
        // never undisturbed: the best of three, whose updates all count
        assert_eq!(watched(&[0.9, 0.4, 0.7]), (0.4, 30));
    }

    #[test]
    fn times_are_kept_to_six_percent() {
        for time in [16, 17, 31, 32, 100, 999, 50_000, 1_000_000_007] {
            let kept = time_of(place(time));
            assert!(kept <= time && time - kept <= time / 16, "{time}: {kept}");
        }
        assert!(place(0) < 1024 && place(u64::MAX) < 1024);
    }
}
