//! Functions, variables and scopes of a program: units as they are opened, and single DIEs of any of them.

mod dies;
mod frames;
mod function;
mod lines;
mod location;
mod ranges;
mod sources;
mod unit;
mod unit_cache;

pub use frames::{FrameTable, UnwindRule};
pub use function::{Function, FunctionScope, Location, Variable};
pub use lines::{inlined_call_lines, source_lines};
pub use location::{Holder, Piece};
pub use ranges::Ranges;
pub use sources::unit_sources;
pub use unit::{Enclosing, Fixed, GO, Global, GoTypes, PartOf, RUST, Subprogram, Unit, is_room_name};
pub use unit_cache::UnitCache;

/// The number of registers, by DWARF number, for which variable locations are read: the general ones, and on x86-64 the
/// vector registers `xmm0` to `xmm15`, in which compilers keep pointers.
pub const REGISTERS: usize = 33;

/// A machine register, by its DWARF number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Register(pub u8);
