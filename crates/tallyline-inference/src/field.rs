//! Names of the fields at an offset of an object.

use super::candidates::{self, ALL};
use super::outcome::{Choice, Typed};
use crate::code::Access;
use tallyline_debuginfo::model::{TypeId, Types};

/// Formats the offset and field that an operand accesses in its object: `+0x3c (flags)`; with two possible offsets
/// `+0x10 or +0x18 (left or right)`; with several possible fields `+0x10 (long or pointer)`; without a field `+0
/// (no field)`.
pub fn place_text(types: &Types, typed: &Typed) -> String {
    place_in_node_text(types, typed, 0)
}

/// Formats the offset and field that a memory operand accesses in an object that is embedded, at offset `start`, in the
/// node of a container (list, tree, map). The offset is counted from the node's start, the field is named as in the
/// object.
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

/// Returns the path of the field that an operand accesses, such as `stats.rx[].bytes`; empty for a scalar. Members
/// of base classes and anonymous structs count as the object's own; a Rust enum's variant is part of the path;
/// several possible fields are joined by `or`.
pub fn field_path(types: &Types, typed: &Typed) -> String {
    path(types, typed.ty, typed.offset, typed.size, typed.candidates)
}

/// Returns the members that an access to `size` bytes at an offset of a type may belong to. Each is a path of
/// member indices from the type inwards, numbered as `Member::number` in reports, down to the first array. `set` is
/// the mask of [`Typed::candidates`].
pub fn members_of(types: &Types, ty: TypeId, offset: u64, size: u16, set: u64) -> Vec<Vec<u32>> {
    candidates::trails(candidates::candidates(types, ty, offset, size.into()), set)
}

impl Typed {
    /// Describes a memory access to `size` bytes at an offset of an object of a type, with the fields whose size fits
    /// the access as candidates.
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
