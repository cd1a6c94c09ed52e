//! Stores that retired and wait for their lines.

use super::calendar::{CYCLE, Time};
use super::ownership::{Grant, Ownership};
use std::collections::VecDeque;

/// Bytes in which stores that wait for a line are joined.
const HALF_LINE: u64 = 32;

/// A store in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingStore {
    /// The storing instruction, as the trace's index.
    pub(super) instruction: u32,
    /// The address of the first byte that is stored.
    pub(super) address: u64,
    /// The number of the cache line that is stored to: its address divided by its size.
    pub(super) line: u64,
    /// The time from which the store may be written to its line.
    pub(super) retires: Time,
    /// The time at which the core's own caches have the line, if nobody else takes it.
    pub(super) arrives: Time,
}

/// A core's store buffer: first in, first out, one a cycle.
///
/// The first store whose line has to come leaves it for a buffer of its own, in which later ones join it that write to
/// the same half line: on Zen 4 two cores that store to one half of a line lose nothing, and two that store to both
/// halves in turn as much as to two lines.
#[derive(Clone, Debug)]
pub(super) struct StoreBuffer {
    capacity: usize,
    queue: VecDeque<PendingStore>,
    // one that waits for its line outside of the queue
    waiting: Option<(PendingStore, Grant)>,
    // when the last one left
    left: Time,
    // the number of those that left
    gone: u64,
}

/// A store that left.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeftStore {
    pub(super) store: PendingStore,
    pub(super) at: Time,
    pub(super) transferred: bool,
    /// The store whose line it had to wait for.
    pub(super) behind: Option<PendingStore>,
}

impl StoreBuffer {
    pub(super) fn new(capacity: u32) -> Self {
        Self { capacity: capacity.max(1) as usize, queue: VecDeque::new(), waiting: None, left: 0, gone: 0 }
    }

    /// Adds a store, and returns its number.
    pub(super) fn push(&mut self, store: PendingStore) -> u64 {
        self.queue.push_back(store);
        self.gone + self.queue.len() as u64 - 1
    }

    /// Returns `true` if the store with this number is still in the buffer's queue.
    pub(super) fn holds(&self, number: u64) -> bool {
        number >= self.gone && number - self.gone < self.queue.len() as u64
    }

    /// Returns `true` if the buffer has no room for another store.
    pub(super) fn is_full(&self) -> bool {
        self.queue.len() >= self.capacity
    }

    /// Notes a store that goes into its line past the empty buffer.
    pub(super) fn pass(&mut self, at: Time) {
        self.left = self.left.max(at);
    }

    /// Lets the first store leave, if it can until a time.
    pub(super) fn pop(
        &mut self,
        until: Time,
        core: u16,
        ownership: Option<&mut Ownership>,
    ) -> Option<LeftStore> {
        let store = *self.queue.front()?;
        let mut ready = (self.left + CYCLE).max(store.retires);
        let mut behind = None;
        if let Some((first, grant)) = self.waiting
            && ready < grant.at
        {
            if first.address / HALF_LINE == store.address / HALF_LINE {
                // it joins the one that waits
                return (ready <= until).then(|| self.leave(store, ready, false, None));
            }
            (ready, behind) = (grant.at, Some(first));
        }
        if ready > until {
            return None;
        }
        let grant = match ownership {
            Some(ownership) => ownership.request(core, store.line, true, ready),
            None => Grant { at: ready, transferred: false },
        };
        self.waiting = Some((store, Grant { at: grant.at.max(store.arrives), ..grant }));
        Some(self.leave(store, ready, grant.transferred, behind))
    }

    fn leave(
        &mut self,
        store: PendingStore,
        at: Time,
        transferred: bool,
        behind: Option<PendingStore>,
    ) -> LeftStore {
        self.queue.pop_front();
        self.left = at;
        self.gone += 1;
        LeftStore { store, at, transferred, behind }
    }

    /// Returns the time at which all stores that left are in their lines.
    pub(super) fn written(&self) -> Time {
        self.waiting.map_or(0, |(_, grant)| grant.at).max(self.left)
    }

    /// Returns the time at which the store of a number can leave at the earliest; none if it left.
    pub(super) fn earliest(&self, number: u64) -> Option<Time> {
        let store = self.queue.get(usize::try_from(number.checked_sub(self.gone)?).ok()?)?;
        Some(store.retires.max(self.left + CYCLE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ownership::SharingCosts;

    fn store(line: u64, retires: Time) -> PendingStore {
        PendingStore { instruction: 0, address: line * 64, line, retires, arrives: retires }
    }

    #[test]
    fn stores_leave_in_their_order_one_a_cycle() {
        let mut buffer = StoreBuffer::new(2);
        let numbers = [buffer.push(store(1, 900)), buffer.push(store(2, 100))];
        assert!(buffer.is_full());
        assert!(buffer.pop(899, 0, None).is_none());
        assert_eq!(buffer.pop(900, 0, None).expect("the first").at, 900);
        assert_eq!(buffer.pop(Time::MAX, 0, None).expect("the second").at, 900 + CYCLE);
        assert_eq!(numbers.map(|number| buffer.holds(number)), [false, false]);
    }

    #[test]
    fn stores_to_half_a_line_join_the_one_that_waits_for_it() {
        let mut ownership = Ownership::new(SharingCosts::new(100).with_contention(100, 0));
        ownership.request(1, 5, true, 0);
        let mut buffer = StoreBuffer::new(8);
        let other_half = PendingStore { address: 5 * 64 + 32, ..store(5, CYCLE) };
        for store in [store(5, CYCLE), store(5, CYCLE), other_half] {
            buffer.push(store);
        }
        let mut pop = |until| buffer.pop(until, 0, Some(&mut ownership));
        let first = pop(3 * CYCLE).expect("the first, which asks for the line");
        assert_eq!((first.transferred, first.at), (true, CYCLE));
        let second = pop(3 * CYCLE).expect("the second");
        assert_eq!((second.transferred, second.at), (false, 2 * CYCLE));
        assert!(pop(3 * CYCLE).is_none(), "the other half has to wait");
        let third = pop(Time::MAX).expect("the third");
        assert!(third.at > 50 * CYCLE && third.behind.is_some(), "{third:?}");
        assert!(!third.transferred, "the line has come for the first");
    }
}
