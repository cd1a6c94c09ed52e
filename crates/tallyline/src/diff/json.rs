//! Differences for programs.
//!
//! `{"schema":1,"types":[…],"counts":{"added","removed","grown","shrunk","rearranged","across_lines",
//! "same"}}`, one type a line. A type has `name`, `kind`, `change` (`added`, `removed`, `grown`,
//! `shrunk`, `rearranged`), `old` and `new` (null, or `size`, `lines`, `holes`, `hole_bytes`, `padding`,
//! `members`, `declared_at`) and `members`: `name`, `old` and `new` (null, or `bit_offset`, `bits`,
//! `bitfield`, `type`, `line`), and `causes`: the names of the changed types that it contains, if those explain all of
//! its change. The evidence: `instances` (null without a list of them), `samples` (null, or `event` and, of its samples, `share` and
//! `fields` with `name` and `share`), and `rules` of the policy: `about` (`line`, `kind`) and `broken` (newly).

use super::Report;
use super::evidence::Evidence;
use crate::heat::Heat;
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tallyline_layout::diff::{Counts, MemberLocation, Shape, TypeChange};

/// A document that is written type by type, in the order of the changes.
pub(super) struct Json<'c> {
    changes: &'c [TypeChange],
    /// For each change the changes that explain it.
    causes: Vec<Vec<usize>>,
    evidence: &'c Evidence,
    /// The number of types that were written.
    written: usize,
}

impl<'c> Json<'c> {
    pub(super) fn new(
        changes: &'c [TypeChange],
        causes: Vec<Vec<usize>>,
        evidence: &'c Evidence,
    ) -> Json<'c> {
        Json { changes, causes, evidence, written: 0 }
    }

    fn start(&mut self, out: &mut dyn Write) -> Result<()> {
        let start: &[u8] = if self.written != 0 { b",\n" } else { b"{\"schema\":1,\"types\":[\n" };
        Ok(out.write_all(start)?)
    }
}

impl Report for Json<'_> {
    fn change(&mut self, change: &TypeChange, out: &mut dyn Write) -> Result<()> {
        self.start(out)?;
        let members: Vec<Value> = change
            .members()
            .iter()
            .map(|one| json!({"name": one.name(), "old": place(one.before()), "new": place(one.after())}))
            .collect();
        let direct = self.causes.get(self.written).map_or(&[][..], Vec::as_slice);
        let causes: Vec<&str> =
            direct.iter().filter_map(|cause| Some(self.changes.get(*cause)?.name())).collect();
        self.written += 1;
        let value = json!({
            "name": change.name(),
            "kind": change.keyword(),
            "change": word(change),
            "old": shape(change.before()),
            "new": shape(change.after()),
            "members": members,
            "causes": causes,
            "instances": self.evidence.known_instances(change),
            "samples": self.evidence.heat(change).map(heat),
            "rules": rules(self.evidence, change),
        });
        Ok(serde_json::to_writer(out, &value)?)
    }

    fn end(&mut self, counts: &Counts, out: &mut dyn Write) -> Result<()> {
        if self.written == 0 {
            self.start(out)?;
        }
        let counts = json!({
            "added": counts.added,
            "removed": counts.removed,
            "grown": counts.grown,
            "shrunk": counts.shrunk,
            "rearranged": counts.rearranged,
            "across_lines": counts.across_lines,
            "same": counts.same,
        });
        Ok(writeln!(out, "\n],\"counts\":{counts}}}")?)
    }
}

/// Shares of an event's samples, from 0 to 1.
fn heat(heat: &Heat) -> Value {
    let share = |part: u64| part as f64 / 10_000.0;
    let fields: Vec<Value> =
        heat.fields.iter().map(|(name, part)| json!({"name": name, "share": share(*part)})).collect();
    json!({"event": &*heat.event, "share": share(heat.share), "fields": fields})
}

fn rules(evidence: &Evidence, change: &TypeChange) -> Value {
    let rules: Vec<Value> =
        evidence.rules(change).iter().map(|(line, kind)| json!({"line": line, "kind": kind})).collect();
    json!({"about": rules, "broken": evidence.broken(change)})
}

fn word(change: &TypeChange) -> &'static str {
    match (&change.before(), &change.after(), change.growth()) {
        (None, ..) => "added",
        (_, None, _) => "removed",
        (.., 1..) => "grown",
        (.., 0) => "rearranged",
        _ => "shrunk",
    }
}

fn shape(shape: Option<&Shape>) -> Value {
    let Some(shape) = shape else { return Value::Null };
    let declared_at = shape.declared_at().map(|(file, line)| json!({"file": file, "line": line}));
    json!({
        "size": shape.size(),
        "lines": shape.lines(),
        "holes": shape.holes(),
        "hole_bytes": shape.hole_bytes(),
        "padding": shape.padding(),
        "members": shape.members(),
        "declared_at": declared_at,
    })
}

fn place(place: Option<&MemberLocation>) -> Value {
    let Some(place) = place else { return Value::Null };
    json!({
        "bit_offset": place.bit_offset(),
        "bits": place.bits(),
        "bitfield": place.bitfield(),
        "type": place.ty(),
        "line": place.line(),
    })
}
