//! Cache line groups: members of a struct that are used together and so should lie together.
//!
//! The kernel marks them by members of no size, `__cacheline_group_begin__G` and
//! `__cacheline_group_end__G`, which may lie in anonymous structs. Programs without markers name
//! the members, see [`Group::listed`].

mod asserts;
mod find;

pub use asserts::{Dialect, asserts};
pub(crate) use find::is_marker;
pub use find::{FoundGroups, find};

use crate::query::{Field, field_at, fields};
use tallyline_debuginfo::model::{Position, Record, TypeId, Types};

/// A cache-line group of a struct (members that are used together and are meant to share cache lines) with its layout.
#[derive(Clone, Debug)]
pub struct Group {
    pub(crate) name: String,
    /// `true` if markers in the struct delimit it.
    pub(crate) marked: bool,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) align: u64,
    pub(crate) members: Vec<Named>,
    pub(crate) holes: Vec<(u64, u64)>,
    pub(crate) foreign: Vec<Foreign>,
    pub(crate) declared_at: Position,
}

impl Group {
    /// Returns the name of the cache-line group (members meant to share cache lines).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the byte offset in the struct at which the cache-line group (members meant to share cache lines) starts.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns the byte offset in the struct at which the cache-line group (members meant to share cache lines) ends
    /// (exclusive).
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the alignment in bytes that the source declares for the cache-line group (members meant to share cache
    /// lines); 0 if it declares none.
    pub fn align(&self) -> u64 {
        self.align
    }

    /// Returns the members of the cache-line group (struct members meant to share cache lines), in the order of their
    /// offsets.
    pub fn members(&self) -> &[Named] {
        &self.members
    }

    /// Returns the holes between the members of the cache-line group (struct members meant to share cache lines), as
    /// (byte offset in the struct, size in bytes).
    pub fn holes(&self) -> &[(u64, u64)] {
        &self.holes
    }

    /// Returns the members of the struct that are on the lines of the cache-line group (members meant to share cache
    /// lines) but not in the group.
    pub fn foreign(&self) -> &[Foreign] {
        &self.foreign
    }

    /// Returns the source position at which the cache-line group (members meant to share cache lines) is declared.
    pub fn declared_at(&self) -> Position {
        self.declared_at
    }
}

/// A member of a cache-line group (struct members meant to share cache lines), with its name or path in the struct.
#[derive(Clone, Debug)]
pub struct Named {
    pub(crate) path: String,
    pub(crate) field: Field,
}

impl Named {
    /// Returns the name of the cache-line group's member, or its path in the struct, such as `stats.rx`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the type of the cache-line group's member and its location in the whole struct.
    pub fn field(&self) -> Field {
        self.field
    }
}

/// A member of a struct that is on the lines of a cache-line group (members meant to share cache lines) but not in the
/// group.
#[derive(Clone, Debug)]
pub struct Foreign {
    pub(crate) field: Field,
    pub(crate) inside: bool,
}

impl Foreign {
    /// Returns the type of the member outside the cache-line group and its location in the whole struct.
    pub fn field(&self) -> Field {
        self.field
    }

    /// Returns `true` if the member outside the cache-line group lies, at least in part, between the group's start and
    /// end, and not only on its first or last line.
    pub fn inside(&self) -> bool {
        self.inside
    }
}

impl Group {
    /// Creates a cache-line group of these members of a struct, for structs without markers; the error lists the names
    /// that the struct has no member for. `line` is the size of a cache line in bytes.
    pub fn listed(
        types: &Types,
        record: &Record,
        name: &str,
        members: &[String],
        line: u64,
    ) -> Result<Group, Vec<String>> {
        let mut missing = Vec::new();
        let mut found = Vec::new();
        for path in members {
            match field_at(types, record, path) {
                Some(field) => found.push(Named { path: path.clone(), field }),
                None => missing.push(path.clone()),
            }
        }
        if !missing.is_empty() {
            return Err(missing);
        }
        let group = Group {
            name: name.into(),
            marked: false,
            start: found.iter().map(|named| named.field.start()).min().unwrap_or(0),
            end: found.iter().map(|named| named.field.end()).max().unwrap_or(0),
            align: 0,
            declared_at: found.first().map_or(record.declared_at, |named| named.field.declared_at),
            members: found,
            holes: Vec::new(),
            foreign: Vec::new(),
        };
        Ok(group.complete(types, record, line))
    }

    /// Returns the number of bytes from the start to the end of the cache-line group (members meant to share cache
    /// lines).
    pub fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Returns the indices, in the struct, of the first and last cache line that the cache-line group (members meant to
    /// share cache lines) is on, if the struct starts on a line.
    pub fn lines(&self, line: u64) -> (u64, u64) {
        let line = line.max(1);
        (self.start / line, self.end.saturating_sub(1).max(self.start) / line)
    }

    /// Returns the number of cache lines that the cache-line group (members meant to share cache lines) is on, if the
    /// struct starts on a line; 0 for an empty group. `line` is the size of a cache line in bytes.
    pub fn line_count(&self, line: u64) -> u64 {
        let (first, last) = self.lines(line);
        if self.bytes() == 0 { 0 } else { last - first + 1 }
    }

    /// Returns `true` if the cache-line group (members meant to share cache lines) is on more cache lines than its size
    /// requires. `line` is the size of a cache line in bytes.
    pub fn straddles(&self, line: u64) -> bool {
        self.line_count(line) > self.bytes().div_ceil(line.max(1))
    }

    /// Returns the number of unused bytes between the members of the cache-line group (struct members meant to share
    /// cache lines).
    pub fn hole_bytes(&self) -> u64 {
        self.holes.iter().fold(0, |sum: u64, hole| sum.saturating_add(hole.1))
    }

    /// Returns `true` if a field of the struct lies wholly between the start and end of the cache-line group (members
    /// meant to share cache lines), even if it does not belong to the group.
    pub fn spans(&self, field: &Field) -> bool {
        field.start() >= self.start && field.end() <= self.end
    }

    /// Finds the holes and what else lies on its lines.
    fn complete(mut self, types: &Types, record: &Record, line: u64) -> Group {
        let all = fields(types, record);
        self.members.sort_by_key(|named| named.field.bit_offset);
        let mut inside: Vec<&Field> = all.iter().filter(|field| self.spans(field)).collect();
        inside.sort_by_key(|field| field.bit_offset);
        let mut filled = self.start;
        for field in inside {
            if field.start() > filled {
                self.holes.push((filled, field.start() - filled));
            }
            filled = filled.max(field.end());
        }
        if filled < self.end {
            self.holes.push((filled, self.end - filled));
        }
        if self.bytes() != 0 {
            let (first, last) = self.lines(line);
            let line = line.max(1);
            let on_lines = |field: &&Field| {
                field.bits != 0
                    && field.start() / line <= last
                    && field.end().saturating_sub(1) / line >= first
                    && !self.owns(field)
            };
            self.foreign = all
                .iter()
                .filter(on_lines)
                .map(|field| Foreign {
                    field: *field,
                    inside: field.start() < self.end && field.end() > self.start,
                })
                .collect();
        }
        self
    }

    /// Returns `true` if a field belongs to the group: it lies between its markers, or overlaps a listed member.
    fn owns(&self, field: &Field) -> bool {
        if self.marked {
            return self.spans(field);
        }
        let end = |field: &Field| field.bit_offset.saturating_add(field.bits);
        let overlaps = |own: &Field| own.bit_offset < end(field) && field.bit_offset < end(own);
        self.members.iter().any(|own| overlaps(&own.field))
    }
}

/// Returns all records that have cache-line groups (members meant to share cache lines) bounded by marker members,
/// sorted by name.
pub fn grouped(types: &Types) -> Vec<TypeId> {
    let has_groups = |record: &Record| find::has_markers(types, record);
    let mut definitions = tallyline_debuginfo::lookup::Definitions::new(types);
    let records = definitions.records().iter().copied();
    records.filter(|(_, record)| has_groups(types.record(*record))).map(|(id, _)| id).collect()
}
