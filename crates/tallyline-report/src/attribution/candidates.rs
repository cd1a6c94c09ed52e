//! The instructions that a sample may be charged to, and how likely each of them stalled.

use super::lines::Lines;
use crate::last_branches::LastBranch;
use crate::skid::Rule;
use crate::skid::fusion::PairCounts;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use tallyline_inference::Outcome;
use tallyline_inference::code::{
    Body, Flow, FusiblePair, Instruction, Machine, Memory, Predecessors, Register, SegmentBase,
};

/// The likelihood, against a load from anywhere, that the processor waits for a store or for the stack.
pub(super) const UNLIKELY: f64 = 0.02;

/// The likelihood that it waits for a load from a variable at a fixed address, which mostly is in the cache.
const FIXED: f64 = 0.5;

/// The likelihood that it waits for a repeated string instruction whatever that accesses.
const REPEATED: f64 = 0.3;

/// The part of the likeliest candidate's weight below which another is left out.
pub(super) const LEFT_OUT: f64 = 0.2;

/// The likelihood from which on a line counts as one that a store can miss.
pub(super) const CAN_MISS: f64 = 0.5;

/// The part of the samples at an address whose branch stacks have to say how they came there: `1 / 4`.
const ENOUGH_BRANCHES: u64 = 4;

/// The most instructions between two stores of which the later one only waits for the earlier one.
const STORES_APART: usize = 64;

/// The instruction that a sample is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// An instruction of the same function, by address.
    Instruction(u64),
    /// The second operand in memory of an instruction of the same function, by its address.
    SecondOperand(u64),
    /// A return or a call.
    CallOrReturn,
    /// An indirect call of which is not known which.
    IndirectCall,
}

/// An instruction that control comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) origin: Origin,
    /// The likelihood that it stalled, 1 for a load from anywhere.
    pub(super) stall: f64,
    /// The pair whose jump it is, and what to charge instead where that retires as one.
    pub(super) pair: Option<(FusiblePair, u64, f64)>,
    /// The frequency of this path into the sampled instruction, relative to the other candidates.
    pub(super) flow: f64,
    /// The rule by which it is the only candidate, where it is not that it is in front of the address.
    pub(super) rule: Option<Rule>,
}

/// The instructions that samples at one address may be charged to.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    address: u64,
    list: Vec<Candidate>,
    // by the instruction in front, where branch stacks say which: its samples, and its candidates
    ways: Vec<(u64, Vec<Candidate>)>,
}

/// A function's code with the samples at its instructions.
pub(super) struct FunctionSamples<'b> {
    pub(super) lines: Lines<'b>,
    pub(super) body: &'b Body,
    counts: &'b FxHashMap<u64, u64>,
    // the newest branches of samples, by address
    branches: Option<&'b FxHashMap<u64, Vec<(LastBranch, u64)>>>,
    // the most samples at an address
    most: u64,
    // by block, once they are asked for
    evenly: Vec<OnceCell<f64>>,
}

/// The store of a loop that can miss.
#[derive(Clone, Copy, Debug)]
pub(super) struct MissingStore {
    pub(super) position: usize,
    /// The samples right behind it.
    pub(super) behind: u64,
    /// The samples of the whole loop.
    pub(super) seen: u64,
}

impl<'b> FunctionSamples<'b> {
    pub(super) fn new(
        body: &'b Body,
        machine: Machine,
        counts: &'b FxHashMap<u64, u64>,
    ) -> FunctionSamples<'b> {
        let most = counts.values().copied().max().unwrap_or(0);
        let evenly = vec![OnceCell::new(); body.blocks().len()];
        FunctionSamples { lines: Lines { body, machine }, body, counts, branches: None, most, evenly }
    }

    /// Adds the newest branches of samples, by address.
    pub(super) fn with_branches(mut self, branches: &'b FxHashMap<u64, Vec<(LastBranch, u64)>>) -> Self {
        self.branches = Some(branches);
        self
    }

    /// Returns the register that the stack is counted from.
    pub(super) fn stack_pointer(&self) -> Register {
        self.lines.stack_pointer()
    }

    /// Finds the candidates of an address, and counts its samples where it is in or behind a pair that may
    /// retire as one. None where nothing is known to lead there.
    pub(super) fn candidates(&self, address: u64, pairs: &mut PairCounts) -> Option<Candidates> {
        let position = self.body.position(address)?;
        let samples = self.count(address);
        if let Some(pair) = self.body.pair_at(position) {
            pairs.between(pair, samples);
        }
        // a repeated string instruction is interrupted between its turns
        let is_repeated = self.body.instructions()[position].is_repeated();
        let mut ways = Vec::new();
        let list = match self.body.predecessors(address)? {
            Predecessors::Unknown if !is_repeated => return None,
            Predecessors::Unknown => self.all(&[position]),
            Predecessors::Entry | Predecessors::Call { .. } if is_repeated => self.all(&[position]),
            Predecessors::Entry | Predecessors::Call { .. } => vec![Candidate::call_or_return()],
            Predecessors::Instructions(all) => {
                let positions = all.iter().filter_map(|from| self.body.position(*from));
                let mut positions: Vec<usize> =
                    positions.filter(|position| all.len() == 1 || !self.is_filling(*position)).collect();
                positions.extend(is_repeated.then_some(position));
                match self.at_itself(position, &positions) {
                    Some(own) => vec![own],
                    None => {
                        ways = self.ways(position, &positions);
                        self.all(&positions)
                    }
                }
            }
        };
        let of_ways = ways.iter().map(|(samples, list)| (*samples, list));
        for (samples, list) in of_ways.chain(ways.is_empty().then_some((samples, &list))) {
            if let [Candidate { pair: Some((pair, ..)), .. }] = list[..] {
                pairs.behind(pair, samples);
            }
        }
        (!list.is_empty()).then_some(Candidates { address, list, ways })
    }

    /// Returns the samples at a join by the instruction in front that they came from, with its candidates; nothing
    /// where too few branch stacks say it.
    fn ways(&self, position: usize, before: &[usize]) -> Vec<(u64, Vec<Candidate>)> {
        let address = self.body.instructions()[position].address();
        let branches = self.branches.and_then(|branches| branches.get(&address));
        let Some(branches) = branches.filter(|_| before.len() > 1 && !before.contains(&position)) else {
            return Vec::new();
        };
        let mut samples = vec![0_u64; before.len()];
        for (last, count) in branches {
            let from = match last {
                LastBranch::ToSample(distance) => self
                    .body
                    .position(address.wrapping_add_signed(*distance))
                    .filter(|from| self.leads(*from, address)),
                LastBranch::InFront(bytes) => self.falls_through(address.wrapping_sub(*bytes), position),
            };
            let index = before.iter().position(|before| Some(*before) == from);
            if let Some(samples) = index.and_then(|index| samples.get_mut(index)) {
                *samples += count;
            }
        }
        if samples.iter().sum::<u64>().saturating_mul(ENOUGH_BRANCHES) < self.count(address) {
            return Vec::new();
        }
        let ways = samples.into_iter().zip(before).filter(|(samples, _)| *samples > 0);
        ways.map(|(samples, before)| (samples, self.all(&[*before]))).collect()
    }

    /// Returns `true` if the instruction at a position may branch to an address.
    fn leads(&self, position: usize, address: u64) -> bool {
        match self.body.instructions()[position].flow() {
            Flow::Branch(target) | Flow::Jump(Some(target)) => target == address,
            Flow::Jump(None) => true,
            _ => false,
        }
    }

    /// Returns the instruction in front of another one, if control falls through to that from an address without
    /// a branch.
    fn falls_through(&self, start: u64, position: usize) -> Option<usize> {
        let first = self.body.position(start).filter(|first| *first < position)?;
        let way = self.body.instructions().get(first..=position)?;
        let falls = |pair: &[Instruction]| {
            pair[0].end() == pair[1].address() && matches!(pair[0].flow(), Flow::Next | Flow::Branch(_))
        };
        way.windows(2).all(falls).then(|| position - 1)
    }

    pub(super) fn count(&self, address: u64) -> u64 {
        self.counts.get(&address).copied().unwrap_or(0)
    }

    /// Returns `true` if the instruction at a position is padding in front of an aligned block, which is never
    /// executed.
    fn is_filling(&self, position: usize) -> bool {
        let Some(index) = self.body.block_of(position) else { return false };
        let block = &self.body.blocks()[index];
        let range = block.instructions().start as usize..block.instructions().end as usize;
        let does_nothing = |position: usize| {
            let instruction = &self.body.instructions()[position];
            let is_silent = self.body.effects(instruction).is_empty() && instruction.memory().is_none();
            instruction.flow() == Flow::Next && is_silent && self.count(instruction.address()) == 0
        };
        block.predecessors().is_empty() && index != self.body.entry() && range.into_iter().all(does_nothing)
    }

    /// Returns the candidates that the last instructions before an address are.
    fn all(&self, positions: &[usize]) -> Vec<Candidate> {
        if let [only] = positions
            && self.body.second_operand(*only).is_none()
        {
            // nothing to weigh against each other
            return vec![self.store_waited_for(*only).unwrap_or_else(|| self.candidate(*only, |_| 1.0, 1.0))];
        }
        let stall = |position: usize| {
            let instruction = &self.body.instructions()[position];
            let stall = instruction.memory().as_ref().map_or(0.0, |memory| self.stall(position, memory));
            // turn by turn a repeated one waits for its stores, too
            if instruction.is_repeated() { stall.max(REPEATED) } else { stall }
        };
        let mut list: Vec<Candidate> = Vec::with_capacity(positions.len());
        for position in positions {
            let first = self.candidate(*position, stall, self.flow(*position));
            let second = self.body.second_operand(*position).and_then(|memory| {
                let stall = self.stall(*position, memory);
                let origin = Origin::SecondOperand(self.body.instructions()[*position].address());
                let is_as_likely = stall > UNLIKELY && stall >= first.stall * LEFT_OUT;
                let is_better = stall >= first.stall && self.is_on_stack_alone(*position);
                (is_as_likely || is_better).then_some(Candidate { origin, stall, ..first })
            });
            match second {
                Some(second) if second.stall <= UNLIKELY || first.stall <= UNLIKELY => list.push(second),
                second => {
                    list.push(first);
                    list.extend(second);
                }
            }
        }
        list
    }

    fn candidate(&self, position: usize, stall: impl Fn(usize) -> f64, flow: f64) -> Candidate {
        let instruction = &self.body.instructions()[position];
        if matches!(instruction.flow(), Flow::Call(_)) {
            return Candidate { flow, ..Candidate::call_or_return() };
        }
        let producer = position.wrapping_sub(1);
        let pair = self
            .body
            .pair_at(position)
            .map(|pair| (pair, self.body.instructions()[producer].address(), stall(producer)));
        Candidate {
            origin: Origin::Instruction(instruction.address()),
            stall: stall(position),
            pair,
            flow,
            rule: None,
        }
    }

    /// Returns the likelihood that an operand keeps the processor waiting.
    pub(super) fn stall(&self, position: usize, memory: &Memory) -> f64 {
        if memory.implicit() || !memory.access().reads() || self.is_on_stack(position, memory) {
            return UNLIKELY;
        }
        let is_fixed = memory.base().is_none() && memory.index().is_none();
        let base = if is_fixed { FIXED } else { 1.0 };
        base * self.untouched(position, memory).max(UNLIKELY)
    }

    pub(super) fn untouched(&self, position: usize, memory: &Memory) -> f64 {
        let flow = |block: usize| {
            let block = self.body.blocks().get(block);
            block.map_or(1.0, |block| self.flow(block.instructions().start as usize))
        };
        self.lines.untouched(position, memory, &flow)
    }

    pub(super) fn is_on_stack(&self, position: usize, memory: &Memory) -> bool {
        let stack = Some(self.lines.stack_pointer());
        memory.base() == stack
            || memory.implicit()
            || self.lines.origin(position, memory).is_some_and(|address| address.base() == stack)
    }

    /// Returns `true` if the first memory operand of an instruction is on the stack, and the second one is not.
    fn is_on_stack_alone(&self, position: usize) -> bool {
        let mut operands = self.body.operands(position).map(|memory| self.is_on_stack(position, memory));
        operands.next() == Some(true) && operands.next() == Some(false)
    }

    /// Returns the store that one behind it only waits for: a store that misses is noticed when there is no more
    /// room for later ones, at one that cannot miss itself. It is the only store in front, up to the same
    /// one of the turn before, that can miss, and most samples here are behind it.
    fn store_waited_for(&self, position: usize) -> Option<Candidate> {
        let own = self.count(self.body.instructions()[position].end());
        // none has as many behind it as are asked for
        if own == 0 || self.most < 2 * own {
            return None;
        }
        let MissingStore { position, behind, seen } = self.missing_store(position, 2 * own)?;
        // what retires evenly has its samples in many places
        (behind >= 2 * own && behind * 2 >= seen).then(|| self.waited_for(position))
    }

    /// Returns the candidate that a store is for samples at one that waits for it.
    pub(super) fn waited_for(&self, position: usize) -> Candidate {
        Candidate {
            origin: Origin::Instruction(self.body.instructions()[position].address()),
            stall: 1.0,
            pair: None,
            flow: 1.0,
            rule: Some(Rule::StoreWaitedFor),
        }
    }

    /// Finds the only store that can miss in front of one that cannot, up to the same one of the turn before; none if
    /// no store there has so many samples behind it.
    pub(super) fn missing_store(&self, position: usize, least: u64) -> Option<MissingStore> {
        let is_store = |position: usize| {
            let memory = self.body.instructions()[position].memory()?;
            let is_plain = memory.access().writes() && !memory.access().reads() && !memory.implicit();
            (is_plain && memory.segment() == SegmentBase::Flat && !self.is_on_stack(position, memory))
                .then_some(memory)
        };
        let samples = |position: usize| {
            let instruction = &self.body.instructions()[position];
            self.count(instruction.end())
        };
        let own = is_store(position)?;
        // what is quickly told comes first: most stores are in no loop that is as short
        let (mut stores, mut seen) = (Vec::new(), samples(position));
        let mut current = position;
        for _ in 0..STORES_APART {
            current = self.usually_before(current)?;
            if current == position {
                break;
            }
            if matches!(self.body.instructions()[current].flow(), Flow::Call(_)) {
                return None;
            }
            seen += samples(current);
            stores.extend(is_store(current).map(|memory| (current, memory)));
        }
        let has_most = stores.iter().any(|(store, _)| samples(*store) >= least);
        if current != position || !has_most || self.untouched(position, own) >= CAN_MISS {
            return None;
        }
        let mut missing = stores.iter().filter(|(store, memory)| self.untouched(*store, memory) >= CAN_MISS);
        let (position, _) = *missing.next().filter(|_| missing.next().is_none())?;
        Some(MissingStore { position, behind: samples(position), seen })
    }

    /// Returns the instruction from which control mostly comes to another one.
    fn usually_before(&self, position: usize) -> Option<usize> {
        let block = &self.body.blocks()[self.body.block_of(position)?];
        if position > block.instructions().start as usize {
            return Some(position - 1);
        }
        let before = block.predecessors().iter().filter_map(|from| {
            let end = self.body.blocks().get(*from as usize)?.instructions().end as usize;
            end.checked_sub(1)
        });
        before.max_by(|one, other| self.flow(*one).total_cmp(&self.flow(*other)))
    }

    /// Estimates how often control leaves the block of an instruction by one of its ways.
    fn flow(&self, position: usize) -> f64 {
        let Some(block) = self.body.block_of(position).map(|block| &self.body.blocks()[block]) else {
            return 1.0;
        };
        (self.evenly(position) + 0.01) / block.successors().len().max(1) as f64
    }

    /// Estimates the samples of an instruction that retires evenly, in the block of an instruction: all have as many,
    /// so that the highest one, which a stall makes, is left out.
    pub(super) fn evenly(&self, position: usize) -> f64 {
        let Some(block) = self.body.block_of(position) else { return 0.0 };
        *self.evenly[block].get_or_init(|| {
            let block = &self.body.blocks()[block];
            let range = block.instructions().start as usize..block.instructions().end as usize;
            let counts = self.body.instructions()[range.clone()].iter().map(|one| self.count(one.address()));
            let (sum, highest) =
                counts.fold((0, 0), |(sum, highest), count| (sum + count, count.max(highest)));
            match range.len() {
                0 | 1 => sum as f64,
                many => (sum - highest) as f64 / (many - 1) as f64,
            }
        })
    }

    /// Returns the samples in the block of an instruction.
    pub(super) fn in_block(&self, position: usize) -> u64 {
        let Some(block) = self.body.block_of(position).map(|block| &self.body.blocks()[block]) else {
            return 0;
        };
        let range = block.instructions().start as usize..block.instructions().end as usize;
        self.body.instructions()[range].iter().map(|one| self.count(one.address())).sum()
    }
}

impl Candidate {
    fn call_or_return() -> Candidate {
        Candidate { origin: Origin::CallOrReturn, stall: 0.0, pair: None, flow: 1.0, rule: None }
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
        outcome: &dyn Fn(Origin) -> Option<Outcome>,
    ) -> Option<(Rule, Vec<(Origin, f64)>)> {
        if self.ways.is_empty() {
            return self.decide_among(&self.list, is_fused, outcome);
        }
        let all: u64 = self.ways.iter().map(|(samples, _)| samples).sum();
        let mut shares: Vec<(Origin, f64)> = Vec::with_capacity(self.ways.len());
        for (samples, list) in &self.ways {
            let part = *samples as f64 / all as f64;
            let (_, of_way) = self.decide_among(list, is_fused, outcome)?;
            for (origin, share) in of_way {
                match shares.iter_mut().find(|(known, _)| *known == origin) {
                    Some((_, sum)) => *sum += share * part,
                    None => shares.push((origin, share * part)),
                }
            }
        }
        Some((Rule::BranchStack, shares))
    }

    fn decide_among(
        &self,
        candidates: &[Candidate],
        is_fused: &dyn Fn(&FusiblePair) -> bool,
        outcome: &dyn Fn(Origin) -> Option<Outcome>,
    ) -> Option<(Rule, Vec<(Origin, f64)>)> {
        let mut rule = Rule::Previous;
        // origin, likelihood, flow
        let mut list: Vec<(Origin, f64, f64)> = Vec::with_capacity(candidates.len());
        for candidate in candidates {
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
            let rule = match only {
                Origin::CallOrReturn => Rule::CallOrReturn,
                Origin::Instruction(own) => match candidates.iter().find_map(|candidate| candidate.rule) {
                    Some(rule) => rule,
                    None if own == self.address => Rule::Repeated,
                    None => rule,
                },
                _ => rule,
            };
            return Some((rule, vec![(only, 1.0)]));
        }
        // several that access the same are one
        let mut merged: Vec<(Origin, f64, f64)> = Vec::with_capacity(list.len());
        for (origin, stall, flow) in list {
            let same = merged.iter_mut().find(|(other, ..)| match (outcome(*other), outcome(origin)) {
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
            (1, true) if shares[0].0 == Origin::Instruction(self.address) => Rule::Repeated,
            (1, true) => Rule::OnlyStall,
            (1, false) => rule,
            _ => Rule::Divided,
        };
        Some((rule, shares))
    }
}
