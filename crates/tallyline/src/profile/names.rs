//! Names on the command line, and those of a recording's samples that they stand for.

use anyhow::{Result, bail};
use std::collections::{BTreeSet, HashSet};
use tallyline_debuginfo::lookup::find_mentioned;
use tallyline_inference::TypeTable;
use tallyline_report::filter::sampled_names;
use tallyline_report::pattern::{FoundBy, NameKind, NamePattern, PatternMatch};
use tallyline_report::{Filter, Profile};

/// The number of names that a message lists.
const LISTED: usize = 5;

/// The most characters of a name that a message shows.
const NAME_WIDTH: usize = 60;

/// A comma-separated list of name patterns (of functions, types, …) from the command line.
#[derive(Clone, Debug)]
pub(crate) struct Patterns(Vec<NamePattern>);

impl Patterns {
    /// Parses a comma-separated list of names, globs, and regular expressions between slashes.
    pub(crate) fn parse(text: &str) -> Result<Patterns, String> {
        let patterns = NamePattern::parse_list(text)?;
        if patterns.is_empty() {
            return Err(
                "expected a name, a glob such as 'tcp_*', or a regular expression such as '/^tcp/'".into()
            );
        }
        Ok(Patterns(patterns))
    }

    /// Returns those of `names`, the names of one `kind` (functions, types, …) in a recording's samples, that the
    /// patterns match.
    ///
    /// # Errors
    /// A pattern that matches no name, or is an ambiguous part of several.
    pub(crate) fn select(&self, kind: NameKind, names: &BTreeSet<&str>) -> Result<HashSet<String>> {
        let mut all = HashSet::new();
        for pattern in &self.0 {
            all.extend(select(kind, pattern, names)?.into_iter().map(str::to_owned));
        }
        Ok(all)
    }

    /// Selects names of samples as [`Patterns::select`] does. The error says if a pattern is a typedef of a type that
    /// samples have.
    ///
    /// # Errors
    /// A pattern that matches no name, or is an ambiguous part of several.
    pub(crate) fn select_in(
        &self,
        kind: NameKind,
        names: &BTreeSet<&str>,
        profiles: &[&Profile],
    ) -> Result<HashSet<String>> {
        if kind == NameKind::Type {
            for pattern in &self.0 {
                if matches!(pattern.find(kind, names), PatternMatch::Nothing(_))
                    && let Some(name) = typedef_of(&pattern.to_string(), names, profiles)
                {
                    bail!(
                        "no samples of type {pattern}, a typedef of {}: name that",
                        listed([name].into_iter())
                    );
                }
            }
        }
        self.select(kind, names)
    }
}

/// Returns the names of one `kind` (functions, types, …) in the samples of the profiles that match any of the patterns;
/// `None` if there are no patterns.
///
/// # Errors
/// A pattern that matches no name, or is an ambiguous part of several.
pub(crate) fn resolve<'p>(
    kind: NameKind,
    patterns: impl IntoIterator<Item = &'p Patterns>,
    profiles: &[&Profile],
) -> Result<Option<HashSet<String>>> {
    let mut patterns = patterns.into_iter().peekable();
    if patterns.peek().is_none() {
        return Ok(None);
    }
    let names = profiles.iter().flat_map(|profile| sampled_names(profile, kind)).collect();
    let mut all = HashSet::new();
    for patterns in patterns {
        all.extend(patterns.select_in(kind, &names, profiles)?);
    }
    Ok(Some(all))
}

/// Returns the name, one of `names`, of the record that a typedef in the debug information of sampled files stands for.
fn typedef_of<'n>(typedef: &str, names: &BTreeSet<&'n str>, profiles: &[&Profile]) -> Option<&'n str> {
    let tables = profiles.iter().flat_map(|profile| {
        let dsos: BTreeSet<_> =
            profile.groups().iter().filter_map(|group| profile.place(group.charged).dso).collect();
        dsos.into_iter().filter_map(|dso| profile.type_table(dso))
    });
    tables.map(TypeTable::types).find_map(|types| {
        let id = find_mentioned(types, typedef.as_bytes())?;
        let (_, record) = types.as_record(types.strip(id))?;
        let record = String::from_utf8_lossy(types.name(record.name));
        match NamePattern::parse(&record).ok()?.find(NameKind::Type, names) {
            PatternMatch::Names(found, FoundBy::Name) => found.first().copied(),
            _ => None,
        }
    })
}

/// Returns the events of the samples that pass the filter: names, each with the indices of the events that have it.
pub(crate) fn sampled_events(profile: &Profile, filter: &Filter) -> Vec<(String, Vec<usize>)> {
    let mut has_samples = vec![false; profile.info().events.len()];
    for point in profile.groups().iter().filter(|point| filter.accepts(profile, point)) {
        has_samples[point.event as usize] = true;
    }
    let mut events: Vec<(String, Vec<usize>)> = Vec::new();
    for (index, event) in profile.info().events.iter().enumerate().filter(|(index, _)| has_samples[*index]) {
        match events.iter_mut().find(|(name, _)| *name == event.name) {
            Some((_, indices)) => indices.push(index),
            None => events.push((event.name.clone(), vec![index])),
        }
    }
    events
}

/// Returns those of `names`, the names of one `kind` (functions, types, …) in a recording's samples, that a pattern
/// matches; prints a note if it did not match exactly.
pub(crate) fn select<'n>(
    kind: NameKind,
    pattern: &NamePattern,
    names: &BTreeSet<&'n str>,
) -> Result<BTreeSet<&'n str>> {
    let what = word(kind);
    match pattern.find(kind, names) {
        PatternMatch::Names(found, FoundBy::Part) => {
            eprintln!("tallyline: no {what} is named {pattern}; showing {}", listed(found.iter().copied()));
            Ok(found)
        }
        PatternMatch::Names(found, FoundBy::Template) if found.len() > 1 => {
            eprintln!("tallyline: {pattern}: {}", listed(found.iter().copied()));
            Ok(found)
        }
        PatternMatch::Names(found, _) => Ok(found),
        PatternMatch::Ambiguous(found) => bail!(
            "no {what} is named {pattern}; {} have that in their names: {}; name one in full, or all as '*{pattern}*'",
            found.len(),
            listed(found.iter().copied())
        ),
        PatternMatch::Nothing(near) if near.is_empty() => {
            bail!("no samples of {what} {pattern}; {}", advice(kind, names))
        }
        PatternMatch::Nothing(near) => bail!(
            "no samples of {what} {pattern}; the nearest names are {}; {}",
            listed(near.into_iter()),
            advice(kind, names)
        ),
    }
}

fn word(kind: NameKind) -> &'static str {
    match kind {
        NameKind::Type => "type",
        NameKind::Function => "function",
        NameKind::File => "file",
        NameKind::Thread => "thread",
        NameKind::Event => "event",
    }
}

/// Lists the existing names if they are few, else names the report that lists them.
fn advice(kind: NameKind, names: &BTreeSet<&str>) -> String {
    let key = match kind {
        NameKind::Type => "type",
        NameKind::Function => "sym",
        NameKind::File => "dso",
        NameKind::Thread => "comm",
        NameKind::Event => return format!("there are {}", listed(names.iter().copied())),
    };
    let few = match names.len() {
        0 => "there are none".to_owned(),
        1..=LISTED => format!("there are {}", listed(names.iter().copied())),
        many => format!("there are {many}"),
    };
    format!("{few}: tallyline report -s {key}")
}

/// Lists the first few names with commas between.
fn listed<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let rest = names.len().saturating_sub(LISTED);
    let clean = |name: &str| {
        let name = tallyline_support::output::printable(name.as_bytes()).into_owned();
        crate::columns::shortened(&name, NAME_WIDTH).into_owned()
    };
    let mut list: Vec<_> = names.take(LISTED).map(clean).collect();
    if rest > 0 {
        list.push(format!("and {rest} more"));
    }
    list.join(", ")
}
