//! Variants: what a Rust enum may hold, and what says which.
//!
//! A variant part has a member that tells the variants apart, and of each variant the value that
//! selects it and one member, which lies over the whole record.

use super::load::{Cursor, Loader, Need};
use crate::error::Result;
use crate::model::{Record, RecordKind, Type, TypeId, Types, Variant};
use gimli::{AttributeValue, constants};

impl<'a> Loader<'_, 'a> {
    /// Reads the variant part that was read as an entry into its record.
    pub(super) fn variant_part(
        &mut self,
        cursor: &mut Cursor<'_, '_, 'a>,
        record: &mut Record,
    ) -> Result<()> {
        let place = cursor.entry.target(self.units, cursor.unit, constants::DW_AT_discr);
        let mut tag = None;
        let mut signed = false;
        let mut variants = Vec::new();
        let tags = [constants::DW_TAG_member, constants::DW_TAG_variant];
        self.children(cursor, &tags, |loader, child| {
            match child.entry.tag {
                constants::DW_TAG_member if place == Some(child.place) => {
                    signed = loader.is_signed(child)?;
                    let need = loader.need_of_part(child);
                    tag = Some(loader.member(child, RecordKind::Struct, need)?);
                }
                constants::DW_TAG_variant => variants.push(loader.variant(child)?),
                _ => {}
            }
            Ok(())
        })?;
        if let Some(tag) = tag {
            record.tag = self.types.push_members(&[tag])?;
        }
        record.tag_signed = signed;
        record.variants = self.types.push_variants(&variants)?;
        Ok(())
    }

    fn variant(&mut self, cursor: &mut Cursor<'_, '_, 'a>) -> Result<Variant> {
        let tag = cursor.entry.value(constants::DW_AT_discr_value).and_then(|value| match value {
            AttributeValue::Sdata(value) => Some(value.into()),
            AttributeValue::Block(block) => wide(block.slice(), self.units.little_endian),
            _ => cursor.entry.number(constants::DW_AT_discr_value).map(i128::from),
        });
        let mut members = Vec::new();
        self.children(cursor, &[constants::DW_TAG_member], |loader, child| {
            // what a variant holds is a part of the record itself
            members.push(loader.member(child, RecordKind::Struct, Need::Layout)?);
            Ok(())
        })?;
        let (name, ty) = match members[..] {
            [only] => (only.name, only.ty),
            _ => (crate::model::NameId::NONE, TypeId::VOID),
        };
        Ok(Variant { name, tag, ty, members: self.types.push_members(&members)? })
    }
}

/// A value of up to 16 bytes.
fn wide(bytes: &[u8], little_endian: bool) -> Option<i128> {
    let mut all = [0; 16];
    if little_endian {
        all.get_mut(..bytes.len())?.copy_from_slice(bytes);
        return Some(i128::from_le_bytes(all));
    }
    all.get_mut(16_usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(all))
}

/// Completes the variants of records when every type is known: what they hold are the members of
/// their types, and the values that select them are as wide as the tag.
pub(super) fn finish(types: &mut Types, records: &[usize]) {
    for index in records {
        let record = types.records[*index];
        let bits = types.tag(&record).map_or(0, |tag| tag.size.saturating_mul(8));
        for position in record.variants.start..record.variants.end {
            let mut variant = types.variants[position as usize];
            variant.tag = variant.tag.map(|tag| extend(tag, bits, record.tag_signed));
            // Rust's variants have one member, at the start, which is a struct made for it
            if record.language.is_rust()
                && let Type::Record(held) = types.get(variant.ty)
                && types.variant_members(&variant).iter().all(|member| member.offset == 0)
            {
                let held = types.record(held);
                variant.members = held.members;
                // of a state machine's states the members have numbers, and the structs names
                let numbered = types.name(variant.name).iter().all(u8::is_ascii_digit);
                if numbered && held.name.is_some() {
                    variant.name = held.name;
                }
            }
            types.variants[position as usize] = variant;
        }
    }
}

/// A value of so many bits, with or without a sign.
fn extend(value: i128, bits: u64, signed: bool) -> i128 {
    let Some(unused) = 128_u64.checked_sub(bits).filter(|unused| *unused < 128) else { return value };
    let shifted = (value as u128) << unused;
    if signed { (shifted as i128) >> unused } else { (shifted >> unused) as i128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_as_wide_as_the_tag() {
        assert_eq!(extend(0xff, 8, true), -1);
        assert_eq!(extend(-1, 8, false), 0xff);
        assert_eq!(extend(-1, 64, false), i128::from(u64::MAX));
        assert_eq!(extend(7, 128, false), 7);
        assert_eq!(extend(7, 0, false), 7);
    }

    #[test]
    fn wide_values_are_read_in_both_byte_orders() {
        assert_eq!(wide(&[1, 2], true), Some(0x201));
        assert_eq!(wide(&[1, 2], false), Some(0x102));
        assert_eq!(wide(&[0; 17], true), None);
        assert_eq!(wide(&[0; 17], false), None);
    }
}
