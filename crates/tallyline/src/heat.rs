//! The heat of types: the share of a recording's samples at each of their fields.

use crate::profile::{self, InputArgs};
use anyhow::Result;
use std::collections::HashMap;
use std::path::Path;
use tallyline_report::Weighing;
use tallyline_report::annotate::annotate;
use tallyline_report::keys::Needs;

/// The share below which a field is not named, in ten thousandths of all samples.
const LEAST: u64 = 10;

/// The share of a recording's samples that access a type and each of its fields, in units of 0.01 %.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Heat {
    pub(crate) share: u64,
    /// Fields with their shares, the hottest first.
    pub(crate) fields: Vec<(String, u64)>,
}

/// Formats a share given in units of 0.01 % as a percentage.
pub(crate) fn percent(share: u64) -> String {
    format!("{}.{} %", share / 100, share / 10 % 10)
}

/// Reads a perf.data file and returns the share of samples that access each type, by the type's qualified name.
pub(crate) fn heat(path: &Path) -> Result<HashMap<String, Heat>> {
    let profile = profile::load(&InputArgs::of(path), Needs::TYPES)?;
    let weighing = Weighing::Period;
    let all: u64 = profile.groups().iter().fold(0, |all: u64, group| all.saturating_add(weighing.of(group)));
    let share = |part: u64| (u128::from(part) * 10_000 / u128::from(all.max(1))) as u64;
    let mut found: HashMap<String, Heat> = HashMap::new();
    for of_type in annotate(&profile, weighing, |_| true) {
        // one name may be of several files
        let heat = found.entry(plain(of_type.element().unwrap_or(of_type.name())).to_owned()).or_default();
        heat.share += share(of_type.whole().total());
        for member in of_type.members() {
            let share = share(of_type.of_member(&[member.number()]).total());
            match heat.fields.iter_mut().find(|(name, _)| name == member.name()) {
                Some((_, known)) => *known += share,
                None if !member.name().is_empty() => heat.fields.push((member.name().to_owned(), share)),
                None => {}
            }
        }
    }
    for heat in found.values_mut() {
        heat.fields.retain(|(_, share)| *share >= LEAST);
        heat.fields.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    }
    profile::keep_to_the_end(profile);
    found.retain(|_, heat| heat.share != 0);
    Ok(found)
}

/// Returns the name of a type without its keyword.
fn plain(name: &str) -> &str {
    ["struct ", "class ", "union "].iter().find_map(|keyword| name.strip_prefix(keyword)).unwrap_or(name)
}
