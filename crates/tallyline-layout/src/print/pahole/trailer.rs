//! The sums at the end of a struct.

use super::{Printer, frame::Frame};
use crate::model::{Member, MemberKind, RecordId};
use crate::query::{Coverage, Gap, Summary, first_biggest_member};
use std::fmt::Write;

/// What is noted about a member whose type is a struct.
pub(super) struct Inner {
    pub(super) summary: Summary,
    pub(super) ends_flexibly: bool,
    pub(super) holds_flexible: bool,
}

impl Inner {
    /// Whether there is nothing to note.
    pub(super) fn is_plain(&self) -> bool {
        self.summary == Summary::default() && !self.ends_flexibly && !self.holds_flexible
    }

    /// The parts that apply, each after a blank.
    pub(super) fn text(&self) -> String {
        let Summary { holes, bit_holes, padding, bit_padding } = self.summary;
        let plural = |n: u64| if n == 1 { "" } else { "s" };
        let mut parts = Vec::new();
        if self.ends_flexibly {
            parts.push(" a flexible array".to_string());
        }
        if self.holds_flexible {
            parts.push(" embedded flexible array(s)".to_string());
        }
        if padding != 0 {
            parts.push(format!(" {padding} byte{} of padding", plural(padding)));
        }
        if bit_padding != 0 {
            parts.push(format!(" {bit_padding} bit{} of padding", plural(bit_padding.into())));
        }
        if holes != 0 {
            parts.push(format!(" {holes} hole{}", plural(holes.into())));
        }
        if bit_holes != 0 {
            parts.push(format!(" {bit_holes} bit hole{}", plural(bit_holes.into())));
        }
        parts.join(",")
    }
}

/// How many of something, and how much in all.
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

/// What is added up over the members.
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

    /// What the members of variants use together.
    pub(super) fn count_coverage(&mut self, coverage: &Coverage) {
        self.bytes = coverage.bytes();
        self.hole_bytes = coverage.gaps().fold(0, |sum: u64, gap| sum.saturating_add(gap.1));
    }

    /// A member with an alignment of its own, and the hole before it.
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
    /// The comments at the end, one line each.
    pub(super) fn trailer(&mut self, id: RecordId, summary: &Summary, sums: &Sums, frame: &Frame<'_>) {
        self.put(b"\n");
        for line in self.trailer_lines(id, summary, sums, frame) {
            self.tabs(frame.indent);
            self.fmt(format_args!("/* {line} */\n"));
        }
        self.check_sums(id, summary, sums, frame);
    }

    fn trailer_lines(&self, id: RecordId, summary: &Summary, sums: &Sums, frame: &Frame<'_>) -> Vec<String> {
        let record = self.types.record(id);
        let line = self.style.cacheline.max(1);
        let members = self.types.members(record);
        let statics = members.iter().filter(|member| member.kind == MemberKind::Static).count();
        let lines = self.own_size(id).div_ceil(line);
        let mut first =
            format!("size: {}, cachelines: {lines}, members: {}", record.size, members.len() - statics);
        if statics != 0 {
            let _ = write!(first, ", static members: {statics}");
        }
        let variants = self.types.variants(record);
        if !variants.is_empty() {
            let used = || variants.iter().map(|one| Coverage::of_variant(self.types, record, one).bytes());
            let (least, most) = (used().min().unwrap_or(0), used().max().unwrap_or(0));
            let _ = write!(first, ", variants: {}, bytes used: {least} to {most}", variants.len());
        }
        let mut text = vec![first];
        text.extend(sums.members(summary));
        if summary.padding != 0 {
            text.push(format!("padding: {}", summary.padding));
        }
        text.extend(sums.member_types());
        if summary.bit_padding != 0 {
            text.push(format!("bit_padding: {} bits", summary.bit_padding));
        }
        text.extend(sums.alignments());
        text.extend(sums.flexible_arrays());
        let last = frame.base.saturating_add(record.size) % line;
        if last != 0 {
            text.push(format!("last cacheline: {last} bytes"));
        }
        if self.style.first_biggest
            && let Some(member) = first_biggest_member(self.types, record)
        {
            let name = match member.name.is_some() {
                true => String::from_utf8_lossy(self.types.name(member.name)),
                // as C's printf writes no text at all
                false => "(null)".into(),
            };
            let (offset, size) = (member.offset, member.size);
            text.push(format!("first biggest size base type member: {name} {offset} {size}"));
        }
        text
    }

    fn own_size(&self, id: RecordId) -> u64 {
        let record = self.types.record(id);
        // an empty C++ class takes a byte that pahole does not count here
        let empty = self.types.members(record).iter().all(|member| member.kind == MemberKind::Static);
        if record.size == 1 && empty { 0 } else { record.size }
    }

    /// A struct whose parts do not add up to its size: members overlap, or the file is damaged.
    fn check_sums(&mut self, id: RecordId, summary: &Summary, sums: &Sums, frame: &Frame<'_>) {
        let record = self.types.record(id);
        let members = self.types.members(record);
        let bits = |bytes: u64| i128::from(bytes) * 8;
        // where virtual bases lie is not known, and so not what is free between them
        let unplaced = |member: &Member| member.is_base() && !member.is_placed();
        if members.iter().any(unplaced) {
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
}

impl Sums {
    /// The sums of members against holes, where there are holes.
    fn members(&self, summary: &Summary) -> Vec<String> {
        let mut text = Vec::new();
        if self.hole_bytes == 0 && self.hole_bits == 0 {
            return text;
        }
        if self.bytes != 0 {
            let mut line = format!("sum members: {}", self.bytes);
            if self.hole_bytes != 0 {
                let _ = write!(line, ", holes: {}, sum holes: {}", summary.holes, self.hole_bytes);
            }
            text.push(line);
        }
        if self.bits != 0 {
            let mut line = format!("sum bitfield members: {} bits", self.bits);
            let _ = match self.hole_bits {
                0 => write!(line, " ({} bytes)", self.bits / 8),
                holes => write!(line, ", bit holes: {}, sum bit holes: {holes} bits", summary.bit_holes),
            };
            text.push(line);
        }
        text
    }

    /// What is free inside the members' own types.
    fn member_types(&self) -> Vec<String> {
        let mut parts = Vec::new();
        let mut text = Vec::new();
        if self.holes.count != 0 {
            parts.push(format!("holes: {}, total: {}", self.holes.count, self.holes.total));
        }
        if self.bit_holes.count != 0 {
            parts.push(format!("bit holes: {}, total: {}", self.bit_holes.count, self.bit_holes.total));
        }
        if self.bit_paddings.count != 0 {
            let Tally { count, total } = self.bit_paddings;
            parts.push(format!(
                "bit paddings: {count}, total: {total} bit{}",
                if total > 1 { "s" } else { "" }
            ));
        }
        if !parts.is_empty() {
            text.push(format!("member types with {}", parts.join(", ")));
        }
        if self.paddings.count != 0 {
            text.push(format!("paddings: {}, sum paddings: {}", self.paddings.count, self.paddings.total));
        }
        text
    }

    fn alignments(&self) -> Option<String> {
        let mut line = format!("forced alignments: {}", self.forced_alignments);
        if self.forced_holes.count != 0 {
            let Tally { count, total } = self.forced_holes;
            let _ = write!(line, ", forced holes: {count}, sum forced holes: {total}");
        }
        (self.forced_alignments != 0).then_some(line)
    }

    fn flexible_arrays(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.flexible != 0 {
            parts.push(format!("end: {}", self.flexible));
        }
        if self.embedded_flexible != 0 {
            parts.push(format!("middle: {}", self.embedded_flexible));
        }
        (!parts.is_empty()).then(|| format!("flexible array members: {}", parts.join(", ")))
    }
}
