//! The members of a record as a program names them: those of anonymous structs and unions, and of
//! bases, count as the record's own.

use tallyline_debuginfo::model::{Member, MemberKind, NameId, Position, Record, Type, TypeId, Types};

/// The nesting depth at which anonymous types are left out; real programs stay below twenty.
const DEPTH_LIMIT: usize = 64;

/// The limit on members of anonymous types: in a damaged file they unfold without end. Real
/// types have some hundreds.
const INNER_LIMIT: usize = 1 << 14;

/// A named member of a record, also one inside an anonymous struct or union, with its location in the whole record.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub(crate) name: NameId,
    pub(crate) ty: TypeId,
    pub(crate) bit_offset: u64,
    pub(crate) bits: u64,
    pub(crate) bitfield: bool,
    pub(crate) align: u64,
    pub(crate) declared_at: Position,
}

impl Field {
    /// Returns the id of the field's name.
    pub fn name(&self) -> NameId {
        self.name
    }

    /// Returns the id of the field's type.
    pub fn ty(&self) -> TypeId {
        self.ty
    }

    /// Returns the offset of the field's first bit from the start of the whole record, in bits.
    pub fn bit_offset(&self) -> u64 {
        self.bit_offset
    }

    /// Returns the field's size in bits.
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// Returns `true` if the field is a bitfield.
    pub fn bitfield(&self) -> bool {
        self.bitfield
    }

    /// Returns the alignment in bytes that the source declares for the field; 0 if it declares none.
    pub fn align(&self) -> u64 {
        self.align
    }

    /// Returns the source position at which the field is declared.
    pub fn declared_at(&self) -> Position {
        self.declared_at
    }

    /// Returns the offset in the record of the byte that contains the field's first bit.
    pub fn start(&self) -> u64 {
        self.bit_offset / 8
    }

    /// Returns the offset in the record of the byte after the field; equal to the start for a field of no size.
    pub fn end(&self) -> u64 {
        self.bit_offset.saturating_add(self.bits).div_ceil(8)
    }

    /// Returns the number of bytes that the field lies in, partly occupied ones included.
    pub fn bytes(&self) -> u64 {
        self.end() - self.start()
    }

    fn new(member: &Member, base: u64) -> Field {
        let bits = match member.bitfield {
            Some(field) => u64::from(field.size),
            None => member.size.saturating_mul(8),
        };
        Field {
            name: member.name,
            ty: member.ty,
            bit_offset: base.saturating_mul(8).saturating_add(member.bit_offset),
            bits,
            bitfield: member.bitfield.is_some(),
            align: member.align,
            declared_at: member.declared_at,
        }
    }
}

/// Returns all named fields of a record, with those of anonymous structs and unions, in the order of the file.
pub fn fields(types: &Types, record: &Record) -> Vec<Field> {
    let (mut found, mut budget) = (Vec::new(), INNER_LIMIT);
    collect(types, record, Subobject { offset: 0, depth: 0, is_base: false }, &mut budget, &mut found);
    found
}

/// The part of the whole record that a nested record is.
#[derive(Clone, Copy)]
struct Subobject {
    /// The offset in the whole record.
    offset: u64,
    depth: usize,
    /// `true` if it is a base, and not a member.
    is_base: bool,
}

fn collect(types: &Types, record: &Record, part: Subobject, budget: &mut usize, found: &mut Vec<Field>) {
    let Subobject { offset: base, depth, is_base } = part;
    for member in types.members(record) {
        let Some(rest) = budget.checked_sub(usize::from(depth != 0)) else { return };
        *budget = rest;
        // a base's own virtual bases lie elsewhere in the whole object, which has them as its members
        if !member.is_placed() || is_base && member.kind == MemberKind::VirtualBase {
            continue;
        }
        if !member.name.is_some() || member.is_base() {
            let inner = types.as_record(types.strip(member.ty));
            if let Some((_, inner)) = inner.filter(|_| depth < DEPTH_LIMIT) {
                let offset = base.saturating_add(member.offset);
                let part = Subobject { offset, depth: depth + 1, is_base: member.is_base() };
                collect(types, inner, part, budget, found);
            }
            continue;
        }
        found.push(Field::new(member, base));
    }
}

/// Returns the field of a record at a path such as `stats.rx[2].bytes`; `None` if there is no such field.
pub fn field_at(types: &Types, record: &Record, path: &str) -> Option<Field> {
    let mut record = record;
    let mut base = 0_u64;
    let mut parts = path.split('.').peekable();
    loop {
        let (name, indices) = split_indices(parts.next()?)?;
        let mut field =
            fields(types, record).into_iter().find(|field| types.name(field.name) == name.as_bytes())?;
        field.bit_offset = field.bit_offset.saturating_add(base.saturating_mul(8));
        index(types, &mut field, &indices)?;
        if parts.peek().is_none() {
            return Some(field);
        }
        let (_, inner) = types.as_record(types.strip(field.ty))?;
        (record, base) = (inner, field.start());
    }
}

/// Returns a name, and the numbers in brackets behind it.
fn split_indices(part: &str) -> Option<(&str, Vec<u64>)> {
    let Some((name, rest)) = part.split_once('[') else { return Some((part, Vec::new())) };
    let numbers = rest.strip_suffix(']')?.split("][").map(|number| number.trim().parse().ok());
    Some((name, numbers.collect::<Option<_>>()?))
}

/// Goes to an element of an array.
fn index(types: &Types, field: &mut Field, indices: &[u64]) -> Option<()> {
    let mut rest = indices;
    while !rest.is_empty() {
        let Type::Array(array) = types.get(types.strip(field.ty)) else { return None };
        let array = types.array(array);
        let dimensions = types.dimensions(array);
        // how many elements one step of each dimension spans
        let mut place = 0_u64;
        for (at, length) in dimensions.iter().enumerate() {
            let here = rest.split_first().map(|(first, tail)| {
                rest = tail;
                *first
            });
            let here = here?;
            if here >= *length && *length != 0 {
                return None;
            }
            let span = dimensions[at + 1..].iter().fold(1_u64, |span, n| span.saturating_mul(*n));
            place = place.saturating_add(here.saturating_mul(span));
        }
        let size = tallyline_debuginfo::abi::size_of(types, array.of);
        field.bit_offset = field.bit_offset.saturating_add(place.saturating_mul(size).saturating_mul(8));
        field.bits = size.saturating_mul(8);
        field.ty = array.of;
    }
    Some(())
}
