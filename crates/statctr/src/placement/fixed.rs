//! *Fixed*: a unit for every possible CPU, laid out when the reservation is made.
//!
//! Memory is used only for CPUs that count: an untouched unit is the kernel's one zero page.

use super::{Machine, Mode, Plan};
use crate::error::Result;
use crate::memory::How;

pub(super) fn plan(machine: &Machine<'_>) -> Result<Plan> {
    let (mode, how) =
        if machine.rseq { (Mode::Rseq, How::Rseq) } else { (Mode::AtomicFallback, How::Atomic) };
    Ok(Plan {
        mode,
        // also without rseq: a made-up CPU's words can be written by `add_as`
        cpus: machine.topology.possible().clone(),
        counters: how,
        groups: how,
        home_in_use: how == How::Atomic,
        movable: false,
    })
}
