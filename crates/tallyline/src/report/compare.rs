//! `--diff`: what changed between two recordings, by the same keys.
//!
//! Events are compared one by one, by name: a sum of the periods of cycles and page faults is of nothing.
//!
//! As JSON: `{"schema":1,"weighs","old","new","events":[{"name","old","new"}],"left_out":{"old","new"},
//! "rows":[{"event","keys","old","new","delta","noise"}]}`; `old` and `new` of the document and of its events are numbers
//! of samples, those of `left_out` the names of events that the other recording does not have, those of a row have
//! `samples` and `percent`, `noise` says whether chance alone explains the difference.

use super::view::{View, Views};
use crate::columns::{self, Fit};
use anyhow::{Result, bail};
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

/// An event that both recordings have samples of, with the changes of their shares.
struct Comparison {
    event: String,
    old: Counts,
    new: Counts,
    changes: Vec<Change>,
}

/// The comparisons of two recordings, and the names of events that only one of them has.
struct Comparisons {
    list: Vec<Comparison>,
    old_alone: Vec<String>,
    new_alone: Vec<String>,
}

/// Writes what changed of each event, the largest changes first.
pub(super) fn write(
    old: &Views<'_>,
    new: &Views<'_>,
    is_json: bool,
    fit: &Fit,
    out: &mut dyn Write,
) -> Result<()> {
    let compared = compare(old, new);
    let Comparisons { list, old_alone, new_alone } = &compared;
    let quoted = |names: &[String]| {
        let names = names.iter().map(|name| format!("'{}'", printable(name.as_bytes())));
        names.collect::<Vec<_>>().join(", ")
    };
    if list.is_empty() {
        bail!(
            "no event is in both recordings: the older one has {}, this one {}",
            quoted(old_alone),
            quoted(new_alone)
        );
    }
    for (names, place) in [(old_alone, "older one"), (new_alone, "newer one")] {
        if !names.is_empty() {
            eprintln!(
                "tallyline: not compared, as only the {place} of the recordings has it: {}",
                quoted(names)
            );
        }
    }
    if is_json {
        serde_json::to_writer(&mut *out, &document(new, &compared))?;
        return Ok(writeln!(out)?);
    }
    for (index, comparison) in list.iter().enumerate() {
        let heading = (list.len() > 1).then_some(comparison.event.as_str());
        if index > 0 {
            writeln!(out)?;
        }
        write_one(new, comparison, heading, fit, out)?;
    }
    Ok(())
}

fn write_one(
    new: &Views<'_>,
    comparison: &Comparison,
    heading: Option<&str>,
    fit: &Fit,
    out: &mut dyn Write,
) -> Result<()> {
    let Comparison { old: old_whole, new: new_whole, changes, .. } = comparison;
    let keys: Vec<_> = new.columns.iter().filter_map(Column::key).map(|key| key.title).collect();
    let event = heading.map(|name| format!(" of event '{}'", printable(name.as_bytes()))).unwrap_or_default();
    writeln!(out, "# Samples{event}: {} before, {} now", old_whole.samples(), new_whole.samples())?;
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
            share(&change.old, old_whole),
            share(&change.new, new_whole),
            change.delta,
            if change.noise { '~' } else { ' ' },
            columns::line(&columns, &widths, row.iter().map(String::as_str), &fit)
        )?;
    }
    Ok(())
}

fn document(new: &Views<'_>, compared: &Comparisons) -> Value {
    let Comparisons { list, old_alone, new_alone } = compared;
    let sum = |of: fn(&Comparison) -> Counts| list.iter().map(|one| of(one).samples()).sum::<u64>();
    let event =
        |one: &Comparison| json!({"name": one.event, "old": one.old.samples(), "new": one.new.samples()});
    let rows = list.iter().flat_map(|one| one.changes.iter().map(|change| row(new, one, change)));
    json!({
        "schema": 1,
        "weighs": new.weighs(),
        "old": sum(|one| one.old),
        "new": sum(|one| one.new),
        "events": list.iter().map(event).collect::<Vec<_>>(),
        "left_out": {"old": old_alone, "new": new_alone},
        "rows": rows.collect::<Vec<_>>(),
    })
}

/// Returns the name of a table's event.
fn event_of(views: &Views<'_>, view: &View) -> String {
    let names = view.events.iter().filter_map(|event| views.profile.info().events.get(*event));
    names.map(|event| event.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Returns an event's name without modifiers: perf adds `:u` where the kernel does not permit to sample itself.
fn base(name: &str) -> &str {
    const MODIFIERS: &str = "ukhpPHGDSIeW";
    let without = name.rsplit_once(':').filter(|(_, last)| last.chars().all(|one| MODIFIERS.contains(one)));
    without.map_or(name, |(base, _)| base)
}

/// Compares the tables of the same events, in the order of the new recording. Of events whose names differ in their
/// modifiers alone, those with the same ones belong together first.
fn compare(old: &Views<'_>, new: &Views<'_>) -> Comparisons {
    let mut before: Vec<(String, &View)> = old.views.iter().map(|view| (event_of(old, view), view)).collect();
    let now: Vec<(String, &View)> = new.views.iter().map(|view| (event_of(new, view), view)).collect();
    let mut pairs: Vec<Option<&View>> = vec![None; now.len()];
    let is_exact = |one: &str, other: &str| one == other;
    let is_same_base = |one: &str, other: &str| base(one) == base(other);
    for is_same in [&is_exact as &dyn Fn(&str, &str) -> bool, &is_same_base] {
        for ((event, _), pair) in now.iter().zip(&mut pairs).filter(|(_, pair)| pair.is_none()) {
            let position = before.iter().position(|(name, _)| is_same(name, event));
            *pair = position.map(|position| before.remove(position).1);
        }
    }
    let (mut list, mut new_alone) = (Vec::new(), Vec::new());
    for ((event, now), was) in now.into_iter().zip(pairs) {
        let Some(was) = was else {
            new_alone.push(event);
            continue;
        };
        let changes = changes((old, was), (new, now));
        list.push(Comparison { event, old: was.whole, new: now.whole, changes });
    }
    Comparisons { list, old_alone: before.into_iter().map(|(name, _)| name).collect(), new_alone }
}

fn changes((old, was): (&Views<'_>, &View), (new, now): (&Views<'_>, &View)) -> Vec<Change> {
    let (old_whole, new_whole) = (&was.whole, &now.whole);
    let mut rows: HashMap<Vec<String>, (Counts, Counts)> = HashMap::new();
    let mut collect = |views: &Views<'_>, view: &View, is_new: bool| {
        for row in &view.table.rows {
            let (old, new) = rows.entry(keys_of(views, views.texts(row))).or_default();
            (if is_new { new } else { old }).add(row.counts());
        }
    };
    collect(old, was, false);
    collect(new, now, true);
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

fn row(views: &Views<'_>, comparison: &Comparison, change: &Change) -> Value {
    let names = views.columns.iter().filter_map(Column::key).map(|key| key.name.to_owned());
    let keys: Map<String, Value> =
        names.zip(&change.texts).map(|(name, text)| (name, text.as_str().into())).collect();
    let side = |counts: &Counts, whole: &Counts| json!({"samples": counts.samples(), "percent": counts.percent(whole)});
    json!({
        "event": comparison.event,
        "keys": keys,
        "old": side(&change.old, &comparison.old),
        "new": side(&change.new, &comparison.new),
        "delta": change.delta,
        "noise": change.noise,
    })
}
