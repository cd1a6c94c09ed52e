//! Names on the command line, and those of a recording's samples that they stand for.

use anyhow::{Result, bail};
use std::collections::{BTreeSet, HashSet};
use tallyline_debuginfo::lookup::find_mentioned;
use tallyline_inference::TypeTable;
use tallyline_report::filter::{qualified_types, sampled_names};
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

    /// Selects names of samples as [`Patterns::select`] does; of types also by their names with scopes, as layouts show
    /// them. Messages say if a pattern is a type without samples, or a typedef of one that samples have.
    ///
    /// # Errors
    /// A pattern that matches no name, or is an ambiguous part of several.
    pub(crate) fn select_in(
        &self,
        kind: NameKind,
        names: &BTreeSet<&str>,
        profiles: &[&Profile],
    ) -> Result<HashSet<String>> {
        if kind != NameKind::Type {
            return self.select(kind, names);
        }
        let mut all = HashSet::new();
        for pattern in &self.0 {
            let found = pattern.find(kind, names);
            if matches!(found, PatternMatch::Names(_, FoundBy::Name | FoundBy::Pattern | FoundBy::Template)) {
                if matches!(found, PatternMatch::Names(_, FoundBy::Pattern)) {
                    all.extend(select_qualified(pattern, names, profiles));
                }
                all.extend(report(kind, pattern, found, names, false)?.into_iter().map(str::to_owned));
                continue;
            }
            let qualified = select_qualified(pattern, names, profiles);
            if !qualified.is_empty() {
                all.extend(qualified);
                continue;
            }
            let text = pattern.to_string();
            let mention = mention(&text, names, profiles);
            if let (PatternMatch::Nothing(_), Some(Mention::Typedef(name))) = (&found, &mention) {
                let name = listed([*name].into_iter());
                bail!("no samples of type {pattern}, a typedef of {name}: name that");
            }
            all.extend(
                report(kind, pattern, found, names, mention.is_some())?.into_iter().map(str::to_owned),
            );
        }
        Ok(all)
    }
}

/// Returns those of `names`, names of types in samples, of which a pattern matches the name with scopes.
fn select_qualified(pattern: &NamePattern, names: &BTreeSet<&str>, profiles: &[&Profile]) -> HashSet<String> {
    let mut all = HashSet::new();
    for profile in profiles {
        let types = qualified_types(profile);
        let PatternMatch::Names(found, by) =
            pattern.find(NameKind::Type, &types.keys().map(String::as_str).collect())
        else {
            continue;
        };
        if by != FoundBy::Part {
            let known = found.into_iter().filter_map(|name| types.get(name)).flatten();
            all.extend(known.filter(|name| names.contains(*name)).map(|name| (*name).to_owned()));
        }
    }
    all
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

/// A type in the debug information of sampled files that no sample has by its name.
enum Mention<'n> {
    /// A typedef of a type that samples have, which has this name.
    Typedef(&'n str),
    /// Another type.
    Unsampled,
}

/// Finds a type by its name in the debug information of sampled files; `names` are those of types that samples have.
fn mention<'n>(name: &str, names: &BTreeSet<&'n str>, profiles: &[&Profile]) -> Option<Mention<'n>> {
    let tables = profiles.iter().flat_map(|profile| {
        let dsos: BTreeSet<_> =
            profile.groups().iter().filter_map(|group| profile.place(group.charged).dso).collect();
        dsos.into_iter().filter_map(|dso| profile.type_table(dso))
    });
    let mut found = None;
    for types in tables.map(TypeTable::types) {
        let Some(id) = find_mentioned(types, name.as_bytes()) else { continue };
        found = Some(Mention::Unsampled);
        let target = types.strip(id);
        if target == id {
            continue;
        }
        let Some((_, record)) = types.as_record(target) else { continue };
        let record = String::from_utf8_lossy(types.name(record.name));
        if let Ok(record) = NamePattern::parse(&record)
            && let PatternMatch::Names(sampled, FoundBy::Name) = record.find(NameKind::Type, names)
            && let Some(sampled) = sampled.first()
        {
            return Some(Mention::Typedef(sampled));
        }
    }
    found
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
    report(kind, pattern, pattern.find(kind, names), names, false)
}

/// Returns the names that a pattern matched; prints a note if it did not match exactly. `exists` says that there is
/// such a type, which has no samples.
fn report<'n>(
    kind: NameKind,
    pattern: &NamePattern,
    found: PatternMatch<'n>,
    names: &BTreeSet<&'n str>,
    exists: bool,
) -> Result<BTreeSet<&'n str>> {
    let what = word(kind);
    let missing = if exists { format!("no samples of {what}") } else { format!("no {what} is named") };
    match found {
        PatternMatch::Names(found, FoundBy::Part) => {
            eprintln!("tallyline: {missing} {pattern}; showing {}", listed(found.iter().copied()));
            Ok(found)
        }
        PatternMatch::Names(found, FoundBy::Template) if found.len() > 1 => {
            eprintln!("tallyline: {pattern}: {}", listed(found.iter().copied()));
            Ok(found)
        }
        PatternMatch::Names(found, _) => Ok(found),
        PatternMatch::Ambiguous(found) => bail!(
            "{missing} {pattern}; {} have that in their names: {}; name one in full, or all as '*{pattern}*'",
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
