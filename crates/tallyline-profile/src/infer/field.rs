//! The name of what lies at an offset of an object.

use super::outcome::{Choice, Typed};
use tallyline_layout::model::{Type, TypeId, Types};
use tallyline_layout::query;

/// How deep members nest before the rest is left out.
const DEPTH_LIMIT: usize = 32;

/// Where in its object an operand is: `+0x3c (flags)`; two places that a condition chooses between are
/// `+0x10 or +0x18 (left or right)`. Where there is no field it is `+0 (no field)`.
pub fn place_text(types: &Types, typed: &Typed) -> String {
    let place = |offset: u32| if offset == 0 { "+0".to_owned() } else { format!("+{offset:#x}") };
    let field = |offset: u32| match field_path(types, typed.ty, offset) {
        path if path.is_empty() => "no field".to_owned(),
        path => path,
    };
    match typed.or {
        None => format!("{} ({})", place(typed.offset), field(typed.offset)),
        Some(Choice { offset: other, .. }) => {
            let (one, other) = ((place(typed.offset), field(typed.offset)), (place(other), field(other)));
            format!("{} or {} ({} or {})", one.0, other.0, one.1, other.1)
        }
    }
}

/// The path of the member at an offset, such as `stats.rx[].bytes`; empty where there is none, as in
/// a number. Members of bases and of anonymous records count as the object's own; of a union the
/// first is named, of a Rust enum the first variant that has a member there.
pub fn field_path(types: &Types, ty: TypeId, offset: u32) -> String {
    let mut path = String::new();
    let (mut here, mut offset) = (ty, u64::from(offset));
    for _ in 0..DEPTH_LIMIT {
        let stripped = types.strip(here);
        match types.get(stripped) {
            Type::Record(record) => {
                let record = types.record(record);
                let variants =
                    types.variants(record).iter().flat_map(|variant| types.variant_members(variant));
                let members = types.members(record).iter().chain(variants).chain(types.tag(record));
                let found = members.filter(|member| member.takes_bytes()).find(|member| {
                    let inside = offset.checked_sub(member.offset);
                    let open =
                        member.size == 0 && matches!(types.get(types.strip(member.ty)), Type::Array(_));
                    inside.is_some_and(|inside| inside < member.size || open)
                });
                let Some(member) = found else { return path };
                if !member.is_base() && member.name.is_some() {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(&String::from_utf8_lossy(types.name(member.name)));
                }
                (here, offset) = (member.ty, offset - member.offset);
            }
            Type::Array(array) => {
                let element = types.array(array).of;
                let size = query::size_of(types, element);
                path.push_str("[]");
                if size == 0 {
                    return path;
                }
                (here, offset) = (element, offset % size);
            }
            _ => return path,
        }
    }
    path
}
