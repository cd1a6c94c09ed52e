//! Inference of the structs that were declared packed.
//!
//! Neither format says so. It shows in a struct without holes that has a member off its natural
//! alignment, in a size that is no multiple of its alignment, or in where a struct lies in another.

use super::summary;
use tallyline_debuginfo::abi::Alignments;
use tallyline_debuginfo::model::{MemberKind, RecordId, TypeId, Types};

const DECIDED: u8 = 1;
const PACKED: u8 = 2;

/// The inferences so far about which structs are declared packed, which no debug format records. Looking at one record
/// may decide about those that it contains, so an answer can depend on which records were looked at before, as in
/// pahole.
#[derive(Debug)]
pub struct Packed {
    alignments: Alignments,
    state: Vec<u8>,
}

/// A copy of a [`Packed`]'s inferences about which structs are packed, at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Decided(Vec<u8>);

impl Packed {
    /// Creates an inference of packed structs for these types, with nothing inferred yet.
    pub fn new(types: &Types) -> Packed {
        Packed { alignments: Alignments::new(types), state: vec![0; types.record_count()] }
    }

    /// Returns `true` if a record was inferred to be packed so far; infers nothing.
    pub fn is_packed(&self, id: RecordId) -> bool {
        self.state[id.index()] & PACKED != 0
    }

    /// Infers from layouts whether a record, and the records that it contains, are packed; returns `true` if the record
    /// is.
    pub fn infer(&mut self, types: &Types, id: RecordId) -> bool {
        if self.state[id.index()] & DECIDED == 0 {
            if types.record(id).is_union() {
                self.infer_in_union(types, id);
            } else {
                let packed = self.infer_struct(types, id);
                self.state[id.index()] = DECIDED | if packed { PACKED } else { 0 };
            }
        }
        types.record(id).is_struct() && self.is_packed(id)
    }

    /// Returns a copy of the inferences so far about which structs are packed.
    pub(crate) fn decided(&self) -> Decided {
        Decided(self.state.clone())
    }

    /// Replaces the inferences about which structs are packed by those copied from another [`Packed`] of the same
    /// types.
    pub(crate) fn copy_from(&mut self, decided: &Decided) {
        self.state.clone_from(&decided.0);
    }

    /// Returns the cache of types' natural alignments, from which packed structs are inferred.
    pub(crate) fn alignments(&mut self) -> &mut Alignments {
        &mut self.alignments
    }

    fn infer_struct(&mut self, types: &Types, id: RecordId) -> bool {
        let record = types.record(id);
        // in Rust and Zig it is known, and Go has nothing of the kind
        if record.language.notes_alignment() {
            return record.align != 0 && record.align < self.alignments.of_record(types, id);
        }
        if record.language.is_go() {
            return false;
        }
        let summary = summary(types, record);
        if summary.padding != 0 || summary.holes != 0 {
            self.mark_misplaced(types, id);
            return false;
        }
        let mut largest = 1;
        for member in types.members(record) {
            if matches!(member.kind, MemberKind::Static | MemberKind::VirtualBase) {
                continue;
            }
            let natural = self.alignments.of(types, member.ty);
            largest = largest.max(natural);
            if !member.offset.is_multiple_of(natural) {
                return true;
            }
        }
        // of a record of dynamic size only the start is known
        let ends_off = !record.is_dynamic && !record.size.is_multiple_of(largest);
        (largest != 1 && record.align == 1) || ends_off
    }

    /// Marks as packed each struct that lies off its natural alignment in one that is not packed.
    fn mark_misplaced(&mut self, types: &Types, id: RecordId) {
        for member in types.members(types.record(id)).iter().filter(|member| member.is_placed()) {
            self.mark_unless(types, member.ty, |natural| member.offset.is_multiple_of(natural));
        }
    }

    /// Marks as packed each struct in a union whose size does not fit its alignment: an array of the unions
    /// would misplace it.
    fn infer_in_union(&mut self, types: &Types, id: RecordId) {
        let record = types.record(id);
        for member in types.members(record) {
            self.mark_unless(types, member.ty, |natural| record.size.is_multiple_of(natural));
        }
        self.state[id.index()] |= DECIDED;
    }

    fn mark_unless(&mut self, types: &Types, ty: TypeId, fits: impl Fn(u64) -> bool) {
        let ty = types.strip(ty);
        if let Some((id, record)) = types.as_record(ty)
            && record.is_struct()
            && !fits(self.alignments.of(types, ty))
        {
            self.state[id.index()] = DECIDED | PACKED;
        }
    }
}
