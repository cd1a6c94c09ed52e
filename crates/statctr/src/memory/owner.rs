//! The owners of slots: [`Word`] and [`Lines`].

use super::arena::Arena;
use super::fold::{self, Gathered};
use super::handle::Handle;
use super::latch;
use super::layout::{CHUNK_BYTES, CHUNK_WORDS, LatchLayout};
use crate::error::Result;
use crate::rseq::{self, HandleTag};
use std::marker::PhantomData;
use std::sync::Arc;

pub(super) fn arena_of<'a>(handle: Handle) -> &'a Arena {
    // SAFETY: an owner holds a strong count of its arena (see `adopt`).
    unsafe { &*handle.reservation().owner().cast() }
}

/// Takes a strong count of the arena, for an owner.
pub(super) fn adopt(handle: Handle, arena: &Arc<Arena>) -> Handle {
    std::mem::forget(Arc::clone(arena));
    handle
}

/// Gives the slot back by `give`, and then the strong count.
///
/// # Safety
/// Once per `adopt`; the handle is not used again.
pub(super) unsafe fn release(handle: Handle, give: impl FnOnce(&Arena)) {
    // The arena first: once the slot is given back, a trim on another thread may unmap the
    // reservation, and with it the header that leads to the arena.
    let arena: *const Arena = handle.reservation().owner().cast();
    // SAFETY: `adopt` forgot one clone of the `Arc` that this address came from, so the arena
    // lives until that clone is given back, here.
    unsafe {
        give(&*arena);
        Arc::decrement_strong_count(arena);
    }
}

/// Owner of one counter's memory, a 64-bit word at the same place (slot) of each CPU's part; freed when dropped.
#[derive(Debug)]
pub(crate) struct Word(Handle);

// SAFETY: everything a handle does is atomic or a section; see the invariant of `Handle`.
unsafe impl Send for Word {}
// SAFETY: as above.
unsafe impl Sync for Word {}

impl Word {
    /// Allocates memory in `arena` (a pool's counter memory) for one counter with the value `initial`.
    pub(crate) fn take(arena: &Arc<Arena>, initial: u64) -> Result<Word> {
        arena.take_word(initial).map(|handle| Word(adopt(handle, arena)))
    }

    #[inline(always)]
    pub(crate) fn handle(&self) -> Handle {
        self.0
    }

    pub(crate) fn arena(&self) -> &Arena {
        arena_of(self.0)
    }

    /// Gives up ownership of the counter's memory and returns the handle (two words: the addresses of its home word and
    /// of the table of the CPUs' words) by which C code owns it.
    pub(crate) fn into_handle(self) -> Handle {
        std::mem::ManuallyDrop::new(self).0
    }

    /// Takes ownership of a per-CPU counter's memory back from C, by the handle that [`into_handle`](Self::into_handle)
    /// returned.
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
        unsafe { release(self.0, |arena| _ = arena.free_word(self.0)) };
    }
}

/// Owner of the memory of an array or group of counters, or of a histogram: consecutive cache lines at the same place
/// in each CPU's unit (part of a pool's counter memory); freed when dropped.
#[derive(Debug)]
pub(crate) struct Lines {
    handle: Handle,
    /// The offset of the threads' rseq areas ([`rseq::offset_of_table`]); 0 for lines that are not updated by plain
    /// sections. Here updates load it beside the handle, and not behind that.
    area: usize,
    chunks: u32,
    layout: Option<LatchLayout>,
}

// SAFETY: as for `Word`.
unsafe impl Send for Lines {}
// SAFETY: as for `Word`.
unsafe impl Sync for Lines {}

impl Lines {
    /// Allocates `chunks` consecutive cache lines in the arena (a pool's counter memory) for an array of single
    /// counters, each with the value `initial`.
    pub(crate) fn take_words(arena: &Arc<Arena>, chunks: usize, initial: u64) -> Result<Lines> {
        Lines::take(arena, chunks, None, arena.settings().counters, initial)
    }

    /// Allocates `chunks` consecutive cache lines in the arena (a pool's counter memory) for groups of counters, all
    /// zero; with a `layout`, where groups are updated by rseq, latched ones (each line twice, with a sequence number,
    /// so that reads are consistent).
    pub(crate) fn take_group(
        arena: &Arc<Arena>,
        chunks: usize,
        layout: Option<LatchLayout>,
    ) -> Result<Lines> {
        let tag = match (arena.settings().groups, layout) {
            (HandleTag::Rseq, Some(_)) => HandleTag::Latch,
            (tag, _) => tag,
        };
        Lines::take(arena, chunks, layout.filter(|_| tag == HandleTag::Latch), tag, 0)
    }

    fn take(
        arena: &Arc<Arena>,
        chunks: usize,
        layout: Option<LatchLayout>,
        tag: HandleTag,
        initial: u64,
    ) -> Result<Lines> {
        let total = layout.map_or(chunks, LatchLayout::chunks);
        arena.take_chunks(total, layout, tag, |used, handle| {
            let lines = Lines::of(adopt(handle, arena), total as u32, layout);
            if used || initial != 0 {
                for index in 0..lines.item_chunks() * CHUNK_WORDS {
                    if used {
                        lines.set_locked(index, initial);
                    } else if let Some(word) = lines.word(index) {
                        word.store_baseline(initial);
                    }
                }
            }
            lines
        })
    }

    #[inline]
    fn of(handle: Handle, chunks: u32, layout: Option<LatchLayout>) -> Lines {
        // SAFETY: by the invariant of handles the table lives.
        let area = unsafe { rseq::offset_of_table(handle.table.as_ptr()) };
        Lines { handle, area, chunks, layout }
    }

    pub(crate) fn arena(&self) -> &Arena {
        arena_of(self.handle)
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    #[inline]
    pub(crate) fn chunks(&self) -> usize {
        self.chunks as usize
    }

    /// Returns the parts by which C code owns these cache lines of counter memory: the handle of the first word, the
    /// number of lines, and the layout if they are latched (kept twice, with a sequence number).
    pub(crate) fn parts(&self) -> (Handle, u32, Option<LatchLayout>) {
        (self.handle, self.chunks, self.layout)
    }

    /// Takes ownership of cache lines of counter memory back from C, by their [`parts`](Self::parts).
    ///
    /// # Safety
    /// The parts are of [`Lines`] that were never dropped, and were not taken back yet.
    #[inline]
    pub(crate) unsafe fn from_parts(handle: Handle, chunks: u32, layout: Option<LatchLayout>) -> Lines {
        Lines::of(handle, chunks, layout)
    }

    /// Returns the number of cache lines in which an array or group of counters, or a histogram, keeps items (64-bit
    /// statistics) for each CPU; of latched lines, which exist twice so that reads are consistent, each counts once.
    #[inline]
    pub(crate) fn item_chunks(&self) -> usize {
        self.layout.map_or(self.chunks as usize, |layout| layout.lines)
    }

    /// Returns the handle by which the counter in 64-bit word `index` of these cache lines of counter memory is updated
    /// and read; `None` beyond their end.
    #[inline(always)]
    pub(crate) fn word(&self, index: usize) -> Option<Handle> {
        // SAFETY: in range, so the owner's.
        (index < self.item_chunks() * CHUNK_WORDS).then(|| unsafe { self.handle.word(index) })
    }

    /// Returns a reference to these cache lines of counter memory with all that updates of their words need.
    #[inline(always)]
    pub(crate) fn words(&self) -> LineWords<'_> {
        let words = self.chunks() * CHUNK_WORDS;
        LineWords { lines: self, handle: self.handle, area: self.area, words }
    }

    /// Returns a reference to the counter in word `index` of these cache lines of counter memory, with its handle and
    /// the offset of the threads' rseq areas, so that it can be updated without the lines, which must not be latched
    /// (kept twice); `None` past their end.
    #[inline(always)]
    pub(crate) fn plain_word(&self, index: usize) -> Option<LineWord<'_>> {
        let words = self.words();
        Some(LineWord { handle: words.word(index)?, area: words.area, lines: PhantomData })
    }

    #[inline(always)]
    pub(crate) fn add(&self, index: usize, value: u64) {
        self.words().add(index, value);
    }

    #[inline(always)]
    pub(crate) fn inc(&self, index: usize) {
        self.words().inc(index);
    }

    #[inline(always)]
    fn add_elsewhere(&self, index: usize, value: u64) {
        match (self.word(index), self.layout) {
            (Some(word), None) => word.add_elsewhere(value),
            (Some(_), Some(layout)) => latch::add(layout, self.handle, index, value),
            (None, _) => {}
        }
    }

    /// Adds `deltas` to consecutive counters, from word `first` of these cache lines of counter memory on, by one
    /// commit (a single store where counters are updated by rseq); does nothing if `first` is not aligned for that or
    /// out of range.
    #[inline(always)]
    pub(crate) fn commit<const N: usize>(&self, first: usize, deltas: &[u64; N]) {
        self.words().commit(first, deltas);
    }

    #[cold]
    #[inline(never)]
    fn commit_elsewhere<const N: usize>(&self, first: usize, line: &[u64; CHUNK_WORDS]) {
        match (self.word(first), self.layout) {
            // SAFETY: as in `commit`, which has checked the alignment.
            (Some(word), None) => unsafe {
                word.commit_slow(&std::array::from_fn::<u64, N, _>(|index| line[index]))
            },
            (Some(_), Some(layout)) => {
                let mut moved = [0; CHUNK_WORDS];
                moved[first % CHUNK_WORDS..][..N].copy_from_slice(&line[..N]);
                latch::commit(layout, self.handle, first / CHUNK_WORDS, &moved);
            }
            (None, _) => {}
        }
    }

    /// Returns the value of the counter in word `index` of these cache lines of counter memory, summed over the CPUs;
    /// `None` beyond their end.
    pub(crate) fn read(&self, index: usize) -> Option<u64> {
        let word = self.word(index)?;
        Some(match self.layout {
            None => word.read(),
            Some(layout) => {
                let mut line = [0; CHUNK_WORDS];
                latch::fold(layout, self.handle, index / CHUNK_WORDS, &mut line);
                line[index % CHUNK_WORDS]
            }
        })
    }

    /// Returns the part of the value of the counter in word `index` of these cache lines of counter memory that one CPU
    /// counted; `None` beyond their end.
    pub(crate) fn read_cpu(&self, cpu: usize, index: usize) -> Option<u64> {
        let word = self.word(index)?;
        Some(match self.layout {
            None => word.read_cpu(cpu),
            Some(layout) => {
                latch::read_cpu(layout, self.handle, index / CHUNK_WORDS, cpu)[index % CHUNK_WORDS]
            }
        })
    }

    /// Sets the value of the counter in word `index` of these cache lines of counter memory by changing its baseline, a
    /// number that reads add; `None` beyond their end. The arena's lock has to be held.
    pub(crate) fn set_locked(&self, index: usize, value: u64) -> Option<()> {
        let word = self.word(index)?;
        match self.layout {
            None => word.set_locked(value),
            Some(_) => {
                let counted = self.read(index)?.wrapping_sub(word.baseline());
                word.store_baseline(value.wrapping_sub(counted));
            }
        }
        Some(())
    }

    /// Adds `value` to the counter in word `index` of these cache lines of counter memory on a synthetic CPU (made up
    /// for tests, one that this kernel cannot have); returns `false` if there is no such word, or no memory for that
    /// CPU. See [`Handle::add_on_synthetic_locked`].
    pub(crate) fn add_on_synthetic_locked(&self, index: usize, cpu: usize, value: u64) -> bool {
        self.word(index).is_some_and(|word| match self.layout {
            None => word.add_on_synthetic_locked(cpu, value),
            Some(layout) => latch::add_on_synthetic_locked(layout, self.handle, index, cpu, value),
        })
    }

    /// Folds the words of `sums.len() / 8` chunks from chunk `first` on; `sums` lies in a
    /// tile. Nothing where they are not all there.
    pub(super) fn fold_in_tile(&self, first: usize, sums: &mut [u64]) {
        let Some(handle) = self.tile_at(first, sums.len()) else { return };
        match self.layout {
            Some(layout) => self.fold_copies(layout, first, sums),
            // SAFETY: the chunks are ours, and `sums` lies in a tile.
            None => unsafe { fold::fold_tile(handle, sums) },
        }
    }

    /// Finds the units of counter memory that readers of these lines have to sum now, for many folds.
    pub(super) fn gather_units(&self) -> Gathered<'_> {
        Gathered::of(self.handle.reservation().cpus())
    }

    /// Returns the number of lines that are best folded together of a run of a few times as many, as
    /// [`Gathered::piece_lines`] does.
    pub(super) fn piece_lines(&self) -> Option<usize> {
        Gathered::piece_lines(self.handle.reservation())
    }

    /// Folds as [`fold_in_tile`](Self::fold_in_tile) does, of the units that were gathered of these lines, and passes
    /// what words of no CPU contribute to the sums of lines without second copies to `note`
    /// ([`Gathered::fold_tile_noting`]). The chunks from `next` on are folded next.
    pub(super) fn fold_in_tile_noting(
        &self,
        units: &Gathered<'_>,
        first: usize,
        next: Option<usize>,
        sums: &mut [u64],
        mut note: impl FnMut(usize, &[u64]),
    ) {
        let Some(handle) = self.tile_at(first, sums.len()) else { return };
        let distance = next.map_or(0, |next| next.wrapping_sub(first).wrapping_mul(CHUNK_BYTES));
        match self.layout {
            Some(layout) => self.fold_copies(layout, first, sums),
            // SAFETY: as in `fold_in_tile`.
            None => unsafe { units.fold_tile_noting(handle, distance, sums, &mut note) },
        }
    }

    /// Returns the first word of `words` words from chunk `first` on; `None` where they are not all there.
    fn tile_at(&self, first: usize, words: usize) -> Option<Handle> {
        let end = first.checked_add(words / CHUNK_WORDS)?;
        // SAFETY: a word of ours.
        (end <= self.item_chunks()).then(|| unsafe { self.handle.word(first * CHUNK_WORDS) })
    }

    fn fold_copies(&self, layout: LatchLayout, first: usize, sums: &mut [u64]) {
        for (index, line) in sums.chunks_exact_mut(CHUNK_WORDS).enumerate() {
            latch::fold(layout, self.handle, first + index, line);
        }
    }

    /// Returns `true` if the cache lines of `next` directly follow these in the same reservation (address range for
    /// counters), so that both can be read in one pass.
    pub(crate) fn is_followed_by(&self, next: &Lines) -> bool {
        let end = self.handle.base.addr().get() + self.chunks() * CHUNK_BYTES;
        self.layout.is_none()
            && next.layout.is_none()
            && self.handle.table == next.handle.table
            && end == next.handle.base.addr().get()
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // SAFETY: the count that `adopt` took, once.
        unsafe { release(self.handle, |arena| _ = arena.free_chunks(self.handle, self.chunks())) };
    }
}

/// A reference to cache lines of counter memory with all that updates of their words need: the handle of the first word,
/// the offset of the threads' rseq areas, the number of words.
///
/// By value, so that several updates of one group load it once, and loops over an array's groups before they begin:
/// loaded on the common path of each update it is loaded behind the store of the one before, which takes 6.7 ns for four
/// updates of groups in turn instead of 4.0 (AMD Zen 3).
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineWords<'a> {
    lines: &'a Lines,
    handle: Handle,
    /// The offset of the threads' rseq areas; 0 for lines that are not updated by plain sections.
    area: usize,
    words: usize,
}

// SAFETY: as for `Lines`, of which it is a part.
unsafe impl Send for LineWords<'_> {}
// SAFETY: as above.
unsafe impl Sync for LineWords<'_> {}

impl<'a> LineWords<'a> {
    /// Returns the cache lines of counter memory that the words are in.
    #[inline(always)]
    pub(crate) fn lines(self) -> &'a Lines {
        self.lines
    }

    /// Returns the handle of the first word, and the offset of the threads' rseq areas; 0 for lines that are not updated
    /// by plain sections.
    #[inline(always)]
    pub(super) fn handle_and_area(self) -> (Handle, usize) {
        (self.handle, self.area)
    }

    /// Returns the handle of a word for a section, which looks at the tag itself; `None` beyond the end.
    #[inline(always)]
    fn word(self, index: usize) -> Option<Handle> {
        // SAFETY: in range, so the owner's.
        (index < self.words).then(|| unsafe { self.handle.word(index) })
    }

    /// Adds `value` to the counter in word `index`; nothing beyond the end.
    #[inline(always)]
    pub(crate) fn add(self, index: usize, value: u64) {
        let done = self.word(index).is_some_and(|word| {
            let (area, base, table) = (self.area, word.base.as_ptr(), word.table.as_ptr());
            // SAFETY: the invariant of `Handle` is the section's contract, and the area is the table's.
            area != 0 && unsafe { rseq::add_in_area(area, base, table, value) }
        });
        if !done {
            self.lines.add_elsewhere(index, value);
        }
    }

    /// Adds 1 to the counter in word `index`; nothing beyond the end.
    #[inline(always)]
    pub(crate) fn inc(self, index: usize) {
        let done = self.word(index).is_some_and(|word| {
            let (area, base, table) = (self.area, word.base.as_ptr(), word.table.as_ptr());
            // SAFETY: as in `add`.
            area != 0 && unsafe { rseq::inc_in_area(area, base, table) }
        });
        if !done {
            self.lines.add_elsewhere(index, 1);
        }
    }

    /// Adds `deltas` to consecutive counters from word `first` on, as [`Lines::commit`] does.
    #[inline(always)]
    pub(crate) fn commit<const N: usize>(self, first: usize, deltas: &[u64; N]) {
        const { assert!(N >= 1 && N <= CHUNK_WORDS) };
        if N == 1 {
            return self.add(first, deltas[0]);
        }
        if first.is_multiple_of(N.next_power_of_two()) {
            let done = self.word(first).is_some_and(|word| {
                let (area, base, table) = (self.area, word.base.as_ptr(), word.table.as_ptr());
                // SAFETY: the words that the commit writes are aligned to its own length and so
                // inside one chunk; ours; and tagged for sections without a second copy. The area is the table's.
                area != 0 && unsafe { rseq::commit_in_area(area, base, table, deltas) }
            });
            if done {
                return;
            }
            // a copy, so that the numbers of an event that commits never go through memory
            let mut line = [0; CHUNK_WORDS];
            for (place, delta) in line.iter_mut().zip(deltas) {
                *place = *delta;
            }
            self.lines.commit_elsewhere::<N>(first, &line);
        }
    }
}

/// A reference to one counter of an array, in the cache lines that the array owns, with all that its updates need: the
/// counter's handle and the offset of the threads' rseq areas.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineWord<'a> {
    handle: Handle,
    /// The offset of the threads' rseq areas; 0 for lines that are not updated by plain sections.
    area: usize,
    lines: PhantomData<&'a Lines>,
}

// SAFETY: as for `Lines`, of which it is a part.
unsafe impl Send for LineWord<'_> {}
// SAFETY: as above.
unsafe impl Sync for LineWord<'_> {}

impl LineWord<'_> {
    /// Adds `value` to the counter, in the word of the calling thread's CPU.
    #[inline(always)]
    pub(crate) fn add(self, value: u64) {
        let (base, table) = (self.handle.base.as_ptr(), self.handle.table.as_ptr());
        // SAFETY: the invariant of `Handle` is the section's contract, and the area is the table's.
        if self.area == 0 || !unsafe { rseq::add_in_area(self.area, base, table, value) } {
            self.handle.add_elsewhere(value);
        }
    }

    /// Adds 1 to the counter, in the word of the calling thread's CPU.
    #[inline(always)]
    pub(crate) fn inc(self) {
        let (base, table) = (self.handle.base.as_ptr(), self.handle.table.as_ptr());
        // SAFETY: as in `add`.
        if self.area == 0 || !unsafe { rseq::inc_in_area(self.area, base, table) } {
            self.handle.add_elsewhere(1);
        }
    }

    /// Subtracts 1 from the counter, in the word of the calling thread's CPU.
    #[inline(always)]
    pub(crate) fn dec(self) {
        let (base, table) = (self.handle.base.as_ptr(), self.handle.table.as_ptr());
        // SAFETY: as in `add`.
        if self.area == 0 || !unsafe { rseq::dec_in_area(self.area, base, table) } {
            self.handle.add_elsewhere(u64::MAX);
        }
    }
}
