//! The protocol of a stripe that belongs to one thread at a time: claim, add without a lock, end, and a signal handler
//! that adds in the middle of each. After `rseq/x86_64/owned.rs`, with the wrong ways to do it beside the right one.

use super::explore;
use super::machine::load_before_store;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

/// Protocol of the model: as specified, or with one step changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    /// As the library does.
    Correct,
    /// The owner loads and stores, and a signal comes between.
    SplitAddition,
    /// A thread that ends frees its number, and then forgets it.
    FreeBeforeForgotten,
    /// A number is taken without acquiring the stores of its last owner.
    TakenRelaxed,
    /// A thread without a number adds to the same word, atomically.
    OneWordForAll,
}

/// Point at which a signal comes, whose handler adds 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Never,
    /// The number is taken, and the thread does not know yet.
    InClaim,
    /// Between an owner's load and its store, where that is more than one instruction.
    InAddition,
    /// In the middle of the thread's end.
    InEnd,
    /// After it.
    AfterEnd,
}

/// One number, its word, and the word of those without.
struct Stripes {
    variant: Variant,
    taken: AtomicU64,
    owned: AtomicU64,
    shared: AtomicU64,
}

/// A thread that counts.
struct Counting {
    signal: Signal,
    may_claim: bool,
    has_number: bool,
    /// The sum of its additions and of its handlers'.
    added: u64,
}

impl Counting {
    fn new(signal: Signal) -> Counting {
        Counting { signal, may_claim: true, has_number: false, added: 0 }
    }
}

impl Stripes {
    fn new(variant: Variant) -> Stripes {
        let zero = || AtomicU64::new(0);
        Stripes { variant, taken: zero(), owned: zero(), shared: zero() }
    }

    fn add(&self, thread: &mut Counting, value: u64) {
        if thread.may_claim {
            self.claim(thread);
        }
        thread.added += value;
        if thread.has_number {
            let sum = self.load_owned() + value;
            if self.variant == Variant::SplitAddition {
                self.signal(thread, Signal::InAddition);
            }
            self.owned.store(sum, Ordering::Release);
        } else {
            let word = if self.variant == Variant::OneWordForAll { &self.owned } else { &self.shared };
            word.fetch_add(value, Ordering::Relaxed);
        }
    }

    /// Loads the owner's word: by a load that may find an old value where nothing was acquired, or by one that the
    /// checker sees to come before others' stores.
    fn load_owned(&self) -> u64 {
        match self.variant {
            Variant::Correct | Variant::TakenRelaxed => self.owned.load(Ordering::Relaxed),
            _ => load_before_store(&self.owned),
        }
    }

    fn claim(&self, thread: &mut Counting) {
        thread.may_claim = false;
        let order = if self.variant == Variant::TakenRelaxed { Ordering::Relaxed } else { Ordering::Acquire };
        let is_first = self.taken.fetch_or(1, order) == 0;
        self.signal(thread, Signal::InClaim);
        thread.has_number = is_first;
    }

    /// Ends a thread, whose last handlers may come later.
    fn end(&self, thread: &mut Counting) {
        let had_number = std::mem::take(&mut thread.has_number);
        if had_number && self.variant == Variant::FreeBeforeForgotten {
            self.taken.fetch_and(0, Ordering::Release);
            thread.has_number = true;
            self.signal(thread, Signal::InEnd);
            thread.has_number = false;
        } else if had_number {
            self.signal(thread, Signal::InEnd);
            self.taken.fetch_and(0, Ordering::Release);
        }
        self.signal(thread, Signal::AfterEnd);
    }

    fn signal(&self, thread: &mut Counting, here: Signal) {
        if thread.signal == here {
            thread.signal = Signal::Never;
            self.add(thread, 1);
        }
    }

    fn read(&self) -> u64 {
        self.owned.load(Ordering::Acquire) + self.shared.load(Ordering::Acquire)
    }
}

/// Checks two threads of which one at a time has the stripe, each with a signal somewhere, and a reader.
fn owned_stripe(variant: Variant, signals: [Signal; 2]) {
    explore(2, 3, move || {
        let stripes = Arc::new(Stripes::new(variant));
        let done = Arc::new(AtomicU64::new(0));
        let threads = signals.map(|signal| {
            let (stripes, done) = (Arc::clone(&stripes), Arc::clone(&done));
            thread::spawn(move || {
                let mut thread = Counting::new(signal);
                stripes.add(&mut thread, 1);
                stripes.add(&mut thread, 1);
                stripes.end(&mut thread);
                // handed over
                done.fetch_add(thread.added, Ordering::Release);
                thread.added
            })
        });
        let handed_over = done.load(Ordering::Acquire);
        let value = stripes.read();
        assert!(value >= handed_over, "{value} of {handed_over}: not visible");
        let added: u64 = threads.into_iter().map(|thread| thread.join().expect("joined")).sum();
        assert!(added >= 4);
        assert_eq!(stripes.read(), added, "not exact");
    });
}

#[test]
fn a_stripe_of_one_thread_at_a_time_loses_nothing() {
    use Signal::{AfterEnd, InAddition, InClaim, InEnd, Never};
    let pairs =
        [[Never, Never], [InClaim, InEnd], [InEnd, InClaim], [InEnd, AfterEnd], [AfterEnd, InAddition]];
    for signals in pairs {
        owned_stripe(Variant::Correct, signals);
    }
}

#[test]
#[should_panic(expected = "not exact")]
fn an_owners_addition_that_a_signal_can_split_loses_counts() {
    owned_stripe(Variant::SplitAddition, [Signal::InAddition, Signal::Never]);
}

#[test]
#[should_panic(expected = "not exact")]
fn a_number_that_is_free_before_its_thread_forgets_it_loses_counts() {
    owned_stripe(Variant::FreeBeforeForgotten, [Signal::InEnd, Signal::Never]);
}

#[test]
#[should_panic(expected = "not exact")]
fn a_number_that_is_taken_without_acquiring_loses_counts() {
    owned_stripe(Variant::TakenRelaxed, [Signal::Never; 2]);
}

#[test]
#[should_panic(expected = "not exact")]
fn threads_without_a_number_that_add_to_an_owners_word_lose_counts() {
    owned_stripe(Variant::OneWordForAll, [Signal::Never; 2]);
}
