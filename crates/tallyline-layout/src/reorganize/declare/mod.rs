//! C source that declares structs as they are and as proposed, with assertions about every member:
//! what a compiler accepts, it lays out so.
//!
//! The source needs nothing else: it names no header, and every type is declared before it is used,
//! down to the compiler's own. Names are made (`struct o0` is the first struct as it is, `n0` as
//! proposed, `m3` its fourth member), so no name clashes with another or with a keyword. Scalars are
//! spelled as the program spelled them (`long`, not 8 bytes): a compiler for another machine does
//! not accept them. Pointers are `void *`; of types that C has no form for (classes with virtual
//! bases, say) size and alignment are kept.
//!
//! Where a bitfield lies C cannot assert. So the source is compiled with debug information, and
//! what the compiler wrote there is compared: see [`Check::bits`].

mod scalar;
mod spell;

use super::together::Layout;
use super::{CombinedProposal, Proposal, Reorganizer};
use crate::explain::{Packing, ReplayedMember, replay};
use rustc_hash::FxHashMap;
use spell::Speller;
use std::fmt::Write;
use tallyline_debuginfo::abi::size_of;
use tallyline_debuginfo::model::{Member, MemberKind, RecordId, TypeId};

/// C source text that a compiler accepts only if proposed smaller structs have the promised layouts, with an index of
/// its checks.
#[derive(Clone, Debug)]
pub struct VerificationSource {
    pub(crate) text: String,
    pub(crate) checks: Vec<Check>,
    shared: Vec<Shared>,
    // by line, counted from 0: what it belongs to
    lines: Vec<Owner>,
}

impl VerificationSource {
    /// Returns the C source text, which a compiler accepts only if the proposed structs have the promised layouts.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns, for each proposed struct layout, the names of the present and the proposed struct in the C source that
    /// verifies it, and their bitfields.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }
}

/// The part about one proposed struct layout in the C source that verifies such layouts: the names of the present and
/// the proposed struct there, and their bitfields.
#[derive(Clone, Debug, Default)]
pub struct Check {
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) bits: Vec<BitCheck>,
    uses: Vec<usize>,
}

impl Check {
    /// Returns the name that the struct with its present layout has in the C source that verifies a proposed layout of
    /// it.
    pub fn current(&self) -> &str {
        &self.old
    }

    /// Returns the name that the struct with its proposed layout has in the C source that verifies this layout.
    pub fn proposed(&self) -> &str {
        &self.new
    }

    /// Returns the struct's bitfields, whose present and proposed positions static assertions in C cannot cover: they
    /// are to be compared with the compiler's debug information.
    pub fn bits(&self) -> &[BitCheck] {
        &self.bits
    }
}

/// A bitfield in the C source that verifies a proposed struct layout, with its expected positions in the present and
/// the proposed struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitCheck {
    pub(crate) member: String,
    pub(crate) old: u64,
    pub(crate) new: u64,
    pub(crate) width: u32,
}

impl BitCheck {
    /// Returns the name, such as `m3`, that the bitfield has in the C source that verifies a proposed struct layout.
    pub fn member(&self) -> &str {
        &self.member
    }

    /// Returns the offset in bits, from the start of the struct, at which a compiler has to place the bitfield in the
    /// struct with its present order of members.
    pub fn current(&self) -> u64 {
        self.old
    }

    /// Returns the offset in bits, from the start of the struct, at which a compiler has to place the bitfield in the
    /// struct with its proposed order of members.
    pub fn proposed(&self) -> u64 {
        self.new
    }

    /// Returns the bitfield's width in bits.
    pub fn width(&self) -> u32 {
        self.width
    }
}

/// A declaration that several use, and those that it uses.
#[derive(Clone, Debug, Default)]
struct Shared {
    uses: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Owner {
    Nobody,
    Check(usize),
    Shared(usize),
}

impl VerificationSource {
    /// Returns the indices of the checks (one for each proposed struct layout) that a line of the C source, counted
    /// from 1, belongs to, to attribute a compiler's error.
    pub fn checks_of_line(&self, line: usize) -> Vec<usize> {
        match line.checked_sub(1).and_then(|line| self.lines.get(line)) {
            Some(Owner::Check(check)) => vec![*check],
            Some(Owner::Shared(shared)) => {
                (0..self.checks.len()).filter(|check| self.uses(*check, *shared)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn uses(&self, check: usize, wanted: usize) -> bool {
        let mut seen = vec![false; self.shared.len()];
        let mut open = self.checks[check].uses.clone();
        while let Some(shared) = open.pop() {
            if shared == wanted {
                return true;
            }
            if !std::mem::replace(&mut seen[shared], true) {
                open.extend(&self.shared[shared].uses);
            }
        }
        false
    }
}

/// Returns C source by which a compiler verifies the new layouts of some records when all proposed orders of structs'
/// members are applied at once.
pub fn source_together(
    reorganizer: &Reorganizer<'_>,
    together: &CombinedProposal,
    records: &[RecordId],
) -> VerificationSource {
    let mut writer = Writer::new(reorganizer, Some(together));
    for id in records {
        let mut uses = Vec::new();
        let name = writer.shared(*id, &mut uses);
        let members = together.layout(*id).map(|layout| layout.order.iter().zip(&layout.members));
        let bits = members.into_iter().flatten().filter_map(|(index, member)| {
            let (at, width) = (member.bit_offset, member.bitfield?.size);
            Some(BitCheck { member: format!("m{index}"), old: at, new: at, width })
        });
        let tag = format!("r{}", id.index());
        let check = Check { old: tag.clone(), new: tag.clone(), bits: bits.collect(), uses };
        if !check.bits.is_empty() {
            writer.line(Owner::Check(writer.source.checks.len()), &format!("{name} *use_{tag};"));
        }
        writer.source.checks.push(check);
    }
    writer.source
}

/// Returns C source by which a compiler verifies proposed orders of structs' members: each struct with its present and
/// its proposed layout, with static assertions about sizes and offsets.
pub fn source(reorganizer: &Reorganizer<'_>, proposals: &[&Proposal]) -> VerificationSource {
    let mut writer = Writer::new(reorganizer, None);
    for (index, proposal) in proposals.iter().enumerate() {
        let (old, new) = (format!("o{index}"), format!("n{index}"));
        let mut check = Check { old: old.clone(), new: new.clone(), ..Check::default() };
        let members = reorganizer.types().members(reorganizer.types().record(proposal.record));
        let old_order: Vec<usize> = (0..members.len()).collect();
        let owner = Owner::Check(index);
        writer.record(owner, &old, proposal.record, &old_order, &mut check.uses);
        writer.assert_all(owner, &old, members, &old_order, proposal.old.size, proposal.align);
        writer.record(owner, &new, proposal.record, &proposal.order, &mut check.uses);
        let align = proposal.align;
        writer.assert_all(owner, &new, &proposal.members, &proposal.order, proposal.new.size, align);
        check.bits = bit_checks(members, proposal);
        if !check.bits.is_empty() {
            // without a use compilers leave the types out of the debug information
            writer.line(owner, &format!("struct {old} *use_{old}; struct {new} *use_{new};"));
        }
        writer.source.checks.push(check);
    }
    writer.source
}

fn bit_checks(members: &[Member], proposal: &Proposal) -> Vec<BitCheck> {
    let placed = proposal.order.iter().zip(&proposal.members);
    placed
        .filter_map(|(index, new)| {
            let field = new.bitfield?;
            let old = members.get(*index)?.bit_offset;
            Some(BitCheck { member: format!("m{index}"), old, new: new.bit_offset, width: field.size })
        })
        .collect()
}

struct Writer<'r, 't> {
    reorganizer: &'r Reorganizer<'t>,
    // where records are declared as they are with all proposals applied
    together: Option<&'r CombinedProposal>,
    source: VerificationSource,
    // what was declared already
    records: FxHashMap<RecordId, usize>,
    types: FxHashMap<TypeId, usize>,
    // how deep the record that is being declared is held
    depth: usize,
}

impl<'r, 't> Writer<'r, 't> {
    fn new(reorganizer: &'r Reorganizer<'t>, together: Option<&'r CombinedProposal>) -> Writer<'r, 't> {
        let mut writer = Writer {
            reorganizer,
            together,
            source: VerificationSource {
                text: String::new(),
                checks: Vec::new(),
                shared: Vec::new(),
                lines: Vec::new(),
            },
            records: FxHashMap::default(),
            types: FxHashMap::default(),
            depth: 0,
        };
        writer.line(Owner::Nobody, spell::PRELUDE);
        writer
    }

    /// Returns the size of a type as it is declared here.
    fn size_of(&self, id: TypeId) -> u64 {
        match self.together {
            Some(together) => together.size_of(self.reorganizer, id),
            None => size_of(self.reorganizer.types(), id),
        }
    }

    fn line(&mut self, owner: Owner, text: &str) {
        for line in text.lines() {
            self.source.text.push_str(line);
            self.source.text.push('\n');
            self.source.lines.push(owner);
        }
    }

    /// Declares a record with its members in an order, after everything that it needs.
    fn record(&mut self, owner: Owner, name: &str, id: RecordId, order: &[usize], uses: &mut Vec<usize>) {
        let abi = &self.reorganizer.abi;
        let types = abi.types;
        let record = types.record(id);
        let shape = abi.shape(id);
        let own;
        let replayed = match self.together.and_then(|together| together.layout(id)) {
            Some(layout) => &layout.replay,
            None => match replay(abi, id, shape.packing, shape.guessed) {
                Ok(replayed) => {
                    own = replayed;
                    &own
                }
                Err(_) => return,
            },
        };
        let keyword = if record.is_union() { "union" } else { "struct" };
        let mut text = String::new();
        if let Packing::Most(most) = shape.packing {
            let _ = writeln!(text, "#pragma pack(push, {most})");
        }
        let _ = writeln!(text, "{keyword} {name} {{");
        let mut largest = 1;
        for index in order {
            let member = &types.members(record)[*index];
            let mut speller = Speller { writer: self, uses: &mut *uses, depth: 0 };
            match &replayed.members[*index] {
                ReplayedMember::Nowhere => {}
                ReplayedMember::Bytes { size, align } => {
                    largest = largest.max(*align);
                    let line = speller.member(*index, member, *size, *align, shape.packing);
                    let _ = writeln!(text, "  {line}");
                }
                ReplayedMember::Bits { before, field } => {
                    let ty = speller.scalar(member.ty);
                    if let Some(bits) = before {
                        let _ = writeln!(text, "  {ty} :{};", bits.width);
                    }
                    let mut attributes = String::new();
                    if field.packed && shape.packing != Packing::Packed {
                        attributes += " __attribute__((packed))";
                    }
                    if field.asked > 1 {
                        let _ = write!(attributes, " __attribute__((aligned({})))", field.asked / 8);
                    }
                    let _ = writeln!(text, "  {ty} m{index}:{}{attributes};", field.width);
                    largest = largest.max(field.align / 8).max(field.asked / 8);
                    for (_, bits) in replayed.behind.iter().filter(|(at, _)| at == index) {
                        let _ = writeln!(text, "  {ty} :{};", bits.width);
                    }
                }
            }
        }
        text.push('}');
        if shape.packing == Packing::Packed {
            text += " __attribute__((packed))";
        }
        if replayed.align > largest {
            let _ = write!(text, " __attribute__((aligned({})))", replayed.align);
        }
        text += ";\n";
        if let Packing::Most(_) = shape.packing {
            text += "#pragma pack(pop)\n";
        }
        self.line(owner, &text);
    }

    /// Asserts where every member is that C can say it of.
    fn assert_all(
        &mut self,
        owner: Owner,
        name: &str,
        members: &[Member],
        order: &[usize],
        size: u64,
        align: u64,
    ) {
        self.assert(owner, &format!("sizeof(struct {name}) == {size}"));
        self.assert(owner, &format!("_Alignof(struct {name}) == {align}"));
        for (index, member) in order.iter().zip(members) {
            let placed = member.kind != MemberKind::Static && member.size != 0;
            if placed && member.bitfield.is_none() {
                let offset = member.offset;
                self.assert(owner, &format!("__builtin_offsetof(struct {name}, m{index}) == {offset}"));
            }
        }
    }

    fn assert(&mut self, owner: Owner, what: &str) {
        self.line(owner, &format!("_Static_assert({what}, \"{what}\");"));
    }

    /// Declares a record that others hold, once; its keyword and name.
    fn shared(&mut self, id: RecordId, uses: &mut Vec<usize>) -> String {
        let abi = &self.reorganizer.abi;
        let record = abi.types.record(id);
        let shape = abi.shape(id);
        let keyword = if record.is_union() { "union" } else { "struct" };
        let name = format!("r{}", id.index());
        if let Some(shared) = self.records.get(&id) {
            uses.push(*shared);
            return format!("{keyword} {name}");
        }
        let shared = self.source.shared.len();
        self.source.shared.push(Shared::default());
        self.records.insert(id, shared);
        uses.push(shared);
        let mut own = Vec::new();
        let layout = self.together.and_then(|together| together.layout(id));
        let kept = self.together.is_some_and(|together| together.is_kept(id));
        let size = layout.map_or(record.size, |layout| layout.size);
        // a class without data takes a byte in C++, and none in C
        let members = abi.types.members(record);
        let empty = members.iter().all(|m| m.kind == MemberKind::Static || m.is_base() && m.size == 0);
        if empty || kept || shape.unexplained.is_some() || self.depth >= spell::DEPTH_LIMIT {
            let attribute = format!("__attribute__((aligned({})))", shape.align);
            self.line(Owner::Shared(shared), &format!("{keyword} {name} {{ char b[{size}]; }} {attribute};"));
        } else {
            let order = match layout {
                Some(layout) => layout.order.clone(),
                None => (0..abi.types.members(record).len()).collect(),
            };
            self.depth += 1;
            self.record(Owner::Shared(shared), &name, id, &order, &mut own);
            self.depth -= 1;
        }
        match layout.filter(|_| record.is_struct()) {
            Some(Layout { order, members, replay, .. }) => {
                self.assert_all(Owner::Shared(shared), &name, members, order, size, replay.align);
            }
            None => self.assert(Owner::Shared(shared), &format!("sizeof({keyword} {name}) == {size}")),
        }
        self.source.shared[shared].uses = own;
        format!("{keyword} {name}")
    }
}
