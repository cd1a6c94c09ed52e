//! Proposals of changes to a program's data.

use super::evidence::{MemberInfo, Mobility};
use std::ops::Range;

/// A member of a struct at its offset in a proposed layout, with the alignment or padding to declare for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacedMember {
    /// The name of the member.
    pub name: String,
    /// The offset of the member in the proposed layout, in bytes.
    pub offset: u64,
    /// The offset of the member in the present layout, in bytes.
    pub from: u64,
    /// `true` for a part of the object that is not declared as a member: a base class, the pointer to virtual
    /// functions.
    pub is_implicit: bool,
    /// The size of the member in bytes.
    pub size: u64,
    /// The alignment to declare; none where the member's own does.
    pub align: Option<u64>,
    /// Bytes of padding to declare in front of the member.
    pub pad: u64,
    /// The group that the member is in, counted from 0.
    pub group: usize,
}

/// A proposed layout of a struct or class: its members in a new order, with alignments, padding and sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayoutProposal {
    /// The name of the struct or class.
    pub ty: String,
    /// The file of its declaration.
    pub file: String,
    /// The line of its declaration.
    pub line: u64,
    /// The members in their new order.
    pub members: Vec<PlacedMember>,
    /// The alignment to declare for the type; none where it stays.
    pub align: Option<u64>,
    /// Bytes of padding to declare behind the last member.
    pub pad: u64,
    /// The size in bytes before and after.
    pub sizes: (u64, u64),
    /// Cache lines that an object takes, before and after.
    pub lines: (u64, u64),
    /// The purpose of each group.
    pub groups: Vec<String>,
}

/// Returns the place of a member in a proposed layout.
pub(crate) fn placed<'m>(members: &'m [PlacedMember], member: &MemberInfo) -> Option<&'m PlacedMember> {
    members.iter().find(|placed| placed.from == member.offset && placed.name == member.name)
}

/// A proposed change of a program's data: a reordered struct, separate cache lines, a per-CPU counter, or data
/// in place of a pointer or beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proposal {
    /// A new order of a struct's members, with alignments.
    Layout(LayoutProposal),
    /// No proposal: the order of the struct's members has to stay.
    Refused {
        /// The name of the struct or class.
        ty: String,
        /// The file of its declaration.
        file: String,
        /// The line of its declaration.
        line: u64,
        /// The reason.
        why: String,
    },
    /// Elements or variables on lines of their own.
    Apart {
        /// The type or variables.
        names: Vec<String>,
        /// The file of the declaration; empty where it is not known.
        file: String,
        /// The line of the declaration.
        line: u64,
        /// The alignment in bytes.
        align: u64,
        /// Bytes of padding to declare behind the members in the place of the alignment, which allocators of objects
        /// would not keep; 0 where the alignment is declared.
        pad: u64,
        /// The size of an element before and after.
        sizes: (u64, u64),
    },
    /// A counter of statctr in the place of a shared word.
    Counter {
        /// The fields or variables.
        names: Vec<String>,
        /// The lines of code.
        code: Vec<String>,
        /// Bytes for each CPU that counts, and of the handle.
        bytes: (u64, u64),
    },
    /// An object in the place of the only pointer to it.
    Embed {
        /// The name of the pointer.
        pointer: String,
        /// The type of the object.
        target: String,
        /// The size of the object with the pointer, before and after.
        sizes: (u64, u64),
    },
    /// A copy of an object's fields beside a pointer to it, for code that seldom reads more of the object.
    CopyBeside {
        /// The name of the pointer.
        pointer: String,
        /// The fields.
        fields: Vec<String>,
        /// The size of the object with the pointer, before and after.
        sizes: (u64, u64),
    },
}

/// The way in which a proposed layout puts groups of a struct's members on separate cache lines: by alignment, by
/// padding, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separation {
    /// No separation: members follow each other.
    None,
    /// An alignment of each group, which needs objects that are aligned.
    Aligned(u64),
    /// Padding of so many bytes between groups and behind the last: enough wherever an object begins.
    Padded(u64),
}

/// A computed layout of a struct: its members at their new offsets, with the struct's size, alignment and trailing
/// padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The members in their order.
    pub(crate) members: Vec<PlacedMember>,
    /// Bytes of padding behind the last.
    pub(crate) pad: u64,
    /// The size in bytes.
    pub(crate) size: u64,
    /// The alignment in bytes.
    pub(crate) align: u64,
}

impl Placement {
    /// Returns the offset of the first byte behind the last member.
    pub(crate) fn end(&self) -> u64 {
        self.members.iter().map(|member| member.offset.saturating_add(member.size)).max().unwrap_or(0)
    }
}

/// Returns the runs of members, which are in the order of their offsets, that a new order keeps together at the same
/// distances: compilers place bit-fields, and what overlaps, by what is in front of them. The first member of each has
/// the largest alignment in it, so that the distances stay wherever it lies; [one in front](is_front) may not.
pub(crate) fn units(members: &[MemberInfo]) -> Vec<Range<usize>> {
    let mut units: Vec<Range<usize>> = Vec::new();
    for (at, member) in members.iter().enumerate() {
        let Some(last) = units.last().cloned() else {
            units.push(at..at + 1);
            continue;
        };
        let before = &members[last.clone()];
        let is_joined = match member.mobility {
            Mobility::Front | Mobility::Attached(_) => true,
            Mobility::End => is_end(before),
            Mobility::Free => before.iter().any(|other| member.offset < other.end()),
        };
        if !is_joined {
            units.push(at..at + 1);
            continue;
        }
        let mut start = if member.mobility == Mobility::Front { 0 } else { last.start };
        units.retain(|unit| unit.start < start);
        while align(&members[start..=at]) > members[start].align.max(1) {
            let Some(unit) = units.pop() else { break };
            start = unit.start;
        }
        units.push(start..at + 1);
    }
    units
}

/// Returns the alignment of a unit of members.
pub(crate) fn align(unit: &[MemberInfo]) -> u64 {
    unit.iter().map(|member| member.align).max().unwrap_or(1).max(1)
}

/// Returns the bytes from the first to the last of a unit of members.
pub(crate) fn size(unit: &[MemberInfo]) -> u64 {
    let end = unit.iter().map(MemberInfo::end).max().unwrap_or(0);
    end.saturating_sub(unit.first().map_or(0, |member| member.offset))
}

/// Returns `true` if the first unit of a type stays in front: it has a base class or the pointer to virtual functions,
/// or would have other distances elsewhere.
pub(crate) fn is_front(unit: &[MemberInfo]) -> bool {
    let is_other = |first: &MemberInfo| {
        matches!(first.mobility, Mobility::Attached(_)) || align(unit) > first.align.max(1)
    };
    unit.iter().any(|member| member.mobility == Mobility::Front) || unit.first().is_some_and(is_other)
}

/// Returns `true` if a unit stays at the end of the type.
pub(crate) fn is_end(unit: &[MemberInfo]) -> bool {
    unit.iter().any(|member| member.mobility == Mobility::End)
}

/// Computes the offset of each member in a proposed layout of a struct: groups of [units](units()) in the given order,
/// each unit at its natural alignment, groups separated as `separation` says.
pub(crate) fn place(groups: &[Vec<&[MemberInfo]>], separation: Separation) -> Placement {
    let (mut members, mut end, mut most) = (Vec::new(), 0_u64, 1_u64);
    for (group, of_group) in groups.iter().enumerate() {
        for (at, unit) in of_group.iter().enumerate() {
            let natural = align(unit);
            let is_border = group > 0 && at == 0;
            let (declared, pad) = match separation {
                Separation::Aligned(line) if is_border => (Some(line), 0),
                Separation::Padded(line) if is_border => (None, line),
                _ => (None, 0),
            };
            let start = up(end.saturating_add(pad), declared.unwrap_or(1).max(natural));
            most = most.max(natural).max(declared.unwrap_or(1));
            let first = unit.first().map_or(0, |member| member.offset);
            members.extend(unit.iter().enumerate().map(|(at, member)| PlacedMember {
                name: member.name.clone(),
                offset: start.saturating_add(member.offset.saturating_sub(first)),
                from: member.offset,
                is_implicit: member.is_implicit,
                size: member.size,
                align: declared.filter(|_| at == 0),
                pad: if at == 0 { pad } else { 0 },
                group,
            }));
            end = start.saturating_add(size(unit));
        }
    }
    // behind a flexible array there is no place for padding
    let last = groups.last().and_then(|group| group.last()).and_then(|unit| unit.last());
    let is_open = last.is_some_and(|member| member.mobility == Mobility::End && !member.is_implicit);
    let pad = match separation {
        Separation::Padded(line) if groups.len() > 1 && !is_open => line,
        _ => 0,
    };
    Placement { members, pad, size: up(end.saturating_add(pad), most), align: most }
}

/// Returns the first multiple of an alignment from an offset on; of a damaged file's, the largest number.
pub(crate) fn up(offset: u64, align: u64) -> u64 {
    offset.checked_next_multiple_of(align).unwrap_or(u64::MAX)
}

/// Returns the bytes that a block of glibc's `malloc` takes: a header of 8 bytes, and a multiple of 16 in all.
pub fn heap_block(size: u64) -> u64 {
    size.checked_add(8).and_then(|size| size.checked_next_multiple_of(16)).unwrap_or(u64::MAX).max(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns members of some sizes, each at its alignment.
    fn members(all: &[(&str, u64)]) -> Vec<MemberInfo> {
        let mut end = 0_u64;
        let placed = all.iter().map(|(name, size)| {
            let offset = end.next_multiple_of(*size);
            end = offset + size;
            MemberInfo { name: (*name).to_owned(), offset, size: *size, align: *size, ..Default::default() }
        });
        placed.collect()
    }

    /// Returns groups of members that are a unit each.
    fn groups(all: &[MemberInfo], border: usize) -> [Vec<&[MemberInfo]>; 2] {
        let (front, back) = all.split_at(border);
        [front.chunks(1).collect(), back.chunks(1).collect()]
    }

    #[test]
    fn blocks_of_the_heap_are_multiples_of_16_with_their_header() {
        assert_eq!([0, 24, 25, 40, 41, 64].map(heap_block), [32, 32, 48, 48, 64, 80]);
        assert_eq!([u64::MAX, u64::MAX - 9].map(heap_block), [u64::MAX; 2], "of a damaged file");
    }

    #[test]
    fn a_place_beyond_all_numbers_is_the_last_one() {
        assert_eq!([up(65, 64), up(u64::MAX, 64), up(u64::MAX - 3, 8)], [128, u64::MAX, u64::MAX]);
    }

    #[test]
    fn groups_start_on_lines_of_their_own() {
        let all = members(&[("limit", 4), ("next", 8), ("lock", 4)]);
        let placed = place(&groups(&all, 2), Separation::Aligned(64));
        let offsets: Vec<_> = placed.members.iter().map(|member| (member.offset, member.align)).collect();
        assert_eq!(offsets, [(0, None), (8, None), (64, Some(64))]);
        assert_eq!((placed.size, placed.align, placed.pad), (128, 64, 0));
    }

    #[test]
    fn padding_separates_groups_wherever_an_object_begins() {
        let all = members(&[("limit", 4), ("next", 8), ("lock", 4)]);
        let placed = place(&groups(&all, 2), Separation::Padded(64));
        let members: Vec<_> = placed.members.iter().map(|member| (member.offset, member.pad)).collect();
        assert_eq!(members, [(0, 0), (8, 0), (80, 64)]);
        assert_eq!((placed.size, placed.align, placed.pad), (152, 8, 64));
        for start in (0..64).step_by(8) {
            let line = |offset: u64| (start + offset) / 64;
            assert!(line(15) != line(80) && line(83) != line(placed.size), "from {start}");
        }
    }

    #[test]
    fn without_separation_members_follow_by_their_alignment() {
        let all = members(&[("a", 1), ("b", 8)]);
        let placed = place(&groups(&all, 1), Separation::None);
        assert_eq!(placed.members[1].offset, 8);
        assert_eq!((placed.size, placed.align), (16, 8));
    }

    #[test]
    fn what_cannot_leave_the_member_in_front_of_it_moves_with_it() {
        let bits = |name: &str, offset, align| MemberInfo {
            name: name.to_owned(),
            offset,
            size: 1,
            align,
            mobility: Mobility::Attached("a bit-field"),
            ..Default::default()
        };
        let mut all = members(&[("rx", 8), ("tx", 8)]);
        all.extend([bits("one", 16, 4), bits("two", 16, 4)]);
        all.push(MemberInfo { offset: 24, ..members(&[("next", 8)])[0].clone() });
        assert_eq!(units(&all), [0..1, 1..4, 4..5]);
        let placed = place(&[vec![&all[4..5], &all[0..1]], vec![&all[1..4]]], Separation::Aligned(64));
        let places: Vec<_> =
            placed.members.iter().map(|of| (of.name.as_str(), of.offset, of.align)).collect();
        assert_eq!(
            places,
            [("next", 0, None), ("rx", 8, None), ("tx", 64, Some(64)), ("one", 72, None), ("two", 72, None)]
        );
        // bits of an int behind a byte are where they are by the int in front of both
        let mut all = members(&[("id", 8), ("flags", 4), ("kind", 1)]);
        all.push(bits("bits", 13, 4));
        assert_eq!(units(&all), [0..1, 1..4]);
        let mut all = members(&[("kind", 1)]);
        all.push(bits("bits", 1, 4));
        assert!(units(&all).len() == 1 && is_front(&all), "it is aligned at the front alone");
    }

    #[test]
    fn bases_and_what_overlaps_them_are_one_unit_in_front() {
        let mut all = members(&[("_vptr.Q", 8), ("B <ancestor>", 8), ("tail", 8), ("size", 8)]);
        for front in &mut all[..2] {
            (front.mobility, front.is_implicit) = (Mobility::Front, true);
        }
        assert_eq!(units(&all), [0..2, 2..3, 3..4]);
        assert!(is_front(&all[0..2]) && !is_front(&all[2..3]));
        // a member in the padding at the end of the base
        (all[2].offset, all[2].size, all[2].align) = (12, 4, 4);
        assert_eq!(units(&all), [0..3, 3..4]);
        assert_eq!(units(&[]), []);
        let mut union = members(&[("one", 8), ("other", 8)]);
        union[1].offset = 0;
        assert_eq!(units(&union).len(), 1);
    }
}
