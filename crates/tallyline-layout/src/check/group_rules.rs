//! Rules about a group of members.

use super::policy::GroupRule;
use super::subjects::Subject;
use super::{Notes, plural};
use crate::groups::{Group, find};
use crate::query::{field_at, fields};
use tallyline_debuginfo::lookup::{did_you_mean, nearest};
use tallyline_debuginfo::model::{Record, Types};

pub(super) fn check(types: &Types, subject: &Subject<'_>, asked: &GroupRule, notes: &mut Notes<'_>) {
    let line = notes.policy.cacheline;
    let name = asked.name.as_str();
    let found = find(types, subject.record, line);
    for problem in &found.problems {
        notes.add("group-markers", Some(name), subject.record.declared_at, problem.clone());
    }
    let names: Vec<String> = found.groups.iter().map(|group| group.name.clone()).collect();
    let marked = found.groups.into_iter().find(|group| group.name == asked.name);
    let group = match marked {
        Some(group) => {
            members(types, subject, &group, asked, notes);
            group
        }
        None if asked.members.is_empty() => {
            let near = did_you_mean(name, names.iter().map(String::as_str));
            let message = format!("no group {name}: no markers, and the rule names no members{near}");
            return notes.unknown("unknown-group", Some(name), message);
        }
        None => match Group::listed(types, subject.record, name, &asked.members, line) {
            Ok(group) => group,
            Err(missing) => {
                return missing.iter().for_each(|member| unknown_member(types, subject, member, notes));
            }
        },
    };
    limits(&group, asked, notes);
    if asked.exclusive {
        exclusive(types, &group, notes);
    }
}

/// Notes that a type has no such member, with the names that are nearest to it in the type where the
/// path still leads.
pub(super) fn unknown_member(types: &Types, subject: &Subject<'_>, member: &str, notes: &mut Notes<'_>) {
    let near = nearest_members(types, subject.record, member);
    notes.unknown("unknown-member", Some(member), format!("no member {member}{near}"));
}

/// Returns `; did you mean …?` for a path like `stats.bytes`, of which the first part that leads
/// nowhere is the misspelt one.
fn nearest_members(types: &Types, record: &Record, member: &str) -> String {
    let (mut record, mut path, mut rest) = (record, String::new(), member);
    loop {
        let (part, behind) = rest.split_once('.').map_or((rest, None), |(part, behind)| (part, Some(behind)));
        let known = field_at(types, record, part);
        let inner = known.and_then(|field| types.as_record(types.strip(field.ty)).map(|(_, record)| record));
        match (inner, behind) {
            (Some(inner), Some(behind)) => {
                path.push_str(part);
                path.push('.');
                (record, rest) = (inner, behind);
            }
            _ => break,
        }
    }
    let (part, behind) = rest.split_once('.').unwrap_or((rest, ""));
    let (part, index) = part.split_once('[').map_or((part, None), |(part, index)| (part, Some(index)));
    let names: Vec<String> = fields(types, record)
        .iter()
        .map(|field| String::from_utf8_lossy(types.name(field.name)).into_owned())
        // right as far as it goes, and no way in: an array or a pointer
        .filter(|name| name != part)
        .collect();
    let near = nearest(part, names.iter().map(String::as_str));
    let tail = match (index, behind) {
        (Some(index), "") => format!("[{index}"),
        (Some(index), behind) => format!("[{index}.{behind}"),
        (None, "") => String::new(),
        (None, behind) => format!(".{behind}"),
    };
    let near: Vec<String> = near.iter().map(|name| format!("{path}{name}{tail}")).collect();
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

/// Checks the membership that a rule requires of a marked group.
fn members(types: &Types, subject: &Subject<'_>, group: &Group, asked: &GroupRule, notes: &mut Notes<'_>) {
    for member in &asked.members {
        let Some(field) = field_at(types, subject.record, member) else {
            unknown_member(types, subject, member, notes);
            continue;
        };
        if !group.spans(&field) {
            let message = format!(
                "it lies at {}–{}, and group {} at {}–{}",
                field.start(),
                field.end(),
                group.name,
                group.start,
                group.end
            );
            notes.add("group-members", Some(member), field.declared_at, message);
        }
    }
}

fn limits(group: &Group, asked: &GroupRule, notes: &mut Notes<'_>) {
    let line = notes.policy.cacheline;
    let at = group.declared_at;
    let name = Some(group.name.as_str());
    let lines = group.line_count(line);
    let mut limit = |rule, value: u64, most: Option<u64>, what: &str, unit: &str| {
        if let Some(most) = most.filter(|most| value > *most) {
            notes.add_limit(rule, name, at, value, format!("{what} {}, {most} allowed", plural(value, unit)));
        }
    };
    limit("group-size", group.bytes(), asked.max_size, "the group has", "byte");
    limit("group-lines", lines, asked.max_lines, "the group lies on", "cache line");
    limit("group-hole-bytes", group.hole_bytes(), asked.max_hole_bytes, "the group's holes have", "byte");
    let (first, _) = group.lines(line);
    if let Some(wanted) = asked.starts_on.filter(|wanted| *wanted != first) {
        notes.add("group-line", name, at, format!("the group starts on line {first}, not on {wanted}"));
    }
    if !asked.may_straddle && group.straddles(line) {
        let need = group.bytes().div_ceil(line);
        let message = format!(
            "the group straddles: {} at {} on {lines} lines, {need} would do",
            plural(group.bytes(), "byte"),
            group.start
        );
        notes.add("group-straddles", name, at, message);
    }
}

fn exclusive(types: &Types, group: &Group, notes: &mut Notes<'_>) {
    for foreign in &group.foreign {
        let name = String::from_utf8_lossy(types.name(foreign.field.name)).into_owned();
        let (start, end) = (foreign.field.start(), foreign.field.end());
        let message = format!("{name} at {start}–{end} lies on the lines of the group");
        notes.add("group-exclusive", Some(&group.name), foreign.field.declared_at, message);
    }
}
