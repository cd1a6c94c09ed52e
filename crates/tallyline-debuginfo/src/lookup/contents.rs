//! The structure of types, by which two of one name are compared: are they one type, seen from two units?

use super::naming::canonical;
use crate::model::{Member, MemberKind, NameId, Record, Type, TypeId, Types};
use foldhash::fast::RandomState;
use rustc_hash::FxHashMap;
use std::hash::{BuildHasher, Hash, Hasher};

/// The depth of nested types at which the answer is cut short; real programs stay below thirty.
const DEPTH_LIMIT: usize = 128;

/// The number of steps from a pointer to a name.
const POINTER_LIMIT: usize = 16;

/// Two keyed hashes, as one may collide.
pub(super) type Content = (u64, u64);

/// Contents of types, each computed once: equal for types of the same declaration, whatever the
/// unit. What is pointed to counts by its name.
#[derive(Debug, Default)]
pub(super) struct Contents {
    states: [RandomState; 2],
    known: FxHashMap<TypeId, Content>,
}

impl Contents {
    /// Returns the content of a type.
    pub(super) fn of(&mut self, types: &Types, id: TypeId) -> Content {
        self.nested(types, id, 0)
    }

    fn nested(&mut self, types: &Types, id: TypeId, depth: usize) -> Content {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        if depth > DEPTH_LIMIT {
            return Content::default();
        }
        // a type that holds itself is damaged: it counts nothing to itself
        self.known.insert(id, Content::default());
        let mut words = Vec::new();
        self.write(types, id, depth, &mut words);
        let [one, other] = self.states.each_ref().map(|state| state.hash_one(&words));
        self.known.insert(id, (one, other));
        (one, other)
    }

    fn write(&mut self, types: &Types, id: TypeId, depth: usize, words: &mut Vec<u64>) {
        let ty = types.get(id);
        words.push(kind(&ty));
        match ty {
            Type::Void | Type::Missing => {}
            Type::Function(_) => {}
            Type::Descriptor { of, rank, bytes } => {
                words.extend([u64::from(rank), u64::from(bytes)]);
                self.pointee(types, of, words);
            }
            Type::Base { name, bits } => words.extend([self.number_name(types, name), bits.into()]),
            Type::Opaque { name } => words.push(self.name(types, name)),
            Type::Text { length } => words.push(length.into()),
            Type::Pointer { kind, to } => {
                words.push(kind as u64);
                self.pointee(types, to, words);
            }
            Type::MemberPointer { class, to } => {
                words.push(self.name(types, types.type_name(class)));
                self.pointee(types, to, words);
            }
            Type::Qualified { qualifier, of } => {
                words.push(qualifier as u64);
                self.push(types, of, depth, words);
            }
            Type::Annotated { of } => self.push(types, of, depth, words),
            Type::Typedef { name, of } => {
                words.push(self.name(types, name));
                self.push(types, of, depth, words);
            }
            Type::Array(array) => {
                let array = types.array(array);
                words.push(u64::from(array.vector));
                words.extend(types.dimensions(array));
                self.push(types, array.of, depth, words);
            }
            Type::Enum(item) => {
                let item = types.enumeration(item);
                words.extend([self.name(types, item.name), item.size]);
                if depth == 0 {
                    let items = types.enumerators(item).iter();
                    words.extend(items.flat_map(|item| [self.name(types, item.name), item.value]));
                }
            }
            Type::Record(record) => {
                let record = *types.record(record);
                self.record(types, &record, depth, words);
            }
        }
    }

    fn record(&mut self, types: &Types, record: &Record, depth: usize, words: &mut Vec<u64>) {
        words.push(self.name(types, record.name));
        if record.declaration {
            return;
        }
        words.extend([u64::from(record.is_union()), record.size, record.align]);
        for member in types.members(record).iter().filter(|member| member.kind != MemberKind::Static) {
            self.member(types, member, depth, words);
        }
        if let Some(tag) = types.tag(record) {
            self.member(types, tag, depth, words);
        }
        for variant in types.variants(record) {
            words.push(self.name(types, variant.name));
            for member in types.variant_members(variant) {
                self.member(types, member, depth, words);
            }
        }
    }

    fn member(&mut self, types: &Types, member: &Member, depth: usize, words: &mut Vec<u64>) {
        let bits = member.bitfield.map_or(u64::MAX, |field| field.size.into());
        let name = self.name(types, member.name);
        words.extend([name, member.kind as u64, member.bit_offset, member.size, bits, member.align]);
        self.push(types, member.ty, depth, words);
    }

    fn push(&mut self, types: &Types, id: TypeId, depth: usize, words: &mut Vec<u64>) {
        let (one, other) = self.nested(types, id, depth + 1);
        words.extend([one, other]);
    }

    /// Appends the type that a pointer leads to, up to the first name.
    fn pointee(&self, types: &Types, mut id: TypeId, words: &mut Vec<u64>) {
        for _ in 0..POINTER_LIMIT {
            let ty = types.get(id);
            words.push(kind(&ty));
            match ty {
                Type::Pointer { to, .. } => id = to,
                Type::Qualified { of, .. } | Type::Annotated { of } => id = of,
                Type::Array(array) => id = types.array(array).of,
                Type::Base { name, .. } => return words.push(self.number_name(types, name)),
                _ => return words.push(self.name(types, types.type_name(id))),
            }
        }
    }

    fn name(&self, types: &Types, name: NameId) -> u64 {
        self.states[0].hash_one(types.name(name))
    }

    /// Returns the name of a number, which compilers spell in several ways.
    fn number_name(&self, types: &Types, name: NameId) -> u64 {
        let name = canonical(types.name(name));
        self.states[0].hash_one(if *name == b"_Bool"[..] { b"bool" } else { &*name })
    }
}

fn kind(ty: &Type) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    std::mem::discriminant(ty).hash(&mut hasher);
    hasher.finish()
}
