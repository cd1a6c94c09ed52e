//! Whose access comes next.
//!
//! The order in which a trace was recorded is an accident of the recording: with few CPUs a thread
//! runs for milliseconds before the next. Here every core runs its threads by turns, a fixed number
//! of instructions each, the *quantum*. The recorded order holds only where a thread waited for others,
//! with the kernel's help: its first instruction comes after the calls that make threads and have lower
//! numbers, and what follows a futex call that waited comes after the calls that wake and the ends of
//! threads that have lower numbers. Where loops that wait are left out of the trace, what follows one comes
//! after these, too, and after the starts of other threads' loops: those threads had done what it waited for.
//! Threads that wake, make or end others wait for nobody. Atomic instructions are free unless the plan says
//! that their order holds too, which brings the accident back for threads that count with them.

mod by_time;
mod excerpt;

pub use by_time::{TimedModel, TimedOptions, replay_by_time};
pub use excerpt::Excerpt;

use super::{CoherenceSummary, Machine};
use crate::format::{Access, Event, SyncPoint};
use crate::{Error, Result};
use crate::{Events, Thread, Trace};
use std::collections::BTreeSet;

/// The most points of synchronisation whose order is held; 8 bytes of memory each.
const POINTS_LIMIT: u64 = 1 << 25;

/// The order in which a replay executes atomic instructions of different threads: as recorded, or as the threads'
/// turns bring them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOrder {
    /// In the order that the threads' turns bring.
    Free,
    /// In the recorded order.
    Recorded,
}

/// The parameters of a replay of a trace by turns ([`replay`]): the process whose threads are replayed, the number of
/// instructions in a thread's turn, and the order of atomic instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Instructions that a thread runs before the next thread's turn.
    pub quantum: u64,
    /// The order in which atomic instructions of different threads are replayed.
    pub atomics: AtomicOrder,
    /// The process whose threads run: processes do not share addresses.
    pub process: u32,
}

/// Totals of a trace's finished replay: the simulated core of each thread, and the numbers of memory accesses, atomic
/// instructions and synchronisations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayStats {
    /// The id and the core of each thread, in the order of the ids.
    pub(crate) threads: Vec<(u32, u16)>,
    /// The number of synchronisations that were replayed in their recorded order, atomics included if theirs is kept.
    pub(crate) ordered: u64,
    /// The number of atomic instructions.
    pub(crate) atomics: u64,
    /// The number of accesses, before those that cross lines are split.
    pub(crate) accesses: u64,
}

impl ReplayStats {
    /// Returns pairs of each replayed thread's id and its simulated core, in the order of the threads' ids.
    #[inline]
    pub fn threads(&self) -> &[(u32, u16)] {
        &self.threads
    }

    /// Returns the number of synchronisations that were replayed in their recorded order: futex waits and wake-ups,
    /// starts and ends of threads and of left-out spin loops, and with [`AtomicOrder::Recorded`] also atomic
    /// instructions.
    #[inline]
    pub fn ordered(&self) -> u64 {
        self.ordered
    }

    /// Returns the number of replayed atomic instructions.
    #[inline]
    pub fn atomics(&self) -> u64 {
        self.atomics
    }

    /// Returns the number of replayed memory accesses; one that crosses a cache line's end counts once.
    #[inline]
    pub fn accesses(&self) -> u64 {
        self.accesses
    }
}

/// A simulation of cores, such as [`Machine`] with its caches, that a replay feeds with a trace's memory accesses.
pub trait CoreModel {
    /// Returns how many cores there are.
    fn cores(&self) -> u16;

    /// Does an access of a thread, of which `place` is the number in the order of the threads' ids.
    ///
    /// # Errors
    /// [`Error::Limit`] where the model holds no more.
    fn access(&mut self, core: u16, place: usize, access: &Access) -> Result<()>;
}

impl CoreModel for Machine {
    fn cores(&self) -> u16 {
        self.geometry().cores()
    }

    #[inline]
    fn access(&mut self, core: u16, _place: usize, access: &Access) -> Result<()> {
        Machine::access(self, core, access.address, access.size, access.store, access.instruction)
    }
}

/// Replays the memory accesses of a traced process on a simulated machine with coherent caches. Threads take turns
/// of a fixed number of instructions, within the recorded order of waits and wake-ups.
///
/// # Errors
/// [`Error::Sampled`] if only a sample of the accesses was recorded; damage of the trace; limits.
pub fn replay(
    trace: &Trace<'_>,
    mut machine: Machine,
    plan: ReplayOptions,
) -> Result<(ReplayStats, CoherenceSummary)> {
    let course = replay_on(trace, &mut machine, plan)?;
    Ok((course, machine.finish()))
}

/// Replays the memory accesses of a traced process on any simulation of cores ([`CoreModel`]); threads take turns of a
/// fixed number of instructions, as in [`replay`].
///
/// # Errors
/// [`Error::Sampled`] if only a sample of the accesses was recorded; damage of the trace; limits.
pub fn replay_on<M: CoreModel>(
    trace: &Trace<'_>,
    machine: &mut M,
    plan: ReplayOptions,
) -> Result<ReplayStats> {
    let mut streams = open_streams(trace, plan.process, plan.atomics)?;
    let cores = machine.cores();
    let core_of = |place: usize| (place % usize::from(cores)) as u16;
    let mut course = ReplayStats {
        threads: streams.iter().enumerate().map(|(place, stream)| (stream.thread, core_of(place))).collect(),
        ..ReplayStats::default()
    };
    let mut turns: Vec<CoreSchedule> = (0..streams.len().min(usize::from(cores)))
        .map(|core| CoreSchedule {
            threads: (core..streams.len()).step_by(usize::from(cores)).collect(),
            next: 0,
        })
        .collect();
    let mut order = SyncOrder::new(streams.iter().map(|stream| &stream.points));
    while turns.iter().any(|turn| !turn.threads.is_empty()) {
        let mut any = false;
        for (core, turn) in turns.iter_mut().enumerate() {
            any |= turn.run(core as u16, &mut streams, &mut order, machine, plan.quantum, &mut course)?;
        }
        if !any && !skip_to_next_event(&mut streams, plan.quantum) {
            // all wait for each other: the numbers of a damaged file
            order.force();
        }
    }
    Ok(course)
}

/// Opens the threads of a process in the order of their ids, which the kernel gives as they are created. Which of them
/// begins first is an accident of the recording, by which schedules of one program would differ.
fn open_streams<'t>(
    trace: &'t Trace<'_>,
    process: u32,
    atomics: AtomicOrder,
) -> Result<Vec<EventStream<'t>>> {
    let every = trace.header().every;
    if every != 1 {
        return Err(Error::Sampled(every));
    }
    let of_process = trace.threads().iter().filter(|thread| thread.process == process);
    let mut streams =
        of_process.map(|thread| EventStream::new(trace, thread, atomics)).collect::<Result<Vec<_>>>()?;
    streams.sort_by_key(|stream| stream.thread);
    pair_starts(&mut streams);
    if streams.iter().flat_map(|stream| &stream.points).map(|class| class.len() as u64).sum::<u64>()
        > POINTS_LIMIT
    {
        return Err(Error::Limit { what: "ordered points of synchronisation", limit: POINTS_LIMIT });
    }
    Ok(streams)
}

/// Instructions between two calls of one thread that create a thread, of which the first failed: glibc calls `clone`
/// where `clone3` does, as under QEMU, 38 instructions later. From one `pthread_create` to the next there are a thousand.
const CALL_AGAIN: u64 = 64;

/// Lets threads begin once the call that created them was passed, where one thread created all others. The number of a
/// start says when the thread began in the recording, and by it a thread would wait for all calls until then, however
/// many its creator happened to have made.
///
/// Threads are created in the order of their ids. So each was created by the last call before its start and before the
/// call that created the next one, or by an earlier one: none begins before its own.
fn pair_starts(streams: &mut [EventStream<'_>]) {
    let mut creators = streams.iter_mut().filter(|stream| !stream.calls.is_empty());
    let (Some(creator), None) = (creators.next(), creators.next()) else { return };
    let (creator, mut calls) = (creator.thread, std::mem::take(&mut creator.calls));
    for stream in streams.iter_mut().rev().filter(|stream| stream.thread != creator) {
        let Some(Event::Sync { kind: SyncPoint::Start, number, .. }) = &mut stream.next else { continue };
        calls.truncate(calls.partition_point(|(call, _)| call < number));
        let Some((call, _)) = calls.pop() else { return };
        *number = call + 1;
    }
}

/// Advances all streams to the earliest next event after a round without one; returns false if there is none.
fn skip_to_next_event(streams: &mut [EventStream<'_>], quantum: u64) -> bool {
    let idle = |stream: &EventStream<'_>| match stream.next {
        Some(Event::Access(access)) => Some(access.now.saturating_sub(stream.position) / quantum),
        _ => None,
    };
    let Some(rounds) = streams.iter().filter_map(idle).min() else { return false };
    for stream in streams.iter_mut().filter(|stream| matches!(stream.next, Some(Event::Access(_)))) {
        stream.position = stream.position.saturating_add(rounds.saturating_mul(quantum));
    }
    true
}

/// A core's threads, by turns.
struct CoreSchedule {
    threads: Vec<usize>,
    next: usize,
}

impl CoreSchedule {
    /// Runs the next thread that can, for a quantum; whether one did anything.
    fn run<M: CoreModel>(
        &mut self,
        core: u16,
        streams: &mut [EventStream<'_>],
        order: &mut SyncOrder,
        machine: &mut M,
        quantum: u64,
        course: &mut ReplayStats,
    ) -> Result<bool> {
        for _ in 0..self.threads.len() {
            self.next %= self.threads.len();
            let place = self.threads[self.next];
            let stream = &mut streams[place];
            let mut run = ReplayStep { place, core, order, machine, course };
            let ran = stream.run(&mut run, quantum)?;
            if stream.next.is_none() {
                self.threads.remove(self.next);
            } else {
                self.next += 1;
            }
            if ran {
                return Ok(true);
            }
            if self.threads.is_empty() {
                break;
            }
        }
        Ok(false)
    }
}

/// The numbers of a thread's points that others wait for, by class.
type PointNumbers = [Vec<u64>; 3];

/// Points that others wait for, by what they wait as.
#[derive(Clone, Copy, Debug)]
enum SyncClass {
    /// A thread is made: those that begin wait for it.
    Made,
    /// Somebody is woken, a thread ends or begins to spin: those that waited wait for it.
    Woken,
    /// An atomic instruction: others wait for it if their order is kept.
    Atomic,
}

impl SyncClass {
    /// Returns the effect of a point on other threads.
    fn of(kind: SyncPoint) -> Option<Self> {
        match kind {
            SyncPoint::Clone => Some(Self::Made),
            SyncPoint::Wake | SyncPoint::Exit | SyncPoint::Spins => Some(Self::Woken),
            SyncPoint::Atomic => Some(Self::Atomic),
            SyncPoint::Start | SyncPoint::Waited | SyncPoint::Spun => None,
        }
    }

    /// Returns the point that a point waits for.
    fn awaited(kind: SyncPoint) -> Option<Self> {
        match kind {
            SyncPoint::Start => Some(Self::Made),
            SyncPoint::Waited | SyncPoint::Spun => Some(Self::Woken),
            SyncPoint::Atomic => Some(Self::Atomic),
            SyncPoint::Clone | SyncPoint::Wake | SyncPoint::Exit | SyncPoint::Spins => None,
        }
    }
}

/// The points that were not passed yet.
struct SyncOrder {
    /// Of each class the next one of each thread.
    next: [BTreeSet<(u64, usize)>; 3],
    /// The next point that asks may pass.
    forced: bool,
}

impl SyncOrder {
    /// Starts before the first point of each thread, by place.
    fn new<'p>(points: impl Iterator<Item = &'p PointNumbers> + Clone) -> Self {
        let next = [SyncClass::Made, SyncClass::Woken, SyncClass::Atomic].map(|class| {
            let first =
                |(place, points): (usize, &PointNumbers)| Some((*points[class as usize].first()?, place));
            points.clone().enumerate().filter_map(first).collect()
        });
        Self { next, forced: false }
    }

    /// Returns `true` if the point that a point waits for was passed, or once after a call of `force`.
    fn admits(&mut self, kind: SyncPoint, number: u64) -> bool {
        let Some(class) = SyncClass::awaited(kind) else { return true };
        let first = self.next[class as usize].first();
        first.is_none_or(|(first, _)| *first >= number) || std::mem::take(&mut self.forced)
    }

    /// Lets the thread at a place pass a point, for which others may wait: the next of `points`, of which it `passed`
    /// some.
    fn pass(&mut self, kind: SyncPoint, place: usize, points: &PointNumbers, passed: &mut [usize; 3]) {
        let Some(class) = SyncClass::of(kind) else { return };
        let (points, passed) = (&points[class as usize], &mut passed[class as usize]);
        let next = &mut self.next[class as usize];
        if let Some(point) = points.get(*passed) {
            next.remove(&(*point, place));
        }
        *passed += 1;
        next.extend(points.get(*passed).map(|number| (*number, place)));
    }

    fn force(&mut self) {
        self.forced = true;
    }
}

/// The state that a thread's turn works on.
struct ReplayStep<'a, M> {
    place: usize,
    core: u16,
    order: &'a mut SyncOrder,
    machine: &'a mut M,
    course: &'a mut ReplayStats,
}

/// The events of a thread, read from the trace block by block.
struct EventStream<'t> {
    trace: &'t Trace<'t>,
    blocks: std::slice::Iter<'t, crate::EventBlock>,
    events: Option<Events<'t>>,
    next: Option<Event>,
    thread: u32,
    /// The number of instructions that the thread may have run.
    position: u64,
    /// Calls that create threads: number and instructions that the thread had run.
    calls: Vec<(u64, u64)>,
    /// By class the numbers of its points that others wait for, and how many it passed.
    points: PointNumbers,
    passed: [usize; 3],
    atomics: AtomicOrder,
}

impl<'t> EventStream<'t> {
    fn new(trace: &'t Trace<'_>, thread: &'t Thread, atomics: AtomicOrder) -> Result<Self> {
        let mut stream = Self {
            trace,
            blocks: thread.blocks.iter(),
            events: None,
            next: None,
            thread: thread.thread,
            position: 0,
            calls: Vec::new(),
            points: Default::default(),
            passed: [0; 3],
            atomics,
        };
        let mut buffer = Vec::new();
        for block in thread.blocks.iter().filter(|block| block.points > 0) {
            let mut events = trace.events(block, buffer)?;
            for event in events.by_ref() {
                let Event::Sync { kind, number, now } = event? else { continue };
                if kind == SyncPoint::Clone {
                    stream.calls.pop_if(|(_, before)| now.saturating_sub(*before) <= CALL_AGAIN);
                    stream.calls.push((number, now));
                }
                if let Some(class) = SyncClass::of(kind).filter(|_| stream.keeps(kind)) {
                    stream.points[class as usize].push(number);
                }
            }
            buffer = events.into_buffer();
        }
        stream.advance()?;
        Ok(stream)
    }

    fn keeps(&self, kind: SyncPoint) -> bool {
        kind.is_awaited() || self.atomics == AtomicOrder::Recorded
    }

    /// Fetches the next event.
    #[inline]
    fn advance(&mut self) -> Result<()> {
        loop {
            if let Some(event) = self.events.as_mut().and_then(Iterator::next) {
                self.next = Some(event?);
                return Ok(());
            }
            let buffer = self.events.take().map(Events::into_buffer).unwrap_or_default();
            let Some(block) = self.blocks.next() else {
                self.next = None;
                return Ok(());
            };
            self.events = Some(self.trace.events(block, buffer)?);
        }
    }

    /// Passes a point, for which others may wait.
    fn pass<M>(&mut self, kind: SyncPoint, run: &mut ReplayStep<'_, M>) {
        run.order.pass(kind, run.place, &self.points, &mut self.passed);
    }

    /// Runs a quantum, up to a point that must wait; whether anything was done.
    fn run<M: CoreModel>(&mut self, run: &mut ReplayStep<'_, M>, quantum: u64) -> Result<bool> {
        let end = self.position.saturating_add(quantum);
        let mut any = false;
        while let Some(event) = self.next {
            match event {
                Event::Access(Access { now, .. }) if now >= end && end != u64::MAX => {
                    self.position = end;
                    return Ok(any);
                }
                Event::Access(access) => {
                    run.machine.access(run.core, run.place, &access)?;
                    run.course.accesses += 1;
                    // of chosen functions they have no points
                    if self.trace.header().windowed {
                        let instruction = self.trace.instructions().get(access.instruction);
                        run.course.atomics += u64::from(instruction.is_some_and(|known| known.atomic()));
                    }
                }
                Event::Sync { kind, number, now } => {
                    if self.keeps(kind) {
                        if !run.order.admits(kind, number) {
                            self.position = now.max(self.position);
                            return Ok(any);
                        }
                        self.pass(kind, run);
                        run.course.ordered += 1;
                    }
                    run.course.atomics += u64::from(kind == SyncPoint::Atomic);
                }
            }
            any = true;
            self.advance()?;
        }
        Ok(any)
    }
}

#[cfg(test)]
mod tests;
