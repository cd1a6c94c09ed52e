//! Differences for programs.
//!
//! `{"schema":1,"types":[…],"counts":{"added","removed","grown","shrunk","rearranged","across_lines",
//! "same"}}`, one type a line. A type has `name`, `kind`, `change` (`added`, `removed`, `grown`,
//! `shrunk`, `rearranged`), `old` and `new` (null, or `size`, `lines`, `holes`, `hole_bytes`, `padding`,
//! `members`, `declared_at`) and `members`: `name`, `old` and `new` (null, or `bit_offset`, `bits`,
//! `bitfield`, `type`, `line`).

use super::Report;
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tallyline_layout::diff::{Counts, Place, Shape, TypeChange};

/// A document that is written type by type.
#[derive(Default)]
pub(super) struct Json {
    any: bool,
}

impl Json {
    fn start(&mut self, out: &mut dyn Write) -> Result<()> {
        let start: &[u8] = if self.any { b",\n" } else { b"{\"schema\":1,\"types\":[\n" };
        self.any = true;
        Ok(out.write_all(start)?)
    }
}

impl Report for Json {
    fn change(&mut self, change: &TypeChange, out: &mut dyn Write) -> Result<()> {
        self.start(out)?;
        let members: Vec<Value> = change
            .members
            .iter()
            .map(|one| json!({"name": one.name, "old": place(&one.old), "new": place(&one.new)}))
            .collect();
        let value = json!({
            "name": change.name,
            "kind": change.keyword,
            "change": word(change),
            "old": shape(&change.old),
            "new": shape(&change.new),
            "members": members,
        });
        Ok(serde_json::to_writer(out, &value)?)
    }

    fn end(&mut self, counts: &Counts, out: &mut dyn Write) -> Result<()> {
        if !self.any {
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

fn word(change: &TypeChange) -> &'static str {
    match (&change.old, &change.new, change.growth()) {
        (None, ..) => "added",
        (_, None, _) => "removed",
        (.., 1..) => "grown",
        (.., 0) => "rearranged",
        _ => "shrunk",
    }
}

fn shape(shape: &Option<Shape>) -> Value {
    let Some(shape) = shape else { return Value::Null };
    let declared_at = shape.declared_at.as_ref().map(|(file, line)| json!({"file": file, "line": line}));
    json!({
        "size": shape.size,
        "lines": shape.lines,
        "holes": shape.holes,
        "hole_bytes": shape.hole_bytes,
        "padding": shape.padding,
        "members": shape.members,
        "declared_at": declared_at,
    })
}

fn place(place: &Option<Place>) -> Value {
    let Some(place) = place else { return Value::Null };
    json!({
        "bit_offset": place.bit_offset,
        "bits": place.bits,
        "bitfield": place.bitfield,
        "type": place.ty,
        "line": place.line,
    })
}
