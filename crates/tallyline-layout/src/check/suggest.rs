//! A policy to start with: what holds now.

use crate::groups::find;
use crate::model::{Record, Types};
use crate::query::{distinct_records, fits, holes};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Writes a policy that the types of these names or patterns keep as they are now, groups included.
/// Without names, those that have groups. Types that repeat a name are held by the first of it.
pub fn suggest(types: &Types, patterns: &[String], cacheline: u64) -> String {
    let mut text = format!("cacheline = {}\n", cacheline.max(1));
    let mut seen = BTreeSet::new();
    for (_, record) in distinct_records(types) {
        let record = types.record(record);
        let name = types.name(record.name);
        let groups = find(types, record, cacheline).groups;
        let wanted = match patterns {
            [] => !groups.is_empty(),
            _ => patterns.iter().any(|pattern| fits(pattern.as_bytes(), name)),
        };
        // a rule cannot name what has an empty name, as in a damaged file
        if !wanted || name.is_empty() || !seen.insert(name.to_vec()) {
            continue;
        }
        let name = quoted(&String::from_utf8_lossy(name));
        type_rule(types, record, &name, &mut text);
        for group in groups.into_iter().filter(|group| !group.name.is_empty()) {
            let _ = write!(text, "\n[[group]]\ntype = {name}\nname = {}\nmembers = [", quoted(&group.name));
            for named in group.members.iter().filter(|named| !named.path.is_empty()) {
                let _ = write!(text, "\n    {},", quoted(&named.path));
            }
            let _ = writeln!(text, "\n]\nmax-size = {}", group.bytes());
            if !group.straddles(cacheline) {
                text.push_str("straddle = false\n");
            }
            let _ = writeln!(text, "max-hole-bytes = {}", group.hole_bytes());
        }
    }
    text
}

fn type_rule(types: &Types, record: &Record, name: &str, text: &mut String) {
    let found = holes(types, record);
    let _ = writeln!(text, "\n[[type]]\nname = {name}\nmax-size = {}", record.size);
    if record.is_struct() {
        let _ = writeln!(text, "max-holes = {}\nmax-padding = {}", found.bytes.len(), found.padding);
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
