//! The names of a program's instructions and data, as the caller finds them in its debug information.

use super::evidence::{Site, Subject};
use rustc_hash::FxHashMap;

/// The data type, and the field and its offset in the type, that an instruction of a traced program accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operand {
    /// The type, as an index of [`Resolved::subjects`].
    pub subject: usize,
    /// The first byte in the object.
    pub offset: u64,
    /// The path of the field.
    pub field: String,
}

/// The variable that contains an address of a traced program: its name, the array element at the address, and the
/// field in that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariablePart {
    /// The type of its elements, or the variable itself, as an index of [`Resolved::subjects`].
    pub subject: usize,
    /// The address of the element.
    pub base: u64,
    /// The path of the field in the element.
    pub field: String,
    /// The name of the variable and the part at the address, such as `totals[3].count`.
    pub variable: String,
}

/// The answers of a [`Resolver`]: source locations and accessed types of instructions, and variables at addresses.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// The types and variables that operands and variable parts refer to by index.
    pub subjects: Vec<Subject>,
    /// The sites (functions, source lines) of instructions, by the trace's index of the instruction.
    pub sites: FxHashMap<u32, Site>,
    /// The types and fields that instructions access, by the trace's index of the instruction.
    pub operands: FxHashMap<u32, Operand>,
    /// The records that pointers lead to, by the trace's index of an instruction that accesses a pointer member: name and
    /// size in bytes.
    pub pointees: FxHashMap<u32, (String, u64)>,
    /// The instructions whose loaded pointer is the address, without an index, of an instruction's operand; all by the
    /// trace's index.
    pub base_loads: FxHashMap<u32, Vec<u32>>,
    /// The variables that contain addresses of data, by address.
    pub variables: FxHashMap<u64, VariablePart>,
}

/// Source of debug information about a traced program: finds the function, type and field of an instruction and the
/// variable at an address. Implemented by the caller of [`collect`](crate::collect()).
pub trait Resolver {
    /// Names some instructions, by the trace's indices, and some addresses of data.
    fn resolve(&mut self, instructions: &[u32], addresses: &[u64]) -> Resolved;

    /// Names the field at an offset of a subject; empty where there is none.
    fn field(&self, subject: usize, offset: u64) -> String;
}
