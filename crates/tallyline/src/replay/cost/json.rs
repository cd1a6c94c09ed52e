//! Costs of fields by the model, as JSON.
//!
//! ```json
//! {"schema":1,"model":"time","trace":{"machine":"x86_64","process":1,"accesses":9,"threads":1},
//!  "processor":{"line":64,"levels":[{"size":49152,"ways":12,"cycles":4}],"memory":450,"memory_interval":10,
//!               "width":8,"window":448,"stores":104,"misses":24,"misprediction":15,"indirect_by_history":true,"page":4096,"tlb":[96,4096],"page_walk":0,"nested_paging":false,"prefetch":16},
//!  "cycles":100,"instructions":30,"explained":21,"unexplained":0,"mispredictions":1, …accesses,
//!  "fields":[{"type":"struct pair","field":"+0x8 (b)","variable":"","runtime":false,"share":0.6,"cycles":60,
//!             "instructions":3,"mispredictions":0,"accesses":3,"levels":[1,1,0],"memory":1,"walks":0}]}
//! ```
//! `share` is the part of all cycles; `explained` are instructions between accesses that the program's code explains.
//! `levels` are accesses by the cache that had their line, `memory` those that none had, `walks` those whose page was
//! in no TLB.

use super::findings::CostFindings;
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tallyline_timing::{InstructionCost, TraceCosts};

pub(super) fn write(findings: &CostFindings, out: &mut dyn Write) -> Result<()> {
    serde_json::to_writer(&mut *out, &document(findings))?;
    writeln!(out)?;
    Ok(())
}

fn document(findings: &CostFindings) -> Value {
    let CostFindings { processor, course, .. } = findings;
    let levels = processor.levels.iter();
    let mut document = json!({
        "schema": 1,
        "model": "time",
        "trace": {
            "machine": findings.header.machine(),
            "process": findings.plan.process,
            "accesses": course.accesses(),
            "threads": course.threads().len(),
        },
        "processor": {
            "line": processor.line_size,
            "levels": levels.map(|level| json!({
                "size": level.size,
                "ways": level.ways,
                "cycles": level.latency,
            })).collect::<Vec<_>>(),
            "memory": processor.memory_latency,
            "memory_interval": processor.memory_interval,
            "width": processor.width,
            "window": processor.reorder_buffer,
            "stores": processor.store_buffer,
            "misses": processor.miss_buffers,
            "misprediction": processor.misprediction_penalty(),
            "indirect_by_history": processor.indirect_by_history,
            "page": processor.page_size,
            "tlb": processor.tlb_entries,
            "page_walk": processor.page_walk_latency,
            "nested_paging": processor.nested_paging,
            "prefetch": processor.prefetch_distance,
        },
        "explained": findings.explained,
        "unexplained": findings.unexplained,
        "fields": findings.fields.iter().map(|row| {
            let mut field = json!({
                "type": row.ty,
                "field": row.field,
                "variable": row.variable,
                "runtime": row.is_runtime,
                "share": findings.percent(row.cost.time()) / 100.0,
            });
            with_cost(&mut field, &row.cost, processor.levels.len());
            field
        }).collect::<Vec<_>>(),
    });
    with_cost(&mut document, &findings.total.with_time(findings.time), processor.levels.len());
    document
}

/// Adds what was counted to an object.
fn with_cost(object: &mut Value, cost: &InstructionCost, levels: usize) {
    let Value::Object(members) = object else { return };
    members.insert("cycles".into(), json!(cost.time() / TraceCosts::PARTS));
    members.insert("instructions".into(), json!(cost.executions()));
    members.insert("mispredictions".into(), json!(cost.mispredictions()));
    members.insert("accesses".into(), json!(cost.sources().iter().sum::<u64>()));
    members.insert("levels".into(), json!(cost.sources().iter().take(levels).collect::<Vec<_>>()));
    members.insert("memory".into(), json!(cost.sources().get(levels)));
    members.insert("walks".into(), json!(cost.walks()));
}
