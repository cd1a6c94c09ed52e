//! Outcomes of the analysis.

use crate::code::{Access, Register};
use std::fmt;
use tallyline_debuginfo::model::TypeId;

/// The result of type inference for one memory operand: the object's type and the part accessed (`T`), a kind of
/// memory that has no type, or the reason (`R`) why the type is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<T = Typed, R = Reason> {
    /// The part of an object that an operand accesses: the object's type, offset and size.
    Typed(T),
    /// Memory that has no type in the program, such as spills and constants.
    Pseudo(Pseudo),
    /// Unknown, with the reason.
    Untyped(R),
}

impl<T, R> Outcome<T, R> {
    /// Returns the type of the object that the memory operand accesses and the part accessed; `None` if the operand has
    /// no known type.
    pub fn operand(&self) -> Option<&T> {
        match self {
            Outcome::Typed(operand) => Some(operand),
            _ => None,
        }
    }
}

/// The part of an object that a memory operand accesses: the object's type, the offset and size, and the fields
/// possible there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Typed {
    pub(crate) ty: TypeId,
    pub(crate) offset: u32,
    pub(crate) or: Option<Choice>,
    pub(crate) size: u16,
    pub(crate) access: Access,
    pub(crate) candidates: u64,
    pub(crate) within: Option<Within>,
}

impl Typed {
    /// Returns the type of the object that the memory operand accesses.
    pub fn ty(&self) -> TypeId {
        self.ty
    }

    /// Returns the offset in the object, in bytes, at which the memory operand's access begins.
    pub fn offset(&self) -> u32 {
        self.offset
    }

    /// Returns the second offset in the object at which the memory operand's access may begin: where code chooses one
    /// of two addresses, or where a load or store of a register pair accesses both. `None` usually.
    pub fn or(&self) -> Option<u32> {
        self.or.map(|other| other.offset)
    }

    /// Returns this memory access with its second possible offset in the object ([`or`](Self::or)) as the only one;
    /// `None` if there is no second one.
    #[must_use]
    pub fn at_other_place(&self) -> Option<Typed> {
        self.or.map(|or| Typed { offset: or.offset, or: None, candidates: u64::MAX, ..*self })
    }

    /// Returns the number of bytes that the memory operand accesses at each of its offsets in the object, one or two; 0
    /// if unknown.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// Returns the kind of the memory operand's access to the object: read, write, or both.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Returns the fields of the object that the memory access may be to, as a mask: bit *n* is the *n*-th of the
    /// type's fields that cover the first accessed byte. There can be several in unions, variants of enums, and bytes
    /// shared by bitfields.
    pub fn candidates(&self) -> u64 {
        self.candidates
    }

    /// Returns the container's node (of a list, tree or map) in which the accessed object is embedded; `None` if
    /// none is known.
    pub fn within(&self) -> Option<Within> {
        self.within
    }
}

/// The node of a container (list, tree, map) in which an accessed object is embedded: the node's type, and the
/// object's offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    pub(crate) ty: TypeId,
    pub(crate) start: u32,
}

impl Within {
    /// Returns the type of the container's node.
    pub fn ty(&self) -> TypeId {
        self.ty
    }

    /// Returns the offset of the object in the container's node, in bytes.
    pub fn start(&self) -> u32 {
        self.start
    }
}

impl Typed {
    /// Describes a memory access to `size` bytes at an offset of an object of a type, with all fields there as
    /// candidates.
    pub fn at(ty: TypeId, offset: u32, size: u16, access: Access) -> Typed {
        Typed { ty, offset, or: None, size, access, candidates: u64::MAX, within: None }
    }

    /// Returns `true` if the instruction accesses the object at both offsets ([`offset`](Self::offset) and
    /// [`or`](Self::or)), as a load or store of a register pair does.
    pub fn is_pair(&self) -> bool {
        self.or.is_some_and(|or| or.both)
    }

    /// Returns the number of bytes that the memory operand accesses in total, both halves of a register pair included;
    /// 0 if unknown.
    pub fn bytes(&self) -> u16 {
        if self.is_pair() { self.size.saturating_mul(2) } else { self.size }
    }
}

/// The second offset in its object at which a memory access may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The offset of the first byte there.
    pub(crate) offset: u32,
    /// The offset in the object that the base register points to, if known: with the contents of registers or the
    /// address of the data, it tells which of the two places is accessed.
    pub(crate) start: Option<i32>,
    /// `true` if both places are accessed, by halves of one access: those of a pair of registers.
    pub(crate) both: bool,
}

/// A kind of memory access that has no type in the source: stack operations, spilled registers, constants, vtables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pseudo {
    /// A push, a pop, a return.
    StackOperation,
    /// The value that guards the stack.
    StackCanary,
    /// A stack slot that the compiler allocated.
    Spill,
    /// A constant that the compiler put into memory.
    Constant,
    /// A virtual function table (vtable).
    Vtable,
    /// The instruction touches no memory.
    NoMemory,
}

impl Pseudo {
    /// All kinds of untyped memory access, in the order of the indices by which cached type tables refer to them.
    pub const ALL: [Pseudo; 6] = [
        Pseudo::StackOperation,
        Pseudo::StackCanary,
        Pseudo::Spill,
        Pseudo::Constant,
        Pseudo::Vtable,
        Pseudo::NoMemory,
    ];

    /// Returns the name that reports show in place of a type for this kind of memory access, such as `(stack canary)`.
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

/// The reason why the type of a memory operand could not be inferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The code has no debug information.
    NoDebugInformation,
    /// No instruction starts at the address.
    NoInstruction,
    /// No variable is located in the register, from the function's entry on.
    NoVariable(Register),
    /// The value that an instruction wrote to the register is unknown.
    Lost {
        /// The register whose value is unknown.
        register: Register,
        /// The address of the instruction that wrote the register.
        at: u64,
    },
    /// No variable is located at the address.
    NoVariableAt(u64),
    /// The target type of the pointer is unknown: `void *`, or a type that is only declared.
    Opaque(TypeId),
    /// The address lies outside of the pointer's target.
    Outside {
        /// The type of the object that the pointer leads to.
        ty: TypeId,
        /// The offset of the address from the start of the object.
        offset: i32,
    },
    /// The object is known, the part is not: the index may lead to several.
    Index {
        /// The type of the object that the index leads into.
        ty: TypeId,
        /// The stride of the index in bytes.
        step: u32,
        /// The offset in the object that the base register points to, perhaps in one of several side by side.
        start: Option<i32>,
    },
    /// The segment base is unknown.
    Segment,
    /// The instruction is unreachable in the control-flow graph.
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
    /// Returns a text for the kind of reason, without registers and addresses, by which reports count untyped
    /// operands.
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
