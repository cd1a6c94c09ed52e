//! Samples whose instruction does not say what it accesses, but the address of the data or the registers do.
//!
//! An address in a variable is that variable's; an index that the analysis does not know is what the
//! registers held; memory that one instruction is known to use as an object of a type is an object of
//! that type for another instruction, too. What memory was before it was freed and used again is not
//! told apart: where two types claim the same bytes neither is believed.

use super::attribution::SECOND_OPERAND;
use super::binaries::Binaries;
use super::index::RegistersId;
use super::operand::{Operand, Outcome, Reason, operand};
use super::profile::{Place, Profile, SampleGroup};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use tallyline_debuginfo::abi;
use tallyline_debuginfo::model::{Type, TypeId};
use tallyline_inference::code::{Body, Effect, Image, Instruction, Memory};
use tallyline_inference::{TypeTable, Typed, effective_address};
use tallyline_perf_data::Result;
use tallyline_perf_data::file::{RecordBody, RecordSource};
use tallyline_perf_data::sample::{CpuMode, Registers, Sample};
use tallyline_perf_data::spaces::DsoKind;

/// The process of places that stand for what some samples of another place access.
const BY_EVIDENCE: i32 = i32::MIN + 1;

/// The longest instruction, in bytes.
const LENGTH_LIMIT: u64 = 16;

/// Returns whether a sample has these registers, taken at its own address.
pub(super) fn has_registers(sample: &Sample<'_>, needed: Option<u64>) -> bool {
    match (registers(sample), needed) {
        (Some(registers), Some(needed)) => registers.mask() & needed == needed,
        _ => false,
    }
}

/// The registers of a sample at its own place in the code.
fn registers<'s, 'a>(sample: &'s Sample<'a>) -> Option<&'s Registers<'a>> {
    let user = sample.user_registers.as_ref().filter(|_| sample.mode == CpuMode::User);
    sample.interrupt_registers.as_ref().or(user)
}

/// The general registers, a bit for each of the kernel's numbers.
pub(super) fn needed(arch: &str) -> Option<u64> {
    numbers(arch).map(|numbers| numbers.iter().fold(0, |mask, number| mask | 1 << number))
}

/// The kernel's numbers of the general registers, in DWARF's order.
fn numbers(arch: &str) -> Option<&'static [u8]> {
    const X86: [u8; 16] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23];
    const ARM: [u8; 32] = [
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
        28, 29, 30, 31,
    ];
    match arch {
        "aarch64" => Some(&ARM),
        "x86_64" => Some(&X86),
        _ => None,
    }
}

/// Returns the data address of a sample, if it has one that is not null.
fn recorded_address(point: &SampleGroup) -> Option<u64> {
    (point.data.is_some() && point.address != 0).then_some(point.address)
}

/// The address that the linker gave to data that a sample is at, and the file.
fn linked(profile: &Profile, binaries: &Binaries, point: &SampleGroup) -> Option<(u32, u64)> {
    let place = profile.data.place(point.data?)?;
    let is_file = profile.dso(place.dso).is_some_and(|dso| dso.kind() == DsoKind::File);
    if let (true, Some(program)) = (is_file, binaries.get(place.dso)) {
        return Some((place.dso, program.image.address_of(place.offset)?));
    }
    // what starts as zeros has no part of the file: it lies as far from the code as it was linked
    let code = profile.places.get(point.place as usize)?;
    let program = binaries.get(code.dso)?;
    let slide = point.ip.wrapping_sub(profile.at(point.place).address);
    let address = point.address.wrapping_sub(slide);
    program.symbols().data_at(address).map(|_| (code.dso, address))
}

/// The addresses of data in each file's variables, as the linker gave them.
pub(super) fn in_variables(profile: &Profile, binaries: &Binaries) -> FxHashMap<u32, Vec<u64>> {
    let mut found: FxHashMap<u32, Vec<u64>> = FxHashMap::default();
    if profile.data.is_empty() {
        return found;
    }
    for point in profile.points.iter().filter(|point| recorded_address(point).is_some()) {
        if let Some((dso, address)) = linked(profile, binaries, point) {
            found.entry(dso).or_default().push(address);
        }
    }
    for addresses in found.values_mut() {
        addresses.sort_unstable();
        addresses.dedup();
    }
    found
}

/// Objects whose type is known because instructions that use them are.
#[derive(Default)]
struct Objects {
    // by process and start: the end, and the type; none where two types claim the same bytes
    list: BTreeMap<(i32, u64), (u64, Option<u32>)>,
}

impl Objects {
    fn add(&mut self, pid: i32, start: u64, size: u64, ty: u32) {
        let end = start.saturating_add(size);
        let mut claim = Some(ty);
        let overlapping = self.list.range_mut((pid, 0)..(pid, end)).rev().take(2);
        for ((_, other), (until, known)) in overlapping {
            if *until > start && (*other, *known) != (start, Some(ty)) {
                *known = None;
                claim = None;
            }
        }
        self.list.entry((pid, start)).or_insert((end, claim));
    }

    fn at(&self, pid: i32, address: u64) -> Option<(u32, u64)> {
        let (&(own, start), &(end, ty)) = self.list.range(..=(pid, address)).next_back()?;
        if own != pid || address >= end {
            return None;
        }
        Some((ty?, address - start))
    }
}

/// One instruction, alone.
#[derive(Clone, Copy)]
struct NoCompanions {
    memory: Memory,
    /// `true` if the instruction leaves registers as they were before it.
    keeps_registers: bool,
}

fn alone(image: &Image, address: u64, is_second: bool) -> Option<NoCompanions> {
    let range = address..address.checked_add(LENGTH_LIMIT)?;
    let body = Body::decode(image, std::slice::from_ref(&range), address);
    let first: &Instruction = body.instructions().first()?;
    let memory = if is_second { body.second_operand(0).copied() } else { first.memory().copied() };
    let memory = memory.filter(|memory| !memory.implicit())?;
    let mut written = body.effects(first).iter().flat_map(Effect::written);
    let keeps_registers =
        !written.any(|register| Some(register) == memory.base() || Some(register) == memory.index());
    Some(NoCompanions { memory, keeps_registers })
}

/// Returns, for each group of samples, whether registers may say more about its instruction.
fn asking(profile: &Profile, objects: &Objects) -> Vec<bool> {
    let mut asks: FxHashMap<u32, bool> = FxHashMap::default();
    let mut asks = |point: &SampleGroup| {
        *asks.entry(point.charged).or_insert_with(|| {
            let Place { dso, pid, .. } = profile.places[point.charged as usize];
            if pid == SECOND_OPERAND {
                return !objects.list.is_empty();
            }
            let table = profile.joined.tables.get(&dso);
            let asks = table.is_some_and(|table| table.needs_registers(profile.at(point.charged).address));
            match profile.outcome(point) {
                Outcome::Untyped(Reason::Lost(_)) => asks || !objects.list.is_empty(),
                Outcome::Typed(Operand { or: Some(_), .. }) => asks,
                _ => false,
            }
        })
    };
    profile.points.iter().map(|point| point.registers.is_some() && asks(point)).collect()
}

/// Reads what registers held of samples whose instructions ask for it; each becomes a point of its own.
fn read_registers(profile: &mut Profile, records: &dyn RecordSource, objects: &Objects) -> Result<()> {
    let asks = asking(profile, objects);
    let Profile { points, registers: recorded, arch, .. } = profile;
    let Some(numbers) = numbers(arch).filter(|_| asks.contains(&true)) else { return Ok(()) };
    // points, records, and where those are
    let mut wanted: Vec<(u32, RegistersId, u64)> = Vec::new();
    for (record, point, position) in recorded.records() {
        if asks[point as usize] {
            wanted.push((point, record, position));
        }
    }
    // those near each other in the file are read together
    wanted.sort_unstable_by_key(|(.., position)| *position);
    let is_together = wanted.iter().any(|(point, ..)| points[*point as usize].samples > 1);
    // what becomes of points: their samples, one by one
    let mut own: Vec<(u32, SampleGroup)> = Vec::new();
    let mut samples = wanted.iter();
    let read = records.visit_at(&mut wanted.iter().map(|(.., position)| *position), &mut |record| {
        let (Some((index, record_id, _)), RecordBody::Sample(_, sample)) = (samples.next(), record.body())
        else {
            return Ok(());
        };
        let registers = registers(sample);
        let values = registers
            .map(|registers| numbers.iter().map_while(|number| registers.get((*number).into())).collect());
        recorded.values.extend(values.map(|values| (*record_id, values)));
        let point = &mut points[*index as usize];
        if is_together {
            let period = sample.period.unwrap_or(point.period / point.samples.max(1));
            own.push((*index, SampleGroup { samples: 1, period, registers: Some(*record_id), ..*point }));
        } else {
            point.registers = Some(*record_id);
        }
        Ok(())
    });
    for (of, sample) in &own {
        let point = &mut points[*of as usize];
        point.samples = point.samples.saturating_sub(1);
        point.period = point.period.saturating_sub(sample.period);
    }
    // in the order of time, as they were noted
    own.sort_unstable_by_key(|(_, sample)| sample.registers);
    points.retain(|point| point.samples > 0);
    points.extend(own.into_iter().map(|(_, sample)| sample));
    read
}

/// Looks for evidence for each sample that has no type. How many have one by it.
pub(super) fn apply(profile: &mut Profile, records: &dyn RecordSource, binaries: &Binaries) -> u64 {
    if profile.data.is_empty() && profile.registers.is_empty() {
        return 0;
    }
    let objects = objects(profile);
    if let Err(error) = read_registers(profile, records, &objects) {
        profile.joined.warnings.push(format!("registers of samples: {error}"));
    }
    let mut instructions: FxHashMap<u32, Option<NoCompanions>> = FxHashMap::default();
    let mut made: FxHashMap<(u32, u32, u64), u32> = FxHashMap::default();
    let mut samples = 0;
    for index in 0..profile.points.len() {
        let point = profile.points[index];
        let open = match *profile.outcome(&point) {
            Outcome::Untyped(Reason::Lost(_)) => None,
            Outcome::Typed(operand @ Operand { or: Some(or), .. }) => Some((operand, [operand.offset, or])),
            _ => continue,
        };
        let place = profile.places[point.charged as usize];
        let address = profile.at(point.charged).address;
        let Some(program) = binaries.get(place.dso) else { continue };
        let instruction = *instructions
            .entry(point.charged)
            .or_insert_with(|| alone(&program.image, address, place.pid == SECOND_OPERAND));
        let Some(instruction) = instruction else { continue };
        let Some((dso, typed)) = typed(profile, binaries, &objects, &point, address, &instruction) else {
            continue;
        };
        let ty = profile.joined.id(dso, typed.ty());
        // of two places it can only be one of them
        if open.is_some_and(|(operand, either)| operand.ty != ty || !either.contains(&typed.offset().into()))
        {
            continue;
        }
        let key = (point.charged, ty, u64::from(typed.offset()));
        let charged = *made.entry(key).or_insert_with(|| add_place(profile, point.charged, dso, ty, &typed));
        profile.points[index].charged = charged;
        samples += if open.is_none() { point.samples } else { 0 };
    }
    samples
}

/// A place of its own for samples of a place that access the same.
fn add_place(profile: &mut Profile, of: u32, dso: u32, ty: u32, typed: &Typed) -> u32 {
    let Profile { joined, names, .. } = profile;
    let found = joined.tables.get(&dso).map(|table| operand(names, table, ty, typed));
    let outcome = found.map_or(Outcome::NOT_LOOKED, Outcome::Typed);
    let place = Place { pid: BY_EVIDENCE, ..profile.places[of as usize] };
    profile.places.push(place);
    profile.resolved.push(profile.at(of));
    profile.outcomes.push(outcome);
    (profile.places.len() - 1) as u32
}

/// The objects that typed samples with addresses are at.
fn objects(profile: &Profile) -> Objects {
    let mut objects = Objects::default();
    for point in profile.points.iter().filter(|point| recorded_address(point).is_some()) {
        let Outcome::Typed(Operand { ty, offset, or: None, .. }) = profile.outcome(point) else { continue };
        let Some((table, id)) = profile.joined.get(*ty) else { continue };
        let types = table.types();
        if let (Type::Record(_), Some(start)) =
            (types.get(types.strip(id)), point.address.checked_sub(*offset))
        {
            objects.add(point.pid, start, abi::size_of(types, id), *ty);
        }
    }
    objects
}

/// Returns the operand of a sample's instruction, and the file that has the type.
fn typed(
    profile: &Profile,
    binaries: &Binaries,
    objects: &Objects,
    point: &SampleGroup,
    instruction: u64,
    alone: &NoCompanions,
) -> Option<(u32, Typed)> {
    let Place { dso, pid, .. } = profile.places[point.charged as usize];
    let is_through = point.charged != point.place;
    let held = |register| {
        let is_valid = alone.keeps_registers || !is_through;
        point.registers.filter(|_| is_valid).and_then(|id| profile.registers.get(id, register))
    };
    let recorded = recorded_address(point);
    let table = |dso: u32| -> Option<&TypeTable> { profile.joined.tables.get(&dso) };
    let memory = &alone.memory;
    // registers speak of the index of a first operand
    if pid != SECOND_OPERAND
        && let Some(typed) = table(dso)?.refine_by_registers(instruction, memory, recorded, held)
    {
        return Some((dso, typed));
    }
    let part = |owner: u32, ty: TypeId, offset: u64| {
        let offset = u32::try_from(offset).ok()?;
        Some(Typed::by_size(table(owner)?.types(), ty, offset, memory.size(), memory.access()))
    };
    if recorded.is_some()
        && let Some((owner, address)) = linked(profile, binaries, point)
        && let Some((ty, offset)) = table(owner).and_then(|table| table.variable_at(address))
    {
        return Some((owner, part(owner, ty, offset.into())?));
    }
    let address = recorded.or_else(|| effective_address(memory, held))?;
    let (ty, offset) = objects.at(point.pid, address)?;
    let (owner, id) = *profile.joined.types.get(ty as usize)?;
    Some((owner, part(owner, id, offset)?))
}

#[cfg(test)]
mod tests;
