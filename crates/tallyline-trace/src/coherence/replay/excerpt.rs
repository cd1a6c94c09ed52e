//! The part of a process's events that replays by time go through.

use super::{AtomicOrder, EventStream, PointNumbers, open_streams};
use crate::format::{Access, Event, SyncPoint};
use crate::instructions::Instructions;
use crate::{Error, Result, Trace};

/// The most events of an excerpt: 2 GiB of them.
const EVENTS_LIMIT: u64 = 1 << 26;

/// The events (memory accesses, synchronisations) of a traced process for replays in the order of simulated time,
/// decoded once for all of them.
///
/// Of a thread with more accesses than the limit they are in a few pieces, each from the middle of its part of the
/// thread's accesses: a program begins with filling tables and ends with freeing them, and neither says much about
/// what comes between. Of the points of synchronisation all are there that are replayed. An event takes 32 bytes.
#[derive(Debug)]
pub struct Excerpt<'t> {
    instructions: &'t Instructions,
    threads: Vec<ThreadExcerpt>,
}

/// The events of one thread.
#[derive(Debug)]
pub(super) struct ThreadExcerpt {
    /// The id of the thread.
    pub(super) thread: u32,
    pub(super) events: Vec<ExcerptEvent>,
    pub(super) points: PointNumbers,
    /// Points of atomic instructions, whose order is not replayed.
    pub(super) atomics: u64,
}

/// An event of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum ExcerptEvent {
    Access {
        access: Access,
        /// `true` if accesses in front of this one are left out.
        follows_gap: bool,
    },
    Sync {
        kind: SyncPoint,
        /// The position of the point in the order of all threads' points.
        number: u64,
    },
}

/// The bytes that the documentation and the limit state.
const _: () = assert!(size_of::<ExcerptEvent>() == 32);

impl<'t> Excerpt<'t> {
    /// Reads the events (memory accesses, synchronisations) of a process from a trace, with at most `limit` accesses of
    /// each thread.
    ///
    /// # Errors
    /// [`Error::Sampled`] if only a sample of the accesses was recorded; damage of the trace; limits.
    pub fn read(trace: &'t Trace<'_>, process: u32, limit: u64) -> Result<Self> {
        let mut room = EVENTS_LIMIT;
        let accesses = |number: u32| {
            let of_process = trace.threads().iter().filter(|thread| thread.process() == process);
            of_process.filter(|thread| thread.thread() == number).map(|thread| thread.accesses()).sum::<u64>()
        };
        let threads = open_streams(trace, process, AtomicOrder::Free)?
            .into_iter()
            .map(|stream| {
                let pieces = Pieces::new(accesses(stream.thread), limit);
                ThreadExcerpt::read(stream, pieces, &mut room)
            })
            .collect::<Result<_>>()?;
        Ok(Self { instructions: trace.instructions(), threads })
    }

    /// Returns the trace's table of instructions, of which each memory access of the excerpt holds an index.
    pub fn instructions(&self) -> &'t Instructions {
        self.instructions
    }

    /// Returns the threads, in the order of their ids.
    pub(super) fn threads(&self) -> &[ThreadExcerpt] {
        &self.threads
    }
}

impl ThreadExcerpt {
    fn read(mut stream: EventStream<'_>, mut pieces: Pieces, room: &mut u64) -> Result<Self> {
        let (mut events, mut atomics, mut gap) = (Vec::new(), 0, false);
        while let Some(event) = stream.next {
            let kept = match event {
                // what is left out still passes its points
                Event::Access(_) if !pieces.next() => {
                    gap = true;
                    None
                }
                Event::Access(access) => {
                    Some(ExcerptEvent::Access { access, follows_gap: std::mem::take(&mut gap) })
                }
                Event::Sync { kind, number, .. } => {
                    atomics += u64::from(!kind.is_awaited());
                    stream.keeps(kind).then_some(ExcerptEvent::Sync { kind, number })
                }
            };
            if let Some(kept) = kept {
                let limit = Error::Limit { what: "events of a replay", limit: EVENTS_LIMIT };
                *room = room.checked_sub(1).ok_or(limit)?;
                events.push(kept);
            }
            stream.advance()?;
        }
        Ok(Self { thread: stream.thread, events, points: stream.points, atomics })
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
}

impl Pieces {
    fn new(all: u64, limit: u64) -> Self {
        Self { seen: 0, all, limit }
    }

    /// Advances to the thread's next access, and returns `true` if it is replayed.
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
