//! Attributes of C: those under which a compiler lays a record out as it lies.
//!
//! pahole's text names some of them, and what is pasted from it may be another struct. Here they
//! follow from the replayed layout, so that nothing is left to what a member happens to follow.

use super::abi::Abi;
use super::replay::{Packing, ReplayedMember, replay};
use rustc_hash::FxHashMap;
use tallyline_debuginfo::model::{Member, MemberKind, Origin, RecordId, Type, TypeId, Types};

/// The longest chain of pointers, arrays and qualifiers that is followed.
const CHAIN_LIMIT: usize = 64;

/// The attributes (`packed`, `aligned`, `#pragma pack`) that a record's source must have for the record to have its
/// layout.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declaration {
    /// `true` if the record is declared `packed`.
    pub(crate) packed: bool,
    /// The limit of a `#pragma pack` around the record, in bytes; `None` without one.
    pub(crate) limit: Option<u64>,
    /// The alignment to ask for, in bytes; 0 for none.
    pub(crate) align: u64,
    /// The attributes of the record's members, in the order of the members.
    pub(crate) members: Vec<MemberDeclaration>,
}

impl Declaration {
    /// Returns `true` if the record needs attributes that pahole's output does not contain, such as packed members.
    pub(crate) fn is_beyond_pahole(&self) -> bool {
        self.limit.is_some() || self.members.iter().any(|member| member.packed)
    }
}

/// The attributes (`packed`, `aligned`) and adjacent unnamed bitfields that a member's source must have for the member
/// to lie where it does.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemberDeclaration {
    /// `true` if the member is declared `packed`.
    pub(crate) packed: bool,
    /// The alignment to ask for, in bytes; 0 for none.
    pub(crate) align: u64,
    /// The widths of unnamed bitfields before the member.
    pub(crate) before: Vec<u64>,
    /// The widths of unnamed bitfields behind the member.
    pub(crate) behind: Vec<u64>,
}

/// The attributes (`packed`, `aligned`, …) that the sources of records must have for the records to have their layouts,
/// computed on request.
pub(crate) struct Declarations<'t> {
    abi: Abi<'t>,
}

impl<'t> Declarations<'t> {
    /// Analyses the layouts of all records of `types`, so that [`of`](Self::of) can tell which attributes (`packed`,
    /// `aligned`, …) their sources must have.
    pub(crate) fn new(types: &'t Types) -> Declarations<'t> {
        Declarations { abi: Abi::new(types) }
    }

    /// Returns the attributes that a record's source must have for the record to have its layout; `None` if no
    /// attributes explain the layout.
    pub(crate) fn of(&self, id: RecordId) -> Option<Declaration> {
        declaration(&self.abi, id)
    }

    /// Returns the attributes (`packed`, `aligned`, …) that the sources of a record and of the anonymous records
    /// declared inside it must have for the records to have their layouts, by record id.
    pub(crate) fn with_inner(&self, id: RecordId) -> FxHashMap<RecordId, Declaration> {
        let types = self.abi.types;
        let mut found = FxHashMap::default();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if found.contains_key(&id) {
                continue;
            }
            let Some(own) = self.of(id) else { continue };
            found.insert(id, own);
            let members = types.members(types.record(id));
            open.extend(members.iter().filter_map(|member| unnamed(types, member.ty)));
        }
        found
    }
}

/// Returns the record without a name that a type is made of or points to.
fn unnamed(types: &Types, mut id: TypeId) -> Option<RecordId> {
    for _ in 0..CHAIN_LIMIT {
        id = match types.get(id) {
            Type::Array(array) => types.array(array).of,
            Type::Pointer { to, .. } => to,
            Type::Qualified { of, .. } | Type::Annotated { of } => of,
            Type::Record(record) => return (!types.record(record).name.is_some()).then_some(record),
            _ => return None,
        };
    }
    None
}

fn declaration(abi: &Abi<'_>, id: RecordId) -> Option<Declaration> {
    let types = abi.types;
    let record = types.record(id);
    let shape = abi.shape(id);
    if shape.unexplained.is_some() {
        return None;
    }
    let replayed = replay(abi, id, shape.packing, shape.guessed).ok()?;
    let is_said = types.origin() == Origin::Dwarf && !record.language.notes_alignment();
    let mut own = Declaration {
        packed: shape.packing == Packing::Packed,
        limit: if let Packing::Most(most) = shape.packing { Some(most) } else { None },
        ..Declaration::default()
    };
    let mut largest = 1;
    for (index, (member, placed)) in types.members(record).iter().zip(&replayed.members).enumerate() {
        let mut one = MemberDeclaration::default();
        match placed {
            ReplayedMember::Nowhere => {}
            ReplayedMember::Bytes { align, .. } => {
                largest = largest.max(*align);
                if member.kind == MemberKind::Data {
                    one = bytes(abi, member, *align, shape.packing, is_said);
                }
            }
            ReplayedMember::Bits { before, field } => {
                one.packed = field.packed && shape.packing != Packing::Packed;
                one.align = if field.asked > 1 { field.asked / 8 } else { 0 };
                one.before = before.iter().map(|bits| bits.width).collect();
                largest = largest.max(field.align / 8).max(field.asked / 8);
            }
        }
        let behind = replayed.behind.iter().filter(|(at, _)| *at == index);
        one.behind = behind.map(|(_, bits)| bits.width).collect();
        own.members.push(one);
    }
    if replayed.align > largest || is_said && record.align != 0 {
        own.align = replayed.align;
    }
    Some(own)
}

/// Returns the attributes that give a member its alignment where its type alone has another.
fn bytes(abi: &Abi<'_>, member: &Member, align: u64, packing: Packing, is_said: bool) -> MemberDeclaration {
    let natural = abi.align_of_member(member);
    let given = match packing {
        Packing::Natural | Packing::PackedMembers => natural,
        Packing::Packed => 1,
        Packing::Most(most) => natural.min(most),
    };
    let asked = is_said && member.align == align && align > 1;
    MemberDeclaration {
        packed: align < given,
        align: if align > given || asked || align < given && align > 1 { align } else { 0 },
        ..MemberDeclaration::default()
    }
}
