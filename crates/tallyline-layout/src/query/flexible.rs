//! Flexible arrays: at the end of a struct, or of a struct somewhere in it.

use tallyline_debuginfo::model::{MemberKind, Record, RecordId, Type, Types};

/// The nesting depth at which the search ends; real programs stay below thirty.
const DEPTH_LIMIT: usize = 128;

/// Returns `true` if a record's last member is a flexible array member (`T x[]`).
pub fn ends_flexibly(types: &Types, record: &Record) -> bool {
    let is_field = |kind| matches!(kind, MemberKind::Data | MemberKind::Static);
    let last = types.members(record).iter().rev().find(|member| is_field(member.kind));
    let Some(Type::Array(array)) = last.map(|member| types.get(member.ty)) else { return false };
    matches!(types.dimensions(types.array(array)), [] | [0])
}

/// A cache of the answers to whether a struct contains, at any depth, a struct that ends with a flexible array member.
#[derive(Debug)]
pub(crate) struct Flexible {
    known: Vec<Option<bool>>,
}

impl Flexible {
    /// Creates an empty cache of the answers to whether structs of `types` contain, at any depth, a struct that ends
    /// with a flexible array member.
    pub(crate) fn new(types: &Types) -> Flexible {
        Flexible { known: vec![None; types.record_count()] }
    }

    /// Returns `true` if a struct contains, at any depth, a member that is a struct that ends with a flexible array
    /// member.
    pub(crate) fn contains_flexible(&mut self, types: &Types, id: RecordId) -> bool {
        self.search(types, id, 0)
    }

    fn search(&mut self, types: &Types, id: RecordId, depth: usize) -> bool {
        if let Some(known) = self.known[id.index()] {
            return known;
        }
        // what holds itself is damaged, and ends here
        self.known[id.index()] = Some(false);
        if depth > DEPTH_LIMIT {
            return false;
        }
        let held = types.members(types.record(id)).iter().any(|member| {
            if matches!(member.kind, MemberKind::Static | MemberKind::VirtualBase) {
                return false;
            }
            let Some((inner, record)) = types.as_record(types.strip(member.ty)) else { return false };
            record.is_struct() && (ends_flexibly(types, record) || self.search(types, inner, depth + 1))
        });
        self.known[id.index()] = Some(held);
        held
    }
}
