//! Unions.

use super::{Printer, frame::Frame};
use tallyline_debuginfo::model::{Language, NameId, Record, RecordId};

impl Printer<'_> {
    /// Prints the definition of a union, or an inline one with its name behind.
    pub(super) fn union_body(&mut self, id: RecordId, frame: &Frame<'_>) {
        if !self.enter() {
            return;
        }
        let union = self.types.record(id);
        self.head("union", union, frame);
        self.put(b" {\n");
        self.packed.infer(self.types, id);
        let declared = self.declaration_of(id);
        let mut inner = Frame { indent: frame.indent + 1, in_union: true, path: NameId::NONE, ..*frame };
        // every member starts in the line that the union starts in
        let line = self.line;
        for (index, member) in self.types.members(union).iter().enumerate() {
            if self.out.len() >= self.stop {
                break;
            }
            let own = declared.as_ref().and_then(|declared| declared.members.get(index));
            inner.attributes = own.map(|own| (own.packed, own.align));
            self.tabs(inner.indent);
            self.member(member, true, &inner);
            self.put(b"\n");
            self.line = line;
        }
        self.tabs(frame.indent);
        self.put(b"}");
        if declared.as_ref().is_some_and(|declared| declared.packed) && self.style.packed {
            self.put(b" __attribute__((__packed__))");
        }
        self.declared_alignment(declared.as_deref());
        if let Some(suffix) = frame.suffix {
            self.put(b" ");
            self.put(suffix);
        }
        self.leave();
    }

    /// Prints the scopes that a type is declared in, each followed by the separator.
    pub(super) fn scopes(&mut self, path: NameId, language: Language) {
        if path.is_some() {
            self.put(self.types.name(path));
            self.put(language.separator());
        }
    }

    /// Prints the text before the brace: a prefix, the keyword and the name.
    pub(super) fn head(&mut self, keyword: &str, record: &Record, frame: &Frame<'_>) {
        if let Some(prefix) = frame.prefix {
            self.put(prefix);
            self.put(b" ");
        }
        if self.is_literal(record) {
            return self.put(self.types.name(record.name));
        }
        self.put(keyword.as_bytes());
        if record.name.is_some() {
            self.put(b" ");
            self.scopes(frame.path, record.language);
            let tag = self.tag_text(keyword, record.name);
            self.put(&tag);
        }
    }
}
