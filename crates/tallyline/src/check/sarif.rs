//! Findings as SARIF 2.1.0, the OASIS format that code scanning reads.

use super::Shown;
use anyhow::Result;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write;
use tallyline_layout::check::RULES;

/// Writes one log with one run.
pub(super) fn write(shown: &[Shown<'_>], out: &mut dyn Write) -> Result<()> {
    let rules: Vec<Value> =
        RULES.iter().map(|rule| json!({"id": rule.id, "shortDescription": {"text": rule.about}})).collect();
    let results: Vec<Value> = shown.iter().map(result).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "tallyline",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": results,
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &log)?;
    Ok(writeln!(out)?)
}

fn result(one: &Shown<'_>) -> Value {
    let finding = one.finding;
    let (file, line) = one.place();
    let subject = one.subject();
    let mut text = format!("{subject}: {}", finding.message);
    if let Some(reason) = &finding.reason {
        let _ = write!(text, " ({reason})");
    }
    let kind = if finding.member.is_some() { "member" } else { "type" };
    let mut result = json!({
        "ruleId": finding.rule,
        "ruleIndex": RULES.iter().position(|rule| rule.id == finding.rule),
        "level": if one.is_warning() { "warning" } else { "error" },
        "message": {"text": text},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": uri(file)},
                "region": {"startLine": line},
            },
            "logicalLocations": [{"fullyQualifiedName": subject, "kind": kind}],
        }],
        // the same finding in the next run, wherever the line has gone
        "partialFingerprints": {"layout/v1": format!("{}:{subject}", finding.rule)},
    });
    if let Some(reason) = &finding.allowed {
        result["suppressions"] = json!([{"kind": "external", "justification": reason}]);
    }
    result
}

/// A path as a reference: relative ones stay so, others become `file:`.
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
