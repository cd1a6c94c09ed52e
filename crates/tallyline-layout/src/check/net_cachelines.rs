//! The kernel's tables of who uses which field of a struct on the fast path
//! (`Documentation/networking/net_cachelines`), as rules.
//!
//! A table has a title with the struct's name, a head with `Type`, `Name`, `fastpath_tx_access`,
//! `fastpath_rx_access` and a comment, and a row for each field. Up to 6.12 it is plain text with `-`
//! in cells that are empty, later a table with `=` lines and empty cells. Both are read by where
//! cells start.

use super::policy::{Level, Policy, Rule, RuleKind, TypeRule};
use super::subjects::Subjects;
use super::{Notes, PolicyError, Report};
use crate::groups::{FoundGroups, Group, find, is_marker};
use crate::query::fields;
use std::collections::BTreeSet;
use tallyline_debuginfo::model::Types;

/// The kind of access to a field on a network path, from the kernel's `net_cachelines` tables: read mostly, or read and
/// write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    /// Access to a field that is mostly read.
    Read,
    /// Access to a field that is written.
    Write,
}

/// A row of one of the kernel's `net_cachelines` tables: a field of a struct, and how the transmit and receive paths
/// access it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableEntry {
    /// The name of the struct's field.
    pub(crate) name: String,
    /// The transmit path's access; none if it does not use the field.
    pub(crate) tx: Option<Access>,
    /// The receive path's access; none if it does not use the field.
    pub(crate) rx: Option<Access>,
    /// The line of the row in the table's file.
    pub(crate) line: u32,
}

/// One of the kernel's tables in `Documentation/networking/net_cachelines`: the fields of one struct with how the
/// network paths access them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub(crate) name: String,
    pub(crate) entries: Vec<TableEntry>,
}

impl Table {
    /// Returns the name of the struct that the `net_cachelines` table is about.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the rows of the `net_cachelines` table whose fields the kernel's transmit or receive path uses.
    pub(crate) fn uses(&self) -> impl Iterator<Item = &TableEntry> {
        self.entries.iter().filter(|entry| entry.path().is_some())
    }

    /// Returns the number of rows, that is fields of the struct, in the `net_cachelines` table.
    pub fn member_count(&self) -> usize {
        self.entries.len()
    }
}

/// The start offsets of the columns.
struct Columns {
    tx: usize,
    rx: usize,
    comment: usize,
}

impl Table {
    /// Parses the text of one of the kernel's `net_cachelines` tables (reStructuredText).
    pub fn parse(text: &str) -> Result<Table, PolicyError> {
        let mut name = None;
        let mut columns: Option<Columns> = None;
        let mut entries = Vec::new();
        for (line, row) in (1..).zip(text.lines()) {
            let words: Vec<&str> = row.split_whitespace().collect();
            if let ([struct_name, "struct", ..], None) = (words.as_slice(), &columns) {
                name = Some(struct_name.to_string());
            } else if let ([_, "enum", "fast", ..], None) = (words.as_slice(), &columns) {
                let message = "a table of an enumeration: only those of structs say where fields lie".into();
                return Err(PolicyError { line, message });
            }
            if words.contains(&"fastpath_tx_access") {
                columns = columns_of(row);
                continue;
            }
            let Some(columns) = &columns else { continue };
            let cells = cells(row);
            let [(_, ty), (_, field), rest @ ..] = cells.as_slice() else { continue };
            if ty.starts_with('=') {
                continue;
            }
            // the plain format names the struct in its first row
            if let (Some("struct"), Some(struct_name)) = (ty.strip_prefix(".."), field.strip_prefix("..")) {
                name = Some(struct_name.to_string());
                continue;
            }
            let field = field.split('[').next().unwrap_or_default().to_string();
            let mut entry = TableEntry { name: field, tx: None, rx: None, line };
            for (start, cell) in rest.iter().filter(|(start, _)| *start + 1 < columns.comment) {
                let access = match *cell {
                    "read_mostly" => Access::Read,
                    "read_write" | "write_mostly" => Access::Write,
                    _ => continue,
                };
                // a name that is too long moves what follows it by a little
                let is_tx = start.abs_diff(columns.tx) < start.abs_diff(columns.rx);
                *(if is_tx { &mut entry.tx } else { &mut entry.rx }) = Some(access);
            }
            entries.push(entry);
        }
        let missing = |message: &str| PolicyError { line: 1, message: message.into() };
        if columns.is_none() {
            return Err(missing("no table with columns fastpath_tx_access and fastpath_rx_access"));
        }
        let name = name.ok_or_else(|| missing("no title that says which struct the table is about"))?;
        Ok(Table { name, entries })
    }
}

fn columns_of(head: &str) -> Option<Columns> {
    let tx = head.find("fastpath_tx_access")?;
    let rx = head.find("fastpath_rx_access")?;
    let comment = head.to_ascii_lowercase().rfind("comment").unwrap_or(usize::MAX);
    Some(Columns { tx, rx, comment })
}

/// Splits a row at runs of two or more blanks; returns each cell with its offset.
fn cells(row: &str) -> Vec<(usize, &str)> {
    let mut cells = Vec::new();
    let mut start = 0;
    while start < row.len() {
        let rest = &row[start..];
        let text = rest.trim_start();
        let at = start + rest.len() - text.len();
        let length = text.find("  ").unwrap_or(text.len());
        let cell = text[..length].trim_end();
        if !cell.is_empty() {
            cells.push((at, cell));
        }
        start = at + length.max(1);
    }
    cells
}

impl TableEntry {
    /// Returns the name of the struct's field that this row of a kernel's `net_cachelines` table describes.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns `true` if the transmit or receive path writes the field that this row of a kernel's `net_cachelines`
    /// table describes.
    pub(crate) fn is_written(&self) -> bool {
        self.tx.max(self.rx) == Some(Access::Write)
    }

    /// Returns the network paths that use the field which this row of a `net_cachelines` table describes: `tx`, `rx` or
    /// `txrx`, as the names of cache-line groups have them; `None` for an unused field.
    pub(crate) fn path(&self) -> Option<&'static str> {
        match (self.tx.is_some(), self.rx.is_some()) {
            (true, true) => Some("txrx"),
            (true, false) => Some("tx"),
            (false, true) => Some("rx"),
            (false, false) => None,
        }
    }

    /// Combines this row of a `net_cachelines` table with another field's row: returns one that has this field's name
    /// and, for each network path, a write if either field is written, else a read if either is read.
    pub(crate) fn joined(&self, other: &TableEntry) -> TableEntry {
        TableEntry { tx: self.tx.max(other.tx), rx: self.rx.max(other.rx), ..self.clone() }
    }

    /// Returns the name of the group that a field belongs to; none for an unused field.
    fn group(&self) -> Option<[String; 2]> {
        let access = if self.is_written() { "write" } else { "read" };
        let path = match self.path()? {
            "txrx" => ["txrx", "rxtx"],
            path => [path, path],
        };
        Some(path.map(|path| format!("_{access}_{path}")))
    }

    fn words(&self) -> String {
        let word = |access: Option<Access>, path| match access {
            Some(Access::Read) => Some(format!("read_mostly by {path}")),
            Some(Access::Write) => Some(format!("read_write by {path}")),
            None => None,
        };
        let words = [word(self.tx, "tx"), word(self.rx, "rx")];
        words.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Checks a struct against the kernel's `net_cachelines` table about it: each field in the table exists in the struct
/// (`table-member`) and lies in the cache-line group that its accesses call for, if the struct has that group
/// (`table-group`). Fields of the struct that the table lacks get a warning.
pub fn check_table(types: &Types, table: &Table, cacheline: u64) -> Report {
    let policy = Policy { cacheline: cacheline.max(1), ..Policy::default() };
    let mut report = Report::default();
    let found = Subjects::new(types).matching(&table.name);
    report.types = found.len();
    let rule = |line, level| Rule {
        pattern: table.name.clone(),
        level,
        reason: None,
        line,
        kind: RuleKind::Type(TypeRule::default()),
    };
    let findings = &mut report.findings;
    if found.is_empty() {
        let rule = rule(1, Level::Deny);
        let mut notes = Notes::new(&rule, &policy, findings);
        notes.unknown("unknown-type", None, format!("no type named {}", table.name));
        return report;
    }
    for subject in found {
        let all = fields(types, subject.record);
        let groups = find(types, subject.record, policy.cacheline);
        let mut known = BTreeSet::new();
        for entry in &table.entries {
            let rule = rule(entry.line, Level::Deny);
            let mut notes = Notes::new(&rule, &policy, findings);
            notes.about(types, &subject);
            let member = Some(entry.name.as_str());
            known.insert(entry.name.as_bytes());
            let Some(field) = all.iter().find(|field| types.name(field.name) == entry.name.as_bytes()) else {
                let message = format!("the table has {}, the struct has not", entry.name);
                notes.add("table-member", member, subject.record.declared_at, message);
                continue;
            };
            let Some((wanted, is)) = misplaced(entry, &groups, |group| group.spans(field)) else { continue };
            let is = is.map_or("in no group".into(), |group| format!("in {group}"));
            let message = format!("it is {}, so of {wanted}, and lies {is}", entry.words());
            notes.add("table-group", member, field.declared_at, message);
        }
        let rule = rule(1, Level::Warn);
        let mut notes = Notes::new(&rule, &policy, findings);
        notes.about(types, &subject);
        for field in all {
            let name = types.name(field.name);
            if !is_marker(name) && known.insert(name) {
                let name = String::from_utf8_lossy(name).into_owned();
                notes.add("table-member", Some(&name), field.declared_at, format!("the table has no {name}"));
            }
        }
    }
    report
}

/// Returns the group that a field should be in and the one that it is in, if these are not the same.
fn misplaced<'f>(
    entry: &TableEntry,
    found: &'f FoundGroups,
    holds: impl Fn(&Group) -> bool,
) -> Option<(&'f str, Option<&'f str>)> {
    let suffixes = entry.group()?;
    let fits = |group: &&Group| suffixes.iter().any(|suffix| group.name.ends_with(suffix.as_str()));
    let wanted = found.groups.iter().find(fits)?;
    if holds(wanted) {
        return None;
    }
    let is = found.groups.iter().find(|group| holds(group)).map(|group| group.name.as_str());
    Some((&wanted.name, is))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "\
==========================================
flow struct fast path usage breakdown
==========================================

Type                   Name              fastpath_tx_access  fastpath_rx_access  Comments
..struct               ..flow
struct_list_head       node
u64                    sent              read_write          -                   send_one(tx)
u64[2]                 limits[2]         -                   read_mostly         take_one, take_two (rx)
u32                    mark              read_mostly         read_write
u8:1                   open              read_mostly                             is_open
";

    const TABLE: &str = "\
==========================================
flow struct fast path usage breakdown
==========================================

====================== ================= =================== =================== ===========
Type                   Name              fastpath_tx_access  fastpath_rx_access  Comments
====================== ================= =================== =================== ===========
struct list_head       node
u64                    sent              read_write                              send_one(tx)
u64[2]                 limits[2]                             read_mostly         take_one, take_two (rx)
u32                    mark              read_mostly         read_write
u8:1                   open              read_mostly                             is_open
====================== ================= =================== =================== ===========
";

    #[test]
    fn both_formats_say_the_same() {
        let plain = Table::parse(PLAIN).expect("a table");
        let table = Table::parse(TABLE).expect("a table");
        let rows = |table: &Table| -> Vec<_> {
            table.entries.iter().map(|entry| (entry.name.clone(), entry.tx, entry.rx)).collect()
        };
        assert_eq!(plain.name, "flow");
        assert_eq!((&table.name, rows(&table)), (&plain.name, rows(&plain)));
        let (read, write) = (Some(Access::Read), Some(Access::Write));
        let expected = [
            ("node", None, None),
            ("sent", write, None),
            ("limits", None, read),
            ("mark", read, write),
            ("open", read, None),
        ];
        assert_eq!(rows(&plain), expected.map(|(name, tx, rx)| (name.to_string(), tx, rx)));
        assert_eq!(plain.entries[1].line, 8);
    }

    #[test]
    fn what_is_no_table_of_a_struct_is_refused() {
        assert!(Table::parse("some text\n").is_err());
        assert!(Table::parse(&TABLE.replace("flow struct", "flow enum")).is_err());
        let untitled = TABLE.replace("flow struct fast path usage breakdown", "");
        assert!(Table::parse(&untitled).expect_err("no title").message.contains("title"));
    }
}
