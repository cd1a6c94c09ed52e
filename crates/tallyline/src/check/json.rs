//! Findings for programs.
//!
//! `{"schema":1,"file","fails","findings":[{"rule","level","type","member","message","measured",
//! "declared_at","policy","policy_line","reason","allowed"}]}`: `level` is `deny` or `warn`, `allowed` the reason
//! why a finding may stay or null, `measured` what a limit is held against or null, `declared_at` has `file` and `line` or is null.

use super::Shown;
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// Writes the findings of a policy check as one JSON document.
pub(super) fn write(file: &Path, shown: &[Shown<'_>], out: &mut dyn Write) -> Result<()> {
    let findings: Vec<Value> = shown.iter().map(finding).collect();
    let fails = shown.iter().any(|one| !one.is_warning() && one.finding.allowed().is_none());
    let document = json!({
        "schema": 1,
        "file": file.display().to_string(),
        "fails": fails,
        "findings": findings,
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    Ok(writeln!(out)?)
}

fn finding(one: &Shown<'_>) -> Value {
    let finding = one.finding;
    let declared_at = one.declared_at.as_ref().map(|(file, line)| json!({"file": file, "line": line}));
    json!({
        "rule": finding.rule(),
        "level": if one.is_warning() { "warn" } else { "deny" },
        "type": finding.ty(),
        "member": finding.member(),
        "message": finding.message,
        "measured": finding.measured(),
        "declared_at": declared_at,
        "unit": finding.unit(),
        "policy": one.rules,
        "policy_line": finding.line(),
        "reason": finding.reason(),
        "allowed": finding.allowed(),
    })
}
