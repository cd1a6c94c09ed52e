//! Numbers for values whose contents are unknown: two registers with one number hold equal values.
//!
//! Bits 0 to 6 are the register, the bits from 7 on the instruction or block; bit 60 marks a join, so that numbers of
//! instructions and of joins never coincide.

use crate::code::Register;

/// Returns the number of the value that an instruction writes to a register.
pub(super) fn defined_at(position: usize, register: Register) -> u64 {
    (position as u64 + 1) << 7 | u64::from(register.0)
}

/// Returns the number of the value that results from the join of a register at the start of a block.
pub(super) fn joined_at(block: usize, register: Register) -> u64 {
    1 << 60 | (block as u64) << 7 | u64::from(register.0)
}
