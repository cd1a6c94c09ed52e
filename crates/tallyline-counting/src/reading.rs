//! Cost of reading: on this machine, and on a larger synthetic one.
//!
//! All reads take turns, round after round, as the methods do in [`race`](crate::race).

use crate::workload::{COUNTERS, Groups, INTERFACES, Store, Traffic, groups};
use crate::{Error, Result, Tick, report};
use serde::Serialize;
use statctr::topology::{CpuId, Topology};
use statctr::{Group, Placement, Pool, fold_groups};
use std::hint::black_box;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tallyline_support::Summary;

/// The number of possible CPUs of the synthetic machine (made-up CPUs), on which reads of per-CPU counters are
/// measured.
pub const POSSIBLE: u32 = 192;

/// The number of present (plugged-in) CPUs of the synthetic machine (made-up CPUs), on which reads of per-CPU counters
/// are measured.
pub const PRESENT: u32 = 32;

/// The extent of a read: one counter, one group (a network interface's counters), or all
/// counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A read of one counter.
    Counter,
    /// A read of the four counters of an interface.
    Group,
    /// A read of the counters of all interfaces.
    All,
}

impl What {
    /// All extents of a read of counters, from small to large: one counter, one network interface's, all.
    pub const ALL: [What; 3] = [What::Counter, What::Group, What::All];

    /// Returns the name of the extent of a read for tables, such as "one counter".
    pub fn name(self) -> &'static str {
        match self {
            What::Counter => "one counter",
            What::Group => "one interface (4 counters)",
            What::All => "all 16 interfaces (64 counters)",
        }
    }

    /// Returns a shorter name of the extent of a read for plots, such as "one interface".
    pub fn short_name(self) -> &'static str {
        match self {
            What::Counter => "one counter",
            What::Group => "one interface",
            What::All => "all 16 interfaces",
        }
    }
}

/// The measured time of one read of counters, with the machine and the number of CPUs that counted.
#[derive(Debug, Clone, Serialize)]
pub struct Cost {
    /// The counters: [`SHARED`] or [`STATCTR`].
    pub case: &'static str,
    /// The object of the read.
    pub what: What,
    /// `true` if the CPUs are synthetic; the memory is real even then.
    pub made_up: bool,
    /// CPUs that counted, which a read walks.
    pub cpus: usize,
    /// The unit of the figures, always `ns/read`.
    pub unit: &'static str,
    /// The median round, in nanoseconds.
    pub median: f64,
    /// The fastest round, in nanoseconds.
    pub min: f64,
    /// The slowest round, in nanoseconds.
    pub max: f64,
    /// The nanoseconds for one read, round by round.
    #[serde(skip)]
    series: Vec<f64>,
}

impl Cost {
    /// Creates the result of timing one kind of read of counters: the median, minimum and maximum of `series`, which
    /// has the nanoseconds for one read, round by round.
    pub fn of_rounds(case: &'static str, what: What, made_up: bool, cpus: usize, series: Vec<f64>) -> Cost {
        // there were rounds, and none took forever
        let (median, min, max) =
            Summary::of(&series).map_or((0.0, 0.0, 0.0), |all| (all.median, all.min, all.max));
        Cost { case, what, made_up, cpus, unit: "ns/read", median, min, max, series }
    }
}

/// The time of reading per-CPU counters over all possible CPUs of the synthetic machine (made-up CPUs, real memory),
/// relative to reading over its present ones.
#[derive(Debug, Clone, Serialize)]
pub struct WalkRatio {
    /// The object of the read.
    pub what: What,
    /// CPUs in the longer walk.
    pub over_cpus: usize,
    /// CPUs in the shorter walk.
    pub under_cpus: usize,
    /// The median of the ratios of the rounds.
    pub median: f64,
    /// The smallest ratio of a round.
    pub min: f64,
    /// The largest ratio of a round.
    pub max: f64,
}

/// Rounds in which each read has its turn.
const ROUNDS: u32 = 15;

/// The identifier, in the results of timing reads, of counters that are atomic words shared by all threads.
pub const SHARED: &str = "shared-atomic";

/// The identifier, in the results of timing reads, of `statctr`'s per-CPU counters.
pub const STATCTR: &str = "statctr";

/// The numbers of CPUs of the synthetic machine that have counted at each measurement.
const STEPS: [u32; 10] = [1, 2, 4, 8, 16, PRESENT, 64, 96, 128, POSSIBLE];

/// Returns the number of time slices in which [`measure`] times reads of counters, for the progress bar.
pub fn slices() -> u32 {
    (2 + STEPS.len() as u32) * What::ALL.len() as u32 * ROUNDS
}

/// Measures the time of reading counters while nobody writes: those of the compared counting methods, and those of a
/// synthetic machine with 192 possible CPUs, by the number of CPUs that have counted.
///
/// # Errors
/// Pools that cannot be created, and [`Error::Stopped`] if `tick` wants the end.
pub fn measure(store: &Store, pool: &Pool, slice: Duration, tick: Tick<'_>) -> Result<Vec<Cost>> {
    let synthetic = STEPS.into_iter().map(Synthetic::new).collect::<Result<Vec<_>>>()?;
    let mut reads = Vec::new();
    for what in What::ALL {
        reads.push(Read::new(SHARED, what, None, move |times| read_shared(store, what, times)));
        let mut readers = Readers::new(store.groups());
        let cpus = Some((false, pool.active_cpus().len()));
        reads.push(Read::new(STATCTR, what, cpus, move |times| readers.read(what, times)));
        for machine in &synthetic {
            let mut readers = Readers::new(&machine.groups);
            let cpus = Some((true, machine.cpus));
            reads.push(Read::new(STATCTR, what, cpus, move |times| readers.read(what, times)));
        }
    }
    reads.iter_mut().for_each(|read| read.calibrate(slice));
    for _ in 0..ROUNDS {
        for read in &mut reads {
            read.turn();
            report(tick, slice)?;
        }
    }
    Ok(reads.into_iter().map(Read::end).collect())
}

/// Returns, for each extent of a read of counters (one counter, one group, all), the time of reading over all possible
/// CPUs of the synthetic machine (made-up CPUs) relative to that over its present ones.
pub fn ratios(costs: &[Cost]) -> Vec<WalkRatio> {
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

/// Counter groups on a synthetic machine.
struct Synthetic {
    groups: Groups,
    /// CPUs that have counted.
    cpus: usize,
}

impl Synthetic {
    fn new(cpus: u32) -> Result<Synthetic> {
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
        Ok(Synthetic { groups, cpus: cpus as usize })
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

/// Returns the first number that no CPU of this kernel can have: the library counts on behalf of such CPUs only.
fn first_unreal_cpu() -> Result<u32> {
    let last = Topology::current()?.possible().last().map_or(0, CpuId::get);
    let first = (last + 1).next_multiple_of(64);
    Some(first).filter(|first| first + POSSIBLE <= CpuId::MAX.get()).ok_or(Error::NoCpuNumbers)
}

/// Reads of the per-CPU counters.
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

/// A read that is timed, with its times round by round.
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

    /// Raises the number of reads until they fill a slice.
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
        Cost::of_rounds(case, what, made_up, cpus, series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_are_compared_round_by_round() {
        let cost = |cpus: u32, nanoseconds: f64| {
            let series = vec![nanoseconds, nanoseconds * 1.1, nanoseconds * 0.9];
            Cost::of_rounds(STATCTR, What::Counter, true, cpus as usize, series)
        };
        let ratios = ratios(&[cost(PRESENT, 20.0), cost(POSSIBLE, 110.0)]);
        assert_eq!(ratios.len(), 1);
        assert_eq!((ratios[0].over_cpus, ratios[0].under_cpus), (192, 32));
        assert!((ratios[0].median - 5.5).abs() < 1e-9);
    }

    #[test]
    fn reads_of_every_extent_return_what_was_counted() {
        let synthetic = Synthetic::new(3).expect("synthetic CPUs");
        let mut readers = Readers::new(&synthetic.groups);
        readers.read(What::All, 1);
        assert!(readers.values.iter().all(|&value| value == 3), "{:?}", readers.values);
        assert_eq!(synthetic.groups[5].group().read_item(Traffic::tx_bytes), 3);
    }
}
