//! Sizes.

use crate::model::{Pointer, Type, TypeId, Types};

/// The longest chain of typedefs, qualifiers and arrays that is followed.
const CHAIN_LIMIT: usize = 256;

/// Returns the size of a type in bytes, following typedefs and qualifiers; 0 if it has none or it is unknown.
pub fn size_of(types: &Types, id: TypeId) -> u64 {
    let mut id = id;
    let mut times = 1_u64;
    for _ in 0..CHAIN_LIMIT {
        let one = match types.get(id) {
            Type::Typedef { of, .. } | Type::Qualified { of, .. } | Type::Annotated { of } => {
                id = of;
                continue;
            }
            Type::Array(array) => {
                let array = types.array(array);
                times = types.dimensions(array).iter().fold(times, |times, n| times.saturating_mul(*n));
                id = array.of;
                continue;
            }
            // elements of Ada's packed arrays are bits
            Type::Base { bits, .. } => return times.saturating_mul(bits.into()).div_ceil(8),
            Type::Descriptor { bytes, .. } => bytes.into(),
            Type::Pointer {
                kind: Pointer::Pointer | Pointer::Reference | Pointer::RvalueReference, ..
            } => types.pointer_size(),
            Type::MemberPointer { to, .. } => member_pointer_size(types, to),
            Type::Function(_) => types.pointer_size(),
            Type::Enum(id) => types.enumeration(id).size,
            Type::Record(record) => types.record(record).size,
            Type::Text { length } => u64::from(length),
            // the type of nullptr, as gcc and clang call it
            Type::Opaque { name } if types.name(name) == b"decltype(nullptr)" => types.pointer_size(),
            Type::Void | Type::Missing | Type::Opaque { .. } => 0,
        };
        return times.saturating_mul(one);
    }
    0
}

/// Returns the size in bytes of a C++ pointer to a member of this type: two words for a member function, as in the
/// Itanium C++ ABI, else one.
fn member_pointer_size(types: &Types, to: TypeId) -> u64 {
    match types.get(types.strip(to)) {
        Type::Function(_) => 2 * types.pointer_size(),
        _ => types.pointer_size(),
    }
}
