//! The members of a record as a table, with what is unused between them.

use super::cells::variant_tag;
use super::{count, escape, letter};
use crate::groups::{Group, is_marker};
use crate::query::{Field, Holes, fields, holes};
use std::fmt::Write;
use tallyline_debuginfo::model::{Member, MemberKind, Record, Types};
use tallyline_debuginfo::type_text;

/// The maximum number of rows.
const ROW_LIMIT: usize = 1 << 14;

/// Returns the table; nothing for a record without members.
pub(super) fn members(types: &Types, record: &Record, groups: &[Group], line: u64) -> String {
    let mut rows = String::new();
    bases(types, record, &mut rows);
    let all = fields(types, record);
    let Holes { bytes, bits, padding, .. } = holes(types, record);
    let whole = bytes.iter().map(|hole| Unused {
        start: hole.offset.saturating_mul(8),
        bits: None,
        bytes: hole.bytes,
    });
    let parts = bits.iter().map(|hole| Unused { start: hole.bit_offset, bits: Some(hole.bits), bytes: 0 });
    let mut unused: Vec<Unused> = whole.chain(parts).collect();
    unused.sort_by_key(|unused| unused.start);
    let mut unused = unused.into_iter().peekable();
    for field in all.iter().filter(|field| !is_marker(types.name(field.name))).take(ROW_LIMIT) {
        let bit = if field.bitfield { field.bit_offset % 8 } else { 0 };
        let start = field.start().saturating_mul(8).saturating_add(bit);
        while let Some(hole) = unused.next_if(|hole| hole.start < start) {
            hole.row("hole", line, &mut rows);
        }
        row(types, field, groups, line, &mut rows);
    }
    unused.for_each(|hole| hole.row("hole", line, &mut rows));
    variants(types, record, &mut rows);
    if padding != 0 {
        let start = (record.size - padding.min(record.size)).saturating_mul(8);
        Unused { start, bits: None, bytes: padding }.row("padding", line, &mut rows);
    }
    if rows.is_empty() {
        return "<p>No members.</p>\n".into();
    }
    if all.len() > ROW_LIMIT {
        let _ = writeln!(rows, "<tr><td colspan=\"5\">{} more</td></tr>", all.len() - ROW_LIMIT);
    }
    format!(
        "<div class=\"scroll\"><table class=\"members\">\n<caption>Members, with what is unused between them</caption>\n\
         <thead><tr><th scope=\"col\">offset</th><th scope=\"col\">size</th><th scope=\"col\">line</th>\
         <th scope=\"col\">name</th><th scope=\"col\">type</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

fn row(types: &Types, field: &Field, groups: &[Group], line: u64, rows: &mut String) {
    let (first, last) = (field.start() / line, field.end().saturating_sub(1).max(field.start()) / line);
    let lines = if first == last { first.to_string() } else { format!("{first}–{last}") };
    let (offset, size) = match field.bitfield {
        true => (format!("{}:{}", field.start(), field.bit_offset % 8), count(field.bits, "bit")),
        false => (field.start().to_string(), field.bytes().to_string()),
    };
    let group = groups.iter().position(|group| field.bits != 0 && group.spans(field));
    let badge = group.map(|index| {
        let name = escape(&groups[index].name);
        format!(" <b class=\"g{}\" title=\"group {name}\">{}</b>", index % 6, letter(index))
    });
    let name = escape(&String::from_utf8_lossy(types.name(field.name)));
    let _ = writeln!(
        rows,
        "<tr><td>{offset}</td><td>{size}</td><td>{lines}</td><th scope=\"row\"><code>{name}</code>{}</th>\
         <td><code>{}</code></td></tr>",
        badge.unwrap_or_default(),
        escape(&type_text(types, field.ty))
    );
}

/// Unused bytes, or bits of a bitfield's unit.
struct Unused {
    /// The offset in the record of the first unused bit.
    start: u64,
    bits: Option<u8>,
    bytes: u64,
}

impl Unused {
    fn row(&self, kind: &str, line: u64, rows: &mut String) {
        let byte = self.start / 8;
        let (offset, size) = match self.bits {
            Some(bits) => (format!("{byte}:{}", self.start % 8), count(bits.into(), "bit")),
            None => (byte.to_string(), self.bytes.to_string()),
        };
        let first = byte / line;
        let _ = writeln!(
            rows,
            "<tr class=\"unused\"><td>{offset}</td><td>{size}</td><td>{first}</td><th scope=\"row\"><i class=\"{kind}\"></i>{kind}</th>\
             <td></td></tr>"
        );
    }
}

fn bases(types: &Types, record: &Record, rows: &mut String) {
    for base in types.members(record).iter().filter(|member| member.is_base()) {
        let word = if base.kind == MemberKind::VirtualBase { "virtual base" } else { "base" };
        heading(&format!("{word} <code>{}</code>{}", escape(&type_text(types, base.ty)), place(base)), rows);
    }
}

fn variants(types: &Types, record: &Record, rows: &mut String) {
    for variant in types.variants(record) {
        let name = escape(&String::from_utf8_lossy(types.name(variant.name)));
        let tag = variant_tag(variant);
        heading(&format!("variant <code>{name}</code>, {tag}"), rows);
        for member in types.variant_members(variant) {
            let name = escape(&String::from_utf8_lossy(types.name(member.name)));
            let _ = writeln!(
                rows,
                "<tr><td>{}</td><td>{}</td><td></td><th scope=\"row\"><code>{name}</code></th><td><code>{}</code></td></tr>",
                member.offset,
                member.size,
                escape(&type_text(types, member.ty))
            );
        }
    }
}

fn place(member: &Member) -> String {
    match member.is_placed() {
        true => format!(" at {}, {}", member.offset, count(member.size, "byte")),
        false => ", its place is known at run time only".into(),
    }
}

fn heading(html: &str, rows: &mut String) {
    let _ = writeln!(rows, "<tr class=\"group\"><th colspan=\"5\" scope=\"rowgroup\">{html}</th></tr>");
}
