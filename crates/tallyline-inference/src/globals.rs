//! Variables at fixed places, of all units, and which unit has the code at an address.

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use tallyline_debuginfo::model::TypeId;
use tallyline_debuginfo::program::Ranges;
use tallyline_debuginfo::program::{Fixed, GO, Global, Unit};
use tallyline_debuginfo::{DebugInfo, VariablesOf};

/// Queries over all units; each index is built on its first use.
pub(super) struct Globals<'s> {
    units: Ranges<usize>,
    // functions of units whose ranges overlap others, on demand
    functions: Mutex<FxHashMap<usize, Arc<Ranges<usize>>>>,
    find_functions: Box<dyn Fn(usize) -> Ranges<usize> + Sync + 's>,
    // builds `index`
    find: Box<dyn Fn() -> GlobalIndex + Sync + 's>,
    index: OnceLock<GlobalIndex>,
    find_statics: Box<dyn Fn() -> Vec<Global> + Sync + 's>,
    statics: OnceLock<Vec<Global>>,
    by_type: Vec<(u64, TypeId)>,
}

/// Variables and runtime types of all units.
#[derive(Default)]
pub(super) struct GlobalIndex {
    // sorted by location
    variables: Vec<Global>,
    runtime_types: FxHashMap<u64, u64>,
    goroutine: Option<u64>,
    group_control: Option<u64>,
}

impl<'s> Globals<'s> {
    /// Indexes the file's table of code ranges, and the unit DIEs of those that are not in it; their contents are not
    /// read yet.
    pub(super) fn new<'u: 's, 'a: 's>(info: &'s DebugInfo<'u, 'a>) -> Globals<'s> {
        let mut units = info.code_ranges();
        let listed: FxHashSet<usize> = units.iter().map(|(_, unit)| *unit).collect();
        // code that the linker discarded starts at 0
        units.retain(|(range, _)| range.start < range.end && range.start != 0);
        let others = info.units().par_iter().filter(|unit| !listed.contains(unit));
        units.par_extend(others.flat_map_iter(|unit| ranges(info, *unit)));
        Globals {
            units: Ranges::new(units),
            functions: Mutex::default(),
            find_functions: Box::new(|unit| functions(info, unit)),
            find: Box::new(|| GlobalIndex::find(info)),
            index: OnceLock::new(),
            find_statics: Box::new(|| statics(info)),
            statics: OnceLock::new(),
            by_type: Vec::new(),
        }
    }

    /// Creates an index of variables whose types are known by id.
    pub(super) fn by_type(mut variables: Vec<(u64, TypeId)>) -> Globals<'static> {
        variables.sort_unstable();
        let mut none = Globals::none();
        none.by_type = variables;
        none
    }

    fn none() -> Globals<'static> {
        Globals {
            units: Ranges::default(),
            functions: Mutex::default(),
            find_functions: Box::new(|_| Ranges::default()),
            find: Box::new(GlobalIndex::default),
            index: OnceLock::new(),
            find_statics: Box::new(Vec::new),
            statics: OnceLock::new(),
            by_type: Vec::new(),
        }
    }

    /// Returns the variable with a known type id that starts at or before an address.
    pub(super) fn typed(&self, address: u64) -> Option<(TypeId, u64)> {
        let before = self.by_type.partition_point(|(start, _)| *start <= address).checked_sub(1)?;
        let (start, ty) = self.by_type[before];
        Some((ty, address - start))
    }

    /// Returns the unit that owns the code at an address. Ranges of units overlap if one only states its lowest and
    /// highest address, or if the linker keeps one copy of code that several units have; of several it is the one
    /// with a function there, by the narrowest range.
    pub(super) fn unit_at(&self, address: u64) -> Option<usize> {
        let units = self.units.at(address);
        match units[..] {
            [] => None,
            [only] => Some(only),
            [first, ..] => {
                let with_function = units.iter().find(|unit| self.has_function(**unit, address));
                Some(with_function.copied().unwrap_or(first))
            }
        }
    }

    fn has_function(&self, unit: usize, address: u64) -> bool {
        let known = |all: &FxHashMap<usize, Arc<Ranges<usize>>>| all.get(&unit).cloned();
        let functions = self.functions.lock().ok().and_then(|all| known(&all));
        let functions = functions.unwrap_or_else(|| {
            let found = Arc::new((self.find_functions)(unit));
            if let Ok(mut all) = self.functions.lock() {
                all.insert(unit, found.clone());
            }
            found
        });
        !functions.at(address).is_empty()
    }

    /// Returns the variable at a location, from the function, the unit, then all units; with the offset in it.
    pub(super) fn find(&self, at: Fixed, function: &[Global], unit: &[Global]) -> Option<(u64, u32)> {
        if let Some(found) = starting(at, function, unit) {
            return Some((found.entry, found.offset));
        }
        let index = self.index.get_or_init(|| (self.find)());
        let nearest = |globals: &mut dyn Iterator<Item = &Global>| {
            globals.filter_map(|global| Some((distance(global.at, at)?, offset_in(global, at)?))).min()
        };
        let before = index.variables.partition_point(|global| global.at <= at);
        let all = before.checked_sub(1).map(|last| &index.variables[last]);
        let own = nearest(&mut function.iter());
        let all = nearest(&mut all.into_iter());
        own.into_iter().chain(all).min().map(|(_, found)| found)
    }

    /// Returns the function-local variable of any unit at or before a location, with the offset in it. The first
    /// query reads all units.
    pub(super) fn find_static(&self, at: Fixed) -> Option<(u64, u32)> {
        let statics = self.statics.get_or_init(|| (self.find_statics)());
        let before = statics.partition_point(|global| global.at <= at).checked_sub(1)?;
        offset_in(&statics[before], at)
    }

    /// Returns the type of a Go type descriptor. `base` is the address of the first descriptor, from which newer
    /// compilers count.
    pub(super) fn runtime_type(&self, address: u64, base: Option<u64>) -> Option<u64> {
        let types = &self.index.get_or_init(|| (self.find)()).runtime_types;
        let from_base = base.and_then(|base| address.checked_sub(base));
        types.get(&address).or_else(|| types.get(&from_base?)).copied()
    }

    /// Returns the type of a goroutine in a Go program.
    pub(super) fn goroutine(&self) -> Option<u64> {
        self.index.get_or_init(|| (self.find)()).goroutine
    }

    /// Returns the type of the control word at the start of each group of a Go map.
    pub(super) fn group_control(&self) -> Option<u64> {
        self.index.get_or_init(|| (self.find)()).group_control
    }
}

/// Returns the variable that starts at a location, from the function or the unit.
pub(super) fn starting<'g>(at: Fixed, function: &'g [Global], unit: &'g [Global]) -> Option<&'g Global> {
    // few are looked for one by one
    let own = function.iter().find(|global| global.at == at);
    own.or_else(|| unit.iter().find(|global| global.at == at))
}

/// Returns the code ranges of a unit's functions.
fn functions(info: &DebugInfo<'_, '_>, index: usize) -> Ranges<usize> {
    let Some(unit) = Unit::open(info, index) else { return Ranges::default() };
    let ranges = unit.functions.iter().enumerate().flat_map(|(function, subprogram)| {
        subprogram.ranges.iter().map(move |range| (range.clone(), function))
    });
    Ranges::new(ranges.collect())
}

/// Returns the function-local static variables of all units, sorted by location.
fn statics(info: &DebugInfo<'_, '_>) -> Vec<Global> {
    let read = |index: &usize| match Unit::variables(info, *index, VariablesOf::Functions) {
        Some((variables, _)) => Some(variables),
        None => Unit::open(info, *index).map(|unit| unit.statics(info).to_vec()),
    };
    let mut all: Vec<Global> = map_units(info.units(), read).into_iter().flatten().collect();
    all.sort_by_key(|global| global.at);
    all
}

/// Maps units in parallel and keeps their order. Not in the thread pool: all of its threads may wait for this result,
/// and a thread that waits for a part of it could steal a function that queries it again.
fn map_units<T: Send>(units: &[usize], read: impl Fn(&usize) -> Option<T> + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(unit) = units.get(index) else { return found };
            found.extend(read(unit).map(|one| (index, one)));
        }
    };
    let mut all = thread::scope(|scope| {
        let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others = (1..rayon::current_num_threads().min(units.len())).filter_map(start);
        let others: Vec<_> = others.collect();
        let mut all = work();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, one)| one).collect()
}

/// Returns the DIE of a variable and the offset of a location in it; `None` behind the end of a piece.
pub(super) fn offset_in(global: &Global, at: Fixed) -> Option<(u64, u32)> {
    let inside = u32::try_from(distance(global.at, at)?).ok()?;
    let is_inside = global.size.is_none_or(|size| inside < size);
    is_inside.then_some((global.entry, global.offset.checked_add(inside)?))
}

/// Returns the distance between two locations of one kind.
fn distance(from: Fixed, to: Fixed) -> Option<u64> {
    match (from, to) {
        (Fixed::Address(from), Fixed::Address(to)) | (Fixed::ThreadLocal(from), Fixed::ThreadLocal(to)) => {
            to.checked_sub(from)
        }
        _ => None,
    }
}

impl GlobalIndex {
    fn find(info: &DebugInfo<'_, '_>) -> GlobalIndex {
        let read = |index: &usize| {
            if let Some((variables, language)) = Unit::variables(info, *index, VariablesOf::Unit)
                && language != GO
            {
                return Some((variables, Default::default()));
            }
            let unit = Unit::open(info, *index)?;
            let types = if unit.language() == GO { unit.runtime_types(info) } else { Default::default() };
            Some((unit.globals, types))
        };
        let parts = map_units(info.units(), read);
        let mut all = GlobalIndex::default();
        for (variables, types) in parts {
            all.variables.extend(variables);
            all.runtime_types.extend(types.described);
            all.goroutine = all.goroutine.or(types.goroutine);
            all.group_control = all.group_control.or(types.group_control);
        }
        all.variables.sort_by_key(|global| global.at);
        all
    }
}

/// Returns the code of a unit, by its own ranges.
fn ranges(info: &DebugInfo<'_, '_>, index: usize) -> Vec<(Range<u64>, usize)> {
    info.unit_ranges(index).into_iter().map(|range| (range, index)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_answer_that_threads_of_the_pool_wait_for_is_found_without_them() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(16).build().expect("a pool");
        let units: Vec<usize> = (0..40).collect();
        let read = |unit: &usize| {
            thread::sleep(Duration::from_micros(200));
            (unit % 10 != 3).then_some(unit * 2)
        };
        let expected: Vec<usize> = (0..40).filter(|unit| unit % 10 != 3).map(|unit| unit * 2).collect();
        for _ in 0..5 {
            let answer = OnceLock::new();
            let ask = || answer.get_or_init(|| map_units(&units, read)) == &expected;
            pool.install(|| assert!((0..64).into_par_iter().all(|_| ask())));
        }
    }
}
