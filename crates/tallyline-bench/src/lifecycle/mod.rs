//! `tallyline-bench lifecycle`: what it costs that objects and CPUs come and go.

mod churn;
mod drain;
mod hot;
mod ways;

use super::Context;
use super::report::Report;
use anyhow::Result;

/// Runs the benchmark `lifecycle`: the cost of creating and dropping counters of short-lived flows (network
/// connections), and of moving counts away from departed CPUs.
pub(crate) fn run(context: &Context, report: &mut Report) -> Result<()> {
    drain::run(context, report)?;
    hot::run(context, report)?;
    churn::run(context, report)?;
    report.cases.sort_by_key(|case| case.threads);
    report.notes.extend([
        format!(
            "alive/…: that many flows at once, each written once by a random one of {} made-up CPUs while another thread reads; ns/flow: time of one thread to create, update, read and free one.",
            ways::CPUS
        ),
        "one-at-a-time/…: the same with one flow after the other, each updated on the CPU that runs it.".into(),
        "fixed: sums only, in place of the last time and the flags; alive/fixed updates one item of four, and takes a lock to do so as another CPU.".into(),
        "per-cpu-lines/memory, lock/memory, atomics/memory: computed from their sizes; the others by the kernel's account.".into(),
    ]);
    Ok(())
}
