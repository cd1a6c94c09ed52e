//! Inlay hints: where each member lies, behind its line.

use super::declarations::Declaration;
use super::document::Document;
use super::entry::{Entry, Field};
use crate::heat::{Heat, percent};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Returns the hints of a declaration that are in some lines.
pub(super) fn of(
    document: &Document,
    declaration: &Declaration,
    entry: &Entry,
    heat: Option<&Heat>,
    cacheline: u64,
    lines: std::ops::RangeInclusive<usize>,
) -> Vec<Value> {
    let mut labels: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    labels.entry(document.line_of(declaration.at.start)).or_default().push(entry.summary(cacheline));
    for (name, at) in declaration.members.iter().flat_map(|member| &member.names) {
        // what is no member has no place: methods, labels
        let Some(field) = entry.fields.iter().find(|field| field.name == *name) else { continue };
        labels.entry(document.line_of(*at)).or_default().push(label(entry, field, heat, cacheline));
    }
    let hints = labels.into_iter().filter(|(line, _)| lines.contains(line));
    hints
        .map(|(line, labels)| {
            json!({
                "position": document.end_of_line(line),
                "label": labels.join("; "),
                "paddingLeft": true,
            })
        })
        .collect()
}

/// `8: 4 bytes, line 0, 12.0 %, then 4 bytes of hole`.
fn label(entry: &Entry, field: &Field, heat: Option<&Heat>, cacheline: u64) -> String {
    let size = match field.is_bitfield {
        true => format!("{} bits", field.bits),
        false => format!("{} bytes", field.bits / 8),
    };
    let size =
        size.strip_prefix("1 ").map_or(size.clone(), |unit| format!("1 {}", unit.trim_end_matches('s')));
    let mut label = format!("{}: {size}", Entry::place(field));
    if entry.size > cacheline {
        label += &format!(", line {}", field.bit_offset / 8 / cacheline.max(1));
    }
    let share = heat.and_then(|heat| heat.fields.iter().find(|(name, _)| *name == field.name));
    if let Some((_, share)) = share {
        label += &format!(", {}", percent(*share));
    }
    let end = field.bit_offset.saturating_add(field.bits).div_ceil(8);
    if let Some((_, bytes)) = entry.holes.iter().find(|(at, _)| *at == end) {
        label += &format!(", then {bytes} bytes of hole");
    }
    label
}
