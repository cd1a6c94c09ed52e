//! Jump tables, as compilers emit for `switch`.

use super::image::Image;
use super::instruction::{Effect, Flow, Instruction, Register};
use std::ops::Range;

/// The maximum number of entries of one table.
const ENTRIES_LIMIT: u64 = 4096;

/// The maximum number of instructions before a jump that are searched for its table.
const BACK_LIMIT: usize = 256;

/// The encoding of a table's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entries {
    /// Absolute addresses, 64 bits wide.
    Absolute,
    /// Offsets from the table's own address, signed and 32 bits wide.
    Relative,
}

/// Returns the targets of an indirect jump; empty if no table is recognized.
///
/// The table ends before the first entry that leaves the function.
pub(super) fn targets<'e>(
    image: &Image,
    instructions: &[Instruction],
    effects: impl Fn(&Instruction) -> &'e [Effect],
    position: usize,
    ranges: &[Range<u64>],
) -> Vec<u64> {
    let before = &instructions[position.saturating_sub(BACK_LIMIT)..position];
    let Some((table, entries)) = table(&instructions[position], before, &effects) else { return Vec::new() };
    let mut found = Vec::new();
    for index in 0..ENTRIES_LIMIT {
        let target = match entries {
            Entries::Absolute => {
                let place = table.wrapping_add(index * 8);
                image.slot(place).or_else(|| word(image, place).map(u64::from_le_bytes))
            }
            Entries::Relative => word(image, table.wrapping_add(index * 4))
                .map(|bytes| table.wrapping_add_signed(i32::from_le_bytes(bytes).into())),
        };
        match target.filter(|target| ranges.iter().any(|range| range.contains(target))) {
            Some(target) => found.push(target),
            None => break,
        }
    }
    found
}

/// Reads bytes of read-only data.
fn word<const SIZE: usize>(image: &Image, address: u64) -> Option<[u8; SIZE]> {
    let (region, bytes) = image.bytes(address, SIZE)?;
    bytes.first_chunk().copied().filter(|_| !region.code)
}

/// Returns the address of a jump's table and the encoding of its entries.
fn table<'e>(
    jump: &Instruction,
    before: &[Instruction],
    effects: &impl Fn(&Instruction) -> &'e [Effect],
) -> Option<(u64, Entries)> {
    if let Some(memory) = jump.memory {
        let start = match memory.base {
            None => memory.displacement as u64,
            Some(base) => constant(before, effects, base)?.wrapping_add(memory.displacement as u64),
        };
        return (memory.index.is_some() && memory.scale == 8).then_some((start, Entries::Absolute));
    }
    // `movslq (table,index,4),to; add table,to; jmp *to`, with other instructions between
    let mut sum = None;
    for (at, instruction) in before.iter().enumerate().rev() {
        if instruction.flow != Flow::Next {
            return None;
        }
        match (sum, effects(instruction).first(), instruction.memory) {
            (None, Some(&Effect::Add { to, by, subtract: false }), None) => sum = Some((to, by)),
            (Some((one, other)), Some(&Effect::Load { to, size: 4, .. }), Some(memory))
                if [one, other].contains(&to) && memory.index.is_some() && memory.scale == 4 =>
            {
                let base = memory.base.filter(|base| [one, other].contains(base))?;
                let start = constant(&before[..at], effects, base)?;
                return (memory.displacement == 0).then_some((start, Entries::Relative));
            }
            _ => {}
        }
    }
    None
}

/// Returns the address that a register has been given last, in the order of the code.
fn constant<'e>(
    before: &[Instruction],
    effects: &impl Fn(&Instruction) -> &'e [Effect],
    register: Register,
) -> Option<u64> {
    for instruction in before.iter().rev() {
        for effect in effects(instruction).iter().rev() {
            if effect.written().any(|written| written == register) {
                return match *effect {
                    Effect::Address { base: None, index: None, displacement, .. } => {
                        Some(displacement as u64)
                    }
                    Effect::Constant { value, .. } => Some(value as u64),
                    _ => None,
                };
            }
        }
    }
    None
}
