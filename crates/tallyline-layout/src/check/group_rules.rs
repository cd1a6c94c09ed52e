//! Rules about a group of members.

use super::policy::GroupRule;
use super::subjects::Subject;
use super::{Notes, plural};
use crate::groups::{Group, find};
use crate::model::Types;
use crate::query::field_at;

pub(super) fn check(types: &Types, subject: &Subject<'_>, asked: &GroupRule, notes: &mut Notes<'_>) {
    let line = notes.policy.cacheline;
    let name = asked.name.as_str();
    let found = find(types, subject.record, line);
    for problem in &found.problems {
        notes.add("group-markers", Some(name), subject.record.declared_at, problem.clone());
    }
    let marked = found.groups.into_iter().find(|group| group.name == asked.name);
    let group = match marked {
        Some(group) => {
            members(types, subject, &group, asked, notes);
            group
        }
        None if asked.members.is_empty() => {
            let message = format!("no group {name}: no markers, and the rule names no members");
            return notes.unknown("unknown-group", Some(name), message);
        }
        None => match Group::listed(types, subject.record, name, &asked.members, line) {
            Ok(group) => group,
            Err(missing) => {
                return missing.iter().for_each(|member| unknown_member(notes, member));
            }
        },
    };
    limits(&group, asked, notes);
    if asked.exclusive {
        exclusive(types, &group, notes);
    }
}

pub(super) fn unknown_member(notes: &mut Notes<'_>, member: &str) {
    notes.unknown("unknown-member", Some(member), format!("no member {member}"));
}

/// Who has to be in a group with markers.
fn members(types: &Types, subject: &Subject<'_>, group: &Group, asked: &GroupRule, notes: &mut Notes<'_>) {
    for member in &asked.members {
        let Some(field) = field_at(types, subject.record, member) else {
            unknown_member(notes, member);
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
            notes.add(rule, name, at, format!("{what} {}, {most} allowed", plural(value, unit)));
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
