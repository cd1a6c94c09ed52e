//! A replay by modelled time: the core whose time is the earliest comes next.
//!
//! There is no quantum, the number of instructions in a turn of the replay by turns (`replay.rs`): how often threads
//! meet follows from what their instructions and misses take. The recorded order of *points*, synchronisations with
//! other threads ([`SyncPoint`]), holds where the kernel took part or a thread spun, as in a replay by turns; a thread
//! that waited goes on when the one that it waited for has come so far. Threads beyond the number of cores take turns
//! of a time slice.

use super::super::CoreModel;
use super::excerpt::{Excerpt, ExcerptEvent, ThreadExcerpt};
use super::{ReplayStats, SyncClass, SyncOrder};
use crate::Result;
use crate::format::SyncPoint;

/// A simulation of cores that tracks each thread's time; [`replay_by_time`] replays next the access of the thread
/// whose time is the earliest.
pub trait TimedModel: CoreModel {
    /// Returns the time of a thread, of which `place` is the number in the order of the threads' ids.
    fn time(&self, place: usize) -> u64;

    /// Lets a thread do nothing before a time.
    fn wait_until(&mut self, place: usize, time: u64);

    /// Notes that accesses of a thread are left out in front of its next one, and what lies between them takes no time.
    fn leave_out(&mut self, place: usize);
}

/// The parameters of a replay of a trace in the order of simulated time ([`replay_by_time`]): time slices, wake-up
/// latency, and start skew. Times are in the unit of the [`TimedModel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOptions {
    slice: u64,
    wake: u64,
    skew: u64,
    seed: u64,
}

impl TimedOptions {
    /// Creates the parameters of a trace's replay in the order of simulated time. Threads that share a core alternate
    /// in time slices of `slice`; a woken thread runs again `wake` later.
    pub fn new(slice: u64, wake: u64) -> Self {
        Self { slice: slice.max(1), wake, skew: 0, seed: 0 }
    }

    /// Makes the replay delay the start of each thread, from its creation if that is in the trace, by a pseudo-random
    /// time below `skew`, drawn with `seed`.
    pub fn with_skew(self, skew: u64, seed: u64) -> Self {
        Self { skew, seed, ..self }
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

/// The state of a thread.
struct ThreadState<'e> {
    excerpt: &'e ThreadExcerpt,
    /// The index of the thread's next event.
    at: usize,
    /// The number of points that the thread passed, by class.
    passed: [usize; 3],
    /// `true` if the thread had to wait for its next point.
    waits: bool,
    /// The time from the call that created the thread to its first instruction, beyond what a wake-up takes.
    delay: u64,
}

/// Replays the memory accesses of a traced process on a simulation of cores: the access of the core with the
/// earliest simulated time comes next, within the recorded order of waits and wake-ups.
///
/// # Errors
/// Those of the model.
pub fn replay_by_time<M: TimedModel>(
    excerpt: &Excerpt<'_>,
    machine: &mut M,
    options: TimedOptions,
) -> Result<ReplayStats> {
    let threads = excerpt.threads();
    let mut seed = options.seed;
    let new = |excerpt| {
        let delay = splitmix(&mut seed) % options.skew.max(1);
        ThreadState { excerpt, at: 0, passed: [0; 3], waits: false, delay }
    };
    let mut states: Vec<ThreadState<'_>> = threads.iter().map(new).collect();
    let cores = usize::from(machine.cores());
    let core_of = |place: usize| (place % cores) as u16;
    let mut course = ReplayStats {
        threads: threads.iter().enumerate().map(|(place, known)| (known.thread, core_of(place))).collect(),
        atomics: threads.iter().map(|thread| thread.atomics).sum(),
        ..ReplayStats::default()
    };
    states.iter().enumerate().for_each(|(place, thread)| machine.wait_until(place, thread.delay));
    let mut run = Schedule {
        cores: (0..states.len().min(cores))
            .map(|core| Core {
                threads: (core..states.len()).step_by(cores).collect(),
                current: 0,
                slice_end: options.slice,
                idle: false,
                time: 0,
            })
            .collect(),
        order: SyncOrder::new(threads.iter().map(|thread| &thread.points)),
        options,
        passed_at: 0,
        has_woken: false,
    };
    loop {
        let ready = |(_, core): &(usize, &Core)| !core.idle && !core.threads.is_empty();
        let next = run.cores.iter().enumerate().filter(ready).min_by_key(|(_, core)| core.time);
        if let Some((core, _)) = next {
            run.run(core, &mut states, machine, &mut course)?;
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
        states: &mut [ThreadState<'_>],
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
            match self.step(core, place, &mut states[place], machine, course)? {
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
        thread: &mut ThreadState<'_>,
        machine: &mut M,
        course: &mut ReplayStats,
    ) -> Result<Step> {
        let Some(next) = thread.excerpt.events.get(thread.at) else { return Ok(Step::Ended) };
        match *next {
            ExcerptEvent::Access { access, follows_gap } => {
                if follows_gap {
                    machine.leave_out(place);
                }
                machine.access(core as u16, place, &access)?;
                course.accesses += 1;
            }
            ExcerptEvent::Sync { kind, number } => {
                let time = machine.time(place);
                if !self.order.admits(kind, number) {
                    thread.waits = true;
                    return Ok(Step::Waits);
                }
                if std::mem::take(&mut thread.waits) {
                    // who spins sees the write at once
                    let wake = match kind {
                        SyncPoint::Spun => 0,
                        SyncPoint::Start => self.options.wake.saturating_add(thread.delay),
                        _ => self.options.wake,
                    };
                    let woken = self.passed_at.saturating_add(wake);
                    machine.wait_until(place, time.max(woken));
                }
                self.order.pass(kind, place, &thread.excerpt.points, &mut thread.passed);
                course.ordered += 1;
                if SyncClass::of(kind).is_some() {
                    self.passed_at = time;
                    self.has_woken = true;
                    self.cores.iter_mut().for_each(|core| core.idle = false);
                }
            }
        }
        thread.at += 1;
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
