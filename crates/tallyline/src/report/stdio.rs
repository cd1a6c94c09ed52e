//! Text, laid out as people know it from perf.

use super::view::{Account, View, Views};
use crate::output::printable;
use anyhow::Result;
use std::io::Write;
use tallyline_profile::report::keys::Column;
use tallyline_profile::report::{Counts, Node, hierarchy};

/// Writes tables, as trees with a level for each key or not.
pub(super) fn write(views: &Views<'_>, is_tree: bool, out: &mut dyn Write) -> Result<()> {
    lost(views, out)?;
    for view in &views.views {
        head(views, view, out)?;
        let columns = columns(views, view, is_tree);
        let (titles, rows) = text(&columns);
        for line in titles.iter().chain(&rows) {
            writeln!(out, "{line}")?;
        }
        writeln!(out, "\n")?;
        foot(views, view, out)?;
    }
    Ok(())
}

/// A table for the browser.
pub(super) struct Lines {
    pub(super) title: String,
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<String>,
}

/// The same table, its head in short.
pub(super) fn lines(views: &Views<'_>, view: &View, is_tree: bool) -> Lines {
    let (titles, rows) = text(&columns(views, view, is_tree));
    let mut title = samples(views, view);
    if views.has_types() {
        title += &format!(", typed {} of {} eligible", view.account.typed, view.account.eligible);
    }
    title += &format!(", percent weighs {}", views.weighs());
    Lines { title, head: titles.into_iter().take(1).map(|line| line.replacen('#', " ", 1)).collect(), rows }
}

fn columns(views: &Views<'_>, view: &View, is_tree: bool) -> Vec<Cells> {
    let columns = count_columns(views, view);
    if is_tree { tree(views, view, columns) } else { rows(views, view, columns) }
}

fn rows(views: &Views<'_>, view: &View, mut columns: Vec<Cells>) -> Vec<Cells> {
    for row in view.rows(views.limit) {
        counts_of(views, view, row.counts, &row.events, 0, &mut columns);
        let texts = views.texts(row);
        for (column, text) in columns.iter_mut().rev().zip(texts.into_iter().rev()) {
            column.cells.push(printable(text.as_bytes()).into_owned());
        }
    }
    columns
}

fn tree(views: &Views<'_>, view: &View, mut columns: Vec<Cells>) -> Vec<Cells> {
    let keys: Vec<_> = views.columns.iter().filter_map(Column::key).collect();
    let tree = hierarchy(&view.table.rows);
    columns.truncate(columns.len() - views.columns.len());
    let titles: Vec<_> = keys.iter().map(|key| key.title).collect();
    let indent = 3 * keys.len().saturating_sub(1);
    columns.push(Cells { title: titles.join(" / "), is_left: true, least: 0, cells: Vec::new() });
    columns[0].least += indent;
    let mut stack: Vec<(usize, &Node)> = tree.iter().rev().map(|node| (0, node)).collect();
    while let Some((depth, node)) = stack.pop() {
        if node.counts.percent(&view.whole) < views.limit {
            continue;
        }
        counts_of(views, view, node.counts, &node.events, depth, &mut columns);
        // the share moves to the right with the text
        if let Some(share) = columns[0].cells.last_mut() {
            *share = format!("{share:<width$}", width = 8 + indent);
        }
        let text = keys
            .get(depth)
            .map_or_else(String::new, |key| (key.text)(views.profile, node.value, &node.counts));
        let text = format!("{:depth$}{}", "", printable(text.as_bytes()), depth = 3 * depth);
        columns.last_mut().into_iter().for_each(|column| column.cells.push(text.clone()));
        stack.extend(node.children.iter().rev().map(|child| (depth + 1, child)));
    }
    columns
}

/// A column, as text.
struct Cells {
    title: String,
    is_left: bool,
    least: usize,
    cells: Vec<String>,
}

/// The columns in the order of perf: shares, samples, and what was asked for.
fn count_columns(views: &Views<'_>, view: &View) -> Vec<Cells> {
    let column =
        |title: &str, is_left, least| Cells { title: title.to_owned(), is_left, least, cells: Vec::new() };
    let mut columns = vec![column("Overhead", false, 8)];
    columns.extend(view.events.iter().skip(1).map(|_| column("", false, 8)));
    if views.samples_column {
        columns.push(column("Samples", false, 12));
    }
    columns.extend(views.columns.iter().map(|asked| match asked {
        Column::Key(key) => column(key.title, true, 0),
        other => column(other.title(), false, 12),
    }));
    columns
}

/// Fills the columns of shares and samples.
fn counts_of(
    views: &Views<'_>,
    view: &View,
    counts: Counts,
    events: &[Counts],
    depth: usize,
    columns: &mut [Cells],
) {
    let mut columns = columns.iter_mut();
    for (counts, whole) in events.iter().zip(&view.whole_events) {
        if let Some(column) = columns.next() {
            column.cells.push(format!("{:depth$}{:>7.2}%", "", counts.percent(whole), depth = 3 * depth));
        }
    }
    if views.samples_column
        && let Some(column) = columns.next()
    {
        column.cells.push(counts.samples.to_string());
    }
}

/// The heads of columns, and the rows under them.
fn text(columns: &[Cells]) -> (Vec<String>, Vec<String>) {
    let widths: Vec<usize> = columns
        .iter()
        .map(|column| {
            let cells = column.cells.iter().map(|cell| cell.chars().count());
            cells.chain([column.title.chars().count(), column.least]).max().unwrap_or(0)
        })
        .collect();
    let line = |first: &str, cell: &dyn Fn(usize) -> String| {
        let mut text = first.to_owned();
        for (index, column) in columns.iter().enumerate() {
            let width = widths[index];
            text.push_str("  ");
            let cell = cell(index);
            text += &if column.is_left { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
        }
        // what is in front of the first column takes the place of its two blanks
        text.replacen("#  ", "# ", 1).trim_end().to_owned()
    };
    let titles = vec![
        line("#", &|index| columns[index].title.clone()),
        line("#", &|index| ".".repeat(widths[index])),
        "#".to_owned(),
    ];
    let row = |row| line("", &|index| columns[index].cells.get(row).cloned().unwrap_or_default());
    (titles, (0..columns.first().map_or(0, |column| column.cells.len())).map(row).collect())
}

fn lost(views: &Views<'_>, out: &mut dyn Write) -> Result<()> {
    Ok(writeln!(out, "#\n# Total Lost Samples: {}\n#", views.profile.lost)?)
}

fn samples(views: &Views<'_>, view: &View) -> String {
    let events = view.events.iter().filter_map(|event| views.profile.events.get(*event));
    let names: Vec<_> = events.map(|event| printable(event.name.as_bytes()).into_owned()).collect();
    let plural = if names.len() > 1 { "s" } else { "" };
    format!("Samples: {} of event{plural} '{}'", rounded(view.table.shown.samples), names.join(", "))
}

fn head(views: &Views<'_>, view: &View, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "# {}", samples(views, view))?;
    let shown = view.table.shown;
    match views.weighing {
        tallyline_profile::report::Weighing::Weight => {
            writeln!(out, "# Total weight : {}", shown.total)?;
            let keys: Vec<_> = views.columns.iter().filter_map(Column::key).map(|key| key.name).collect();
            writeln!(out, "# Sort order   : {}", keys.join(","))?;
        }
        tallyline_profile::report::Weighing::Period => {
            writeln!(out, "# Event count (approx.): {}", shown.period)?;
        }
    }
    writeln!(out, "# Percent weighs: {}", views.weighs())?;
    if views.has_types() {
        let Account { eligible, typed, .. } = view.account;
        let share = if eligible == 0 { 0.0 } else { typed as f64 * 100.0 / eligible as f64 };
        writeln!(out, "# Eligible: {eligible}, typed: {typed} ({share:.1} %)")?;
        writeln!(out, "# Skid: {}", views.profile.skid)?;
        // of all events: samples that nothing but the recording itself gave a type
        if let found @ 1.. = views.profile.joined.by_evidence {
            writeln!(out, "# Typed by where the data was, or what registers held: {found}")?;
        }
    }
    Ok(writeln!(out, "#")?)
}

/// The samples that have no type, by kind and by reason.
fn foot(views: &Views<'_>, view: &View, out: &mut dyn Write) -> Result<()> {
    if !views.has_types() || view.account.untyped.is_empty() {
        return Ok(());
    }
    writeln!(out, "# Samples without a type:")?;
    for (reason, samples) in &view.account.untyped {
        writeln!(out, "#   {samples:>10}  {}", printable(reason.as_bytes()))?;
    }
    Ok(writeln!(out)?)
}

/// Thousands and millions, as perf rounds them.
fn rounded(count: u64) -> String {
    match count {
        0..1000 => format!("{count} "),
        1000..1_000_000 => format!("{}K", count / 1000),
        1_000_000..1_000_000_000 => format!("{}M", count / 1_000_000),
        _ => format!("{}G", count / 1_000_000_000),
    }
}
