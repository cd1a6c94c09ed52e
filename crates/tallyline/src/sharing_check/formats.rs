//! The difference of two builds as text, JSON, Markdown and SARIF.
//!
//! ```json
//! {"schema":1,"threshold":1.0,"traces":[4,4],"percent":[3.0,9.5],"speed":{"low":0.8,"median":0.9,"high":0.95},
//!  "gained":[{"fields":["flow.in","flow.out"],"percent":[0.0,6.5],"growth":[6.1,6.9],"transfers":[0.0,12.1],
//!             "file":"/src/flow.c","line":7}],
//!  "lost":[],"uncertain":[]}
//! ```
//! Numbers in pairs are before and after: percent of the cores' time, transfers for each thousand accesses; the growth is
//! the least and the greatest. The speed is that of the second build, the first one's being 1.

use super::args::Format;
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tallyline_advice::sharing_diff::{LineChange, SharingDiff};
use tallyline_support::output::printable;

/// The official schema of SARIF 2.1.0, with its corrections.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The address of the documentation of the SARIF rule.
const HELP: &str = "man:tallyline-sharing-check(1)";

/// The id of the SARIF rule for a line whose cost has grown.
const RULE: &str = "shared-line";

pub(super) fn write(diff: &SharingDiff, threshold: f64, format: Format, out: &mut dyn Write) -> Result<()> {
    match format {
        Format::Text => text(diff, threshold, out),
        Format::Markdown => markdown(diff, threshold, out),
        Format::Json => document(&as_json(diff, threshold), out),
        Format::Sarif => document(&sarif(diff), out),
    }
}

fn document(document: &Value, out: &mut dyn Write) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    Ok(writeln!(out)?)
}

fn names(change: &LineChange) -> String {
    printable(change.fields.join(", ").as_bytes()).into_owned()
}

fn place(change: &LineChange) -> String {
    let (file, line) = &change.place;
    if file.is_empty() { String::new() } else { printable(format!("{file}:{line}").as_bytes()).into_owned() }
}

fn text(diff: &SharingDiff, threshold: f64, out: &mut dyn Write) -> Result<()> {
    let (least, most) = diff.speed.expected();
    writeln!(
        out,
        "{:.2} % of the cores' time waits for lines of others, {:.2} % before; the run has {:.2}× the speed ({:.2} to \
         {:.2}); by a model",
        diff.percent.1, diff.percent.0, diff.speed.median, least, most
    )?;
    let list = |title: &str, changes: &[LineChange], out: &mut dyn Write| -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{title}")?;
        for change in changes {
            writeln!(
                out,
                "{:>8.2} % {:>8.2} % before  {}  {}",
                change.percent.1,
                change.percent.0,
                names(change),
                place(change)
            )?;
        }
        Ok(())
    };
    list("Lines that cost more", &diff.gained, out)?;
    list("Lines that cost less", &diff.lost, out)?;
    list("Lines that change no more than from run to run", &diff.uncertain, out)?;
    if diff.gained.is_empty() {
        writeln!(out, "No line costs {threshold} % of the cores' time more than before.")?;
    }
    Ok(())
}

fn markdown(diff: &SharingDiff, threshold: f64, out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "Waiting for cache lines of other cores, by a model: **{:.2} %** of the cores' time, {:.2} % before.\n",
        diff.percent.1, diff.percent.0
    )?;
    if diff.gained.is_empty() && diff.lost.is_empty() {
        return Ok(writeln!(out, "No line changes by {threshold} % more than from run to run.")?);
    }
    writeln!(out, "| fields on the line | before | after | accessed at |\n|---|---:|---:|---|")?;
    for change in diff.gained.iter().chain(&diff.lost) {
        let cell = |text: String| text.replace('|', "\\|");
        writeln!(
            out,
            "| `{}` | {:.2} % | {:.2} % | {} |",
            cell(names(change)),
            change.percent.0,
            change.percent.1,
            cell(place(change))
        )?;
    }
    Ok(())
}

fn as_json(diff: &SharingDiff, threshold: f64) -> Value {
    let round = |number: f64| (number * 1000.0).round() / 1000.0;
    let changes = |changes: &[LineChange]| -> Vec<Value> {
        changes
            .iter()
            .map(|change| {
                json!({
                    "fields": change.fields,
                    "percent": [round(change.percent.0), round(change.percent.1)],
                    "growth": [round(change.range.0), round(change.range.1)],
                    "transfers": [round(change.transfers.0), round(change.transfers.1)],
                    "file": change.place.0,
                    "line": change.place.1,
                })
            })
            .collect()
    };
    let (least, most) = diff.speed.expected();
    json!({
        "schema": 1,
        "threshold": threshold,
        "traces": [diff.traces.0, diff.traces.1],
        "percent": [round(diff.percent.0), round(diff.percent.1)],
        "speed": {
            "low": round(diff.speed.low),
            "median": round(diff.speed.median),
            "high": round(diff.speed.high),
            "expected": [round(least), round(most)],
        },
        "gained": changes(&diff.gained),
        "lost": changes(&diff.lost),
        "uncertain": changes(&diff.uncertain),
    })
}

fn sarif(diff: &SharingDiff) -> Value {
    let results: Vec<Value> = diff
        .gained
        .iter()
        .map(|change| {
            let text = format!(
                "{} share a cache line that threads take from each other: {:.2} % of the cores' time, {:.2} % before",
                names(change),
                change.percent.1,
                change.percent.0
            );
            let mut result = json!({
                "ruleId": RULE,
                "level": "error",
                "message": {"text": text},
                "partialFingerprints": {"sharing/v1": change.fields.join(",")},
            });
            if !change.place.0.is_empty() {
                result["locations"] = json!([{"physicalLocation": {
                    "artifactLocation": {"uri": change.place.0.replace(' ', "%20")},
                    "region": {"startLine": change.place.1.max(1)},
                }}]);
            }
            result
        })
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "tallyline",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": HELP,
                "rules": [{
                    "id": RULE,
                    "shortDescription": {"text": "A cache line that threads take from each other costs more"},
                    "helpUri": HELP,
                }],
            }},
            "results": results,
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff() -> SharingDiff {
        let change = LineChange {
            fields: vec!["flow.in".into(), "a|b".into()],
            percent: (0.5, 6.5),
            range: (5.5, 6.5),
            transfers: (0.0, 12.0),
            place: ("/src/flow.c".into(), 7),
        };
        SharingDiff { gained: vec![change], percent: (3.0, 9.0), ..SharingDiff::default() }
    }

    fn written(format: Format) -> String {
        let mut out = Vec::new();
        write(&diff(), 1.0, format, &mut out).expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn each_format_names_the_fields_and_the_place() {
        for format in [Format::Text, Format::Markdown, Format::Json, Format::Sarif] {
            let text = written(format);
            assert!(text.contains("flow.in") && text.contains("/src/flow.c"), "{text}");
        }
        assert!(written(Format::Markdown).contains("a\\|b"), "a table's cells");
    }

    #[test]
    fn documents_are_json() {
        let json: Value = serde_json::from_str(&written(Format::Json)).expect("JSON");
        assert_eq!(json["gained"][0]["percent"], json!([0.5, 6.5]));
        let sarif: Value = serde_json::from_str(&written(Format::Sarif)).expect("JSON");
        assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], RULE);
    }
}
