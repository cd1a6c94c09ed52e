//! Patches of the sources that declare the types.

use super::{ReorganizeArgs, TypeResult};
use crate::apply::{self, Plan, Target};
use anyhow::{Result, bail};
use serde_json::json;
use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use tallyline_debuginfo::model::Types;
use tallyline_support::output::Output;

/// Writes a patch for the proposals, or says why there is none for a type.
pub(super) fn run(
    args: &ReorganizeArgs,
    file: &Path,
    types: &Types,
    found: &[TypeResult],
    ranks: bool,
    output: Output,
) -> Result<()> {
    let mut seen = HashSet::new();
    let mut targets = Vec::new();
    let mut unplaced = Vec::new();
    for found in found {
        let Some(proposal) = found.proposal() else { continue };
        match Target::of_proposal(types, &found.label(), proposal) {
            // one declaration may have several layouts, by the configuration of units
            Some(target) if seen.insert((target.declared_in.clone(), target.line)) => targets.push(target),
            Some(_) => {}
            None => unplaced.push(found.label()),
        }
    }
    let plan = apply::plan(file, targets, &args.apply)?;
    let patch = plan.patch();
    output.write(|out| match args.json {
        true => write_json(&plan, &patch, out),
        false => Ok(out.write_all(&patch)?),
    })?;
    let mut refused: Vec<String> = unplaced
        .iter()
        .map(|name| format!("{name}: the debug information has no place of its declaration"))
        .collect();
    refused.extend(plan.targets.iter().filter_map(|(target, refused)| {
        refused.as_ref().map(|refused| format!("{}: not edited: {refused}", target.name))
    }));
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

/// Writes `{"schema":1,"root":…,"patch":…,"types":[{"name","file","line","old","new","refused","evidence"}]}`.
fn write_json(plan: &Plan, patch: &[u8], out: &mut dyn Write) -> Result<()> {
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
        "types": types.collect::<Vec<_>>(),
    });
    serde_json::to_writer(&mut *out, &document)?;
    Ok(writeln!(out)?)
}
