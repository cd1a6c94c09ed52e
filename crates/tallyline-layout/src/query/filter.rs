//! Selection of the records to show.

use super::{Flexible, Packed, ends_flexibly, layout};
use tallyline_debuginfo::model::{NameId, RecordId, Types};

/// A filter of records (structs, classes, unions) by name, file, holes, padding, packing and so on, as by pahole's
/// options; all set conditions must hold. The default accepts everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// `true` to accept only structs and classes.
    pub structs: bool,
    /// `true` to accept only unions.
    pub unions: bool,
    /// `true` to accept only packed records.
    pub packed: bool,
    /// The prefix that a record's name, if it has one, must start with.
    pub prefix: Option<Vec<u8>>,
    /// The prefix that a record's name, if it has one, must not start with.
    pub exclude: Option<Vec<u8>>,
    /// The prefix that the path of the declaring file must not start with; types of unknown files are rejected, too.
    pub declared_exclude: Option<Vec<u8>>,
    /// The minimum number of holes of bytes.
    pub holes: u32,
    /// The minimum number of holes of bits.
    pub bit_holes: u32,
    /// The minimum size in bytes of the largest hole; 0 for no condition.
    pub hole_size: u64,
    /// The minimum number of bytes behind the last member.
    pub padding_at_least: u64,
    /// The exact number of bytes behind the last member; 0 for no condition.
    pub padding: u64,
    /// `true` to accept only structs that end with a flexible array.
    pub flexible: bool,
    /// `true` to accept only structs that hold a struct that ends with a flexible array.
    pub embedded_flexible: bool,
}

impl Filter {
    /// Returns `true` if a record meets all conditions of the filter (on its name, holes, padding and so on). Infers
    /// packing with `packed`, which also the printer uses.
    pub fn accepts(&self, types: &Types, id: RecordId, packed: &mut Packed) -> bool {
        let record = types.record(id);
        self.accepts_as(types, id, record.name, packed)
    }

    /// Returns `true` if a record meets all conditions of the filter (on its name, holes, padding and so on), with
    /// `name` (a typedef's, if the record is anonymous) as its name. Infers packing with `packed`.
    pub fn accepts_as(&self, types: &Types, id: RecordId, name: NameId, packed: &mut Packed) -> bool {
        let record = types.record(id);
        let is_named = name.is_some();
        let name = types.name(name);
        let file = types.name(record.declared_at.file);
        if self.unions && !record.is_union()
            || (self.structs || self.flexible || self.embedded_flexible) && !record.is_struct()
            || self.packed && !packed.infer(types, id)
            || is_named && self.prefix.as_ref().is_some_and(|prefix| !name.starts_with(prefix))
            || is_named && self.exclude.as_ref().is_some_and(|prefix| name.starts_with(prefix))
            || self
                .declared_exclude
                .as_ref()
                .is_some_and(|prefix| file.is_empty() || file.starts_with(prefix))
        {
            return false;
        }
        if record.is_union() {
            return self.unions || !self.asks_for_holes();
        }
        self.accepts_holes(types, id)
            && (!self.flexible || ends_flexibly(types, record))
            && (!self.embedded_flexible || Flexible::new(types).contains_flexible(types, id))
    }

    fn asks_for_holes(&self) -> bool {
        self.holes != 0
            || self.bit_holes != 0
            || self.hole_size != 0
            || self.padding_at_least != 0
            || self.padding != 0
    }

    fn accepts_holes(&self, types: &Types, id: RecordId) -> bool {
        if !self.asks_for_holes() {
            return true;
        }
        let layout = layout(types, types.record(id));
        let summary = layout.summary;
        summary.holes >= self.holes
            && summary.bit_holes >= self.bit_holes
            && summary.padding >= self.padding_at_least
            && (self.padding == 0 || summary.padding == self.padding)
            && (self.hole_size == 0
                || layout.gaps.iter().any(|gap| u64::try_from(gap.bytes).is_ok_and(|n| n >= self.hole_size)))
    }
}
