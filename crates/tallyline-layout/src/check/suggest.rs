//! A policy to start with: what holds now.

use super::parse::is_name;
use super::policy::wanted_for;
use super::subjects::{Subject, Subjects};
use crate::groups::{FoundGroups, find};
use crate::query::{field_at, holes};
use std::collections::BTreeSet;
use std::fmt::Write;
use tallyline_debuginfo::Wanted;
use tallyline_debuginfo::lookup::{Definitions, fits, is_pattern};
use tallyline_debuginfo::model::Types;

/// The names of the types that a suggested layout policy (limits on sizes, holes, padding and cache-line groups, in
/// TOML) has rules about.
#[derive(Clone, Debug, Default)]
pub struct SuggestedNames(Vec<String>);

impl SuggestedNames {
    /// Collects the names of the types that a suggested layout policy gets rules about: those that have one of the
    /// names `patterns` or match one of them as a pattern; if `patterns` is empty, all with cache-line groups.
    pub fn new(types: &Types, patterns: &[String], cacheline: u64) -> SuggestedNames {
        let mut definitions = Definitions::new(types);
        let exact = patterns.iter().flat_map(|name| definitions.called(name.as_bytes())).collect::<Vec<_>>();
        let exact: BTreeSet<_> = exact.into_iter().map(|id| types.strip(id)).collect();
        let mut names = BTreeSet::new();
        for (id, record) in definitions.records() {
            let record = types.record(*record);
            let name = types.name(types.type_name(*id));
            let wanted = match patterns {
                [] => !find(types, record, cacheline).groups.is_empty(),
                _ => {
                    exact.contains(id)
                        || patterns.iter().any(|pattern| {
                            fits(pattern.as_bytes(), name)
                                || fits(pattern.as_bytes(), &types.qualified_name(*id))
                        })
                }
            };
            // a damaged file has names that no rule can have
            names.extend(std::str::from_utf8(name).ok().filter(|name| wanted && is_name(name)));
        }
        // a typedef of what has no name
        let typedefs = patterns.iter().filter(|name| {
            let found = definitions.called(name.as_bytes()).into_iter().map(|id| types.strip(id));
            is_name(name)
                && found.filter_map(|id| types.as_record(id)).any(|(_, record)| !record.name.is_some())
        });
        let typedefs: Vec<&String> = typedefs.collect();
        SuggestedNames(names.into_iter().map(String::from).chain(typedefs.into_iter().cloned()).collect())
    }

    /// Returns `true` if there is no type for the suggested layout policy to have rules about.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Splits the names of types for a suggested layout policy into plain names and those that look like patterns (such
    /// as `P<char *>`), as the two need different types to be read from the debug information: see
    /// [`Policy::parts`](super::Policy::parts).
    pub fn parts(self) -> impl Iterator<Item = SuggestedNames> {
        let (patterns, names): (Vec<String>, Vec<String>) =
            self.0.into_iter().partition(|name| is_pattern(name));
        [names, patterns].into_iter().map(SuggestedNames).filter(|part| !part.is_empty())
    }

    /// Returns the choice of types that have to be read from a file's debug information to check the file against the
    /// suggested layout policy.
    pub fn wanted(&self) -> Wanted {
        wanted_for(self.0.iter().map(String::as_str))
    }
}

/// Appends to `text` a layout policy in TOML (or its next part): limits on sizes, holes, padding and cache-line groups
/// that the present layouts of the named types satisfy. A rule covers every definition of its name, so the largest of
/// them sets the limits.
pub fn suggest(types: &Types, names: &SuggestedNames, cacheline: u64, text: &mut String) {
    if text.is_empty() {
        let _ = writeln!(text, "cacheline = {}", cacheline.max(1));
    }
    let mut subjects = Subjects::new(types);
    for name in &names.0 {
        let found = subjects.matching(name);
        if !found.is_empty() {
            let name = quoted(name);
            type_rule(types, &found, &name, text);
            group_rules(types, &found, &name, cacheline, text);
        }
    }
}

fn type_rule(types: &Types, found: &[Subject<'_>], name: &str, text: &mut String) {
    let most = |value: &dyn Fn(&Subject<'_>) -> u64| found.iter().map(value).max().unwrap_or(0);
    let size = most(&|subject| subject.record.size);
    let _ = writeln!(text, "\n[[type]]\nname = {name}\nmax-size = {size}");
    if found.iter().all(|subject| subject.record.is_struct()) {
        let count = most(&|subject| holes(types, subject.record).bytes.len() as u64);
        let padding = most(&|subject| holes(types, subject.record).padding);
        let _ = writeln!(text, "max-holes = {count}\nmax-padding = {padding}");
    }
}

/// Rules about the groups that every definition of a name has.
fn group_rules(types: &Types, found: &[Subject<'_>], name: &str, cacheline: u64, text: &mut String) {
    let of_all: Vec<FoundGroups> =
        found.iter().map(|subject| find(types, subject.record, cacheline)).collect();
    let Some(first) = of_all.first() else { return };
    let mut seen = BTreeSet::new();
    for group in first.groups.iter().filter(|group| is_name(&group.name)) {
        let others = of_all.iter().map(|of| of.groups.iter().find(|other| other.name == group.name));
        let Some(others) = others.collect::<Option<Vec<_>>>() else { continue };
        if !seen.insert(&group.name) || of_all.iter().any(|of| !of.problems.is_empty()) {
            continue;
        }
        let is_in_all = |path: &str| {
            found.iter().zip(&others).all(|(subject, group)| {
                field_at(types, subject.record, path).is_some_and(|field| group.spans(&field))
            })
        };
        let _ = write!(text, "\n[[group]]\ntype = {name}\nname = {}\nmembers = [", quoted(&group.name));
        for named in group.members.iter().filter(|named| is_name(&named.path) && is_in_all(&named.path)) {
            let _ = write!(text, "\n    {},", quoted(&named.path));
        }
        let most = |value: &dyn Fn(&crate::groups::Group) -> u64| {
            others.iter().map(|group| value(group)).max().unwrap_or(0)
        };
        let _ = writeln!(text, "\n]\nmax-size = {}", most(&|group| group.bytes()));
        if !others.iter().any(|group| group.straddles(cacheline)) {
            text.push_str("straddle = false\n");
        }
        let _ = writeln!(text, "max-hole-bytes = {}", most(&|group| group.hole_bytes()));
    }
}

/// Returns a name as a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        if matches!(letter, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted.push('"');
    quoted
}
