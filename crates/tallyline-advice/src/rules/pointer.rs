//! Small objects behind a pointer that a hot path waits for: in the pointer's place, or with a copy of their key beside
//! it, they come with the line that has the pointer.

use super::{Confidence, FieldEvidence, Finding, FindingKind};
use crate::address_map::{AddressMap, NewStarts};
use crate::evidence::{Evidence, FollowedField, FollowedPointer, Subject, TypeUse};
use crate::predict::Outlook;
use crate::proposal::Proposal;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Objects behind a pointer below which their place does not matter: they stay in the cache.
const LEAST_OBJECTS: usize = 512;

/// Parts of all cycles that the misses behind a pointer have to cost: one of so many.
const LEAST_SHARE: u64 = 50;

/// Bytes of a pointer.
const POINTER: u64 = 8;

/// The most bytes of a copy beside a pointer: a key and a hash of it.
const COPY: u64 = 16;

/// The largest part of the visits in which a pointer may lead elsewhere than before, or objects have several pointers.
const UNSURE: f64 = 0.05;

/// The part of the visits from which on a field is read by nearly all of them.
const NEARLY_ALL: f64 = 0.9;

/// The part of the visits up to which what is read beside a copy leaves most of them without a miss.
const SELDOM: f64 = 0.5;

/// Returns a finding for each pointer behind which a hot path waits for small objects.
pub(super) fn findings(evidence: &Evidence) -> Vec<Finding> {
    evidence.pointers.iter().filter_map(|pointer| of_pointer(evidence, pointer)).collect()
}

/// The part that one number is of another.
fn part(of: u64, whole: u64) -> f64 {
    of as f64 / whole.max(1) as f64
}

fn of_pointer(evidence: &Evidence, pointer: &FollowedPointer) -> Option<Finding> {
    let holder = evidence.subjects.get(pointer.subject)?;
    let target = evidence.subjects.get(pointer.target)?;
    let waited: u64 = pointer.fields.iter().filter(|field| field.misses > 0).map(|field| field.cycles).sum();
    let is_small = pointer.targets.len() < LEAST_OBJECTS || waited < evidence.cycles / LEAST_SHARE;
    let is_sure = part(pointer.conflicts, pointer.visits) <= UNSURE
        && part(pointer.shared, pointer.targets.len() as u64) <= UNSURE;
    let is_own = [holder, target].into_iter().all(|subject| subject.is_named() && !subject.is_library_type);
    if is_small || !is_sure || !is_own {
        return None;
    }
    let used = |subject: usize| evidence.types.iter().find(|used| used.subject == subject);
    let (of_holder, of_target) = (used(pointer.subject)?, used(pointer.target)?);
    let name = format!("{}.{}", holder.name, pointer.field);
    let key = key(target, pointer);
    let (change, proposal) = if key.is_empty() {
        let change = embedded(evidence, holder, target, of_holder, pointer)?;
        (change, Proposal::Embed { pointer: name, target: target.name.clone(), sizes: change.sizes })
    } else {
        let change = Change::new(holder, of_holder, pointer.offset + POINTER, bytes(&key));
        let fields = key.iter().map(|field| format!("{}.{}", target.name, field.field)).collect();
        (change, Proposal::CopyBeside { pointer: name, fields, sizes: change.sizes })
    };
    Some(Finding {
        kind: FindingKind::PointerChasing,
        subject: pointer.subject,
        confidence: Confidence::Medium,
        fields: described(target, pointer, &key),
        lines: pointer.targets.len() as u64,
        lost: waited,
        transfers: 0,
        reader_lines: (0, 0),
        map: map(evidence, of_holder, of_target, pointer, &key, change),
        proposal,
        outlook: Outlook::default(),
        check: None,
    })
}

/// Returns the fields that nearly all visits read, if they are few bytes that nobody writes behind the pointer, and most
/// visits read nothing else; none otherwise.
fn key<'p>(target: &Subject, pointer: &'p FollowedPointer) -> Vec<&'p FollowedField> {
    let (key, others): (Vec<_>, Vec<_>) =
        pointer.fields.iter().partition(|field| part(field.visits, pointer.visits) >= NEARLY_ALL);
    let is_written = |field: &&FollowedField| field.instructions.iter().any(|(.., stores)| *stores > 0);
    let is_read_more = others.iter().any(|field| part(field.visits, pointer.visits) > SELDOM);
    // an object that is nothing but its key moves as a whole
    if key.iter().any(is_written) || is_read_more || target.size <= bytes(&key) || bytes(&key) > COPY {
        return Vec::new();
    }
    key
}

/// Returns the bytes of some fields side by side, as 8-byte words where they are larger than 4.
fn bytes(fields: &[&FollowedField]) -> u64 {
    fields.iter().map(|field| field.size.max(4).next_power_of_two()).sum::<u64>().next_multiple_of(POINTER)
}

/// A holder of pointers that gets larger behind one of its members.
#[derive(Clone, Copy, Debug)]
struct Change {
    /// The offset from which on members move.
    from: u64,
    /// The bytes by which they do.
    by: u64,
    /// The start of what is new.
    new: u64,
    /// The size before and after.
    sizes: (u64, u64),
    /// The distance between two holders after.
    stride: u64,
}

/// Bytes of an allocator's header, and the multiple that blocks are of.
const BLOCK: u64 = 16;

impl Change {
    /// Puts `bytes` bytes into a holder at an offset.
    fn new(holder: &Subject, used: &TypeUse, at: u64, bytes: u64) -> Self {
        let size = (holder.size + bytes).next_multiple_of(holder.align.max(1));
        // what lies side by side goes on doing so; else each is a block of an allocator
        let stride = match used.stride == holder.size {
            true => size,
            false => (size + POINTER).next_multiple_of(BLOCK).max(used.stride.min(size + BLOCK)),
        };
        Self { from: at, by: bytes, new: at, sizes: (holder.size, size), stride }
    }

    /// Returns an offset of the holder after the change.
    fn offset(self, before: u64) -> u64 {
        if before >= self.from { before + self.by } else { before }
    }
}

/// Returns the change of a holder that has the object in the place of the pointer; `None` if it cannot have it: the
/// object has parts that nothing may move past, takes more than a line, or is mostly reached in other ways.
fn embedded(
    evidence: &Evidence,
    holder: &Subject,
    target: &Subject,
    used: &TypeUse,
    pointer: &FollowedPointer,
) -> Option<Change> {
    let is_fixed = target.members.iter().any(|member| member.is_fixed);
    let (behind, elsewhere) = pointer.target_loads;
    if is_fixed || elsewhere > behind || target.size == 0 || target.size > evidence.line_size {
        return None;
    }
    let grown = target.size.next_multiple_of(POINTER) - POINTER;
    let change = Change::new(holder, used, pointer.offset + POINTER, grown);
    Some(Change { new: pointer.offset.next_multiple_of(target.align.clamp(1, POINTER)), ..change })
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
        let of_field = |field_name: &str, offset, size, lost| FieldEvidence {
            subject: pointer.target,
            field: field_name.to_owned(),
            offset,
            size,
            sites: field.sites.clone(),
            lost,
            ..FieldEvidence::default()
        };
        all.push(of_field(&field.field, field.offset, field.size.min(POINTER), field.cycles));
        let further = field.offset + 1..field.offset + field.size;
        let members = target.members.iter().filter(|member| further.contains(&member.offset));
        all.extend(members.map(|member| of_field(&member.name, member.offset, member.size, 0)));
    }
    // by subject, as two types may have one offset
    all.sort_by_key(|field| (field.subject != pointer.subject, field.offset, std::cmp::Reverse(field.lost)));
    all.dedup_by_key(|field| (field.subject, field.offset));
    all
}

/// Maps the holders to larger ones, in the order of their addresses, and the objects behind the pointer, or their key,
/// into them.
fn map(
    evidence: &Evidence,
    holder: &TypeUse,
    target: &TypeUse,
    pointer: &FollowedPointer,
    key: &[&FollowedField],
    change: Change,
) -> AddressMap {
    let mut map = AddressMap::new(evidence.line_size);
    let mut holders: Vec<u64> =
        pointer.targets.values().map(|slot| slot.wrapping_sub(pointer.offset)).collect();
    holders.sort_unstable();
    holders.dedup();
    let bytes = change.stride.saturating_mul(holders.len() as u64);
    let fresh = map.fresh_lines(bytes.div_ceil(evidence.line_size));
    let new_start = |at: usize| fresh + change.stride * at as u64;
    let starts: FxHashMap<u64, u64> =
        holders.iter().enumerate().map(|(at, start)| (*start, new_start(at))).collect();
    let behind = |slot: &u64| starts.get(&slot.wrapping_sub(pointer.offset)).map(|start| start + change.new);
    let targets: FxHashMap<u64, u64> =
        pointer.targets.iter().filter_map(|(object, slot)| Some((*object, behind(slot)?))).collect();
    let (starts, targets): (NewStarts, NewStarts) = (Arc::new(starts), Arc::new(targets));
    for (instruction, offset) in &holder.instructions {
        map.move_objects(*instruction, (*offset, change.offset(*offset)), &starts);
    }
    let mut end = 0;
    let copies: Vec<(u64, u64)> = key
        .iter()
        .map(|field| {
            end += field.size.max(4).next_power_of_two();
            (field.offset, end - field.size.max(4).next_power_of_two())
        })
        .collect();
    for (instruction, offset) in &target.instructions {
        let copy = copies.iter().find(|(of_key, _)| of_key == offset).map(|(_, at)| *at);
        if let Some(after) = copy.or(key.is_empty().then_some(*offset)) {
            map.move_objects(*instruction, (*offset, after), &targets);
        }
    }
    map
}
