//! The rules of a `layout.toml` that hold a proposal.

use super::evidence::Subject;
use super::proposal::{LayoutProposal, Proposal};

/// Returns `tallyline check` rules (TOML text for a `layout.toml`) that fail if a later edit undoes the proposed
/// change; `None` for proposals that a type's layout does not show. `reason` is quoted in them.
pub(crate) fn rules(proposal: &Proposal, subject: Option<&Subject>, reason: &str) -> Option<String> {
    match proposal {
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
        Proposal::Counter { .. } | Proposal::Embed { .. } | Proposal::CopyBeside { .. } => None,
    }
}

fn of_layout(layout: &LayoutProposal, reason: &str) -> Option<String> {
    let is_apart = layout.members.iter().any(|member| member.align.is_some() || member.pad > 0);
    if !is_apart {
        let lines = layout.lines.1;
        return Some(format!(
            "[[type]]\nname = {}\nmax-lines = {lines}\nmax-size = {}\nreason = {}\n",
            quoted(&layout.ty),
            layout.sizes.1,
            quoted(reason)
        ));
    }
    let groups: Vec<String> = (0..layout.groups.len())
        .map(|group| {
            let of = layout.members.iter().filter(|member| member.group == group && !member.name.is_empty());
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
    use crate::proposal::PlacedMember;

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
            members: vec![member("limit", 0, None), member("lock", 1, Some(64))],
            groups: vec!["read".into(), "written".into()],
            ..LayoutProposal::default()
        };
        let text = rules(&Proposal::Layout(layout), None, "why").expect("rules");
        assert!(text.contains("members = [[\"limit\"], [\"lock\"]]"), "{text}");
        assert!(text.contains(r#"type = "flow \"x\"""#), "{text}");
    }
}
