//! The owners of lines in time: transfers between cores, which take time and come one after the other.
//!
//! A line is one core's to write, or several cores' to read. A request for a line that another core has modified, or
//! that others hold when it is to be written, waits until the owner has had it for a while, and then a transfer's
//! time. In between the former owner's stores go on into the line: it has it until it leaves.

use super::calendar::{CYCLE, Time};
use rustc_hash::FxHashMap;

/// The most lines whose owners are known; a later one is nobody's.
const LINES_LIMIT: usize = 1 << 24;

/// Former owners that are remembered for each line.
const FORMER: usize = 4;

/// Nobody.
const NONE: u16 = u16::MAX;

/// The modelled cycles of passing a cache line from one core to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharingCosts {
    transfer: u32,
    hold: u32,
    spread: u32,
    seed: u64,
}

impl SharingCosts {
    /// Describes a machine's passing of cache lines: one comes from another core after `transfer` cycles,
    /// once that core has had it for `hold` cycles.
    pub fn new(transfer: u32, hold: u32) -> Self {
        Self { transfer, hold, spread: 25, seed: 1 }
    }

    /// Sets the seed by which the modelled time of one transfer deviates from another's.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Returns the modelled cycles until a cache line has come from another core.
    pub fn transfer(&self) -> u32 {
        self.transfer
    }

    /// Returns the modelled cycles for which a core keeps a cache line before it gives it up.
    pub fn hold(&self) -> u32 {
        self.hold
    }
}

/// A line's owner, readers and former owners.
#[derive(Clone, Debug)]
struct LineOwner {
    owner: u16,
    // when it arrived there
    from: Time,
    readers: Vec<(u16, Time)>,
    // core, arrival, loss
    former: [(u16, Time, Time); FORMER],
}

impl Default for LineOwner {
    fn default() -> Self {
        Self { owner: NONE, from: 0, readers: Vec::new(), former: [(NONE, 0, 0); FORMER] }
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Grant {
    /// The earliest time at which the core has the line.
    pub(super) at: Time,
    /// True if another core had to give it up.
    pub(super) transferred: bool,
}

/// The owners of all lines.
#[derive(Clone, Debug)]
pub(super) struct Ownership {
    costs: SharingCosts,
    lines: FxHashMap<u64, LineOwner>,
    random: u64,
}

impl Ownership {
    pub(super) fn new(costs: SharingCosts) -> Self {
        // a seed of 0 would stay 0
        let random = costs.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self { costs, lines: FxHashMap::default(), random }
    }

    /// Returns the time of one transfer.
    fn transfer_time(&mut self) -> Time {
        let middle = u64::from(self.costs.transfer) * CYCLE;
        let spread = middle * u64::from(self.costs.spread) / 100;
        middle - spread + self.draw(2 * spread + 1)
    }

    /// Draws a number below a limit.
    pub(super) fn draw(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % limit.max(1)
    }

    /// A core reads or writes a line at a time.
    pub(super) fn request(&mut self, core: u16, line: u64, store: bool, now: Time) -> Grant {
        let is_full = self.lines.len() >= LINES_LIMIT;
        if is_full && !self.lines.contains_key(&line) {
            return Grant { at: now, transferred: false };
        }
        let state = self.lines.entry(line).or_default();
        if state.owner == core {
            return Grant { at: now.max(state.from), transferred: false };
        }
        if !store && let Some((_, from)) = state.readers.iter().find(|(reader, _)| *reader == core) {
            return Grant { at: now.max(*from), transferred: false };
        }
        let still = |(former, from, until): &&(u16, Time, Time)| *former == core && *until > now.max(*from);
        if let Some((_, from, _)) = state.former.iter().find(still) {
            return Grant { at: now.max(*from), transferred: false };
        }
        let others = state.readers.iter().any(|(reader, _)| *reader != core);
        let hold = u64::from(self.costs.hold) * CYCLE;
        let (start, transferred) = match (state.owner, others) {
            (NONE, false) => (now, false),
            (NONE, true) => (now, store),
            (_, _) => (now.max(state.from.saturating_add(hold)), true),
        };
        let time = if transferred { self.transfer_time() } else { 0 };
        let at = start.saturating_add(time);
        let Some(state) = self.lines.get_mut(&line) else { return Grant { at, transferred } };
        if state.owner != NONE {
            state.former.rotate_right(1);
            state.former[0] = (state.owner, state.from, start);
        }
        if store {
            (state.owner, state.from) = (core, at);
            state.readers.clear();
        } else {
            if state.owner != NONE {
                let before = (state.owner, state.from);
                state.readers.push(before);
                state.owner = NONE;
            }
            state.readers.push((core, at));
        }
        Grant { at, transferred }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ownership() -> Ownership {
        Ownership::new(SharingCosts { spread: 0, ..SharingCosts::new(100, 10) })
    }

    const HUNDRED: Time = 100 * CYCLE;

    #[test]
    fn a_line_of_one_core_costs_nothing() {
        let mut lines = ownership();
        for at in [0, 5, 900] {
            assert_eq!(lines.request(0, 7, at != 5, at), Grant { at, transferred: false });
        }
    }

    #[test]
    fn a_modified_line_comes_after_a_transfer_and_its_owners_time() {
        let mut lines = ownership();
        lines.request(0, 7, true, 0);
        let second = lines.request(1, 7, true, CYCLE);
        assert_eq!(second, Grant { at: 10 * CYCLE + HUNDRED, transferred: true });
        let third = lines.request(2, 7, false, 2 * CYCLE);
        assert_eq!(third.at, second.at + 10 * CYCLE + HUNDRED, "one after the other");
    }

    #[test]
    fn a_former_owner_writes_until_the_line_leaves() {
        let mut lines = ownership();
        lines.request(0, 7, true, 0);
        lines.request(1, 7, true, CYCLE);
        assert!(!lines.request(0, 7, true, 9 * CYCLE).transferred);
        assert!(lines.request(0, 7, true, 11 * CYCLE).transferred);
    }

    #[test]
    fn readers_share_a_line_and_a_write_takes_it_from_them() {
        let mut lines = ownership();
        for core in 0..8 {
            assert!(!lines.request(core, 7, false, 0).transferred);
        }
        assert!(lines.request(3, 7, true, CYCLE).transferred, "the others have to give it up");
        assert!(lines.request(2, 7, false, 2 * HUNDRED).transferred);
        assert!(!lines.request(3, 7, false, 9 * HUNDRED).transferred, "both have it now");
    }

    #[test]
    fn seeds_give_other_times_around_the_same_middle() {
        let times = |seed| {
            let mut lines = Ownership::new(SharingCosts::new(100, 0).with_seed(seed));
            (0..1000).map(|_| lines.transfer_time()).collect::<Vec<_>>()
        };
        assert_eq!(times(3), times(3));
        assert_ne!(times(3), times(4));
        let mean = times(5).iter().sum::<Time>() / 1000;
        assert!(mean.abs_diff(HUNDRED) < HUNDRED / 50, "{mean}");
    }
}
