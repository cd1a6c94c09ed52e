//! Alignments in effect: what was asked for, what the members need, and what packing takes away, as
//! the rules that lay the records out have it.

use crate::explain::{InEffect, explain};
use tallyline_debuginfo::abi::{Rules, type_align};
use tallyline_debuginfo::model::{RecordId, TypeId, Types};

/// The actual alignments of all records, as their layouts show them: declared alignments and packing included.
#[derive(Debug)]
pub struct Effective {
    rules: Rules,
    records: Vec<InEffect>,
}

impl Effective {
    /// Finds the actual alignments of all records by their layouts. Linear in the number of members.
    pub fn new(types: &Types) -> Effective {
        let (rules, records) = explain(types);
        Effective { rules, records }
    }

    /// Returns the actual alignment of a type in bytes, at least 1. For BTF, which records no declared alignments, it
    /// is inferred.
    pub fn of(&mut self, types: &Types, id: TypeId) -> u64 {
        type_align(types, id, self.rules, &mut |record| self.of_record(record)).max(1)
    }

    /// Returns `true` if a record's layout shows that it is packed.
    pub fn is_packed(&mut self, _: &Types, id: RecordId) -> bool {
        self.records.get(id.index()).is_some_and(|record| record.packed)
    }

    fn of_record(&self, id: RecordId) -> u64 {
        self.records.get(id.index()).map_or(1, |record| record.align)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tallyline_debuginfo::model::{Language, Member, NameId, Origin, Record, RecordKind, Type};

    #[test]
    fn a_struct_of_functions_alone_aligns_as_a_pointer() {
        let mut types = Types::new(Origin::Dwarf, 8);
        let function = types.push_function(TypeId::VOID, &[], false).expect("room");
        let function = types.push(Type::Function(function)).expect("room");
        let member = Member { size: 8, ..Member::new(NameId::NONE, function, 0) };
        // as Go has it
        let language = Language(0x16);
        let mut record = Record::new(RecordKind::Struct, NameId::NONE, 8);
        record.language = language;
        let record = types.push_record_of(record, &[member]).expect("room");
        let id = types.push(Type::Record(record)).expect("room");
        assert_eq!(Effective::new(&types).of(&types, id), 8);
    }
}
