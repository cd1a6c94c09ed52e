//! Which types a rule is about.

use crate::model::{Record, RecordId, TypeId, Types};
use crate::query::{Effective, distinct_records, find, fits, is_pattern};

/// A type that a rule is about.
#[derive(Clone)]
pub(super) struct Subject<'t> {
    pub(super) id: TypeId,
    pub(super) record: &'t Record,
    pub(super) name: String,
}

/// All types that there are.
pub(super) struct Subjects<'t> {
    pub(super) types: &'t Types,
    pub(super) alignments: Effective,
    records: Vec<(TypeId, RecordId)>,
}

impl<'t> Subjects<'t> {
    pub(super) fn new(types: &'t Types) -> Subjects<'t> {
        Subjects { types, alignments: Effective::new(types), records: distinct_records(types) }
    }

    /// The types of a name or a pattern. A typedef's name means the struct that it stands for.
    pub(super) fn matching(&self, pattern: &str) -> Vec<Subject<'t>> {
        let types = self.types;
        let name_of = |id| String::from_utf8_lossy(&types.qualified_name(id)).into_owned();
        let same = |name: &[u8]| match is_pattern(pattern) {
            true => fits(pattern.as_bytes(), name),
            false => pattern.as_bytes() == name,
        };
        // with the scopes that it is declared in, or without
        let fitting = self.records.iter().filter(|(id, record)| {
            same(types.name(types.record(*record).name)) || same(&types.qualified_name(*id))
        });
        let mut found: Vec<Subject<'t>> = fitting
            .map(|(id, record)| {
                let record = types.record(*record);
                Subject { id: *id, record, name: name_of(*id) }
            })
            .collect();
        if found.is_empty() && !is_pattern(pattern) {
            let named = find(types, pattern.as_bytes()).map(|id| types.strip(id));
            let record = named.and_then(|id| Some((id, types.as_record(id)?.1)));
            found.extend(record.map(|(id, record)| Subject { id, record, name: pattern.into() }));
        }
        found
    }
}
