//! Rows: samples with equal keys, counted together.

use super::counts::Counts;
use super::filter::Filter;
use super::keys::Column;
use super::profile::Profile;
use super::samples::SampleGroup;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// The quantity that a report's percentages are shares of: event counts (periods), or latencies in cycles
/// (weights).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weighing {
    /// The periods: how many events.
    #[default]
    Period,
    /// The weights: how many cycles; a sample without one counts 1, as in perf's memory mode.
    Weight,
}

impl Weighing {
    /// Returns the amount that a group of equal samples adds to percentages: its total period, or its total weight
    /// with at least 1 for each sample.
    pub fn of(self, group: &SampleGroup) -> u64 {
        match self {
            Weighing::Period => group.period,
            Weighing::Weight => group.weight.weight().max(1).saturating_mul(group.samples),
        }
    }
}

/// A row of a report: one combination of sort key values, with totals (number, period, weight) of the samples that have
/// it, over all sampled events and for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub(crate) values: Box<[u64]>,
    pub(crate) counts: Counts,
    pub(crate) events: Box<[Counts]>,
}

impl Row {
    /// Returns the values of the row's sort keys, in the order of the report's sort key columns. The keys' `text`
    /// formats them.
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// Returns the totals (number, period, weight) of the row's samples, over all sampled events of the table.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the totals (number, period, weight) of the row's samples for each sampled event, in the order given to
    /// [`aggregate`].
    pub fn events(&self) -> &[Counts] {
        &self.events
    }
}

/// The rows of a report, largest first, with the totals over all samples that percentages refer to.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The rows of the report, largest first.
    pub rows: Vec<Row>,
    /// The totals of the samples that pass the filter.
    pub shown: Counts,
    /// The totals of all samples of the report's events, of which percentages are shares.
    pub whole: Counts,
    /// The totals of all samples of each of the report's events.
    pub whole_events: Vec<Counts>,
}

type RowCounts = FxHashMap<Box<[u64]>, Box<[Counts]>>;

/// Groups the samples of some events (by index) that pass a filter into a table with one row for each combination
/// of sort key values. Costs one hash for each group of equal samples; runs in parallel.
pub fn aggregate(
    profile: &Profile,
    columns: &[Column],
    events: &[usize],
    filter: &Filter,
    weighing: Weighing,
) -> Table {
    let keys: Vec<_> = columns.iter().filter_map(Column::key).collect();
    let number_of = |group: &SampleGroup| events.iter().position(|event| *event == group.event as usize);
    let empty = || (RowCounts::default(), vec![Counts::default(); events.len()]);
    let chunk = (profile.groups().len() / (rayon::current_num_threads() * 4)).max(1 << 12);
    let (rows, whole_events) = profile
        .groups()
        .par_chunks(chunk)
        .map(|groups| {
            let (mut rows, mut whole) = empty();
            let mut values: Vec<u64> = vec![0; keys.len()];
            for group in groups {
                let Some(event) = number_of(group) else { continue };
                let counts =
                    Counts { samples: group.samples, period: group.period, total: weighing.of(group) };
                whole[event].add(counts);
                if !filter.accepts(profile, group) {
                    continue;
                }
                for (value, key) in values.iter_mut().zip(&keys) {
                    *value = (key.value)(profile, group);
                }
                match rows.get_mut(values.as_slice()) {
                    Some(events) => events[event].add(counts),
                    None => {
                        let mut of_events = vec![Counts::default(); events.len()];
                        of_events[event] = counts;
                        rows.insert(values.clone().into(), of_events.into());
                    }
                }
            }
            (rows, whole)
        })
        .reduce(empty, merge);
    finish(rows, whole_events)
}

fn merge(
    (mut rows, mut whole): (RowCounts, Vec<Counts>),
    (other, other_whole): (RowCounts, Vec<Counts>),
) -> (RowCounts, Vec<Counts>) {
    if rows.len() < other.len() {
        return merge((other, other_whole), (rows, whole));
    }
    for (values, counts) in other {
        match rows.get_mut(&values) {
            Some(known) => known.iter_mut().zip(counts).for_each(|(known, counts)| known.add(counts)),
            None => {
                rows.insert(values, counts);
            }
        }
    }
    whole.iter_mut().zip(other_whole).for_each(|(whole, other)| whole.add(other));
    (rows, whole)
}

fn finish(rows: RowCounts, whole_events: Vec<Counts>) -> Table {
    let sum = |events: &[Counts]| {
        let mut sum = Counts::default();
        events.iter().for_each(|counts| sum.add(*counts));
        sum
    };
    let mut rows: Vec<Row> =
        rows.into_iter().map(|(values, events)| Row { values, counts: sum(&events), events }).collect();
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
    use super::super::index::{DataId, JoinedId, PlaceId, SymbolId};
    use super::super::info::EventInfo;
    use super::super::keys::{ALL, Column};
    use super::super::names::NameId;
    use super::super::operand::{Operand, Outcome, Reason};
    use super::super::places::{Place, PlaceKind};
    use super::super::samples::{Operands, Samples};
    use super::*;
    use std::collections::HashSet;
    use tallyline_inference::Pseudo;
    use tallyline_perf_data::sample::{CpuMode, DataSource, Weight};
    use tallyline_perf_data::spaces::DsoId;

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

    /// Returns a profile of random samples, many of them equal in some keys.
    fn profile(random: &mut Random, count: usize) -> Profile {
        let mut samples = Samples::default();
        let names: Vec<NameId> = ["a", "b", "c", "d"].iter().map(|name| samples.names.intern(name)).collect();
        let event = |name: &str| EventInfo {
            name: name.to_owned(),
            is_precise: true,
            is_counter: false,
            has_weight: true,
            has_source: true,
        };
        samples.info.line_size = 64;
        samples.info.events = vec![event("one"), event("two")];
        let (mut outcomes, mut symbols) = (Vec::new(), Vec::new());
        for index in 0..40_u32 {
            let dso = DsoId::from_position(index as usize % 3);
            let (offset, kind) = (index.into(), PlaceKind::Instruction);
            samples.places.push(Place { dso, offset, mode: CpuMode::User, pid: None, kind }, offset);
            symbols.push(SymbolId::of(index as usize % 5));
            let name = names[index as usize % 4];
            outcomes.push(match index % 4 {
                0 => Outcome::Pseudo(Pseudo::StackOperation),
                1 => Outcome::Untyped(Reason::NoDebugInfo),
                _ => Outcome::Typed(Operand {
                    ty: JoinedId::of(0),
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
        samples.places.set_symbols(symbols);
        for _ in 0..count {
            let place = PlaceId::of(random.below(40) as usize);
            samples.groups.push(SampleGroup {
                event: random.below(2) as u32,
                pid: random.below(3) as i32,
                tid: random.below(5) as i32,
                comm: names[random.below(4) as usize],
                cpu: Some(random.below(4) as u32),
                exact: true,
                samples: 1,
                mode: CpuMode::User,
                ip: random.below(50),
                place,
                charged: place,
                caller: PlaceId::from_position(random.below(40) as usize),
                time: 0,
                period: random.below(1000),
                address: random.below(4096),
                data: DataId::from_position(0),
                registers: None,
                physical_address: random.below(4096),
                weight: Weight::new(random.below(50), 1, 2),
                source: (random.below(2) == 0).then(|| DataSource(random.below(1 << 40))),
                data_page_size: 4096,
                code_page_size: 4096,
            });
        }
        Profile { samples, operands: Operands::new(outcomes), ..Profile::default() }
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
            let of_events =
                || profile.groups().iter().filter(|group| events.contains(&(group.event as usize)));
            let mut expected = Counts::default();
            for group in of_events().filter(|group| filter.accepts(&profile, group)) {
                expected.add(Counts { samples: 1, period: group.period, total: weighing.of(group) });
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
