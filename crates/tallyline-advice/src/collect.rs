//! Evidence from a trace: two passes over its accesses, with names in between.

use super::evidence::{
    Evidence, FieldUse, FollowedPointer, SharedLine, Site, Slot, SlotUse, Subject, SubjectKind, ThreadInfo,
    TypeUse,
};
use super::objects::{Found, ObjectVotes, SPAN, grid};
use super::pointers::PointerPaths;
use super::resolve::{Operand, Resolved, Resolver, VariablePart};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use tallyline_timing::TraceCosts;
use tallyline_trace::Trace;
use tallyline_trace::format::{Access, Event};

/// The most different accesses to shared lines that are told apart.
const USES_LIMIT: usize = 1 << 21;

/// The most different accesses to lines near shared ones that are told apart.
const NEAR_USES_LIMIT: usize = 1 << 18;

/// Limits of what [`collect`] gathers: the most shared cache lines, and the share of the run's time below which an
/// instruction is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectLimits {
    /// The most shared lines.
    pub lines: usize,
    /// Instructions with less than one of so many parts of the time are not named.
    pub rare: u64,
}

impl Default for CollectLimits {
    fn default() -> Self {
        Self { lines: 4096, rare: 5_000 }
    }
}

/// An access to a shared line, or one near it: address, size, instruction, thread.
type UseKey = (u64, u8, u32, u32);

/// The numbers of loads and stores of each access.
type Uses = BTreeMap<UseKey, (u64, u64)>;

/// Reads a process's trace and the simulated costs of its instructions, and gathers from them which threads access
/// which types, fields and shared cache lines, and what that costs.
///
/// # Errors
/// An error of the trace's source, or damage of the trace.
pub fn collect(
    trace: &Trace<'_>,
    process: u32,
    line_size: u64,
    costs: &TraceCosts,
    limits: CollectLimits,
    resolver: &mut dyn Resolver,
) -> Result<Evidence, tallyline_trace::Error> {
    let lines = shared_lines(costs, line_size, limits);
    let near = lines_near(&lines);
    let (mut uses, mut near_uses) = (Uses::new(), Uses::new());
    let mut threads = Vec::new();
    // of each instruction: its loads and stores in the whole trace, of which the costs may be those of a part
    let mut traced = vec![(0_u64, 0_u64); costs.instructions().len()];
    each_access(trace, process, |thread, access| {
        if let Some((loads, stores)) = traced.get_mut(access.instruction() as usize) {
            *if access.store() { stores } else { loads } += 1;
        }
        if threads.last() != Some(&thread) && !threads.contains(&thread) {
            threads.push(thread);
        }
        let line = access.address() / line_size;
        let (uses, limit) = match () {
            () if lines.contains(&line) => (&mut uses, USES_LIMIT),
            () if near.contains(&line) => (&mut near_uses, NEAR_USES_LIMIT),
            () => return,
        };
        let key = (access.address(), access.size(), access.instruction(), thread);
        if uses.len() >= limit && !uses.contains_key(&key) {
            return;
        }
        let counts = uses.entry(key).or_default();
        counts.0 += u64::from(!access.store());
        counts.1 += u64::from(access.store());
    })?;
    let mut instructions: Vec<u32> = uses.keys().map(|(_, _, instruction, _)| *instruction).collect();
    let least = costs.time() / limits.rare.max(1);
    let all = costs.instructions().iter().enumerate();
    let worth = all.filter(|(_, cost)| cost.executions() > 0 && cost.time() > least);
    instructions.extend(worth.map(|(index, _)| index as u32));
    instructions.sort_unstable();
    instructions.dedup();
    // what hardly takes time needs no name, and its field no place
    near_uses.retain(|(_, _, instruction, _), _| instructions.binary_search(instruction).is_ok());
    let mut addresses: Vec<u64> = uses.keys().chain(near_uses.keys()).map(|(address, ..)| *address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let resolved = resolver.resolve(&instructions, &addresses);
    let (objects, pointers) = find_objects(trace, process, line_size, &lines, &resolved)?;
    let parts = TraceCosts::PARTS;
    let mut evidence = Evidence {
        line_size,
        threads: threads.into_iter().map(|thread| ThreadInfo { thread, name: String::new() }).collect(),
        cycles: costs.time() / parts,
        cycles_shared: costs.losses().iter().map(|loss| loss.time()).sum::<u64>() / parts,
        ..Evidence::default()
    };
    let mut builder = Builder { resolved, resolver, objects: &objects, site_index: FxHashMap::default() };
    builder.lines(&uses, costs, &mut evidence);
    builder.private_lines(&near_uses, &mut evidence);
    let costs = TracedCosts { costs, traced };
    builder.types(&instructions, &costs, &objects, &mut evidence);
    builder.pointers(pointers, &costs, &mut evidence);
    evidence.subjects = builder.resolved.subjects;
    Ok(evidence)
}

/// Calls a function with each access of a process, thread by thread.
fn each_access(
    trace: &Trace<'_>,
    process: u32,
    mut with: impl FnMut(u32, &Access),
) -> Result<(), tallyline_trace::Error> {
    for thread in trace.threads().iter().filter(|thread| thread.process() == process) {
        for block in thread.blocks() {
            for event in trace.events(block, Vec::new())? {
                if let Event::Access(access) = event? {
                    with(thread.thread(), &access);
                }
            }
        }
    }
    Ok(())
}

/// The lines that cores took from each other, the most costly ones.
fn shared_lines(costs: &TraceCosts, line_size: u64, limits: CollectLimits) -> FxHashSet<u64> {
    let mut by_line: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for loss in costs.losses() {
        let sum = by_line.entry(loss.address() / line_size).or_default();
        sum.0 = sum.0.saturating_add(loss.time());
        sum.1 = sum.1.saturating_add(loss.transfers());
    }
    let mut all: Vec<(u64, (u64, u64))> = by_line.into_iter().collect();
    all.sort_by_key(|(line, cost)| (std::cmp::Reverse(*cost), *line));
    all.truncate(limits.lines);
    all.into_iter().map(|(line, _)| line).collect()
}

/// Returns the lines that an object on one of some lines may have, too, without these lines.
fn lines_near(lines: &FxHashSet<u64>) -> FxHashSet<u64> {
    let around = |line: &u64| line.saturating_sub(SPAN)..=line.saturating_add(SPAN);
    lines.iter().flat_map(around).filter(|line| !lines.contains(line)).collect()
}

/// Finds the objects that instructions access, and the pointers by which code gets from one to another. An instruction
/// whose address is one of several fields' seems to access objects that overlap: those stay that the most instructions
/// agree on. Objects that were in the same memory one after the other overlap as well: all of them stay.
fn find_objects(
    trace: &Trace<'_>,
    process: u32,
    line_size: u64,
    lines: &FxHashSet<u64>,
    resolved: &Resolved,
) -> Result<(Found, PointerPaths), tallyline_trace::Error> {
    let mut votes = ObjectVotes::default();
    let mut pointers = PointerPaths::new(resolved);
    let mut sizes: FxHashMap<u32, u64> = FxHashMap::default();
    let mut run = AccessRun::default();
    each_access(trace, process, |thread, access| {
        let is_first = run.add(thread, access);
        if resolved.operands.contains_key(&access.instruction()) {
            let size = sizes.entry(access.instruction()).or_default();
            *size = run.size().max(*size);
        }
        // the operand begins where the first part does
        if is_first {
            votes.add(access.instruction(), access.address(), resolved);
            pointers.add(thread, access, resolved);
        }
    })?;
    let found = Found { sizes, ..votes.finish(line_size, &|line| lines.contains(&line), resolved) };
    Ok((found, pointers))
}

/// The most bytes of one operand.
const OPERAND_LIMIT: u64 = 64;

/// The accesses of one execution of an instruction, of which each begins where the one before ends: emulators report a
/// vector's load or store in parts.
#[derive(Clone, Copy, Debug, Default)]
struct AccessRun {
    // thread, instruction, time
    execution: (u32, u32, u64),
    start: u64,
    end: u64,
}

impl AccessRun {
    /// Adds an access; `true` if it is the first of an operand.
    fn add(&mut self, thread: u32, access: &Access) -> bool {
        let execution = (thread, access.instruction(), access.now());
        let end = access.address().saturating_add(u64::from(access.size()));
        let goes_on = self.execution == execution && self.end == access.address() && self.size() > 0;
        if goes_on && end - self.start <= OPERAND_LIMIT {
            self.end = end;
            return false;
        }
        *self = Self { execution, start: access.address(), end };
        true
    }

    /// Returns the bytes of the operand so far.
    fn size(&self) -> u64 {
        self.end - self.start
    }
}

/// Resolves accesses of a traced program to types, fields and variables while an [`Evidence`] is built, and adds
/// each instruction to it once.
pub(crate) struct Builder<'a> {
    pub(crate) resolved: Resolved,
    pub(crate) resolver: &'a dyn Resolver,
    pub(crate) objects: &'a Found,
    pub(crate) site_index: FxHashMap<u32, usize>,
}

impl Builder<'_> {
    /// Returns the index in [`Evidence::sites`] of an instruction (given by its index in the trace), which is added
    /// on first use.
    pub(crate) fn site(&mut self, instruction: u32, evidence: &mut Evidence) -> usize {
        if let Some(index) = self.site_index.get(&instruction) {
            return *index;
        }
        let site = self.resolved.sites.get(&instruction).cloned().unwrap_or_default();
        evidence.sites.push(Site { instruction, ..site });
        self.site_index.insert(instruction, evidence.sites.len() - 1);
        evidence.sites.len() - 1
    }

    /// Returns the object that an access belongs to: its type or variable (an index of [`Resolved::subjects`]), its
    /// start address, the path of the accessed field, and the variable's name. Names are empty where they are not
    /// known.
    pub(crate) fn owner(&mut self, address: u64, instruction: u32) -> (usize, u64, String, String) {
        let variable = self.resolved.variables.get(&address).cloned();
        let name = variable.as_ref().map_or_else(String::new, |variable| variable.variable.clone());
        let around = self.objects.map.around(address);
        if let Some(operand) = self.resolved.operands.get(&instruction).cloned() {
            let base = address.wrapping_sub(operand.offset);
            // a part of a larger object is that object's; what begins where no object does was another field
            return match around {
                Some((start, subject)) if !self.is_own(start, subject, &operand, base) => {
                    (subject, start, self.member(subject, address.wrapping_sub(start)), name)
                }
                _ => match variable.filter(|part| self.is_larger(part, &operand, base)) {
                    Some(part) => (part.subject, part.base, part.field, name),
                    None => (operand.subject, base, operand.field, name),
                },
            };
        }
        // what the library's own code accesses by a pointer to a number is in an object that other code has the type of
        let of_library = || self.objects.library.around(address).filter(|_| variable.is_none());
        match (around.or_else(of_library), variable) {
            (Some((start, subject)), _) => {
                (subject, start, self.member(subject, address.wrapping_sub(start)), name)
            }
            (None, Some(part)) => (part.subject, part.base, part.field, name),
            (None, None) => {
                let unknown = |subject: &Subject| subject.kind == SubjectKind::Unknown;
                let index = self.resolved.subjects.iter().position(unknown).unwrap_or_else(|| {
                    let subject = Subject { kind: SubjectKind::Unknown, ..Subject::default() };
                    self.resolved.subjects.push(subject);
                    self.resolved.subjects.len() - 1
                });
                (index, address, String::new(), name)
            }
        }
    }

    /// Returns `true` if the operand of an access, which begins at `base`, is no part of the largest object at its address:
    /// it is that object, or another one that had the memory before or after.
    fn is_own(&self, start: u64, subject: usize, operand: &Operand, base: u64) -> bool {
        if subject == operand.subject {
            return start == base || self.objects.has(subject, base);
        }
        let of = |index: usize| self.resolved.subjects.get(index);
        let (Some(outer), Some(inner)) = (of(subject), of(operand.subject)) else { return false };
        let can_be_part = base.checked_sub(start).is_some_and(|offset| outer.can_hold(offset, inner.size));
        start != base && !can_be_part && !inner.is_library_type && self.objects.has(operand.subject, base)
    }

    /// Returns `true` if the element of a variable is an object of the program that contains an instruction's operand,
    /// which begins at `base`: code that adds to a counter's own type does not know the object around it.
    fn is_larger(&self, part: &VariablePart, operand: &Operand, base: u64) -> bool {
        let of = |index: usize| self.resolved.subjects.get(index);
        let (Some(whole), Some(inner)) = (of(part.subject), of(operand.subject)) else { return false };
        let end = base.saturating_add(inner.size);
        whole.kind == SubjectKind::Record
            && !whole.is_library_type
            && whole.size > inner.size
            && (part.base..part.base.saturating_add(whole.size)).contains(&base)
            && end <= part.base.saturating_add(whole.size)
    }

    /// Returns the name of the member at an offset.
    fn member(&self, subject: usize, offset: u64) -> String {
        let path = self.resolver.field(subject, offset);
        if !path.is_empty() {
            return path;
        }
        let of = self.resolved.subjects.get(subject);
        let member = of.and_then(|subject| subject.members.get(subject.member_at(offset)?));
        member.map_or_else(String::new, |member| member.name.clone())
    }

    fn lines(&mut self, uses: &Uses, costs: &TraceCosts, evidence: &mut Evidence) {
        let mut losses: FxHashMap<(u64, u32), (u64, u64)> = FxHashMap::default();
        for loss in costs.losses() {
            losses.insert((loss.address(), loss.instruction()), (loss.time(), loss.transfers()));
        }
        evidence.lines = self.slots(uses, losses, |_| true, evidence);
    }

    /// Adds the other lines of the objects that are on shared lines.
    fn private_lines(&mut self, uses: &Uses, evidence: &mut Evidence) {
        let objects = evidence.objects();
        let is_of_object = |object: (usize, u64)| objects.contains(&object);
        evidence.private_lines = self.slots(uses, FxHashMap::default(), is_of_object, evidence);
    }

    /// Returns the lines of accesses to objects (type or variable, and start) that a condition admits. `losses` are
    /// times and transfers by address and instruction.
    fn slots(
        &mut self,
        uses: &Uses,
        mut losses: FxHashMap<(u64, u32), (u64, u64)>,
        admits: impl Fn((usize, u64)) -> bool,
        evidence: &mut Evidence,
    ) -> Vec<SharedLine> {
        let mut by_line: BTreeMap<u64, BTreeMap<(u64, usize, u64), Slot>> = BTreeMap::new();
        for (key, (reads, writes)) in uses {
            let (address, size, instruction, thread) = *key;
            let (subject, base, field, variable) = self.owner(address, instruction);
            if !admits((subject, base)) {
                continue;
            }
            let site = self.site(instruction, evidence);
            let line = by_line.entry(address / evidence.line_size).or_default();
            let slot = line.entry((address, subject, base)).or_insert_with(|| Slot {
                subject,
                base,
                offset: address.wrapping_sub(base),
                field,
                variable,
                ..Slot::default()
            });
            slot.size = slot.size.max(u64::from(size));
            slot.uses.push(SlotUse { thread, site, reads: *reads, writes: *writes });
            if let Some((time, transfers)) = losses.remove(&(address, instruction)) {
                slot.lost += time / TraceCosts::PARTS;
                slot.transfers += transfers;
            }
        }
        let line_size = evidence.line_size;
        by_line
            .into_iter()
            .map(|(line, slots)| SharedLine {
                address: line * line_size,
                slots: slots.into_values().collect(),
            })
            .collect()
    }

    fn types(
        &mut self,
        instructions: &[u32],
        costs: &TracedCosts<'_>,
        objects: &Found,
        evidence: &mut Evidence,
    ) {
        let mut heat = HeatByFunction::default();
        let mut by_type: BTreeMap<usize, TypeUse> = BTreeMap::new();
        let mut hottest: BTreeMap<(usize, u64), Vec<(usize, u64)>> = BTreeMap::new();
        for instruction in instructions {
            let Some(operand) = self.resolved.operands.get(instruction).cloned() else { continue };
            let Some(cost) = costs.costs.instructions().get(*instruction as usize) else { continue };
            let site = self.site(*instruction, evidence);
            let size = objects.sizes.get(instruction).copied().unwrap_or(0);
            let count = objects.starts.get(&operand.subject).map_or(0, Vec::len) as u64;
            if !costs.initialises(*instruction, count, size) {
                let function = evidence.sites[site].function.clone();
                heat.add(operand.subject, function, operand.offset, costs.of_trace(*instruction));
            }
            let used = by_type.entry(operand.subject).or_insert_with(|| {
                let starts = objects.starts.get(&operand.subject);
                let (first_object, stride) = starts.map_or((0, 0), |starts| grid(starts));
                TypeUse {
                    subject: operand.subject,
                    objects: starts.map_or(0, |starts| starts.len() as u64),
                    first_object,
                    stride,
                    ..TypeUse::default()
                }
            });
            used.instructions.push((*instruction, operand.offset));
            let at = match used.fields.binary_search_by_key(&operand.offset, |field| field.offset) {
                Ok(at) => at,
                Err(at) => {
                    used.fields.insert(
                        at,
                        FieldUse {
                            offset: operand.offset,
                            field: operand.field.clone(),
                            ..FieldUse::default()
                        },
                    );
                    at
                }
            };
            let field = &mut used.fields[at];
            let accesses: u64 = cost.sources().iter().sum();
            field.size = field.size.max(size);
            field.accesses += accesses;
            field.misses += accesses - cost.sources()[0];
            field.cycles += cost.time() / TraceCosts::PARTS;
            hottest.entry((operand.subject, operand.offset)).or_default().push((site, cost.executions()));
        }
        for ((subject, offset), heat) in heat.by_field() {
            let Some(used) = by_type.get_mut(&subject) else { continue };
            if let Ok(at) = used.fields.binary_search_by_key(&offset, |field| field.offset) {
                used.fields[at].heat = heat / TraceCosts::PARTS;
            }
        }
        for ((subject, offset), mut sites) in hottest {
            sites.sort_by_key(|(site, count)| (std::cmp::Reverse(*count), *site));
            let Some(used) = by_type.get_mut(&subject) else { continue };
            if let Ok(at) = used.fields.binary_search_by_key(&offset, |field| field.offset) {
                sites.truncate(16);
                used.fields[at].sites = sites;
            }
        }
        evidence.types = by_type.into_values().collect();
    }

    /// Returns the number of a pointer's targets that begin a larger object, as a base does, or are a part of the object
    /// with the pointer.
    fn parts(&self, pointer: &FollowedPointer) -> u64 {
        let size_of = |subject: usize| self.resolved.subjects.get(subject).map_or(0, |subject| subject.size);
        let (size, of_holder) = (size_of(pointer.target), size_of(pointer.subject));
        let larger: Vec<&Vec<u64>> = self
            .objects
            .starts
            .iter()
            .filter(|(subject, _)| **subject != pointer.target && size_of(**subject) > size)
            .map(|(_, starts)| starts)
            .collect();
        let is_part = |(target, slot): &(&u64, &u64)| {
            let holder = slot.wrapping_sub(pointer.offset);
            (holder..holder.saturating_add(of_holder)).contains(*target)
                || larger.iter().any(|starts| starts.binary_search(target).is_ok())
        };
        pointer.targets.iter().filter(is_part).count() as u64
    }

    /// Adds the pointers that were followed, with the cost of what is behind them.
    fn pointers(&mut self, paths: PointerPaths, costs: &TracedCosts<'_>, evidence: &mut Evidence) {
        let mut pointers = paths.finish();
        for pointer in &mut pointers {
            pointer.holders = self.objects.starts.get(&pointer.subject).cloned().unwrap_or_default();
            pointer.parts = self.parts(pointer);
            let indexed =
                pointer.loads.iter().map(|(instruction, count)| (self.site(*instruction, evidence), *count));
            pointer.load_sites = indexed.collect();
            for field in &mut pointer.fields {
                for (instruction, loads, stores) in &field.instructions {
                    let (cycles, misses) = costs.of_part(*instruction, loads + stores);
                    field.cycles += cycles / TraceCosts::PARTS;
                    field.misses += misses;
                    field.sites.push((self.site(*instruction, evidence), *loads, *stores));
                    let operand = self.objects.sizes.get(instruction).copied().unwrap_or(0);
                    field.size = field.size.max(operand);
                }
            }
        }
        evidence.pointers = pointers;
    }
}

/// The costs of instructions by the simulation of a part of each thread, with their accesses in the whole trace.
struct TracedCosts<'c> {
    costs: &'c TraceCosts,
    /// By instruction: loads and stores.
    traced: Vec<(u64, u64)>,
}

/// The most bytes of an access; an operand with more is traced in parts.
const PART: u64 = 8;

impl TracedCosts<'_> {
    /// Returns an instruction's accesses in the whole trace, and the time that they take if the others cost what those
    /// of the simulation do. Of a thread that only initialises, the simulation has as many as of one that works all the
    /// time.
    fn of_trace(&self, instruction: u32) -> (u64, u64) {
        let at = instruction as usize;
        let Some(cost) = self.costs.instructions().get(at) else { return (0, 0) };
        let simulated: u64 = cost.sources().iter().sum();
        let (loads, stores) = self.traced.get(at).copied().unwrap_or_default();
        let traced = (loads + stores).max(simulated);
        let time = u128::from(cost.time()) * u128::from(traced) / u128::from(simulated.max(1));
        (traced, u64::try_from(time).unwrap_or(u64::MAX))
    }

    /// Returns the simulated time and misses of `count` of an instruction's traced accesses, their part of all.
    fn of_part(&self, instruction: u32, count: u64) -> (u64, u64) {
        let at = instruction as usize;
        let Some(cost) = self.costs.instructions().get(at) else { return (0, 0) };
        let (loads, stores) = self.traced.get(at).copied().unwrap_or_default();
        let simulated: u64 = cost.sources().iter().sum();
        let part = |of: u64| {
            let scaled = u128::from(of) * u128::from(count) / u128::from((loads + stores).max(count).max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        (part(cost.time()), part(simulated - cost.sources().first().copied().unwrap_or(0)))
    }

    /// Returns `true` if an instruction only stores, and at most once to each of `objects` operands of `size` bytes.
    fn initialises(&self, instruction: u32, objects: u64, size: u64) -> bool {
        let (loads, stores) = self.traced.get(instruction as usize).copied().unwrap_or_default();
        loads == 0 && stores <= objects.saturating_mul(size.div_ceil(PART).max(1))
    }
}

/// The accesses and the time of functions on types, by field.
#[derive(Default)]
struct HeatByFunction(BTreeMap<(usize, String), FunctionHeat>);

/// The time of one function on a type, with its accesses by the offset of the field.
#[derive(Default)]
struct FunctionHeat {
    time: u64,
    accesses: BTreeMap<u64, u64>,
}

impl HeatByFunction {
    /// Adds accesses of a function to the field at an offset of a type, with their time.
    fn add(&mut self, subject: usize, function: String, offset: u64, (accesses, time): (u64, u64)) {
        let of = self.0.entry((subject, function)).or_default();
        of.time = of.time.saturating_add(time);
        *of.accesses.entry(offset).or_default() += accesses;
    }

    /// Returns the heat of each field, by type and offset.
    fn by_field(&self) -> BTreeMap<(usize, u64), u64> {
        let mut heat: BTreeMap<(usize, u64), u64> = BTreeMap::new();
        for ((subject, _), of) in &self.0 {
            let all: u64 = of.accesses.values().sum();
            for (offset, accesses) in &of.accesses {
                let part = u128::from(of.time) * u128::from(*accesses) / u128::from(all.max(1));
                let field = heat.entry((*subject, *offset)).or_default();
                *field = field.saturating_add(u64::try_from(part).unwrap_or(u64::MAX));
            }
        }
        heat
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::MemberInfo;

    #[test]
    fn what_initialises_in_little_time_is_cold_and_what_lies_on_a_hot_line_is_not() {
        let mut heat = HeatByFunction::default();
        for offset in [0, 8, 64, 128] {
            heat.add(3, "initialise".into(), offset, (1000, 10));
        }
        // both fields lie on one line, which the first waits for
        heat.add(3, "look_up".into(), 0, (5000, 99_000));
        heat.add(3, "look_up".into(), 8, (5000, 1000));
        let by_field: Vec<_> = heat.by_field().into_iter().collect();
        assert_eq!(by_field, [((3, 0), 50_010), ((3, 8), 50_010), ((3, 64), 10), ((3, 128), 10)]);
    }

    #[test]
    fn what_stores_once_to_each_object_initialises() {
        let costs = TraceCosts::average(&[]);
        let traced = vec![(0, 100), (0, 101), (1, 99), (0, 200)];
        let costs = TracedCosts { costs: &costs, traced };
        assert!(costs.initialises(0, 100, 8));
        assert!(!costs.initialises(1, 100, 8), "some objects twice");
        assert!(!costs.initialises(2, 100, 8), "it loads");
        assert!(costs.initialises(3, 100, 16) && !costs.initialises(3, 100, 8), "in two parts");
    }

    #[test]
    fn parts_of_a_vector_are_one_operand() {
        let mut run = AccessRun::default();
        let mut add = |address, size, now| {
            let is_first = run.add(1, &Access::new(7, address, size, false, now));
            (is_first, run.size())
        };
        assert_eq!(add(0x1000, 8, 5), (true, 8));
        assert_eq!(add(0x1008, 8, 5), (false, 16));
        assert_eq!(add(0x1010, 8, 6), (true, 8), "another execution");
        assert_eq!(add(0x2000, 8, 6), (true, 8), "another operand");
    }

    #[test]
    fn an_access_to_what_cannot_be_a_part_of_an_object_is_to_its_own_field() {
        let member = |offset, size| MemberInfo { offset, size, ..MemberInfo::default() };
        let record =
            |name: &str, size, members| Subject { name: name.into(), size, members, ..Subject::default() };
        let client = record("client", 64, vec![member(0, 8), member(8, 8), member(16, 24), member(40, 24)]);
        let node = record("node", 24, vec![member(0, 8), member(8, 8), member(16, 8)]);
        let mut resolved = Resolved { subjects: vec![client, node], ..Resolved::default() };
        resolved.operands.insert(1, Operand { subject: 0, offset: 8, field: "flags".into() });
        resolved.operands.insert(2, Operand { subject: 1, offset: 8, field: "next".into() });
        let mut votes = ObjectVotes::default();
        votes.add(1, 0x1008, &resolved);
        for node in [0x1008, 0x1010] {
            votes.add(2, node + 8, &resolved);
        }
        let objects = votes.finish(64, &|_| true, &resolved);
        assert_eq!(objects.starts[&1], [0x1008]);
        let mut builder =
            Builder { resolved, resolver: &NoNames, objects: &objects, site_index: FxHashMap::default() };
        assert_eq!(builder.owner(0x1010, 2), (1, 0x1008, "next".into(), String::new()));
        assert_eq!(builder.owner(0x1018, 2).0, 0, "it is in one member");
    }

    struct NoNames;

    impl Resolver for NoNames {
        fn resolve(&mut self, _: &[u32], _: &[u64]) -> Resolved {
            Resolved::default()
        }

        fn field(&self, _: usize, _: u64) -> String {
            String::new()
        }
    }

    #[test]
    fn what_adds_to_a_number_of_a_type_of_its_own_adds_to_the_object_around_it() {
        let record = |name: &str, size| Subject { name: name.into(), size, ..Subject::default() };
        // an instruction that knows a `Count`, at addresses in `totals` and in memory that no variable has
        let mut resolved =
            Resolved { subjects: vec![record("Count", 8), record("Totals", 24)], ..Resolved::default() };
        resolved.operands.insert(7, Operand { subject: 0, offset: 0, field: "value".into() });
        let part =
            VariablePart { subject: 1, base: 0x1000, field: "hits.value".into(), variable: "totals".into() };
        resolved.variables.insert(0x1010, part);
        let objects = Found::default();
        let mut builder =
            Builder { resolved, resolver: &NoNames, objects: &objects, site_index: FxHashMap::default() };
        assert_eq!(builder.owner(0x1010, 7), (1, 0x1000, "hits.value".into(), "totals".into()));
        assert_eq!(builder.owner(0x2010, 7), (0, 0x2010, "value".into(), String::new()));
        builder.resolved.subjects[1].is_library_type = true;
        assert_eq!(builder.owner(0x1010, 7), (0, 0x1010, "value".into(), "totals".into()));
    }

    #[test]
    fn what_has_no_type_of_its_own_is_in_the_library_object_around_it() {
        let block =
            Subject { name: "std::block".into(), size: 16, is_library_type: true, ..Subject::default() };
        let mut resolved = Resolved { subjects: vec![block], ..Resolved::default() };
        resolved.operands.insert(7, Operand { subject: 0, offset: 8, field: "uses".into() });
        let mut votes = ObjectVotes::default();
        votes.add(7, 0x1008, &resolved);
        let objects = votes.finish(64, &|_| true, &resolved);
        let mut builder =
            Builder { resolved, resolver: &NoNames, objects: &objects, site_index: FxHashMap::default() };
        // instruction 9 is a decrement through a pointer to an int
        assert_eq!(builder.owner(0x1008, 9), (0, 0x1000, String::new(), String::new()));
        assert_eq!(builder.owner(0x1008, 7), (0, 0x1000, "uses".into(), String::new()));
        let (unknown, at, ..) = builder.owner(0x1010, 9);
        assert_eq!((builder.resolved.subjects[unknown].kind, at), (SubjectKind::Unknown, 0x1010));
    }

    #[test]
    fn an_access_to_an_object_that_overlaps_an_earlier_one_is_to_its_own_field() {
        let record = Subject { name: "client".into(), size: 64, ..Subject::default() };
        let mut resolved = Resolved { subjects: vec![record], ..Resolved::default() };
        let mut votes = ObjectVotes::default();
        let names = ["id", "flags", "next", "used", "slots[0]"];
        for (instruction, name) in (0..).zip(names) {
            let offset = 8 * u64::from(instruction);
            resolved.operands.insert(instruction, Operand { subject: 0, offset, field: name.into() });
            for start in [0x1000, 0x1028] {
                votes.add(instruction, start + offset, &resolved);
            }
        }
        // code that goes through the array
        votes.add(4, 0x1000 + 40, &resolved);
        let objects = votes.finish(64, &|_| true, &resolved);
        assert_eq!(objects.starts[&0], [0x1000, 0x1028]);
        let mut builder =
            Builder { resolved, resolver: &NoNames, objects: &objects, site_index: FxHashMap::default() };
        assert_eq!(builder.owner(0x1030, 1), (0, 0x1028, "flags".into(), String::new()));
        assert_eq!(builder.owner(0x1008, 1), (0, 0x1000, "flags".into(), String::new()));
        let (_, start, ..) = builder.owner(0x1028, 4);
        assert_eq!(start, 0x1000, "an element of the array");
    }
}
