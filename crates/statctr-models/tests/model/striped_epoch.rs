//! The protocol of a sum that can be set where there is no rseq: threads that add to the words of one stripe, a
//! set, a read. After `memory/float_sum.rs`, in whole numbers, with the wrong ways to do it beside the right one.

use super::machine::load_before_store;
use super::{explore, is_thorough};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

/// Protocol of the model: as specified, or with one step changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    /// As the library does.
    Correct,
    /// Several threads may replace a stale sum at the same time.
    ReplacedBySeveral,
    /// A stale sum is replaced by the first addition, not by something that is no number.
    NeverEmpty,
    /// A sum is emptied in the same way in each epoch, by 0.
    AlikeWhenEmpty,
    /// A stripe's sum counts before what it replaces is gone.
    EpochFirst,
}

const REPLACING: u64 = u64::MAX;
const EMPTY: u64 = 1 << 32;

struct Sum {
    variant: Variant,
    sum: AtomicU64,
    sum_epoch: AtomicU64,
    epoch: AtomicU64,
    values: [AtomicU64; 2],
    fallback: [AtomicU64; 2],
}

impl Sum {
    fn new(variant: Variant) -> Sum {
        let word = AtomicU64::new;
        let mut sum = Sum {
            variant,
            sum: word(0),
            sum_epoch: word(0),
            epoch: word(1),
            values: [word(0), word(0)],
            fallback: [word(0), word(0)],
        };
        sum.fallback = [0, 1].map(|epoch| word(sum.empty(epoch)));
        sum
    }

    fn empty(&self, epoch: u64) -> u64 {
        if self.variant == Variant::AlikeWhenEmpty { 0 } else { EMPTY + epoch }
    }

    fn number(&self, bits: u64, epoch: u64) -> u64 {
        if bits == self.empty(epoch) { 0 } else { bits }
    }

    fn join(&self, word: &AtomicU64, epoch: u64, value: u64) -> bool {
        let mut before = load_before_store(word);
        loop {
            if before >= EMPTY && before != self.empty(epoch) {
                return false;
            }
            let after = self.number(before, epoch) + value;
            match word.compare_exchange(before, after, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => before = now,
            }
        }
    }

    fn add(&self, value: u64) {
        if self.add_on_stripe(value) {
            return;
        }
        loop {
            let epoch = self.epoch.load(Ordering::Acquire);
            if self.join(&self.fallback[epoch as usize & 1], epoch, value) {
                return;
            }
            thread::yield_now();
        }
    }

    fn add_on_stripe(&self, value: u64) -> bool {
        loop {
            let epoch = self.epoch.load(Ordering::Acquire);
            let found = self.sum_epoch.load(Ordering::Acquire);
            if found == REPLACING {
                return false;
            }
            if found == epoch {
                if self.join(&self.sum, epoch, value) {
                    return true;
                }
            } else if found < epoch && self.replace(found, epoch, value) {
                return true;
            }
            thread::yield_now();
        }
    }

    /// Replaces the sum of the epoch `found`; `true` if by `value`.
    fn replace(&self, found: u64, epoch: u64, value: u64) -> bool {
        let first = if self.variant == Variant::EpochFirst { epoch } else { REPLACING };
        if self.variant != Variant::ReplacedBySeveral
            && self.sum_epoch.compare_exchange(found, first, Ordering::AcqRel, Ordering::Relaxed).is_err()
        {
            return false;
        }
        let replaced = if self.variant == Variant::NeverEmpty { value } else { self.empty(epoch) };
        self.sum.swap(replaced, Ordering::AcqRel);
        self.sum_epoch.store(epoch, Ordering::Release);
        self.variant == Variant::NeverEmpty
    }

    /// Sets the value; nobody else does meanwhile.
    fn set(&self, value: u64) {
        let next = self.epoch.load(Ordering::Relaxed) + 1;
        let slot = next as usize & 1;
        fence(Ordering::Release);
        self.values[slot].store(value, Ordering::Relaxed);
        self.fallback[slot].swap(self.empty(next), Ordering::AcqRel);
        self.epoch.store(next, Ordering::Release);
    }

    fn read(&self) -> u64 {
        let epoch = self.epoch.load(Ordering::Acquire);
        let slot = epoch as usize & 1;
        let mut value = self.values[slot].load(Ordering::Relaxed);
        value += self.number(self.fallback[slot].load(Ordering::Relaxed), epoch);
        if self.sum_epoch.load(Ordering::Acquire) == epoch {
            value += self.number(self.sum.load(Ordering::Relaxed), epoch);
        }
        fence(Ordering::Acquire);
        if self.epoch.load(Ordering::Relaxed) == epoch {
            return value;
        }
        loop {
            let epoch = self.epoch.load(Ordering::Acquire);
            let value = self.values[epoch as usize & 1].load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if self.epoch.load(Ordering::Relaxed) == epoch {
                return value;
            }
            thread::yield_now();
        }
    }
}

/// Checks a sum without rseq to which one thread adds 1 and another one 10, on one stripe, while this one sets it to
/// 1000, 2000 and so on and reads it. What was added to the stripe before the model begins is `before`.
fn added_on_a_stripe_and_set(variant: Variant, before: u64, sets: u64) {
    /// The values that the threads add.
    const ADDED: [u64; 2] = [1, 10];
    // of the value after the last set
    let has = |value: u64, added: u64| value / added % 10 == 1;
    explore(2, 3, move || {
        let sum = Arc::new(Sum::new(variant));
        if before > 0 {
            sum.add(before);
        }
        let dones = ADDED.map(|_| Arc::new(AtomicU64::new(0)));
        let writers = [0, 1].map(|writer| {
            let (sum, done) = (Arc::clone(&sum), Arc::clone(&dones[writer]));
            thread::spawn(move || {
                sum.add(ADDED[writer]);
                done.store(1, Ordering::Release);
                sum.read()
            })
        });
        for set in 1..=sets {
            let done = [0, 1].map(|writer| dones[writer].load(Ordering::Acquire) == 1);
            sum.set(set * 1000);
            let value = sum.read();
            assert!([0, 1, 10, 11].contains(&value.wrapping_sub(set * 1000)), "{value}: partly set");
            assert!(!(0..2).any(|writer| done[writer] && has(value, ADDED[writer])), "{value}: partly set");
        }
        let seen = writers.map(|writer| writer.join().expect("joined"));
        let end = sum.read();
        if sets == 0 {
            assert_eq!(end, before + 11, "not exact");
        } else {
            assert!([0, 1, 10, 11].contains(&end.wrapping_sub(sets * 1000)), "{end}: partly set");
        }
        for (seen, added) in seen.into_iter().zip(ADDED) {
            // who did not see its addition, as that was before a set, must not see it later
            let level = if seen < 1000 { seen - before } else { seen };
            assert!([0, 1, 10, 11].contains(&(level % 1000)), "{seen}: partly set");
            assert!(sets == 0 || has(level, added) || !has(end, added), "{end} after {seen}: comes back");
            assert!(sets > 0 || has(level, added), "{seen} after {added}: not visible");
        }
        sum.add(1);
        assert_eq!(sum.read(), end + 1, "not exact");
        sum.set(9000);
        assert_eq!(sum.read(), 9000, "not exact");
        sum.add(1);
        assert_eq!(sum.read(), 9001, "not exact");
    });
}

#[test]
fn an_addition_on_a_stripe_is_wholly_before_or_after_a_set() {
    for (before, sets) in [(0, 0), (10, 1)] {
        added_on_a_stripe_and_set(Variant::Correct, before, sets);
    }
    if is_thorough() {
        added_on_a_stripe_and_set(Variant::Correct, 0, 1);
        added_on_a_stripe_and_set(Variant::Correct, 10, 2);
    }
}

#[test]
#[should_panic(expected = "not exact")]
fn a_stale_sum_that_several_threads_replace_loses_additions() {
    added_on_a_stripe_and_set(Variant::ReplacedBySeveral, 0, 0);
}

#[test]
#[should_panic(expected = "comes back")]
fn a_sum_that_a_number_replaces_takes_late_additions_before_it_is_read() {
    added_on_a_stripe_and_set(Variant::NeverEmpty, 10, 1);
}

#[test]
#[should_panic(expected = "comes back")]
fn a_sum_that_is_alike_in_each_epoch_when_empty_takes_late_additions_before_it_is_read() {
    added_on_a_stripe_and_set(Variant::AlikeWhenEmpty, 0, 1);
}

#[test]
#[should_panic(expected = "partly set")]
fn a_stripe_whose_epoch_comes_before_its_empty_sum_is_read_with_the_old_one() {
    added_on_a_stripe_and_set(Variant::EpochFirst, 500, 1);
}
