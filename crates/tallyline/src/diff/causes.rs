//! Root causes of differences, by their impact.

use tallyline_layout::diff::{MemberChange, TypeChange};

/// A type that changed by itself, with the types that follow it.
pub(super) struct RootCause {
    /// The index of the type among the changes.
    pub(super) change: usize,
    /// The indices of the types that changed only because they contain it, directly or not.
    pub(super) followers: Vec<usize>,
    /// The bytes by which it and its followers changed, without their signs.
    impact: u128,
}

/// Returns the root causes of changes: first types that changed their size or a member's line, then other changed types,
/// then added and removed ones; each with the largest impact first. A type with several is counted with that of its
/// largest member.
pub(super) fn root_causes(changes: &[TypeChange]) -> Vec<RootCause> {
    let root_of = roots_of(&tallyline_layout::diff::causes(changes));
    let mut places = vec![None; changes.len()];
    let mut roots: Vec<RootCause> = Vec::new();
    for (index, _) in root_of.iter().enumerate().filter(|(index, root)| index == *root) {
        places[index] = Some(roots.len());
        roots.push(RootCause { change: index, followers: Vec::new(), impact: impact(&changes[index]) });
    }
    for (index, root) in root_of.iter().enumerate().filter(|(index, root)| index != *root) {
        let Some(root) = places[*root].and_then(|place: usize| roots.get_mut(place)) else { continue };
        root.followers.push(index);
        root.impact = root.impact.saturating_add(impact(&changes[index]));
    }
    for root in &mut roots {
        root.followers.sort_by_key(|index| std::cmp::Reverse(impact(&changes[*index])));
    }
    // stable: equal ones stay in the order of the files
    roots.sort_by_key(|root| (rank(&changes[root.change]), std::cmp::Reverse(root.impact)));
    roots
}

/// Returns the bytes by which a type changed, without the sign; for an added or removed type those that it
/// has.
fn impact(change: &TypeChange) -> u128 {
    change.growth().unsigned_abs()
}

fn rank(change: &TypeChange) -> u8 {
    match (&change.before(), &change.after()) {
        (Some(_), Some(_)) if change.growth() != 0 => 0,
        (Some(_), Some(_)) if change.members().iter().any(MemberChange::changes_line) => 1,
        (Some(_), Some(_)) => 2,
        (None, _) => 3,
        (_, None) => 4,
    }
}

/// Follows the first cause of each change to its root. In a damaged file types can contain each other: then one of
/// them is the root.
fn roots_of(direct: &[Vec<usize>]) -> Vec<usize> {
    const UNKNOWN: usize = usize::MAX;
    let mut roots = vec![UNKNOWN; direct.len()];
    for start in 0..direct.len() {
        let (mut path, mut at) = (Vec::new(), start);
        let mut on_path = std::collections::HashSet::new();
        let root = loop {
            match (roots[at], direct[at].first()) {
                (known, _) if known != UNKNOWN => break known,
                (_, Some(next)) if on_path.insert(at) => {
                    path.push(at);
                    at = *next;
                }
                _ => break at,
            }
        };
        roots[at] = root;
        path.into_iter().for_each(|index| roots[index] = root);
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_followed_to_their_roots() {
        // 0 contains 1, which contains 2; 3 is on its own
        assert_eq!(roots_of(&[vec![1], vec![2], vec![], vec![]]), [2, 2, 2, 3]);
        // of types that contain each other one is the root, whichever comes first
        assert_eq!(roots_of(&[vec![1], vec![0], vec![1]]), [0, 0, 0]);
        assert_eq!(roots_of(&[vec![0]]), [0]);
    }
}
