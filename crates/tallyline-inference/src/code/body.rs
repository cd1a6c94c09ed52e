//! The control-flow graph of one function.

use super::aarch64;
use super::fusion::{FusiblePair, FusionRole};
use super::image::{Image, Machine};
use super::implicit_edges::{self, CfgEdge};
use super::instruction::{Effect, Flow, Instruction, Memory};
use super::packed::Code;
use super::tables;
use super::x86;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The maximum size of one function in bytes; the largest that compilers emit have a few million.
const BYTES_LIMIT: u64 = 16 << 20;

/// A basic block of a decoded function: instructions that execute one after the other, with its successors and
/// predecessors.
#[derive(Clone, Debug, Default)]
pub struct Block {
    pub(crate) instructions: Range<u32>,
    pub(crate) successors: Vec<u32>,
    pub(crate) predecessors: Vec<u32>,
}

impl Block {
    /// Returns the range of the block's instructions, as indices of [`Body::instructions`].
    pub fn instructions(&self) -> &Range<u32> {
        &self.instructions
    }

    /// Returns the blocks that control can reach directly from this one, as indices of [`Body::blocks`].
    pub fn successors(&self) -> &[u32] {
        &self.successors
    }

    /// Returns the blocks from which control can reach this one directly, as indices of [`Body::blocks`].
    pub fn predecessors(&self) -> &[u32] {
        &self.predecessors
    }
}

/// The instructions that can execute directly before a given instruction of the same function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predecessors {
    /// No predecessor in this function: the instruction is its entry.
    Entry,
    /// The addresses of the possible predecessors.
    Instructions(Vec<u64>),
    /// The return of a function that is called directly before the instruction.
    Call {
        /// The address of the call instruction.
        call: u64,
        /// The address of the callee; `None` for an indirect call.
        target: Option<u64>,
    },
    /// An unknown predecessor: none is visible.
    Unknown,
}

/// The machine code of one function, decoded into instructions and a control-flow graph of basic blocks.
#[derive(Clone, Debug, Default)]
pub struct Body {
    code: Code,
    blocks: Vec<Block>,
    // the block of each instruction
    block_index: Vec<u32>,
    entry: u32,
}

impl Body {
    /// Returns the decoded function with these code ranges, entered at the start of the first: from the image's store
    /// of decoded functions ([`Image::set_function_store`]), else decoded and added to that.
    pub fn of_function(image: &Image, ranges: &[Range<u64>]) -> Body {
        let entry = ranges.first().map_or(0, |range| range.start);
        let Some(store) = image.function_store() else { return Body::decode(image, ranges, entry) };
        let kept = store.get(ranges).and_then(|bytes| Body::unpacked(ranges, &edges(image, ranges), &bytes));
        kept.unwrap_or_else(|| {
            let body = Body::decode(image, ranges, entry);
            store.add(ranges, body.packed());
            body
        })
    }

    /// Returns the decoded instructions as bytes.
    pub(super) fn packed(&self) -> Vec<u8> {
        self.code.pack()
    }

    /// Returns the function with these code ranges from the bytes of its decoded instructions, with edges that no
    /// instruction shows; `None` where the bytes are damaged.
    pub(super) fn unpacked(ranges: &[Range<u64>], edges: &[CfgEdge], bytes: &[u8]) -> Option<Body> {
        let size =
            ranges.iter().map(|range| range.end.saturating_sub(range.start)).fold(0, u64::saturating_add);
        let code = Code::unpack(bytes, size.min(BYTES_LIMIT))?;
        Some(Body::of_code(ranges.first()?.start, edges, code))
    }

    /// Decodes the code ranges of one function whose entry point is the address `entry`.
    pub fn decode(image: &Image, ranges: &[Range<u64>], entry: u64) -> Body {
        let mut code = Code::default();
        let mut left = BYTES_LIMIT;
        let mut sorted: Vec<_> = ranges.to_vec();
        sorted.sort_by_key(|range| range.start);
        for range in sorted {
            let start = code.instructions.last().map_or(range.start, |last| range.start.max(last.end()));
            let size = range.end.saturating_sub(start).min(left);
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            let Some((_, bytes)) = image.bytes(start, size).filter(|(region, _)| region.code) else {
                continue;
            };
            left -= bytes.len() as u64;
            let Code { instructions, effects, second_operands, .. } = &mut code;
            match image.machine() {
                Machine::X86_64 => x86::decode(&bytes, start, instructions, effects, second_operands),
                Machine::Aarch64 => aarch64::decode(&bytes, start, instructions, effects),
                Machine::Other => {}
            }
        }
        code.tables = find_tables(&code, image, ranges);
        Body::of_code(entry, &edges(image, ranges), code)
    }

    /// Finds the control-flow graph of decoded code.
    fn of_code(entry: u64, edges: &[CfgEdge], code: Code) -> Body {
        let mut body = Body { code, ..Body::default() };
        body.find_blocks(entry, edges);
        body
    }

    /// Returns the function's instructions, sorted by address. A *position* in other methods is an index of this
    /// slice.
    pub fn instructions(&self) -> &[Instruction] {
        &self.code.instructions
    }

    /// Returns the second memory operand of the instruction at a position, such as the destination of a string
    /// move; `None` if it has one or none. The implicit stack operand of a push, pop or call does not count.
    pub fn second_operand(&self, position: usize) -> Option<&Memory> {
        if self.code.second_operands.is_empty() {
            return None;
        }
        let position = u32::try_from(position).ok()?;
        let index =
            self.code.second_operands.binary_search_by_key(&position, |(position, _)| *position).ok()?;
        Some(&self.code.second_operands[index].1)
    }

    /// Returns the memory operands, none to two, of the instruction at a position.
    pub fn operands(&self, position: usize) -> impl Iterator<Item = &Memory> {
        let first = self.code.instructions.get(position).and_then(|instruction| instruction.memory.as_ref());
        first.into_iter().chain(self.second_operand(position))
    }

    /// Returns the effects of one of the function's instructions on registers, in the order in which they apply.
    pub fn effects(&self, instruction: &Instruction) -> &[Effect] {
        self.code.effects(instruction)
    }

    /// Returns the registers that the function's own instructions write, not those of its callees, as a mask with
    /// one bit for each DWARF register number.
    pub fn written(&self) -> u64 {
        self.code
            .effects
            .iter()
            .flat_map(Effect::written)
            .fold(0, |all, register| all | 1 << (register.0 & 63))
    }

    /// Returns the targets in the jump table of the indirect jump at a position (a `switch` statement's); empty if
    /// no table was recognised.
    pub fn table(&self, position: usize) -> &[u64] {
        self.code.tables.get(&position).map_or(&[], Vec::as_slice)
    }

    /// Returns the function's basic blocks, sorted by address.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the index, in [`blocks`](Self::blocks), of the block that contains the function's entry point.
    pub fn entry(&self) -> usize {
        self.entry as usize
    }

    /// Returns the index, in [`instructions`](Self::instructions), of the instruction that starts at an address;
    /// `None` if none does.
    pub fn position(&self, address: u64) -> Option<usize> {
        self.code.instructions.binary_search_by_key(&address, |instruction| instruction.address).ok()
    }

    /// Returns the index, in [`blocks`](Self::blocks), of the block that contains the instruction at a position; `None`
    /// beyond the last one.
    pub fn block_of(&self, position: usize) -> Option<usize> {
        self.block_index.get(position).map(|block| *block as usize)
    }

    /// Returns the instructions that can execute directly before the one at an address; `None` if no instruction
    /// starts there.
    pub fn predecessors(&self, address: u64) -> Option<Predecessors> {
        let position = self.position(address)?;
        let block = &self.blocks[self.block_of(position)?];
        if position > block.instructions.start as usize {
            return Some(before(&self.code.instructions[position - 1]));
        }
        if block.predecessors.is_empty() {
            let is_entry = block.instructions.start == self.blocks[self.entry()].instructions.start;
            return Some(if is_entry { Predecessors::Entry } else { Predecessors::Unknown });
        }
        let last = |block: &u32| {
            let end = self.blocks.get(*block as usize)?.instructions.end as usize;
            self.code.instructions.get(end.checked_sub(1)?)
        };
        let all: Vec<&Instruction> = block.predecessors.iter().filter_map(last).collect();
        match all[..] {
            [only] if self.block_of(position) != Some(self.entry()) => Some(before(only)),
            _ => Some(Predecessors::Instructions(all.iter().map(|last| last.address).collect())),
        }
    }

    /// Returns the kind of compare-and-jump pair that the jump at position `jump` forms with the instruction before
    /// it, which a CPU may fuse into one. `None` if they form none, or if the jump can be reached from elsewhere.
    pub fn pair_at(&self, jump: usize) -> Option<FusiblePair> {
        let instructions = self.instructions();
        let FusionRole::Jump(condition) = instructions.get(jump)?.fusion else { return None };
        let producer = jump.checked_sub(1)?;
        let FusionRole::Producer(first) = instructions[producer].fusion else { return None };
        let is_adjacent = instructions[producer].end() == instructions[jump].address;
        let is_entered_alone = self.block_of(producer) != self.block_of(jump);
        (is_adjacent && !is_entered_alone && instructions[producer].flow == Flow::Next)
            .then_some(FusiblePair { producer: first, condition })
    }

    fn find_blocks(&mut self, entry: u64, edges: &[CfgEdge]) {
        let leaders = self.leaders(entry, edges);
        self.block_index = Vec::with_capacity(self.code.instructions.len());
        for (index, start) in leaders.iter().enumerate() {
            let end = leaders.get(index + 1).copied().unwrap_or(self.code.instructions.len() as u32);
            self.blocks.push(Block { instructions: *start..end, ..Block::default() });
            self.block_index.resize(end as usize, index as u32);
        }
        let first = self.position(entry).unwrap_or(0);
        self.entry = self.block_of(first).unwrap_or(0) as u32;
        let mut computed = Vec::new();
        for index in 0..self.blocks.len() {
            let Some(last) = self.last_of(index).copied() else { continue };
            let target = match last.flow {
                Flow::Jump(Some(target)) | Flow::Branch(target) => self.block_at(target),
                _ => None,
            };
            let falls = matches!(last.flow, Flow::Next | Flow::Branch(_) | Flow::Call(_));
            let next = falls.then(|| self.block_at(last.end())).flatten();
            for successor in [next, target].into_iter().flatten() {
                self.connect(index as u32, successor);
            }
            if last.flow == Flow::Jump(None) {
                let position = self.blocks[index].instructions.end as usize - 1;
                match self.code.tables.get(&position) {
                    Some(targets) => {
                        let targets = targets.iter().map(|target| self.block_at(*target));
                        for successor in targets.flatten().collect::<Vec<u32>>() {
                            self.connect(index as u32, successor);
                        }
                    }
                    None => computed.push(index as u32),
                }
            }
        }
        for (from, to) in edges {
            let from = self.position(*from).and_then(|position| self.block_of(position));
            if let (Some(from), Some(to)) = (from, self.block_at(*to)) {
                self.connect(from as u32, to);
            }
        }
        self.connect_computed(&computed);
    }

    /// Connects indirect jumps without a known table to every block without a predecessor: compilers place the
    /// targets of a table behind the jump.
    fn connect_computed(&mut self, computed: &[u32]) {
        let Some(first) = computed.first().copied() else { return };
        let orphans: Vec<u32> = (0..self.blocks.len() as u32)
            .filter(|block| *block != self.entry && self.blocks[*block as usize].predecessors.is_empty())
            .collect();
        // with many of both, the edges would be their product: one jump stands for all
        let jumps = if computed.len().saturating_mul(orphans.len()) > 1 << 16 { &[first] } else { computed };
        // none of them is connected yet, which need not be looked for: an interpreter has some ten thousand edges
        for jump in jumps {
            self.blocks[*jump as usize].successors.extend_from_slice(&orphans);
        }
        for orphan in orphans {
            self.blocks[orphan as usize].predecessors.extend_from_slice(jumps);
        }
    }

    fn connect(&mut self, from: u32, to: u32) {
        if !self.blocks[from as usize].successors.contains(&to) {
            self.blocks[from as usize].successors.push(to);
            self.blocks[to as usize].predecessors.push(from);
        }
    }

    fn last_of(&self, block: usize) -> Option<&Instruction> {
        let end = self.blocks.get(block)?.instructions.end as usize;
        self.code.instructions.get(end.checked_sub(1)?)
    }

    fn block_at(&self, address: u64) -> Option<u32> {
        let position = self.position(address)?;
        let block = self.block_of(position)?;
        (self.blocks[block].instructions.start as usize == position).then_some(block as u32)
    }

    /// Returns the leaders: positions at which blocks start.
    fn leaders(&self, entry: u64, edges: &[CfgEdge]) -> Vec<u32> {
        let mut is_leader = vec![false; self.code.instructions.len()];
        let mut lead = |position: Option<usize>| {
            if let Some(is_leader) = position.and_then(|position| is_leader.get_mut(position)) {
                *is_leader = true;
            }
        };
        lead((!self.code.instructions.is_empty()).then_some(0));
        lead(self.position(entry));
        self.code.tables.values().flatten().for_each(|target| lead(self.position(*target)));
        let count = self.code.instructions.len();
        for (from, to) in edges {
            lead(self.position(*to));
            lead(self.position(*from).map(|position| position + 1).filter(|next| *next < count));
        }
        for (position, instruction) in self.code.instructions.iter().enumerate() {
            let next = self.code.instructions.get(position + 1);
            let gap = next.is_some_and(|next| next.address != instruction.end());
            if instruction.flow == Flow::Next && !gap {
                continue;
            }
            if let Flow::Jump(Some(target)) | Flow::Branch(target) = instruction.flow {
                lead(self.position(target));
            }
            if !matches!(instruction.flow, Flow::Call(_)) || gap {
                lead(next.map(|_| position + 1));
            }
        }
        (0..).zip(is_leader).filter(|(_, is_leader)| *is_leader).map(|(position, _)| position).collect()
    }
}

/// Returns the edges in code ranges that no instruction shows.
fn edges(image: &Image, ranges: &[Range<u64>]) -> Vec<CfgEdge> {
    ranges.iter().flat_map(|range| implicit_edges::within(image, range)).collect()
}

/// Returns the targets of indirect jumps through jump tables, by the position of the jump.
fn find_tables(code: &Code, image: &Image, ranges: &[Range<u64>]) -> FxHashMap<usize, Vec<u64>> {
    let mut found = FxHashMap::default();
    for (position, instruction) in code.instructions.iter().enumerate() {
        if instruction.flow == Flow::Jump(None) {
            let effects = |instruction: &Instruction| code.effects(instruction);
            let targets = tables::targets(image, &code.instructions, effects, position, ranges);
            if !targets.is_empty() {
                found.insert(position, targets);
            }
        }
    }
    found
}

fn before(instruction: &Instruction) -> Predecessors {
    match instruction.flow {
        Flow::Call(target) => Predecessors::Call { call: instruction.address, target },
        _ => Predecessors::Instructions(vec![instruction.address]),
    }
}
