//! Flexible arrays: at the end of a struct, or of a struct somewhere in it.

use tallyline_debuginfo::model::{MemberKind, Record, RecordId, Type, Types};

/// How deep structs nest before the search ends; real programs stay below thirty.
const DEPTH_LIMIT: usize = 128;

/// Whether the last member is an array of no given length.
pub fn ends_flexibly(types: &Types, record: &Record) -> bool {
    let is_field = |kind| matches!(kind, MemberKind::Data | MemberKind::Static);
    let last = types.members(record).iter().rev().find(|member| is_field(member.kind));
    let Some(Type::Array(array)) = last.map(|member| types.get(member.ty)) else { return false };
    matches!(types.dimensions(types.array(array)), [] | [0])
}

/// Which structs hold one that ends flexibly, each looked at once.
#[derive(Debug)]
pub struct Flexible {
    known: Vec<Option<bool>>,
}

impl Flexible {
    /// For these types; nothing is known yet.
    pub fn new(types: &Types) -> Flexible {
        Flexible { known: vec![None; types.record_count()] }
    }

    /// Whether a struct in this one, however deep, ends with an array of no given length.
    pub fn is_held(&mut self, types: &Types, id: RecordId) -> bool {
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
