//! The protocol of a maximum that is taken: observation, take, read. After `memory/maximum.rs`, for one CPU with
//! words and one without, with the wrong ways to do it beside the right one.

use super::machine::{Abort, Machine, Thread, load_before_store};
use loom::sync::atomic::{AtomicU64, Ordering, fence};

/// Protocol of the model: as specified, or with one step changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// As the library does.
    Correct,
    /// A section does not look if its epoch is still the current one.
    EpochOutside,
    /// A take does not end the sections that began before.
    SectionsGoOn,
    /// An update of the fallback cell does not look at the epoch again.
    NoSecondLook,
    /// All epochs have the same words and the same cell.
    OneSlot,
}

/// Number of tries of a section, in the models.
const TRIES: usize = 2;
/// Number of tries of the fallback cell: one more than there are takes.
const FALLBACK_TRIES: usize = 3;

pub(crate) struct Maximum {
    variant: Variant,
    machine: Machine,
    /// Of the one CPU that has words, by the epoch's last bit.
    maxima: [AtomicU64; 2],
    epochs: [AtomicU64; 2],
    epoch: AtomicU64,
    fallback: [AtomicU64; 2],
}

impl Maximum {
    pub(crate) fn new(variant: Variant) -> Maximum {
        let zeros = || [AtomicU64::new(0), AtomicU64::new(0)];
        Maximum {
            variant,
            machine: Machine::new(),
            maxima: zeros(),
            epochs: zeros(),
            epoch: AtomicU64::new(1),
            fallback: zeros(),
        }
    }

    fn slot(&self, epoch: u64) -> usize {
        if self.variant == Variant::OneSlot { 0 } else { epoch as usize & 1 }
    }

    pub(crate) fn observe(&self, thread: &mut Thread, value: u64) {
        for _ in 0..TRIES {
            if self.try_observe(thread, value) {
                return;
            }
        }
        for _ in 0..FALLBACK_TRIES {
            let epoch = self.epoch.load(Ordering::Acquire);
            self.fallback[self.slot(epoch)].fetch_max(value, Ordering::Relaxed);
            // loom takes sequentially consistent accesses for weaker ones
            fence(Ordering::SeqCst);
            if self.variant == Variant::NoSecondLook || self.epoch.load(Ordering::Relaxed) == epoch {
                return;
            }
        }
    }

    fn try_observe(&self, thread: &mut Thread, value: u64) -> bool {
        let epoch = self.epoch.load(Ordering::Acquire);
        let slot = self.slot(epoch);
        self.machine.section(thread, |cpu, point| {
            // one CPU has words: on the other one the thread falls back
            if cpu != 0 {
                return Ok(false);
            }
            if self.variant != Variant::EpochOutside && self.epoch.load(Ordering::Acquire) != epoch {
                return Ok(false);
            }
            if load_before_store(&self.epochs[slot]) == epoch {
                if load_before_store(&self.maxima[slot]) < value {
                    point(Abort::BeforeCommit)?;
                    self.maxima[slot].store(value, Ordering::Release);
                }
                return Ok(true);
            }
            self.maxima[slot].store(value, Ordering::Release);
            point(Abort::Halfway)?;
            point(Abort::BeforeCommit)?;
            self.epochs[slot].store(epoch, Ordering::Release);
            Ok(true)
        })
    }

    fn maximum_of(&self, epoch: u64) -> u64 {
        let slot = self.slot(epoch);
        let mut maximum = 0;
        if self.epochs[slot].load(Ordering::Acquire) == epoch {
            maximum = self.maxima[slot].load(Ordering::Relaxed);
        }
        maximum.max(self.fallback[slot].load(Ordering::Relaxed))
    }

    /// Takes the maximum and begins anew; nobody else does meanwhile.
    pub(crate) fn take(&self) -> u64 {
        let ended = self.epoch.load(Ordering::Relaxed);
        let next = ended + 1;
        fence(Ordering::Release);
        self.fallback[self.slot(next)].store(0, Ordering::Relaxed);
        self.epoch.store(next, Ordering::Release);
        fence(Ordering::SeqCst);
        if self.variant != Variant::SectionsGoOn {
            self.machine.end_sections_on(0);
        }
        self.maximum_of(ended)
    }

    pub(crate) fn read(&self) -> u64 {
        let epoch = self.epoch.load(Ordering::Acquire);
        let maximum = self.maximum_of(epoch);
        fence(Ordering::Acquire);
        if self.epoch.load(Ordering::Relaxed) == epoch {
            return maximum;
        }
        loop {
            let epoch = self.epoch.load(Ordering::Acquire);
            let value = self.fallback[self.slot(epoch)].load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if self.epoch.load(Ordering::Relaxed) == epoch {
                return value;
            }
        }
    }
}
