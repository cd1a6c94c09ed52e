//! Folds that read what was written since the last one.
//!
//! ```text
//! fold(k):                                          done[c]: all updates of earlier epochs on c are in the sums
//!   epoch := k
//!   for each CPU c that counts
//!     over := latest of c, or k if sections were ended since
//!     for each line l
//!       if its stamp on c is done[c] or later, or looks so
//!         l is read after this, on all CPUs that count by then
//!     done[c] := over
//! ```
//! An update that happened before the fold has an epoch e and left its stamp, e or later. Was it not in the sum that
//! an earlier fold made, then `done[c]` was at most e after that: the fold had loaded `over` before it looked, so all
//! updates of epochs before `over` were to be seen. Therefore the line's stamp is `done[c]` or later now, and the line
//! is read.
//!
//! A CPU that has not counted since the fold began keeps what it wrote in its latest epoch from being done, and that
//! is read once more. Where it is much, all sections are ended by `membarrier`: at most one interruption in a fold of
//! each CPU that runs this program.
//!
//! A CPU that begins to count meanwhile is not read where the CPUs were found before, nor has it a `done`: the next
//! fold reads all that it wrote.
//!
//! Stamps are the last bytes of epochs. A line that was stamped 256 epochs ago may look new, and is read in vain; with
//! 255 or more epochs since `done[c]` all lines that ever were written are.
//!
//! Fallback cells and baselines have no stamps: where they are in use they are compared with what they contributed to
//! the sums. Were they compared with an earlier load of the same words, then a value that was set between the two and
//! set back after the fold would look unchanged, and the sum would keep it.
//!
//! A line that one CPU wrote is read on all. To keep a copy of each CPU's lines, and add differences, was slower
//! than a fold of all lines with 5 % of the lines written at random: 45 ns a line against 1.8, as each takes two
//! misses of the cache and of the table of pages (AMD EPYC, family 26).
//!
//! Lines are read run by run, each on all CPUs. CPU by CPU, all of its lines with those ahead being fetched, was slower:
//! 590 ns a group against 400 with 5 % of the groups written, whatever was fetched how far ahead (AMD EPYC, family 25
//! model 1).

use super::fold::{TILE, Tile};
use super::layout::CHUNK_WORDS;
use super::stamps::StampedLines;
use crate::rseq;
use std::sync::atomic::Ordering;

mod scan;

use scan::{Changed, Window};

/// Lines that are read once more rather than that sections are ended.
const READ_AGAIN: usize = 16;

/// State of one CPU in a series of folds.
#[derive(Debug)]
struct CpuState {
    cpu: usize,
    displacement: usize,
    /// Updates of earlier epochs are in the sums.
    done: u64,
}

/// The state of a series of folds (reads that sum over the CPUs) of the rows (groups of counters) in one piece of a
/// [`TrackedGroupArray`](crate::TrackedGroupArray): each rereads only cache lines stamped as written since the last
/// one.
#[derive(Debug)]
pub(crate) struct StampedFold {
    cpus: Vec<CpuState>,
    /// Lines of a row.
    chunks: usize,
    /// Lines of all rows.
    lines: usize,
    /// By word: what fallback cell and baseline contributed to the sum; empty before the first is in use.
    common: Vec<u64>,
    changed: Changed,
    /// Lines that the last fold read; `None` before the first.
    read: Option<usize>,
}

impl StampedFold {
    /// Creates the state of a series of folds (reads) of `rows` rows (groups of counters of an array) of `chunks` cache
    /// lines each; nothing is read yet.
    pub(crate) fn new(chunks: usize, rows: usize) -> StampedFold {
        StampedFold {
            cpus: Vec::new(),
            chunks,
            lines: rows * chunks,
            common: Vec::new(),
            changed: Changed::new(rows * chunks),
            read: None,
        }
    }

    /// Returns the number of cache lines of counters that the last fold (read of what changed) reread; each was read on
    /// all active CPUs.
    pub(crate) fn lines_read(&self) -> usize {
        self.read.unwrap_or(0)
    }

    /// Rereads the cache lines written since the last fold (read) of the same `piece` (part of an array's memory), and
    /// passes the sums over the CPUs of the lines that may have changed (at first all) to `sink(row, index of the first
    /// word in it, sums)`; other lines of a row (group of counters) did not change, or come in other calls.
    pub(crate) fn fold(&mut self, piece: &StampedLines, mut sink: impl FnMut(usize, usize, &[u64])) {
        let epoch = piece.advance();
        self.meet_cpus(piece);
        let over = self.over(piece, epoch);
        let window = |cpu: &CpuState| Window::new(piece.stamps_at(cpu.displacement), cpu.done, epoch);
        let windows: Vec<Window> = self.cpus.iter().map(window).collect();
        self.changed.clear();
        if self.read.is_none() {
            self.changed.insert_all();
        } else {
            // SAFETY: the stamps of the piece's lines, which are whole cache lines.
            unsafe { self.changed.find(&windows) };
        }
        self.compare_common(piece);
        // behind `meet_cpus`: of a CPU that has a state all counts are read
        let mut units = None;
        let (mut tile, mut read) = (Tile::new(), 0);
        let mut runs = self.changed.runs(TILE, piece.lines().piece_lines()).peekable();
        while let Some(run) = runs.next() {
            let units = units.get_or_insert_with(|| piece.lines().gather_units());
            let next = runs.peek().map(|next| piece.front() + next.start);
            let sums = tile.zeroed(run.len());
            let (first, common, words) =
                (run.start * CHUNK_WORDS, &mut self.common, self.lines * CHUNK_WORDS);
            let note = |before, contributions: &[u64]| {
                common.resize(words, 0);
                let start: usize = first + before;
                common[start..start + contributions.len()].copy_from_slice(contributions);
            };
            piece.lines().fold_in_tile_noting(units, piece.front() + run.start, next, sums, note);
            let mut line = run.start;
            while line < run.end {
                let (row, first) = (line / self.chunks, line % self.chunks);
                let end = run.end.min(line - first + self.chunks);
                let words = (line - run.start) * CHUNK_WORDS..(end - run.start) * CHUNK_WORDS;
                sink(row, first * CHUNK_WORDS, &sums[words]);
                line = end;
            }
            read += run.len();
        }
        self.read = Some(read);
        for (cpu, over) in self.cpus.iter_mut().zip(over) {
            cpu.done = over;
        }
    }

    /// Gives each CPU that counts now a state.
    fn meet_cpus(&mut self, piece: &StampedLines) {
        let units = piece.lines().handle().reservation().cpus();
        let mut place = 0;
        // in the order of the mask, as they are here, and nobody leaves it
        units.walk().for_each_cpu(|cpu| {
            let Some(displacement) = units.displacement(cpu) else { return };
            if self.cpus.get(place).is_none_or(|state| state.cpu != cpu) {
                // what it counted is stamped, as it came after the piece; or nothing was read of the piece yet
                self.cpus.insert(place, CpuState { cpu, displacement, done: 0 });
            }
            place += 1;
        });
    }

    /// Returns for each CPU the epoch of which all earlier ones are over there: no section commits any more that
    /// stamps one, and what those stored is visible.
    fn over(&self, piece: &StampedLines, epoch: u64) -> Vec<u64> {
        // where nobody counted since sections were ended it is an earlier one
        let latest = |cpu: &CpuState| piece.latest(cpu.displacement).max(cpu.done);
        let mut over: Vec<u64> = self.cpus.iter().map(latest).collect();
        let is_worth_it = self.lines_read() > READ_AGAIN
            && self.cpus.iter().zip(&over).any(|(cpu, over)| *over < epoch && latest(cpu) < epoch);
        if is_worth_it && rseq::end_sections().is_ok() {
            // synthetic CPUs have no sections, but writers that hold this lock
            piece.lines().arena().while_locked(|| over.fill(epoch));
        }
        over
    }

    /// Adds the lines whose baselines and fallback cells are not what contributed to the sums.
    fn compare_common(&mut self, piece: &StampedLines) {
        let first = piece.lines().handle();
        let reservation = first.reservation();
        // in this order, as in other folds
        let baselines = reservation.baselines_in_use();
        let homes = reservation.homes_in_use();
        if !baselines && !homes {
            return;
        }
        self.common.resize(self.lines * CHUNK_WORDS, 0);
        for (index, &common) in self.common.iter().enumerate() {
            // SAFETY: a word of the piece.
            let word = unsafe { first.word(piece.slot(index)) };
            let baseline = if baselines {
                word.at(reservation.baseline_displacement()).load(Ordering::Acquire)
            } else {
                0
            };
            let home = if homes { word.at(0).load(Ordering::Acquire) } else { 0 };
            if common != baseline.wrapping_add(home) {
                self.changed.insert(index / CHUNK_WORDS);
            }
        }
    }
}

// with sections, which a build for one CPU has not
#[cfg(all(test, not(feature = "uniprocessor")))]
mod tests {
    use super::*;
    use crate::placement::Pool;
    use crate::topology::Topology;

    const LINES: usize = TILE + 8;

    /// Calls `fold` and stores the first word of each line; sets the last line's to 9 when the first line is passed on,
    /// as another thread could, if that is wanted.
    fn fold(piece: &StampedLines, folds: &mut StampedFold, values: &mut [u64], sets_last: bool) {
        folds.fold(piece, |line, _, sums| {
            values[line] = sums[0];
            if line == 0 && sets_last {
                set(piece, LINES - 1, 9);
            }
        });
    }

    fn set(piece: &StampedLines, line: usize, value: u64) {
        let word = piece.slot(line * CHUNK_WORDS);
        piece.lines().arena().while_locked(|| piece.lines().set_locked(word, value)).expect("in the piece");
    }

    #[test]
    fn a_fold_keeps_a_word_more_for_each_only_where_a_baseline_or_fallback_cell_is_in_use() {
        for uses_home in [false, true] {
            let pool = Pool::builder().build().expect("pool");
            if !StampedLines::fit(pool.arena()) {
                return;
            }
            let piece = StampedLines::take(pool.arena(), LINES).expect("memory");
            let (mut folds, mut values) = (StampedFold::new(1, LINES), vec![0; LINES]);
            piece.words().add(0, 1);
            for _ in 0..3 {
                fold(&piece, &mut folds, &mut values, false);
            }
            // a section that was aborted again and again has left the addition to the fallback cell
            let is_unused = !piece.lines().handle().reservation().homes_in_use();
            assert!(!is_unused || folds.common.capacity() == 0);
            if uses_home {
                piece.lines().handle().add_to_fallback(0);
            } else {
                set(&piece, LINES - 1, 7);
            }
            fold(&piece, &mut folds, &mut values, false);
            assert_eq!(folds.common.len(), LINES * CHUNK_WORDS);
        }
    }

    #[test]
    fn a_value_that_was_set_during_a_fold_and_back_is_read_by_the_next_one() {
        let pool = Pool::builder().build().expect("pool");
        if !StampedLines::fit(pool.arena()) {
            return;
        }
        for was_set_before in [false, true] {
            let piece = StampedLines::take(pool.arena(), LINES).expect("memory");
            let (mut folds, mut values) = (StampedFold::new(1, LINES), vec![0; LINES]);
            if was_set_before {
                set(&piece, 0, 1);
                set(&piece, LINES - 1, 7);
                fold(&piece, &mut folds, &mut values, false);
                set(&piece, 0, 2);
                set(&piece, LINES - 1, 8);
            }
            fold(&piece, &mut folds, &mut values, true);
            assert_eq!(values[LINES - 1], 9, "the first line is read before the last is");
            let back = if was_set_before { 8 } else { 0 };
            set(&piece, LINES - 1, back);
            fold(&piece, &mut folds, &mut values, false);
            assert_eq!(values[LINES - 1], back, "set before: {was_set_before}");
            assert_eq!(values[0], if was_set_before { 2 } else { 0 });
        }
    }

    #[test]
    fn a_value_that_was_set_during_a_fold_is_not_missed_by_what_a_new_cpu_had_counted() {
        let topology = Topology::synthetic(64).build().expect("topology");
        let pool = Pool::builder().topology(topology).build().expect("pool");
        if !StampedLines::fit(pool.arena()) {
            return;
        }
        let piece = StampedLines::take(pool.arena(), LINES).expect("memory");
        let (mut folds, mut values) = (StampedFold::new(1, LINES), vec![0; LINES]);
        let word = (LINES - 1) * CHUNK_WORDS;
        folds.fold(&piece, |line, _, sums| {
            values[line] = sums[0];
            if line == 0 {
                // the fold has found the CPUs that count by now
                let add = || piece.add_on_synthetic_locked(word, 63, 5);
                assert!(piece.lines().arena().while_locked(add));
                set(&piece, LINES - 1, 9);
            }
        });
        assert_eq!(values[LINES - 1], 9, "the baseline is 4, as the CPU has counted 5");
        fold(&piece, &mut folds, &mut values, false);
        assert_eq!(values[LINES - 1], 9);
    }

    #[test]
    fn a_count_in_a_fallback_cell_is_read_by_the_same_fold_and_the_next() {
        let pool = Pool::builder().build().expect("pool");
        if !StampedLines::fit(pool.arena()) {
            return;
        }
        let piece = StampedLines::take(pool.arena(), LINES).expect("memory");
        let (mut folds, mut values) = (StampedFold::new(1, LINES), vec![0; LINES]);
        let add_in_home = |line: usize| {
            let head = piece.lines().handle();
            head.reservation().use_home();
            // SAFETY: a word of the piece.
            unsafe { head.word(piece.slot(line * CHUNK_WORDS)) }.at(0).fetch_add(3, Ordering::Release);
        };
        folds.fold(&piece, |line, _, sums| {
            values[line] = sums[0];
            if line == 0 {
                add_in_home(0);
                add_in_home(LINES - 1);
            }
        });
        assert_eq!((values[0], values[LINES - 1]), (0, 3), "the first line is read before");
        fold(&piece, &mut folds, &mut values, false);
        assert_eq!((values[0], values[LINES - 1]), (3, 3));
    }
}
