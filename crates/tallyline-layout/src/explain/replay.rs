//! Lays a record out by the rules, in the order that it has, and compares.
//!
//! Neither format says everything that decides a layout: that a struct is packed is in neither, and
//! BTF has no alignments. So a record counts as explained only when the rules, under one
//! [`Packing`], put every member exactly where the file says that it is. Only what is explained is
//! reorganised.

use super::bits::Bits;
use tallyline_debuginfo::abi::{is_alignment, size_of};
use tallyline_debuginfo::model::{Member, MemberKind, Origin, RecordId, Type, TypeId, Types};

/// The largest size in bytes of a record whose layout is analysed; larger sizes occur in damaged files.
pub(crate) const SIZE_LIMIT: u64 = 1 << 40;

/// The packing under which a record's layout is recomputed: none, `packed`, `#pragma pack(n)`, or packed members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Packing {
    /// No packing that changes the offsets of the record's members.
    #[default]
    Natural,
    /// The attribute `packed` on the record.
    Packed,
    /// A `#pragma pack(n)` around the record, with `n` in bytes.
    Most(u64),
    /// A record that is not itself packed, with some packed members.
    PackedMembers,
}

/// The reason why the ABI's layout rules do not reproduce a record's layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unexplained {
    /// The members are not known.
    Unknown,
    /// A member (by index) lies before the place that its alignment gives it.
    Misplaced(usize),
    /// No alignment explains what is free before a member.
    Gap(usize),
    /// No alignment explains the size.
    Size,
    /// Members of no fixed place, or numbers that no struct has.
    Odd,
}

/// The alignment and packing by which the ABI's layout rules reproduce a record's layout, or the reason why they do
/// not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The alignment of the record in bytes.
    pub(crate) align: u64,
    /// The packing that the declaration of the record has.
    pub(crate) packing: Packing,
    /// `true` if an alignment was guessed from a gap.
    pub(crate) guessed: bool,
    /// The reason why the layout cannot be explained; `None` if it can.
    pub(crate) unexplained: Option<Unexplained>,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { align: 1, packing: Packing::Natural, guessed: false, unexplained: Some(Unexplained::Odd) }
    }
}

/// A member of a record in a layout that is recomputed by the ABI's rules: whole bytes, a bitfield, or static (without
/// a place in the record).
#[derive(Clone, Debug)]
pub(crate) enum ReplayedMember {
    /// A member that takes no bytes of the record: a static member, or an empty base.
    Nowhere,
    /// A member of whole bytes.
    Bytes {
        /// The size of the member in bytes.
        size: u64,
        /// The alignment of the member in bytes.
        align: u64,
    },
    /// A bitfield, behind unnamed bits where the gap before it shows some.
    Bits {
        /// The unnamed bits before the bitfield.
        before: Option<Bits>,
        /// The member's own bitfield.
        field: Bits,
    },
}

/// A record's layout as recomputed by the ABI's rules: its members with their alignments, and the unnamed bitfields
/// between them.
#[derive(Debug)]
pub(crate) struct Replay {
    /// Each member of the record.
    pub(crate) members: Vec<ReplayedMember>,
    /// The unnamed bits behind members that are bitfields, by the member's index.
    pub(crate) behind: Vec<(usize, Bits)>,
    /// The alignment of the record in bytes.
    pub(crate) align: u64,
    /// `true` if an alignment was guessed from a gap.
    pub(crate) guessed: bool,
}

/// Source of the alignments of types and members that recomputing a record's layout needs.
pub(crate) trait Alignments {
    /// Returns the types that the alignments belong to.
    fn types(&self) -> &Types;
    /// Returns the alignment of a type in bytes.
    fn align_of(&self, id: TypeId) -> u64;
    /// Returns the alignment of a member in bytes.
    fn align_of_member(&self, member: &Member) -> u64;
}

/// Recomputes a record's layout by the ABI's rules under this packing and compares it with the recorded one; an error
/// says where they differ. With `guess`, a gap that nothing else explains is taken for an alignment of the member after
/// it.
pub(crate) fn replay(
    abi: &dyn Alignments,
    id: RecordId,
    packing: Packing,
    guess: bool,
) -> Result<Replay, Unexplained> {
    let record = abi.types().record(id);
    if record.size > SIZE_LIMIT || (record.align != 0 && !is_alignment(record.align)) {
        return Err(Unexplained::Odd);
    }
    let members = abi.types().members(record);
    let mut walk =
        Walk { abi, packing, guess, position: 0, align: 1, last_field: None, replay: empty(members) };
    if record.is_union() {
        return walk.union(members, record.size, record.align);
    }
    for (index, member) in members.iter().enumerate() {
        // empty bases lie over others
        let next = members[index + 1..].iter().find(|member| member.takes_bytes());
        let placed = walk.step(index, member, next)?;
        walk.replay.members.push(placed);
    }
    walk.finish(record.size, record.align)
}

fn empty(members: &[Member]) -> Replay {
    Replay { members: Vec::with_capacity(members.len()), behind: Vec::new(), align: 1, guessed: false }
}

struct Walk<'a> {
    abi: &'a dyn Alignments,
    packing: Packing,
    guess: bool,
    // in bits: everything before is taken
    position: u64,
    align: u64,
    last_field: Option<(usize, Bits)>,
    replay: Replay,
}

impl Walk<'_> {
    fn step(
        &mut self,
        index: usize,
        member: &Member,
        next: Option<&Member>,
    ) -> Result<ReplayedMember, Unexplained> {
        match member.kind {
            MemberKind::Static => return Ok(ReplayedMember::Nowhere),
            MemberKind::VirtualBase => return Err(Unexplained::Odd),
            MemberKind::Base if member.size == 0 => return Ok(ReplayedMember::Nowhere),
            _ => {}
        }
        if member.offset > SIZE_LIMIT || member.bit_offset > SIZE_LIMIT * 8 {
            return Err(Unexplained::Odd);
        }
        match member.bitfield {
            Some(field) => self.field(index, member, u64::from(field.size)),
            None => self.bytes(index, member, next),
        }
    }

    fn bytes(
        &mut self,
        index: usize,
        member: &Member,
        next: Option<&Member>,
    ) -> Result<ReplayedMember, Unexplained> {
        let size = self.size_of(member, next)?;
        let at = member.offset;
        let filled = self.position.div_ceil(8);
        let mut align = self.align_of(member)?;
        if filled.next_multiple_of(align) < at {
            align = self.explain_gap(index, at, filled, align, member)?;
        }
        if filled.next_multiple_of(align) > at {
            // packed, all of it: 1 is the only alignment that `packed` gives
            if self.packing != Packing::PackedMembers || filled != at {
                return Err(Unexplained::Misplaced(index));
            }
            align = 1;
        }
        self.align = self.align.max(align);
        self.position = (at + size) * 8;
        self.last_field = None;
        Ok(ReplayedMember::Bytes { size, align })
    }

    /// Returns the alignment with which a member starts at `at`, or unnamed bits that lead there.
    fn explain_gap(
        &mut self,
        index: usize,
        at: u64,
        filled: u64,
        align: u64,
        member: &Member,
    ) -> Result<u64, Unexplained> {
        // what BTF's reader inferred
        if self.abi.types().origin() == Origin::Btf && member.align > align && is_alignment(member.align) {
            let inferred = member.align;
            if filled.next_multiple_of(inferred) == at {
                self.replay.guessed = true;
                return Ok(inferred);
            }
        }
        if let Some((last, field)) = self.last_field
            && let Some(bits) = unnamed(field, self.position, at * 8)
        {
            self.replay.behind.push((last, bits));
            self.position = at * 8;
            return Ok(align);
        }
        if self.guess
            && let Some(guess) = alignment_between(align, |guess| filled.next_multiple_of(guess) == at)
        {
            self.replay.guessed = true;
            return Ok(guess);
        }
        Err(Unexplained::Gap(index))
    }

    fn field(&mut self, index: usize, member: &Member, width: u64) -> Result<ReplayedMember, Unexplained> {
        let unit = size_of(self.abi.types(), self.abi.types().strip(member.ty)).saturating_mul(8);
        if width == 0 || width > unit || unit > 128 {
            return Err(Unexplained::Odd);
        }
        let packed = match self.packing {
            Packing::Packed => true,
            Packing::PackedMembers => member.bit_offset % 8 + width > unit,
            Packing::Natural | Packing::Most(_) => false,
        };
        let mut align = self.abi.align_of(member.ty) * 8;
        if let Packing::Most(most) = self.packing {
            align = align.min(most * 8);
        }
        let asked = match self.abi.types().origin() {
            Origin::Dwarf if member.align != 0 => self.checked(member.align)? * 8,
            // BTF's are inferred from bytes, and these are bits
            _ => 1,
        };
        let field = Bits { width, unit, align: if packed { 1 } else { align }, asked, packed, named: true };
        let at = member.bit_offset;
        let mut before = None;
        if field.start(self.position) < at {
            before = unnamed(field, self.position, at);
            if before.is_none() {
                return Err(Unexplained::Gap(index));
            }
            self.position = at;
        }
        if field.start(self.position) != at {
            return Err(Unexplained::Misplaced(index));
        }
        self.align = self.align.max(if packed { 1 } else { align / 8 }).max(asked / 8);
        self.position = at + width;
        self.last_field = Some((index, field));
        Ok(ReplayedMember::Bits { before, field })
    }

    /// Places the members of a union, which all start at its start.
    fn union(mut self, members: &[Member], size: u64, asked: u64) -> Result<Replay, Unexplained> {
        let mut largest = 0;
        for (index, member) in members.iter().enumerate() {
            self.position = 0;
            self.last_field = None;
            let placed = self.step(index, member, None)?;
            self.replay.members.push(placed);
            largest = largest.max(self.position);
        }
        self.position = largest;
        self.last_field = None;
        self.finish(size, asked)
    }

    /// Finishes the replay: checks that the members and the alignment lead to the size of the record.
    fn finish(mut self, size: u64, asked: u64) -> Result<Replay, Unexplained> {
        let end = self.position.div_ceil(8);
        let nothing = self.replay.members.iter().all(|placed| matches!(placed, ReplayedMember::Nowhere));
        if asked != 0
            && (self.abi.types().origin() == Origin::Dwarf || end.next_multiple_of(self.align) != size)
        {
            self.replay.guessed |= self.abi.types().origin() == Origin::Btf;
            self.align = self.align.max(asked);
        }
        let expected = end.next_multiple_of(self.align);
        // an empty class of C++ takes a byte
        if expected > size {
            return Err(Unexplained::Size);
        }
        if expected < size && !(nothing && size == 1) {
            if let Some((last, field)) = self.last_field
                && let Some(bits) = unnamed(field, self.position, size * 8)
            {
                self.replay.behind.push((last, bits));
            } else if self.guess
                && let Some(guess) =
                    alignment_between(self.align, |guess| end.next_multiple_of(guess) == size)
            {
                self.replay.guessed = true;
                self.align = guess;
            } else {
                return Err(Unexplained::Size);
            }
        }
        self.replay.align = self.align;
        Ok(self.replay)
    }

    /// Returns the bytes that a member takes. A base may hold members of the class in its tail, and an empty
    /// class takes a byte where it is a member.
    fn size_of(&self, member: &Member, next: Option<&Member>) -> Result<u64, Unexplained> {
        let mut size = member.size;
        if let (MemberKind::Base, Some(next)) = (member.kind, next) {
            size = size.min(next.offset.saturating_sub(member.offset)).max(1);
        } else if size == 0
            && let Type::Record(record) = self.abi.types().get(self.abi.types().strip(member.ty))
        {
            size = self.abi.types().record(record).size;
        }
        if size > SIZE_LIMIT { Err(Unexplained::Odd) } else { Ok(size) }
    }

    /// Returns the alignment of a member under the packing. In DWARF the one of the member itself is final.
    fn align_of(&self, member: &Member) -> Result<u64, Unexplained> {
        let natural = self.abi.align_of_member(member);
        if self.abi.types().origin() == Origin::Dwarf && member.align != 0 {
            return self.checked(member.align);
        }
        Ok(match self.packing {
            Packing::Natural | Packing::PackedMembers => natural,
            Packing::Packed => 1,
            Packing::Most(most) => natural.min(most),
        })
    }

    fn checked(&self, align: u64) -> Result<u64, Unexplained> {
        if is_alignment(align) { Ok(align) } else { Err(Unexplained::Odd) }
    }
}

/// Returns the unnamed bits, of the type of a bitfield beside them, that reach from one place to another.
fn unnamed(beside: Bits, from: u64, to: u64) -> Option<Bits> {
    let blank = |width| Bits { width, asked: 1, named: false, ..beside };
    // up to the next unit
    if blank(0).end(from) == to {
        return Some(blank(0));
    }
    let bits = blank(to.checked_sub(from)?);
    (bits.width <= bits.unit && bits.end(from) == to).then_some(bits)
}

/// Returns the smallest alignment above one that fits.
fn alignment_between(above: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    (0..13).map(|power| 1 << power).filter(|align| *align > above).find(|align| fits(*align))
}
