//! Consistency of the types of whole programs: no member beyond the end of its record, none
//! over another without a reason; members, holes and padding add up to the size.
//!
//! The program is this test, which is Rust; more are named by `TALLYLINE_LAYOUT_FILES`, with colons
//! between.

use std::path::{Path, PathBuf};
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::model::{Member, MemberKind, Record, Types};
use tallyline_debuginfo::{NoCompanions, Request, read_file};
use tallyline_layout::query;

/// Returns the fault of a record, if it has one.
fn fault(types: &Types, record: &Record) -> Option<String> {
    let members = types.members(record);
    let all = members.iter().chain(types.tag(record));
    let variants = types.variants(record).iter().flat_map(|one| types.variant_members(one));
    for member in all.chain(variants).filter(|member| member.takes_bytes()) {
        let end = match member.bitfield {
            Some(field) => (member.bit_offset + u64::from(field.size)).div_ceil(8),
            None => member.offset.checked_add(member.size)?,
        };
        if end > record.size && !(member.is_base() && shares_tail(types, member, record)) {
            return Some(format!("{} ends at {end} of {}", name(types, member), record.size));
        }
    }
    if record.is_union() || !types.variants(record).is_empty() || members.iter().any(is_unknown) {
        return None;
    }
    overlap(types, record).or_else(|| sums(types, record))
}

fn name(types: &Types, member: &Member) -> String {
    String::from_utf8_lossy(types.name(member.name)).into_owned()
}

fn is_unknown(member: &Member) -> bool {
    member.kind == MemberKind::VirtualBase && !member.is_placed()
}

/// Returns whether a base may exceed the bytes that it takes: its tail holds others, or nothing.
fn shares_tail(types: &Types, member: &Member, record: &Record) -> bool {
    let Some((_, base)) = types.as_record(types.strip(member.ty)) else { return false };
    member.offset + base.size - query::layout(types, base).summary().padding() <= record.size
}

fn overlap(types: &Types, record: &Record) -> Option<String> {
    let plain = types.members(record).iter().filter(|one| one.takes_bytes() && one.bitfield.is_none());
    let mut before: Option<&Member> = None;
    for member in plain.filter(|one| one.size != 0) {
        if let Some(last) = before.filter(|last| last.offset + last.size > member.offset) {
            // C++ may put members into the tail of a class
            let tail = types.as_record(types.strip(last.ty)).is_some_and(|(_, class)| {
                let end = last.offset + class.size - query::layout(types, class).summary().padding();
                record.language.is_cpp() && (end <= member.offset || has_shared_tail(types, class))
            });
            if !tail {
                return Some(format!("{} lies over {}", name(types, member), name(types, last)));
            }
        }
        before = Some(member);
    }
    None
}

/// Returns whether a class ends with a class whose tail is free.
fn has_shared_tail(types: &Types, class: &Record) -> bool {
    types.members(class).iter().any(|member| types.as_record(types.strip(member.ty)).is_some())
}

fn sums(types: &Types, record: &Record) -> Option<String> {
    let layout = query::layout(types, record);
    let mut bits: i64 = 8 * i64::try_from(layout.summary().padding()).ok()?;
    bits += i64::from(layout.summary().bit_padding());
    bits += layout.unused_bits();
    for member in types.members(record).iter().filter(|one| one.takes_bytes()) {
        bits += match member.bitfield {
            Some(field) => i64::from(field.size),
            None => 8 * i64::try_from(member.size).ok()?,
        };
    }
    let size = 8 * i64::try_from(record.size).ok()?;
    // a last base may be larger than what is left for it
    let last_is_base = types.members(record).iter().rfind(|one| one.takes_bytes())?.is_base();
    let is_empty = types.members(record).iter().all(|member| !member.takes_bytes());
    (bits != size && !is_empty && !(last_is_base && bits > size))
        .then(|| format!("{bits} bits add up to {size}"))
}

/// Checks a file; how many records it has.
fn check(path: &Path) -> usize {
    let file = std::fs::File::open(path).expect("readable");
    let types = read_file(&file, &Request::default(), &NoCompanions).expect("has debug information");
    let mut faults = Vec::new();
    let records = lookup::distinct_records(&types);
    for (id, record) in &records {
        if let Some(fault) = fault(&types, types.record(*record)) {
            faults.push(format!("{}: {fault}", String::from_utf8_lossy(&types.qualified_name(*id))));
        }
    }
    let unknown = records.iter().filter(|(_, id)| types.members(types.record(*id)).iter().any(is_unknown));
    let all = records.len();
    println!("{}: {all} records, {} with virtual bases of unknown place", path.display(), unknown.count());
    assert!(faults.is_empty(), "{}: {} of {all}\n{}", path.display(), faults.len(), faults.join("\n"));
    all
}

#[test]
fn records_of_whole_programs_agree_with_themselves() {
    assert!(check(&std::env::current_exe().expect("known")) > 1000);
    let more = std::env::var_os("TALLYLINE_LAYOUT_FILES").unwrap_or_default();
    for path in std::env::split_paths(&more).filter(|path| *path != PathBuf::new()) {
        assert!(check(&path) > 0);
    }
}
