//! Types that contain, or point to, another.

use tallyline_debuginfo::model::{Member, Pointer, Record, Type, TypeId, Types};

/// Counts the members of a record whose type is one of `wanted`; pointers to those types do not count.
pub fn count_members_of(types: &Types, record: &Record, wanted: &[TypeId]) -> usize {
    types.members(record).iter().filter(|member| is_one_of(types, member.ty, wanted)).count()
}

/// Returns the members of a record that are pointers to one of the types `wanted`.
pub fn pointer_members<'t>(
    types: &'t Types,
    record: &Record,
    wanted: &'t [TypeId],
) -> impl Iterator<Item = &'t Member> {
    types.members(record).iter().filter(move |member| {
        matches!(types.get(member.ty), Type::Pointer { kind: Pointer::Pointer, to } if is_one_of(types, to, wanted))
    })
}

fn is_one_of(types: &Types, id: TypeId, wanted: &[TypeId]) -> bool {
    wanted.iter().any(|wanted| is_same(types, id, *wanted))
}

/// Returns `true` if two types are equal. Units repeat types, so a named one is identified by name and kind.
fn is_same(types: &Types, a: TypeId, b: TypeId) -> bool {
    if a == b {
        return true;
    }
    let (name, other) = (types.type_name(a), types.type_name(b));
    let kinds = match (types.get(a), types.get(b)) {
        (Type::Record(a), Type::Record(b)) => {
            let (a, b) = (types.record(a), types.record(b));
            // of what is only referred to the scopes are not known
            let elsewhere = a.path != b.path && a.path.is_some() && b.path.is_some();
            let other_size = a.size != b.size && !a.declaration && !b.declaration;
            a.kind == b.kind && !elsewhere && !other_size
        }
        (a, b) => std::mem::discriminant(&a) == std::mem::discriminant(&b),
    };
    name.is_some() && name == other && kinds
}
