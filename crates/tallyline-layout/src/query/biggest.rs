//! The first member of the largest size that a machine word can hold: what a struct's alignment, and
//! so a reorganisation of it, starts from.

use tallyline_debuginfo::model::{Member, MemberKind, Pointer, Record, Type, TypeId, Types};

/// The nesting depth at which the search ends; real programs stay below thirty.
const DEPTH_LIMIT: usize = 64;

/// The limit on members visited by the search; real structs have a few hundred before
/// one of the size of a word.
const STEPS_LIMIT: usize = 1 << 13;

/// Returns the first of a record's members of the largest size, as pahole's reorganisation counts it: in powers of two
/// up to a pointer's size; a struct counts as its own largest member. `None` if there are no members.
pub fn first_biggest_member(types: &Types, record: &Record) -> Option<Member> {
    search(types, record, 0, &mut { STEPS_LIMIT })
}

fn search(types: &Types, record: &Record, depth: usize, steps: &mut usize) -> Option<Member> {
    if depth > DEPTH_LIMIT {
        return None;
    }
    let word = types.pointer_size().max(1);
    let mut best: Option<(u64, Member)> = None;
    for member in types.members(record) {
        if matches!(member.kind, MemberKind::Static | MemberKind::VirtualBase) {
            continue;
        }
        *steps = steps.checked_sub(1)?;
        let (size, shown) = match of_type(types, member.ty, depth, steps) {
            Size::Unknown => continue,
            Size::Plain(size) => (size, *member),
            Size::Inner(inner) => (inner.size, inner),
        };
        // larger than a word: no other can be larger in a way that matters
        if size > word {
            return Some(*member);
        }
        if size == word {
            return Some(shown);
        }
        let size = if size == 0 { 0 } else { 1 << size.ilog2() };
        if size > best.map_or(0, |(size, _)| size) {
            best = Some((size, shown));
        }
    }
    best.map(|(_, member)| member)
}

enum Size {
    Unknown,
    Plain(u64),
    Inner(Member),
}

fn of_type(types: &Types, mut id: TypeId, depth: usize, steps: &mut usize) -> Size {
    for _ in 0..DEPTH_LIMIT {
        id = match types.get(id) {
            Type::Base { bits, .. } => return Size::Plain(u64::from(bits / 8)),
            Type::Pointer { kind: Pointer::Pointer | Pointer::Reference, .. } => {
                return Size::Plain(types.pointer_size());
            }
            Type::Pointer { to, .. } => to,
            Type::Enum(item) => return Size::Plain(types.enumeration(item).size),
            Type::Record(record) => {
                let inner = search(types, types.record(record), depth + 1, steps);
                return inner.map_or(Size::Unknown, Size::Inner);
            }
            Type::Array(array) => types.array(array).of,
            Type::Qualified { of, .. } | Type::Typedef { of, .. } | Type::Annotated { of } => of,
            _ => return Size::Plain(0),
        };
        if id == TypeId::VOID {
            return Size::Unknown;
        }
    }
    Size::Unknown
}
