//! The first pass over units whose language declares types in namespaces and in other types.

use super::Slice;
use super::entry::{Entries, Entry, Interest, Step};
use super::scan::{Found, Hash, Scanner, Sought, hash_member, is_named_type, is_record};
use super::units::{Context, GlobalDieOffset, Units};
use crate::error::Result;
use crate::model::Language;
use gimli::AttributeValue;
use gimli::constants::{self, DwTag};
use std::hash::Hasher;
use std::sync::Arc;

/// The name of an anonymous namespace in a path.
const ANONYMOUS: &[u8] = b"(anonymous namespace)";

/// The most bytes of a path: real ones stay below a thousand.
const PATH_LIMIT: usize = 16 << 10;

/// The most scopes of a path; those inside are like the last one.
const DEPTH_LIMIT: u32 = 256;

/// Stands for a name with all of its scopes.
pub(super) type Key = (u64, u64);

/// The name of a scope.
#[derive(Clone, Copy)]
enum Name<'a> {
    Anonymous,
    Stored(AttributeValue<Slice<'a>>),
}

/// A namespace or a type.
#[derive(Clone, Copy)]
struct Scope<'a> {
    outer: Option<usize>,
    depth: u32,
    name: Option<Name<'a>>,
    key: Key,
    /// `true` if other units cannot name what is in it.
    is_private: bool,
}

/// A type's name, and the scope that it is declared in.
#[derive(Clone, Copy)]
struct Declared<'a> {
    outer: Option<usize>,
    name: Option<AttributeValue<Slice<'a>>>,
}

/// Something with children that is being looked at.
struct Open<'a> {
    depth: isize,
    scope: usize,
    /// A record that is wanted, with what is known of it so far.
    record: Option<(Closed<'a>, Hash)>,
    /// Records inside are what its variants hold.
    variants: bool,
    /// `true` if nothing in it is known by its scope.
    is_leaf: bool,
}

/// A record that was left.
#[derive(Clone, Copy)]
struct Closed<'a> {
    place: GlobalDieOffset,
    top_level: bool,
    declared: Declared<'a>,
    key: Key,
}

/// The scopes of a unit that were gone into, and where in them the walk is. What they are called is not
/// looked at before it is asked for.
struct Scopes<'u, 'a> {
    units: &'u Units<'a>,
    unit: usize,
    context: &'u Context,
    separator: &'static [u8],
    scopes: Vec<Scope<'a>>,
    open: Vec<Open<'a>>,
    // types that were declared, by place
    declared: Vec<(GlobalDieOffset, Declared<'a>)>,
    // a path as it was last shared
    shared: Option<Arc<[u8]>>,
}

impl<'u, 'a> Scopes<'u, 'a> {
    fn new(units: &'u Units<'a>, unit: usize, context: &'u Context) -> Scopes<'u, 'a> {
        let separator = Language(u16::try_from(context.language).unwrap_or(0)).separator();
        let (scopes, open, declared) = (Vec::new(), Vec::new(), Vec::new());
        Scopes { units, unit, context, separator, scopes, open, declared, shared: None }
    }

    /// The innermost scope.
    fn current(&self) -> Option<usize> {
        self.open.last().map(|open| open.scope)
    }

    /// Returns the hash of a name in a scope, and whether there is a name.
    fn hash(&self, outer: Option<usize>, name: Option<AttributeValue<Slice<'a>>>) -> (Hash, bool) {
        let mut hash = Hash::default();
        let (one, other) = outer.map_or((0, 0), |outer| self.scopes[outer].key);
        hash.write_u64(one);
        hash.write_u64(other);
        let named =
            name.is_some_and(|name| self.units.hash_string(self.unit, self.context, &name, &mut hash));
        (hash, named)
    }

    /// Returns whether all ancestors of an entry at this depth are scopes, and none is a function.
    fn are_all_open(&self, depth: isize) -> bool {
        usize::try_from(depth).is_ok_and(|depth| depth == self.open.len() + 1)
    }

    /// Returns whether other units cannot name what is in a scope.
    fn is_private(&self, scope: Option<usize>) -> bool {
        scope.is_some_and(|scope| self.scopes[scope].is_private)
    }

    /// Goes into an entry; without a name it adds nothing to the path.
    fn enter(&mut self, depth: isize, name: Option<Name<'a>>, key: Key, record: Option<(Closed<'a>, Hash)>) {
        let outer = self.current();
        let is_private = matches!(name, Some(Name::Anonymous)) || self.is_private(outer);
        let scope = match outer.and_then(|outer| self.scopes.get(outer)) {
            Some(last) if last.depth >= DEPTH_LIMIT => Scope { key, is_private, ..*last },
            last => Scope { outer, depth: last.map_or(0, |last| last.depth + 1), name, key, is_private },
        };
        self.note_inner();
        self.scopes.push(scope);
        let scope = self.scopes.len() - 1;
        self.open.push(Open { depth, scope, record, variants: false, is_leaf: true });
    }

    /// Notes that there is something in the innermost scope.
    fn note_inner(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.is_leaf = false;
        }
    }

    /// Goes into a namespace, or into something that is no scope.
    fn enter_namespace(&mut self, entry: &Entry<'a>, depth: isize) {
        let stored = entry.value(constants::DW_AT_name);
        let (mut hash, named) = self.hash(self.current(), stored);
        let anonymous = is_scope(entry.tag).then_some(Name::Anonymous);
        let name = stored.filter(|_| named).map(Name::Stored).or(anonymous);
        hash.write_u8(u8::from(!named));
        self.enter(depth, name, hash.key(), None);
    }

    /// Leaves what does not go on at this depth; of records says what is known.
    fn leave(&mut self, depth: isize, mut each: impl FnMut(Closed<'a>)) {
        while let Some(left) = self.open.pop_if(|open| open.depth >= depth) {
            if left.is_leaf {
                self.scopes.truncate(left.scope);
            }
            if let Some((closed, hash)) = left.record {
                each(Closed { key: hash.key(), ..closed });
            }
        }
    }

    /// Notes a type that is only declared here, and where one is declared that is defined here.
    fn declare(&mut self, entry: &Entry<'a>, place: GlobalDieOffset) -> (Declared<'a>, bool) {
        self.note_inner();
        let mut own = Declared { outer: self.current(), name: entry.value(constants::DW_AT_name) };
        let is_declaration =
            entry.flag(constants::DW_AT_declaration) || entry.has(constants::DW_AT_signature);
        if is_declaration && own.name.is_some() {
            self.declared.push((place, own));
        }
        // declared in its scope, and defined somewhere else
        let specified = entry.target(self.units, self.unit, constants::DW_AT_specification);
        let find = |place| self.declared.binary_search_by_key(&place, |(place, _)| *place).ok();
        if let Some((_, there)) = specified.and_then(find).and_then(|index| self.declared.get(index)) {
            own = Declared { outer: there.outer, name: own.name.or(there.name) };
        }
        (own, is_declaration)
    }

    fn string(&self, name: Name<'a>) -> Option<&'a [u8]> {
        match name {
            Name::Anonymous => Some(ANONYMOUS),
            Name::Stored(name) => self.units.string(self.unit, self.context, &name),
        }
    }

    /// The scopes that a type is declared in, unless its name has them; none at the top.
    fn path_of(&mut self, ty: Declared<'a>) -> Option<Arc<[u8]>> {
        let name = ty.name.filter(|_| self.separator == b".");
        let name = name.and_then(|name| self.string(Name::Stored(name)));
        let mut chain = Vec::new();
        let mut next = ty.outer;
        while let Some(scope) = next.and_then(|index| self.scopes.get(index)) {
            chain.extend(scope.name);
            next = scope.outer;
        }
        let mut path = Vec::new();
        for name in chain.into_iter().rev() {
            let name = self.string(name).filter(|name| path.len() + name.len() < PATH_LIMIT);
            let Some(name) = name else { continue };
            let rest = self.after_path(&path, name);
            if !path.is_empty() && rest.is_none() {
                path.extend_from_slice(self.separator);
            }
            path.extend_from_slice(rest.unwrap_or(name));
        }
        if path.is_empty() || name.is_some_and(|name| self.after_path(&path, name).is_some()) {
            return None;
        }
        if self.shared.as_deref() != Some(&path[..]) {
            self.shared = Some(path.into());
        }
        self.shared.clone()
    }

    /// Returns the part behind the path in a name that starts with it: Zig's own backend writes names with
    /// their scopes.
    fn after_path<'n>(&self, path: &[u8], name: &'n [u8]) -> Option<&'n [u8]> {
        let rest = name.strip_prefix(path).filter(|_| self.separator == b".");
        rest.filter(|rest| !path.is_empty() && (rest.is_empty() || rest.starts_with(b".")))
    }
}

fn is_scope(tag: DwTag) -> bool {
    matches!(tag, constants::DW_TAG_namespace | constants::DW_TAG_module)
}

/// Returns the treatment of a DIE in a unit whose records are sought: those in functions only if inner ones
/// are wanted too.
fn interest(tag: DwTag, inner: bool) -> Interest {
    match tag {
        _ if is_record(tag) || is_scope(tag) => Interest::Read,
        constants::DW_TAG_member | constants::DW_TAG_inheritance => Interest::Compare,
        constants::DW_TAG_variant_part | constants::DW_TAG_variant => Interest::Inside,
        constants::DW_TAG_subprogram if inner => Interest::Read,
        _ if inner => Interest::Inside,
        _ => Interest::Leave,
    }
}

impl<'a> Scanner<'_, 'a> {
    /// The records of a unit in namespaces and in other records; those in functions only if the
    /// inner ones are wanted too.
    pub(super) fn scoped_records(&mut self, unit: usize, context: &Context, inner: bool) -> Result<()> {
        let (units, known) = (self.units, self.before.known);
        let mut entry = Entry::default();
        let root = units.place(unit, units.get(unit).header.root_offset());
        let mut entries = Entries::at(units, unit, context, root)?;
        if entries.is_empty() || !entries.read(&mut entry)? || !entry.has_children {
            return Ok(());
        }
        let (scopes, classes) = (Scopes::new(units, unit, context), Vec::new());
        let mut walk = Walk { scopes, classes, with_classes: self.before.outlines.is_some() };
        // the inner before the outer
        let mut closed = Vec::new();
        let mut leave = |left: Closed<'a>| closed.extend((!known.contains(&left.key)).then_some(left));
        while !entries.is_empty() && entries.depth() > 0 {
            let (place, depth) = (entries.place(), entries.depth());
            walk.scopes.leave(depth, &mut leave);
            match entries.read_as(&mut entry, |tag| interest(tag, inner))? {
                Step::End => {}
                Step::Other => walk.pass(entry.tag),
                Step::Wanted => walk.step(&entry, place, depth),
            }
        }
        walk.scopes.leave(0, &mut leave);
        let Walk { mut scopes, classes, .. } = walk;
        closed.sort_by_key(|closed| closed.place);
        for Closed { place, top_level, declared, key } in closed {
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
                self.add(Found { unit, place, top_level, path, key, ..Found::default() });
            }
        }
        if let Some(outlines) = self.before.outlines.filter(|_| context.is_cpp()) {
            self.result.classes.add(outlines, units, unit, context, &classes)?;
        }
        Ok(())
    }

    /// Finds only the classes that a unit defines and that others may declare.
    pub(super) fn only_classes(&mut self, unit: usize, context: &Context) -> Result<()> {
        if let Some(definitions) = self.before.definitions.filter(|_| context.is_cpp()) {
            let classes = classes(self.units, unit, context)?;
            let is_new = |class: &Class| !class.is_declaration && !definitions.has(class.key);
            self.result.defined.extend(classes.into_iter().filter(is_new));
        }
        Ok(())
    }

    /// The types of given names, wherever they are.
    pub(super) fn scoped_names(&mut self, unit: usize, context: &Context, sought: &Sought<'_>) -> Result<()> {
        let mut found = Vec::new();
        let definitions = self.before.definitions.filter(|_| context.is_cpp());
        let defined = &mut self.result.defined;
        scoped_types(self.units, unit, context, Which::Types, |ty, scopes| {
            if let Some(definitions) = definitions
                && !ty.is_declaration
                && ty.is_shared_record(scopes)
            {
                let (hash, named) = scopes.hash(ty.declared.outer, ty.declared.name);
                let key = hash.key();
                if named && !definitions.has(key) {
                    defined.push(Class { place: ty.place, key, is_declaration: false });
                }
            }
            let name = ty.declared.name.and_then(|name| scopes.string(Name::Stored(name)));
            let Some(name) = name.filter(|name| !ty.is_declaration && sought.may_be(name)) else { return };
            let path = scopes.path_of(ty.declared);
            if let Some(index) = sought.find(path.as_deref().unwrap_or_default(), name) {
                let (place, top_level) = (ty.place, ty.depth == 1);
                found.push((index, Found { unit, place, top_level, path, ..Found::default() }));
            }
        })?;
        for (index, found) in found {
            let path = found.path.as_deref().unwrap_or_default();
            let key = self.key_of_named(sought, index, path, found.place)?;
            self.add(Found { key, ..found });
        }
        Ok(())
    }
}

/// A walk over the records of a unit.
struct Walk<'u, 'a> {
    scopes: Scopes<'u, 'a>,
    // those that other units can mean, by place
    classes: Vec<Class>,
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
        } else if entry.has_children {
            self.scopes.enter_namespace(entry, depth);
        }
    }

    /// Goes into a record, and finds out whether it is wanted.
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
            (Closed { place, top_level: depth == 1, declared, key }, hash)
        });
        let inside = if declared.outer == current { key } else { scopes.hash(current, name).0.key() };
        scopes.enter(depth, name.map(Name::Stored), inside, record);
    }
}

/// A class that other units can mean.
#[derive(Clone, Copy)]
pub(super) struct Class {
    pub(super) place: GlobalDieOffset,
    pub(super) key: Key,
    pub(super) is_declaration: bool,
}

/// A type with a name, and where it is declared.
pub(super) struct Scoped<'a> {
    place: GlobalDieOffset,
    depth: isize,
    declared: Declared<'a>,
    is_declaration: bool,
    is_record: bool,
}

impl Scoped<'_> {
    /// Returns whether it is a record that other units can refer to, unlike those in functions.
    fn is_shared_record(&self, scopes: &Scopes<'_, '_>) -> bool {
        self.is_record && scopes.are_all_open(self.depth) && !scopes.is_private(self.declared.outer)
    }
}

/// The types that are sought.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// All, also those inside of functions.
    Types,
    /// Records that other units can mean.
    Records,
}

/// The classes of a unit that other units can mean, by place.
pub(super) fn classes(units: &Units<'_>, unit: usize, context: &Context) -> Result<Vec<Class>> {
    let mut classes = Vec::new();
    scoped_types(units, unit, context, Which::Records, |ty, scopes| {
        let Scoped { place, declared, is_declaration, .. } = ty;
        let (hash, named) = scopes.hash(declared.outer, declared.name);
        if named && !scopes.is_private(declared.outer) {
            classes.push(Class { place, key: hash.key(), is_declaration });
        }
    })?;
    Ok(classes)
}

/// Goes over the types of a unit that have a name.
fn scoped_types<'u, 'a>(
    units: &'u Units<'a>,
    unit: usize,
    context: &'u Context,
    which: Which,
    mut each: impl FnMut(Scoped<'a>, &mut Scopes<'u, 'a>),
) -> Result<()> {
    let mut entry = Entry::default();
    let root = units.place(unit, units.get(unit).header.root_offset());
    let mut entries = Entries::at(units, unit, context, root)?;
    let mut scopes = Scopes::new(units, unit, context);
    while !entries.is_empty() {
        let (place, depth) = (entries.place(), entries.depth());
        scopes.leave(depth, |_| {});
        let step = entries.read_as(&mut entry, |tag| match which {
            _ if is_scope(tag) => Interest::Read,
            Which::Records if is_record(tag) => Interest::Read,
            Which::Types if is_named_type(tag) => Interest::Read,
            Which::Records if depth > 0 => Interest::Leave,
            _ => Interest::Inside,
        })?;
        if step != Step::Wanted {
            continue;
        }
        if is_scope(entry.tag) {
            if entry.has_children {
                scopes.enter_namespace(&entry, depth);
            }
            continue;
        }
        let (declared, is_declaration) = scopes.declare(&entry, place);
        if declared.name.is_some() {
            let is_record = is_record(entry.tag);
            each(Scoped { place, depth, declared, is_declaration, is_record }, &mut scopes);
        }
        if entry.has_children {
            let (hash, named) = scopes.hash(scopes.current(), declared.name);
            scopes.enter(depth, declared.name.filter(|_| named).map(Name::Stored), hash.key(), None);
        }
    }
    Ok(())
}
