//! Lines whose writers leave a stamp: [`StampedLines`]. `stamped_fold` reads them.
//!
//! ```text
//! piece, in each unit:   latest │ stamps, a byte a line … │ line 0 │ line 1 │ …
//! ```
//! A section stores the piece's epoch in its CPU's *latest* and in its line's stamp before it commits.

use super::arena::Arena;
use super::handle::Handle;
use super::layout::{CHUNK_BYTES, CHUNK_WORDS};
use super::owner::Lines;
use crate::error::Result;
use crate::rseq::{self, HandleTag, Stamps};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// The epoch of a piece, on a line that no writer stores to.
#[derive(Debug)]
#[repr(C, align(64))]
struct Epoch(AtomicU64);

/// Owner of cache lines of counter memory whose updates also store a stamp (a byte that marks the line as written since
/// the last fold, a read that sums over the CPUs); freed when dropped. Without stamps on machines that cannot keep
/// them.
#[derive(Debug)]
pub(crate) struct StampedLines {
    lines: Lines,
    /// Cache lines in front of the first one with counters; 0 where no stamps are kept.
    front: usize,
    /// 64-bit words with a stamp: all but those in front; 0 where no stamps are kept.
    stamped_words: usize,
    epoch: Box<Epoch>,
    /// Somebody folds by stamps: there is one epoch.
    is_read: AtomicBool,
}

/// Returns the number of cache lines that `lines` stamped ones take with what is in front of them.
fn with_front(lines: usize) -> usize {
    1 + lines.div_ceil(CHUNK_BYTES) + lines
}

/// Returns the number of stamped cache lines (with a mark for each that it was written) that fit, with their stamps,
/// into a CPU's unit of `unit_words` 64-bit words.
pub(crate) fn most_stamped(unit_words: usize) -> usize {
    // behind the first, each 64 have a line of stamps
    let chunks = (unit_words / CHUNK_WORDS).saturating_sub(1);
    chunks - chunks.div_ceil(CHUNK_BYTES + 1)
}

impl StampedLines {
    /// Returns `true` if updates of groups of counters in the arena (a pool's counter memory) can stamp cache lines as
    /// written, so that folds reread only these: they are rseq critical sections, in memory that does not move.
    pub(crate) fn fit(arena: &Arena) -> bool {
        rseq::CAN_STAMP && arena.settings().groups == HandleTag::Rseq && arena.depot().is_none()
    }

    /// Allocates `lines` consecutive stamped cache lines, all zero, in an arena (a pool's counter memory) that can
    /// stamp them as written ([`fit`](Self::fit)).
    pub(crate) fn take(arena: &Arc<Arena>, lines: usize) -> Result<StampedLines> {
        let piece = Lines::take_group(arena, with_front(lines), None)?;
        let head = piece.handle();
        // what others left there is no epoch. Nobody counts in this line, and CPUs that come later have zeros.
        head.reservation().cpus().walk().for_each(|displacement| {
            head.at(displacement).store(0, Ordering::Release);
        });
        let front = with_front(lines) - lines;
        Ok(StampedLines::new(piece, front))
    }

    /// Wraps cache lines of counter memory for which no stamps (marks of the lines that were written) are kept, so that
    /// each fold (read that sums over the CPUs) reads all of them.
    pub(crate) fn unstamped(lines: Lines) -> StampedLines {
        StampedLines::new(lines, 0)
    }

    fn new(lines: Lines, front: usize) -> StampedLines {
        let epoch = Box::new(Epoch(AtomicU64::new(1)));
        let stamped_words = if front == 0 { 0 } else { (lines.item_chunks() - front) * CHUNK_WORDS };
        StampedLines { lines, front, stamped_words, epoch, is_read: AtomicBool::new(false) }
    }

    /// Returns the allocated cache lines of counter memory, including those in front that hold the stamps (marks of the
    /// lines that were written).
    pub(crate) fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Returns the number of cache lines, at the start of the allocated counter memory, that hold stamps (marks of the
    /// lines that were written) and no counters; 0 if no stamps are kept.
    pub(crate) fn front(&self) -> usize {
        self.front
    }

    /// Converts the index of a counter's word to its index among all words of the allocated cache lines, including
    /// those in front with the stamps (marks of the lines that were written).
    #[inline(always)]
    pub(crate) fn slot(&self, index: usize) -> usize {
        self.front * CHUNK_WORDS + index
    }

    /// Returns a reference to these cache lines of counter memory with all that updates of their words need.
    #[inline(always)]
    pub(crate) fn words(&self) -> StampedWords<'_> {
        let (first, area) = self.lines.words().handle_and_area();
        let (front_words, epoch) = (self.slot(0), (&raw const *self.epoch).cast());
        StampedWords { stamped: self, first, area, front_words, words: self.stamped_words, epoch }
    }

    #[cold]
    #[inline(never)]
    fn add_slow(&self, index: usize, value: u64) {
        self.update_slow(index, &[value], |word, stamps| {
            // SAFETY: as in [`StampedWords::add`].
            unsafe { rseq::add_stamped(word.base.as_ptr(), word.table.as_ptr(), stamps, value) }
        });
    }

    /// Tries a section again after it failed, as `Handle::add_slow` does, then adds to the fallback cells, which folds
    /// always read.
    fn update_slow(&self, index: usize, deltas: &[u64], section: impl Fn(Handle, Stamps) -> bool) {
        let Some((word, stamps)) = self.words().stamped(index) else { return };
        let reservation = word.reservation();
        for _ in 0..rseq::TRIES {
            if !reservation.announce_current() {
                break;
            }
            if section(word, stamps) {
                return;
            }
        }
        for (item, &delta) in deltas.iter().enumerate().filter(|(_, delta)| **delta != 0) {
            if let Some(word) = self.lines.word(self.slot(index + item)) {
                word.add_to_fallback(delta);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn commit_slow<const N: usize>(&self, first: usize, deltas: &[u64; N]) {
        self.update_slow(first, deltas, |word, stamps| {
            // SAFETY: as in [`StampedWords::commit`].
            unsafe { rseq::commit_stamped(word.base.as_ptr(), word.table.as_ptr(), stamps, deltas) }
        });
    }

    /// Adds `value` to the counter in word `index` on a synthetic CPU (one that this kernel cannot have) and stamps its
    /// line as written; returns `false` if the CPU has no unit (memory for words). The arena's lock has to be held,
    /// which makes the caller the only writer.
    pub(crate) fn add_on_synthetic_locked(&self, index: usize, cpu: usize, value: u64) -> bool {
        if self.front == 0 {
            return self.lines.add_on_synthetic_locked(index, cpu, value);
        }
        let head = self.lines.handle();
        let Some(displacement) = head.reservation().announce_to_readers(cpu) else { return false };
        let epoch = self.epoch.0.load(Ordering::Acquire);
        head.at(displacement).store(epoch, Ordering::Release);
        self.stamp(displacement, index / CHUNK_WORDS).store(epoch as u8, Ordering::Release);
        self.lines.add_on_synthetic_locked(self.slot(index), cpu, value)
    }

    /// Returns the stamp of a line in the unit at a displacement.
    fn stamp(&self, displacement: usize, line: usize) -> &AtomicU8 {
        let address = self.stamps_at(displacement) + line;
        // SAFETY: a byte of the piece's front, which sections write by stores of one byte.
        unsafe { &*std::ptr::with_exposed_provenance(address) }
    }

    /// Returns the address of the stamps in the unit at a displacement.
    pub(super) fn stamps_at(&self, displacement: usize) -> usize {
        self.lines.handle().base.addr().get().wrapping_add(displacement) + CHUNK_BYTES
    }

    /// Returns the latest epoch that a section stamped in the unit at a displacement: all that stamped an earlier one
    /// are over there, and what they stored is visible from now on.
    pub(super) fn latest(&self, displacement: usize) -> u64 {
        self.lines.handle().at(displacement).load(Ordering::Acquire)
    }

    /// Claims the right to read, of these cache lines of counters, only those stamped as written since the last read,
    /// which one reader has at a time; returns `false` if another one has it.
    pub(crate) fn begin_reading(&self) -> bool {
        !self.is_read.swap(true, Ordering::Acquire)
    }

    /// Gives up the right to read, of these cache lines of counters, only those stamped as written since the last read,
    /// so that another reader can claim it.
    pub(crate) fn end_reading(&self) {
        self.is_read.store(false, Ordering::Release);
    }

    /// Starts the next epoch, and returns its number.
    pub(super) fn advance(&self) -> u64 {
        let mut next = self.epoch.0.load(Ordering::Relaxed) + 1;
        if next as u8 == 0 {
            // the stamp of lines that were never written
            next += 1;
        }
        self.epoch.0.store(next, Ordering::SeqCst);
        next
    }
}

/// A reference to [`StampedLines`] with all that updates of their words need: the handle of the first word, the offset of
/// the threads' rseq areas, the number of words, the address of the epoch. By value, as
/// [`LineWords`](super::LineWords); the slow paths are the lines', or each update would store all of this for them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StampedWords<'a> {
    stamped: &'a StampedLines,
    /// The handle of the first word of those in front.
    first: Handle,
    /// The offset of the threads' rseq areas; 0 for lines that are not updated by plain sections.
    area: usize,
    front_words: usize,
    words: usize,
    epoch: *const u8,
}

// SAFETY: as for `Lines`, of which it is a part.
unsafe impl Send for StampedWords<'_> {}
// SAFETY: as above.
unsafe impl Sync for StampedWords<'_> {}

impl<'a> StampedWords<'a> {
    /// Returns the stamped lines that the words are in.
    #[inline(always)]
    pub(crate) fn stamped_lines(self) -> &'a StampedLines {
        self.stamped
    }

    /// Returns the handle of the word `index` and its stamp; `None` where there is no such word, or no stamps are kept.
    #[inline(always)]
    fn stamped(self, index: usize) -> Option<(Handle, Stamps)> {
        let StampedWords { first, area, front_words, words, epoch, .. } = self;
        (index < words).then(|| {
            // SAFETY: as many words lie behind those in front, and are the owner's.
            let word = unsafe { first.word(front_words + index) };
            (word, Stamps { area, head: first.base.as_ptr(), epoch, line: index / CHUNK_WORDS })
        })
    }

    /// Adds `value` to the counter in word `index` and stamps its cache line as written since the last fold.
    #[inline(always)]
    pub(crate) fn add(self, index: usize, value: u64) {
        // beyond the end nothing is added, as the slot lies there, too
        let Some((word, stamps)) = self.stamped(index) else {
            return self.stamped.lines.add(self.front_words + index, value);
        };
        // SAFETY: the invariant of `Handle` is the section's contract, and the front is the piece's.
        if !unsafe { rseq::add_stamped(word.base.as_ptr(), word.table.as_ptr(), stamps, value) } {
            self.stamped.add_slow(index, value);
        }
    }

    /// Adds `deltas` to consecutive counters from word `first` on by one commit (a single store), as [`Lines::commit`]
    /// does, and stamps their cache line as written.
    #[inline(always)]
    pub(crate) fn commit<const N: usize>(self, first: usize, deltas: &[u64; N]) {
        const { assert!(N >= 1 && N <= CHUNK_WORDS) };
        let Some((word, stamps)) = self.stamped(first) else {
            return self.stamped.lines.commit(self.front_words + first, deltas);
        };
        if N == 1 {
            return self.add(first, deltas[0]);
        }
        if first.is_multiple_of(N.next_power_of_two()) {
            // SAFETY: as in `Lines::commit` and in `add`.
            let done =
                unsafe { rseq::commit_stamped(word.base.as_ptr(), word.table.as_ptr(), stamps, deltas) };
            if !done {
                // a copy, as in `Lines::commit`
                let deltas = *deltas;
                self.stamped.commit_slow(first, &deltas);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_lines_are_stamped_as_fit() {
        for chunks in 0..3000 {
            let lines = most_stamped(chunks * CHUNK_WORDS);
            assert!(lines == 0 || with_front(lines) <= chunks, "{chunks} chunks, {lines} lines");
            assert!(with_front(lines + 1) > chunks, "{chunks} chunks, {lines} lines");
        }
    }
}
