//! Which types hold, or point to, another.

use super::distinct_records;
use crate::model::{NameId, Pointer, Type, TypeId, Types};

/// The records with a member of exactly this type, in the order of the file.
pub fn containers(types: &Types, wanted: TypeId) -> Vec<TypeId> {
    let holds = |ty: TypeId| is_same(types, ty, wanted);
    distinct_records(types)
        .into_iter()
        .filter(|(_, record)| types.members(types.record(*record)).iter().any(|member| holds(member.ty)))
        .map(|(id, _)| id)
        .collect()
}

/// The records and members that point to this type, in the order of the file.
pub fn pointers_to(types: &Types, wanted: TypeId) -> Vec<(TypeId, NameId)> {
    let mut found = Vec::new();
    for (id, record) in distinct_records(types) {
        for member in types.members(types.record(record)) {
            if let Type::Pointer { kind: Pointer::Pointer, to } = types.get(member.ty)
                && is_same(types, to, wanted)
            {
                found.push((id, member.name));
            }
        }
    }
    found
}

/// Whether two types are one. Units repeat types, so a named one is known by its name and kind.
fn is_same(types: &Types, a: TypeId, b: TypeId) -> bool {
    if a == b {
        return true;
    }
    let (name, other) = (types.type_name(a), types.type_name(b));
    let kinds = match (types.get(a), types.get(b)) {
        (Type::Record(a), Type::Record(b)) => types.record(a).kind == types.record(b).kind,
        (a, b) => std::mem::discriminant(&a) == std::mem::discriminant(&b),
    };
    name.is_some() && name == other && kinds
}
