//! Types as an editor shows them.

use serde::{Deserialize, Serialize};
use tallyline_debuginfo::model::{TypeId, Types};
use tallyline_debuginfo::{keyword, type_text};
use tallyline_layout::query::{fields, hole_ranges, summary};
use tallyline_support::output::printable;

/// The most fields that are kept of a type; real ones have some hundreds.
const FIELDS: usize = 4096;

/// A struct, class or union.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) keyword: String,
    /// The name with scopes.
    pub(super) name: String,
    pub(super) size: u64,
    /// The offset and the bytes of each hole.
    pub(super) holes: Vec<(u64, u64)>,
    pub(super) padding: u64,
    /// The file of the declaration; empty if it is not known.
    pub(super) file: String,
    /// The line of the declaration, counted from 1; 0 if it is not known.
    pub(super) line: u32,
    pub(super) fields: Vec<Field>,
}

/// A member, or one of an anonymous member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) ty: String,
    pub(super) bit_offset: u64,
    pub(super) bits: u64,
    pub(super) is_bitfield: bool,
}

impl Entry {
    /// Describes a type; none if it is no record with known members.
    pub(super) fn of(types: &Types, id: TypeId) -> Option<Entry> {
        let (_, record) = types.as_record(types.strip(id))?;
        if record.declaration {
            return None;
        }
        let text = |bytes: &[u8]| printable(bytes).into_owned();
        let field = |field: &tallyline_layout::query::Field| Field {
            name: text(types.name(field.name())),
            ty: text(type_text(types, field.ty()).as_bytes()),
            bit_offset: field.bit_offset(),
            bits: field.bits(),
            is_bitfield: field.bitfield(),
        };
        Some(Entry {
            keyword: keyword(record).to_owned(),
            name: text(&types.qualified_name(id)),
            size: record.size,
            holes: hole_ranges(types, record),
            padding: summary(types, record).padding(),
            file: text(types.name(record.declared_at.file)),
            line: record.declared_at.line,
            fields: fields(types, record).iter().take(FIELDS).map(field).collect(),
        })
    }

    /// Returns the word by which a source names it.
    pub(super) fn word(&self) -> &str {
        word(&self.name)
    }

    /// Returns the number of bytes in holes.
    pub(super) fn hole_bytes(&self) -> u64 {
        self.holes.iter().fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// Returns the offset and the size of a field as a text.
    pub(super) fn place(field: &Field) -> String {
        match field.is_bitfield {
            true => format!("{}:{}", field.bit_offset / 8, field.bit_offset % 8),
            false => (field.bit_offset / 8).to_string(),
        }
    }

    /// Describes the size, lines, holes and padding.
    pub(super) fn summary(&self, cacheline: u64) -> String {
        let counted = |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let mut parts =
            vec![counted(self.size, "byte"), counted(self.size.div_ceil(cacheline.max(1)), "cache line")];
        if !self.holes.is_empty() {
            let holes = counted(self.holes.len() as u64, "hole");
            parts.push(format!("{holes} ({})", counted(self.hole_bytes(), "byte")));
        }
        if self.padding != 0 {
            parts.push(format!("{} of padding", counted(self.padding, "byte")));
        }
        parts.join(", ")
    }
}

/// Returns the word by which a source names a type: without scopes and the arguments of templates.
pub(super) fn word(name: &str) -> &str {
    let name = name.find('<').filter(|at| *at > 0).map_or(name, |at| &name[..at]);
    name.rsplit([':', '.', '/']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_name_types_by_their_last_word() {
        for (name, expected) in [
            ("a", "a"),
            ("std::vector<a::b, c>", "vector"),
            ("main.Order", "Order"),
            ("x/y.Go", "Go"),
            ("a::B<T>", "B"),
        ] {
            assert_eq!(word(name), expected);
        }
    }
}
