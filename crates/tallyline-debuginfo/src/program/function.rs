//! One function as its debug information describes it: scopes, variables and where they are, calls.

use super::dies::{Go, address, walk};
use super::location::{self, FrameBase, Piece};
use super::unit::{Global, Unit};
use super::unit_cache::UnitCache;
use crate::dwarf::DebugInfo;
use gimli::AttributeValue;
use gimli::constants;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The most places of variables of one function.
const LOCATIONS_LIMIT: usize = 1 << 18;

/// A lexical block of a function, or a function inlined into it: code ranges and parent scope.
#[derive(Clone, Debug)]
pub struct FunctionScope {
    /// The code ranges of the scope.
    pub ranges: Vec<Range<u64>>,
    /// The index of the enclosing scope in [`Function::scopes`]; its own for the function itself.
    pub parent: usize,
    /// The global offset of the function's DIE, if the scope is a function.
    pub function: Option<u64>,
}

/// A local variable or parameter of a function: its name and its type's DIE.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name of the variable.
    pub name: String,
    /// The global offset of the DIE of the variable's type, across all unit sections.
    pub ty: u64,
    /// `true` if the variable is a parameter.
    pub parameter: bool,
}

/// A register or memory location of a local variable, or of a piece of it, with the code range in which it is valid.
#[derive(Clone, Debug)]
pub struct Location {
    /// The code range in which the location is valid.
    pub range: Range<u64>,
    /// The piece of the variable, with its storage.
    pub piece: Piece,
    /// The index of the variable in [`Function::variables`].
    pub variable: u32,
}

/// A function of a program as DWARF describes it: name, scopes, local variables with their locations, and calls.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// The name of the function.
    pub name: String,
    /// The scopes of the function, outer ones first.
    pub scopes: Vec<FunctionScope>,
    /// The local variables and parameters of the function and of functions inlined into it.
    pub variables: Vec<Variable>,
    /// The locations of the variables, sorted by the start of their code ranges.
    pub locations: Vec<Location>,
    /// The global offsets of the callees' DIEs, by the return address of the call.
    pub calls: FxHashMap<u64, u64>,
    /// The variables of the function that have a fixed location.
    pub globals: Vec<Global>,
}

impl Function {
    /// Reads the function `unit.functions[index]` from its DIEs: scopes, variables, locations and calls.
    pub fn read<'a>(cache: &mut UnitCache<'_, '_, 'a>, unit: &Unit<'_, 'a>, index: usize) -> Function {
        let subprogram = &unit.functions[index];
        let mut function = Function::default();
        let mut base = FrameBase::Unknown;
        // scopes that are open, with their depth
        let mut open: Vec<(isize, usize)> = Vec::new();
        let info = cache.info;
        let mut pending = Vec::new();
        walk(info, unit.index, &unit.entries, Some(subprogram.offset), |entry| {
            while open.last().is_some_and(|(depth, _)| *depth >= entry.depth) {
                open.pop();
            }
            let place = info.place(unit.index, entry.offset);
            let parent = open.last().map_or(0, |(_, scope)| *scope);
            match entry.tag {
                constants::DW_TAG_subprogram if entry.depth > 0 => return Go::Past,
                constants::DW_TAG_subprogram
                | constants::DW_TAG_inlined_subroutine
                | constants::DW_TAG_lexical_block => {
                    let own = entry.tag != constants::DW_TAG_lexical_block;
                    if entry.depth == 0 {
                        base = frame_base(entry, unit);
                    }
                    let ranges = if entry.depth == 0 {
                        subprogram.ranges.clone()
                    } else {
                        entry.ranges(unit.dwarf(), &unit.unit)
                    };
                    // a block that only groups variables has no code of its own
                    let ranges = match (ranges.is_empty(), function.scopes.get(parent)) {
                        (true, Some(around)) => around.ranges.clone(),
                        _ => ranges,
                    };
                    open.push((entry.depth, function.scopes.len()));
                    function.scopes.push(FunctionScope { ranges, parent, function: own.then_some(place) });
                    return Go::Inside;
                }
                constants::DW_TAG_variable | constants::DW_TAG_formal_parameter => {
                    let variable = pending.len();
                    pending.push((place, entry.tag == constants::DW_TAG_formal_parameter));
                    if let Some(value) = entry.value(constants::DW_AT_location) {
                        let scope = function.scopes.get(parent).map_or(&[][..], |scope| &scope.ranges);
                        let scope = scope.to_vec();
                        locate(&mut function, (info, unit), base, &value, &scope, variable as u32);
                        if let AttributeValue::Exprloc(expression) = value {
                            function.globals.extend(unit.fixed(expression, place));
                        }
                    }
                }
                constants::DW_TAG_call_site | constants::DW_TAG_GNU_call_site => {
                    let returns = [constants::DW_AT_call_return_pc, constants::DW_AT_low_pc]
                        .into_iter()
                        .find_map(|name| address(unit.dwarf(), &unit.unit, entry.value(name)?));
                    let callee = [constants::DW_AT_call_origin, constants::DW_AT_abstract_origin]
                        .into_iter()
                        .find_map(|name| info.target(unit.index, &entry.raw(name)?));
                    if let (Some(returns), Some(callee)) = (returns, callee) {
                        function.calls.insert(returns, callee);
                    }
                }
                _ => {}
            }
            Go::Past
        });
        function.name = cache.name(info.place(unit.index, subprogram.offset)).unwrap_or_default();
        function.name_variables(cache, pending);
        function.locations.sort_by_key(|location| location.range.start);
        function
    }

    fn name_variables(&mut self, cache: &mut UnitCache<'_, '_, '_>, pending: Vec<(u64, bool)>) {
        let mut keep = vec![None; pending.len()];
        for (index, (place, parameter)) in pending.into_iter().enumerate() {
            let Some(ty) = cache.target(place, constants::DW_AT_type) else { continue };
            keep[index] = Some(self.variables.len() as u32);
            let name = cache.name(place).unwrap_or_default();
            self.variables.push(Variable { name, ty, parameter });
        }
        self.locations.retain_mut(|location| match keep.get(location.variable as usize).copied().flatten() {
            Some(variable) => {
                location.variable = variable;
                true
            }
            None => false,
        });
    }

    /// Returns the indices in [`scopes`](Function::scopes) of the blocks and inlined functions that contain a code
    /// address, innermost first.
    pub fn scopes_at(&self, address: u64) -> Vec<usize> {
        // children come behind their parents
        let holds = |scope: &&usize| self.scopes[**scope].ranges.iter().any(|range| range.contains(&address));
        let all: Vec<usize> = (0..self.scopes.len()).collect();
        all.iter().filter(holds).rev().copied().collect()
    }

    /// Returns the locations of local variables that are valid at a code address.
    pub fn live(&self, address: u64) -> impl Iterator<Item = &Location> {
        let before = self.locations.partition_point(|location| location.range.start <= address);
        self.locations[..before].iter().filter(move |location| address < location.range.end)
    }
}

fn frame_base<'a>(entry: &super::dies::Entry<'a>, unit: &Unit<'_, 'a>) -> FrameBase {
    match entry.value(constants::DW_AT_frame_base) {
        Some(AttributeValue::Exprloc(expression)) => location::frame_base(expression, unit.unit.encoding()),
        _ => FrameBase::Unknown,
    }
}

/// Adds the places that an attribute says a variable is at.
fn locate<'a>(
    function: &mut Function,
    (info, unit): (&DebugInfo<'_, 'a>, &Unit<'_, 'a>),
    base: FrameBase,
    value: &AttributeValue<crate::dwarf::Slice<'a>>,
    scope: &[Range<u64>],
    variable: u32,
) {
    let by_index = |index| unit.dwarf().address(&unit.unit, index).ok();
    let encoding = unit.unit.encoding();
    let mut add = |ranges: &[Range<u64>], expression| {
        for piece in location::pieces(expression, encoding, base, by_index) {
            for range in ranges {
                if function.locations.len() < LOCATIONS_LIMIT && range.start < range.end {
                    function.locations.push(Location { range: range.clone(), piece, variable });
                }
            }
        }
    };
    match value {
        AttributeValue::Exprloc(expression) => add(scope, *expression),
        value => {
            let list = info.locations(unit.index, unit.dwarf(), &unit.unit, value);
            let Ok(Some(mut list)) = list else { return };
            let mut left = LOCATIONS_LIMIT;
            while let (Ok(Some(entry)), true) = (list.next(), left > 0) {
                left -= 1;
                let range = entry.range.begin..entry.range.end;
                add(std::slice::from_ref(&range), entry.data);
            }
        }
    }
}
