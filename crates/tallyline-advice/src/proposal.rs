//! Proposals of changes to a program's data.

/// A member of a struct with its offset in a proposed layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacedMember {
    /// The name.
    pub name: String,
    /// The first byte.
    pub offset: u64,
    /// The size in bytes.
    pub size: u64,
    /// The alignment to declare; none where the member's own does.
    pub align: Option<u64>,
    /// The group that it is in, counted from 0.
    pub group: usize,
}

/// A proposed layout of a struct or class: its members in a new order, with alignments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayoutProposal {
    /// The type's name.
    pub ty: String,
    /// The file of its declaration.
    pub file: String,
    /// The line of its declaration.
    pub line: u64,
    /// The members in their new order.
    pub members: Vec<PlacedMember>,
    /// The alignment to declare for the type; none where it stays.
    pub align: Option<u64>,
    /// The size in bytes before and after.
    pub sizes: (u64, u64),
    /// Cache lines that an object takes, before and after.
    pub lines: (u64, u64),
    /// The purpose of each group.
    pub groups: Vec<String>,
}

/// A proposed change of a program's data: another layout, padding, counters per CPU, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proposal {
    /// Another order of a struct's members, with alignments.
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
    /// A copy of a key beside the pointer to it, or the object in the place of the pointer.
    Embed {
        /// The pointer.
        pointer: String,
        /// The data that is read through it.
        target: String,
    },
}

/// Computes the offsets of members in a new layout, group after group: each member at its alignment, each
/// group but the first on a cache line of its own where `separate` says so. The members are (name, size,
/// alignment).
pub(crate) fn place(
    groups: &[Vec<(String, u64, u64)>],
    separate: bool,
    line_size: u64,
) -> (Vec<PlacedMember>, u64, u64) {
    let (mut members, mut end, mut align) = (Vec::new(), 0_u64, 1_u64);
    for (group, of_group) in groups.iter().enumerate() {
        for (at, (name, size, natural)) in of_group.iter().enumerate() {
            let natural = (*natural).max(1);
            let declared = (separate && group > 0 && at == 0).then_some(line_size);
            let start = end.next_multiple_of(declared.unwrap_or(1).max(natural));
            align = align.max(natural).max(declared.unwrap_or(1));
            members.push(PlacedMember {
                name: name.clone(),
                offset: start,
                size: *size,
                align: declared,
                group,
            });
            end = start.saturating_add(*size);
        }
    }
    (members, end.next_multiple_of(align), align)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, size: u64) -> (String, u64, u64) {
        (name.to_owned(), size, size)
    }

    #[test]
    fn groups_start_on_lines_of_their_own() {
        let groups = [vec![member("limit", 4), member("next", 8)], vec![member("lock", 4)]];
        let (members, size, align) = place(&groups, true, 64);
        let offsets: Vec<_> = members.iter().map(|member| (member.offset, member.align)).collect();
        assert_eq!(offsets, [(0, None), (8, None), (64, Some(64))]);
        assert_eq!((size, align), (128, 64));
    }

    #[test]
    fn without_separation_members_follow_by_their_alignment() {
        let groups = [vec![member("a", 1)], vec![member("b", 8)]];
        let (members, size, align) = place(&groups, false, 64);
        assert_eq!(members[1].offset, 8);
        assert_eq!((size, align), (16, 8));
    }
}
