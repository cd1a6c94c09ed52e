//! Proposals of changes to a program's data.

/// A member of a struct at its offset in a proposed layout, with the alignment or padding to declare for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacedMember {
    /// The name of the member.
    pub name: String,
    /// The offset of the member in the proposed layout, in bytes.
    pub offset: u64,
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

/// A proposed change of a program's data: a reordered struct, separate cache lines, a per-CPU counter, or data
/// in place of a pointer or beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proposal {
    /// A new order of a struct's members, with alignments.
    Layout(LayoutProposal),
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

/// Computes the offset of each member in a proposed layout of a struct: groups in the given order, each member at its
/// natural alignment, groups separated as `separation` says. Members are given as (name, size, alignment) in bytes.
pub(crate) fn place(groups: &[Vec<(String, u64, u64)>], separation: Separation) -> Placement {
    let (mut members, mut end, mut align) = (Vec::new(), 0_u64, 1_u64);
    for (group, of_group) in groups.iter().enumerate() {
        for (at, (name, size, natural)) in of_group.iter().enumerate() {
            let natural = (*natural).max(1);
            let is_border = group > 0 && at == 0;
            let (declared, pad) = match separation {
                Separation::Aligned(line) if is_border => (Some(line), 0),
                Separation::Padded(line) if is_border => (None, line),
                _ => (None, 0),
            };
            let start = end.saturating_add(pad).next_multiple_of(declared.unwrap_or(1).max(natural));
            align = align.max(natural).max(declared.unwrap_or(1));
            members.push(PlacedMember {
                name: name.clone(),
                offset: start,
                size: *size,
                align: declared,
                pad,
                group,
            });
            end = start.saturating_add(*size);
        }
    }
    let pad = match separation {
        Separation::Padded(line) if groups.len() > 1 => line,
        _ => 0,
    };
    Placement { members, pad, size: end.saturating_add(pad).next_multiple_of(align), align }
}

/// Returns the bytes that a block of glibc's `malloc` takes: a header of 8 bytes, and a multiple of 16 in all.
pub fn heap_block(size: u64) -> u64 {
    size.checked_add(8).and_then(|size| size.checked_next_multiple_of(16)).unwrap_or(u64::MAX).max(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, size: u64) -> (String, u64, u64) {
        (name.to_owned(), size, size)
    }

    #[test]
    fn blocks_of_the_heap_are_multiples_of_16_with_their_header() {
        assert_eq!([0, 24, 25, 40, 41, 64].map(heap_block), [32, 32, 48, 48, 64, 80]);
        assert_eq!([u64::MAX, u64::MAX - 9].map(heap_block), [u64::MAX; 2], "of a damaged file");
    }

    #[test]
    fn groups_start_on_lines_of_their_own() {
        let groups = [vec![member("limit", 4), member("next", 8)], vec![member("lock", 4)]];
        let placed = place(&groups, Separation::Aligned(64));
        let offsets: Vec<_> = placed.members.iter().map(|member| (member.offset, member.align)).collect();
        assert_eq!(offsets, [(0, None), (8, None), (64, Some(64))]);
        assert_eq!((placed.size, placed.align, placed.pad), (128, 64, 0));
    }

    #[test]
    fn padding_separates_groups_wherever_an_object_begins() {
        let groups = [vec![member("limit", 4), member("next", 8)], vec![member("lock", 4)]];
        let placed = place(&groups, Separation::Padded(64));
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
        let groups = [vec![member("a", 1)], vec![member("b", 8)]];
        let placed = place(&groups, Separation::None);
        assert_eq!(placed.members[1].offset, 8);
        assert_eq!((placed.size, placed.align), (16, 8));
    }
}
