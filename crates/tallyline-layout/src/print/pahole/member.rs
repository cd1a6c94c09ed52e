//! One member: its declaration, and the comment with its place.

use super::{Printer, frame::Frame};
use tallyline_debuginfo::model::{Member, MemberKind, NameId, Type};

/// The width of ` __attribute__((__packed__))` in characters.
const PACKED_WIDTH: i64 = 28;

/// The width of ` __attribute__((__aligned__()))` in characters, without the number.
const ALIGNED_WIDTH: i64 = 31;

impl Printer<'_> {
    /// Appends a member without the newline.
    pub(super) fn member(&mut self, member: &Member, of_union: bool, frame: &Frame<'_>) {
        let types = self.types;
        let name = match (member.is_base(), member.name.is_some()) {
            (true, _) => Some(b"<ancestor>".as_slice()),
            (false, true) => Some(types.name(member.name)),
            (false, false) => None,
        };
        self.member_as(member, name, of_union, frame);
    }

    /// Appends a member that goes by this name.
    pub(super) fn member_as(
        &mut self,
        member: &Member,
        name: Option<&[u8]>,
        of_union: bool,
        frame: &Frame<'_>,
    ) {
        let mut inner = *frame;
        let mut offset = member.offset;
        if !inner.relative {
            offset = offset.saturating_add(inner.base);
            if !of_union {
                inner.base = offset;
            }
        }
        if self.style.comments && member.is_placed() {
            self.line_boundary(offset, frame);
        }
        let start = self.out.len();
        let is_base = member.is_base();
        inner.as_base = is_base;
        if is_base {
            self.put(b"/* ");
        }
        if member.kind == MemberKind::Static {
            self.put(b"static ");
        }
        let anonymous = self.member_declaration(member, name, &inner);
        if let Some(field) = member.bitfield {
            self.put(b":");
            self.number(field.size.into(), 0);
        }
        let aligned_at = self.out.len();
        match frame.attributes {
            Some((packed, align)) => self.attributes(packed, align),
            None if self.style.aligned && member.align != 0 => self.aligned(member.align),
            None => {}
        }
        let aligned_width = (self.out.len() - aligned_at) as i64;
        self.put(b";");
        let columns = inner.type_width + inner.name_width;
        let width = if anonymous {
            // as in `pad_from`
            let width = columns - 3 - self.inline_width(member, aligned_width);
            if self.is_declared { width.max(1) } else { width.abs() }
        } else {
            let mut width = columns - (self.out.len() - start) as i64;
            if is_base {
                self.put(b" */");
                width -= 3;
            }
            width
        };
        if inner.offsets {
            self.place(member, offset, width);
            if member.overlaid && member.kind == MemberKind::Data && self.is_function_pointer(member) {
                self.put(b" /* a function itself: takes no bytes */");
            }
        }
    }

    fn is_function_pointer(&self, member: &Member) -> bool {
        let Type::Pointer { to, .. } = self.types.get(self.types.strip(member.ty)) else { return false };
        matches!(self.types.get(self.types.strip(to)), Type::Function(_))
    }

    /// Prints the attributes of a member whose declaration is known.
    fn attributes(&mut self, packed: bool, align: u64) {
        match (packed, align) {
            (false, 0) => {}
            (false, align) => self.aligned(align),
            (true, 0) => self.put(b" __attribute__((__packed__))"),
            (true, align) => {
                self.fmt(format_args!(" __attribute__((__packed__, __aligned__({align})))"));
            }
        }
    }

    /// Prints the attribute that asks for an alignment.
    pub(super) fn aligned(&mut self, align: u64) {
        self.put(b" __attribute__((__aligned__(");
        self.number(align, 0);
        self.put(b")))");
    }

    /// Prints the type and the name; returns whether the type is an anonymous one, printed inline.
    fn member_declaration(&mut self, member: &Member, name: Option<&[u8]>, frame: &Frame<'_>) -> bool {
        let type_name = match self.types.get(member.ty) {
            Type::Record(record) => self.types.record(record).name,
            Type::Enum(item) => self.types.enumeration(item).name,
            _ => {
                self.declaration(member.ty, name, frame);
                return false;
            }
        };
        // the attributes of the type come before the member's name
        self.declaration(member.ty, None, frame);
        if let Some(name) = name {
            if type_name == NameId::NONE || self.style.expand_types {
                self.put(b" ");
            }
            self.put(name);
        }
        type_name == NameId::NONE
    }

    /// Returns the width of an inline member's last line beyond its closing brace.
    fn inline_width(&self, member: &Member, aligned: i64) -> i64 {
        let name = if member.name.is_some() { self.types.name(member.name).len() as i64 } else { -1 };
        let packed = match self.types.get(member.ty) {
            Type::Record(record) if self.declared.get(&record).is_some_and(Option::is_some) => {
                let declared = self.declared.get(&record).and_then(Option::as_deref);
                let align = declared.map_or(0, |declared| declared.align);
                let digits = align.checked_ilog10().map_or(0, |digits| i64::from(digits) + 1);
                let aligned = if align == 0 { 0 } else { ALIGNED_WIDTH + digits };
                aligned + if declared.is_some_and(|declared| declared.packed) { PACKED_WIDTH } else { 0 }
            }
            Type::Record(record)
                if self.style.packed
                    && self.types.record(record).is_struct()
                    && self.packed.is_packed(record) =>
            {
                PACKED_WIDTH
            }
            _ => 0,
        };
        name + aligned + packed
    }

    /// Prints the comment with offset and size.
    fn place(&mut self, member: &Member, offset: u64, width: i64) {
        self.spaces(usize::try_from(width - 1).unwrap_or(0) + 1);
        let mut size_width = 5;
        if member.kind != MemberKind::Static && !member.is_placed() {
            // where it lies is known at run time only
            self.put(b"/*     ?");
        } else if self.style.hex {
            self.fmt(format_args!("/* {:>5}", Hex(offset)));
        } else {
            self.put(b"/* ");
            self.number(offset, 5);
        }
        if let Some(field) = member.bitfield {
            size_width -= 3;
            if self.style.hex {
                self.fmt(format_args!(":{:>2}", Hex(u64::from(field.offset))));
            } else {
                self.put(b":");
                self.number(field.offset.into(), 2);
            }
        }
        if self.style.hex {
            self.fmt(format_args!(" {:>size_width$} */", Hex(member.size)));
        } else {
            self.put(b" ");
            self.number(member.size, size_width);
            self.put(b" */");
        }
    }

    /// Prints a note if a member is the first in its cache line.
    fn line_boundary(&mut self, offset: u64, frame: &Frame<'_>) {
        let line = offset / self.style.cacheline.max(1);
        if line <= self.line {
            return;
        }
        let into = offset % self.style.cacheline.max(1);
        let start = offset - into;
        self.put(b"/* --- cacheline ");
        self.number(line, 0);
        self.put(b" boundary (");
        self.number(start, 0);
        self.put(b" bytes)");
        if into != 0 {
            self.put(b" was ");
            self.number(into, 0);
            self.put(if into > 1 { b" bytes ago" } else { b" byte ago" });
        }
        self.put(b" --- */\n");
        self.tabs(frame.indent);
        self.line = line;
    }
}

/// A number in hexadecimal, as C's `%#x` writes it: zero without a prefix.
struct Hex(u64);

impl std::fmt::Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = if self.0 == 0 { "0".to_string() } else { format!("{:#x}", self.0) };
        f.pad(&digits)
    }
}
