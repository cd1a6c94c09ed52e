//! The first pass over units whose language declares types in namespaces and in other types.

use super::entry::{Entries, Entry, Interest, Step};
use super::found::FoundDie;
use super::hash::{Hash, hash_member};
use super::near::Near;
use super::offset::GlobalDieOffset;
use super::scan::{NameMatcher, Scanner};
use super::scopes::{Class, Declared, FinishedRecord, Name, ScopedKind, Scopes, is_scope, scoped_types};
use super::tags::is_record;
use super::units::Context;
use crate::error::Result;
use gimli::constants::{self, DwTag};
use std::hash::Hasher;
use std::sync::Arc;

/// The scopes of a type, as a text.
type Path = Option<Arc<[u8]>>;

/// Returns the treatment of a DIE in a unit whose records are sought: those in functions only if inner ones
/// are wanted too.
fn interest(tag: DwTag, inner: bool, typedefs: bool) -> Interest {
    match tag {
        constants::DW_TAG_typedef if typedefs => Interest::Read,
        _ if is_record(tag) || is_scope(tag) => Interest::Read,
        constants::DW_TAG_member | constants::DW_TAG_inheritance => Interest::Compare,
        constants::DW_TAG_variant_part | constants::DW_TAG_variant => Interest::Inside,
        constants::DW_TAG_subprogram if inner => Interest::Read,
        _ if inner => Interest::Inside,
        _ => Interest::Leave,
    }
}

impl<'a> Scanner<'_, 'a> {
    /// Finds the records of a unit in namespaces and in other records; those in functions only if the inner
    /// ones are wanted too.
    pub(super) fn scoped_records(&mut self, unit: usize, context: &Context, inner: bool) -> Result<()> {
        let (units, known, typedefs) = (self.units, self.before.known, self.typedefs);
        let mut entry = Entry::default();
        let root = units.place(unit, units.get(unit).header.root_offset());
        let mut entries = Entries::at(units, unit, context, root)?;
        if entries.is_empty() || !entries.read(&mut entry)? || !entry.has_children {
            return Ok(());
        }
        let (scopes, classes) = (Scopes::new(units, unit, context), Vec::new());
        let with_classes = self.before.outlines.is_some();
        let mut walk = Walk { scopes, classes, typedefs: Vec::new(), with_classes };
        // the inner before the outer
        let mut closed = Vec::new();
        let mut leave =
            |left: FinishedRecord<'a>| closed.extend((!known.contains(&left.key)).then_some(left));
        while !entries.is_empty() && entries.depth() > 0 {
            let (place, depth) = (entries.place(), entries.depth());
            walk.scopes.leave(depth, &mut leave);
            match entries.read_as(&mut entry, |tag| interest(tag, inner, typedefs))? {
                Step::End => {}
                Step::Other => walk.pass(entry.tag),
                Step::Wanted => walk.step(&entry, place, depth),
            }
        }
        walk.scopes.leave(0, &mut leave);
        let Walk { mut scopes, classes, typedefs, .. } = walk;
        closed.sort_by_key(|closed| closed.place);
        for FinishedRecord { place, top_level, declared, key } in closed {
            let key = match self.exact {
                true => {
                    let mut hash = Hash::default();
                    hash.write_u64(key.0);
                    hash.write_u64(key.1);
                    self.key_with_content(hash, place)?
                }
                false => key,
            };
            if !self.knows(key) {
                let path = scopes.path_of(declared);
                self.add(FoundDie { unit, place, top_level, path, key, ..FoundDie::default() });
            }
        }
        for Typedef { place, top_level, declared, target } in typedefs {
            let path = scopes.path_of(declared);
            self.add_typedef(FoundDie { unit, place, top_level, path, ..FoundDie::default() }, target)?;
        }
        if let Some(outlines) = self.before.outlines.filter(|_| context.is_cpp()) {
            self.result.classes.add(outlines, units, unit, context, &classes)?;
        }
        Ok(())
    }

    /// Finds in a unit without sought names only what else is collected: the classes that it defines and that
    /// others may declare, and names that are near.
    pub(super) fn without_names(&mut self, unit: usize, context: &Context) -> Result<()> {
        if !context.is_cpp() || self.before.definitions.is_none() {
            let Some(near) = &mut self.result.near else { return Ok(()) };
            // beside C++ there are few others
            let is_mixed = self.before.definitions.is_some_and(|definitions| !definitions.0.is_empty());
            let is_first = self.before.near.is_some_and(Near::is_empty);
            if !near.everywhere && !is_mixed && !is_first {
                near.is_complete = false;
                return Ok(());
            }
        }
        let units = self.units;
        let mut collections = self.collections(context);
        scoped_types(units, unit, context, ScopedKind::Records, |ty, scopes| collections.add(&ty, scopes))
    }

    /// Finds the types of given names, wherever they are.
    pub(super) fn scoped_names(
        &mut self,
        unit: usize,
        context: &Context,
        sought: &NameMatcher<'_>,
    ) -> Result<()> {
        let mut found = Vec::new();
        let units = self.units;
        let mut collections = self.collections(context);
        scoped_types(units, unit, context, ScopedKind::Types, |ty, scopes| {
            collections.add(&ty, scopes);
            let name = ty.declared.name.and_then(|name| scopes.string(Name::Stored(name)));
            let Some(name) = name.filter(|name| !ty.is_declaration && sought.may_be(name)) else { return };
            let path = scopes.path_of(ty.declared);
            if let Some(index) = sought.find(path.as_deref().unwrap_or_default(), name) {
                let (place, top_level) = (ty.place, ty.depth == 1);
                found.push((index, FoundDie { unit, place, top_level, path, ..FoundDie::default() }));
            }
        })?;
        self.add_named(sought, found)
    }

    /// Finds the records that other units can mean and that patterns match.
    pub(super) fn scoped_matches(
        &mut self,
        unit: usize,
        context: &Context,
        sought: &NameMatcher<'_>,
    ) -> Result<()> {
        let mut found = Vec::new();
        let units = self.units;
        let which = if self.typedefs { ScopedKind::RecordsAndTypedefs } else { ScopedKind::Records };
        let mut collections = self.collections(context);
        // the scopes of the type before: most have the same
        let mut last: Option<(Option<usize>, Path)> = None;
        let mut buffer = Vec::new();
        let mut typedefs = Vec::new();
        scoped_types(units, unit, context, which, |ty, scopes| {
            if ty.is_declaration || !ty.is_record && ty.typedef_of.is_none() {
                return;
            }
            if ty.is_record {
                collections.add(&ty, scopes);
            }
            let name = ty.declared.name.and_then(|name| scopes.string(Name::Stored(name)));
            let Some(name) = name else { return };
            // of Zig's names it depends on the name if its path is known
            let shared = last.take().filter(|(outer, _)| {
                *outer == ty.declared.outer && outer.is_some() && scopes.separator == b"::"
            });
            let path = shared.map_or_else(|| scopes.path_of(ty.declared), |(_, path)| path);
            let scoped = path.as_deref().unwrap_or_default();
            let is_wanted = sought.matches(name)
                || !scoped.is_empty() && sought.matches_in(scoped, scopes.separator, name, &mut buffer)
                || sought.may_be(name) && sought.find(scoped, name).is_some();
            if is_wanted {
                let (place, top_level) = (ty.place, ty.depth == 1);
                let one = FoundDie { unit, place, top_level, path: path.clone(), ..FoundDie::default() };
                match ty.is_record {
                    true => found.push((0, one)),
                    false => typedefs.push((one, ty.typedef_of)),
                }
            }
            last = Some((ty.declared.outer, path));
        })?;
        self.add_named(sought, found)?;
        typedefs.into_iter().try_for_each(|(found, target)| self.add_typedef(found, target))
    }

    /// Adds types with what tells them from others of their names.
    fn add_named(&mut self, sought: &NameMatcher<'_>, found: Vec<(usize, FoundDie)>) -> Result<()> {
        for (index, found) in found {
            let path = found.path.as_deref().unwrap_or_default();
            let key = self.key_of_named(sought, index, path, (found.unit, found.place))?;
            self.add(FoundDie { name: index as u32, key, ..found });
        }
        Ok(())
    }
}

/// A typedef, and where it is declared.
struct Typedef<'a> {
    place: GlobalDieOffset,
    top_level: bool,
    declared: Declared<'a>,
    target: Option<GlobalDieOffset>,
}

/// A walk over the records of a unit.
struct Walk<'u, 'a> {
    scopes: Scopes<'u, 'a>,
    // those that other units can mean, by place
    classes: Vec<Class>,
    typedefs: Vec<Typedef<'a>>,
    with_classes: bool,
}

impl<'a> Walk<'_, 'a> {
    /// Notes a variant part in the innermost scope; nothing is noted of other DIEs here.
    fn pass(&mut self, tag: DwTag) {
        if tag == constants::DW_TAG_variant_part
            && let Some(last) = self.scopes.open.last_mut()
        {
            last.variants = true;
        }
    }

    fn step(&mut self, entry: &Entry<'a>, place: GlobalDieOffset, depth: isize) {
        if is_record(entry.tag) {
            self.open_record(entry, place, depth);
        } else if matches!(entry.tag, constants::DW_TAG_member | constants::DW_TAG_inheritance) {
            // also those of variants, which are deeper
            let Scopes { units, unit, context, ref mut open, .. } = self.scopes;
            if let Some((_, hash)) = open.iter_mut().rev().find_map(|open| open.record.as_mut()) {
                hash_member(units, unit, context, &entry.traits, hash);
            }
        } else if entry.tag == constants::DW_TAG_typedef {
            let (declared, _) = self.scopes.declare(entry, place);
            let target = entry.target(self.scopes.units, self.scopes.unit, constants::DW_AT_type);
            self.typedefs.push(Typedef { place, top_level: depth == 1, declared, target });
        } else if entry.has_children {
            self.scopes.enter_namespace(entry, depth);
        }
    }

    /// Enters the scope of a record, and starts its hash if the record is wanted.
    fn open_record(&mut self, entry: &Entry<'a>, place: GlobalDieOffset, depth: isize) {
        let scopes = &mut self.scopes;
        let (declared, is_declaration) = scopes.declare(entry, place);
        let current = scopes.current();
        let (mut hash, named) = scopes.hash(declared.outer, declared.name);
        let key = hash.key();
        let name = declared.name.filter(|_| named);
        if named && self.with_classes && !scopes.is_private(declared.outer) {
            self.classes.push(Class { place, key, is_declaration });
        }
        let is_held = scopes.open.last().is_some_and(|open| open.variants);
        let record = (named && !is_declaration && !is_held).then(|| {
            entry.hash_numbers(&[constants::DW_AT_byte_size], &mut hash);
            (FinishedRecord { place, top_level: depth == 1, declared, key }, hash)
        });
        let inside = if declared.outer == current { key } else { scopes.hash(current, name).0.key() };
        scopes.enter(depth, name.map(Name::Stored), inside, record);
    }
}
