//! The used bytes of a record whose members may overlap.

use super::Summary;
use tallyline_debuginfo::model::{Member, Record, Types, Variant};

/// The set of bytes of a record that its members occupy, as disjoint ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage {
    // in order, apart from each other
    used: Vec<(u64, u64)>,
    size: u64,
}

impl Coverage {
    /// Computes the bytes occupied by a record's members, or in a tagged union by any variant or the discriminant.
    pub(crate) fn of(types: &Types, record: &Record) -> Coverage {
        let common = types.members(record).iter().chain(types.tag(record));
        let variants = types.variants(record).iter();
        Coverage::new(record.size, common.chain(variants.flat_map(|one| types.variant_members(one))))
    }

    /// Computes the bytes of a tagged union (a Rust enum) that are occupied while this variant is active.
    pub(crate) fn of_variant(types: &Types, record: &Record, variant: &Variant) -> Coverage {
        let common = types.members(record).iter().chain(types.tag(record));
        Coverage::new(record.size, common.chain(types.variant_members(variant)))
    }

    fn new<'t>(size: u64, members: impl Iterator<Item = &'t Member>) -> Coverage {
        let placed = members.filter(|member| member.takes_bytes() && member.size != 0);
        let mut all: Vec<(u64, u64)> =
            placed.map(|member| (member.offset, member.offset.saturating_add(member.size))).collect();
        all.sort_unstable();
        let mut used: Vec<(u64, u64)> = Vec::new();
        for (start, end) in all {
            match used.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => used.push((start, end)),
            }
        }
        Coverage { used, size }
    }

    /// Returns the number of the record's bytes that members occupy.
    pub(crate) fn bytes(&self) -> u64 {
        self.used.iter().fold(0, |sum: u64, (start, end)| sum.saturating_add(end - start))
    }

    /// Returns the ranges of the record's bytes that no member occupies, before and between occupied ones, as (byte
    /// offset, length in bytes).
    pub(crate) fn gaps(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let ends = std::iter::once(0).chain(self.used.iter().map(|one| one.1));
        let starts = self.used.iter().map(|one| one.0);
        ends.zip(starts).filter(|(end, start)| end < start).map(|(end, start)| (end, start - end))
    }

    /// Returns the record's number of holes (ranges that no member occupies, before and between occupied bytes), and
    /// the number of unoccupied bytes at its end.
    pub(crate) fn summary(&self) -> Summary {
        let end = self.used.last().map_or(0, |last| last.1);
        Summary {
            holes: u32::try_from(self.gaps().count()).unwrap_or(u32::MAX),
            padding: self.size.saturating_sub(end),
            ..Summary::default()
        }
    }
}

/// Returns "tag" if a tagged union (a Rust enum) has a discriminant in bytes of its own, "niche" if its discriminant is
/// encoded in unused values of a variant's member; `None` if it has no discriminant.
pub fn tag_word(types: &Types, record: &Record) -> Option<&'static str> {
    let tag = types.tag(record)?;
    let overlaps = |member: &Member| {
        member.offset < tag.offset.saturating_add(tag.size)
            && tag.offset < member.offset.saturating_add(member.size)
    };
    let variants = types.variants(record);
    let is_niche = variants.iter().any(|one| types.variant_members(one).iter().any(overlaps));
    Some(if is_niche { "niche" } else { "tag" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tallyline_debuginfo::model::{NameId, TypeId};

    #[test]
    fn members_over_each_other_count_once() {
        let member = |offset, size| Member { size, ..Member::new(NameId::NONE, TypeId::VOID, offset) };
        let members = [member(8, 4), member(2, 2), member(8, 2), member(10, 4), member(4, 0)];
        let coverage = Coverage::new(16, members.iter());
        assert_eq!(coverage.bytes(), 8);
        assert_eq!(coverage.summary(), Summary { holes: 2, padding: 2, ..Summary::default() });
        assert_eq!(Coverage::new(3, [].iter()).summary().padding, 3);
        assert_eq!(Coverage::new(3, [member(u64::MAX, u64::MAX)].iter()).bytes(), 0);
    }
}
