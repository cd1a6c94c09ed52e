//! Root causes of differences, by their impact.

use super::evidence::Evidence;
use std::cmp::Reverse;
use tallyline_layout::diff::{MemberChange, TypeChange};

/// A type that changed by itself, with the types that follow it.
pub(super) struct RootCause {
    /// The index of the type among the changes.
    pub(super) change: usize,
    /// The indices of the types that changed only because they contain it, directly or not.
    pub(super) followers: Vec<usize>,
    /// The bytes by which all instances of it and its followers changed, without their signs.
    impact: u128,
    /// The samples at it and its followers, in ten thousandths.
    heat: u64,
    /// `true` if it or one of its followers breaks a rule that it kept before.
    breaks: bool,
}

/// Returns the root causes of changes: first those that break rules, then types that changed their size or a member's
/// line, then other changed types, then added and removed ones; each with the most samples, then the largest impact
/// first. A type with several is counted with that of its
/// largest member.
pub(super) fn root_causes(changes: &[TypeChange], evidence: &Evidence) -> Vec<RootCause> {
    let root_of = roots_of(&tallyline_layout::diff::causes(changes));
    let mut places = vec![None; changes.len()];
    let mut roots: Vec<RootCause> = Vec::new();
    for (index, _) in root_of.iter().enumerate().filter(|(index, root)| index == *root) {
        places[index] = Some(roots.len());
        let change = &changes[index];
        roots.push(RootCause {
            change: index,
            followers: Vec::new(),
            impact: impact(change, evidence),
            heat: heat(change, evidence),
            breaks: !evidence.broken(change).is_empty(),
        });
    }
    for (index, root) in root_of.iter().enumerate().filter(|(index, root)| index != *root) {
        let Some(root) = places[*root].and_then(|place: usize| roots.get_mut(place)) else { continue };
        root.followers.push(index);
        root.impact = root.impact.saturating_add(impact(&changes[index], evidence));
        root.heat = root.heat.saturating_add(heat(&changes[index], evidence));
        root.breaks |= !evidence.broken(&changes[index]).is_empty();
    }
    for root in &mut roots {
        let weight = |index: &usize| (heat(&changes[*index], evidence), impact(&changes[*index], evidence));
        root.followers.sort_by_key(|index| Reverse(weight(index)));
    }
    // stable: equal ones stay in the order of the files
    roots.sort_by_key(|root| {
        (Reverse(root.breaks), rank(&changes[root.change]), Reverse(root.heat), Reverse(root.impact))
    });
    roots
}

/// Returns the bytes by which the instances of a type changed, without the sign; for an added or removed type those that they
/// have.
fn impact(change: &TypeChange, evidence: &Evidence) -> u128 {
    change.growth().unsigned_abs().saturating_mul(u128::from(evidence.instances(change)))
}

fn heat(change: &TypeChange, evidence: &Evidence) -> u64 {
    evidence.heat(change).map_or(0, |heat| heat.share)
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
