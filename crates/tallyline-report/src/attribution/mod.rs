//! Charging samples of imprecise events to the access that stalled.
//!
//! The clock's interrupt is taken when an instruction retires, and the sample has the address of the next one:
//! what took long is an instruction that control came from. That is one instruction in the middle of a block,
//! one of several at a join, and both halves of a pair that the CPU retires as one (`skid::fusion`). Counters without
//! precision may be further behind (`skid::shift`). Of several
//! those are left out that cannot have stalled (`candidates`); between what remains samples are divided.

mod calls;
mod candidates;
mod itself;
mod lines;

use super::skid::FusionRules;
pub use super::skid::{CallCounts, EventShift, PairRule, Rule, RuleSource};
pub(super) use calls::Calls;

use super::answers::{All, Answers};
use super::binaries::Binaries;
use super::index::PlaceId;
use super::last_branches::{LastBranch, LastBranchCounts};
use super::places::{Place, PlaceKind};
use super::samples::{Charges, SampleGroup, Samples};
use super::skid::Skid;
use super::skid::fusion::PairCounts;
use super::skid::shift::{self, SHIFTS, ShiftCounts};
use calls::{Charging, Entered, InFunction};
use candidates::{Candidates, FunctionSamples, Origin};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;
use tallyline_inference::Outcome;
use tallyline_inference::code::{Body, FusiblePair};
use tallyline_perf_data::spaces::DsoId;

/// The origin that samples at one address are charged to, with its share of them.
struct Share {
    origin: Origin,
    share: f64,
}

/// The verdict on one address.
struct Verdict {
    rule: Rule,
    shares: Vec<Share>,
}

/// Samples of imprecise events in one function of a program.
struct Sampled {
    dso: DsoId,
    entry: u64,
    // samples by address
    counts: FxHashMap<u64, u64>,
    // the newest entries of their branch stacks, by address, with how many samples have each
    branches: FxHashMap<u64, Vec<(LastBranch, u64)>>,
    // those of counters, by event
    counters: FxHashMap<u32, FxHashMap<u64, u64>>,
}

/// The analysis of one function with samples: the candidates that they may be charged to, and what they say of the
/// machine.
struct View<'s> {
    dso: DsoId,
    function: &'s Sampled,
    candidates: Vec<Candidates>,
    pairs: PairCounts,
    shifts: FxHashMap<u32, ShiftCounts>,
    // addresses of samples of counters, and what they stand for if they are so many instructions behind
    moved: Vec<((u64, u8), u64)>,
    calls: InFunction,
}

/// The verdicts on addresses, and the addresses that samples of counters stand for.
#[derive(Default)]
struct Verdicts {
    by_address: FxHashMap<(DsoId, u64), Verdict>,
    moved: FxHashMap<(DsoId, u64, u8), u64>,
}

/// Charges samples of imprecise events to what stalled.
pub(super) fn attribute(
    samples: &mut Samples,
    binaries: &Binaries,
    answers: &All,
    calls: &Calls,
    branches: &LastBranchCounts,
) -> Charges {
    let sampled = sampled(samples, answers, branches);
    let views: Vec<View<'_>> =
        sampled.par_iter().filter_map(|function| view(function, binaries, answers, calls)).collect();
    let mut counts = PairCounts::default();
    let mut shifts: FxHashMap<u32, ShiftCounts> = FxHashMap::default();
    for view in &views {
        counts.add(&view.pairs);
        view.shifts.iter().for_each(|(event, counts)| shifts.entry(*event).or_default().add(counts));
    }
    let rules = FusionRules::new(samples.info.cpu_id.as_deref(), &counts);
    let mut verdicts = Verdicts::default();
    for view in &views {
        let is_fused = |pair: &FusiblePair| rules.is_fused(pair);
        let table = answers.get(&view.dso).and_then(|answers| answers.as_ref().ok()).map(Answers::table);
        let outcome = |origin| match origin {
            Origin::Instruction(address) => table?.outcome(address),
            Origin::SecondOperand(address) => table?.second_outcome(address),
            Origin::CallOrReturn | Origin::IndirectCall => None,
        };
        for candidates in &view.candidates {
            if let Some((rule, shares)) = candidates.decide(&is_fused, &outcome) {
                let shares = shares.into_iter().map(|(origin, share)| Share { origin, share }).collect();
                verdicts.by_address.insert((view.dso, candidates.address()), Verdict { rule, shares });
            }
        }
        verdicts.moved.extend(view.moved.iter().map(|((at, shift), to)| ((view.dso, *at, *shift), *to)));
    }
    let functions: Vec<_> = views.iter().map(|view| (view.function, &view.calls)).collect();
    for (at, entered) in calls::entered(samples, binaries, calls, &functions) {
        let (rule, origin) = match entered {
            Entered::Assumed(address) => (Rule::AssumedCall, Origin::Instruction(address)),
            Entered::Unknown => (Rule::IndirectCall, Origin::IndirectCall),
        };
        verdicts.by_address.insert(at, Verdict { rule, shares: vec![Share { origin, share: 1.0 }] });
    }
    let mut shifts: Vec<_> = shifts.iter().map(|(event, counts)| counts.decide(*event)).collect();
    shifts.sort_unstable_by_key(|shift| shift.event);
    let charges = Charges { fusion: rules, shifts, ..Charges::default() };
    charge(samples, charges, answers, calls, &verdicts)
}

/// Groups samples of imprecise events by the function that they are in.
fn sampled(samples: &Samples, answers: &All, branches: &LastBranchCounts) -> Vec<Sampled> {
    let mut by_place: Vec<u64> = vec![0; samples.places.len()];
    let mut of_counters: FxHashMap<(PlaceId, u32), u64> = FxHashMap::default();
    for group in samples.groups.iter().filter(|group| !samples.is_precise(group)) {
        by_place[group.place.position()] += group.samples;
        if samples.info.events.get(group.event as usize).is_some_and(|event| event.is_counter) {
            *of_counters.entry((group.place, group.event)).or_default() += group.samples;
        }
    }
    let mut by_function: FxHashMap<(DsoId, u64), Sampled> = FxHashMap::default();
    let function = |place: PlaceId| {
        let (dso, address) = samples.linked(place);
        let dso = dso?;
        let answers = answers.get(&dso)?.as_ref().ok()?;
        Some(((dso, entry(answers, address)?), address))
    };
    for (place, samples) in (0..).map(PlaceId::of).zip(by_place).filter(|(_, samples)| *samples > 0) {
        let Some(((dso, entry), address)) = function(place) else { continue };
        let new = || Sampled {
            dso,
            entry,
            counts: FxHashMap::default(),
            branches: FxHashMap::default(),
            counters: FxHashMap::default(),
        };
        let sampled = by_function.entry((dso, entry)).or_insert_with(new);
        *sampled.counts.entry(address).or_default() += samples;
    }
    for ((place, event), samples) in of_counters {
        let Some((key, address)) = function(place) else { continue };
        if let Some(sampled) = by_function.get_mut(&key) {
            *sampled.counters.entry(event).or_default().entry(address).or_default() += samples;
        }
    }
    for ((place, last), samples) in branches {
        let Some((key, address)) = function(*place) else { continue };
        if let Some(sampled) = by_function.get_mut(&key) {
            sampled.branches.entry(address).or_default().push((*last, *samples));
        }
    }
    let mut all: Vec<Sampled> = by_function.into_values().collect();
    all.sort_unstable_by_key(|function| (function.dso, function.entry));
    all
}

fn entry(answers: &Answers, address: u64) -> Option<u64> {
    let ranges: &[Range<u64>] = answers.table().function_at(address)?.ranges();
    ranges.first().map(|range| range.start)
}

/// Decodes a function, and finds where its samples may come from.
fn view<'s>(function: &'s Sampled, binaries: &Binaries, answers: &All, calls: &Calls) -> Option<View<'s>> {
    let program = binaries.get(function.dso)?;
    let answers = answers.get(&function.dso)?.as_ref().ok()?;
    let ranges = &answers.table().function_at(function.entry)?.ranges();
    let decoded = match &ranges[..] {
        [only] => calls.body(function.dso, only),
        _ => None,
    };
    let decode = || Arc::new(Body::of_function(&program.image, ranges));
    let body = &*decoded.unwrap_or_else(decode);
    let samples = FunctionSamples::new(body, program.image.machine(), &function.counts)
        .with_branches(&function.branches);
    let mut pairs = PairCounts::default();
    let mut candidates: Vec<Candidates> = Vec::with_capacity(function.counts.len());
    for address in function.counts.keys() {
        candidates.extend(samples.candidates(*address, &mut pairs));
    }
    let (mut shifts, mut moved) = (FxHashMap::default(), Vec::new());
    let mut known: FxHashSet<u64> = FxHashSet::default();
    for (event, counts) in &function.counters {
        shifts.insert(*event, shift::count(body, samples.stack_pointer(), counts));
        for (address, by) in counts.keys().flat_map(|address| (2..SHIFTS).map(move |by| (*address, by))) {
            let Some(to) = shift::as_if_one(body, address, by) else { continue };
            moved.push(((address, by as u8), to));
            if !function.counts.contains_key(&to) && known.insert(to) {
                candidates.extend(samples.candidates(to, &mut pairs));
            }
        }
    }
    let calls = InFunction::find(body, function.entry, &function.counts, &samples);
    Some(View { dso: function.dso, function, candidates, pairs, shifts, moved, calls })
}

/// The places that samples at one place are charged to, and what each still has to get.
struct Division {
    // place, share, and how many samples it got less its share of all
    parts: Vec<(PlaceId, f64, f64)>,
}

impl Division {
    /// Gives so many samples to parts, whole ones, such that over all samples each has its share.
    fn give(&mut self, samples: u64) -> Vec<(PlaceId, u64)> {
        let mut given: Vec<(PlaceId, u64)> = Vec::with_capacity(self.parts.len());
        let mut left = samples;
        for (place, share, surplus) in &mut self.parts {
            let due = *share * samples as f64 - *surplus;
            let whole = (due.max(0.0).floor() as u64).min(left);
            *surplus += whole as f64 - *share * samples as f64;
            left -= whole;
            given.push((*place, whole));
        }
        // what is left goes one by one to those that lack most
        while left > 0 {
            let Some(index) =
                (0..self.parts.len()).min_by(|a, b| self.parts[*a].2.total_cmp(&self.parts[*b].2))
            else {
                break;
            };
            // no part lacks more than one here, but for rounding
            let step = if left > self.parts.len() as u64 { left } else { 1 };
            self.parts[index].2 += step as f64;
            given[index].1 += step;
            left -= step;
        }
        given.retain(|(_, samples)| *samples > 0);
        given
    }
}

/// Charges samples as the verdicts on their addresses say.
fn charge(
    samples: &mut Samples,
    mut charges: Charges,
    answers: &All,
    calls: &Calls,
    verdicts: &Verdicts,
) -> Charges {
    let mut charging = Charging::new(calls);
    let mut made: FxHashMap<Place, PlaceId> = FxHashMap::default();
    let mut by_event: Vec<u8> = vec![1; samples.info.events.len()];
    for shift in &charges.shifts {
        if let Some(by) = by_event.get_mut(shift.event as usize) {
            *by = shift.instructions;
        }
    }
    // of samples that are further behind than one instruction
    let mut further: FxHashMap<(PlaceId, u8), Option<Division>> = FxHashMap::default();
    // by the place of the sample
    let mut divisions: Vec<Option<Option<Division>>> = Vec::new();
    divisions.resize_with(samples.places.len(), || None);
    let (mut moved, mut divided) = (0, 0);
    // groups that become several
    let mut split: FxHashMap<u32, Vec<(PlaceId, u64)>> = FxHashMap::default();
    for index in 0..samples.groups.len() {
        let group = samples.groups[index];
        if samples.is_precise(&group) {
            continue;
        }
        let (mut given, of_calls) = charging.give(samples, &mut charges, index as u32, answers, &mut made);
        divided += of_calls;
        let left = group.samples - given.iter().map(|(_, n)| n).sum::<u64>().min(group.samples);
        if left > 0 {
            let mut divide =
                |shift: u8| division(samples, &mut charges, verdicts, (group.place, shift), &mut made);
            let division = match by_event.get(group.event as usize) {
                Some(0) => continue,
                Some(shift @ 2..) => further.entry((group.place, *shift)).or_insert_with(|| divide(*shift)),
                _ => divisions[group.place.position()].get_or_insert_with(|| divide(1)),
            };
            match division {
                Some(division) => {
                    match charges.rules.get(&group.place) {
                        Some(Rule::AssumedCall) => charges.calls.assumed += left,
                        Some(Rule::IndirectCall) => charges.calls.unknown += left,
                        _ => {}
                    }
                    if let ([(only, ..)], true) = (&division.parts[..], given.is_empty()) {
                        samples.groups[index].charged = *only;
                        moved += if *only == group.place { 0 } else { left };
                        continue;
                    }
                    given.extend(division.give(left));
                    // what each sample says of itself is not left open
                    let is_open = charges.rules.get(&group.place) != Some(&Rule::BranchStack);
                    divided += if division.parts.len() > 1 && is_open { left } else { 0 };
                }
                None if given.is_empty() => continue,
                None => given.push((group.place, left)),
            }
        }
        let [(first, _), others @ ..] = &given[..] else { continue };
        samples.groups[index].charged = *first;
        moved += given.iter().filter(|(place, _)| *place != group.place).map(|(_, n)| n).sum::<u64>();
        if !others.is_empty() {
            split.insert(index as u32, given);
        }
    }
    split_groups(samples, &split);
    charges.skid = Skid::Corrected { samples: moved, divided };
    charges
}

/// Returns the places that samples at a place are charged to; none for the place itself.
fn division(
    samples: &mut Samples,
    charges: &mut Charges,
    verdicts: &Verdicts,
    (id, shift): (PlaceId, u8),
    made: &mut FxHashMap<Place, PlaceId>,
) -> Option<Division> {
    let (place, address) = (*samples.places.get(id), samples.places.address(id));
    let dso = place.dso?;
    let by_shift = || verdicts.moved.get(&(dso, address, shift)).copied();
    let at = if shift > 1 { by_shift()? } else { address };
    let verdict = verdicts.by_address.get(&(dso, at))?;
    let mut parts = Vec::with_capacity(verdict.shares.len());
    for Share { origin, share } in &verdict.shares {
        let (kind, before) = match origin {
            Origin::Instruction(before) => (PlaceKind::Instruction, *before),
            Origin::SecondOperand(before) => (PlaceKind::SecondOperand, *before),
            Origin::CallOrReturn => (PlaceKind::CallOrReturn, address),
            Origin::IndirectCall => (PlaceKind::IndirectCall, address),
        };
        let offset = place.offset.wrapping_sub(address.wrapping_sub(before));
        let charged = match *origin == Origin::Instruction(address) {
            true => id,
            false => {
                let place = Place { offset, kind, ..place };
                *made.entry(place).or_insert_with(|| samples.places.push(place, before))
            }
        };
        parts.push((charged, *share, 0.0));
    }
    charges.rules.insert(id, verdict.rule);
    Some(Division { parts })
}

/// Charges samples of stores, as the hardware says, to the second operands of string moves: the first one is read.
pub(super) fn charge_second_operands(samples: &mut Samples, answers: &All) {
    let has_seconds = |answers: &Result<Answers, String>| {
        answers.as_ref().is_ok_and(|answers| answers.table().has_second_operands())
    };
    if !samples.info.events.iter().any(|event| event.has_source) || !answers.values().any(has_seconds) {
        return;
    }
    let Samples { groups, places, .. } = samples;
    let mut made: FxHashMap<PlaceId, Option<PlaceId>> = FxHashMap::default();
    for group in groups {
        if !group.source.is_some_and(|source| source.is_store() && !source.is_load()) {
            continue;
        }
        let second = *made.entry(group.charged).or_insert_with(|| {
            let (place, address) = (*places.get(group.charged), places.address(group.charged));
            let table = answers.get(&place.dso?)?.as_ref().ok()?.table();
            let is_read =
                |outcome: Outcome| matches!(outcome, Outcome::Typed(typed) if !typed.access().writes());
            table.second_outcome(address).filter(|second| !is_read(*second))?;
            Some(places.push(Place { kind: PlaceKind::SecondOperand, ..place }, address))
        });
        group.charged = second.unwrap_or(group.charged);
    }
}

/// Makes several groups of those whose samples are charged to several places.
fn split_groups(samples: &mut Samples, split: &FxHashMap<u32, Vec<(PlaceId, u64)>>) {
    let mut order: Vec<u32> = split.keys().copied().collect();
    order.sort_unstable();
    // by group: who gets its records with registers, one after the other
    let mut heirs: FxHashMap<u32, Vec<(u32, u64)>> = FxHashMap::default();
    for index in order {
        let given = &split[&index];
        let whole = samples.groups[index as usize];
        let mut period = whole.period;
        let mut own = Vec::with_capacity(given.len());
        for (position, (charged, count)) in given.iter().enumerate() {
            let part = if position + 1 == given.len() {
                period
            } else {
                let part = u128::from(whole.period) * u128::from(*count) / u128::from(whole.samples.max(1));
                u64::try_from(part).unwrap_or(period).min(period)
            };
            period -= part;
            let group = SampleGroup { charged: *charged, samples: *count, period: part, ..whole };
            if position == 0 {
                samples.groups[index as usize] = group;
                own.push((index, *count));
            } else {
                own.push((samples.groups.len() as u32, *count));
                samples.groups.push(group);
            }
        }
        heirs.insert(index, own);
    }
    samples.registers.divide(&mut heirs);
}

#[cfg(test)]
mod tests;
