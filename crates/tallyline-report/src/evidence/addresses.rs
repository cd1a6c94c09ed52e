//! Addresses of the data of samples without one, by their registers.

use super::{LoneInstruction, alone};
use crate::index::PlaceId;
use crate::places::PlaceKind;
use crate::samples::TypedSamples;
use rustc_hash::FxHashMap;
use tallyline_inference::effective_address;
use tallyline_perf_data::sample::CpuMode;

/// Sets the address of the data of each sample in a program whose registers tell it: those that the instruction which it
/// is charged to left as they were.
pub(super) fn compute(typed: &mut TypedSamples) {
    let mut instructions: FxHashMap<PlaceId, Option<LoneInstruction>> = FxHashMap::default();
    for index in 0..typed.samples.groups.len() {
        let samples = &typed.samples;
        let group = samples.groups[index];
        let place = samples.places.get(group.charged);
        let (sampled, charged) = (samples.linked(group.place), samples.linked(group.charged));
        // the word on the stack that a call or a return used has no register
        let is_call = matches!(place.kind, PlaceKind::CallOrReturn | PlaceKind::IndirectCall);
        if group.address != 0 || group.mode != CpuMode::User || is_call || sampled.0 != charged.0 {
            continue;
        }
        let Some(program) = charged.0.and_then(|dso| typed.binaries.get(dso)) else { continue };
        let is_second = place.kind == PlaceKind::SecondOperand;
        let instruction =
            *instructions.entry(group.charged).or_insert_with(|| alone(&program.image, charged.1, is_second));
        let Some(instruction) = instruction else { continue };
        let is_valid = instruction.keeps_registers || sampled.1 == charged.1;
        let held = |register| {
            group.registers.filter(|_| is_valid).and_then(|id| samples.registers.get(id, register))
        };
        let memory = &instruction.memory;
        // relative to the instruction: as far from it as it was linked
        let is_relative = memory.base().is_none() && memory.index().is_none();
        let moved = if is_relative { group.ip.wrapping_sub(sampled.1) } else { 0 };
        if let Some(address) = effective_address(memory, held) {
            typed.samples.groups[index].address = address.wrapping_add(moved);
        }
    }
}
