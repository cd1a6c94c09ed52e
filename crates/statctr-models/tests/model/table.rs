//! The protocol by which a table takes the place of a lazy object's last pair, whose instance is in it from then on.
//! After `memory/lazy/object.rs`, with one pair and two indices, and with the wrong ways to do it beside the right one.

use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Protocol of the model: as specified, or with one step changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// As the library does.
    Correct,
    /// A reader loads the pair to visit its instance, and once more to find the table.
    PairLoadedTwice,
    /// The table takes the pair's place before the pair's instance is in it.
    TableBeforeItsInstance,
}

/// Value of the pair: instance 0, or the table. Places of the table have 1 + the instance.
const FIRST_INSTANCE: usize = 1;
const TABLE: usize = 2;

pub(crate) struct Object {
    variant: Variant,
    pair: AtomicUsize,
    table: [AtomicUsize; 2],
    instances: [AtomicU64; 2],
}

impl Object {
    /// Creates an object whose first instance has counted so much.
    pub(crate) fn new(variant: Variant, counted: u64) -> Object {
        let places = || [AtomicUsize::new(0), AtomicUsize::new(0)];
        let instances = [AtomicU64::new(counted), AtomicU64::new(0)];
        Object { variant, pair: AtomicUsize::new(FIRST_INSTANCE), table: places(), instances }
    }

    /// Adds to an instance of one's own, which is found in the pair or in the table.
    pub(crate) fn add(&self, index: usize, value: u64) {
        if index == 1 {
            self.insert_second();
        }
        let instance = &self.instances[index];
        instance.store(instance.load(Ordering::Relaxed) + value, Ordering::Relaxed);
    }

    fn insert_second(&self) {
        let fill = |place: usize| self.table[place].store(1 + place, Ordering::Release);
        if self.variant == Variant::TableBeforeItsInstance {
            self.pair.store(TABLE, Ordering::Release);
            fill(0);
        } else {
            fill(0);
            let exchanged =
                self.pair.compare_exchange(FIRST_INSTANCE, TABLE, Ordering::AcqRel, Ordering::Acquire);
            assert!(exchanged.is_ok(), "one thread makes a table");
        }
        fill(1);
    }

    pub(crate) fn read(&self) -> u64 {
        let mut sum = 0;
        let mut pair = self.pair.load(Ordering::Acquire);
        if pair == FIRST_INSTANCE {
            sum += self.instances[0].load(Ordering::Relaxed);
        }
        if self.variant == Variant::PairLoadedTwice {
            pair = self.pair.load(Ordering::Acquire);
        }
        if pair == TABLE {
            for place in &self.table {
                if let Some(instance) = place.load(Ordering::Acquire).checked_sub(1) {
                    sum += self.instances[instance].load(Ordering::Relaxed);
                }
            }
        }
        sum
    }
}
