//! The outcome of edits, as text and as JSON.

use super::counter::Replacement;
use super::rebuild::Applied;
use super::refused::Refused;
use super::{Plan, Target};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;

/// The result of `--apply` or `--patch`: the planned source edits that give structs new layouts, and for `--apply` what
/// became of them (written or not, built, speed-up).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome<'p> {
    /// The planned edits of the sources.
    pub(crate) plan: &'p Plan,
    /// The result of the edits in place; none for a patch.
    pub(crate) applied: Option<&'p Applied>,
}

impl Outcome<'_> {
    /// Returns the result of the planned source edits as JSON, as `docs/reference/schemas` describes it; `promised` has
    /// the offset and size of each member in bits.
    pub(crate) fn json(self) -> Value {
        let Outcome { plan, applied } = self;
        let types = plan.targets.iter().map(|(target, refused)| {
            json!({
                "name": target.name,
                "file": target.path.to_string_lossy(),
                "line": target.line,
                "old": target.current.size,
                "new": target.promised.size,
                "promised": target.promised.members.iter().map(|(member, bit, bits)| json!({
                    "name": member, "bit_offset": bit, "bits": bits,
                })).collect::<Vec<_>>(),
                "counters": names(target, Replacement::StripedCounter),
                "lines": names(target, Replacement::CacheLine),
                "kept": target.kept_members.iter().map(|(name, refused)| json!({
                    "member": name, "refused": refused.kind.name(), "evidence": refused.evidence,
                })).collect::<Vec<_>>(),
                "refused": refused.as_ref().map(|refused| refused.kind.name()),
                "evidence": refused.as_ref().map(|refused| refused.evidence.as_str()),
            })
        });
        json!({
            "schema": 1,
            "root": plan.root.to_string_lossy(),
            "patch": String::from_utf8_lossy(&plan.patch()),
            "verified": plan.verified.as_ref().ok().map(|extent| json!({
                "units": extent.units, "layouts": extent.layouts, "configurations": extent.configurations,
            })),
            "built": applied.map(Applied::is_built),
            "applied": applied.map(Applied::is_kept),
            "speed_up": applied.and_then(Applied::speed_up).map(|speed_up| json!({
                "low": speed_up.low, "median": speed_up.median, "high": speed_up.high, "pairs": speed_up.pairs,
            })),
            "unverified": plan.verified.as_ref().err(),
            "types": types.collect::<Vec<_>>(),
        })
    }

    /// Returns one line for each struct that is not edited, and for each member whose type is kept, with the reason.
    pub(crate) fn refusals(self) -> Vec<String> {
        let mut all = Vec::new();
        for (target, refused) in &self.plan.targets {
            let kept = target.kept_members.iter();
            all.extend(kept.map(|(member, why)| format!("{}.{member}: kept as it is: {why}", target.name)));
            // the reason of a member is that of its type, where nothing else is edited
            let is_new = |why: &&Refused| target.kept_members.iter().all(|(_, known)| known != *why);
            let refused = refused.as_ref().filter(is_new);
            all.extend(refused.map(|refused| format!("{}: not edited: {refused}", target.name)));
        }
        all
    }

    /// Returns the number of structs whose declarations the plan of source edits changes.
    pub(crate) fn edited(self) -> usize {
        self.plan.targets.iter().filter(|(_, refused)| refused.is_none()).count()
    }
}

/// Returns the names of a type's members that get another type of a kind.
fn names(target: &Target, replacement: Replacement) -> Vec<&str> {
    let of_kind = target.replaced.iter().filter(|member| member.replacement == replacement);
    of_kind.map(|member| member.name.as_str()).collect()
}

/// Prints which structs were edited, in which files, and the measured speed-up, for the user of sub-command
/// `command`.
pub(crate) fn write_text(outcome: Outcome<'_>, command: &str, out: &mut dyn Write) -> Result<()> {
    let Outcome { plan, applied } = outcome;
    let is_applied = applied.is_some_and(Applied::is_kept);
    for (target, _) in plan.targets.iter().filter(|(_, refused)| refused.is_none()) {
        let Target { name, line, path, .. } = target;
        let (old, new) = (target.current.size, target.promised.size);
        let path = path.strip_prefix(&plan.root).unwrap_or(path).display();
        let verb = if is_applied { "edited" } else { "left as it is" };
        let some = |replacement, about: &str| {
            let names = names(target, replacement);
            if names.is_empty() { String::new() } else { format!(" with {} {about}", names.join(", ")) }
        };
        let striped = some(Replacement::StripedCounter, "striped by threads");
        let lines = some(Replacement::CacheLine, "on lines of their own");
        writeln!(out, "{name} at {path}:{line}: {old} -> {new} bytes{striped}{lines}; {verb}")?;
    }
    if let Ok(extent) = &plan.verified
        && !plan.edits.is_empty()
    {
        writeln!(out, "{} units compiled, {} layouts as promised", extent.units, extent.layouts)?;
    }
    if applied.is_some_and(Applied::is_built) {
        writeln!(out, "the program that --build makes has the layouts as promised")?;
    }
    if let Some(speed_up) = applied.and_then(Applied::speed_up) {
        writeln!(out, "{speed_up}")?;
    }
    if is_applied {
        writeln!(out, "undo: tallyline {command} --undo --root {}", plan.root.display())?;
    }
    Ok(())
}
