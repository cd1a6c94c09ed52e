//! Time, and resources that are taken for a part of it: buffers of misses, the bus to memory.
//!
//! Requests come in the order of the program, which is not that of time: a load that waits for another one's
//! miss asks for a time in the future, and the independent load behind it for one before. So each is fitted
//! in at its own time, and not behind whatever came first.

/// Times of the model: parts of a cycle.
pub(super) type Time = u64;

/// Parts of a cycle. As many instructions retire at most.
pub(super) const CYCLE: Time = 64;

/// Slots of a bus that are remembered.
const SLOTS: usize = 1 << 14;

/// Misses that are remembered for each buffer: those that end the earliest are forgotten first.
const REMEMBERED: usize = 4;

/// A bus that sends one line in each slot.
#[derive(Clone, Debug)]
pub(super) struct BusSchedule {
    interval: Time,
    // by the slot's number: the last that was taken, plus one
    taken: Vec<u64>,
}

impl BusSchedule {
    /// Makes a bus with a time between two lines; without one it takes no time.
    pub(super) fn new(interval: Time) -> Self {
        Self { interval, taken: if interval == 0 { Vec::new() } else { vec![0; SLOTS] } }
    }

    /// Takes the first free slot from a time on, and returns when it starts.
    pub(super) fn take(&mut self, now: Time) -> Time {
        if self.interval == 0 {
            return now;
        }
        let first = now / self.interval;
        let is_free = |slot: &u64| self.taken[*slot as usize % SLOTS] != slot + 1;
        let Some(slot) = (first..first.saturating_add(SLOTS as u64)).find(is_free) else { return now };
        self.taken[slot as usize % SLOTS] = slot + 1;
        now.max(slot.saturating_mul(self.interval))
    }
}

/// Buffers, each of which holds one miss until its line is there.
#[derive(Clone, Debug)]
pub(super) struct MissBuffers {
    limit: usize,
    // start and end of misses
    taken: Vec<(Time, Time)>,
}

impl MissBuffers {
    /// Makes so many buffers.
    pub(super) fn new(limit: u32) -> Self {
        Self { limit: limit.max(1) as usize, taken: Vec::new() }
    }

    /// Returns the first time from `now` on at which a buffer is free.
    pub(super) fn free_from(&self, now: Time) -> Time {
        let mut now = now;
        loop {
            let under_way = || self.taken.iter().filter(|(start, end)| *start <= now && now < *end);
            if under_way().count() < self.limit {
                return now;
            }
            // each turn ends one at least
            let Some(end) = under_way().map(|(_, end)| *end).min() else { return now };
            now = end;
        }
    }

    /// Occupies a buffer from `start` to `end`, for at least a cycle.
    pub(super) fn take(&mut self, start: Time, end: Time) {
        if self.taken.len() >= self.limit.saturating_mul(REMEMBERED) {
            let oldest = (0..self.taken.len()).min_by_key(|index| self.taken[*index].1);
            oldest.into_iter().for_each(|index| {
                self.taken.swap_remove(index);
            });
        }
        self.taken.push((start, end.max(start + CYCLE)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_time_follow_each_other() {
        let mut bus = BusSchedule::new(8);
        let later = bus.take(800);
        let all: Vec<Time> = (0..3).map(|_| bus.take(0)).collect();
        assert_eq!((later, &all[..]), (800, &[0, 8, 16][..]));
        assert_eq!(bus.take(797), 797, "the slot of 792 has begun");
        assert_eq!(bus.take(797), 808, "and that of 800 is taken");
        assert_eq!(BusSchedule::new(0).take(5), 5);
        assert_eq!(bus.take(Time::MAX), Time::MAX);
    }

    #[test]
    fn a_buffer_is_taken_for_its_own_time_alone() {
        let mut buffers = MissBuffers::new(2);
        buffers.take(500, 900);
        buffers.take(600, 1000);
        assert_eq!(buffers.free_from(0), 0);
        assert_eq!(buffers.free_from(700), 900);
        buffers.take(0, 450);
        buffers.take(10, 460);
        assert_eq!(buffers.free_from(20), 450);
        (0..100).for_each(|at| buffers.take(at, at + 1));
        assert!(buffers.taken.len() <= 8);
    }
}
