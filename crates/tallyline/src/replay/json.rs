//! The findings of a replay as JSON.
//!
//! ```json
//! {"schema":1,"model":"MESI","trace":{"machine":"x86_64","process":1,"accesses":9},
//!  "caches":{"cores":2,"line":64,"size":1048576,"ways":16},
//!  "replay":{"quantum":200,"atomics":"free","ordered":4,"atomic_instructions":0,
//!            "threads":[{"thread":1,"core":0}],
//!            "by_quantum":[{"quantum":20,"sharing":90,"percent":9.0}]},
//!  "counts":{"accesses":9,"hits":7,"upgrades":0,"misses":2,"written_back":0,"lines":2,"contended":1,"contended_by_runtime":0, …counts},
//!  "fields":[{"type":"struct pair","field":"+0x8 (b)","variable":"shared.b","runtime":false, …counts}],
//!  "lines":[{"address":4096,"runtime":false, …counts,"conflicts":[{"misses":1,"true":false,
//!     "victim":{"offset":8,"address":4198400,"code":"main+0x4","file":"a","type":"struct pair","field":"+0x8 (b)","variable":"shared.b"},
//!     "culprit":{ … }}]}]}
//! ```
//! `runtime` is the C library's own code, or code without debug information in a file that has some; `by_quantum` are
//! the misses by sharing at other turns. Counts are `reads`, `writes`, `cold`, `replaced`, `true_sharing`, `false_sharing`, `invalidations`, `hitm`.

use super::findings::{ConflictRow, FieldRow, Findings, LineRow};
use super::places::InstructionInfo;
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::io::Write;
use tallyline_trace::coherence::{AtomicOrder, LineCounts};

pub(super) fn write(findings: &Findings, out: &mut dyn Write) -> Result<()> {
    serde_json::to_writer(&mut *out, &document(findings))?;
    writeln!(out)?;
    Ok(())
}

fn document(findings: &Findings) -> Value {
    let Findings { geometry, plan, course, total, .. } = findings;
    let threads = course.threads().iter().map(|(thread, core)| json!({"thread": thread, "core": core}));
    json!({
        "schema": 1,
        "model": "MESI",
        "trace": {
            "machine": findings.header.machine(),
            "process": plan.process,
            "accesses": course.accesses(),
        },
        "caches": {
            "cores": geometry.cores(),
            "line": geometry.line(),
            "size": geometry.size(),
            "ways": geometry.ways(),
        },
        "replay": {
            "quantum": plan.quantum,
            "atomics": match plan.atomics { AtomicOrder::Free => "free", AtomicOrder::Recorded => "recorded" },
            "ordered": course.ordered(),
            "atomic_instructions": course.atomics(),
            "threads": threads.collect::<Vec<_>>(),
            "by_quantum": findings.turns.iter().map(|turns| json!({
                "quantum": turns.quantum,
                "sharing": turns.sharing,
                "percent": turns.percent(),
            })).collect::<Vec<_>>(),
        },
        "counts": with_counts(&total.lines(), json!({
            "accesses": total.accesses(),
            "hits": total.hits(),
            "upgrades": total.upgrades(),
            "misses": total.misses(),
            "written_back": total.writebacks(),
            "lines": findings.lines_touched,
            "contended": findings.lines_contended,
            "contended_by_runtime": findings.lines_runtime,
        })),
        "fields": findings.fields.iter().map(field).collect::<Vec<_>>(),
        "lines": findings.lines.iter().map(line).collect::<Vec<_>>(),
    })
}

/// Returns an object with the counts added to it.
fn with_counts(counts: &LineCounts, object: Value) -> Value {
    let mut members = match object {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    let all = [
        ("reads", counts.reads()),
        ("writes", counts.writes()),
        ("cold", counts.cold()),
        ("replaced", counts.replaced()),
        ("true_sharing", counts.true_sharing()),
        ("false_sharing", counts.false_sharing()),
        ("invalidations", counts.invalidations()),
        ("hitm", counts.hitm()),
    ];
    members.extend(all.map(|(name, count)| (name.to_string(), json!(count))));
    Value::Object(members)
}

fn field(row: &FieldRow) -> Value {
    with_counts(
        &row.counts,
        json!({
            "type": row.ty,
            "field": row.field,
            "variable": row.variable,
            "runtime": row.is_runtime,
        }),
    )
}

fn line(row: &LineRow) -> Value {
    let conflicts: Vec<_> = row.conflicts.iter().map(conflict).collect();
    with_counts(
        &row.counts,
        json!({"address": row.address, "runtime": row.is_runtime, "conflicts": conflicts}),
    )
}

fn conflict(row: &ConflictRow) -> Value {
    json!({
        "misses": row.count,
        "true": row.is_true,
        "victim": place(&row.victim, row.offset),
        "culprit": place(&row.culprit, row.culprit_offset),
    })
}

fn place(place: &InstructionInfo, offset: u16) -> Value {
    json!({
        "offset": offset,
        "address": place.address,
        "code": place.code,
        "file": place.file,
        "type": place.ty,
        "field": place.field,
        "variable": place.variable,
    })
}
