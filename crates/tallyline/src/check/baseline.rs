//! Findings that may stay because they were there before: no worse than the baseline.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use tallyline_layout::check::Finding;

/// The limit on the size of a baseline: some hundred thousand findings.
const SIZE_LIMIT: u64 = 64 << 20;

/// The identity of a finding: its rule, type, member and unit. Lines move, and messages have sizes in them.
type Key = [String; 4];

/// The findings of an earlier check, as `--format json` wrote them.
pub(super) struct Baseline {
    /// The measured values by key, one for each finding.
    left: HashMap<Key, Vec<Option<u64>>>,
    reason: String,
}

impl Baseline {
    /// Reads the document of an earlier check.
    pub(super) fn read(path: &Path) -> Result<Baseline> {
        let name = path.display();
        let size = std::fs::metadata(path).with_context(|| format!("cannot read {name}"))?.len();
        if size > SIZE_LIMIT {
            bail!("{name}: {size} bytes, a baseline has {SIZE_LIMIT} at most");
        }
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        let document: Value = serde_json::from_str(&text)
            .with_context(|| format!("{name}: no baseline; `tallyline check --format json` writes one"))?;
        if document["schema"] != 1 {
            bail!("{name}: schema {} is not known, expected 1: write the baseline again", document["schema"]);
        }
        let Some(findings) = document["findings"].as_array() else {
            bail!("{name}: no findings in it; `tallyline check --format json` writes a baseline");
        };
        let mut left: HashMap<Key, Vec<Option<u64>>> = HashMap::new();
        for finding in findings {
            let text = |key: &str| finding[key].as_str().unwrap_or_default().to_string();
            let key = [text("rule"), text("type"), text("member"), text("unit")];
            left.entry(key).or_default().push(finding["measured"].as_u64());
        }
        Ok(Baseline { left, reason: format!("no worse than {name}") })
    }

    /// Allows a finding that is in the baseline and not worse than there; each one of the baseline allows one.
    pub(super) fn allow(&mut self, finding: &mut Finding) {
        let text = |text: Option<&str>| text.unwrap_or_default().to_string();
        let key = [
            finding.rule().to_string(),
            finding.ty().to_string(),
            text(finding.member()),
            text(finding.unit()),
        ];
        let Some(before) = self.left.get_mut(&key) else { return };
        let is_no_worse = |before: &Option<u64>| match (finding.measured(), before) {
            (Some(now), Some(before)) => now <= *before,
            _ => true,
        };
        let Some(index) = before.iter().position(is_no_worse) else { return };
        before.swap_remove(index);
        finding.allow(&self.reason);
    }
}
