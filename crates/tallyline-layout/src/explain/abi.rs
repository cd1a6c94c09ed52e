//! Alignments by the rules of a machine's ABI: what a compiler would use, not what a file shows.

use tallyline_debuginfo::abi::{Rules, member_align, rules, type_align};
use tallyline_debuginfo::model::{Member, MemberKind, Origin, Qualifier, RecordId, Type, TypeId, Types};

use super::replay::{Alignments, Packing, Shape, Unexplained, replay};
use tallyline_debuginfo::abi::is_alignment;

/// The nesting depth at which a struct counts as unexplained; real programs stay below thirty.
const DEPTH_LIMIT: usize = 128;

/// The longest chain of typedefs, qualifiers and arrays that is followed.
const CHAIN_LIMIT: usize = 256;

/// The actual alignment of a record in bytes, as its layout shows it, and whether the record is packed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InEffect {
    pub(crate) align: u64,
    /// `true` if it was declared packed, or with a limit (`#pragma pack`).
    pub(crate) packed: bool,
}

/// The alignments and attributes by which the ABI's layout rules reproduce the layouts of all records (structs,
/// classes, unions) of a file.
pub(crate) struct Abi<'t> {
    pub(crate) types: &'t Types,
    pub(crate) rules: Rules,
    shapes: Vec<Option<Shape>>,
    // records that others show to be packed
    packed: Vec<bool>,
}

impl<'t> Abi<'t> {
    /// Finds, for every record, the alignment and attributes that reproduce its layout by the ABI's rules. Linear in
    /// the number of members.
    pub(crate) fn new(types: &'t Types) -> Abi<'t> {
        let all = rules(types.target());
        let mut best = Abi::by(types, all[0]);
        // which of them a compiler followed shows in what they explain
        if depends_on_rules(types) {
            for other in &all[1..] {
                let other = Abi::by(types, *other);
                if other.open_questions() < best.open_questions() {
                    best = other;
                }
            }
        }
        best
    }

    fn by(types: &'t Types, rules: Rules) -> Abi<'t> {
        let count = types.record_count();
        let mut abi = Abi { types, rules, shapes: vec![None; count], packed: vec![false; count] };
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

    /// Counts the layouts that are unexplained, or explained only by attributes.
    fn open_questions(&self) -> usize {
        let is_open = |shape: &Shape| {
            shape.unexplained.is_some() || shape.guessed || !matches!(shape.packing, Packing::Natural)
        };
        self.shapes.iter().flatten().filter(|shape| is_open(shape)).count()
    }

    /// Returns the actual alignment of a record, as its layout shows it, and whether the record is packed.
    pub(crate) fn in_effect(&self, id: RecordId) -> InEffect {
        let shape = self.shape(id);
        let packed =
            shape.unexplained.is_none() && matches!(shape.packing, Packing::Packed | Packing::Most(_));
        InEffect { align: shape.align.max(1), packed }
    }

    /// Returns the alignment and packing by which the ABI's rules reproduce a record's layout, or the reason why none
    /// do.
    pub(crate) fn shape(&self, id: RecordId) -> Shape {
        self.shapes.get(id.index()).copied().flatten().unwrap_or_default()
    }

    /// Returns the alignment of a type in bytes; of records, the one that their layouts show.
    pub(crate) fn align_of(&self, id: TypeId) -> u64 {
        type_align(self.types, id, self.rules, &mut |record| self.shape(record).align)
    }

    /// Returns the alignment in bytes that a member's type gives it; of records, the one that their layouts show.
    pub(crate) fn align_of_member(&self, member: &Member) -> u64 {
        member_align(self.types, member, self.rules, &mut |record| self.shape(record).align)
    }

    fn explain_all(&mut self) {
        for id in self.types.record_ids() {
            self.explain(id);
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
                if let Some(inner) =
                    self.contained_record(member.ty).filter(|_| member.kind != MemberKind::Static)
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

    /// Returns the record that a member of this type contains by value, directly or as an array's elements; `None` if
    /// it contains none.
    pub(crate) fn contained_record(&self, mut id: TypeId) -> Option<RecordId> {
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

    /// Returns the first packing under which the rules give the layout that the file shows.
    fn find_shape(&self, id: RecordId) -> Shape {
        let record = self.types.record(id);
        if record.declaration {
            return Shape { unexplained: Some(Unexplained::Unknown), ..Shape::default() };
        }
        let asked = if is_alignment(record.align) { record.align } else { 1 };
        let mut packings = vec![
            Packing::Natural,
            Packing::Packed,
            Packing::Most(2),
            Packing::Most(4),
            Packing::Most(8),
            Packing::PackedMembers,
        ];
        if self.packed[id.index()] {
            packings.insert(0, Packing::Packed);
        }
        let mut first = None;
        for guess in [false, true] {
            for packing in &packings {
                match replay(self, id, *packing, guess) {
                    Ok(replay) => {
                        // Rust's and Zig's compilers note it, whoever asked for it
                        let noted = record.language.notes_alignment() && record.align != 0;
                        return Shape {
                            align: if noted { asked } else { replay.align },
                            packing: *packing,
                            guessed: replay.guessed,
                            unexplained: None,
                        };
                    }
                    Err(why) => first = first.or(Some(why)),
                }
            }
        }
        // as its members would have it, as far as that fits its size
        let members = self.types.members(record).iter().chain(self.types.tag(record));
        let data = members.filter(|member| !matches!(member.kind, MemberKind::Static));
        // clang notes it at members alone; BTF's are inferred
        let of_dwarf = self.types.origin() == Origin::Dwarf;
        let of_member = |member: &Member| match member.align {
            declared if of_dwarf && is_alignment(declared) => declared,
            _ => self.align_of_member(member),
        };
        let natural = data.map(of_member).max().unwrap_or(1);
        let fits = 1 << record.size.trailing_zeros().min(12);
        Shape { align: natural.min(fits).max(asked), unexplained: first, ..Shape::default() }
    }

    /// Marks structs that lie where their alignment does not let them; whether there were new ones.
    fn find_misplaced(&mut self) -> bool {
        let mut found = false;
        for id in self.types.record_ids() {
            let (outer, shape) = (self.types.record(id), self.shape(id));
            // what a packed struct holds lies anywhere
            if shape.unexplained.is_none() && matches!(shape.packing, Packing::Packed | Packing::Most(_)) {
                continue;
            }
            for member in self.types.members(outer) {
                if matches!(member.kind, MemberKind::Static | MemberKind::VirtualBase) {
                    continue;
                }
                let Some(inner) = self.contained_record(member.ty) else { continue };
                let record = self.types.record(inner);
                let fits = |align: u64| {
                    if outer.is_union() { outer.size } else { member.offset }.is_multiple_of(align.max(1))
                };
                if record.is_struct()
                    && !self.packed[inner.index()]
                    && record.align <= 1
                    && !fits(self.align_of(member.ty))
                    && replay(self, inner, Packing::Packed, false).is_ok()
                {
                    self.packed[inner.index()] = true;
                    found = true;
                }
            }
        }
        found
    }
}

impl Alignments for Abi<'_> {
    fn types(&self) -> &Types {
        self.types
    }

    fn align_of(&self, id: TypeId) -> u64 {
        Abi::align_of(self, id)
    }

    fn align_of_member(&self, member: &Member) -> u64 {
        Abi::align_of_member(self, member)
    }
}

/// Returns the actual alignment and packing of every record, by record id, and the ABI's rule set that explains most of
/// their layouts.
pub(crate) fn explain(types: &Types) -> (Rules, Vec<InEffect>) {
    let abi = Abi::new(types);
    let records = types.record_ids().map(|id| abi.in_effect(id));
    (abi.rules, records.collect())
}

/// Returns `true` if there are types that compilers for one machine lay out differently: vectors and atomic types.
fn depends_on_rules(types: &Types) -> bool {
    let is_such = |ty: &Type| match *ty {
        Type::Array(array) => types.array(array).vector,
        Type::Qualified { qualifier, .. } => qualifier == Qualifier::Atomic,
        _ => false,
    };
    types.iter().any(|(_, ty)| is_such(&ty))
}
