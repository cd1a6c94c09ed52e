//! A header that compiles: before each type those that it needs, each once.

use super::atomic::value_type;
use super::name::skip_annotations;
use super::{DEPTH_LIMIT, Frame, Printer};
use crate::explain::Declarations;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use tallyline_debuginfo::model::{EnumId, FunctionId, NameId, Pointer, RecordId, Type, TypeId};

/// The limit on chains of types that need each other; real programs stay below two hundred.
const NEEDS_LIMIT: usize = 1000;

/// The limit on visits of a type, on average; real programs stay below ten.
const STEPS_PER_TYPE: usize = 200;

/// The name spaces of C: tags share one, and type names another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Struct,
    Union,
    Enum,
    Typedef,
}

/// The part of a header that was printed so far.
#[derive(Debug, Default)]
pub(super) struct Emitted {
    named: FxHashSet<(Kind, NameId)>,
    anonymous: FxHashSet<TypeId>,
    declared: FxHashSet<NameId>,
    // records whose needs are being printed, so that they come later
    open: Vec<RecordId>,
    // typedefs of records that are only declared so far
    ahead: FxHashSet<NameId>,
    // the kind that a tag belongs to: a second kind of that name gets another
    tags: FxHashMap<NameId, Kind>,
    is_header: bool,
    depth: usize,
    // types looked at: a damaged file can have functions that take each other many times
    steps: usize,
}

impl<'t> Printer<'t> {
    /// Returns `true` if the output has to be C that compiles.
    pub(super) fn is_header(&self) -> bool {
        self.emitted.is_header
    }

    /// Prints a type's definition as C that compiles, after all declarations that it needs and that were not printed
    /// yet. An anonymous record gets the name `name`, its typedef's.
    pub fn print_compilable(&mut self, id: TypeId, name: NameId) {
        self.stop = self.out.len().saturating_add(self.style.budget);
        self.depth = 0;
        self.line = 0;
        self.emitted.depth = 0;
        self.start_header();
        if !self.emit_wanted(id, name) {
            self.put(b"\n");
        }
    }

    /// Prints the C declarations that a record's definition needs, without the definition itself.
    pub(crate) fn print_needs(&mut self, id: TypeId) {
        self.stop = self.out.len().saturating_add(self.style.budget);
        self.depth = 0;
        self.start_header();
        if let Some((record, _)) = self.types.as_record(self.types.strip(id)) {
            self.needs_of_record(id, record);
        }
    }

    /// Makes everything from here on compile to the layout that it describes.
    fn start_header(&mut self) {
        self.emitted.depth = 0;
        self.emitted.is_header = true;
        if self.declarations.is_none() {
            self.declarations = Some(Declarations::new(self.types));
        }
    }

    /// Prints a type that was asked for; false if that was done before.
    fn emit_wanted(&mut self, id: TypeId, name: NameId) -> bool {
        match self.types.get(id) {
            Type::Record(record) if !self.types.record(record).name.is_some() && name.is_some() => {
                let is_new = self.emitted.named.insert((Kind::Typedef, name));
                if is_new {
                    self.needs_of_record(id, record);
                    self.print_typedef_of(id, name);
                }
                is_new
            }
            Type::Record(record) => {
                let is_new = self.needs_of_record(id, record);
                if is_new {
                    self.print(id);
                }
                is_new
            }
            Type::Typedef { name, of } => self.emit_typedef(name, of, id),
            Type::Enum(item) => self.emit_enum(item),
            _ => false,
        }
    }

    /// Returns the name of a record or an enumeration. In a header a tag can name one thing: a struct and a
    /// union of one name get two.
    pub(super) fn tag_text(&self, keyword: &str, name: NameId) -> Cow<'t, [u8]> {
        let text = self.types.name(name);
        let kind = match keyword {
            "union" => Kind::Union,
            "enum" => Kind::Enum,
            _ => Kind::Struct,
        };
        match self.emitted.tags.get(&name) {
            Some(first) if *first != kind => [text, b"__1"].concat().into(),
            _ => text.into(),
        }
    }

    fn kind_of(&self, id: TypeId) -> Option<Kind> {
        match self.types.get(id) {
            Type::Record(record) if self.types.record(record).is_union() => Some(Kind::Union),
            Type::Record(_) => Some(Kind::Struct),
            Type::Enum(_) => Some(Kind::Enum),
            Type::Typedef { .. } => Some(Kind::Typedef),
            _ => None,
        }
    }

    /// Notes that a type is printed; false if one of its kind and name was.
    fn emit(&mut self, id: TypeId, kind: Kind, name: NameId) -> bool {
        if !name.is_some() {
            return self.emitted.anonymous.insert(id);
        }
        if !self.emitted.named.insert((kind, name)) {
            return false;
        }
        if kind != Kind::Typedef {
            self.emitted.tags.entry(name).or_insert(kind);
        }
        true
    }

    /// Prints what a member's, parameter's or element's type needs; whether to set it off by an empty
    /// line.
    fn needs(&mut self, id: TypeId) -> bool {
        let steps_limit = self.types.len().saturating_mul(STEPS_PER_TYPE);
        if self.emitted.depth >= NEEDS_LIMIT
            || self.emitted.steps > steps_limit
            || self.out.len() >= self.stop
        {
            return false;
        }
        self.emitted.steps += 1;
        self.emitted.depth += 1;
        let printed = self.needs_of(id);
        self.emitted.depth -= 1;
        printed
    }

    fn needs_of(&mut self, mut id: TypeId) -> bool {
        let mut pointed_to = false;
        for _ in 0..DEPTH_LIMIT {
            id = match self.types.get(id) {
                Type::Pointer { kind, to } => {
                    pointed_to |= kind != Pointer::RvalueReference;
                    to
                }
                Type::Array(array) => self.types.array(array).of,
                Type::Qualified { of, .. } | Type::Annotated { of } => of,
                Type::Typedef { name, of } if pointed_to => {
                    return self.emit_ahead(name, of, id) || self.emit_typedef(name, of, id);
                }
                Type::Typedef { name, of } => {
                    let printed = self.emit_typedef(name, of, id);
                    return self.emitted.ahead.remove(&name) && self.needs(of) || printed;
                }
                Type::Enum(item) => {
                    return self.types.enumeration(item).name.is_some() && self.emit_enum(item);
                }
                Type::Record(record) if pointed_to => {
                    let name = self.types.record(record).name;
                    if !name.is_some() {
                        self.needs_of_record(id, record);
                        return false;
                    }
                    return self.declare_tag(id, name);
                }
                Type::Record(record) => {
                    if self.needs_of_record(id, record) && self.types.record(record).name.is_some() {
                        self.print(id);
                    }
                    return true;
                }
                Type::Function(function) => return self.needs_of_function(function),
                Type::Base { name, .. } if self.style.atomic_typedefs => return self.emit_atomic(name),
                _ => return false,
            };
        }
        false
    }

    /// Prints a declaration of a record that is only pointed to.
    fn declare_tag(&mut self, id: TypeId, name: NameId) -> bool {
        if !self.emitted.declared.insert(name) {
            return false;
        }
        let kind = self.kind_of(id);
        if let Some(kind) = kind {
            self.emitted.tags.entry(name).or_insert(kind);
        }
        let keyword = if kind == Some(Kind::Union) { "union" } else { "struct" };
        let tag = self.tag_text(keyword, name);
        self.fmt(format_args!("{keyword} "));
        self.put(&tag);
        self.put(b";\n");
        true
    }

    /// Prints what the members need; false if the record was printed already.
    fn needs_of_record(&mut self, id: TypeId, record_id: RecordId) -> bool {
        let record = self.types.record(record_id);
        let kind = if record.is_union() { Kind::Union } else { Kind::Struct };
        if !self.emit(id, kind, record.name) {
            return false;
        }
        self.packed.infer(self.types, record_id);
        self.emitted.open.push(record_id);
        for member in self.types.members(record) {
            if self.needs(member.ty) {
                self.put(b"\n");
            }
        }
        self.emitted.open.pop();
        true
    }

    /// Prints a typedef of a record that is only declared, where its definition holds one that has to
    /// come before it and is not there yet: two records that point to each other by typedefs.
    fn emit_ahead(&mut self, name: NameId, of: TypeId, id: TypeId) -> bool {
        let Type::Record(record) = self.types.get(of) else { return false };
        let tag = self.types.record(record).name;
        let is_typed = self.emitted.named.contains(&(Kind::Typedef, name));
        if !tag.is_some() || is_typed || self.is_emitted(record) || !self.holds_open(record, 0) {
            return false;
        }
        self.declare_tag(of, tag);
        self.emitted.named.insert((Kind::Typedef, name));
        self.emitted.ahead.insert(name);
        self.print(id);
        true
    }

    fn is_emitted(&self, id: RecordId) -> bool {
        let record = self.types.record(id);
        let kind = if record.is_union() { Kind::Union } else { Kind::Struct };
        record.name.is_some() && self.emitted.named.contains(&(kind, record.name))
    }

    /// Returns `true` if an unprinted record holds a record whose dependencies are being printed.
    fn holds_open(&mut self, id: RecordId, depth: usize) -> bool {
        if self.emitted.open.contains(&id) {
            return true;
        }
        if depth == DEPTH_LIMIT || self.is_emitted(id) {
            return false;
        }
        let record = self.types.record(id);
        self.types.members(record).iter().any(|member| {
            self.emitted.steps += 1;
            let limited = self.emitted.steps > self.types.len().saturating_mul(STEPS_PER_TYPE);
            let held = self.held(member.ty).filter(|_| !limited);
            held.is_some_and(|held| self.holds_open(held, depth + 1))
        })
    }

    /// Returns the record that a member of this type holds.
    fn held(&self, mut id: TypeId) -> Option<RecordId> {
        for _ in 0..DEPTH_LIMIT {
            id = match self.types.get(self.types.strip(id)) {
                Type::Array(array) => self.types.array(array).of,
                Type::Record(record) => return Some(record),
                _ => return None,
            }
        }
        None
    }

    fn needs_of_function(&mut self, id: FunctionId) -> bool {
        let function = self.types.function(id);
        let mut printed = self.needs(function.returns);
        for parameter in self.types.parameters(function) {
            printed |= self.needs(parameter.ty);
        }
        if printed {
            self.put(b"\n");
        }
        printed
    }

    fn emit_enum(&mut self, id: EnumId) -> bool {
        let item = self.types.enumeration(id);
        // one without constants is a declaration, and may have to be printed later
        let is_complete = !self.types.enumerators(item).is_empty();
        if self.emitted.named.contains(&(Kind::Enum, item.name)) {
            return false;
        }
        if is_complete && item.name.is_some() {
            self.emitted.named.insert((Kind::Enum, item.name));
            self.emitted.tags.entry(item.name).or_insert(Kind::Enum);
        }
        self.enumeration(id, &Frame::top(&self.style, self.types, TypeId::VOID));
        self.put(b";\n");
        true
    }

    /// Prints what a base type that is atomic stands for.
    fn emit_atomic(&mut self, name: NameId) -> bool {
        let Some(value) = value_type(self.types.name(name)) else { return false };
        if !self.emitted.named.insert((Kind::Typedef, name)) {
            return false;
        }
        self.fmt(format_args!("typedef _Atomic {value} "));
        self.put(self.types.name(name));
        self.put(b";\n");
        true
    }

    fn emit_typedef(&mut self, name: NameId, of: TypeId, id: TypeId) -> bool {
        if self.emitted.named.contains(&(Kind::Typedef, name)) || self.emitted.depth >= NEEDS_LIMIT {
            return false;
        }
        self.emitted.depth += 1;
        let defined = self.needs_of_typedef(name, of);
        self.emitted.depth -= 1;
        // what it needs may have needed the typedef itself
        if self.emitted.named.insert((Kind::Typedef, name)) && !defined {
            self.print(id);
        }
        true
    }

    /// Prints what a typedef needs; whether that is its own definition.
    fn needs_of_typedef(&mut self, name: NameId, of: TypeId) -> bool {
        match self.types.get(of) {
            Type::Pointer { kind: Pointer::Pointer, to } => {
                let to = skip_annotations(self.types, to);
                if matches!(self.types.get(to), Type::Typedef { .. } | Type::Function(_)) {
                    self.needs_of(to);
                }
            }
            Type::Enum(item) if !self.types.enumeration(item).name.is_some() => {
                self.put(b"typedef ");
                let frame = Frame::top(&self.style, self.types, TypeId::VOID);
                self.enumeration(item, &Frame { suffix: Some(self.types.name(name)), ..frame });
                self.put(b";\n");
                return true;
            }
            Type::Record(record) if !self.types.record(record).name.is_some() => {
                self.needs_of_record(of, record);
                let stop = self.stop;
                self.print_typedef_of(of, name);
                self.stop = stop;
                return true;
            }
            _ => {
                self.needs(of);
            }
        }
        false
    }
}
