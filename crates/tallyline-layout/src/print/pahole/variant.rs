//! Variants of Rust enums.
//!
//! pahole has no form for them; this one looks like Rust with pahole's columns.

use super::{Printer, frame::Frame, trailer::Sums};
use crate::query::{Coverage, Gap, tag_word};
use tallyline_debuginfo::model::{Record, Variant};

impl Printer<'_> {
    /// Prints the tag and the variants of a record, if it has any.
    pub(super) fn variants(&mut self, record: &Record, frame: &Frame<'_>, sums: &mut Sums) {
        let types = self.types;
        let variants = types.variants(record);
        if variants.is_empty() {
            return;
        }
        let inner =
            Frame { in_union: true, first_member: false, last_member: false, attributes: None, ..*frame };
        // every variant starts in the line that the record starts in
        let line = self.line;
        if let (Some(tag), Some(word)) = (types.tag(record), tag_word(types, record)) {
            self.tabs(inner.indent);
            self.member_as(tag, Some(format!("<{word}>").as_bytes()), true, &inner);
            self.put(b"\n");
        }
        for variant in variants {
            if self.out.len() >= self.stop {
                break;
            }
            self.line = line;
            self.variant(variant, &inner, sums);
        }
        self.line = line;
        sums.count_coverage(&Coverage::of(types, record));
    }

    fn variant(&mut self, variant: &Variant, frame: &Frame<'_>, sums: &mut Sums) {
        let types = self.types;
        self.tabs(frame.indent);
        self.put(types.name(variant.name));
        match variant.tag {
            Some(tag) if self.style.hex && tag >= 0 => self.fmt(format_args!(" = {tag:#x}")),
            Some(tag) => self.fmt(format_args!(" = {tag}")),
            None => {}
        }
        let members = types.variant_members(variant);
        if members.is_empty() {
            self.put(b",\n");
            return;
        }
        self.put(b" {\n");
        let inner =
            Frame { indent: frame.indent + 1, type_width: frame.type_width - 8, stats: false, ..*frame };
        let mut note = false;
        for member in members {
            if self.out.len() >= self.stop {
                break;
            }
            if note {
                self.put(b"\n");
            }
            self.tabs(inner.indent);
            self.member(member, true, &inner);
            note = self.notes_after(member, Gap::default(), &inner, sums);
            self.put(b"\n");
        }
        self.tabs(frame.indent);
        self.put(b"},\n");
    }
}
