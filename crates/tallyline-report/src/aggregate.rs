//! Rows: samples with equal keys, counted together.

use super::counts::Counts;
use super::filter::Filter;
use super::keys::Column;
use super::profile::{Profile, SampleGroup};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// The quantity that percentages are computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weighing {
    /// The periods: how many events.
    #[default]
    Period,
    /// The weights: how many cycles; a sample without one counts 1, as in perf's memory mode.
    Weight,
}

impl Weighing {
    /// Returns the weight of a group of samples.
    pub fn of(self, point: &SampleGroup) -> u64 {
        match self {
            Weighing::Period => point.period,
            Weighing::Weight => point.weight.weight().max(1).saturating_mul(point.samples),
        }
    }
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub(crate) values: Box<[u64]>,
    pub(crate) counts: Counts,
    pub(crate) events: Box<[Counts]>,
}

impl Row {
    /// Returns the value of each column that is a key.
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// Returns the counts of all events together.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the counts of each event of the table.
    pub fn events(&self) -> &[Counts] {
        &self.events
    }
}

/// Rows, the largest first.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The rows.
    pub rows: Vec<Row>,
    /// The samples that the filter lets through.
    pub shown: Counts,
    /// All samples of these events: the whole of the percentages.
    pub whole: Counts,
    /// All samples of each event.
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
    let number_of = |point: &SampleGroup| events.iter().position(|event| *event == point.event as usize);
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
                let counts =
                    Counts { samples: point.samples, period: point.period, total: weighing.of(point) };
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

#[cfg(test)]
mod tests {
    use super::super::hierarchy;
    use super::super::keys::{ALL, Column};
    use super::super::names::NameId;
    use super::super::operand::{Operand, Outcome, Reason};
    use super::super::profile::{EventInfo, Place, Resolved};
    use super::*;
    use std::collections::HashSet;
    use tallyline_inference::Pseudo;
    use tallyline_perf_data::sample::{CpuMode, DataSource, Weight};

    /// Numbers without an order (xorshift); the same in each run.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % limit
        }
    }

    /// Samples of everything at random, many of them equal in some keys.
    fn profile(random: &mut Random, samples: usize) -> Profile {
        let mut profile = Profile { line_size: 64, ..Profile::default() };
        let names: Vec<NameId> = ["a", "b", "c", "d"].iter().map(|name| profile.names.intern(name)).collect();
        let event = |name: &str| EventInfo {
            name: name.to_owned(),
            is_precise: true,
            is_counter: false,
            has_weight: true,
            has_source: true,
        };
        profile.events = vec![event("one"), event("two")];
        for index in 0..40 {
            profile.places.push(Place { dso: index % 3, offset: index.into(), mode: CpuMode::User, pid: 0 });
            profile.resolved.push(Resolved {
                address: index.into(),
                symbol: index % 5,
                ..Resolved::default()
            });
            let name = names[index as usize % 4];
            profile.outcomes.push(match index % 4 {
                0 => Outcome::Pseudo(Pseudo::StackOperation),
                1 => Outcome::Untyped(Reason::NoDebugInfo),
                _ => Outcome::Typed(Operand {
                    ty: 0,
                    name,
                    offset: u64::from(index) * 8,
                    or: None,
                    within: None,
                    field: name,
                    text: name,
                    size: 8,
                    candidates: u64::MAX,
                    reads: true,
                    writes: index % 8 == 2,
                }),
            });
        }
        for _ in 0..samples {
            let place = random.below(40) as u32;
            profile.points.push(SampleGroup {
                event: random.below(2) as u32,
                pid: random.below(3) as i32,
                tid: random.below(5) as i32,
                comm: names[random.below(4) as usize],
                cpu: random.below(4) as u32,
                exact: true,
                samples: 1,
                mode: CpuMode::User,
                ip: random.below(50),
                place,
                charged: place,
                caller: random.below(40) as u32,
                time: 0,
                period: random.below(1000),
                address: random.below(4096),
                data: crate::index::DataId::from_position(0),
                registers: None,
                physical_address: random.below(4096),
                weight: Weight::new(random.below(50), 1, 2),
                source: (random.below(2) == 0).then(|| DataSource(random.below(1 << 40))),
                data_page_size: 4096,
                code_page_size: 4096,
            });
        }
        profile
    }

    #[test]
    fn rows_of_any_keys_and_filter_add_up_to_the_samples_that_get_through() {
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        // more than one chunk of the parallel part
        let profile = profile(&mut random, 30_000);
        for round in 0..60 {
            let keys: Vec<Column> = (0..1 + random.below(4))
                .map(|_| Column::Key(ALL[random.below(ALL.len() as u64) as usize]))
                .collect();
            let cpus = (0..4).filter(|_| random.below(2) == 0).collect();
            let tids = (0..5).filter(|_| random.below(3) == 0).collect();
            let types = ["a", "(unknown)"].iter().filter(|_| random.below(3) == 0);
            let types: HashSet<String> = types.map(|name| (*name).to_owned()).collect();
            let types = Some(types).filter(|types| !types.is_empty());
            let filter = Filter { cpus, tids, types, ..Filter::default() };
            let weighing = if round % 2 == 0 { Weighing::Period } else { Weighing::Weight };
            let events: &[usize] = [&[0][..], &[1], &[0, 1]][round % 3];
            let table = aggregate(&profile, &keys, events, &filter, weighing);
            let of_events = || profile.points.iter().filter(|point| events.contains(&(point.event as usize)));
            let mut expected = Counts::default();
            for point in of_events().filter(|point| filter.accepts(&profile, point)) {
                expected.add(Counts { samples: 1, period: point.period, total: weighing.of(point) });
            }
            let mut sum = Counts::default();
            table.rows.iter().for_each(|row| sum.add(row.counts));
            assert_eq!((sum, table.shown), (expected, expected), "{keys:?} {filter:?}");
            assert_eq!(table.whole.samples, of_events().count() as u64);
            for row in &table.rows {
                let of_row: u64 = row.events.iter().map(|counts| counts.samples).sum();
                assert_eq!(of_row, row.counts.samples);
            }
            let tree: u64 = hierarchy(&table.rows).iter().map(|node| node.counts.total).sum();
            assert_eq!(tree, expected.total);
            assert!(table.rows.is_sorted_by(|a, b| a.counts.total >= b.counts.total));
        }
    }
}
