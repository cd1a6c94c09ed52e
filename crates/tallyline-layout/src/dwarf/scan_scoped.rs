//! The first pass over units whose language declares types in namespaces and in other types.

use super::entry::{Entries, Entry, Step};
use super::scan::{Found, Hash, Scanner, Sought, hash_member, is_named_type, is_record};
use super::units::{Context, Place, Units};
use crate::error::Result;
use crate::model::Language;
use gimli::constants::{self, DwTag};
use rustc_hash::FxHashMap;
use std::hash::Hasher;
use std::sync::Arc;

/// What stands in a path for a namespace without a name.
pub(super) const ANONYMOUS: &[u8] = b"(anonymous namespace)";

/// The most bytes of a path: real ones stay below a thousand.
const PATH_LIMIT: usize = 16 << 10;

/// Records that were declared so far: their scopes and names.
type Declared<'a> = FxHashMap<Place, (Option<Arc<[u8]>>, &'a [u8])>;

/// Something with children that is being looked at.
struct Open {
    depth: isize,
    /// How long the path was before it.
    path: usize,
    /// A record that is wanted, with what is known of it so far.
    record: Option<(Found, Hash)>,
    /// Records inside are what its variants hold.
    variants: bool,
}

/// Where in the nesting the walk is.
struct Scopes {
    open: Vec<Open>,
    path: Vec<u8>,
    separator: &'static [u8],
    // the path as it was last shared
    shared: Option<Arc<[u8]>>,
    // records that were left, the inner before the outer
    closed: Vec<Found>,
}

impl Scopes {
    fn new(language: u64) -> Scopes {
        let separator = Language(u16::try_from(language).unwrap_or(0)).separator();
        Scopes { open: Vec::new(), path: Vec::new(), separator, shared: None, closed: Vec::new() }
    }

    /// Goes into an entry; without a name it adds nothing to the path.
    fn enter(&mut self, depth: isize, name: Option<&[u8]>, record: Option<(Found, Hash)>) {
        self.open.push(Open { depth, path: self.path.len(), record, variants: false });
        if let Some(name) = name.filter(|name| self.path.len() + name.len() < PATH_LIMIT) {
            let rest = self.after_path(name);
            if !self.path.is_empty() && rest.is_none() {
                self.path.extend_from_slice(self.separator);
            }
            self.path.extend_from_slice(rest.unwrap_or(name));
        }
    }

    /// What follows the path in a name that has it: Zig's own backend writes names with their scopes.
    fn after_path<'n>(&self, name: &'n [u8]) -> Option<&'n [u8]> {
        let rest = name.strip_prefix(&self.path[..]).filter(|_| self.separator == b".");
        rest.filter(|rest| !self.path.is_empty() && (rest.is_empty() || rest.starts_with(b".")))
    }

    /// The scopes that a type is declared in, unless its name has them.
    fn share_for(&mut self, name: Option<&[u8]>) -> Option<Arc<[u8]>> {
        match name.and_then(|name| self.after_path(name)) {
            Some(_) => None,
            None => self.share(),
        }
    }

    /// Leaves what does not go on at this depth.
    fn leave(&mut self, depth: isize) {
        while let Some(left) = self.open.pop_if(|open| open.depth >= depth) {
            self.path.truncate(left.path);
            if let Some((found, hash)) = left.record {
                self.closed.push(Found { key: hash.key(), ..found });
            }
        }
    }

    /// The innermost record that is wanted, as far as it is known.
    fn record(&mut self) -> Option<&mut Hash> {
        self.open.iter_mut().rev().find_map(|open| open.record.as_mut()).map(|(_, hash)| hash)
    }

    fn share(&mut self) -> Option<Arc<[u8]>> {
        if self.path.is_empty() {
            return None;
        }
        match &self.shared {
            Some(shared) if **shared == *self.path => {}
            _ => self.shared = Some(self.path.as_slice().into()),
        }
        self.shared.clone()
    }
}

fn is_scope(tag: DwTag) -> bool {
    matches!(tag, constants::DW_TAG_namespace | constants::DW_TAG_module)
}

fn is_part(tag: DwTag) -> bool {
    matches!(tag, constants::DW_TAG_member | constants::DW_TAG_inheritance)
}

impl<'a> Scanner<'_, 'a> {
    /// The records of a unit in namespaces and in other records; those in functions only if the
    /// inner ones are wanted too.
    pub(super) fn scoped_records(&mut self, unit: usize, context: &Context, inner: bool) -> Result<()> {
        let mut entry = Entry::default();
        let root = self.units.place(unit, self.units.get(unit).header.root_offset());
        let mut entries = Entries::at(self.units, unit, context, root)?;
        if entries.is_empty() || !entries.read(&mut entry)? || !entry.has_children {
            return Ok(());
        }
        let mut scopes = Scopes::new(context.language);
        let mut declared = Declared::default();
        let wanted = |tag| {
            is_record(tag) || is_scope(tag) || is_part(tag) || inner && tag == constants::DW_TAG_subprogram
        };
        while !entries.is_empty() && entries.depth() > 0 {
            let (place, depth) = (entries.place(), entries.depth());
            scopes.leave(depth);
            let step = entries.read_if(&mut entry, wanted)?;
            let tag = entry.tag;
            match step {
                Step::End => {}
                Step::Other if tag == constants::DW_TAG_variant_part => {
                    if let Some(last) = scopes.open.last_mut() {
                        last.variants = true;
                    }
                }
                Step::Other if tag == constants::DW_TAG_variant || inner => {}
                Step::Other => entries.skip_children(&mut entry, context)?,
                Step::Wanted if is_part(tag) => {
                    // also those of variants, which are deeper
                    if let Some(hash) = scopes.record() {
                        hash_member(self.units, unit, context, &entry, hash);
                    }
                }
                Step::Wanted if is_record(tag) => {
                    let found = Found { unit, place, top_level: depth == 1, ..Found::default() };
                    self.open_record(context, (found, depth), &entry, &mut scopes, &mut declared);
                }
                Step::Wanted if entry.has_children => {
                    let name = self.name(unit, context, &entry);
                    let anonymous = is_scope(tag).then_some(ANONYMOUS);
                    scopes.enter(depth, name.or(anonymous), None);
                }
                Step::Wanted => {}
            }
        }
        scopes.leave(0);
        scopes.closed.sort_by_key(|found| found.place);
        scopes.closed.into_iter().for_each(|found| self.add(found));
        Ok(())
    }

    /// Goes into a record, and finds out whether it is wanted.
    fn open_record(
        &self,
        context: &Context,
        (found, depth): (Found, isize),
        entry: &Entry<'a>,
        scopes: &mut Scopes,
        declared: &mut Declared<'a>,
    ) {
        let (unit, place) = (found.unit, found.place);
        let mut name = self.name(unit, context, entry);
        let mut path = scopes.share_for(name);
        let is_declaration =
            entry.flag(constants::DW_AT_declaration) || entry.has(constants::DW_AT_signature);
        if is_declaration && let Some(name) = name {
            declared.insert(place, (path.clone(), name));
        }
        // declared in its scope, and defined somewhere else
        let specified = entry.target(self.units, unit, constants::DW_AT_specification);
        if let Some((there, its_name)) = specified.and_then(|place| declared.get(&place)) {
            path = there.clone();
            name = name.or(Some(its_name));
        }
        let is_held = scopes.open.last().is_some_and(|open| open.variants);
        let record = match name {
            Some(name) if !is_declaration && !is_held => {
                let mut hash = Hash::default();
                hash.write(name);
                if let Some(path) = &path {
                    hash.write(path);
                }
                entry.hash_numbers(&[constants::DW_AT_byte_size], &mut hash);
                Some((Found { path, ..found }, hash))
            }
            _ => None,
        };
        scopes.enter(depth, name, record);
    }

    /// The types of given names, wherever they are.
    pub(super) fn scoped_names(&mut self, unit: usize, context: &Context, sought: &Sought<'_>) -> Result<()> {
        let mut found = Vec::new();
        scoped_types(self.units, unit, context, Which::Types, |ty| {
            if !ty.is_declaration
                && let Some(index) = sought.find(ty.path.as_deref().unwrap_or_default(), ty.name)
            {
                // the first of each name is the one that is shown
                let key = (index as u64, 0);
                let Scoped { place, path, depth, .. } = ty;
                found.push(Found { unit, place, top_level: depth == 1, path, key, ..Found::default() });
            }
        })?;
        found.into_iter().for_each(|found| self.add(found));
        Ok(())
    }
}

/// A type with a name, and where it is declared.
pub(super) struct Scoped<'a> {
    pub(super) place: Place,
    depth: isize,
    pub(super) name: &'a [u8],
    pub(super) path: Option<Arc<[u8]>>,
    pub(super) is_declaration: bool,
}

/// Which types are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All, also those inside of functions.
    Types,
    /// Records that other units can mean.
    Records,
}

/// Goes over the types of a unit that have a name.
pub(super) fn scoped_types<'a>(
    units: &Units<'a>,
    unit: usize,
    context: &Context,
    which: Which,
    mut each: impl FnMut(Scoped<'a>),
) -> Result<()> {
    let mut entry = Entry::default();
    let root = units.place(unit, units.get(unit).header.root_offset());
    let mut entries = Entries::at(units, unit, context, root)?;
    let mut scopes = Scopes::new(context.language);
    let mut declared = Declared::default();
    while !entries.is_empty() {
        let (place, depth) = (entries.place(), entries.depth());
        scopes.leave(depth);
        let wanted =
            |tag| is_scope(tag) || if which == Which::Records { is_record(tag) } else { is_named_type(tag) };
        match entries.read_if(&mut entry, wanted)? {
            Step::Wanted => {}
            Step::Other if depth > 0 && which == Which::Records => {
                entries.skip_children(&mut entry, context)?;
                continue;
            }
            Step::Other | Step::End => continue,
        }
        let mut name = entry.string(units, unit, context, constants::DW_AT_name);
        let mut path = scopes.share_for(name);
        let is_declaration =
            entry.flag(constants::DW_AT_declaration) || entry.has(constants::DW_AT_signature);
        if is_declaration && let Some(name) = name {
            declared.insert(place, (path.clone(), name));
        }
        let specified = entry.target(units, unit, constants::DW_AT_specification);
        if let Some((there, its_name)) = specified.and_then(|place| declared.get(&place)) {
            path = Option::clone(there);
            name = name.or(Some(its_name));
        }
        if let Some(name) = name.filter(|_| !is_scope(entry.tag)) {
            each(Scoped { place, depth, name, path, is_declaration });
        }
        if entry.has_children {
            let anonymous = is_scope(entry.tag).then_some(ANONYMOUS);
            scopes.enter(depth, name.or(anonymous), None);
        }
    }
    Ok(())
}
