//! *Uniprocessor*: a plain word, updated by one instruction that an interrupt cannot split.
//!
//! An event of several items still needs a section, or one of its items could be seen without the
//! others; where there is no rseq, its items are updated one by one.

use super::{Machine, Mode, Plan};
use crate::error::{Error, Result};
use crate::rseq::HandleTag;
use crate::topology::evidence_of_second_cpu;

pub(super) fn plan(machine: &Machine<'_>) -> Result<Plan> {
    if let Some((source, possible)) = evidence_of_second_cpu(machine.topology) {
        return Err(Error::NotUniprocessor { possible, source });
    }
    Ok(Plan {
        mode: Mode::Uniprocessor,
        cpus: machine.topology.possible().clone(),
        counters: HandleTag::Uniprocessor,
        groups: if machine.rseq { HandleTag::Rseq } else { HandleTag::Uniprocessor },
        home_in_use: true,
        movable: false,
    })
}
