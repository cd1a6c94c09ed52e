//! A replay by modelled time: the core whose time is the earliest comes next.
//!
//! There is no quantum: how often threads meet follows from what their instructions and misses take. The recorded
//! order holds where the kernel took part or a thread spun, as in a replay by turns; a thread that waited goes on when
//! the one that it waited for has come so far. Threads beyond the number of cores take turns of a time slice.

use super::super::CoreModel;
use super::{AtomicOrder, EventStream, ReplayStats, ReplayStep, SyncClass, SyncOrder, open_streams};
use crate::format::{Event, SyncPoint};
use crate::{Result, Trace};

/// A simulation of cores that tracks each thread's time; [`replay_by_time`] replays next the access of the thread
/// whose time is the earliest.
pub trait TimedModel: CoreModel {
    /// Returns the time of a thread, of which `place` is the number in the order in which threads began.
    fn time(&self, place: usize) -> u64;

    /// Lets a thread do nothing before a time.
    fn wait_until(&mut self, place: usize, time: u64);

    /// Notes that accesses of a thread are left out in front of its next one, and what lies between them takes no time.
    fn leave_out(&mut self, place: usize);
}

/// The parameters of [`replay_by_time`]: the process, time slices, wake-up latency, start skew, and a limit. Times
/// are in the unit of the [`TimedModel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOptions {
    process: u32,
    slice: u64,
    wake: u64,
    skew: u64,
    limit: u64,
    seed: u64,
}

impl TimedOptions {
    /// Creates the parameters to replay the threads of the process with this id. Threads that share a core
    /// alternate in time slices of `slice`; a woken thread runs again `wake` later.
    pub fn new(process: u32, slice: u64, wake: u64) -> Self {
        Self { process, slice: slice.max(1), wake, skew: 0, limit: u64::MAX, seed: 0 }
    }

    /// Delays the start of each thread by a pseudo-random time below `skew`, drawn with `seed`.
    pub fn with_skew(self, skew: u64, seed: u64) -> Self {
        Self { skew, seed, ..self }
    }

    /// Replays at most so many accesses of each thread. Of a thread that has more they are in a few pieces, each from the
    /// middle of its part of the thread's accesses: a program begins with filling tables and ends with freeing them, and
    /// neither says much about what comes between.
    pub fn with_limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }
}

/// The pieces of a thread that has more accesses than are replayed: a phase of a tenth of them has a piece at least.
const PIECES: u64 = 16;

/// The accesses of a thread that are replayed: pieces at the same distance.
#[derive(Clone, Copy, Debug)]
struct Pieces {
    // accesses that came
    seen: u64,
    // those of the thread, and those that are replayed at most
    all: u64,
    limit: u64,
    // the last one was left out
    leaves_out: bool,
}

impl Pieces {
    fn new(all: u64, limit: u64) -> Self {
        Self { seen: 0, all, limit, leaves_out: false }
    }

    /// Returns whether the next access is replayed.
    fn next(&mut self) -> bool {
        let at = self.seen;
        self.seen += 1;
        let (part, piece) = (self.all / PIECES, self.limit / PIECES);
        if self.all <= self.limit || piece == 0 || part <= piece {
            // what is too little for pieces comes from the end
            return self.all <= self.limit || at >= self.all - self.limit;
        }
        let start = (part - piece) / 2;
        // what does not divide is in the last part
        let in_part = at - (at / part).min(PIECES - 1) * part;
        (start..start + piece).contains(&in_part)
    }
}

/// The state of a core.
struct Core {
    threads: Vec<usize>,
    current: usize,
    // when the current thread's slice ends
    slice_end: u64,
    // all of its threads wait
    idle: bool,
    time: u64,
}

/// The result of one step of a thread.
enum Step {
    Ran,
    Waits,
    Ended,
}

/// Replays the memory accesses of a traced process on a simulation of cores: the access of the core with the
/// earliest simulated time comes next, within the recorded order of waits and wake-ups.
///
/// # Errors
/// [`Error::Sampled`](crate::Error::Sampled) if only a sample of the accesses was recorded; damage of the trace;
/// limits.
pub fn replay_by_time<M: TimedModel>(
    trace: &Trace<'_>,
    machine: &mut M,
    options: TimedOptions,
) -> Result<ReplayStats> {
    let mut streams = open_streams(trace, options.process, AtomicOrder::Free)?;
    let cores = usize::from(machine.cores());
    let core_of = |place: usize| (place % cores) as u16;
    let mut course = ReplayStats {
        threads: streams.iter().enumerate().map(|(place, stream)| (stream.thread, core_of(place))).collect(),
        ..ReplayStats::default()
    };
    let accesses = |number: u32| {
        let of_process = trace.threads().iter().filter(|thread| thread.process() == options.process);
        of_process.filter(|thread| thread.thread() == number).map(|thread| thread.accesses()).sum::<u64>()
    };
    let mut seed = options.seed;
    for place in 0..streams.len() {
        machine.wait_until(place, splitmix(&mut seed) % options.skew.max(1));
    }
    let mut run = Schedule {
        cores: (0..streams.len().min(cores))
            .map(|core| Core {
                threads: (core..streams.len()).step_by(cores).collect(),
                current: 0,
                slice_end: options.slice,
                idle: false,
                time: 0,
            })
            .collect(),
        order: SyncOrder::new(&streams),
        pieces: streams.iter().map(|stream| Pieces::new(accesses(stream.thread), options.limit)).collect(),
        options,
        passed_at: 0,
        has_woken: false,
    };
    loop {
        let ready = |(_, core): &(usize, &Core)| !core.idle && !core.threads.is_empty();
        let next = run.cores.iter().enumerate().filter(ready).min_by_key(|(_, core)| core.time);
        if let Some((core, _)) = next {
            run.run(core, &mut streams, machine, &mut course)?;
        } else if run.cores.iter().all(|core| core.threads.is_empty()) {
            return Ok(course);
        } else {
            // all wait for each other: the numbers of a damaged file
            run.order.force();
            run.cores.iter_mut().for_each(|core| core.idle = false);
        }
    }
}

/// The cores, and what threads wait for.
struct Schedule {
    cores: Vec<Core>,
    order: SyncOrder,
    // of each thread
    pieces: Vec<Pieces>,
    options: TimedOptions,
    // the time at which a point was passed last
    passed_at: u64,
    // others may go on: the earliest of them may be earlier than before
    has_woken: bool,
}

impl Schedule {
    /// Runs a core until another one's time is earlier.
    fn run<M: TimedModel>(
        &mut self,
        core: usize,
        streams: &mut [EventStream<'_>],
        machine: &mut M,
        course: &mut ReplayStats,
    ) -> Result<()> {
        let others = self
            .cores
            .iter()
            .enumerate()
            .filter(|(other, state)| *other != core && !state.idle && !state.threads.is_empty());
        let until = others.map(|(_, state)| state.time).min().unwrap_or(u64::MAX);
        let mut waiting = 0;
        while self.cores[core].time <= until {
            let state = &mut self.cores[core];
            state.current %= state.threads.len().max(1);
            let Some(place) = state.threads.get(state.current).copied() else { break };
            let before = state.time;
            if waiting > 0 || machine.time(place) < before {
                machine.wait_until(place, before);
            }
            match self.step(core, place, &mut streams[place], machine, course)? {
                Step::Ran => {
                    waiting = 0;
                    let has_woken = std::mem::take(&mut self.has_woken);
                    let state = &mut self.cores[core];
                    state.time = machine.time(place).max(before);
                    if has_woken {
                        break;
                    }
                    if state.threads.len() > 1 && state.time >= state.slice_end {
                        state.current += 1;
                        state.slice_end = state.time.saturating_add(self.options.slice);
                    }
                }
                Step::Waits => {
                    waiting += 1;
                    let state = &mut self.cores[core];
                    state.current += 1;
                    if waiting >= state.threads.len() {
                        state.idle = true;
                        break;
                    }
                }
                Step::Ended => {
                    let state = &mut self.cores[core];
                    state.threads.remove(state.current);
                }
            }
        }
        Ok(())
    }

    fn step<M: TimedModel>(
        &mut self,
        core: usize,
        place: usize,
        stream: &mut EventStream<'_>,
        machine: &mut M,
        course: &mut ReplayStats,
    ) -> Result<Step> {
        match stream.next {
            None => return Ok(Step::Ended),
            Some(Event::Access(access)) => {
                // what is left out still passes its points
                let pieces = &mut self.pieces[place];
                if pieces.next() {
                    if std::mem::take(&mut pieces.leaves_out) {
                        machine.leave_out(place);
                    }
                    machine.access(core as u16, place, &access)?;
                    course.accesses += 1;
                } else {
                    pieces.leaves_out = true;
                }
            }
            Some(Event::Sync { kind, number, .. }) => {
                let time = machine.time(place);
                if stream.keeps(kind) {
                    if !self.order.admits(kind, number) {
                        stream.waits = true;
                        return Ok(Step::Waits);
                    }
                    if std::mem::take(&mut stream.waits) {
                        // who spins sees the write at once
                        let wake = if kind == SyncPoint::Spun { 0 } else { self.options.wake };
                        let woken = self.passed_at.saturating_add(wake);
                        machine.wait_until(place, time.max(woken));
                    }
                    let mut run =
                        ReplayStep { place, core: core as u16, order: &mut self.order, machine, course };
                    stream.pass(kind, &mut run);
                    course.ordered += 1;
                    if SyncClass::of(kind).is_some() {
                        self.passed_at = time;
                        self.has_woken = true;
                        self.cores.iter_mut().for_each(|core| core.idle = false);
                    }
                }
                course.atomics += u64::from(!kind.is_awaited());
            }
        }
        stream.advance()?;
        Ok(Step::Ran)
    }
}

/// A generator of numbers of which any seed is good.
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;
