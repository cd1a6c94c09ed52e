//! Many groups of which a fold reads what was written since the last one: [`TrackedGroupArray`].

use crate::counter::impersonate;
use crate::cpu::CpuId;
use crate::error::{Error, Result};
use crate::group::{fold_pieces, take};
use crate::memory::{CHUNK_WORDS, StampedFold, StampedLines, StampedWords, most_stamped};
use crate::pieces::Pieces;
use crate::placement::Pool;
use crate::schema::{Event, Item, Schema};
use std::ops::Range;

/// An array of groups of counters whose updates mark the cache lines that they write, so that an [`IncrementalFold`]
/// rereads only what changed since the last one.
///
/// For arrays that are much larger than what is written between two folds. An update costs half a nanosecond more
/// (AMD Zen 5) than of a [`GroupArray`](crate::GroupArray), and a CPU has a byte more for each line.
///
/// Marks are kept on x86-64 where counters are updated by rseq in units that do not move, and where no event is wider
/// than a store ([`is_tracked`](Self::is_tracked)). Elsewhere, so always on aarch64, whose stores become visible in any
/// order, the array counts as a `GroupArray` does, and each fold reads all lines: an incremental one costs what
/// [`fold_into`](Self::fold_into) does.
///
/// ```
/// use statctr::{ItemSpec, Schema, TrackedGroupArray};
///
/// let schema = Schema::new([ItemSpec::new("hits"), ItemSpec::new("misses")], &[])?;
/// let hits = schema.item(0).expect("two items");
/// let caches = TrackedGroupArray::new(1000, &schema)?;
/// let mut fold = caches.incremental_fold()?;
/// caches.get(7).expect("a thousand").add(hits, 3);
/// assert_eq!(fold.fold()[14], 3);
/// caches.get(8).expect("a thousand").inc(hits);
/// assert_eq!(fold.fold()[14..17], [3, 0, 1]);
/// # Ok::<(), statctr::Error>(())
/// ```
#[derive(Debug)]
pub struct TrackedGroupArray {
    pieces: Pieces<StampedLines>,
    /// Words of a group in its piece.
    group_words: usize,
    schema: Schema,
}

/// A reference to one group of counters of a [`TrackedGroupArray`], by which it is updated and read.
#[derive(Debug, Clone, Copy)]
pub struct TrackedGroupRef<'a> {
    words: StampedWords<'a>,
    /// The group's first slot among the stamped ones of the piece.
    first: usize,
}

impl TrackedGroupArray {
    /// Creates an array of `len` groups of counters with this schema (their items and events), all zero, in the
    /// process's global pool.
    ///
    /// # Errors
    /// Fails as [`Group::new`](crate::Group::new) does.
    pub fn new(len: usize, schema: &Schema) -> Result<TrackedGroupArray> {
        TrackedGroupArray::new_in(Pool::global()?, len, schema)
    }

    /// Creates an array of `len` groups of counters with this schema (their items and events), all zero, in the counter
    /// memory of `pool`.
    ///
    /// # Errors
    /// Fails as [`Group::new_in`](crate::Group::new_in) does.
    pub fn new_in(pool: &Pool, len: usize, schema: &Schema) -> Result<TrackedGroupArray> {
        let (arena, chunks) = (pool.arena(), schema.chunks());
        let needs_copies = schema.widest_event() > pool.cost().vector_bytes;
        let most = most_stamped(arena.unit_words()) / chunks;
        let pieces = if StampedLines::fit(arena) && !needs_copies && most > 0 {
            Pieces::take(len, most, |groups| StampedLines::take(arena, groups * chunks))?
        } else {
            let most = if needs_copies { 1 } else { arena.unit_words() / (chunks * CHUNK_WORDS) };
            Pieces::take(len, most, |groups| take(pool, schema, groups).map(StampedLines::unstamped))?
        };
        Ok(TrackedGroupArray { pieces, group_words: chunks * CHUNK_WORDS, schema: schema.clone() })
    }

    /// Returns the number of groups of per-CPU counters in the array.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns `true` if the array has no groups of per-CPU counters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the schema (items, and events of items updated together) that all groups of the array have.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns `true` if updates of the array's counters mark the cache lines that they write, so that an
    /// [`IncrementalFold`] rereads only those; if not, each fold reads all lines.
    #[must_use]
    pub fn is_tracked(&self) -> bool {
        self.pieces.iter().all(|(piece, _)| piece.front() > 0)
    }

    /// Returns a reference to the group of per-CPU counters at `index`, by which it is updated and read; `None` if the
    /// array is shorter.
    #[must_use]
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<TrackedGroupRef<'_>> {
        // of each piece by itself, as a loop may then load it once
        let (words, index) = self.pieces.find_map(index, |piece, index| Some((piece.words(), index)))?;
        Some(TrackedGroupRef { words, first: index * self.group_words })
    }

    /// Reads all items (64-bit statistics) of all groups, also unchanged ones, and stores their values, each summed
    /// over the CPUs, in `values`, group by group; see [`GroupArray::fold_into`](crate::GroupArray::fold_into).
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`]; what lies behind the values is left alone.
    pub fn fold_into(&self, values: &mut [u64]) -> Result<()> {
        self.fold_range(0..self.len(), values)
    }

    /// Reads all items (64-bit statistics) of the groups with indices in `range`, also unchanged ones, and stores their
    /// values, each summed over the CPUs, in `values`, group by group; see
    /// [`GroupArray::fold_range`](crate::GroupArray::fold_range).
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`], and [`Error::OutOfRange`] for a range that goes beyond the array; what lies
    /// behind the values is left alone.
    pub fn fold_range(&self, range: Range<usize>, values: &mut [u64]) -> Result<()> {
        fold_pieces(&self.pieces, |piece| (piece.lines(), piece.front()), &self.schema, range, values)
    }

    /// Starts a series of reads of all counters of the array, each of which but the first rereads only the cache lines
    /// that were written since the one before. There can be one series at a time.
    ///
    /// # Errors
    /// [`Error::BadSetting`] while there is another.
    pub fn incremental_fold(&self) -> Result<IncrementalFold<'_>> {
        for (place, (piece, _)) in self.pieces.iter().enumerate() {
            if !piece.begin_reading() {
                self.pieces.iter().take(place).for_each(|(piece, _)| piece.end_reading());
                return Err(Error::BadSetting("another incremental fold of this array is in use"));
            }
        }
        let (items, chunks) = (self.schema.len(), self.schema.chunks());
        let folds = self.pieces.iter().map(|(_, groups)| StampedFold::new(chunks, groups)).collect();
        Ok(IncrementalFold { array: self, folds, values: vec![0; self.len() * items] })
    }
}

/// A series of reads of a [`TrackedGroupArray`], each of which rereads only the cache lines written since the one
/// before (on all CPUs, even if one CPU wrote them).
///
/// Memory, as long as this lives: 8 bytes for each item and a bit for each cache line; on x86-64 8 bytes more for each
/// word of these lines from the first fold on that finds a baseline or a fallback cell in use in the part of the pool in
/// which the array lies, as any counter there was set, made with a value other than 0, or updated on a CPU without a word
/// of its own.
///
/// A value includes every update that happens before the fold, as all reads do. A fold may interrupt each CPU that runs
/// the program once (`membarrier`): where a CPU that wrote many lines does not count at that time. It may wait for
/// whoever makes or sets counters, and never for an update.
#[derive(Debug)]
pub struct IncrementalFold<'a> {
    array: &'a TrackedGroupArray,
    folds: Vec<StampedFold>,
    values: Vec<u64>,
}

impl IncrementalFold<'_> {
    /// Rereads what was written since the last fold (call of this), and returns the present values of all items (64-bit
    /// statistics) of all groups, each summed over the CPUs, group by group, in the order of declaration.
    ///
    /// Cost: a byte for each line of each CPU that counts, and the lines that were written since the last fold, of all
    /// these CPUs; where a baseline or a fallback cell is in use (see [`IncrementalFold`]), also all baselines and
    /// fallback cells of the array. On other processors than x86-64, and wherever the array is not
    /// [tracked](TrackedGroupArray::is_tracked), a fold of all lines.
    pub fn fold(&mut self) -> &[u64] {
        let IncrementalFold { array, folds, values } = self;
        let (items, chunks, schema) = (array.schema.len(), array.schema.chunks(), &array.schema);
        let mut before = 0;
        for ((piece, groups), fold) in array.pieces.iter().zip(folds) {
            let values = &mut values[before * items..(before + groups) * items];
            let store = |group: usize, first: usize, sums: &[u64]| {
                schema.scatter(first, sums, &mut values[group * items..(group + 1) * items]);
            };
            if piece.front() > 0 {
                fold.fold(piece, store);
            } else {
                crate::memory::fold_rows(piece.lines(), 0, chunks, 0..groups, store);
            }
            before += groups;
        }
        values
    }

    /// Returns the values of all items (64-bit statistics) of all groups, each summed over the CPUs, at the last fold
    /// (read of what changed); zeros before the first.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// Returns the number of cache lines that the last fold (read of what changed) reread (each on all CPUs); for
    /// tests.
    #[doc(hidden)]
    #[must_use]
    pub fn lines_read(&self) -> usize {
        self.folds.iter().map(StampedFold::lines_read).sum()
    }
}

impl Drop for IncrementalFold<'_> {
    fn drop(&mut self) {
        self.array.pieces.iter().for_each(|(piece, _)| piece.end_reading());
    }
}

impl TrackedGroupRef<'_> {
    /// Adds 1 to one item (64-bit statistic) of the group, and marks its cache line as written, so that an
    /// [`IncrementalFold`] rereads it; see [`add`](Self::add).
    #[inline(always)]
    pub fn inc(self, item: Item) {
        self.add(item, 1);
    }

    /// Adds `value` to one item (64-bit statistic) of the group, and marks its cache line as written. Cost: that of
    /// [`Group::add`](crate::Group::add) and half a nanosecond. Async-signal-safe.
    #[inline(always)]
    pub fn add(self, item: Item, value: u64) {
        self.words.add(self.first + item.slot(), value);
    }

    /// Adds `deltas` to the `N` items of an event (statistics updated together) by one commit (a single store), and
    /// marks their cache line as written; see [`Group::commit`](crate::Group::commit).
    #[inline(always)]
    pub fn commit<const N: usize>(self, event: Event<N>, deltas: [u64; N]) {
        self.words.commit(self.first + event.slot(), &deltas);
    }

    /// Returns the value of one item (64-bit statistic) of the group, summed over the CPUs.
    #[must_use]
    pub fn read_item(self, item: Item) -> u64 {
        self.words.stamped_lines().lines().read(self.slot(item)).unwrap_or(0)
    }

    /// Returns the part of the value of one item (64-bit statistic) of the group that one CPU counted; 0 if it never
    /// counted.
    #[must_use]
    pub fn read_cpu(self, cpu: CpuId, item: Item) -> u64 {
        self.words.stamped_lines().lines().read_cpu(cpu.index(), self.slot(item)).unwrap_or(0)
    }

    /// Sets the value of one item (64-bit statistic) of the group; see [`Counter::set`](crate::Counter::set). From then
    /// on folds read the baselines of the whole array.
    pub fn set(self, item: Item, value: u64) {
        let lines = self.words.stamped_lines().lines();
        lines.arena().while_locked(|| lines.set_locked(self.slot(item), value));
    }

    /// Adds `value` to an item (64-bit statistic) on a synthetic CPU that this kernel cannot have, for measurements;
    /// see [`Counter::add_on_synthetic`](crate::Counter::add_on_synthetic).
    ///
    /// # Errors
    /// Fails as [`Counter::add_on_synthetic`](crate::Counter::add_on_synthetic) does.
    pub fn add_on_synthetic(self, cpu: CpuId, item: Item, value: u64) -> Result<()> {
        impersonate(cpu, || {
            let stamped = self.words.stamped_lines();
            let arena = stamped.lines().arena();
            let add = || stamped.add_on_synthetic_locked(self.first + item.slot(), cpu.index(), value);
            arena.while_locked(add)
        })
    }

    fn slot(self, item: Item) -> usize {
        self.words.stamped_lines().slot(self.first + item.slot())
    }
}
