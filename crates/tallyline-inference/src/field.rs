//! Names of the fields at an offset of an object.

use super::candidates::{self, ALL};
use super::outcome::{Choice, Typed};
use crate::code::Access;
use tallyline_debuginfo::model::{TypeId, Types};

/// Formats an operand's byte and field in its object: `+0x3c (flags)`; `+0x10 or +0x18 (left or right)` for
/// two places that a condition chooses between; `+0x10 (long or pointer)` for several fields at one place;
/// `+0 (no field)` where none is there.
pub fn place_text(types: &Types, typed: &Typed) -> String {
    place_in_node_text(types, typed, 0)
}

/// Formats the position of an operand in the node of a container that its object starts at a byte of: offsets are the
/// node's, the field is named as in its object.
pub fn place_in_node_text(types: &Types, typed: &Typed, start: u32) -> String {
    let place = |offset: u32| match start.saturating_add(offset) {
        0 => "+0".to_owned(),
        offset => format!("+{offset:#x}"),
    };
    let named = |path: String| if path.is_empty() { "no field".to_owned() } else { path };
    let field = named(field_path(types, typed));
    match typed.or {
        None => format!("{} ({field})", place(typed.offset)),
        Some(Choice { offset: other, .. }) => {
            let other = (place(other), named(at_other(types, typed, other)));
            format!("{} or {} ({field} or {})", place(typed.offset), other.0, other.1)
        }
    }
}

/// Returns the path of an operand's field, such as `stats.rx[].bytes`; empty where there is none, as in a number.
/// Members of bases and of anonymous records count as the object's own. The path names the variant of a Rust enum;
/// where the access does not distinguish fields, all are named, with `or` between.
pub fn field_path(types: &Types, typed: &Typed) -> String {
    path(types, typed.ty, typed.offset, typed.size, typed.candidates)
}

/// Returns the members that an access may belong to: for each, the index of the member at each level, as the reports'
/// `Member::number` counts them, down to the first array.
pub fn members_of(types: &Types, ty: TypeId, offset: u64, size: u16, set: u64) -> Vec<Vec<u32>> {
    candidates::trails(candidates::candidates(types, ty, offset, size.into()), set)
}

impl Typed {
    /// Creates an operand's part of an object whose candidate fields follow from the size of the access
    /// alone.
    pub fn by_size(types: &Types, ty: TypeId, offset: u32, size: u16, access: Access) -> Typed {
        Typed { candidates: by_size(types, ty, offset, size), ..Typed::at(ty, offset, size, access) }
    }
}

fn at_other(types: &Types, typed: &Typed, offset: u32) -> String {
    path(types, typed.ty, offset, typed.size, by_size(types, typed.ty, offset, typed.size))
}

fn path(types: &Types, ty: TypeId, offset: u32, size: u16, set: u64) -> String {
    let all = candidates::candidates(types, ty, offset.into(), size.into());
    candidates::paths(&all, set).join(" or ")
}

/// Returns the candidate fields of an access by its size alone.
fn by_size(types: &Types, ty: TypeId, offset: u32, size: u16) -> u64 {
    let all = candidates::candidates(types, ty, offset.into(), size.into());
    if all.len() < 2 { ALL } else { candidates::possible(&all, offset.into(), None, |_| true) }
}
