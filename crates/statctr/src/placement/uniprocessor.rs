//! *Uniprocessor*: a plain word, updated by one instruction that an interrupt cannot split.
//!
//! An event of several items still needs a section, or one of its items could be seen without the
//! others; where there is no rseq, its items are updated one by one.

use super::{Machine, Mode, Plan};
use crate::error::{Error, Result};
use crate::memory::How;
use crate::rseq;

pub(super) fn plan(machine: &Machine<'_>) -> Result<Plan> {
    let possible = machine.topology.possible();
    // A container can show a list with one CPU on a machine with many: where the kernel's own mask
    // has more, it is right. A made-up machine is taken at its word.
    let running = if machine.topology.is_synthetic() { 1 } else { rseq::affinity_count().unwrap_or(1) };
    let count = possible.len().max(running);
    if count != 1 {
        return Err(Error::NotUniprocessor { possible: count });
    }
    Ok(Plan {
        mode: Mode::Uniprocessor,
        cpus: possible.clone(),
        counters: How::OneCpu,
        groups: if machine.rseq { How::Rseq } else { How::OneCpu },
        home_in_use: true,
        movable: false,
    })
}
