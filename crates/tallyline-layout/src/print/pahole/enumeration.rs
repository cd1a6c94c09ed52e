//! Enumerations.

use super::{Printer, frame::Frame};
use tallyline_debuginfo::model::{EnumId, Language};

impl Printer<'_> {
    /// Prints the definition of an enumeration.
    pub(super) fn enumeration(&mut self, id: EnumId, frame: &Frame<'_>) {
        let item = self.types.enumeration(id);
        self.put(b"enum");
        if item.name.is_some() {
            self.put(b" ");
            self.scopes(frame.path, Language::default());
            let tag = self.tag_text("enum", item.name);
            self.put(&tag);
        }
        let enumerators = self.types.enumerators(item);
        // without constants it is a forward declaration
        if enumerators.is_empty() {
            return;
        }
        self.put(b" {\n");
        let width = enumerators.iter().map(|item| self.types.name(item.name).len()).max().unwrap_or(0) as i64;
        for enumerator in enumerators {
            if self.out.len() >= self.stop {
                break;
            }
            self.tabs(frame.indent);
            self.put(b"\t");
            let start = self.out.len();
            self.put(self.types.name(enumerator.name));
            self.pad_from(start, width);
            match (self.style.hex, item.signed) {
                (true, _) if enumerator.value == 0 => self.put(b" = 0,\n"),
                (true, _) => self.fmt(format_args!(" = {:#x},\n", enumerator.value)),
                (false, true) => self.fmt(format_args!(" = {},\n", enumerator.value as i64)),
                (false, false) => self.fmt(format_args!(" = {},\n", enumerator.value)),
            }
        }
        self.tabs(frame.indent);
        self.put(b"}");
        if item.size != 4 {
            self.put(b" __attribute__((__packed__))");
        }
        if let Some(suffix) = frame.suffix {
            self.put(b" ");
            self.put(suffix);
        }
    }
}
