//! Completion of BTF's types: sizes of members, units of bitfields, and alignments.
//!
//! BTF records no alignment. Where a member starts later than the one before it ends, and later
//! than its own type asks for, an alignment that explains the gap is inferred, as pahole does it.

use crate::abi::{Alignments, size_of};
use crate::model::{Bitfield, Member, Type, TypeId, Types};

/// Fills in what BTF does not record, for every struct and union: the sizes of members, and alignments inferred from
/// gaps, up to `cacheline` bytes.
pub(crate) fn complete(types: &mut Types, cacheline: u64) {
    let mut alignments = Alignments::new(types);
    for index in 0..types.types.len() {
        let id = TypeId(index as u32);
        let Some((record_id, record)) = types.as_record(id) else { continue };
        if record.declaration {
            continue;
        }
        let (range, size) = (record.members, record.size);
        let mut filled = 0;
        for position in range.start as usize..range.end as usize {
            let mut member = types.members[position];
            let stripped = types.strip(member.ty);
            place(types, stripped, &mut member);
            let natural = alignments.of(types, stripped);
            member.align = infer(member.offset, natural, filled, cacheline);
            if member.size != 0 {
                filled = end_of(&member);
            }
            types.members[position] = member;
        }
        let natural = alignments.of(types, id);
        types.records[record_id.index()].align = infer(size, natural, filled, cacheline);
    }
    // whoever prints them asks again
    types.natural = alignments.into_records();
}

/// Sets the size of a member, and for a bitfield the unit that holds it: the naturally aligned one of its
/// type that its first bit is in.
fn place(types: &Types, stripped: TypeId, member: &mut Member) {
    member.size = size_of(types, stripped);
    let unit = member.size.saturating_mul(8);
    let integral = matches!(types.get(stripped), Type::Base { .. } | Type::Enum(_));
    if let Some(Bitfield { size, .. }) = member.bitfield
        && unit != 0
        && integral
    {
        member.offset = member.bit_offset / unit * unit / 8;
        let offset = (member.bit_offset - member.offset * 8) as u32;
        member.bitfield = Some(Bitfield { offset, size });
    }
}

/// Returns the first byte behind a member.
fn end_of(member: &Member) -> u64 {
    member.offset.saturating_add(match member.bitfield {
        Some(field) => u64::from(field.offset + field.size).div_ceil(8),
        None => member.size,
    })
}

/// Returns the alignment that explains why something starts at `offset`, when everything up to `filled` is
/// taken; 0 where nothing needs explaining.
fn infer(offset: u64, natural: u64, filled: u64, cacheline: u64) -> u64 {
    let Some(gap) = offset.checked_sub(filled).filter(|gap| *gap != 0) else { return 0 };
    if !offset.is_multiple_of(2) || gap >= 1 << 31 {
        return 0;
    }
    // the smallest power of two above the gap
    let align = 1_u64 << (u64::BITS - gap.leading_zeros());
    if align <= natural || align == 1 {
        return 0;
    }
    let could_be_line =
        align < cacheline && cacheline.is_multiple_of(align) && offset.is_multiple_of(cacheline);
    if could_be_line { cacheline } else { align }
}

#[cfg(test)]
mod tests {
    use super::infer;

    #[test]
    fn alignment_is_inferred_from_gaps_only() {
        assert_eq!(infer(8, 8, 8, 64), 0, "no gap");
        assert_eq!(infer(8, 8, 4, 64), 0, "the type's own alignment explains it");
        assert_eq!(infer(16, 8, 8, 64), 16);
        assert_eq!(infer(64, 4, 60, 64), 64, "a line is likelier than 8");
        assert_eq!(infer(9, 1, 4, 64), 0, "an odd offset has no alignment");
        assert_eq!(infer(0, 8, 8, 64), 0, "a union's members all start at 0");
    }
}
