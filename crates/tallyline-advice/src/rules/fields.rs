//! False sharing within objects: fields that different threads use on one line.

use super::{Confidence, ConflictKey, Conflicts, FieldEvidence, Finding, FindingKind, Relation};
use crate::address_map::AddressMap;
use crate::evidence::{Evidence, MemberInfo, Subject};
use crate::predict::Outlook;
use crate::proposal::{LayoutProposal, Proposal, Separation, place};
use std::collections::{BTreeMap, BTreeSet};

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
    let roles = roles(evidence, index, &by_object(evidence, index));
    let groups = groups(subject, &roles);
    if groups.len() < 2 {
        return None;
    }
    let separable = |key: &ConflictKey| {
        // what a counter's word costs goes with the counter
        key.relation == Relation::Fields
            && key.victim.0 == index
            && !counters.contains(&key.culprit)
            && !counters.contains(&key.victim)
            && is_separated(subject, &groups, key)
    };
    let (lost, transfers, lines) = super::sum(sums, separable);
    if !super::is_worth(evidence, lost, transfers) || !super::is_named(Some(subject)) {
        return None;
    }
    let layout = layout(evidence, index, &groups)?;
    let map = map(evidence, index, &lines, &layout);
    Some(Finding {
        kind: FindingKind::FalseSharing,
        subject: index,
        confidence: Confidence::High,
        lines: lines.len() as u64,
        lost: lost as u64,
        transfers: transfers as u64,
        reader_lines: layout.lines,
        proposal: Proposal::Layout(layout),
        outlook: Outlook::default(),
        check: None,
        map,
        fields: in_conflict(sums, index, separable, super::taking_part(fields)),
    })
}

/// Returns `true` if the parts of an object that are in conflict come to different lines. Parts of one member, as a
/// mutex has them, and members of one group stay together, and their cost stays, too.
fn is_separated(subject: &Subject, groups: &[Group], key: &ConflictKey) -> bool {
    let group = |offset: u64| {
        let member = member_at(subject, offset)?;
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

/// The use of a member, by which members are put together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// A member without accesses.
    Unused,
    /// A member that is read, and hardly written.
    ReadMostly,
    /// A member that one thread of an object writes; the number tells apart those of different threads.
    OneWriter(usize),
    /// A member that several threads of an object write.
    ManyWriters,
}

/// Of each member of each object: threads with their writes.
type Writers = BTreeMap<(u64, usize), BTreeMap<u32, u64>>;

fn member_at(subject: &Subject, offset: u64) -> Option<usize> {
    let holds = |member: &MemberInfo| (member.offset..member.offset + member.size.max(1)).contains(&offset);
    subject.members.iter().position(holds)
}

fn by_object(evidence: &Evidence, index: usize) -> Writers {
    let mut writers = Writers::new();
    let subject = &evidence.subjects[index];
    for (_, slot) in evidence.slots_of(index) {
        let Some(member) = member_at(subject, slot.offset) else { continue };
        let of = writers.entry((slot.base, member)).or_default();
        for (thread, _, writes) in slot.by_thread() {
            *of.entry(thread).or_default() += writes;
        }
    }
    for of in writers.values_mut() {
        let total: u64 = of.values().sum();
        of.retain(|_, writes| *writes as f64 > total as f64 * MINOR);
    }
    writers
}

/// Returns the role of each member, also by accesses on lines that no core takes from another: the proposal may bring
/// them to a line that cores share.
fn roles(evidence: &Evidence, index: usize, writers: &Writers) -> Vec<Role> {
    let subject = &evidence.subjects[index];
    let mut counts = vec![(0_u64, 0_u64); subject.members.len()];
    for (_, slot) in evidence.slots_of(index) {
        let Some(member) = member_at(subject, slot.offset) else { continue };
        for used in &slot.uses {
            counts[member].0 += used.reads;
            counts[member].1 += used.writes;
        }
    }
    // by member: objects with one and with several writers
    let mut many = vec![(0_u64, 0_u64); subject.members.len()];
    for ((_, member), threads) in writers {
        many[*member].0 += u64::from(threads.len() == 1);
        many[*member].1 += u64::from(threads.len() > 1);
    }
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
    // members whose writers are the same in most objects have one role
    let mut next = 0;
    for member in 0..roles.len() {
        if roles[member] != Role::OneWriter(usize::MAX) {
            continue;
        }
        let before = (0..member).find_map(|other| match roles[other] {
            Role::OneWriter(role) if is_together(writers, member, other) => Some(role),
            _ => None,
        });
        roles[member] = Role::OneWriter(before.unwrap_or_else(|| {
            next += 1;
            next - 1
        }));
    }
    roles
}

/// Returns `true` if two members have the same main writer in most objects in which both are written.
fn is_together(writers: &Writers, one: usize, other: usize) -> bool {
    let (mut same, mut different) = (0, 0);
    for ((object, member), threads) in writers.iter().filter(|((_, member), _)| *member == one) {
        debug_assert_eq!(*member, one);
        let Some(others) = writers.get(&(*object, other)) else { continue };
        let main =
            |of: &BTreeMap<u32, u64>| of.iter().max_by_key(|(_, writes)| **writes).map(|(thread, _)| *thread);
        match main(threads) == main(others) {
            true => same += 1,
            false => different += 1,
        }
    }
    same > different
}

/// A group of members, with its purpose.
type Group = (String, Vec<usize>);

/// Returns the groups: what is only read (and what nobody used), what several threads write, what one thread writes
/// each.
fn groups(subject: &Subject, roles: &[Role]) -> Vec<Group> {
    let mut by_role: BTreeMap<&Role, Vec<usize>> = BTreeMap::new();
    for (member, role) in roles.iter().enumerate() {
        by_role.entry(role).or_default().push(member);
    }
    let unused = by_role.remove(&Role::Unused).unwrap_or_default();
    let mut groups: Vec<Group> = by_role
        .into_iter()
        .map(|(role, members)| {
            let purpose = match role {
                Role::ReadMostly | Role::Unused => "read, and hardly written".to_owned(),
                Role::ManyWriters => "written by several threads".to_owned(),
                Role::OneWriter(_) => {
                    let first = members.first().and_then(|at| subject.members.get(*at));
                    format!("written by the thread of {}", first.map_or("", |member| &member.name))
                }
            };
            (purpose, members)
        })
        .collect();
    // what nobody used fills the first line
    if let Some((_, members)) = groups.first_mut() {
        members.extend(unused);
        members.sort_unstable();
    }
    groups
}

fn layout(evidence: &Evidence, index: usize, groups: &[Group]) -> Option<LayoutProposal> {
    let subject = evidence.subjects.get(index)?;
    // what may not move stays in front
    let fixed = subject.members.iter().take_while(|member| member.is_fixed).count();
    if subject.members.iter().skip(fixed).any(|member| member.is_fixed) {
        return None;
    }
    let mut ordered: Vec<Group> = groups.to_vec();
    let has_fixed = ordered.iter().position(|(_, members)| members.iter().any(|member| *member < fixed));
    if let Some(at) = has_fixed {
        let group = ordered.remove(at);
        ordered.insert(0, group);
    }
    let described = |group: &Group| {
        let members = group.1.iter().filter_map(|at| subject.members.get(*at));
        members.map(|member| (member.name.clone(), member.size, member.align)).collect()
    };
    let spelled: Vec<Vec<(String, u64, u64)>> = ordered.iter().map(described).collect();
    let placed = place(&spelled, super::separation(evidence, index));
    // an alignment that the type declares stays
    let (size, align) = (placed.size.next_multiple_of(subject.align.max(1)), placed.align);
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
        groups: ordered.into_iter().map(|(purpose, _)| purpose).collect(),
    })
}

/// Moves each object of some lines to new ones, where its members lie as in a layout: those on other lines, too, as they
/// may come to a line that cores share.
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
            (base, map.fresh_lines(layout.lines.1 + 1) + inside)
        })
        .collect();
    let subject = &evidence.subjects[index];
    for (line, slot) in evidence.slots_of(index) {
        let (Some(start), Some(at)) = (starts.get(&slot.base), member_at(subject, slot.offset)) else {
            continue;
        };
        let member = &subject.members[at];
        let Some(placed) = layout.members.iter().find(|placed| placed.name == member.name) else { continue };
        // an access that goes on into the next member, as one to what the memory was before, moves this one alone
        let size = slot.size.min(member.offset + member.size.max(1) - slot.offset);
        let target = start + placed.offset + (slot.offset - member.offset);
        super::move_slot(&mut map, evidence, line, slot, (size, target));
    }
    map
}
