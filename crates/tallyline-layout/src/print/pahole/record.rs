//! Structs and classes: members, and what lies between them.

use super::trailer::{Inner, Sums};
use super::{Printer, frame::Frame};
use crate::explain::Declaration;
use crate::query::{Gap, Layout, Summary, ends_flexibly, layout, summary_as_base};
use tallyline_debuginfo::abi::size_of;
use tallyline_debuginfo::model::{
    Access, Member, MemberKind, NameId, Origin, Record, RecordId, RecordKind, Type,
};

/// The member before, as far as the next one needs it.
struct Last<'t> {
    member: &'t Member,
    gap: Gap,
    /// The size of the member in bytes, or of the unit that several bitfields share.
    size: u64,
}

impl Printer<'_> {
    /// Prints the definition of a struct, or an inline one with its name behind.
    pub(super) fn record_body(&mut self, id: RecordId, frame: &Frame<'_>) {
        if !self.enter() {
            return;
        }
        let types = self.types;
        let record = types.record(id);
        let keyword = match types.variants(record).is_empty() {
            false if record.language.is_zig() => "union",
            false if record.language.is_rust() => "enum",
            _ => self.keyword(record.kind),
        };
        self.head(keyword, record, frame);
        let inferred = self.packed.infer(types, id);
        let declared = self.declaration_of(id);
        let packed = declared.as_ref().map_or(inferred, |declared| declared.packed);
        self.bases(record);
        self.put(b" {\n");

        let layout = layout(types, record);
        let mut inner = Frame { indent: frame.indent + 1, path: NameId::NONE, ..*frame };
        let mut sums = Sums::default();
        self.members(id, &layout, &mut inner, &mut sums, declared.as_deref());
        self.variants(record, &inner, &mut sums);
        if frame.stats {
            self.trailer(id, &layout.summary, &sums, &inner);
        }
        self.tabs(frame.indent);
        self.put(b"}");
        if packed && self.style.packed {
            self.put(b" __attribute__((__packed__))");
        }
        // behind a name it would be the typedef's or the member's
        self.declared_alignment(declared.as_deref());
        if let Some(suffix) = frame.suffix {
            self.put(b" ");
            self.put(suffix);
        }
        // an inferred `packed` explains an odd alignment already
        if declared.is_none()
            && self.style.aligned
            && record.align != 0
            && !packed
            && self.is_asked_for(id, record)
        {
            self.aligned(record.align);
        }
        self.leave();
    }

    /// Returns `true` if the source asks for a record's alignment: Rust's and Zig's compilers note every alignment.
    fn is_asked_for(&mut self, id: RecordId, record: &Record) -> bool {
        !record.language.notes_alignment()
            || record.align > self.packed.alignments().of_record(self.types, id)
    }

    /// Prints the bases that a class names, in that order.
    fn bases(&mut self, record: &Record) {
        let members = self.types.members(record).iter();
        let mut bases: Vec<&Member> = members.filter(|base| base.is_base() && !base.artificial).collect();
        bases.sort_by_key(|base| base.declared);
        for (index, base) in bases.into_iter().enumerate() {
            self.put(if index == 0 { b" :" } else { b"," });
            if base.kind == MemberKind::VirtualBase {
                self.put(b" virtual");
            }
            if base.access != default_access(record) {
                self.put(b" ");
                self.put(access_word(base.access));
            }
            self.put(b" ");
            self.put(self.types.name(self.types.type_name(base.ty)));
        }
    }

    /// Prints the alignment of a record whose declaration is known.
    pub(super) fn declared_alignment(&mut self, declared: Option<&Declaration>) {
        if let Some(declared) = declared.filter(|declared| declared.align != 0 && self.style.aligned) {
            self.aligned(declared.align);
        }
    }

    fn members(
        &mut self,
        id: RecordId,
        layout: &Layout,
        frame: &mut Frame<'_>,
        sums: &mut Sums,
        declared: Option<&Declaration>,
    ) {
        let types = self.types;
        let record = types.record(id);
        let members = types.members(record);
        let as_base = frame.as_base;
        let is_elsewhere = |member: &Member| as_base && member.kind == MemberKind::VirtualBase;
        let mut last: Option<Last<'_>> = None;
        let mut access = default_access(record);
        let mut note = self.gap_before_first(layout.first, frame, sums);
        for (index, member) in members.iter().enumerate() {
            if self.out.len() >= self.stop {
                break;
            }
            // a base's own virtual bases lie elsewhere in the whole object, which has them as its members
            if is_elsewhere(member) {
                continue;
            }
            let next = members[index + 1..].iter().find(|next| next.takes_bytes());
            let gap = if next.is_some_and(is_elsewhere) { Gap::default() } else { layout.gaps[index] };
            let own = declared.and_then(|declared| declared.members.get(index));
            frame.attributes = own.map(|own| (own.packed, own.align));
            let is_aligned = own.map_or(member.align != 0, |own| own.align != 0);
            if self.style.aligned && is_aligned {
                sums.count_alignment(last.as_ref().map_or(layout.first, |last| last.gap));
            }
            if let Some(last) = &last
                && member.kind == MemberKind::Data
                && !member.overlaid
                && last.size != 0
            {
                note |= self.between(last, member, frame, note, own.is_some());
            }
            // one empty line around the notes
            if note {
                self.put(b"\n");
            }
            if record.language.is_cpp() {
                self.access(member, &mut access, frame);
            }
            frame.first_member = last.is_none();
            frame.last_member = index + 1 == members.len();
            self.unnamed_bits(member, own.map_or(&[], |own| &own.before), frame);
            self.tabs(frame.indent);
            self.member(member, false, frame);
            note = self.notes_after(member, gap, frame, sums);
            self.put(b"\n");
            self.unnamed_bits(member, own.map_or(&[], |own| &own.behind), frame);
            if member.overlaid || !member.is_placed() {
                continue;
            }
            // the tail of a base, or of a member whose address need not be its own, that holds others
            let shares = member.is_base() || record.language.is_cpp() && member.bitfield.is_none();
            let shared = if shares { gap.bytes.min(0) } else { 0 };
            let size = member.size.saturating_add_signed(shared);
            sums.count_member(member, size);
            last = Some(Last { member, gap, size: unit_size(last.as_ref(), member, size) });
        }
        if let Some(last) = last.filter(|_| declared.is_none()) {
            self.force_padding(id, layout.summary, last.member, frame);
        }
    }

    /// Says who may use the members from here on, where that changes.
    fn access(&mut self, member: &Member, current: &mut Access, frame: &Frame<'_>) {
        if member.is_base() || member.artificial || member.access == *current {
            return;
        }
        *current = member.access;
        self.tabs(frame.indent.saturating_sub(1));
        self.put(access_word(member.access));
        self.put(b":\n\n");
    }

    /// Prints notes on unused bits and bytes before the first member; returns `true` if there were any.
    fn gap_before_first(&mut self, gap: Gap, frame: &Frame<'_>, sums: &mut Sums) -> bool {
        let mut noted = false;
        for (size, unit) in [(i64::from(gap.bits), "bit"), (gap.bytes, "byte")] {
            if size <= 0 || !self.style.comments {
                continue;
            }
            if !noted {
                self.put(b"\n");
            }
            noted = true;
            self.tabs(frame.indent);
            self.hole(size, unit);
            self.put(b"\n");
        }
        if noted {
            sums.count_gap(gap);
        }
        noted
    }

    fn hole(&mut self, size: i64, unit: &str) {
        self.put(b"/* XXX ");
        self.number(size.unsigned_abs(), 0);
        self.put(b" ");
        self.put(unit.as_bytes());
        // "4 bytes hole" is pahole's grammar
        self.put(if size == 1 { b" hole, try to pack */" } else { b"s hole, try to pack */" });
    }

    /// Prints the separator of two members that share bytes, or that explicit padding separates.
    /// Returns whether a note was added; `noted` says whether there is one already.
    fn between(
        &mut self,
        last: &Last<'_>,
        member: &Member,
        frame: &Frame<'_>,
        noted: bool,
        declared: bool,
    ) -> bool {
        if last.gap.bits != 0 && member.bitfield.is_some() && !declared {
            self.explicit_bits(last, member, frame);
        }
        let combined = if member.offset < last.member.offset
            || member.offset == last.member.offset
                && last.member.bitfield.is_none()
                && member.bitfield.is_some()
        {
            "previous"
        } else if member.offset > last.member.offset && member.offset - last.member.offset < last.size {
            "next"
        } else {
            return false;
        };
        if !self.style.comments {
            return false;
        }
        if !noted {
            self.put(b"\n");
        }
        self.tabs(frame.indent);
        self.fmt(format_args!("/* Bitfield combined with {combined} fields */\n"));
        true
    }

    /// Prints an unnamed bitfield that makes the hole between two bitfields explicit.
    fn explicit_bits(&mut self, last: &Last<'_>, member: &Member, frame: &Frame<'_>) {
        let mut size = last.gap.bits;
        if last.member.offset != member.offset {
            self.put(b"\n");
            self.tabs(frame.indent);
            self.put(b"/* Force alignment to the next boundary: */\n");
            size = 0;
        }
        self.unnamed(member, size.into(), frame);
    }

    /// Prints unnamed bitfields of the type of one beside them.
    fn unnamed_bits(&mut self, member: &Member, widths: &[u64], frame: &Frame<'_>) {
        widths.iter().for_each(|width| self.unnamed(member, *width, frame));
    }

    fn unnamed(&mut self, member: &Member, size: u64, frame: &Frame<'_>) {
        self.tabs(frame.indent);
        let is_bool = matches!(self.types.get(self.types.strip(member.ty)), Type::Base { name, .. }
            if matches!(self.types.name(name), b"_Bool" | b"bool"));
        if self.is_exact() && is_bool && size > 1 {
            // of a bool there is one bit
            self.put(b"unsigned char ");
        } else {
            self.declaration(member.ty, Some(b""), frame);
        }
        self.fmt(format_args!(":{size};\n"));
    }

    /// Notes on the member's own type and on the hole behind it; whether there were any.
    pub(super) fn notes_after(
        &mut self,
        member: &Member,
        gap: Gap,
        frame: &Frame<'_>,
        sums: &mut Sums,
    ) -> bool {
        if !self.style.comments {
            return false;
        }
        let mut noted = false;
        if let Type::Record(record) = self.types.get(member.ty)
            && self.types.record(record).is_struct()
            && !(member.overlaid || member.is_base() && member.size == 0)
        {
            noted = self.note_on_type(record, member, frame, sums);
        }
        for (size, unit) in [(i64::from(gap.bits), "bit"), (gap.bytes, "byte")] {
            if size <= 0 {
                continue;
            }
            if !noted {
                self.put(b"\n");
            }
            noted = true;
            self.put(b"\n");
            self.tabs(frame.indent);
            self.hole(size, unit);
        }
        sums.count_gap(gap);
        noted
    }

    /// Notes the unused bytes inside a member that is a struct.
    fn note_on_type(&mut self, id: RecordId, member: &Member, frame: &Frame<'_>, sums: &mut Sums) -> bool {
        self.packed.infer(self.types, id);
        let record = self.types.record(id);
        // a base is smaller by its own virtual bases: a hole before them is none of the base
        let is_virtual = |inner: &Member| inner.kind == MemberKind::VirtualBase;
        let summary = match member.is_base() && self.types.members(record).iter().any(is_virtual) {
            true => summary_as_base(self.types, record, member.size),
            false => self.summary(id),
        };
        let inner = Inner {
            summary,
            ends_flexibly: ends_flexibly(self.types, record),
            holds_flexible: self.flexible.contains_flexible(self.types, id),
        };
        if inner.is_plain() {
            return false;
        }
        self.put(b"\n\n");
        self.tabs(frame.indent);
        self.put(b"/* XXX last struct has");
        self.inner_text(&inner);
        self.put(b" */");
        sums.count_inner(&inner);
        true
    }

    /// Prints unnamed bitfields at the end for padding that no alignment explains. Only DWARF can tell: BTF
    /// has no alignment.
    fn force_padding(&mut self, id: RecordId, summary: Summary, last: &Member, frame: &Frame<'_>) {
        let record = self.types.record(id);
        let is_c = !record.language.has_scopes() && !record.language.is_go();
        let explained = record.align != 0 || !is_c || self.types.origin() != Origin::Dwarf;
        let size = size_of(self.types, last.ty);
        if explained
            || !self.style.force_padding
            || !size.is_power_of_two()
            || summary.padding <= self.types.pointer_size()
        {
            return;
        }
        self.put(b"\n");
        self.tabs(frame.indent);
        self.put(b"/* Force padding: */\n");
        let mut added = 0;
        while added < summary.padding && self.out.len() < self.stop {
            self.tabs(frame.indent);
            self.declaration(last.ty, Some(b""), frame);
            self.fmt(format_args!(":{};\n", size.saturating_mul(8)));
            added = added.saturating_add(size);
        }
    }
}

/// Returns the default access of a record's members.
fn default_access(record: &Record) -> Access {
    match record.kind {
        RecordKind::Class if record.language.is_cpp() => Access::Private,
        _ => Access::Public,
    }
}

fn access_word(access: Access) -> &'static [u8] {
    match access {
        Access::Public => b"public",
        Access::Protected => b"protected",
        Access::Private => b"private",
    }
}

/// Returns the size that the next member is compared with: bitfields at one place share a unit.
fn unit_size(last: Option<&Last<'_>>, member: &Member, size: u64) -> u64 {
    match last {
        Some(last)
            if last.size != 0
                && last.member.offset == member.offset
                && !(last.member.bitfield.is_none() && member.bitfield.is_some()) =>
        {
            last.size
        }
        _ => size,
    }
}
