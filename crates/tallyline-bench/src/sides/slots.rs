//! A padded slot for each thread: the thread finds its slot's number in its local storage and adds
//! without a lock, as nobody else writes there. One cache line per counter and thread, and a read
//! walks all of them.

use super::looped::{Looped, Step, opaque};
use super::{Padded, Side};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

thread_local! {
    // constant and without a destructor: the access is one instruction
    static SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The number of slots (atomic words of one thread each) that a counter of the benchmark loop `thread-slots/inc` has;
/// threads beyond it share slots.
pub(crate) const SLOTS: usize = 1024;

#[cold]
#[inline(never)]
fn take_slot() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let slot = NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS;
    SLOT.set(slot);
    slot
}

/// A counter with one atomic slot for each thread, as other libraries have: a read sums the slots.
pub(crate) struct Slots(Box<[Padded<AtomicU64>]>);

impl Slots {
    pub(crate) fn new(slots: usize) -> Self {
        Slots((0..slots).map(|_| Padded::default()).collect())
    }

    pub(crate) fn read(&self) -> u64 {
        self.0.iter().fold(0u64, |sum, slot| sum.wrapping_add(slot.0.load(Ordering::Relaxed)))
    }
}

struct Inc;

impl Step for Inc {
    type State = Slots;

    #[inline(always)]
    fn step(slots: &Slots, _turn: u64) {
        let mut index = SLOT.get();
        if index == usize::MAX {
            index = take_slot();
        }
        if let Some(slot) = slots.0.get(index) {
            let slot = in_one_register(&slot.0);
            slot.store(slot.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }
}

/// Keeps the compiler from adding to the word by an indexed address, which processors that rename
/// memory do not rename: four times as slow.
#[inline(always)]
fn in_one_register(word: &AtomicU64) -> &AtomicU64 {
    let address = opaque(std::ptr::from_ref(word).expose_provenance() as u64);
    // SAFETY: the same address, as the compiler cannot see.
    unsafe { &*std::ptr::with_exposed_provenance(address as usize) }
}

struct Read;

impl Step for Read {
    type State = Slots;

    #[inline(always)]
    fn step(slots: &Slots, _turn: u64) {
        opaque(slots.read());
    }
}

/// Returns the benchmark loop `thread-slots/read`: it reads a counter by summing its `slots` per-thread slots.
pub(crate) fn read(slots: usize) -> Box<dyn Side> {
    Looped::<Read>::with_shared_state(Slots::new(slots), |_| 0).counting(0).boxed()
}

/// Returns the benchmark loop `thread-slots/inc`: each thread adds to its own slot of a counter. With `think`, it
/// computes between increments.
pub(crate) fn inc(think: bool) -> Box<dyn Side> {
    Looped::<Inc>::with_shared_state(Slots::new(SLOTS), Slots::read).thinking(think).boxed()
}
