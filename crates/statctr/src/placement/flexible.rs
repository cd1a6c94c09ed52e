//! *Flexible*: a unit for each CPU that counts, given when it first does, and taken back when the
//! CPU is drained ([`Pool::drain`](super::Pool::drain)).
//!
//! The update is that of the fixed placement, instruction for instruction: an entry of the table
//! holds the displacement to wherever the CPU's block is, and 0 leads to the slow path. That takes a
//! block from a reserve that others keep ready; where there is none, and while the CPU is being
//! drained, it counts in the fallback cell and tries again next time. Without rseq no CPU can be
//! drained, and it is the striped placement.

use super::{Machine, Plan, fixed};
use crate::error::Result;

pub(super) fn plan(machine: &Machine<'_>) -> Result<Plan> {
    Ok(Plan { movable: machine.rseq, ..fixed::plan(machine)? })
}
