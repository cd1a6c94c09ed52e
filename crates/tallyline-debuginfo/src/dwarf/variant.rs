//! Variants: what a Rust enum may hold, and what says which.
//!
//! A variant part has a member that tells the variants apart, and of each variant the value that
//! selects it and one member, which lies over the whole record.

use crate::model::{Type, Types};

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

/// Returns a value of so many bits, with or without a sign.
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
}
