//! *Striped*: the units of the fixed placement, to whose words threads add atomically.
//!
//! A thread's stripe is the CPU that it runs on, or ran on a moment ago, so two threads rarely share a
//! line; it need not be right, because all that is written is written atomically. Memory is that of the
//! fixed placement: 8 bytes for each counter and each CPU that counts.

use super::{Machine, Mode, Plan};
use crate::rseq::HandleTag;

pub(super) fn plan(machine: &Machine<'_>) -> Plan {
    Plan {
        mode: Mode::Striped,
        cpus: machine.topology.possible().clone(),
        counters: HandleTag::Striped,
        groups: HandleTag::Striped,
        home_in_use: false,
        // nothing ends the updates that are under way when a unit is to go
        movable: false,
    }
}
