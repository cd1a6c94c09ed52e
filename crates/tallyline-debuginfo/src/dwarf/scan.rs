//! The first pass: which entries define the wanted types.

use super::contents::Contents;
use super::definitions::Definitions;
use super::entry::{Entries, Entry, Interest, Step};
use super::found::FoundDie;
use super::hash::{Hash, hash_member};
use super::near::{Collections, Near};
use super::offset::GlobalDieOffset;
use super::outlines::{Outlines, UnitClasses};
use super::position::Files;
use super::presence::Presence;
use super::scopes::Class;
use super::tags::{is_named_type, is_record};
use super::units::{Context, Units};
use crate::error::Result;
use crate::lookup::fits;
use crate::lookup::naming::{canonical, endings, is_called, packaged, stem};
use crate::{Request, UnitFilter, Wanted};
use gimli::constants::{self, DwTag};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map;
use std::hash::Hasher;

/// The names that are sought, by what the names of entries have to be.
pub(super) struct NameMatcher<'n> {
    names: &'n [Vec<u8>],
    // if the names are patterns, too: each with what stands before its first wildcard
    patterns: Vec<(&'n [u8], &'n [u8])>,
    by_ending: FxHashMap<Vec<u8>, Vec<usize>>,
    // of the endings, what stands before the arguments of a template: in that spellings do not differ
    stems: FxHashSet<Vec<u8>>,
    /// `true` if one type of each name is enough.
    pub(super) first: bool,
}

impl<'n> NameMatcher<'n> {
    fn new(wanted: &'n Wanted) -> NameMatcher<'n> {
        let (names, first): (&[Vec<u8>], bool) = match wanted {
            Wanted::Named(names) | Wanted::Matching(names) => (names, false),
            Wanted::First(names) => (names, true),
            Wanted::Records | Wanted::Enumerator(_) => (&[], false),
        };
        let patterns = match wanted {
            Wanted::Matching(patterns) => {
                patterns.iter().map(|pattern| (&pattern[..], head(pattern))).collect()
            }
            _ => Vec::new(),
        };
        let mut by_ending: FxHashMap<Vec<u8>, Vec<usize>> = FxHashMap::default();
        for (index, name) in names.iter().enumerate() {
            for ending in endings(&canonical(name)) {
                by_ending.entry(ending.to_vec()).or_default().push(index);
            }
        }
        let stems = by_ending.keys().map(|ending| stem(ending).to_vec()).collect();
        NameMatcher { names, patterns, by_ending, stems, first }
    }

    /// Returns `true` if a DIE of this name may be wanted, in any scope.
    pub(super) fn may_be(&self, name: &[u8]) -> bool {
        self.stems.contains(&*canonical(stem(name))) && self.by_ending.contains_key(&*canonical(name))
            || packaged(name).any(|name| self.by_ending.contains_key(&*canonical(name)))
    }

    /// Returns the index of the wanted name that is a DIE's.
    pub(super) fn find(&self, path: &[u8], name: &[u8]) -> Option<usize> {
        let own = self.stems.contains(&*canonical(stem(name))).then(|| self.by_ending.get(&*canonical(name)));
        let packaged = packaged(name).map(|name| self.by_ending.get(&*canonical(name)));
        let mut candidates = own.into_iter().chain(packaged).flatten().flatten().copied();
        candidates.find(|index| is_called(&self.names[*index], path, name))
    }

    /// Returns `true` if a pattern matches a name without its scopes.
    pub(super) fn matches(&self, name: &[u8]) -> bool {
        self.patterns.iter().any(|(pattern, _)| fits(pattern, name))
    }

    /// Returns `true` if a pattern matches a name with its scopes; `buffer` is for the text.
    pub(super) fn matches_in(
        &self,
        path: &[u8],
        separator: &[u8],
        name: &[u8],
        buffer: &mut Vec<u8>,
    ) -> bool {
        let may_match = |head: &[u8]| match head.len() <= path.len() {
            true => path.starts_with(head),
            false => head.starts_with(path),
        };
        let mut patterns = self.patterns.iter().filter(|(_, head)| may_match(head)).peekable();
        if patterns.peek().is_none() {
            return false;
        }
        buffer.clear();
        [path, separator, name].iter().for_each(|part| buffer.extend_from_slice(part));
        patterns.any(|(pattern, _)| fits(pattern, buffer))
    }
}

/// Returns the part of a pattern that all names have which it matches.
fn head(pattern: &[u8]) -> &[u8] {
    let end = pattern.iter().position(|letter| matches!(letter, b'*' | b'?'));
    &pattern[..end.unwrap_or(pattern.len())]
}

/// The largest number of units that a worker takes at a time: what they repeat is found once.
const BATCH: usize = 16;

/// The types that are known: what tells them from others.
pub(super) type KnownKeys = FxHashSet<(u64, u64)>;

/// The result of a scan.
#[derive(Default)]
pub(super) struct Scanned {
    /// The wanted types, in the order of the file.
    pub(super) found: Vec<FoundDie>,
    /// The classes of C++ that were met, where they were asked for.
    pub(super) classes: UnitClasses,
    /// The definitions of C++ classes that were not known before, if they were asked for.
    pub(super) defined: Vec<Class>,
    /// The offsets at which units have the names of their compilers.
    pub(super) producers: FxHashSet<usize>,
    /// The names that are near to the one that is sought, if they are collected.
    pub(super) near: Option<Near>,
}

/// The types and names that are known from units that were scanned before.
#[derive(Clone, Copy)]
pub(super) struct PriorScan<'k> {
    /// The types: what tells them from others.
    pub(super) known: &'k KnownKeys,
    /// The classes of C++, if more are to be found.
    pub(super) outlines: Option<&'k Outlines>,
    /// The definitions of C++ classes, if more are to be added.
    pub(super) definitions: Option<&'k Definitions>,
    /// The filter of units by the wanted names.
    pub(super) presence: Option<&'k Presence>,
    /// The names that are near to the one that is sought, if more are to be collected.
    pub(super) near: Option<&'k Near>,
}

/// Finds the wanted types that are not known yet, in the order of the file, equal ones once.
pub(super) fn scan(units: &Units<'_>, request: &Request, before: PriorScan<'_>) -> Result<Scanned> {
    let wanted = &request.wanted;
    let mut seen: FxHashMap<(u64, u64), usize> = FxHashMap::default();
    let mut all = Scanned::default();
    let order = units.order();
    let mut next = 0;
    // names may all be found in the first units, so these are looked at first
    let mut step = match wanted {
        Wanted::Records | Wanted::Matching(_) | Wanted::Enumerator(_) | Wanted::Named(_) => order.len(),
        Wanted::First(_) => BATCH * rayon::current_num_threads(),
    };
    while next < order.len() && !wanted.is_complete(seen.len()) {
        let end = next.saturating_add(step).min(order.len());
        for part in scan_units(units, &order[next..end], request, before)? {
            all.classes.append(part.classes);
            all.defined.extend(part.defined);
            all.producers.extend(part.producers);
            match (&mut all.near, part.near) {
                (Some(near), Some(more)) => near.append(more),
                (near, more) => *near = near.take().or(more),
            }
            for more in part.found {
                match seen.entry(more.key) {
                    hash_map::Entry::Occupied(known) => {
                        let known: &mut FoundDie = &mut all.found[*known.get()];
                        known.definitions = known.definitions.saturating_add(more.definitions);
                    }
                    hash_map::Entry::Vacant(new) => {
                        new.insert(all.found.len());
                        all.found.push(more);
                    }
                }
            }
        }
        next = end;
        step = step.saturating_mul(2);
    }
    all.found.shrink_to_fit();
    Ok(all)
}

fn scan_units(
    units: &Units<'_>,
    indices: &[usize],
    request: &Request,
    before: PriorScan<'_>,
) -> Result<Vec<Scanned>> {
    let sought = NameMatcher::new(&request.wanted);
    let budget = Contents::budget_of(units);
    // a window may have few
    let batch = (indices.len() / (rayon::current_num_threads() * 4)).clamp(1, BATCH);
    let batches = indices.par_chunks(batch).map(|batch| {
        let contents = Contents::new(units, &budget);
        let near = before.near.map(Near::fork);
        let (result, seen) = (Scanned { near, ..Scanned::default() }, FxHashMap::default());
        let files = (request.each_place && request.positions).then(Vec::new);
        let mut scanner = Scanner {
            units,
            before,
            result,
            seen,
            contents,
            exact: request.exact,
            typedefs: request.typedefs,
            files,
        };
        for unit in batch {
            let context = units.context(*unit)?;
            if !request.units.is_everything() && !scanner.accepts(*unit, &context, &request.units)? {
                continue;
            }
            scanner.result.producers.extend(context.producer);
            let scoped = context.has_scopes();
            match &request.wanted {
                Wanted::Records if scoped && !request.anonymous => {
                    scanner.scoped_records(*unit, &context, request.inner)?;
                }
                Wanted::Records if request.inner || request.anonymous => {
                    scanner.all_records(*unit, &context, request)?;
                }
                Wanted::Records => scanner.records(*unit, &context, None)?,
                Wanted::Matching(_) if scoped => scanner.scoped_matches(*unit, &context, &sought)?,
                Wanted::Matching(_) => scanner.records(*unit, &context, Some(&sought))?,
                Wanted::Enumerator(name) => scanner.enumerations(*unit, &context, name)?,
                Wanted::Named(_) | Wanted::First(_) if !scanner.may_have(*unit, &context) => {
                    scanner.without_names(*unit, &context)?;
                }
                Wanted::Named(_) | Wanted::First(_) if scoped => {
                    scanner.scoped_names(*unit, &context, &sought)?
                }
                Wanted::Named(_) | Wanted::First(_) => scanner.named(*unit, &context, &sought)?,
            }
        }
        Ok(scanner.result)
    });
    batches.collect()
}

pub(super) struct Scanner<'u, 'a> {
    pub(super) units: &'u Units<'a>,
    pub(super) before: PriorScan<'u>,
    pub(super) result: Scanned,
    seen: FxHashMap<(u64, u64), usize>,
    contents: Contents<'u, 'a>,
    // whether records are also told apart by the types of their members
    pub(super) exact: bool,
    // the last unit's table of files; none if places tell no types apart
    files: Option<Vec<(usize, Option<Files<'a>>)>>,
    // whether records are also found by the typedefs that name them
    pub(super) typedefs: bool,
}

impl<'u, 'a> Scanner<'u, 'a> {
    /// Returns `true` if the filter accepts a unit, by its name and language.
    fn accepts(&self, unit: usize, context: &Context, filter: &UnitFilter) -> Result<bool> {
        let about = self.units.about(unit, context)?;
        Ok(filter.accepts(about.name.unwrap_or_default(), about.language))
    }

    /// Returns `true` if a unit may have types of the sought names.
    fn may_have(&self, unit: usize, context: &Context) -> bool {
        let Some(presence) = self.before.presence else { return true };
        let header = &self.units.get(unit).header;
        let Ok(entries) = header.range_from(header.root_offset()..) else { return true };
        // the patterns are offsets of 32 bits
        let is_searchable = header.format().word_size() == 4 && context.abbreviations.store_names_plainly();
        !is_searchable || presence.may_be_in(entries.slice())
    }

    /// Returns the collections that the types of a unit are added to.
    pub(super) fn collections(&mut self, context: &Context) -> Collections<'_> {
        Collections {
            definitions: self.before.definitions.filter(|_| context.is_cpp()),
            defined: &mut self.result.defined,
            earlier: self.before.near,
            near: self.result.near.as_mut(),
        }
    }

    /// Returns `true` if a type with this key is known; counts the definition if the type is one that this scan found.
    pub(super) fn knows(&mut self, key: (u64, u64)) -> bool {
        if let Some(index) = self.seen.get(&key) {
            let found = &mut self.result.found[*index];
            found.definitions = found.definitions.saturating_add(1);
            return true;
        }
        self.before.known.contains(&key)
    }

    /// Finds the named records at the top of a unit: all, or those that are sought.
    fn records(&mut self, unit: usize, context: &Context, sought: Option<&NameMatcher<'_>>) -> Result<()> {
        let mut entry = Entry::default();
        let root = self.units.place(unit, self.units.get(unit).header.root_offset());
        let mut entries = Entries::at(self.units, unit, context, root)?;
        if entries.is_empty() || !entries.read(&mut entry)? || !entry.has_children {
            return Ok(());
        }
        let typedefs = self.typedefs;
        let interest = |tag| match tag {
            _ if is_record(tag) => Interest::Read,
            constants::DW_TAG_typedef if typedefs => Interest::Read,
            // what a module of Fortran declares is as global as anything can be there
            constants::DW_TAG_module => Interest::Inside,
            _ => Interest::Leave,
        };
        while !entries.is_empty() && entries.depth() > 0 {
            let place = entries.place();
            if entries.read_as(&mut entry, interest)? != Step::Wanted {
                continue;
            }
            if !entry.has(constants::DW_AT_name) {
                entries.skip_children(&mut entry)?;
                continue;
            }
            if entry.tag == constants::DW_TAG_typedef {
                let name = self.name(unit, context, &entry).unwrap_or_default();
                let is_wanted =
                    |sought: &NameMatcher<'_>| sought.matches(name) || sought.find(b"", name).is_some();
                if sought.is_none_or(is_wanted) {
                    let target = entry.target(self.units, unit, constants::DW_AT_type);
                    self.add_typedef(FoundDie { unit, place, ..FoundDie::default() }, target)?;
                }
                entries.skip_children(&mut entry)?;
                continue;
            }
            if let Some(sought) = sought {
                let name = self.name(unit, context, &entry).unwrap_or_default();
                let declared =
                    entry.flag(constants::DW_AT_declaration) || entry.has(constants::DW_AT_signature);
                let is_wanted = !declared && (sought.matches(name) || sought.find(b"", name).is_some());
                entries.skip_children(&mut entry)?;
                if is_wanted {
                    let key = self.key_of_named(sought, 0, b"", (unit, place))?;
                    self.add(FoundDie { unit, place, key, ..FoundDie::default() });
                }
                continue;
            }
            let found = self.record(unit, context, place, &mut entries, &mut entry)?;
            if let Some(found) = found.filter(|found| found.named) {
                self.add(found);
            }
        }
        Ok(())
    }

    pub(super) fn record(
        &mut self,
        unit: usize,
        context: &'_ Context,
        place: GlobalDieOffset,
        entries: &mut Entries<'_, 'a>,
        entry: &mut Entry<'a>,
    ) -> Result<Option<FoundDie>> {
        if entry.flag(constants::DW_AT_declaration) || entry.has(constants::DW_AT_signature) {
            entries.skip_children(entry)?;
            return Ok(None);
        }
        let mut hash = Hash::default();
        let name = entry.value(constants::DW_AT_name);
        let named = name.is_some_and(|name| self.units.hash_string(unit, context, &name, &mut hash));
        if !named {
            // there is nothing that could say that two of them are one
            hash.write_usize(place.0);
        }
        entry.hash_numbers(&[constants::DW_AT_byte_size], &mut hash);
        let (has_children, depth) = (entry.has_children, entries.depth());
        while has_children && !entries.is_empty() && entries.depth() >= depth {
            if entries.read_as(entry, part)? == Step::Wanted {
                hash_member(self.units, unit, context, &entry.traits, &mut hash);
            }
        }
        let key = if self.exact && named { self.key_with_content(hash, place)? } else { hash.key() };
        Ok(Some(FoundDie { unit, place, named, key, ..FoundDie::default() }))
    }

    /// Finds the types of given names, wherever they are.
    fn named(&mut self, unit: usize, context: &Context, sought: &NameMatcher<'_>) -> Result<()> {
        let mut entry = Entry::default();
        let root = self.units.place(unit, self.units.get(unit).header.root_offset());
        let mut entries = Entries::at(self.units, unit, context, root)?;
        // Go's types that are based on a number are numbers with names of their own
        let is_go = context.language == u64::from(constants::DW_LANG_Go.0);
        let wanted = |tag| is_named_type(tag) || is_go && tag == constants::DW_TAG_base_type;
        while !entries.is_empty() {
            let (place, depth) = (entries.place(), entries.depth());
            if entries.read_if(&mut entry, wanted)? != Step::Wanted {
                continue;
            }
            let Some(name) = self.name(unit, context, &entry) else { continue };
            let declared = entry.flag(constants::DW_AT_declaration) || entry.has(constants::DW_AT_signature);
            if let Some(near) = self.result.near.as_mut().filter(|_| !declared && is_record(entry.tag)) {
                let mut hash = Hash::default();
                hash.write(name);
                near.add(self.before.near, hash.key(), || Some(name));
            }
            if !declared && let Some(index) = sought.find(b"", name) {
                let key = self.key_of_named(sought, index, b"", (unit, place))?;
                let (name, top_level) = (index as u32, depth == 1);
                self.add(FoundDie { unit, place, top_level, name, key, ..FoundDie::default() });
            }
        }
        Ok(())
    }

    /// Returns the key that tells a type from others of its name; its index alone if the first of each is enough.
    pub(super) fn key_of_named(
        &mut self,
        sought: &NameMatcher<'_>,
        index: usize,
        path: &[u8],
        (unit, place): (usize, GlobalDieOffset),
    ) -> Result<(u64, u64)> {
        if sought.first {
            return Ok((index as u64, 0));
        }
        let mut hash = Hash::default();
        hash.write(path);
        self.write_declaration(unit, place, &mut hash)?;
        self.key_with_content(hash, place)
    }

    /// Hashes the file and line that declare a type, if places tell types apart. Units number files each in its own
    /// way, so that the path counts.
    fn write_declaration(&mut self, unit: usize, place: GlobalDieOffset, hash: &mut Hash) -> Result<()> {
        let Some(known) = &mut self.files else { return Ok(()) };
        let units = self.units;
        let mut entry = Entry::default();
        Entries::at(units, unit, &units.context(unit)?, place)?.read(&mut entry)?;
        entry.hash_numbers(&[constants::DW_AT_decl_line], hash);
        let Some(file) = entry.number(constants::DW_AT_decl_file) else { return Ok(()) };
        // what was split off numbers files as the table does that stayed behind
        let skeleton = units.skeleton_of(unit);
        let context = units.context(skeleton)?;
        if known.first().is_none_or(|(of, _)| *of != skeleton) {
            *known = vec![(skeleton, units.files(skeleton, &context)?)];
        }
        let Some((_, Some(files))) = known.first() else { return Ok(()) };
        let path = files.path(units, skeleton, &context, file).unwrap_or_default();
        if !path.starts_with(b"/") {
            hash.write(units.about(skeleton, &context)?.folder.unwrap_or_default());
        }
        hash.write(&path);
        Ok(())
    }

    /// Adds a typedef if its target is a record without a name.
    pub(super) fn add_typedef(&mut self, found: FoundDie, target: Option<GlobalDieOffset>) -> Result<()> {
        let Some(target) = target else { return Ok(()) };
        if self.contents.is_untagged(target)? {
            let mut hash = Hash::default();
            hash.write(found.path.as_deref().unwrap_or_default());
            let key = self.key_with_content(hash, found.place)?;
            self.add(FoundDie { key, ..found });
        }
        Ok(())
    }

    /// Completes the key of a type: the hash so far, and one of its contents.
    pub(super) fn key_with_content(&mut self, mut hash: Hash, place: GlobalDieOffset) -> Result<(u64, u64)> {
        let (one, other) = self.contents.of(place)?;
        hash.write_u64(one);
        hash.write_u64(other);
        Ok(hash.key())
    }

    pub(super) fn name(&self, unit: usize, context: &Context, entry: &Entry<'a>) -> Option<&'a [u8]> {
        entry.string(self.units, unit, context, constants::DW_AT_name)
    }

    pub(super) fn add(&mut self, found: FoundDie) {
        if !self.knows(found.key) {
            self.seen.insert(found.key, self.result.found.len());
            self.result.found.push(found);
        }
    }
}

/// Goes over what is below an entry that was just read, with the depth from its children on.
pub(super) fn walk_children<'a>(
    entries: &mut Entries<'_, 'a>,
    entry: &mut Entry<'a>,
    mut each: impl FnMut(isize, &Entry<'a>),
) -> Result<()> {
    if !entry.has_children {
        return Ok(());
    }
    let depth = entries.depth();
    while !entries.is_empty() && entries.depth() >= depth {
        let below = entries.depth() - depth;
        if entries.read(entry)? {
            each(below, entry);
        }
    }
    Ok(())
}

/// Returns the treatment of a record's children.
pub(super) fn part(tag: DwTag) -> Interest {
    match tag {
        constants::DW_TAG_member | constants::DW_TAG_inheritance => Interest::Compare,
        _ => Interest::Leave,
    }
}
