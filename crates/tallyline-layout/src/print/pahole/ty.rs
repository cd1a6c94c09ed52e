//! A type and the name that it declares, in columns or unfolded.

use super::name::skip_annotations;
use super::{Printer, frame::Frame};
use tallyline_debuginfo::abi::size_of;
use tallyline_debuginfo::model::{ArrayId, Pointer, Qualifier, Type, TypeId};

/// The inner part of a declaration: the pointers before the name, and the array or function that
/// they point to.
pub(super) struct Inner {
    pub(super) points: Vec<u8>,
    target: TypeId,
    pub(super) is_array: bool,
}

impl Printer<'_> {
    /// Appends `type name`. Without a name the caller appends it behind the type itself.
    pub(super) fn declaration(&mut self, id: TypeId, name: Option<&[u8]>, frame: &Frame<'_>) {
        if !self.enter() {
            return;
        }
        if self.style.expand_pointers {
            self.pointee(id, name, frame);
        } else {
            let unfold = self.style.expand_types;
            let id = if unfold { self.unfold_typedefs(id) } else { id };
            self.declare(id, name, &Frame { unfold, ..*frame });
        }
        self.leave();
    }

    /// Appends `type name` with what a pointer points to unfolded, the stars before the name.
    fn pointee(&mut self, mut id: TypeId, name: Option<&[u8]>, frame: &Frame<'_>) {
        // stars alone do not make this declarator: `void (*(*name)(int))(char)`
        if matches!(self.types.get(id), Type::Pointer { .. }) && self.nested(id, name, frame) {
            return;
        }
        let mut starred = Vec::new();
        while let Type::Pointer { to, .. } = self.types.get(id) {
            if to == TypeId::VOID || starred.len() == super::DEPTH_LIMIT {
                break;
            }
            starred.push(b'*');
            id = to;
        }
        let is_pointer = !starred.is_empty();
        // of a volatile function DWARF says that it does not return
        if let Type::Qualified { of, .. } = self.types.get(id)
            && is_pointer
            && matches!(self.types.get(of), Type::Function(_))
        {
            id = of;
        }
        // unions unfold where all types do, pointed to or not
        let is_union = self.types.as_record(id).is_some_and(|(_, record)| record.is_union());
        let wanted = if is_union { self.style.expand_types } else { is_pointer };
        let unfold = wanted && !self.pointed_to.contains(&id);
        self.pointed_to.push(id);
        starred.extend_from_slice(name.unwrap_or_default());
        let inner = if unfold { self.unfold_typedefs(id) } else { id };
        if let Type::Array(array) = self.types.get(skip_annotations(self.types, inner))
            && is_pointer
            && !self.types.array(array).vector
        {
            starred = [b"(", &starred[..], b")"].concat();
        }
        let name = if is_pointer { Some(starred.as_slice()) } else { name };
        // where the members of another object lie says nothing about this one
        self.declare(inner, name, &Frame { unfold, offsets: frame.offsets && !is_pointer, ..*frame });
        self.pointed_to.pop();
    }

    fn declare(&mut self, mut id: TypeId, name: Option<&[u8]>, frame: &Frame<'_>) {
        if self.nested(id, name, frame) {
            return;
        }
        let mut frame = *frame;
        // an inline type has no sums at its end, except where it is qualified
        let mut stats = false;
        for _ in 0..super::DEPTH_LIMIT {
            match self.types.get(id) {
                Type::Qualified { qualifier: qualifier @ (Qualifier::Const | Qualifier::Atomic), of }
                    if of != TypeId::VOID =>
                {
                    let word: &[u8] = if qualifier == Qualifier::Const { b"const " } else { b"_Atomic " };
                    self.put(word);
                    frame.type_width -= word.len() as i64;
                    stats = frame.stats;
                    id = of;
                }
                Type::Annotated { of } => id = of,
                Type::Pointer { kind, to } => {
                    if let Some(inner) = self.pointed_array_or_function(id) {
                        return self.around(&inner, name.unwrap_or_default(), frame.type_width);
                    }
                    if kind == Pointer::Pointer {
                        return self.pointer(id, skip_annotations(self.types, to), name, &frame);
                    }
                    return self.plain(id, name, &frame);
                }
                Type::MemberPointer { class, to } => {
                    let Type::Function(function) = self.types.get(to) else {
                        return self.plain(id, name, &frame);
                    };
                    let name = name.unwrap_or_default();
                    return self.member_prototype(function, class, name, frame.type_width);
                }
                Type::Function(function) => return self.prototype(function, name, b"", frame.type_width),
                Type::Array(array) => return self.array(array, name.unwrap_or_default(), &frame),
                Type::Descriptor { of, rank, .. } => {
                    self.declaration(of, Some(name.unwrap_or_default()), &Frame { unfold: false, ..frame });
                    return (0..rank).for_each(|_| self.put(b"[:]"));
                }
                Type::Record(record) => {
                    return self.inline_record(record, name, &Frame { stats, ..frame });
                }
                Type::Enum(item) => {
                    let item_name = self.types.enumeration(item).name;
                    if !item_name.is_some() || frame.unfold {
                        return self.enumeration(item, &Frame { suffix: name, ..frame });
                    }
                    self.put(b"enum ");
                    let tag = self.tag_text("enum", item_name);
                    return self.column(&tag, frame.type_width - 5, name);
                }
                _ => return self.plain(id, name, &frame),
            }
        }
    }

    fn inline_record(
        &mut self,
        id: tallyline_debuginfo::model::RecordId,
        name: Option<&[u8]>,
        frame: &Frame<'_>,
    ) {
        let record = self.types.record(id);
        if record.name.is_some() && !frame.unfold {
            let keyword = self.keyword(record.kind);
            if self.is_literal(record) {
                return self.column(self.types.name(record.name), frame.type_width, name);
            }
            self.put(keyword.as_bytes());
            self.put(b" ");
            let width = frame.type_width - if record.is_union() { 6 } else { 7 };
            let tag = self.tag_text(keyword, record.name);
            return self.column(&tag, width, name);
        }
        if record.is_union() {
            self.union_body(id, &frame.inline(name));
        } else {
            self.record_body(id, &Frame { stats: frame.stats, ..frame.inline(name) });
        }
    }

    /// Prints a word padded to a column, a blank, and the name.
    fn column(&mut self, word: &[u8], width: i64, name: Option<&[u8]>) {
        let start = self.out.len();
        self.put(word);
        self.pad_from(start, width);
        self.put(b" ");
        self.put(name.unwrap_or_default());
    }

    fn plain(&mut self, id: TypeId, name: Option<&[u8]>, frame: &Frame<'_>) {
        let start = self.out.len();
        self.type_name(id);
        self.pad_from(start, frame.type_width);
        self.put(b" ");
        self.put(name.unwrap_or_default());
    }

    /// Returns the array or function that a pointer leads to, through further pointers.
    pub(super) fn pointed_array_or_function(&self, mut id: TypeId) -> Option<Inner> {
        let mut points: Vec<&[u8]> = Vec::new();
        for _ in 0..super::DEPTH_LIMIT {
            id = skip_annotations(self.types, id);
            match self.types.get(id) {
                Type::Pointer { kind, to } => {
                    points.push(match kind {
                        Pointer::Pointer => b"*",
                        Pointer::Reference => b"&",
                        Pointer::RvalueReference => b"&&",
                    });
                    id = to;
                }
                // a function cannot change anyway, and of a volatile one it is said that it does not return
                Type::Qualified { of, .. }
                    if !points.is_empty() && matches!(self.types.get(of), Type::Function(_)) =>
                {
                    id = of;
                }
                Type::Qualified { qualifier: Qualifier::Const, of }
                    if !points.is_empty() && matches!(self.types.get(of), Type::Pointer { .. }) =>
                {
                    points.push(b"const ");
                    id = of;
                }
                Type::Array(array) if self.types.array(array).vector => return None,
                Type::Array(_) | Type::Function(_) => {
                    points.reverse();
                    let is_array = matches!(self.types.get(id), Type::Array(_));
                    return Some(Inner { points: points.concat(), target: id, is_array });
                }
                _ => return None,
            }
        }
        None
    }

    /// Prints a declaration whose name stands inside: `int (*name)[5]`.
    pub(super) fn around(&mut self, inner: &Inner, name: &[u8], width: i64) {
        match self.types.get(inner.target) {
            Type::Function(function) => self.prototype(function, Some(name), &inner.points, width),
            Type::Array(array) => {
                let (element, dimensions) = self.dimensions(array);
                let start = self.out.len();
                self.type_name(element);
                self.pad_from(start, width);
                self.put(b" (");
                self.put(&inner.points);
                self.put(name);
                self.put(b")");
                dimensions.into_iter().for_each(|dimension| self.dimension(dimension, false));
            }
            _ => {}
        }
    }

    /// Prints a pointer, which to a function or to an anonymous type has a form of its own.
    fn pointer(&mut self, id: TypeId, to: TypeId, name: Option<&[u8]>, frame: &Frame<'_>) {
        let anonymous = match self.types.get(to) {
            Type::Function(function) => return self.prototype(function, name, b"*", frame.type_width),
            Type::Record(record) => !self.types.record(record).name.is_some(),
            Type::Enum(item) => !self.types.enumeration(item).name.is_some(),
            _ => false,
        };
        if !anonymous {
            return self.plain(id, name, frame);
        }
        let mut starred = b"* ".to_vec();
        starred.extend_from_slice(name.unwrap_or_default());
        let inner = Frame {
            relative: true,
            type_width: frame.type_width - 8,
            suffix: Some(&starred),
            stats: false,
            ..*frame
        };
        match self.types.get(to) {
            Type::Record(record) if self.types.record(record).is_union() => {
                self.union_body(record, &inner.inline(Some(&starred)));
            }
            Type::Record(record) => self.record_body(record, &inner.inline(Some(&starred))),
            Type::Enum(item) => self.enumeration(item, &inner),
            _ => {}
        }
    }

    /// Prints the typedefs that an expanded type went through: `/* typedef u32 -> __u32 */`.
    fn unfold_typedefs(&mut self, mut id: TypeId) -> TypeId {
        let mut unfolded = 0;
        while let Type::Typedef { name, of } = self.types.get(id) {
            if unfolded == super::DEPTH_LIMIT {
                break;
            }
            self.put(if unfolded == 0 { b"/* typedef " } else { b" -> " });
            self.put(self.types.name(name));
            unfolded += 1;
            id = of;
        }
        if unfolded != 0 {
            self.put(b" */ ");
        }
        id
    }

    /// Prints an array: its element, the name, and the dimensions.
    pub(super) fn array(&mut self, id: ArrayId, name: &[u8], frame: &Frame<'_>) {
        if !self.enter() {
            return;
        }
        let array = self.types.array(id);
        let (mut element, dimensions) = self.dimensions(id);
        // a constant array of no elements is shown without the qualifier
        if dimensions.first() == Some(&0)
            && let Type::Qualified { qualifier: Qualifier::Const, of } = self.types.get(element)
        {
            element = of;
        }
        if self.is_exact()
            && let Some(inner) = self.pointed_array_or_function(element)
        {
            // pahole has the dimensions behind it all
            let dimensions: String = dimensions.iter().map(|count| format!("[{count}]")).collect();
            self.around(&inner, &[name, dimensions.as_bytes()].concat(), frame.type_width);
            return self.leave();
        }
        self.declaration(element, Some(name), frame);
        let open = frame.last_member && !frame.first_member && !frame.in_union;
        if array.vector {
            let count = product(&dimensions).max(1);
            let bytes = count.saturating_mul(size_of(self.types, array.of));
            self.fmt(format_args!(" __attribute__ ((__vector_size__ ({bytes})))"));
        } else if self.style.flat_arrays && !dimensions.is_empty() {
            self.dimension(product(&dimensions), open);
        } else {
            for dimension in dimensions {
                self.dimension(dimension, open);
            }
        }
        self.leave();
    }

    /// Returns the element and all dimensions: BTF has an array of arrays where C has several dimensions.
    fn dimensions(&self, id: ArrayId) -> (TypeId, Vec<u64>) {
        let outer = self.types.array(id);
        let mut element = outer.of;
        let mut dimensions = self.types.dimensions(outer).to_vec();
        for _ in 0..super::DEPTH_LIMIT {
            let Type::Array(inner) = self.types.get(element) else { break };
            let inner = self.types.array(inner);
            if inner.vector || outer.vector {
                break;
            }
            dimensions.extend_from_slice(self.types.dimensions(inner));
            element = inner.of;
        }
        (element, dimensions)
    }

    /// Prints one dimension; an unknown one of a last member is a flexible array's.
    fn dimension(&mut self, count: u64, open: bool) {
        match (count, open) {
            (0, true) => self.put(b"[]"),
            _ => {
                self.put(b"[");
                self.number(count, 0);
                self.put(b"]");
            }
        }
    }
}

fn product(dimensions: &[u64]) -> u64 {
    dimensions.iter().fold(1, |product, n| product.saturating_mul(*n))
}
