//! The crate `contatori`: an array of padded slots for each counter, of which each thread has one
//! and adds to it atomically, as two threads may share one.

use super::Side;
use super::looped::{Looped, Step, opaque};
use contatori::counters::unsigned::Unsigned;
use contatori::counters::{CounterValue, Observable};

struct Inc;

impl Step for Inc {
    type State = Unsigned;

    #[inline(always)]
    fn step(counter: &Unsigned, _turn: u64) {
        counter.add(1);
    }
}

fn value(counter: &Unsigned) -> u64 {
    match counter.value() {
        CounterValue::Unsigned(value) => value,
        _ => 0,
    }
}

/// Returns the benchmark loop `contatori/inc`: it increments a counter of the crate `contatori`, for comparison.
/// With `think`, it computes between increments.
pub(crate) fn inc(think: bool) -> Box<dyn Side> {
    Looped::<Inc>::with_shared_state(Unsigned::new(), value).thinking(think).boxed()
}

struct Read;

impl Step for Read {
    type State = Unsigned;

    #[inline(always)]
    fn step(counter: &Unsigned, _turn: u64) {
        opaque(value(counter));
    }
}

/// Returns the benchmark loop `contatori/read`: it reads a counter of the crate `contatori`, for comparison.
pub(crate) fn read() -> Box<dyn Side> {
    Looped::<Read>::with_shared_state(Unsigned::new(), |_| 0).counting(0).boxed()
}

/// The size in bytes of one counter of the crate `contatori`.
pub(crate) const CONTATORI_COUNTER_BYTES: usize = size_of::<Unsigned>();
