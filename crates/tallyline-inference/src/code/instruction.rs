//! What an instruction does, in terms that do not depend on the machine.

use super::fusion::FusionRole;
pub use tallyline_debuginfo::program::{REGISTERS, Register};

/// What an instruction does with its memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// It reads it.
    Read,
    /// It writes it.
    Write,
    /// It reads it and writes it.
    ReadWrite,
}

impl Access {
    /// Whether it reads.
    pub fn reads(self) -> bool {
        self != Access::Write
    }

    /// Whether it writes.
    pub fn writes(self) -> bool {
        self != Access::Read
    }
}

/// A segment whose start is added to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentBase {
    /// None.
    Flat,
    /// `%fs`: thread-local storage of programs.
    Fs,
    /// `%gs`: per-CPU data of kernels.
    Gs,
}

/// A memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The register with the base address; none where the displacement is the address.
    pub base: Option<Register>,
    /// The register with an index.
    pub index: Option<Register>,
    /// What the index is multiplied with.
    pub scale: u8,
    /// What is added; the address itself where it is relative to the program counter.
    pub displacement: i64,
    /// The segment.
    pub segment: SegmentBase,
    /// How many bytes; 0 where it is not known.
    pub size: u16,
    /// What is done with it.
    pub access: Access,
    /// Whether it is the stack only because the instruction is a push, a pop or a return.
    pub implicit: bool,
    /// `true` if a pair of registers is loaded or stored, each of them half of the bytes.
    pub(crate) is_pair: bool,
}

/// One step of what an instruction does to the registers. An instruction's steps follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// One register becomes a copy of another.
    Copy {
        /// What is written.
        to: Register,
        /// What is read.
        from: Register,
    },
    /// A register becomes a number that the instruction has.
    Constant {
        /// What is written.
        to: Register,
        /// The number.
        value: i64,
    },
    /// A register becomes one of two numbers, as a condition says. That of a byte counts for all of the
    /// register: what is above is cleared before, or behind.
    OneOf {
        /// What is written.
        to: Register,
        /// The numbers.
        numbers: [i64; 2],
    },
    /// A register becomes an address: base + index * scale + displacement.
    Address {
        /// What is written.
        to: Register,
        /// The base.
        base: Option<Register>,
        /// The index.
        index: Option<Register>,
        /// What the index is multiplied with.
        scale: u8,
        /// What is added.
        displacement: i64,
    },
    /// A register is added to another, or taken from it.
    Sum {
        /// What is changed.
        to: Register,
        /// What it is changed by.
        by: Register,
        /// Whether it is taken.
        subtract: bool,
    },
    /// A register becomes a multiple of another.
    Multiply {
        /// What is written.
        to: Register,
        /// What is read.
        from: Register,
        /// What it is multiplied with.
        by: i64,
    },
    /// A register becomes the product of two others.
    Product {
        /// What is written.
        to: Register,
        /// One.
        one: Register,
        /// The other.
        other: Register,
        /// What is added.
        plus: Option<Register>,
    },
    /// Only a part of a register is kept, as a number.
    Narrow {
        /// What is changed.
        to: Register,
        /// How many bytes are kept.
        size: u8,
        /// Whether the part has a sign.
        signed: bool,
    },
    /// A register gets a number of which nothing is known, but that it is no address.
    Number {
        /// What is written.
        to: Register,
    },
    /// Bits of a register are combined with those of another.
    Mix {
        /// What is changed.
        to: Register,
        /// What it is changed by.
        by: Register,
    },
    /// Bits of a register are cleared.
    Mask {
        /// What is changed.
        to: Register,
        /// The bits that stay.
        mask: i64,
    },
    /// A register becomes a copy of another, or stays what it is.
    Choose {
        /// What may be written.
        to: Register,
        /// What is read.
        from: Register,
    },
    /// Two registers change places.
    Swap {
        /// One.
        a: Register,
        /// The other.
        b: Register,
    },
    /// A register is loaded from the memory operand, at an offset from its start.
    Load {
        /// What is written.
        to: Register,
        /// How many bytes.
        size: u8,
        /// How far behind the operand's start.
        at: u8,
    },
    /// A register is stored to the memory operand; none for a number.
    Store {
        /// What is read.
        from: Option<Register>,
        /// How many bytes.
        size: u8,
        /// How far behind the operand's start.
        at: u8,
    },
    /// What is in memory is added to a register.
    AddMemory {
        /// What is changed.
        to: Register,
    },
    /// The stack pointer goes down by a word, and a register is stored there; none for a number.
    Push {
        /// What is read.
        from: Option<Register>,
    },
    /// A register is loaded from the stack, and the stack pointer goes up by a word.
    Pop {
        /// What is written.
        to: Register,
    },
    /// A function is called whose address is in a register.
    Through {
        /// What is read.
        from: Register,
    },
    /// A register becomes the address that the thread's own variables are counted from.
    ThreadPointer {
        /// What is written.
        to: Register,
    },
    /// A register gets a value of which nothing is known.
    Modify {
        /// What is written.
        to: Register,
    },
    /// The flags are set by a comparison.
    Compare {
        /// The left operand.
        one: Compared,
        /// The right operand.
        other: Compared,
        /// The operands' size in bytes.
        size: u8,
        /// Whether the bits that both have are compared with 0, not the operands with each other.
        is_test: bool,
    },
    /// The flags of a comparison are overwritten.
    Flags,
}

/// An operand of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// The operand in memory.
    Memory,
    /// A number that the instruction has.
    Number(i64),
    /// A register.
    Register(Register),
}

/// The condition of a branch, by the comparison that set the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The operands are equal, or have no bit in common.
    Equal,
    /// The left operand is less, unsigned.
    Below,
    /// The left operand is not greater, unsigned.
    BelowOrEqual,
    /// The left operand is less, signed.
    Less,
    /// The left operand is not greater, signed.
    LessOrEqual,
    /// The result is negative.
    Negative,
    /// The difference does not fit, signed.
    Overflow,
    /// The opposite of `Equal`.
    NotEqual,
    /// The opposite of `Below`.
    NotBelow,
    /// The opposite of `BelowOrEqual`.
    NotBelowOrEqual,
    /// The opposite of `Less`.
    NotLess,
    /// The opposite of `LessOrEqual`.
    NotLessOrEqual,
    /// The opposite of `Negative`.
    NotNegative,
    /// The opposite of `Overflow`.
    NotOverflow,
}

impl Condition {
    /// The condition that holds where this one does not.
    pub(crate) fn opposite(self) -> Condition {
        match self {
            Condition::Equal => Condition::NotEqual,
            Condition::Below => Condition::NotBelow,
            Condition::BelowOrEqual => Condition::NotBelowOrEqual,
            Condition::Less => Condition::NotLess,
            Condition::LessOrEqual => Condition::NotLessOrEqual,
            Condition::Negative => Condition::NotNegative,
            Condition::Overflow => Condition::NotOverflow,
            Condition::NotOverflow => Condition::Overflow,
            Condition::NotEqual => Condition::Equal,
            Condition::NotBelow => Condition::Below,
            Condition::NotBelowOrEqual => Condition::BelowOrEqual,
            Condition::NotLess => Condition::Less,
            Condition::NotLessOrEqual => Condition::LessOrEqual,
            Condition::NotNegative => Condition::Negative,
        }
    }
}

impl Effect {
    /// The registers that are written; the stack pointer of a push or a pop aside.
    pub fn written(&self) -> impl Iterator<Item = Register> + use<> {
        let (one, other) = match *self {
            Effect::Copy { to, .. }
            | Effect::Constant { to, .. }
            | Effect::OneOf { to, .. }
            | Effect::Address { to, .. }
            | Effect::Sum { to, .. }
            | Effect::Multiply { to, .. }
            | Effect::Product { to, .. }
            | Effect::Narrow { to, .. }
            | Effect::Number { to }
            | Effect::Mix { to, .. }
            | Effect::Mask { to, .. }
            | Effect::Choose { to, .. }
            | Effect::Load { to, .. }
            | Effect::AddMemory { to }
            | Effect::Pop { to }
            | Effect::Modify { to }
            | Effect::ThreadPointer { to } => (Some(to), None),
            Effect::Swap { a, b } => (Some(a), Some(b)),
            Effect::Store { .. }
            | Effect::Push { .. }
            | Effect::Through { .. }
            | Effect::Compare { .. }
            | Effect::Flags => (None, None),
        };
        one.into_iter().chain(other)
    }
}

/// Where control goes behind an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// Elsewhere; none where it is computed.
    Jump(Option<u64>),
    /// Elsewhere, or to the next instruction.
    Branch(u64),
    /// Into a function and back; none where its address is computed.
    Call(Option<u64>),
    /// Back to the caller.
    Return,
    /// Nowhere: it traps, or is no instruction.
    Stop,
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// Its address.
    pub address: u64,
    /// How many bytes it has.
    pub length: u8,
    /// Where control goes.
    pub flow: Flow,
    /// The condition that a branch or a conditional move depends on, where it is one of a comparison.
    pub condition: Option<Condition>,
    /// What it does with memory; of two operands, the one that is read, which it can wait for. The other one
    /// is [`Body::second_operand`](super::Body::second_operand).
    pub memory: Option<Memory>,
    /// The part that it can take in a macro-fused pair.
    pub fusion: FusionRole,
    /// Whether it is a string instruction that is repeated, and can be interrupted between its turns.
    pub is_repeated: bool,
    pub(super) effects: (u32, u32),
}

impl Instruction {
    /// The address behind it.
    pub fn end(&self) -> u64 {
        self.address.wrapping_add(u64::from(self.length))
    }
}
