//! What the analysis says of an instruction.

use crate::code::{Access, Register};
use std::fmt;
use tallyline_debuginfo::model::TypeId;

/// What is known about the memory operand of one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is a part of an object.
    Typed(Typed),
    /// It is nothing that has a type in the program.
    Pseudo(Pseudo),
    /// It is not known.
    Untyped(Reason),
}

/// A part of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Typed {
    /// The type of the object.
    pub ty: TypeId,
    /// The byte of it that is touched first.
    pub offset: u32,
    /// The other place in the object, if a condition chooses between two or a pair of registers is accessed.
    pub or: Option<Choice>,
    /// How many bytes at each place; 0 where it is not known.
    pub size: u16,
    /// What is done with them.
    pub access: Access,
    /// Which of the fields there it can be: bits by position in the order of the type. Members of unions and
    /// of variants lie on top of each other, and bitfields share bytes.
    pub candidates: u64,
    /// The node of a container that the object is a part of, if it is one: its base, or what it has room for.
    pub within: Option<Within>,
}

/// An object that another one is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    /// The type of the object.
    pub ty: TypeId,
    /// Where in it the part starts.
    pub start: u32,
}

impl Typed {
    /// A part of an object of which nothing is known but where it is, and what is done with it.
    pub fn at(ty: TypeId, offset: u32, size: u16, access: Access) -> Typed {
        Typed { ty, offset, or: None, size, access, candidates: u64::MAX, within: None }
    }

    /// Returns true if the access is to both places, as the load or store of a pair of registers is.
    pub fn is_pair(&self) -> bool {
        self.or.is_some_and(|or| or.both)
    }

    /// Returns the number of bytes that are accessed, those of both halves of a pair.
    pub fn bytes(&self) -> u16 {
        if self.is_pair() { self.size.saturating_mul(2) } else { self.size }
    }
}

/// The other of two places in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The byte that is touched first there.
    pub offset: u32,
    /// Where in the object the base of the address is, if that is known: with what registers hold, or with
    /// the address of the data, it tells which of the two places it is.
    pub start: Option<i32>,
    /// `true` if both places are accessed, by halves of one access: those of a pair of registers.
    pub(crate) both: bool,
}

/// Memory that has no type in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pseudo {
    /// A push, a pop, a return.
    StackOperation,
    /// The value that guards the stack.
    StackCanary,
    /// A place on the stack that the compiler made for itself.
    Spill,
    /// A constant that the compiler put into memory.
    Constant,
    /// A table of functions that the compiler made.
    Vtable,
    /// The instruction touches no memory.
    NoMemory,
}

impl Pseudo {
    /// Each of them. Kept tables number them by their place here.
    pub const ALL: [Pseudo; 6] = [
        Pseudo::StackOperation,
        Pseudo::StackCanary,
        Pseudo::Spill,
        Pseudo::Constant,
        Pseudo::Vtable,
        Pseudo::NoMemory,
    ];

    /// How it is called in reports.
    pub fn name(self) -> &'static str {
        match self {
            Pseudo::StackOperation => "(stack operation)",
            Pseudo::StackCanary => "(stack canary)",
            Pseudo::Spill => "(spill)",
            Pseudo::Constant => "(constant)",
            Pseudo::Vtable => "(vtable)",
            Pseudo::NoMemory => "(no memory)",
        }
    }
}

/// Why the type of an operand is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The program has no debug information that the code here is described by.
    NoDebugInformation,
    /// There is no instruction that starts here.
    NoInstruction,
    /// No variable is known to be in the register, from the function's start on.
    NoVariable(Register),
    /// What the register has got there is not known.
    Lost {
        /// The register.
        register: Register,
        /// The address of the instruction that wrote it.
        at: u64,
    },
    /// No variable is known at the address.
    NoVariableAt(u64),
    /// It is known what points there, but not to what: `void *`, or a type that is only declared.
    Opaque(TypeId),
    /// It lies outside of the object that is pointed to.
    Outside {
        /// The object's type.
        ty: TypeId,
        /// How far from its start.
        offset: i32,
    },
    /// It is known which object, but not which part of it: an index can lead to several.
    Index {
        /// The object's type.
        ty: TypeId,
        /// The index goes by so many bytes.
        step: u32,
        /// Where in the object the base of the address is, or in one of several side by side.
        start: Option<i32>,
    },
    /// The segment's start is not known.
    Segment,
    /// Nothing that can be seen leads to the instruction.
    Unreached,
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NoDebugInformation => write!(out, "no debug information"),
            Reason::NoInstruction => write!(out, "no instruction starts here"),
            Reason::NoVariable(register) => write!(out, "no variable in register {}", register.0),
            Reason::Lost { register, at } => write!(out, "lost track of register {} at {at:#x}", register.0),
            Reason::NoVariableAt(address) => write!(out, "no variable at {address:#x}"),
            Reason::Opaque(_) => write!(out, "pointer to void or to a type that is only declared"),
            Reason::Outside { offset, .. } => {
                write!(out, "outside of the object that is pointed to, at {offset:+#x}")
            }
            Reason::Index { step, .. } => write!(out, "index not known, which goes by steps of {step}"),
            Reason::Segment => write!(out, "segment base not known"),
            Reason::Unreached => write!(out, "nothing leads here"),
        }
    }
}

impl Reason {
    /// The kind of reason, for counting: one for all instructions that have it.
    pub fn kind(&self) -> &'static str {
        match self {
            Reason::NoDebugInformation => "no debug information",
            Reason::NoInstruction => "no instruction starts here",
            Reason::NoVariable(_) => "no variable",
            Reason::Lost { .. } => "lost track",
            Reason::NoVariableAt(_) => "no variable at the address",
            Reason::Opaque(_) => "pointer to void or to a declared type",
            Reason::Outside { .. } => "outside of the object",
            Reason::Index { .. } => "index not known",
            Reason::Segment => "segment base not known",
            Reason::Unreached => "nothing leads here",
        }
    }
}
