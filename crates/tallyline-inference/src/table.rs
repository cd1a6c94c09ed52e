//! The table of outcomes per instruction, which samples are joined with.

use super::catalog::Catalog;
use super::outcome::{Outcome, Pseudo, Reason, Typed, Within};
use crate::code::{Body, Memory};
use crate::error::Result;
use std::ops::Range;
use tallyline_debuginfo::model::{TypeId, Types};

/// A function whose memory operands were analysed: its name and code ranges.
#[derive(Clone, Debug)]
pub struct Function {
    pub(crate) name: String,
    pub(crate) ranges: Vec<Range<u64>>,
}

impl Function {
    /// Returns the name of the analysed function, without namespaces and classes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the code ranges of the analysed function; the first contains its entry point.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }
}

/// The inferred types of the memory operands of a program's functions, by instruction address. It refers to no
/// file, so that it can be cached.
#[derive(Debug, Default)]
pub struct TypeTable {
    types: Types,
    functions: Vec<Function>,
    // sorted by start: index of the function
    ranges: Vec<(Range<u64>, u32)>,
    // sorted by address
    rows: Vec<(u64, Outcome)>,
    // sorted by address: second operands of instructions with two
    seconds: Vec<(u64, Outcome)>,
    // sorted by address: type of the variable, and offset in it
    data: Vec<(u64, TypeId, u32)>,
    warnings: Vec<String>,
}

/// The outcomes of one function, sorted by address.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// The outcomes of first memory operands, each with its instruction's address.
    pub(super) rows: Vec<(u64, Outcome)>,
    /// The outcomes of second memory operands, each with its instruction's address.
    pub(super) seconds: Vec<(u64, Outcome)>,
}

impl Rows {
    /// Adds the outcomes of one instruction's operands.
    pub(super) fn add(&mut self, body: &Body, position: usize, mut outcome: impl FnMut(&Memory) -> Outcome) {
        let instruction = &body.instructions()[position];
        let Some(memory) = &instruction.memory else { return };
        self.rows.push((instruction.address, outcome(memory)));
        if let Some(second) = body.second_operand(position) {
            self.seconds.push((instruction.address, outcome(second)));
        }
    }
}

/// The results of one worker.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// The index of the compilation unit that was analysed, or `Part::VARIABLES`.
    pub(super) unit: usize,
    pub(super) types: Types,
    pub(super) functions: Vec<Function>,
    rows: Vec<(u64, Outcome)>,
    // end of each function's rows
    ends: Vec<usize>,
    /// The outcomes of the second memory operands of all functions, each with its instruction's address.
    pub(super) seconds: Vec<(u64, Outcome)>,
    pub(super) data: Vec<(u64, TypeId, u32)>,
    pub(super) outside: Vec<u64>,
}

impl Part {
    /// The unit of a part that holds variables of all units.
    pub(super) const VARIABLES: usize = usize::MAX;

    pub(super) fn of_unit(unit: usize) -> Part {
        Part { unit, ..Part::default() }
    }

    /// Adds a function with its address ranges and the outcomes of its memory operands.
    pub(super) fn add(&mut self, name: &str, ranges: &[Range<u64>], outcomes: &[(u64, Outcome)]) {
        self.functions.push(Function { name: name.to_string(), ranges: ranges.to_vec() });
        self.rows.extend_from_slice(outcomes);
        self.ends.push(self.rows.len());
    }

    /// Returns the functions, each with its rows.
    pub(super) fn by_function(&self) -> impl Iterator<Item = (&Function, &[(u64, Outcome)])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let rows = starts.zip(&self.ends).map(|(start, end)| &self.rows[start..*end]);
        self.functions.iter().zip(rows)
    }

    /// Retains the functions that contain one of these sorted addresses.
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

    /// Moves the types out of a catalog.
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
            catalog.note_paths(id);
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
    /// Merges the results of workers.
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

    /// Returns the inferred type of the memory operand of the instruction at an address, or the reason why it is
    /// unknown; `None` if the address is in no analysed function.
    pub fn outcome(&self, address: u64) -> Option<Outcome> {
        match self.rows.binary_search_by_key(&address, |(address, _)| *address) {
            Ok(index) => Some(self.rows[index].1),
            Err(_) => self.function_at(address).map(|_| Outcome::Pseudo(Pseudo::NoMemory)),
        }
    }

    /// Returns the inferred type of the second memory operand of the instruction at an address, or the reason why
    /// it is unknown; `None` if the instruction has no second one.
    pub fn second_outcome(&self, address: u64) -> Option<Outcome> {
        let index = self.seconds.binary_search_by_key(&address, |(address, _)| *address).ok()?;
        Some(self.seconds[index].1)
    }

    /// Returns `true` if some analysed instruction has two memory operands.
    pub fn has_second_operands(&self) -> bool {
        !self.seconds.is_empty()
    }

    /// Returns the address and the inferred type (or the reason why it is unknown) of each instruction with a
    /// memory operand, sorted by address.
    pub fn rows(&self) -> &[(u64, Outcome)] {
        &self.rows
    }

    /// Returns the variables at queried addresses of data.
    pub(super) fn data(&self) -> &[(u64, TypeId, u32)] {
        &self.data
    }

    /// Returns the functions whose memory operands were analysed.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Returns the analysed function that contains an address; `None` if none does.
    pub fn function_at(&self, address: u64) -> Option<&Function> {
        let index = self.ranges.partition_point(|(range, _)| range.start <= address).checked_sub(1)?;
        let (range, function) = &self.ranges[index];
        if !range.contains(&address) {
            return None;
        }
        self.functions.get(*function as usize)
    }

    /// Returns the model of the program's types that the [`TypeId`]s of the inferred types refer to.
    pub fn types(&self) -> &Types {
        &self.types
    }

    /// Returns the warnings of type inference: one line of text for each part of the program's debug information that
    /// was missing.
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
