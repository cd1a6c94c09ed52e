//! The paired runner: all sides of a comparison in turn, in one process, on the same threads.
//!
//! A crew of threads, each kept on a CPU of its own, runs one side after another. First each side
//! is tried at each of its places in the code and keeps the best one; then come the rounds. In
//! every round each side runs once, in an order that turns from round to round, for about the same
//! time; whatever disturbs the machine disturbs all sides alike. What a side's calibration found is
//! tried, and a side whose rounds turn out too short gets longer ones, and is told. Within one run the threads start
//! together, each takes its own time, and the figure is their mean. In front of and behind each run each thread times
//! a probe, which tells the runs whose cores were slowed by others.

use super::sides::{Side, os};
use anyhow::{Context, Result, bail};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tallyline_support::quiet::{self, FastestProbes, MIN_QUIET_ROUNDS};

/// The length of a benchmark's measurement: the number of rounds in which each implementation runs once, the time of
/// such a run, and the number of trials that find the fastest copy of each loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Rounds in which each side runs once.
    pub(crate) rounds: usize,
    /// The most of them, where more are needed for [`MIN_QUIET_ROUNDS`] quiet ones of each side.
    pub(crate) most_rounds: usize,
    /// For how long one side runs in one round, about; at least one operation is done.
    pub(crate) slice: Duration,
    /// The number of trials of each place of each side.
    pub(crate) trials: usize,
}

/// The measured times of one side (a benchmarked implementation), one figure for each round.
pub(crate) struct SideResult {
    /// Nanoseconds per operation and thread, round by round.
    pub(crate) rounds: Vec<f64>,
    /// Rounds that took less than half of the slice, so that the start and the clock weigh in them.
    pub(crate) short: usize,
    /// By round, `true` if no core was slowed by others while the side ran ([`quiet`]).
    pub(crate) quiet: Vec<bool>,
    /// `true` if the side counted exactly as often as it was told to; `None` where it does not count.
    pub(crate) exact: Option<bool>,
}

/// Measures all sides (implementations to compare) in alternating rounds, on one thread pinned to each of `cpus`;
/// returns their figures in the order of `sides`.
///
/// `progress` is called after each run with the numbers of finished and of all runs.
pub(crate) fn measure(
    cpus: &[usize],
    sides: &[&dyn Side],
    settings: Settings,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<SideResult>> {
    let shared = Shared::default();
    std::thread::scope(|scope| {
        // whatever happens below, the threads are told to end
        let _end = End(&shared);
        for (thread, &cpu) in cpus.iter().enumerate() {
            let (shared, threads) = (&shared, cpus.len());
            std::thread::Builder::new()
                .name(format!("bench-{cpu}"))
                .spawn_scoped(scope, move || work(shared, sides, threads, thread, cpu))
                .context("cannot start a thread")?;
        }
        let mut crew = Crew { shared: &shared, threads: cpus.len(), operations: vec![0; sides.len()] };
        calibrate_and_run(&mut crew, sides, settings, progress)
    })
}

/// Calibrates every side, runs the rounds, and compares the counts with what was asked for.
fn calibrate_and_run(
    crew: &mut Crew<'_>,
    sides: &[&dyn Side],
    settings: Settings,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<SideResult>> {
    let before: Vec<Option<u64>> = sides.iter().map(|side| side.total()).collect();
    let placements: Vec<usize> = sides.iter().map(|side| side.placements()).collect();
    let series = run_rounds(crew, &placements, settings, progress)?;
    let exact = |index: usize| {
        let (after, before) = sides[index].total().zip(before[index])?;
        let due = crew.operations[index].wrapping_mul(sides[index].per_operation());
        Some(after.wrapping_sub(before) == due)
    };
    Ok(series
        .into_iter()
        .enumerate()
        .map(|(index, Series { rounds, short, quiet })| SideResult {
            rounds,
            short,
            quiet,
            exact: exact(index),
        })
        .collect())
}

/// Runs a side a number of times and takes the time: the crew, and a made-up clock in tests.
trait Stopwatch {
    /// Runs a side once at one of its placements.
    fn run(&mut self, side: usize, placement: usize, n: u64) -> Result<Run>;
}

/// The fastest probes of the process.
static FASTEST: Mutex<FastestProbes> = Mutex::new(FastestProbes::new());

/// The times of one run.
#[derive(Debug, Default)]
struct Run {
    /// Nanoseconds per operation, the mean of the threads.
    cost: f64,
    /// By thread, the slower one of the probes in front and behind.
    probes: Vec<f64>,
}

/// The rounds of one side.
#[derive(Debug, Default, PartialEq)]
struct Series {
    /// Nanoseconds per operation.
    rounds: Vec<f64>,
    /// Rounds that were too short.
    short: usize,
    /// `true` for each round that was quiet.
    quiet: Vec<bool>,
}

/// Calibrates every side, then runs the rounds.
fn run_rounds(
    watch: &mut dyn Stopwatch,
    placements: &[usize],
    settings: Settings,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<Series>> {
    let sides = placements.len();
    let all = (sides + settings.rounds * sides) as u64;
    let mut done = 0;
    let mut tick = || {
        done += 1;
        progress(done, all.max(done));
    };
    let slice = settings.slice.as_nanos() as f64;
    let mut plans = Vec::with_capacity(sides);
    for (index, &placements) in placements.iter().enumerate() {
        plans.push(calibrate(watch, index, placements, settings)?);
        tick();
    }
    let mut series: Vec<Series> = placements.iter().map(|_| Series::default()).collect();
    // by side and round
    let mut probes: Vec<Vec<Vec<f64>>> = vec![Vec::new(); sides];
    let mut fastest = FASTEST.lock().unwrap_or_else(PoisonError::into_inner);
    for round in 0..settings.most_rounds.max(settings.rounds) {
        let quiet = |probes: &Vec<Vec<f64>>| probes.iter().filter(|probes| fastest.is_quiet(probes)).count();
        if round >= settings.rounds && probes.iter().all(|probes| quiet(probes) >= MIN_QUIET_ROUNDS) {
            break;
        }
        for index in order(round, sides) {
            let Plan { placement, n } = plans[index];
            let run = watch.run(index, placement, n)?;
            fastest.observe(&run.probes);
            probes[index].push(run.probes);
            let side = &mut series[index];
            side.rounds.push(run.cost);
            if is_short(run.cost, n, slice) {
                // every run of the calibration was disturbed, or the side has become faster since
                side.short += 1;
                plans[index].n = enough(run.cost, n, slice);
            }
            tick();
        }
    }
    for (side, probes) in series.iter_mut().zip(probes) {
        side.quiet = probes.iter().map(|probes| fastest.is_quiet(probes)).collect();
    }
    Ok(series)
}

/// The schedule of a side's runs in the rounds.
#[derive(Debug, Clone, Copy)]
struct Plan {
    placement: usize,
    n: u64,
}

/// Runs of one length while calibrating. An interruption only ever adds time, so that the fastest of
/// them is the nearest to the truth; all of them would have to be interrupted to mislead.
const TRIES: usize = 3;

/// The most operations of one run: a side that takes no time at all would never fill a slice.
const MOST: u64 = 1 << 40;

/// Returns `true` if a run of `n` operations took less than half of the slice, and is not the longest allowed.
fn is_short(cost: f64, n: u64, slice: f64) -> bool {
    cost * (n as f64) < slice / 2.0 && n < MOST
}

/// Operations that fill a slice, by a run that took less; at most 64 times as many as that run's.
fn enough(cost: f64, n: u64, slice: f64) -> u64 {
    ((slice / cost) as u64).clamp(n.saturating_add(1), n.saturating_mul(64)).min(MOST)
}

/// Finds how many operations fill a slice, and the place where the loop is fastest.
///
/// What was found is tried: where runs of that many operations are too short, they get more until
/// they are long enough.
fn calibrate(watch: &mut dyn Stopwatch, index: usize, placements: usize, settings: Settings) -> Result<Plan> {
    let slice = settings.slice.as_nanos() as f64;
    let mut fastest = |n| -> Result<f64> {
        (0..TRIES).try_fold(f64::INFINITY, |least, _| Ok(watch.run(index, 0, n)?.cost.min(least)))
    };
    let mut n = 1;
    let mut cost = fastest(n)?;
    while is_short(cost, n, slice) {
        // twice as many at first: a run that short says little of how long more of it take
        n = if cost * (n as f64) < slice / 8.0 { n * 2 } else { enough(cost, n, slice) };
        cost = fastest(n)?;
    }
    let n = ((slice / cost) as u64).clamp(1, n.saturating_mul(2)).min(MOST);
    let mut best = Plan { placement: 0, n };
    let mut least = f64::INFINITY;
    if placements > 1 {
        // the best of several short runs: a place is not to blame for an interruption
        for _ in 0..settings.trials {
            for placement in 0..placements {
                let cost = watch.run(index, placement, (n / 4).max(1))?.cost;
                if cost < least {
                    least = cost;
                    best.placement = placement;
                }
            }
        }
    }
    Ok(best)
}

/// Returns the order of the sides in a round: everyone is first once in a while, and everyone's neighbours
/// change sides.
pub(super) fn order(round: usize, sides: usize) -> impl Iterator<Item = usize> {
    let backwards = round % 2 == 1;
    (0..sides).map(move |step| {
        let step = if backwards { sides - 1 - step } else { step };
        (step + round / 2) % sides
    })
}

/// The threads, as the one who gives them work sees them.
struct Crew<'s> {
    shared: &'s Shared,
    threads: usize,
    operations: Vec<u64>,
}

impl Stopwatch for Crew<'_> {
    /// Runs a side once on all threads.
    fn run(&mut self, side: usize, placement: usize, n: u64) -> Result<Run> {
        let warm_up = n / 16;
        let mut board = self.shared.lock();
        board.job = Some(Job { side, placement, n, warm_up });
        board.number += 1;
        board.finished = 0;
        board.nanoseconds = 0.0;
        board.probes = vec![0.0; self.threads];
        self.shared.given.notify_all();
        while board.finished < self.threads && board.failure.is_none() {
            board = self.shared.taken.wait(board).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(failure) = board.failure.take() {
            bail!(failure);
        }
        self.operations[side] += (n + warm_up) * self.threads as u64;
        let cost = board.nanoseconds / self.threads as f64 / n as f64;
        Ok(Run { cost, probes: std::mem::take(&mut board.probes) })
    }
}

#[derive(Debug, Clone, Copy)]
struct Job {
    side: usize,
    placement: usize,
    n: u64,
    warm_up: u64,
}

/// The memory that the threads and their master communicate by.
#[derive(Default)]
struct Board {
    /// Counts the jobs; the last of them is `None`, the end.
    number: u64,
    job: Option<Job>,
    finished: usize,
    nanoseconds: f64,
    /// By thread, the slower one of its probes of this job.
    probes: Vec<f64>,
    failure: Option<String>,
}

#[derive(Default)]
struct Shared {
    board: Mutex<Board>,
    given: Condvar,
    taken: Condvar,
    /// Threads that have reached the start of their jobs, of all jobs so far.
    at_start: AtomicU64,
    ended: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, failure: String) {
        self.ended.store(true, Ordering::Relaxed);
        self.lock().failure.get_or_insert(failure);
        self.taken.notify_all();
    }

    /// Waits until all threads have come here for the same job.
    fn start_together(&self, job: u64, threads: usize) {
        self.at_start.fetch_add(1, Ordering::AcqRel);
        let mut turns = 0u32;
        while self.at_start.load(Ordering::Acquire) < job * threads as u64
            && !self.ended.load(Ordering::Relaxed)
        {
            // each thread has its CPU, but others may be on it
            turns += 1;
            if turns.is_multiple_of(1 << 12) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

/// Ends the crew when dropped.
struct End<'s>(&'s Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Relaxed);
        let mut board = self.0.lock();
        board.job = None;
        board.number += 1;
        self.0.given.notify_all();
    }
}

/// Says so if its thread panics, so that nobody waits for it.
struct Alive<'s>(&'s Shared);

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("a benchmark thread panicked".into());
        }
    }
}

/// Runs one thread, which waits for jobs and does them.
fn work(shared: &Shared, sides: &[&dyn Side], threads: usize, thread: usize, cpu: usize) {
    let _alive = Alive(shared);
    if let Err(error) = os::pin(cpu) {
        shared.fail(format!("cannot keep a thread on CPU {cpu}: {error}"));
        return;
    }
    let mut number = 0;
    loop {
        let mut board = shared.lock();
        while board.number == number {
            board = shared.given.wait(board).unwrap_or_else(PoisonError::into_inner);
        }
        number = board.number;
        let Some(job) = board.job else { return };
        drop(board);
        let side = sides[job.side];
        if job.warm_up > 0 {
            side.run(thread, job.placement, job.warm_up);
        }
        shared.start_together(number, threads);
        // at the same time as the other threads, which may be on the core's other hardware thread
        let before = quiet::probe();
        let start = Instant::now();
        side.run(thread, job.placement, job.n);
        let time = start.elapsed();
        let after = quiet::probe();
        let mut board = shared.lock();
        board.probes[thread] = before.max(after);
        board.nanoseconds += time.as_nanos() as f64;
        board.finished += 1;
        if board.finished == threads {
            shared.taken.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sides::plain;
    use super::*;

    fn quick() -> Settings {
        Settings { rounds: 3, most_rounds: 3, slice: Duration::from_micros(50), trials: 1 }
    }

    #[test]
    fn every_side_runs_once_in_a_round() {
        for sides in 1..6 {
            for round in 0..8 {
                let mut seen: Vec<usize> = order(round, sides).collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..sides).collect::<Vec<_>>());
            }
        }
    }

    /// Sides of known cost on a made-up clock; some of their runs are interrupted.
    struct MadeUp {
        costs: Vec<f64>,
        interrupted: fn(usize) -> bool,
        /// The side and the operations of each run.
        runs: Vec<(usize, u64)>,
    }

    /// Nanoseconds that an interruption takes: a hundred slices.
    const INTERRUPTION: f64 = 1e8;

    impl Stopwatch for MadeUp {
        fn run(&mut self, side: usize, _placement: usize, n: u64) -> Result<Run> {
            let interrupted = (self.interrupted)(self.runs.len());
            self.runs.push((side, n));
            let time = self.costs[side] * n as f64 + if interrupted { INTERRUPTION } else { 0.0 };
            // a core is slow while the first half of a hundred runs are made
            let probe = if self.runs.len() % 100 < 50 { 9.0 } else { 5.0 };
            Ok(Run { cost: time / n as f64, probes: vec![probe] })
        }
    }

    /// Runs the rounds of sides of 0.3 ns to 5 ms on the made-up clock: rounds and short ones by side,
    /// and the operations of each side in its last round.
    fn made_up(interrupted: fn(usize) -> bool) -> Vec<(f64, Vec<f64>, usize, u64)> {
        let costs = vec![0.3, 7.0, 292.0, 40_000.0, 5e6];
        let mut clock = MadeUp { costs: costs.clone(), interrupted, runs: Vec::new() };
        let settings = Settings { rounds: 21, most_rounds: 21, slice: Duration::from_millis(1), trials: 1 };
        let series =
            run_rounds(&mut clock, &vec![1; costs.len()], settings, &mut |_, _| ()).expect("measured");
        let last = |side| clock.runs.iter().rev().find(|run| run.0 == side).expect("a run").1;
        costs
            .into_iter()
            .zip(series)
            .enumerate()
            .map(|(side, (cost, series))| (cost, series.rounds, series.short, last(side)))
            .collect()
    }

    #[test]
    fn single_interruptions_never_make_rounds_too_short() {
        // each of the first runs in turn, then every second and two of three of all runs
        const INTERRUPTIONS: [fn(usize) -> bool; 8] = [
            |_| false,
            |run| run == 0,
            |run| run == 1,
            |run| run == 14,
            |run| run % 16 == 3,
            |run| run % 2 == 0,
            |run| run % 2 == 1,
            |run| run % 3 != 1,
        ];
        for (index, interrupted) in INTERRUPTIONS.into_iter().enumerate() {
            for (cost, rounds, short, n) in made_up(interrupted) {
                assert_eq!((rounds.len(), short), (21, 0), "{index}: {cost} ns");
                let time = cost * n as f64;
                assert!((5e5..=2e6).contains(&time) || n == 1, "{index}: {cost} ns: {n} operations a round");
            }
        }
    }

    #[test]
    fn a_side_whose_calibration_was_disturbed_throughout_is_told_and_grows() {
        // the first side's whole calibration, and its first round
        let sides = made_up(|run| run < 4);
        let (cost, rounds, short, n) = &sides[0];
        assert!((1..=4).contains(short), "{short}");
        assert!(cost * *n as f64 >= 5e5, "{n} operations in the last round");
        assert!((rounds[20] - cost).abs() < 1e-6, "{rounds:?}");
        assert!(sides[1..].iter().all(|side| side.2 == 0));
    }

    #[test]
    fn rounds_go_on_until_enough_of_each_side_are_quiet_or_the_most_are_run() {
        let rounds = |most_rounds| {
            let mut clock = MadeUp { costs: vec![1.0, 2.0], interrupted: |_| false, runs: Vec::new() };
            let settings = Settings { rounds: 5, most_rounds, slice: Duration::from_micros(1), trials: 1 };
            run_rounds(&mut clock, &[1, 1], settings, &mut |_, _| ()).expect("measured")
        };
        let quiet = |side: &Series| side.quiet.iter().filter(|quiet| **quiet).count();
        for side in rounds(1000) {
            assert!((MIN_QUIET_ROUNDS..MIN_QUIET_ROUNDS + 2).contains(&quiet(&side)), "{side:?}");
            assert_eq!(side.quiet.len(), side.rounds.len());
        }
        for most in [0, 5, 7] {
            assert!(rounds(most).iter().all(|side| side.rounds.len() == most.max(5)));
        }
    }

    #[test]
    fn a_side_that_takes_no_time_ends_the_calibration() {
        let mut clock = MadeUp { costs: vec![0.0], interrupted: |_| false, runs: Vec::new() };
        let settings = Settings { rounds: 2, most_rounds: 2, slice: Duration::from_millis(1), trials: 1 };
        let series = run_rounds(&mut clock, &[1], settings, &mut |_, _| ()).expect("measured");
        assert_eq!((&series[0].rounds[..], series[0].short), (&[0.0, 0.0][..], 0));
        assert!(clock.runs.iter().all(|run| run.1 <= MOST));
    }

    #[test]
    fn sides_count_what_the_runner_asked_for() {
        let cpus = os::allowed_cpus().expect("affinity");
        let threads = cpus.len().min(2);
        let (first, second) = (plain::inc(threads, false), plain::inc(threads, true));
        let mut last = (0, 0);
        let outcomes =
            measure(&cpus[..threads], &[first.as_ref(), second.as_ref()], quick(), &mut |done, all| {
                last = (done, all)
            })
            .expect("measured");
        assert_eq!(outcomes.len(), 2);
        for outcome in outcomes {
            assert_eq!(outcome.rounds.len(), 3);
            assert_eq!(outcome.exact, Some(true));
        }
        assert_eq!(last.0, last.1);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        let side = plain::nothing(false);
        let error = measure(&[65_000], &[side.as_ref()], quick(), &mut |_, _| ()).err().expect("error");
        assert!(error.to_string().contains("65000"), "{error}");
    }
}
