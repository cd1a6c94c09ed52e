//! The sums at the end of a struct.

use super::{Printer, frame::Frame};
use crate::query::{Coverage, Gap, Summary, first_biggest_member};
use tallyline_debuginfo::model::{Member, MemberKind, RecordId};

/// The notes on a member whose type is a struct.
pub(super) struct Inner {
    pub(super) summary: Summary,
    pub(super) ends_flexibly: bool,
    pub(super) holds_flexible: bool,
}

impl Inner {
    /// Returns `true` if there is nothing to note on the member's struct.
    pub(super) fn is_plain(&self) -> bool {
        self.summary == Summary::default() && !self.ends_flexibly && !self.holds_flexible
    }
}

/// A count and a sum.
#[derive(Default)]
struct Tally {
    count: u64,
    total: u64,
}

impl Tally {
    fn add(&mut self, amount: u64) {
        self.count += u64::from(amount != 0);
        self.total = self.total.saturating_add(amount);
    }
}

/// The sums over the members.
#[derive(Default)]
pub(super) struct Sums {
    bytes: u64,
    bits: u64,
    hole_bytes: u64,
    hole_bits: u64,
    forced_alignments: u64,
    forced_holes: Tally,
    paddings: Tally,
    bit_paddings: Tally,
    holes: Tally,
    bit_holes: Tally,
    flexible: u64,
    embedded_flexible: u64,
}

impl Sums {
    pub(super) fn count_member(&mut self, member: &Member, size: u64) {
        match member.bitfield {
            Some(field) => self.bits += u64::from(field.size),
            None => self.bytes = self.bytes.saturating_add(size),
        }
    }

    pub(super) fn count_gap(&mut self, gap: Gap) {
        self.hole_bits += u64::from(gap.bits);
        self.hole_bytes = self.hole_bytes.saturating_add(u64::try_from(gap.bytes).unwrap_or(0));
    }

    /// Adds the bytes that the members of variants cover together.
    pub(super) fn count_coverage(&mut self, coverage: &Coverage) {
        self.bytes = coverage.bytes();
        self.hole_bytes = coverage.gaps().fold(0, |sum: u64, gap| sum.saturating_add(gap.1));
    }

    /// Counts a member with an alignment of its own, and the hole before it.
    pub(super) fn count_alignment(&mut self, before: Gap) {
        self.forced_alignments += 1;
        self.forced_holes.add(u64::try_from(before.bytes).unwrap_or(0));
    }

    pub(super) fn count_inner(&mut self, inner: &Inner) {
        self.paddings.add(inner.summary.padding);
        self.bit_paddings.add(inner.summary.bit_padding.into());
        self.holes.add(inner.summary.holes.into());
        self.bit_holes.add(inner.summary.bit_holes.into());
        self.flexible += u64::from(inner.ends_flexibly);
        self.embedded_flexible += u64::from(inner.holds_flexible);
    }
}

impl Printer<'_> {
    /// Prints the comments at the end, one line each.
    pub(super) fn trailer(&mut self, id: RecordId, summary: &Summary, sums: &Sums, frame: &Frame<'_>) {
        self.put(b"\n");
        self.trailer_lines(id, summary, sums, frame);
        self.check_sums(id, summary, sums, frame);
    }

    fn trailer_lines(&mut self, id: RecordId, summary: &Summary, sums: &Sums, frame: &Frame<'_>) {
        let record = self.types.record(id);
        let line = self.style.cacheline.max(1);
        self.comment(frame, |to| to.sizes(id));
        self.sums_of_members(sums, summary, frame);
        if summary.padding != 0 {
            self.comment(frame, |to| to.labelled(b"padding: ", summary.padding));
        }
        self.sums_of_types(sums, frame);
        if summary.bit_padding != 0 {
            self.comment(frame, |to| {
                to.labelled(b"bit_padding: ", summary.bit_padding.into());
                to.put(b" bits");
            });
        }
        if sums.forced_alignments != 0 {
            self.comment(frame, |to| to.forced_alignments(sums));
        }
        if (sums.flexible, sums.embedded_flexible) != (0, 0) {
            let counts = [(&b"end: "[..], sums.flexible), (b"middle: ", sums.embedded_flexible)];
            self.comment(frame, |to| {
                to.put(b"flexible array members: ");
                to.list(&counts);
            });
        }
        let last = frame.base.saturating_add(record.size) % line;
        if last != 0 && !record.is_dynamic {
            self.comment(frame, |to| {
                to.labelled(b"last cacheline: ", last);
                to.put(b" bytes");
            });
        }
        if self.style.first_biggest {
            self.first_biggest(id, frame);
        }
    }

    /// Appends a line that is a comment.
    fn comment(&mut self, frame: &Frame<'_>, text: impl FnOnce(&mut Self)) {
        self.tabs(frame.indent);
        self.put(b"/* ");
        text(self);
        self.put(b" */\n");
    }

    fn labelled(&mut self, label: &[u8], number: u64) {
        self.put(label);
        self.number(number, 0);
    }

    /// Prints numbers with their labels, commas between; zeros are left out.
    fn list(&mut self, numbers: &[(&[u8], u64)]) {
        let there = numbers.iter().filter(|(_, number)| *number != 0);
        for (index, (label, number)) in there.enumerate() {
            if index != 0 {
                self.put(b", ");
            }
            self.labelled(label, *number);
        }
    }

    fn sizes(&mut self, id: RecordId) {
        let types = self.types;
        let record = types.record(id);
        let members = types.members(record);
        let statics = members.iter().filter(|member| member.kind == MemberKind::Static).count();
        if record.is_dynamic {
            // what its contents add is known at run time only
            self.labelled(b"size: at least ", record.size);
        } else {
            self.labelled(b"size: ", record.size);
            self.labelled(b", cachelines: ", self.own_size(id).div_ceil(self.style.cacheline.max(1)));
        }
        self.labelled(b", members: ", (members.len() - statics) as u64);
        if statics != 0 {
            self.labelled(b", static members: ", statics as u64);
        }
        let variants = types.variants(record);
        if !variants.is_empty() {
            let used = || variants.iter().map(|one| Coverage::of_variant(types, record, one).bytes());
            self.labelled(b", variants: ", variants.len() as u64);
            self.labelled(b", bytes used: ", used().min().unwrap_or(0));
            self.labelled(b" to ", used().max().unwrap_or(0));
        }
    }

    fn first_biggest(&mut self, id: RecordId, frame: &Frame<'_>) {
        let types = self.types;
        let Some(member) = first_biggest_member(types, types.record(id)) else { return };
        self.comment(frame, |to| {
            to.put(b"first biggest size base type member: ");
            // without a name as C's printf writes no text at all
            to.put(if member.name.is_some() { types.name(member.name) } else { b"(null)" });
            to.labelled(b" ", member.offset);
            to.labelled(b" ", member.size);
        });
    }

    fn own_size(&self, id: RecordId) -> u64 {
        let record = self.types.record(id);
        // an empty C++ class takes a byte that pahole does not count here
        let empty = self.types.members(record).iter().all(|member| member.kind == MemberKind::Static);
        if record.size == 1 && empty { 0 } else { record.size }
    }

    /// Prints a note if the parts of a struct do not add up to its size: members overlap, or the file is
    /// damaged.
    fn check_sums(&mut self, id: RecordId, summary: &Summary, sums: &Sums, frame: &Frame<'_>) {
        let record = self.types.record(id);
        let members = self.types.members(record);
        let bits = |bytes: u64| i128::from(bytes) * 8;
        // where virtual bases lie is not known, and so not what is free between them
        let unplaced = |member: &Member| member.is_base() && !member.is_placed();
        if record.is_dynamic || members.iter().any(unplaced) {
            return;
        }
        let rest = bits(record.size)
            - bits(sums.bytes)
            - i128::from(sums.bits)
            - bits(sums.hole_bytes)
            - i128::from(sums.hole_bits)
            - bits(summary.padding)
            - i128::from(summary.bit_padding);
        let is_static = |member: &Member| member.kind == MemberKind::Static;
        if rest == 0 || members.iter().all(is_static) {
            return;
        }
        self.put(b"\n");
        self.tabs(frame.indent);
        let (size, Sums { bytes, bits, hole_bytes, hole_bits, .. }) = (record.size, sums);
        self.fmt(format_args!(
            "/* BRAIN FART ALERT! {size} bytes != {bytes} (member bytes) + {bits} (member bits) \
             + {hole_bytes} (byte holes) + {hole_bits} (bit holes), diff = {rest} bits */\n"
        ));
    }
    /// Prints the sums of members against holes, where there are holes.
    fn sums_of_members(&mut self, sums: &Sums, summary: &Summary, frame: &Frame<'_>) {
        if sums.hole_bytes == 0 && sums.hole_bits == 0 {
            return;
        }
        if sums.bytes != 0 {
            self.comment(frame, |to| {
                to.labelled(b"sum members: ", sums.bytes);
                if sums.hole_bytes != 0 {
                    to.labelled(b", holes: ", summary.holes.into());
                    to.labelled(b", sum holes: ", sums.hole_bytes);
                }
            });
        }
        if sums.bits != 0 {
            self.comment(frame, |to| {
                to.labelled(b"sum bitfield members: ", sums.bits);
                to.put(b" bits");
                if sums.hole_bits == 0 {
                    to.labelled(b" (", sums.bits / 8);
                    to.put(b" bytes)");
                } else {
                    to.labelled(b", bit holes: ", summary.bit_holes.into());
                    to.labelled(b", sum bit holes: ", sums.hole_bits);
                    to.put(b" bits");
                }
            });
        }
    }

    /// Prints the unused bytes inside the members' own types.
    fn sums_of_types(&mut self, sums: &Sums, frame: &Frame<'_>) {
        let Sums { holes, bit_holes, paddings, bit_paddings, .. } = sums;
        let tallies = [
            (&b"holes: "[..], holes, &b""[..]),
            (b"bit holes: ", bit_holes, b""),
            (b"bit paddings: ", bit_paddings, if bit_paddings.total > 1 { b" bits" } else { b" bit" }),
        ];
        if tallies.iter().any(|(_, tally, _)| tally.count != 0) {
            self.comment(frame, |to| {
                let mut before: &[u8] = b"member types with ";
                for (label, tally, unit) in tallies.iter().filter(|(_, tally, _)| tally.count != 0) {
                    to.put(before);
                    to.labelled(label, tally.count);
                    to.labelled(b", total: ", tally.total);
                    to.put(unit);
                    before = b", ";
                }
            });
        }
        if paddings.count != 0 {
            self.comment(frame, |to| {
                to.labelled(b"paddings: ", paddings.count);
                to.labelled(b", sum paddings: ", paddings.total);
            });
        }
    }

    fn forced_alignments(&mut self, sums: &Sums) {
        self.labelled(b"forced alignments: ", sums.forced_alignments);
        let Tally { count, total } = sums.forced_holes;
        if count != 0 {
            self.labelled(b", forced holes: ", count);
            self.labelled(b", sum forced holes: ", total);
        }
    }

    /// Prints the unused bytes inside a member that is a struct: the parts that apply, each after a blank.
    pub(super) fn inner_text(&mut self, inner: &Inner) {
        let Summary { holes, bit_holes, padding, bit_padding } = inner.summary;
        let plural = |number: u64| if number == 1 { &b""[..] } else { b"s" };
        let mut first = true;
        let mut part = |to: &mut Self| {
            to.put(if std::mem::take(&mut first) { b" " } else { b", " });
        };
        if inner.ends_flexibly {
            part(self);
            self.put(b"a flexible array");
        }
        if inner.holds_flexible {
            part(self);
            self.put(b"embedded flexible array(s)");
        }
        let numbers: [(u64, &[u8], &[u8]); 4] = [
            (padding, b" byte", b" of padding"),
            (bit_padding.into(), b" bit", b" of padding"),
            (holes.into(), b" hole", b""),
            (bit_holes.into(), b" bit hole", b""),
        ];
        for (number, what, rest) in numbers.into_iter().filter(|(number, ..)| *number != 0) {
            part(self);
            self.number(number, 0);
            self.put(what);
            self.put(plural(number));
            self.put(rest);
        }
    }
}
