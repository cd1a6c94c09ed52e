//! Latched lines: two copies of each, for events that are wider than one vector store of the machine.
//!
//! ```text
//! per CPU:   copy 0 of L lines │ copy 1 of L lines │ a sequence number per line
//! ```
//! A commit writes the copy that the line's sequence number does not name, whole, and then counts
//! the sequence up: that store is the commit. A reader takes the copy that the number names and
//! is sure of what it took when the number is still the same afterwards. A writer that never
//! pauses could keep a reader from ever getting there; after [`OPTIMISTIC_ATTEMPTS`] tries the reader raises
//! the reservation's *hold*: every section that starts from then on leaves for the fallback cell,
//! at most one commit per CPU is still under way, and the reader ends.

use super::handle::Handle;
use super::layout::{CHUNK_BYTES, CHUNK_WORDS, LatchLayout};
use super::units::Walk;
use crate::rseq::{self, HandleTag, TAG_MASK};
use crate::sys::OnceBox;
use crate::sys::{Lock, Rank};
use std::sync::atomic::{Ordering, fence};

/// Number of optimistic reads before a reader holds writers off.
const OPTIMISTIC_ATTEMPTS: usize = 100;

/// Adds to one item.
#[cold]
pub(super) fn add(layout: LatchLayout, piece: Handle, index: usize, value: u64) {
    let sequence = layout.sequence(index / CHUNK_WORDS);
    let reservation = piece.reservation();
    // SAFETY: `index` and the sequence number lie in the piece (checked by its owner).
    let (word, sequence) = unsafe { (piece.word(index), piece.base.add(sequence)) };
    for _ in 0..rseq::TRIES {
        // SAFETY: the piece is made for this section.
        let done = unsafe {
            rseq::latch_add(
                word.base.as_ptr(),
                piece.table.as_ptr().map_addr(with_rseq_tag),
                layout.copies(),
                sequence.as_ptr(),
                value,
            )
        };
        if done {
            return;
        }
        if !reservation.announce_current() {
            break;
        }
    }
    word.add_to_fallback(value);
}

/// Adds to the eight items of a line, together.
#[cold]
pub(super) fn commit(layout: LatchLayout, piece: Handle, line: usize, deltas: &[u64; CHUNK_WORDS]) {
    let reservation = piece.reservation();
    // SAFETY: the line lies in the piece (checked by its owner).
    let first = unsafe { piece.word(line * CHUNK_WORDS) };
    let sequence = layout.sequence(line) - line * CHUNK_BYTES;
    for _ in 0..rseq::TRIES {
        // SAFETY: the piece is made for this section.
        let done = unsafe {
            rseq::latch_commit(
                first.base.as_ptr(),
                piece.table.as_ptr().map_addr(with_rseq_tag),
                layout.copies(),
                sequence,
                deltas,
            )
        };
        if done {
            return;
        }
        if !reservation.announce_current() || reservation.hold().load(Ordering::SeqCst) != 0 {
            break;
        }
    }
    for (index, &delta) in deltas.iter().enumerate().filter(|(_, delta)| **delta != 0) {
        // SAFETY: inside the line.
        unsafe { first.word(index) }.add_to_fallback(delta);
    }
}

/// Adds on a synthetic CPU, in the copy that readers look at: a slot's former
/// owner may have left any number in its sequence word. The arena's lock is held.
pub(super) fn add_on_synthetic_locked(
    layout: LatchLayout,
    piece: Handle,
    index: usize,
    cpu: usize,
    value: u64,
) -> bool {
    let Some(displacement) = piece.reservation().announce_to_readers(cpu) else { return false };
    let sequence = piece.at(layout.sequence(index / CHUNK_WORDS).wrapping_add(displacement));
    let copy = if sequence.load(Ordering::Relaxed) & 1 == 1 { layout.copies() } else { 0 };
    // SAFETY: `index` lies in the piece (checked by its owner).
    unsafe { piece.word(index) }.add_on_synthetic_locked_to(cpu, copy, value)
}

/// Folds a line into `acc`, which holds zeros before.
pub(super) fn fold(layout: LatchLayout, piece: Handle, line: usize, acc: &mut [u64]) {
    let reservation = piece.reservation();
    // SAFETY: the line lies in the piece (checked by its owner).
    let first = unsafe { piece.word(line * CHUNK_WORDS) };
    // SAFETY: inside the line.
    let word = |index: usize| unsafe { first.word(index) };
    // the baselines, then whether there are home words, as in `Handle::read`
    if reservation.baselines_in_use() {
        for (index, sum) in acc.iter_mut().enumerate().take(CHUNK_WORDS) {
            *sum = word(index).at(reservation.baseline_displacement()).load(Ordering::Acquire);
        }
    }
    if reservation.homes_in_use() {
        for (index, sum) in acc.iter_mut().enumerate().take(CHUNK_WORDS) {
            *sum = sum.wrapping_add(word(index).at(0).load(Ordering::Relaxed));
        }
    }
    let parts = reservation.cpus().consistently(|walk| {
        let mut parts = [0u64; CHUNK_WORDS];
        walk.for_each(|displacement| {
            // the residue is a piece of the same shape
            for (sum, value) in parts.iter_mut().zip(read_unit(layout, piece, line, displacement, walk)) {
                *sum = sum.wrapping_add(value);
            }
        });
        parts
    });
    for (sum, value) in acc.iter_mut().zip(parts) {
        *sum = sum.wrapping_add(value);
    }
}

/// Returns one CPU's part of a line, all items as of one moment.
pub(super) fn read_cpu(layout: LatchLayout, piece: Handle, line: usize, cpu: usize) -> [u64; CHUNK_WORDS] {
    piece.reservation().cpus().consistently(|walk| match walk.displacement_if_active(cpu) {
        Some(displacement) => read_unit(layout, piece, line, displacement, walk),
        None => [0; CHUNK_WORDS],
    })
}

/// Returns the words of a line in one unit, as of one moment; anything where the walk is outdated.
fn read_unit(
    layout: LatchLayout,
    piece: Handle,
    line: usize,
    displacement: usize,
    walk: Walk<'_>,
) -> [u64; CHUNK_WORDS] {
    for _ in 0..OPTIMISTIC_ATTEMPTS {
        if let Some(values) = try_read(layout, piece, line, displacement) {
            return values;
        }
    }
    let reservation = piece.reservation();
    // The lock keeps a fork from copying a raised hold into a child whose reader is not there.
    let _patient = hold_lock().lock();
    reservation.hold().fetch_add(1, Ordering::SeqCst);
    let values = loop {
        // ends: each CPU commits at most once more, unless the unit is another's by now
        match try_read(layout, piece, line, displacement) {
            Some(values) => break values,
            None if !walk.is_current() => break [0; CHUNK_WORDS],
            None => std::hint::spin_loop(),
        }
    };
    reservation.hold().fetch_sub(1, Ordering::SeqCst);
    values
}

fn try_read(
    layout: LatchLayout,
    piece: Handle,
    line: usize,
    displacement: usize,
) -> Option<[u64; CHUNK_WORDS]> {
    // SAFETY: line and sequence number lie in the piece.
    let first = unsafe { piece.word(line * CHUNK_WORDS) };
    let sequence = piece.at(layout.sequence(line).wrapping_add(displacement));
    let before = sequence.load(Ordering::Acquire);
    let copy = displacement.wrapping_add(if before & 1 == 1 { layout.copies() } else { 0 });
    let mut values = [0; CHUNK_WORDS];
    for (index, value) in values.iter_mut().enumerate() {
        // SAFETY: inside the line.
        *value = unsafe { first.word(index) }.at(copy).load(Ordering::Relaxed);
    }
    fence(Ordering::Acquire);
    (sequence.load(Ordering::Relaxed) == before).then_some(values)
}

/// Returns the lock under which readers hold writers off. Each arena asks for it once when it is
/// made: afterwards it is there, and no reader under the pool's lock has to make it.
pub(super) fn hold_lock() -> &'static Lock<()> {
    static HOLD_LOCK: OnceBox<Lock<()>> = OnceBox::new();
    HOLD_LOCK.get_or_make(|| Lock::new(Rank::Reader, ()))
}

/// Replaces the tag that keeps callers off the plain sections by the one that the sections expect.
fn with_rseq_tag(table: usize) -> usize {
    (table & !TAG_MASK) | HandleTag::Rseq as usize
}
