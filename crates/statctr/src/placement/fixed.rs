//! *Fixed*: a unit for every possible CPU, laid out when the reservation is made.
//!
//! Memory is used only for CPUs that count: an untouched unit is the kernel's one zero page.

use super::{Machine, Mode, Plan, striped};
use crate::error::Result;
use crate::rseq::HandleTag;

pub(super) fn plan(machine: &Machine<'_>) -> Result<Plan> {
    let striped = striped::plan(machine);
    if !machine.rseq {
        return Ok(striped);
    }
    Ok(Plan { mode: Mode::Rseq, counters: HandleTag::Rseq, groups: HandleTag::Rseq, ..striped })
}
