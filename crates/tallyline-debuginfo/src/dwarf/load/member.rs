//! Members and bases of records.

use super::{Cursor, Loader, Need};
use crate::dwarf::finish::FROM_RECORD;
use crate::error::Result;
use crate::model::{Access, Bitfield, Member, MemberKind, Record, RecordKind, UNPLACED};
use gimli::constants;

/// The bit offset of a member whose place is given from the other end, as DWARF 2 and 3 do, until
/// the size of its unit is known: see [`finish`](super::finish).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BitPlace {
    /// Counted from the start of the record.
    FromRecord,
    /// Counted in the unit at the member's offset, by the order of the machine.
    InUnit,
}

impl<'a> Loader<'_, 'a> {
    /// Reads the members, bases and variants of the record that was read.
    pub(in crate::dwarf) fn record_members(
        &mut self,
        cursor: &mut Cursor<'_, '_, 'a>,
        record: &mut Record,
    ) -> Result<()> {
        let mut members = std::mem::take(&mut self.members);
        members.clear();
        let kind = record.kind;
        // Zig bases records of bits on a number
        let under = match cursor.entry.has(constants::DW_AT_byte_size) {
            true => None,
            false => self.underlying(cursor)?,
        };
        let parts = [
            constants::DW_TAG_member,
            constants::DW_TAG_inheritance,
            constants::DW_TAG_variable,
            constants::DW_TAG_variant_part,
        ];
        self.children(cursor, &parts, |loader, child| {
            match child.entry.tag {
                constants::DW_TAG_member | constants::DW_TAG_inheritance => {
                    members.push(Member {
                        declared: u16::try_from(members.len()).unwrap_or(u16::MAX),
                        ..loader.member(child, kind, loader.need_of_part(child))?
                    });
                }
                // since version 5, what is static in a class is a variable
                constants::DW_TAG_variable => members.push(loader.static_member(child, kind)?),
                constants::DW_TAG_variant_part => loader.variant_part(child, record)?,
                _ => {}
            }
            Ok(())
        })?;
        if let Some(under) = under {
            record.size = under.size;
            fill_bits(&mut members, under.bits);
        }
        // one that is tagged is no union to the others
        if !record.variants.is_empty() && record.is_union() {
            record.kind = RecordKind::Struct;
        }
        record.members = self.types.push_members(&members)?;
        self.members = members;
        Ok(())
    }

    /// Reads a member or a base.
    pub(in crate::dwarf) fn member(
        &mut self,
        cursor: &Cursor<'_, '_, 'a>,
        record: RecordKind,
        need: Need,
    ) -> Result<Member> {
        let entry = &cursor.entry;
        let kind = match entry.tag {
            constants::DW_TAG_inheritance => match entry.number(constants::DW_AT_virtuality) {
                Some(virtuality) if virtuality != 0 => MemberKind::VirtualBase,
                _ => MemberKind::Base,
            },
            _ if entry.has(constants::DW_AT_data_member_location)
                || entry.has(constants::DW_AT_data_bit_offset)
                || record == RecordKind::Union && !entry.flag(constants::DW_AT_external) =>
            {
                MemberKind::Data
            }
            _ => return self.static_member(cursor, record),
        };
        let name = self.name(cursor)?;
        let from_record = entry.offset(constants::DW_AT_data_bit_offset);
        let bits = entry.number(constants::DW_AT_bit_size).unwrap_or(0);
        let (how, bit) = match from_record {
            Some(bit) => (BitPlace::FromRecord, bit),
            None => (BitPlace::InUnit, entry.number(constants::DW_AT_bit_offset).unwrap_or(0)),
        };
        let bitfield = (bits != 0).then_some(Bitfield {
            // as it is stored, until the unit is known
            offset: if how == BitPlace::InUnit { bit as u32 } else { FROM_RECORD },
            size: u32::try_from(bits).unwrap_or(u32::MAX),
        });
        let offset = match entry.offset(constants::DW_AT_data_member_location) {
            Some(offset) => offset,
            None if kind == MemberKind::VirtualBase => UNPLACED,
            // behind what is as long as its contents say
            None if entry.has(constants::DW_AT_data_member_location) => UNPLACED,
            None => 0,
        };
        let ty = match kind {
            MemberKind::Base | MemberKind::VirtualBase if self.definitions.is_some() => {
                let base = self.target_of(cursor, constants::DW_AT_type)?;
                let base = self.one_for_all(base)?;
                self.refer(base, Need::Layout)?
            }
            _ => self.refer_by(cursor, constants::DW_AT_type, need)?,
        };
        // in Rust nobody asks for the alignment of a member: it is the natural one of its type
        let align = if self.is_rust(cursor) { None } else { entry.number(constants::DW_AT_alignment) };
        Ok(Member {
            bit_offset: if how == BitPlace::FromRecord { bit } else { offset.saturating_mul(8) },
            size: entry.number(constants::DW_AT_byte_size).unwrap_or(0),
            bitfield,
            align: align.unwrap_or(0),
            kind,
            access: access(cursor, record),
            artificial: entry.flag(constants::DW_AT_artificial),
            declared_at: self.position(cursor)?,
            ..Member::new(name, ty, if how == BitPlace::FromRecord { bit / 8 } else { offset })
        })
    }

    /// Reads a member that takes no place.
    fn static_member(&mut self, cursor: &Cursor<'_, '_, 'a>, record: RecordKind) -> Result<Member> {
        let name = self.name(cursor)?;
        let ty = self.refer_by(cursor, constants::DW_AT_type, Need::Name)?;
        Ok(Member {
            kind: MemberKind::Static,
            access: access(cursor, record),
            artificial: cursor.entry.flag(constants::DW_AT_artificial),
            declared_at: self.position(cursor)?,
            ..Member::new(name, ty, 0)
        })
    }

    /// Returns `true` if the unit's language is Rust.
    pub(in crate::dwarf) fn is_rust(&self, cursor: &Cursor<'_, '_, 'a>) -> bool {
        cursor.context.language == u64::from(constants::DW_LANG_Rust.0)
    }
}

/// Makes bitfields of members that are given by their first bit only: each goes up to the next.
fn fill_bits(members: &mut [Member], all: u64) {
    let starts = members.iter().skip(1).map(|member| member.bit_offset);
    let ends: Vec<u64> = starts.chain([all]).collect();
    for (member, end) in members.iter_mut().zip(ends) {
        if let (MemberKind::Data, None) = (member.kind, member.bitfield) {
            let size = u32::try_from(end.saturating_sub(member.bit_offset)).unwrap_or(u32::MAX);
            // what takes no bits is not laid out
            member.bitfield = (size != 0).then_some(Bitfield { offset: FROM_RECORD, size });
        }
    }
}

/// Returns the access to a member: the default of the record's kind where there is no attribute.
fn access(cursor: &Cursor<'_, '_, '_>, record: RecordKind) -> Access {
    let said = cursor.entry.number(constants::DW_AT_accessibility);
    match said.and_then(|access| u8::try_from(access).ok()).map(constants::DwAccess) {
        Some(constants::DW_ACCESS_private) => Access::Private,
        Some(constants::DW_ACCESS_protected) => Access::Protected,
        None if record == RecordKind::Class && cursor.context.is_cpp() => Access::Private,
        _ => Access::Public,
    }
}
