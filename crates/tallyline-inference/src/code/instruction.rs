//! Machine-independent instructions: effects, memory operands, control flow.

use super::fusion::FusionRole;
pub use tallyline_debuginfo::program::{REGISTERS, Register};

/// The kind of memory access: read, write, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// An access that only reads.
    Read,
    /// An access that only writes.
    Write,
    /// An access that reads and writes.
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
    /// No segment register.
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

/// An effect of an instruction on registers, such as a copy or an addition, in machine-independent form. The
/// effects of an instruction apply in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A copy of one register to another.
    Copy {
        /// The destination register of the copy.
        to: Register,
        /// The source register of the copy.
        from: Register,
    },
    /// The assignment of an immediate to a register.
    Constant {
        /// The register that is set to the immediate.
        to: Register,
        /// The value of the immediate.
        value: i64,
    },
    /// The assignment of one of two numbers to a register, depending on a condition. A result of one byte counts for
    /// the whole register, because the bits above it are cleared before or after.
    SelectConstant {
        /// The register that is set to one of the numbers.
        to: Register,
        /// The two numbers that the register can be set to.
        numbers: [i64; 2],
    },
    /// The computation of an address in a register: base + index * scale + displacement.
    Address {
        /// The register that is set to the address.
        to: Register,
        /// The base register of the address; `None` if it has none.
        base: Option<Register>,
        /// The index register of the address; `None` if it has none.
        index: Option<Register>,
        /// The scale of the address's index.
        scale: u8,
        /// The displacement of the address.
        displacement: i64,
    },
    /// The addition of a register to another, or its subtraction from it.
    Add {
        /// The register that is added to or subtracted from.
        to: Register,
        /// The register that is added or subtracted.
        by: Register,
        /// `true` for a subtraction, `false` for an addition.
        subtract: bool,
    },
    /// The assignment of a multiple of one register to another.
    Multiply {
        /// The register that is set to the multiple.
        to: Register,
        /// The register that is multiplied.
        from: Register,
        /// The constant factor.
        by: i64,
    },
    /// The assignment of the product of two registers to another, with a third added if there is one.
    Product {
        /// The register that is set to the product.
        to: Register,
        /// The register with the first factor of the product.
        one: Register,
        /// The register with the second factor of the product.
        other: Register,
        /// The register that is added to the product; `None` if there is none.
        plus: Option<Register>,
    },
    /// The truncation and extension of a register; the result is a number.
    Truncate {
        /// The register that is truncated and extended.
        to: Register,
        /// The number of bytes that the truncation keeps.
        size: u8,
        /// `true` for sign extension, `false` for zero extension.
        signed: bool,
    },
    /// The assignment of an unknown number that is not an address to a register.
    UnknownNumber {
        /// The register that is set to the number.
        to: Register,
    },
    /// The combination of the bits of a register with those of another.
    Combine {
        /// The register that is read and set to the combination.
        to: Register,
        /// The register that is combined with the destination.
        by: Register,
    },
    /// The bitwise AND of a register with another.
    And {
        /// The register that is read and set to the result of the AND.
        to: Register,
        /// The register whose clear bits are cleared in the destination.
        by: Register,
    },
    /// The replacement of a register by its sign: all ones if it is negative, else 0.
    SignMask {
        /// The register that is read and set to the mask.
        to: Register,
    },
    /// The bitwise AND of a register with a constant.
    Mask {
        /// The register whose bits are cleared.
        to: Register,
        /// The mask of the bits that are kept.
        mask: i64,
    },
    /// The copy of one register to another if a condition holds.
    ConditionalMove {
        /// The register that may be written.
        to: Register,
        /// The register that may be copied.
        from: Register,
    },
    /// The exchange of two registers.
    Swap {
        /// The first register of the exchange.
        a: Register,
        /// The second register of the exchange.
        b: Register,
    },
    /// A load of a register from the memory operand, at an offset from its start.
    Load {
        /// The destination register of the load.
        to: Register,
        /// The size of the load in bytes.
        size: u8,
        /// The offset of the load in the memory operand.
        at: u8,
    },
    /// A store of a register or an immediate to the memory operand, at an offset from its start.
    Store {
        /// The source register of the store; `None` for an immediate or an untracked register.
        from: Option<Register>,
        /// The size of the store in bytes.
        size: u8,
        /// The offset of the store in the memory operand.
        at: u8,
    },
    /// The addition of the memory operand to a register.
    AddMemory {
        /// The register that the memory operand is added to.
        to: Register,
    },
    /// A push: the stack pointer is decremented by a word, and a value is stored there.
    Push {
        /// The register that is pushed; `None` for any other operand.
        from: Option<Register>,
    },
    /// A pop: a register is loaded from the stack, and the stack pointer is incremented by a word.
    Pop {
        /// The destination register of the pop.
        to: Register,
    },
    /// A call of a function through a register.
    IndirectCall {
        /// The register with the address of the callee.
        from: Register,
    },
    /// The assignment of the thread pointer to a register.
    ThreadPointer {
        /// The register that is set to the thread pointer.
        to: Register,
    },
    /// The assignment of an unknown value to a register.
    Clobber {
        /// The register that becomes unknown.
        to: Register,
    },
    /// A comparison, which sets the flags.
    Compare {
        /// The left operand of the comparison.
        one: ComparisonOperand,
        /// The right operand of the comparison.
        other: ComparisonOperand,
        /// The size of the comparison's operands in bytes.
        size: u8,
        /// `true` if the conjunction of the operands is compared with 0, as by `test`.
        is_test: bool,
    },
    /// The overwriting of a comparison's flags.
    ClobberFlags,
}

/// An operand of a comparison: a register, memory or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonOperand {
    /// The memory operand of the instruction.
    Memory,
    /// An immediate operand.
    Number(i64),
    /// A register operand.
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
    /// Fall-through to the next instruction.
    Next,
    /// A jump to an address; `None` if it is indirect.
    Jump(Option<u64>),
    /// A conditional branch to an address; otherwise control falls through.
    Branch(u64),
    /// A call of the function at an address; `None` if it is indirect.
    Call(Option<u64>),
    /// A return to the caller.
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
