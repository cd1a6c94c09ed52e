//! The race: real threads, each kept on a CPU of its own, count packets by one method after another.
//!
//! In every round each method runs once, for the same time, in an order that turns from round to
//! round; whatever disturbs the machine disturbs all methods alike. All threads begin a slice
//! together, and each takes its own time.

use crate::workload::{CountingMethod, INTERFACES, Ring};
use crate::{Error, Result, Tick, report};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use tallyline_support::cpus;

/// The length and number of the time measurements of a race, in which methods of counting network packets take turns.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Rounds in which each method runs once.
    pub rounds: usize,
    /// The time that a method runs in a round.
    pub slice: Duration,
}

/// The measured times per packet of one method of counting network packets (such as shared atomics), at one number of
/// threads.
#[derive(Debug, Clone, Default)]
pub struct MethodResult {
    /// Nanoseconds of one thread per packet, round by round.
    pub nanoseconds: Vec<f64>,
    /// Packets per second, all threads together, round by round.
    pub rates: Vec<f64>,
    /// The number of turns of the threads' rings over all slices: the value that the counters
    /// must come to.
    pub ring_rounds: u64,
}

/// The measured times per packet of all compared methods of counting network packets (shared atomics, `statctr`'s
/// per-CPU counters and so on).
#[derive(Debug)]
pub struct Race {
    /// The results of the methods, in the order given.
    pub outcomes: Vec<MethodResult>,
    /// The reason why threads could not be kept on their CPUs, if so.
    pub unpinned: Option<String>,
}

/// The number of turns of the ring between two checks of the stop flag: some microseconds.
const BATCH: u64 = 64;

/// Measures the time per packet of each of these methods of counting network packets in turn, slice by slice, on one
/// thread pinned to each of `cpus`; `tick` is called after each slice.
///
/// # Errors
/// A thread that cannot be started, and [`Error::Stopped`] if `tick` wants the end.
pub fn run(
    methods: &[Box<dyn CountingMethod + '_>],
    cpus: &[usize],
    settings: Settings,
    tick: Tick<'_>,
) -> Result<Race> {
    let stage = Stage::default();
    let (results, reports) = channel();
    std::thread::scope(|scope| {
        // dropped at the end of this block, whatever happens: then the threads end
        let mut crew = Vec::with_capacity(cpus.len());
        for (thread, &cpu) in cpus.iter().enumerate() {
            let (jobs, orders) = channel();
            let worker = Worker { stage: &stage, methods, thread, threads: cpus.len(), cpu };
            let results = results.clone();
            std::thread::Builder::new()
                .name(format!("carrier-{cpu}"))
                .spawn_scoped(scope, move || worker.work(&orders, &results))
                .map_err(Error::Thread)?;
            crew.push(jobs);
        }
        let mut race = Race { outcomes: vec![MethodResult::default(); methods.len()], unpinned: None };
        // a round that does not count: it warms up and takes the page faults
        for round in 0..=settings.rounds {
            for method in order(round, methods.len()) {
                let slices = stage.slice(&crew, &reports, method, settings.slice)?;
                race.note(method, &slices, round > 0);
                report(tick, settings.slice)?;
            }
        }
        Ok(race)
    })
}

/// Returns the order of the methods in a round: each is first once in a while, and the neighbours of each
/// change sides.
fn order(round: usize, methods: usize) -> impl Iterator<Item = usize> {
    let backwards = round % 2 == 1;
    (0..methods).map(move |step| {
        let step = if backwards { methods - 1 - step } else { step };
        (step + round / 2) % methods
    })
}

impl Race {
    fn note(&mut self, method: usize, slices: &[Slice], timed: bool) {
        let outcome = &mut self.outcomes[method];
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
    method: usize,
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
        method: usize,
        time: Duration,
    ) -> Result<Vec<Slice>> {
        self.stop.0.store(false, Ordering::Relaxed);
        let gate = self.arrived.load(Ordering::Relaxed) + crew.len() as u64;
        for jobs in crew {
            jobs.send(Job { method, gate }).map_err(|_| Error::ThreadEnded)?;
        }
        std::thread::sleep(time);
        self.stop.0.store(true, Ordering::Relaxed);
        crew.iter().map(|_| reports.recv().map_err(|_| Error::ThreadEnded)).collect()
    }
}

struct Worker<'s> {
    stage: &'s Stage,
    methods: &'s [Box<dyn CountingMethod + 's>],
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
            let method = &self.methods[job.method];
            let start = Instant::now();
            let mut ring_rounds = 0;
            loop {
                method.carry(&ring, BATCH);
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
    fn every_method_runs_once_in_a_round_and_is_first_sometimes() {
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
