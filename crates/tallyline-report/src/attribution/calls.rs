//! Samples at functions' first instructions, charged to the calls that entered them.
//!
//! A call or a jump through memory that waits for its operand leaves its samples at the first instruction of the
//! function that it enters. There the return address is on top of the stack: the call in front of it is the one that
//! was run last, or it entered the function that jumped here. Behind a call through memory that one is taken whose slot
//! holds the function in linked data, the call's or that of a jump in another function that the call entered; the call
//! where nothing holds it. Where a recording does not have that word, a function
//! whose first instruction has far more samples than the others was likely entered by an indirect call: the only one
//! with samples that can have been is assumed, and of several none.

use super::candidates::FunctionSamples;
use super::{Division, Sampled};
use crate::answers::All;
use crate::binaries::Binaries;
use crate::index::PlaceId;
use crate::places::{Place, PlaceKind};
use crate::samples::{Charges, Samples};
use crate::skid::Rule;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use tallyline_inference::code::{Body, Flow, Predecessors, addresses_taken, instructions, is_branched_to};
use tallyline_perf_data::spaces::DsoId;

/// The most functions that jump on to each other that are looked through for a jump through memory.
const JUMPS_LIMIT: usize = 4;

/// The most calls or jumps that the samples of one call are divided among.
const SITES_LIMIT: usize = 16;

/// The fewest samples at a function's first instruction by which it is asked for how it was entered.
const ENOUGH: u64 = 8;

/// Samples of a first instruction, for each of one that retires evenly, from which on it was not it that took long.
const OUTSTANDING: f64 = 4.0;

/// The part of the samples of the block with most of them below which the calls of another one are left out: `1 / 20`.
const LEFT_OUT: u64 = 20;

/// A call or jump through memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Site {
    dso: DsoId,
    place: Place,
    address: u64,
}

/// The call and jump instructions that samples at a function's first instruction are charged to, found by the
/// return addresses on the samples' stacks.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    // by group: where its samples return to, and how many do
    returns: FxHashMap<u32, BTreeMap<PlaceId, u64>>,
    // by the places of the sample and of the return; none where no call is in front of that
    sites: FxHashMap<(PlaceId, PlaceId), Option<Sites>>,
    bodies: DecodedFunctions,
}

/// Decoded functions: by file and first address, with the address behind.
type DecodedFunctions = FxHashMap<(DsoId, u64), (u64, Arc<Body>)>;

/// The instructions through memory by which control may have come to a function; none where the call is direct, or
/// goes to an address in a register.
#[derive(Debug)]
struct Sites {
    rule: Rule,
    list: Vec<Site>,
}

impl Calls {
    /// Finds the calls that entered the sampled functions. `returns` has, for samples at a first instruction, the index
    /// of the sample's group (of equal samples) and the place of the return address.
    pub(crate) fn find(samples: &Samples, returns: &[(u32, PlaceId)], binaries: &Binaries) -> Calls {
        let mut calls = Calls::default();
        let mut functions = Functions {
            binaries,
            bodies: FxHashMap::default(),
            instructions: FxHashMap::default(),
            jumps: FxHashMap::default(),
        };
        let mut entries: Vec<Option<bool>> = vec![None; samples.places.len()];
        // the functions that return to each place
        let mut entered: FxHashMap<PlaceId, BTreeSet<PlaceId>> = FxHashMap::default();
        let mut at_entries: Vec<(u32, PlaceId, PlaceId)> = Vec::new();
        for (index, to) in returns {
            let Some(group) = samples.groups.get(*index as usize) else { continue };
            let is_entry = *entries[group.place.position()].get_or_insert_with(|| {
                let (dso, address) = samples.linked(group.place);
                dso.is_some_and(|dso| functions.is_entry(dso, address))
            });
            if is_entry && !samples.is_precise(group) {
                entered.entry(*to).or_default().insert(group.place);
                at_entries.push((*index, group.place, *to));
            }
        }
        for (index, place, to) in &at_entries {
            let find = || functions.sites(samples, *place, *to, &entered[to]);
            let sites = calls.sites.entry((*place, *to)).or_insert_with(find);
            if sites.is_none() {
                continue;
            }
            *calls.returns.entry(*index).or_default().entry(*to).or_default() += 1;
        }
        Calls { bodies: functions.bodies, ..calls }
    }

    /// Returns a function, if it was decoded already as one range of addresses.
    pub(super) fn body(&self, dso: DsoId, range: &Range<u64>) -> Option<Arc<Body>> {
        let (end, body) = self.bodies.get(&(dso, range.start))?;
        (*end == range.end).then(|| Arc::clone(body))
    }

    /// Returns the file and linked address of each call or jump instruction found to have entered a sampled function;
    /// the type of its operand has to be inferred, too.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (DsoId, u64)> {
        self.sites.values().flatten().flat_map(|sites| &sites.list).map(|site| (site.dso, site.address))
    }

    /// Returns of how many samples of a group the call is known.
    fn known(&self, group: u32) -> u64 {
        self.returns.get(&group).map_or(0, |returns| returns.values().sum())
    }
}

/// Functions of programs, decoded when they are asked for.
struct Functions<'b> {
    binaries: &'b Binaries,
    bodies: DecodedFunctions,
    // where the instructions of functions start and end that are asked for calls alone, by file and first address
    instructions: FxHashMap<(DsoId, u64), Vec<(u64, u64)>>,
    // the jumps through memory that leave a function
    jumps: FxHashMap<(DsoId, u64), Vec<u64>>,
}

impl Functions<'_> {
    /// Returns the code range of the function at an address, by its symbol.
    fn range(&self, dso: DsoId, address: u64) -> Option<Range<u64>> {
        self.binaries.get(dso)?.symbols().function_range_at(address)
    }

    fn body(&mut self, dso: DsoId, address: u64) -> Option<Arc<Body>> {
        let range = self.range(dso, address)?;
        let program = self.binaries.get(dso)?;
        let decode = || {
            let body = Body::of_function(&program.image, std::slice::from_ref(&range));
            (range.end, Arc::new(body))
        };
        Some(Arc::clone(&self.bodies.entry((dso, range.start)).or_insert_with(decode).1))
    }

    /// Returns `true` if the instruction at an address is a function's first, and nothing in the function leads to it.
    fn is_entry(&mut self, dso: DsoId, address: u64) -> bool {
        let Some(range) = self.range(dso, address).filter(|range| range.start == address) else {
            return false;
        };
        match self.binaries.get(dso) {
            // its samples are followed later on, which takes the whole function
            Some(program) if program.has_types() => self
                .body(dso, address)
                .is_some_and(|body| body.predecessors(address) == Some(Predecessors::Entry)),
            Some(program) if program.image.undecoded().is_some() => false,
            Some(program) => !is_branched_to(&program.image, &range, address),
            None => false,
        }
    }

    /// Returns the instruction that ends at an address, alone.
    fn instruction_before(&mut self, dso: DsoId, end: u64) -> Option<Body> {
        let range = self.range(dso, end.checked_sub(1)?)?;
        let image = &self.binaries.get(dso)?.image;
        let start = match self.bodies.get(&(dso, range.start)) {
            Some((_, body)) => {
                let position = body.instructions().partition_point(|instruction| instruction.end() < end);
                body.instructions().get(position).filter(|found| found.end() == end)?.address()
            }
            None => {
                let scan = || instructions(image, &range);
                let all = self.instructions.entry((dso, range.start)).or_insert_with(scan);
                all[all.binary_search_by_key(&end, |(_, end)| *end).ok()?].0
            }
        };
        Some(Body::decode(image, std::slice::from_ref(&(start..end)), start))
    }

    /// Finds the instructions by which control came to a function that returns to a place; none if there is no call
    /// in front of the place. `entered` are all functions with samples that return there.
    fn sites(
        &mut self,
        samples: &Samples,
        entry: PlaceId,
        to: PlaceId,
        entered: &BTreeSet<PlaceId>,
    ) -> Option<Sites> {
        let (dso, back) = samples.linked(to);
        let dso = dso?;
        let body = self.instruction_before(dso, back)?;
        let call = body.instructions().first()?;
        let site = |address: u64| {
            let place = *samples.places.get(to);
            Site {
                dso,
                place: Place { offset: place.offset.wrapping_sub(back.wrapping_sub(address)), ..place },
                address,
            }
        };
        let Flow::Call(target) = call.flow() else { return None };
        let (rule, list) = match target {
            None if reads_target(&body, 0) => (Rule::Call, vec![site(call.address())]),
            Some(target) if (Some(dso), target) != samples.linked(entry) => {
                (Rule::TailCall, self.jumps(dso, target).into_iter().map(site).collect())
            }
            _ => return Some(Sites { rule: Rule::CallOrReturn, list: Vec::new() }),
        };
        Some(self.by_slots(samples, entry, entered, Sites { rule, list }))
    }

    /// Adds jumps of other functions that the same call entered, if they read a slot that holds the function; of the
    /// others only those that do stay then.
    fn by_slots(
        &mut self,
        samples: &Samples,
        entry: PlaceId,
        entered: &BTreeSet<PlaceId>,
        sites: Sites,
    ) -> Sites {
        let mut jumps = self.passed_on(samples, entry, entered);
        jumps.retain(|jump| !sites.list.contains(jump));
        if jumps.is_empty() {
            return sites;
        }
        let slots = self.slots(samples, entry);
        let mut is_held = |site: &Site| {
            let slot = self.body(site.dso, site.address).and_then(|body| {
                let position = body.position(site.address)?;
                slot_of(&body, position)
            });
            slot.is_some_and(|slot| slots.contains(&slot))
        };
        jumps.retain(&mut is_held);
        if jumps.is_empty() {
            return sites;
        }
        let mut list = sites.list;
        list.retain(is_held);
        list.append(&mut jumps);
        Sites { rule: Rule::TailCall, list }
    }

    /// Finds the jumps through memory by which one of the functions that a call entered may have passed on control to
    /// another one.
    fn passed_on(&mut self, samples: &Samples, entry: PlaceId, entered: &BTreeSet<PlaceId>) -> Vec<Site> {
        let mut found = Vec::new();
        for from in entered.iter().filter(|from| **from != entry) {
            let (Some(dso), start) = samples.linked(*from) else { continue };
            let place = *samples.places.get(*from);
            found.extend(self.jumps(dso, start).into_iter().map(|address| {
                let offset = place.offset.wrapping_sub(start.wrapping_sub(address));
                Site { dso, place: Place { offset, ..place }, address }
            }));
        }
        // of so many nothing is known
        if found.len() > SITES_LIMIT { Vec::new() } else { found }
    }

    /// Returns the offsets in variables at which a program's linked data holds the address of a function.
    fn slots(&self, samples: &Samples, entry: PlaceId) -> Vec<i64> {
        let (Some(dso), address) = samples.linked(entry) else { return Vec::new() };
        let Some(program) = self.binaries.get(dso) else { return Vec::new() };
        let offset = |place: u64| {
            let variable = program.symbols().variable_range_at(place)?;
            i64::try_from(place - variable.start).ok()
        };
        program.image.slots_with(address).filter_map(offset).collect()
    }

    /// Finds the jumps through memory that leave a function, or one that it jumps to.
    fn jumps(&mut self, dso: DsoId, function: u64) -> Vec<u64> {
        if let Some(known) = self.jumps.get(&(dso, function)) {
            return known.clone();
        }
        let found = self.find_jumps(dso, function);
        self.jumps.insert((dso, function), found.clone());
        found
    }

    fn find_jumps(&mut self, dso: DsoId, function: u64) -> Vec<u64> {
        let (mut asked, mut next, mut found) = (vec![function], 0, Vec::new());
        while let Some(function) = asked.get(next).copied() {
            next += 1;
            if self.range(dso, function).is_none_or(|range| range.start != function) {
                continue;
            }
            let Some(body) = self.body(dso, function) else { continue };
            for (position, instruction) in body.instructions().iter().enumerate() {
                match instruction.flow() {
                    Flow::Jump(None) if body.table(position).is_empty() && reads_target(&body, position) => {
                        found.push(instruction.address());
                    }
                    Flow::Jump(Some(target)) | Flow::Branch(target)
                        if body.position(target).is_none()
                            && !asked.contains(&target)
                            && asked.len() < JUMPS_LIMIT =>
                    {
                        asked.push(target);
                    }
                    _ => {}
                }
            }
        }
        // of so many nothing is known
        if found.len() > SITES_LIMIT { Vec::new() } else { found }
    }
}

/// Returns `true` if the indirect call or jump at a position reads its target from memory.
fn reads_target(body: &Body, position: usize) -> bool {
    body.instructions()[position].memory().is_some_and(|memory| !memory.implicit() && memory.access().reads())
}

/// Returns the offset in an object at which an indirect call or jump reads its target; none where that is not behind a
/// register alone.
fn slot_of(body: &Body, position: usize) -> Option<i64> {
    let memory = body.instructions()[position].memory()?;
    (memory.base().is_some() && memory.index().is_none()).then(|| memory.displacement())
}

/// Charges the samples of groups that have return addresses.
pub(super) struct Charging<'c> {
    calls: &'c Calls,
    divisions: FxHashMap<(PlaceId, PlaceId), Division>,
}

impl<'c> Charging<'c> {
    pub(super) fn new(calls: &'c Calls) -> Charging<'c> {
        Charging { calls, divisions: FxHashMap::default() }
    }

    /// Returns the places that samples of a group are charged to, how many each gets, and how many of all are
    /// divided among several.
    pub(super) fn give(
        &mut self,
        samples: &mut Samples,
        charges: &mut Charges,
        index: u32,
        answers: &All,
        made: &mut FxHashMap<Place, PlaceId>,
    ) -> (Vec<(PlaceId, u64)>, u64) {
        let (mut given, mut divided) = (Vec::new(), 0);
        let Some(returns) = self.calls.returns.get(&index) else { return (given, divided) };
        let place = samples.groups[index as usize].place;
        for (to, count) in returns {
            let Some(Some(sites)) = self.calls.sites.get(&(place, *to)) else { continue };
            let division = self
                .divisions
                .entry((place, *to))
                .or_insert_with(|| divide(samples, charges, place, sites, answers, made));
            divided += if division.parts.len() > 1 { *count } else { 0 };
            charges.calls.by_return_address += if sites.list.is_empty() { 0 } else { *count };
            given.extend(division.give(*count));
        }
        (given, divided)
    }
}

/// Makes the places of calls; of several that access the same the first stands for all.
fn divide(
    samples: &mut Samples,
    charges: &mut Charges,
    taken: PlaceId,
    sites: &Sites,
    answers: &All,
    made: &mut FxHashMap<Place, PlaceId>,
) -> Division {
    let answer = |site: &Site| answers.get(&site.dso)?.as_ref().ok()?.table().outcome(site.address);
    let mut differing: Vec<&Site> = Vec::new();
    for site in &sites.list {
        if !differing.iter().any(|other| answer(other).is_some() && answer(other) == answer(site)) {
            differing.push(site);
        }
    }
    let mut places: Vec<(Place, u64)> = differing.iter().map(|site| (site.place, site.address)).collect();
    if places.is_empty() {
        let (place, address) = (*samples.places.get(taken), samples.places.address(taken));
        places.push((Place { kind: PlaceKind::CallOrReturn, ..place }, address));
    }
    let share = 1.0 / places.len() as f64;
    let mut parts = Vec::new();
    for (place, address) in places {
        let charged = *made.entry(place).or_insert_with(|| samples.places.push(place, address));
        let rule = if sites.list.is_empty() { Rule::CallOrReturn } else { sites.rule };
        charges.call_rules.insert((taken, charged), rule);
        parts.push((charged, share, 0.0));
    }
    Division { parts }
}

/// An indirect call or jump in a function with samples.
#[derive(Clone, Copy, Debug)]
struct Indirect {
    address: u64,
    reads_target: bool,
    // of its block
    samples: u64,
}

/// The indirect calls and jumps in one function, and a flag for outstandingly many samples at its first instruction.
#[derive(Clone, Debug, Default)]
pub(super) struct InFunction {
    indirect: Vec<Indirect>,
    is_outstanding: bool,
}

impl InFunction {
    /// Finds the indirect calls and jumps in a function with samples.
    pub(super) fn find(
        body: &Body,
        entry: u64,
        counts: &FxHashMap<u64, u64>,
        samples: &FunctionSamples<'_>,
    ) -> Self {
        let mut indirect = Vec::new();
        for (position, instruction) in body.instructions().iter().enumerate() {
            let is_jump = instruction.flow() == Flow::Jump(None) && body.table(position).is_empty();
            if is_jump || instruction.flow() == Flow::Call(None) {
                let reads_target = reads_target(body, position);
                indirect.push(Indirect {
                    address: instruction.address(),
                    reads_target,
                    samples: samples.in_block(position),
                });
            }
        }
        let here = counts.get(&entry).copied().unwrap_or(0);
        let is_outstanding = here >= ENOUGH
            && body.predecessors(entry) == Some(Predecessors::Entry)
            && body
                .position(entry)
                .is_some_and(|position| here as f64 > OUTSTANDING * samples.evenly(position));
        InFunction { indirect, is_outstanding }
    }
}

/// The verdict on a function's first instruction whose samples have no return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    /// By this call or jump, which is the only one that may have been it.
    Assumed(u64),
    /// By an indirect call of which is not known which.
    Unknown,
}

/// Decides how functions were entered whose first instructions have outstandingly many samples without a return
/// address: by file and address.
pub(super) fn entered(
    samples: &Samples,
    binaries: &Binaries,
    calls: &Calls,
    functions: &[(&Sampled, &InFunction)],
) -> FxHashMap<(DsoId, u64), Entered> {
    let mut asked: BTreeMap<DsoId, FxHashSet<u64>> = BTreeMap::new();
    for (function, found) in functions {
        if found.is_outstanding {
            asked.entry(function.dso).or_default().insert(function.entry);
        }
    }
    if asked.is_empty() {
        return FxHashMap::default();
    }
    // what the return address says need not be asked
    let mut left: FxHashMap<(DsoId, u64), u64> = FxHashMap::default();
    let mut threads: FxHashMap<(DsoId, u64), FxHashSet<i32>> = FxHashMap::default();
    let by_range = ByRange::new(functions);
    let imprecise = samples.groups.iter().enumerate().filter(|(_, group)| !samples.is_precise(group));
    for (index, group) in imprecise {
        let (Some(dso), address) = samples.linked(group.place) else { continue };
        if asked.get(&dso).is_some_and(|entries| entries.contains(&address)) {
            *left.entry((dso, address)).or_default() +=
                group.samples - calls.known(index as u32).min(group.samples);
        }
        if let Some(entry) = by_range.entry(dso, address) {
            threads.entry((dso, entry)).or_default().insert(group.tid);
        }
    }
    let mut verdicts = FxHashMap::default();
    for (dso, mut entries) in asked {
        entries.retain(|entry| left.get(&(dso, *entry)).is_some_and(|samples| *samples >= ENOUGH));
        let Some(program) = binaries.get(dso).filter(|_| !entries.is_empty()) else { continue };
        for entry in addresses_taken(&program.image, &entries) {
            let own = &threads[&(dso, entry)];
            let is_same_thread = |function: &Sampled| {
                let others = threads.get(&(function.dso, function.entry));
                others.is_some_and(|others| !others.is_disjoint(own))
            };
            let candidates = functions.iter().filter(|(function, _)| is_same_thread(function)).flat_map(
                |(function, found)| found.indirect.iter().map(|indirect| (function.dso, *indirect)),
            );
            verdicts.insert((dso, entry), only(dso, candidates.collect()));
        }
    }
    verdicts
}

/// Chooses the only call through memory that samples say is run.
fn only(dso: DsoId, mut candidates: Vec<(DsoId, Indirect)>) -> Entered {
    let most = candidates.iter().map(|(_, indirect)| indirect.samples).max().unwrap_or(0);
    candidates.retain(|(_, indirect)| indirect.samples > most / LEFT_OUT);
    match candidates[..] {
        [(own, Indirect { address, reads_target: true, .. })] if own == dso => Entered::Assumed(address),
        _ => Entered::Unknown,
    }
}

/// The functions with samples, by address.
struct ByRange(FxHashMap<DsoId, Vec<(u64, u64, u64)>>);

impl ByRange {
    fn new(functions: &[(&Sampled, &InFunction)]) -> ByRange {
        let mut all: FxHashMap<DsoId, Vec<(u64, u64, u64)>> = FxHashMap::default();
        for (function, _) in functions {
            let own = all.entry(function.dso).or_default();
            own.extend(function.counts.keys().map(|address| (*address, *address, function.entry)));
        }
        all.values_mut().for_each(|list| list.sort_unstable());
        ByRange(all)
    }

    fn entry(&self, dso: DsoId, address: u64) -> Option<u64> {
        let list = self.0.get(&dso)?;
        let index = list.binary_search_by_key(&address, |(address, ..)| *address).ok()?;
        Some(list[index].2)
    }
}
