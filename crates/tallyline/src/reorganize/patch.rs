//! Patches of the sources that declare the types.

use super::{ReorganizeArgs, TypeResult, text};
use crate::apply::{self, Outcome, Plan, Target, layout};
use anyhow::{Result, bail};
use std::collections::HashSet;
use std::path::Path;
use tallyline_layout::reorganize::{Proposal, Reorganizer};
use tallyline_support::output::Output;

/// Returns the place of a declaration, or the name where there is none.
fn declaration(target: &Target) -> (String, u32) {
    let place = if target.line == 0 { &target.name } else { &target.declared_in };
    (place.clone(), target.line)
}

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
            Some(target) if seen.insert(declaration(&target)) => {
                targets.push(target);
                proposals.push(proposal);
            }
            Some(_) => {}
            None => unplaced.push(found.label()),
        }
    }
    note_smallest(found, ranks);
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
    finish(args, file, &plan, &unplaced, ranks, output)
}

/// Says on standard error which types stay as they are as there is no smaller layout: an empty patch does not. Of a
/// ranking only that there is none at all.
fn note_smallest(found: &[TypeResult], ranks: bool) {
    if !ranks {
        found.iter().filter_map(text::no_proposal).for_each(|line| eprintln!("tallyline: {line}"));
    } else if !found.iter().any(|found| found.proposal().is_some()) {
        eprintln!("tallyline: no smaller layout of any of {} types", found.len());
    }
}

/// Writes a plan's patch, or carries it out, and says what is not edited.
pub(super) fn finish(
    args: &ReorganizeArgs,
    file: &Path,
    plan: &Plan,
    unplaced: &[String],
    ranks: bool,
    output: Output,
) -> Result<()> {
    let applied = match args.apply.apply {
        true => apply::carry_out(plan, file, &args.apply)?,
        false => None,
    };
    let outcome = Outcome { plan, applied: applied.as_ref() };
    output.write(|out| match (args.json, args.apply.apply) {
        (true, _) => {
            serde_json::to_writer(&mut *out, &outcome.json())?;
            Ok(writeln!(out)?)
        }
        (false, false) => Ok(out.write_all(&plan.patch())?),
        (false, true) => apply::write_text(outcome, "reorganize", out),
    })?;
    let mut refused: Vec<String> = unplaced
        .iter()
        .map(|name| format!("{name}: the debug information has no place of its declaration"))
        .collect();
    refused.extend(outcome.refusals());
    match &plan.verified {
        Err(why) if !plan.edits.is_empty() && !plan.is_built => eprintln!("tallyline: not compiled: {why}"),
        _ => {}
    }
    let edited = outcome.edited();
    for line in &refused {
        eprintln!("tallyline: {line}");
    }
    match refused.len() {
        0 => Ok(()),
        count if !ranks || edited == 0 => bail!("{count} of {} types are not edited", count + edited),
        _ => Ok(()),
    }
}
