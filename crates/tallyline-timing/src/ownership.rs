//! The owners of lines in time: transfers between cores, which take time and come one after the other.
//!
//! A line is one core's to write, or several cores' to read. A request for a line that another core has modified, or
//! that others hold when it is to be written, takes a while to reach the owner, waits there until the owner has had
//! the line for a while, and then the line is under way. Until it leaves, the former owner's stores go on into it. A
//! request that comes while the line is under way to its owner waits there for it, so that lines that two cores want
//! all the time pass between them faster than one that is asked for now and then.

use super::calendar::{CYCLE, Time};
use rustc_hash::FxHashMap;

/// The most lines whose owners are known; a later one is nobody's.
const LINES_LIMIT: usize = 1 << 24;

/// Former owners that are remembered for each line.
const FORMER: usize = 4;

/// Cycles that a load costs beside the transfer if its line is taken before it retires: on Zen 4 a load that nothing
/// depends on, beside another core's store, costs 65 to 70.
const RESTART: u32 = 65;

/// The part of a transfer's latency for which the line is under way, in percent; for the rest the request is. On Zen 3
/// 75 of 115 cycles between near CPUs, 194 of 360 between far ones.
const WAY: u32 = 60;

/// The part of the latency for which an owner keeps a line that others ask for, in percent. On Zen 3 16 of 115 cycles
/// between near CPUs, 126 of 360 between far ones.
const HOLD: u32 = 25;

/// The core number that stands for no core.
const NONE: u16 = u16::MAX;

/// The cycles that a simulated machine takes to move a cache line from one core to another, and those that a load loses
/// if its line is taken away before it retires, so that it is executed again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharingCosts {
    transfer: u32,
    way: u32,
    hold: u32,
    restart: u32,
    spread: u32,
    seed: u64,
}

impl SharingCosts {
    /// Describes a simulated machine on which a cache line that another core has modified arrives `transfer` cycles
    /// after a core asks for it, if no third one wants it. The other costs are those of Zen 3 and 4.
    pub fn new(transfer: u32) -> Self {
        let part = |percent: u32| (u64::from(transfer) * u64::from(percent) / 100) as u32;
        let (way, hold) = (part(WAY), part(HOLD));
        Self { transfer, way, hold, restart: RESTART, spread: 25, seed: 1 }
    }

    /// Sets the cycles of a cache line that two cores want all the time: it passes from one to the other every
    /// `interval` cycles, of which a core has it for `hold`.
    pub fn with_contention(self, interval: u32, hold: u32) -> Self {
        let way = interval.saturating_sub(hold).clamp(1, self.transfer.max(1));
        Self { way, hold, ..self }
    }

    /// Sets the cycles that a simulated core loses when another core takes a line between a load from it and the
    /// load's retirement, so that the load and what follows are executed again.
    pub fn with_restart(self, restart: u32) -> Self {
        Self { restart, ..self }
    }

    /// Sets the seed of the pseudo-random variation of the simulated times of cache-line transfers between cores; equal
    /// seeds give equal runs.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Returns the cycles from a simulated core's request for a cache line that another core has modified to its arrival.
    pub fn transfer(&self) -> u32 {
        self.transfer
    }

    /// Returns the cycles for which a simulated core keeps a cache line before it gives it up to another core.
    pub fn hold(&self) -> u32 {
        self.hold
    }

    /// Returns the extra cycles of a load whose cache line another core takes before the load retires.
    pub fn restart(&self) -> u32 {
        self.restart
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
    // by core: when a store of another one took the line from it last
    lost: Vec<(u16, Time)>,
}

impl Default for LineOwner {
    fn default() -> Self {
        Self { owner: NONE, from: 0, readers: Vec::new(), former: [(NONE, 0, 0); FORMER], lost: Vec::new() }
    }
}

impl LineOwner {
    fn lose(&mut self, core: u16, time: Time) {
        match self.lost.iter_mut().find(|(loser, _)| *loser == core) {
            Some((_, last)) => *last = time,
            None => self.lost.push((core, time)),
        }
    }
}

/// Mixes the bits of a number.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
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
    // by core: transfers to it
    transfers: Vec<u64>,
}

impl Ownership {
    pub(super) fn new(costs: SharingCosts) -> Self {
        Self { costs, lines: FxHashMap::default(), transfers: Vec::new() }
    }

    pub(super) fn costs(&self) -> &SharingCosts {
        &self.costs
    }

    /// Returns the time for which the line of a core's next transfer is under way. It depends on the seed and on the
    /// number of the core's transfers before, and on nothing that other cores do, so that schedules of two builds
    /// stay comparable.
    fn way_time(&mut self, core: u16) -> Time {
        let index = usize::from(core);
        if self.transfers.len() <= index {
            self.transfers.resize(index + 1, 0);
        }
        self.transfers[index] += 1;
        let middle = u64::from(self.costs.way) * CYCLE;
        let spread = middle * u64::from(self.costs.spread) / 100;
        let key = (u64::from(core) << 48) ^ self.transfers[index];
        middle - spread + mix(self.costs.seed ^ mix(key)) % (2 * spread + 1)
    }

    /// Returns when a core lost a line to another one's store; 0 if it never did.
    pub(super) fn lost(&self, core: u16, line: u64) -> Time {
        let Some(state) = self.lines.get(&line) else { return 0 };
        state.lost.iter().find(|(loser, _)| *loser == core).map_or(0, |(_, time)| *time)
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
        if !store && state.lost.iter().any(|(loser, time)| *loser == core && *time > now) {
            // it is lost later than that
            return Grant { at: now, transferred: false };
        }
        let others = state.readers.iter().any(|(reader, _)| *reader != core);
        let hold = u64::from(self.costs.hold) * CYCLE;
        // when the request is there
        let asked = now.saturating_add(u64::from(self.costs.transfer - self.costs.way) * CYCLE);
        let (start, transferred) = match (state.owner, others) {
            (NONE, true) if store => (asked, true),
            (NONE, _) => (now, false),
            (_, _) => (asked.max(state.from.saturating_add(hold)), true),
        };
        let time = if transferred { self.way_time(core) } else { 0 };
        let at = start.saturating_add(time);
        let Some(state) = self.lines.get_mut(&line) else { return Grant { at, transferred } };
        if state.owner != NONE {
            state.former.rotate_right(1);
            state.former[0] = (state.owner, state.from, start);
        }
        if store {
            let readers = state.readers.iter().map(|(reader, _)| *reader);
            let losers: Vec<u16> =
                readers.chain([state.owner]).filter(|it| *it != core && *it != NONE).collect();
            losers.into_iter().for_each(|loser| state.lose(loser, start));
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
        Ownership::new(SharingCosts { spread: 0, ..SharingCosts::new(100).with_contention(70, 10) })
    }

    /// A transfer's latency, and the time for which its line is under way.
    const HUNDRED: Time = 100 * CYCLE;
    const WAY: Time = 60 * CYCLE;

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
        assert_eq!(second, Grant { at: CYCLE + HUNDRED, transferred: true });
        let third = lines.request(2, 7, false, 2 * CYCLE);
        assert_eq!(
            third.at,
            second.at + 10 * CYCLE + WAY,
            "one after the other: it waits where the line goes"
        );
    }

    #[test]
    fn a_former_owner_writes_until_the_line_leaves() {
        let mut lines = ownership();
        lines.request(0, 7, true, 0);
        lines.request(1, 7, true, CYCLE);
        assert!(!lines.request(0, 7, true, 39 * CYCLE).transferred, "the request is under way");
        assert!(lines.request(0, 7, true, 42 * CYCLE).transferred);
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
            let mut lines = Ownership::new(SharingCosts::new(100).with_contention(100, 0).with_seed(seed));
            (0..1000).map(|_| lines.way_time(1)).collect::<Vec<_>>()
        };
        assert_eq!(times(3), times(3));
        assert_ne!(times(3), times(4));
        let mean = times(5).iter().sum::<Time>() / 1000;
        assert!(mean.abs_diff(HUNDRED) < HUNDRED / 50, "{mean}");
    }
}
