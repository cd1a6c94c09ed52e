//! `--diff`: what changed between two recordings, by the same keys.
//!
//! As JSON: `{"schema":1,"weighs","old","new","rows":[{"keys","old","new","delta","noise"}]}`; `old` and `new` of
//! the document are numbers of samples, those of a row have `samples` and `percent`, `noise` says
//! whether chance alone explains the difference.

use super::view::{View, Views};
use crate::columns::{self, Fit};
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::Write;
use tallyline_report::Counts;
use tallyline_report::keys::Column;
use tallyline_support::output::printable;

/// A row of either recording, or both.
struct Change {
    texts: Vec<String>,
    old: Counts,
    new: Counts,
    delta: f64,
    noise: bool,
}

/// The minimum difference in standard errors.
const ERRORS: f64 = 2.0;

/// Writes what changed, the largest changes first.
pub(super) fn write(
    old: &Views<'_>,
    new: &Views<'_>,
    is_json: bool,
    fit: &Fit,
    out: &mut dyn Write,
) -> Result<()> {
    let (old_whole, new_whole) = (whole(old), whole(new));
    let changes = changes(old, new, &old_whole, &new_whole);
    if is_json {
        let rows: Vec<Value> =
            changes.iter().map(|change| row(new, change, &old_whole, &new_whole)).collect();
        let document = json!({
            "schema": 1,
            "weighs": new.weighs(),
            "old": old_whole.samples(),
            "new": new_whole.samples(),
            "rows": rows,
        });
        serde_json::to_writer(&mut *out, &document)?;
        return Ok(writeln!(out)?);
    }
    let keys: Vec<_> = new.columns.iter().filter_map(Column::key).map(|key| key.title).collect();
    writeln!(out, "# Samples: {} before, {} now", old_whole.samples(), new_whole.samples())?;
    writeln!(out, "# Percent weighs: {}; ~ marks differences that chance alone explains", new.weighs())?;
    writeln!(out, "#\n# Baseline       Now      Delta    {}", keys.join(" / "))?;
    writeln!(out, "# ........  ........  .........  .\n#")?;
    let columns: Vec<_> =
        keys.iter().map(|_| columns::Column { is_text: true, ..columns::Column::default() }).collect();
    // the numbers in front take 33 columns
    let fit = Fit { line: fit.line.map(|line| line.saturating_sub(33)), ..fit.clone() };
    let clean = |text: &String| printable(text.as_bytes()).into_owned();
    let rows: Vec<Vec<String>> =
        changes.iter().map(|change| change.texts.iter().map(clean).collect()).collect();
    let widths = columns::widths(&columns, rows.iter().map(Vec::as_slice), &fit);
    for (change, row) in changes.iter().zip(&rows) {
        let share = |counts: &Counts, whole: &Counts| match counts.samples() {
            0 => String::new(),
            _ => format!("{:.2}%", counts.percent(whole)),
        };
        writeln!(
            out,
            "  {:>8}  {:>8}  {:>+8.2}%{}{}",
            share(&change.old, &old_whole),
            share(&change.new, &new_whole),
            change.delta,
            if change.noise { '~' } else { ' ' },
            columns::line(&columns, &widths, row.iter().map(String::as_str), &fit)
        )?;
    }
    Ok(())
}

fn whole(views: &Views<'_>) -> Counts {
    let mut sum = Counts::default();
    views.views.iter().for_each(|view| sum.add(view.whole));
    sum
}

fn changes(old: &Views<'_>, new: &Views<'_>, old_whole: &Counts, new_whole: &Counts) -> Vec<Change> {
    let mut rows: HashMap<Vec<String>, (Counts, Counts)> = HashMap::new();
    let mut collect = |views: &Views<'_>, is_new: bool| {
        for row in views.views.iter().flat_map(|view: &View| &view.table.rows) {
            let (old, new) = rows.entry(keys_of(views, views.texts(row))).or_default();
            (if is_new { new } else { old }).add(row.counts());
        }
    };
    collect(old, false);
    collect(new, true);
    let mut changes: Vec<Change> = rows
        .into_iter()
        .map(|(texts, (before, now))| {
            let delta = now.percent(new_whole) - before.percent(old_whole);
            let noise =
                delta.abs() <= ERRORS * 100.0 * error(&before, old_whole).hypot(error(&now, new_whole));
            Change { texts, old: before, new: now, delta, noise }
        })
        .filter(|change| change.old.percent(old_whole).max(change.new.percent(new_whole)) >= new.limit)
        .collect();
    changes.sort_by(|a, b| b.delta.abs().total_cmp(&a.delta.abs()).then_with(|| a.texts.cmp(&b.texts)));
    changes
}

/// Returns the texts of keys alone: what adds up is no part of what a row is.
fn keys_of(views: &Views<'_>, texts: Vec<String>) -> Vec<String> {
    let both = views.columns.iter().zip(texts);
    both.filter(|(column, _)| column.key().is_some()).map(|(_, text)| text.trim().to_owned()).collect()
}

/// Returns the standard error of a share of samples.
fn error(counts: &Counts, whole: &Counts) -> f64 {
    if whole.samples() == 0 {
        return 0.0;
    }
    let (all, share) = (whole.samples() as f64, counts.samples() as f64 / whole.samples() as f64);
    // a share of nothing has an error, too: that of one sample more
    (share * (1.0 - share) / all).sqrt().max(1.0 / all)
}

fn row(views: &Views<'_>, change: &Change, old_whole: &Counts, new_whole: &Counts) -> Value {
    let names = views.columns.iter().filter_map(Column::key).map(|key| key.name.to_owned());
    let keys: Map<String, Value> =
        names.zip(&change.texts).map(|(name, text)| (name, text.as_str().into())).collect();
    let side = |counts: &Counts, whole: &Counts| json!({"samples": counts.samples(), "percent": counts.percent(whole)});
    json!({
        "keys": keys,
        "old": side(&change.old, old_whole),
        "new": side(&change.new, new_whole),
        "delta": change.delta,
        "noise": change.noise,
    })
}
