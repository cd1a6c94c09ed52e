//! Natural alignment: what the members alone ask for.

use super::{member_align, rules, type_align};
use crate::model::{MemberKind, RecordId, TypeId, Types};

/// The depth of nested records at which the answer is cut short; real programs stay below thirty.
const DEPTH_LIMIT: usize = 128;

/// Cache of the natural alignments of the types of a [`Types`], each computed once.
#[derive(Debug)]
pub struct Alignments {
    // 0: not known yet
    records: Vec<u64>,
}

impl Alignments {
    /// Creates a cache of the alignments of these types, filled with those that their reader has already computed.
    pub fn new(types: &Types) -> Alignments {
        let mut records = types.natural.clone();
        records.resize(types.record_count(), 0);
        Alignments { records }
    }

    /// Consumes the cache and returns the natural alignments in bytes of all records (structs, classes, unions),
    /// indexed by record id; 0 for those not computed yet.
    pub(crate) fn into_records(self) -> Vec<u64> {
        self.records
    }

    /// Returns the natural alignment of a type in bytes, at least 1: its declared alignment if it has one, else by the
    /// machine's ABI; a record's is the largest of its members.
    pub fn of(&mut self, types: &Types, id: TypeId) -> u64 {
        self.of_type(types, id, 0)
    }

    /// Returns the natural alignment of a struct, class or union in bytes, at least 1: the largest of its members'.
    pub fn of_record(&mut self, types: &Types, id: RecordId) -> u64 {
        self.of_members(types, id, 0)
    }

    fn of_type(&mut self, types: &Types, id: TypeId, depth: usize) -> u64 {
        type_align(types, id, rules(types.target())[0], &mut |record| self.held(types, record, depth)).max(1)
    }

    /// Returns the natural alignment of a record that is held in another.
    fn held(&mut self, types: &Types, id: RecordId, depth: usize) -> u64 {
        // Rust's and Zig's compilers note it, whoever asked for it
        let known = types.record(id);
        if known.language.notes_alignment() && known.align != 0 {
            return known.align;
        }
        self.of_members(types, id, depth)
    }

    fn of_members(&mut self, types: &Types, id: RecordId, depth: usize) -> u64 {
        if self.records[id.index()] != 0 || depth > DEPTH_LIMIT {
            return self.records[id.index()].max(1);
        }
        // a record that holds itself is damaged: it counts 1 to itself
        self.records[id.index()] = 1;
        let mut align = 1;
        let record = types.record(id);
        let rules = rules(types.target())[0];
        let variants = types.variants(record).iter().flat_map(|one| types.variant_members(one));
        for member in types.members(record).iter().chain(types.tag(record)).chain(variants) {
            if matches!(member.kind, MemberKind::Static | MemberKind::VirtualBase) {
                continue;
            }
            let mut held = |inner| self.held(types, inner, depth + 1);
            align = align.max(member_align(types, member, rules, &mut held));
        }
        self.records[id.index()] = align;
        align
    }
}
