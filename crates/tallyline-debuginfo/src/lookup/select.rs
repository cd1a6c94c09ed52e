//! The selection of types by name, each once.

use super::definitions::is_defined;
use super::is_called;
use crate::model::{MemberKind, NameId, Record, RecordId, Type, TypeId, Types};
use foldhash::fast::RandomState;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash, Hasher};

/// Returns the first listed (requested) record (struct, class or union), enumeration, typedef or, in DWARF, base type
/// of this name that is defined, not only declared; `None` if there is none.
pub fn find(types: &Types, name: &[u8]) -> Option<TypeId> {
    types.listed().iter().copied().find(|id| is_defined(types, *id) && is_type_called(types, *id, name))
}

/// Returns `true` if a type has this name, which may be given with scopes.
fn is_type_called(types: &Types, id: TypeId, name: &[u8]) -> bool {
    let own = types.type_name(id);
    own.is_some() && is_called(name, types.name(types.path(id)), types.name(own))
}

/// Returns the first type of this name, even if it is only declared or referred to by others; `None` if there is none.
pub fn find_mentioned(types: &Types, name: &[u8]) -> Option<TypeId> {
    let named = |id: &TypeId| is_type_called(types, *id, name);
    find(types, name).or_else(|| (1..types.len() as u32).map(TypeId).find(named))
}

/// Returns the listed (requested) records (structs, classes, unions) that have a name and a definition, in the order of
/// the file; of equal ones ([`is_same_record`]) the first.
pub fn distinct_records(types: &Types) -> Vec<(TypeId, RecordId)> {
    distinct(types, false)
}

/// Returns the listed (requested) records (structs, classes, unions) that have a definition, in the order of the file:
/// of equal named ones ([`is_same_record`]) the first, and all anonymous ones.
pub fn records_and_anonymous(types: &Types) -> Vec<(TypeId, RecordId)> {
    distinct(types, true)
}

/// Returns a map from each anonymous record (struct, class or union) to the name of its first typedef; records without
/// a typedef are not in it.
pub fn aliases(types: &Types) -> FxHashMap<TypeId, NameId> {
    let mut aliases = FxHashMap::default();
    for id in (1..types.len() as u32).map(TypeId) {
        if let Type::Typedef { name, of } = types.get(id)
            && types.as_record(of).is_some_and(|(_, record)| !record.name.is_some())
        {
            aliases.entry(of).or_insert(name);
        }
    }
    aliases
}

/// Returns the names of all typedefs of a record (struct, class or union), each once; typedefs of pointers to it do not
/// count.
pub fn typedefs(types: &Types, record: RecordId) -> Vec<NameId> {
    let mut names: Vec<NameId> = Vec::new();
    for id in (1..types.len() as u32).map(TypeId) {
        if let Type::Typedef { name, of } = types.get(id)
            && types.as_record(of).is_some_and(|(known, _)| known == record)
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

fn distinct(types: &Types, anonymous: bool) -> Vec<(TypeId, RecordId)> {
    // the hash is keyed: a file cannot be made so that all of its types collide
    let state = RandomState::default();
    let mut seen: FxHashMap<u64, RecordId> = FxHashMap::default();
    seen.reserve(types.listed().len().min(types.record_count()));
    let mut distinct = Vec::new();
    for id in types.listed().iter().copied() {
        let Some((record_id, record)) = types.as_record(id) else { continue };
        if record.declaration || !record.name.is_some() && !anonymous {
            continue;
        }
        if !record.name.is_some() {
            distinct.push((id, record_id));
            continue;
        }
        let mut key = hash(types, record, &state);
        let is_new = loop {
            match seen.entry(key) {
                Entry::Vacant(free) => {
                    free.insert(record_id);
                    break true;
                }
                Entry::Occupied(other) if is_same_record(types, types.record(*other.get()), record) => {
                    break false;
                }
                // another one of the same hash
                Entry::Occupied(_) => key = key.wrapping_add(1),
            }
        };
        if is_new {
            distinct.push((id, record_id));
        }
    }
    distinct
}

/// Returns `true` if two records (structs, unions, classes) are one type as seen from two compilation units: equal in
/// name, scopes and size, with members of equal names at equal bits. The members' types are not compared.
pub fn is_same_record(types: &Types, a: &Record, b: &Record) -> bool {
    a.name == b.name && a.path == b.path && a.size == b.size && keys(types, a).eq(keys(types, b))
}

fn hash(types: &Types, record: &Record, state: &RandomState) -> u64 {
    let mut hasher = state.build_hasher();
    (record.name, record.path, record.size).hash(&mut hasher);
    keys(types, record).for_each(|key| key.hash(&mut hasher));
    hasher.finish()
}

/// A set of the records (structs, classes, unions) seen so far, across several [`Types`], which tells new records from
/// repeated ones ([`is_same_record`]). Keeps a 16-byte keyed hash of each.
#[derive(Debug, Default)]
pub struct RecordDeduplicator {
    states: [RandomState; 2],
    seen: FxHashSet<(u64, u64)>,
}

impl RecordDeduplicator {
    /// Adds a record (struct, class or union) to the set of those seen so far; returns `true` if no equal one
    /// ([`is_same_record`]) was in it.
    pub fn is_new(&mut self, types: &Types, record: &Record) -> bool {
        let [one, other] = self.states.each_ref().map(|state| {
            let mut hasher = state.build_hasher();
            (types.name(record.name), types.name(record.path), record.size).hash(&mut hasher);
            for (name, place, bits) in keys(types, record) {
                (types.name(name), place, bits).hash(&mut hasher);
            }
            hasher.finish()
        });
        self.seen.insert((one, other))
    }
}

/// Returns the keys by which members are compared.
fn keys<'t>(types: &'t Types, record: &Record) -> impl Iterator<Item = (NameId, u64, Option<u32>)> + 't {
    let placed = types.members(record).iter().filter(|member| member.kind != MemberKind::Static);
    placed.map(|member| (member.name, member.bit_offset, member.bitfield.map(|field| field.size)))
}
