//! The order of records by name.

use crate::model::{Member, RecordId, TypeId, Types};
use std::cmp::Ordering;

/// Sorts records (structs, classes, unions) by name; those of one name by their members, then by size.
pub fn sort_by_name(types: &Types, records: &mut [(TypeId, RecordId)]) {
    records.sort_by(|a, b| compare(types, a.1, b.1));
}

pub(super) fn compare(types: &Types, a: RecordId, b: RecordId) -> Ordering {
    let (a, b) = (types.record(a), types.record(b));
    let keys = |record| types.members(record).iter().map(|member| key(types, member));
    types.name(a.name).cmp(types.name(b.name)).then_with(|| keys(a).cmp(keys(b))).then(a.size.cmp(&b.size))
}

fn key<'t>(types: &'t Types, member: &Member) -> (&'t [u8], u64, Option<u32>) {
    (types.name(member.name), member.bit_offset, member.bitfield.map(|field| field.size))
}
