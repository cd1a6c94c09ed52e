//! Macro-fusion: pairs of a flag-setting instruction and a conditional jump that some CPUs retire as one.
//!
//! A sample of the clock lies behind what has retired. Where a pair retires as one instruction, no sample lies
//! between its two halves. Which pairs do differs between CPUs, so that here is only said which may.

use std::fmt;

/// The role that an instruction can have in a macro-fused pair: setting the CPU's flags, jumping by them, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FusionRole {
    /// Not part of such a pair.
    #[default]
    None,
    /// The first of the pair, which sets the flags.
    Producer(FlagProducer),
    /// The second of the pair, which jumps by the flags.
    Jump(JumpCondition),
}

/// The first instruction of a macro-fused pair, which sets the CPU's flags: its operation and the form of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FlagProducer {
    pub(crate) operation: FlagOperation,
    pub(crate) operands: OperandForm,
}

/// The operation of a flag-setting instruction, such as `cmp` or `add`, that some CPUs fuse with the conditional
/// jump after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the mnemonics")]
pub enum FlagOperation {
    Cmp,
    Test,
    Add,
    Sub,
    And,
    Or,
    Xor,
    Inc,
    Dec,
}

/// The form of the operands of a flag-setting instruction: registers, an immediate, memory. Whether a CPU fuses it
/// with a jump depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperandForm {
    /// Two registers, without an immediate or memory.
    Registers,
    /// A register and an immediate, or a register alone.
    Immediate,
    /// A register and memory that is read.
    Memory,
    /// A register and memory relative to the program counter that is read.
    RelativeMemory,
    /// An immediate and memory that is read.
    MemoryImmediate,
    /// Memory that is read and written.
    MemoryWritten,
}

/// The CPU flags that a conditional jump tests, as finely as CPUs' rules of macro-fusion distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JumpCondition {
    /// Equality or its opposite: the zero flag alone.
    Zero,
    /// An unsigned comparison (below, above): the carry flag, alone or with the zero flag.
    Carry,
    /// A signed comparison (less, greater): the sign flag against the overflow flag.
    Signed,
    /// The sign, overflow or parity flag alone.
    Other,
}

/// A kind of flag-setting instruction and conditional jump, such as `cmp` of registers with `je`, that a CPU may
/// fuse and retire as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FusiblePair {
    pub(crate) producer: FlagProducer,
    pub(crate) condition: JumpCondition,
}

impl FusiblePair {
    /// Describes the pair of a flag-setting instruction, by its operation and operands, and a conditional jump, by the
    /// CPU flags that it tests.
    pub fn new(operation: FlagOperation, operands: OperandForm, condition: JumpCondition) -> FusiblePair {
        FusiblePair { producer: FlagProducer { operation, operands }, condition }
    }

    /// Returns the operation of the pair's flag-setting instruction.
    pub fn operation(&self) -> FlagOperation {
        self.producer.operation
    }

    /// Returns the form of the operands of the pair's flag-setting instruction.
    pub fn operands(&self) -> OperandForm {
        self.producer.operands
    }

    /// Returns the CPU flags that the pair's conditional jump tests.
    pub fn condition(&self) -> JumpCondition {
        self.condition
    }
}

impl fmt::Display for FusiblePair {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = match self.producer.operation {
            FlagOperation::Cmp => "cmp",
            FlagOperation::Test => "test",
            FlagOperation::Add => "add",
            FlagOperation::Sub => "sub",
            FlagOperation::And => "and",
            FlagOperation::Or => "or",
            FlagOperation::Xor => "xor",
            FlagOperation::Inc => "inc",
            FlagOperation::Dec => "dec",
        };
        let operands = match self.producer.operands {
            OperandForm::Registers => "reg,reg",
            OperandForm::Immediate => "imm,reg",
            OperandForm::Memory => "reg,mem",
            OperandForm::RelativeMemory => "reg,mem(%rip)",
            OperandForm::MemoryImmediate => "imm,mem",
            OperandForm::MemoryWritten => "mem (read and written)",
        };
        let jump = match self.condition {
            JumpCondition::Zero => "je",
            JumpCondition::Carry => "jb",
            JumpCondition::Signed => "jl",
            JumpCondition::Other => "js",
        };
        write!(out, "{operation} {operands} + {jump}")
    }
}
