//! The rules of a `layout.toml` that hold a proposal.

use super::evidence::Subject;
use super::proposal::{LayoutProposal, PlacedMember, Proposal, placed};

/// The name of the group of members that a rule keeps on few lines.
const HOT_GROUP: &str = "hot path";

/// The fields of a hot path that a proposed layout puts on fewer cache lines; without fields for other proposals.
pub(crate) struct HotPath {
    /// The offsets of the fields in the present layout, in bytes.
    pub(crate) offsets: Vec<u64>,
    /// The size of a cache line in bytes.
    pub(crate) line_size: u64,
}

/// Returns `tallyline check` rules (TOML text for a `layout.toml`) that fail on the layout as it is, and if a later edit
/// undoes the proposed change; `None` for proposals that a type's layout does not show. `reason` is quoted in them.
pub(crate) fn rules(
    proposal: &Proposal,
    subject: Option<&Subject>,
    hot: &HotPath,
    reason: &str,
) -> Option<String> {
    match proposal {
        Proposal::Layout(layout) if !hot.offsets.is_empty() => {
            let rules = [of_size(layout, reason), of_hot_path(hot, layout, subject?, reason)];
            let rules: Vec<String> = rules.into_iter().flatten().collect();
            (!rules.is_empty()).then(|| rules.concat())
        }
        Proposal::Layout(layout) => of_layout(layout, reason),
        // an alignment that is not declared holds nothing
        Proposal::Apart { pad, .. } if *pad > 0 => None,
        Proposal::Apart { names, align, .. } => {
            let subject = subject.filter(|subject| !subject.members.is_empty())?;
            debug_assert!(names.contains(&subject.name));
            Some(format!(
                "[[type]]\nname = {}\nalign = {align}\nper-cpu = true\nreason = {}\n",
                quoted(&subject.name),
                quoted(reason)
            ))
        }
        Proposal::Counter { .. }
        | Proposal::Embed { .. }
        | Proposal::CopyBeside { .. }
        | Proposal::Refused { .. } => None,
    }
}

/// Returns a rule that a type gets no larger than proposed; `None` if the proposal does not make it smaller.
fn of_size(layout: &LayoutProposal, reason: &str) -> Option<String> {
    let ((before, after), lines) = (layout.sizes, layout.lines.1);
    (after < before).then(|| {
        format!(
            "[[type]]\nname = {}\nmax-lines = {lines}\nmax-size = {after}\nreason = {}\n",
            quoted(&layout.ty),
            quoted(reason)
        )
    })
}

/// Returns a rule that keeps the members of a hot path on as many lines as proposed, of an object that starts on a line as
/// the check takes it; where that makes no difference, within as many bytes. `None` if neither does.
fn of_hot_path(hot: &HotPath, layout: &LayoutProposal, subject: &Subject, reason: &str) -> Option<String> {
    let is_hot = |offset: u64, size: u64| {
        let range = offset..offset.saturating_add(size.max(1));
        hot.offsets.iter().any(|offset| range.contains(offset))
    };
    let members: Vec<_> = subject
        .members
        .iter()
        .filter(|member| !member.name.is_empty() && !member.is_implicit)
        .filter(|member| is_hot(member.offset, member.size))
        .filter_map(|member| Some((member, placed(&layout.members, member)?.offset)))
        .collect();
    let before = span(members.iter().map(|(member, _)| (member.offset, member.size)))?;
    let after = span(members.iter().map(|(member, offset)| (*offset, member.size)))?;
    let lines = |(start, end): (u64, u64)| (end - 1) / hot.line_size - start / hot.line_size + 1;
    let bytes = |(start, end): (u64, u64)| end - start;
    let names: Vec<String> = members.iter().map(|(member, _)| quoted(&member.name)).collect();
    let (ty, names, reason) = (quoted(&layout.ty), names.join(", "), quoted(reason));
    let limit = match (lines(before), lines(after)) {
        (now, 1) if now > 1 && members.len() > 1 => {
            return Some(format!("[[together]]\ntype = {ty}\nmembers = [{names}]\nreason = {reason}\n"));
        }
        (now, proposed) if proposed < now => format!("max-lines = {proposed}"),
        _ if bytes(after) < bytes(before) => format!("max-size = {}", bytes(after)),
        _ => return None,
    };
    let name = quoted(HOT_GROUP);
    Some(format!("[[group]]\ntype = {ty}\nname = {name}\nmembers = [{names}]\n{limit}\nreason = {reason}\n"))
}

/// Returns the bytes from the first start of some members (offset and size) to the last end; `None` without members.
fn span(members: impl Iterator<Item = (u64, u64)>) -> Option<(u64, u64)> {
    members
        .map(|(offset, size)| (offset, offset.saturating_add(size.max(1))))
        .reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
}

fn of_layout(layout: &LayoutProposal, reason: &str) -> Option<String> {
    let is_apart = layout.members.iter().any(|member| member.align.is_some() || member.pad > 0);
    if !is_apart {
        return of_size(layout, reason);
    }
    let groups: Vec<String> = (0..layout.groups.len())
        .map(|group| {
            // the check knows no bases, and no pointers to virtual functions
            let is_named = |member: &&PlacedMember| !member.name.is_empty() && !member.is_implicit;
            let of = layout.members.iter().filter(|member| member.group == group).filter(is_named);
            of.map(|member| quoted(&member.name)).collect::<Vec<_>>().join(", ")
        })
        .filter(|list| !list.is_empty())
        .map(|list| format!("[{list}]"))
        .collect();
    (groups.len() > 1).then(|| {
        format!(
            "[[apart]]\ntype = {}\nmembers = [{}]\nreason = {}\n",
            quoted(&layout.ty),
            groups.join(", "),
            quoted(reason)
        )
    })
}

fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .flat_map(|letter| match letter {
            '"' => vec!['\\', '"'],
            '\\' => vec!['\\', '\\'],
            letter if letter.is_control() => vec![' '],
            letter => vec![letter],
        })
        .collect();
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::MemberInfo;

    #[test]
    fn groups_on_lines_of_their_own_are_held_apart() {
        let member = |name: &str, group, align| PlacedMember {
            name: name.into(),
            group,
            align,
            ..PlacedMember::default()
        };
        let layout = LayoutProposal {
            ty: "flow \"x\"".into(),
            members: vec![
                PlacedMember { is_implicit: true, ..member("_vptr.flow", 0, None) },
                member("limit", 0, None),
                member("lock", 1, Some(64)),
            ],
            groups: vec!["read".into(), "written".into()],
            ..LayoutProposal::default()
        };
        let text = of_layout(&layout, "why").expect("rules");
        assert!(text.contains("members = [[\"limit\"], [\"lock\"]]"), "{text}");
        assert!(text.contains(r#"type = "flow \"x\"""#), "{text}");
    }

    /// Returns the rules for a hot path of two members of `size` bytes each, at offsets before and after.
    fn of_members(size: u64, before: [u64; 2], after: [u64; 2]) -> Option<String> {
        let names = ["key", "value"];
        let member = |(name, offset): (&str, u64)| MemberInfo {
            name: name.into(),
            offset,
            size,
            align: 8,
            ..MemberInfo::default()
        };
        let placed = |((name, from), offset): ((&str, u64), u64)| PlacedMember {
            name: name.into(),
            offset,
            from,
            size,
            ..Default::default()
        };
        let layout = LayoutProposal {
            ty: "entry".into(),
            members: names.into_iter().zip(before).zip(after).map(placed).collect(),
            sizes: (256, 256),
            lines: (4, 4),
            ..LayoutProposal::default()
        };
        let subject =
            Subject { members: names.into_iter().zip(before).map(member).collect(), ..Subject::default() };
        let hot = HotPath { offsets: before.to_vec(), line_size: 64 };
        rules(&Proposal::Layout(layout), Some(&subject), &hot, "why")
    }

    #[test]
    fn a_hot_path_is_held_to_the_lines_or_bytes_that_it_is_to_lie_on() {
        let group = "[[group]]\ntype = \"entry\"\nname = \"hot path\"\nmembers = [\"key\", \"value\"]\n";
        let end = "reason = \"why\"\n";
        let together = format!("[[together]]\ntype = \"entry\"\nmembers = [\"key\", \"value\"]\n{end}");
        assert_eq!(of_members(8, [0, 64], [0, 8]), Some(together));
        assert_eq!(of_members(60, [0, 190], [0, 60]), Some(format!("{group}max-lines = 2\n{end}")));
        // objects that all start behind a block's header: of one that starts on a line they are on one line now
        assert_eq!(of_members(8, [8, 48], [0, 8]), Some(format!("{group}max-size = 16\n{end}")));
        assert_eq!(of_members(8, [48, 56], [0, 8]), None);
    }
}
