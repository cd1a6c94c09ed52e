//! Text, laid out as people know it from perf.

use super::view::{Account, View, Views};
use crate::columns::{self, Fit};
use anyhow::Result;
use std::io::Write;
use tallyline_report::attribution::CallCounts;
use tallyline_report::keys::Column;
use tallyline_report::{Counts, Node, Row, Skid, hierarchy};
use tallyline_support::output::printable;

/// Writes tables, as trees with a level for each key or not.
pub(super) fn write(
    views: &Views<'_>,
    hints: &[String],
    is_tree: bool,
    fit: &Fit,
    out: &mut dyn Write,
) -> Result<()> {
    lost(views, out)?;
    for view in &views.views {
        head(views, view, out)?;
        let Grid { columns, rows } = grid(views, view, is_tree);
        let widths = columns::widths(&columns, rows.iter().map(Vec::as_slice), fit);
        for line in titles(&columns, &widths, fit) {
            writeln!(out, "{line}")?;
        }
        for row in &rows {
            writeln!(out, "{}", columns::line(&columns, &widths, row.iter().map(String::as_str), fit))?;
        }
        writeln!(out, "\n")?;
        foot(views, view, out)?;
    }
    for hint in hints {
        writeln!(out, "# {}", printable(hint.as_bytes()))?;
    }
    Ok(())
}

/// A table, as texts in columns.
pub(super) struct Grid {
    pub(super) columns: Vec<columns::Column>,
    pub(super) rows: Vec<Vec<String>>,
}

/// Returns the one-line title of a table.
pub(super) fn title(views: &Views<'_>, view: &View) -> String {
    let mut title = samples(views, view);
    if views.has_types() {
        title += &format!(", typed {} of {} eligible", view.account.typed, view.account.eligible);
    }
    title + &format!(", percent weighs {}", views.weighs())
}

/// Returns the columns and rows of a table, or of a tree.
pub(super) fn grid(views: &Views<'_>, view: &View, is_tree: bool) -> Grid {
    let columns = count_columns(views, view);
    if is_tree { tree(views, view, columns) } else { rows(views, view, columns) }
}

fn rows(views: &Views<'_>, view: &View, columns: Vec<columns::Column>) -> Grid {
    let row = |row: &Row| {
        let mut cells = counts_of(views, view, row.counts(), row.events(), 0);
        cells.extend(views.texts(row).iter().map(|text| printable(text.as_bytes()).into_owned()));
        cells
    };
    Grid { columns, rows: view.rows(views.limit).map(row).collect() }
}

fn tree(views: &Views<'_>, view: &View, mut columns: Vec<columns::Column>) -> Grid {
    let keys: Vec<_> = views.columns.iter().filter_map(Column::key).collect();
    let tree = hierarchy(&view.table.rows);
    columns.truncate(columns.len() - views.columns.len());
    let titles: Vec<_> = keys.iter().map(|key| key.title).collect();
    let indent = 3 * keys.len().saturating_sub(1);
    columns.push(columns::Column { title: titles.join(" / "), is_text: true, least: 0 });
    columns[0].least += indent;
    let mut rows = Vec::new();
    let mut stack: Vec<(usize, &Node)> = tree.iter().rev().map(|node| (0, node)).collect();
    while let Some((depth, node)) = stack.pop() {
        if node.counts().percent(&view.whole) < views.limit {
            continue;
        }
        let mut cells = counts_of(views, view, node.counts(), node.events(), depth);
        // the share moves to the right with the text
        if let Some(share) = cells.first_mut() {
            *share = format!("{share:<width$}", width = 8 + indent);
        }
        let text = keys
            .get(depth)
            .map_or_else(String::new, |key| (key.text)(views.profile, node.value(), &node.counts()));
        cells.push(format!("{:depth$}{}", "", printable(text.as_bytes()), depth = 3 * depth));
        rows.push(cells);
        stack.extend(node.children().iter().rev().map(|child| (depth + 1, child)));
    }
    Grid { columns, rows }
}

/// Returns the columns in the order of perf: shares, samples, and what was asked for.
fn count_columns(views: &Views<'_>, view: &View) -> Vec<columns::Column> {
    let column = |title: &str, is_text, least| columns::Column { title: title.to_owned(), is_text, least };
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

/// Returns the cells of shares and samples.
fn counts_of(views: &Views<'_>, view: &View, counts: Counts, events: &[Counts], depth: usize) -> Vec<String> {
    let share = |(counts, whole): (&Counts, &Counts)| {
        format!("{:depth$}{:>7.2}%", "", counts.percent(whole), depth = 3 * depth)
    };
    let mut cells: Vec<String> = events.iter().zip(&view.whole_events).map(share).collect();
    cells.extend(views.samples_column.then(|| counts.samples().to_string()));
    cells
}

/// Returns the heads of columns.
fn titles(columns: &[columns::Column], widths: &[usize], fit: &Fit) -> [String; 3] {
    let dots: Vec<String> = widths.iter().map(|width| ".".repeat(*width)).collect();
    // what is in front of the first column takes the place of its two blanks
    let first = |line: String| format!("#{}", line.get(1..).unwrap_or_default());
    [
        first(columns::line(columns, widths, columns.iter().map(|column| column.title.as_str()), fit)),
        first(columns::line(columns, widths, dots.iter().map(String::as_str), fit)),
        "#".to_owned(),
    ]
}

fn lost(views: &Views<'_>, out: &mut dyn Write) -> Result<()> {
    Ok(writeln!(out, "#\n# Total Lost Samples: {}\n#", views.profile.info().lost)?)
}

fn samples(views: &Views<'_>, view: &View) -> String {
    let events = view.events.iter().filter_map(|event| views.profile.info().events.get(*event));
    let names: Vec<_> = events.map(|event| printable(event.name.as_bytes()).into_owned()).collect();
    let plural = if names.len() > 1 { "s" } else { "" };
    format!("Samples: {} of event{plural} '{}'", rounded(view.table.shown.samples()), names.join(", "))
}

fn head(views: &Views<'_>, view: &View, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "# {}", samples(views, view))?;
    let shown = view.table.shown;
    match views.weighing {
        tallyline_report::Weighing::Weight => {
            writeln!(out, "# Total weight : {}", shown.total())?;
            let keys: Vec<_> = views.columns.iter().filter_map(Column::key).map(|key| key.name).collect();
            writeln!(out, "# Sort order   : {}", keys.join(","))?;
        }
        tallyline_report::Weighing::Period => {
            writeln!(out, "# Event count (approx.): {}", shown.period())?;
        }
    }
    writeln!(out, "# Percent weighs: {}", views.weighs())?;
    if views.has_types() {
        let Account { eligible, typed, .. } = view.account;
        let share = if eligible == 0 { 0.0 } else { typed as f64 * 100.0 / eligible as f64 };
        writeln!(out, "# Eligible: {eligible}, typed: {typed} ({share:.1} %)")?;
        writeln!(out, "# Skid: {}", views.profile.skid())?;
        for shift in views.profile.shifts() {
            let name = views.profile.info().events.get(shift.event as usize).map_or("", |event| &event.name);
            writeln!(out, "# Skid of {}: {shift}", printable(name.as_bytes()))?;
        }
        if views.profile.info().arch == "aarch64" && views.profile.skid() != Skid::None {
            writeln!(out, "# Skid on aarch64: by the architecture's documents, not measured")?;
        }
        if views.profile.fusion().next().is_some() {
            writeln!(out, "# Compare and jump: {}", views.profile.fusion_summary())?;
        }
        if views.profile.calls() != CallCounts::default() {
            writeln!(out, "# Indirect calls: {}", views.profile.calls())?;
        }
        // of all events: samples that nothing but the recording itself gave a type
        if let found @ 1.. = views.profile.by_evidence() {
            writeln!(out, "# Typed by where the data was, or what registers held: {found}")?;
        }
    }
    Ok(writeln!(out, "#")?)
}

/// Writes the samples that have no type, by kind and by reason.
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
