//! Holes with their places.

use super::{Coverage, Layout, layout};
use tallyline_debuginfo::model::{Record, Types};

/// A run of unused bytes before a member of a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    /// The offset of the first unused byte.
    pub(crate) offset: u64,
    /// The size in bytes.
    pub(crate) bytes: u64,
    /// The member before it, by its index; none before the first.
    pub(crate) after: Option<usize>,
}

/// A run of unused bits in the storage unit of a bitfield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BitHole {
    /// The offset of the first unused bit in the record.
    pub(crate) bit_offset: u64,
    /// The number of unused bits.
    pub(crate) bits: u8,
    /// The member before it, by its index; none before the first.
    pub(crate) after: Option<usize>,
}

/// The holes and bit holes of a record, in the order of their offsets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holes {
    /// The holes of whole bytes.
    pub(crate) bytes: Vec<Hole>,
    /// The holes of bits.
    pub(crate) bits: Vec<BitHole>,
    /// The number of bytes behind the last member.
    pub(crate) padding: u64,
    /// The number of bits behind the last bitfield, if it is the last member.
    pub(crate) bit_padding: u8,
}

/// Returns the holes of a record as (offset in bytes, size in bytes); unused bits of bitfields do not count.
pub fn hole_ranges(types: &Types, record: &Record) -> Vec<(u64, u64)> {
    holes(types, record).bytes.iter().map(|hole| (hole.offset, hole.bytes)).collect()
}

/// Returns the holes and bit holes of a struct; none for a union.
pub(crate) fn holes(types: &Types, record: &Record) -> Holes {
    let members = types.members(record);
    let Layout { first, gaps, summary } = layout(types, record);
    let mut found = Holes { padding: summary.padding, bit_padding: summary.bit_padding, ..Holes::default() };
    if record.is_union() {
        return found;
    }
    if !types.variants(record).is_empty() {
        let coverage = Coverage::of(types, record);
        found.bytes = coverage.gaps().map(|(offset, bytes)| Hole { offset, bytes, after: None }).collect();
        return found;
    }
    let mut before = None;
    for (index, member) in members.iter().enumerate().filter(|(_, member)| member.takes_bytes()) {
        let gap = before.map_or(first, |before: usize| gaps[before]);
        if let Ok(bytes @ 1..) = u64::try_from(gap.bytes) {
            found.bytes.push(Hole { offset: member.offset.saturating_sub(bytes), bytes, after: before });
        }
        if gap.bits != 0 {
            let end = before.and_then(|before| {
                let before = &members[before];
                before.bitfield.map(|field| before.bit_offset.saturating_add(field.size.into()))
            });
            let bit_offset = end.unwrap_or(member.bit_offset.saturating_sub(gap.bits.into()));
            found.bits.push(BitHole { bit_offset, bits: gap.bits, after: before });
        }
        before = Some(index);
    }
    found
}
