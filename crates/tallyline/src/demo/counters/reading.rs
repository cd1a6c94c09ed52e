//! Cost of reading: on this machine, and on a larger synthetic one.
//!
//! All reads take turns, round after round, as the ways to count do in [`super::race`].

use super::Stopped;
use super::workload::{COUNTERS, Groups, INTERFACES, Store, Traffic, groups};
use anyhow::{Context, Result};
use serde::Serialize;
use statctr::topology::{CpuId, Topology};
use statctr::{Group, Placement, Pool, fold_groups};
use std::hint::black_box;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tallyline_support::Summary;

/// The number of possible CPUs of the demo's synthetic machine.
pub(crate) const POSSIBLE: u32 = 192;

/// The number of present (plugged-in) CPUs of the demo's synthetic machine.
pub(crate) const PRESENT: u32 = 32;

/// The extent of a read whose cost the demo measures: one counter, one group (a network interface's counters), or all
/// counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum What {
    /// One counter.
    Counter,
    /// The four counters of an interface.
    Group,
    /// The counters of all interfaces.
    All,
}

impl What {
    pub(crate) const ALL: [What; 3] = [What::Counter, What::Group, What::All];

    /// Returns the name of the extent of a read for tables, such as "one counter".
    pub(crate) fn name(self) -> &'static str {
        match self {
            What::Counter => "one counter",
            What::Group => "one interface (4 counters)",
            What::All => "all 16 interfaces (64 counters)",
        }
    }

    pub(crate) fn short_name(self) -> &'static str {
        match self {
            What::Counter => "one counter",
            What::Group => "one interface",
            What::All => "all 16 interfaces",
        }
    }
}

/// The measured time of one read of counters in the demo, with the machine and the number of CPUs that counted.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cost {
    /// Whose counters: `shared-atomic` or `statctr`.
    pub(crate) case: &'static str,
    /// The object of the read.
    pub(crate) what: What,
    /// `true` if the CPUs are synthetic; the memory is real even then.
    pub(crate) made_up: bool,
    /// CPUs that counted, which a read walks.
    pub(crate) cpus: usize,
    /// Always `ns/read`.
    pub(crate) unit: &'static str,
    /// The middle round.
    pub(crate) median: f64,
    /// The fastest.
    pub(crate) min: f64,
    /// The slowest.
    pub(crate) max: f64,
    /// Round by round.
    #[serde(skip)]
    series: Vec<f64>,
}

/// The time of reading counters over all possible CPUs of the demo's synthetic machine, relative to reading over
/// the present ones.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct WalkRatio {
    /// The object of the read.
    pub(crate) what: What,
    /// CPUs in the longer walk.
    pub(crate) over_cpus: usize,
    /// CPUs in the shorter walk.
    pub(crate) under_cpus: usize,
    /// The middle of the ratios that the rounds came to.
    pub(crate) median: f64,
    /// The smallest.
    pub(crate) min: f64,
    /// The largest.
    pub(crate) max: f64,
}

/// Rounds in which each read has its turn.
const ROUNDS: u32 = 15;

/// The identifier of the shared atomics in the demo's JSON results.
pub(crate) const SHARED: &str = "shared-atomic";

/// The identifier of the `statctr` counters in the demo's JSON results.
pub(crate) const STATCTR: &str = "statctr";

/// The numbers of CPUs of the synthetic machine that have counted at each measurement.
const STEPS: [u32; 10] = [1, 2, 4, 8, 16, PRESENT, 64, 96, 128, POSSIBLE];

/// Returns the number of time slices that the demo's measurements of reads take, for the progress bar.
pub(crate) fn slices() -> u32 {
    (2 + STEPS.len() as u32) * What::ALL.len() as u32 * ROUNDS
}

/// Measures the time of reading counters while nobody writes: those of the compared counting methods, and those of a
/// synthetic machine with 192 possible CPUs, by the number of CPUs that have counted.
pub(crate) fn measure(
    store: &Store,
    pool: &Pool,
    slice: Duration,
    tick: &mut dyn FnMut(Duration),
) -> Result<Vec<Cost>> {
    let made_up = STEPS.into_iter().map(MadeUp::new).collect::<Result<Vec<_>>>()?;
    let mut reads = Vec::new();
    for what in What::ALL {
        reads.push(Read::new(SHARED, what, None, move |times| read_shared(store, what, times)));
        let mut readers = Readers::new(store.groups());
        let cpus = Some((false, pool.active_cpus().len()));
        reads.push(Read::new(STATCTR, what, cpus, move |times| readers.read(what, times)));
        for machine in &made_up {
            let mut readers = Readers::new(&machine.groups);
            let cpus = Some((true, machine.cpus));
            reads.push(Read::new(STATCTR, what, cpus, move |times| readers.read(what, times)));
        }
    }
    reads.iter_mut().for_each(|read| read.calibrate(slice));
    for _ in 0..ROUNDS {
        for read in &mut reads {
            Stopped::check()?;
            read.turn();
            tick(slice);
        }
    }
    Ok(reads.into_iter().map(Read::end).collect())
}

/// Returns, for each extent of a read (one counter, one group, all), the time over all possible CPUs of the synthetic
/// machine relative to that over the present ones.
pub(crate) fn ratios(costs: &[Cost]) -> Vec<WalkRatio> {
    let find = |what, cpus: u32| {
        costs.iter().find(|cost| cost.made_up && cost.what == what && cost.cpus == cpus as usize)
    };
    let ratio = |what| {
        let (over, under) = (find(what, POSSIBLE)?, find(what, PRESENT)?);
        let all = Summary::of_ratio(&over.series, &under.series)?;
        let (over_cpus, under_cpus) = (over.cpus, under.cpus);
        Some(WalkRatio { what, over_cpus, under_cpus, median: all.median, min: all.min, max: all.max })
    };
    What::ALL.into_iter().filter_map(ratio).collect()
}

/// Groups on a machine that is not there.
struct MadeUp {
    groups: Groups,
    /// CPUs that have counted.
    cpus: usize,
}

impl MadeUp {
    fn new(cpus: u32) -> Result<MadeUp> {
        let first = first_unreal_cpu()?;
        let possible = (first..first + POSSIBLE).map(CpuId::new).collect();
        let topology = Topology::synthetic_sparse(possible).build()?;
        let pool = Pool::builder().topology(topology).placement(Placement::Fixed).build()?;
        let groups = groups(&pool)?;
        for cpu in first..first + cpus {
            for traffic in &groups {
                for item in [Traffic::rx_packets, Traffic::rx_bytes, Traffic::tx_packets, Traffic::tx_bytes] {
                    traffic.group().add_on_synthetic(CpuId::new(cpu), item, 1)?;
                }
            }
        }
        Ok(MadeUp { groups, cpus: cpus as usize })
    }
}

#[inline(never)]
fn read_shared(store: &Store, what: What, times: u64) {
    let word = |index: usize| store.shared_word(index / COUNTERS, index % COUNTERS).load(Ordering::Relaxed);
    let mut values = [0; INTERFACES * COUNTERS];
    for turn in 0..times as usize {
        let interface = turn % INTERFACES * COUNTERS;
        match what {
            What::Counter => values[0] = word(interface),
            What::Group => (0..COUNTERS).for_each(|item| values[item] = word(interface + item)),
            What::All => (0..values.len()).for_each(|index| values[index] = word(index)),
        }
        black_box(&mut values);
    }
}

/// Returns the library counts on behalf of CPUs only that this kernel cannot have.
fn first_unreal_cpu() -> Result<u32> {
    let last = Topology::current()?.possible().last().map_or(0, CpuId::get);
    let first = (last + 1).next_multiple_of(64);
    Some(first)
        .filter(|first| first + POSSIBLE <= CpuId::MAX.get())
        .context("no numbers left for made-up CPUs")
}

/// The ways to read ours.
struct Readers<'g> {
    traffic: &'g Groups,
    groups: Vec<&'g Group>,
    values: [u64; INTERFACES * COUNTERS],
}

impl<'g> Readers<'g> {
    fn new(traffic: &'g Groups) -> Self {
        Readers {
            traffic,
            groups: traffic.iter().map(Traffic::group).collect(),
            values: [0; INTERFACES * COUNTERS],
        }
    }

    #[inline(never)]
    fn read(&mut self, what: What, times: u64) {
        for turn in 0..times as usize {
            let group = self.traffic[turn % INTERFACES].group();
            // the buffer is large enough in both cases
            match what {
                What::Counter => drop(black_box(group.read_item(Traffic::rx_packets))),
                What::Group => drop(black_box(group.fold_into(&mut self.values[..COUNTERS]))),
                What::All => drop(black_box(fold_groups(&self.groups, &mut self.values))),
            }
            black_box(&self.values);
        }
    }
}

/// One way to read one thing, and what it came to.
struct Read<'r> {
    case: &'static str,
    what: What,
    made_up: bool,
    cpus: usize,
    read: Box<dyn FnMut(u64) + 'r>,
    times: u64,
    series: Vec<f64>,
}

impl<'r> Read<'r> {
    fn new(case: &'static str, what: What, walk: Option<(bool, usize)>, read: impl FnMut(u64) + 'r) -> Self {
        let (made_up, cpus) = walk.unwrap_or((false, 0));
        Read { case, what, made_up, cpus, read: Box::new(read), times: 1, series: Vec::new() }
    }

    fn time(&mut self) -> Duration {
        let start = Instant::now();
        (self.read)(self.times);
        start.elapsed()
    }

    /// Finds out how many reads fill a slice.
    fn calibrate(&mut self, slice: Duration) {
        // twice: once can be an interruption
        while self.time().min(self.time()) < slice / 2 {
            self.times *= 2;
        }
    }

    fn turn(&mut self) {
        let time = self.time();
        self.series.push(time.as_nanos() as f64 / self.times as f64);
    }

    fn end(self) -> Cost {
        let Read { case, what, made_up, cpus, series, .. } = self;
        // there were rounds, and none took forever
        let (median, min, max) =
            Summary::of(&series).map_or((0.0, 0.0, 0.0), |all| (all.median, all.min, all.max));
        Cost { case, what, made_up, cpus, unit: "ns/read", median, min, max, series }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns costs as another machine could have them.
    pub(crate) fn sample() -> Vec<Cost> {
        let cost = |case, what: What, made_up, cpus: usize| {
            let (first, each) = [(5.0, 0.6), (25.0, 1.4), (80.0, 8.6)][what as usize];
            let median = if case == SHARED { 0.3 * first } else { first + each * cpus as f64 };
            let series = vec![median, median * 1.1, median * 0.9];
            Cost {
                case,
                what,
                made_up,
                cpus,
                unit: "ns/read",
                median,
                min: series[2],
                max: series[1],
                series,
            }
        };
        let of = |what| {
            let here = [cost(SHARED, what, false, 0), cost(STATCTR, what, false, 2)];
            let there = STEPS.into_iter().map(move |cpus| cost(STATCTR, what, true, cpus as usize));
            here.into_iter().chain(there)
        };
        What::ALL.into_iter().flat_map(of).collect()
    }

    #[test]
    fn walks_are_compared_round_by_round() {
        let ratios = ratios(&sample());
        assert_eq!(ratios.len(), 3);
        assert_eq!((ratios[0].over_cpus, ratios[0].under_cpus), (192, 32));
        assert!((ratios[0].median - (5.0 + 0.6 * 192.0) / (5.0 + 0.6 * 32.0)).abs() < 1e-9);
    }

    #[test]
    fn both_ways_to_read_see_what_was_counted() {
        let made_up = MadeUp::new(3).expect("made-up CPUs");
        let mut readers = Readers::new(&made_up.groups);
        readers.read(What::All, 1);
        assert!(readers.values.iter().all(|&value| value == 3), "{:?}", readers.values);
        assert_eq!(made_up.groups[5].group().read_item(Traffic::tx_bytes), 3);
    }
}
