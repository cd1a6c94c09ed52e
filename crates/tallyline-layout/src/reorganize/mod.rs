//! Smaller layouts: the order of a struct's members that takes the fewest bytes under the ABI's
//! rules, with the fewest moves.
//!
//! ```no_run
//! use tallyline_debuginfo::{Request, lookup, read};
//! use tallyline_layout::reorganize::{ReorganizeOptions, Reorganization, Reorganizer};
//!
//! let types = read(&std::fs::read("program")?, &Request::default())?;
//! let reorganizer = Reorganizer::new(&types, ReorganizeOptions::default());
//! if let Some(id) = lookup::find(&types, b"connection")
//!     && let Reorganization::Smaller(proposal) = reorganizer.propose(id)
//! {
//!     println!("{} bytes instead of {}", proposal.proposed().size(), proposal.current().size());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How
//! `replay` lays a record out by the rules of `abi` and `bits`, and only what that reproduces
//! exactly goes on. `item` cuts it into what moves as one: members, and runs of bitfields. Fences
//! stay, and nothing moves past them: the first and the last member, markers of groups and other
//! members without a size, flexible arrays, bases, what the caller pins. `smallest` finds the
//! least size, `moves` the fewest moves that lead there; `proposal` lays the result out again and
//! makes steps of it. [`declare`] writes declarations for a compiler to check.
//!
//! # What it costs
//! [`Reorganizer::new`] looks at every member of every type once. A proposal is exact for up to
//! [`EXACT_MEMBERS`] members between two fences whatever they are, and for more where they are of
//! few kinds, which nearly all are; time and memory of the searches are bounded, to about a second
//! for a type made to be bad.

#[cfg(test)]
mod against_all;
pub mod declare;
mod grouped;
mod item;
mod moves;
mod proposal;
mod smallest;
mod together;

pub use proposal::{CompilableProposal, Extent, Move, Proposal, checkable, print};
pub use together::CombinedProposal;

use crate::explain::{Abi, Packing, Unexplained, replay};
use std::fmt;
use tallyline_debuginfo::model::{Language, MemberKind, Origin, Record, RecordId, TypeId, Types};

/// The number of a struct's members up to which the search for the order of the smallest size is exhaustive; it counts
/// members between two that must not move.
pub const EXACT_MEMBERS: u32 = 20;

/// The restrictions on which structs are reorganised and which of their members may move, and the size of a cache line.
#[derive(Clone, Debug)]
pub struct ReorganizeOptions {
    /// The size of a cache line in bytes.
    pub cacheline: u64,
    /// Keep the first member first: casts between structs rely on it.
    pub pin_first: bool,
    /// Keep the last member last: it may be longer than declared.
    pub pin_last: bool,
    /// Members that stay, and past which nothing moves.
    pub pin: Vec<Vec<u8>>,
    /// Members that may move although they would stay.
    pub unpin: Vec<Vec<u8>>,
    /// Also what others rely on: packed structs, those declared for programs (`uapi/`), classes that
    /// are not of standard layout, and gaps that no alignment explains.
    pub force: bool,
}

impl Default for ReorganizeOptions {
    fn default() -> ReorganizeOptions {
        ReorganizeOptions {
            cacheline: 64,
            pin_first: true,
            pin_last: true,
            pin: Vec::new(),
            unpin: Vec::new(),
            force: false,
        }
    }
}

impl ReorganizeOptions {
    /// Returns the user's choice about a member, if there is one.
    fn pinned(&self, name: &[u8]) -> Option<bool> {
        let has = |names: &[Vec<u8>]| !name.is_empty() && names.iter().any(|known| known == name);
        match (has(&self.pin), has(&self.unpin)) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }
}

/// The result of looking for a smaller layout of a type: a proposal, none, or a refusal with its reason.
#[derive(Clone, Debug)]
pub enum Reorganization {
    /// A proposal for a smaller layout.
    Smaller(Box<Proposal>),
    /// No smaller layout: there is none, or none was found.
    Smallest {
        /// `true` if it is proven, within the options, that no layout is smaller.
        proven: bool,
    },
    /// A type for which no smaller layout is looked for, with the reason.
    Refused(Refusal),
}

/// The reason why no smaller layout was looked for: not a struct, packed, ordered by the compiler, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// A type other than a struct or class.
    NotAStruct,
    /// A type that is only declared: its members are not known.
    Declaration,
    /// The compiler orders the members: Rust without `repr(C)`.
    CompilersChoice,
    /// A language whose structs are not reorganised here, by its name.
    Language(&'static str),
    /// A class with bases, virtual functions or members of mixed access.
    NotStandardLayout,
    /// A type that is declared in a header of a kernel's user interface, with the path of the header.
    UserInterface(String),
    /// A packed type.
    Packed,
    /// Free bytes before a member, or at the end (no member), that no alignment explains.
    Deliberate(Option<String>),
    /// No rule known here leads to the layout.
    Unexplained(Option<String>),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotAStruct => write!(f, "not a struct: only the members of structs can be reordered"),
            Refusal::Declaration => write!(f, "only declared in this file: give a file that defines it"),
            Refusal::CompilersChoice => {
                write!(f, "laid out by the compiler already: only repr(C) can be reordered")
            }
            Refusal::Language(name) => {
                write!(f, "a type of {name}: only C, C++ and repr(C) are reordered")
            }
            Refusal::NotStandardLayout => write!(
                f,
                "not of standard layout (bases, virtual functions, mixed access): --force moves the members that may move"
            ),
            Refusal::UserInterface(file) => {
                write!(f, "declared in {file}, which programs rely on: --force reorders it anyway")
            }
            Refusal::Packed => write!(f, "packed, so others rely on its layout: --force reorders it anyway"),
            Refusal::Deliberate(Some(member)) => write!(
                f,
                "padding before {member} that no alignment explains: --force takes it for an alignment"
            ),
            Refusal::Deliberate(None) => {
                write!(f, "padding at the end that no alignment explains: --force takes it for an alignment")
            }
            Refusal::Unexplained(Some(member)) => {
                write!(f, "no rule known here puts {member} where it is")
            }
            Refusal::Unexplained(None) => write!(f, "no rule known here leads to its size"),
        }
    }
}

/// Finder of smaller layouts for the structs of a file, by reordering their members.
pub struct Reorganizer<'t> {
    abi: Abi<'t>,
    options: ReorganizeOptions,
}

impl<'t> Reorganizer<'t> {
    /// Returns the options (restrictions on what may move) that the reorganizer was created with.
    pub fn options(&self) -> &ReorganizeOptions {
        &self.options
    }

    /// Creates a finder of smaller layouts (other orders of members) for the structs of `types`. Analyses the layouts
    /// of all types first, as one type's may show another's alignment.
    pub fn new(types: &'t Types, options: ReorganizeOptions) -> Reorganizer<'t> {
        Reorganizer { abi: Abi::new(types), options }
    }

    /// Returns the types whose structs the reorganizer finds smaller layouts for.
    pub fn types(&self) -> &'t Types {
        self.abi.types
    }

    /// Returns `true` if the alignments of a record's members are inferred from its layout, as always in BTF, not read
    /// from the file.
    pub(crate) fn is_inferred(&self, id: RecordId) -> bool {
        self.abi.types.origin() == Origin::Btf || self.abi.shape(id).guessed
    }

    /// Looks for the smallest layout of a struct, also through a typedef of it, under the reorganizer's options.
    pub fn propose(&self, id: TypeId) -> Reorganization {
        self.propose_with(id, &self.options)
    }

    /// Looks for the smallest layout of a struct under other options than the reorganizer's.
    pub(crate) fn propose_with(&self, id: TypeId, options: &ReorganizeOptions) -> Reorganization {
        let types = self.types();
        match types.as_record(types.strip(id)) {
            Some((id, _)) => self.propose_record(id, options),
            None => Reorganization::Refused(Refusal::NotAStruct),
        }
    }

    fn propose_record(&self, id: RecordId, options: &ReorganizeOptions) -> Reorganization {
        let types = self.types();
        let record = types.record(id);
        if let Some(refusal) = self.refuse(id, record, options) {
            return Reorganization::Refused(refusal);
        }
        let shape = self.abi.shape(id);
        let Ok(replayed) = replay(&self.abi, id, shape.packing, shape.guessed) else {
            return Reorganization::Refused(Refusal::Unexplained(None));
        };
        let members = types.members(record);
        let items = item::items(types, members, &replayed, options);
        let smallest = smallest::smallest(&items, replayed.align);
        let size = |end: u64| end.div_ceil(8).next_multiple_of(replayed.align);
        let new_size = size(smallest.end).max(1);
        if new_size >= record.size {
            return Reorganization::Smallest { proven: smallest.exact };
        }
        let fewest = moves::fewest(&items, new_size * 8);
        let (order, fewest) = match fewest {
            Some(found) => (found.order, found.exact),
            None => (smallest.order, false),
        };
        let proven = proposal::Proven { size: smallest.exact, moves: fewest };
        match proposal::lay_out(types, id, &items, &order, replayed.align, proven, self) {
            // what was found is laid out again, from nothing: it has to hold
            Some(proposal) if proposal.new.size == new_size => Reorganization::Smaller(Box::new(proposal)),
            _ => Reorganization::Refused(Refusal::Unexplained(None)),
        }
    }

    /// Looks for the smallest layouts of many types in parallel; the results are in the order of `ids`.
    pub fn propose_all(&self, ids: &[TypeId]) -> Vec<Reorganization> {
        self.propose_all_with(ids, &self.options)
    }

    /// Looks for the smallest layouts of many types in parallel, under other options than the reorganizer's; the
    /// results are in the order of `ids`.
    pub fn propose_all_with(&self, ids: &[TypeId], options: &ReorganizeOptions) -> Vec<Reorganization> {
        use rayon::prelude::*;
        ids.par_iter().map(|id| self.propose_with(*id, options)).collect()
    }

    fn refuse(&self, id: RecordId, record: &Record, options: &ReorganizeOptions) -> Option<Refusal> {
        let types = self.types();
        if record.is_union() {
            return Some(Refusal::NotAStruct);
        }
        if record.declaration {
            return Some(Refusal::Declaration);
        }
        let members = types.members(record);
        if let Some(refusal) = refuse_language(types, record) {
            return Some(refusal);
        }
        if !options.force && record.language.is_cpp() && !has_standard_layout(types, record) {
            return Some(Refusal::NotStandardLayout);
        }
        let name_of = |at: usize| {
            let name = String::from_utf8_lossy(types.name(members[at].name)).into_owned();
            if name.is_empty() { format!("member {}", at + 1) } else { name }
        };
        let shape = self.abi.shape(id);
        match shape.unexplained {
            Some(Unexplained::Misplaced(at) | Unexplained::Gap(at)) => {
                return Some(Refusal::Unexplained(Some(name_of(at))));
            }
            Some(_) => return Some(Refusal::Unexplained(None)),
            None => {}
        }
        if options.force {
            return None;
        }
        let file = types.name(record.declared_at.file);
        if is_user_interface(file) {
            return Some(Refusal::UserInterface(String::from_utf8_lossy(file).into_owned()));
        }
        if matches!(shape.packing, Packing::Packed | Packing::Most(_)) {
            return Some(Refusal::Packed);
        }
        if shape.guessed && types.origin() == Origin::Dwarf {
            let at = match replay(&self.abi, id, shape.packing, false) {
                Err(Unexplained::Gap(at)) => Some(name_of(at)),
                _ => None,
            };
            return Some(Refusal::Deliberate(at));
        }
        None
    }
}

/// Refuses what is not ordered by its declaration. rustc orders members for size, so a struct of Rust
/// that lies as declared and can be smaller was declared `repr(C)`.
fn refuse_language(types: &Types, record: &Record) -> Option<Refusal> {
    let members = types.members(record);
    let language = record.language;
    if language.is_rust() {
        let as_declared = members.is_sorted_by_key(|member| member.declared);
        return (!types.variants(record).is_empty() || !as_declared).then_some(Refusal::CompilersChoice);
    }
    match language {
        _ if language.is_c() || language.is_cpp() => None,
        _ if language.is_go() => Some(Refusal::Language("Go")),
        _ if language.is_zig() => Some(Refusal::Language("Zig")),
        Language(0) => None,
        _ => Some(Refusal::Language("another language")),
    }
}

/// Returns `true` if a class has no bases, no virtual functions, and one access specifier for all data members.
fn has_standard_layout(types: &Types, record: &Record) -> bool {
    let mut data = types.members(record).iter().filter(|member| member.kind != MemberKind::Static);
    let access = data.clone().next().map(|member| member.access);
    data.all(|member| !member.is_base() && !member.artificial && Some(member.access) == access)
}

/// Returns `true` if a header is part of a kernel's user interface.
fn is_user_interface(file: &[u8]) -> bool {
    file.split(|byte| *byte == b'/').rev().skip(1).any(|folder| folder == b"uapi")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_for_programs_are_known_by_their_folder() {
        assert!(is_user_interface(b"./include/uapi/linux/tcp.h"));
        assert!(is_user_interface(b"uapi/tcp.h"));
        assert!(!is_user_interface(b"include/linux/uapi"));
        assert!(!is_user_interface(b"include/linux/uapi.h"));
    }
}
