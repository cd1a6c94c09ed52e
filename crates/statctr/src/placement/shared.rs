//! *Shared*: one atomic word. The baseline that the others are measured against.

use super::{Machine, Mode, Plan};
use crate::cpu::CpuSet;
use crate::error::Result;
use crate::rseq::HandleTag;

pub(super) fn plan(_machine: &Machine<'_>) -> Result<Plan> {
    Ok(Plan {
        mode: Mode::Shared,
        cpus: CpuSet::new(),
        counters: HandleTag::Atomic,
        groups: HandleTag::Atomic,
        home_in_use: true,
        movable: false,
    })
}
