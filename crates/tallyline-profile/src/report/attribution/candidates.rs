//! The instructions that a sample may be charged to, and how likely each of them stalled.

use super::Rule;
use super::fusion::PairCounts;
use crate::code::{Body, Flow, FusiblePair, Instruction, PairAt, Predecessors, Register};
use crate::infer::Outcome;
use rustc_hash::FxHashMap;

/// The bytes within which two accesses through one register are likely in one cache line.
const LINE: u64 = 64;

/// The most instructions that are walked back over for an earlier access to the line.
const WALK_LIMIT: usize = 64;

/// The likelihood, against a load from anywhere, that the processor waits for a store or for the stack.
const UNLIKELY: f64 = 0.02;

/// The likelihood that it waits for a load from a variable at a fixed address, which mostly is in the cache.
const FIXED: f64 = 0.5;

/// The part of the likeliest candidate's weight below which another is left out.
const LEFT_OUT: f64 = 0.2;

/// The stack pointer's numbers in DWARF: x86-64, aarch64.
const STACK_POINTERS: [Register; 2] = [Register(7), Register(31)];

/// The instruction that a sample is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// An instruction of the same function, by address.
    Instruction(u64),
    /// A return or a call.
    CallOrReturn,
}

/// An instruction that control comes from.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    origin: Origin,
    /// The likelihood that it stalled, 1 for a load from anywhere.
    stall: f64,
    /// The pair whose jump it is, and what to charge instead where that retires as one.
    pair: Option<(FusiblePair, u64, f64)>,
    /// How often control comes this way, against the other candidates.
    flow: f64,
}

/// The instructions that samples at one address may be charged to.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    address: u64,
    list: Vec<Candidate>,
}

/// One function with its samples.
pub(super) struct FunctionSamples<'b> {
    body: &'b Body,
    counts: &'b FxHashMap<u64, u64>,
}

impl<'b> FunctionSamples<'b> {
    pub(super) fn new(body: &'b Body, counts: &'b FxHashMap<u64, u64>) -> FunctionSamples<'b> {
        FunctionSamples { body, counts }
    }

    /// Finds the candidates of an address, and counts its samples where it is in or behind a pair that may
    /// retire as one. None where nothing is known to lead there.
    pub(super) fn candidates(&self, address: u64, pairs: &mut PairCounts) -> Option<Candidates> {
        let position = self.body.position(address)?;
        let samples = self.count(address);
        if let Some(at) = self.body.pair_at(position) {
            pairs.between(at.pair, samples);
        }
        let list = match self.body.predecessors(address)? {
            Predecessors::Unknown => return None,
            Predecessors::Entry | Predecessors::Call { .. } => vec![Candidate::call_or_return()],
            Predecessors::Instructions(all) => {
                all.iter().filter_map(|from| Some(self.candidate(self.body.position(*from)?))).collect()
            }
        };
        if let [Candidate { pair: Some((pair, ..)), .. }] = list[..] {
            pairs.behind(pair, samples);
        }
        (!list.is_empty()).then_some(Candidates { address, list })
    }

    fn count(&self, address: u64) -> u64 {
        self.counts.get(&address).copied().unwrap_or(0)
    }

    fn candidate(&self, position: usize) -> Candidate {
        let instruction = &self.body.instructions()[position];
        if matches!(instruction.flow, Flow::Call(_)) {
            return Candidate { flow: self.flow(position), ..Candidate::call_or_return() };
        }
        let pair = self.body.pair_at(position).map(|PairAt { pair, producer, .. }| {
            (pair, self.body.instructions()[producer].address, self.stall(producer))
        });
        Candidate {
            origin: Origin::Instruction(instruction.address),
            stall: self.stall(position),
            pair,
            flow: self.flow(position),
        }
    }

    /// Returns the likelihood that an instruction keeps the processor waiting.
    fn stall(&self, position: usize) -> f64 {
        let instruction = &self.body.instructions()[position];
        let Some(memory) = instruction.memory else { return 0.0 };
        let is_stack = memory.base.is_some_and(|base| STACK_POINTERS.contains(&base));
        if memory.implicit || is_stack || !memory.access.reads() {
            return UNLIKELY;
        }
        let base = if memory.base.is_none() && memory.index.is_none() { FIXED } else { 1.0 };
        match self.touched_before(position) {
            // so many of all positions in a line have the other byte in another line
            Some(distance) => base * (distance as f64 / LINE as f64).max(UNLIKELY),
            None => base,
        }
    }

    /// Returns how far the closest access is that was made through the same registers on the only way to an
    /// instruction, if it is likely in the same cache line.
    fn touched_before(&self, position: usize) -> Option<u64> {
        let memory = self.body.instructions()[position].memory?;
        let registers = [memory.base, memory.index];
        let mut closest: Option<u64> = None;
        for (_, before) in self.way_to(position) {
            let mut written = self.body.effects(before).iter().flat_map(|effect| effect.written());
            if written.any(|register| registers.contains(&Some(register))) {
                break;
            }
            let Some(other) = before.memory.filter(|other| !other.implicit) else { continue };
            let is_same = (other.base, other.index, other.scale, other.segment)
                == (memory.base, memory.index, memory.scale, memory.segment);
            let distance = other.displacement.abs_diff(memory.displacement);
            if is_same && distance < LINE {
                closest = Some(closest.map_or(distance, |closest| closest.min(distance)));
            }
        }
        closest
    }

    /// Walks back from an instruction as long as there is one way to it, and no call on it.
    fn way_to(&self, position: usize) -> impl Iterator<Item = (usize, &Instruction)> {
        let mut current = position;
        let mut blocks = 0;
        let walk = std::iter::from_fn(move || {
            let block = self.body.block_of(current)?;
            let about = &self.body.blocks()[block];
            current = if current > about.instructions.start as usize {
                current - 1
            } else {
                blocks += 1;
                let [only] = about.predecessors[..] else { return None };
                let is_entry = block == self.body.entry();
                let last = self.body.blocks().get(only as usize)?.instructions.end as usize;
                (!is_entry && blocks <= WALK_LIMIT).then(|| last.checked_sub(1)).flatten()?
            };
            let instruction = self.body.instructions().get(current)?;
            (!matches!(instruction.flow, Flow::Call(_))).then_some((current, instruction))
        });
        walk.take(WALK_LIMIT)
    }

    /// Estimates how often control leaves the block of an instruction by one of its ways: what retires evenly has
    /// as many samples in each instruction, so that the highest one, which a stall makes, is left out.
    fn flow(&self, position: usize) -> f64 {
        let Some(block) = self.body.block_of(position).map(|block| &self.body.blocks()[block]) else {
            return 1.0;
        };
        let range = block.instructions.start as usize..block.instructions.end as usize;
        let counts = self.body.instructions()[range.clone()].iter().map(|one| self.count(one.address));
        let (sum, highest) = counts.fold((0, 0), |(sum, highest), count| (sum + count, count.max(highest)));
        let even = match range.len() {
            0 | 1 => sum as f64,
            many => (sum - highest) as f64 / (many - 1) as f64,
        };
        (even + 0.01) / block.successors.len().max(1) as f64
    }
}

impl Candidate {
    fn call_or_return() -> Candidate {
        Candidate { origin: Origin::CallOrReturn, stall: 0.0, pair: None, flow: 1.0 }
    }
}

impl Candidates {
    /// Returns the address of the samples.
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// Decides where samples go, once it is known which pairs retire as one. Shares add up to 1. None where
    /// nothing is known.
    pub(super) fn decide(
        &self,
        is_fused: &dyn Fn(&FusiblePair) -> bool,
        outcome: &dyn Fn(u64) -> Option<Outcome>,
    ) -> Option<(Rule, Vec<(Origin, f64)>)> {
        let mut rule = Rule::Previous;
        // origin, likelihood, flow
        let mut list: Vec<(Origin, f64, f64)> = Vec::with_capacity(self.list.len());
        for candidate in &self.list {
            let (origin, stall) = match candidate.pair {
                Some((pair, producer, stall)) if is_fused(&pair) => {
                    rule = Rule::FusedPair;
                    (Origin::Instruction(producer), stall)
                }
                _ => (candidate.origin, candidate.stall),
            };
            list.push((origin, stall, candidate.flow));
        }
        if let [(only, ..)] = list[..] {
            let rule = if only == Origin::CallOrReturn { Rule::CallOrReturn } else { rule };
            return Some((rule, vec![(only, 1.0)]));
        }
        let answer = |origin: &Origin| match origin {
            Origin::Instruction(address) => outcome(*address),
            Origin::CallOrReturn => None,
        };
        // several that access the same are one
        let mut merged: Vec<(Origin, f64, f64)> = Vec::with_capacity(list.len());
        for (origin, stall, flow) in list {
            let same = merged.iter_mut().find(|(other, ..)| match (answer(other), answer(&origin)) {
                (Some(one), Some(other)) => one == other,
                _ => *other == origin,
            });
            match same {
                Some((_, likeliest, together)) => {
                    *likeliest = likeliest.max(stall);
                    *together += flow;
                }
                None => merged.push((origin, stall, flow)),
            }
        }
        let likeliest = merged.iter().fold(0.0, |most: f64, (_, stall, _)| most.max(*stall));
        let is_stall = likeliest > UNLIKELY;
        if is_stall {
            merged.retain(|(_, stall, _)| *stall >= likeliest * LEFT_OUT);
        }
        let weight = |(_, stall, flow): &(Origin, f64, f64)| if is_stall { stall * flow } else { *flow };
        let most = merged.iter().map(weight).fold(0.0, f64::max);
        merged.retain(|candidate| weight(candidate) >= most * LEFT_OUT);
        let all: f64 = merged.iter().map(weight).sum();
        let shares: Vec<_> = merged.iter().map(|one| (one.0, weight(one) / all)).collect();
        let rule = match (shares.len(), is_stall) {
            (0, _) => return None,
            (1, true) => Rule::OnlyStall,
            (1, false) => rule,
            _ => Rule::Divided,
        };
        Some((rule, shares))
    }
}
