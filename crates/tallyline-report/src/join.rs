//! Samples joined with what their instructions access.
//!
//! Each program is analysed once, for the functions that have samples. Samples of imprecise events are charged to
//! what stalled before: see [`attribution`].

use super::ahead::EagerAnalysis;
use super::attribution::{self, CALL_OR_RETURN, Calls, INDIRECT_CALL, SECOND_OPERAND};
use super::evidence;
use super::names::Names;
use super::operand::{Operand, Outcome, Reason, Within};
use super::profile::{NONE, Profile};
use super::programs::Program;
use super::resolve::Binaries;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tallyline_debuginfo::model::TypeId;
use tallyline_debuginfo::type_text;
use tallyline_inference::{self as infer, Asked, Pseudo, TypeTable, Wanted, field_path, place_text};
use tallyline_perf_data::file::Records;
use tallyline_perf_data::spaces::DsoKind;

/// The types of all programs of a profile.
#[derive(Debug, Default)]
pub struct Joined {
    /// A table for each file that has debug information, by the file's index.
    pub tables: FxHashMap<u32, TypeTable>,
    /// The types that operands have: the file, and the type in its table.
    pub types: Vec<(u32, TypeId)>,
    ids: FxHashMap<(u32, TypeId), u32>,
    /// Samples that have a type by the address of their data, or by registers.
    pub by_evidence: u64,
    /// The debug information that is missing, one line each.
    pub warnings: Vec<String>,
}

/// One program's answers.
pub(super) struct Answers {
    table: TypeTable,
}

impl Answers {
    pub(super) fn table(&self) -> &TypeTable {
        &self.table
    }
}

/// Joins a profile whose places have their addresses. With `correct`, skid is corrected.
pub(super) fn join(
    profile: &mut Profile,
    records: &dyn Records,
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

/// The answers of each program, by the file's index.
pub(super) type All = FxHashMap<u32, Result<Answers, String>>;

/// Analyses the functions with samples of each program that has debug information.
fn analyse(
    profile: &Profile,
    binaries: &Binaries,
    ahead: Option<&mut EagerAnalysis<'_, '_>>,
    calls: &Calls,
) -> All {
    let mut wanted: FxHashMap<u32, Asked> = FxHashMap::default();
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

/// Answers queries about a program's addresses one by one.
pub(super) fn answers(program: &Program, asked: &mut dyn Iterator<Item = Asked>) -> Result<Answers, String> {
    let table = match (&program.debug, &program.btf) {
        (Some(debug), _) => {
            let (image, file) = (&program.image, infer::Debug::File(&debug.file));
            let companions = debug.companions.as_ref();
            match &program.store {
                Some(store) => infer::cache::infer_cached(image, file, companions, asked, store.as_ref()),
                None => infer::infer_asked(image, file, companions, asked),
            }
        }
        (None, Some(btf)) => {
            let all: Vec<u64> = asked.flat_map(|asked| asked.code).collect();
            infer::infer_by_btf(&program.image, btf, Wanted::At(&all))
        }
        (None, None) => return Err("no debug information".to_owned()),
    };
    Ok(Answers { table: table.map_err(|error| error.to_string())? })
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
    let reason = match profile.dso(place.dso).map(|dso| dso.kind) {
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
            let ty = joined.id(dso, typed.ty);
            let within = typed.within.map(|within| Within {
                ty: joined.id(dso, within.ty),
                name: profile.names.intern(&type_text(table.types(), within.ty)),
                start: within.start.into(),
            });
            Outcome::Typed(Operand { within, ..operand(&mut profile.names, table, ty, &typed) })
        }
    }
}

pub(super) fn operand(names: &mut Names, table: &TypeTable, ty: u32, typed: &infer::Typed) -> Operand {
    let name = type_text(table.types(), typed.ty);
    let field = field_path(table.types(), typed);
    let text = format!("{name} {}", place_text(table.types(), typed));
    Operand {
        ty,
        name: names.intern(&name),
        offset: typed.offset.into(),
        or: typed.or.map(|or| or.offset.into()),
        within: None,
        field: names.intern(&field),
        text: names.intern(&text),
        size: typed.size,
        candidates: typed.candidates,
        reads: typed.access.reads(),
        writes: typed.access.writes(),
    }
}

impl Joined {
    pub(super) fn id(&mut self, dso: u32, ty: TypeId) -> u32 {
        *self.ids.entry((dso, ty)).or_insert_with(|| {
            self.types.push((dso, ty));
            u32::try_from(self.types.len() - 1).unwrap_or(NONE)
        })
    }

    /// The table that a type is in, and the type.
    pub fn get(&self, ty: u32) -> Option<(&TypeTable, TypeId)> {
        let (dso, id) = self.types.get(ty as usize)?;
        Some((self.tables.get(dso)?, *id))
    }
}
