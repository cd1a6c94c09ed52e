//! The heat of types: the share of the samples of a recording's event at each of their fields.

use crate::profile::{self, InputArgs, Patterns};
use anyhow::{Result, bail};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tallyline_report::annotate::annotate;
use tallyline_report::keys::Needs;
use tallyline_report::pattern::NameKind;
use tallyline_report::{Filter, SampleGroup, Weighing};
use tallyline_support::output::printable;

/// The share below which a field is not named, in ten thousandths of all samples.
const LEAST: u64 = 10;

/// The share of the samples of one event that access a type and each of its fields, in units of 0.01 %.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heat {
    pub(crate) share: u64,
    /// Fields with their shares, the hottest first.
    pub(crate) fields: Vec<(String, u64)>,
    /// The name of the event that the shares are of.
    pub(crate) event: Arc<str>,
    /// `true` if the recording has samples of other events, too.
    pub(crate) has_other_events: bool,
}

impl Heat {
    /// Formats the type's share: `40.0 % of the samples`, with the event if the recording has several.
    pub(crate) fn summary(&self) -> String {
        let share = percent(self.share);
        match self.has_other_events {
            true => format!("{share} of the samples of event '{}'", printable(self.event.as_bytes())),
            false => format!("{share} of the samples"),
        }
    }
}

/// Formats a share given in units of 0.01 % as a percentage.
pub(crate) fn percent(share: u64) -> String {
    format!("{}.{} %", share / 100, share / 10 % 10)
}

/// Reads a perf.data file and returns the share of the samples of one event that access each type, by the type's
/// qualified name: of the wanted event, else of the first that has samples. Periods of different events (cycles, page
/// faults) do not add up.
///
/// # Errors
/// An unreadable recording, or a wanted event that it has no samples of or several.
pub(crate) fn heat(path: &Path, wanted: Option<&Patterns>) -> Result<HashMap<String, Heat>> {
    let profile = profile::load(&InputArgs::of(path), Needs::TYPES)?;
    let mut events = profile::sampled_events(&profile, &Filter::default());
    let has_other_events = events.len() > 1;
    if !events.is_empty()
        && let Some(names) = profile::names::resolve(NameKind::Event, wanted, &[&profile])?
    {
        events.retain(|(name, _)| names.contains(name));
        if events.len() > 1 {
            let list: Vec<_> = events.iter().map(|(name, _)| printable(name.as_bytes())).collect();
            let list = list.join(", ");
            bail!("--event: {list}: the periods of different events do not add up; name one");
        }
    }
    let Some((event, indices)) = events.into_iter().next() else { return Ok(HashMap::new()) };
    let event: Arc<str> = event.into();
    let is_of_event = |group: &SampleGroup| indices.contains(&(group.event as usize));
    let weighing = Weighing::Period;
    let all = profile
        .groups()
        .iter()
        .filter(|group| is_of_event(group))
        .fold(0, |all: u64, group| all.saturating_add(weighing.of(group)));
    let share = |part: u64| (u128::from(part) * 10_000 / u128::from(all.max(1))) as u64;
    let mut found: HashMap<String, Heat> = HashMap::new();
    for of_type in annotate(&profile, weighing, is_of_event) {
        // one name may be of several files
        let name = match of_type.qualified_name() {
            "" => plain(of_type.element().unwrap_or(of_type.name())),
            name => name,
        };
        let name = name.to_owned();
        let none = || Heat { share: 0, fields: Vec::new(), event: event.clone(), has_other_events };
        let heat = found.entry(name).or_insert_with(none);
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
