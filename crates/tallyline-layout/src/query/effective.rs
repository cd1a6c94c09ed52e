//! The alignment that a type has in memory: what its members ask for, what was asked for, and what
//! packing takes away.

use super::{Packed, scalar_align};
use crate::model::{MemberKind, RecordId, Type, TypeId, Types};

/// How deep records nest before the answer is cut short; real programs stay below thirty.
const DEPTH_LIMIT: usize = 128;

/// Alignments in effect, each computed once.
#[derive(Debug)]
pub struct Effective {
    packed: Packed,
    // 0: not known yet
    records: Vec<u64>,
}

impl Effective {
    /// For these types; nothing is computed yet.
    pub fn new(types: &Types) -> Effective {
        Effective { packed: Packed::new(types), records: vec![0; types.record_count()] }
    }

    /// The alignment of a type in bytes, at least 1. In BTF what was asked for is inferred.
    pub fn of(&mut self, types: &Types, id: TypeId) -> u64 {
        self.of_type(types, id, 0)
    }

    /// Whether a record is packed, as far as it shows.
    pub fn is_packed(&mut self, types: &Types, id: RecordId) -> bool {
        self.packed.infer(types, id)
    }

    fn of_type(&mut self, types: &Types, id: TypeId, depth: usize) -> u64 {
        let mut id = types.strip(id);
        for _ in 0..DEPTH_LIMIT {
            match types.get(id) {
                Type::Array(array) => id = types.strip(types.array(array).of),
                Type::Pointer { .. } | Type::MemberPointer { .. } | Type::Descriptor { .. } => {
                    return scalar_align(types.target(), types.pointer_size());
                }
                Type::Base { bits, .. } => return scalar_align(types.target(), u64::from(bits / 8)),
                Type::Enum(id) => return scalar_align(types.target(), types.enumeration(id).size),
                Type::Record(record) => return self.of_record(types, record, depth),
                _ => return 1,
            }
        }
        1
    }

    fn of_record(&mut self, types: &Types, id: RecordId, depth: usize) -> u64 {
        if self.records[id.index()] != 0 || depth > DEPTH_LIMIT {
            return self.records[id.index()].max(1);
        }
        // a record that holds itself is damaged: it counts 1 to itself
        self.records[id.index()] = 1;
        let record = types.record(id);
        let packed = self.packed.infer(types, id);
        let mut align = record.align.max(1);
        for member in types.members(record) {
            if member.kind == MemberKind::Static {
                continue;
            }
            align = align.max(member.align);
            if !packed {
                align = align.max(self.of_type(types, member.ty, depth + 1));
            }
        }
        self.records[id.index()] = align;
        align
    }
}
