//! Patches of the sources that declare the types.

use super::{ReorganizeArgs, TypeResult};
use crate::apply::{self, Applied, Plan, Target, layout};
use anyhow::{Result, bail};
use serde_json::json;
use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use tallyline_layout::reorganize::{Proposal, Reorganizer};
use tallyline_support::output::Output;

/// Writes a patch for the proposals, or says why there is none for a type.
pub(super) fn run(
    args: &ReorganizeArgs,
    file: &Path,
    reorganizer: &Reorganizer<'_>,
    found: &[TypeResult],
    ranks: bool,
    output: Output,
) -> Result<()> {
    let types = reorganizer.types();
    let mut seen = HashSet::new();
    let mut targets = Vec::new();
    let mut proposals: Vec<&Proposal> = Vec::new();
    let mut unplaced = Vec::new();
    for found in found {
        let Some(proposal) = found.proposal() else { continue };
        match Target::of_proposal(types, &found.label(), proposal) {
            // one declaration may have several layouts, by the configuration of units
            Some(target) if seen.insert((target.declared_in.clone(), target.line)) => {
                targets.push(target);
                proposals.push(proposal);
            }
            Some(_) => {}
            None => unplaced.push(found.label()),
        }
    }
    let promises = |some: &[usize]| {
        let some: Vec<&Proposal> = some.iter().map(|at| proposals[*at]).collect();
        let together = reorganizer.applied(&some);
        some.iter()
            .map(|proposal| {
                let id = proposal.record();
                Some(layout(types, together.members(id)?, together.size(id)?))
            })
            .collect()
    };
    let plan = apply::plan(file, targets, &promises, &args.apply)?;
    let patch = plan.patch();
    let applied = match args.apply.apply {
        true => apply::carry_out(&plan, file, &args.apply)?,
        false => None,
    };
    output.write(|out| match (args.json, args.apply.apply) {
        (true, _) => write_json(&plan, &patch, applied.as_ref(), out),
        (false, false) => Ok(out.write_all(&patch)?),
        (false, true) => write_applied(&plan, applied.as_ref(), out),
    })?;
    let mut refused: Vec<String> = unplaced
        .iter()
        .map(|name| format!("{name}: the debug information has no place of its declaration"))
        .collect();
    refused.extend(plan.targets.iter().filter_map(|(target, refused)| {
        refused.as_ref().map(|refused| format!("{}: not edited: {refused}", target.name))
    }));
    match &plan.verified {
        Err(why) if !plan.edits.is_empty() => eprintln!("tallyline: not compiled: {why}"),
        _ => {}
    }
    let edited = plan.targets.iter().filter(|(_, refused)| refused.is_none()).count();
    for line in &refused {
        eprintln!("tallyline: {line}");
    }
    match refused.len() {
        0 => Ok(()),
        count if !ranks || edited == 0 => bail!("{count} of {} types are not edited", count + edited),
        _ => Ok(()),
    }
}

/// Says which structs were edited, where, and what it brought.
fn write_applied(plan: &Plan, applied: Option<&Applied>, out: &mut dyn Write) -> Result<()> {
    let is_applied = applied.is_some_and(|applied| applied.is_kept());
    for (target, _) in plan.targets.iter().filter(|(_, refused)| refused.is_none()) {
        let Target { name, line, path, .. } = target;
        let (old, new) = (target.current.size, target.promised.size);
        let path = path.strip_prefix(&plan.root).unwrap_or(path).display();
        let verb = if is_applied { "edited" } else { "left as it is" };
        writeln!(out, "{name} at {path}:{line}: {old} -> {new} bytes; {verb}")?;
    }
    if let Ok(extent) = &plan.verified
        && !plan.edits.is_empty()
    {
        writeln!(out, "{} units compiled, {} layouts as promised", extent.units, extent.layouts)?;
    }
    if let Some(speed_up) = applied.and_then(Applied::speed_up) {
        writeln!(out, "{speed_up}")?;
    }
    if is_applied {
        writeln!(out, "undo: tallyline reorganize --undo --root {}", plan.root.display())?;
    }
    Ok(())
}

/// Writes `{"schema":1,"root":…,"patch":…,"types":[{"name","file","line","old","new","refused","evidence"}]}`.
fn write_json(plan: &Plan, patch: &[u8], applied: Option<&Applied>, out: &mut dyn Write) -> Result<()> {
    let types = plan.targets.iter().map(|(target, refused)| {
        json!({
            "name": target.name,
            "file": target.path.to_string_lossy(),
            "line": target.line,
            "old": target.current.size,
            "new": target.promised.size,
            "refused": refused.as_ref().map(|refused| refused.kind.name()),
            "evidence": refused.as_ref().map(|refused| refused.evidence.as_str()),
        })
    });
    let document = json!({
        "schema": 1,
        "root": plan.root.to_string_lossy(),
        "patch": String::from_utf8_lossy(patch),
        "verified": plan.verified.as_ref().ok().map(|extent| json!({
            "units": extent.units, "layouts": extent.layouts, "configurations": extent.configurations,
        })),
        "applied": applied.map(Applied::is_kept),
        "speed_up": applied.and_then(Applied::speed_up).map(|speed_up| json!({
            "low": speed_up.low, "median": speed_up.median, "high": speed_up.high, "pairs": speed_up.pairs,
        })),
        "unverified": plan.verified.as_ref().err(),
        "types": types.collect::<Vec<_>>(),
    });
    serde_json::to_writer(&mut *out, &document)?;
    Ok(writeln!(out)?)
}
