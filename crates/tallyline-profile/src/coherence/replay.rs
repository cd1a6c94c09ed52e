//! Whose access comes next.
//!
//! The order in which a trace was recorded is an accident of the recording: with few CPUs a thread
//! runs for milliseconds before the next. Here every core runs its threads by turns, a fixed number
//! of instructions each, the *quantum*. Only at points of synchronisation that the kernel took part in
//! (threads begin and end, futexes wait and wake) the recorded order holds: a thread goes on when all
//! such points with lower numbers were passed. Atomic instructions are free unless the plan says that
//! their order holds too, which brings the accident back for threads that count with them.

use super::{Machine, Summary};
use crate::trace::format::{Access, Event, Point};
use crate::trace::{Events, Source, Thread, Trace};
use crate::{Error, Result};
use std::collections::BTreeSet;

/// The most points of synchronisation whose order is held; 8 bytes of memory each.
const POINTS_LIMIT: u64 = 1 << 25;

/// The order of atomic instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomics {
    /// As the quantum has it.
    Free,
    /// As it was recorded.
    Recorded,
}

/// How to replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Instructions that a thread runs before the next thread's turn.
    pub quantum: u64,
    /// The order of atomic instructions.
    pub atomics: Atomics,
    /// The process whose threads run: processes do not share addresses.
    pub process: u32,
}

/// Threads and the cores that they ran on, and how often their order was held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// Thread and core, in the order in which the threads began.
    pub threads: Vec<(u32, u16)>,
    /// Points of synchronisation whose order was kept.
    pub ordered: u64,
    /// Atomic instructions.
    pub atomics: u64,
    /// Accesses, before those that cross lines are split.
    pub accesses: u64,
}

/// What comes of a replay.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// How it went.
    pub course: Course,
    /// What the model counted.
    pub summary: Summary,
}

/// Replays a process of a trace on a machine.
///
/// # Errors
/// [`Error::Sampled`] where accesses are missing on purpose; damage; limits.
pub fn replay<S: Source + ?Sized>(
    trace: &Trace<'_, S>,
    mut machine: Machine,
    plan: Plan,
) -> Result<Replayed> {
    let every = trace.header().every;
    if every != 1 {
        return Err(Error::Sampled(every));
    }
    let of_process = trace.threads().iter().filter(|thread| thread.process == plan.process);
    let mut streams =
        of_process.map(|thread| Stream::new(trace, thread, plan.atomics)).collect::<Result<Vec<_>>>()?;
    streams.sort_by_key(|stream| stream.points.first().copied());
    if streams.iter().map(|stream| stream.points.len() as u64).sum::<u64>() > POINTS_LIMIT {
        return Err(Error::Limit { what: "ordered points of synchronisation", limit: POINTS_LIMIT });
    }
    let cores = machine.geometry().cores();
    let core_of = |place: usize| (place % usize::from(cores)) as u16;
    let mut course = Course {
        threads: streams.iter().enumerate().map(|(place, stream)| (stream.thread, core_of(place))).collect(),
        ..Course::default()
    };
    let mut turns: Vec<Turn> = (0..streams.len().min(usize::from(cores)))
        .map(|core| Turn { threads: (core..streams.len()).step_by(usize::from(cores)).collect(), next: 0 })
        .collect();
    let mut order = Order::new(&streams);
    while turns.iter().any(|turn| !turn.threads.is_empty()) {
        let mut any = false;
        for (core, turn) in turns.iter_mut().enumerate() {
            any |=
                turn.run(core as u16, &mut streams, &mut order, &mut machine, plan.quantum, &mut course)?;
        }
        if !any {
            skip_to_next_event(&mut streams, plan.quantum);
        }
    }
    Ok(Replayed { course, summary: machine.finish() })
}

/// Nobody had anything to do: the next ones to do something do it in the next round.
fn skip_to_next_event<S: Source + ?Sized>(streams: &mut [Stream<'_, S>], quantum: u64) {
    let idle = |stream: &Stream<'_, S>| match stream.next {
        Some(Event::Access(access)) => Some(access.now.saturating_sub(stream.position) / quantum),
        _ => None,
    };
    let rounds = streams.iter().filter_map(idle).min().unwrap_or(0);
    for stream in streams.iter_mut().filter(|stream| matches!(stream.next, Some(Event::Access(_)))) {
        stream.position = stream.position.saturating_add(rounds.saturating_mul(quantum));
    }
}

/// A core's threads, by turns.
struct Turn {
    threads: Vec<usize>,
    next: usize,
}

impl Turn {
    /// Runs the next thread that can, for a quantum; whether one did anything.
    fn run<S: Source + ?Sized>(
        &mut self,
        core: u16,
        streams: &mut [Stream<'_, S>],
        order: &mut Order,
        machine: &mut Machine,
        quantum: u64,
        course: &mut Course,
    ) -> Result<bool> {
        for _ in 0..self.threads.len() {
            self.next %= self.threads.len();
            let place = self.threads[self.next];
            let stream = &mut streams[place];
            let mut run = Run { place, core, order, machine, course };
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

/// Whose point of synchronisation comes next.
struct Order {
    /// The next one of each thread.
    next: BTreeSet<(u64, usize)>,
}

impl Order {
    fn new<S: Source + ?Sized>(streams: &[Stream<'_, S>]) -> Self {
        let first = |(place, stream): (usize, &Stream<'_, S>)| Some((*stream.points.first()?, place));
        Self { next: streams.iter().enumerate().filter_map(first).collect() }
    }

    /// Whether a thread may pass its next point.
    fn admits(&self, place: usize) -> bool {
        self.next.first().is_some_and(|(_, first)| *first == place)
    }

    /// The thread that is admitted passes its point; this is the one after it.
    fn pass(&mut self, place: usize, after: Option<u64>) {
        self.next.pop_first();
        self.next.extend(after.map(|number| (number, place)));
    }
}

/// What a thread's turn works on.
struct Run<'a> {
    place: usize,
    core: u16,
    order: &'a mut Order,
    machine: &'a mut Machine,
    course: &'a mut Course,
}

/// A thread's events.
struct Stream<'t, S: Source + ?Sized> {
    trace: &'t Trace<'t, S>,
    blocks: std::slice::Iter<'t, crate::trace::Block>,
    events: Option<Events<'t>>,
    next: Option<Event>,
    thread: u32,
    /// Instructions that it may have run.
    position: u64,
    /// The numbers of its points whose order is kept, and how many it passed.
    points: Vec<u64>,
    passed: usize,
    atomics: Atomics,
}

impl<'t, S: Source + ?Sized> Stream<'t, S> {
    fn new(trace: &'t Trace<'_, S>, thread: &'t Thread, atomics: Atomics) -> Result<Self> {
        let mut stream = Self {
            trace,
            blocks: thread.blocks.iter(),
            events: None,
            next: None,
            thread: thread.thread,
            position: 0,
            points: Vec::new(),
            passed: 0,
            atomics,
        };
        let mut buffer = Vec::new();
        for block in thread.blocks.iter().filter(|block| block.points > 0) {
            let mut events = trace.events(block, buffer)?;
            for event in events.by_ref() {
                if let Event::Point { kind, number, .. } = event?
                    && stream.keeps(kind)
                {
                    stream.points.push(number);
                }
            }
            buffer = events.into_buffer();
        }
        stream.advance()?;
        Ok(stream)
    }

    fn keeps(&self, kind: Point) -> bool {
        kind.is_kernels() || self.atomics == Atomics::Recorded
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

    /// Runs a quantum, up to a point that must wait; whether anything was done.
    fn run(&mut self, run: &mut Run<'_>, quantum: u64) -> Result<bool> {
        let end = self.position.saturating_add(quantum);
        let mut any = false;
        while let Some(event) = self.next {
            match event {
                Event::Access(Access { now, .. }) if now >= end && end != u64::MAX => {
                    self.position = end;
                    return Ok(any);
                }
                Event::Access(access) => {
                    let Access { address, size, store, instruction, .. } = access;
                    run.machine.access(run.core, address, size, store, instruction)?;
                    run.course.accesses += 1;
                }
                Event::Point { kind, now, .. } => {
                    run.course.atomics += u64::from(kind == Point::Atomic);
                    if self.keeps(kind) {
                        if !run.order.admits(run.place) {
                            run.course.atomics -= u64::from(kind == Point::Atomic);
                            self.position = now.max(self.position);
                            return Ok(any);
                        }
                        self.passed += 1;
                        run.order.pass(run.place, self.points.get(self.passed).copied());
                        run.course.ordered += 1;
                    }
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
