//! For programs.
//!
//! `{"schema":1,"events":[…],"weighs","skid","by_evidence","lost","samples","eligible","typed",
//! "rows":[…],"pseudo":[…],"untyped":[{"reason","samples"}]}`. A row has `event` (its name), `keys` (a
//! text for each key), `samples`, `period`, `weight` (what shares are made of) and `percent`; side by
//! side, `events` with the same for each. `fused_pairs` has each kind of compare and jump with samples around it:
//! `pair`, `fused` (retired as one instruction), and unless that is assumed `learnt` with the samples `between` the
//! two and `behind` them. `shifts` has the counters without precision: `event`, by how many `instructions` its
//! samples are behind, and unless that is assumed `learnt` with the `samples` looked at and those that have `loads`
//! there. `indirect_calls` counts samples at functions' first instructions: charged to the call that the
//! return address leads to (`by_return_address`), to the only one that it may have been (`assumed`), to none (`unknown`).
//! Where hardware wrote traces, `traces` says what became of them.

use super::view::{View, Views};
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use tallyline_inference::code::FusiblePair;
use tallyline_perf_data::spe::AuxtraceStats;
use tallyline_report::attribution::{EventShift, PairRule, RuleSource};
use tallyline_report::keys::Column;
use tallyline_report::{Counts, Profile, Row};

/// Writes the report's tables as one JSON document.
pub(super) fn write(views: &Views<'_>, out: &mut dyn Write) -> Result<()> {
    let profile = views.profile;
    let events: Vec<_> = profile
        .info()
        .events
        .iter()
        .map(|event| json!({"name": event.name, "precise": event.is_precise}))
        .collect();
    let sum = |field: fn(&View) -> u64| views.views.iter().map(field).sum::<u64>();
    let rows: Vec<Value> = views
        .views
        .iter()
        .flat_map(|view| view.rows(views.limit).map(move |row| self::row(views, view, row)))
        .collect();
    let mut document = json!({
        "schema": 1,
        "events": events,
        "weighs": views.weighs(),
        "lost": profile.info().lost,
        "samples": sum(|view| view.table.shown.samples()),
        "rows": rows,
    });
    if !profile.info().traces.is_empty() {
        document["traces"] = traces(&profile.info().traces);
    }
    if views.has_types() {
        document["skid"] = profile.skid().to_string().into();
        document["shifts"] = profile.shifts().iter().map(|shift| self::shift(profile, shift)).collect();
        document["fused_pairs"] = profile.fusion().map(fused_pair).collect();
        let calls = profile.calls();
        document["indirect_calls"] = json!({
            "by_return_address": calls.by_return_address,
            "assumed": calls.assumed,
            "unknown": calls.unknown,
        });
        document["by_evidence"] = profile.by_evidence().into();
        document["eligible"] = sum(|view| view.account.eligible).into();
        document["typed"] = sum(|view| view.account.typed).into();
        document["pseudo"] = list("kind", views, |view| &view.account.pseudo);
        document["untyped"] = list("reason", views, |view| &view.account.untyped);
    }
    serde_json::to_writer(&mut *out, &document)?;
    Ok(writeln!(out)?)
}

/// Returns a counter's skid, and the samples by which it is known.
fn shift(profile: &Profile, shift: &EventShift) -> Value {
    let name = profile.info().events.get(shift.event as usize).map_or("", |event| event.name.as_str());
    let mut about = json!({"event": name, "instructions": shift.instructions});
    if let Some((loads, samples)) = shift.learnt {
        about["learnt"] = json!({"loads": loads, "samples": samples});
    }
    about
}

/// Returns a kind of a compare and a jump: whether the CPU retires both as one, and the samples by which that
/// is known.
fn fused_pair((pair, rule): (&FusiblePair, &PairRule)) -> Value {
    let mut about = json!({"pair": pair.to_string(), "fused": rule.is_fused});
    if let RuleSource::Learnt { between, behind } = rule.source {
        about["learnt"] = json!({"between": between, "behind": behind});
    }
    about
}

/// Returns the number of trace records by their fate, and how often the kernel reported missing ones.
fn traces(tally: &AuxtraceStats) -> Value {
    json!({
        "accesses": tally.accesses(),
        "unknown_threads": tally.unknown_threads(),
        "branches": tally.branches(),
        "others": tally.others(),
        "incomplete": tally.incomplete(),
        "damaged": tally.damaged(),
        "cut": tally.cut(),
        "truncated": tally.truncated(),
        "collisions": tally.collisions(),
        "partial": tally.partial(),
        "foreign_bytes": tally.foreign(),
    })
}

fn list(name: &str, views: &Views<'_>, of: fn(&View) -> &Vec<(String, u64)>) -> Value {
    let mut sums = BTreeMap::new();
    for (text, samples) in views.views.iter().flat_map(of) {
        *sums.entry(text.as_str()).or_insert(0_u64) += samples;
    }
    sums.into_iter().map(|(text, samples)| json!({name: text, "samples": samples})).collect()
}

fn row(views: &Views<'_>, view: &View, row: &Row) -> Value {
    let keys: Map<String, Value> = views
        .columns
        .iter()
        .zip(views.texts(row))
        .filter_map(|(column, text)| Some((column.key()?.name.to_owned(), text.trim().into())))
        .collect();
    debug_assert_eq!(keys.len(), views.columns.iter().filter_map(Column::key).count());
    let mut value = counts(&row.counts(), &view.whole);
    let name = |event: &usize| views.profile.info().events.get(*event).map(|event| event.name.clone());
    value["keys"] = keys.into();
    match view.events.as_slice() {
        [event] => value["event"] = name(event).into(),
        events => {
            let each =
                events.iter().zip(row.events()).zip(&view.whole_events).map(|((event, own), whole)| {
                    let mut value = counts(own, whole);
                    value["event"] = name(event).into();
                    value
                });
            value["events"] = each.collect();
        }
    }
    value
}

fn counts(counts: &Counts, whole: &Counts) -> Value {
    json!({
        "samples": counts.samples(),
        "period": counts.period(),
        "weight": counts.total(),
        "percent": counts.percent(whole),
    })
}
