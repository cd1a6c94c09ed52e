//! Samples whose instruction does not say what it accesses, but the address of the data or the registers do.
//!
//! An address in a variable is that variable's; an index that the analysis does not know is what the
//! registers held; memory that one instruction is known to use as an object of a type is an object of
//! that type for another instruction, too. What memory was before it was freed and used again is not
//! told apart: where two types claim the same bytes neither is believed.

mod addresses;

use super::binaries::Binaries;
use super::index::{JoinedId, PlaceId, RegistersId};
use super::operand::{NOT_LOOKED, Operand, Outcome, Reason, operand};
use super::places::{Place, PlaceKind};
use super::samples::{SampleGroup, Samples, TypedSamples};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use tallyline_debuginfo::abi;
use tallyline_debuginfo::model::{Type, TypeId};
use tallyline_inference::code::{Body, Effect, Image, Instruction, Memory};
use tallyline_inference::{TypeTable, Typed, effective_address};
use tallyline_perf_data::Error;
use tallyline_perf_data::file::{RecordBody, RecordSource};
use tallyline_perf_data::sample::{CpuMode, Registers, Sample};
use tallyline_perf_data::spaces::{DsoId, DsoKind};

/// The longest instruction, in bytes.
const LENGTH_LIMIT: u64 = 16;

/// Returns `true` if a sample has all registers of the mask `needed` as they were where it was taken, and not those of
/// user code under a sample of the kernel.
pub(super) fn has_registers(sample: &Sample<'_>, needed: Option<u64>) -> bool {
    match (registers(sample), needed) {
        (Some(registers), Some(needed)) => registers.mask() & needed == needed,
        _ => false,
    }
}

/// Returns the registers of a sample at its own place in the code.
fn registers<'s, 'a>(sample: &'s Sample<'a>) -> Option<&'s Registers<'a>> {
    let user = sample.user_registers.as_ref().filter(|_| sample.mode == CpuMode::User);
    sample.interrupt_registers.as_ref().or(user)
}

/// Returns the general registers, a bit for each of the kernel's numbers.
pub(super) fn needed(arch: &str) -> Option<u64> {
    numbers(arch).map(|numbers| numbers.iter().fold(0, |mask, number| mask | 1 << number))
}

/// Returns the kernel's numbers of the general registers, in DWARF's order.
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
fn recorded_address(group: &SampleGroup) -> Option<u64> {
    (group.data.is_some() && group.address != 0).then_some(group.address)
}

/// Returns the address that the linker gave to data that a sample is at, and the file.
fn linked(samples: &Samples, binaries: &Binaries, group: &SampleGroup) -> Option<(DsoId, u64)> {
    let place = samples.data.place(group.data?)?;
    let file = place.dso.filter(|dso| samples.dso(*dso).is_some_and(|dso| dso.kind() == DsoKind::File));
    if let Some(dso) = file
        && let Some(program) = binaries.get(dso)
    {
        return Some((dso, program.image.address_of(place.offset)?));
    }
    // what starts as zeros has no part of the file: it lies as far from the code as it was linked
    let (code, at) = samples.linked(group.place);
    let program = binaries.get(code?)?;
    let address = group.address.wrapping_sub(group.ip.wrapping_sub(at));
    program.symbols().data_at(address).and(Some((code?, address)))
}

/// Returns the addresses of data in each file's variables, as the linker gave them.
pub(super) fn in_variables(samples: &Samples, binaries: &Binaries) -> FxHashMap<DsoId, Vec<u64>> {
    let mut found: FxHashMap<DsoId, Vec<u64>> = FxHashMap::default();
    if samples.data.is_empty() {
        return found;
    }
    for group in samples.groups.iter().filter(|group| recorded_address(group).is_some()) {
        if let Some((dso, address)) = linked(samples, binaries, group) {
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
    list: BTreeMap<(i32, u64), (u64, Option<JoinedId>)>,
}

impl Objects {
    fn add(&mut self, pid: i32, start: u64, size: u64, ty: JoinedId) {
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

    fn at(&self, pid: i32, address: u64) -> Option<(JoinedId, u64)> {
        let (&(own, start), &(end, ty)) = self.list.range(..=(pid, address)).next_back()?;
        if own != pid || address >= end {
            return None;
        }
        Some((ty?, address - start))
    }
}

/// The memory operand of an instruction that was decoded alone, without its function.
#[derive(Clone, Copy)]
struct LoneInstruction {
    memory: Memory,
    /// `true` if the instruction leaves registers as they were before it.
    keeps_registers: bool,
}

fn alone(image: &Image, address: u64, is_second: bool) -> Option<LoneInstruction> {
    let range = address..address.checked_add(LENGTH_LIMIT)?;
    let body = Body::decode(image, std::slice::from_ref(&range), address);
    let first: &Instruction = body.instructions().first()?;
    let memory = if is_second { body.second_operand(0).copied() } else { first.memory().copied() };
    let memory = memory.filter(|memory| !memory.implicit())?;
    let mut written = body.effects(first).iter().flat_map(Effect::written);
    let keeps_registers =
        !written.any(|register| Some(register) == memory.base() || Some(register) == memory.index());
    Some(LoneInstruction { memory, keeps_registers })
}

/// Returns, for each group of samples, whether registers may say more about its instruction.
fn asking(typed: &TypedSamples, objects: &Objects) -> Vec<bool> {
    let TypedSamples { samples, operands, .. } = typed;
    let mut asks: FxHashMap<PlaceId, bool> = FxHashMap::default();
    let mut asks = |group: &SampleGroup| {
        *asks.entry(group.charged).or_insert_with(|| {
            if samples.places.get(group.charged).kind == PlaceKind::SecondOperand {
                return !objects.list.is_empty();
            }
            let (dso, address) = samples.linked(group.charged);
            let table = dso.and_then(|dso| operands.joined.table(dso));
            let asks = table.is_some_and(|table| table.needs_registers(address));
            match operands.outcome(group.charged) {
                Outcome::Untyped(Reason::Lost(_)) => asks || !objects.list.is_empty(),
                Outcome::Typed(Operand { or: Some(_), .. }) => asks,
                _ => false,
            }
        })
    };
    samples.groups.iter().map(|group| group.registers.is_some() && asks(group)).collect()
}

/// Reads what registers held of samples whose instructions ask for it; each becomes a group of its own.
fn read_registers(samples: &mut Samples, records: &dyn RecordSource, asks: &[bool]) -> Result<(), Error> {
    let Samples { groups, registers: recorded, info, .. } = samples;
    let Some(numbers) = numbers(&info.arch).filter(|_| asks.contains(&true)) else { return Ok(()) };
    // groups, records, and where those are
    let mut wanted: Vec<(u32, RegistersId, u64)> = Vec::new();
    for (record, group, position) in recorded.records() {
        if asks[group as usize] {
            wanted.push((group, record, position));
        }
    }
    // those near each other in the file are read together
    wanted.sort_unstable_by_key(|(.., position)| *position);
    let is_together = wanted.iter().any(|(point, ..)| groups[*point as usize].samples > 1);
    // what becomes of groups: their samples, one by one
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
        let group = &mut groups[*index as usize];
        if is_together {
            let period = sample.period.unwrap_or(group.period / group.samples.max(1));
            own.push((*index, SampleGroup { samples: 1, period, registers: Some(*record_id), ..*group }));
        } else {
            group.registers = Some(*record_id);
        }
        Ok(())
    });
    for (of, sample) in &own {
        let group = &mut groups[*of as usize];
        group.samples = group.samples.saturating_sub(1);
        group.period = group.period.saturating_sub(sample.period);
    }
    // in the order of time, as they were noted
    own.sort_unstable_by_key(|(_, sample)| sample.registers);
    groups.retain(|group| group.samples > 0);
    groups.extend(own.into_iter().map(|(_, sample)| sample));
    read
}

/// Looks for evidence for each sample that has no type. Returns how many have one by it. With `with_addresses` samples
/// get the addresses of their data from their registers.
pub(super) fn apply(typed: &mut TypedSamples, records: &dyn RecordSource, with_addresses: bool) -> u64 {
    if typed.samples.data.is_empty() && typed.samples.registers.is_empty() {
        return 0;
    }
    let objects = objects(typed);
    let mut asks = asking(typed, &objects);
    if with_addresses {
        asks = typed.samples.groups.iter().map(|group| group.registers.is_some()).collect();
    }
    if let Err(error) = read_registers(&mut typed.samples, records, &asks) {
        typed.operands.joined.warnings.push(format!("registers of samples: {error}"));
    }
    let mut instructions: FxHashMap<PlaceId, Option<LoneInstruction>> = FxHashMap::default();
    let mut made: FxHashMap<(PlaceId, JoinedId, u64), PlaceId> = FxHashMap::default();
    let mut samples = 0;
    for index in 0..typed.samples.groups.len() {
        let group = typed.samples.groups[index];
        let open = match *typed.operands.outcome(group.charged) {
            Outcome::Untyped(Reason::Lost(_)) => None,
            Outcome::Typed(operand @ Operand { or: Some(or), .. }) => Some((operand, [operand.offset, or])),
            _ => continue,
        };
        let kind = typed.samples.places.get(group.charged).kind;
        let (dso, address) = typed.samples.linked(group.charged);
        let Some(program) = dso.and_then(|dso| typed.binaries.get(dso)) else { continue };
        let instruction = *instructions
            .entry(group.charged)
            .or_insert_with(|| alone(&program.image, address, kind == PlaceKind::SecondOperand));
        let Some(instruction) = instruction else { continue };
        let Some((dso, found)) = operand_of(typed, &objects, &group, address, &instruction) else { continue };
        let ty = typed.operands.joined.id(dso, found.ty());
        // of two places it can only be one of them
        if open.is_some_and(|(operand, either)| operand.ty != ty || !either.contains(&found.offset().into()))
        {
            continue;
        }
        let key = (group.charged, ty, u64::from(found.offset()));
        let charged = *made.entry(key).or_insert_with(|| add_place(typed, group.charged, dso, ty, &found));
        typed.samples.groups[index].charged = charged;
        samples += if open.is_none() { group.samples } else { 0 };
    }
    if with_addresses {
        addresses::compute(typed);
    }
    samples
}

/// Adds a place of its own for samples of a place that access the same.
fn add_place(typed: &mut TypedSamples, of: PlaceId, dso: DsoId, ty: JoinedId, found: &Typed) -> PlaceId {
    let TypedSamples { samples, operands, .. } = typed;
    let table = operands.joined.tables.get(&dso);
    let outcome = table.map(|table| Outcome::Typed(operand(&mut samples.names, table, ty, found)));
    operands.push(outcome.unwrap_or(NOT_LOOKED));
    let place = Place { kind: PlaceKind::ByEvidence, ..*samples.places.get(of) };
    samples.places.push(place, samples.places.address(of))
}

/// Returns the objects that typed samples with addresses are at.
fn objects(typed: &TypedSamples) -> Objects {
    let TypedSamples { samples, operands, .. } = typed;
    let mut objects = Objects::default();
    for group in samples.groups.iter().filter(|group| recorded_address(group).is_some()) {
        let Outcome::Typed(Operand { ty, offset, or: None, .. }) = operands.outcome(group.charged) else {
            continue;
        };
        let Some((table, id)) = operands.joined.get(*ty) else { continue };
        let types = table.types();
        if let (Type::Record(_), Some(start)) =
            (types.get(types.strip(id)), group.address.checked_sub(*offset))
        {
            objects.add(group.pid, start, abi::size_of(types, id), *ty);
        }
    }
    objects
}

/// Returns the operand of a sample's instruction, and the file that has the type.
fn operand_of(
    typed: &TypedSamples,
    objects: &Objects,
    group: &SampleGroup,
    instruction: u64,
    alone: &LoneInstruction,
) -> Option<(DsoId, Typed)> {
    let TypedSamples { samples, operands, binaries, .. } = typed;
    let place = samples.places.get(group.charged);
    let is_through = group.charged != group.place;
    let held = |register| {
        let is_valid = alone.keeps_registers || !is_through;
        group.registers.filter(|_| is_valid).and_then(|id| samples.registers.get(id, register))
    };
    let recorded = recorded_address(group);
    let table = |dso: DsoId| -> Option<&TypeTable> { operands.joined.table(dso) };
    let memory = &alone.memory;
    // registers speak of the index of a first operand
    if place.kind != PlaceKind::SecondOperand
        && let dso = place.dso?
        && let Some(typed) = table(dso)?.refine_by_registers(instruction, memory, recorded, held)
    {
        return Some((dso, typed));
    }
    let part = |owner: DsoId, ty: TypeId, offset: u64| {
        let offset = u32::try_from(offset).ok()?;
        Some(Typed::by_size(table(owner)?.types(), ty, offset, memory.size(), memory.access()))
    };
    if recorded.is_some()
        && let Some((owner, address)) = linked(samples, binaries, group)
        && let Some((ty, offset)) = table(owner).and_then(|table| table.variable_at(address))
    {
        return Some((owner, part(owner, ty, offset.into())?));
    }
    let address = recorded.or_else(|| effective_address(memory, held))?;
    let (ty, offset) = objects.at(group.pid, address)?;
    let (owner, id) = operands.joined.source(ty)?;
    Some((owner, part(owner, id, offset)?))
}

#[cfg(test)]
mod tests;
