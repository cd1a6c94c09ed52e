//! Pairs of loops that are timed in turn, on threads that are pinned.

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use tallyline_support::quiet::{self, FastestProbes, MIN_QUIET_ROUNDS};
use tallyline_support::{Summary, cpus, ratios};

/// The length of one side's run in a round: less than a scheduler's slice, so that on a machine with other work most
/// runs are not interrupted.
const SLICE: Duration = Duration::from_millis(1);
/// Updates of the first run, by which the others' number is found.
const FIRST: u64 = 20_000;

/// The most rounds for one that was asked for, until enough of them are quiet.
const MOST_ROUNDS: usize = 20;

/// Creates a [`Pair`] with loops of its own: at most one for each line of the source.
#[macro_export]
macro_rules! pair {
    ($name:expr, $over:expr, $under:expr $(,)?) => {
        $crate::runner::Pair::new::<{ line!() }>($name, $over, $under)
    };
}

/// A loop of this many updates.
type Loop = Box<dyn Fn(u64) + Send + Sync>;

/// A comparison of two implementations of one metric update (for instance a facade's and a hand-written one), timed in
/// alternating runs.
pub(crate) struct Pair {
    name: &'static str,
    sides: [Loop; 2],
}

impl Pair {
    /// Creates a comparison of two updates; its printed ratio is the time of `over` divided by the time of `under`.
    /// `SITE` has to differ between all pairs, so that each loop is compiled separately: use [`pair!`](crate::pair).
    pub(crate) fn new<const SITE: u32>(
        name: &'static str,
        over: impl Fn() + Send + Sync + 'static,
        under: impl Fn() + Send + Sync + 'static,
    ) -> Pair {
        Pair { name, sides: [repeated::<SITE, 0>(over), repeated::<SITE, 1>(under)] }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Times both updates in alternating rounds, with one pinned thread on each of these CPUs, and prints one line:
    /// median nanoseconds per update of each, their ratio and its quartiles, and the ratio of the quiet rounds, of
    /// which there are [`MIN_QUIET_ROUNDS`] unless the CPUs stay disturbed; nothing of those where all rounds are alike.
    /// `fastest` are the fastest probes of all pairs.
    pub(crate) fn measure(
        &self,
        cpus: &[usize],
        rounds: usize,
        fastest: &mut FastestProbes,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let counts = [self.count(cpus, 0)?, self.count(cpus, 1)?];
        let mut times = [Vec::new(), Vec::new()];
        // of each round those of all threads of both sides
        let mut probes: Vec<Vec<f64>> = Vec::new();
        for round in 0..rounds.max(1) * MOST_ROUNDS {
            let quiet = || probes.iter().filter(|probes| fastest.is_quiet(probes)).count();
            if round >= rounds && quiet() >= MIN_QUIET_ROUNDS {
                break;
            }
            let mut of_round = vec![0.0_f64; cpus.len()];
            // each side is the first one in every other round
            for step in 0..2 {
                let side = (round + step) % 2;
                let Run { time, probes } = self.run(cpus, side, counts[side])?;
                times[side].push(time);
                fastest.observe(&probes);
                for (slowest, probe) in of_round.iter_mut().zip(probes) {
                    *slowest = slowest.max(probe);
                }
            }
            probes.push(of_round);
        }
        let of = |side: usize| Summary::of(&times[side]).ok_or("no rounds");
        let ratios = ratios(&times[0], &times[1]);
        let ratio = Summary::of(&ratios).ok_or("no rounds")?;
        print!(
            "{:<44} {:>7} {:>8.2} {:>8.2} {:>7.2}  {:.2} to {:.2}",
            self.name,
            cpus.len(),
            of(0)?.median,
            of(1)?.median,
            ratio.median,
            ratio.q1,
            ratio.q3
        );
        let is_quiet = |round: usize| fastest.is_quiet(&probes[round]);
        match quiet::summarize(&ratios, is_quiet) {
            Some(ratio) => {
                println!("  quiet: {:.2} ({} of {} rounds)", ratio.median, ratio.rounds, ratios.len());
            }
            None if (0..ratios.len()).all(is_quiet) => println!(),
            None => println!("  quiet: too few of {} rounds", ratios.len()),
        }
        Ok(())
    }

    /// Returns the number of updates that fill a slice.
    fn count(&self, cpus: &[usize], side: usize) -> Result<u64, String> {
        let mut least = f64::INFINITY;
        for _ in 0..5 {
            least = least.min(self.run(cpus, side, FIRST)?.time);
        }
        Ok((SLICE.as_nanos() as f64 / least) as u64)
    }

    /// Runs a side on all CPUs at once.
    fn run(&self, cpus: &[usize], side: usize, updates: u64) -> Result<Run, String> {
        let together = Barrier::new(cpus.len());
        let work = |cpu: usize| {
            let pinned = cpus::pin(cpu).map_err(|error| format!("cannot stay on CPU {cpu}: {error}"));
            (self.sides[side])(updates / 16);
            together.wait();
            let before = quiet::probe();
            let start = Instant::now();
            (self.sides[side])(updates);
            let time = start.elapsed().as_nanos() as f64 / updates as f64;
            pinned.map(|()| (time, before.max(quiet::probe())))
        };
        let outcomes: Vec<Result<(f64, f64), String>> = std::thread::scope(|scope| {
            let threads: Vec<_> = cpus.iter().map(|&cpu| scope.spawn(move || work(cpu))).collect();
            let joined = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()))
            };
            threads.into_iter().map(joined).collect()
        });
        let (times, probes): (Vec<f64>, Vec<f64>) =
            outcomes.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        Ok(Run { time: times.iter().sum::<f64>() / cpus.len() as f64, probes })
    }
}

/// The result of one run of a side.
struct Run {
    /// Nanoseconds for an update, the mean of the threads.
    time: f64,
    /// By thread, the slower one of the probes before and after ([`quiet::probe`]).
    probes: Vec<f64>,
}

/// Returns a loop around an update. The update is compiled into it; the loop is called once a run.
fn repeated<const SITE: u32, const SIDE: u32>(update: impl Fn() + Send + Sync + 'static) -> Loop {
    Box::new(move |updates| {
        // Loops of the same instructions would be merged, and their indirect calls would have one call site with
        // several targets, which Zen 4 predicts at three cycles more than one with a single target. A call site
        // in a program has one: the implementation that it was started with.
        black_box((SITE, SIDE));
        let update = black_box(&update);
        for _ in 0..updates {
            // The compiler knows nothing of the handle, and loads it again with each update, as a program does that
            // has it in memory. It is not handed through `black_box` each time: that stores its address and loads it
            // back, so each update waits for that store, which no program has, and more so the more loads follow.
            black_box(());
            update();
        }
    })
}

/// An OpenTelemetry metrics exporter that discards everything, so that benchmarks export nothing.
pub(crate) struct NullExporter;

impl PushMetricExporter for NullExporter {
    async fn export(&self, _: &ResourceMetrics) -> OTelSdkResult {
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}
