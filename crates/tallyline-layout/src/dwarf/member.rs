//! Members and bases of records.

use super::load::{Cursor, Loader, Need};
use crate::error::Result;
use crate::model::{Bitfield, Member, MemberKind, Range, RecordKind};
use gimli::constants;

/// The bit offset of a member whose place is given from the other end, as DWARF 2 and 3 do, until
/// the size of its unit is known: see [`finish`](super::finish).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BitPlace {
    /// Counted from the start of the record.
    FromRecord,
    /// Counted in the unit at the member's offset, by the order of the machine.
    InUnit,
}

const LANGUAGE_RUST: u64 = 0x1c;

impl<'a> Loader<'_, 'a> {
    /// Reads the members and bases of the record that was read.
    pub(super) fn record_members(
        &mut self,
        cursor: &mut Cursor<'_, '_, 'a>,
        kind: RecordKind,
    ) -> Result<Range> {
        let mut members = std::mem::take(&mut self.members);
        members.clear();
        self.children(cursor, |loader, child| {
            if matches!(child.entry.tag, constants::DW_TAG_member | constants::DW_TAG_inheritance) {
                members.push(loader.member(child, kind)?);
            }
            Ok(())
        })?;
        // Rust lists members as they are declared, not as they lie
        if cursor.context.language == LANGUAGE_RUST {
            members.sort_by_key(|member| member.offset);
        }
        let range = self.types.push_members(&members);
        self.members = members;
        range
    }

    fn member(&mut self, cursor: &Cursor<'_, '_, 'a>, record: RecordKind) -> Result<Member> {
        let entry = &cursor.entry;
        let name = self.name(cursor)?;
        let place = entry.offset(constants::DW_AT_data_member_location);
        let from_record = entry.offset(constants::DW_AT_data_bit_offset);
        let kind = match entry.tag {
            constants::DW_TAG_inheritance => match entry.number(constants::DW_AT_virtuality) {
                Some(virtuality) if virtuality != 0 => MemberKind::VirtualBase,
                _ => MemberKind::Base,
            },
            _ if entry.has(constants::DW_AT_data_member_location)
                || entry.has(constants::DW_AT_data_bit_offset)
                || record == RecordKind::Union =>
            {
                MemberKind::Data
            }
            _ => MemberKind::Static,
        };
        let bits = entry.number(constants::DW_AT_bit_size).unwrap_or(0);
        let (how, bit) = match from_record {
            Some(bit) => (BitPlace::FromRecord, bit),
            None => (BitPlace::InUnit, entry.number(constants::DW_AT_bit_offset).unwrap_or(0)),
        };
        let bitfield = (bits != 0).then_some(Bitfield {
            // as it is stored, until the unit is known
            offset: if how == BitPlace::InUnit { bit as u32 } else { u32::MAX },
            size: u32::try_from(bits).unwrap_or(u32::MAX),
        });
        let offset = place.unwrap_or(0);
        Ok(Member {
            name,
            ty: self.refer_by(cursor, constants::DW_AT_type, Need::Layout)?,
            offset: if how == BitPlace::FromRecord { bit / 8 } else { offset },
            bit_offset: if how == BitPlace::FromRecord { bit } else { offset.saturating_mul(8) },
            size: entry.number(constants::DW_AT_byte_size).unwrap_or(0),
            bitfield,
            align: entry.number(constants::DW_AT_alignment).unwrap_or(0),
            kind,
        })
    }
}
