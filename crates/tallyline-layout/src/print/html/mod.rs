//! HTML: a record as a grid of cache lines, and a table of its members.
//!
//! What is here are parts of a page: [`Sections`] writes one for each type and the index of several;
//! their style is [`STYLE`]. The page around them is the caller's. Nothing is told by colour alone:
//! holes are hatched, padding is dotted, both say so in words, and groups have letters. The grid is a
//! table with headings, so that a screen reader can say where a member lies; all names are escaped.

mod cells;
mod escape;
mod table;

pub use escape::escape;

use crate::groups::{Group, find};
use crate::query::{Effective, holes};
use cells::{Alternative, Cell, Kind, Part, Row, alternatives, cells, rows};
use std::fmt::Write;
use tallyline_debuginfo::keyword;
use tallyline_debuginfo::model::{Origin, Record, TypeId, Types};

/// The CSS for the HTML sections that show struct layouts, to be put into the page's head. It uses the page's custom
/// properties `--paper`, `--card`, `--ink`, `--muted` and `--line` (colours).
pub const STYLE: &str = include_str!("style.css");

/// Lines longer than this are shown in pieces, as bytes would be too narrow.
const WIDEST: u64 = 128;

/// The limit on members of a union, or variants, that are laid out individually.
const ALTERNATIVES: usize = 64;

/// Generator of HTML sections that show the layouts of structs, one section for each.
pub struct Sections<'t> {
    types: &'t Types,
    alignments: Effective,
    line: u64,
}

impl<'t> Sections<'t> {
    /// Creates a generator of HTML sections for these types, with cache lines of `line` bytes.
    pub fn new(types: &'t Types, line: u64) -> Sections<'t> {
        Sections { types, alignments: Effective::new(types), line: line.max(1) }
    }

    /// Returns the HTML table row about a record for the index of a page of struct layouts: a link to the record's
    /// section, its size, cache lines, bytes in holes, and padding; empty if the type is no record.
    pub fn index_row(&self, id: TypeId) -> String {
        let Some((_, record)) = self.types.as_record(id) else { return String::new() };
        let found = holes(self.types, record);
        let hole_bytes = found.bytes.iter().fold(0, |sum: u64, hole| sum.saturating_add(hole.bytes));
        format!(
            "<tr><th scope=\"row\"><a href=\"#t{}\">{} {}</a></th><td>{}</td><td>{}</td><td>{hole_bytes}</td>\
             <td>{}</td></tr>\n",
            id.index(),
            self.keyword(record),
            self.name(id),
            record.size,
            record.size.div_ceil(self.line),
            found.padding
        )
    }

    /// Returns the HTML section that shows a record's layout; empty if the type is no record.
    pub fn section(&mut self, id: TypeId) -> String {
        let types = self.types;
        let Some((_, record)) = types.as_record(id) else { return String::new() };
        let groups = find(types, record, self.line).groups;
        let name = self.name(id);
        let mut html =
            format!("<section class=\"type\" id=\"t{}\" aria-labelledby=\"h{}\">\n", id.index(), id.index());
        let _ =
            writeln!(html, "<h2 id=\"h{}\">{} <code>{name}</code></h2>", id.index(), self.keyword(record));
        html.push_str(&self.summary(id, record));
        if record.is_union() {
            html.push_str("<p>A union: its members lie over each other, all from byte 0.</p>\n");
        } else if record.size != 0 {
            let cells = cells(types, record, &groups);
            html.push_str(&legend(&cells, &groups));
            html.push_str(&self.grid(&format!("Cache lines of {name}"), |grid, html| {
                grid.rows(&cells, record.size, &groups, html);
            }));
        }
        html.push_str(&self.alternatives(&name, record));
        html.push_str(&table::members(types, record, &groups, self.line));
        html.push_str("</section>\n");
        html
    }

    /// Returns the word that declares it, in its language.
    fn keyword(&self, record: &Record) -> &'static str {
        if self.types.variants(record).is_empty() { keyword(record) } else { "enum" }
    }

    fn name(&self, id: TypeId) -> String {
        escape(&String::from_utf8_lossy(&self.types.qualified_name(id)))
    }

    fn summary(&mut self, id: TypeId, record: &Record) -> String {
        let types = self.types;
        let found = holes(types, record);
        let hole_bytes = found.bytes.iter().fold(0, |sum: u64, hole| sum.saturating_add(hole.bytes));
        let lines = record.size.div_ceil(self.line);
        let align = self.alignments.of(types, id);
        let mut parts =
            vec![count(record.size, "byte"), format!("{} of {}", count(lines, "line"), self.line)];
        parts.push(match types.origin() {
            Origin::Dwarf => format!("aligned to {align}"),
            Origin::Btf => format!("aligned to {align}, as inferred"),
        });
        if hole_bytes != 0 {
            let holes = count(found.bytes.len() as u64, "hole");
            parts.push(format!("<strong>{holes} with {}</strong>", count(hole_bytes, "byte")));
        }
        if found.padding != 0 {
            parts.push(format!("<strong>{} of padding</strong>", count(found.padding, "byte")));
        }
        if found.bytes.is_empty() && found.padding == 0 && record.is_struct() {
            parts.push("nothing unused".into());
        }
        let at = record.declared_at;
        if at.file.is_some() && at.line != 0 {
            let file = escape(&String::from_utf8_lossy(types.name(at.file)));
            parts.push(format!("<code>{file}:{}</code>", at.line));
        }
        format!("<p class=\"summary\">{}</p>\n", parts.join(" · "))
    }

    /// Formats overlapping members or variants, each with rows of its own.
    fn alternatives(&self, name: &str, record: &Record) -> String {
        let types = self.types;
        let all = alternatives(types, record, ALTERNATIVES);
        let (count, what) = match record.is_union() {
            true => (types.members(record).iter().filter(|member| member.takes_bytes()).count(), "members"),
            false => (types.variants(record).len(), "variants"),
        };
        if all.is_empty() || record.size == 0 {
            return String::new();
        }
        let caption = format!("The {what} of {name}, one by one");
        let mut html = format!("<p>The {what} one by one:</p>\n");
        html.push_str(&self.grid(&caption, |grid, html| {
            for Alternative { title, cells } in &all {
                let (title, columns) = (escape(title), grid.width() + 1);
                let _ = writeln!(
                    html,
                    "<tr class=\"group\"><th colspan=\"{columns}\" scope=\"rowgroup\">{title}</th></tr>"
                );
                grid.rows(cells, cells.last().map_or(0, |cell| cell.end), &[], html);
            }
        }));
        if count > all.len() {
            let _ = writeln!(html, "<p>{} more are only in the table.</p>", count - all.len());
        }
        html
    }

    /// Returns the number of bytes in a row of the grid.
    fn width(&self) -> u64 {
        if self.line <= WIDEST { self.line } else { 64 }
    }

    fn grid(&self, caption: &str, body: impl FnOnce(&Self, &mut String)) -> String {
        let width = self.width();
        let mut html = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\n\
             <table class=\"grid\">\n<caption>{caption}: {width} bytes in a row; each cell is as wide as \
             its bytes</caption>\n<colgroup><col class=\"head\"><col span=\"{width}\"></colgroup>\n"
        );
        html.push_str("<thead><tr><th scope=\"col\">line</th>");
        for start in (0..width).step_by(8) {
            let span = (width - start).min(8);
            let _ = write!(html, "<th scope=\"col\" colspan=\"{span}\">{start}</th>");
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        body(self, &mut html);
        html.push_str("</tbody>\n</table>\n</div>\n");
        html
    }

    fn rows(&self, cells: &[Cell], size: u64, groups: &[Group], html: &mut String) {
        let width = self.width();
        for row in rows(cells, width) {
            self.row(&row, width, size, groups, html);
        }
    }

    fn row(&self, row: &Row<'_>, width: u64, size: u64, groups: &[Group], html: &mut String) {
        let (first, last) = (row.start / self.line, (row.end - 1) / self.line);
        let line = if first == last { first.to_string() } else { format!("{first}–{last}") };
        let class = if row.end - row.start > width { " class=\"folded\"" } else { "" };
        let _ = write!(html, "<tr{class}><th scope=\"row\">{line}<small>{}</small></th>", row.start);
        for part in &row.parts {
            part_cell(part, width, groups, html);
        }
        // what is no part of the struct any more
        let end = row.parts.last().map_or(row.start, |part| part.end);
        if end == size && end < row.end {
            let _ = write!(html, "<td class=\"beyond\" colspan=\"{}\"></td>", row.end - end);
        }
        html.push_str("</tr>\n");
    }
}

fn part_cell(part: &Part<'_>, width: u64, groups: &[Group], html: &mut String) {
    let Cell { start, end, kind, ty, group, .. } = part.cell;
    let span = (part.end - part.start).min(width);
    let mut class = match kind {
        Kind::Member => String::from("member"),
        Kind::Hole => "hole".into(),
        Kind::Padding => "padding".into(),
    };
    if let Some(group) = group.filter(|_| *kind == Kind::Member) {
        let _ = write!(class, " g{}", group % 6);
    }
    match span {
        1 => class.push_str(" tiny"),
        2..=3 => class.push_str(" small"),
        _ => {}
    }
    let text = escape(&part.cell.text());
    let bytes = count(end - start, "byte");
    let of_group = group.and_then(|group| groups.get(group));
    let of_group = of_group.map(|group| format!(", group {}", escape(&group.name))).unwrap_or_default();
    let ty = ty.as_ref().map(|ty| format!(", {}", escape(ty))).unwrap_or_default();
    let about = format!("{text}: at {start}, {bytes}{ty}{of_group}");
    let goes_on = if part.goes_on { "<span class=\"on\" aria-hidden=\"true\">…</span>" } else { "" };
    let badge = match (group, kind) {
        (Some(group), Kind::Member) => format!("<b aria-hidden=\"true\">{}</b>", letter(*group)),
        _ => String::new(),
    };
    let _ = write!(
        html,
        "<td class=\"{class}\" colspan=\"{span}\" title=\"{about}\"><div>{badge}{goes_on}<span \
         aria-hidden=\"true\">{text}</span><span class=\"sr\">{about}</span></div></td>"
    );
}

/// Returns the letter of a group: A to Z, then AA.
fn letter(index: usize) -> String {
    let last = char::from(b'A' + u8::try_from(index % 26).unwrap_or(0));
    match index / 26 {
        0 => last.to_string(),
        more => format!("{}{last}", letter(more - 1)),
    }
}

fn legend(cells: &[Cell], groups: &[Group]) -> String {
    let mut items = Vec::new();
    for (kind, class, words) in [
        (Kind::Member, "member", "member"),
        (Kind::Hole, "hole", "hole: unused between members"),
        (Kind::Padding, "padding", "padding: unused at the end"),
    ] {
        let is_there = |cell: &Cell| cell.kind == kind && (kind != Kind::Member || cell.group.is_none());
        if cells.iter().any(is_there) {
            items.push(format!("<li><i class=\"{class}\"></i>{words}</li>"));
        }
    }
    for (index, group) in groups.iter().enumerate() {
        let (name, bytes) = (escape(&group.name), count(group.bytes(), "byte"));
        let class = index % 6;
        let letter = letter(index);
        items.push(format!("<li><i class=\"member g{class}\"><b>{letter}</b></i>group {name}, {bytes}</li>"));
    }
    format!("<ul class=\"legend\" aria-label=\"Legend\">{}</ul>\n", items.join(""))
}

/// Formats a number with its noun: `1 byte`, `2 bytes`.
fn count(number: u64, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}
