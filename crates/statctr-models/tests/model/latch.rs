//! The protocol of lines with two copies: commit, add, read, hold. After `memory/latch.rs`, for a
//! line of two items on one CPU, with the wrong ways to do it beside the right one.

use super::machine::{Abort, Machine, Thread, load_before_store};
use loom::sync::atomic::{AtomicU64, Ordering, fence};

/// Protocol of the model: as specified, or with one step changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// As the library does.
    Correct,
    /// There is one copy, written item by item.
    OneCopy,
    /// The sequence number is counted up before the other copy is whole.
    SequenceFirst,
    /// On machines whose stores become visible in any order (aarch64), nothing keeps those to a
    /// copy behind the store of the number that gave it up.
    NoBarrier,
    /// A reader does not look at the sequence number again.
    NoSecondLook,
}

/// Number of tries of a section, and of a reader's looks before it holds writers off.
const TRIES: usize = 2;
const OPTIMISTIC_ATTEMPTS: usize = 1;

pub(crate) struct Line {
    variant: Variant,
    machine: Machine,
    copies: [[AtomicU64; 2]; 2],
    sequence: AtomicU64,
    hold: AtomicU64,
    home: [AtomicU64; 2],
}

impl Line {
    pub(crate) fn new(variant: Variant) -> Line {
        let item = || AtomicU64::new(0);
        Line {
            variant,
            machine: Machine::new(),
            copies: [[item(), item()], [item(), item()]],
            sequence: item(),
            hold: item(),
            home: [item(), item()],
        }
    }

    /// Adds to both items together.
    pub(crate) fn commit(&self, thread: &mut Thread, value: u64) {
        for _ in 0..TRIES {
            if self.try_commit(thread, value) {
                return;
            }
            if self.hold.load(Ordering::SeqCst) != 0 {
                break;
            }
        }
        self.home.iter().for_each(|item| _ = item.fetch_add(value, Ordering::Relaxed));
    }

    fn try_commit(&self, thread: &mut Thread, value: u64) -> bool {
        self.machine.section(thread, |cpu, point| {
            // one CPU has words here: on the other one the thread falls back
            if cpu != 0 || self.hold.load(Ordering::Acquire) != 0 {
                return Ok(false);
            }
            let sequence = load_before_store(&self.sequence);
            let from = &self.copies[if self.variant == Variant::OneCopy { 0 } else { sequence as usize & 1 }];
            let to = &self.copies[if self.variant == Variant::OneCopy { 0 } else { !sequence as usize & 1 }];
            if self.variant == Variant::SequenceFirst {
                self.sequence.store(sequence + 1, Ordering::Release);
            }
            if self.variant != Variant::NoBarrier {
                fence(Ordering::Release);
            }
            to[0].store(load_before_store(&from[0]) + value, Ordering::Relaxed);
            point(Abort::Halfway)?;
            to[1].store(load_before_store(&from[1]) + value, Ordering::Relaxed);
            point(Abort::BeforeCommit)?;
            if self.variant != Variant::SequenceFirst {
                self.sequence.store(sequence + 1, Ordering::Release);
            }
            Ok(true)
        })
    }

    /// Adds to the second item alone.
    pub(crate) fn add(&self, thread: &mut Thread, value: u64) {
        for _ in 0..TRIES {
            let done = self.machine.section(thread, |cpu, point| {
                if cpu != 0 {
                    return Ok(false);
                }
                let copy = &self.copies[self.sequence.load(Ordering::Acquire) as usize & 1];
                let sum = load_before_store(&copy[1]) + value;
                point(Abort::Halfway)?;
                point(Abort::BeforeCommit)?;
                copy[1].store(sum, Ordering::Release);
                Ok(true)
            });
            if done {
                return;
            }
        }
        self.home[1].fetch_add(value, Ordering::Relaxed);
    }

    fn try_read(&self) -> Option<[u64; 2]> {
        let before = self.sequence.load(Ordering::Acquire);
        let copy = &self.copies[if self.variant == Variant::OneCopy { 0 } else { before as usize & 1 }];
        let values = [copy[0].load(Ordering::Relaxed), copy[1].load(Ordering::Relaxed)];
        fence(Ordering::Acquire);
        let same = self.sequence.load(Ordering::Relaxed) == before;
        (same || self.variant == Variant::NoSecondLook).then_some(values)
    }

    /// Returns the CPU's part, both items as of one moment.
    pub(crate) fn read_cpu(&self) -> [u64; 2] {
        for _ in 0..OPTIMISTIC_ATTEMPTS {
            if let Some(values) = self.try_read() {
                return values;
            }
        }
        self.hold.fetch_add(1, Ordering::SeqCst);
        let values = loop {
            if let Some(values) = self.try_read() {
                break values;
            }
            loom::thread::yield_now();
        };
        self.hold.fetch_sub(1, Ordering::SeqCst);
        values
    }

    /// Returns the values.
    pub(crate) fn read(&self) -> [u64; 2] {
        let home = [self.home[0].load(Ordering::Relaxed), self.home[1].load(Ordering::Relaxed)];
        let part = self.read_cpu();
        [home[0] + part[0], home[1] + part[1]]
    }
}
