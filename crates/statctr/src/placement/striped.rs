//! *Striped*: units that threads own, and the units of the fixed placement, to whose words all others add atomically.
//!
//! On x86-64 under Linux up to two threads of each CPU own a stripe: they add by a plain instruction, which a signal
//! cannot split, to words that nobody else writes (`rseq/x86_64/owned`). The stripe of any other thread is the CPU that
//! it runs on, or ran on a moment ago, so two threads rarely share a line; it need not be right, because all that is
//! written there is written atomically. Memory: 8 bytes for each counter and each CPU that counts, and as many for each
//! thread that owns a stripe.
//!
//! A float gauge adds by compare-and-swap, on the CPUs' stripes alone (`memory/float_sum`). Extremes and approximate
//! counters have one shared word, for reasons that `memory/maximum` and `memory/bounded_sum` give.

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
