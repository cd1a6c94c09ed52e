//! Differences by their root causes: those with the largest impact first, the rest folded.

use super::Report;
use super::causes::{RootCause, root_causes};
use super::evidence::Evidence;
use super::markdown::Markdown;
use super::text::Text;
use anstyle::Style;
use anyhow::Result;
use std::io::Write;
use tallyline_layout::diff::{Counts, TypeChange};
use tallyline_support::output::printable;

const DIM: Style = Style::new().dimmed();

/// The number of lines that differences take where there are more: a screen, with the counts below.
const LINES: usize = 35;

/// The number of members shown of a type, and of followers named.
const NAMED: usize = 6;

/// The number of rows of a table, and of its folded part: a comment has some room, and a reader less.
const ROWS: usize = 40;

/// Writes the differences as text: root causes first, the types that contain them folded into one line each.
pub(super) fn text(
    changes: &[TypeChange],
    evidence: &Evidence,
    counts: &Counts,
    out: &mut dyn Write,
) -> Result<()> {
    let roots = root_causes(changes, evidence);
    let mut report = Text { verbose: false, members: NAMED, evidence };
    let mut left = LINES;
    let mut shown = 0;
    for root in &roots {
        let mut lines = Vec::new();
        report.change(&changes[root.change], &mut lines)?;
        if let Some(followers) = followers(changes, root) {
            writeln!(lines, "    {DIM}{}{DIM:#}", printable(followers.as_bytes()))?;
        }
        let count = lines.iter().filter(|byte| **byte == b'\n').count();
        if count > left && shown != 0 {
            break;
        }
        left = left.saturating_sub(count);
        shown += 1;
        out.write_all(&lines)?;
    }
    let folded: usize = roots[shown..].iter().map(|root| 1 + root.followers.len()).sum();
    if folded != 0 {
        let (types, them) = if folded == 1 { ("type", "it") } else { ("types", "them") };
        writeln!(out, "{DIM}{folded} more {types} that differ; --all shows {them}{DIM:#}")?;
    }
    report.end(counts, out)
}

/// Writes the differences as Markdown tables for a pull request, those of less impact folded.
pub(super) fn markdown(
    changes: &[TypeChange],
    evidence: &Evidence,
    counts: &Counts,
    out: &mut dyn Write,
) -> Result<()> {
    let roots = root_causes(changes, evidence);
    let mut table = Markdown::new(evidence);
    for root in roots.iter().take(ROWS) {
        table.change(&changes[root.change], out)?;
    }
    let rest = roots.iter().skip(ROWS).map(|root| root.change);
    let followers = roots.iter().flat_map(|root| root.followers.iter().copied());
    fold("that contain them", followers, changes, evidence, out)?;
    fold("more", rest, changes, evidence, out)?;
    table.end(counts, out)
}

fn fold(
    what: &str,
    types: impl Iterator<Item = usize> + Clone,
    changes: &[TypeChange],
    evidence: &Evidence,
    out: &mut dyn Write,
) -> Result<()> {
    let count = types.clone().count();
    if count == 0 {
        return Ok(());
    }
    let word = if count == 1 { "type" } else { "types" };
    writeln!(out, "\n<details><summary>{count} {word} {what}</summary>\n")?;
    let mut table = Markdown::new(evidence);
    for index in types.take(ROWS) {
        table.change(&changes[index], out)?;
    }
    if count > ROWS {
        writeln!(out, "\n{} not shown", count - ROWS)?;
    }
    Ok(writeln!(out, "\n</details>")?)
}

/// Returns the line about types that change only because they contain a root cause.
fn followers(changes: &[TypeChange], root: &RootCause) -> Option<String> {
    let count = root.followers.len();
    let growth = changes[root.change].growth();
    let verb = match (growth, count) {
        (1.., 1) => "grows",
        (1.., _) => "grow",
        (_, 1) => "shrinks",
        _ => "shrink",
    };
    let named: Vec<String> =
        root.followers.iter().take(NAMED).filter_map(|index| changes.get(*index)).map(named).collect();
    let more = match count.checked_sub(NAMED) {
        Some(more @ 1..) => format!(", {more} more"),
        _ => String::new(),
    };
    let word = if count == 1 { "type" } else { "types" };
    (count != 0).then(|| format!("{count} {word} {verb} with it: {}{more}", named.join(", ")))
}

fn named(change: &TypeChange) -> String {
    format!("{} {} ({:+})", change.keyword(), change.name(), change.growth())
}
