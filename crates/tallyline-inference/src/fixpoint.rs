//! The worklist of the analysis: computes the state of registers and stack slots at each instruction.
//!
//! States only descend in the lattice, and a block that is visited too often loses the values that still change;
//! therefore the iteration ends.

use super::analysis::{Analysis, Continuation};
use super::outcome::{Outcome, Pseudo, Reason};
use super::table::Rows;
use super::value::{State, Value};
use super::value_number;
use crate::code::{Flow, Instruction, Machine, Register};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use tallyline_debuginfo::program::RUST;

/// The number of visits of a block after which values that still change become unknown.
const VISITS_LIMIT: u32 = 24;

/// The maximum number of instructions that are transferred in one function, over all visits.
const STEPS_LIMIT: usize = 20_000_000;

impl<'f> Analysis<'f, '_, '_, '_> {
    /// Computes the state at the start of each block.
    pub(super) fn run(&mut self) {
        if self.body.blocks().is_empty() {
            return;
        }
        let mut entry = State::unknown();
        let has_tags = self.unit.as_ref().is_some_and(|unit| unit.language() == RUST);
        entry.tags = has_tags.then(Box::default);
        // the call has pushed the return address
        let start = if self.image.machine() == Machine::X86_64 { -8 } else { 0 };
        entry.set(self.stack_register(), Value::Stack(start));
        for (register, value) in std::mem::take(&mut self.at_entry) {
            entry.set(register, value);
        }
        let first = self.body.entry();
        self.states[first] = Some(entry);
        let mut budget = STEPS_LIMIT;
        self.run_to_fixpoint(BTreeSet::from([first]), &mut budget);
        // blocks entered from outside: exception handlers, targets of unknown jump tables
        let mut orphan = State::unknown();
        orphan.tags = has_tags.then(Box::default);
        orphan.set(self.stack_register(), self.typical_stack_pointer());
        for block in 0..self.states.len() {
            let open = self.states[block].is_none() && self.body.blocks()[block].predecessors.is_empty();
            // padding in front of a loop has no predecessor, and its state would be wrong for the loop
            if open && self.last_effective_instruction(block).is_some() {
                self.states[block] = Some(orphan.clone());
                self.run_to_fixpoint(BTreeSet::from([block]), &mut budget);
            }
        }
    }

    fn run_to_fixpoint(&mut self, mut open: BTreeSet<usize>, budget: &mut usize) {
        while let Some(block) = open.pop_first() {
            let Some(state) = self.states[block].clone() else { continue };
            self.visits[block] += 1;
            let range = self.body.blocks()[block].instructions.clone();
            let Some(left) = budget.checked_sub(range.len()) else { return };
            *budget = left;
            let (state, after) = self.transfer_block(block, state, |_, _, _| {});
            if after == Continuation::Ends {
                continue;
            }
            for successor in self.body.blocks()[block].successors.clone() {
                let successor = successor as usize;
                let state_on_edge = self.state_on_edge(block, successor, &state);
                if self.join_into(block, successor, state_on_edge.as_ref().unwrap_or(&state)) {
                    open.insert(successor);
                }
            }
        }
    }

    /// Applies the transfer function of a block; calls `each` before each instruction, after variables that begin
    /// there are injected.
    pub(super) fn transfer_block(
        &mut self,
        block: usize,
        mut state: State,
        mut each: impl FnMut(&mut Self, usize, &State),
    ) -> (State, Continuation) {
        let range = self.body.blocks()[block].instructions.clone();
        let mut after = Continuation::FallsThrough;
        for position in range.clone() {
            let position = position as usize;
            self.inject_variables(&mut state, position, position == range.start as usize);
            each(self, position, &state);
            if self.transfer_instruction(&mut state, position) == Continuation::Ends {
                // the rest of the block is padding
                after = Continuation::Ends;
            }
        }
        (state, after)
    }

    fn join_into(&mut self, from: usize, block: usize, state: &State) -> bool {
        let behind_call = self.ends_with_call(from);
        // values joined here on an earlier visit are different values from those joined now
        let mut state = state.clone();
        state.clear_value_numbers(
            |symbol| symbol >> 7 == value_number::joined_at(block, Register(0)) >> 7,
            u64::MAX,
        );
        let Some(mut known) = self.states[block].take() else {
            self.states[block] = Some(state);
            self.behind_call[block] = behind_call;
            return true;
        };
        let stack = self.stack_register();
        if let (Value::Stack(here), Value::Stack(there)) = (known.get(stack), state.get(stack))
            && here != there
        {
            // the stack has one height at each instruction: one of the two calls does not return
            if self.behind_call[block] && !behind_call {
                self.states[block] = Some(state);
                self.behind_call[block] = false;
                return true;
            }
            if behind_call {
                self.states[block] = Some(known);
                return false;
            }
        }
        self.behind_call[block] &= behind_call;
        if self.visits[block] > VISITS_LIMIT {
            // facts about tags are dropped, as other values that still change are
            known.tags = known.tags.map(|_| Box::default());
        }
        let start = self.body.blocks()[block].instructions.start;
        let (at, stack) = (start + 1, self.stack_register());
        let give_up = self.visits[block] > VISITS_LIMIT;
        let changed = known.join(&state, |one, other, register| {
            let name = register.map_or(0, |register| value_number::joined_at(block, register));
            if give_up {
                return Value::Unknown(at);
            }
            if register == Some(stack) {
                return self.join_values(one, other, at, name);
            }
            // both may be addresses in one variable
            let mine = self.place_on_stack(&state, start as usize, one, other);
            let theirs = self.place_on_stack(&state, start as usize, other, one);
            self.join_values(mine, theirs, at, name)
        });
        self.states[block] = Some(known);
        changed
    }

    /// Returns true if a block ends with a call, padding aside.
    fn ends_with_call(&self, block: usize) -> bool {
        self.last_effective_instruction(block).is_some_and(|last| matches!(last.flow, Flow::Call(_)))
    }

    /// Returns the last instruction of a block that is not padding.
    fn last_effective_instruction(&self, block: usize) -> Option<&'f Instruction> {
        let range = self.body.blocks()[block].instructions.clone();
        let instructions = &self.body.instructions()[range.start as usize..range.end as usize];
        let does = |instruction: &&Instruction| {
            instruction.flow != Flow::Next || !self.body.effects(instruction).is_empty()
        };
        instructions.iter().rev().find(does)
    }

    /// Returns the stack pointer at most calls: the value that exception handlers find.
    fn typical_stack_pointer(&mut self) -> Value {
        let stack = self.stack_register();
        let mut counts: FxHashMap<i32, u32> = FxHashMap::default();
        for block in 0..self.states.len() {
            let Some(state) = &self.states[block] else { continue };
            let range = self.body.blocks()[block].instructions.clone();
            let calls = self.body.instructions()[range.start as usize..range.end as usize]
                .iter()
                .any(|instruction| matches!(instruction.flow, Flow::Call(_)));
            if let (Value::Stack(at), true) = (state.get(stack), calls) {
                *counts.entry(at).or_default() += 1;
            }
        }
        let most = counts.into_iter().max_by_key(|(at, count)| (*count, std::cmp::Reverse(*at)));
        most.map_or(Value::Unknown(0), |(at, _)| Value::Stack(at))
    }

    /// Returns the outcomes of all memory operands.
    pub(super) fn outcomes(&mut self) -> Rows {
        let mut found = Rows::default();
        for block in 0..self.body.blocks().len() {
            let Some(state) = self.states[block].clone() else {
                for position in self.body.blocks()[block].instructions.clone() {
                    found.add(self.body, position as usize, |memory| match memory.implicit {
                        true => Outcome::Pseudo(Pseudo::StackOperation),
                        false => Outcome::Untyped(Reason::Unreached),
                    });
                }
                continue;
            };
            self.transfer_block(block, state, |analysis, position, state| {
                found.add(analysis.body, position, |memory| analysis.outcome(state, position, memory));
            });
        }
        found
    }
}
