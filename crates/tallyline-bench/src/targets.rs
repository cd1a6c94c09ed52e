//! `tallyline-bench targets`: the figures that the counters are to reach, each as met or missed, in one run.

use super::Context;
use super::report::{Report, Target};
use super::{incremental, memory, read, update};
use anyhow::Result;

/// Runs of the benchmarks that have targets of counters, by name.
const PARTS: [(&str, Run); 4] = [
    ("update", update::run),
    ("read", read::run),
    ("incremental", incremental::run),
    ("memory", memory::run),
];

type Run = fn(&Context, &mut Report) -> Result<()>;

/// Figures that other commands measure.
const ELSEWHERE: &str = "Not here: the facades' costs are measured by `ci/facades --bench` and `--upstream`, exactness by `ci/exactness` and `ci/registration`, the bound of approximate reads by the tests of statctr (`--test approximate`).";

/// Runs the benchmark `targets`: the counter benchmarks one after the other, of which only the project's targets
/// are reported, as met or missed.
pub(crate) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let mut inexact = Vec::new();
    for (name, run) in PARTS {
        let mut part = Report::new(name, report.machine.clone());
        run(context, &mut part)?;
        for target in part.targets {
            report.targets.push(Target { what: format!("{name}: {}", target.what), ..target });
        }
        for side in part.not_run {
            report.skip(&format!("{name}: {}", side.case), &side.reason);
        }
        inexact
            .extend(part.cases.iter().filter(|case| case.exact == Some(false)).map(|case| case.case.clone()));
    }
    let met = report.targets.iter().filter(|target| target.met).count();
    let unmeasured = report.targets.iter().filter(|target| target.figure.is_none()).count();
    let absent = if unmeasured > 0 { format!(", {unmeasured} not measured here") } else { String::new() };
    report.note(&match report.targets.len() {
        0 => "Small and short runs have no targets.".to_owned(),
        all => format!(
            "{met} of {all} met{absent}. Figures are medians; the benchmarks alone show their spread."
        ),
    });
    report.note(&if inexact.is_empty() {
        "Every count was found again in the sum.".to_owned()
    } else {
        format!("Counts were lost or doubled by {}.", inexact.join(", "))
    });
    report.note(ELSEWHERE);
    Ok(())
}
