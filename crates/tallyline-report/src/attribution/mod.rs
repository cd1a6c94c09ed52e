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

pub use super::skid::{CallCounts, EventShift, FusionRules, PairRule, Rule, RuleSource};
pub(super) use calls::Calls;

use super::answers::{All, Answers};
use super::binaries::Binaries;
use super::profile::{Place, Profile, Resolved, SampleGroup, Skid};
use super::skid::fusion::PairCounts;
use super::skid::shift::{self, SHIFTS, ShiftCounts};
use calls::{Charging, Entered, InFunction};
use candidates::{Candidates, FunctionSamples, Origin};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use tallyline_inference::Outcome;
use tallyline_inference::code::{Body, FusiblePair};

/// The process of places that stand for what ran right before: the return of a function that was
/// called, or the call of this one.
pub(super) const CALL_OR_RETURN: i32 = i32::MIN;

/// The process of places that stand for the second operand in memory of their instruction.
pub(super) const SECOND_OPERAND: i32 = i32::MIN + 2;

/// The process of places that stand for an indirect call of which is not known which.
pub(super) const INDIRECT_CALL: i32 = i32::MIN + 3;

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
    dso: u32,
    entry: u64,
    // samples by address
    counts: FxHashMap<u64, u64>,
    // those of counters, by event
    counters: FxHashMap<u32, FxHashMap<u64, u64>>,
}

/// One function: where its samples may come from, and what they say of the machine.
struct View<'s> {
    dso: u32,
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
    by_address: FxHashMap<(u32, u64), Verdict>,
    moved: FxHashMap<(u32, u64, u8), u64>,
}

/// Charges samples of imprecise events to what stalled.
pub(super) fn attribute(profile: &mut Profile, binaries: &Binaries, answers: &All, calls: &Calls) {
    let sampled = sampled(profile, answers);
    let views: Vec<View<'_>> =
        sampled.par_iter().filter_map(|function| view(function, binaries, answers)).collect();
    let mut counts = PairCounts::default();
    let mut shifts: FxHashMap<u32, ShiftCounts> = FxHashMap::default();
    for view in &views {
        counts.add(&view.pairs);
        view.shifts.iter().for_each(|(event, counts)| shifts.entry(*event).or_default().add(counts));
    }
    let rules = FusionRules::new(profile.cpu_id.as_deref(), &counts);
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
    for (at, entered) in calls::entered(profile, binaries, calls, &functions) {
        let (rule, origin) = match entered {
            Entered::Assumed(address) => (Rule::AssumedCall, Origin::Instruction(address)),
            Entered::Unknown => (Rule::IndirectCall, Origin::IndirectCall),
        };
        verdicts.by_address.insert(at, Verdict { rule, shares: vec![Share { origin, share: 1.0 }] });
    }
    profile.fusion = rules;
    profile.shifts = shifts.iter().map(|(event, counts)| counts.decide(*event)).collect();
    profile.shifts.sort_unstable_by_key(|shift| shift.event);
    charge(profile, answers, calls, &verdicts);
}

/// Groups samples of imprecise events by the function that they are in.
fn sampled(profile: &Profile, answers: &All) -> Vec<Sampled> {
    let mut by_place: Vec<u64> = vec![0; profile.places.len()];
    let mut of_counters: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    for point in profile.points.iter().filter(|point| !is_precise(profile, point)) {
        by_place[point.place as usize] += point.samples;
        if profile.events.get(point.event as usize).is_some_and(|event| event.is_counter) {
            *of_counters.entry((point.place, point.event)).or_default() += point.samples;
        }
    }
    let mut by_function: FxHashMap<(u32, u64), Sampled> = FxHashMap::default();
    let function = |place: u32| {
        let dso = profile.places[place as usize].dso;
        let answers = answers.get(&dso)?.as_ref().ok()?;
        let address = profile.resolved[place as usize].address;
        Some(((dso, entry(answers, address)?), address))
    };
    for (place, samples) in (0..).zip(by_place).filter(|(_, samples)| *samples > 0) {
        let Some(((dso, entry), address)) = function(place) else { continue };
        let new = || Sampled { dso, entry, counts: FxHashMap::default(), counters: FxHashMap::default() };
        let sampled = by_function.entry((dso, entry)).or_insert_with(new);
        *sampled.counts.entry(address).or_default() += samples;
    }
    for ((place, event), samples) in of_counters {
        let Some((key, address)) = function(place) else { continue };
        if let Some(sampled) = by_function.get_mut(&key) {
            *sampled.counters.entry(event).or_default().entry(address).or_default() += samples;
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
fn view<'s>(function: &'s Sampled, binaries: &Binaries, answers: &All) -> Option<View<'s>> {
    let program = binaries.get(function.dso)?;
    let answers = answers.get(&function.dso)?.as_ref().ok()?;
    let ranges = &answers.table().function_at(function.entry)?.ranges();
    let body = Body::decode(&program.image, ranges, function.entry);
    let samples = FunctionSamples::new(&body, program.image.machine(), &function.counts);
    let mut pairs = PairCounts::default();
    let mut candidates: Vec<Candidates> = Vec::with_capacity(function.counts.len());
    for address in function.counts.keys() {
        candidates.extend(samples.candidates(*address, &mut pairs));
    }
    let (mut shifts, mut moved) = (FxHashMap::default(), Vec::new());
    let mut known: FxHashSet<u64> = FxHashSet::default();
    for (event, counts) in &function.counters {
        shifts.insert(*event, shift::count(&body, samples.stack_pointer(), counts));
        for (address, by) in counts.keys().flat_map(|address| (2..SHIFTS).map(move |by| (*address, by))) {
            let Some(to) = shift::as_if_one(&body, address, by) else { continue };
            moved.push(((address, by as u8), to));
            if !function.counts.contains_key(&to) && known.insert(to) {
                candidates.extend(samples.candidates(to, &mut pairs));
            }
        }
    }
    let calls = InFunction::find(&body, function.entry, &function.counts, &samples);
    Some(View { dso: function.dso, function, candidates, pairs, shifts, moved, calls })
}

/// Returns whether a sample is at the very instruction.
fn is_precise(profile: &Profile, point: &SampleGroup) -> bool {
    point.exact || profile.events.get(point.event as usize).is_some_and(|event| event.is_precise)
}

/// The places that samples at one place are charged to, and what each still has to get.
struct Division {
    // place, share, and how many samples it got less its share of all
    parts: Vec<(u32, f64, f64)>,
}

impl Division {
    /// Gives so many samples to parts, whole ones, such that over all samples each has its share.
    fn give(&mut self, samples: u64) -> Vec<(u32, u64)> {
        let mut given: Vec<(u32, u64)> = Vec::with_capacity(self.parts.len());
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
fn charge(profile: &mut Profile, answers: &All, calls: &Calls, verdicts: &Verdicts) {
    let mut charging = Charging::new(calls);
    let mut made: FxHashMap<Place, u32> = FxHashMap::default();
    let mut by_event: Vec<u8> = vec![1; profile.events.len()];
    for shift in &profile.shifts {
        if let Some(by) = by_event.get_mut(shift.event as usize) {
            *by = shift.instructions;
        }
    }
    // of samples that are further behind than one instruction
    let mut further: FxHashMap<(u32, u8), Option<Division>> = FxHashMap::default();
    // by the place of the sample
    let mut divisions: Vec<Option<Option<Division>>> = Vec::new();
    divisions.resize_with(profile.places.len(), || None);
    let (mut samples, mut divided) = (0, 0);
    // points that become several
    let mut split: FxHashMap<u32, Vec<(u32, u64)>> = FxHashMap::default();
    for index in 0..profile.points.len() {
        let point = profile.points[index];
        if is_precise(profile, &point) {
            continue;
        }
        let (mut given, of_calls) = charging.give(profile, index as u32, answers, &mut made);
        divided += of_calls;
        let left = point.samples - given.iter().map(|(_, n)| n).sum::<u64>().min(point.samples);
        if left > 0 {
            let mut divide = |shift: u8| division(profile, verdicts, (point.place, shift), &mut made);
            let division = match by_event.get(point.event as usize) {
                Some(0) => continue,
                Some(shift @ 2..) => further.entry((point.place, *shift)).or_insert_with(|| divide(*shift)),
                _ => divisions[point.place as usize].get_or_insert_with(|| divide(1)),
            };
            match division {
                Some(division) => {
                    match profile.rules.get(&point.place) {
                        Some(Rule::AssumedCall) => profile.calls.assumed += left,
                        Some(Rule::IndirectCall) => profile.calls.unknown += left,
                        _ => {}
                    }
                    if let ([(only, ..)], true) = (&division.parts[..], given.is_empty()) {
                        profile.points[index].charged = *only;
                        samples += if *only == point.place { 0 } else { left };
                        continue;
                    }
                    given.extend(division.give(left));
                    divided += if division.parts.len() > 1 { left } else { 0 };
                }
                None if given.is_empty() => continue,
                None => given.push((point.place, left)),
            }
        }
        let [(first, _), others @ ..] = &given[..] else { continue };
        profile.points[index].charged = *first;
        samples += given.iter().filter(|(place, _)| *place != point.place).map(|(_, n)| n).sum::<u64>();
        if !others.is_empty() {
            split.insert(index as u32, given);
        }
    }
    split_points(profile, &split);
    profile.skid = Skid::Corrected { samples, divided };
}

/// Returns the places that samples at a place are charged to; none for the place itself.
fn division(
    profile: &mut Profile,
    verdicts: &Verdicts,
    (index, shift): (u32, u8),
    made: &mut FxHashMap<Place, u32>,
) -> Option<Division> {
    let place = profile.places[index as usize];
    let address = profile.resolved[index as usize].address;
    let by_shift = || verdicts.moved.get(&(place.dso, address, shift)).copied();
    let at = if shift > 1 { by_shift()? } else { address };
    let verdict = verdicts.by_address.get(&(place.dso, at))?;
    let mut parts = Vec::with_capacity(verdict.shares.len());
    for Share { origin, share } in &verdict.shares {
        let (place, address) = match origin {
            Origin::Instruction(before) => {
                let offset = place.offset.wrapping_sub(address.wrapping_sub(*before));
                (Place { offset, ..place }, *before)
            }
            Origin::SecondOperand(before) => {
                let offset = place.offset.wrapping_sub(address.wrapping_sub(*before));
                (Place { offset, pid: SECOND_OPERAND, ..place }, *before)
            }
            Origin::CallOrReturn => (Place { pid: CALL_OR_RETURN, ..place }, address),
            Origin::IndirectCall => (Place { pid: INDIRECT_CALL, ..place }, address),
        };
        let charged = match *origin == Origin::Instruction(profile.resolved[index as usize].address) {
            true => index,
            false => *made.entry(place).or_insert_with(|| {
                profile.places.push(place);
                profile.resolved.push(Resolved { address, ..Resolved::default() });
                (profile.places.len() - 1) as u32
            }),
        };
        parts.push((charged, *share, 0.0));
    }
    profile.rules.insert(index, verdict.rule);
    Some(Division { parts })
}

/// Charges samples of stores, as the hardware says, to the second operands of string moves: the first one is read.
pub(super) fn charge_second_operands(profile: &mut Profile, answers: &All) {
    let has_seconds = |answers: &Result<Answers, String>| {
        answers.as_ref().is_ok_and(|answers| answers.table().has_second_operands())
    };
    if !profile.events.iter().any(|event| event.has_source) || !answers.values().any(has_seconds) {
        return;
    }
    let mut made: FxHashMap<u32, Option<u32>> = FxHashMap::default();
    for index in 0..profile.points.len() {
        let point = profile.points[index];
        if !point.source.is_some_and(|source| source.is_store() && !source.is_load()) {
            continue;
        }
        let second = *made.entry(point.charged).or_insert_with(|| {
            let (place, resolved) =
                (profile.places[point.charged as usize], profile.resolved[point.charged as usize]);
            let table = answers.get(&place.dso)?.as_ref().ok()?.table();
            let is_read = |outcome| matches!(outcome, Outcome::Typed(typed) if !typed.access().writes());
            table.second_outcome(resolved.address).filter(|second| !is_read(*second))?;
            profile.places.push(Place { pid: SECOND_OPERAND, ..place });
            profile.resolved.push(resolved);
            Some((profile.places.len() - 1) as u32)
        });
        if let Some(second) = second {
            profile.points[index].charged = second;
        }
    }
}

/// Makes several points of those whose samples are charged to several places.
fn split_points(profile: &mut Profile, split: &FxHashMap<u32, Vec<(u32, u64)>>) {
    let mut order: Vec<u32> = split.keys().copied().collect();
    order.sort_unstable();
    // by point: who gets its records with registers, one after the other
    let mut heirs: FxHashMap<u32, Vec<(u32, u64)>> = FxHashMap::default();
    for index in order {
        let given = &split[&index];
        let whole = profile.points[index as usize];
        let mut period = whole.period;
        let mut own = Vec::with_capacity(given.len());
        for (position, (charged, samples)) in given.iter().enumerate() {
            let part = if position + 1 == given.len() {
                period
            } else {
                let part = u128::from(whole.period) * u128::from(*samples) / u128::from(whole.samples.max(1));
                u64::try_from(part).unwrap_or(period).min(period)
            };
            period -= part;
            let point = SampleGroup { charged: *charged, samples: *samples, period: part, ..whole };
            if position == 0 {
                profile.points[index as usize] = point;
                own.push((index, *samples));
            } else {
                own.push((profile.points.len() as u32, *samples));
                profile.points.push(point);
            }
        }
        heirs.insert(index, own);
    }
    profile.registers.divide(&mut heirs);
}

#[cfg(test)]
mod tests;
