//! Hovers: a type's size, lines, holes and heat.

use super::entry::Entry;
use crate::heat::{Heat, percent};
use std::fmt::Write;

/// The most types of one name, and fields of a type, that a hover shows.
const TYPES: usize = 3;
const FIELDS: usize = 60;

/// Writes the Markdown of a hover.
pub(super) fn markdown(
    entries: &[(Entry, String)],
    heat: &dyn Fn(&Entry) -> Option<Heat>,
    cacheline: u64,
) -> String {
    let mut text = String::new();
    for (entry, file) in entries.iter().take(TYPES) {
        if !text.is_empty() {
            text.push_str("\n---\n\n");
        }
        one(entry, file, heat(entry).as_ref(), cacheline, &mut text);
    }
    if entries.len() > TYPES {
        let _ = writeln!(text, "\n{} more types of this name", entries.len() - TYPES);
    }
    text
}

fn one(entry: &Entry, file: &str, heat: Option<&Heat>, cacheline: u64, text: &mut String) {
    let _ = writeln!(text, "`{} {}`: {}\n", entry.keyword, code(&entry.name), entry.summary(cacheline));
    if let Some(heat) = heat {
        let hottest: Vec<String> = heat
            .fields
            .iter()
            .take(4)
            .map(|(name, share)| format!("`{}` {}", code(name), percent(*share)))
            .collect();
        let hottest = if hottest.is_empty() { String::new() } else { format!(": {}", hottest.join(", ")) };
        let _ = writeln!(text, "{}{hottest}\n", code(&heat.summary()));
    }
    // a fence that nothing in it closes
    text.push_str("```c\n");
    let width =
        entry.fields.iter().take(FIELDS).map(|field| field.ty.chars().count()).max().unwrap_or(0).min(40);
    let mut line = 0;
    let mut holes = entry.holes.iter().peekable();
    for field in entry.fields.iter().take(FIELDS) {
        let offset = field.bit_offset / 8;
        while let Some((_, bytes)) = holes.next_if(|(at, _)| *at < offset) {
            let _ = writeln!(text, "/*              XXX {bytes} bytes hole */");
        }
        if offset / cacheline.max(1) > line {
            line = offset / cacheline.max(1);
            let _ = writeln!(text, "/* --- cache line {line} --- */");
        }
        let size = match field.is_bitfield {
            true => format!("{} bits", field.bits),
            false => (field.bits / 8).to_string(),
        };
        let share = heat.and_then(|heat| heat.fields.iter().find(|(name, _)| *name == field.name));
        let share = share.map_or_else(String::new, |(_, share)| format!("  {:>7}", percent(*share)));
        let _ = writeln!(
            text,
            "/* {:>6} {size:>7}{share} */  {:width$}  {};",
            Entry::place(field),
            code(&field.ty),
            code(&field.name)
        );
    }
    for (_, bytes) in holes {
        let _ = writeln!(text, "/*              XXX {bytes} bytes hole */");
    }
    if entry.fields.len() > FIELDS {
        let _ = writeln!(text, "/* {} more fields */", entry.fields.len() - FIELDS);
    }
    text.push_str("```\n");
    let declared = match (entry.file.is_empty(), entry.line) {
        (true, _) | (_, 0) => String::new(),
        _ => format!(", declared at {}:{}", code(&entry.file), entry.line),
    };
    let _ = writeln!(text, "as built: {}{declared}", code(file));
}

/// Returns a name that ends no code.
fn code(name: &str) -> String {
    name.replace('`', "'")
}

#[cfg(test)]
mod tests {
    use super::super::entry::Field;
    use super::*;

    #[test]
    fn a_hover_has_holes_lines_and_heat() {
        let field = |name: &str, offset: u64, bytes: u64| Field {
            name: name.into(),
            ty: "long".into(),
            bit_offset: offset * 8,
            bits: bytes * 8,
            is_bitfield: false,
        };
        let entry = Entry {
            keyword: "struct".into(),
            name: "a".into(),
            size: 80,
            holes: vec![(1, 7)],
            padding: 0,
            file: "a.c".into(),
            line: 3,
            fields: vec![field("x", 0, 1), field("y", 8, 56), field("z", 64, 8)],
        };
        let fields = vec![("z".into(), 3999)];
        let heat = Heat { share: 4000, fields, event: "cycles".into(), has_other_events: false };
        let text = markdown(&[(entry, "./a.out".into())], &|_| Some(heat.clone()), 64);
        let expected = "`struct a`: 80 bytes, 2 cache lines, 1 hole (7 bytes)\n\n40.0 % of the samples: `z` 39.9 %\n\n```c\n\
            /*      0       1 */  long  x;\n/*              XXX 7 bytes hole */\n/*      8      56 */  long  y;\n\
            /* --- cache line 1 --- */\n/*     64       8   39.9 % */  long  z;\n```\nas built: ./a.out, declared at a.c:3\n";
        assert_eq!(text, expected);
    }
}
