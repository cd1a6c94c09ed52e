//! The protocol of a counter whose approximate value has a bound: update, flush, read. After
//! `memory/bounded_sum.rs`, with batches of two, with the wrong ways to do it beside the right one.

use super::machine::{Abort, Machine, Thread, load_before_store};
use loom::sync::atomic::{AtomicU64, Ordering};

/// Protocol of the model: as specified, or with one step changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// As the library does.
    Correct,
    /// Several threads flush at once.
    NoLock,
    /// A section adds what comes to a batch, and the thread flushes afterwards.
    FlushAfterwards,
    /// The part that is flushed is taken out of the CPU's count.
    TakenOut,
}

/// Number of tries of a section, in the models.
const TRIES: usize = 3;
/// The most that a CPU leaves unflushed.
const LIMIT: u64 = 1;

pub(crate) struct Counter {
    variant: Variant,
    machine: Machine,
    counted: [AtomicU64; 2],
    flushed_of: [AtomicU64; 2],
    direct: AtomicU64,
    flushed: AtomicU64,
    lock: AtomicU64,
}

impl Counter {
    pub(crate) fn new(variant: Variant) -> Counter {
        let zero = || AtomicU64::new(0);
        Counter {
            variant,
            machine: Machine::new(),
            counted: [zero(), zero()],
            flushed_of: [zero(), zero()],
            direct: zero(),
            flushed: zero(),
            lock: zero(),
        }
    }

    /// Returns the most that the approximate value of `cpus` CPUs is off by.
    pub(crate) fn bound(cpus: u64) -> u64 {
        LIMIT * (cpus + 1)
    }

    pub(crate) fn inc(&self, thread: &mut Thread) {
        for _ in 0..TRIES {
            if self.try_inc(thread) {
                if self.variant == Variant::FlushAfterwards {
                    self.flush(thread);
                }
                return;
            }
            if !self.flush(thread) {
                break;
            }
        }
        self.direct.fetch_add(1, Ordering::Relaxed);
    }

    fn try_inc(&self, thread: &mut Thread) -> bool {
        self.machine.section(thread, |cpu, point| {
            let sum = load_before_store(&self.counted[cpu]) + 1;
            let rest = sum - self.flushed_of[cpu].load(Ordering::Acquire);
            if rest > LIMIT && self.variant != Variant::FlushAfterwards {
                return Ok(false);
            }
            point(Abort::Halfway)?;
            point(Abort::BeforeCommit)?;
            self.counted[cpu].store(sum, Ordering::Release);
            Ok(true)
        })
    }

    fn flush(&self, thread: &mut Thread) -> bool {
        let locked = self.lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if !locked && self.variant != Variant::NoLock {
            return false;
        }
        let mut claimed = 0;
        let done = self.machine.section(thread, |cpu, point| {
            let (counted, flushed) =
                (load_before_store(&self.counted[cpu]), load_before_store(&self.flushed_of[cpu]));
            claimed = counted - flushed;
            point(Abort::Halfway)?;
            point(Abort::BeforeCommit)?;
            if self.variant == Variant::TakenOut {
                self.counted[cpu].store(flushed, Ordering::Release);
            } else {
                self.flushed_of[cpu].store(counted, Ordering::Release);
            }
            Ok(true)
        });
        if done {
            self.flushed.fetch_add(claimed, Ordering::Relaxed);
        }
        self.lock.store(0, Ordering::Release);
        true
    }

    pub(crate) fn read(&self) -> u64 {
        let mut sum = self.direct.load(Ordering::Acquire);
        if self.variant == Variant::TakenOut {
            sum += self.flushed.load(Ordering::Acquire);
        }
        sum + self.counted.iter().map(|word| word.load(Ordering::Acquire)).sum::<u64>()
    }

    pub(crate) fn approximate(&self) -> u64 {
        self.direct.load(Ordering::Acquire) + self.flushed.load(Ordering::Acquire)
    }
}
