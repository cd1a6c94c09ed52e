//! Stores that retired and wait for their lines.

use super::calendar::{CYCLE, Time};
use super::ownership::{Grant, Ownership};
use std::collections::VecDeque;

/// A store in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingStore {
    /// The instruction, as the trace's index.
    pub(super) instruction: u32,
    /// The first byte.
    pub(super) address: u64,
    /// The line's number.
    pub(super) line: u64,
    /// The time from which it may be written.
    pub(super) retires: Time,
    /// The time at which the core's own caches have the line, if nobody else takes it.
    pub(super) arrives: Time,
}

/// A core's store buffer: first in, first out, one a cycle.
#[derive(Clone, Debug)]
pub(super) struct StoreBuffer {
    capacity: usize,
    queue: VecDeque<PendingStore>,
    // of the first one, once its line was asked for
    granted: Option<Grant>,
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
}

impl StoreBuffer {
    pub(super) fn new(capacity: u32) -> Self {
        Self { capacity: capacity.max(1) as usize, queue: VecDeque::new(), granted: None, left: 0, gone: 0 }
    }

    /// Adds a store, and returns its number.
    pub(super) fn push(&mut self, store: PendingStore) -> u64 {
        self.queue.push_back(store);
        self.gone + self.queue.len() as u64 - 1
    }

    /// Returns whether the store of a number is still here.
    pub(super) fn holds(&self, number: u64) -> bool {
        number >= self.gone && number - self.gone < self.queue.len() as u64
    }

    /// Returns whether there is no room.
    pub(super) fn is_full(&self) -> bool {
        self.queue.len() >= self.capacity
    }

    /// Notes a store that goes into its line past the empty buffer.
    pub(super) fn pass(&mut self, at: Time) {
        self.left = self.left.max(at);
    }

    /// Returns the time at which the last store left.
    pub(super) fn left(&self) -> Time {
        self.left
    }

    /// Lets the first store leave, if it can until a time.
    pub(super) fn pop(
        &mut self,
        until: Time,
        core: u16,
        ownership: Option<&mut Ownership>,
    ) -> Option<LeftStore> {
        let store = *self.queue.front()?;
        let ready = (self.left + CYCLE).max(store.retires);
        let grant = match (self.granted, ownership) {
            (Some(grant), _) => grant,
            (None, _) if ready > until => return None,
            (None, Some(ownership)) => ownership.request(core, store.line, true, ready),
            (None, None) => Grant { at: ready, transferred: false },
        };
        self.granted = Some(grant);
        let at = grant.at.max(store.arrives).max(ready);
        if at > until {
            return None;
        }
        self.granted = None;
        self.queue.pop_front();
        self.left = at;
        self.gone += 1;
        Some(LeftStore { store, at, transferred: grant.transferred })
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
    fn a_line_that_another_core_has_is_asked_for_once() {
        let mut ownership = Ownership::new(SharingCosts::new(100, 0));
        ownership.request(1, 5, true, 0);
        let mut buffer = StoreBuffer::new(8);
        buffer.push(store(5, CYCLE));
        buffer.push(store(5, CYCLE));
        assert!(buffer.pop(2 * CYCLE, 0, Some(&mut ownership)).is_none(), "it is on its way");
        let first = buffer.pop(Time::MAX, 0, Some(&mut ownership)).expect("the first");
        assert!(first.transferred && first.at > 50 * CYCLE, "{first:?}");
        let second = buffer.pop(Time::MAX, 0, Some(&mut ownership)).expect("the second");
        assert_eq!((second.transferred, second.at), (false, first.at + CYCLE));
    }
}
