//! The variant parts of records, as the loader reads them.

use super::{Cursor, Loader, Need};
use crate::error::Result;
use crate::model::{Record, RecordKind, TypeId, Variant};
use gimli::{AttributeValue, constants};

impl<'a> Loader<'_, 'a> {
    /// Reads the variant part that was read as an entry into its record.
    pub(in crate::dwarf) fn variant_part(
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

/// Returns a value of up to 16 bytes.
fn wide(bytes: &[u8], little_endian: bool) -> Option<i128> {
    let mut all = [0; 16];
    if little_endian {
        all.get_mut(..bytes.len())?.copy_from_slice(bytes);
        return Some(i128::from_le_bytes(all));
    }
    all.get_mut(16_usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_values_are_read_in_both_byte_orders() {
        assert_eq!(wide(&[1, 2], true), Some(0x201));
        assert_eq!(wide(&[1, 2], false), Some(0x102));
        assert_eq!(wide(&[0; 17], true), None);
        assert_eq!(wide(&[0; 17], false), None);
    }
}
