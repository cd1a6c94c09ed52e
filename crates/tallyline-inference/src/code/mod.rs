//! The code of a program: functions, instructions, control flow.
//!
//! [`Image`] holds the needed parts of an ELF file: code, read-only data, symbols. [`Body`] is one decoded function:
//! the effects of each instruction on registers and memory in machine-independent terms ([`Effect`]), and its
//! control-flow graph.

mod aarch64;
mod address_taken;
mod bits;
mod body;
mod fusion;
mod image;
mod implicit_edges;
mod instruction;
mod kernel_tables;
mod operation;
mod region;
mod scan;
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
pub use scan::{instruction_before, is_branched_to};
pub use symbols::Symbol;
pub use update::{MemoryUpdate, memory_update_at};
pub(crate) use vector::{LaneQuery, Lanes, lanes_written, vector_index};
