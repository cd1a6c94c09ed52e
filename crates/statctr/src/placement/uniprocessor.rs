//! *Uniprocessor*: a plain word, updated by one instruction that an interrupt cannot split.
//!
//! An event of several items still needs a section, or one of its items could be seen without the
//! others; where there is no rseq, its items are updated one by one.

use super::{Machine, Mode, Plan};
use crate::error::{Error, Result};
use crate::memory::How;
use crate::topology::more_than_one;

pub(super) fn plan(machine: &Machine<'_>) -> Result<Plan> {
    if let Some((source, possible)) = more_than_one(machine.topology) {
        return Err(Error::NotUniprocessor { possible, source });
    }
    Ok(Plan {
        mode: Mode::Uniprocessor,
        cpus: machine.topology.possible().clone(),
        counters: How::OneCpu,
        groups: if machine.rseq { How::Rseq } else { How::OneCpu },
        home_in_use: true,
        movable: false,
    })
}
