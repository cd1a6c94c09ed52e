//! The analysis of one function: what registers and stack slots hold at each instruction.
//!
//! A worklist over the blocks. States only lose knowledge where ways meet, and a block that is
//! looked at too often loses what keeps changing, so it ends.

use super::catalog::Catalog;
use super::globals::Globals;
use super::number::Number;
use super::outcome::{Outcome, Pseudo, Reason};
use super::table::Rows;
use super::tags::Universe;
use super::value::{Pointer, State, Value};
use crate::code::{Body, Flow, Image, Instruction, Machine, Register};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::rc::Rc;
use tallyline_debuginfo::model::TypeId;
use tallyline_debuginfo::program::Function;
use tallyline_debuginfo::program::Templates;
use tallyline_debuginfo::program::{RUST, Unit};

/// How often a block is looked at before what still changes is given up.
const VISITS_LIMIT: u32 = 24;

/// Instructions that may be looked at in one function, over all visits, beyond a few a piece.
const STEPS_LIMIT: usize = 20_000_000;

/// One function that is being analysed.
pub(super) struct Analysis<'f, 'i, 'u, 'a> {
    pub(super) image: &'f Image,
    pub(super) body: &'f Body,
    pub(super) function: &'f Function,
    pub(super) unit: Option<Rc<Unit<'u, 'a>>>,
    pub(super) globals: &'f Globals<'f>,
    pub(super) catalog: &'f mut Catalog<'i, 'u, 'a>,
    /// Types of functions by their addresses, where debug information does not say which a call goes to.
    pub(super) prototypes: &'f FxHashMap<u64, TypeId>,
    /// What registers hold at the start, where it is known from elsewhere than variables.
    pub(super) at_entry: Vec<(Register, Value)>,
    /// By block: what is known where it starts.
    states: Vec<Option<State>>,
    visits: Vec<u32>,
    // whether what is known came from behind calls only
    behind_call: Vec<bool>,
    /// By variable and by location: what is known of them.
    pub(super) variable_types: Vec<Option<Option<TypeId>>>,
    pub(super) declared: FxHashMap<usize, Value>,
    // by instruction: the innermost scope, from 1
    innermost: Vec<u32>,
    templates: FxHashMap<u32, Templates>,
    /// Instructions that may still be looked at for the indices of gathers.
    pub(super) vector_budget: usize,
    pub(super) no_return: FxHashMap<u64, bool>,
    /// The values that tags of enums can have, and of which place of a type.
    pub(super) universes: Vec<Universe>,
    pub(super) universe_of: FxHashMap<(TypeId, u32), Option<u32>>,
}

/// What becomes of control behind an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    GoesOn,
    Ends,
}

impl<'f, 'i, 'u, 'a> Analysis<'f, 'i, 'u, 'a> {
    pub(super) fn new(
        image: &'f Image,
        body: &'f Body,
        function: &'f Function,
        unit: Option<Rc<Unit<'u, 'a>>>,
        globals: &'f Globals<'f>,
        catalog: &'f mut Catalog<'i, 'u, 'a>,
        prototypes: &'f FxHashMap<u64, TypeId>,
    ) -> Self {
        let mut analysis = Analysis {
            image,
            body,
            function,
            unit,
            globals,
            catalog,
            prototypes,
            at_entry: Vec::new(),
            states: vec![None; body.blocks().len()],
            visits: vec![0; body.blocks().len()],
            behind_call: vec![false; body.blocks().len()],
            variable_types: vec![None; function.variables.len()],
            declared: FxHashMap::default(),
            innermost: Vec::new(),
            templates: FxHashMap::default(),
            vector_budget: super::vector::BUDGET,
            no_return: FxHashMap::default(),
            universes: Vec::new(),
            universe_of: FxHashMap::default(),
        };
        analysis.find_innermost();
        analysis
    }

    /// Which register is the stack's.
    pub(super) fn stack_register(&self) -> Register {
        match self.image.machine() {
            Machine::X86_64 => Register(7),
            Machine::Aarch64 => Register(31),
        }
    }

    /// Finds what is known at the start of each block.
    pub(super) fn run(&mut self) {
        if self.body.blocks().is_empty() {
            return;
        }
        let mut entry = State::unknown();
        let has_tags = self.unit.as_ref().is_some_and(|unit| unit.language() == RUST);
        entry.tags = has_tags.then(Box::default);
        // a call has pushed the address to return to
        let start = if self.image.machine() == Machine::X86_64 { -8 } else { 0 };
        entry.set(self.stack_register(), Value::Stack(start));
        for (register, value) in std::mem::take(&mut self.at_entry) {
            entry.set(register, value);
        }
        let first = self.body.entry();
        self.states[first] = Some(entry);
        let mut budget = STEPS_LIMIT;
        self.settle(BTreeSet::from([first]), &mut budget);
        // what is entered from elsewhere: handlers of exceptions, what tables lead to
        let mut orphan = State::unknown();
        orphan.tags = has_tags.then(Box::default);
        orphan.set(self.stack_register(), self.usual_stack());
        for block in 0..self.states.len() {
            let open = self.states[block].is_none() && self.body.blocks()[block].predecessors.is_empty();
            // nothing leads to the filling in front of a loop, and what it knows is not true there
            if open && self.last_that_does(block).is_some() {
                self.states[block] = Some(orphan.clone());
                self.settle(BTreeSet::from([block]), &mut budget);
            }
        }
    }

    fn settle(&mut self, mut open: BTreeSet<usize>, budget: &mut usize) {
        while let Some(block) = open.pop_first() {
            let Some(state) = self.states[block].clone() else { continue };
            self.visits[block] += 1;
            let range = self.body.blocks()[block].instructions.clone();
            let Some(left) = budget.checked_sub(range.len()) else { return };
            *budget = left;
            let (state, after) = self.through(block, state, |_, _, _| {});
            if after == After::Ends {
                continue;
            }
            for successor in self.body.blocks()[block].successors.clone() {
                let successor = successor as usize;
                let on_way = self.on_way(block, successor, &state);
                if self.flow_into(block, successor, on_way.as_ref().unwrap_or(&state)) {
                    open.insert(successor);
                }
            }
        }
    }

    /// Runs a block; before each instruction, when variables that start there are known, calls `each`.
    pub(super) fn through(
        &mut self,
        block: usize,
        mut state: State,
        mut each: impl FnMut(&mut Self, usize, &State),
    ) -> (State, After) {
        let range = self.body.blocks()[block].instructions.clone();
        let mut after = After::GoesOn;
        for position in range.clone() {
            let position = position as usize;
            self.inject(&mut state, position, position == range.start as usize);
            each(self, position, &state);
            if self.step(&mut state, position) == After::Ends {
                // what follows in the block is filling
                after = After::Ends;
            }
        }
        (state, after)
    }

    fn flow_into(&mut self, from: usize, block: usize, state: &State) -> bool {
        let behind_call = self.ends_with_call(from);
        // what met here the last time are other numbers than what meets now
        let mut state = state.clone();
        state.forget(|of| of >> 7 == joined_at(block, Register(0)) >> 7, u64::MAX);
        let Some(mut known) = self.states[block].take() else {
            self.states[block] = Some(state);
            self.behind_call[block] = behind_call;
            return true;
        };
        let stack = self.stack_register();
        if let (Value::Stack(here), Value::Stack(there)) = (known.get(stack), state.get(stack))
            && here != there
        {
            // the stack has one height at each instruction: one of the two calls does not come back
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
            // what is known of tags ends here, as what else changes does
            known.tags = known.tags.map(|_| Box::default());
        }
        let start = self.body.blocks()[block].instructions.start;
        let (at, stack) = (start + 1, self.stack_register());
        let give_up = self.visits[block] > VISITS_LIMIT;
        let changed = known.join(&state, |one, other, register| {
            let name = register.map_or(0, |register| joined_at(block, register));
            if give_up {
                return Value::Unknown(at);
            }
            if register == Some(stack) {
                return self.meet(one, other, at, name);
            }
            // they may be two addresses in one variable
            let mine = self.place_on_stack(&state, start as usize, one, other);
            let theirs = self.place_on_stack(&state, start as usize, other, one);
            self.meet(mine, theirs, at, name)
        });
        self.states[block] = Some(known);
        changed
    }

    /// Whether a block ends with a call, and filling behind it.
    fn ends_with_call(&self, block: usize) -> bool {
        self.last_that_does(block).is_some_and(|last| matches!(last.flow, Flow::Call(_)))
    }

    /// The last instruction of a block that is not filling.
    fn last_that_does(&self, block: usize) -> Option<&'f Instruction> {
        let range = self.body.blocks()[block].instructions.clone();
        let instructions = &self.body.instructions()[range.start as usize..range.end as usize];
        let does = |instruction: &&Instruction| {
            instruction.flow != Flow::Next || !self.body.effects(instruction).is_empty()
        };
        instructions.iter().rev().find(does)
    }

    /// What is known of a value that is one of two. The unknown part of a number gets a name.
    pub(super) fn meet(&mut self, one: Value, other: Value, at: u32, name: u64) -> Value {
        match (one, other) {
            (one, other) if one == other => one,
            (Value::Unknown(one), Value::Unknown(other)) => Value::Unknown(one.min(other)),
            (Value::Unknown(lost), _) | (_, Value::Unknown(lost)) => Value::Unknown(lost),
            // null, or a mark that is no address
            (Value::Constant(number), known @ (Value::Pointer(_) | Value::Table))
            | (known @ (Value::Pointer(_) | Value::Table), Value::Constant(number))
                if is_no_address(number) =>
            {
                known
            }
            (Value::Pointer(one), Value::Pointer(other)) => self.meet_pointers(one, other, at),
            // an address that was kept as a number on one way, as kernels do: one variable has one type
            (known @ Value::Pointer(_), Value::Number(_)) | (Value::Number(_), known @ Value::Pointer(_)) => {
                known
            }
            (Value::Pointer(pointer), Value::Constant(number))
            | (Value::Constant(number), Value::Pointer(pointer)) => match self.global(number as u64) {
                Some(global) => self.meet_pointers(pointer, global, at),
                None => Value::Unknown(at),
            },
            // addresses in one variable, as a loop over it has them
            (Value::Constant(one), Value::Constant(other)) => match self.in_one_global(one, other) {
                Some((one, other)) => self.meet_offsets(one, other),
                None => Value::from(Number::known(one).or(Number::known(other), name)),
            },
            (Value::Number(_) | Value::Constant(_), Value::Number(_) | Value::Constant(_)) => {
                Value::from(one.as_number().or(other.as_number(), name))
            }
            _ => Value::Unknown(at),
        }
    }

    /// Two addresses that are in one variable, the second perhaps at its end.
    fn in_one_global(&mut self, one: i64, other: i64) -> Option<(Pointer, Pointer)> {
        let first = self.global(one as u64)?;
        let offset = i64::from(first.offset).checked_add(other.checked_sub(one)?)?;
        let size = i64::try_from(self.catalog.size(first.to)).ok()?;
        let offset = i32::try_from(offset).ok().filter(|_| (0..=size).contains(&offset))?;
        Some((first, Pointer { offset, ..first }))
    }

    fn meet_pointers(&mut self, one: Pointer, other: Pointer, at: u32) -> Value {
        if one.to == other.to {
            return self.meet_offsets(one, other);
        }
        match self.catalog.common_part(one, other) {
            Some(part) => Value::Pointer(part.stepping(one.step.into()).stepping(other.step.into())),
            None => Value::Unknown(at),
        }
    }

    fn meet_offsets(&mut self, one: Pointer, other: Pointer) -> Value {
        let size = i64::try_from(self.catalog.size(one.to)).unwrap_or(i64::MAX);
        let is_inside = |pointer: Pointer| (0..size).contains(&i64::from(pointer.offset));
        let apart = i64::from(one.offset).abs_diff(other.offset.into());
        if let (Some(mine), Some(theirs)) = (one.both(), other.both())
            && let Some(either) = either(mine, theirs)
        {
            return Value::Pointer(Pointer { step: 0, offset: either[0], ..one }.either(either[1]));
        }
        let kept = if !is_inside(one) && is_inside(other) { other } else { one };
        Value::Pointer(kept.stepping(one.step.into()).stepping(other.step.into()).stepping(apart))
    }

    /// Where the stack is at most calls: what handlers of exceptions find.
    fn usual_stack(&mut self) -> Value {
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

    /// What each instruction that touches memory touches.
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
            self.through(block, state, |analysis, position, state| {
                found.add(analysis.body, position, |memory| analysis.outcome(state, position, memory));
            });
        }
        found
    }

    /// What is known at the start of a block.
    pub(super) fn state_at(&self, block: usize) -> Option<&State> {
        self.states.get(block)?.as_ref()
    }

    fn find_innermost(&mut self) {
        self.innermost = vec![0; self.body.instructions().len()];
        // inner scopes come behind those around them
        for (index, scope) in self.function.scopes.iter().enumerate() {
            for range in &scope.ranges {
                let instructions = self.body.instructions();
                let start = instructions.partition_point(|instruction| instruction.address < range.start);
                let end = instructions.partition_point(|instruction| instruction.address < range.end);
                if let Some(covered) = self.innermost.get_mut(start..end) {
                    covered.fill(index as u32 + 1);
                }
            }
        }
    }

    /// What the scopes that an instruction is in were made from as templates, innermost first.
    pub(super) fn templates(&mut self, position: usize) -> Templates {
        let innermost = self.innermost.get(position).copied().unwrap_or(0);
        if let Some(known) = self.templates.get(&innermost) {
            return known.clone();
        }
        let templates = self.find_templates(innermost);
        self.templates.insert(innermost, templates.clone());
        templates
    }

    fn find_templates(&mut self, innermost: u32) -> Templates {
        let Some(units) = &mut self.catalog.units else { return Templates::default() };
        let mut found: Vec<(String, u64)> = Vec::new();
        let Some(mut scope) = (innermost as usize).checked_sub(1) else { return Templates::default() };
        while let Some(here) = self.function.scopes.get(scope) {
            if let Some(function) = here.function {
                let declared = units.declared(function);
                found.extend(units.templates(declared).iter().cloned());
                if declared != function {
                    found.extend(units.templates(function).iter().cloned());
                }
                if let Some(class) = units.class_of(declared) {
                    found.extend(units.templates(class).iter().cloned());
                }
            }
            if here.parent == scope {
                break;
            }
            scope = here.parent;
        }
        found.into()
    }
}

/// The only two of the numbers; twice the same where there is one. None if there are more.
fn either(mine: [i32; 2], theirs: [i32; 2]) -> Option<[i32; 2]> {
    let mut all = [mine[0], mine[1], theirs[0], theirs[1]];
    all.sort_unstable();
    let (least, most) = (all[0], all[3]);
    all.iter().all(|number| *number == least || *number == most).then_some([least, most])
}

/// The name of what meets in a register where a block starts.
fn joined_at(block: usize, register: Register) -> u64 {
    1 << 60 | (block as u64) << 7 | u64::from(register.0)
}

/// Whether a number is none that an object is at.
pub(super) fn is_no_address(number: i64) -> bool {
    (-4096..4096).contains(&number)
}
