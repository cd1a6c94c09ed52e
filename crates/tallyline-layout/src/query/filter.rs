//! Selection of the records to show.

use super::{Flexible, Packed, ends_flexibly, layout};
use tallyline_debuginfo::model::{NameId, RecordId, Types};

/// A filter of records (structs, classes, unions) by name, file, holes, padding, packing and so on, as by pahole's
/// options; all set conditions must hold. The default accepts everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only structs and classes.
    pub structs: bool,
    /// Only unions.
    pub unions: bool,
    /// Only what is packed.
    pub packed: bool,
    /// Only names that start so.
    pub prefix: Option<Vec<u8>>,
    /// No names that start so.
    pub exclude: Option<Vec<u8>>,
    /// No types that are declared in files whose paths start so, nor those of which no file is known.
    pub declared_exclude: Option<Vec<u8>>,
    /// At least so many holes.
    pub holes: u32,
    /// At least so many holes of bits.
    pub bit_holes: u32,
    /// A hole of at least so many bytes.
    pub hole_size: u64,
    /// At least so many bytes behind the last member.
    pub padding_at_least: u64,
    /// Exactly so many bytes behind the last member.
    pub padding: u64,
    /// Only what ends with a flexible array.
    pub flexible: bool,
    /// Only what holds a struct that ends with one.
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
