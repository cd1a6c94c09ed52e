//! Differences as a table for a pull request.

use super::Report;
use super::evidence::Evidence;
use anyhow::Result;
use std::io::Write;
use tallyline_layout::diff::{Counts, Shape, TypeChange};

/// The number of members named in a cell.
const NAMED: usize = 6;

/// A table with a row for each type.
pub(super) struct Markdown<'e> {
    any: bool,
    evidence: &'e Evidence,
}

impl<'e> Markdown<'e> {
    pub(super) fn new(evidence: &'e Evidence) -> Markdown<'e> {
        Markdown { any: false, evidence }
    }
}

impl Report for Markdown<'_> {
    fn change(&mut self, change: &TypeChange, out: &mut dyn Write) -> Result<()> {
        if !self.any {
            writeln!(out, "| type | bytes | lines | holes | padding | members |")?;
            writeln!(out, "|---|---:|---:|---:|---:|---|")?;
            self.any = true;
        }
        let column = |get: fn(&Shape) -> u64| match (&change.before(), &change.after()) {
            (Some(old), Some(new)) if get(old) != get(new) => format!("{} → {}", get(old), get(new)),
            (_, Some(new)) => get(new).to_string(),
            (Some(old), None) => get(old).to_string(),
            (None, None) => String::new(),
        };
        let mut bytes = column(|shape| shape.size());
        if let (Some(_), Some(_), growth @ (1.. | ..=-1)) =
            (&change.before(), &change.after(), change.growth())
        {
            bytes = format!("{bytes} (**{growth:+}**)");
        }
        writeln!(
            out,
            "| {} {} | {bytes} | {} | {} | {} | {} |",
            change.keyword(),
            code(change.name()),
            column(|shape| shape.lines()),
            column(|shape| shape.holes()),
            column(|shape| shape.padding()),
            self.cell(change),
        )?;
        Ok(())
    }

    fn end(&mut self, counts: &Counts, out: &mut dyn Write) -> Result<()> {
        let Counts { added, removed, grown, shrunk, rearranged, across_lines, same } = counts;
        if !counts.differ() {
            return Ok(writeln!(out, "No differences in the layout of {same} types.")?);
        }
        writeln!(
            out,
            "\n{added} added, {removed} removed, {grown} grown, {shrunk} shrunk, {rearranged} rearranged, \
             {across_lines} with members on other cache lines; {same} the same."
        )?;
        Ok(())
    }
}

impl Markdown<'_> {
    /// Returns the members of a type, and the evidence that it matters.
    fn cell(&self, change: &TypeChange) -> String {
        let notes = self.evidence.notes(change).into_iter().map(|note| format!("; {}", plain(&note)));
        members(change) + &notes.collect::<String>()
    }
}

fn members(change: &TypeChange) -> String {
    match (&change.before(), &change.after()) {
        (None, _) => return "**added**".into(),
        (_, None) => return "**removed**".into(),
        _ => {}
    }
    let (mut parts, mut moved) = (Vec::new(), 0);
    for one in change.members() {
        let name = code(one.name());
        match (&one.before(), &one.after()) {
            (None, _) => parts.push(format!("+ {name}")),
            (_, None) => parts.push(format!("− {name}")),
            (Some(old), Some(new)) if old.line() != new.line() => {
                parts.push(format!("{name} line {} → {}", old.line(), new.line()));
            }
            (Some(old), Some(new)) if old.bits() != new.bits() => parts.push(format!("{name} resized")),
            (Some(old), Some(new)) if old.bit_offset() == new.bit_offset() => {
                parts.push(format!("{name} {} → {}", code(old.ty()), code(new.ty())));
            }
            _ => moved += 1,
        }
    }
    let more = parts.len().saturating_sub(NAMED);
    parts.truncate(NAMED);
    if more != 0 {
        parts.push(format!("{more} more"));
    }
    if moved != 0 {
        parts.push(format!("{moved} moved on their line"));
    }
    parts.join(", ")
}

/// Returns a text with names of a file in it, none of which means anything to a reader of Markdown.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for letter in text.chars() {
        if "\\`*_{}[]<>|#!~&".contains(letter) {
            plain.push('\\');
        }
        plain.push(if letter.is_control() { '\u{fffd}' } else { letter });
    }
    plain
}

/// Returns a name as code. A cell ends at a bar and a row at a line break, and names come from a file.
fn code(name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|letter| match letter {
            '`' => '\'',
            letter if letter.is_control() => '\u{fffd}',
            letter => letter,
        })
        .collect();
    format!("`{}`", clean.replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_cell() {
        assert_eq!(code("a|b`\n| x"), "`a\\|b'\u{fffd}\\| x`");
        assert_eq!(code("v<int, 3>"), "`v<int, 3>`");
        assert_eq!(plain("a|b *c*\n"), "a\\|b \\*c\\*\u{fffd}");
    }
}
