//! The types that a rule applies to.

use crate::query::Effective;
use tallyline_debuginfo::lookup::Definitions;
use tallyline_debuginfo::model::{NameId, Record, TypeId, Types};

/// A type that a rule is about.
#[derive(Clone)]
pub(super) struct Subject<'t> {
    pub(super) id: TypeId,
    pub(super) record: &'t Record,
    pub(super) name: String,
    /// The unit that defines it, where others define another one of this name.
    pub(super) unit: Option<NameId>,
}

/// All types of a file, among which rules find their subjects.
pub(super) struct Subjects<'t> {
    pub(super) types: &'t Types,
    pub(super) alignments: Effective,
    definitions: Definitions<'t>,
}

impl<'t> Subjects<'t> {
    pub(super) fn new(types: &'t Types) -> Subjects<'t> {
        Subjects { types, alignments: Effective::new(types), definitions: Definitions::new(types) }
    }

    /// Returns the types of a name or a pattern, with scopes or without, sorted by name and place: every
    /// definition, whatever the order of units. A typedef's name means the struct that it stands for.
    pub(super) fn matching(&mut self, pattern: &str) -> Vec<Subject<'t>> {
        let types = self.types;
        let ids = self.definitions.records_called(pattern);
        let names: Vec<_> = ids.iter().map(|id| types.qualified_name(*id)).collect();
        let repeats = |index: usize| {
            let is_same = |other: Option<usize>| other.and_then(|at| names.get(at)) == names.get(index);
            // they are sorted
            is_same(index.checked_sub(1)) || is_same(Some(index + 1))
        };
        let subject = |(index, id): (usize, &TypeId)| {
            let (_, record) = types.as_record(types.strip(*id))?;
            let name = String::from_utf8_lossy(&names[index]);
            let unit = repeats(index).then(|| self.definitions.unit(*id)).flatten();
            Some(Subject { id: *id, record, name: name.to_string(), unit })
        };
        ids.iter().enumerate().filter_map(subject).collect()
    }
}
