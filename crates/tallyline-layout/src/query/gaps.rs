//! Holes with their places.

use super::{Coverage, Layout, layout};
use tallyline_debuginfo::model::{Record, Types};

/// Unused bytes between members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The first unused byte.
    pub offset: u64,
    /// The size in bytes.
    pub bytes: u64,
    /// The member before it, by its index; none before the first.
    pub(crate) after: Option<usize>,
}

/// Unused bits in the unit of a bitfield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitHole {
    /// The first unused bit, counted from the start of the record.
    pub bit_offset: u64,
    /// The number of bits.
    pub bits: u8,
    /// The member before it, by its index; none before the first.
    pub(crate) after: Option<usize>,
}

/// The unused bytes and bits of a record, in order.
#[derive(Clone, Debug, Default)]
pub struct Holes {
    /// Whole bytes.
    pub bytes: Vec<Hole>,
    /// Bits.
    pub bits: Vec<BitHole>,
    /// Bytes behind the last member.
    pub padding: u64,
    /// Bits behind the last bitfield, if it is the last member.
    pub bit_padding: u8,
}

/// Returns the holes of a struct; a union has none.
pub fn holes(types: &Types, record: &Record) -> Holes {
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
