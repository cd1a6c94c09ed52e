//! The changes of a type's members.

use crate::query::{Field, fields};
use std::collections::{HashMap, VecDeque};
use tallyline_debuginfo::lookup::named_as;
use tallyline_debuginfo::model::{Record, RecordId, Type, TypeId, Types};
use tallyline_debuginfo::type_text;

/// The nesting depth at which anonymous types are left out; real programs stay below twenty.
const DEPTH_LIMIT: usize = 32;

/// The limit on compared fields of anonymous types: in a damaged file they unfold without end.
const INNER_LIMIT: usize = 1 << 16;

/// The location and type of a member in one of the two compared versions of a type: bit offset, bits, type, cache line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberLocation {
    pub(crate) bit_offset: u64,
    pub(crate) bits: u64,
    pub(crate) bitfield: bool,
    pub(crate) ty: String,
    pub(crate) line: u64,
}

impl MemberLocation {
    /// Returns the offset of the member's first bit from the start of the type, in bits.
    pub fn bit_offset(&self) -> u64 {
        self.bit_offset
    }

    /// Returns the member's size in bits.
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// Returns `true` if the member is a bitfield.
    pub fn bitfield(&self) -> bool {
        self.bitfield
    }

    /// Returns the member's type in C's syntax.
    pub fn ty(&self) -> &str {
        &self.ty
    }

    /// Returns the index of the cache line in the type on which the member starts, if the type starts on a line.
    pub fn line(&self) -> u64 {
        self.line
    }
}

/// The difference of one member between two versions of a type: added, removed, moved, or given another type.
#[derive(Clone, Debug)]
pub struct MemberChange {
    pub(crate) name: String,
    pub(crate) old: Option<MemberLocation>,
    pub(crate) new: Option<MemberLocation>,
    /// The name of the record that the member is in both files, or that its elements are.
    pub(super) record: Option<String>,
    /// `true` if that record has no name, so that its members are compared as the type's own.
    pub(super) is_anonymous: bool,
}

impl MemberChange {
    /// Returns the changed member's name, with the path to it if it is in an anonymous struct or union.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the member's location in the old version of the type; `None` if the member was added.
    pub fn before(&self) -> Option<&MemberLocation> {
        self.old.as_ref()
    }

    /// Returns the member's location in the new version of the type; `None` if the member was removed.
    pub fn after(&self) -> Option<&MemberLocation> {
        self.new.as_ref()
    }

    /// Returns `true` if the member is in both versions of the type and on different cache lines.
    pub fn changes_line(&self) -> bool {
        matches!((&self.old, &self.new), (Some(old), Some(new)) if old.line != new.line)
    }
}

/// Compares the members of two records.
pub(super) fn compare(
    old: &Types,
    new: &Types,
    before: RecordId,
    after: RecordId,
    types: bool,
    line: u64,
) -> Vec<MemberChange> {
    let mut search = Search { old, new, types, line, found: Vec::new(), budget: INNER_LIMIT };
    search.records(old.record(before), new.record(after), &Base::default(), 0);
    search.found
}

/// The location of a nested record in the compared one.
#[derive(Clone, Default)]
struct Base {
    path: String,
    old: u64,
    new: u64,
}

struct Search<'t> {
    old: &'t Types,
    new: &'t Types,
    types: bool,
    line: u64,
    found: Vec<MemberChange>,
    // fields that may still be looked at
    budget: usize,
}

impl Search<'_> {
    fn records(&mut self, before: &Record, after: &Record, base: &Base, depth: usize) {
        let mine = fields(self.old, before);
        if depth != 0 {
            let Some(budget) = self.budget.checked_sub(mine.len() + 1) else { return };
            self.budget = budget;
        }
        // a name can repeat in damaged files only; then the first goes with the first
        let mut by_name: HashMap<&[u8], VecDeque<usize>> = HashMap::new();
        for (index, field) in mine.iter().enumerate() {
            by_name.entry(self.old.name(field.name)).or_default().push_back(index);
        }
        for field in &fields(self.new, after) {
            let name = self.new.name(field.name);
            let partner = by_name.get_mut(name).and_then(VecDeque::pop_front);
            let path = format!("{}{}", base.path, String::from_utf8_lossy(name));
            match partner.map(|index| &mine[index]) {
                Some(partner) => self.pair(partner, field, path, base, depth),
                None => {
                    let new = Some(self.place(self.new, field, base.new));
                    self.found.push(MemberChange {
                        name: path,
                        old: None,
                        new,
                        record: None,
                        is_anonymous: false,
                    });
                }
            }
        }
        let mut gone: Vec<usize> = by_name.into_values().flatten().collect();
        gone.sort_unstable();
        for index in gone {
            let name = String::from_utf8_lossy(self.old.name(mine[index].name));
            let old = Some(self.place(self.old, &mine[index], base.old));
            let name = format!("{}{name}", base.path);
            self.found.push(MemberChange { name, old, new: None, record: None, is_anonymous: false });
        }
    }

    fn pair(&mut self, mine: &Field, theirs: &Field, path: String, base: &Base, depth: usize) {
        let moved = mine.bit_offset != theirs.bit_offset || mine.bits != theirs.bits;
        let retyped = || {
            let inner = |types, ty| anonymous(types, ty).is_some();
            let both_anonymous = inner(self.old, mine.ty) && inner(self.new, theirs.ty);
            !both_anonymous && type_text(self.old, mine.ty) != type_text(self.new, theirs.ty)
        };
        if moved || self.types && retyped() {
            let old = Some(self.place(self.old, mine, base.old));
            let new = Some(self.place(self.new, theirs, base.new));
            let is_anonymous =
                anonymous(self.old, mine.ty).is_some() && anonymous(self.new, theirs.ty).is_some();
            let other = record_name(self.new, theirs.ty);
            let record = record_name(self.old, mine.ty).filter(|name| other.as_ref() == Some(name));
            self.found.push(MemberChange { name: path.clone(), old, new, record, is_anonymous });
        }
        let inner = anonymous(self.old, mine.ty).zip(anonymous(self.new, theirs.ty));
        if let Some((before, after)) = inner.filter(|_| depth < DEPTH_LIMIT) {
            let base = Base {
                path: format!("{path}."),
                old: base.old.saturating_add(mine.bit_offset),
                new: base.new.saturating_add(theirs.bit_offset),
            };
            self.records(before, after, &base, depth + 1);
        }
    }

    fn place(&self, types: &Types, field: &Field, base: u64) -> MemberLocation {
        let bit_offset = base.saturating_add(field.bit_offset);
        MemberLocation {
            bit_offset,
            bits: field.bits,
            bitfield: field.bitfield,
            ty: type_text(types, field.ty),
            line: bit_offset / 8 / self.line,
        }
    }
}

/// Returns the name of the record that a type is, or that its elements are.
fn record_name(types: &Types, ty: TypeId) -> Option<String> {
    let mut ty = ty;
    for _ in 0..DEPTH_LIMIT {
        match types.get(types.strip(ty)) {
            Type::Array(array) => ty = types.array(array).of,
            _ => break,
        }
    }
    named_as(types, ty).map(|ty| String::from_utf8_lossy(&types.qualified_name(ty)).into_owned())
}

/// Returns the record that a member's type is, or that its elements are, if it has no name of its own: its
/// members are the struct's.
fn anonymous(types: &Types, ty: TypeId) -> Option<&Record> {
    let mut ty = ty;
    for _ in 0..DEPTH_LIMIT {
        match types.get(ty) {
            Type::Array(array) => ty = types.array(array).of,
            Type::Qualified { of, .. } | Type::Annotated { of } => ty = of,
            _ => break,
        }
    }
    types.as_record(ty).map(|(_, record)| record).filter(|record| !record.name.is_some())
}
