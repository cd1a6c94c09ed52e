//! A proposed layout: laid out anew, with the moves that lead to it, and printed.

use super::item::{Body, Item};
use super::{Reorganizer, moves};
use crate::explain::{Declaration, Declarations};
use crate::print::pahole::{Printer, Style};
use rustc_hash::FxHashMap;
use std::ops::Range;
use tallyline_debuginfo::model::Original;
use tallyline_debuginfo::model::{Bitfield, Language, Member, RecordId, Type, TypeId, Types};

/// The size of a struct in bytes and in cache lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub(crate) size: u64,
    pub(crate) lines: u64,
}

impl Extent {
    /// Returns the size of the struct in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the number of cache lines that the struct spans if it starts on one.
    pub fn lines(&self) -> u64 {
        self.lines
    }
}

/// The proven properties of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proven {
    /// `true` if no layout is smaller.
    pub(super) size: bool,
    /// `true` if no layout of this size takes fewer moves.
    pub(super) moves: bool,
}

/// One step from a struct's present order of members to the proposed one: a member, or a run of bitfields, moves to
/// another position.
#[derive(Clone, Debug)]
pub struct Move {
    pub(crate) members: std::ops::Range<usize>,
    pub(crate) from: Option<usize>,
    pub(crate) to: Option<usize>,
    pub(crate) extent: Extent,
    // the items in their order then
    order: Vec<usize>,
}

impl Move {
    /// Returns the indices, in the struct's present order, of the members that this step moves: a single one, or a run
    /// of bitfields.
    pub fn members(&self) -> &std::ops::Range<usize> {
        &self.members
    }

    /// Returns the index, in the struct's present order, of the member that preceded the moved ones before the move;
    /// `None` if they were first.
    pub fn from(&self) -> Option<usize> {
        self.from
    }

    /// Returns the index, in the struct's present order, of the member that precedes the moved ones after the move;
    /// `None` if they are first.
    pub fn to(&self) -> Option<usize> {
        self.to
    }

    /// Returns the size of the struct, in bytes and in cache lines, after this move.
    pub fn extent(&self) -> Extent {
        self.extent
    }
}

/// The groups of a proposed order.
#[derive(Clone, Debug, Default)]
pub(super) struct Grouping {
    /// The groups' names, and their members by index in the proposed order.
    pub(super) groups: Vec<(String, Range<usize>)>,
    /// Cache lines that the fields of all groups take today and as proposed.
    pub(super) lines: (u64, u64),
    /// The names of the table that are fields of no member that may move.
    pub(super) unplaced: Vec<String>,
}

/// A proposed layout of a struct, its members in another order: smaller, or by cache-line groups (members meant to
/// share cache lines).
#[derive(Clone, Debug)]
pub struct Proposal {
    pub(crate) record: RecordId,
    /// The members in the new order, by their index in the old.
    pub(crate) order: Vec<usize>,
    pub(crate) members: Vec<Member>,
    pub(crate) old: Extent,
    pub(crate) new: Extent,
    pub(crate) move_count: usize,
    pub(super) proven: Proven,
    pub(crate) inferred: bool,
    pub(crate) align: u64,
    cacheline: u64,
    items: Vec<Item>,
    // items in the new order
    pub(crate) arranged: Vec<usize>,
    /// The groups that the order is by, if it is.
    pub(super) grouping: Grouping,
}

impl Proposal {
    /// Returns the id of the struct that the proposal is about.
    pub fn record(&self) -> RecordId {
        self.record
    }

    /// Returns the struct's members in the proposed order, with their new offsets.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the permutation of the struct's members: for each position in the proposed order, the member's index in
    /// the present order.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns the size of the struct, in bytes and in cache lines, with the present order of its members.
    pub fn current(&self) -> Extent {
        self.old
    }

    /// Returns the size of the struct, in bytes and in cache lines, with the proposed order of its members.
    pub fn proposed(&self) -> Extent {
        self.new
    }

    /// Returns the number of moves that lead from the present order of the struct's members to the proposed one.
    pub fn move_count(&self) -> usize {
        self.move_count
    }

    /// Returns `true` if it is proven that no permitted order of the struct's members is smaller.
    pub fn is_smallest(&self) -> bool {
        self.proven.size
    }

    /// Returns `true` if it is proven that no order of the struct's members with the proposed size can be reached by
    /// fewer moves.
    pub fn has_fewest_moves(&self) -> bool {
        self.proven.moves
    }

    /// Returns `true` if the members' alignments were inferred from the layout, as in BTF, rather than read from the
    /// file.
    pub fn inferred(&self) -> bool {
        self.inferred
    }

    /// Returns the cache-line groups (members meant to share cache lines) of the proposed order, each with the indices
    /// of its members in it; none for an order that only makes the struct smaller.
    pub fn groups(&self) -> &[(String, Range<usize>)] {
        &self.grouping.groups
    }

    /// Returns the numbers of cache lines that the fields of all cache-line groups (members meant to share cache lines)
    /// take at present and as proposed.
    pub fn group_lines(&self) -> (u64, u64) {
        self.grouping.lines
    }

    /// Returns the field names in the table of used fields, by which the order was proposed, that belong to no struct
    /// member that may move; none for an order that only makes the struct smaller.
    pub fn unplaced(&self) -> &[String] {
        &self.grouping.unplaced
    }

    /// Returns the alignment of the struct in bytes.
    pub fn align(&self) -> u64 {
        self.align
    }
}

/// Places members one behind the other in an order, and collects those that move. None if numbers are beyond any struct's.
pub(super) fn lay_out(
    types: &Types,
    id: RecordId,
    items: &[Item],
    order: &[usize],
    align: u64,
    proven: Proven,
    by: &Reorganizer<'_>,
) -> Option<Proposal> {
    let record = types.record(id);
    let line = by.options.cacheline.max(1);
    let extent = |size: u64| Extent { size, lines: size.div_ceil(line) };
    let old_members = types.members(record);
    let (indices, members, size) = place(old_members, items, order, align)?;
    Some(Proposal {
        record: id,
        order: indices,
        members,
        old: extent(record.size),
        new: extent(size),
        move_count: moves::kept(order).iter().filter(|kept| !**kept).count(),
        proven,
        inferred: by.is_inferred(id),
        align,
        cacheline: line,
        items: items.to_vec(),
        arranged: order.to_vec(),
        grouping: Grouping::default(),
    })
}

/// Returns the members in an order of items at the places that this gives them, and the size.
pub(super) fn place(
    members: &[Member],
    items: &[Item],
    order: &[usize],
    align: u64,
) -> Option<(Vec<usize>, Vec<Member>, u64)> {
    let (mut indices, mut placed) = (Vec::with_capacity(members.len()), Vec::with_capacity(members.len()));
    let mut position = 0_u64;
    for item in order {
        let item = items.get(*item)?;
        let range = item.first..item.first.checked_add(item.count)?;
        indices.extend(range.clone());
        let mut inside = members.get(range)?.to_vec();
        match &item.body {
            Body::Bytes { size, .. } => {
                let start = item.body.end(position).checked_sub(*size)?;
                // static members beside it take no place
                let member = inside.iter_mut().find(|member| takes_place(member))?;
                member.offset = start / 8;
                member.bit_offset = start;
            }
            Body::Run(run) => {
                let mut position = position;
                let mut fields = inside.iter_mut().filter(|member| member.bitfield.is_some());
                for bits in run {
                    if bits.named {
                        put_bits(fields.next()?, bits.start(position));
                    }
                    position = bits.end(position);
                }
            }
        }
        placed.append(&mut inside);
        position = item.body.end(position);
    }
    (placed.len() == members.len()).then_some((indices, placed, position.div_ceil(8).next_multiple_of(align)))
}

fn takes_place(member: &Member) -> bool {
    !matches!(member.kind, tallyline_debuginfo::model::MemberKind::Static)
}

/// Gives a bitfield its first bit: it is shown in the unit of its type that this lies in.
fn put_bits(member: &mut Member, start: u64) {
    let unit = member.size.max(1) * 8;
    member.bit_offset = start;
    member.offset = start / unit * member.size.max(1);
    if let Some(field) = &mut member.bitfield {
        *field = Bitfield { offset: (start % unit) as u32, size: field.size };
    }
}

/// The moves from the old order to the new: each item that does not stay is put behind the one that
/// it follows in the end.
struct Moves<'p> {
    proposal: &'p Proposal,
    kept: Vec<bool>,
    now: Vec<usize>,
    next: usize,
}

impl Iterator for Moves<'_> {
    type Item = Move;

    fn next(&mut self) -> Option<Move> {
        let Proposal { items, arranged, .. } = self.proposal;
        let last_of = |item: usize| items[item].first + items[item].count - 1;
        let at = (self.next..arranged.len()).find(|at| !self.kept[arranged[*at]])?;
        self.next = at + 1;
        let item = arranged[at];
        let from = self.now.iter().position(|known| *known == item)?;
        self.now.remove(from);
        let was_behind = from.checked_sub(1).map(|before| self.now[before]);
        let behind = at.checked_sub(1).map(|before| arranged[before]);
        let to = behind.and_then(|before| self.now.iter().position(|known| *known == before));
        self.now.insert(to.map_or(0, |at| at + 1), item);
        let end = self.now.iter().fold(0, |position, item| items[*item].body.end(position));
        Some(Move {
            members: items[item].first..items[item].first + items[item].count,
            from: was_behind.map(last_of),
            to: behind.map(last_of),
            extent: self.proposal.extent(end.div_ceil(8).next_multiple_of(self.proposal.align)),
            order: self.now.clone(),
        })
    }
}

impl Proposal {
    fn extent(&self, size: u64) -> Extent {
        Extent { size, lines: size.div_ceil(self.cacheline) }
    }

    /// Returns the moves from the present order of the struct's members to the proposed one, each with the struct's
    /// size after it. Each step takes time linear in the members.
    pub fn moves(&self) -> impl Iterator<Item = Move> + '_ {
        let kept = moves::kept(&self.arranged);
        Moves { proposal: self, kept, now: (0..self.items.len()).collect(), next: 0 }
    }

    /// Returns the number of bytes by which the struct's proposed layout is smaller than its present one; 0 if it
    /// grows.
    pub fn saved(&self) -> u64 {
        self.old.size.saturating_sub(self.new.size)
    }

    /// Returns the number of cache lines by which the struct's proposed layout is smaller than its present one; 0 if it
    /// grows.
    pub fn saved_lines(&self) -> u64 {
        self.old.lines.saturating_sub(self.new.lines)
    }

    /// Returns the comment that pahole prints after a reorganised struct: `/* saved 8 bytes and 1 cacheline! */`.
    pub(crate) fn saved_note(&self) -> String {
        let plural = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let mut text = format!("/* saved {}", plural(self.saved(), "byte"));
        if self.saved_lines() != 0 {
            text += &format!(" and {}", plural(self.saved_lines(), "cacheline"));
        }
        text + "! */"
    }

    /// Replaces the struct's members in `types` by the proposed layout, so that printers and queries show it; the
    /// result restores the original.
    pub fn apply(&self, types: &mut Types) -> Result<Original, tallyline_debuginfo::Error> {
        types.replace(self.record, &self.members, self.new.size)
    }

    /// Replaces the struct's members in `types` by their layout after one of the moves that lead to the proposed order;
    /// the result restores the original.
    pub(crate) fn apply_step(
        &self,
        types: &mut Types,
        step: &Move,
    ) -> Result<Original, tallyline_debuginfo::Error> {
        let record = types.record(self.record);
        let placed = place(types.members(record), &self.items, &step.order, self.align);
        let (_, members, size) = placed.unwrap_or((Vec::new(), self.members.clone(), self.new.size));
        types.replace(self.record, &members, size)
    }
}

/// Appends to `out` the struct as proposed, in pahole's format with its final comment on savings; `type_id` is the
/// struct or a typedef of it. With `steps`, the moves are printed first, each with the layout after it, up to the
/// style's limit.
pub fn print(
    types: &mut Types,
    type_id: TypeId,
    proposal: &Proposal,
    style: &Style,
    steps: bool,
    out: &mut Vec<u8>,
) -> Result<(), tallyline_debuginfo::Error> {
    let declared = Declarations::new(types).with_inner(proposal.record);
    if steps {
        let start = out.len();
        for step in proposal.moves() {
            if out.len() - start > style.budget {
                out.extend_from_slice(b"/* and more moves */\n");
                break;
            }
            print_move(types, &step, proposal, out);
            let members = types.members(types.record(proposal.record));
            let placed = place(members, &proposal.items, &step.order, proposal.align);
            let order = placed.map_or_else(Vec::new, |(order, ..)| order);
            let original = proposal.apply_step(types, &step)?;
            one(types, type_id, style, b"\n", in_order(&declared, proposal.record, &order), out);
            original.restore(types);
        }
        out.extend_from_slice(b"\n/* Final reorganized struct: */\n");
    }
    let original = proposal.apply(types)?;
    let end = format!(";   {}\n", proposal.saved_note());
    one(types, type_id, style, end.as_bytes(), in_order(&declared, proposal.record, &proposal.order), out);
    original.restore(types);
    Ok(())
}

/// Reorders one record's members in a copy of the declarations.
fn in_order(
    declared: &FxHashMap<RecordId, Declaration>,
    id: RecordId,
    order: &[usize],
) -> FxHashMap<RecordId, Declaration> {
    let mut declared = declared.clone();
    if let Some(own) = declared.get_mut(&id) {
        own.members = order.iter().map(|at| own.members.get(*at).cloned().unwrap_or_default()).collect();
    }
    declared
}

/// The printed text of one proposed struct layout as C source that a compiler can verify: the declarations that it
/// needs, the struct, its name.
#[derive(Clone, Debug)]
pub struct CompilableProposal {
    pub(crate) needs: String,
    pub(crate) text: String,
    pub(crate) name: String,
}

impl CompilableProposal {
    /// Returns the C declarations of other types that have to precede the proposed struct's definition for it to
    /// compile.
    pub fn needs(&self) -> &str {
        &self.needs
    }

    /// Returns the C source of the proposed struct as it is printed, with an assertion of its alignment and a variable,
    /// so that the compiler emits debug information about the struct.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the name that the proposed struct has in the debug information of its compiled C source.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Returns the printed text of a proposed struct layout as C source that can be compiled; `None` if the struct is not C
/// or has no name.
pub fn checkable(
    types: &mut Types,
    type_id: TypeId,
    proposal: &Proposal,
) -> Result<Option<CompilableProposal>, tallyline_debuginfo::Error> {
    let record = types.record(proposal.record);
    let name = match types.get(type_id) {
        _ if record.name.is_some() => types.name(record.name),
        Type::Typedef { name, .. } => types.name(name),
        _ => return Ok(None),
    };
    let name = String::from_utf8_lossy(name).into_owned();
    let is_c = record.language.is_c() || record.language == Language(0);
    if !is_c || !record.is_struct() || record.path.is_some() {
        return Ok(None);
    }
    let ty = if record.name.is_some() { format!("struct {name}") } else { name.clone() };
    let mut printer = Printer::new(types, Style::default().quiet());
    printer.print_needs(type_id);
    let needs = String::from_utf8_lossy(printer.text()).into_owned();
    let mut text = Vec::new();
    print(types, type_id, proposal, &Style::default(), false, &mut text)?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let align = proposal.align;
    text += &format!("_Static_assert(_Alignof({ty}) == {align}, \"alignment of {align}\");\n");
    // without a use compilers leave it out of the debug information
    text += &format!("{ty} *tallyline_use;\n");
    Ok(Some(CompilableProposal { needs, text, name }))
}

fn one(
    types: &Types,
    id: TypeId,
    style: &Style,
    end: &[u8],
    declared: FxHashMap<RecordId, Declaration>,
    out: &mut Vec<u8>,
) {
    let mut printer = Printer::new(types, style.clone());
    printer.declare_as(declared);
    printer.print(id);
    let text = printer.text();
    const POP: &[u8] = b"#pragma pack(pop)\n";
    let (text, behind) = text.strip_suffix(POP).map_or((text, &b""[..]), |text| (text, POP));
    out.extend_from_slice(text.strip_suffix(b";\n").unwrap_or(text));
    out.extend_from_slice(end);
    out.extend_from_slice(behind);
}

fn print_move(types: &Types, step: &Move, proposal: &Proposal, out: &mut Vec<u8>) {
    let members = types.members(types.record(proposal.record));
    let name = |at: usize| {
        let name = members.get(at).map_or(&b""[..], |member| types.name(member.name));
        if name.is_empty() {
            format!("member {}", at + 1)
        } else {
            String::from_utf8_lossy(name).into_owned()
        }
    };
    let place = |at: Option<usize>| at.map_or("the start".to_string(), |at| format!("after '{}'", name(at)));
    let moved: Vec<String> = step.members.clone().map(|at| format!("'{}'", name(at))).collect();
    let (from, to) = (place(step.from), place(step.to));
    out.extend_from_slice(format!("/* Moving {} from {from} to {to} */\n", moved.join(", ")).as_bytes());
}
