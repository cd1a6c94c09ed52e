//! A record as a row of cells: members, and what is unused between and behind them.

use crate::groups::Group;
use crate::query::tag_word;
use tallyline_debuginfo::model::{Member, MemberKind, Record, Type, TypeId, Types, Variant};
use tallyline_debuginfo::type_text;

/// The nesting depth at which anonymous types are left out; real programs stay below twenty.
const DEPTH_LIMIT: usize = 64;

/// The limit on members of anonymous types: in a damaged file they unfold without end.
const INNER_LIMIT: usize = 1 << 14;

/// The maximum number of overlapping members that are named.
const NAMED: usize = 6;

/// The kind of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A member, or several in the same bytes.
    Member,
    /// Unused bytes between members.
    Hole,
    /// Unused bytes behind the last.
    Padding,
}

/// Bytes of a record.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) kind: Kind,
    /// The names of the members in the cell.
    pub(super) names: Vec<String>,
    /// The type of the member in the cell; `None` for unused bytes and several members.
    pub(super) ty: Option<String>,
    /// `true` if the cell's members overlap.
    pub(super) overlaid: bool,
    /// `true` if the cell holds bitfields, which share bytes.
    bitfield: bool,
    /// The index of the cache-line group that the cell lies in.
    pub(super) group: Option<usize>,
}

impl Cell {
    fn unused(start: u64, end: u64, kind: Kind) -> Cell {
        Cell { start, end, kind, names: Vec::new(), ty: None, overlaid: false, bitfield: false, group: None }
    }

    /// Returns the cell's label.
    pub(super) fn text(&self) -> String {
        let bytes = self.end - self.start;
        match self.kind {
            Kind::Hole => format!("hole {bytes}"),
            Kind::Padding => format!("padding {bytes}"),
            Kind::Member => {
                let mut names = self.names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>();
                if self.names.len() > NAMED {
                    names.push("…");
                }
                names.join(if self.overlaid { " | " } else { ", " })
            }
        }
    }
}

/// Returns the cells of a record from its first byte to its last, none over another.
pub(super) fn cells(types: &Types, record: &Record, groups: &[Group]) -> Vec<Cell> {
    let mut walk = Walk { types, budget: INNER_LIMIT, found: Vec::new() };
    walk.collect(record, 0, 0, false);
    let mut found = walk.found;
    found.extend(variants(types, record));
    in_a_row(found, record.size, groups)
}

/// A member of a union, or a variant of an enum, laid out alone.
pub(super) struct Alternative {
    /// The title: a member of a union, or a variant with its discriminant if it has one.
    pub(super) title: String,
    /// The cells of the members, and of the holes between them.
    pub(super) cells: Vec<Cell>,
}

/// Returns the members of a union, or the variants of an enum of Rust, up to a number.
pub(super) fn alternatives(types: &Types, record: &Record, limit: usize) -> Vec<Alternative> {
    let mut walk = Walk { types, budget: INNER_LIMIT, found: Vec::new() };
    let name = |name| String::from_utf8_lossy(types.name(name)).into_owned();
    let mut all = Vec::new();
    if record.is_union() {
        for member in types.members(record).iter().filter(|member| member.takes_bytes()).take(limit) {
            match unnamed_struct(types, member) {
                Some(inner) => walk.collect(inner, member.offset, 1, false),
                None => walk.member(member, 0, 0),
            }
            let title = if member.name.is_some() { name(member.name) } else { "(no name)".into() };
            all.push(Alternative { title, cells: walk.take() });
        }
    }
    for variant in types.variants(record).iter().take(limit) {
        let members = types.members(record).iter().chain(types.variant_members(variant));
        for member in members.filter(|member| member.takes_bytes()) {
            walk.member(member, 0, 0);
        }
        // a niche is a part of a member of the variant that has none
        if variant.tag.is_some() || tag_word(types, record) == Some("tag") {
            walk.tag(record, 0);
        }
        let title = format!("{}, {}", name(variant.name), variant_tag(variant));
        all.push(Alternative { title, cells: walk.take() });
    }
    all
}

/// Formats the discriminant of a variant.
pub(super) fn variant_tag(variant: &Variant) -> String {
    match variant.tag {
        Some(tag) => format!("where the tag is {tag}"),
        None => "otherwise".into(),
    }
}

/// Cells in order, none over another, with what is unused between and up to the end.
fn in_a_row(mut found: Vec<Cell>, size: u64, groups: &[Group]) -> Vec<Cell> {
    found.sort_by_key(|cell| (cell.start, cell.end));
    let mut row: Vec<Cell> = Vec::new();
    let mut filled = 0;
    for mut cell in found {
        match row.last_mut() {
            // bitfields share bytes, and so do a tag and the variant whose niche it is
            Some(last) if cell.start < filled && (cell.end <= filled || last.bitfield && cell.bitfield) => {
                last.names.append(&mut cell.names);
                last.ty = None;
                last.end = last.end.max(cell.end);
                filled = last.end;
                continue;
            }
            _ if cell.start < filled => cell.start = filled,
            _ => {}
        }
        if cell.start > filled {
            row.push(Cell::unused(filled, cell.start, Kind::Hole));
        }
        filled = cell.end;
        cell.group = groups.iter().position(|group| group.start <= cell.start && cell.end <= group.end);
        row.push(cell);
    }
    if filled < size {
        row.push(Cell::unused(filled, size, Kind::Padding));
    }
    row
}

/// A walk over members, into anonymous types.
struct Walk<'t> {
    types: &'t Types,
    // members that may still be looked at
    budget: usize,
    found: Vec<Cell>,
}

impl Walk<'_> {
    fn spend(&mut self, inside: bool) -> bool {
        self.budget = self.budget.saturating_sub(usize::from(inside));
        self.budget != 0
    }

    fn collect(&mut self, record: &Record, base: u64, depth: usize, as_base: bool) {
        let types = self.types;
        for member in types.members(record) {
            if !self.spend(depth != 0) {
                return;
            }
            // a base's own virtual bases lie elsewhere in the whole object, which has them as its members
            let is_elsewhere = as_base && member.kind == MemberKind::VirtualBase;
            if member.takes_bytes() && !is_elsewhere {
                self.member(member, base, depth);
            }
        }
        self.tag(record, base);
    }

    /// Adds the discriminant of a record.
    fn tag(&mut self, record: &Record, base: u64) {
        let types = self.types;
        if let (Some(tag), Some(word)) = (types.tag(record), tag_word(types, record)) {
            let cell = plain(types, tag, base);
            self.found.extend(cell.map(|cell| Cell { names: vec![format!("({word})")], ..cell }));
        }
    }

    fn member(&mut self, member: &Member, base: u64, depth: usize) {
        let types = self.types;
        match anonymous(types, member).filter(|_| depth < DEPTH_LIMIT) {
            Some(inner) if inner.is_struct() => {
                let start = base.saturating_add(member.offset);
                self.collect(inner, start, depth + 1, member.is_base());
            }
            Some(inner) => {
                let cell = self.overlaid(inner, member, base);
                self.found.extend(cell);
            }
            None => self.found.extend(plain(types, member, base)),
        }
    }

    /// Takes the cells found since the last call, in order.
    fn take(&mut self) -> Vec<Cell> {
        in_a_row(std::mem::take(&mut self.found), 0, &[])
    }

    /// Returns a union without a name: its members by name.
    fn overlaid(&mut self, record: &Record, member: &Member, base: u64) -> Option<Cell> {
        let start = base.saturating_add(member.offset);
        let end = start.saturating_add(record.size);
        let mut names = Vec::new();
        self.name_all(record, 0, &mut names);
        let cell = Cell { names, overlaid: true, ..Cell::unused(start, end, Kind::Member) };
        (start < end).then_some(cell)
    }

    fn name_all(&mut self, record: &Record, depth: usize, names: &mut Vec<String>) {
        let types = self.types;
        for member in types.members(record) {
            if names.len() > NAMED || !self.spend(true) {
                return;
            }
            match anonymous(types, member) {
                Some(inner) if depth < DEPTH_LIMIT => self.name_all(inner, depth + 1, names),
                _ => names.push(String::from_utf8_lossy(types.name(member.name)).into_owned()),
            }
        }
    }
}

/// Returns the record that a member without a name, or a base, is.
fn anonymous<'t>(types: &'t Types, member: &Member) -> Option<&'t Record> {
    let unnamed = !member.name.is_some() || member.is_base();
    types.as_record(types.strip(member.ty)).map(|(_, record)| record).filter(|_| unnamed)
}

/// Returns the struct that a member is whose type has no name.
fn unnamed_struct<'t>(types: &'t Types, member: &Member) -> Option<&'t Record> {
    let record = types.as_record(types.strip(member.ty)).map(|(_, record)| record);
    record.filter(|record| record.is_struct() && !record.name.is_some())
}

fn plain(types: &Types, member: &Member, base: u64) -> Option<Cell> {
    let bits = base.saturating_mul(8).saturating_add(member.bit_offset);
    let size = member.bitfield.map_or(member.size.saturating_mul(8), |field| u64::from(field.size));
    let name = match member.name.is_some() {
        true => String::from_utf8_lossy(types.name(member.name)).into_owned(),
        false => "(no name)".into(),
    };
    let name = match member.bitfield {
        Some(field) => format!("{name}:{}", field.size),
        None => name,
    };
    let (start, end) = (bits / 8, bits.saturating_add(size).div_ceil(8));
    let cell = Cell {
        names: vec![name],
        ty: Some(type_text(types, member.ty)),
        bitfield: member.bitfield.is_some(),
        ..Cell::unused(start, end, Kind::Member)
    };
    (start < end).then_some(cell)
}

/// Returns the bytes that the variants of a Rust enum cover together.
fn variants(types: &Types, record: &Record) -> Option<Cell> {
    let mut names = Vec::new();
    let (mut start, mut end) = (u64::MAX, 0);
    for variant in types.variants(record) {
        let name = String::from_utf8_lossy(types.name(variant.name)).into_owned();
        for member in types.variant_members(variant).iter().filter(|member| member.takes_bytes()) {
            let size = inner_size(types, member.ty, member.size);
            start = start.min(member.offset);
            end = end.max(member.offset.saturating_add(size));
        }
        names.push(name);
    }
    (start < end).then(|| Cell { names, overlaid: true, ..Cell::unused(start, end, Kind::Member) })
}

fn inner_size(types: &Types, ty: TypeId, size: u64) -> u64 {
    match types.get(types.strip(ty)) {
        Type::Record(record) => types.record(record).size.max(size),
        _ => size,
    }
}

/// A part of a cell that lies on one row, or several whole rows.
pub(super) struct Part<'c> {
    pub(super) cell: &'c Cell,
    pub(super) start: u64,
    pub(super) end: u64,
    /// `true` if the cell began on an earlier row.
    pub(super) goes_on: bool,
}

/// A row of cells, or several rows that one cell fills.
pub(super) struct Row<'c> {
    /// The offset in the record of the row's first byte.
    pub(super) start: u64,
    /// The offset in the record of the byte behind the row's last one.
    pub(super) end: u64,
    pub(super) parts: Vec<Part<'c>>,
}

/// Cuts cells into rows of so many bytes. Where a cell fills more than two rows, those in the middle
/// become one.
pub(super) fn rows(cells: &[Cell], width: u64) -> Vec<Row<'_>> {
    let width = width.max(1);
    let mut rows: Vec<Row<'_>> = Vec::new();
    for cell in cells {
        let mut at = cell.start;
        while at < cell.end {
            let row_start = at - at % width;
            let full = (cell.end - row_start) / width;
            let end = if at == row_start && full > 2 {
                row_start.saturating_add(full * width)
            } else {
                row_start.saturating_add(width).min(cell.end)
            };
            let part = Part { cell, start: at, end, goes_on: at != cell.start };
            match rows.last_mut() {
                Some(row) if row.start == row_start => row.parts.push(part),
                _ => {
                    let row_end = row_start.saturating_add(width).max(end);
                    rows.push(Row { start: row_start, end: row_end, parts: vec![part] });
                }
            }
            if end <= at {
                break;
            }
            at = end;
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_cut_at_rows_and_long_ones_folded() {
        let cell = |start, end| Cell::unused(start, end, Kind::Member);
        let cells = [cell(0, 60), cell(60, 72), cell(72, 1000), cell(1000, 1024)];
        let rows = rows(&cells, 64);
        let spans: Vec<_> = rows.iter().map(|row| (row.start, row.end, row.parts.len())).collect();
        assert_eq!(spans, [(0, 64, 2), (64, 128, 2), (128, 960, 1), (960, 1024, 2)]);
        let covered: u64 = rows.iter().flat_map(|row| &row.parts).map(|part| part.end - part.start).sum();
        assert_eq!(covered, 1024);
    }

    #[test]
    fn the_largest_type_there_can_be_has_few_rows() {
        let cells = [Cell::unused(3, u64::MAX, Kind::Padding)];
        assert!(rows(&cells, 64).len() <= 3);
    }
}
