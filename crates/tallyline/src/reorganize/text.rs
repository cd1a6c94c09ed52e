//! Proposals for people: one struct as C, or a ranking of many.

use super::together::Applied;
use super::verify::Verdict;
use super::{ReorganizeArgs, TypeResult, pinned};
use anyhow::Result;
use std::io::Write;
use tallyline_debuginfo::model::Types;
use tallyline_layout::print::pahole::Style;
use tallyline_layout::reorganize::{Proposal, Reorganization, print};

/// Shows one type: the new struct, or one line that says that there is none. Of a program in C all of it
/// is C; other languages are shown as pahole shows them.
pub(super) fn one(
    args: &ReorganizeArgs,
    types: &mut Types,
    found: &TypeResult,
    out: &mut dyn Write,
) -> Result<()> {
    let Some(proposal) = found.proposal() else {
        if let Some(none) = no_proposal(found) {
            writeln!(out, "/* {} */", none.replace("*/", "* /"))?;
        }
        return Ok(());
    };
    let style = Style { cacheline: args.cacheline_size, ..Style::default() };
    let mut text = Vec::new();
    print(types, found.id, proposal, &style, args.steps, &mut text)?;
    if found.place.is_some() {
        writeln!(out, "/* {} */", found.label().replace("*/", "* /"))?;
    }
    out.write_all(&text)?;
    writeln!(out, "/* {} */", summary(types, found, proposal))?;
    if let Some(hint) = pinned::hint(found) {
        writeln!(out, "/* {hint} */")?;
    }
    Ok(())
}

/// Says that there is no smaller layout of a type, with the hint that would give one; `None` for a type with a proposal
/// and for one that cannot be reorganized.
pub(super) fn no_proposal(found: &TypeResult) -> Option<String> {
    let Reorganization::Smallest { proven } = found.outcome else { return None };
    let how = if proven { "no smaller layout" } else { "no smaller layout was found" };
    let hint = pinned::hint(found).map(|hint| format!("; {hint}")).unwrap_or_default();
    Some(format!("{}: {how}{hint}", found.label()))
}

/// Formats a proposal in one line: `40 -> 32 bytes, 1 -> 1 cachelines, 1 move; optimal; verified by gcc
/// 12.2.0`.
fn summary(types: &Types, found: &TypeResult, proposal: &Proposal) -> String {
    let moves = proposal.move_count();
    let mut parts = vec![format!(
        "{} -> {} bytes, {} -> {} cachelines, {moves} move{}",
        proposal.current().size(),
        proposal.proposed().size(),
        proposal.current().lines(),
        proposal.proposed().lines(),
        if moves == 1 { "" } else { "s" }
    )];
    parts.push(proof(proposal).to_string());
    if proposal.inferred() {
        parts.push("alignment as inferred".into());
    }
    match &found.verdict {
        Verdict::Verified(by) if found.text_verified => parts.push(format!("verified by {by}")),
        Verdict::Verified(by) => {
            let text = match types.record(proposal.record()).language.is_rust() {
                true => "the text is no Rust",
                false => "the text was not compiled",
            };
            parts.push(format!("layout verified by {by}, {text}"));
        }
        Verdict::Unverified(why) => parts.push(format!("unverified: {why}")),
        Verdict::NotAsked | Verdict::Wrong(_) => {}
    }
    parts.join("; ")
}

fn proof(proposal: &Proposal) -> &'static str {
    match (proposal.is_smallest(), proposal.has_fewest_moves()) {
        (true, true) => "optimal",
        (true, false) => "optimal size, fewest moves found",
        (false, _) => "best found",
    }
}

/// Shows the types that can be smaller, the one that saves most first, and the sums.
pub(super) fn rank(found: &[TypeResult], together: Option<&Applied>, out: &mut dyn Write) -> Result<()> {
    let smaller: Vec<(&TypeResult, &Proposal)> =
        found.iter().filter_map(|f| Some((f, f.proposal()?))).collect();
    if !smaller.is_empty() {
        writeln!(
            out,
            "{:>12} {:>8} {:>10} {:>18} {:>14} {:>6}  {:<10} type",
            "saved", "each", "instances", "bytes", "cachelines", "moves", "proof"
        )?;
    }
    for (found, proposal) in &smaller {
        writeln!(
            out,
            "{:>12} {:>8} {:>10} {:>18} {:>14} {:>6}  {:<10} {}",
            found.total(),
            proposal.saved(),
            found.instances,
            format!("{} -> {}", proposal.current().size(), proposal.proposed().size()),
            format!("{} -> {}", proposal.current().lines(), proposal.proposed().lines()),
            proposal.move_count(),
            proof(proposal).split(',').next().unwrap_or_default(),
            found.label()
        )?;
    }
    let total = smaller.iter().fold(0_u64, |sum, (found, _)| sum.saturating_add(found.total()));
    let refused = found.iter().filter(|found| matches!(found.outcome, Reorganization::Refused(_))).count();
    let best = smaller.iter().filter(|(_, proposal)| !proposal.is_smallest()).count();
    write!(out, "{} types, {} can be smaller: {total} bytes", found.len(), smaller.len())?;
    if best != 0 {
        write!(out, "; {best} best found, the others optimal")?;
    }
    if smaller.iter().any(|(_, proposal)| proposal.inferred()) {
        write!(out, "; alignment as inferred")?;
    }
    write_verdicts(&smaller, out)?;
    writeln!(out, "; {refused} not for this")?;
    if let Some(together) = together.filter(|together| together.saved > total) {
        write_together(together, out)?;
    }
    if let Some(sums) = pinned::sums(found).filter(|sums| sums.iter().any(|sum| *sum > total)) {
        let mut before = total;
        let each =
            sums.iter().zip(pinned::FREED).filter(|(sum, _)| **sum > std::mem::replace(&mut before, **sum));
        let each: Vec<String> =
            each.map(|(sum, (word, what, _))| format!("{sum} bytes where {what} (--unpin {word})")).collect();
        writeln!(out, "{}", each.join(", "))?;
    }
    Ok(())
}

fn write_together(all: &Applied, out: &mut dyn Write) -> Result<()> {
    let end = match &all.verdict {
        Verdict::Wrong(_) => return Ok(()),
        Verdict::Verified(by) => format!(", verified by {by}"),
        Verdict::Unverified(_) | Verdict::NotAsked => String::new(),
    };
    let Applied { saved, smaller, .. } = all;
    Ok(writeln!(
        out,
        "{saved} bytes in {smaller} types with all of them applied, as structs shrink with what they hold{end}"
    )?)
}

fn write_verdicts(smaller: &[(&TypeResult, &Proposal)], out: &mut dyn Write) -> Result<()> {
    let verified: Vec<&str> = smaller
        .iter()
        .filter_map(|(found, _)| match &found.verdict {
            Verdict::Verified(by) => Some(by.as_str()),
            _ => None,
        })
        .collect();
    if let Some(by) = verified.first() {
        write!(out, "; layouts of {} verified by {by}", verified.len())?;
    }
    let unverified = smaller.iter().find_map(|(found, _)| match &found.verdict {
        Verdict::Unverified(why) => Some(why),
        _ => None,
    });
    if let Some(why) = unverified {
        write!(out, "; {} unverified: {why}", smaller.len() - verified.len())?;
    }
    Ok(())
}
