//! The index of a gather or scatter, as one value that covers each of its elements.
//!
//! Vector registers are traced back from the instruction over all reaching definitions. States of the analysis hold a
//! vector register only as the pointer that is parked in its lowest element.

use super::analysis::Analysis;
use super::strided_value::StridedValue;
use super::value::{State, Value};
use crate::code::{Flow, LaneQuery, Lanes, Memory, Register, lanes_written, vector_index};
use std::collections::BTreeSet;

/// The DWARF number of the first vector register of x86-64.
const FIRST_VECTOR: u8 = 17;

/// The number of iterations after which a loop-carried register becomes unknown.
const ROUNDS: usize = 4;

/// The maximum length of a chain of definitions.
const DEPTH_LIMIT: usize = 64;

/// A query of a definition: position, lanes, and `true` for the lowest element alone.
type DefinitionQuery = (usize, LaneQuery, bool);

/// Definitions on the current path with their values so far; none before the first.
#[derive(Default)]
struct OpenDefinitions {
    list: Vec<(DefinitionQuery, Option<Value>)>,
}

impl Analysis<'_, '_, '_, '_> {
    /// Returns the value that covers each element of an operand's vector index; `None` for other operands.
    pub(super) fn vector_index(&mut self, position: usize, memory: &Memory) -> Option<Value> {
        let is_vector = memory.index.is_some_and(|index| index.0 >= FIRST_VECTOR);
        if !is_vector || self.image.machine() != crate::code::Machine::X86_64 {
            return None;
        }
        let lost = Value::Unknown(0);
        let Some(query) = vector_index(self.image, self.body, position) else { return Some(lost) };
        Some(self.elements(position, query, false, &mut OpenDefinitions::default()).unwrap_or(lost))
    }

    /// Returns the value that covers the elements of a register before an instruction. `None` while all definitions
    /// seen come from the loop itself.
    fn elements(
        &mut self,
        position: usize,
        query: LaneQuery,
        lowest: bool,
        open: &mut OpenDefinitions,
    ) -> Option<Value> {
        let mut all: Option<Value> = None;
        let Some(definitions) = self.definitions(position, query.register) else {
            return Some(Value::Unknown(0));
        };
        for definition in definitions {
            let Some(value) = self.definition((definition, query, lowest), open) else { continue };
            all = Some(self.join_elements(all, value));
        }
        all
    }

    fn join_elements(&mut self, known: Option<Value>, value: Value) -> Value {
        match known {
            None => value,
            Some(known) => self.join_values(known, value, 0, 0),
        }
    }

    fn definition(&mut self, key: DefinitionQuery, open: &mut OpenDefinitions) -> Option<Value> {
        if let Some((_, known)) = open.list.iter().find(|(other, _)| *other == key) {
            return *known;
        }
        let index = open.list.len();
        if index >= DEPTH_LIMIT {
            return Some(Value::Unknown(0));
        }
        open.list.push((key, None));
        let (position, query, lowest) = key;
        let lanes = lanes_written(self.image, self.body, position, query);
        let mut known = None;
        let mut is_settled = false;
        for _ in 0..ROUNDS {
            let new = self.evaluate(position, &lanes, lowest, open);
            let both = match (known, new) {
                (known, None) => known,
                (known, Some(new)) => Some(self.join_elements(known, new)),
            };
            is_settled = both == known;
            if is_settled {
                break;
            }
            known = both;
            open.list[index].1 = known;
        }
        open.list.truncate(index);
        if is_settled { known } else { Some(Value::Unknown(0)) }
    }

    fn evaluate(
        &mut self,
        position: usize,
        lanes: &Lanes,
        lowest: bool,
        open: &mut OpenDefinitions,
    ) -> Option<Value> {
        Some(match lanes {
            Lanes::Unknown => Value::Unknown(0),
            Lanes::Constants(numbers) => {
                let count = if lowest { 1 } else { numbers.len() };
                let numbers = numbers.iter().take(count).map(|number| StridedValue::known(*number));
                numbers.reduce(|one, other| one.join(other, 0)).map_or(Value::Unknown(0), Value::from)
            }
            Lanes::Vector(query) => return self.elements(position, *query, lowest, open),
            Lanes::Permuted(query) => return self.elements(position, *query, false, open),
            Lanes::Lowest(query) => return self.elements(position, *query, true, open),
            Lanes::General(register) => self.general(position, *register),
            Lanes::Either(one, _) if lowest => return self.evaluate(position, one, lowest, open),
            Lanes::Either(one, other) => {
                let one = self.evaluate(position, one, lowest, open);
                let other = self.evaluate(position, other, lowest, open);
                match (one, other) {
                    (one, Some(other)) => self.join_elements(one, other),
                    (one, None) => return one,
                }
            }
            Lanes::Sum(one, other, subtract) => {
                let one = self.elements(position, *one, lowest, open)?;
                let other = self.elements(position, *other, lowest, open)?;
                self.sum(one, other, *subtract, Value::Unknown(0))
            }
            Lanes::Product(one, other) => {
                let one = self.elements(position, *one, lowest, open)?.as_number();
                let other = self.elements(position, *other, lowest, open)?.as_number();
                Value::from(one.product(other))
            }
            Lanes::Multiple(query, by) => {
                Value::from(self.elements(position, *query, lowest, open)?.as_number().times(*by))
            }
        })
    }

    /// Returns the value of a general register before an instruction.
    fn general(&mut self, position: usize, register: Register) -> Value {
        let Some(block) = self.body.block_of(position) else { return Value::Unknown(0) };
        let size = self.body.blocks()[block].instructions.len();
        let state = self.state_at(block).cloned();
        let (Some(state), true) = (state, self.takes(size)) else { return Value::Unknown(0) };
        let mut held = Value::Unknown(0);
        self.transfer_block(block, state, |_, at, state: &State| {
            if at == position {
                held = state.get(register);
            }
        });
        held
    }

    /// Returns the instructions that may have written a register last before another one; `None` if its value
    /// may come from the caller or from a callee.
    fn definitions(&mut self, position: usize, register: Register) -> Option<Vec<usize>> {
        let body = self.body;
        let mut found = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut open = vec![(body.block_of(position)?, position)];
        while let Some((block, end)) = open.pop() {
            let about = &body.blocks()[block];
            let start = about.instructions.start as usize;
            if !self.takes(end.saturating_sub(start) + 1) {
                return None;
            }
            let writes = |at: &usize| {
                let instruction = &body.instructions()[*at];
                let mut written = body.effects(instruction).iter().flat_map(|effect| effect.written());
                matches!(instruction.flow, Flow::Call(_)) || written.any(|written| written == register)
            };
            match (start..end).rev().find(writes) {
                Some(at) if matches!(body.instructions()[at].flow, Flow::Call(_)) => return None,
                Some(at) => _ = found.insert(at),
                None if block == body.entry() || about.predecessors.is_empty() => return None,
                None => {
                    let before = about.predecessors.iter().map(|block| *block as usize);
                    let before = before.filter(|block| seen.insert(*block));
                    open.extend(before.map(|block| (block, body.blocks()[block].instructions.end as usize)));
                }
            }
        }
        Some(found.into_iter().collect())
    }

    /// Takes so many instructions from what may be looked at.
    fn takes(&mut self, instructions: usize) -> bool {
        let left = self.vector_budget.checked_sub(instructions);
        self.vector_budget = left.unwrap_or(0);
        left.is_some()
    }
}
