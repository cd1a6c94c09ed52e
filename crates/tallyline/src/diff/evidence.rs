//! The evidence that a difference matters: instances of a type, samples of a recording, rules of a policy.

use super::DiffArgs;
use crate::heat::{Heat, heat, percent};
use crate::instances::Instances;
use anyhow::{Context, Result};
use std::collections::{BTreeSet, HashMap};
use tallyline_debuginfo::model::Types;
use tallyline_layout::check::{Policy, UNUSED_ALLOW, check};
use tallyline_layout::diff::TypeChange;

/// The number of fields named of a type.
const NAMED: usize = 4;

/// The evidence about all types.
#[derive(Default)]
pub(super) struct Evidence {
    instances: Instances,
    has_instances: bool,
    heat: HashMap<String, Heat>,
    policy: Option<(String, Policy)>,
    /// The rules that a type breaks in the new file, and not in the old one.
    broken: HashMap<String, BTreeSet<&'static str>>,
}

impl Evidence {
    /// Reads what the command line names; nothing where it names nothing.
    pub(super) fn gather(args: &DiffArgs, old: &Types, new: &Types) -> Result<Evidence> {
        let mut evidence = Evidence {
            instances: Instances::read(args.instances.as_deref())?,
            has_instances: args.instances.is_some(),
            ..Evidence::default()
        };
        if let Some(path) = &args.profile {
            evidence.heat = heat(path, args.event.as_ref())?;
        }
        if let Some(path) = &args.policy {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
            let policy = Policy::parse(&text).with_context(|| name.clone())?;
            evidence.broken = broken(old, new, &policy);
            evidence.policy = Some((name, policy));
        }
        Ok(evidence)
    }

    /// Returns the number of instances of a type, 1 where it is not known.
    pub(super) fn instances(&self, change: &TypeChange) -> u64 {
        self.instances.of(change.name())
    }

    /// Returns the number of instances if the command line gives a list.
    pub(super) fn known_instances(&self, change: &TypeChange) -> Option<u64> {
        self.has_instances.then(|| self.instances(change))
    }

    /// Returns the samples at a type; none if it has none.
    pub(super) fn heat(&self, change: &TypeChange) -> Option<&Heat> {
        self.heat.get(change.name())
    }

    /// Returns the lines of the policy's rules about a type.
    pub(super) fn rules(&self, change: &TypeChange) -> Vec<(u32, &'static str)> {
        self.policy.as_ref().map(|(_, policy)| policy.rules_about(change.name())).unwrap_or_default()
    }

    /// Returns the rules that a type newly breaks.
    pub(super) fn broken(&self, change: &TypeChange) -> Vec<&'static str> {
        self.broken.get(change.name()).into_iter().flatten().copied().collect()
    }

    /// Describes the evidence about a type, a part each: samples, instances, rules.
    pub(super) fn notes(&self, change: &TypeChange) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(heat) = self.heat(change) {
            let fields: Vec<String> = heat
                .fields
                .iter()
                .take(NAMED)
                .map(|(name, share)| format!("{name} {}", percent(*share)))
                .collect();
            let fields = if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) };
            notes.push(format!("{}{fields}", heat.summary()));
        }
        if let (Some(count @ 2..), growth @ (1.. | ..=-1)) = (self.known_instances(change), change.growth()) {
            notes.push(format!("{count} instances: {:+} bytes", growth.saturating_mul(i128::from(count))));
        }
        if let Some((name, _)) = &self.policy {
            let rules = self.rules(change);
            let at: Vec<String> =
                rules.iter().map(|(line, kind)| format!("{name}:{line} ([[{kind}]])")).collect();
            let broken = self.broken(change);
            match (at.is_empty(), broken.is_empty()) {
                (true, _) => {}
                (false, true) => notes.push(format!("held by {}", at.join(", "))),
                (false, false) => notes.push(format!("breaks {} of {}", broken.join(", "), at.join(", "))),
            }
        }
        notes
    }
}

/// Returns the rules that types break in the new file only.
fn broken(old: &Types, new: &Types, policy: &Policy) -> HashMap<String, BTreeSet<&'static str>> {
    let findings = |types: &Types| -> BTreeSet<(String, &'static str, Option<String>)> {
        let report = check(types, policy);
        let denied = report.findings.iter().filter(|finding| {
            finding.allowed().is_none() && !["unknown-type", UNUSED_ALLOW].contains(&finding.rule())
        });
        denied
            .map(|finding| (finding.ty().to_owned(), finding.rule(), finding.member().map(str::to_owned)))
            .collect()
    };
    let before = findings(old);
    let mut broken: HashMap<String, BTreeSet<&'static str>> = HashMap::new();
    for (ty, rule, member) in findings(new) {
        if !before.contains(&(ty.clone(), rule, member)) {
            broken.entry(ty).or_default().insert(rule);
        }
    }
    broken
}
