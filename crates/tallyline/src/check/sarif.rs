//! Findings as SARIF 2.1.0, the OASIS format that code scanning reads.

use super::Shown;
use crate::path_map::Paths;
use anyhow::Result;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write;
use tallyline_layout::check::RULES;

/// The official schema, with its corrections.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The folder that relative references start from, by the name that other tools give it, too.
const ROOT: &str = "%SRCROOT%";

/// The documentation of policies and their rules: the installed manual page, which is of the version that checks.
const HELP: &str = "man:tallyline-check(1)";

/// Writes one log with one run.
pub(super) fn write(shown: &[Shown<'_>], paths: &Paths<'_>, out: &mut dyn Write) -> Result<()> {
    let rules: Vec<Value> = RULES
        .iter()
        .map(|(rule, about)| {
            json!({
                "id": rule,
                "shortDescription": {"text": about},
                "helpUri": HELP,
            })
        })
        .collect();
    let has_root = paths.root().is_some();
    let results: Vec<Value> = shown.iter().map(|one| result(one, has_root)).collect();
    let mut log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "tallyline",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": HELP,
                "rules": rules,
            }},
            "results": results,
        }],
    });
    if let Some(root) = paths.root() {
        // a folder ends with a slash: else its last part would be replaced by what is relative to it
        let root = format!("{}/", uri(&root.display().to_string()).trim_end_matches('/'));
        log["runs"][0]["originalUriBaseIds"] = json!({ROOT: {"uri": root}});
    }
    serde_json::to_writer_pretty(&mut *out, &log)?;
    Ok(writeln!(out)?)
}

fn result(one: &Shown<'_>, has_root: bool) -> Value {
    let finding = one.finding;
    let (file, line) = one.place();
    let subject = one.subject();
    let mut text = format!("{subject}: {}", finding.message);
    if let Some(reason) = &finding.reason() {
        let _ = write!(text, " ({reason})");
    }
    let kind = if finding.member().is_some() { "member" } else { "type" };
    let mut result = json!({
        "ruleId": finding.rule(),
        "ruleIndex": RULES.iter().position(|(rule, _)| *rule == finding.rule()),
        "level": if one.is_warning() { "warning" } else { "error" },
        "message": {"text": text},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": location(file, has_root),
                "region": {"startLine": line},
            },
            "logicalLocations": [{"fullyQualifiedName": subject, "kind": kind}],
        }],
        // the same finding in the next run, wherever the line has gone
        "partialFingerprints": {"layout/v1": format!("{}:{subject}", finding.rule())},
    });
    if let Some(reason) = &finding.allowed() {
        result["suppressions"] = json!([{"kind": "external", "justification": reason}]);
    }
    result
}

/// Returns an artifact's location; relative paths start at the root.
fn location(path: &str, has_root: bool) -> Value {
    if has_root && !path.starts_with('/') {
        json!({"uri": uri(path), "uriBaseId": ROOT})
    } else {
        json!({"uri": uri(path)})
    }
}

/// Returns a path as a reference: relative ones stay so, others become `file:`.
fn uri(path: &str) -> String {
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.trim_start_matches("./").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_references() {
        assert_eq!(uri("src/a b.h"), "src/a%20b.h");
        assert_eq!(uri("/usr/include/x#.h"), "file:///usr/include/x%23.h");
        assert_eq!(uri("././a:b.h"), "a%3Ab.h");
    }
}
