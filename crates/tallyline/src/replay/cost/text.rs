//! Costs of fields by the model, as text.

use super::findings::{CostFindings, FieldCost};
use crate::columns::Fit;
use crate::replay::text::{more, what};
use anyhow::Result;
use std::io::Write;
use tallyline_support::output::printable;
use tallyline_timing::TraceCosts;

/// Fields that are shown; the JSON has all.
const ROWS: usize = 30;

pub(super) fn write(findings: &CostFindings, fit: &Fit, out: &mut dyn Write) -> Result<()> {
    head(findings, out)?;
    let levels = findings.processor.levels.len();
    write!(out, "{:>8} {:>12}", "share", "accesses")?;
    for level in 2..=levels {
        write!(out, " {:>10}", format!("from L{level}"))?;
    }
    writeln!(out, " {:>10} {:>10}  type, field", "memory", "page walks")?;
    for row in findings.fields.iter().take(ROWS) {
        writeln!(out, "{}", line(findings, row, fit, levels))?;
    }
    more(findings.fields.len(), ROWS, "types and fields", out)
}

fn line(findings: &CostFindings, row: &FieldCost, fit: &Fit, levels: usize) -> String {
    let cost = &row.cost;
    let accesses: u64 = cost.sources().iter().sum();
    let mut numbers = format!("{:>7.2}% {accesses:>12}", findings.percent(cost.time()));
    for count in cost.sources().iter().take(levels + 1).skip(1) {
        numbers += &format!(" {count:>10}");
    }
    numbers += &format!(" {:>10}  ", cost.walks());
    let mark = if row.is_runtime { "  [runtime]" } else { "" };
    let name = format!("{}{mark}", what(&row.variable, &row.ty, &row.field));
    format!("{numbers}{}", fit.rest(&printable(name.as_bytes()), numbers.len()))
}

fn head(findings: &CostFindings, out: &mut dyn Write) -> Result<()> {
    let CostFindings { processor, course, .. } = findings;
    let levels = processor.levels.iter().enumerate().map(|(index, level)| {
        let (size, ways, latency) = (level.size >> 10, level.ways, level.latency);
        format!("L{} {size} KiB, {ways} ways, {latency} cycles", index + 1)
    });
    let levels: Vec<_> = levels.collect();
    writeln!(
        out,
        "# A model of time, not a measurement: {}; memory {} cycles",
        levels.join("; "),
        processor.memory_latency
    )?;
    writeln!(
        out,
        "# an access costs the time for which it alone keeps instructions from retiring: misses within {} instructions \
         of each other overlap if they do not depend on each other, at most {} at once; {}",
        processor.reorder_buffer,
        processor.miss_buffers,
        match processor.prefetch_distance {
            0 => "no prefetcher".to_owned(),
            lines => format!(
                "strides are fetched {lines} lines ahead, and the kernel has cleared fresh pages into L2"
            ),
        }
    )?;
    let instructions = findings.total.executions() + findings.unexplained;
    let between = (findings.explained + findings.unexplained).max(1);
    writeln!(
        out,
        "# process {} of a trace of {}: {} accesses of {} threads, {instructions} instructions, {:.2} for each cycle",
        findings.plan.process,
        printable(findings.header.machine().as_bytes()),
        course.accesses(),
        course.threads().len(),
        instructions as f64 * TraceCosts::PARTS as f64 / findings.time.max(1) as f64
    )?;
    writeln!(
        out,
        "# of the instructions between accesses {:.2}% are known from the code; {} branches were predicted wrong\n",
        100.0 * findings.explained as f64 / between as f64,
        findings.total.mispredictions()
    )?;
    Ok(())
}
