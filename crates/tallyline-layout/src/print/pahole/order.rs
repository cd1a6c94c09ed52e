//! Printing in parallel what depends on an order.
//!
//! Whether a struct is packed can show in others that were printed before. [`Order`] decides that in
//! the order of printing, without printing; a [`Printer`](super::Printer) can then start anywhere.

use super::name::skip_annotations;
use super::{DEPTH_LIMIT, Style};
use crate::query::{Decided, Packed};
use tallyline_debuginfo::model::{Member, Pointer, Qualifier, RecordId, Type, TypeId, Types};

/// The limit on members visited for one type: a damaged file can nest types without names so that
/// they unfold without end.
const MEMBER_LIMIT: usize = 1 << 20;

/// A walk over types in printing order that infers which structs are packed as printing them would, but without
/// printing. It allows several [`Printer`](super::Printer)s to print in parallel.
pub struct Order<'t> {
    types: &'t Types,
    packed: Packed,
    comments: bool,
    left: usize,
}

/// The inferences about packed structs at one position in the printing order, from which a printer can start.
#[derive(Clone, Debug)]
pub struct Start(Decided);

impl Start {
    pub(super) fn decided(&self) -> &Decided {
        &self.0
    }
}

impl<'t> Order<'t> {
    /// Starts to infer which structs are packed, in the order in which these types are printed, with nothing inferred
    /// yet; `None` if the style expands types, as that would then cost as much as printing.
    pub fn new(types: &'t Types, style: &Style) -> Option<Order<'t>> {
        let order = Order { types, packed: Packed::new(types), comments: style.comments, left: 0 };
        (!style.expand_types && !style.expand_pointers).then_some(order)
    }

    /// Returns the inferences so far about which structs are packed, for a filter of packed structs to use and extend.
    pub fn packed(&mut self) -> &mut Packed {
        &mut self.packed
    }

    /// Returns a copy of the inferences so far about which structs are packed, with which a printer can start at this
    /// position in the printing order.
    pub fn start(&self) -> Start {
        Start(self.packed.decided())
    }

    /// Makes the inferences about packed structs that printing the next type, `id`, would make.
    pub fn pass(&mut self, id: TypeId) {
        self.left = MEMBER_LIMIT;
        if let Type::Record(record) = self.types.get(id) {
            self.record(record, 0);
        }
    }

    fn record(&mut self, id: RecordId, depth: usize) {
        if depth > DEPTH_LIMIT {
            return;
        }
        self.packed.infer(self.types, id);
        let types = self.types;
        let record = types.record(id);
        let variants = types.variants(record).iter().flat_map(|variant| types.variant_members(variant));
        for member in types.members(record).iter().chain(variants) {
            let Some(left) = self.left.checked_sub(1) else { return };
            self.left = left;
            self.inline(member.ty, depth);
            if self.comments && record.is_struct() {
                self.notes(member);
            }
        }
    }

    /// Applies the effects of a note on a member's type.
    fn notes(&mut self, member: &Member) {
        if let Type::Record(record) = self.types.get(member.ty)
            && self.types.record(record).is_struct()
            && !(member.overlaid || member.is_base() && member.size == 0)
        {
            self.packed.infer(self.types, record);
        }
    }

    /// Visits a type without a name, which is printed where it is used, also behind pointers and in arrays.
    fn inline(&mut self, mut id: TypeId, depth: usize) {
        for _ in 0..DEPTH_LIMIT {
            id = match self.types.get(id) {
                Type::Record(record) if !self.types.record(record).name.is_some() => {
                    return self.record(record, depth + 1);
                }
                Type::Qualified { qualifier: Qualifier::Const | Qualifier::Atomic, of }
                | Type::Annotated { of } => of,
                Type::Array(array) => self.types.array(array).of,
                Type::Pointer { kind: Pointer::Pointer, to } => {
                    let to = skip_annotations(self.types, to);
                    let is_record = self.types.as_record(to).is_some();
                    if !is_record {
                        return;
                    }
                    to
                }
                _ => return,
            }
        }
    }
}
