//! A type as its JSON shows it.

use crate::query::{Effective, ends_flexibly, holes};
use serde::Serialize;
use std::borrow::Cow;
use tallyline_debuginfo::abi::size_of;
use tallyline_debuginfo::keyword;
use tallyline_debuginfo::model::{
    Member, MemberKind, NameId, Origin, Position, Record, RecordId, Type, TypeId, Types,
};
use tallyline_debuginfo::{element_text, type_text};

/// The nesting depth at which anonymous types are left out; real programs stay below twenty.
const DEPTH_LIMIT: usize = 64;

/// The limit on members of anonymous types in a type: in a damaged file they unfold without end. Real
/// types have some hundreds.
const INNER_LIMIT: usize = 1 << 14;

#[derive(Serialize)]
pub(super) struct Head {
    schema: u32,
    origin: &'static str,
    pointer_size: u64,
    cacheline: u64,
}

#[derive(Serialize)]
pub(super) struct TypeView<'t> {
    id: usize,
    name: Name<'t>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Name<'t>,
    kind: &'static str,
    size: u64,
    align: u64,
    cachelines: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dynamic: bool,
    #[serde(flatten)]
    body: Body<'t>,
}

type Name<'t> = Option<Cow<'t, str>>;

#[derive(Serialize)]
#[serde(untagged)]
enum Body<'t> {
    Record(RecordView<'t>),
    Enum {
        enumerators: Vec<EnumeratorView<'t>>,
        declared_at: Option<PositionView<'t>>,
    },
    Typedef {
        of: String,
        of_id: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        inner: Option<Option<Box<InnerView<'t>>>>,
    },
    Other {},
}

#[derive(Serialize)]
struct RecordView<'t> {
    packed: bool,
    bases: Vec<BaseView>,
    members: Vec<MemberView<'t>>,
    variants: Vec<VariantView<'t>>,
    statics: Vec<Name<'t>>,
    holes: Vec<HoleView<'t>>,
    bit_holes: Vec<BitHoleView<'t>>,
    padding: u64,
    bit_padding: u8,
    flexible: bool,
    declared_at: Option<PositionView<'t>>,
}

#[derive(Serialize)]
struct BaseView {
    #[serde(rename = "type")]
    ty: String,
    type_id: usize,
    offset: Option<u64>,
    size: u64,
    r#virtual: bool,
}

#[derive(Serialize)]
struct MemberView<'t> {
    name: Name<'t>,
    #[serde(rename = "type")]
    ty: String,
    type_id: usize,
    dims: Vec<u64>,
    offset: Option<u64>,
    bit_offset: Option<u32>,
    bit_size: Option<u32>,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    align: Option<u64>,
    declared_at: Option<PositionView<'t>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inner: Option<Option<Box<InnerView<'t>>>>,
}

#[derive(Serialize)]
struct InnerView<'t> {
    kind: &'static str,
    size: u64,
    align: u64,
    #[serde(flatten)]
    record: RecordView<'t>,
}

#[derive(Serialize)]
struct VariantView<'t> {
    name: Name<'t>,
    tag: Option<i128>,
    members: Vec<MemberView<'t>>,
}

#[derive(Serialize)]
struct HoleView<'t> {
    offset: u64,
    size: u64,
    after: Name<'t>,
}

#[derive(Serialize)]
struct BitHoleView<'t> {
    bit_offset: u64,
    bits: u8,
    after: Name<'t>,
}

#[derive(Serialize)]
struct PositionView<'t> {
    file: Name<'t>,
    line: u32,
}

#[derive(Serialize)]
struct EnumeratorView<'t> {
    name: Name<'t>,
    value: i64,
}

/// Makes views of types.
pub(super) struct Views<'t> {
    types: &'t Types,
    alignments: Effective,
    cacheline: u64,
    // members of anonymous types that the current type may still show
    budget: usize,
}

impl<'t> Views<'t> {
    pub(super) fn new(types: &'t Types, cacheline: u64) -> Views<'t> {
        Views { types, alignments: Effective::new(types), cacheline: cacheline.max(1), budget: 0 }
    }

    pub(super) fn head(&self) -> Head {
        let origin = match self.types.origin() {
            Origin::Dwarf => "dwarf",
            Origin::Btf => "btf",
        };
        Head { schema: 1, origin, pointer_size: self.types.pointer_size(), cacheline: self.cacheline }
    }

    pub(super) fn of(&mut self, id: TypeId) -> TypeView<'t> {
        self.budget = INNER_LIMIT;
        let types = self.types;
        let (kind, size, body) = match types.get(id) {
            Type::Record(record_id) => {
                let record = types.record(record_id);
                (keyword(record), record.size, Body::Record(self.record(record_id, 0)))
            }
            Type::Enum(item) => {
                let item = types.enumeration(item);
                let enumerators = types
                    .enumerators(item)
                    .iter()
                    .map(|item| EnumeratorView { name: self.name(item.name), value: item.value as i64 });
                let declared_at = self.position(item.declared_at);
                ("enum", item.size, Body::Enum { enumerators: enumerators.collect(), declared_at })
            }
            Type::Typedef { of, .. } => {
                let inner = self.inner(of, 0);
                let body = Body::Typedef { of: type_text(types, of), of_id: of.index(), inner };
                ("typedef", size_of(types, id), body)
            }
            _ => ("other", size_of(types, id), Body::Other {}),
        };
        let align = self.alignments.of(types, id);
        let name = self.name(types.type_name(id));
        let scope = types.as_record(id).and_then(|(_, record)| self.name(record.path));
        let dynamic = types.as_record(id).is_some_and(|(_, record)| record.is_dynamic);
        let cachelines = size.div_ceil(self.cacheline);
        TypeView { id: id.index(), name, scope, kind, size, align, cachelines, dynamic, body }
    }

    fn record(&mut self, id: RecordId, depth: usize) -> RecordView<'t> {
        let types = self.types;
        let record = types.record(id);
        let all = types.members(record);
        let after = |index: Option<usize>| index.and_then(|index| self.name(all[index].name));
        let found = holes(types, record);
        let whole = found.bytes.iter();
        let whole =
            whole.map(|hole| HoleView { offset: hole.offset, size: hole.bytes, after: after(hole.after) });
        let bits = found.bits.iter();
        let bits = bits.map(|hole| BitHoleView {
            bit_offset: hole.bit_offset,
            bits: hole.bits,
            after: after(hole.after),
        });
        let (whole, bits) = (whole.collect(), bits.collect());
        let statics = all.iter().filter(|member| member.kind == MemberKind::Static);
        RecordView {
            packed: self.alignments.is_packed(types, id),
            bases: all.iter().filter_map(|member| self.base(member)).collect(),
            statics: statics.map(|member| self.name(member.name)).collect(),
            members: self.members(all, depth),
            variants: self.variants(record, depth),
            holes: whole,
            bit_holes: bits,
            padding: found.padding,
            bit_padding: found.bit_padding,
            flexible: ends_flexibly(types, record),
            declared_at: self.position(record.declared_at),
        }
    }

    fn variants(&mut self, record: &Record, depth: usize) -> Vec<VariantView<'t>> {
        let types = self.types;
        let mut variants = Vec::new();
        for variant in types.variants(record) {
            let members = self.members(types.variant_members(variant), depth);
            variants.push(VariantView { name: self.name(variant.name), tag: variant.tag, members });
        }
        variants
    }

    fn members(&mut self, all: &'t [Member], depth: usize) -> Vec<MemberView<'t>> {
        let data = all.iter().filter(|member| member.kind == MemberKind::Data);
        data.map_while(|member| {
            self.budget = self.budget.checked_sub(usize::from(depth != 0))?;
            Some(self.member(member, depth))
        })
        .collect()
    }

    fn member(&mut self, member: &Member, depth: usize) -> MemberView<'t> {
        let (ty, dims) = element_text(self.types, member.ty);
        MemberView {
            name: self.name(member.name),
            ty,
            type_id: member.ty.index(),
            dims,
            offset: member.is_placed().then_some(member.offset),
            bit_offset: member.bitfield.map(|field| field.offset),
            bit_size: member.bitfield.map(|field| field.size),
            size: member.size,
            align: (member.align != 0).then_some(member.align),
            declared_at: self.position(member.declared_at),
            inner: self.inner(member.ty, depth),
        }
    }

    /// Returns the members of an anonymous type, which are shown where it is used, also for the element of an
    /// array.
    fn inner(&mut self, mut ty: TypeId, depth: usize) -> Option<Option<Box<InnerView<'t>>>> {
        let types = self.types;
        for _ in 0..DEPTH_LIMIT {
            match types.get(ty) {
                Type::Array(array) => ty = types.array(array).of,
                Type::Qualified { of, .. } | Type::Annotated { of } => ty = of,
                _ => break,
            }
        }
        let (id, record) = types.as_record(ty).filter(|(_, record)| !record.name.is_some())?;
        if depth >= DEPTH_LIMIT || self.budget == 0 {
            return Some(None);
        }
        let align = self.alignments.of(types, ty);
        let view =
            InnerView { kind: keyword(record), size: record.size, align, record: self.record(id, depth + 1) };
        Some(Some(Box::new(view)))
    }

    fn base(&self, member: &Member) -> Option<BaseView> {
        let is_virtual = match member.kind {
            MemberKind::Base => false,
            MemberKind::VirtualBase => true,
            MemberKind::Data | MemberKind::Static => return None,
        };
        Some(BaseView {
            ty: type_text(self.types, member.ty),
            type_id: member.ty.index(),
            offset: member.is_placed().then_some(member.offset),
            size: member.size,
            r#virtual: is_virtual,
        })
    }

    fn name(&self, name: NameId) -> Name<'t> {
        name.is_some().then(|| String::from_utf8_lossy(self.types.name(name)))
    }

    fn position(&self, position: Position) -> Option<PositionView<'t>> {
        let known = position.file.is_some() || position.line != 0;
        known.then(|| PositionView { file: self.name(position.file), line: position.line })
    }
}
