//! Differences for people.

use super::Report;
use super::evidence::Evidence;
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use std::io::Write;
use tallyline_layout::diff::{Counts, MemberChange, MemberLocation, Shape, TypeChange};
use tallyline_support::output::printable;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const MOVED: Style = AnsiColor::Yellow.on_default();
const NOTE: Style = AnsiColor::Cyan.on_default();

/// A headline for each type, and a line for each member.
pub(super) struct Text<'e> {
    pub(super) verbose: bool,
    /// The most members shown of a type.
    pub(super) members: usize,
    pub(super) evidence: &'e Evidence,
}

impl Report for Text<'_> {
    fn change(&mut self, change: &TypeChange, out: &mut dyn Write) -> Result<()> {
        self.differences(change, out)?;
        for note in self.evidence.notes(change) {
            writeln!(out, "    {NOTE}{}{NOTE:#}", printable(note.as_bytes()))?;
        }
        Ok(())
    }

    fn end(&mut self, counts: &Counts, out: &mut dyn Write) -> Result<()> {
        if !counts.differ() {
            return Ok(writeln!(out, "no differences in {} types", counts.same)?);
        }
        let Counts { added, removed, grown, shrunk, rearranged, across_lines, same } = counts;
        writeln!(
            out,
            "{added} added, {removed} removed, {grown} grown, {shrunk} shrunk, {rearranged} of the same size with \
             other members or places; {across_lines} with members on other cache lines; {same} the same"
        )?;
        Ok(())
    }
}

impl Text<'_> {
    /// Shows a type without evidence.
    fn differences(&mut self, change: &TypeChange, out: &mut dyn Write) -> Result<()> {
        let name = format!("{} {BOLD}{}{BOLD:#}", change.keyword(), printable(change.name().as_bytes()));
        let (old, new) = match (change.before(), change.after()) {
            (Some(old), Some(new)) => (old, new),
            (None, Some(new)) => {
                return Ok(writeln!(out, "{ADDED}added{ADDED:#}   {name}: {} bytes{}", new.size(), at(new))?);
            }
            (Some(old), None) => {
                return Ok(writeln!(
                    out,
                    "{REMOVED}removed{REMOVED:#} {name}: {} bytes{}",
                    old.size(),
                    at(old)
                )?);
            }
            (None, None) => return Ok(()),
        };
        let what = match change.growth() {
            0 => "moved  ",
            1.. => "grown  ",
            _ => "shrunk ",
        };
        writeln!(out, "{MOVED}{what}{MOVED:#} {name}: {}{}", sizes(old, new), at(new))?;
        let (mut quiet, mut shown, mut more) = (0_u64, 0, 0_u64);
        for member in change.members() {
            let is_news = member.before().is_none() || member.after().is_none() || member.changes_line();
            if is_news || self.verbose || is_resized(member) {
                shown += 1;
                if shown > self.members {
                    more += 1;
                    continue;
                }
                line(member, out)?;
            } else {
                quiet += 1;
            }
        }
        if more != 0 {
            writeln!(out, "    {DIM}{more} more that changed; --verbose shows them{DIM:#}")?;
        }
        if quiet != 0 {
            let word = if quiet == 1 { "member" } else { "members" };
            writeln!(out, "    {DIM}{quiet} {word} moved on the same cache line{DIM:#}")?;
        }
        Ok(())
    }
}

fn at(shape: &Shape) -> String {
    let place = |(file, line): &(String, u32)| format!(", {}:{line}", printable(file.as_bytes()));
    shape.declared_at().map(place).unwrap_or_default()
}

fn sizes(old: &Shape, new: &Shape) -> String {
    let mut parts = Vec::new();
    let mut part = |before: u64, after: u64, words: &str, always: bool| {
        if before != after {
            parts.push(format!("{before} -> {after} {words}"));
        } else if always {
            parts.push(format!("{after} {words}"));
        }
    };
    part(old.size(), new.size(), "bytes", true);
    part(old.lines(), new.lines(), "lines", false);
    part(old.holes(), new.holes(), "holes", false);
    part(old.hole_bytes(), new.hole_bytes(), "bytes of holes", false);
    part(old.padding(), new.padding(), "bytes of padding", false);
    parts.join(", ")
}

fn is_resized(member: &MemberChange) -> bool {
    matches!((&member.before(), &member.after()), (Some(old), Some(new)) if old.bits() != new.bits() || old.ty() != new.ty())
}

fn line(member: &MemberChange, out: &mut dyn Write) -> Result<()> {
    let name = printable(member.name().as_bytes()).into_owned();
    let ty = |place: &MemberLocation| printable(place.ty().as_bytes()).into_owned();
    match (&member.before(), &member.after()) {
        (None, Some(new)) => {
            let (span, line) = (span(new), new.line());
            writeln!(out, "    {ADDED}+ {name}{ADDED:#} at {span} on line {line}: {}", ty(new))?;
        }
        (Some(old), None) => {
            writeln!(
                out,
                "    {REMOVED}- {name}{REMOVED:#} was at {} on line {}: {}",
                span(old),
                old.line(),
                ty(old)
            )?;
        }
        (Some(old), Some(new)) => {
            let mut notes = Vec::new();
            if old.line() != new.line() {
                notes.push(format!("{MOVED}line {} -> {}{MOVED:#}", old.line(), new.line()));
            }
            if old.bits() != new.bits() {
                notes.push(format!("{} -> {}", extent(old), extent(new)));
            }
            if old.ty() != new.ty() {
                notes.push(format!("{} -> {}", ty(old), ty(new)));
            }
            let notes = if notes.is_empty() { String::new() } else { format!(": {}", notes.join(", ")) };
            let places = match (span(old), span(new)) {
                (old, new) if old == new => format!("at {new}"),
                (old, new) => format!("{old} -> {new}"),
            };
            writeln!(out, "    ~ {name} {places}{notes}")?;
        }
        (None, None) => {}
    }
    Ok(())
}

fn span(place: &MemberLocation) -> String {
    match place.bitfield() {
        true => format!("{}:{}", place.bit_offset() / 8, place.bit_offset() % 8),
        false => (place.bit_offset() / 8).to_string(),
    }
}

fn extent(place: &MemberLocation) -> String {
    match place.bitfield() {
        true => format!("{} bits", place.bits()),
        false => format!("{} bytes", place.bits() / 8),
    }
}
