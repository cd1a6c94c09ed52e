//! The comparison of two builds: what their shared lines cost, by the fields on them.

use super::evidence::{Evidence, Slot, SubjectKind};
use super::predict::Effect;
use std::collections::{BTreeMap, BTreeSet};
use tallyline_timing::TraceCosts;

/// The cost of the cache lines that the threads of one build of a program share, line by line, and the run's time
/// on each simulated thread schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BuildShares {
    /// The shared cache lines with their costs, grouped by the fields on them.
    pub lines: Vec<LineShare>,
    /// The time on each schedule from the start of the second thread on, in the model's parts of a cycle.
    pub times: Vec<u64>,
}

/// The cost of shared cache lines in one build, summed over the lines with the same fields on them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineShare {
    /// The fields and variables that threads take the line from each other for.
    pub fields: Vec<String>,
    /// The part of the cores' time that waits for the lines, in percent: the interquartile mean over schedules.
    pub percent: f64,
    /// The transfers of the lines for each thousand accesses of the run: the interquartile mean over schedules.
    pub transfers: f64,
    /// A place in the code that accesses the lines: file and line; empty where it is not known.
    pub place: (String, u64),
}

/// The cost of shared cache lines with the same fields on them, in two builds of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineChange {
    /// The fields and variables.
    pub fields: Vec<String>,
    /// The part of the cores' time before and after, in percent.
    pub percent: (f64, f64),
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
    /// Lines that cost more, the worst first.
    pub gained: Vec<LineChange>,
    /// Lines that cost less, the best first.
    pub lost: Vec<LineChange>,
    /// The part of the cores' time that waits for lines of others, before and after, in percent.
    pub percent: (f64, f64),
    /// The speed of the second build, that of the first being 1.
    pub speed: Effect,
}

/// Returns the name of a slot that is the same in another build.
fn name(evidence: &Evidence, slot: &Slot) -> String {
    let Some(subject) = evidence.subjects.get(slot.subject) else { return String::new() };
    let site = slot.uses.iter().max_by_key(|used| used.reads + used.writes);
    let function = site.and_then(|used| evidence.sites.get(used.site)).map_or("", |site| &site.function);
    match subject.kind {
        SubjectKind::Unknown => format!("(memory of {function})"),
        _ if slot.field.is_empty() => subject.name.clone(),
        _ => format!("{}.{}", subject.name, slot.field),
    }
}

/// Percent of the time and transfers on each schedule, with a place in the code.
type RunSums = (Vec<(f64, f64)>, (String, u64));

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

/// Sums the cost of one build's shared cache lines by the fields on them. `runs` are the simulations of its trace
/// on several thread schedules, `evidence` is from the same trace.
pub fn build_shares(evidence: &Evidence, runs: &[TraceCosts]) -> BuildShares {
    let line_size = evidence.line_size.max(1);
    // by line: the key, a place
    let mut keys: BTreeMap<u64, (Vec<String>, (String, u64))> = BTreeMap::new();
    for line in &evidence.lines {
        let most = line.slots.iter().map(|slot| slot.transfers).max().unwrap_or(0);
        // who hardly takes part is there in one run and not in the next
        let slots = line.slots.iter().filter(|slot| slot.transfers * 20 >= most.max(1));
        let names: BTreeSet<String> = slots.clone().map(|slot| name(evidence, slot)).collect();
        let busiest = slots.max_by_key(|slot| slot.transfers);
        let used = busiest.and_then(|slot| slot.uses.iter().max_by_key(|used| used.reads + used.writes));
        let site = used.and_then(|used| evidence.sites.get(used.site));
        let place = site.map(|site| (site.file.clone(), site.line)).unwrap_or_default();
        keys.insert(line.address / line_size, (names.into_iter().collect(), place));
    }
    let mut by_key: BTreeMap<Vec<String>, RunSums> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        let time = run.time().max(1) as f64;
        let accesses: u64 = run.instructions().iter().flat_map(|cost| cost.sources()).sum();
        for loss in run.losses() {
            let Some((key, place)) = keys.get(&(loss.address() / line_size)) else { continue };
            let sums =
                by_key.entry(key.clone()).or_insert_with(|| (vec![(0.0, 0.0); runs.len()], place.clone()));
            sums.0[at].0 += 100.0 * loss.time() as f64 / time;
            sums.0[at].1 += 1000.0 * loss.transfers() as f64 / accesses.max(1) as f64;
        }
    }
    let share = |(fields, (sums, place)): (Vec<String>, RunSums)| LineShare {
        fields,
        percent: interquartile_mean(sums.iter().map(|(percent, _)| *percent).collect()),
        transfers: interquartile_mean(sums.iter().map(|(_, transfers)| *transfers).collect()),
        place,
    };
    BuildShares {
        lines: by_key.into_iter().map(share).collect(),
        times: runs.iter().map(TraceCosts::parallel_time).collect(),
    }
}

/// Compares two builds by the cost of their shared cache lines. Lines whose cost changes by less than `threshold`,
/// in percent of the cores' time, are left out.
pub fn sharing_diff(base: &BuildShares, head: &BuildShares, threshold: f64) -> SharingDiff {
    let speeds = base.times.iter().zip(&head.times).map(|(base, head)| *base as f64 / (*head).max(1) as f64);
    let speed = Effect::of(speeds.collect());
    let (base, head) = (&base.lines, &head.lines);
    let mut all: BTreeMap<&[String], LineChange> = BTreeMap::new();
    for share in base {
        let change = all.entry(&share.fields).or_default();
        (change.percent.0, change.transfers.0) = (share.percent, share.transfers);
        change.place = share.place.clone();
    }
    for share in head {
        let change = all.entry(&share.fields).or_default();
        (change.percent.1, change.transfers.1) = (share.percent, share.transfers);
        change.place = share.place.clone();
    }
    let sum = |shares: &[LineShare]| shares.iter().map(|share| share.percent).sum();
    let mut diff = SharingDiff { percent: (sum(base), sum(head)), speed, ..SharingDiff::default() };
    for (fields, change) in all {
        let change = LineChange { fields: fields.to_vec(), ..change };
        match change.growth() {
            growth if growth >= threshold => diff.gained.push(change),
            growth if growth <= -threshold => diff.lost.push(change),
            _ => {}
        }
    }
    diff.gained.sort_by(|a, b| b.growth().total_cmp(&a.growth()));
    diff.lost.sort_by(|a, b| a.growth().total_cmp(&b.growth()));
    diff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(field: &str, percent: f64) -> LineShare {
        LineShare { fields: vec![field.into()], percent, ..LineShare::default() }
    }

    fn build(lines: &[LineShare], times: &[u64]) -> BuildShares {
        BuildShares { lines: lines.to_vec(), times: times.to_vec() }
    }

    #[test]
    fn lines_that_cost_more_or_less_are_told_apart() {
        let base = build(&[share("flow.in", 5.0), share("flow.out", 3.0), share("lock", 2.0)], &[100, 200]);
        let head = build(&[share("flow.in", 9.0), share("lock", 2.2), share("stats", 7.0)], &[200, 400]);
        let diff = sharing_diff(&base, &head, 1.0);
        let names =
            |changes: &[LineChange]| changes.iter().map(|change| change.fields.join(",")).collect::<Vec<_>>();
        assert_eq!(names(&diff.gained), ["stats", "flow.in"]);
        assert_eq!(names(&diff.lost), ["flow.out"]);
        assert_eq!((diff.percent.0, diff.speed.median), (10.0, 0.5));
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
        let base = build(&[share("flow.in", 5.0)], &[100]);
        let diff = sharing_diff(&base, &base, 0.5);
        assert!(diff.gained.is_empty() && diff.lost.is_empty(), "{diff:?}");
        assert_eq!(diff.speed, Effect { low: 1.0, median: 1.0, high: 1.0, mean: 1.0 });
    }
}
