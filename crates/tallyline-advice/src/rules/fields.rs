//! False sharing within objects: fields that different threads use on one line.

use super::{Confidence, ConflictKey, Conflicts, FieldEvidence, Finding, FindingKind, Relation};
use crate::address_map::AddressMap;
use crate::evidence::{Evidence, MemberInfo, Mobility, Subject};
use crate::predict::Outlook;
use crate::proposal::{LayoutProposal, Proposal, Separation, is_end, is_front, place, placed, units, up};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Writes for each access up to which a field counts as only read.
const READ_MOSTLY: f64 = 0.01;

/// Accesses of a thread for each of all up to which it does not count: who initialises or prints.
const MINOR: f64 = 0.01;

/// The part of all waits that a field has to have, or to cause, to be named.
const LEAST_PART: f64 = 0.001;

/// Returns a finding for each type whose fields share lines that threads take from each other.
pub(super) fn findings(
    evidence: &Evidence,
    sums: &Conflicts,
    counters: &BTreeSet<(usize, u64)>,
) -> Vec<Finding> {
    let subjects = super::subjects_with(sums, Relation::Fields);
    subjects.into_iter().filter_map(|subject| of_type(evidence, sums, counters, subject)).collect()
}

fn of_type(
    evidence: &Evidence,
    sums: &Conflicts,
    counters: &BTreeSet<(usize, u64)>,
    index: usize,
) -> Option<Finding> {
    let subject = evidence.subjects.get(index)?;
    let fields = super::field_evidence(evidence, |slot| slot.subject == index);
    if super::is_runtimes(evidence, &fields) || subject.members.is_empty() {
        return None;
    }
    let units = units(&subject.members);
    let separable = |groups: &[Group], key: &ConflictKey| {
        // what a counter's word costs goes with the counter
        key.relation == Relation::Fields
            && key.victim.0 == index
            && !counters.contains(&key.culprit)
            && !counters.contains(&key.victim)
            && is_separated(subject, groups, key)
    };
    let sum_of = |groups: &[Group]| super::sum(sums, |key| separable(groups, key));
    let is_worth = |(lost, transfers, _): &(f64, f64, BTreeSet<usize>)| {
        super::is_worth(evidence, *lost, *transfers) && super::is_named(Some(subject))
    };
    let possible = groups(subject, &units, &roles(evidence, index, &units));
    let sum = sum_of(&possible);
    if is_worth(&sum) {
        let layout = layout(evidence, index, &units, &possible)?;
        let fields = in_conflict(sums, index, |key| separable(&possible, key), super::taking_part(fields));
        let map = map(evidence, index, &sum.2, &layout);
        return Some(Finding {
            reader_lines: layout.lines,
            map,
            ..finding(index, fields, sum, Proposal::Layout(layout))
        });
    }
    // as if each member could go anywhere
    let alone: Vec<Range<usize>> = (0..subject.members.len()).map(|member| member..member + 1).collect();
    let roles = roles(evidence, index, &alone);
    let wanted = groups(subject, &alone, &roles);
    let sum = sum_of(&wanted);
    let proposal = Proposal::Refused {
        ty: subject.name.clone(),
        file: subject.file.clone(),
        line: subject.line,
        why: refusal(subject, &units, &roles),
    };
    let fields = in_conflict(sums, index, |key| separable(&wanted, key), super::taking_part(fields));
    is_worth(&sum).then(|| finding(index, fields, sum, proposal))
}

/// Makes a finding of the fields of a type, of what they cost and of a proposal.
fn finding(
    subject: usize,
    fields: Vec<FieldEvidence>,
    (lost, transfers, lines): (f64, f64, BTreeSet<usize>),
    proposal: Proposal,
) -> Finding {
    Finding {
        kind: FindingKind::FalseSharing,
        subject,
        confidence: Confidence::High,
        lines: lines.len() as u64,
        lost: lost as u64,
        transfers: transfers as u64,
        reader_lines: (0, 0),
        proposal,
        outlook: Outlook::default(),
        check: None,
        map: AddressMap::new(1),
        fields,
    }
}

/// Returns the reason why no order of members sets those of different roles apart.
fn refusal(subject: &Subject, units: &[Range<usize>], roles: &[Role]) -> String {
    let members = &subject.members;
    let stays_together = units.iter().find_map(|unit| {
        let used = |member: &usize| roles.get(*member).is_some_and(|role| *role != Role::Unused);
        let first = unit.clone().find(used)?;
        let other = unit.clone().skip_while(|member| *member <= first).filter(used);
        let other = other.into_iter().find(|member| roles[*member] != roles[first])?;
        let of_unit = &members[unit.clone()];
        let attached = of_unit.iter().find_map(|member| match member.mobility {
            Mobility::Attached(kind) => Some(format!("{} is {kind}", label(member))),
            _ => None,
        });
        let why = match attached {
            Some(why) => why,
            None if is_front(of_unit) => "they are a part of the front of the object".to_owned(),
            None => "members overlap there".to_owned(),
        };
        Some(format!("{} and {} stay together: {why}", label(&members[first]), label(&members[other])))
    });
    stays_together.unwrap_or_else(|| "no order of its members sets them apart".to_owned())
}

/// Returns the name of a member for people.
fn label(member: &MemberInfo) -> &str {
    if member.name.is_empty() { "an unnamed member" } else { &member.name }
}

/// Returns `true` if the parts of an object that are in conflict come to different lines. Parts of one member, as a
/// mutex has them, and members of one group stay together, and their cost stays, too.
fn is_separated(subject: &Subject, groups: &[Group], key: &ConflictKey) -> bool {
    let group = |offset: u64| {
        let member = subject.member_at(offset)?;
        groups.iter().position(|(_, members)| members.contains(&member))
    };
    match (group(key.victim.1), group(key.culprit.1)) {
        (Some(victim), Some(culprit)) => victim != culprit,
        // padding, which belongs to no member
        _ => false,
    }
}

/// Returns those of some fields of a type that wait for others or that others wait for, in the conflicts that `is_ours`
/// admits.
fn in_conflict(
    sums: &Conflicts,
    index: usize,
    is_ours: impl Fn(&ConflictKey) -> bool,
    fields: Vec<FieldEvidence>,
) -> Vec<FieldEvidence> {
    let (total, ..) = super::sum(sums, &is_ours);
    let takes_part = |field: &FieldEvidence| {
        let place = (index, field.offset);
        let (lost, ..) =
            super::sum(sums, |key| is_ours(key) && (key.victim == place || key.culprit == place));
        lost > total * LEAST_PART
    };
    fields.into_iter().filter(takes_part).collect()
}

/// The use of a unit of members, by which units are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// A unit without accesses.
    Unused,
    /// A unit that is read, and hardly written.
    ReadMostly,
    /// A unit that one thread of an object writes; the number tells apart those of different threads.
    OneWriter(usize),
    /// A unit that several threads of an object write.
    ManyWriters,
}

/// Of each unit of members: of each object, by its start, threads with their writes.
type Writers = Vec<BTreeMap<u64, BTreeMap<u32, u64>>>;

/// Returns the writers of each unit of members, and the reads and writes of each in all objects, also on lines that no
/// core takes from another: the proposal may bring them to a line that cores share.
fn by_object(evidence: &Evidence, index: usize, units: &[Range<usize>]) -> (Writers, Vec<(u64, u64)>) {
    let mut writers: Writers = vec![BTreeMap::new(); units.len()];
    let mut counts = vec![(0_u64, 0_u64); units.len()];
    let subject = &evidence.subjects[index];
    let unit_at = |offset: u64| {
        let member = subject.member_at(offset)?;
        units.iter().position(|unit| unit.contains(&member))
    };
    // many objects have the same few offsets
    let mut known: FxHashMap<u64, Option<usize>> = FxHashMap::default();
    for (_, slot) in evidence.slots_of(index) {
        let unit = *known.entry(slot.offset).or_insert_with(|| unit_at(slot.offset));
        let Some(unit) = unit else { continue };
        let of = writers[unit].entry(slot.base).or_default();
        for (thread, reads, writes) in slot.by_thread() {
            *of.entry(thread).or_default() += writes;
            counts[unit].0 += reads;
            counts[unit].1 += writes;
        }
    }
    for of in writers.iter_mut().flat_map(BTreeMap::values_mut) {
        let total: u64 = of.values().sum();
        of.retain(|_, writes| *writes as f64 > total as f64 * MINOR);
    }
    (writers, counts)
}

/// Returns the role of each unit of members.
fn roles(evidence: &Evidence, index: usize, units: &[Range<usize>]) -> Vec<Role> {
    let (writers, counts) = by_object(evidence, index, units);
    // by unit: writes to objects with one and with several writers
    let mut many = vec![(0_u64, 0_u64); units.len()];
    for (of, objects) in many.iter_mut().zip(&writers) {
        for threads in objects.values() {
            let writes = threads.values().sum::<u64>();
            let sum = if threads.len() == 1 { &mut of.0 } else { &mut of.1 };
            *sum = sum.saturating_add(writes);
        }
    }
    let main: Vec<MainWriters> = writers.iter().map(main_writers).collect();
    let mut roles: Vec<Role> = counts
        .iter()
        .zip(&many)
        .map(|((reads, writes), (one, several))| match () {
            () if reads + writes == 0 => Role::Unused,
            () if (*writes as f64) <= READ_MOSTLY * (reads + writes) as f64 => Role::ReadMostly,
            () if several >= one => Role::ManyWriters,
            () => Role::OneWriter(usize::MAX),
        })
        .collect();
    // units whose writers are the same in most objects have one role
    let mut next = 0;
    for unit in 0..roles.len() {
        if roles[unit] != Role::OneWriter(usize::MAX) {
            continue;
        }
        let before = (0..unit).find_map(|other| match roles[other] {
            Role::OneWriter(role) if is_together(&main[unit], &main[other]) => Some(role),
            _ => None,
        });
        roles[unit] = Role::OneWriter(before.unwrap_or_else(|| {
            next += 1;
            next - 1
        }));
    }
    roles
}

/// Returns `true` if two units have the same main writer in most objects in which both are written. An object counts
/// by its writes: those that a thread has only initialised may be many.
fn is_together(one: &MainWriters, other: &MainWriters) -> bool {
    let (mut same, mut different) = (0_u64, 0_u64);
    for (object, (thread, writes)) in one {
        let Some((other_thread, other_writes)) = other.get(object) else { continue };
        let sum = if thread == other_thread { &mut same } else { &mut different };
        *sum = sum.saturating_add(*writes.min(other_writes));
    }
    same > different
}

/// The main writer of a unit in each object, by the object's start, with the writes of all threads; no writer where
/// there are no writes.
type MainWriters = FxHashMap<u64, (Option<u32>, u64)>;

/// Returns the main writer of a unit in each object.
fn main_writers(objects: &BTreeMap<u64, BTreeMap<u32, u64>>) -> MainWriters {
    let main = |threads: &BTreeMap<u32, u64>| {
        let most = threads.iter().max_by_key(|(_, writes)| **writes);
        (most.map(|(thread, _)| *thread), threads.values().sum::<u64>())
    };
    objects.iter().map(|(object, threads)| (*object, main(threads))).collect()
}

/// A group of members, with its purpose.
type Group = (String, Vec<usize>);

/// Returns the groups: what is only read, what one thread writes each, what several threads write; unused units fill
/// the first. What has to stay in front is in the first one, and a flexible array, behind which nothing lies, alone in
/// the last one.
fn groups(subject: &Subject, units: &[Range<usize>], roles: &[Role]) -> Vec<Group> {
    let members = &subject.members;
    let mut by_role: BTreeMap<Role, Vec<usize>> = BTreeMap::new();
    let (mut unused, mut end, mut bases) = (Vec::new(), Vec::new(), Vec::new());
    for (unit, role) in units.iter().zip(roles) {
        let of_unit = &members[unit.clone()];
        let is_base = of_unit.iter().any(|member| member.is_implicit);
        let group = match role {
            _ if is_end(of_unit) && is_base => &mut bases,
            _ if is_end(of_unit) => &mut end,
            Role::Unused => &mut unused,
            role => by_role.entry(*role).or_default(),
        };
        group.extend(unit.clone());
    }
    let mut groups: Vec<Group> = by_role
        .into_iter()
        .map(|(role, members_of)| {
            let purpose = match role {
                Role::ReadMostly | Role::Unused => "read, and hardly written".to_owned(),
                Role::ManyWriters => "written by several threads".to_owned(),
                Role::OneWriter(_) => {
                    let first = members_of.first().and_then(|at| members.get(*at));
                    format!("written by the thread of {}", first.map_or("", label))
                }
            };
            (purpose, members_of)
        })
        .collect();
    let has_front = units.first().is_some_and(|unit| unit.start == 0 && is_front(&members[unit.clone()]));
    if let Some(at) = groups.iter().position(|(_, members)| has_front && members.contains(&0)) {
        let group = groups.remove(at);
        groups.insert(0, group);
    }
    // what nobody used fills the first line
    if let Some((_, members)) = groups.first_mut() {
        members.extend(unused);
        members.sort_unstable();
    }
    // an alignment is declared for a name
    for (_, group) in groups.iter_mut().skip(1) {
        let is_named = |unit: &&Range<usize>| {
            group.contains(&unit.start) && members.get(unit.start).is_some_and(|first| !first.name.is_empty())
        };
        if let Some(unit) = units.iter().find(is_named).cloned() {
            group.retain(|member| !unit.contains(member));
            group.splice(0..0, unit);
        }
    }
    if !end.is_empty() && !groups.is_empty() {
        groups.push(("the end of the object".to_owned(), end));
    }
    // compilers place virtual bases behind all members
    if let Some((_, members)) = groups.last_mut() {
        members.extend(bases);
    }
    groups
}

fn layout(
    evidence: &Evidence,
    index: usize,
    units: &[Range<usize>],
    groups: &[Group],
) -> Option<LayoutProposal> {
    let subject = evidence.subjects.get(index)?;
    let unit_at = |member: &usize| units.iter().find(|unit| unit.start == *member);
    let spelled: Vec<Vec<&[MemberInfo]>> = groups
        .iter()
        .map(|(_, members)| {
            members.iter().filter_map(unit_at).map(|unit| &subject.members[unit.clone()]).collect()
        })
        .collect();
    let placed = place(&spelled, super::separation(evidence, index));
    // an alignment that the type declares stays
    let (size, align) = (up(placed.size, subject.align.max(1)), placed.align);
    let lines = |size: u64| size.div_ceil(evidence.line_size);
    Some(LayoutProposal {
        ty: subject.name.clone(),
        file: subject.file.clone(),
        line: subject.line,
        members: placed.members,
        pad: placed.pad,
        align: (align > subject.align).then_some(align),
        sizes: (subject.size, size),
        lines: (lines(subject.size), lines(size)),
        groups: groups.iter().map(|(purpose, _)| purpose.clone()).collect(),
    })
}

/// Moves each object of some lines to new ones, where its members lie as in a layout: those on other lines, too, as
/// they may come to a line that cores share.
fn map(evidence: &Evidence, index: usize, lines: &BTreeSet<usize>, layout: &LayoutProposal) -> AddressMap {
    let mut map = AddressMap::new(evidence.line_size);
    let line_size = evidence.line_size.max(1);
    let is_aligned = matches!(super::separation(evidence, index), Separation::Aligned(_));
    let conflicts = lines.iter().flat_map(|at| &evidence.lines[*at].slots);
    let objects = conflicts.filter(|slot| slot.subject == index).map(|slot| slot.base);
    let starts: BTreeMap<u64, u64> = objects
        .collect::<BTreeSet<u64>>()
        .into_iter()
        .map(|base| {
            let inside = if is_aligned { 0 } else { base % line_size };
            (base, map.fresh_lines(layout.lines.1.saturating_add(1)).saturating_add(inside))
        })
        .collect();
    let subject = &evidence.subjects[index];
    for (line, slot) in evidence.slots_of(index) {
        let (Some(start), Some(at)) = (starts.get(&slot.base), subject.member_at(slot.offset)) else {
            continue;
        };
        let member = &subject.members[at];
        let Some(placed) = placed(&layout.members, member) else { continue };
        // an access that goes on into the next member, as one to what the memory was before, moves this one alone
        let size = slot.size.min(member.reach().saturating_sub(slot.offset).max(1));
        let inside = slot.offset.saturating_sub(member.offset);
        let target = start.saturating_add(placed.offset).saturating_add(inside);
        super::move_slot(&mut map, evidence, line, slot, (size, target));
    }
    map
}
