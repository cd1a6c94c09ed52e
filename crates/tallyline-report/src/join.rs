//! Samples joined with what their instructions access.
//!
//! Each program is analysed once, for the functions that have samples. Samples of imprecise events are charged to
//! what stalled before: see [`attribution`].

use super::ahead::EagerAnalysis;
use super::answers::{All, answers};
use super::attribution::{self, Calls};
use super::binaries::Binaries;
use super::evidence;
use super::index::PlaceId;
use super::keys::Needs;
use super::names::Names;
use super::operand::{Joined, Operand, Outcome, Reason, Within, operand};
use super::places::PlaceKind;
use super::samples::MergeGranularity;
use super::samples::{Charges, LocatedSamples, Operands, Samples, TypedSamples};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tallyline_debuginfo::type_text;
use tallyline_inference::{self as infer, AddressQuery, Pseudo, TypeTable, place_in_node_text};
use tallyline_perf_data::file::RecordSource;
use tallyline_perf_data::spaces::{DsoId, DsoKind};

/// Joins samples whose places have their addresses. With `correct`, skid is corrected.
pub(super) fn join(
    located: LocatedSamples,
    records: &dyn RecordSource,
    needs: Needs,
    correct: bool,
    ahead: Option<&mut EagerAnalysis<'_, '_>>,
) -> TypedSamples {
    let LocatedSamples { mut samples, returns, branches, binaries } = located;
    let correct = correct && !samples.info.is_emulated;
    let calls = if correct { Calls::find(&samples, &returns, &binaries) } else { Calls::default() };
    let answers = analyse(&samples, &binaries, ahead, &calls);
    let charges = match correct {
        true => attribution::attribute(&mut samples, &binaries, &answers, &calls, &branches),
        false => Charges::default(),
    };
    attribution::charge_second_operands(&mut samples, &answers);
    let mut joined = Joined::default();
    let outcomes = (0..samples.places.len())
        .map(|position| {
            outcome(&mut samples, &binaries, &answers, PlaceId::of(position), needs.parts, &mut joined)
        })
        .collect();
    let mut operands = Operands::new(outcomes);
    operands.slots = super::vtables::name_slots(&mut samples, &operands, &binaries, &answers);
    for (dso, found) in answers {
        let name = samples.dso_name(Some(dso));
        match found {
            Ok(answers) => {
                joined.warnings.extend(answers.table.warnings().iter().map(|line| format!("{name}: {line}")));
                joined.tables.insert(dso, answers.table);
            }
            Err(why) => joined.warnings.push(format!("{name}: {why}")),
        }
    }
    operands.joined = joined;
    let mut typed = TypedSamples { samples, binaries, charges, operands };
    typed.operands.joined.by_evidence =
        evidence::apply(&mut typed, records, needs.apart == MergeGranularity::Addresses);
    typed.operands.tell_types_apart(&mut typed.samples.names);
    typed.binaries.keep_functions();
    typed
}

/// Analyses the functions with samples of each program that has debug information.
fn analyse(
    samples: &Samples,
    binaries: &Binaries,
    ahead: Option<&mut EagerAnalysis<'_, '_>>,
    calls: &Calls,
) -> All {
    let mut wanted: FxHashMap<DsoId, AddressQuery> = FxHashMap::default();
    // places of callers are there, too
    let mut is_sampled = vec![false; samples.places.len()];
    samples.groups.iter().for_each(|group| is_sampled[group.place.position()] = true);
    for (_, (_, place, address)) in is_sampled.iter().zip(samples.places.linked()).filter(|(is, _)| **is) {
        if let Some(dso) = place.dso
            && binaries.get(dso).is_some_and(|program| program.has_types())
        {
            wanted.entry(dso).or_default().code.push(address);
        }
    }
    for (dso, address) in calls.addresses() {
        if binaries.get(dso).is_some_and(|program| program.has_types()) {
            wanted.entry(dso).or_default().code.push(address);
        }
    }
    for (dso, data) in evidence::in_variables(samples, binaries) {
        if binaries.get(dso).is_some_and(|program| program.debug.is_some() && program.has_types()) {
            wanted.entry(dso).or_default().data = data;
        }
    }
    // those that were begun with are asked first, as they go on meanwhile
    let mut asking = Vec::new();
    if let Some(ahead) = ahead {
        for (dso, asked) in std::mem::take(&mut wanted) {
            let about = samples.dso(dso).map(|about| ahead.ask(about, asked));
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
    samples: &mut Samples,
    binaries: &Binaries,
    answers: &All,
    id: PlaceId,
    parts: bool,
    joined: &mut Joined,
) -> Outcome {
    let (place, address) = (*samples.places.get(id), samples.places.address(id));
    match place.kind {
        PlaceKind::CallOrReturn => return Outcome::Pseudo(Pseudo::StackOperation),
        PlaceKind::IndirectCall => return Outcome::Untyped(Reason::IndirectCall),
        _ => {}
    }
    let Some((dso, about)) = place.dso.and_then(|dso| Some((dso, samples.dso(dso)?))) else {
        return Outcome::Untyped(Reason::NoMapping);
    };
    if matches!(about.kind(), DsoKind::Anonymous | DsoKind::KernelSymbol) {
        return Outcome::Untyped(Reason::NoFile);
    }
    let reason = match (answers.get(&dso), binaries.why_not(dso)) {
        (Some(Ok(answers)), _) => {
            let found = match place.kind {
                PlaceKind::SecondOperand => answers.table.second_outcome(address),
                _ => answers.table.outcome(address),
            };
            return match found {
                Some(found) => of_instruction(&mut samples.names, dso, &answers.table, found, parts, joined),
                None => Outcome::Untyped(Reason::NoFunction),
            };
        }
        (_, Some(why)) => Reason::MissingFile(samples.names.intern(why)),
        (Some(Err(_)) | None, None) => {
            match binaries.get(dso).and_then(|program| program.image.undecoded()) {
                Some(machine) => {
                    Reason::Lost(samples.names.intern(&format!("code of {machine} is not decoded")))
                }
                None => Reason::NoDebugInfo,
            }
        }
    };
    Outcome::Untyped(reason)
}

fn of_instruction(
    names: &mut Names,
    dso: DsoId,
    table: &TypeTable,
    found: infer::Outcome,
    parts: bool,
    joined: &mut Joined,
) -> Outcome {
    match found {
        infer::Outcome::Pseudo(pseudo) => Outcome::Pseudo(pseudo),
        infer::Outcome::Untyped(infer::Reason::NoDebugInformation) => Outcome::Untyped(Reason::NoDebugInfo),
        infer::Outcome::Untyped(infer::Reason::NoInstruction) => Outcome::Untyped(Reason::NoInstruction),
        infer::Outcome::Untyped(other) => Outcome::Untyped(Reason::Lost(names.intern(other.kind()))),
        infer::Outcome::Typed(typed) => {
            let ty = joined.id(dso, typed.ty());
            let operand = operand(names, table, ty, &typed);
            let Some(within) = typed.within().filter(|_| !parts) else { return Outcome::Typed(operand) };
            let name = type_text(table.types(), within.ty());
            let text = format!("{name} {}", place_in_node_text(table.types(), &typed, within.start()));
            let text = names.intern(&text);
            let (ty, name) = (joined.id(dso, within.ty()), names.intern(&name));
            let within = Some(Within { ty, name, start: within.start().into() });
            Outcome::Typed(Operand { within, text, ..operand })
        }
    }
}
