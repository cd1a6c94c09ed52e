//! `tallyline reorganize`: smaller structs, checked by compiling them.

mod args;
mod groups;
mod json;
mod patch;
mod pinned;
mod pins;
mod text;
mod together;
mod verify;

pub(crate) use args::ReorganizeArgs;

use crate::apply;
use crate::instances::Instances;
use crate::interrupt;
use crate::layout::{operands, select::Names, source, suggest::files_among};
use anyhow::{Result, bail};
use std::collections::HashMap;
use std::path::Path;
use tallyline_debuginfo::lookup::Definitions;
use tallyline_debuginfo::model::{TypeId, Types};
use tallyline_debuginfo::{PointerTargets, Request, Wanted};
use tallyline_layout::reorganize::{Proposal, Reorganization, Reorganizer, checkable};
use tallyline_support::output::{Color, Output, printable};
use together::Applied;
use verify::{Verdict, Verifier};

/// The result for one type.
struct TypeResult {
    id: TypeId,
    name: String,
    /// The place of the definition, if several types have this name.
    place: Option<String>,
    instances: u64,
    outcome: Reorganization,
    verdict: Verdict,
    /// True if the text was compiled as it is printed; only C's is.
    text_verified: bool,
    /// The savings if its pinned ends could move; none if they can, or nothing can.
    freed: Option<pinned::Saved>,
}

impl TypeResult {
    /// Returns the proposal, unless a compiler lays it out otherwise.
    fn proposal(&self) -> Option<&Proposal> {
        match (&self.outcome, &self.verdict) {
            (Reorganization::Smaller(_), Verdict::Wrong(_)) => None,
            (Reorganization::Smaller(proposal), _) => Some(proposal),
            _ => None,
        }
    }

    /// Returns the bytes that all of its instances save.
    fn total(&self) -> u64 {
        self.proposal().map_or(0, |proposal| proposal.saved().saturating_mul(self.instances))
    }
}

impl TypeResult {
    /// Returns its name, and where it is defined if there are others of its name.
    fn label(&self) -> String {
        match &self.place {
            Some(place) => format!("{} at {}", self.name, printable(place.as_bytes())),
            None => self.name.clone(),
        }
    }
}

/// Runs the sub-command `tallyline reorganize`: prints smaller member orders for structs, and edits sources if
/// asked.
pub(crate) fn run(args: &ReorganizeArgs, color: Color) -> Result<()> {
    if args.apply.undo {
        let restored = apply::undo(&args.apply)?;
        let output = Output::open(args.output.as_deref(), color)?;
        return output.write(|out| {
            restored.iter().try_for_each(|path| Ok(writeln!(out, "restored {}", path.display())?))
        });
    }
    let (file, operands) = operands::split(&args.operands, args.file.as_deref());
    if !args.groups.is_empty() {
        return groups::run(args, &file, &operands, Output::open(args.output.as_deref(), color)?);
    }
    let mut names = Names::default();
    operands.iter().try_for_each(|name| names.add_one(name))?;
    args.classes.iter().try_for_each(|list| names.add_list(list))?;
    let output = Output::open(args.output.as_deref(), color)?;
    let instances = Instances::read(args.instances.as_deref())?;
    let wanted = if names.is_empty() { Wanted::Records } else { names.wanted() };
    let request = Request {
        wanted,
        format: args.format_path(),
        cacheline: args.cacheline_size,
        positions: true,
        // the text is compiled with all that it names
        pointer_targets: match args.verify && !names.is_empty() {
            true => PointerTargets::Declarations,
            false => PointerTargets::Names,
        },
        exact: true,
        typedefs: true,
        ..Request::default()
    };
    let mut types = source::read(&file, &request, args.btf_base.as_deref())?;
    source::warn(&file, &types);
    let (ids, missing) = chosen(&names, &types);
    args.pins().check(&types, &ids)?;
    let ranks = args.ranks(!names.is_empty());
    let (mut found, together) = propose(args, &types, &ids, &instances, ranks)?;
    if args.verify && !ranks {
        verify_texts(args, &mut types, &mut found)?;
    }
    if ranks {
        found.sort_by(|a, b| b.total().cmp(&a.total()).then_with(|| a.label().cmp(&b.label())));
    }
    if args.apply.edits() {
        complain(&found, together.as_ref(), ranks)?;
        let reorganizer = Reorganizer::new(&types, args.options());
        patch::run(args, &file, &reorganizer, &found, ranks, output)?;
        return missing_types(&file, &missing);
    }
    output.write(|out| match (args.json, ranks) {
        (true, _) => json::write(&file, &types, &found, together.as_ref(), out),
        (false, true) => text::rank(&found, together.as_ref(), out),
        (false, false) => found.iter().try_for_each(|found| text::one(args, &mut types, found, out)),
    })?;
    complain(&found, together.as_ref(), ranks)?;
    missing_types(&file, &missing)
}

/// Fails if there are names that there is no type of.
fn missing_types(file: &Path, missing: &[&str]) -> Result<()> {
    if !missing.is_empty() {
        let files = files_among(missing);
        bail!("{}: no type named {}{files}", file.display(), missing.join(", "));
    }
    Ok(())
}

/// Returns the types that are asked for, and the names that there is no type of.
fn chosen<'n>(names: &'n Names, types: &Types) -> (Vec<TypeId>, Vec<&'n str>) {
    if !names.is_empty() {
        return names.resolve(types);
    }
    let mut definitions = Definitions::new(types);
    let records = definitions.records();
    let structs = records.iter().filter(|(_, record)| types.record(*record).is_struct());
    (structs.map(|(id, _)| *id).collect(), Vec::new())
}

fn propose(
    args: &ReorganizeArgs,
    types: &Types,
    ids: &[TypeId],
    instances: &Instances,
    ranks: bool,
) -> Result<(Vec<TypeResult>, Option<Applied>)> {
    let reorganizer = Reorganizer::new(types, args.options());
    let outcomes = reorganizer.propose_all(ids);
    let proposals: Vec<&Proposal> = outcomes.iter().filter_map(smaller).collect();
    let verifier = args.verify.then(|| Verifier::new(args.cc.as_deref(), types));
    let mut verdicts = match &verifier {
        Some(verifier) => verifier.verify(&reorganizer, &proposals)?,
        None => vec![Verdict::NotAsked; proposals.len()],
    }
    .into_iter();
    let together = match ranks && !proposals.is_empty() {
        true => Some(Applied::new(&reorganizer, verifier.as_ref(), ids, &outcomes, instances)?),
        false => None,
    };
    let freed = pinned::saved(&reorganizer, ids, &outcomes);
    let mut counts: HashMap<_, u32> = HashMap::new();
    ids.iter().for_each(|id| *counts.entry(types.qualified_name(*id)).or_default() += 1);
    let definitions = Definitions::new(types);
    let found = ids.iter().zip(outcomes).zip(freed).map(|((id, outcome), freed)| {
        let name = printable(&types.qualified_name(*id)).into_owned();
        let verdict = match &outcome {
            Reorganization::Smaller(_) => verdicts.next().unwrap_or(Verdict::NotAsked),
            _ => Verdict::NotAsked,
        };
        let repeats = counts.get(&types.qualified_name(*id)).is_some_and(|count| *count > 1);
        let place = repeats.then(|| definitions.place(*id)).flatten();
        let instances = instances.of(&name);
        TypeResult { id: *id, instances, name, place, outcome, verdict, text_verified: false, freed }
    });
    Ok((found.collect(), together))
}

/// Compiles what is printed of each proposal that a compiler has agreed to.
fn verify_texts(args: &ReorganizeArgs, types: &mut Types, found: &mut [TypeResult]) -> Result<()> {
    let verifier = Verifier::new(args.cc.as_deref(), types);
    for found in found {
        let (Reorganization::Smaller(proposal), Verdict::Verified(_)) = (&found.outcome, &found.verdict)
        else {
            continue;
        };
        let Some(printed) = checkable(types, found.id, proposal)? else { continue };
        match verifier.verify_text(types, proposal, &printed)? {
            Some(verdict) => found.verdict = verdict,
            None => found.text_verified = true,
        }
    }
    Ok(())
}

fn smaller(outcome: &Reorganization) -> Option<&Proposal> {
    match outcome {
        Reorganization::Smaller(proposal) => Some(proposal),
        _ => None,
    }
}

/// Fails if something cannot be done: a proposal that does not hold, or a named type that is not for
/// this.
fn complain(found: &[TypeResult], together: Option<&Applied>, ranks: bool) -> Result<()> {
    let wrong = |found: &TypeResult| match &found.verdict {
        Verdict::Wrong(why) => Some(format!("{}: withheld, as it does not hold: {why}", found.label())),
        _ => None,
    };
    let refused = |found: &TypeResult| match &found.outcome {
        Reorganization::Refused(why) if !ranks => Some(format!("{}: {why}", found.label())),
        _ => None,
    };
    let mut complaints: Vec<String> =
        found.iter().filter_map(wrong).chain(found.iter().filter_map(refused)).collect();
    complaints.extend(together.and_then(Applied::complaint));
    let last = complaints.pop();
    for complaint in complaints {
        eprintln!("tallyline: {complaint}");
    }
    match last {
        Some(last) => bail!("{last}"),
        None => Ok(()),
    }
}

/// Ends the program if Ctrl-C was pressed.
fn end_if_asked() {
    if interrupt::asked() {
        interrupt::end();
    }
}
