//! Unions.

use super::{Printer, frame::Frame};
use crate::model::RecordId;

impl Printer<'_> {
    /// The definition of a union, or an inline one with its name behind.
    pub(super) fn union_body(&mut self, id: RecordId, frame: &Frame<'_>) {
        if !self.enter() {
            return;
        }
        let union = self.types.record(id);
        self.head("union", union.name, frame);
        self.put(b" {\n");
        self.packed.infer(self.types, id);
        let inner = Frame { indent: frame.indent + 1, in_union: true, ..*frame };
        // every member starts in the line that the union starts in
        let line = self.line;
        for member in self.types.members(union) {
            if self.out.len() >= self.stop {
                break;
            }
            self.tabs(inner.indent);
            self.member(member, true, &inner);
            self.put(b"\n");
            self.line = line;
        }
        self.tabs(frame.indent);
        self.put(b"}");
        if let Some(suffix) = frame.suffix {
            self.put(b" ");
            self.put(suffix);
        }
        self.leave();
    }

    /// What comes before the brace: a prefix, the keyword and the name.
    pub(super) fn head(&mut self, keyword: &str, name: crate::model::NameId, frame: &Frame<'_>) {
        if let Some(prefix) = frame.prefix {
            self.put(prefix);
            self.put(b" ");
        }
        self.put(keyword.as_bytes());
        if name.is_some() {
            self.put(b" ");
            let tag = self.tag_text(keyword, name);
            self.put(&tag);
        }
    }
}
