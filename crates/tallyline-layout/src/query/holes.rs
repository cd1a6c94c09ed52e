//! Holes and padding of a struct.

use super::{Coverage, Summary};
use tallyline_debuginfo::model::{Member, MemberKind, Record, Types};

/// The unused bytes and bits after one member of a struct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gap {
    /// The number of unused bytes; negative where the next member starts before this one ends.
    pub(crate) bytes: i64,
    /// The number of unused bits in the storage unit of a bitfield.
    pub(crate) bits: u8,
}

/// The unused bytes and bits of a struct, listed by the member that they follow, and the padding at its end.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    pub(crate) first: Gap,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) summary: Summary,
}

impl Layout {
    /// Returns the number of unused bits before and between the struct's members, without the padding at its end;
    /// negative if more bits are shared by members.
    pub fn unused_bits(&self) -> i64 {
        self.gaps.iter().chain([&self.first]).map(|gap| 8 * gap.bytes + i64::from(gap.bits)).sum()
    }

    /// Returns the struct's numbers of holes and bit holes, and its padding.
    pub fn summary(&self) -> Summary {
        self.summary
    }
}

/// Finds the unused bytes and bits of a struct or class, member by member; none for a union.
pub fn layout(types: &Types, record: &Record) -> Layout {
    let mut layout = Layout { gaps: vec![Gap::default(); types.members(record).len()], ..Layout::default() };
    layout.summary = walk(types, record, |behind, gap| match behind {
        Some(index) => layout.gaps[index] = gap,
        None => layout.first = gap,
    });
    layout
}

/// Returns the numbers of holes and bit holes of a struct or class, and its padding; a union has no holes.
pub fn summary(types: &Types, record: &Record) -> Summary {
    walk(types, record, |_, _| {})
}

/// Returns the numbers of holes and bit holes of a class, and its padding, in the `size` bytes that it takes as a base:
/// its virtual bases lie elsewhere in the whole object.
pub(crate) fn summary_as_base(types: &Types, record: &Record, size: u64) -> Summary {
    let mut base = *record;
    base.size = size;
    scan(types, &base, true, |_, _| {})
}

/// Goes over the gaps, with the position of the member that each is behind.
fn walk(types: &Types, record: &Record, each: impl FnMut(Option<usize>, Gap)) -> Summary {
    scan(types, record, false, each)
}

/// Goes over the gaps as [`walk`] does; those of a base without its virtual bases.
fn scan(types: &Types, record: &Record, as_base: bool, mut each: impl FnMut(Option<usize>, Gap)) -> Summary {
    if record.is_union() {
        return Summary::default();
    }
    if !types.variants(record).is_empty() {
        return Coverage::of(types, record).summary();
    }
    let members = types.members(record);
    let is_elsewhere = |member: &Member| as_base && member.kind == MemberKind::VirtualBase;
    let mut summary = Summary::default();
    let mut scan = Scan::new(record);
    let mut last = None;
    for (index, member) in members.iter().enumerate() {
        if !member.takes_bytes() || is_elsewhere(member) {
            continue;
        }
        let (bytes, bits) = scan.step(member);
        summary.bit_holes += u32::from(bits != 0);
        summary.holes += u32::from(bytes > 0);
        // bits are counted in a unit of at most 8 bytes; more is a struct that overlaps itself
        each(last, Gap { bytes, bits: bits as u8 });
        last = Some(index);
    }
    scan.finish(record, &mut summary);
    // they lie somewhere behind the last member
    let is_unplaced = |member: &Member| member.kind == MemberKind::VirtualBase && !member.is_placed();
    if members.iter().any(|member| is_unplaced(member) && !is_elsewhere(member)) {
        summary.padding = 0;
    }
    summary
}

/// The walk over the members: how far the struct is filled, in bits.
struct Scan {
    filled: i64,
    in_bitfield: bool,
    unit_end: i64,
    unit_size: i64,
}

impl Scan {
    fn new(record: &Record) -> Scan {
        Scan { filled: 0, in_bitfield: false, unit_end: bits(record.size), unit_size: 0 }
    }

    /// Returns the free bytes and bits between the used part and a member, and marks both as used.
    fn step(&mut self, member: &Member) -> (i64, i64) {
        let start = clamp(member.bit_offset);
        let (mut free_bytes, mut free_bits) = (0, 0);
        if self.in_bitfield {
            // what is left of the unit of the bitfield before
            let end = start.min(self.unit_end);
            free_bits = end - self.filled;
            self.filled = end;
        }
        match member.bitfield {
            Some(field) => {
                let unit = bits(member.offset);
                if self.filled < unit && unit <= start {
                    free_bytes = clamp(member.offset) - self.filled / 8;
                    self.filled = unit;
                }
                free_bits += start - self.filled;
                self.filled = start + i64::from(field.size);
                self.enter_unit(member);
            }
            None => {
                free_bytes = start / 8 - self.filled / 8;
                self.filled = start + bits(member.size);
                self.in_bitfield = false;
                self.unit_size = 0;
                self.unit_end = self.filled;
            }
        }
        (free_bytes, free_bits)
    }

    /// Starts a new unit of bitfields, or a larger one at the same offset.
    fn enter_unit(&mut self, member: &Member) {
        self.in_bitfield = true;
        if self.filled > self.unit_end || bits(member.size) > self.unit_size {
            self.unit_size = bits(member.size);
            self.unit_end = bits(member.offset) + self.unit_size;
            // one that starts in the unit before and ends in the next
            if self.filled > self.unit_end {
                self.unit_end += self.unit_size;
            }
        }
    }

    fn finish(mut self, record: &Record, summary: &mut Summary) {
        if self.in_bitfield {
            let end = bits(record.size).min(self.unit_end);
            summary.bit_padding = (end - self.filled) as u8;
            self.filled = end;
        }
        summary.padding = u64::try_from(clamp(record.size) - self.filled / 8).unwrap_or(0);
    }
}

/// Returns bytes to bits, without overflow.
fn bits(bytes: u64) -> i64 {
    clamp(bytes.saturating_mul(8))
}

/// Limits a value to more than any address space has, where a damaged file would overflow.
fn clamp(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX).min(1 << 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tallyline_debuginfo::model::{Bitfield, NameId, Origin, RecordKind, TypeId};

    /// Byte, size, and for bitfields the first bit and the number of bits.
    type Short = (u64, u64, Option<(u32, u32)>);

    fn layout_of(size: u64, members: &[Short]) -> Layout {
        let mut types = Types::new(Origin::Dwarf, 8);
        let member = |&(offset, size, bits): &Short| Member {
            bit_offset: offset * 8 + bits.map_or(0, |(first, _)| u64::from(first)),
            size,
            bitfield: bits.map(|(offset, size)| Bitfield { offset, size }),
            ..Member::new(NameId::NONE, TypeId::VOID, offset)
        };
        let members: Vec<Member> = members.iter().map(member).collect();
        let record = Record::new(RecordKind::Struct, NameId::NONE, size);
        let record = types.push_record_of(record, &members).expect("room");
        layout(&types, types.record(record))
    }

    #[test]
    fn bytes_between_and_behind_members() {
        let layout = layout_of(24, &[(0, 1, None), (4, 4, None), (16, 4, None)]);
        assert_eq!(layout.gaps.iter().map(|gap| gap.bytes).collect::<Vec<_>>(), [3, 8, 0]);
        assert_eq!(layout.summary, Summary { holes: 2, padding: 4, ..Summary::default() });
        assert_eq!(layout_of(8, &[(4, 4, None)]).first.bytes, 4);
    }

    #[test]
    fn bits_between_and_behind_bitfields() {
        // 3 bits, a hole of 5, 8 bits, the rest of the unit free
        let layout = layout_of(4, &[(0, 4, Some((0, 3))), (0, 4, Some((8, 8)))]);
        assert_eq!(layout.gaps[0].bits, 5);
        assert_eq!(layout.summary, Summary { bit_holes: 1, bit_padding: 16, ..Summary::default() });
        // a byte in the unit of the bitfield before it
        let layout = layout_of(4, &[(0, 4, Some((0, 3))), (2, 1, None)]);
        assert_eq!(layout.gaps[0], Gap { bytes: 0, bits: 13 });
    }

    #[test]
    fn what_pahole_counts_modulo_is_counted() {
        assert_eq!(layout_of(100_000, &[(0, 1, None)]).summary.padding, 99_999);
        let many: Vec<_> = (0..300).map(|n| (n * 8, 4, None)).collect();
        assert_eq!(layout_of(2400, &many).summary.holes, 299);
    }

    #[test]
    fn offsets_beyond_any_memory_do_no_harm() {
        let layout = layout_of(u64::MAX, &[(u64::MAX / 16, u64::MAX, None), (3, u64::MAX, None)]);
        assert!(layout.gaps[0].bytes < 0);
        layout_of(0, &[(u64::MAX / 16, 8, Some((u32::MAX, u32::MAX)))]);
    }
}
