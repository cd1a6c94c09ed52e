//! Lines for programs.
//!
//! `{"schema":1,"line_size","measured","by","addresses","samples","addressed","lines":[{"address","pid","hitm",
//! "local_hitm","remote_hitm","transfers","loads","stores","locked","levels":{…},"nodes","sharing","actors":[…],"parts":[{"offset",
//! "what","loads","stores","hitm","readers","writers","cpus","nodes","functions"}]}]}`.

use super::text::kind;
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tallyline_report::Profile;
use tallyline_report::sharing::{Levels, Line, Part, Sharing};

/// Writes the shared cache lines of a profile, at most `limit`, as one JSON document.
pub(super) fn write(profile: &Profile, found: &Sharing, limit: usize, out: &mut dyn Write) -> Result<()> {
    let lines: Vec<Value> = found.lines().iter().take(limit).map(|line| self::line(profile, line)).collect();
    let document = json!({
        "schema": 1,
        "line_size": profile.info().line_size,
        "measured": found.is_measured(),
        "by": if found.by_cpu() { "cpu" } else { "thread" },
        "addresses": if found.is_computed() { "computed" } else { "recorded" },
        "samples": found.samples(),
        "addressed": found.addressed(),
        "lines": lines,
    });
    serde_json::to_writer(&mut *out, &document)?;
    Ok(writeln!(out)?)
}

fn line(profile: &Profile, line: &Line) -> Value {
    let counts = &line.counts();
    json!({
        "address": line.address(),
        "pid": line.pid(),
        "hitm": counts.hitm(),
        "local_hitm": counts.local_hitm(),
        "remote_hitm": counts.remote_hitm(),
        "transfers": line.transfers(),
        "loads": counts.loads(),
        "stores": counts.stores(),
        "locked": counts.locked(),
        "levels": levels(&counts.levels()),
        "nodes": line.nodes(),
        "sharing": kind(line),
        "actors": line.actors(),
        "parts": line.parts().iter().map(|part| self::part(profile, part)).collect::<Vec<_>>(),
    })
}

fn levels(levels: &Levels) -> Value {
    json!({
        "fill_buffer": levels.fill_buffer(),
        "l1": levels.l1(),
        "l2": levels.l2(),
        "last": levels.last(),
        "remote_cache": levels.remote_cache(),
        "local_memory": levels.local_memory(),
        "remote_memory": levels.remote_memory(),
        "store_hit": levels.store_hit(),
        "store_miss": levels.store_miss(),
    })
}

fn part(profile: &Profile, part: &Part) -> Value {
    let functions = part.functions().iter().filter_map(|symbol| profile.symbol(*symbol));
    json!({
        "offset": part.offset(),
        "what": part.what(),
        "loads": part.counts().loads(),
        "stores": part.counts().stores(),
        "hitm": part.counts().hitm(),
        "readers": part.readers(),
        "writers": part.writers(),
        "cpus": part.cpus(),
        "nodes": part.nodes(),
        "functions": functions.map(|symbol| profile.text(symbol.name)).collect::<Vec<_>>(),
    })
}
