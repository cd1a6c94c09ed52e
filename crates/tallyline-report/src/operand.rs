//! The memory operand of a sample's instruction, in the form that reports need.

use super::ambiguous_names::AmbiguousNames;
use super::index::JoinedId;
use super::names::{NameId, Names};
use rustc_hash::FxHashMap;
use std::ops::Range;
use tallyline_debuginfo::model::{TypeId, Types};
use tallyline_debuginfo::{qualified_type_text, type_text};
use tallyline_inference::{TypeTable, Typed, field_path, place_text};
use tallyline_perf_data::spaces::DsoId;

/// The result of type inference for a sampled instruction: the type and field that it accesses, a kind of memory
/// without a type, or the reason why it is unknown.
pub type Outcome = tallyline_inference::Outcome<Operand, Reason>;

/// The result of type inference for instructions for which types were not inferred.
pub(crate) const NOT_LOOKED: Outcome = Outcome::Untyped(Reason::NotLooked);

/// Returns `true` if the access of a sampled instruction could have a type: it has one, or inference lost track of
/// it in code that has debug information. Percentages of typed samples are of these.
pub fn is_eligible(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Typed(_) | Outcome::Untyped(Reason::Lost(_)))
}

/// The type, offset, size and field that a sampled instruction accesses, with interned names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The type of the accessed object.
    pub ty: JoinedId,
    /// The name of the accessed object's type.
    pub(crate) name: NameId,
    /// The offset in the type, in bytes, at which the access begins.
    pub offset: u64,
    /// The other offset in the type, if a condition chooses between two or both halves of a pair are accessed.
    pub or: Option<u64>,
    /// The node of a container that the accessed object is a part of.
    pub(crate) within: Option<Within>,
    /// The path of the accessed field, such as `stats.rx`; empty where there is none.
    pub field: NameId,
    /// Object, offset and field as perf shows them: `struct order +0x3c (flags)`.
    pub text: NameId,
    /// The number of bytes accessed; for a pair, those of both halves.
    pub size: u16,
    /// The fields at this offset that can be meant, see [`Typed::candidates`](tallyline_inference::Typed::candidates).
    pub(crate) candidates: u64,
    /// `true` if the instruction reads the operand.
    pub reads: bool,
    /// `true` if the instruction writes the operand.
    pub writes: bool,
}

/// The container's node (of a list, tree or map) in which an accessed object is embedded: its type, and the
/// object's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Within {
    /// The type of the container's node.
    pub(crate) ty: JoinedId,
    /// The name of the node's type.
    pub(crate) name: NameId,
    /// The offset in the node at which the accessed object starts.
    pub(crate) start: u64,
}

/// The reason why the type that a sampled instruction accesses is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// An instruction for which types were not inferred.
    NotLooked,
    /// An address at which nothing was mapped.
    NoMapping,
    /// Code without a file: compiled at run time, or made by the kernel.
    NoFile,
    /// A file that cannot be read, or is of another build.
    MissingFile(NameId),
    /// A file without debug information.
    NoDebugInfo,
    /// An address in no function of the debug information.
    NoFunction,
    /// An address without an instruction.
    NoInstruction,
    /// A sample at a function's first instruction, entered by an indirect call that is not known.
    IndirectCall,
    /// An access to memory of unknown type, with the reason that inference gives.
    Lost(NameId),
}

impl Operand {
    /// Returns the name of the type of the outermost known object that the sampled instruction accesses: that of a
    /// container's node in which the accessed type is embedded, else the accessed type's own.
    pub fn object(&self) -> NameId {
        self.within.map_or(self.name, |node| node.name)
    }

    /// Returns the offset of the access in the object that [`object`](Self::object) names, in bytes.
    pub fn offset_in_object(&self) -> u64 {
        self.start().saturating_add(self.offset)
    }

    /// Returns the offset in the object at which the type starts.
    fn start(&self) -> u64 {
        self.within.map_or(0, |node| node.start)
    }

    /// Returns `true` if the sampled access may start in a byte range of the outermost accessed object; an access has
    /// two possible offsets if a condition chooses between them, or if it accesses both halves of a pair.
    pub fn may_be_in(&self, bytes: &Range<u64>) -> bool {
        let is_in = |offset: u64| bytes.contains(&self.start().saturating_add(offset));
        is_in(self.offset) || self.or.is_some_and(is_in)
    }
}

impl Reason {
    /// Formats the reason why a type is unknown as a sentence; `text` returns interned names.
    pub fn text<'t>(&self, text: impl Fn(NameId) -> &'t str) -> String {
        match self {
            Reason::NotLooked => "types were not asked for".to_owned(),
            Reason::NoMapping => "no mapping".to_owned(),
            Reason::NoFile => "code without a file".to_owned(),
            Reason::MissingFile(why) | Reason::Lost(why) => text(*why).to_owned(),
            Reason::NoDebugInfo => "no debug information".to_owned(),
            Reason::NoFunction => "no function in the debug information".to_owned(),
            Reason::IndirectCall => "entered by an indirect call".to_owned(),
            Reason::NoInstruction => "no instruction at the address".to_owned(),
        }
    }
}

/// The types that the instructions of a profile's programs access: a table for each program, and ids for these types
/// that are unique over all programs.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    pub(crate) tables: FxHashMap<DsoId, TypeTable>,
    // the types that operands have: the file, and the type in its table
    types: Vec<(DsoId, TypeId)>,
    ids: FxHashMap<(DsoId, TypeId), JoinedId>,
    /// The names of types that are shown with scopes, as several types have them without.
    pub(crate) ambiguous: AmbiguousNames,
    /// Samples that have a type by the address of their data, or by registers.
    pub(crate) by_evidence: u64,
    /// The debug information that is missing, one line each.
    pub(crate) warnings: Vec<String>,
}

impl Joined {
    /// Returns the index of a type.
    pub(super) fn id(&mut self, dso: DsoId, ty: TypeId) -> JoinedId {
        *self.ids.entry((dso, ty)).or_insert_with(|| {
            self.types.push((dso, ty));
            JoinedId::of(self.types.len() - 1)
        })
    }

    /// Returns the indices of all types.
    pub(crate) fn ids(&self) -> impl Iterator<Item = JoinedId> + use<> {
        (0..self.types.len()).map(JoinedId::of)
    }

    /// Returns all types that operands have, each with the model that it is in.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Types, TypeId)> {
        self.ids().filter_map(|ty| self.get(ty)).map(|(table, id)| (table.types(), id))
    }

    /// Returns the table of the types that a file's instructions access; `None` if none were inferred, as without debug
    /// information.
    pub(crate) fn table(&self, dso: DsoId) -> Option<&TypeTable> {
        self.tables.get(&dso)
    }

    /// Returns the file that a type belongs to and its id in that file's type model; `None` for an unknown id.
    pub(crate) fn source(&self, ty: JoinedId) -> Option<(DsoId, TypeId)> {
        self.types.get(ty.position()).copied()
    }

    /// Returns the table of inferred types of the file that a type belongs to, and the type's id in it; `None` for an
    /// unknown id.
    pub(crate) fn get(&self, ty: JoinedId) -> Option<(&TypeTable, TypeId)> {
        let (dso, id) = self.source(ty)?;
        Some((self.tables.get(&dso)?, id))
    }

    /// Returns the name of a type as reports show it: without its scopes, as perf has it, unless another type has the
    /// same name then. Empty for an unknown id.
    pub(crate) fn name(&self, ty: JoinedId) -> String {
        self.get(ty).map_or_else(String::new, |(table, id)| self.ambiguous.text(table.types(), id))
    }

    /// Returns the name of a type of a file's table as [`name`](Self::name) does, also if no operand has it; empty for a
    /// file without a table.
    pub(crate) fn name_in(&self, dso: DsoId, id: TypeId) -> String {
        self.tables.get(&dso).map_or_else(String::new, |table| self.ambiguous.text(table.types(), id))
    }

    /// Returns the name of a type with its scopes; empty for an unknown id.
    pub(crate) fn qualified_name(&self, ty: JoinedId) -> String {
        self.get(ty).map_or_else(String::new, |(table, id)| qualified_type_text(table.types(), id))
    }
}

/// Returns the operand of an instruction, with its texts.
pub(super) fn operand(names: &mut Names, table: &TypeTable, ty: JoinedId, typed: &Typed) -> Operand {
    let name = type_text(table.types(), typed.ty());
    let field = field_path(table.types(), typed);
    let text = format!("{name} {}", place_text(table.types(), typed));
    Operand {
        ty,
        name: names.intern(&name),
        offset: typed.offset().into(),
        or: typed.or().map(Into::into),
        within: None,
        field: names.intern(&field),
        text: names.intern(&text),
        size: typed.bytes(),
        candidates: typed.candidates(),
        reads: typed.access().reads(),
        writes: typed.access().writes(),
    }
}
