//! The instructions that ran between two accesses, found in the program's code by their number.

use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use tallyline_inference::code::{Flow, Operation};
use tallyline_trace::Instructions;

/// The most instructions between two accesses that are looked for.
const LENGTH_LIMIT: u64 = 1 << 13;

/// The most instructions that are looked at for one way.
const SEARCH_LIMIT: usize = 1 << 14;

/// The most ways that are remembered, and the instructions in them; what comes later is looked for each time.
const REMEMBERED_LIMIT: usize = 1 << 24;

/// A source of decoded machine instructions of a traced process, by address, for the timing simulation of its trace;
/// implemented by the caller of [`TimedCores::new`](crate::TimedCores::new). Threads that replay the trace at the same
/// time share it.
pub trait Code: Sync {
    /// Describes the instruction at an address of the process; none where its code is not known.
    fn operation(&self, address: u64) -> Option<Operation>;
}

/// An instruction of the trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecodedInstruction {
    pub(super) address: u64,
    pub(super) operation: Operation,
    pub(super) atomic: bool,
}

/// The start of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum PathStart {
    /// The instruction at an address comes first.
    At(u64),
    /// The successor of the instruction of an index comes first.
    Behind(u32),
}

/// Finds what ran between two accesses.
pub(super) struct PathFinder {
    // by the trace's index
    known: Vec<Option<DecodedInstruction>>,
    by_address: FxHashMap<u64, u32>,
    // by the address behind it
    by_end: FxHashMap<u64, u32>,
    remembered: FxHashMap<(PathStart, u32, u32), Option<Range<u32>>>,
    steps: Vec<u32>,
}

impl PathFinder {
    pub(super) fn new(instructions: &Instructions, code: &dyn Code) -> Self {
        let known: Vec<Option<DecodedInstruction>> = instructions
            .iter()
            .map(|instruction| {
                let operation = code.operation(instruction.address())?;
                Some(DecodedInstruction {
                    address: instruction.address(),
                    operation,
                    atomic: instruction.atomic(),
                })
            })
            .collect();
        let of = |address: fn(&DecodedInstruction) -> u64| {
            let all = known.iter().enumerate();
            all.filter_map(|(index, known)| Some((address(known.as_ref()?), index as u32))).collect()
        };
        Self {
            by_address: of(|known| known.address),
            by_end: of(|known| known.operation.end),
            known,
            remembered: FxHashMap::default(),
            steps: Vec::new(),
        }
    }

    pub(super) fn known(&self, index: u32) -> Option<&DecodedInstruction> {
        self.known.get(index as usize)?.as_ref()
    }

    pub(super) fn make_plain(&mut self, index: u32) {
        if let Some(Some(known)) = self.known.get_mut(index as usize) {
            known.atomic = false;
        }
    }

    /// Finds `count` instructions without accesses between a start and the instruction `to`; none where the code
    /// has no such way. Of several ways it is one.
    pub(super) fn between(&mut self, start: PathStart, to: u32, count: u64, into: &mut Vec<u32>) -> bool {
        into.clear();
        if count > LENGTH_LIMIT {
            return false;
        }
        let key = (start, to, count as u32);
        if let Some(found) = self.remembered.get(&key) {
            let Some(range) = found else { return false };
            into.extend_from_slice(&self.steps[range.start as usize..range.end as usize]);
            return true;
        }
        let found = self.search(start, to, count as usize, into);
        if self.steps.len() + into.len() < REMEMBERED_LIMIT && self.remembered.len() < REMEMBERED_LIMIT {
            let first = self.steps.len() as u32;
            self.steps.extend_from_slice(into);
            let range = first..self.steps.len() as u32;
            self.remembered.insert(key, found.then_some(range));
        }
        found
    }

    fn search(&self, start: PathStart, to: u32, count: usize, path: &mut Vec<u32>) -> bool {
        let Some(target) = self.known(to).map(|known| known.address) else { return false };
        // what is still to be looked at: an address, and how many come before it
        let mut open: Vec<(u64, usize)> = Vec::new();
        match start {
            PathStart::At(address) => open.push((address, 0)),
            PathStart::Behind(index) => {
                let Some(known) = self.known(index) else { return false };
                match self.follow(known, 0, &mut open) {
                    true => {}
                    false => return self.straight(target, count, path),
                }
            }
        }
        let mut seen: FxHashSet<(u64, usize)> = FxHashSet::default();
        while let Some((address, depth)) = open.pop() {
            path.truncate(depth);
            if depth == count {
                if address == target {
                    return true;
                }
                continue;
            }
            if seen.len() >= SEARCH_LIMIT {
                break;
            }
            if !seen.insert((address, depth)) {
                continue;
            }
            let Some(index) = self.by_address.get(&address).copied() else { continue };
            let Some(known) = self.known(index).filter(|known| !known.operation.memory) else { continue };
            path.push(index);
            if !self.follow(known, depth + 1, &mut open) && self.straight(target, count - depth - 1, path) {
                return true;
            }
        }
        path.clear();
        false
    }

    /// Adds what can follow an instruction; false where its target is computed.
    fn follow(&self, known: &DecodedInstruction, depth: usize, open: &mut Vec<(u64, usize)>) -> bool {
        match known.operation.flow {
            Flow::Next => open.push((known.operation.end, depth)),
            Flow::Jump(Some(target)) | Flow::Call(Some(target)) => open.push((target, depth)),
            Flow::Branch(target) => open.extend([(target, depth), (known.operation.end, depth)]),
            Flow::Jump(None) | Flow::Call(None) | Flow::Return => return false,
            Flow::Stop => {}
        }
        true
    }

    /// Adds the instructions that lie right in front of an address; false where they are not as many.
    fn straight(&self, address: u64, count: usize, path: &mut Vec<u32>) -> bool {
        let before = path.len();
        let mut end = address;
        for _ in 0..count {
            let index = self.by_end.get(&end).copied();
            let step = index.and_then(|index| Some((index, self.known(index)?)));
            let falls =
                |known: &DecodedInstruction| matches!(known.operation.flow, Flow::Next | Flow::Branch(_));
            let Some((index, known)) = step.filter(|(_, known)| !known.operation.memory && falls(known))
            else {
                path.truncate(before);
                return false;
            };
            path.push(index);
            end = known.address;
        }
        path[before..].reverse();
        true
    }
}
