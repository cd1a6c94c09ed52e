//! The fold: sums over CPUs, whole chunks at a time.
//!
//! The kernels are machine code because the words are written by other CPUs while they are read:
//! plain vector loads would be a data race to the compiler, and atomic loads do not vectorise.
//! The hardware does not mind: an aligned 8-byte word is loaded whole, also as part of a wider
//! load, and what an event's 16-byte store put there together is loaded together.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use x86_64::{add_units, piece_lines};

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod portable;
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
use portable::{add_units, piece_lines};

use super::handle::Handle;
use super::layout::CHUNK_WORDS;
use super::reservation::Reservation;
use super::units::{Units, Walk};
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;

/// Displacements that are gathered before a kernel runs.
const BATCH: usize = 256;

/// Chunks that are folded in one piece: their sums stay in the first-level cache, and each page of
/// a unit is walked once.
pub(super) const TILE: usize = 256;

/// Room for the sums of a tile, aligned as the kernels want it.
#[repr(align(64))]
pub(super) struct Tile([MaybeUninit<u64>; TILE * CHUNK_WORDS]);

impl Tile {
    pub(super) fn new() -> Tile {
        Tile([MaybeUninit::uninit(); TILE * CHUNK_WORDS])
    }

    /// Returns the first `chunks` chunks, zeroed; the rest is not touched, or folding one small group
    /// would mostly be clearing room for large ones.
    pub(super) fn zeroed(&mut self, chunks: usize) -> &mut [u64] {
        let words = &mut self.0[..chunks * CHUNK_WORDS];
        words.fill(MaybeUninit::new(0));
        // SAFETY: all of these words were just written.
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len()) }
    }
}

/// Folds `sums.len() / 8` chunks from `first` on, at most a tile: baselines, home words,
/// then CPU by CPU all items at once.
/// `sums` holds zeros before.
///
/// # Safety
/// The chunks belong to one owner or to adjacent ones, which keep them for as long as this runs;
/// `first` is the first word of a chunk; `sums` begins at a multiple of 64 bytes.
pub(super) unsafe fn fold_tile(first: Handle, sums: &mut [u64]) {
    // SAFETY: passed on.
    unsafe { fold_tile_noting(first, sums, 0, &mut |_, _| ()) };
}

/// Folds as [`fold_tile`] does, and passes what baselines and home words contribute to the sums, where one of them is
/// in use, to `note(index of the first word, contributions)`: the words are loaded once for both. `before` words
/// precede `first`. Of a word that is noted again the later contribution counts.
///
/// # Safety
/// The contract is that of [`fold_tile`].
pub(super) unsafe fn fold_tile_noting(
    first: Handle,
    sums: &mut [u64],
    before: usize,
    note: &mut impl FnMut(usize, &[u64]),
) {
    let walk = first.reservation().cpus().walk();
    // SAFETY: passed on.
    unsafe { fold_view(first, walk, sums, |common| note(before, common)) };
    if walk.is_current() {
        return;
    }
    // A drain came in between. Halves are read in half the time: drains without end must not keep a
    // reader of much from ever coming to one.
    sums.fill(0);
    let half = (sums.len() / CHUNK_WORDS).div_ceil(2) * CHUNK_WORDS;
    let (left, right) = sums.split_at_mut(half);
    // SAFETY: parts of what the caller owns, each a number of whole chunks.
    unsafe {
        fold_tile_noting(first, left, before, note);
        if !right.is_empty() {
            fold_tile_noting(first.word(half), right, before + half, note);
        }
    }
}

/// The units of one view, found once for many folds.
pub(super) struct Gathered<'a> {
    walk: Walk<'a>,
    displacements: Vec<usize>,
}

impl Gathered<'_> {
    /// Returns the length in lines of the pieces in which gathered units are folded faster than in a run of a few of them;
    /// `None` where that is not so.
    pub(super) fn piece_lines(reservation: &Reservation) -> Option<usize> {
        // else the units are found anew for each piece
        let is_gathered = !reservation.baselines_in_use() && !reservation.homes_in_use();
        is_gathered.then(|| piece_lines(reservation.layout().width)).flatten()
    }

    /// Finds the units that readers have to sum now.
    pub(super) fn of(units: &Units) -> Gathered<'_> {
        let walk = units.walk();
        let mut displacements = Vec::new();
        walk.for_each(|displacement| displacements.push(displacement));
        Gathered { walk, displacements }
    }

    /// Folds as [`fold_tile_noting`] does the chunks at `first`; those that are folded next lie `next` bytes further on
    /// (0: unknown).
    ///
    /// Counts from before the units were gathered are in the sums, later counts of units that were made since are not.
    /// Therefore a reservation with a baseline in use has its units found anew each time, as a baseline can have been
    /// made from any count and needs all of them; and one with home words in use, which are no unit's.
    ///
    /// # Safety
    /// The contract is that of [`fold_tile`].
    pub(super) unsafe fn fold_tile_noting(
        &self,
        first: Handle,
        next: usize,
        sums: &mut [u64],
        note: &mut impl FnMut(usize, &[u64]),
    ) {
        let reservation = first.reservation();
        let is_current = || self.walk.is_of(reservation.cpus()) && self.walk.is_current();
        if is_current() && !reservation.baselines_in_use() && !reservation.homes_in_use() {
            let (width, chunks) = (reservation.layout().width, sums.len() / CHUNK_WORDS);
            let (place, start) = (sums.as_mut_ptr(), first.base.as_ptr());
            // SAFETY: the displacements lead to the same chunks of units of this reservation that were announced; `sums`
            // has whole chunks and is aligned.
            unsafe { add_units(width, place, chunks, start, &self.displacements, next) };
            if is_current() {
                return;
            }
            sums.fill(0);
        }
        // SAFETY: passed on.
        unsafe { fold_tile_noting(first, sums, 0, note) };
    }
}

/// Folds the units of one view, as [`fold_tile`] does, and passes the contributions of baselines and home words to
/// `note`.
///
/// # Safety
/// The contract is that of [`fold_tile`].
unsafe fn fold_view(first: Handle, walk: Walk<'_>, sums: &mut [u64], note: impl FnOnce(&[u64])) {
    let reservation = first.reservation();
    let words = sums.len();
    let baselines = reservation.baselines_in_use();
    if baselines {
        // before the walk, as in `Handle::read`
        let displacement = reservation.baseline_displacement();
        for (index, sum) in sums.iter_mut().enumerate() {
            // SAFETY: inside the chunks by the caller's promise.
            *sum = unsafe { first.word(index) }.at(displacement).load(Ordering::Acquire);
        }
    }
    // asked after the baselines were loaded: one of them may be made from a count in the first home
    // word that was ever used
    let homes = reservation.homes_in_use();
    if homes {
        for (index, sum) in sums.iter_mut().enumerate() {
            // SAFETY: as above.
            *sum = sum.wrapping_add(unsafe { first.word(index) }.at(0).load(Ordering::Relaxed));
        }
    }
    if baselines || homes {
        note(sums);
    }
    let width = reservation.layout().width;
    // not cleared: for a small group that would be most of the work
    let mut batch = [const { MaybeUninit::<usize>::uninit() }; BATCH];
    let mut filled = 0;
    let mut flush = |batch: &[MaybeUninit<usize>]| {
        // SAFETY: only called with elements that were written.
        let displacements =
            unsafe { std::slice::from_raw_parts(batch.as_ptr().cast::<usize>(), batch.len()) };
        // SAFETY: the displacements lead to the same chunks of units of announced CPUs; `sums` has
        // whole chunks and is aligned.
        unsafe {
            add_units(width, sums.as_mut_ptr(), words / CHUNK_WORDS, first.base.as_ptr(), displacements, 0)
        };
    };
    walk.for_each(|displacement| {
        batch[filled].write(displacement);
        filled += 1;
        if filled == BATCH {
            flush(&batch);
            filled = 0;
        }
    });
    flush(&batch[..filled]);
}
