//! The protocol of incremental folds: update, fold. After `memory/stamped_fold.rs`, for two lines and one CPU, with the
//! wrong ways to do it beside the right one.

use super::machine::{Abort, Machine, Thread, load_before_store};
use loom::sync::atomic::{AtomicU64, Ordering};

/// Protocol of the model: as specified, or with one step changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// As the library does.
    Correct,
    /// As the library does where it ends sections.
    EndsSections,
    /// A section commits before it leaves its stamp.
    CommitFirst,
    /// A fold takes its own epoch for that of which all earlier ones are over.
    OwnEpoch,
    /// A fold asks which epochs are over when it has read the lines.
    OverAfterwards,
    /// A fold reads the lines of the last epoch, and no earlier ones.
    LastEpoch,
    /// A fold ends sections before it starts its epoch.
    EndsTooEarly,
}

/// Number of tries of a section, in the models.
const TRIES: usize = 2;
/// Lines of the piece.
pub(crate) const LINES: usize = 2;

pub(crate) struct Piece {
    variant: Variant,
    machine: Machine,
    epoch: AtomicU64,
    latest: AtomicU64,
    stamps: [AtomicU64; LINES],
    lines: [AtomicU64; LINES],
    fallback: [AtomicU64; LINES],
}

/// State of a reader from fold to fold.
pub(crate) struct Fold {
    done: u64,
    sums: [u64; LINES],
}

impl Fold {
    pub(crate) fn new() -> Fold {
        Fold { done: 0, sums: [0; LINES] }
    }
}

impl Piece {
    pub(crate) fn new(variant: Variant) -> Piece {
        let zeros = || std::array::from_fn(|_| AtomicU64::new(0));
        Piece {
            variant,
            machine: Machine::new(),
            epoch: AtomicU64::new(1),
            latest: AtomicU64::new(0),
            stamps: zeros(),
            lines: zeros(),
            fallback: zeros(),
        }
    }

    pub(crate) fn add(&self, thread: &mut Thread, line: usize) {
        for _ in 0..TRIES {
            if self.try_add(thread, line) {
                return;
            }
        }
        self.fallback[line].fetch_add(1, Ordering::Relaxed);
    }

    fn try_add(&self, thread: &mut Thread, line: usize) -> bool {
        self.machine.section(thread, |cpu, point| {
            // one CPU has words: on the other one the thread falls back
            if cpu != 0 {
                return Ok(false);
            }
            let epoch = self.epoch.load(Ordering::Acquire);
            if self.variant == Variant::CommitFirst {
                let sum = load_before_store(&self.lines[line]) + 1;
                self.lines[line].store(sum, Ordering::Release);
                // the kernel does not take back what was stored
                let stamped = point(Abort::Halfway).and_then(|()| point(Abort::BeforeCommit));
                if stamped.is_ok() {
                    self.latest.store(epoch, Ordering::Release);
                    self.stamps[line].store(epoch, Ordering::Release);
                }
                return Ok(true);
            }
            // what is there already was stored by a section before this one
            if self.latest.load(Ordering::Relaxed) != epoch {
                self.latest.store(epoch, Ordering::Release);
            }
            point(Abort::Halfway)?;
            if self.stamps[line].load(Ordering::Relaxed) != epoch {
                self.stamps[line].store(epoch, Ordering::Release);
            }
            let sum = load_before_store(&self.lines[line]) + 1;
            point(Abort::BeforeCommit)?;
            self.lines[line].store(sum, Ordering::Release);
            Ok(true)
        })
    }

    /// Returns the sum over the lines; one thread at a time.
    pub(crate) fn fold(&self, fold: &mut Fold) -> u64 {
        if self.variant == Variant::EndsTooEarly {
            self.machine.end_sections_on(0);
        }
        let epoch = self.epoch.load(Ordering::Relaxed) + 1;
        self.epoch.store(epoch, Ordering::SeqCst);
        let over = match self.variant {
            Variant::EndsSections => {
                self.machine.end_sections_on(0);
                epoch
            }
            Variant::EndsTooEarly | Variant::OwnEpoch => epoch,
            _ => self.latest.load(Ordering::Acquire).max(fold.done),
        };
        let from = if self.variant == Variant::LastEpoch { epoch - 1 } else { fold.done };
        for line in 0..LINES {
            let stamp = self.stamps[line].load(Ordering::Acquire);
            if stamp != 0 && stamp >= from {
                fold.sums[line] = self.lines[line].load(Ordering::Relaxed);
            }
        }
        fold.done = match self.variant {
            Variant::OverAfterwards => self.latest.load(Ordering::Acquire).max(fold.done),
            _ => over,
        };
        let fallback = self.fallback.iter().map(|word| word.load(Ordering::Relaxed));
        fold.sums.iter().sum::<u64>() + fallback.sum::<u64>()
    }
}
