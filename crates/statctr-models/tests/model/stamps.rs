//! The protocol of incremental folds: update, fold. After `memory/stamped_fold.rs`, for two lines and one CPU, with the
//! wrong ways to do it beside the right one.

use super::machine::{Abort, CALM, Machine, PLANS, Plan, Thread, load_before_store};
use super::{explore, is_thorough, plans};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

/// Protocol of the model: as specified, or with one step changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
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
const LINES: usize = 2;

struct Piece {
    variant: Variant,
    machine: Machine,
    epoch: AtomicU64,
    latest: AtomicU64,
    stamps: [AtomicU64; LINES],
    lines: [AtomicU64; LINES],
    fallback: [AtomicU64; LINES],
}

/// State of a reader from fold to fold.
struct Fold {
    done: u64,
    sums: [u64; LINES],
}

impl Fold {
    fn new() -> Fold {
        Fold { done: 0, sums: [0; LINES] }
    }
}

impl Piece {
    fn new(variant: Variant) -> Piece {
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

    fn add(&self, thread: &mut Thread, line: usize) {
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
    fn fold(&self, fold: &mut Fold) -> u64 {
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

/// Checks a piece that one thread adds to, first to one line and then to the other, while this one folds it so many
/// times.
fn folded_by_stamps(variant: Variant, plan: Plan, folds: usize) {
    explore(2, 3, move || {
        let piece = Arc::new(Piece::new(variant));
        let added = Arc::new(AtomicU64::new(0));
        let writer = {
            let (piece, added) = (Arc::clone(&piece), Arc::clone(&added));
            thread::spawn(move || {
                let mut thread = Thread::on(0, plan);
                for line in 0..LINES {
                    piece.add(&mut thread, line);
                    added.fetch_add(1, Ordering::Release);
                }
            })
        };
        let (mut fold, mut before) = (Fold::new(), 0);
        for _ in 0..folds {
            let least = added.load(Ordering::Acquire).max(before);
            let value = piece.fold(&mut fold);
            assert!(value >= least, "{value} after {least}: not visible");
            before = value;
        }
        writer.join().expect("joined");
        for _ in 0..2 {
            assert_eq!(piece.fold(&mut fold), LINES as u64, "not exact");
        }
    });
}

#[test]
fn a_fold_by_stamps_has_what_happened_before() {
    for variant in [Variant::Correct, Variant::EndsSections] {
        for plan in [CALM].iter().chain(plans()) {
            folded_by_stamps(variant, *plan, 2);
        }
        if is_thorough() {
            folded_by_stamps(variant, CALM, 3);
        }
    }
}

#[test]
#[should_panic(expected = "not ")]
fn a_stamp_after_the_commit_is_missed() {
    folded_by_stamps(Variant::CommitFirst, PLANS[1], 1);
}

#[test]
#[should_panic(expected = "not exact")]
fn an_update_under_way_in_an_old_epoch_is_missed() {
    folded_by_stamps(Variant::OwnEpoch, CALM, 2);
}

#[test]
#[should_panic(expected = "not exact")]
fn an_epoch_that_is_over_after_its_lines_were_read_is_missed() {
    folded_by_stamps(Variant::OverAfterwards, CALM, 2);
}

#[test]
#[should_panic(expected = "not exact")]
fn with_lines_of_the_last_epoch_alone_an_update_that_took_long_is_missed() {
    folded_by_stamps(Variant::LastEpoch, CALM, 2);
}

#[test]
#[should_panic(expected = "not exact")]
fn sections_that_end_before_the_epoch_starts_are_missed() {
    folded_by_stamps(Variant::EndsTooEarly, CALM, 2);
}
