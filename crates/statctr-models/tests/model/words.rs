//! The protocol of single words: announce, update, fall back, read (quickly, and else), set. After
//! `memory/handle.rs` and
//! `memory/reservation.rs`, with the wrong ways to do it beside the right one.

use super::machine::{Abort, Machine, Thread, load_before_store};
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// Protocol of the model: as specified, or with one step changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// As the library does.
    Correct,
    /// Sections are let onto a CPU's words before readers are told of them.
    EntryBeforeMask,
    /// A reader adds the baseline last.
    BaselineAfterWalk,
    /// A reader asks whether home words are in use, and then loads the baseline.
    HomeAskedBeforeBaseline,
    /// The fallback is an atomic addition to the CPU's own word.
    FallbackInTheCpusWord,
    /// A reset stores zeros into the words.
    RemoteZeroing,
    /// Sections are let onto a second CPU's words before quick readers are told that there are two.
    QuickAfterEntry,
    /// Quick readers are not told of the fallback cell.
    QuickBesideFallback,
    /// Quick readers are not told of baselines.
    QuickBesideBaseline,
}

/// State that quick readers find: nothing to read, more than one unit, or the number of one CPU.
const NOBODY: usize = 0;
const SEVERAL: usize = 1;
const FIRST: usize = 2;

/// Number of tries of a section, in the models.
const TRIES: usize = 2;

/// A counter in a reservation for two CPUs.
pub(crate) struct Counter {
    variant: Variant,
    /// `true` if readers try the quick way first.
    quickly: bool,
    machine: Machine,
    quick: AtomicUsize,
    mask: AtomicUsize,
    entries: [AtomicU64; 2],
    words: [AtomicU64; 2],
    home_in_use: AtomicUsize,
    home: AtomicU64,
    baseline_in_use: AtomicUsize,
    baseline: AtomicU64,
    lock: Mutex<()>,
}

impl Counter {
    pub(crate) fn new(variant: Variant, quickly: bool) -> Counter {
        Counter {
            variant,
            quickly,
            machine: Machine::new(),
            quick: AtomicUsize::new(NOBODY),
            mask: AtomicUsize::new(0),
            entries: [AtomicU64::new(0), AtomicU64::new(0)],
            words: [AtomicU64::new(0), AtomicU64::new(0)],
            home_in_use: AtomicUsize::new(0),
            home: AtomicU64::new(0),
            baseline_in_use: AtomicUsize::new(0),
            baseline: AtomicU64::new(0),
            lock: Mutex::new(()),
        }
    }

    /// Updates from a registered thread.
    pub(crate) fn add(&self, thread: &mut Thread, value: u64) {
        if self.try_add(thread, value) {
            return;
        }
        for _ in 0..TRIES {
            self.announce(thread.cpu());
            if self.try_add(thread, value) {
                return;
            }
        }
        self.add_to_fallback(thread.cpu(), value);
    }

    fn try_add(&self, thread: &mut Thread, value: u64) -> bool {
        self.machine.section(thread, |cpu, point| {
            if self.entries[cpu].load(Ordering::Acquire) == 0 {
                return Ok(false);
            }
            point(Abort::Halfway)?;
            let sum = load_before_store(&self.words[cpu]).wrapping_add(value);
            point(Abort::BeforeCommit)?;
            self.words[cpu].store(sum, Ordering::Release);
            Ok(true)
        })
    }

    fn announce(&self, cpu: usize) {
        if load_before_store(&self.entries[cpu]) != 0 {
            return;
        }
        if self.variant == Variant::QuickAfterEntry {
            self.mask.fetch_or(1 << cpu, Ordering::SeqCst);
            self.entries[cpu].store(1, Ordering::Release);
            return self.note_unit(cpu);
        }
        self.note_unit(cpu);
        if self.variant == Variant::EntryBeforeMask {
            self.entries[cpu].store(1, Ordering::Release);
            self.mask.fetch_or(1 << cpu, Ordering::SeqCst);
        } else {
            self.mask.fetch_or(1 << cpu, Ordering::SeqCst);
            self.entries[cpu].store(1, Ordering::Release);
        }
    }

    /// Prepares for readers being told of a CPU's words.
    fn note_unit(&self, cpu: usize) {
        let first = self.quick.compare_exchange(NOBODY, FIRST + cpu, Ordering::SeqCst, Ordering::SeqCst);
        if first.is_err_and(|there| there != FIRST + cpu) {
            self.quick.swap(SEVERAL, Ordering::SeqCst);
        }
    }

    /// Updates from a thread that is not registered, or that was stopped too often.
    pub(crate) fn add_to_fallback(&self, cpu: usize, value: u64) {
        if self.variant == Variant::FallbackInTheCpusWord {
            self.announce(cpu);
            self.words[cpu].fetch_add(value, Ordering::Relaxed);
            return;
        }
        if self.variant != Variant::QuickBesideFallback {
            self.quick.swap(SEVERAL, Ordering::SeqCst);
        }
        self.home_in_use.fetch_or(1, Ordering::SeqCst);
        self.home.fetch_add(value, Ordering::Relaxed);
    }

    fn baseline(&self) -> u64 {
        if self.baseline_in_use.load(Ordering::Acquire) == 0 {
            return 0;
        }
        self.baseline.load(Ordering::Acquire)
    }

    fn counted(&self) -> u64 {
        self.counted_with(self.home_in_use.load(Ordering::Acquire) != 0)
    }

    fn counted_with(&self, home: bool) -> u64 {
        let mut sum = if home { self.home.load(Ordering::Relaxed) } else { 0 };
        let mask = self.mask.load(Ordering::Acquire);
        for cpu in (0..2).filter(|cpu| mask >> cpu & 1 == 1) {
            sum = sum.wrapping_add(self.words[cpu].load(Ordering::Relaxed));
        }
        sum
    }

    /// Returns the value, where all there is to read is one CPU's word.
    fn read_quickly(&self) -> Option<u64> {
        let quick = self.quick.load(Ordering::Acquire);
        let value = self.words[quick.checked_sub(FIRST)?].load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        (self.quick.load(Ordering::Relaxed) == quick).then_some(value)
    }

    pub(crate) fn read(&self) -> u64 {
        if let Some(value) = self.quickly.then(|| self.read_quickly()).flatten() {
            return value;
        }
        match self.variant {
            Variant::BaselineAfterWalk => {
                let counted = self.counted();
                counted.wrapping_add(self.baseline())
            }
            Variant::HomeAskedBeforeBaseline => {
                let home = self.home_in_use.load(Ordering::Acquire) != 0;
                self.baseline().wrapping_add(self.counted_with(home))
            }
            _ => {
                let baseline = self.baseline();
                baseline.wrapping_add(self.counted())
            }
        }
    }

    pub(crate) fn set(&self, value: u64) {
        let _held = self.lock.lock().expect("no thread of a model panics");
        if self.variant == Variant::RemoteZeroing {
            self.words.iter().chain([&self.home]).for_each(|word| word.store(0, Ordering::Release));
            return;
        }
        let baseline = value.wrapping_sub(self.counted());
        if self.variant != Variant::QuickBesideBaseline {
            self.quick.swap(SEVERAL, Ordering::SeqCst);
        }
        self.baseline_in_use.fetch_or(1, Ordering::SeqCst);
        self.baseline.store(baseline, Ordering::Release);
    }
}
