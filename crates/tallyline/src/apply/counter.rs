//! Members that get another type, a striped counter or a value on cache lines of its own: the types that are written into
//! a source, and the layouts that they promise.

use super::layouts::Layout;
use std::path::Path;
use tallyline_debuginfo::abi::{Alignments, size_of};
use tallyline_debuginfo::model::{RecordId, Type, TypeId, Types};
use tallyline_source::{Change, Language, member_type};

/// The cache line size in bytes assumed by the types that edits insert into a program's source (striped counters,
/// values on cache lines of their own).
pub(crate) const LINE: u64 = 64;

/// The stripes of a counter, as the types have them.
const STRIPES: u64 = 16;

const C: &str = include_str!("striped/c.txt");
const CPP: &str = include_str!("striped/cpp.txt");
const RUST: &str = include_str!("striped/rust.txt");
const RUST_LINE: &str = include_str!("striped/rust_line.txt");

/// The name of the type of Rust whose values are on cache lines of their own.
pub(super) const LINE_TYPE: &str = "CacheLine";

/// The function of C that adds to a counter.
pub(super) const ADD: &str = "striped_counter_add";

/// The function of C that reads a counter.
const READ: &str = "striped_counter_read";

/// The kind of type that an edit gives a struct member: a striped counter (a word for each thread, summed by reads), or
/// the same value on cache lines of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// A counter to which each thread adds in a stripe of its own.
    StripedCounter,
    /// The value that it is, on cache lines of its own.
    CacheLine,
}

/// A struct member whose type an edit replaces, by a striped counter (a word for each thread, summed by reads) or by a
/// value on cache lines of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplacedMember {
    /// The member, by its index in the declaration.
    pub(crate) at: usize,
    /// The name of the member.
    pub(crate) name: String,
    /// The kind of the member's new type.
    pub(crate) replacement: Replacement,
    /// The text of the member's new type; empty until the declaration is read.
    pub(crate) ty: String,
    /// The text of the member's present type.
    pub(crate) old: String,
    /// The type of the number in the member, as debug information names it; empty for a class.
    number: String,
    /// The size of the number in bytes.
    bytes: u64,
}

impl ReplacedMember {
    /// Returns the C text to put before the argument where code reads this struct member, now a striped counter: the
    /// name of the counter's read function, after a cast to the member's old type if that differs.
    pub(crate) fn read(&self) -> String {
        match self.number.as_str() {
            "long unsigned int" => READ.to_owned(),
            number => format!("({number}){READ}"),
        }
    }

    /// Sets the source text of the type that this struct member gets (a striped counter, or a value on cache lines of
    /// its own), which follows from its old type in the declaration `text`.
    ///
    /// # Errors
    /// A sentence that says why no striped counter can replace the old type.
    pub(crate) fn resolve(&mut self, text: &[u8], change: &Change, language: Language) -> Result<(), String> {
        let range = member_type(text, change, self.at).map_err(|refusal| refusal.to_string())?;
        let old = String::from_utf8_lossy(text.get(range).unwrap_or_default()).into_owned();
        self.ty = match language {
            _ if self.replacement == Replacement::CacheLine => format!("{LINE_TYPE}<{old}>"),
            Language::C => "struct striped_counter".to_owned(),
            Language::Cpp => format!("StripedCounter<{}>", self.number_in(&old)?),
            Language::Rust => format!("Striped{}", rust_number(&old)?.to_uppercase()),
        };
        self.old = old;
        Ok(())
    }

    fn number_in(&self, old: &str) -> Result<String, String> {
        if let Some((head, rest)) = old.split_once('<')
            && head.trim().rsplit("::").next() == Some("atomic")
            && let Some(number) = rest.trim_end().strip_suffix('>')
        {
            return Ok(number.trim().to_owned());
        }
        match self.number.is_empty() {
            true => Err(format!("{old} is no atomic number")),
            false => Ok(self.number.clone()),
        }
    }

    /// Returns the size and alignment of the new type in a language.
    fn size(&self, language: Language) -> (u64, u64) {
        if self.replacement == Replacement::CacheLine {
            return (self.bytes.next_multiple_of(LINE), LINE);
        }
        // C's counts are words, C++'s are what they were; where no alignment is declared a line's rest stands behind
        let word = if language == Language::C { 8 } else { self.bytes };
        match language {
            Language::Rust => (STRIPES * LINE, LINE),
            _ => (STRIPES * LINE + LINE - word, word),
        }
    }
}

/// Returns the number in an atomic integer of Rust, by its name: `u64` of `AtomicU64`.
fn rust_number(ty: &str) -> Result<String, String> {
    let name = ty.rsplit("::").next().unwrap_or(ty).trim();
    let number = name.strip_prefix("Atomic").map(str::to_lowercase);
    let known = ["u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize"];
    number
        .filter(|number| known.contains(&number.as_str()))
        .ok_or_else(|| format!("{ty} is no atomic number"))
}

/// The sizes and alignments of a struct's members, from which the struct's layout is recomputed once some of its
/// members get other types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    // the end of what is in front of the members: bases and pointers to virtual tables
    start: u64,
    align: u64,
    members: Vec<MemberShape>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct MemberShape {
    size: u64,
    align: u64,
    number: Option<String>,
}

impl Shape {
    /// Reads the sizes and alignments of a struct's members from debug information; `declared` lists the members in
    /// source order.
    ///
    /// # Errors
    /// A sentence that says why the layout cannot be recomputed: bitfields, or offsets that do not follow from
    /// alignments.
    pub(crate) fn of(types: &Types, id: RecordId, declared: &[usize]) -> Result<Shape, String> {
        let record = types.record(id);
        let members = types.members(record);
        let mut alignments = Alignments::new(types);
        let first = declared.iter().map(|at| members[*at].offset).min().unwrap_or(0);
        let in_front = (0..members.len()).filter(|at| !declared.contains(at)).map(|at| &members[at]);
        let start = in_front.map(|member| member.offset.saturating_add(member.size)).max().unwrap_or(0);
        let shape = Shape {
            start: start.min(first),
            align: alignments.of_record(types, id).max(record.align).max(1),
            members: declared
                .iter()
                .map(|at| &members[*at])
                .map(|member| MemberShape {
                    size: member.size,
                    align: alignments.of(types, member.ty).max(member.align).max(1),
                    number: number(types, member.ty),
                })
                .collect(),
        };
        if declared.iter().any(|at| members[*at].bitfield.is_some()) {
            return Err("it has bitfields, whose place behind a counter is not known".to_owned());
        }
        let offsets = declared.iter().map(|at| members[*at].offset);
        let (placed, size) = shape.place(|at| (shape.members[at].size, shape.members[at].align));
        if !record.language.is_rust() && (!placed.iter().copied().eq(offsets) || size != record.size) {
            return Err("it is laid out by other rules than its members' alignments".to_owned());
        }
        Ok(shape)
    }

    /// Returns the offsets of members of sizes and alignments, and the size.
    fn place(&self, of: impl Fn(usize) -> (u64, u64)) -> (Vec<u64>, u64) {
        let (mut end, mut align) = (self.start, self.align);
        let mut offsets = Vec::with_capacity(self.members.len());
        for at in 0..self.members.len() {
            let (size, own) = of(at);
            let start = end.next_multiple_of(own);
            offsets.push(start);
            end = start.saturating_add(size);
            align = align.max(own);
        }
        (offsets, end.next_multiple_of(align))
    }

    /// Describes the replacement of the member with this index by a striped counter (a word for each thread, summed by
    /// reads).
    ///
    /// # Errors
    /// A sentence that says why no counter can replace the member.
    pub(crate) fn counter(&self, at: usize, name: String) -> Result<ReplacedMember, String> {
        let member = self.members.get(at).ok_or("no such member")?;
        if !matches!(member.size, 1 | 2 | 4 | 8) {
            return Err(format!("{name} has {} bytes, as no number has", member.size));
        }
        let number = member.number.clone().unwrap_or_default();
        let replacement = Replacement::StripedCounter;
        Ok(ReplacedMember {
            at,
            name,
            replacement,
            ty: String::new(),
            old: String::new(),
            number,
            bytes: member.size,
        })
    }

    /// Describes the move of the struct's member with this index to cache lines of its own, by a change of its type.
    ///
    /// # Errors
    /// "no such member" if the index is out of range.
    pub(crate) fn line(&self, at: usize, name: String) -> Result<ReplacedMember, String> {
        let bytes = self.members.get(at).ok_or("no such member")?.size;
        let replacement = Replacement::CacheLine;
        let (ty, old, number) = (String::new(), String::new(), String::new());
        Ok(ReplacedMember { at, name, replacement, ty, old, number, bytes })
    }

    /// Computes the layout of the struct after the given members have got other types (striped counters, or lines of
    /// their own).
    pub(crate) fn promise(
        &self,
        current: &Layout,
        counters: &[ReplacedMember],
        language: Language,
    ) -> Layout {
        let sizes = |at: usize| match counters.iter().find(|counter| counter.at == at) {
            Some(counter) => counter.size(language),
            None => (self.members[at].size, self.members[at].align),
        };
        let (offsets, size) = self.place(sizes);
        let members = current.members.iter().zip(offsets).enumerate();
        let placed = members.map(|(at, ((name, ..), offset))| (name.clone(), offset * 8, sizes(at).0 * 8));
        Layout { size, members: placed.collect() }
    }
}

/// Returns the name of the integer that a type is; none for other types.
fn number(types: &Types, ty: TypeId) -> Option<String> {
    let Type::Base { name, .. } = types.get(types.strip(ty)) else { return None };
    let name = String::from_utf8_lossy(types.name(name)).into_owned();
    let is_integer = ["int", "long", "short", "unsigned", "char"].iter().any(|word| name.contains(word));
    (is_integer && size_of(types, ty) <= 8).then_some(name)
}

/// Adds the type of a counter above a declaration, if the file does not have it yet.
pub(super) fn declare(
    change: Change,
    counter: &ReplacedMember,
    language: Language,
    path: &Path,
    text: &[u8],
) -> Change {
    let ty = match language {
        Language::C => {
            let is_header = super::place::is_header(path);
            // one count of threads for all units
            let linkage = if is_header { "__attribute__((weak))" } else { "static" };
            guarded(C.replace("LINKAGE", linkage), is_header)
        }
        Language::Cpp => {
            let is_header = super::place::is_header(path);
            guarded(CPP.to_owned(), is_header)
        }
        Language::Rust if counter.replacement == Replacement::CacheLine => RUST_LINE.to_owned(),
        Language::Rust => {
            let number = rust_number(&counter.old).unwrap_or_default();
            RUST.replace("NAME", &counter.ty).replace("ATOMIC", &counter.old).replace("NUMBER", &number)
        }
    };
    let has = |all: &[u8]| all.windows(ty.len()).any(|window| window == ty.as_bytes());
    match has(text) || has(change.text_above().as_bytes()) {
        true => change,
        false => change.with_text_above(ty),
    }
}

/// Puts a type of a header between directives, as another header may have it.
fn guarded(ty: String, is_header: bool) -> String {
    match is_header {
        true => format!(
            "#ifndef STRIPED_COUNTER\n#define STRIPED_COUNTER\n{}#endif\n\n",
            ty.trim_end_matches('\n').to_owned() + "\n"
        ),
        false => ty,
    }
}
