//! Loops that only wait: for a word of memory that another thread writes.

use super::body::Body;
use super::image::Image;
use super::instruction::{Flow, Instruction};
use super::operation::{FLAGS, Operation, RegisterSet, operation_at};
use std::ops::Range;

/// The most instructions of a loop that is looked at: who waits does nothing else.
const INSTRUCTIONS_LIMIT: usize = 64;

/// The maximum depth of nested loops; what is nested deeper is taken for work.
const DEPTH_LIMIT: usize = 8;

/// Returns the address ranges, sorted and as linked, of a function's loops that only wait for another thread: *spin
/// loops*.
///
/// A loop waits if it reads memory and has no other effect, and if a word that it read decides whether it ends: it
/// writes and calls nothing; nothing that it reads adds up from round to round, as in a sum or where a list is followed;
/// and no address depends on the round, as it does where a table is searched. Rounds may be counted. So what ends it
/// is another thread's write, or its patience. A loop that has others in it may wait as a whole.
///
/// Empty for machines other than x86-64. Code of a compiler that keeps variables in memory (`-O0`) writes to it, and
/// does not count as waiting.
pub fn spin_loops(image: &Image, body: &Body) -> Vec<Range<u64>> {
    let reached = reached(body);
    let mut found = Vec::new();
    find(image, body, &reached, &reached, 0, &mut found);
    found.sort_by_key(|range: &Range<u64>| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in found {
        match joined.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// Returns the blocks, sorted, that are reached from the function's entry: the padding in front of a loop, which falls
/// into it, is none of them.
fn reached(body: &Body) -> Vec<usize> {
    let mut is_reached = vec![false; body.blocks().len()];
    let mut open = vec![body.entry()];
    while let Some(block) = open.pop() {
        if let Some(known) = is_reached.get_mut(block).filter(|known| !**known) {
            *known = true;
            open.extend(body.blocks()[block].successors().iter().map(|to| *to as usize));
        }
    }
    (0..is_reached.len()).filter(|block| is_reached[*block]).collect()
}

/// Finds the outermost loops among some blocks that wait.
fn find(
    image: &Image,
    body: &Body,
    reached: &[usize],
    blocks: &[usize],
    depth: usize,
    into: &mut Vec<Range<u64>>,
) {
    if depth > DEPTH_LIMIT {
        return;
    }
    for cycle in cycles(body, blocks) {
        let entries = entries(body, reached, &cycle);
        if waits(image, body, &cycle, &entries) {
            into.extend(ranges(body, &cycle));
            continue;
        }
        // loops with the same entry, of which one may wait: it asks again until there is work
        for (entry, latch) in back_edges(body, &cycle, &entries) {
            let natural = natural_loop(body, &cycle, entry, latch);
            if natural.len() < cycle.len() && waits(image, body, &natural, &[entry]) {
                into.extend(ranges(body, &natural));
            }
        }
        // without its entries what is left are the loops in it
        let inner: Vec<usize> = cycle.into_iter().filter(|block| !entries.contains(block)).collect();
        find(image, body, reached, &inner, depth + 1, into);
    }
}

fn waits(image: &Image, body: &Body, blocks: &[usize], entries: &[usize]) -> bool {
    Loop::decode(image, body, blocks).is_some_and(|code| code.waits(entries))
}

fn ranges(body: &Body, blocks: &[usize]) -> impl Iterator<Item = Range<u64>> {
    blocks.iter().filter_map(|block| {
        let instructions = instructions(body, *block);
        Some(instructions.first()?.address()..instructions.last()?.end())
    })
}

/// Returns the edges within a cycle that lead to its entries: entry and the block before it.
fn back_edges(body: &Body, cycle: &[usize], entries: &[usize]) -> Vec<(usize, usize)> {
    let inside = |from: &u32| cycle.binary_search(&(*from as usize)).is_ok();
    let of_entry = |entry: &usize| {
        let latches = body.blocks()[*entry].predecessors().iter().filter(|from| inside(from));
        latches.map(|latch| (*entry, *latch as usize)).collect::<Vec<_>>()
    };
    entries.iter().take(INSTRUCTIONS_LIMIT).flat_map(of_entry).take(INSTRUCTIONS_LIMIT).collect()
}

/// Returns the blocks of a cycle, sorted, from which an edge back to an entry is reached without that entry.
fn natural_loop(body: &Body, cycle: &[usize], entry: usize, latch: usize) -> Vec<usize> {
    let mut found = vec![entry];
    let mut open = vec![latch];
    while let Some(block) = open.pop() {
        if found.contains(&block) {
            continue;
        }
        // more than can wait
        if found.len() > INSTRUCTIONS_LIMIT {
            return cycle.to_vec();
        }
        found.push(block);
        let before = body.blocks()[block].predecessors().iter().map(|from| *from as usize);
        open.extend(before.filter(|from| cycle.binary_search(from).is_ok()));
    }
    found.sort_unstable();
    found
}

fn instructions(body: &Body, block: usize) -> &[Instruction] {
    let range = body.blocks()[block].instructions();
    body.instructions().get(range.start as usize..range.end as usize).unwrap_or_default()
}

/// Returns the blocks of a cycle that are entered from outside of it; the first one where none is.
fn entries(body: &Body, reached: &[usize], cycle: &[usize]) -> Vec<usize> {
    let is_entered = |block: &&usize| {
        let is_in = |blocks: &[usize], block: &u32| blocks.binary_search(&(*block as usize)).is_ok();
        let from_outside = |from: &u32| is_in(reached, from) && !is_in(cycle, from);
        **block == body.entry() || body.blocks()[**block].predecessors().iter().any(from_outside)
    };
    let entered: Vec<usize> = cycle.iter().filter(is_entered).copied().collect();
    if entered.is_empty() { cycle.first().copied().into_iter().collect() } else { entered }
}

/// Returns the strongly connected components, each sorted, of the graph of some sorted blocks, without those that are
/// one block that does not follow itself (Tarjan's algorithm, without recursion).
fn cycles(body: &Body, blocks: &[usize]) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    let place = |block: u32| blocks.binary_search(&(block as usize)).ok();
    let successors = |at: usize| body.blocks()[blocks[at]].successors();
    let mut number = vec![UNSEEN; blocks.len()];
    let mut lowest = vec![UNSEEN; blocks.len()];
    let mut is_open = vec![false; blocks.len()];
    let (mut open, mut next, mut found) = (Vec::new(), 0, Vec::new());
    for root in 0..blocks.len() {
        if number[root] != UNSEEN {
            continue;
        }
        let mut path = vec![(root, 0)];
        while let Some((at, edge)) = path.pop() {
            if edge == 0 {
                (number[at], lowest[at]) = (next, next);
                next += 1;
                open.push(at);
                is_open[at] = true;
            }
            if let Some(to) = successors(at).get(edge) {
                path.push((at, edge + 1));
                match place(*to) {
                    Some(to) if number[to] == UNSEEN => path.push((to, 0)),
                    Some(to) if is_open[to] => lowest[at] = lowest[at].min(number[to]),
                    _ => {}
                }
                continue;
            }
            if let Some((parent, _)) = path.last() {
                lowest[*parent] = lowest[*parent].min(lowest[at]);
            }
            if lowest[at] == number[at] {
                let start = open.iter().rposition(|member| *member == at).unwrap_or(0);
                let mut cycle: Vec<usize> = open.drain(start..).collect();
                cycle.iter().for_each(|member| is_open[*member] = false);
                let follows_itself = successors(at).iter().any(|to| place(*to) == Some(at));
                if cycle.len() > 1 || follows_itself {
                    cycle.iter_mut().for_each(|member| *member = blocks[*member]);
                    cycle.sort_unstable();
                    found.push(cycle);
                }
            }
        }
    }
    found
}

/// A loop's code: its blocks, with the effects of their instructions on registers.
struct Loop {
    blocks: Vec<LoopBlock>,
}

/// A block of a loop.
struct LoopBlock {
    number: usize,
    operations: Vec<Operation>,
    /// The block's successors within the loop, as indices of the loop's blocks.
    successors: Vec<usize>,
    /// Registers from which the block's last instruction decides whether to leave the loop.
    leaves_by: RegisterSet,
}

impl Loop {
    /// Decodes a loop; none where it has effects besides those on registers, or code that is not understood.
    fn decode(image: &Image, body: &Body, cycle: &[usize]) -> Option<Loop> {
        let length: usize = cycle.iter().map(|block| instructions(body, *block).len()).sum();
        if length > INSTRUCTIONS_LIMIT {
            return None;
        }
        let mut blocks = Vec::with_capacity(cycle.len());
        for block in cycle {
            let code = instructions(body, *block);
            let mut operations = Vec::with_capacity(code.len());
            for instruction in code {
                let is_plain =
                    matches!(instruction.flow(), Flow::Next | Flow::Jump(Some(_)) | Flow::Branch(_));
                let position = body.position(instruction.address())?;
                if !is_plain
                    || instruction.is_repeated()
                    || body.operands(position).any(|memory| memory.access().writes())
                    || is_kernel_call(image, instruction)
                {
                    return None;
                }
                operations.push(operation_at(image, instruction.address())?);
            }
            let inside = |to: &u32| cycle.binary_search(&(*to as usize)).ok();
            let successors = body.blocks()[*block].successors();
            let leaves = successors.iter().any(|to| inside(to).is_none());
            blocks.push(LoopBlock {
                number: *block,
                leaves_by: operations.last().filter(|_| leaves).map_or(0, |last| last.reads),
                successors: successors.iter().filter_map(inside).collect(),
                operations,
            });
        }
        Some(Loop { blocks })
    }

    /// Returns `true` if only another thread's write, or a count of rounds, ends the loop.
    fn waits(&self, entries: &[usize]) -> bool {
        let loaded = self.loaded();
        let leaves_by = self.blocks.iter().fold(0, |all, block| all | block.leaves_by);
        if leaves_by & loaded == 0 {
            return false;
        }
        let addresses = self.operations().fold(0, |all, operation| all | operation.address);
        let carried = self.carried(entries) & !FLAGS;
        let each = (0..RegisterSet::BITS).map(|bit| 1 << bit).filter(|register| carried & register != 0);
        let kept = each.filter(|register| self.sources(self.read_for(*register)) & register != 0);
        kept.fold(0, |all, register| all | register) & (loaded | self.sources(addresses)) == 0
    }

    fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.blocks.iter().flat_map(|block| &block.operations)
    }

    /// Returns the registers that hold what was read from memory, or depend on it, somewhere in the loop.
    fn loaded(&self) -> RegisterSet {
        let mut loaded = 0;
        loop {
            let before = loaded;
            for operation in self.operations() {
                if operation.memory || operation.reads & loaded != 0 {
                    loaded |= operation.writes;
                }
            }
            if loaded == before {
                return loaded;
            }
        }
    }

    /// Returns the registers that are read to write a register, somewhere in the loop.
    fn read_for(&self, register: RegisterSet) -> RegisterSet {
        let writers = self.operations().filter(|operation| operation.writes & register != 0);
        writers.fold(0, |all, operation| all | operation.reads)
    }

    /// Returns some registers, and those that they are made of, somewhere in the loop, but for the flags.
    fn sources(&self, of: RegisterSet) -> RegisterSet {
        let mut sources = of & !FLAGS;
        loop {
            let before = sources;
            for operation in self.operations().filter(|operation| operation.writes & before != 0) {
                sources |= operation.reads & !FLAGS;
            }
            if sources == before {
                return sources;
            }
        }
    }

    /// Returns the registers that a round takes over from the round before it, and changes.
    fn carried(&self, entries: &[usize]) -> RegisterSet {
        let mut live: Vec<RegisterSet> = vec![0; self.blocks.len()];
        loop {
            let before = live.clone();
            for (at, block) in self.blocks.iter().enumerate().rev() {
                let behind = block.successors.iter().fold(0, |all, to| all | live[*to]);
                let step =
                    |after: RegisterSet, operation: &Operation| (after & !operation.writes) | operation.reads;
                live[at] = block.operations.iter().rev().fold(behind, step);
            }
            if live == before {
                break;
            }
        }
        let written = self.operations().fold(0, |all, operation| all | operation.writes);
        let of_entries = self.blocks.iter().zip(&live).filter(|(block, _)| entries.contains(&block.number));
        of_entries.fold(0, |all, (_, live)| all | live) & written
    }
}

/// Returns `true` if an instruction is a system call (`syscall`).
fn is_kernel_call(image: &Image, instruction: &Instruction) -> bool {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    let code = image.bytes(instruction.address(), SYSCALL.len());
    instruction.length() == 2 && code.is_some_and(|(_, bytes)| bytes[..] == SYSCALL)
}

#[cfg(test)]
mod tests;
