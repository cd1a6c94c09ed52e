//! Type queries of the analysis: pointees, sizes, fields at an offset.

use super::callees::Callees;
use super::value::{Pointer, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use tallyline_debuginfo::TypeReader;
use tallyline_debuginfo::abi;
use tallyline_debuginfo::model::{MemberKind, Record, Type, TypeId, Types};
use tallyline_debuginfo::program::UnitCache;

/// The template arguments of a C++ type or function: pairs of a parameter's name and the offset of the DIE of the
/// type that it stands for.
pub(crate) type Templates = std::rc::Rc<[(String, u64)]>;

/// The maximum nesting depth of a type; real ones stay below thirty.
const DEPTH_LIMIT: usize = 64;

/// The maximum number of access paths at an offset of a type, through unions and variants.
pub(super) const ACCESS_PATHS_LIMIT: usize = 64;

/// The source of types.
enum TypeProvider<'u, 'a> {
    /// DWARF, read on demand.
    Dwarf(Box<TypeReader<'u, 'a>>),
    /// Types that are complete from the start, as those of BTF.
    Whole(Box<Types>),
}

/// An access path: each type from the outermost down to the leaf at an offset, with the offset in it.
type AccessPath = Vec<(TypeId, u64)>;

/// The types of one worker thread.
pub(super) struct Catalog<'i, 'u, 'a> {
    source: TypeProvider<'u, 'a>,
    pub(super) units: Option<UnitCache<'i, 'u, 'a>>,
    pub(super) callees: Callees,
    completed: FxHashSet<TypeId>,
    sizes: FxHashMap<TypeId, u64>,
    /// Types of container nodes by the types of their parts, each with the offset of the part.
    pub(super) nodes: FxHashMap<TypeId, Vec<(u64, u64)>>,
    /// The control word at the start of each group of a Go map, once a pointer to one was seen.
    pub(super) go_control: Option<TypeId>,
    /// The type of the control bytes of Rust's hash tables, once a pointer to them was seen.
    pub(super) control_byte: Option<TypeId>,
}

impl<'i, 'u, 'a> Catalog<'i, 'u, 'a> {
    /// Creates a catalog of types that are read from DWARF on demand.
    pub(super) fn new(units: UnitCache<'i, 'u, 'a>) -> Self {
        let source = TypeProvider::Dwarf(Box::new(units.info.types()));
        Catalog {
            source,
            units: Some(units),
            callees: Callees::default(),
            completed: FxHashSet::default(),
            sizes: FxHashMap::default(),
            nodes: FxHashMap::default(),
            go_control: None,
            control_byte: None,
        }
    }

    /// Creates a catalog of complete types, as those of BTF.
    pub(super) fn whole(types: Types) -> Self {
        let source = TypeProvider::Whole(Box::new(types));
        Catalog {
            source,
            units: None,
            callees: Callees::default(),
            completed: FxHashSet::default(),
            sizes: FxHashMap::default(),
            nodes: FxHashMap::default(),
            go_control: None,
            control_byte: None,
        }
    }

    /// Returns the types read so far.
    pub(super) fn types(&self) -> &Types {
        match &self.source {
            TypeProvider::Dwarf(reader) => reader.types(),
            TypeProvider::Whole(types) => types,
        }
    }

    /// Returns the types and closes their source.
    pub(super) fn into_types(self) -> Types {
        match self.source {
            TypeProvider::Dwarf(reader) => reader.into_types(),
            TypeProvider::Whole(types) => *types,
        }
    }

    /// Returns the type of a DIE; the target of a pointer is not read yet.
    pub(super) fn type_at(&mut self, place: u64) -> Option<TypeId> {
        match &mut self.source {
            TypeProvider::Dwarf(reader) => reader.at(place).ok(),
            TypeProvider::Whole(_) => None,
        }
    }

    /// Returns the offset of a type's DIE.
    pub(super) fn die_offset(&self, id: TypeId) -> Option<u64> {
        match &self.source {
            TypeProvider::Dwarf(reader) => reader.place(id),
            TypeProvider::Whole(_) => None,
        }
    }

    /// Records the scopes that a type is declared in, for its name; also those of what an array, a pointer or a typedef
    /// is of.
    pub(super) fn note_paths(&mut self, mut id: TypeId) {
        for _ in 0..DEPTH_LIMIT {
            self.note_path(id);
            id = match self.types().get(id) {
                Type::Pointer { to, .. } => to,
                Type::Array(array) => self.types().array(array).of,
                Type::Qualified { of, .. } | Type::Annotated { of } | Type::Typedef { of, .. } => of,
                _ => return,
            };
        }
    }

    fn note_path(&mut self, id: TypeId) {
        let (Some(place), Some(units)) = (self.die_offset(id), &mut self.units) else { return };
        if let (Some(path), TypeProvider::Dwarf(reader)) = (units.path(place), &mut self.source) {
            // a name that has no room is left as it is
            let _ = reader.set_path(id, &path);
        }
    }

    /// Records the unit that a type is defined in: others may define another of the same name.
    pub(super) fn note_unit(&mut self, id: TypeId) {
        if self.types().as_record(self.types().strip(id)).is_some()
            && let TypeProvider::Dwarf(reader) = &mut self.source
        {
            // a definition whose place cannot be read has none
            let _ = reader.list(id);
        }
    }

    fn complete(&mut self, id: TypeId) {
        if let TypeProvider::Dwarf(reader) = &mut self.source
            && self.completed.insert(id)
        {
            // what cannot be read stays a name
            let _ = reader.complete(id);
        }
    }

    /// Returns the type behind qualifiers and typedefs.
    pub(super) fn strip(&mut self, mut id: TypeId) -> TypeId {
        for _ in 0..DEPTH_LIMIT {
            self.complete(id);
            match self.types().get(id) {
                Type::Typedef { of, .. } | Type::Qualified { of, .. } | Type::Annotated { of } => id = of,
                _ => return id,
            }
        }
        TypeId::VOID
    }

    /// Returns a type as objects of it are named: behind qualifiers, and behind typedefs of what has a name.
    pub(super) fn object(&mut self, id: TypeId) -> TypeId {
        let stripped = self.strip(id);
        if self.types().as_record(stripped).is_some_and(|(_, record)| record.name.is_some()) {
            return stripped;
        }
        let mut named = id;
        for _ in 0..DEPTH_LIMIT {
            match self.types().get(named) {
                Type::Qualified { of, .. } | Type::Annotated { of } => named = of,
                // the innermost typedef of a record without a name
                Type::Typedef { of, .. } if self.types().as_record(stripped).is_some() && of != stripped => {
                    let next = self.types().get(of);
                    if matches!(next, Type::Typedef { .. } | Type::Qualified { .. }) {
                        named = of;
                        continue;
                    }
                    return named;
                }
                _ => return named,
            }
        }
        stripped
    }

    /// Returns the size of a type in bytes.
    pub(super) fn size(&mut self, id: TypeId) -> u64 {
        if let Some(size) = self.sizes.get(&id) {
            return *size;
        }
        self.strip(id);
        let size = abi::size_of(self.types(), id);
        self.sizes.insert(id, size);
        size
    }

    /// Returns the largest part that both objects have at what two pointers lead to.
    pub(super) fn common_part(&mut self, one: Pointer, other: Pointer) -> Option<Pointer> {
        let (first, second) = (self.parts(one), self.parts(other));
        let part = first.into_iter().find(|part| second.contains(part))?;
        let to = self.object(part.0);
        Some(Pointer::at(to, i32::try_from(part.1).ok()?))
    }

    /// Returns the parts of an object that a pointer leads into, each with the offset there; larger ones
    /// first.
    fn parts(&mut self, pointer: Pointer) -> Vec<(TypeId, i64)> {
        let whole = (self.strip(pointer.to), i64::from(pointer.offset));
        let Ok(inside) = u64::try_from(pointer.offset) else { return vec![whole] };
        // beyond a base the object is what is derived from it
        let outer = match inside < self.size(pointer.to) {
            true => pointer.to,
            false => self.derived_only(whole.0, inside).unwrap_or(pointer.to),
        };
        let paths = self.access_paths(outer, inside);
        let parts =
            paths.into_iter().flatten().filter_map(|(id, inside)| Some((id, i64::try_from(inside).ok()?)));
        let mut parts: Vec<_> = std::iter::once(whole).chain(parts).collect();
        parts.dedup();
        parts
    }

    /// Returns true if a declared part of an object is less precise than the object: an empty class at its start, or
    /// a number or pointer that the object has at that offset.
    pub(super) fn is_part_like(&mut self, outer: TypeId, inside: u64, part: TypeId) -> bool {
        let (outer, part) = (self.strip(outer), self.strip(part));
        if self.types().as_record(outer).is_none() || inside >= self.size(outer) {
            return false;
        }
        if let Some((_, record)) = self.types().as_record(part) {
            return record.size <= 1
                && !self.types().members(record).iter().any(|member| member.takes_bytes());
        }
        // locks are taken by a bit of a pointer, and unions have a number for several members
        let paths = self.access_paths(outer, inside);
        let is_pointer = |types: &Types, id| matches!(types.get(id), Type::Pointer { .. });
        paths.iter().filter_map(|path| path.last()).any(|&(leaf, at)| {
            let is_number = !is_pointer(self.types(), part);
            at == 0 && (is_number || is_pointer(self.types(), leaf)) && self.size(leaf) == self.size(part)
        })
    }

    /// Returns true for `void` and for a missing type.
    pub(super) fn is_void(&mut self, id: TypeId) -> bool {
        let stripped = self.strip(id);
        matches!(self.types().get(stripped), Type::Void | Type::Missing)
    }

    /// Returns true if the target type of a pointer carries no information: `void`, bytes.
    pub(super) fn is_uninformative(&mut self, id: TypeId) -> bool {
        self.is_erased(id)
    }

    /// Returns true if the member at an offset is a vtable pointer.
    pub(super) fn is_vtable_pointer(&mut self, ty: TypeId, offset: u64) -> bool {
        let paths = self.access_paths(ty, offset);
        paths.iter().flatten().any(|(id, inside)| {
            let Some((_, record)) = self.types().as_record(*id) else { return false };
            self.types().members(record).iter().any(|member| {
                let name = self.types().name(member.name);
                member.offset == *inside
                    && (name.starts_with(b"_vptr") || (name == b"vtable" && record.language.is_rust()))
            })
        })
    }

    /// Returns the names of the innermost record with a member at an offset and of that member.
    pub(super) fn member_at(&mut self, ty: TypeId, offset: u64) -> Option<(Vec<u8>, Vec<u8>)> {
        let paths = self.access_paths(ty, offset);
        let (id, inside) =
            *paths.first()?.iter().rev().find(|(id, _)| self.types().as_record(*id).is_some())?;
        let (_, record) = self.types().as_record(id)?;
        let member = self.types().members(record).iter().find(|member| member.offset == inside)?;
        let name = |name| self.types().name(name).to_vec();
        Some((name(record.name), name(member.name)))
    }

    /// Returns the element type of a Go map.
    pub(super) fn map_element(&mut self, map: TypeId) -> Option<TypeId> {
        // a map's type stands for a pointer to the table, which is made from both types
        let place = self.die_offset(map)?;
        let element = self.units.as_mut()?.go_element(place)?;
        self.type_at(element)
    }

    /// Returns true for types without a layout: `void`, bytes.
    fn is_erased(&mut self, id: TypeId) -> bool {
        let stripped = self.strip(id);
        match self.types().get(stripped) {
            Type::Void | Type::Missing | Type::Opaque { .. } => true,
            Type::Base { name, bits } => {
                bits == 0
                    || matches!(
                        self.types().name(name),
                        b"u8" | b"unsigned char" | b"char" | b"uint8" | b"()"
                    )
            }
            _ => false,
        }
    }

    /// Returns the abstract value of the bytes of an object from `offset` on, as a load into a register gives it.
    pub(super) fn value(&mut self, ty: TypeId, offset: u64, size: u64, scopes: &[(String, u64)]) -> Value {
        let paths = self.access_paths(ty, offset);
        let mut found: Option<Value> = None;
        for path in &paths {
            let Some(&(leaf, inside)) = path.last() else { continue };
            let value = match self.types().get(leaf) {
                Type::Pointer { to, .. } if inside == 0 && size >= 8 => self.pointee_value(to, path, scopes),
                // the descriptors of gfortran and flang begin with the address of the elements
                Type::Descriptor { of, .. } if inside == 0 && size >= 8 => Value::pointer(self.object(of)),
                Type::Void | Type::Missing => continue,
                _ => Value::WORD,
            };
            found = match (found, value) {
                (None, value) | (Some(Value::Number(_)), value) => Some(value),
                (Some(known), Value::Number(_)) => Some(known),
                (Some(known), value) if known == value => Some(known),
                // pointers to pointers: the stride is that of either; the first member has the last path
                (Some(known), value) if self.are_pointers_to_pointers(known, value) => Some(value),
                // members of a union that point to different things
                _ => return Value::Unknown(0),
            };
        }
        found.unwrap_or(Value::Unknown(0))
    }

    fn are_pointers_to_pointers(&mut self, one: Value, other: Value) -> bool {
        let (Value::Pointer(one), Value::Pointer(other)) = (one, other) else { return false };
        let (one, other) = (self.strip(one.to), self.strip(other.to));
        [one, other].iter().all(|id| matches!(self.types().get(*id), Type::Pointer { .. }))
    }

    /// Returns the value of a pointer member; the records on its access path may tell more than its declared target.
    fn pointee_value(&mut self, to: TypeId, path: &[(TypeId, u64)], scopes: &[(String, u64)]) -> Value {
        let to = self.element_if_open(to);
        if !self.is_erased(to) {
            return Value::pointer(self.object(to));
        }
        let records = path.iter().rev().filter_map(|(id, _)| {
            self.types().as_record(*id).filter(|(_, record)| record.language.is_rust()).map(|_| *id)
        });
        let records: Vec<TypeId> = records.collect();
        if records.is_empty() {
            return Value::pointer(self.object(to));
        }
        let is_table = records.iter().any(|id| self.name_starts(*id, b"RawTable"));
        for id in &records {
            let templates = self.templates_of(*id);
            if let Some(element) = self.element(&templates) {
                return self.element_pointer(element, is_table.then_some(to));
            }
        }
        let is_container = is_table || records.iter().any(|id| self.name_starts(*id, b"RawVec"));
        match self.element(scopes) {
            Some(element) if is_container => self.element_pointer(element, is_table.then_some(to)),
            _ => Value::pointer(self.object(to)),
        }
    }

    /// Returns the element of an array of unknown length, as gfortran's own pointers have it; any other type itself.
    fn element_if_open(&mut self, id: TypeId) -> TypeId {
        let stripped = self.strip(id);
        match self.types().get(stripped) {
            Type::Array(array) if self.size(stripped) == 0 => self.types().array(array).of,
            _ => id,
        }
    }

    /// Returns the address of an element; in a hash table elements lie below it, and above it control bytes of a
    /// type.
    fn element_pointer(&mut self, to: TypeId, control_byte: Option<TypeId>) -> Value {
        let pointer = Pointer::start(to);
        if control_byte.is_none() {
            return Value::Pointer(pointer);
        }
        self.control_byte = self.control_byte.or(control_byte);
        Value::Pointer(pointer.with_stride(self.size(to)).below_which_elements_end())
    }

    /// Returns the element type of a container: its first template parameter, unless that is a byte.
    fn element(&mut self, templates: &[(String, u64)]) -> Option<TypeId> {
        let (_, place) = templates.iter().find(|(name, _)| name == "T")?;
        let element = self.type_at(*place)?;
        (!self.is_erased(element)).then(|| self.object(element))
    }

    fn name_starts(&self, id: TypeId, start: &[u8]) -> bool {
        self.types().name(self.types().type_name(id)).starts_with(start)
    }

    fn templates_of(&mut self, id: TypeId) -> Templates {
        match (self.die_offset(id), &mut self.units) {
            (Some(place), Some(units)) => units.templates(place),
            _ => Default::default(),
        }
    }

    /// Returns the access paths from a type to the leaves at an offset.
    pub(super) fn access_paths(&mut self, ty: TypeId, offset: u64) -> Vec<AccessPath> {
        let mut paths = Vec::new();
        let mut open = vec![vec![(self.strip(ty), offset)]];
        while let Some(path) = open.pop() {
            let Some(&(here, inside)) = path.last() else { continue };
            let next = self.step_into(here, inside);
            if next.is_empty() || path.len() > DEPTH_LIMIT {
                paths.push(path);
                continue;
            }
            for step in next {
                let mut longer = path.clone();
                longer.push(step);
                open.push(longer);
            }
            if paths.len() + open.len() > ACCESS_PATHS_LIMIT {
                break;
            }
        }
        paths
    }

    /// Returns the direct parts of a type at an offset; empty for a leaf.
    fn step_into(&mut self, id: TypeId, offset: u64) -> Vec<(TypeId, u64)> {
        let found: Vec<(TypeId, u64)> = match self.types().get(id) {
            Type::Record(record) => {
                let record = *self.types().record(record);
                if let Some(stored) = self.stored(id, &record) {
                    return vec![(self.strip(stored), offset)];
                }
                members_at(self.types(), &record, offset)
            }
            Type::Array(array) => {
                let element = self.types().array(array).of;
                match self.size(element) {
                    0 => Vec::new(),
                    size => vec![(element, offset % size)],
                }
            }
            _ => Vec::new(),
        };
        found.into_iter().map(|(ty, offset)| (self.strip(ty), offset)).collect()
    }

    /// Returns the type that a raw buffer of a C++ library stores; it is declared as bytes.
    fn stored(&mut self, id: TypeId, record: &Record) -> Option<TypeId> {
        if !record.language.is_cpp() {
            return None;
        }
        if !tallyline_debuginfo::program::is_room_name(self.types().name(record.name)) {
            return None;
        }
        let templates = self.templates_of(id);
        let (_, place) = templates.first()?;
        self.type_at(*place)
    }

    /// Returns true if a type has a part of another type at an offset.
    pub(super) fn contains_type(&mut self, outer: TypeId, offset: u64, inner: TypeId) -> bool {
        let inner = self.strip(inner);
        let paths = self.access_paths(outer, offset);
        paths.iter().flatten().any(|(id, inside)| match *id == inner {
            true => *inside == 0,
            false => self.is_sub_array(*id, *inside, inner),
        })
    }

    /// Returns true if an array is a part of another: a row of a matrix, or the same array described a second time.
    fn is_sub_array(&mut self, outer: TypeId, offset: u64, inner: TypeId) -> bool {
        let (Type::Array(outer), Type::Array(array)) = (self.types().get(outer), self.types().get(inner))
        else {
            return false;
        };
        let (outer, array) = (self.types().array(outer).of, self.types().array(array).of);
        let size = self.size(inner);
        self.strip(outer) == self.strip(array) && size > 0 && offset.is_multiple_of(size)
    }

    /// Returns true for a type without parts; pointers to it step over array elements.
    pub(super) fn is_scalar(&mut self, id: TypeId) -> bool {
        let stripped = self.strip(id);
        !self.is_control_word(stripped)
            && matches!(
                self.types().get(stripped),
                Type::Base { .. }
                    | Type::Pointer { .. }
                    | Type::Enum(_)
                    | Type::MemberPointer { .. }
                    | Type::Text { .. }
            )
    }

    /// Returns the template arguments of a variable's type.
    pub(super) fn templates_of_variable(&mut self, ty: TypeId) -> Templates {
        let record = self.strip(ty);
        self.templates_of(record)
    }
}

/// Returns the members at an offset: one of a struct, any of a union or of variants.
fn members_at(types: &Types, record: &Record, offset: u64) -> Vec<(TypeId, u64)> {
    let variants = types.variants(record).iter().flat_map(|variant| types.variant_members(variant));
    let members = types.members(record).iter().chain(variants).chain(types.tag(record));
    members
        .filter(|member| member.kind != MemberKind::Static && member.takes_bytes())
        .filter(|member| {
            let end = member.offset.saturating_add(member.size);
            member.offset <= offset && (offset < end || (member.size == 0 && is_open(types, member.ty)))
        })
        .map(|member| (member.ty, offset - member.offset))
        .collect()
}

fn is_open(types: &Types, id: TypeId) -> bool {
    matches!(types.get(types.strip(id)), Type::Array(_))
}
