//! Explanations of layouts: the attributes and alignments under which the rules of a machine put every
//! member of a record where the file says that it is.

mod abi;
mod bits;
mod declaration;
mod replay;

pub(crate) use abi::{Abi, InEffect, explain};
pub(crate) use bits::Bits;
pub(crate) use declaration::{Declaration, Declarations};
pub(crate) use replay::{Packing, Replay, ReplayedMember, Unexplained, replay};
