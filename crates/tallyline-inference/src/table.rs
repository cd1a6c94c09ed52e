//! The table of types per instruction: what samples are joined to.

use super::catalog::Catalog;
use super::outcome::{Outcome, Pseudo, Reason, Typed, Within};
use crate::code::{Body, Memory};
use crate::error::Result;
use std::ops::Range;
use tallyline_debuginfo::model::{TypeId, Types};

/// A function that was analysed.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name, without the scopes that it is declared in.
    pub name: String,
    /// Its code, the part that it is entered at first.
    pub ranges: Vec<Range<u64>>,
}

/// What each instruction of some functions touches. It holds no part of the files that it was made from.
#[derive(Debug, Default)]
pub struct TypeTable {
    types: Types,
    functions: Vec<Function>,
    // by start: which function a range is of
    ranges: Vec<(Range<u64>, u32)>,
    // by address
    rows: Vec<(u64, Outcome)>,
    // by address: second operands of the instructions that have two
    seconds: Vec<(u64, Outcome)>,
    // by address: the variable there, and the byte of it
    data: Vec<(u64, TypeId, u32)>,
    warnings: Vec<String>,
}

/// What the instructions of one function touch, by address.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Every instruction that touches memory.
    pub(super) rows: Vec<(u64, Outcome)>,
    /// The second operands of those that have two.
    pub(super) seconds: Vec<(u64, Outcome)>,
}

impl Rows {
    /// Adds what the operands of one instruction touch.
    pub(super) fn add(&mut self, body: &Body, position: usize, mut outcome: impl FnMut(&Memory) -> Outcome) {
        let instruction = &body.instructions()[position];
        let Some(memory) = &instruction.memory else { return };
        self.rows.push((instruction.address, outcome(memory)));
        if let Some(second) = body.second_operand(position) {
            self.seconds.push((instruction.address, outcome(second)));
        }
    }
}

/// What one worker has found.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// The unit that it is about.
    pub(super) unit: usize,
    pub(super) types: Types,
    pub(super) functions: Vec<Function>,
    rows: Vec<(u64, Outcome)>,
    // by function: where its rows end
    ends: Vec<usize>,
    /// Second operands in all functions.
    pub(super) seconds: Vec<(u64, Outcome)>,
    pub(super) data: Vec<(u64, TypeId, u32)>,
    pub(super) outside: Vec<u64>,
}

impl Part {
    /// Stands for a unit where a part is about variables of all of them.
    pub(super) const VARIABLES: usize = usize::MAX;

    pub(super) fn of_unit(unit: usize) -> Part {
        Part { unit, ..Part::default() }
    }

    /// Adds a function.
    pub(super) fn add(&mut self, name: &str, ranges: &[Range<u64>], outcomes: &[(u64, Outcome)]) {
        self.functions.push(Function { name: name.to_string(), ranges: ranges.to_vec() });
        self.rows.extend_from_slice(outcomes);
        self.ends.push(self.rows.len());
    }

    /// The functions, each with its rows.
    pub(super) fn by_function(&self) -> impl Iterator<Item = (&Function, &[(u64, Outcome)])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let rows = starts.zip(&self.ends).map(|(start, end)| &self.rows[start..*end]);
        self.functions.iter().zip(rows)
    }

    /// Keeps the functions that have one of these addresses, which are in order.
    pub(super) fn retain(&mut self, addresses: &[u64]) {
        let is_wanted = |range: &Range<u64>| {
            addresses
                .get(addresses.partition_point(|address| *address < range.start))
                .is_some_and(|first| *first < range.end)
        };
        let mut kept = Part::default();
        for (function, rows) in self.by_function() {
            if function.ranges.iter().any(is_wanted) {
                kept.add(&function.name, &function.ranges, rows);
            }
        }
        (self.functions, self.rows, self.ends) = (kept.functions, kept.rows, kept.ends);
        let ranges = self.functions.iter().flat_map(|function| &function.ranges);
        let ranges: Vec<&Range<u64>> = ranges.collect();
        self.seconds.retain(|(address, _)| ranges.iter().any(|range| range.contains(address)));
    }

    /// Takes over the types.
    pub(super) fn finish(&mut self, mut catalog: Catalog<'_, '_, '_>) {
        let outcomes = || self.rows.iter().chain(&self.seconds);
        let mut named: Vec<TypeId> = outcomes().filter_map(|(_, outcome)| type_of(outcome)).collect();
        named.extend(outcomes().filter_map(|(_, outcome)| match outcome {
            Outcome::Typed(Typed { within: Some(within), .. }) => Some(within.ty),
            _ => None,
        }));
        named.extend(self.data.iter().map(|(_, ty, _)| *ty));
        named.sort_unstable();
        named.dedup();
        for id in named {
            catalog.note_path(id);
            catalog.note_unit(id);
        }
        self.types = catalog.into_types();
    }
}

fn type_of(outcome: &Outcome) -> Option<TypeId> {
    match outcome {
        Outcome::Typed(typed) => Some(typed.ty),
        Outcome::Untyped(Reason::Opaque(ty) | Reason::Outside { ty, .. } | Reason::Index { ty, .. }) => {
            Some(*ty)
        }
        _ => None,
    }
}

impl TypeTable {
    /// Puts together what workers have found.
    pub(super) fn join(parts: Vec<Part>, outside: Vec<u64>, warnings: Vec<String>) -> Result<TypeTable> {
        let mut table = TypeTable { warnings, ..TypeTable::default() };
        let mut outside = outside;
        for (index, part) in parts.into_iter().enumerate() {
            outside.extend(part.outside);
            table.functions.extend(part.functions);
            if index == 0 {
                table.types = part.types;
                table.rows = part.rows;
                table.seconds = part.seconds;
                table.data = part.data;
                continue;
            }
            let moved = table.types.absorb(part.types)?;
            table
                .data
                .extend(part.data.into_iter().map(|(address, ty, offset)| (address, moved(ty), offset)));
            table
                .rows
                .extend(part.rows.into_iter().map(|(address, outcome)| (address, renamed(outcome, &moved))));
            let seconds = part.seconds.into_iter();
            table.seconds.extend(seconds.map(|(address, outcome)| (address, renamed(outcome, &moved))));
        }
        table.rows.extend(
            outside.into_iter().map(|address| (address, Outcome::Untyped(Reason::NoDebugInformation))),
        );
        table.data.sort_unstable_by_key(|(address, ..)| *address);
        table.rows.sort_by_key(|(address, _)| *address);
        table.rows.dedup_by_key(|(address, _)| *address);
        table.seconds.sort_by_key(|(address, _)| *address);
        table.seconds.dedup_by_key(|(address, _)| *address);
        for (index, function) in table.functions.iter().enumerate() {
            table.ranges.extend(function.ranges.iter().map(|range| (range.clone(), index as u32)));
        }
        table.ranges.sort_by_key(|(range, _)| range.start);
        Ok(table)
    }

    /// What the instruction at an address touches; none for an address that was not asked for.
    pub fn outcome(&self, address: u64) -> Option<Outcome> {
        match self.rows.binary_search_by_key(&address, |(address, _)| *address) {
            Ok(index) => Some(self.rows[index].1),
            Err(_) => self.function_at(address).map(|_| Outcome::Pseudo(Pseudo::NoMemory)),
        }
    }

    /// What the second operand of the instruction at an address touches; none if it has one operand.
    pub fn second_outcome(&self, address: u64) -> Option<Outcome> {
        let index = self.seconds.binary_search_by_key(&address, |(address, _)| *address).ok()?;
        Some(self.seconds[index].1)
    }

    /// Whether some instruction has a second operand in memory.
    pub fn has_second_operands(&self) -> bool {
        !self.seconds.is_empty()
    }

    /// Every instruction that touches memory, by address, with what it touches.
    pub fn rows(&self) -> &[(u64, Outcome)] {
        &self.rows
    }

    /// Variables at addresses that were asked for.
    pub(super) fn data(&self) -> &[(u64, TypeId, u32)] {
        &self.data
    }

    /// The functions that were analysed.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The function that an address is in.
    pub fn function_at(&self, address: u64) -> Option<&Function> {
        let index = self.ranges.partition_point(|(range, _)| range.start <= address).checked_sub(1)?;
        let (range, function) = &self.ranges[index];
        if !range.contains(&address) {
            return None;
        }
        self.functions.get(*function as usize)
    }

    /// The types that the outcomes speak of.
    pub fn types(&self) -> &Types {
        &self.types
    }

    /// What is missing of the debug information, one line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

fn renamed(outcome: Outcome, moved: &impl Fn(TypeId) -> TypeId) -> Outcome {
    match outcome {
        Outcome::Typed(typed) => {
            let within = typed.within.map(|within| Within { ty: moved(within.ty), ..within });
            Outcome::Typed(Typed { ty: moved(typed.ty), within, ..typed })
        }
        Outcome::Untyped(Reason::Opaque(ty)) => Outcome::Untyped(Reason::Opaque(moved(ty))),
        Outcome::Untyped(Reason::Outside { ty, offset }) => {
            Outcome::Untyped(Reason::Outside { ty: moved(ty), offset })
        }
        Outcome::Untyped(Reason::Index { ty, step, start }) => {
            Outcome::Untyped(Reason::Index { ty: moved(ty), step, start })
        }
        other => other,
    }
}
