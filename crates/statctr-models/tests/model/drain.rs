//! The protocol of units that move: provide, update, drain, come back, read. After
//! `memory/units.rs`, `memory/reservation.rs` and `memory/drain.rs`, with the wrong ways to do it
//! beside the right one.

use super::machine::{Abort, Machine, Thread, load_before_store};
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// Protocol of the model: as specified, or with one step changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// As the library does.
    Correct,
    /// A drain does not wait for the sections that are under way.
    NoBarrier,
    /// A CPU is announced also while it is drained.
    AnnouncedMeanwhile,
    /// A reader does not look whether its view is still the current one.
    NoSecondLook,
    /// A drain takes the block from the CPU before it publishes the residue.
    FreedBeforePublished,
    /// A drain adds the block to the residue that readers look at.
    OneView,
    /// A drain does not tell quick readers that there is a residue.
    QuickBesideDrain,
    /// A quick reader does not look whether what it found is still all there is.
    NoSecondQuickLook,
}

/// State that quick readers find: nothing to read, more than one unit, or the CPU's.
const NOBODY: usize = 0;
const SEVERAL: usize = 1;
const ONLY: usize = 2;

/// Number of tries of a section, in the models.
const TRIES: usize = 2;

/// Units that readers walk: one CPU's or none, and the residue.
struct View {
    announced: AtomicUsize,
    residue: AtomicU64,
}

/// A counter in a reservation with movable units, for one CPU, and one block.
pub(crate) struct Counter {
    variant: Variant,
    machine: Machine,
    quick: AtomicUsize,
    entry: AtomicUsize,
    /// 1 where the CPU has the block.
    assigned: AtomicUsize,
    /// 1 where the block is ready for somebody.
    ready: AtomicUsize,
    block: AtomicU64,
    home: AtomicU64,
    views: [View; 2],
    generation: AtomicUsize,
    lock: AtomicUsize,
}

impl Counter {
    pub(crate) fn new(variant: Variant) -> Counter {
        let view = || View { announced: AtomicUsize::new(0), residue: AtomicU64::new(0) };
        Counter {
            variant,
            machine: Machine::new(),
            quick: AtomicUsize::new(NOBODY),
            entry: AtomicUsize::new(0),
            assigned: AtomicUsize::new(0),
            ready: AtomicUsize::new(1),
            block: AtomicU64::new(0),
            home: AtomicU64::new(0),
            views: [view(), view()],
            generation: AtomicUsize::new(0),
            lock: AtomicUsize::new(0),
        }
    }

    fn try_lock(&self) -> bool {
        self.lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn lower(&self) {
        self.lock.store(0, Ordering::Release);
    }

    /// Updates on CPU 0.
    pub(crate) fn add(&self, thread: &mut Thread, value: u64) {
        if self.try_add(thread, value) {
            return;
        }
        for _ in 0..TRIES {
            if !self.announce() {
                break;
            }
            if self.try_add(thread, value) {
                return;
            }
        }
        self.quick.swap(SEVERAL, Ordering::SeqCst);
        self.home.fetch_add(value, Ordering::Relaxed);
    }

    fn try_add(&self, thread: &mut Thread, value: u64) -> bool {
        self.machine.section(thread, |_, point| {
            if self.entry.load(Ordering::Acquire) == 0 {
                return Ok(false);
            }
            point(Abort::Halfway)?;
            let sum = load_before_store(&self.block).wrapping_add(value);
            point(Abort::BeforeCommit)?;
            self.block.store(sum, Ordering::Release);
            Ok(true)
        })
    }

    fn announce(&self) -> bool {
        if self.variant == Variant::AnnouncedMeanwhile {
            return self.provide();
        }
        if !self.try_lock() {
            return false;
        }
        let done = self.provide();
        self.lower();
        done
    }

    fn provide(&self) -> bool {
        if self.assigned.load(Ordering::Acquire) == 0 {
            if self.ready.swap(0, Ordering::Acquire) == 0 {
                return false;
            }
            self.assigned.store(1, Ordering::Release);
        }
        let _ = self.quick.compare_exchange(NOBODY, ONLY, Ordering::SeqCst, Ordering::SeqCst);
        let view = &self.views[self.generation.load(Ordering::Acquire) & 1];
        view.announced.fetch_or(1, Ordering::SeqCst);
        self.entry.store(1, Ordering::Release);
        true
    }

    /// Drains CPU 0; nothing where somebody is just announcing it.
    pub(crate) fn drain(&self) {
        if !self.try_lock() {
            return;
        }
        if self.assigned.load(Ordering::Acquire) == 1 {
            self.entry.store(0, Ordering::SeqCst);
            if self.variant != Variant::NoBarrier {
                self.machine.end_sections_on(0);
            }
            self.fold_away();
        }
        self.lower();
    }

    fn fold_away(&self) {
        if self.variant != Variant::QuickBesideDrain {
            self.quick.swap(SEVERAL, Ordering::SeqCst);
        }
        let generation = self.generation.load(Ordering::Relaxed);
        let now = &self.views[generation & 1];
        let next = if self.variant == Variant::OneView { now } else { &self.views[(generation + 1) & 1] };
        let value = self.block.load(Ordering::Relaxed);
        fence(Ordering::Release);
        if self.variant == Variant::FreedBeforePublished {
            self.free();
        }
        next.residue.store(now.residue.load(Ordering::Relaxed).wrapping_add(value), Ordering::Relaxed);
        next.announced.store(0, Ordering::Relaxed);
        if self.variant != Variant::OneView {
            self.generation.store(generation + 1, Ordering::Release);
        }
        if self.variant != Variant::FreedBeforePublished {
            self.free();
        }
    }

    /// Frees the block: zero, and ready for others.
    fn free(&self) {
        self.assigned.store(0, Ordering::Release);
        self.block.store(0, Ordering::Release);
        self.ready.store(1, Ordering::Release);
    }

    /// Returns the value, where all there is to read is the CPU's block.
    fn read_quickly(&self) -> Option<u64> {
        if self.quick.load(Ordering::Acquire) != ONLY {
            return None;
        }
        let value = self.block.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let same = self.quick.load(Ordering::Relaxed) == ONLY;
        (same || self.variant == Variant::NoSecondQuickLook).then_some(value)
    }

    pub(crate) fn read(&self) -> u64 {
        if let Some(value) = self.read_quickly() {
            return value;
        }
        let home = self.home.load(Ordering::Relaxed);
        loop {
            let generation = self.generation.load(Ordering::Acquire);
            let view = &self.views[generation & 1];
            let mut sum = home.wrapping_add(view.residue.load(Ordering::Relaxed));
            if view.announced.load(Ordering::Acquire) == 1 && self.assigned.load(Ordering::Acquire) == 1 {
                sum = sum.wrapping_add(self.block.load(Ordering::Relaxed));
            }
            fence(Ordering::Acquire);
            if self.variant == Variant::NoSecondLook || self.generation.load(Ordering::Relaxed) == generation
            {
                return sum;
            }
        }
    }
}
