//! Findings as GitLab's code quality report, which shows them in merge requests.
//!
//! `[{"description","check_name","fingerprint","severity","location":{"path","lines":{"begin"}}}]`, as GitLab's subset of
//! Code Climate's format has it. Fingerprints tell findings of two commits apart, so no line and no size is in them.

use super::Shown;
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;

/// Writes one document, of the findings that are not allowed.
pub(super) fn write(shown: &[Shown<'_>], out: &mut dyn Write) -> Result<()> {
    let mut seen = HashMap::new();
    let open = shown.iter().filter(|one| one.finding.allowed().is_none());
    let report: Vec<Value> = open.map(|one| finding(one, &mut seen)).collect();
    serde_json::to_writer_pretty(&mut *out, &report)?;
    Ok(writeln!(out)?)
}

fn finding(one: &Shown<'_>, seen: &mut HashMap<u64, u32>) -> Value {
    let finding = one.finding;
    let (path, line) = one.place();
    let reason = finding.reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let parts = [one.rules, finding.rule(), finding.ty(), finding.member().unwrap_or_default(), path];
    let hash = fingerprint(&parts);
    let repeats = seen.entry(hash).or_insert(0);
    *repeats += 1;
    json!({
        "description": format!("{}: {}{reason}", one.subject(), finding.message),
        "check_name": finding.rule(),
        "fingerprint": format!("{hash:016x}-{repeats}"),
        "severity": if one.is_warning() { "minor" } else { "major" },
        "location": {"path": path.strip_prefix("./").unwrap_or(path), "lines": {"begin": line}},
    })
}

/// Returns the FNV-1a hash of texts, with a sign between them that names do not have.
fn fingerprint(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_depends_on_where_its_parts_end() {
        assert_ne!(fingerprint(&["ab", "c"]), fingerprint(&["a", "bc"]));
        assert_eq!(fingerprint(&["ab", "c"]), fingerprint(&["ab", "c"]));
    }
}
