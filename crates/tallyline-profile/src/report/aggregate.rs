//! Rows: samples with equal keys, counted together.

use super::filter::Filter;
use super::keys::Column;
use super::profile::{Point, Profile};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// What is counted of a row, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Samples.
    pub samples: u64,
    /// The sum of the periods.
    pub period: u64,
    /// The sum of what percentages weigh: periods, or weights where each counts at least 1.
    pub total: u64,
}

impl Counts {
    /// Adds what another row has.
    pub fn add(&mut self, other: Counts) {
        self.samples += other.samples;
        self.period = self.period.saturating_add(other.period);
        self.total = self.total.saturating_add(other.total);
    }

    /// The share in percent of a whole.
    pub fn percent(&self, whole: &Counts) -> f64 {
        if whole.total == 0 { 0.0 } else { self.total as f64 * 100.0 / whole.total as f64 }
    }
}

/// What percentages weigh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weighing {
    /// The periods: how many events.
    #[default]
    Period,
    /// The weights: how many cycles; a sample without one counts 1, as in perf's memory mode.
    Weight,
}

impl Weighing {
    /// What a sample weighs.
    pub fn of(self, point: &Point) -> u64 {
        match self {
            Weighing::Period => point.period,
            Weighing::Weight => point.weight.weight.max(1),
        }
    }
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The value of each column that is a key.
    pub values: Box<[u64]>,
    /// All events together.
    pub counts: Counts,
    /// Each event of the table.
    pub events: Box<[Counts]>,
}

/// Rows, the largest first.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The rows.
    pub rows: Vec<Row>,
    /// What the filter lets through.
    pub shown: Counts,
    /// All samples of these events: what percentages are of.
    pub whole: Counts,
    /// The same for each event.
    pub whole_events: Vec<Counts>,
}

type Groups = FxHashMap<Box<[u64]>, Box<[Counts]>>;

/// Counts the samples of some events by columns. Cost: one hash for each sample, in parallel.
pub fn aggregate(
    profile: &Profile,
    columns: &[Column],
    events: &[usize],
    filter: &Filter,
    weighing: Weighing,
) -> Table {
    let keys: Vec<_> = columns.iter().filter_map(Column::key).collect();
    let number_of = |point: &Point| events.iter().position(|event| *event == point.event as usize);
    let empty = || (Groups::default(), vec![Counts::default(); events.len()]);
    let chunk = (profile.points.len() / (rayon::current_num_threads() * 4)).max(1 << 12);
    let (groups, whole_events) = profile
        .points
        .par_chunks(chunk)
        .map(|points| {
            let (mut groups, mut whole) = empty();
            let mut values: Vec<u64> = vec![0; keys.len()];
            for point in points {
                let Some(event) = number_of(point) else { continue };
                let counts = Counts { samples: 1, period: point.period, total: weighing.of(point) };
                whole[event].add(counts);
                if !filter.accepts(profile, point) {
                    continue;
                }
                for (value, key) in values.iter_mut().zip(&keys) {
                    *value = (key.value)(profile, point);
                }
                match groups.get_mut(values.as_slice()) {
                    Some(events) => events[event].add(counts),
                    None => {
                        let mut of_events = vec![Counts::default(); events.len()];
                        of_events[event] = counts;
                        groups.insert(values.clone().into(), of_events.into());
                    }
                }
            }
            (groups, whole)
        })
        .reduce(empty, merge);
    finish(groups, whole_events)
}

fn merge(
    (mut groups, mut whole): (Groups, Vec<Counts>),
    (other, other_whole): (Groups, Vec<Counts>),
) -> (Groups, Vec<Counts>) {
    if groups.len() < other.len() {
        return merge((other, other_whole), (groups, whole));
    }
    for (values, counts) in other {
        match groups.get_mut(&values) {
            Some(known) => known.iter_mut().zip(counts).for_each(|(known, counts)| known.add(counts)),
            None => {
                groups.insert(values, counts);
            }
        }
    }
    whole.iter_mut().zip(other_whole).for_each(|(whole, other)| whole.add(other));
    (groups, whole)
}

fn finish(groups: Groups, whole_events: Vec<Counts>) -> Table {
    let sum = |events: &[Counts]| {
        let mut sum = Counts::default();
        events.iter().for_each(|counts| sum.add(*counts));
        sum
    };
    let mut rows: Vec<Row> =
        groups.into_iter().map(|(values, events)| Row { values, counts: sum(&events), events }).collect();
    rows.par_sort_unstable_by(|a, b| {
        let size = |row: &Row| (row.counts.total, row.counts.samples);
        size(b).cmp(&size(a)).then_with(|| a.values.cmp(&b.values))
    });
    let mut shown = Counts::default();
    rows.iter().for_each(|row| shown.add(row.counts));
    Table { rows, shown, whole: sum(&whole_events), whole_events }
}
