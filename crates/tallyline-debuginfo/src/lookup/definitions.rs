//! Definitions by name: all of them, in an order that is not that of the file.

use super::contents::{Content, Contents};
use super::naming::{canonical, endings, is_called, packaged};
use super::{fits, is_pattern};
use crate::model::{NameId, Origin, Position, RecordId, Type, TypeId, TypeSource, Types};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;

/// An index of the distinct type definitions among the listed (requested) types of a [`Types`], by name. Results do not
/// depend on the order of units: definitions of one name are sorted by where they are declared.
#[derive(Debug)]
pub struct Definitions<'t> {
    types: &'t Types,
    contents: Contents,
    sources: FxHashMap<TypeId, TypeSource>,
    /// The types by own name in canonical spelling, of Go also without the package; `None` before they are asked for.
    by_name: Option<FxHashMap<Vec<u8>, Vec<TypeId>>>,
    /// The distinct records with a definition and a name, their own or a typedef's, sorted by name; `None` before they
    /// are asked for.
    records: Option<Vec<(TypeId, RecordId)>>,
}

impl<'t> Definitions<'t> {
    /// Creates an index, by name, of these types' definitions; the tables are built by the first query that needs them.
    pub fn new(types: &'t Types) -> Definitions<'t> {
        let sources = types.sources().collect();
        Definitions { types, contents: Contents::default(), sources, by_name: None, records: None }
    }

    /// Returns all records (structs, classes, unions), enumerations, typedefs and, in DWARF, base types of this name,
    /// which may have scopes (`ns::T`). A typedef of the same name as its target is left out.
    pub fn called(&mut self, name: &[u8]) -> Vec<TypeId> {
        let types = self.types;
        let by_name = self.by_name.get_or_insert_with(|| {
            let mut by_name: FxHashMap<Vec<u8>, Vec<TypeId>> = FxHashMap::default();
            for id in types.listed().iter().copied().filter(|id| is_defined(types, *id)) {
                let own = types.name(types.type_name(id));
                for own in packaged(own) {
                    by_name.entry(canonical(own).into_owned()).or_default().push(id);
                }
                let own = canonical(own);
                by_name.entry(own.into_owned()).or_default().push(id);
            }
            by_name
        });
        let asked = canonical(name);
        let mut found: Vec<TypeId> = endings(&asked)
            .filter_map(|ending| by_name.get(ending))
            .flatten()
            .copied()
            .filter(|id| is_called(name, types.name(types.path(*id)), types.name(types.type_name(*id))))
            .collect();
        let all: FxHashSet<TypeId> = found.iter().copied().collect();
        found
            .retain(|id| !matches!(types.get(*id), Type::Typedef { .. }) || !all.contains(&types.strip(*id)));
        let mut found = self.distinct(found);
        // a typedef of what another unit defines under its own name
        let records: FxHashSet<Content> = self.records_of(&found);
        found.retain(|id| {
            let behind = types.strip(*id);
            let is_typedef = matches!(types.get(*id), Type::Typedef { .. });
            !(is_typedef
                && types.type_name(behind) == types.type_name(*id)
                && records.contains(&self.contents.of(types, behind)))
        });
        found.sort_by(|a, b| self.order(*a, *b));
        found
    }

    /// Returns all records (structs, classes, unions) of this name, also by a typedef's name; if there is none, those
    /// that match it as a pattern with `*` and `?`. Exact names come first, as names of templates may look like
    /// patterns. A record without a name of its own is returned as its typedef.
    pub fn records_called(&mut self, name: &str) -> Vec<TypeId> {
        let types = self.types;
        let mut seen = FxHashSet::default();
        let mut named = Vec::new();
        for id in self.called(name.as_bytes()) {
            let own = types.strip(id);
            if let Some((_, record)) = types.as_record(own)
                && seen.insert(own)
            {
                named.push(if record.name.is_some() { own } else { id });
            }
        }
        if named.is_empty() && is_pattern(name) {
            let pattern = name.as_bytes();
            let all = self.records().iter().map(|(id, _)| *id);
            return all
                .filter(|id| {
                    fits(pattern, types.name(types.type_name(*id)))
                        || fits(pattern, &types.qualified_name(*id))
                })
                .collect();
        }
        named
    }

    /// Returns all distinct records (structs, classes, unions) of the index that have a definition and a name, sorted by
    /// name. A record without a name of its own goes by that of its first typedef, whose id comes with it
    /// (`typedef struct { … } name`).
    pub fn records(&mut self) -> &[(TypeId, RecordId)] {
        if self.records.is_none() {
            let types = self.types;
            let mut seen = FxHashSet::default();
            let is_new = |id: &TypeId| named_record(types, *id).is_some_and(|record| seen.insert(record));
            let named = types.listed().iter().copied().filter(is_new).collect();
            let mut records = self.distinct(named);
            records.sort_by(|a, b| self.order(*a, *b));
            let with_record = |id: TypeId| named_record(types, id).map(|record| (id, record));
            self.records = Some(records.into_iter().filter_map(with_record).collect());
        }
        self.records.as_deref().unwrap_or_default()
    }

    /// Returns the source position of a type's definition as text, `file:line (unit)`, as far as it is known; `None` if
    /// nothing is.
    pub fn place(&self, id: TypeId) -> Option<String> {
        let types = self.types;
        let at = self.position(id);
        let text = |name: NameId| String::from_utf8_lossy(types.name(name)).into_owned();
        let position = (at.file.is_some() && at.line != 0).then(|| format!("{}:{}", text(at.file), at.line));
        let unit = self.unit(id).map(text);
        match (position, unit) {
            (Some(position), Some(unit)) => Some(format!("{position} (unit {unit})")),
            (Some(position), None) => Some(position),
            (None, unit) => unit.map(|unit| format!("unit {unit}")),
        }
    }

    /// Returns a hash of a type's contents by which definitions of one name are compared: equal if they are the same.
    /// Valid for this index only.
    pub fn content(&mut self, id: TypeId) -> (u64, u64) {
        self.contents.of(self.types, id)
    }

    /// Returns the name of the compilation unit that a type was read from; `None` if it is unknown.
    pub fn unit(&self, id: TypeId) -> Option<NameId> {
        self.sources.get(&id).map(|source| source.unit).filter(|unit| unit.is_some())
    }

    fn position(&self, id: TypeId) -> Position {
        let own = self.types.as_record(id).map(|(_, record)| record.declared_at);
        own.filter(|at| at.line != 0)
            .or_else(|| self.sources.get(&id).map(|source| source.declared_at))
            .unwrap_or_default()
    }

    fn records_of(&mut self, found: &[TypeId]) -> FxHashSet<Content> {
        let records = found.iter().filter(|id| self.types.as_record(**id).is_some());
        records.map(|id| self.contents.of(self.types, *id)).collect()
    }

    /// Leaves one of those that are the same; of these the first by where it is.
    fn distinct(&mut self, mut ids: Vec<TypeId>) -> Vec<TypeId> {
        let types = self.types;
        let mut kept: Vec<TypeId> = Vec::with_capacity(ids.len());
        let mut at: FxHashMap<(NameId, Content), usize> = FxHashMap::default();
        for id in ids.drain(..) {
            let key = (types.path(id), self.contents.of(types, id));
            match at.get(&key) {
                Some(index) if self.order(id, kept[*index]) == Ordering::Less => kept[*index] = id,
                Some(_) => {}
                None => {
                    at.insert(key, kept.len());
                    kept.push(id);
                }
            }
        }
        kept
    }

    /// Returns the order by name, place, size and members.
    fn order(&self, a: TypeId, b: TypeId) -> Ordering {
        let types = self.types;
        let place = |id| {
            let at = self.position(id);
            (types.name(at.file), at.line, self.unit(id).map_or(&[][..], |unit| types.name(unit)))
        };
        types
            .qualified_name(a)
            .cmp(&types.qualified_name(b))
            .then_with(|| place(a).cmp(&place(b)))
            .then_with(|| crate::abi::size_of(types, a).cmp(&crate::abi::size_of(types, b)))
            .then_with(|| match (types.as_record(a), types.as_record(b)) {
                (Some((a, _)), Some((b, _))) => super::sort::compare(types, a, b),
                _ => Ordering::Equal,
            })
    }
}

/// Returns the record (struct, class, union) that has a type's name: the type itself, or the target of a typedef if
/// that has no name of its own.
fn named_record(types: &Types, id: TypeId) -> Option<RecordId> {
    let (of, is_typedef) = match types.get(id) {
        Type::Typedef { of, .. } => (of, true),
        _ => (id, false),
    };
    let (id, record) = types.as_record(of)?;
    (!record.declaration && record.name.is_some() != is_typedef).then_some(id)
}

/// Returns the type whose name the record (struct, class, union) goes by that a type is, typedefs and qualifiers aside:
/// the record itself, or the typedef of one without a name (`typedef struct { … } name`); `None` for other types and
/// for anonymous records.
pub fn named_as(types: &Types, mut id: TypeId) -> Option<TypeId> {
    let end = types.strip(id);
    types.as_record(end)?;
    // `strip` has found an end
    while id != end {
        if named_record(types, id).is_some() {
            return Some(id);
        }
        match types.get(id) {
            Type::Typedef { of, .. } | Type::Qualified { of, .. } | Type::Annotated { of } => id = of,
            _ => return None,
        }
    }
    types.type_name(end).is_some().then_some(end)
}

/// Returns `true` if a listed type is a definition, and not a declaration.
pub(super) fn is_defined(types: &Types, id: TypeId) -> bool {
    match types.get(id) {
        Type::Record(id) => !types.record(id).declaration,
        Type::Enum(id) => !types.enumeration(id).declaration,
        Type::Typedef { .. } => true,
        // in DWARF it is listed where the language lets programs name numbers
        Type::Base { .. } => types.origin() == Origin::Dwarf,
        _ => false,
    }
}
