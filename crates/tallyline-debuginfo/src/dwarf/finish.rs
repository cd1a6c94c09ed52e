//! The completion of types when all are known: sizes of members, and units of bitfields.

use super::classes;
use crate::abi::{Alignments, is_atomic, size_of};
use crate::model::{Bitfield, Member, MemberKind, Range, Record, Type, TypeId, Types};

/// The value of a bitfield's offset whose position is counted from the start of the record. Offsets that are stored
/// may be negative: -1 and on, where a bitfield of a packed struct ends behind its unit (GCC, clang; DWARF 2 to 4).
pub(super) const FROM_RECORD: u32 = i32::MIN as u32;

/// Completes the members from a position on, and the records that have them.
pub(super) fn finish(types: &mut Types, first_member: usize, records: &[usize], little_endian: bool) {
    for index in first_member..types.members.len() {
        let mut member = types.members[index];
        if member.kind == MemberKind::Static {
            member.bitfield = None;
        } else if member.bitfield.is_some() {
            place_bitfield(types, &mut member, little_endian);
        } else if member.size == 0 {
            member.size = size_of(types, member.ty);
        }
        types.members[index] = member;
    }
    for record in records {
        complete_unsized(types, *record);
    }
    for record in records {
        find_least_size(types, *record);
    }
    leave_out_natural_alignments(types, records);
    classes::finish(types, records);
    for record in records {
        order(types, *record);
    }
}

/// Raises the size of a record whose size depends on its contents to the end of what lies at known offsets.
fn find_least_size(types: &mut Types, record: usize) {
    let record = &mut types.records[record];
    if !record.is_dynamic {
        return;
    }
    let members = types.members.get(record.members.start as usize..record.members.end as usize);
    let placed = members.unwrap_or(&[]).iter().filter(|member| member.is_placed());
    record.size = placed.map(|member| member.offset.saturating_add(member.size)).max().unwrap_or(0);
}

/// Completes types without a size as rustc and Zig mean them: a function's own type takes nothing as a
/// member, and Rust's unsized tail `[T]` is written as one `T`.
fn complete_unsized(types: &mut Types, record: usize) {
    let record = types.records[record];
    if !record.language.notes_alignment() || record.declaration {
        return;
    }
    let members = record.members.start as usize..record.members.end as usize;
    for index in members.clone() {
        let Member { ty, offset, size, .. } = types.members[index];
        if matches!(types.get(types.strip(ty)), Type::Function(_)) {
            types.members[index].size = 0;
        } else if record.language.is_rust() && record.is_struct() && is_function_item(types, &record, index) {
            types.members[index].size = 0;
            types.members[index].overlaid = true;
        } else if record.language.is_rust() && record.is_struct() && offset.saturating_add(size) > record.size
        {
            let tail = types.push_array(ty, &[0], false).and_then(|tail| types.push(Type::Array(tail)));
            if let Ok(tail) = tail {
                types.members[index].ty = tail;
                types.members[index].size = 0;
            }
        }
    }
}

/// Returns `true` if a member that rustc describes as a pointer to a function is the function itself, which takes no
/// bytes: there is no room for a pointer between its place and the next member, or the end of the record.
fn is_function_item(types: &Types, record: &Record, index: usize) -> bool {
    let Member { ty, offset, size, .. } = types.members[index];
    let Type::Pointer { to, .. } = types.get(types.strip(ty)) else { return false };
    if !matches!(types.get(types.strip(to)), Type::Function(_)) {
        return false;
    }
    let end = offset.saturating_add(size);
    // it follows those that lie at its own place
    let others = (record.members.start as usize..record.members.end as usize).filter(|other| *other != index);
    let overlaps = |other: &Member| other.offset < end && offset < other.offset.saturating_add(other.size);
    let is_item = |member: &Member| member.overlaid;
    let mut others = others.filter_map(|other| types.members.get(other)).filter(|other| !is_item(other));
    // an unsized tail of pointers begins where the record ends
    let is_tail = offset != 0 && offset == record.size && offset % size.max(1) == 0;
    end > record.size && !is_tail || others.any(overlaps)
}

/// Drops alignments that are the natural ones: Zig notes the alignment of every member, and only those that
/// the source asked for are of interest.
fn leave_out_natural_alignments(types: &mut Types, records: &[usize]) {
    let is_zig = |record: &&usize| types.records[**record].language.is_zig();
    let records: Vec<usize> = records.iter().filter(is_zig).copied().collect();
    if records.is_empty() {
        return;
    }
    let mut alignments = Alignments::new(types);
    for record in records {
        let record = types.records[record];
        let variants = types.variants(&record).iter().map(|variant| variant.members);
        let ranges: Vec<Range> = variants.chain([record.members]).collect();
        for index in ranges.into_iter().flat_map(|range| range.start as usize..range.end as usize) {
            let member = types.members[index];
            if member.align <= alignments.of(types, types.strip(member.ty)) {
                types.members[index].align = 0;
            }
        }
    }
}

/// Puts members into the order they lie in. C's always do. Rust's do as the compiler likes, and in
/// C++ bases may lie behind what is declared after them. What is static stays where it is declared.
fn order(types: &mut Types, record: usize) {
    let record = types.records[record];
    if record.is_union() || !record.language.has_scopes() {
        return;
    }
    let Some(members) = types.members.get_mut(record.members.start as usize..record.members.end as usize)
    else {
        return;
    };
    let placed = || members.iter().filter(|member| member.kind != MemberKind::Static);
    if placed().is_sorted_by_key(|member| member.bit_offset) {
        return;
    }
    let mut before = 0;
    let mut keyed: Vec<(u64, Member)> = Vec::with_capacity(members.len());
    for member in members.iter() {
        if member.kind != MemberKind::Static {
            before = member.bit_offset;
        }
        keyed.push((before, *member));
    }
    keyed.sort_by_key(|(place, _)| *place);
    members.iter_mut().zip(keyed).for_each(|(slot, (_, member))| *slot = member);
}

/// Returns `true` if a bitfield of this type and of `bits` bits is an atomic that is padded to a power of two. Before
/// DWARF 5 nothing says that it is atomic, but a record is no bitfield in C.
fn is_padded_atomic(types: &Types, id: TypeId, bits: u64) -> bool {
    let own = size_of(types, id).saturating_mul(8);
    let is_record = types.as_record(types.strip(id)).is_some();
    own < bits && own.checked_next_power_of_two() == Some(bits) && (is_record || is_atomic(types, id))
}

/// Finds the naturally aligned unit that a bitfield starts in, and its first bit there, counted
/// from the end that has the lower address.
fn place_bitfield(types: &Types, member: &mut Member, little_endian: bool) {
    let Some(Bitfield { offset: stored, size }) = member.bitfield else { return };
    if member.size == 0 {
        member.size = size_of(types, types.strip(member.ty));
    }
    let unit = i128::from(member.size) * 8;
    let start = if stored == FROM_RECORD {
        i128::from(member.bit_offset)
    } else {
        // DWARF 2 and 3 count from the most significant bit
        let stored = i128::from(stored as i32);
        let bit = if little_endian { unit - stored - i128::from(size) } else { stored };
        i128::from(member.offset) * 8 + bit
    };
    let start = start.max(0);
    // clang describes an atomic that it pads as a bitfield wider than its type
    if start % 8 == 0 && is_padded_atomic(types, member.ty, size.into()) {
        member.bit_offset = u64::try_from(start).unwrap_or(u64::MAX);
        member.offset = member.bit_offset / 8;
        member.size = u64::from(size / 8);
        member.bitfield = None;
        return;
    }
    if unit == 0 || !matches!(types.get(types.strip(member.ty)), Type::Base { .. } | Type::Enum(_)) {
        // a record of bits in another
        let offset = if stored == FROM_RECORD { (member.bit_offset % 8) as u32 } else { 0 };
        member.bitfield = Some(Bitfield { offset, size });
        return;
    }
    let offset = start / unit * unit / 8;
    member.bit_offset = u64::try_from(start).unwrap_or(u64::MAX);
    member.offset = u64::try_from(offset).unwrap_or(u64::MAX);
    let bit = u32::try_from(start - offset * 8).unwrap_or(0);
    member.bitfield = Some(Bitfield { offset: bit, size });
}
