//! The time and memory that whole programs take, beside those of a peer for the same job.

use super::report::{Bound, Case, Report, Scale, Target};
use super::sides::child::Cost;
use tallyline_support::Summary;

/// Notes what one side took.
pub(super) fn note(report: &mut Report, title: &str, side: &str, costs: &[Cost]) {
    let threads = threads();
    let mut add = |what: &str, unit, series: Vec<f64>| {
        let name = format!("{title}, {what}/{side}");
        report.cases.extend(Case::new(name, threads, Scale::default(), unit, series));
    };
    add("time", "s", costs.iter().map(|cost| cost.time.as_secs_f64()).collect());
    add("memory", "bytes", costs.iter().map(|cost| cost.resident as f64).collect());
}

/// Returns the number of threads that both sides may use.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Compares a peer's costs with those of a side of ours, round by round; the limits are how many times
/// as fast we should be at least, and how many times less memory we should take.
pub(super) fn aim(
    report: &mut Report,
    title: &str,
    (peer, own): (&str, &str),
    (theirs, ours): (&[Cost], &[Cost]),
    (faster, smaller): (Option<f64>, Option<f64>),
) {
    let time: fn(&Cost) -> f64 = |cost| cost.time.as_secs_f64();
    let memory: fn(&Cost) -> f64 = |cost| cost.resident as f64;
    for (what, of, limit) in [("time", time, faster), ("memory", memory, smaller)] {
        let what = format!("{title}, {what}");
        report.compare(&format!("{what}/{peer}"), &format!("{what}/{own}"));
        let series = |costs: &[Cost]| costs.iter().map(of).collect::<Vec<_>>();
        if let (Some(limit), Some(figure)) = (limit, Summary::of_ratio(&series(theirs), &series(ours))) {
            let what = if own == "tallyline" { what } else { format!("{what}/{own}") };
            report.targets.push(Target::new(what, Bound::AtLeast, limit, "x", figure.median));
        }
    }
}
