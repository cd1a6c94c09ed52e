//! Hot paths that touch more lines of an object than their fields need, and holes in types with many objects.

use super::{Confidence, FieldEvidence, Finding, FindingKind};
use crate::address_map::{AddressMap, ObjectMove};
use crate::evidence::{Evidence, FieldUse, MemberInfo, Subject, TypeUse};
use crate::predict::Outlook;
use crate::proposal::{
    LayoutProposal, PlacedMember, Placement, Proposal, Separation, align, is_end, is_front, place, placed,
    size, units, up,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// Objects below which a type's layout does not matter: they stay in the cache.
const LEAST_OBJECTS: u64 = 512;

/// Parts of all cycles that the misses of a type have to cost: one of so many.
const LEAST_SHARE: u64 = 50;

/// The part of its type's heat from which a member is hot.
const HOT: f64 = 0.02;

/// Accesses for each of the most accessed hot member's in the same function from which a member is a companion of the hot
/// ones.
const COMPANION: f64 = 0.01;

/// The part of the most accessed hot member's accesses that a function has to have for its members to be companions: one
/// that prints all objects at the end has fewer.
const ON_PATH: f64 = 0.5;

/// Returns a finding for each type whose order of members costs lines.
pub(super) fn findings(evidence: &Evidence) -> Vec<Finding> {
    evidence.types.iter().filter_map(|used| of_type(evidence, used)).collect()
}

fn of_type(evidence: &Evidence, used: &TypeUse) -> Option<Finding> {
    let subject = evidence.subjects.get(used.subject)?;
    let missing = used.fields.iter().filter(|field| field.misses > 0);
    let cycles: u64 = missing.map(|field| field.cycles).sum();
    let is_small = used.objects < LEAST_OBJECTS || cycles < evidence.cycles / LEAST_SHARE;
    if is_small || subject.members.len() < 2 || !super::is_named(Some(subject)) {
        return None;
    }
    let hot = hot_members(subject, used);
    let used_together = with_companions(evidence, used, subject, &hot);
    let order = order(subject, &used_together);
    let Placement { members, size, .. } = place(&[order], Separation::None);
    // an alignment that the type declares stays
    let size = up(size, subject.align.max(1));
    if size > subject.size {
        return None;
    }
    let before = lines_of(evidence, used, subject, &hot, |member| subject.members[member].offset);
    let offset_of = |member: usize| {
        subject.members.get(member).and_then(|of| placed(&members, of)).map_or(0, |placed| placed.offset)
    };
    let after = lines_of(evidence, used, subject, &hot, offset_of);
    // a smaller object is worth something where objects lie side by side
    let packs = size < subject.size && used.stride == subject.size;
    // what is only initialised has no hot path
    let saves_lines = after < before && has_heat(used);
    let kind = match saves_lines {
        true => FindingKind::HotPathLines,
        false if packs => FindingKind::Holes,
        false => return None,
    };
    let lines = |size: u64| size.div_ceil(evidence.line_size);
    Some(Finding {
        kind,
        subject: used.subject,
        confidence: Confidence::Medium,
        fields: described(subject, used, &used_together),
        lines: used.objects.saturating_mul(before),
        lost: cycles,
        transfers: 0,
        reader_lines: (before, after),
        map: map(evidence, used, subject, &members, size),
        proposal: Proposal::Layout(LayoutProposal {
            ty: subject.name.clone(),
            file: subject.file.clone(),
            line: subject.line,
            align: None,
            pad: 0,
            sizes: (subject.size, size),
            lines: (lines(subject.size), lines(size)),
            groups: vec!["by use, the hottest first".to_owned()],
            members,
        }),
        outlook: Outlook::default(),
        check: None,
    })
}

/// Describes the hot members: the fields that are accessed of each, and one that only comes with others' by its name.
fn described(subject: &Subject, used: &TypeUse, hot: &[HotMember]) -> Vec<FieldEvidence> {
    let field = |offset, size, name: &str, sites: Vec<(usize, u64)>, lost| FieldEvidence {
        subject: used.subject,
        field: name.to_owned(),
        offset,
        size,
        sites: sites.into_iter().map(|(site, count)| (site, count, 0)).collect(),
        lost,
        ..FieldEvidence::default()
    };
    let mut all = Vec::new();
    for (at, _, sites) in hot {
        let member = &subject.members[*at];
        let own = |of: &&FieldUse| (member.offset..member.reach()).contains(&of.offset);
        let before = all.len();
        all.extend(
            used.fields
                .iter()
                .filter(own)
                .map(|of| field(of.offset, of.size.min(member.size), &of.field, of.sites.clone(), of.cycles)),
        );
        if all.len() == before {
            let sites = sites.iter().map(|(site, count)| (*site, *count)).collect();
            all.push(field(member.offset, member.size, &member.name, sites, 0));
        }
    }
    all.sort_by_key(|field| field.offset);
    all
}

/// Returns `true` if a field overlaps a member, which may be one of several that an instruction accesses at once.
fn is_of(field: &FieldUse, member: &MemberInfo) -> bool {
    field.offset < member.reach() && member.offset < field.offset.saturating_add(field.size.max(1))
}

/// A hot member: its index, its heat, and its accesses by each function.
type HotMember = (usize, u64, BTreeMap<usize, u64>);

/// Returns `true` if functions that use the type spend time.
fn has_heat(used: &TypeUse) -> bool {
    used.fields.iter().any(|field| field.heat > 0)
}

/// Returns hot members and their *companions*: members that a hot path accesses only now and then, as far as the lines of
/// the hot ones have room. The most accessed come first.
fn with_companions(
    evidence: &Evidence,
    used: &TypeUse,
    subject: &Subject,
    hot: &[HotMember],
) -> Vec<HotMember> {
    let function = |site: &usize| evidence.sites.get(*site).map(|site| site.function.as_str());
    // by function: the accesses of the most accessed hot member
    let mut paths: BTreeMap<&str, u64> = BTreeMap::new();
    for (site, count) in hot.iter().flat_map(|(_, _, sites)| sites) {
        let Some(name) = function(site) else { continue };
        let most = paths.entry(name).or_default();
        *most = (*most).max(*count);
    }
    let most = paths.values().copied().max().unwrap_or(0);
    paths.retain(|_, count| *count as f64 >= most as f64 * ON_PATH);
    let mut companions: Vec<(u64, HotMember)> = members_by_use(subject, used)
        .into_iter()
        .filter(|(at, heat, _)| *heat > 0 && hot.iter().all(|(other, ..)| other != at))
        .filter_map(|member| {
            let mut by_path: BTreeMap<&str, u64> = BTreeMap::new();
            for (site, count) in &member.2 {
                *by_path.entry(function(site)?).or_default() += count;
            }
            by_path.retain(|name, count| {
                paths.get(name).is_some_and(|most| *count as f64 >= *most as f64 * COMPANION)
            });
            by_path.into_values().max().map(|count| (count, member))
        })
        .collect();
    companions.sort_by_key(|(count, (at, ..))| (std::cmp::Reverse(*count), *at));
    let line = evidence.line_size;
    let size = |all: &[HotMember]| {
        all.iter().fold(0_u64, |sum, (at, ..)| sum.saturating_add(subject.members[*at].size))
    };
    let room = up(size(hot), line);
    let mut all = hot.to_vec();
    for (_, companion) in companions {
        all.push(companion);
        // members of falling alignment have no holes between them
        if size(&all) > room {
            all.pop();
        }
    }
    all
}

/// Returns the members with more than a part of the heat, the hottest first. What initialises all objects once accesses
/// each member as often as a look-up does in as many calls, but in order, and takes hardly any time.
fn hot_members(subject: &Subject, used: &TypeUse) -> Vec<HotMember> {
    let total: u64 = used.fields.iter().map(heat_of(used)).sum();
    let mut hot = members_by_use(subject, used);
    hot.retain(|(_, heat, _)| *heat as f64 > total as f64 * HOT);
    hot.sort_by_key(|(at, heat, _)| (std::cmp::Reverse(*heat), *at));
    hot
}

/// Returns the heat of a field; where there is none, as objects are only initialised, its accesses.
fn heat_of(used: &TypeUse) -> fn(&FieldUse) -> u64 {
    if has_heat(used) { |field| field.heat } else { |field| field.accesses }
}

/// Returns the members in their order, with their heat and accesses.
fn members_by_use(subject: &Subject, used: &TypeUse) -> Vec<HotMember> {
    let with_use = |(at, member)| {
        let (mut heat, mut sites) = (0, BTreeMap::new());
        for field in used.fields.iter().filter(|field| is_of(field, member)) {
            heat += heat_of(used)(field);
            field.sites.iter().for_each(|(site, count)| *sites.entry(*site).or_default() += count);
        }
        (at, heat, sites)
    };
    subject.members.iter().enumerate().map(with_use).collect()
}

/// Returns the units of members in their new order: hot ones by use together, then the others; each part by falling
/// alignment, so that there are few holes in it.
fn order<'s>(subject: &'s Subject, hot: &[HotMember]) -> Vec<&'s [MemberInfo]> {
    let units = units(&subject.members);
    let of = |unit: &usize| &subject.members[units[*unit].clone()];
    let mut parts: [Vec<usize>; 2] = [Vec::new(), Vec::new()];
    for (member, ..) in hot {
        let unit = units.iter().position(|unit| unit.contains(member));
        parts[0].extend(unit.filter(|unit| !parts[0].contains(unit)));
    }
    parts[1] = (0..units.len()).filter(|at| !parts[0].contains(at)).collect();
    // what stays in front, or at the end, does so whether it is hot or not
    let (mut front, mut behind) = (Vec::new(), Vec::new());
    for part in &mut parts {
        front.extend(part.extract_if(.., |unit| is_front(of(unit))));
        behind.extend(part.extract_if(.., |unit| is_end(of(unit))));
    }
    let align = |unit: &usize| align(of(unit));
    parts[0].sort_by_key(|unit| std::cmp::Reverse(align(unit)));
    // the cold part begins with what fits behind the hot one, and ends with the smallest
    parts[1].sort_by_key(|unit| std::cmp::Reverse(align(unit)));
    let first: Vec<&[MemberInfo]> = front.iter().chain(&parts[0]).map(of).collect();
    let end = place(&[first], Separation::None).end();
    let (mut fill, mut gap) = (Vec::new(), up(end, subject.align.max(1)) - end);
    parts[1].retain(|unit| {
        let size = size(of(unit));
        let fits = size <= gap && align(unit) < subject.align.max(1) && size > 0;
        if fits {
            gap -= size;
            fill.push(*unit);
        }
        !fits
    });
    // of what fills, the smallest alignments come first: the end of the hot part has any
    fill.sort_by_key(align);
    front.iter().chain(&parts[0]).chain(&fill).chain(&parts[1]).chain(&behind).map(of).collect()
}

/// Returns the number of lines of one object that its hot members are on, at the start that most objects have.
fn lines_of(
    evidence: &Evidence,
    used: &TypeUse,
    subject: &Subject,
    hot: &[HotMember],
    offset: impl Fn(usize) -> u64,
) -> u64 {
    let line = evidence.line_size;
    let start = if used.stride.is_multiple_of(line) { used.first_object % line } else { 0 };
    let mut ranges: Vec<Range<u64>> = hot
        .iter()
        .map(|(at, ..)| {
            let first = start.saturating_add(offset(*at));
            let last = first.saturating_add(subject.members[*at].size.max(1) - 1);
            first / line..(last / line).saturating_add(1)
        })
        .collect();
    ranges.sort_unstable_by_key(|range| range.start);
    // members of a damaged file may be larger than all memory: lines are not listed
    let (mut lines, mut end) = (0_u64, 0_u64);
    for range in ranges {
        lines += range.end.saturating_sub(range.start.max(end));
        end = end.max(range.end);
    }
    lines
}

fn map(
    evidence: &Evidence,
    used: &TypeUse,
    subject: &Subject,
    members: &[PlacedMember],
    size: u64,
) -> AddressMap {
    let mut map = AddressMap::new(evidence.line_size);
    let grid = (used.stride == subject.size && size < subject.size).then_some((
        used.first_object,
        subject.size,
        size,
    ));
    for (instruction, offset) in &used.instructions {
        let Some(at) = subject.member_at(*offset) else { continue };
        let member = &subject.members[at];
        let Some(placed) = placed(members, member) else { continue };
        let after = placed.offset.saturating_add(offset - member.offset);
        map.move_field(*instruction, ObjectMove { offsets: (*offset, after), grid });
    }
    map
}
