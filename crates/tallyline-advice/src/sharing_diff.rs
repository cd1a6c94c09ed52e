//! The comparison of two builds: what their shared lines cost, by the fields on them.
//!
//! A line has no identity that outlives a run: the same program puts other fields on a line when it is scheduled in
//! another way, when its heap begins elsewhere, or when a struct grows. So each wait is charged to the field whose
//! access waited, and the fields that share lines in any trace of a build are one group: a line that has other fields on
//! it in one trace than in the next then costs what it cost. A group of one build is compared with the costliest of the
//! other's that it has fields of: fields that come to share a line cost more if the line costs more than any before.
//!
//! Runs of one build differ, too. Each build has several traces, and a change is certain where the costs of both builds'
//! traces lie apart.

use super::evidence::{Evidence, Slot, SubjectKind};
use super::predict::Effect;
use std::collections::{BTreeMap, BTreeSet};
use tallyline_timing::{SharingLoss, TraceCosts};

/// A field with less than one of so many parts of its line's transfers neither joins lines nor is named with them: it is
/// there in one run and not in the next.
const MINOR: f64 = 20.0;

/// The part of the mean spread of both builds' traces by which the range of a growth is widened. Of two samples of four
/// from one normal distribution, one lies above the other in 1.5 % of the cases, and by half of that spread in 0.24 %.
const MARGIN: f64 = 0.5;

/// The least part of the threshold that a line costs whose fields are compared together.
const JOINING: f64 = 0.1;

/// The cost of the cache lines that the threads of one traced run share, by field, and the run's time on each simulated
/// thread schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceShares {
    /// The fields and variables that threads take lines from each other for, by name.
    pub fields: Vec<FieldShare>,
    /// The shared cache lines.
    pub lines: Vec<LineShare>,
    /// The time on each schedule from the start of the second thread on, in the model's parts of a cycle.
    pub times: Vec<u64>,
}

/// The cost of the accesses to one field on shared cache lines, over all objects of the type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldShare {
    /// The name of the field or variable.
    pub name: String,
    /// The part of the cores' time on each schedule in which accesses to the field wait for its lines, in percent.
    pub percent: Vec<f64>,
    /// The transfers of lines for the field on each schedule, for each thousand accesses of the run.
    pub transfers: Vec<f64>,
    /// A place in the code that accesses the field: file and line; empty where it is not known.
    pub place: (String, u64),
}

/// The names of the fields that share a cache line, and the cost of all lines with these fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineShare {
    /// The names of the fields and variables that threads take the line from each other for.
    pub fields: Vec<String>,
    /// The names of those that have a small part of the line's transfers only.
    pub minor: Vec<String>,
    /// The part of the cores' time that waits for the lines, in percent: the mean over schedules.
    pub percent: f64,
}

/// The cost of the shared cache lines with some fields on them, in two builds of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineChange {
    /// The fields and variables.
    pub fields: Vec<String>,
    /// The part of the cores' time before and after, in percent.
    pub percent: (f64, f64),
    /// The least and the greatest growth to be expected, in percent of the cores' time: those over all pairs of a trace of
    /// the first build and one of the second, widened by half of the spread of one build's traces.
    pub range: (f64, f64),
    /// Transfers for each thousand accesses, before and after.
    pub transfers: (f64, f64),
    /// A place in the code that accesses it.
    pub place: (String, u64),
}

impl LineChange {
    /// Returns the cost of the shared cache lines with these fields in the second build minus that in the first, in
    /// percent of the cores' time; negative if it fell.
    pub fn growth(&self) -> f64 {
        self.percent.1 - self.percent.0
    }
}

/// The difference of two builds of a program in what shared cache lines cost: lines that cost more, lines that cost
/// less, and the change of speed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharingDiff {
    /// Lines whose least growth is the threshold or more, the worst first.
    pub gained: Vec<LineChange>,
    /// Lines that cost less by the threshold or more whatever traces are compared, the best first.
    pub lost: Vec<LineChange>,
    /// Lines whose cost changes by the threshold on average, but not by more than between traces of one build; the greatest
    /// change first.
    pub uncertain: Vec<LineChange>,
    /// The part of the cores' time that waits for lines of others, before and after, in percent.
    pub percent: (f64, f64),
    /// The speed of the second build, that of the first being 1, over the schedules and all pairs of traces; of two
    /// traces each the range is widened by what they differ by.
    pub speed: Effect,
    /// The number of traces before and after.
    pub traces: (usize, usize),
}

/// Returns the name of what an instruction accesses in a slot, which is the same in another build.
fn name(evidence: &Evidence, slot: &Slot, instruction: u32) -> String {
    let Some(subject) = evidence.subjects.get(slot.subject) else { return String::new() };
    let sites = || slot.uses.iter().filter_map(|used| evidence.sites.get(used.site));
    match subject.kind {
        SubjectKind::Unknown => {
            let site = sites().find(|site| site.instruction == instruction).or(sites().next());
            format!("(memory of {})", site.map_or("", |site| &site.function))
        }
        _ if slot.field.is_empty() => subject.name.clone(),
        _ => format!("{}.{}", subject.name, slot.field),
    }
}

/// Returns the interquartile mean of some numbers, one per schedule; 0 of none.
///
/// A line's cost has modes, and the few cycles by which one trace of a build deviates from the next move a schedule
/// from one mode to another. The median then jumps between modes: over six traces each of ten builds by 0.77 points at
/// most with 12 schedules, where this mean moves by 0.24.
fn interquartile_mean(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    let quarter = all.len() / 4;
    let middle = &all[quarter..all.len() - quarter];
    if middle.is_empty() { 0.0 } else { middle.iter().sum::<f64>() / middle.len() as f64 }
}

/// The slots of a trace's shared lines, by address.
struct SlotIndex<'e>(BTreeMap<u64, Vec<&'e Slot>>);

impl<'e> SlotIndex<'e> {
    fn new(evidence: &'e Evidence) -> Self {
        let mut by_address: BTreeMap<u64, Vec<&Slot>> = BTreeMap::new();
        for slot in evidence.lines.iter().flat_map(|line| &line.slots) {
            by_address.entry(slot.address()).or_default().push(slot);
        }
        Self(by_address)
    }

    /// Returns the slot whose access waited: of several at the address that of the instruction; else the busiest of the
    /// line, as a schedule may touch a word that those of the evidence do not.
    fn slot_of(&self, evidence: &Evidence, loss: &SharingLoss) -> Option<&'e Slot> {
        let uses = |slot: &&Slot| {
            let mut sites = slot.uses.iter().filter_map(|used| evidence.sites.get(used.site));
            sites.any(|site| site.instruction == loss.instruction())
        };
        if let Some(slots) = self.0.get(&loss.address()) {
            return slots.iter().copied().find(uses).or(slots.first().copied());
        }
        let size = evidence.line_size.max(1);
        let start = loss.address() / size * size;
        let of_line = self.0.range(start..start.saturating_add(size)).flat_map(|(_, slots)| slots);
        of_line.copied().max_by_key(|slot| slot.transfers)
    }
}

/// Sums the cost of one trace's shared cache lines by the fields on them. `runs` are the simulations of the trace on
/// several thread schedules, `evidence` is from the same trace.
pub fn trace_shares(evidence: &Evidence, runs: &[TraceCosts]) -> TraceShares {
    let index = SlotIndex::new(evidence);
    let mut fields: BTreeMap<String, FieldShare> = BTreeMap::new();
    let mut places: BTreeMap<String, (u64, (String, u64))> = BTreeMap::new();
    // by line: its time, and the transfers for each field
    let mut lines: BTreeMap<u64, (f64, BTreeMap<String, f64>)> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        let time = run.time().max(1) as f64;
        let accesses: u64 = run.instructions().iter().flat_map(|cost| cost.sources()).sum();
        for loss in run.losses() {
            let Some(slot) = index.slot_of(evidence, &loss) else { continue };
            let name = name(evidence, slot, loss.instruction());
            let percent = 100.0 * loss.time() as f64 / time;
            let transfers = 1000.0 * loss.transfers() as f64 / accesses.max(1) as f64;
            let none = || vec![0.0; runs.len()];
            let field = fields.entry(name.clone()).or_insert_with(|| FieldShare {
                name: name.clone(),
                percent: none(),
                transfers: none(),
                ..FieldShare::default()
            });
            field.percent[at] += percent;
            field.transfers[at] += transfers;
            let used = slot.uses.iter().max_by_key(|used| used.reads + used.writes);
            if let Some(site) = used.and_then(|used| evidence.sites.get(used.site)) {
                let place = places.entry(name.clone()).or_default();
                if place.1.0.is_empty() || slot.transfers > place.0 {
                    *place = (slot.transfers, (site.file.clone(), site.line));
                }
            }
            let line = lines.entry(loss.address() / evidence.line_size.max(1)).or_default();
            line.0 += percent / runs.len() as f64;
            *line.1.entry(name).or_default() += transfers;
        }
    }
    for field in fields.values_mut() {
        field.place = places.remove(&field.name).unwrap_or_default().1;
    }
    let mut by_fields: BTreeMap<[Vec<String>; 2], f64> = BTreeMap::new();
    for (percent, transfers) in lines.into_values() {
        let most = transfers.values().copied().fold(0.0, f64::max);
        let (major, minor): (Vec<_>, Vec<_>) =
            transfers.into_iter().partition(|(_, count)| count * MINOR >= most);
        let names = [major, minor].map(|list| list.into_iter().map(|(name, _)| name).collect());
        *by_fields.entry(names).or_default() += percent;
    }
    let line = |([fields, minor], percent): ([Vec<String>; 2], f64)| LineShare { fields, minor, percent };
    TraceShares {
        fields: fields.into_values().collect(),
        lines: by_fields.into_iter().map(line).collect(),
        times: runs.iter().map(TraceCosts::parallel_time).collect(),
    }
}

/// Returns the fields of a build in groups: those that share lines in any of its traces. `joining` are the fields of the
/// lines of both builds that cost enough to matter; whether this build's lines cost it, too, or have some of the fields
/// only a little, varies from run to run and is not asked.
fn groups<'s>(traces: &'s [TraceShares], joining: &BTreeSet<BTreeSet<&'s str>>) -> Vec<BTreeSet<&'s str>> {
    let fields = traces.iter().flat_map(|trace| &trace.fields);
    let names: BTreeSet<&str> = fields.map(|field| field.name.as_str()).collect();
    let mut groups: Vec<BTreeSet<&str>> = names.into_iter().map(|name| BTreeSet::from([name])).collect();
    let join = |names: BTreeSet<&'s str>| {
        let (together, mut apart): (Vec<_>, Vec<_>) =
            groups.drain(..).partition(|group| !group.is_disjoint(&names));
        apart.push(together.into_iter().flatten().chain(names).collect());
        groups = apart;
    };
    let lines = traces.iter().flat_map(|trace| &trace.lines);
    let lines: BTreeSet<BTreeSet<&str>> =
        lines.map(|line| line.fields.iter().chain(&line.minor).map(String::as_str).collect()).collect();
    let both = lines.iter().flat_map(|line| joining.iter().map(move |names| line & names));
    let shared: BTreeSet<BTreeSet<&str>> = both.filter(|names| names.len() > 1).collect();
    shared.into_iter().for_each(join);
    groups
}

/// Returns a trace's sums over fields: the percentage and the transfers, as interquartile means over schedules.
fn costs_of(trace: &TraceShares, names: &BTreeSet<&str>) -> (f64, f64) {
    let sum = |values: fn(&FieldShare) -> &[f64]| {
        let mut sums = vec![0.0; trace.times.len()];
        for field in trace.fields.iter().filter(|field| names.contains(field.name.as_str())) {
            sums.iter_mut().zip(values(field)).for_each(|(sum, value)| *sum += value);
        }
        interquartile_mean(sums)
    };
    (sum(|field| &field.percent), sum(|field| &field.transfers))
}

/// Returns the lowest, the mean and the highest of some numbers; 0 of none.
fn spread(all: &[f64]) -> (f64, f64, f64) {
    let mean = all.iter().fold(0.0, |sum, one| sum + one) / all.len().max(1) as f64;
    (all.iter().copied().fold(mean, f64::min), mean, all.iter().copied().fold(mean, f64::max))
}

/// Returns what lines cost in the traces of a build: of several groups of fields the costliest. The percentage is its
/// lowest, mean and highest, that of transfers the mean.
fn cost_in(traces: &[TraceShares], groups: &[&BTreeSet<&str>]) -> ((f64, f64, f64), f64) {
    let of = |trace: &TraceShares| {
        let costs = groups.iter().map(|names| costs_of(trace, names));
        costs.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
    };
    let (percent, transfers): (Vec<f64>, Vec<f64>) = traces.iter().map(of).unzip();
    (spread(&percent), spread(&transfers).1)
}

/// Compares groups of fields in the traces of two builds.
fn change_of(
    (base, base_groups): (&[TraceShares], &[&BTreeSet<&str>]),
    (head, head_groups): (&[TraceShares], &[&BTreeSet<&str>]),
    names: &BTreeSet<&str>,
) -> LineChange {
    let (before, after) = (cost_in(base, base_groups), cost_in(head, head_groups));
    let mut fields: Vec<(String, f64, f64)> = Vec::new();
    for name in names {
        let one = BTreeSet::from([*name]);
        let (before, after) = (cost_in(base, &[&one]), cost_in(head, &[&one]));
        fields.push(((*name).to_owned(), before.0.1.max(after.0.1), before.1.max(after.1)));
    }
    let most = |of: fn(&(String, f64, f64)) -> f64| fields.iter().map(of).fold(0.0, f64::max);
    let (percent, transfers) = (most(|field| field.1), most(|field| field.2));
    let place = |traces: &[TraceShares]| {
        let of_group = traces.iter().flat_map(|trace| &trace.fields);
        let of_group = of_group.filter(|field| names.contains(field.name.as_str()));
        let cost = |field: &FieldShare| interquartile_mean(field.percent.clone());
        of_group.max_by(|a, b| cost(a).total_cmp(&cost(b))).map(|field| field.place.clone())
    };
    let margin = MARGIN * (before.0.2 - before.0.0 + after.0.2 - after.0.0) / 2.0;
    LineChange {
        place: place(head).or_else(|| place(base)).unwrap_or_default(),
        fields: fields
            .into_iter()
            .filter(|field| field.1 * MINOR >= percent || field.2 * MINOR >= transfers)
            .map(|field| field.0)
            .collect(),
        percent: (before.0.1, after.0.1),
        range: (after.0.0 - before.0.2 - margin, after.0.2 - before.0.0 + margin),
        transfers: (before.1, after.1),
    }
}

/// Returns the speed of the second build over all schedules and pairs of traces.
///
/// Two traces of each build do not span what its runs differ by: of two samples of one normal distribution one lies
/// above the other in 33 % of the cases if each has two values, in 10 % if each has three. Of two traces the range is
/// widened by so much of the mean spread of one build's traces that 10 % remain.
fn speed(base: &[TraceShares], head: &[TraceShares]) -> Effect {
    let pairs = base.iter().flat_map(|base| head.iter().map(move |head| (base, head)));
    let ratios = |(base, head): (&TraceShares, &TraceShares)| {
        let times = base.times.iter().zip(&head.times);
        times.map(|(base, head)| *base as f64 / (*head).max(1) as f64).collect::<Vec<f64>>()
    };
    let speed = Effect::of(pairs.flat_map(ratios).collect());
    let margin = if base.len().min(head.len()) == 2 { 1.4 } else { 0.0 };
    // the logarithm of the ratio of the slowest trace's time to the fastest one's, the mean over schedules
    let spread = |traces: &[TraceShares]| {
        let schedules = traces.iter().map(|trace| trace.times.len()).min().unwrap_or(0);
        let of = |at: usize| {
            let times = || traces.iter().map(|trace| trace.times[at].max(1) as f64);
            (times().fold(0.0, f64::max) / times().fold(f64::INFINITY, f64::min)).ln()
        };
        (0..schedules).fold(0.0, |sum, at| sum + of(at)) / schedules.max(1) as f64
    };
    let factor = (margin * (spread(base) + spread(head)) / 2.0).exp();
    Effect { low: speed.low / factor, high: speed.high * factor, ..speed }
}

/// Compares two builds by the cost of their shared cache lines, each by one trace or several. Lines whose cost changes by
/// less than `threshold`, in percent of the cores' time, are left out.
pub fn sharing_diff(base: &[TraceShares], head: &[TraceShares], threshold: f64) -> SharingDiff {
    let mut joining: BTreeSet<BTreeSet<&str>> = BTreeSet::new();
    for line in base.iter().chain(head).flat_map(|trace| &trace.lines) {
        if line.percent >= threshold * JOINING && line.fields.len() > 1 {
            joining.insert(line.fields.iter().map(String::as_str).collect());
        }
    }
    let (base_groups, head_groups) = (groups(base, &joining), groups(head, &joining));
    let total = |traces: &[TraceShares], groups: &[BTreeSet<&str>]| {
        cost_in(traces, &[&groups.iter().flatten().copied().collect()]).0.1
    };
    let mut diff = SharingDiff {
        percent: (total(base, &base_groups), total(head, &head_groups)),
        speed: speed(base, head),
        traces: (base.len(), head.len()),
        ..SharingDiff::default()
    };
    for names in &head_groups {
        let before: Vec<_> = base_groups.iter().filter(|group| !group.is_disjoint(names)).collect();
        let change = change_of((base, &before), (head, &[names]), names);
        if change.range.0 >= threshold {
            diff.gained.push(change);
        } else if change.growth() >= threshold {
            diff.uncertain.push(change);
        }
    }
    for names in &base_groups {
        let after: Vec<_> = head_groups.iter().filter(|group| !group.is_disjoint(names)).collect();
        let change = change_of((base, &[names]), (head, &after), names);
        if change.range.1 <= -threshold {
            diff.lost.push(change);
        } else if change.growth() <= -threshold {
            diff.uncertain.push(change);
        }
    }
    diff.gained.sort_by(|a, b| b.growth().total_cmp(&a.growth()));
    diff.lost.sort_by(|a, b| a.growth().total_cmp(&b.growth()));
    diff.uncertain.sort_by(|a, b| b.growth().abs().total_cmp(&a.growth().abs()));
    diff
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trace with lines that cost so much on each of two schedules, each field of a line as much as the others.
    fn trace(lines: &[(&[&str], f64)]) -> TraceShares {
        let mut trace = TraceShares { times: vec![100, 200], ..TraceShares::default() };
        for (names, percent) in lines {
            trace.lines.push(LineShare {
                fields: names.iter().map(|name| (*name).to_owned()).collect(),
                percent: *percent,
                ..LineShare::default()
            });
            for name in *names {
                let part = percent / names.len() as f64;
                let known = trace.fields.iter().position(|field| field.name == *name);
                let at = known.unwrap_or_else(|| {
                    let none = vec![0.0; 2];
                    let name = (*name).to_owned();
                    let field =
                        FieldShare { name, percent: none.clone(), transfers: none, ..FieldShare::default() };
                    trace.fields.push(field);
                    trace.fields.len() - 1
                });
                trace.fields[at].percent.iter_mut().for_each(|sum| *sum += part);
                trace.fields[at].transfers.iter_mut().for_each(|sum| *sum += part);
            }
        }
        trace
    }

    fn names(changes: &[LineChange]) -> Vec<String> {
        changes.iter().map(|change| change.fields.join(",")).collect()
    }

    #[test]
    fn lines_that_cost_more_or_less_are_told_apart() {
        let base = [trace(&[(&["flow.in"], 5.0), (&["flow.out"], 3.0), (&["lock"], 2.0)])];
        let mut head = [trace(&[(&["flow.in"], 9.0), (&["lock"], 2.2), (&["stats"], 7.0)])];
        head[0].times = vec![200, 400];
        let diff = sharing_diff(&base, &head, 1.0);
        assert_eq!(names(&diff.gained), ["stats", "flow.in"]);
        assert_eq!(names(&diff.lost), ["flow.out"]);
        assert_eq!((diff.percent.0, diff.speed.median), (10.0, 0.5));
    }

    #[test]
    fn a_line_with_one_more_field_on_it_is_the_same_line() {
        let base = [trace(&[(&["dq.bottom", "dq.top", "sum"], 9.0), (&["data"], 2.0)])];
        let head =
            [trace(&[(&["dq.bottom", "dq.top"], 4.0), (&["dq.top", "rng", "sum"], 5.0), (&["data"], 2.0)])];
        let diff = sharing_diff(&base, &head, 1.0);
        assert_eq!((&diff.gained, &diff.lost, &diff.uncertain), (&vec![], &vec![], &vec![]));
        // nor is a field of two lines of which one costs nothing
        let head = [trace(&[
            (&["data", "dq.top"], 0.01),
            (&["dq.bottom", "dq.top", "sum"], 14.0),
            (&["data"], 2.0),
        ])];
        assert_eq!(names(&sharing_diff(&base, &head, 1.0).gained), ["dq.bottom,dq.top,sum"]);
    }

    #[test]
    fn fields_that_come_to_share_a_line_cost_more_together() {
        let base = [trace(&[(&["stats.hits"], 0.2), (&["stats.misses"], 0.2)])];
        let head = [trace(&[(&["stats.hits", "stats.misses"], 12.0)])];
        assert_eq!(names(&sharing_diff(&base, &head, 1.0).gained), ["stats.hits,stats.misses"]);
        // where all the time is waited for both, as before, the one line costs more than each of the two did
        let base = [trace(&[(&["pool.arrived"], 53.0), (&["pool.passed"], 14.0)])];
        let head = [trace(&[(&["pool.arrived", "pool.passed"], 68.0)])];
        let change = &sharing_diff(&base, &head, 1.0).gained[0];
        assert_eq!((change.percent, change.fields.len()), ((53.0, 68.0), 2));
        assert_eq!(sharing_diff(&head, &base, 1.0).lost[0].percent, (68.0, 53.0));
    }

    #[test]
    fn a_growth_that_traces_of_one_build_show_as_well_is_uncertain() {
        let of = |costs: &[f64]| costs.iter().map(|cost| trace(&[(&["pending"], *cost)])).collect::<Vec<_>>();
        let diff = sharing_diff(&of(&[14.0, 20.0]), &of(&[18.0, 24.0]), 1.0);
        assert_eq!((names(&diff.gained), names(&diff.uncertain)), (vec![], vec!["pending".to_owned()]));
        assert_eq!(diff.uncertain[0].range, (-5.0, 13.0));
        let diff = sharing_diff(&of(&[14.0, 16.0]), &of(&[18.5, 20.5]), 1.0);
        assert_eq!(diff.gained[0].range, (1.5, 7.5));
        let diff = sharing_diff(&of(&[18.5, 20.5]), &of(&[14.0, 16.0]), 1.0);
        assert_eq!(names(&diff.lost), ["pending"]);
    }

    #[test]
    fn the_speed_ranges_over_all_pairs_of_traces() {
        let of = |times: [u64; 2]| TraceShares { times: times.to_vec(), ..TraceShares::default() };
        let build: Vec<TraceShares> = [100, 120, 130, 150].map(|time| of([time, time])).to_vec();
        let speed = sharing_diff(&build, &build, 1.0).speed;
        assert_eq!((speed.low, speed.high), (2.0 / 3.0, 1.5));
        // two traces of one build may well be faster than two others
        let speed = sharing_diff(&build[2..], &build[..2], 1.0).speed;
        assert!(speed.low < 1.0 && speed.high > 1.5, "{speed:?}");
        let same = [of([100, 200]), of([100, 200])];
        assert_eq!(sharing_diff(&same, &same, 1.0).speed.high, 1.0);
    }

    #[test]
    fn builds_without_shared_lines_cost_a_positive_zero() {
        let none = [TraceShares { times: vec![100], ..TraceShares::default() }];
        let diff = sharing_diff(&none, &none, 1.0);
        assert!(diff.percent.0.is_sign_positive() && diff.percent.1.is_sign_positive(), "{diff:?}");
        assert!(interquartile_mean(vec![0.0; 12]).is_sign_positive());
    }

    #[test]
    fn one_schedule_in_another_mode_hardly_moves_the_cost() {
        let costs = |high: usize| (0..12).map(|at| if at < high { 50.0 } else { 40.0 }).collect::<Vec<f64>>();
        assert_eq!(interquartile_mean(costs(6)), 45.0);
        let moved = interquartile_mean(costs(7)) - interquartile_mean(costs(6));
        assert!((0.0..2.0).contains(&moved), "{moved}");
        assert_eq!(interquartile_mean(costs(2)), 40.0);
        assert_eq!((interquartile_mean(vec![]), interquartile_mean(vec![3.0])), (0.0, 3.0));
    }

    #[test]
    fn equal_builds_have_no_difference() {
        let base = [trace(&[(&["flow.in"], 5.0)])];
        let diff = sharing_diff(&base, &base, 0.5);
        assert!(diff.gained.is_empty() && diff.lost.is_empty() && diff.uncertain.is_empty(), "{diff:?}");
        assert_eq!(diff.speed, Effect { low: 1.0, median: 1.0, high: 1.0, mean: 1.0 });
    }
}
