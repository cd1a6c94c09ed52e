//! Small objects behind a pointer that a hot path waits for: in the pointer's place, or with a copy of their key beside
//! it, they come with the line that has the pointer.

use super::{Confidence, FieldEvidence, Finding, FindingKind};
use crate::address_map::{AddressMap, NewStarts};
use crate::evidence::{Evidence, FollowedField, FollowedPointer, MemberInfo, Subject, TypeUse};
use crate::predict::Outlook;
use crate::proposal::{Proposal, Separation, heap_block, place, up};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Objects behind a pointer below which their place does not matter: they stay in the cache.
const LEAST_OBJECTS: u64 = 512;

/// The largest object whose layout is changed, in bytes.
const LARGEST: u64 = 1 << 16;

/// Parts of all cycles that the misses behind a pointer have to cost: one of so many.
const LEAST_SHARE: u64 = 50;

/// The most bytes from the first object with a pointer to the last: the address space of a program.
const SPAN_LIMIT: u64 = 1 << 48;

/// Bytes of a pointer.
const POINTER: u64 = 8;

/// The most bytes of a copy beside a pointer: a key and a hash of it.
const COPY: u64 = 16;

/// The largest part of the visits, or of the objects, that may contradict what a proposal rests on.
const UNSURE: f64 = 0.05;

/// The part of the visits from which on a field is read by nearly all of them.
const NEARLY_ALL: f64 = 0.9;

/// The part of the visits up to which what is read beside a copy leaves most of them without a miss.
const SELDOM: f64 = 0.5;

/// Loads of a target's type in other ways, for each object, that only prepare it.
const PREPARING: u64 = 2;

/// Returns a finding for each pointer behind which a hot path waits for small objects; of several pointers of one type,
/// or to it, the one with the longest wait: what the others gain depends on that one.
pub(super) fn findings(evidence: &Evidence) -> Vec<Finding> {
    let found =
        evidence.pointers.iter().filter_map(|pointer| Some((pointer, of_pointer(evidence, pointer)?)));
    let mut all: Vec<(&FollowedPointer, Finding)> = found.collect();
    all.sort_by_key(|(pointer, finding)| (std::cmp::Reverse(finding.lost), pointer.subject, pointer.offset));
    let mut changed = BTreeSet::new();
    all.retain(|(pointer, _)| {
        let types = [pointer.subject, pointer.target];
        let is_first = types.iter().all(|subject| !changed.contains(subject));
        if is_first {
            changed.extend(types);
        }
        is_first
    });
    all.into_iter().map(|(_, finding)| finding).collect()
}

/// Returns the part that one number is of another.
fn part(of: u64, whole: u64) -> f64 {
    of as f64 / whole.max(1) as f64
}

fn of_pointer(evidence: &Evidence, pointer: &FollowedPointer) -> Option<Finding> {
    let holder = evidence.subjects.get(pointer.subject)?;
    let target = evidence.subjects.get(pointer.target)?;
    let objects = pointer.targets.len() as u64;
    let waited: u64 = pointer.fields.iter().filter(|field| field.misses > 0).map(|field| field.cycles).sum();
    let is_small = objects < LEAST_OBJECTS || waited < evidence.cycles / LEAST_SHARE;
    let is_own = [holder, target].into_iter().all(|subject| subject.is_named() && !subject.is_library_type);
    // a cursor, or a list's head, leads to many objects one after the other
    let is_one_each = part(pointer.slots, objects) >= 1.0 - UNSURE && part(pointer.shared, objects) <= UNSURE;
    let is_kept = part(pointer.replaced, objects) <= UNSURE && !has_own_life(evidence, pointer);
    let is_sure = part(pointer.conflicts, pointer.visits) <= UNSURE && part(pointer.parts, objects) <= UNSURE;
    if is_small || !is_own || !is_one_each || !is_kept || !is_sure {
        return None;
    }
    let used = |subject: usize| evidence.types.iter().find(|used| used.subject == subject);
    let (of_holder, of_target) = (used(pointer.subject)?, used(pointer.target)?);
    let name = format!("{}.{}", holder.name, pointer.field);
    let key = key(target, pointer);
    let (change, proposal) = if key.is_empty() {
        let change = embedded(evidence, holder, target, pointer)?;
        let proposal = Proposal::Embed { pointer: name, target: target.name.clone(), sizes: change.sizes };
        (change, proposal)
    } else {
        let change = Change::new(holder, pointer.offset, Addition::Beside(bytes(&key)))?;
        let fields = key.iter().map(|field| format!("{}.{}", target.name, field.field)).collect();
        let sizes = change.sizes;
        (change, Proposal::CopyBeside { pointer: name, fields, sizes })
    };
    Some(Finding {
        kind: FindingKind::PointerChasing,
        subject: pointer.subject,
        confidence: Confidence::Medium,
        fields: described(target, pointer, &key),
        lines: objects,
        lost: waited,
        transfers: 0,
        reader_lines: (0, 0),
        map: map(evidence, (of_holder, of_target), pointer, &key, &change)?,
        proposal,
        outlook: Outlook::default(),
        check: None,
    })
}

/// Returns `true` if code updates the objects behind a pointer atomically: threads share them, and a count of references
/// keeps them beyond the pointer.
fn has_own_life(evidence: &Evidence, pointer: &FollowedPointer) -> bool {
    let mut sites = pointer.fields.iter().flat_map(|field| &field.sites);
    sites.any(|(site, ..)| evidence.sites.get(*site).is_some_and(|site| site.atomic))
}

/// Returns the fields that nearly all visits read, if they are few bytes that nobody writes but who fills the object, and
/// most visits read nothing else; none otherwise.
fn key<'p>(target: &Subject, pointer: &'p FollowedPointer) -> Vec<&'p FollowedField> {
    let (key, others): (Vec<_>, Vec<_>) =
        pointer.fields.iter().partition(|field| part(field.visits, pointer.visits) >= NEARLY_ALL);
    let objects = pointer.targets.len() as u64;
    // a pointer to virtual functions says which type the object has: it is its own
    let is_fixed = |field: &FollowedField| {
        target.members.iter().any(|member| !member.is_free() && member.offset == field.offset)
    };
    let is_key = |field: &&FollowedField| field.stores <= objects && !is_fixed(field);
    let is_read_more = part(pointer.other_visits, pointer.visits) > SELDOM
        || others.iter().any(|field| part(field.visits, pointer.visits) > SELDOM);
    // an object that is nothing but its key moves as a whole
    if !key.iter().all(is_key) || is_read_more || target.size <= bytes(&key) || bytes(&key) > COPY {
        return Vec::new();
    }
    key
}

/// Returns the offsets of copies of some fields behind each other, and their end.
fn copies(fields: &[&FollowedField]) -> (Vec<(u64, u64)>, u64) {
    let mut end = 0_u64;
    let place = |field: &&FollowedField| {
        let size = field.size.clamp(1, COPY).next_power_of_two();
        let start = end.next_multiple_of(size.min(POINTER));
        end = start + size;
        (field.offset, start)
    };
    let all = fields.iter().map(place).collect();
    (all, end)
}

/// Returns the bytes of copies of some fields.
fn bytes(fields: &[&FollowedField]) -> u64 {
    copies(fields).1
}

/// Additional bytes of an object with a pointer.
#[derive(Clone, Copy, Debug)]
enum Addition {
    /// An object in the place of the pointer: its size and alignment.
    InPlace(u64, u64),
    /// Bytes behind the member with the pointer.
    Beside(u64),
}

/// The new layout of an object with a pointer.
#[derive(Clone, Debug)]
struct Change {
    /// The members' offsets, sizes, and offsets after.
    members: Vec<(u64, u64, u64)>,
    /// The offset from which on the rest of a member moves with what is in it, and by how much.
    inner: (u64, u64),
    /// The offset of what is new.
    new: u64,
    /// The size before and after.
    sizes: (u64, u64),
}

impl Change {
    /// Lays out a holder with an addition at the pointer at an offset; `None` if members overlap, as those of unions and
    /// bitfields do, or if the holder is too large.
    fn new(holder: &Subject, offset: u64, addition: Addition) -> Option<Self> {
        let members = &holder.members;
        let end = |size: u64, offset: u64| offset.checked_add(size);
        let end_of_pointer = end(POINTER, offset)?;
        let is_apart = members
            .windows(2)
            .all(|pair| end(pair[0].size, pair[0].offset).is_some_and(|end| end <= pair[1].offset));
        let with = members.iter().position(|member| {
            member.offset <= offset
                && end(member.size, member.offset).is_some_and(|end| end_of_pointer <= end)
        })?;
        let last = members.last()?;
        let of_members = members.iter().map(|member| member.align).max().unwrap_or(0);
        let align = match addition {
            Addition::InPlace(_, align) => align.max(of_members),
            Addition::Beside(_) => of_members,
        };
        if !is_apart
            || holder.size.max(holder.align).max(align) > LARGEST
            || end(last.size, last.offset)? > holder.size
        {
            return None;
        }
        let of_size = |size, align| MemberInfo { size, align, ..MemberInfo::default() };
        let mut order: Vec<MemberInfo> =
            members.iter().map(|member| of_size(member.size, member.align)).collect();
        let is_whole = members[with].size == POINTER;
        let mut grown = 0;
        match addition {
            Addition::InPlace(size, align) if is_whole => order[with] = of_size(size, align),
            Addition::InPlace(size, align) => {
                grown = size.next_multiple_of(POINTER).checked_sub(POINTER)?;
                order[with].size += grown;
                order[with].align = order[with].align.max(align);
            }
            Addition::Beside(size) => order.insert(with + 1, of_size(size, size.min(POINTER))),
        }
        let placed = place(&[order.chunks(1).collect()], Separation::None);
        let is_beside = matches!(addition, Addition::Beside(_));
        let after = |at: usize| placed.members[at + usize::from(is_beside && at > with)].offset;
        let inside = offset - members[with].offset;
        Some(Self {
            members: members.iter().enumerate().map(|(at, of)| (of.offset, of.size, after(at))).collect(),
            inner: (end_of_pointer, grown),
            new: if is_beside { placed.members[with + 1].offset } else { after(with) + inside },
            sizes: (holder.size, up(placed.size, holder.align.max(1))),
        })
    }

    /// Returns an offset of the holder after the change.
    fn offset(&self, before: u64) -> u64 {
        let holds = |(offset, size, _): &&(u64, u64, u64)| (*offset..offset + size).contains(&before);
        let Some((offset, size, after)) = self.members.iter().find(holds) else { return before };
        let is_inner = before >= self.inner.0 && (*offset..offset + size).contains(&(self.inner.0 - 1));
        after + (before - offset) + if is_inner { self.inner.1 } else { 0 }
    }
}

/// Returns the change of a holder that has the object in the place of the pointer; `None` if it cannot have it: the
/// object has parts that nothing may move past, takes more than a line, or is often reached in other ways.
fn embedded(
    evidence: &Evidence,
    holder: &Subject,
    target: &Subject,
    pointer: &FollowedPointer,
) -> Option<Change> {
    let is_fixed = target.members.iter().any(|member| !member.is_free());
    let (behind, elsewhere) = pointer.target_loads;
    let is_elsewhere = elsewhere > behind / 4 + PREPARING * pointer.targets.len() as u64;
    if is_fixed || is_elsewhere || target.size == 0 || target.size > evidence.line_size {
        return None;
    }
    Change::new(holder, pointer.offset, Addition::InPlace(target.size, target.align.max(1)))
}

/// Describes the pointer, and the members that are accessed behind it: the key where that is what is copied. An
/// instruction may access several members at once.
fn described(target: &Subject, pointer: &FollowedPointer, key: &[&FollowedField]) -> Vec<FieldEvidence> {
    let mut all = vec![FieldEvidence {
        subject: pointer.subject,
        field: pointer.field.clone(),
        offset: pointer.offset,
        size: POINTER,
        sites: pointer.load_sites.iter().map(|(site, loads)| (*site, *loads, 0)).collect(),
        ..FieldEvidence::default()
    }];
    let is_part = |field: &&FollowedField| key.is_empty() || key.iter().any(|of| of.offset == field.offset);
    for field in pointer.fields.iter().filter(is_part) {
        let of_field = |name: &str, offset, size, lost| FieldEvidence {
            subject: pointer.target,
            field: name.to_owned(),
            offset,
            size,
            sites: field.sites.clone(),
            lost,
            ..FieldEvidence::default()
        };
        all.push(of_field(&field.field, field.offset, field.size.min(POINTER), field.cycles));
        let further = field.offset.saturating_add(1)..field.offset.saturating_add(field.size);
        let members = target.members.iter().filter(|member| further.contains(&member.offset));
        all.extend(members.map(|member| of_field(&member.name, member.offset, member.size, 0)));
    }
    // by subject, as two types may have one offset
    all.sort_by_key(|field| (field.subject != pointer.subject, field.offset, std::cmp::Reverse(field.lost)));
    all.dedup_by_key(|field| (field.subject, field.offset));
    all
}

/// Maps the holders to larger ones and the objects behind the pointer, or their key, into them. Elements of an array
/// stay side by side; other holders keep the memory between them, and each takes as much more as its block of the heap.
fn map(
    evidence: &Evidence,
    (holder, target): (&TypeUse, &TypeUse),
    pointer: &FollowedPointer,
    key: &[&FollowedField],
    change: &Change,
) -> Option<AddressMap> {
    let mut map = AddressMap::new(evidence.line_size);
    let holders = &pointer.holders;
    let (first, last) = (*holders.first()?, *holders.last()?);
    let (before, after) = change.sizes;
    let growth = heap_block(after).saturating_sub(heap_block(before));
    let is_array = before > 0 && holder.stride == before;
    let distance = |at: usize, start: u64| match is_array {
        true => ((start - first) / before).saturating_mul(after),
        false => (start - first).saturating_add(growth * at as u64),
    };
    let span = distance(holders.len() - 1, last).saturating_add(after);
    if span > SPAN_LIMIT {
        return None;
    }
    // the first holder is where it was in its line
    let fresh = map.fresh_lines(span.div_ceil(evidence.line_size) + 1) + first % evidence.line_size;
    let starts: FxHashMap<u64, u64> =
        holders.iter().enumerate().map(|(at, start)| (*start, fresh + distance(at, *start))).collect();
    let behind = |slot: &u64| Some(starts.get(&slot.wrapping_sub(pointer.offset))? + change.new);
    let targets: FxHashMap<u64, u64> =
        pointer.targets.iter().filter_map(|(object, slot)| Some((*object, behind(slot)?))).collect();
    let (starts, targets): (NewStarts, NewStarts) = (Arc::new(starts), Arc::new(targets));
    let size_of = |used: &TypeUse, offset: u64| {
        used.fields.iter().find(|field| field.offset == offset).map_or(POINTER, |field| field.size)
    };
    for (instruction, offset) in &holder.instructions {
        let size = size_of(holder, *offset);
        map.move_objects(*instruction, (*offset, change.offset(*offset)), size, &starts);
    }
    let copies = copies(key).0;
    for (instruction, offset) in &target.instructions {
        let copy = copies.iter().find(|(of_key, _)| of_key == offset).map(|(_, at)| *at);
        if let Some(after) = copy.or(key.is_empty().then_some(*offset)) {
            map.move_objects(*instruction, (*offset, after), size_of(target, *offset), &targets);
        }
    }
    Some(map)
}
