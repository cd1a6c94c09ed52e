//! Advice as JSON.
//!
//! ```json
//! {"schema":1,"process":1,"machine":"x86_64","accesses":9,
//!  "model":{"cores":2,"line":64,"transfer":[60,200],"schedules":6},
//!  "cycles":900,"cycles_shared":300,"dropped":[],"notes":[],"traced_seconds":12.0,"full_after":null,
//!  "window":{"functions":9,"samples":[5000,4900],"waiting":0,"waiting_in":[],"seconds":[1.5,12.0],"slowdown":8.0},
//!  "findings":[{"kind":"false-sharing","about":"…","subject":"flow","confidence":"high",
//!    "effect":{"run":{"low":1.1,"median":1.2,"high":1.3,"expected":[1.067,1.45]},"cores":{…}},
//!    "lost":100,"transfers":20,"lines":1,"reader_lines":[1,2],
//!    "fields":[{"type":"flow","field":"packets","variable":"flows","offset":8,"size":8,"lost":90,
//!      "threads":[{"thread":7,"name":"rx","reads":9,"writes":9}],
//!      "sites":[{"function":"receive","file":"/src/flow.c","line":12,"atomic":true,"reads":9,"writes":9}]}],
//!    "proposal":{"kind":"layout","type":"flow","file":"/src/flow.c","line":3,"align":64,"size":[64,128],"lines":[1,2],
//!      "members":[{"name":"packets","offset":64,"size":8,"align":64,"pad":0,"group":1}],"groups":["…"]},
//!    "check":"[[apart]]…"}]}
//! ```
//! The effect of a finding is on top of those in front of it. `dropped` has findings that the model does not confirm,
//! and those whose type cannot be reordered: their effect is null, and the proposal
//! `{"kind":"none","type","file","line","why":"…"}`. A member of a layout without a name has an empty one, and a base
//! class `"B <ancestor>"`. `traced_seconds` is the time of the run under QEMU, and null of a trace that was there;
//! `full_after` is the time of it after which the trace had its largest size, and null where it stayed below. `window`
//! is null where all was traced; its samples are all and those inside, `waiting` those in loops that only wait, its
//! seconds those of the plain and the traced run, and its slow-down null where these were cut at a time or the trace
//! was full. Other proposals are `{"kind":"counter","names":[…],"code":[…],"bytes_per_cpu":8,"bytes_of_handle":16}`,
//! `{"kind":"apart","names":[…],"file","line","align","pad","size":[16,64]}`, `{"kind":"embed","pointer","target",
//! "size":[48,64]}` and `{"kind":"copy","pointer","fields":[…],"size":[48,56]}`. With `--apply` or `--patch` there is
//! `edits`, the document of `tallyline reorganize --patch --json` with the proposals that are no edits in `left`.
//! Numbers in pairs are before and after; cycles are the model's. `by` is `model`, `samples` (`-i`) or `breakpoints`
//! (`-p`): without a model `model` and each `effect` are null, `cycles`, `cycles_shared` and `lost` are samples, and
//! `observed` is `{"samples","addressed","breakpoints":{"lines","words","hits","threads","seconds",
//! "hit_seconds","slowdown"}}`, with `breakpoints` null for `-i`.

use super::edits::Done;
use super::text::subject_name;
use super::{Advice, Basis, WindowSummary};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tallyline_advice::evidence::Evidence;
use tallyline_advice::{Effect, FieldEvidence, Finding, Proposal};

pub(super) fn write(advice: &Advice, done: Option<&Done>, out: &mut dyn Write) -> Result<()> {
    let basis = &advice.basis;
    let findings: Vec<Value> = advice.findings.iter().map(|finding| self::finding(advice, finding)).collect();
    let dropped: Vec<Value> = advice.dropped.iter().map(|finding| self::finding(advice, finding)).collect();
    let mut document = json!({
        "schema": 1,
        "process": advice.process,
        "machine": advice.machine,
        "accesses": advice.accesses,
        "by": by(basis),
        "model": model(advice),
        "observed": observed(basis),
        "cycles": advice.evidence.cycles,
        "cycles_shared": advice.evidence.cycles_shared,
        "dropped": dropped,
        "notes": advice.notes,
        "traced_seconds": advice.traced_seconds,
        "full_after": advice.full_after,
        "window": advice.window.as_ref().map(window),
        "findings": findings,
    });
    if let Some(done) = done {
        document["edits"] = done.json();
    }
    serde_json::to_writer_pretty(&mut *out, &document)?;
    Ok(writeln!(out)?)
}

fn window(window: &WindowSummary) -> Value {
    json!({
        "functions": window.functions,
        "samples": [window.samples.0, window.samples.1],
        "waiting": window.waiting,
        "waiting_in": window.waiting_in,
        "seconds": window.times.map(|(plain, traced)| [plain.seconds, traced.seconds]),
        "slowdown": window.slowdown,
    })
}

/// Names what advice is based on.
fn by(basis: &Basis) -> &'static str {
    match basis {
        Basis::Model(_) => "model",
        Basis::Observed(run) if run.watched.is_some() => "breakpoints",
        Basis::Observed(_) => "samples",
    }
}

fn model(advice: &Advice) -> Value {
    let Basis::Model(model) = &advice.basis else { return Value::Null };
    let [low, high, _] = model.costs;
    json!({
        "cores": model.cores,
        "line": advice.evidence.line_size,
        "transfer": [low.transfer(), high.transfer()],
        "schedules": model.seeds,
    })
}

fn observed(basis: &Basis) -> Value {
    let Basis::Observed(run) = basis else { return Value::Null };
    let watched = run.watched.as_ref().map(|watched| {
        json!({
            "lines": watched.lines,
            "words": watched.words,
            "hits": watched.hits,
            "threads": watched.threads,
            "seconds": watched.time.as_secs_f64(),
            "hit_seconds": watched.cost.as_secs_f64(),
            "slowdown": watched.slowdown(),
        })
    });
    json!({"samples": run.samples, "addressed": run.addressed, "breakpoints": watched})
}

fn finding(advice: &Advice, finding: &Finding) -> Value {
    let evidence = &advice.evidence;
    let is_refused = matches!(finding.proposal, Proposal::Refused { .. });
    let effect = match advice.basis {
        Basis::Model(_) if !is_refused => {
            json!({"run": effect(finding.outlook.run), "cores": effect(finding.outlook.cores)})
        }
        _ => Value::Null,
    };
    json!({
        "kind": finding.kind.id(),
        "about": finding.kind.about(),
        "subject": subject_name(evidence, finding),
        "confidence": finding.confidence.id(),
        "effect": effect,
        "lost": finding.lost,
        "transfers": finding.transfers,
        "lines": finding.lines,
        "reader_lines": [finding.reader_lines.0, finding.reader_lines.1],
        "fields": finding.fields.iter().map(|field| self::field(evidence, field)).collect::<Vec<_>>(),
        "proposal": proposal(&finding.proposal),
        "check": finding.check,
    })
}

fn effect(effect: Effect) -> Value {
    let round = |ratio: f64| (ratio * 1000.0).round() / 1000.0;
    let (least, most) = effect.expected();
    json!({
        "low": round(effect.low),
        "median": round(effect.median),
        "high": round(effect.high),
        "expected": [round(least), round(most)],
    })
}

fn field(evidence: &Evidence, field: &FieldEvidence) -> Value {
    let name = |thread: u32| {
        let known = evidence.threads.iter().find(|known| known.thread == thread);
        known.map_or("", |known| known.name.as_str())
    };
    let threads: Vec<Value> = field
        .threads
        .iter()
        .map(|(thread, reads, writes)| {
            json!({"thread": thread, "name": name(*thread), "reads": reads, "writes": writes})
        })
        .collect();
    let sites: Vec<Value> = field
        .own_sites(evidence)
        .map(|(site, reads, writes)| {
            json!({
                "function": site.function,
                "file": site.file,
                "line": site.line,
                "atomic": site.atomic,
                "reads": reads,
                "writes": writes,
            })
        })
        .collect();
    json!({
        "type": evidence.subjects.get(field.subject).map_or("", |subject| &subject.name),
        "field": field.field,
        "variable": field.variable,
        "offset": field.offset,
        "size": field.size,
        "lost": field.lost,
        "threads": threads,
        "sites": sites,
    })
}

fn proposal(proposal: &Proposal) -> Value {
    match proposal {
        Proposal::Layout(layout) => {
            let members: Vec<Value> = layout
                .members
                .iter()
                .map(|member| {
                    json!({
                        "name": member.name,
                        "offset": member.offset,
                        "size": member.size,
                        "align": member.align,
                        "pad": member.pad,
                        "group": member.group,
                    })
                })
                .collect();
            json!({
                "kind": "layout",
                "type": layout.ty,
                "file": layout.file,
                "line": layout.line,
                "align": layout.align,
                "pad": layout.pad,
                "size": [layout.sizes.0, layout.sizes.1],
                "lines": [layout.lines.0, layout.lines.1],
                "members": members,
                "groups": layout.groups,
            })
        }
        Proposal::Refused { ty, file, line, why } => {
            json!({"kind": "none", "type": ty, "file": file, "line": line, "why": why})
        }
        Proposal::Apart { names, file, line, align, pad, sizes } => json!({
            "kind": "apart",
            "names": names,
            "file": file,
            "line": line,
            "align": align,
            "pad": pad,
            "size": [sizes.0, sizes.1],
        }),
        Proposal::Counter { names, code, bytes } => json!({
            "kind": "counter",
            "names": names,
            "code": code,
            "bytes_per_cpu": bytes.0,
            "bytes_of_handle": bytes.1,
        }),
        Proposal::Embed { pointer, target, sizes } => {
            json!({"kind": "embed", "pointer": pointer, "target": target, "size": [sizes.0, sizes.1]})
        }
        Proposal::CopyBeside { pointer, fields, sizes } => {
            json!({"kind": "copy", "pointer": pointer, "fields": fields, "size": [sizes.0, sizes.1]})
        }
    }
}
