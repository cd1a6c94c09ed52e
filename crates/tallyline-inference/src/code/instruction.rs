//! Machine-independent instructions: effects, memory operands, control flow.

use super::fusion::FusionRole;
pub use tallyline_debuginfo::program::{REGISTERS, Register};

/// The kind of memory access: read, write, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A read and a write.
    ReadWrite,
}

impl Access {
    /// Returns `true` for accesses that read memory.
    pub fn reads(self) -> bool {
        self != Access::Write
    }

    /// Returns `true` for accesses that write memory.
    pub fn writes(self) -> bool {
        self != Access::Read
    }
}

/// The x86 segment register whose base is added to the address of a memory operand: none, `fs` (thread-local
/// storage) or `gs` (a kernel's per-CPU data).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentBase {
    /// No segment.
    Flat,
    /// `%fs`: thread-local storage of programs.
    Fs,
    /// `%gs`: per-CPU data of kernels.
    Gs,
}

/// A memory operand of a decoded instruction: base and index registers, scale, displacement, size, and kind of
/// access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub(crate) base: Option<Register>,
    pub(crate) index: Option<Register>,
    pub(crate) scale: u8,
    pub(crate) displacement: i64,
    pub(crate) segment: SegmentBase,
    pub(crate) size: u16,
    pub(crate) access: Access,
    pub(crate) implicit: bool,
    /// `true` if a pair of registers is loaded or stored, each of them half of the bytes.
    pub(crate) is_pair: bool,
}

impl Memory {
    /// Returns the base register of the memory operand; `None` if the address has none.
    pub fn base(&self) -> Option<Register> {
        self.base
    }

    /// Returns the index register of the memory operand; `None` if the address has none.
    pub fn index(&self) -> Option<Register> {
        self.index
    }

    /// Returns the factor by which the index register is multiplied: 1, 2, 4 or 8 on x86.
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// Returns the constant that is added to the memory operand's registers. For an operand relative to the program
    /// counter it is the address itself.
    pub fn displacement(&self) -> i64 {
        self.displacement
    }

    /// Returns the segment register whose base is added to the address of the memory operand.
    pub fn segment(&self) -> SegmentBase {
        self.segment
    }

    /// Returns the number of bytes that the memory operand accesses; 0 if unknown.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// Returns the kind of access to the memory operand: read, write, or both.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Returns `true` for the implicit stack operand of a push, pop, call or return.
    pub fn implicit(&self) -> bool {
        self.implicit
    }
}

/// One effect of an instruction on registers, such as a copy or an addition, in machine-independent form. The
/// effects of an instruction apply in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// One register becomes a copy of another.
    Copy {
        /// The destination.
        to: Register,
        /// The source.
        from: Register,
    },
    /// A register becomes an immediate.
    Constant {
        /// The destination.
        to: Register,
        /// The number.
        value: i64,
    },
    /// A register becomes one of two numbers, depending on a condition. A result of one byte counts for the whole
    /// register, because the bits above it are cleared before or after.
    SelectConstant {
        /// The destination.
        to: Register,
        /// The numbers.
        numbers: [i64; 2],
    },
    /// A register becomes an address: base + index * scale + displacement.
    Address {
        /// The destination.
        to: Register,
        /// The base.
        base: Option<Register>,
        /// The index.
        index: Option<Register>,
        /// The scale of the index.
        scale: u8,
        /// The displacement.
        displacement: i64,
    },
    /// A register is added to another or subtracted from it.
    Add {
        /// The register that is read and written.
        to: Register,
        /// The source.
        by: Register,
        /// `true` for a subtraction.
        subtract: bool,
    },
    /// A register becomes a multiple of another.
    Multiply {
        /// The destination.
        to: Register,
        /// The source.
        from: Register,
        /// The factor.
        by: i64,
    },
    /// A register becomes the product of two others.
    Product {
        /// The destination.
        to: Register,
        /// The first factor.
        one: Register,
        /// The second factor.
        other: Register,
        /// The addend.
        plus: Option<Register>,
    },
    /// A register is truncated and extended; the result is a number.
    Truncate {
        /// The register that is read and written.
        to: Register,
        /// The number of bytes that are kept.
        size: u8,
        /// `true` for sign extension.
        signed: bool,
    },
    /// A register becomes an unknown number that is not an address.
    UnknownNumber {
        /// The destination.
        to: Register,
    },
    /// Bits of a register are combined with those of another.
    Combine {
        /// The register that is read and written.
        to: Register,
        /// The source.
        by: Register,
    },
    /// The bits of a register are cleared that another has not.
    And {
        /// The register that is read and written.
        to: Register,
        /// The source.
        by: Register,
    },
    /// A register becomes all ones if it is negative, and else 0.
    SignMask {
        /// The register that is read and written.
        to: Register,
    },
    /// Bits of a register are cleared.
    Mask {
        /// The register that is read and written.
        to: Register,
        /// The bits that stay.
        mask: i64,
    },
    /// A register becomes a copy of another, or stays what it is.
    ConditionalMove {
        /// The register that may be written.
        to: Register,
        /// The source.
        from: Register,
    },
    /// Two registers change places.
    Swap {
        /// The first register.
        a: Register,
        /// The second register.
        b: Register,
    },
    /// A register is loaded from the memory operand, at an offset from its start.
    Load {
        /// The destination.
        to: Register,
        /// The size in bytes.
        size: u8,
        /// The offset in the operand.
        at: u8,
    },
    /// A register is stored to the memory operand; none for an immediate.
    Store {
        /// The source.
        from: Option<Register>,
        /// The size in bytes.
        size: u8,
        /// The offset in the operand.
        at: u8,
    },
    /// The memory operand is added to a register.
    AddMemory {
        /// The register that is read and written.
        to: Register,
    },
    /// The stack pointer is decremented by a word, and a register is stored there; none for an immediate.
    Push {
        /// The source.
        from: Option<Register>,
    },
    /// A register is loaded from the stack, and the stack pointer is incremented by a word.
    Pop {
        /// The destination.
        to: Register,
    },
    /// A function is called through a register.
    IndirectCall {
        /// The source.
        from: Register,
    },
    /// A register becomes the thread pointer.
    ThreadPointer {
        /// The destination.
        to: Register,
    },
    /// A register becomes unknown.
    Clobber {
        /// The destination.
        to: Register,
    },
    /// The flags are set by a comparison.
    Compare {
        /// The left operand.
        one: ComparisonOperand,
        /// The right operand.
        other: ComparisonOperand,
        /// The operands' size in bytes.
        size: u8,
        /// `true` if the conjunction of the operands is compared with 0, as by `test`.
        is_test: bool,
    },
    /// The flags of a comparison are overwritten.
    ClobberFlags,
}

/// One of the two operands that a compare instruction compares: a register, memory or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonOperand {
    /// The operand in memory.
    Memory,
    /// An immediate.
    Number(i64),
    /// A register.
    Register(Register),
}

/// The condition of a conditional branch in terms of the comparison before it: equal, below, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
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
    /// Returns the negated condition: the one that holds where the branch is not taken.
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
    /// Returns the registers that the effect changes, except the stack pointer of a push or pop.
    pub fn written(&self) -> impl Iterator<Item = Register> + use<> {
        let (one, other) = match *self {
            Effect::Copy { to, .. }
            | Effect::Constant { to, .. }
            | Effect::SelectConstant { to, .. }
            | Effect::Address { to, .. }
            | Effect::Add { to, .. }
            | Effect::Multiply { to, .. }
            | Effect::Product { to, .. }
            | Effect::Truncate { to, .. }
            | Effect::UnknownNumber { to }
            | Effect::Combine { to, .. }
            | Effect::And { to, .. }
            | Effect::SignMask { to }
            | Effect::Mask { to, .. }
            | Effect::ConditionalMove { to, .. }
            | Effect::Load { to, .. }
            | Effect::AddMemory { to }
            | Effect::Pop { to }
            | Effect::Clobber { to }
            | Effect::ThreadPointer { to } => (Some(to), None),
            Effect::Swap { a, b } => (Some(a), Some(b)),
            Effect::Store { .. }
            | Effect::Push { .. }
            | Effect::IndirectCall { .. }
            | Effect::Compare { .. }
            | Effect::ClobberFlags => (None, None),
        };
        one.into_iter().chain(other)
    }
}

/// The control flow after an instruction: to the next one, a jump or branch target, a callee, the caller, or nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Falls through to the next instruction.
    Next,
    /// A jump; no target if it is indirect.
    Jump(Option<u64>),
    /// A conditional branch.
    Branch(u64),
    /// A call; no target if it is indirect.
    Call(Option<u64>),
    /// A return.
    Return,
    /// No successor: a trap or an invalid instruction.
    Stop,
}

/// A decoded machine instruction: address, length, memory operand, successor.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    pub(crate) address: u64,
    pub(crate) length: u8,
    pub(crate) flow: Flow,
    pub(crate) condition: Option<Condition>,
    pub(crate) memory: Option<Memory>,
    pub(crate) fusion: FusionRole,
    pub(crate) is_repeated: bool,
    pub(super) effects: (u32, u32),
}

impl Instruction {
    /// Returns the address of the instruction.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the length of the instruction in bytes.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Returns where control goes after the instruction: on, to a target, to a callee, to the caller, or nowhere.
    pub fn flow(&self) -> Flow {
        self.flow
    }

    /// Returns the memory operand of the instruction, `None` if it has none. Of two operands it is the one that is
    /// read; [`Body::second_operand`](super::Body::second_operand) returns the other.
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// Returns `true` for a string instruction with a repeat prefix, such as `rep movs`: an interrupt, and so a
    /// sample, can come between its iterations.
    pub fn is_repeated(&self) -> bool {
        self.is_repeated
    }
}

impl Instruction {
    /// Returns the address of the first byte after the instruction.
    pub fn end(&self) -> u64 {
        self.address.wrapping_add(u64::from(self.length))
    }
}
