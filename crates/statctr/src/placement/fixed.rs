//! *Fixed*: a unit for every possible CPU, laid out when the reservation is made.
//!
//! Memory is used only for CPUs that count: an untouched unit is the kernel's one zero page.

use super::{Machine, Mode, Plan};
use crate::error::Result;
use crate::rseq::HandleTag;

pub(super) fn plan(machine: &Machine<'_>) -> Result<Plan> {
    let (mode, tag) =
        if machine.rseq { (Mode::Rseq, HandleTag::Rseq) } else { (Mode::AtomicFallback, HandleTag::Atomic) };
    Ok(Plan {
        mode,
        // also without rseq: a synthetic CPU's words can be written by `add_on_synthetic`
        cpus: machine.topology.possible().clone(),
        counters: tag,
        groups: tag,
        home_in_use: tag == HandleTag::Atomic,
        movable: false,
    })
}
