//! The code of a program: functions, instructions, control flow.
//!
//! [`Image`] holds the needed parts of an ELF file: code, read-only data, symbols. [`Body`] is one decoded function:
//! the effects of each instruction on registers and memory in machine-independent terms ([`Effect`]), and its
//! control-flow graph.

mod aarch64;
mod address_taken;
mod bits;
mod body;
mod function_store;
mod fusion;
mod image;
mod implicit_edges;
mod instruction;
mod kernel_tables;
mod operation;
mod packed;
mod region;
mod scan;
mod spin;
mod symbols;
mod tables;
mod text;
mod update;
mod vector;
mod x86;
mod x86_operands;

pub use address_taken::addresses_taken;
pub(crate) use bits::bits_of;
pub use body::{Block, Body, Predecessors};
pub use fusion::{FlagOperation, FusiblePair, JumpCondition, OperandForm};
pub(crate) use image::SymbolsMissing;
pub use image::{Image, Machine, Segment};
pub(crate) use instruction::Condition;
pub use instruction::{
    Access, ComparisonOperand, Effect, Flow, Instruction, Memory, REGISTERS, Register, SegmentBase,
};
pub use operation::{Operation, operation_at};
pub use scan::{instructions, is_branched_to};
pub use spin::spin_loops;
pub use symbols::Symbol;
pub use update::{MemoryUpdate, is_stored_back, memory_update_at};
pub(crate) use vector::{LaneQuery, Lanes, lanes_written, vector_index};

/// Parses bytes as a cache file's index of decoded functions, and as one decoded function, for fuzzing; returns
/// `true` if either is well-formed.
#[doc(hidden)]
pub fn read_functions(bytes: &[u8]) -> bool {
    let ranges = [0x1000..0x1100, 0x800..0x900];
    let body = Body::unpacked(&ranges, &[(0x1004, 0x1010)], bytes).unwrap_or_default();
    for (position, instruction) in body.instructions().iter().enumerate() {
        let _ = (body.pair_at(position), body.second_operand(position), body.table(position));
        let _ = body.predecessors(instruction.address());
    }
    function_store::read_index(bytes) || !body.instructions().is_empty()
}
