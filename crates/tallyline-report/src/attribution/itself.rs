//! Samples at the very instruction that waits.
//!
//! A clock's interrupt waits for the oldest instruction to retire, so that its sample lies behind what took long.
//! Two things put samples in front of it. A host that takes the CPU away stops the guest at once, and the clock
//! that expired meanwhile finds it at the access that it still waits for. And an instruction that gets no buffer,
//! as a store behind others that miss, waits before it is in the window at all, with the instructions that are
//! dispatched together with it: everything in front has retired by then.
//!
//! Samples are taken for such where those in front of them explain nothing: control comes from instructions that
//! cannot have stalled, and the samples are far more than what retires evenly has.

use super::candidates::{CAN_MISS, Candidate, FunctionSamples, LEFT_OUT, Origin};
use crate::skid::Rule;
use tallyline_inference::code::{Effect, Flow, Memory};

/// Samples of an instruction that retires evenly, of which one that waits has as many times more at least.
const TIMES_EVEN: f64 = 4.0;

/// The fewest samples of which that is said.
const ENOUGH: u64 = 4;

/// Instructions that are dispatched together: those of the widest cores that there are.
const DISPATCHED: usize = 8;

impl FunctionSamples<'_> {
    /// Returns the candidate for samples at an instruction itself; none where it is an ordinary one, what
    /// retired in front. `before` are the instructions that control comes from.
    pub(super) fn at_itself(&self, position: usize, before: &[usize]) -> Option<Candidate> {
        let instruction = &self.body.instructions()[position];
        let own = self.count(instruction.address());
        if own < ENOUGH || instruction.is_repeated() || before.is_empty() || before.contains(&position) {
            return None;
        }
        if own as f64 <= TIMES_EVEN * self.elsewhere(position) {
            return None;
        }
        self.load_at_itself(position, before, own).or_else(|| self.store_at_itself(position, before, own))
    }

    /// Returns the load at a position, if it is what keeps the processor waiting there: most of its samples are
    /// behind it.
    fn load_at_itself(&self, position: usize, before: &[usize], own: u64) -> Option<Candidate> {
        let instruction = &self.body.instructions()[position];
        let memory = instruction.memory().filter(|_| instruction.flow() == Flow::Next)?;
        let behind = self.count(instruction.end()).max(self.behind_pair(position));
        if behind < own {
            return None;
        }
        let stall = match memory.access().reads() {
            true => self.stall(position, memory),
            false => self.store_misses(position, memory),
        };
        let is_likely = stall >= CAN_MISS && before.iter().all(|before| self.is_quiet(*before, stall));
        is_likely.then_some(Candidate {
            origin: Origin::Instruction(instruction.address()),
            stall,
            pair: None,
            flow: 1.0,
            rule: Some(Rule::Itself),
        })
    }

    /// Returns the store that misses, if one at a position or right behind it, dispatched together with it, waits
    /// for a buffer until that one is done.
    fn store_at_itself(&self, position: usize, before: &[usize], own: u64) -> Option<Candidate> {
        let block = &self.body.blocks()[self.body.block_of(position)?];
        let end = (block.instructions().end as usize).min(position + DISPATCHED);
        let has_memory = |position: &usize| self.body.instructions()[*position].memory().is_some();
        let store = (position..end).find(has_memory)?;
        let missing = self.missing_store(store, own)?;
        let is_most = missing.behind >= own && missing.behind * 2 >= missing.seen.saturating_sub(own);
        let is_quiet = || before.iter().all(|before| self.is_quiet(*before, 1.0));
        (is_most && is_quiet()).then(|| self.waited_for(missing.position))
    }

    /// Returns `true` if an instruction can hardly keep the processor waiting, against one with the likelihood `stall`
    /// to do so: it moves and combines registers, or loads memory that the code before it has touched.
    fn is_quiet(&self, position: usize, stall: f64) -> bool {
        let instruction = &self.body.instructions()[position];
        // behind a conditional jump the time may be that of a wrong prediction
        if !matches!(instruction.flow(), Flow::Next | Flow::Jump(Some(_))) || instruction.is_repeated() {
            return false;
        }
        let effects = self.body.effects(instruction);
        let is_simple = |effect: &Effect| {
            matches!(
                effect,
                Effect::Copy { .. }
                    | Effect::Constant { .. }
                    | Effect::SelectConstant { .. }
                    | Effect::Address { .. }
                    | Effect::Add { .. }
                    // a shift, or a multiplication by a number
                    | Effect::Multiply { .. }
                    | Effect::Truncate { .. }
                    | Effect::UnknownNumber { .. }
                    | Effect::Combine { .. }
                    | Effect::Mask { .. }
                    | Effect::ConditionalMove { .. }
                    | Effect::Load { .. }
                    | Effect::AddMemory { .. }
                    | Effect::Compare { .. }
                    | Effect::ClobberFlags
            )
        };
        let is_jump = instruction.flow() != Flow::Next;
        if !(is_jump || !effects.is_empty() && effects.iter().all(is_simple)) {
            // a division and the like take time of their own
            return false;
        }
        let is_touched = |memory: &Memory| {
            !memory.access().writes() && !memory.implicit() && self.stall(position, memory) < stall * LEFT_OUT
        };
        self.body.operands(position).all(is_touched)
    }

    /// Returns how likely a store misses.
    fn store_misses(&self, position: usize, memory: &Memory) -> f64 {
        let is_plain = !memory.implicit() && !self.is_on_stack(position, memory);
        if is_plain { self.untouched(position, memory) } else { 0.0 }
    }

    /// Returns the samples behind the jump that an instruction may retire together with.
    fn behind_pair(&self, position: usize) -> u64 {
        if self.body.pair_at(position + 1).is_none() {
            return 0;
        }
        let jump = &self.body.instructions()[position + 1];
        let target = match jump.flow() {
            Flow::Branch(target) => self.count(target),
            _ => 0,
        };
        self.count(jump.end()) + target
    }

    /// Returns the mean of the samples of a block's instructions, but for the one at a position and the two that
    /// most samples are at.
    fn elsewhere(&self, position: usize) -> f64 {
        let Some(block) = self.body.block_of(position).map(|block| &self.body.blocks()[block]) else {
            return f64::MAX;
        };
        let range = block.instructions().start as usize..block.instructions().end as usize;
        let others = range.filter(|other| *other != position);
        let (mut sum, mut most, mut count) = (0_u64, [0, 0], 0_u64);
        for samples in others.map(|other| self.count(self.body.instructions()[other].address())) {
            sum = sum.saturating_add(samples);
            most = [samples.max(most[0]), most[1].max(samples.min(most[0]))];
            count += 1;
        }
        // one of a few has nothing to be compared with
        if count < 3 { f64::MAX } else { (sum - most[0] - most[1]) as f64 / (count - 2) as f64 }
    }
}
