//! Groups on the terminal.

use super::{Grouped, GroupsArgs};
use crate::position::place;
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use std::io::Write;
use tallyline_layout::groups::{Foreign, Group};
use tallyline_support::output::printable;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const NOTE: Style = AnsiColor::Yellow.on_default();

/// The number of members beside a group that are named.
const BESIDE: usize = 8;

/// Writes a table for each struct, and what is in each group.
pub(super) fn write(args: &GroupsArgs, structs: &[Grouped<'_>], out: &mut dyn Write) -> Result<()> {
    for (index, of) in structs.iter().enumerate() {
        if index != 0 {
            writeln!(out)?;
        }
        table(args.cacheline_size, of, out)?;
        if !args.brief {
            of.found.groups.iter().try_for_each(|group| detail(args.cacheline_size, of, group, out))?;
        }
    }
    Ok(())
}

fn table(line: u64, of: &Grouped<'_>, out: &mut dyn Write) -> Result<()> {
    let Grouped { types, record, name, found, place: repeated } = of;
    let name = printable(types.name(*name));
    let lines = record.size.div_ceil(line);
    let s = if lines == 1 { "" } else { "s" };
    write!(out, "{BOLD}{name}{BOLD:#}: {} bytes on {lines} line{s}", record.size)?;
    match repeated {
        Some(repeated) => writeln!(out, ", declared at {}", printable(repeated.as_bytes()))?,
        None => writeln!(out, "{}", place(types, record.declared_at, ", declared at "))?,
    }
    let width = found.groups.iter().map(|group| group.name().chars().count()).max().unwrap_or(0).max(5);
    if found.groups.is_empty() {
        writeln!(out, "  no groups")?;
    } else {
        let head = format!("  {:width$}  offset  bytes      lines  members  holes", "group");
        writeln!(out, "{DIM}{head}{DIM:#}")?;
    }
    for group in &found.groups {
        let (first, last) = group.lines(line);
        let lines = if first == last { first.to_string() } else { format!("{first}-{last}") };
        write!(
            out,
            "  {:width$}  {:6}  {:5}  {lines:>9}  {:7}  {:5}",
            printable(group.name().as_bytes()),
            group.start(),
            group.bytes(),
            group.members().len(),
            group.hole_bytes(),
        )?;
        if group.straddles(line) {
            write!(out, "  {NOTE}straddles{NOTE:#}")?;
        }
        writeln!(out)?;
    }
    for problem in &found.problems {
        writeln!(out, "  {NOTE}{}{NOTE:#}", printable(problem.as_bytes()))?;
    }
    Ok(())
}

fn detail(line: u64, of: &Grouped<'_>, group: &Group, out: &mut dyn Write) -> Result<()> {
    let name = printable(group.name().as_bytes());
    writeln!(out, "\n  {BOLD}{name}{BOLD:#}{}", place(of.types, group.declared_at(), ", declared at "))?;
    let mut holes = group.holes().iter().peekable();
    for named in group.members() {
        let start = named.field().start();
        while let Some((offset, bytes)) = holes.next_if(|hole| hole.0 < start) {
            writeln!(out, "    {offset:6}  {bytes:5}  {NOTE}hole{NOTE:#}")?;
        }
        let bits =
            if named.field().bitfield() { format!(":{}", named.field().bits()) } else { String::new() };
        let name = printable(named.path().as_bytes());
        writeln!(out, "    {start:6}  {:5}  {name}{bits}", named.field().bytes())?;
    }
    for (offset, bytes) in holes {
        writeln!(out, "    {offset:6}  {bytes:5}  {NOTE}hole{NOTE:#}")?;
    }
    if group.straddles(line) {
        let need = group.bytes().div_ceil(line);
        let (bytes, count) = (group.bytes(), group.line_count(line));
        writeln!(out, "    {NOTE}straddles: {bytes} bytes on {count} lines, {need} would do{NOTE:#}")?;
    }
    let (inside, beside): (Vec<_>, Vec<_>) = group.foreign().iter().partition(|foreign| foreign.inside());
    if !inside.is_empty() {
        writeln!(out, "    {NOTE}inside, and not of it: {}{NOTE:#}", list(of, group, &inside))?;
    }
    if !beside.is_empty() {
        writeln!(out, "    also on its lines: {}", list(of, group, &beside))?;
    }
    Ok(())
}

/// Lists names with commas between; members of another group are listed by that group's name.
fn list(of: &Grouped<'_>, group: &Group, foreign: &[&Foreign]) -> String {
    let mut names: Vec<String> = Vec::new();
    for one in foreign {
        let others = of.found.groups.iter().filter(|other| other.name() != group.name());
        let other = others.into_iter().find(|other| other.spans(&one.field()));
        let name = match other {
            Some(other) => format!("group {}", printable(other.name().as_bytes())),
            None => printable(of.types.name(one.field().name())).into_owned(),
        };
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(BESIDE);
    names.truncate(BESIDE);
    if more != 0 {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}
