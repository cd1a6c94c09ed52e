//! Differences between the layouts of two files.
//!
//! Types are found by their names, with the scopes that they are declared in. Where a name repeats,
//! those that are the same go together first, then those of the same file and unit, then the rest in
//! order: by the places and sizes of definitions, not by that of units in the file.
//! One type is compared after the other, so no more is kept than one type's differences.

mod causes;
mod matching;
mod members;

pub use causes::causes;
pub use members::{MemberChange, MemberLocation};

use crate::query::holes;
use matching::Pairs;
use tallyline_debuginfo::lookup::Definitions;
use tallyline_debuginfo::model::{RecordId, TypeId, Types};

/// The options of a comparison of the type layouts in two files: the size of a cache line, the types to compare or to
/// leave out, and the report of members that changed only their type.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// The size of a cache line in bytes.
    pub cacheline: u64,
    /// Names or patterns of the types; every type if there are none.
    pub only: Vec<String>,
    /// Names or patterns of types that are left out.
    pub except: Vec<String>,
    /// Also report members that changed only their type, and not their place.
    pub types: bool,
}

impl Default for DiffOptions {
    fn default() -> DiffOptions {
        DiffOptions { cacheline: 64, only: Vec::new(), except: Vec::new(), types: false }
    }
}

/// The layout of a type in one of two compared files in numbers: size, cache lines, holes, padding, members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub(crate) size: u64,
    pub(crate) lines: u64,
    pub(crate) holes: u64,
    pub(crate) hole_bytes: u64,
    pub(crate) padding: u64,
    pub(crate) members: u64,
    pub(crate) declared_at: Option<(String, u32)>,
}

impl Shape {
    /// Returns the type's size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the number of cache lines that the type spans if it starts on one.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns the number of holes between the type's members; unused bits of bitfields do not count.
    pub fn holes(&self) -> u64 {
        self.holes
    }

    /// Returns the number of unused bytes in the holes between the type's members.
    pub fn hole_bytes(&self) -> u64 {
        self.hole_bytes
    }

    /// Returns the number of unused bytes after the type's last member.
    pub fn padding(&self) -> u64 {
        self.padding
    }

    /// Returns the number of the type's members; an anonymous struct or union counts as one.
    pub fn members(&self) -> u64 {
        self.members
    }

    /// Returns the file and line of the type's declaration; `None` if they are unknown.
    pub fn declared_at(&self) -> Option<&(String, u32)> {
        self.declared_at.as_ref()
    }
}

/// The difference of a type between two compared files: its layout in each, and the changes of its members.
#[derive(Clone, Debug)]
pub struct TypeChange {
    pub(crate) name: String,
    pub(crate) keyword: &'static str,
    pub(crate) old: Option<Shape>,
    pub(crate) new: Option<Shape>,
    pub(crate) members: Vec<MemberChange>,
}

impl TypeChange {
    /// Returns the name of the changed type.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the keyword that declares the changed type: `struct`, `class`, `interface` or `union`.
    pub fn keyword(&self) -> &'static str {
        self.keyword
    }

    /// Returns the type's layout in the old file; `None` if the type was added.
    pub fn before(&self) -> Option<&Shape> {
        self.old.as_ref()
    }

    /// Returns the type's layout in the new file; `None` if the type was removed.
    pub fn after(&self) -> Option<&Shape> {
        self.new.as_ref()
    }

    /// Returns the changes of the type's members, in the order of the new file; removed members come last.
    pub fn members(&self) -> &[MemberChange] {
        &self.members
    }
}

/// The numbers of types that differ between two files: added, removed, grown, shrunk, or changed at equal size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of types that are only in the new file.
    pub added: u64,
    /// The number of types that are only in the old file.
    pub removed: u64,
    /// The number of types that are larger in the new file.
    pub grown: u64,
    /// The number of types that are smaller in the new file.
    pub shrunk: u64,
    /// The number of types that have equal sizes in both files, but changed members.
    pub rearranged: u64,
    /// The number of types with a member on another cache line than before.
    pub across_lines: u64,
    /// The number of unchanged types.
    pub same: u64,
}

impl Counts {
    /// Returns `true` if at least one type differs between the files.
    pub fn differ(&self) -> bool {
        self.added + self.removed + self.grown + self.shrunk + self.rearranged != 0
    }
}

impl TypeChange {
    /// Returns the type's new size minus its old size in bytes; a type missing in one file counts as size 0 there.
    pub fn growth(&self) -> i128 {
        let size = |shape: &Option<Shape>| shape.as_ref().map_or(0, |shape| i128::from(shape.size));
        size(&self.new) - size(&self.old)
    }

    fn count(&self, counts: &mut Counts) {
        let growth = self.growth();
        *match (&self.old, &self.new) {
            (None, _) => &mut counts.added,
            (_, None) => &mut counts.removed,
            _ if growth > 0 => &mut counts.grown,
            _ if growth < 0 => &mut counts.shrunk,
            _ => &mut counts.rearranged,
        } += 1;
        counts.across_lines += u64::from(self.members.iter().any(MemberChange::changes_line));
    }
}

/// Compares the types of two files and calls `each` with every difference, in the order of the new file's declarations,
/// then removed types. Returns the numbers of differences; stops at the closure's first error.
pub fn diff<E>(
    old: &Types,
    new: &Types,
    options: &DiffOptions,
    mut each: impl FnMut(&TypeChange) -> Result<(), E>,
) -> Result<Counts, E> {
    let mut counts = Counts::default();
    let pairs = Pairs::new(old, new, options);
    for (before, after) in pairs.iter() {
        let change = compare(old, new, before, after, options);
        match change {
            Some(change) => {
                change.count(&mut counts);
                each(&change)?;
            }
            None => counts.same += 1,
        }
    }
    Ok(counts)
}

/// Returns the names and patterns of the types to compare that no type of either file has.
pub fn missing<'o>(old: &Types, new: &Types, options: &'o DiffOptions) -> Vec<&'o str> {
    let mut definitions = [Definitions::new(old), Definitions::new(new)];
    let mut is_missing = |name: &str| definitions.iter_mut().all(|all| all.records_called(name).is_empty());
    options.only.iter().map(String::as_str).filter(|name| is_missing(name)).collect()
}

/// A type of one of the files.
type Of = Option<(TypeId, RecordId)>;

fn compare(old: &Types, new: &Types, before: Of, after: Of, options: &DiffOptions) -> Option<TypeChange> {
    let line = options.cacheline.max(1);
    let members = match (before, after) {
        (Some((_, before)), Some((_, after))) => {
            let found = members::compare(old, new, before, after, options.types, line);
            if found.is_empty() && old.record(before).size == new.record(after).size {
                return None;
            }
            found
        }
        _ => Vec::new(),
    };
    let (types, (id, record)) = after.map(|of| (new, of)).or(before.map(|of| (old, of)))?;
    Some(TypeChange {
        name: String::from_utf8_lossy(&types.qualified_name(id)).into_owned(),
        keyword: tallyline_debuginfo::keyword(types.record(record)),
        old: before.map(|(_, record)| shape(old, record, line)),
        new: after.map(|(_, record)| shape(new, record, line)),
        members,
    })
}

fn shape(types: &Types, id: RecordId, line: u64) -> Shape {
    let record = types.record(id);
    let found = holes(types, record);
    let at = record.declared_at;
    let file = || String::from_utf8_lossy(types.name(at.file)).into_owned();
    Shape {
        size: record.size,
        lines: record.size.div_ceil(line),
        holes: found.bytes.len() as u64,
        hole_bytes: found.bytes.iter().fold(0, |sum: u64, hole| sum.saturating_add(hole.bytes)),
        padding: found.padding,
        members: types.members(record).iter().filter(|member| member.is_placed()).count() as u64,
        declared_at: (at.file.is_some() && at.line != 0).then(|| (file(), at.line)),
    }
}
