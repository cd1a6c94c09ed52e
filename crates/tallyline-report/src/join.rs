//! Samples joined with what their instructions access.
//!
//! Each program is analysed once, for the functions that have samples. Samples of imprecise events are charged to
//! what stalled before: see [`attribution`].

use super::ahead::EagerAnalysis;
use super::answers::{All, answers};
use super::attribution::{self, CALL_OR_RETURN, Calls, INDIRECT_CALL, SECOND_OPERAND};
use super::binaries::Binaries;
use super::evidence;
use super::operand::{Joined, Operand, Outcome, Reason, Within, operand};
use super::profile::Profile;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tallyline_debuginfo::type_text;
use tallyline_inference::{self as infer, AddressQuery, Pseudo, TypeTable};
use tallyline_perf_data::file::RecordSource;
use tallyline_perf_data::spaces::DsoKind;

/// Joins a profile whose places have their addresses. With `correct`, skid is corrected.
pub(super) fn join(
    profile: &mut Profile,
    records: &dyn RecordSource,
    binaries: &Binaries,
    correct: bool,
    ahead: Option<&mut EagerAnalysis<'_, '_>>,
) {
    let correct = correct && !profile.is_emulated;
    let calls = if correct { Calls::find(profile, binaries) } else { Calls::default() };
    let answers = analyse(profile, binaries, ahead, &calls);
    if correct {
        attribution::attribute(profile, binaries, &answers, &calls);
    }
    attribution::charge_second_operands(profile, &answers);
    let mut joined = Joined::default();
    let outcomes: Vec<_> = (0..profile.places.len())
        .map(|index| outcome(profile, binaries, &answers, index, &mut joined))
        .collect();
    profile.outcomes = outcomes;
    super::vtables::name_slots(profile, binaries, &answers);
    for (dso, found) in answers {
        match found {
            Ok(answers) => {
                let name = profile.dso_name(dso).to_owned();
                joined.warnings.extend(answers.table.warnings().iter().map(|line| format!("{name}: {line}")));
                joined.tables.insert(dso, answers.table);
            }
            Err(why) => joined.warnings.push(format!("{}: {why}", profile.dso_name(dso))),
        }
    }
    profile.joined = joined;
    profile.joined.by_evidence = evidence::apply(profile, records, binaries);
}

/// Analyses the functions with samples of each program that has debug information.
fn analyse(
    profile: &Profile,
    binaries: &Binaries,
    ahead: Option<&mut EagerAnalysis<'_, '_>>,
    calls: &Calls,
) -> All {
    let mut wanted: FxHashMap<u32, AddressQuery> = FxHashMap::default();
    // places of callers are there, too
    let mut is_sampled = vec![false; profile.places.len()];
    profile.points.iter().for_each(|point| is_sampled[point.place as usize] = true);
    let sampled = is_sampled.iter().enumerate().filter_map(|(index, is_sampled)| is_sampled.then_some(index));
    for index in sampled {
        let (place, resolved) = (&profile.places[index], &profile.resolved[index]);
        if binaries.get(place.dso).is_some_and(|program| program.has_types()) {
            wanted.entry(place.dso).or_default().code.push(resolved.address);
        }
    }
    for (dso, address) in calls.addresses() {
        if binaries.get(dso).is_some_and(|program| program.has_types()) {
            wanted.entry(dso).or_default().code.push(address);
        }
    }
    for (dso, data) in evidence::in_variables(profile, binaries) {
        if binaries.get(dso).is_some_and(|program| program.debug.is_some()) {
            wanted.entry(dso).or_default().data = data;
        }
    }
    // those that were begun with are asked first, as they go on meanwhile
    let mut asking = Vec::new();
    if let Some(ahead) = ahead {
        for (dso, asked) in std::mem::take(&mut wanted) {
            let about = profile.dso(dso).map(|about| ahead.ask(about, asked));
            match about {
                Some(Ok(answers)) => asking.push((dso, answers)),
                Some(Err(asked)) => _ = wanted.insert(dso, asked),
                None => {}
            }
        }
    }
    let answered = wanted
        .into_par_iter()
        .filter_map(|(dso, asked)| Some((dso, answers(binaries.get(dso)?, &mut std::iter::once(asked)))));
    let mut all: All = answered.collect();
    all.extend(asking.into_iter().map(|(dso, asking)| (dso, asking.wait())));
    all
}

fn outcome(
    profile: &mut Profile,
    binaries: &Binaries,
    answers: &All,
    index: usize,
    joined: &mut Joined,
) -> Outcome {
    let (place, resolved) = (profile.places[index], profile.resolved[index]);
    if place.pid == CALL_OR_RETURN {
        return Outcome::Pseudo(Pseudo::StackOperation);
    }
    if place.pid == INDIRECT_CALL {
        return Outcome::Untyped(Reason::IndirectCall);
    }
    let reason = match profile.dso(place.dso).map(|dso| dso.kind()) {
        None => Reason::NoMapping,
        Some(DsoKind::Anonymous | DsoKind::KernelSymbol) => Reason::NoFile,
        Some(_) => match (answers.get(&place.dso), binaries.why_not(place.dso)) {
            (Some(Ok(answers)), _) => {
                let found = match place.pid {
                    SECOND_OPERAND => answers.table.second_outcome(resolved.address),
                    _ => answers.table.outcome(resolved.address),
                };
                return match found {
                    Some(found) => of_instruction(profile, place.dso, &answers.table, found, joined),
                    None => Outcome::Untyped(Reason::NoFunction),
                };
            }
            (_, Some(why)) => Reason::MissingFile(profile.names.intern(why)),
            (Some(Err(_)) | None, None) => Reason::NoDebugInfo,
        },
    };
    Outcome::Untyped(reason)
}

fn of_instruction(
    profile: &mut Profile,
    dso: u32,
    table: &TypeTable,
    found: infer::Outcome,
    joined: &mut Joined,
) -> Outcome {
    match found {
        infer::Outcome::Pseudo(pseudo) => Outcome::Pseudo(pseudo),
        infer::Outcome::Untyped(infer::Reason::NoDebugInformation) => Outcome::Untyped(Reason::NoDebugInfo),
        infer::Outcome::Untyped(infer::Reason::NoInstruction) => Outcome::Untyped(Reason::NoInstruction),
        infer::Outcome::Untyped(other) => Outcome::Untyped(Reason::Lost(profile.names.intern(other.kind()))),
        infer::Outcome::Typed(typed) => {
            let ty = joined.id(dso, typed.ty());
            let within = typed.within().map(|within| Within {
                ty: joined.id(dso, within.ty()),
                name: profile.names.intern(&type_text(table.types(), within.ty())),
                start: within.start().into(),
            });
            Outcome::Typed(Operand { within, ..operand(&mut profile.names, table, ty, &typed) })
        }
    }
}
