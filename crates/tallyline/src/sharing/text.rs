//! Lines as text, in the order of perf: what there is, the lines, what is on each.

use crate::columns::{self, Fit};
use anyhow::Result;
use std::collections::BTreeSet;
use std::io::Write;
use tallyline_report::Profile;
use tallyline_report::sharing::{Line, Sharing};
use tallyline_support::output::printable;

const RULE: &str = "=================================================";

/// Writes all of it.
pub(super) fn write(
    profile: &Profile,
    found: &Sharing,
    limit: usize,
    fit: &Fit,
    out: &mut dyn Write,
) -> Result<()> {
    summary(profile, found, out)?;
    if found.lines().is_empty() {
        let who = if found.by_cpu() { "CPUs" } else { "threads" };
        return Ok(writeln!(out, "No cache line was accessed by several {who} of which one writes.")?);
    }
    heading("Shared Data Cache Line Table", out)?;
    writeln!(
        out,
        "#\n# Index             Address  Node    HITM  local remote  transfers  records   loads  stores  L1hit L1miss  locked     FB     L1     L2    LLC Rmtcache LclDram RmtDram  sharing"
    )?;
    writeln!(
        out,
        "# .....  ..................  .....  .....  ..... ......  .........  .......  ......  ......  ..... ......  ......  .....  .....  .....  ..... ........ ....... .......  .......\n#"
    )?;
    for (index, line) in found.lines().iter().take(limit).enumerate() {
        let counts = &line.counts();
        writeln!(
            out,
            "  {index:>5}  {:#018x}  {:<5}  {:>5}  {:>5} {:>6}  {:>9}  {:>7}  {:>6}  {:>6}  {:>5} {:>6}  {:>6}  {:>5}  {:>5}  {:>5}  \
             {:>5} {:>8} {:>7} {:>7}  {}",
            line.address(),
            nodes(line.nodes()),
            counts.hitm(),
            counts.local_hitm(),
            counts.remote_hitm(),
            line.transfers(),
            counts.records(),
            counts.loads(),
            counts.stores(),
            counts.levels().store_hit(),
            counts.levels().store_miss(),
            counts.locked(),
            counts.levels().fill_buffer(),
            counts.levels().l1(),
            counts.levels().l2(),
            counts.levels().last(),
            counts.levels().remote_cache(),
            counts.levels().local_memory(),
            counts.levels().remote_memory(),
            kind(line),
        )?;
    }
    writeln!(out)?;
    heading("What is on each line", out)?;
    for (index, line) in found.lines().iter().take(limit).enumerate() {
        parts(profile, found, (index, line), fit, out)?;
    }
    Ok(())
}

fn heading(title: &str, out: &mut dyn Write) -> Result<()> {
    Ok(writeln!(out, "{RULE}\n{title:^width$}\n{RULE}", width = RULE.len())?)
}

/// Names the kind of sharing of a line.
pub(super) fn kind(line: &Line) -> &'static str {
    match (line.is_true(), line.is_false()) {
        (true, true) => "true and false",
        (true, false) => "true",
        (false, true) => "false",
        (false, false) => "unknown",
    }
}

fn summary(profile: &Profile, found: &Sharing, out: &mut dyn Write) -> Result<()> {
    heading("Trace Event Information", out)?;
    let counts = &found.counts();
    let rows = [
        ("Total records", found.samples()),
        ("Records with an address of data", found.addressed()),
        ("Load Operations", counts.loads()),
        ("Store Operations", counts.stores()),
        ("Load Fill Buffer Hit", counts.levels().fill_buffer()),
        ("Load L1D hit", counts.levels().l1()),
        ("Load L2D hit", counts.levels().l2()),
        ("Load LLC hit", counts.levels().last()),
        ("Load Remote Cache hit", counts.levels().remote_cache()),
        ("Load Local DRAM", counts.levels().local_memory()),
        ("Load Remote DRAM", counts.levels().remote_memory()),
        ("Store L1D Hit", counts.levels().store_hit()),
        ("Store L1D Miss", counts.levels().store_miss()),
        ("Locked Load/Store Operations", counts.locked()),
        ("Load Local HITM", counts.local_hitm()),
        ("Load Remote HITM", counts.remote_hitm()),
        ("Cache Lines", found.all_lines()),
        ("Shared Cache Lines", found.lines().len() as u64),
        ("Bytes of a Cache Line", profile.info().line_size.into()),
    ];
    for (name, value) in rows {
        writeln!(out, "  {name:<33} : {value:>10}")?;
    }
    let who = if found.by_cpu() { "CPUs" } else { "threads" };
    let why = if found.by_cpu() || found.is_computed() { "" } else { " (the recording has no CPUs)" };
    writeln!(out, "  Accesses are told apart by {who}{why}.")?;
    if found.is_computed() {
        writeln!(
            out,
            "  Addresses were computed from the sampled registers. These samples say where time went, not how often\n  \
             an access was made: that of an update, whose load waits for the line, counts as a store."
        )?;
    }
    if found.is_measured() {
        writeln!(out, "  Lines are ranked by HITM, which the hardware counted.")?;
    } else {
        writeln!(
            out,
            "  The hardware did not say where lines came from. Transfers are an estimate: samples of one line that\n  \
             follow each other, are of different {who}, and one of which writes."
        )?;
    }
    Ok(writeln!(out)?)
}

fn parts(
    profile: &Profile,
    found: &Sharing,
    (index, line): (usize, &Line),
    fit: &Fit,
    out: &mut dyn Write,
) -> Result<()> {
    let who = if found.by_cpu() { "CPUs" } else { "threads" };
    write!(out, "{index:>3}  {:#x}", line.address())?;
    if line.pid() != 0 {
        write!(out, " of process {}", line.pid())?;
    }
    writeln!(out, ": {} sharing by {} {who}", kind(line), line.actors().len())?;
    writeln!(out, "      offset  Node    cpus     HITM         loads        stores  type and field")?;
    let share = |part: u64, whole: u64| part as f64 * 100.0 / whole.max(1) as f64;
    for part in line.parts() {
        let counts = &part.counts();
        let numbers = format!(
            "      {:>#6x}  {:<5} {:>6}  {:>6.2}% {:>6.2}%{:>6} {:>6.2}%{:>6}  ",
            part.offset(),
            nodes(part.nodes()),
            part.cpus().len(),
            share(counts.hitm(), line.counts().hitm()),
            share(counts.loads(), line.counts().loads()),
            counts.loads(),
            share(counts.stores(), line.counts().stores()),
            counts.stores(),
        );
        let what = printable(part.what().as_bytes());
        writeln!(out, "{numbers}{}", fit.rest(&what, columns::width(&numbers)))?;
        let names: Vec<_> = part
            .functions()
            .iter()
            .filter_map(|symbol| profile.symbol(*symbol))
            .map(|symbol| printable(profile.text(symbol.name).as_bytes()))
            .collect();
        let who =
            format!("{:60}read by {}, written by {}, in ", "", list(part.readers()), list(part.writers()));
        writeln!(out, "{who}{}", fit.rest(&names.join(", "), columns::width(&who)))?;
    }
    Ok(writeln!(out)?)
}

/// Returns the nodes of a line, `-` where the recording does not say them.
fn nodes(nodes: &BTreeSet<u32>) -> String {
    if nodes.is_empty() { "-".to_owned() } else { list(&nodes.iter().map(|node| i64::from(*node)).collect()) }
}

/// Formats numbers as ranges, such as `0-3,8`.
fn list(numbers: &BTreeSet<i64>) -> String {
    let mut parts: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => parts.push((*number, *number)),
        }
    }
    if parts.is_empty() {
        return "none".to_owned();
    }
    let text = |(first, last): &(i64, i64)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    parts.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::list;

    #[test]
    fn numbers_that_follow_each_other_are_a_range() {
        assert_eq!(list(&[0, 1, 2, 5, 7, 8].into()), "0-2,5,7-8");
        assert_eq!(list(&[].into()), "none");
    }
}
