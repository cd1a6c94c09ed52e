//! Causes of differences: types that changed only because they contain types that changed.

use super::TypeChange;
use std::collections::HashMap;

/// Attributes changes of types' layouts between two compared files to changes of the types that they contain: returns,
/// for each change, the indices in `changes` of those that fully explain it, the largest first; empty if the type
/// itself changed. Linear in the number of changed members.
pub fn causes(changes: &[TypeChange]) -> Vec<Vec<usize>> {
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, change) in changes.iter().enumerate() {
        if change.old.is_some() && change.new.is_some() && change.growth() != 0 {
            by_name.entry(&change.name).or_default().push(index);
        }
    }
    (0..changes.len()).map(|index| explained_by(changes, index, &by_name)).collect()
}

/// Returns the changed types that explain a change altogether: each member that has another size is one of them, or as
/// many of them as before, and no member came or went.
fn explained_by(changes: &[TypeChange], index: usize, by_name: &HashMap<&str, Vec<usize>>) -> Vec<usize> {
    let change = &changes[index];
    if change.old.is_none() || change.new.is_none() {
        return Vec::new();
    }
    let mut direct: Vec<usize> = Vec::new();
    for member in &change.members {
        let (Some(old), Some(new)) = (&member.old, &member.new) else { return Vec::new() };
        if old.bits == new.bits {
            if old.bit_offset == new.bit_offset {
                // another type of the same size at the same place
                return Vec::new();
            }
            continue;
        }
        // the members of an anonymous type are among the changes themselves
        if member.is_anonymous {
            continue;
        }
        let named = member.record.as_ref().and_then(|name| by_name.get(name.as_str()));
        let fits = |other: &usize| *other != index && holds_as_many(&changes[*other], old.bits, new.bits);
        match named.and_then(|named| named.iter().copied().find(|other| fits(other))) {
            Some(other) if !direct.contains(&other) => direct.push(other),
            Some(_) => {}
            None => return Vec::new(),
        }
    }
    direct.sort_by_key(|other| std::cmp::Reverse(changes[*other].growth().unsigned_abs()));
    direct
}

/// Returns `true` if a member of these sizes in bits holds the same number of elements of a changed type as before.
fn holds_as_many(of: &TypeChange, old_bits: u64, new_bits: u64) -> bool {
    let (Some(old), Some(new)) = (&of.old, &of.new) else { return false };
    let count =
        |bits: u64, size: u64| (size != 0 && (bits / 8).is_multiple_of(size)).then(|| bits / 8 / size);
    matches!((count(old_bits, old.size), count(new_bits, new.size)), (Some(old), Some(new)) if old == new)
}

#[cfg(test)]
mod tests {
    use super::super::{MemberChange, MemberLocation, Shape};
    use super::*;

    fn shape(size: u64) -> Option<Shape> {
        let declared_at = None;
        Some(Shape { size, lines: 1, holes: 0, hole_bytes: 0, padding: 0, members: 1, declared_at })
    }

    fn place(at: u64, size: u64) -> Option<MemberLocation> {
        Some(MemberLocation {
            bit_offset: at * 8,
            bits: size * 8,
            bitfield: false,
            ty: String::new(),
            line: at / 64,
        })
    }

    fn member(record: &str, old: Option<MemberLocation>, new: Option<MemberLocation>) -> MemberChange {
        let record = (!record.is_empty()).then(|| record.to_string());
        MemberChange { name: "m".into(), old, new, record, is_anonymous: false }
    }

    fn change(name: &str, old: u64, new: u64, members: Vec<MemberChange>) -> TypeChange {
        TypeChange { name: name.into(), keyword: "struct", old: shape(old), new: shape(new), members }
    }

    #[test]
    fn a_type_that_only_contains_a_larger_one_follows_it() {
        let changes = [
            change("bus", 40, 56, vec![member("pci", place(0, 40), place(0, 56))]),
            change("own", 8, 16, vec![member("", None, place(8, 8))]),
            change("pci", 40, 56, vec![member("device", place(0, 32), place(0, 48))]),
            // four of them, as before
            change("array", 64, 128, vec![member("device", place(0, 64), place(0, 96))]),
            change("device", 32, 48, vec![member("", None, place(32, 16))]),
            // one more of them: that is its own
            change("longer", 64, 144, vec![member("device", place(0, 64), place(0, 144))]),
            // and one that has both
            change(
                "both",
                40,
                64,
                vec![member("device", place(0, 32), place(0, 48)), member("", None, place(56, 8))],
            ),
        ];
        assert_eq!(causes(&changes), [vec![2], vec![], vec![4], vec![4], vec![], vec![], vec![]]);
    }
}
