//! Features of C++ alone: classes that take no bytes, and virtual bases.

use super::hierarchy::Hierarchy;
use crate::model::{Member, MemberKind, Types};
use rustc_hash::FxHashSet;

/// Completes the classes among records, when sizes of members are known.
pub(super) fn finish(types: &mut Types, records: &[usize]) {
    let is_class = |index: &usize| {
        let record = &types.records[*index];
        record.language.is_cpp() && !record.members.is_empty()
    };
    let classes: Vec<usize> = records.iter().copied().filter(is_class).collect();
    let mut hierarchy = Hierarchy::default();
    for class in &classes {
        let range = types.records[*class].members;
        for index in range.start as usize..range.end as usize {
            let Member { kind, ty, .. } = types.members[index];
            if matches!(kind, MemberKind::Base | MemberKind::VirtualBase) && hierarchy.is_empty(types, ty) {
                types.members[index].size = 0;
            }
        }
    }
    for class in &classes {
        overlay(types, &mut hierarchy, *class);
    }
    for class in &classes {
        super::virtual_bases::place(types, &mut hierarchy, *class);
    }
}

/// Finds the members of empty classes that lie over other members (`[[no_unique_address]]`). Where
/// nothing else lies there, the byte is theirs.
fn overlay(types: &mut Types, hierarchy: &mut Hierarchy, class: usize) {
    let record = types.records[class];
    let members = types.members(&record);
    let mut is_empty =
        |member: &Member| member.kind == MemberKind::Data && hierarchy.is_empty(types, member.ty);
    let empty: Vec<bool> = members.iter().map(&mut is_empty).collect();
    if record.is_union() || !empty.contains(&true) {
        return;
    }
    let solid = members.iter().zip(&empty).filter(|(member, empty)| !**empty && member.takes_bytes());
    let mut solid: Vec<(u64, u64)> =
        solid.map(|(member, _)| (member.offset, member.offset.saturating_add(member.size))).collect();
    solid.sort_unstable();
    let mut furthest = 0;
    for (_, end) in &mut solid {
        furthest = furthest.max(*end);
        *end = furthest;
    }
    let mut taken = FxHashSet::default();
    for (index, _) in empty.iter().enumerate().filter(|(_, empty)| **empty) {
        let member = &mut types.members[record.members.start as usize + index];
        let before = solid.partition_point(|(start, _)| *start <= member.offset);
        let covered = before.checked_sub(1).is_some_and(|last| member.offset < solid[last].1);
        if covered || !taken.insert(member.offset) {
            member.overlaid = true;
            member.size = 0;
        }
    }
}
