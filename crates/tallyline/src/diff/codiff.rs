//! Differences in the style of codiff, as commit messages have them.
//!
//! Types that are only in one of the files are no changes there, and unions are not shown.

use super::Report;
use anyhow::Result;
use std::io::Write;
use tallyline_layout::diff::{Counts, MemberLocation, TypeChange};

/// Changes, collected up to the end of a file's: columns are as wide as the longest name.
pub(super) struct Codiff {
    verbose: bool,
    // the file that they are declared in, the name, and the rest
    changes: Vec<(String, String, i128, String)>,
}

impl Codiff {
    pub(super) fn new(verbose: bool) -> Codiff {
        Codiff { verbose, changes: Vec::new() }
    }
}

impl Report for Codiff {
    fn change(&mut self, change: &TypeChange, _: &mut dyn Write) -> Result<()> {
        let (Some(old), Some(new)) = (&change.before(), &change.after()) else { return Ok(()) };
        if change.keyword() == "union" {
            return Ok(());
        }
        let mut detail = String::new();
        if self.verbose {
            let signed = |before: u64, after: u64| i128::from(after) - i128::from(before);
            let mut line = |word: &str, difference: i128| {
                if difference != 0 {
                    detail.push_str(&format!("   {word}: {difference:+}\n"));
                }
            };
            line("nr_members", signed(old.members(), new.members()));
            line("padding", signed(old.padding(), new.padding()));
            line("nr_holes", signed(old.holes(), new.holes()));
            members(change, &mut detail);
        }
        let file = new.declared_at().map_or("", |(file, _)| file.as_str());
        self.changes.push((file.to_string(), clean(change.name()), change.growth(), detail));
        Ok(())
    }

    fn end(&mut self, _: &Counts, out: &mut dyn Write) -> Result<()> {
        self.changes.sort_by(|a, b| a.0.cmp(&b.0));
        for file in self.changes.chunk_by(|a, b| a.0 == b.0) {
            let width = file.iter().map(|change| change.1.chars().count()).max().unwrap_or(0);
            for (index, (path, name, growth, detail)) in file.iter().enumerate() {
                if index == 0 && !path.is_empty() {
                    writeln!(out, "{}:", clean(path))?;
                }
                write!(out, "  struct {name:width$} | {growth:>+4}\n{detail}")?;
            }
            let structs = if file.len() == 1 { "struct" } else { "structs" };
            writeln!(out, " {} {structs} changed", file.len())?;
        }
        Ok(())
    }
}

fn members(change: &TypeChange, detail: &mut String) {
    let place = |place: &MemberLocation| {
        let (byte, bit) = (place.bit_offset() / 8, place.bit_offset() % 8);
        let (size, bits) = if place.bitfield() { (0, place.bits()) } else { (place.bits() / 8, 0) };
        format!("{:<21} /* {byte:5}({bit:2}) {size:5}({bits:2}) */", clean(place.ty()))
    };
    for member in change.members() {
        detail.push_str(&format!("    {}\n", clean(member.name())));
        match (&member.before(), &member.after()) {
            (Some(old), Some(new)) => {
                detail.push_str(&format!("     from:    {}\n     to:      {}\n", place(old), place(new)));
            }
            (None, Some(new)) => detail.push_str(&format!("     added:   {}\n", place(new))),
            (Some(old), None) => detail.push_str(&format!("     removed: {}\n", place(old))),
            (None, None) => {}
        }
    }
}

/// Replaces line breaks and other control characters in a name for use in a message.
fn clean(name: &str) -> String {
    tallyline_support::output::printable(name.as_bytes()).into_owned()
}
