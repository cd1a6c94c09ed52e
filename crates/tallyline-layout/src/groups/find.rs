//! Finding groups by their markers.

use super::{Group, Named};
use crate::query::{Field, fields};
use std::collections::BTreeMap;
use tallyline_debuginfo::model::{Record, Types};

const BEGIN: &[u8] = b"__cacheline_group_begin__";
const END: &[u8] = b"__cacheline_group_end__";
/// The suffix of the padding behind an aligned group.
const PAD: &[u8] = b"__cacheline_group_pad__";

/// The cache-line groups (members meant to share cache lines) found in a struct, and messages about faulty group
/// markers.
#[derive(Debug, Default)]
pub struct FoundGroups {
    /// In the order of their places.
    pub groups: Vec<Group>,
    /// Markers without the other one, or in the wrong order, one line each.
    pub problems: Vec<String>,
}

/// Returns `true` if a member's name is that of a marker of a cache-line group (begin, end, or the padding after it),
/// such as `__cacheline_group_begin__NAME`.
pub(crate) fn is_marker(name: &[u8]) -> bool {
    [BEGIN, END, PAD].iter().any(|prefix| name.starts_with(prefix))
}

/// Returns `true` if a struct has a member that marks the start of a cache-line group.
pub(super) fn has_markers(types: &Types, record: &Record) -> bool {
    // cheap, and enough for most structs
    let plain = types.members(record).iter().any(|member| types.name(member.name).starts_with(BEGIN));
    plain || fields(types, record).iter().any(|field| types.name(field.name).starts_with(BEGIN))
}

/// Finds the cache-line groups of a struct by their marker members (`__cacheline_group_begin__NAME` and `…_end__NAME`,
/// as in the kernel). `line` is the size of a cache line in bytes.
pub fn find(types: &Types, record: &Record, line: u64) -> FoundGroups {
    let all = fields(types, record);
    let mut found = FoundGroups::default();
    let mut open: BTreeMap<&[u8], (usize, &Field)> = BTreeMap::new();
    for (index, field) in all.iter().enumerate() {
        let name = types.name(field.name);
        if let Some(group) = name.strip_prefix(BEGIN) {
            if open.insert(group, (index, field)).is_some() {
                found.problems.push(format!("group {} begins twice", text(group)));
            }
        } else if let Some(group) = name.strip_prefix(END) {
            let Some((from, begin)) = open.remove(group) else {
                found.problems.push(format!("group {} ends and does not begin", text(group)));
                continue;
            };
            if begin.end() > field.start() {
                found.problems.push(format!("group {} ends before it begins", text(group)));
                continue;
            }
            let between = all[from + 1..index].iter();
            let named = |field: &Field| Named { path: text(types.name(field.name)), field: *field };
            let members = between.filter(|field| !is_marker(types.name(field.name))).map(named).collect();
            let group = Group {
                name: text(group),
                marked: true,
                start: begin.end(),
                end: field.start(),
                align: begin.align,
                members,
                holes: Vec::new(),
                foreign: Vec::new(),
                declared_at: begin.declared_at,
            };
            found.groups.push(group.complete(types, record, line));
        }
    }
    found.problems.extend(open.keys().map(|group| format!("group {} begins and does not end", text(group))));
    found.groups.sort_by_key(|group| group.start);
    found
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
