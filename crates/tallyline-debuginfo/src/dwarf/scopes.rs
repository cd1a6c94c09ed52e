//! The scopes that types of a unit are declared in, for languages with namespaces and nested types.

use super::Slice;
use super::entry::{Entries, Entry, Interest, Step};
use super::hash::Hash;
use super::offset::GlobalDieOffset;
use super::tags::{is_named_type, is_record};
use super::units::{Context, Units};
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
pub(super) enum Name<'a> {
    Anonymous,
    Stored(AttributeValue<Slice<'a>>),
}

/// A namespace or a type.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) outer: Option<usize>,
    pub(super) depth: u32,
    pub(super) name: Option<Name<'a>>,
    pub(super) key: Key,
    /// `true` if other units cannot name what is in it.
    pub(super) is_private: bool,
}

/// A type's name, and the scope that it is declared in.
#[derive(Clone, Copy)]
pub(super) struct Declared<'a> {
    pub(super) outer: Option<usize>,
    pub(super) name: Option<AttributeValue<Slice<'a>>>,
}

/// Something with children that is being looked at.
pub(super) struct Open<'a> {
    pub(super) depth: isize,
    pub(super) scope: usize,
    /// A record that is wanted, with what is known of it so far.
    pub(super) record: Option<(FinishedRecord<'a>, Hash)>,
    /// Records inside are what its variants hold.
    pub(super) variants: bool,
    /// `true` if nothing in it is known by its scope.
    pub(super) is_leaf: bool,
}

/// A record whose children have all been read.
#[derive(Clone, Copy)]
pub(super) struct FinishedRecord<'a> {
    pub(super) place: GlobalDieOffset,
    pub(super) top_level: bool,
    pub(super) declared: Declared<'a>,
    pub(super) key: Key,
}

/// The scopes of a unit that were gone into, and where in them the walk is. What they are called is not
/// looked at before it is asked for.
pub(super) struct Scopes<'u, 'a> {
    pub(super) units: &'u Units<'a>,
    pub(super) unit: usize,
    pub(super) context: &'u Context,
    pub(super) separator: &'static [u8],
    pub(super) scopes: Vec<Scope<'a>>,
    pub(super) open: Vec<Open<'a>>,
    // types that were declared, by place
    pub(super) declared: Vec<(GlobalDieOffset, Declared<'a>)>,
    // a path as it was last shared
    pub(super) shared: Option<Arc<[u8]>>,
}

impl<'u, 'a> Scopes<'u, 'a> {
    pub(super) fn new(units: &'u Units<'a>, unit: usize, context: &'u Context) -> Scopes<'u, 'a> {
        let separator = Language(u16::try_from(context.language).unwrap_or(0)).separator();
        let (scopes, open, declared) = (Vec::new(), Vec::new(), Vec::new());
        Scopes { units, unit, context, separator, scopes, open, declared, shared: None }
    }

    /// Returns the innermost scope.
    pub(super) fn current(&self) -> Option<usize> {
        self.open.last().map(|open| open.scope)
    }

    /// Returns the hash of a name in a scope, and `true` if there is a name.
    pub(super) fn hash(&self, outer: Option<usize>, name: Option<AttributeValue<Slice<'a>>>) -> (Hash, bool) {
        let mut hash = Hash::default();
        let (one, other) = outer.map_or((0, 0), |outer| self.scopes[outer].key);
        hash.write_u64(one);
        hash.write_u64(other);
        let named =
            name.is_some_and(|name| self.units.hash_string(self.unit, self.context, &name, &mut hash));
        (hash, named)
    }

    /// Returns `true` if all ancestors of an entry at this depth are scopes, and none is a function.
    pub(super) fn are_all_open(&self, depth: isize) -> bool {
        usize::try_from(depth).is_ok_and(|depth| depth == self.open.len() + 1)
    }

    /// Returns `true` if other units cannot name the contents of a scope.
    pub(super) fn is_private(&self, scope: Option<usize>) -> bool {
        scope.is_some_and(|scope| self.scopes[scope].is_private)
    }

    /// Goes into an entry; without a name it adds nothing to the path.
    pub(super) fn enter(
        &mut self,
        depth: isize,
        name: Option<Name<'a>>,
        key: Key,
        record: Option<(FinishedRecord<'a>, Hash)>,
    ) {
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
    pub(super) fn note_inner(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.is_leaf = false;
        }
    }

    /// Goes into a namespace, or into something that is no scope.
    pub(super) fn enter_namespace(&mut self, entry: &Entry<'a>, depth: isize) {
        let stored = entry.value(constants::DW_AT_name);
        let (mut hash, named) = self.hash(self.current(), stored);
        let anonymous = is_scope(entry.tag).then_some(Name::Anonymous);
        let name = stored.filter(|_| named).map(Name::Stored).or(anonymous);
        hash.write_u8(u8::from(!named));
        self.enter(depth, name, hash.key(), None);
    }

    /// Leaves what does not go on at this depth; of records says what is known.
    pub(super) fn leave(&mut self, depth: isize, mut each: impl FnMut(FinishedRecord<'a>)) {
        while let Some(left) = self.open.pop_if(|open| open.depth >= depth) {
            if left.is_leaf {
                self.scopes.truncate(left.scope);
            }
            if let Some((closed, hash)) = left.record {
                each(FinishedRecord { key: hash.key(), ..closed });
            }
        }
    }

    /// Notes a type that is only declared here, and where one is declared that is defined here.
    pub(super) fn declare(&mut self, entry: &Entry<'a>, place: GlobalDieOffset) -> (Declared<'a>, bool) {
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

    pub(super) fn string(&self, name: Name<'a>) -> Option<&'a [u8]> {
        match name {
            Name::Anonymous => Some(ANONYMOUS),
            Name::Stored(name) => self.units.string(self.unit, self.context, &name),
        }
    }

    /// Returns the scopes that a type is declared in, unless its name has them; `None` at the top.
    pub(super) fn path_of(&mut self, ty: Declared<'a>) -> Option<Arc<[u8]>> {
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
    pub(super) fn after_path<'n>(&self, path: &[u8], name: &'n [u8]) -> Option<&'n [u8]> {
        let rest = name.strip_prefix(path).filter(|_| self.separator == b".");
        rest.filter(|rest| !path.is_empty() && (rest.is_empty() || rest.starts_with(b".")))
    }
}

pub(super) fn is_scope(tag: DwTag) -> bool {
    matches!(tag, constants::DW_TAG_namespace | constants::DW_TAG_module)
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
    pub(super) place: GlobalDieOffset,
    pub(super) depth: isize,
    pub(super) declared: Declared<'a>,
    pub(super) is_declaration: bool,
    pub(super) is_record: bool,
    /// The target of a typedef, where typedefs are sought beside records.
    pub(super) typedef_of: Option<GlobalDieOffset>,
}

impl Scoped<'_> {
    /// Returns `true` if the type is a record that other units can refer to, unlike those in functions.
    pub(super) fn is_shared_record(&self, scopes: &Scopes<'_, '_>) -> bool {
        self.is_record && scopes.are_all_open(self.depth) && !scopes.is_private(self.declared.outer)
    }
}

/// The types that are sought.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScopedKind {
    /// All types with a name, also those inside functions.
    Types,
    /// Records that other units can refer to.
    Records,
    /// Such records, and typedefs that other units can refer to.
    RecordsAndTypedefs,
}

/// Returns the classes of a unit that other units can mean, by place.
pub(super) fn classes(units: &Units<'_>, unit: usize, context: &Context) -> Result<Vec<Class>> {
    let mut classes = Vec::new();
    scoped_types(units, unit, context, ScopedKind::Records, |ty, scopes| {
        let Scoped { place, declared, is_declaration, .. } = ty;
        let (hash, named) = scopes.hash(declared.outer, declared.name);
        if named && !scopes.is_private(declared.outer) {
            classes.push(Class { place, key: hash.key(), is_declaration });
        }
    })?;
    Ok(classes)
}

/// Goes over the types of a unit that have a name.
pub(super) fn scoped_types<'u, 'a>(
    units: &'u Units<'a>,
    unit: usize,
    context: &'u Context,
    which: ScopedKind,
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
            ScopedKind::Records if is_record(tag) => Interest::Read,
            ScopedKind::Types if is_named_type(tag) => Interest::Read,
            ScopedKind::RecordsAndTypedefs if is_record(tag) || tag == constants::DW_TAG_typedef => {
                Interest::Read
            }
            ScopedKind::Records | ScopedKind::RecordsAndTypedefs if depth > 0 => Interest::Leave,
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
            let typedef_of = (which == ScopedKind::RecordsAndTypedefs && !is_record)
                .then(|| entry.target(units, unit, constants::DW_AT_type))
                .flatten();
            each(Scoped { place, depth, declared, is_declaration, is_record, typedef_of }, &mut scopes);
        }
        if entry.has_children {
            let (hash, named) = scopes.hash(scopes.current(), declared.name);
            scopes.enter(depth, declared.name.filter(|_| named).map(Name::Stored), hash.key(), None);
        }
    }
    Ok(())
}
