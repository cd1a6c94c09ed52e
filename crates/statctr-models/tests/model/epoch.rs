//! The protocol of a sum that can be set: update, set, read. After `memory/float_sum.rs`, in whole numbers,
//! for one CPU with words and one without, with the wrong ways to do it beside the right one.

use super::machine::{Abort, Machine, Thread, load_before_store};
use loom::sync::atomic::{AtomicU64, Ordering, fence};

/// Protocol of the model: as specified, or with one step changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// As the library does.
    Correct,
    /// A section that finds its sum stale makes it count before it replaces it.
    EpochFirst,
    /// A reader does not look at the epoch again.
    NoSecondLook,
    /// A set stores its value over that of the epoch before.
    OneValue,
    /// A set zeroes the CPU's sum instead of making it stale.
    ZeroesTheSum,
    /// A set leaves in the fallback cell what was added there two epochs ago.
    KeepsTheFallback,
}

/// Number of tries of a section, in the models.
const TRIES: usize = 2;

pub(crate) struct Sum {
    variant: Variant,
    machine: Machine,
    sum: AtomicU64,
    sum_epoch: AtomicU64,
    epoch: AtomicU64,
    values: [AtomicU64; 2],
    fallback: [AtomicU64; 2],
}

impl Sum {
    pub(crate) fn new(variant: Variant) -> Sum {
        let zero = || AtomicU64::new(0);
        Sum {
            variant,
            machine: Machine::new(),
            sum: zero(),
            sum_epoch: zero(),
            epoch: AtomicU64::new(1),
            values: [zero(), zero()],
            fallback: [zero(), zero()],
        }
    }

    pub(crate) fn add(&self, thread: &mut Thread, value: u64) {
        for _ in 0..TRIES {
            if self.try_add(thread, value) {
                return;
            }
        }
        let epoch = self.epoch.load(Ordering::Acquire);
        self.fallback[epoch as usize & 1].fetch_add(value, Ordering::Relaxed);
    }

    fn try_add(&self, thread: &mut Thread, value: u64) -> bool {
        self.machine.section(thread, |cpu, point| {
            // one CPU has words: on the other one the thread falls back
            if cpu != 0 {
                return Ok(false);
            }
            let epoch = self.epoch.load(Ordering::Acquire);
            if load_before_store(&self.sum_epoch) == epoch {
                let sum = load_before_store(&self.sum) + value;
                point(Abort::Halfway)?;
                point(Abort::BeforeCommit)?;
                self.sum.store(sum, Ordering::Release);
                return Ok(true);
            }
            let first = if self.variant == Variant::EpochFirst { &self.sum_epoch } else { &self.sum };
            let (stored, committed) =
                if self.variant == Variant::EpochFirst { (epoch, value) } else { (value, epoch) };
            let last = if self.variant == Variant::EpochFirst { &self.sum } else { &self.sum_epoch };
            first.store(stored, Ordering::Release);
            point(Abort::Halfway)?;
            point(Abort::BeforeCommit)?;
            last.store(committed, Ordering::Release);
            Ok(true)
        })
    }

    /// Sets the value; nobody else does meanwhile.
    pub(crate) fn set(&self, value: u64) {
        if self.variant == Variant::ZeroesTheSum {
            self.values[1].store(value, Ordering::Relaxed);
            self.sum.store(0, Ordering::Release);
            return;
        }
        let next = self.epoch.load(Ordering::Relaxed) + 1;
        let (now, slot) = (next as usize & 1 ^ 1, next as usize & 1);
        fence(Ordering::Release);
        if self.variant == Variant::OneValue {
            self.values[now].store(value, Ordering::Relaxed);
        }
        self.values[slot].store(value, Ordering::Relaxed);
        if self.variant != Variant::KeepsTheFallback {
            self.fallback[slot].store(0, Ordering::Relaxed);
        }
        self.epoch.store(next, Ordering::Release);
    }

    pub(crate) fn read(&self) -> u64 {
        let epoch = self.epoch.load(Ordering::Acquire);
        let slot = epoch as usize & 1;
        let mut value = self.values[slot].load(Ordering::Relaxed);
        value += self.fallback[slot].load(Ordering::Relaxed);
        if self.sum_epoch.load(Ordering::Acquire) == epoch {
            value += self.sum.load(Ordering::Relaxed);
        }
        fence(Ordering::Acquire);
        if self.variant == Variant::NoSecondLook || self.epoch.load(Ordering::Relaxed) == epoch {
            return value;
        }
        loop {
            let epoch = self.epoch.load(Ordering::Acquire);
            let value = self.values[epoch as usize & 1].load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if self.epoch.load(Ordering::Relaxed) == epoch {
                return value;
            }
        }
    }
}
