//! A slot and what can be done with it; and its two owners, [`Word`] and [`Lines`].

use super::arena::Arena;
use super::fold;
use super::latch::LatchLayout;
use super::reservation::{CHUNK_BYTES, CHUNK_WORDS, Reservation, at};
use crate::rseq::{self, HandleTag};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The two words that lead to a slot: what a C `statctr_t` is made of.
///
/// Invariant of this folder: the reservation of `table` lives as long as the handle is used, and
/// `base` is the home address of a slot that the handle's owner owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Handle {
    pub(crate) base: NonNull<u8>,
    pub(crate) table: NonNull<u8>,
}

impl Handle {
    #[inline(always)]
    fn is(self, tag: HandleTag) -> bool {
        self.table.addr().get() & tag as usize != 0
    }

    #[inline]
    pub(crate) fn reservation<'a>(self) -> &'a Reservation {
        // SAFETY: by the invariant the reservation lives while the handle is used.
        unsafe { Reservation::of_table(self.table) }
    }

    /// The handle of the word `index` words further on.
    ///
    /// # Safety
    /// That word belongs to the same owner.
    #[inline(always)]
    pub(crate) unsafe fn word(self, index: usize) -> Handle {
        // SAFETY: inside the unit by the caller's promise.
        Handle { base: unsafe { self.base.add(index * 8) }, table: self.table }
    }

    #[inline(always)]
    fn home(&self) -> &AtomicU64 {
        // SAFETY: by the invariant an aligned word that lives; in the modes that use it as an
        // atomic it is only used as one.
        unsafe { self.base.cast().as_ref() }
    }

    #[inline(always)]
    pub(crate) fn add(self, value: u64) {
        if cfg!(feature = "uniprocessor") {
            // SAFETY: pools of this build exist on one CPU only, where home words are written by
            // this instruction alone.
            return unsafe { rseq::add_on_one_cpu(self.base.as_ptr(), value) };
        }
        // SAFETY: the invariant is the contract of the section.
        if unsafe { rseq::add(self.base.as_ptr(), self.table.as_ptr(), value) } {
            return;
        }
        self.add_elsewhere(value);
    }

    #[inline(always)]
    pub(crate) fn inc(self) {
        if cfg!(feature = "uniprocessor") {
            // SAFETY: as in `add`.
            return unsafe { rseq::inc_on_one_cpu(self.base.as_ptr()) };
        }
        // SAFETY: as in `add`.
        if unsafe { rseq::inc(self.base.as_ptr(), self.table.as_ptr()) } {
            return;
        }
        self.add_elsewhere(1);
    }

    #[inline(always)]
    pub(crate) fn dec(self) {
        if cfg!(feature = "uniprocessor") {
            // SAFETY: as in `add`.
            return unsafe { rseq::dec_on_one_cpu(self.base.as_ptr()) };
        }
        // SAFETY: as in `add`.
        if unsafe { rseq::dec(self.base.as_ptr(), self.table.as_ptr()) } {
            return;
        }
        self.add_elsewhere(u64::MAX);
    }

    #[inline(always)]
    fn add_elsewhere(self, value: u64) {
        if self.is(HandleTag::Uniprocessor) {
            // SAFETY: on one CPU home words are written by this instruction alone.
            unsafe { rseq::add_on_one_cpu(self.base.as_ptr(), value) };
        } else if self.is(HandleTag::Atomic) {
            self.home().fetch_add(value, Ordering::Relaxed);
        } else {
            self.add_slow(value);
        }
    }

    /// The section did not commit: announce, try again a bounded number of times, fall back.
    ///
    /// Async-signal-safe: no lock, no allocation.
    #[cold]
    #[inline(never)]
    pub(crate) fn add_slow(self, value: u64) {
        let reservation = self.reservation();
        for _ in 0..rseq::TRIES {
            if !reservation.announce_current() {
                break;
            }
            // SAFETY: as in `add`; slots that need the twin section never come here.
            if unsafe { rseq::add(self.base.as_ptr(), self.table.as_ptr(), value) } {
                return;
            }
        }
        self.add_to_fallback(value);
    }

    /// Adds to the cell that is there for everybody.
    pub(crate) fn add_to_fallback(self, value: u64) {
        self.reservation().use_home();
        self.home().fetch_add(value, Ordering::Relaxed);
    }

    /// Applies an event to the words from `base` on, where the section did not commit or the slot is
    /// not made for it.
    ///
    /// # Safety
    /// The words that the commit writes (N rounded up to a power of two) are the owner's, in one
    /// chunk, aligned to as many words, and written by this and by `add` alone.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn commit_slow<const N: usize>(self, deltas: &[u64; N]) {
        if self.is(HandleTag::Rseq) {
            let reservation = self.reservation();
            for _ in 0..rseq::TRIES {
                if !reservation.announce_current() {
                    break;
                }
                // SAFETY: the caller's promise and the invariant are the section's contract.
                if unsafe { rseq::commit(self.base.as_ptr(), self.table.as_ptr(), deltas) } {
                    return;
                }
            }
        }
        for (index, &delta) in deltas.iter().enumerate().filter(|(_, delta)| **delta != 0) {
            // SAFETY: the event's words are the owner's.
            let word = unsafe { self.word(index) };
            if self.is(HandleTag::Rseq) { word.add_to_fallback(delta) } else { word.add_elsewhere(delta) }
        }
    }

    /// What is in the fallback cell.
    pub(crate) fn fallback_part(self) -> u64 {
        if self.reservation().homes_in_use() { self.home().load(Ordering::Relaxed) } else { 0 }
    }

    /// The sum of everything counted here, without the baseline.
    fn counted(self) -> u64 {
        let reservation = self.reservation();
        let home = if reservation.homes_in_use() { self.home().load(Ordering::Relaxed) } else { 0 };
        reservation.cpus().consistently(|walk| {
            let mut sum = home;
            walk.for_each(|displacement| {
                sum = sum.wrapping_add(self.at(displacement).load(Ordering::Relaxed));
            });
            sum
        })
    }

    /// The word at a displacement from home.
    #[inline(always)]
    pub(crate) fn at(&self, displacement: usize) -> &AtomicU64 {
        // SAFETY: displacements lead from a home word to the same slot of another unit. Sections
        // write these words with single aligned stores, which an atomic load of the same size
        // never sees in part.
        unsafe { at(self.base, displacement).as_ref() }
    }

    /// The value: baseline, then home, then CPU by CPU.
    #[inline]
    pub(crate) fn read(self) -> u64 {
        // SAFETY: by the invariant the header lives while the handle is used.
        let only = unsafe { Reservation::only_unit_of(self.table) };
        if let Some(unit) = only {
            let value = self.at(unit).load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            // SAFETY: as above.
            if unsafe { Reservation::only_unit_of(self.table) } == only {
                return value;
            }
        }
        self.read_all()
    }

    #[inline(never)]
    fn read_all(self) -> u64 {
        // The baseline first: whoever sees a new one sees at least the counts it was made from,
        // and never a value below it.
        self.baseline().wrapping_add(self.counted())
    }

    fn baseline(self) -> u64 {
        let reservation = self.reservation();
        if !reservation.baselines_in_use() {
            return 0;
        }
        self.at(reservation.baseline_displacement()).load(Ordering::Acquire)
    }

    /// One CPU's part.
    pub(crate) fn read_cpu(self, cpu: usize) -> u64 {
        self.reservation().cpus().consistently(|walk| {
            walk.displacement_if_active(cpu)
                .map_or(0, |displacement| self.at(displacement).load(Ordering::Relaxed))
        })
    }

    /// Makes the value `value`, by its baseline. The arena's lock is held.
    pub(crate) fn set_locked(self, value: u64) {
        self.store_baseline(value.wrapping_sub(self.counted()));
    }

    /// Stores a baseline unless it is there already. The arena's lock is held.
    pub(crate) fn store_baseline(self, baseline: u64) {
        if self.baseline() != baseline {
            let reservation = self.reservation();
            reservation.use_baseline();
            self.at(reservation.baseline_displacement()).store(baseline, Ordering::Release);
        }
    }

    /// The word of a CPU, announced to readers; where all CPUs share a word, that one. `None` where
    /// the CPU has none and cannot get one. The arena's lock is held.
    pub(crate) fn cpu_word_locked(self, cpu: usize) -> Option<NonNull<u64>> {
        let reservation = self.reservation();
        if self.is(HandleTag::Uniprocessor) || reservation.layout().cpus.is_empty() {
            reservation.use_home();
            return Some(self.base.cast());
        }
        let displacement = reservation.announce_to_readers(cpu)?;
        Some(NonNull::from(self.at(displacement)).cast())
    }

    /// Counts as if on a CPU that this kernel cannot have. The arena's lock is held, so there is
    /// one writer.
    pub(crate) fn add_on_synthetic_locked(self, cpu: usize, value: u64) -> bool {
        self.add_on_synthetic_locked_to(cpu, 0, value)
    }

    /// As [`add_on_synthetic_locked`](Self::add_on_synthetic_locked), to the word so many bytes on in the CPU's unit.
    pub(super) fn add_on_synthetic_locked_to(self, cpu: usize, copy: usize, value: u64) -> bool {
        let Some(displacement) = self.reservation().announce_to_readers(cpu) else { return false };
        let word = self.at(displacement.wrapping_add(copy));
        word.store(word.load(Ordering::Relaxed).wrapping_add(value), Ordering::Release);
        true
    }

    fn arena<'a>(self) -> &'a Arena {
        // SAFETY: an owner holds a strong count of its arena (see `adopt`).
        unsafe { &*self.reservation().arena() }
    }

    /// Takes a strong count of the arena, for an owner.
    fn adopt(self, arena: &Arc<Arena>) -> Handle {
        std::mem::forget(Arc::clone(arena));
        self
    }

    /// Gives the slot back by `give`, and then the strong count.
    ///
    /// # Safety
    /// Once per `adopt`; the handle is not used again.
    unsafe fn leave(self, give: impl FnOnce(&Arena)) {
        // The arena first: once the slot is given back, a trim on another thread may unmap the
        // reservation, and with it the header that leads to the arena.
        let arena = self.reservation().arena();
        // SAFETY: `adopt` forgot one clone of the `Arc` that this address came from, so the arena
        // lives until that clone is given back, here.
        unsafe {
            give(&*arena);
            Arc::decrement_strong_count(arena);
        }
    }
}

/// Owns one word of a pool.
#[derive(Debug)]
pub(crate) struct Word(Handle);

// SAFETY: everything a handle does is atomic or a section; see the invariant of `Handle`.
unsafe impl Send for Word {}
// SAFETY: as above.
unsafe impl Sync for Word {}

impl Word {
    /// Takes the ownership of a slot that was just taken from `arena`.
    pub(super) fn adopt(handle: Handle, arena: &Arc<Arena>) -> Word {
        Word(handle.adopt(arena))
    }

    #[inline(always)]
    pub(crate) fn handle(&self) -> Handle {
        self.0
    }

    pub(crate) fn arena(&self) -> &Arena {
        self.0.arena()
    }

    /// Gives the ownership away.
    pub(crate) fn into_handle(self) -> Handle {
        std::mem::ManuallyDrop::new(self).0
    }

    /// Takes the ownership back.
    ///
    /// # Safety
    /// The handle came from [`Word::into_handle`] and was not taken back yet.
    pub(crate) unsafe fn from_handle(handle: Handle) -> Word {
        Word(handle)
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        // SAFETY: the count that `adopt` took, once.
        unsafe { self.0.leave(|arena| _ = arena.free_word(self.0)) };
    }
}

/// Owns whole chunks in a row.
#[derive(Debug)]
pub(crate) struct Lines {
    handle: Handle,
    chunks: u32,
    latch: Option<LatchLayout>,
}

// SAFETY: as for `Word`.
unsafe impl Send for Lines {}
// SAFETY: as for `Word`.
unsafe impl Sync for Lines {}

impl Lines {
    /// Takes the ownership of chunks that were just taken from `arena`.
    pub(super) fn adopt(
        handle: Handle,
        chunks: u32,
        latch: Option<LatchLayout>,
        arena: &Arc<Arena>,
    ) -> Lines {
        Lines { handle: handle.adopt(arena), chunks, latch }
    }

    pub(crate) fn arena(&self) -> &Arena {
        self.handle.arena()
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    #[inline]
    pub(crate) fn chunks(&self) -> usize {
        self.chunks as usize
    }

    /// Gives the ownership away: the handle and the number of chunks.
    pub(crate) fn into_parts(self) -> (Handle, u32, Option<LatchLayout>) {
        let lines = std::mem::ManuallyDrop::new(self);
        (lines.handle, lines.chunks, lines.latch)
    }

    /// Takes the ownership back.
    ///
    /// # Safety
    /// The parts came from [`Lines::into_parts`] and were not taken back yet.
    #[inline]
    pub(crate) unsafe fn from_parts(handle: Handle, chunks: u32, latch: Option<LatchLayout>) -> Lines {
        Lines { handle, chunks, latch }
    }

    /// Chunks that hold items, in the order of the schema.
    #[inline]
    pub(crate) fn item_chunks(&self) -> usize {
        self.latch.map_or(self.chunks as usize, |latch| latch.lines)
    }

    /// The handle of word `index`; `None` where there is no such word.
    #[inline(always)]
    pub(crate) fn word(&self, index: usize) -> Option<Handle> {
        // SAFETY: in range, so the owner's.
        (index < self.item_chunks() * CHUNK_WORDS).then(|| unsafe { self.handle.word(index) })
    }

    /// The handle of a word for a section, which looks at the tag itself.
    #[inline(always)]
    fn for_section(&self, index: usize) -> Option<Handle> {
        // SAFETY: in range, so the owner's.
        (index < self.chunks() * CHUNK_WORDS).then(|| unsafe { self.handle.word(index) })
    }

    #[inline(always)]
    pub(crate) fn add(&self, index: usize, value: u64) {
        let done = self.for_section(index).is_some_and(|word| {
            // SAFETY: the invariant of `Handle` is the section's contract.
            unsafe { rseq::add(word.base.as_ptr(), word.table.as_ptr(), value) }
        });
        if !done {
            self.add_elsewhere(index, value);
        }
    }

    #[inline(always)]
    pub(crate) fn inc(&self, index: usize) {
        let done = self.for_section(index).is_some_and(|word| {
            // SAFETY: as in `add`.
            unsafe { rseq::inc(word.base.as_ptr(), word.table.as_ptr()) }
        });
        if !done {
            self.add_elsewhere(index, 1);
        }
    }

    #[inline(always)]
    pub(crate) fn dec(&self, index: usize) {
        let done = self.for_section(index).is_some_and(|word| {
            // SAFETY: as in `add`.
            unsafe { rseq::dec(word.base.as_ptr(), word.table.as_ptr()) }
        });
        if !done {
            self.add_elsewhere(index, u64::MAX);
        }
    }

    #[inline(always)]
    fn add_elsewhere(&self, index: usize, value: u64) {
        match (self.word(index), self.latch) {
            (Some(word), None) => word.add_elsewhere(value),
            (Some(_), Some(latch)) => latch.add(self.handle, index, value),
            (None, _) => {}
        }
    }

    /// Applies an event to the words from `first` on by one commit; nothing where `first` is not
    /// aligned for it or lies outside.
    #[inline(always)]
    pub(crate) fn commit<const N: usize>(&self, first: usize, deltas: &[u64; N]) {
        const { assert!(N >= 1 && N <= CHUNK_WORDS) };
        if N == 1 {
            return self.add(first, deltas[0]);
        }
        if first.is_multiple_of(N.next_power_of_two()) {
            let done = self.for_section(first).is_some_and(|word| {
                // SAFETY: the words that the commit writes are aligned to its own length and so
                // inside one chunk; ours; and tagged for sections without a second copy.
                unsafe { rseq::commit(word.base.as_ptr(), word.table.as_ptr(), deltas) }
            });
            if done {
                return;
            }
            // a copy, so that the numbers of an event that commits never go through memory
            let mut line = [0; CHUNK_WORDS];
            for (place, delta) in line.iter_mut().zip(deltas) {
                *place = *delta;
            }
            self.commit_elsewhere::<N>(first, &line);
        }
    }

    #[cold]
    #[inline(never)]
    fn commit_elsewhere<const N: usize>(&self, first: usize, line: &[u64; CHUNK_WORDS]) {
        match (self.word(first), self.latch) {
            // SAFETY: as in `commit`, which has checked the alignment.
            (Some(word), None) => unsafe {
                word.commit_slow(&std::array::from_fn::<u64, N, _>(|index| line[index]))
            },
            (Some(_), Some(latch)) => {
                let mut moved = [0; CHUNK_WORDS];
                moved[first % CHUNK_WORDS..][..N].copy_from_slice(&line[..N]);
                latch.commit(self.handle, first / CHUNK_WORDS, &moved);
            }
            (None, _) => {}
        }
    }

    /// The value of word `index`.
    pub(crate) fn read(&self, index: usize) -> Option<u64> {
        let word = self.word(index)?;
        Some(match self.latch {
            None => word.read(),
            Some(latch) => {
                let mut line = [0; CHUNK_WORDS];
                latch.fold(self.handle, index / CHUNK_WORDS, &mut line);
                line[index % CHUNK_WORDS]
            }
        })
    }

    /// One CPU's part of word `index`.
    pub(crate) fn read_cpu(&self, cpu: usize, index: usize) -> Option<u64> {
        let word = self.word(index)?;
        Some(match self.latch {
            None => word.read_cpu(cpu),
            Some(latch) => latch.read_cpu(self.handle, index / CHUNK_WORDS, cpu)[index % CHUNK_WORDS],
        })
    }

    /// Makes the value of word `index` `value`. The arena's lock is held.
    pub(crate) fn set_locked(&self, index: usize, value: u64) -> Option<()> {
        let word = self.word(index)?;
        match self.latch {
            None => word.set_locked(value),
            Some(_) => {
                let counted = self.read(index)?.wrapping_sub(word.baseline());
                word.store_baseline(value.wrapping_sub(counted));
            }
        }
        Some(())
    }

    /// Counts as if on a CPU that is not there; see [`Handle::add_on_synthetic_locked`].
    pub(crate) fn add_on_synthetic_locked(&self, index: usize, cpu: usize, value: u64) -> bool {
        self.word(index).is_some_and(|word| match self.latch {
            None => word.add_on_synthetic_locked(cpu, value),
            Some(latch) => latch.add_on_synthetic_locked(self.handle, index, cpu, value),
        })
    }

    /// The values of the words of `sums.len() / 8` chunks from chunk `first` on; `sums` lies in a
    /// tile. Nothing where they are not all there.
    pub(super) fn fold_in_tile(&self, first: usize, sums: &mut [u64]) {
        let chunks = sums.len() / CHUNK_WORDS;
        if first.checked_add(chunks).is_none_or(|end| end > self.item_chunks()) {
            return;
        }
        if let Some(latch) = self.latch {
            for (index, line) in sums.chunks_exact_mut(CHUNK_WORDS).enumerate() {
                latch.fold(self.handle, first + index, line);
            }
            return;
        }
        // SAFETY: the chunks are ours, and `sums` lies in a tile.
        unsafe { fold::fold_tile(self.handle.word(first * CHUNK_WORDS), sums) };
    }

    /// Whether `next` lies right behind this in the same reservation, so that both can be folded
    /// as one piece.
    pub(crate) fn is_followed_by(&self, next: &Lines) -> bool {
        let end = self.handle.base.addr().get() + self.chunks() * CHUNK_BYTES;
        self.latch.is_none()
            && next.latch.is_none()
            && self.handle.table == next.handle.table
            && end == next.handle.base.addr().get()
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // SAFETY: the count that `adopt` took, once.
        unsafe { self.handle.leave(|arena| _ = arena.free_chunks(self.handle, self.chunks())) };
    }
}
