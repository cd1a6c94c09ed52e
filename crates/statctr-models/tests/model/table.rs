//! The protocol by which a table takes the place of a lazy object's last pair, whose instance is in it from then on.
//! After `memory/lazy/object.rs`, with one pair and two indices, and with the wrong ways to do it beside the right one.

use super::explore;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use loom::thread;

/// Protocol of the model: as specified, or with one step changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
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

struct Object {
    variant: Variant,
    pair: AtomicUsize,
    table: [AtomicUsize; 2],
    instances: [AtomicU64; 2],
}

impl Object {
    /// Creates an object whose first instance has counted so much.
    fn new(variant: Variant, counted: u64) -> Object {
        let places = || [AtomicUsize::new(0), AtomicUsize::new(0)];
        let instances = [AtomicU64::new(counted), AtomicU64::new(0)];
        Object { variant, pair: AtomicUsize::new(FIRST_INSTANCE), table: places(), instances }
    }

    /// Adds to an instance of one's own, which is found in the pair or in the table.
    fn add(&self, index: usize, value: u64) {
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

    fn read(&self) -> u64 {
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

/// Checks the first owner of a lazy object's instance, a second one that makes the table, and a reader.
fn table_in_place_of_a_pair(variant: Variant) {
    explore(3, 4, move || {
        let object = Arc::new(Object::new(variant, 5));
        let done = Arc::new(AtomicU64::new(5));
        let writers = [0, 1].map(|index| {
            let (object, done) = (Arc::clone(&object), Arc::clone(&done));
            thread::spawn(move || {
                object.add(index, 1);
                done.fetch_add(1, Ordering::Release);
            })
        });
        let mut last = 0;
        for _ in 0..2 {
            let handed_over = done.load(Ordering::Acquire);
            let value = object.read();
            assert!(value >= handed_over, "{value} of {handed_over}: not visible");
            assert!(value >= last, "{value} after {last}: not monotone");
            assert!(value <= 7, "{value}: counted twice");
            last = value;
        }
        for writer in writers {
            writer.join().expect("joined");
        }
        assert_eq!(object.read(), 7, "not exact");
    });
}

#[test]
fn a_reader_counts_a_pairs_instance_once_while_a_table_takes_its_place() {
    table_in_place_of_a_pair(Variant::Correct);
}

#[test]
#[should_panic(expected = "counted twice")]
fn a_reader_that_loads_the_pair_twice_counts_its_instance_twice() {
    table_in_place_of_a_pair(Variant::PairLoadedTwice);
}

#[test]
#[should_panic(expected = "not visible")]
fn a_table_without_the_pairs_instance_hides_what_it_counted() {
    table_in_place_of_a_pair(Variant::TableBeforeItsInstance);
}
