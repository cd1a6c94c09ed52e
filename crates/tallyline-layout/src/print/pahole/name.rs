//! Types in one line: what stands before a member's name.

use super::{DEPTH_LIMIT, Printer};
use tallyline_debuginfo::model::{Pointer, Qualifier, Record, RecordKind, Type, TypeId, Types};

impl Printer<'_> {
    /// Appends a type in one line, without a declarator's inner parts.
    pub(super) fn type_name(&mut self, id: TypeId) {
        if !self.enter() {
            return;
        }
        if self.nested_name(id) {
            return self.leave();
        }
        match self.types.get(id) {
            Type::Void => self.put(b"void"),
            Type::Missing => self.put(b"<missing type>"),
            Type::Base { name, .. } | Type::Typedef { name, .. } | Type::Opaque { name } => {
                self.put(self.types.name(name));
            }
            Type::Pointer { kind, to } => match self.pointed_array_or_function(id) {
                // a pointer to a function has always been shown so
                Some(inner) if inner.points.as_slice() != b"*" || inner.is_array => {
                    self.around(&inner, b"", 0);
                }
                _ => self.pointer_name(kind, to),
            },
            Type::MemberPointer { class, to } => {
                if let Type::Function(function) = self.types.get(to) {
                    self.member_prototype(function, class, b"", 0);
                    return self.leave();
                }
                self.type_name(to);
                self.put(b" ");
                self.put(self.types.name(self.types.type_name(class)));
                self.put(b"::*");
            }
            Type::Qualified { qualifier, of } => self.qualified_name(qualifier, of),
            Type::Annotated { of } => self.type_name(of),
            Type::Array(array) => self.type_name(self.types.array(array).of),
            Type::Function(function) => self.prototype(function, None, b"", 0),
            Type::Record(record) => {
                let record = self.types.record(record);
                let keyword = self.keyword(record.kind);
                if !self.is_literal(record) {
                    self.put(keyword.as_bytes());
                    self.put(b" ");
                }
                let name = self.tag_text(keyword, record.name);
                self.put(&name);
            }
            Type::Enum(item) => {
                self.put(b"enum ");
                let name = self.tag_text("enum", self.types.enumeration(item).name);
                self.put(&name);
            }
            Type::Text { .. } => self.put(b"string"),
            Type::Descriptor { of, rank, .. } => {
                self.type_name(of);
                self.put(b" ");
                (0..rank).for_each(|_| self.put(b"[:]"));
            }
        }
        self.leave();
    }

    /// Returns `true` if the name of a record is its definition, as for Go's structs without a name.
    pub(super) fn is_literal(&self, record: &Record) -> bool {
        record.language.is_go() && self.types.name(record.name).starts_with(b"struct {")
    }

    /// Returns the word that declares a record.
    pub(super) fn keyword(&self, kind: RecordKind) -> &'static str {
        match kind {
            RecordKind::Union => "union",
            RecordKind::Class if !self.style.classes_as_structs => "class",
            RecordKind::Interface if !self.style.classes_as_structs => "interface",
            _ => "struct",
        }
    }

    fn pointer_name(&mut self, kind: Pointer, to: TypeId) {
        // a constant pointer is written with the qualifier between the stars
        let mut target = to;
        let mut between: &[u8] = b"";
        if let Type::Qualified { qualifier: Qualifier::Const, of } = self.types.get(to)
            && matches!(self.types.get(of), Type::Pointer { kind: Pointer::Pointer, .. })
        {
            target = of;
            between = b"const ";
        }
        self.type_name(target);
        self.put(b" ");
        self.put(between);
        self.put(match kind {
            Pointer::Pointer => b"*",
            Pointer::Reference => b"&",
            Pointer::RvalueReference => b"&&",
        });
    }

    /// Prints a qualified type: the qualifier before its type, with a blank behind; only `restrict` stands
    /// after it.
    fn qualified_name(&mut self, qualifier: Qualifier, of: TypeId) {
        self.put(match qualifier {
            Qualifier::Const => b"const ",
            Qualifier::Volatile => b"volatile ",
            Qualifier::Atomic => b"_Atomic ",
            Qualifier::Restrict => b"",
        });
        self.type_name(of);
        if qualifier == Qualifier::Restrict {
            self.put(b" restrict");
        }
        self.put(b" ");
    }
}

/// Returns the type behind annotations.
pub(super) fn skip_annotations(types: &Types, mut id: TypeId) -> TypeId {
    for _ in 0..DEPTH_LIMIT {
        match types.get(id) {
            Type::Annotated { of } => id = of,
            _ => break,
        }
    }
    id
}
