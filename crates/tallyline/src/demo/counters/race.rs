//! The race: real threads, each kept on a CPU of its own, count packets in one way after another.
//!
//! In every round each way runs once, for the same time, in an order that turns from round to
//! round; whatever disturbs the machine disturbs all ways alike. All threads begin a slice
//! together, and each takes its own time.

use super::Stopped;
use super::workload::{CountingMethod, INTERFACES, Ring};
use anyhow::{Context, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use tallyline_support::cpus;

/// The length and number of the demo's time measurements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Rounds in which each way runs once.
    pub(crate) rounds: usize,
    /// For how long a way runs in a round.
    pub(crate) slice: Duration,
}

/// The measured times per packet of one counting method, at one number of threads.
#[derive(Debug, Clone, Default)]
pub(crate) struct MethodResult {
    /// Nanoseconds of one thread per packet, round by round.
    pub(crate) nanoseconds: Vec<f64>,
    /// Packets per second, all threads together, round by round.
    pub(crate) rates: Vec<f64>,
    /// The number of turns of the threads' rings over all slices: the value that the counters
    /// must come to.
    pub(crate) ring_rounds: u64,
}

/// The measured times per packet of all counting methods in the demo.
#[derive(Debug)]
pub(crate) struct Race {
    /// The ways, in the order given.
    pub(crate) outcomes: Vec<MethodResult>,
    /// Why threads could not be kept on their CPUs, if so.
    pub(crate) unpinned: Option<String>,
}

/// The number of turns of the ring between two checks of the stop flag: some microseconds.
const BATCH: u64 = 64;

/// Measures all counting methods in turn, slice by slice, on threads pinned to `cpus`; `tick` is called after each
/// slice.
pub(crate) fn run(
    ways: &[Box<dyn CountingMethod + '_>],
    cpus: &[usize],
    settings: Settings,
    tick: &mut dyn FnMut(Duration),
) -> Result<Race> {
    let stage = Stage::default();
    let (results, reports) = channel();
    std::thread::scope(|scope| {
        // dropped at the end of this block, whatever happens: then the threads end
        let mut crew = Vec::with_capacity(cpus.len());
        for (thread, &cpu) in cpus.iter().enumerate() {
            let (jobs, orders) = channel();
            let worker = Worker { stage: &stage, ways, thread, threads: cpus.len(), cpu };
            let results = results.clone();
            std::thread::Builder::new()
                .name(format!("carrier-{cpu}"))
                .spawn_scoped(scope, move || worker.work(&orders, &results))
                .context("cannot start a thread; try fewer with --threads")?;
            crew.push(jobs);
        }
        let mut race = Race { outcomes: vec![MethodResult::default(); ways.len()], unpinned: None };
        // a round that does not count: it warms up and takes the page faults
        for round in 0..=settings.rounds {
            for way in order(round, ways.len()) {
                let slices = stage.slice(&crew, &reports, way, settings.slice)?;
                race.note(way, &slices, round > 0);
                tick(settings.slice);
            }
        }
        Ok(race)
    })
}

/// Returns the order of the ways in a round: everyone is first once in a while, and everyone's neighbours
/// change sides.
fn order(round: usize, ways: usize) -> impl Iterator<Item = usize> {
    let backwards = round % 2 == 1;
    (0..ways).map(move |step| {
        let step = if backwards { ways - 1 - step } else { step };
        (step + round / 2) % ways
    })
}

impl Race {
    fn note(&mut self, way: usize, slices: &[Slice], timed: bool) {
        let outcome = &mut self.outcomes[way];
        outcome.ring_rounds += slices.iter().map(|slice| slice.ring_rounds).sum::<u64>();
        self.unpinned =
            self.unpinned.take().or_else(|| slices.iter().find_map(|slice| slice.unpinned.clone()));
        if timed {
            // sums, not a mean of quotients: a thread that hardly ran says little
            let busy: Duration = slices.iter().map(|slice| slice.elapsed).sum();
            let packets: u64 = slices.iter().map(|slice| slice.ring_rounds * INTERFACES as u64).sum();
            let nanoseconds = busy.as_nanos() as f64 / packets as f64;
            outcome.nanoseconds.push(nanoseconds);
            outcome.rates.push(slices.len() as f64 * 1e9 / nanoseconds);
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Job {
    way: usize,
    /// The number of threads that must have arrived since the race began before this job begins.
    gate: u64,
}

/// The work of one thread in one slice.
struct Slice {
    elapsed: Duration,
    ring_rounds: u64,
    unpinned: Option<String>,
}

#[derive(Default)]
struct Stage {
    arrived: AtomicU64,
    /// Looked at by all threads all the time, so on a line that changes twice in a slice.
    stop: Lonely<AtomicBool>,
}

#[derive(Default)]
#[repr(align(128))]
struct Lonely<T>(T);

impl Stage {
    fn slice(
        &self,
        crew: &[Sender<Job>],
        reports: &Receiver<Slice>,
        way: usize,
        time: Duration,
    ) -> Result<Vec<Slice>> {
        Stopped::check()?;
        self.stop.0.store(false, Ordering::Relaxed);
        let gate = self.arrived.load(Ordering::Relaxed) + crew.len() as u64;
        for jobs in crew {
            jobs.send(Job { way, gate }).context("a thread ended early")?;
        }
        std::thread::sleep(time);
        self.stop.0.store(true, Ordering::Relaxed);
        crew.iter().map(|_| reports.recv().context("a thread ended early")).collect()
    }
}

struct Worker<'s> {
    stage: &'s Stage,
    ways: &'s [Box<dyn CountingMethod + 's>],
    thread: usize,
    threads: usize,
    cpu: usize,
}

impl Worker<'_> {
    fn work(&self, orders: &Receiver<Job>, results: &Sender<Slice>) {
        let mut unpinned = cpus::pin(self.cpu).err().map(|error| error.to_string());
        let ring = Ring::new(self.thread, self.threads);
        for job in orders {
            self.stage.arrived.fetch_add(1, Ordering::Relaxed);
            while self.stage.arrived.load(Ordering::Relaxed) < job.gate {
                std::thread::yield_now();
            }
            let way = &self.ways[job.way];
            let start = Instant::now();
            let mut ring_rounds = 0;
            loop {
                way.carry(&ring, BATCH);
                ring_rounds += BATCH;
                if self.stage.stop.0.load(Ordering::Relaxed) {
                    break;
                }
            }
            let slice = Slice { elapsed: start.elapsed(), ring_rounds, unpinned: unpinned.take() };
            if results.send(slice).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_runs_once_in_a_round_and_is_first_sometimes() {
        let mut first = [0; 5];
        for round in 0..20 {
            let mut order: Vec<usize> = order(round, 5).collect();
            first[order[0]] += 1;
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4]);
        }
        assert!(first.iter().all(|&times| times > 0), "{first:?}");
    }
}
