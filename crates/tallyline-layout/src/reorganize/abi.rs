//! Alignments by the rules of a machine's ABI: what a compiler would use, not what a file shows.

use crate::model::{MemberKind, Qualifier, RecordId, Type, TypeId, Types};
use crate::query::{scalar_align, size_of};

use super::replay::{Manner, Shape, Unexplained, replay};

/// How deep structs nest before one counts as unexplained; real programs stay below thirty.
const DEPTH_LIMIT: usize = 128;

/// The longest chain of typedefs, qualifiers and arrays that is followed.
const CHAIN_LIMIT: usize = 256;

/// How every record of a set of types is laid out, and so what aligns to what.
pub(super) struct Abi<'t> {
    pub(super) types: &'t Types,
    shapes: Vec<Option<Shape>>,
    // records that others show to be packed
    packed: Vec<bool>,
}

impl<'t> Abi<'t> {
    /// Explains every record that is here: time in proportion to their members.
    pub(super) fn new(types: &'t Types) -> Abi<'t> {
        let count = types.record_count();
        let mut abi = Abi { types, shapes: vec![None; count], packed: vec![false; count] };
        abi.explain_all();
        // a struct may show its packing only in one that holds it; that may show another's
        for _ in 0..4 {
            if !abi.find_misplaced() {
                break;
            }
            abi.shapes = vec![None; count];
            abi.explain_all();
        }
        abi
    }

    /// How a record is laid out.
    pub(super) fn shape(&self, id: RecordId) -> Shape {
        self.shapes.get(id.index()).copied().flatten().unwrap_or_default()
    }

    /// The alignment of a type, in bytes.
    pub(super) fn align_of(&self, mut id: TypeId) -> u64 {
        let scalar = |size| scalar_align(self.types.target(), size);
        let mut least = 1;
        for _ in 0..CHAIN_LIMIT {
            if let Some(align) = self.types.declared_alignment(id).filter(|align| is_alignment(*align)) {
                return align.max(least);
            }
            match self.types.get(id) {
                Type::Qualified { qualifier, of } => {
                    if qualifier == Qualifier::Atomic {
                        least = atomic(size_of(self.types, of));
                    }
                    id = of;
                }
                Type::Typedef { of, .. } | Type::Annotated { of } => id = of,
                Type::Array(array) if self.types.array(array).vector => {
                    return size_of(self.types, id).clamp(1, 1 << 12).next_power_of_two();
                }
                Type::Array(array) => id = self.types.array(array).of,
                Type::Base { bits, .. } => return scalar(u64::from(bits / 8)).max(least),
                Type::Pointer { .. }
                | Type::MemberPointer { .. }
                | Type::Function(_)
                | Type::Descriptor { .. } => {
                    return scalar(self.types.pointer_size()).max(least);
                }
                Type::Enum(item) => return scalar(self.types.enumeration(item).size).max(least),
                Type::Record(record) => return self.shape(record).align.max(least),
                Type::Void | Type::Missing | Type::Opaque { .. } | Type::Text { .. } => return least,
            }
        }
        1
    }

    fn explain_all(&mut self) {
        for index in 0..self.types.record_count() {
            self.explain(RecordId(index as u32));
        }
    }

    /// Explains a record after those that it holds. A stack of its own: types nest as deep as a file
    /// wants.
    fn explain(&mut self, id: RecordId) {
        if self.shapes[id.index()].is_some() {
            return;
        }
        // while it is on its way it counts as unexplained: what holds itself is damaged
        self.shapes[id.index()] = Some(Shape::default());
        let mut stack = vec![(id, 0)];
        while let Some((record, next)) = stack.pop() {
            let members = self.types.members(self.types.record(record));
            let mut at = next;
            let inner = loop {
                let Some(member) = members.get(at) else { break None };
                at += 1;
                if let Some(inner) = self.held(member.ty).filter(|_| member.kind != MemberKind::Static)
                    && self.shapes[inner.index()].is_none()
                {
                    break Some(inner);
                }
            };
            match inner {
                Some(inner) if stack.len() < DEPTH_LIMIT => {
                    self.shapes[inner.index()] = Some(Shape::default());
                    stack.push((record, at));
                    stack.push((inner, 0));
                }
                Some(inner) => {
                    self.shapes[inner.index()] = Some(Shape::default());
                    stack.push((record, at));
                }
                None => self.shapes[record.index()] = Some(self.find_shape(record)),
            }
        }
    }

    /// The record that a member's type holds by value.
    pub(super) fn held(&self, mut id: TypeId) -> Option<RecordId> {
        for _ in 0..CHAIN_LIMIT {
            id = self.types.strip(id);
            match self.types.get(id) {
                Type::Array(array) => id = self.types.array(array).of,
                Type::Record(record) => return Some(record),
                _ => return None,
            }
        }
        None
    }

    /// The first manner under which the rules give the layout that the file shows.
    fn find_shape(&self, id: RecordId) -> Shape {
        let record = self.types.record(id);
        if record.declaration {
            return Shape { unexplained: Some(Unexplained::Unknown), ..Shape::default() };
        }
        let mut manners = vec![
            Manner::Natural,
            Manner::Packed,
            Manner::Most(2),
            Manner::Most(4),
            Manner::Most(8),
            Manner::PackedMembers,
        ];
        if self.packed[id.index()] {
            manners.insert(0, Manner::Packed);
        }
        let mut first = None;
        for guess in [false, true] {
            for manner in &manners {
                match replay(self, id, *manner, guess) {
                    Ok(replay) => {
                        return Shape {
                            align: replay.align,
                            manner: *manner,
                            guessed: replay.guessed,
                            unexplained: None,
                        };
                    }
                    Err(why) => first = first.or(Some(why)),
                }
            }
        }
        // as its members would have it, as far as that fits its size
        let members = self.types.members(record);
        let natural = members.iter().map(|member| self.align_of(member.ty)).max().unwrap_or(1);
        let fits = 1 << record.size.trailing_zeros().min(12);
        Shape { align: natural.min(fits), unexplained: first, ..Shape::default() }
    }

    /// Marks structs that lie where their alignment does not let them; whether there were new ones.
    fn find_misplaced(&mut self) -> bool {
        let mut found = false;
        for index in 0..self.types.record_count() {
            let outer = self.types.record(RecordId(index as u32));
            for member in self.types.members(outer) {
                if matches!(member.kind, MemberKind::Static | MemberKind::VirtualBase) {
                    continue;
                }
                let Some(inner) = self.held(member.ty) else { continue };
                let record = self.types.record(inner);
                let fits = |align: u64| {
                    if outer.is_union() { outer.size } else { member.offset }.is_multiple_of(align.max(1))
                };
                if record.is_struct()
                    && !self.packed[inner.index()]
                    && record.align <= 1
                    && !fits(self.align_of(member.ty))
                    && replay(self, inner, Manner::Packed, false).is_ok()
                {
                    self.packed[inner.index()] = true;
                    found = true;
                }
            }
        }
        found
    }
}

/// Atomic types align as their size where that is a word's.
fn atomic(size: u64) -> u64 {
    if size.is_power_of_two() && size <= 16 { size } else { 1 }
}

/// Whether a number can be an alignment; a damaged file has others.
pub(super) fn is_alignment(align: u64) -> bool {
    align.is_power_of_two() && align <= 1 << 28
}
