//! The findings of a replay as text.

use super::findings::{Findings, LineRow};
use super::places::InstructionInfo;
use crate::columns::Fit;
use anyhow::Result;
use std::io::Write;
use tallyline_support::output::printable;
use tallyline_trace::coherence::AtomicOrder;

/// Fields and conflicts of a line that are shown; the JSON has all.
const ROWS: usize = 20;

/// The width of a line's columns before the names of the victim and the culprit.
const BEFORE_NAMES: usize = 24;

/// The most threads whose cores are named one by one.
const THREADS: usize = 32;

pub(super) fn write(findings: &Findings, fit: &Fit, out: &mut dyn Write) -> Result<()> {
    head(findings, out)?;
    totals(findings, out)?;
    turns(findings, out)?;
    fields(findings, fit, out)?;
    let shown = findings.lines.len();
    if shown > 0 {
        writeln!(
            out,
            "\nLines that cores took from each other, {shown} of {}, by misses that this caused",
            findings.lines_contended
        )?;
        if findings.lines_runtime > 0 {
            writeln!(
                out,
                "{} of all are contended for by the runtime's own code alone (libc and the like): they come last",
                findings.lines_runtime
            )?;
        }
    }
    findings.lines.iter().try_for_each(|line| one_line(line, fit, out))
}

/// Prints the dependence of the figures on the turns.
fn turns(findings: &Findings, out: &mut dyn Write) -> Result<()> {
    let [_, _, ..] = findings.turns.as_slice() else {
        let quantum = findings.plan.quantum;
        return Ok(writeln!(
            out,
            "The figures hold for turns of {quantum} instructions; others give others."
        )?);
    };
    writeln!(out, "\nMisses by sharing depend on the turns, as the model knows no time (--quantum):")?;
    for turns in &findings.turns {
        let mark = if turns.quantum == findings.plan.quantum { "  shown here" } else { "" };
        writeln!(
            out,
            "{:>14} {:>7.2}%  at turns of {} instructions{mark}",
            turns.sharing,
            turns.percent(),
            turns.quantum
        )?;
    }
    Ok(())
}

fn head(findings: &Findings, out: &mut dyn Write) -> Result<()> {
    let Findings { geometry, course, plan, header, .. } = findings;
    writeln!(
        out,
        "# A model of coherent caches, not a measurement: MESI, {} cores, each {} KiB in {} ways of lines of {} bytes",
        geometry.cores(),
        geometry.size() / 1024,
        geometry.ways(),
        geometry.line()
    )?;
    writeln!(
        out,
        "# process {} of a trace of {}: {} accesses of {} threads",
        plan.process,
        printable(header.machine().as_bytes()),
        course.accesses(),
        course.threads().len()
    )?;
    writeln!(
        out,
        "# turns of {} instructions; {} points of synchronisation keep their order; {} atomic \
         instructions {}",
        plan.quantum,
        course.ordered(),
        course.atomics(),
        match plan.atomics {
            AtomicOrder::Free => "are free",
            AtomicOrder::Recorded => "keep their order, too",
        }
    )?;
    let map = course.threads().iter().take(THREADS).map(|(thread, core)| format!("{thread} on {core}"));
    let map: Vec<_> = map.collect();
    let rest = match course.threads().len().saturating_sub(THREADS) {
        0 => String::new(),
        rest => format!(", and {rest} more, each on the core of its number modulo {}", geometry.cores()),
    };
    writeln!(out, "# threads on cores: {}{rest}", map.join(", "))?;
    writeln!(out, "# there is no rseq under emulation: what relies on it ran its fallback\n")?;
    Ok(())
}

fn totals(findings: &Findings, out: &mut dyn Write) -> Result<()> {
    let total = &findings.total;
    let lines = &total.lines();
    let mut row = |name: &str, count: u64| -> Result<()> {
        let percent = 100.0 * count as f64 / total.accesses().max(1) as f64;
        Ok(writeln!(out, "{count:>14} {percent:>7.2}%  {name}")?)
    };
    row("accesses to a line (one that crosses lines is several)", total.accesses())?;
    row("hits", total.hits())?;
    row("  that had to take the line from others", total.upgrades())?;
    row("misses", total.misses())?;
    row("  cold: the core never had the line", lines.cold())?;
    row("  replaced: the cache was full", lines.replaced())?;
    row("  true sharing: others wrote these bytes", lines.true_sharing())?;
    row("  false sharing: others wrote other bytes of the line", lines.false_sharing())?;
    row("misses that another core's modified line answered (HITM)", lines.hitm())?;
    row("invalidations: copies that writes took from others", lines.invalidations())?;
    row("lines written back", total.writebacks())?;
    let (contended, touched) = (findings.lines_contended, findings.lines_touched);
    writeln!(out, "\n{touched} lines were touched, {contended} of them taken from one core by another")?;
    Ok(())
}

fn fields(findings: &Findings, fit: &Fit, out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "\nTypes and fields, by misses that writes of others caused\n{:>12} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}  \
         type, field",
        "reads", "writes", "true", "false", "takes", "replaced", "cold"
    )?;
    for row in findings.fields.iter().take(ROWS) {
        let counts = &row.counts;
        let numbers = format!(
            "{:>12} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}  ",
            counts.reads(),
            counts.writes(),
            counts.true_sharing(),
            counts.false_sharing(),
            counts.invalidations(),
            counts.replaced(),
            counts.cold(),
        );
        let mark = if row.is_runtime { "  [runtime]" } else { "" };
        let what = format!("{}{mark}", what(&row.variable, &row.ty, &row.field));
        writeln!(out, "{numbers}{}", fit.rest(&printable(what.as_bytes()), numbers.len()))?;
    }
    more(findings.fields.len(), ROWS, "types and fields", out)
}

/// Returns a variable with its type, or the type alone.
pub(super) fn what(variable: &str, ty: &str, field: &str) -> String {
    match (variable, field) {
        ("", _) => format!("{ty} {field}").trim_end().to_owned(),
        // the variable says where it is
        (_, "" | "+0 (no field)") => format!("{variable}: {ty}"),
        _ => format!("{variable}: {ty} {field}"),
    }
}

fn one_line(line: &LineRow, fit: &Fit, out: &mut dyn Write) -> Result<()> {
    let counts = &line.counts;
    writeln!(
        out,
        "\n{:#x}: {} misses by sharing ({} true, {} false), {} invalidations, {} reads, {} writes{}",
        line.address,
        counts.sharing_misses(),
        counts.true_sharing(),
        counts.false_sharing(),
        counts.invalidations(),
        counts.reads(),
        counts.writes(),
        if line.is_runtime { "  [runtime]" } else { "" }
    )?;
    for row in line.conflicts.iter().take(ROWS) {
        let kind = if row.is_true { "true" } else { "false" };
        writeln!(
            out,
            "{:>10} {kind:<5}  +{:#04x} {}\n{:>17} +{:#04x} {}",
            row.count,
            row.offset,
            fit.rest(&named(&row.victim), BEFORE_NAMES),
            "taken by",
            row.culprit_offset,
            fit.rest(&named(&row.culprit), BEFORE_NAMES)
        )?;
    }
    more(line.conflicts.len(), ROWS, "pairs", out)
}

fn named(place: &InstructionInfo) -> String {
    let what = what(&place.variable, &place.ty, &place.field);
    let text = format!("{what:<32} {} {}", place.code, place.file);
    printable(text.trim_end().as_bytes()).into_owned()
}

pub(super) fn more(count: usize, shown: usize, what: &str, out: &mut dyn Write) -> Result<()> {
    if count > shown {
        writeln!(out, "… and {} more {what}; --json has all", count - shown)?;
    }
    Ok(())
}
