//! One statistic: [`Counter`]; many of a kind: [`CounterArray`]; updates that are collected first:
//! [`Batch`].

use crate::cpu::CpuId;
use crate::error::{Error, Result};
use crate::memory::{CHUNK_WORDS, LineWord, Lines, ResolvedHandle, Word, fold_rows};
use crate::pieces::Pieces;
use crate::placement::Pool;
use std::fmt;
use std::ops::Range;

/// A 64-bit statistics counter of which each CPU updates its own cache line; a read sums the CPUs.
///
/// Costs sixteen bytes for the handle, and eight per CPU that counts in its [`Pool`].
///
/// # Arithmetic
/// Modulo 2⁶⁴, so that `dec` and `sub` are the opposites of `inc` and `add`; nothing overflows.
///
/// # Counters that go down
/// A counter that also goes down (connections that are open, bytes in use) can read 2⁶⁴ − 1 or a
/// little less for a moment, although it never was below 0 ([`Gauge`](crate::Gauge) reads it signed). A
/// read is a sum over CPUs, one after the other, and not a moment's value. If a thread increments on
/// CPU 0 after the reader has passed that CPU, moves to CPU 1 and decrements there before the reader
/// arrives, the reader sees the decrement without the increment: 0 − 1. The next read has both. So read
/// such a counter as a signed number, and take what is below 0 for 0:
/// ```
/// use statctr::Counter;
///
/// let open = Counter::new(0)?;
/// open.inc();
/// open.dec();
/// assert_eq!((open.read() as i64).max(0), 0);
/// # Ok::<(), statctr::Error>(())
/// ```
/// A value above the true one is as possible, and does not show. When writers have stopped, or were
/// waited for, a read is exact, as always.
///
/// # Ordering
/// An update is relaxed: it orders nothing else. An update that happens before a read (in the sense
/// of the memory model: same thread, or handed over by a lock, a channel, a join) is in it,
/// whatever CPU made it. Successive reads by one thread of a counter that is only added to never go
/// down.
///
/// # Where updates are allowed
/// Any thread; signal handlers; a forked child, which goes on from its parent's counts in memory of
/// its own. Not in a child of `vfork` or a raw `clone` that shares its parent's memory and thread
/// area: the kernel keeps no CPU number for such a child, and it would write to another CPU's
/// word.
///
/// Threads that a raw `clone` makes with a thread area of their own (`CLONE_SETTLS`) are not
/// registered for rseq. They count atomically where the area's `cpu_id` is −1, as the C library
/// makes it; **an area of zeros says CPU 0, and counts are lost**.
///
/// Children of `_Fork`, and of a raw `clone` that copies memory, run no fork handlers. They may
/// update and read; to make, set, drop or drain anything may wait for ever for a lock that another
/// thread of the parent held.
///
/// A process that CRIU (3.17 and later) restores keeps its counts. CPUs that the new machine has and
/// the old one had not, up to number 8191, count in the fallback cells: exactly, and more slowly. The
/// uniprocessor placement must not come to a machine with a second CPU.
///
/// Source: *Scalable Statistics Counters* (Sarma, Thirumalai, McKenney); Linux `rseq(2)`.
///
/// ```
/// use statctr::Counter;
///
/// let packets = Counter::new(0)?;
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| (0..1000).for_each(|_| packets.inc()));
///     }
/// });
/// assert_eq!(packets.read(), 4000);
/// # Ok::<(), statctr::Error>(())
/// ```
pub struct Counter(Word);

impl Counter {
    /// Creates a counter with the value `initial`, in the process's global pool of counter memory.
    ///
    /// Takes the pool's lock, and now and then maps memory: not for signal handlers. A nonzero
    /// initial value costs one extra word.
    ///
    /// # Errors
    /// Where the pool cannot be made ([`PoolBuilder::build`](crate::PoolBuilder::build)), or
    /// [`Error::OutOfMemory`] for address space.
    pub fn new(initial: u64) -> Result<Counter> {
        Counter::new_in(Pool::global()?, initial)
    }

    /// Creates a counter with the value `initial`, in the counter memory of `pool`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for address space.
    pub fn new_in(pool: &Pool, initial: u64) -> Result<Counter> {
        Word::take(pool.arena(), initial).map(Counter)
    }

    /// Returns the address of the counter's word of one CPU, for code that updates it by itself (the C API). From then
    /// on reads include that CPU. `None` if the CPU has none.
    pub(crate) fn cpu_word(&self, cpu: usize) -> Option<std::ptr::NonNull<u64>> {
        self.0.arena().while_locked(|| self.0.handle().cpu_word_locked(cpu))
    }

    /// Returns the counter's handle together with the offset of threads' rseq areas, so that updates through it load
    /// less; valid as long as the counter lives.
    pub(crate) fn resolved(&self) -> ResolvedHandle {
        ResolvedHandle::new(self.0.handle())
    }

    pub(crate) fn into_word(self) -> Word {
        self.0
    }

    pub(crate) fn from_word(word: Word) -> Counter {
        Counter(word)
    }

    /// Adds 1 to the counter, in the word of the CPU that the thread runs on. About half a nanosecond; never waits;
    /// async-signal-safe.
    #[inline(always)]
    pub fn inc(&self) {
        self.0.handle().inc();
    }

    /// Subtracts 1 from the counter. Cost as [`inc`](Self::inc).
    #[inline(always)]
    pub fn dec(&self) {
        self.0.handle().dec();
    }

    /// Adds `value` to the counter. Cost as [`inc`](Self::inc); back-to-back updates of one counter take the latency of
    /// store-to-load forwarding (4 to 6 cycles).
    #[inline(always)]
    pub fn add(&self, value: u64) {
        self.0.handle().add(value);
    }

    /// Subtracts `value` from the counter. Cost as [`add`](Self::add).
    #[inline(always)]
    pub fn sub(&self, value: u64) {
        self.0.handle().add(value.wrapping_neg());
    }

    /// Starts a batch, which collects updates of the counter in a local variable and adds them at once when it is
    /// dropped.
    #[inline(always)]
    pub fn batch(&self) -> Batch<'_> {
        Batch { counter: self, pending: 0 }
    }

    /// Returns the counter's value: the sum over the CPUs that ever counted, plus the baseline.
    ///
    /// Cost: a cache line per such CPU. Takes no lock and disturbs no writer. Async-signal-safe.
    #[must_use]
    #[inline]
    pub fn read(&self) -> u64 {
        self.0.handle().read()
    }

    /// Sets the counter's value by changing the baseline that reads add; no CPU's word is written.
    ///
    /// An update that runs at the same time is wholly before or wholly after; no later read by a
    /// thread that has seen the new value is below `value` plus what was added since. Not
    /// linearizable: two readers may see a concurrent `set` in different order with updates. Takes
    /// the pool's lock: not for signal handlers.
    pub fn set(&self, value: u64) {
        self.0.arena().while_locked(|| self.0.handle().set_locked(value));
    }

    /// Returns the part of the counter's value that one CPU counted; 0 for a CPU that never counted. Initial values,
    /// and updates in the fallback cell (the shared word for CPUs without a word of their own), belong to no CPU. On
    /// systems other than Linux the library does not know a thread's CPU: there the part is that of the threads whose
    /// number, modulo the number of CPUs, is this one.
    #[must_use]
    pub fn read_cpu(&self, cpu: CpuId) -> u64 {
        self.0.handle().read_cpu(cpu.index())
    }

    /// Returns the part of the counter's value that is in the fallback cell, the shared word that is added to
    /// atomically where no per-CPU word is available; for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn fallback_part(&self) -> u64 {
        self.0.handle().fallback_part()
    }

    /// Adds `value` to the counter on a synthetic CPU, one that the pool's topology claims but this kernel cannot have,
    /// to measure the cost of reads on large machines. Takes the pool's lock.
    ///
    /// # Errors
    /// [`Error::CannotImpersonate`] for a CPU that may be real or that the pool has no unit for.
    pub fn add_on_synthetic(&self, cpu: CpuId, value: u64) -> Result<()> {
        impersonate(cpu, || {
            self.0.arena().while_locked(|| self.0.handle().add_on_synthetic_locked(cpu.index(), value))
        })
    }
}

pub(crate) fn impersonate(cpu: CpuId, add: impl FnOnce() -> bool) -> Result<()> {
    if !Pool::could_be_real(cpu.get()) && add() {
        Ok(())
    } else {
        Err(Error::CannotImpersonate { cpu: cpu.get() })
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counter").field(&self.read()).finish()
    }
}

/// A local sum of updates of a [`Counter`], which is added to the counter when the batch is dropped.
///
/// Reads of the counter do not include updates in the batch before that. They are lost if a batch is leaked
/// (`mem::forget`), or its thread ends without unwinding.
///
/// ```
/// use statctr::Counter;
///
/// let bytes = Counter::new(0)?;
/// {
///     let mut batch = bytes.batch();
///     (0..1000).for_each(|length| batch.add(length));
///     assert_eq!((bytes.read(), batch.pending()), (0, 499_500));
/// }
/// assert_eq!(bytes.read(), 499_500);
/// # Ok::<(), statctr::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "adds nothing before it is dropped"]
pub struct Batch<'a> {
    counter: &'a Counter,
    pending: u64,
}

impl Batch<'_> {
    /// Adds 1 to the batch, a local sum that is added to its counter later.
    #[inline(always)]
    pub fn inc(&mut self) {
        self.add(1);
    }

    /// Adds `value` to the batch, a local sum (modulo 2⁶⁴) that is added to its counter later. One instruction.
    #[inline(always)]
    pub fn add(&mut self, value: u64) {
        self.pending = self.pending.wrapping_add(value);
    }

    /// Returns the sum of the batch's updates that have not been added to its counter yet.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Adds the batch's sum to the counter and empties the batch. Cost as [`Counter::add`].
    #[inline]
    pub fn flush(&mut self) {
        match std::mem::take(&mut self.pending) {
            0 => {}
            pending => self.counter.add(pending),
        }
    }
}

impl Drop for Batch<'_> {
    #[inline]
    fn drop(&mut self) {
        self.flush();
    }
}

/// An array of per-CPU counters that lie side by side and have no handles: eight bytes per counter and CPU, and nothing
/// else.
///
/// ```
/// use statctr::CounterArray;
///
/// let ports = CounterArray::new(65_536, 0)?;
/// if let Some(http) = ports.get(80) {
///     http.inc();
///     assert_eq!(http.read(), 1);
/// }
/// # Ok::<(), statctr::Error>(())
/// ```
#[derive(Debug)]
pub struct CounterArray(Pieces);

/// A reference to one per-CPU counter of a [`CounterArray`], by which it is updated and read.
#[derive(Debug, Clone, Copy)]
pub struct CounterRef<'a> {
    piece: &'a Lines,
    index: usize,
    word: LineWord<'a>,
}

impl CounterArray {
    /// Creates an array of `len` per-CPU counters with the value `initial`, in the process's global pool of counter
    /// memory.
    ///
    /// # Errors
    /// Fails as [`Counter::new`] does.
    pub fn new(len: usize, initial: u64) -> Result<CounterArray> {
        CounterArray::new_in(Pool::global()?, len, initial)
    }

    /// Creates an array of `len` per-CPU counters with the value `initial`, in the counter memory of `pool`.
    ///
    /// # Errors
    /// Fails as [`Counter::new_in`] does.
    pub fn new_in(pool: &Pool, len: usize, initial: u64) -> Result<CounterArray> {
        let arena = pool.arena();
        let take = |words: usize| Lines::take_words(arena, words.div_ceil(CHUNK_WORDS), initial);
        Pieces::take(len, arena.unit_words(), take).map(CounterArray)
    }

    /// Returns the number of counters in the array.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if the array has no counters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a reference to the counter at `index`; `None` if the array is shorter.
    #[must_use]
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<CounterRef<'_>> {
        self.0
            .find_map(index, |piece, index| Some(CounterRef { piece, index, word: piece.plain_word(index)? }))
    }

    /// Returns an iterator over references to all counters of the array, in order.
    pub fn iter(&self) -> impl Iterator<Item = CounterRef<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Reads all counters of the array and stores their values, each summed over the CPUs, in `values`. Goes through
    /// each CPU's memory once, so that it is much cheaper than single reads.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`]; what lies behind the values is left alone.
    pub fn fold_into(&self, values: &mut [u64]) -> Result<()> {
        self.fold_range(0..self.len(), values)
    }

    /// Reads the counters with indices in `range` and stores their values, each summed over the CPUs, in `values`; see
    /// [`fold_into`](Self::fold_into).
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`], and [`Error::OutOfRange`] for a range that goes beyond the array; what lies
    /// behind the values is left alone.
    pub fn fold_range(&self, range: Range<usize>, values: &mut [u64]) -> Result<()> {
        if range.end > self.len() {
            return Err(Error::OutOfRange { index: range.end - 1, len: self.len() });
        }
        let (needed, given) = (range.len(), values.len());
        let values = values.get_mut(..needed).ok_or(Error::BufferTooSmall { needed, given })?;
        self.0.for_each(range, |piece, words, before| {
            let chunks = words.start / CHUNK_WORDS..words.end.div_ceil(CHUNK_WORDS);
            let values = &mut values[before..before + words.len()];
            fold_rows(piece, 0, 1, chunks, |row, _, sums| {
                let first = row * CHUNK_WORDS;
                let (from, to) = (words.start.max(first), words.end.min(first + CHUNK_WORDS));
                values[from - words.start..to - words.start].copy_from_slice(&sums[from - first..to - first]);
            });
        });
        Ok(())
    }
}

impl CounterRef<'_> {
    /// Adds 1 to the counter; see [`Counter::inc`].
    #[inline(always)]
    pub fn inc(self) {
        self.word.inc();
    }

    /// Subtracts 1 from the counter; see [`Counter::dec`].
    #[inline(always)]
    pub fn dec(self) {
        self.word.dec();
    }

    /// Adds `value` to the counter; see [`Counter::add`].
    #[inline(always)]
    pub fn add(self, value: u64) {
        self.word.add(value);
    }

    /// Subtracts `value` from the counter; see [`Counter::sub`].
    #[inline(always)]
    pub fn sub(self, value: u64) {
        self.add(value.wrapping_neg());
    }

    /// Returns the counter's value, the sum over the CPUs; see [`Counter::read`].
    #[must_use]
    pub fn read(self) -> u64 {
        self.piece.read(self.index).unwrap_or(0)
    }

    /// Sets the counter's value; see [`Counter::set`].
    pub fn set(self, value: u64) {
        self.piece.arena().while_locked(|| self.piece.set_locked(self.index, value));
    }

    /// Returns the part of the counter's value that one CPU counted; see [`Counter::read_cpu`].
    #[must_use]
    pub fn read_cpu(self, cpu: CpuId) -> u64 {
        self.piece.read_cpu(cpu.index(), self.index).unwrap_or(0)
    }

    /// Adds `value` to the counter on a synthetic CPU that this kernel cannot have, for measurements; see
    /// [`Counter::add_on_synthetic`].
    ///
    /// # Errors
    /// Fails as [`Counter::add_on_synthetic`] does.
    pub fn add_on_synthetic(self, cpu: CpuId, value: u64) -> Result<()> {
        impersonate(cpu, || {
            let arena = self.piece.arena();
            arena.while_locked(|| self.piece.add_on_synthetic_locked(self.index, cpu.index(), value))
        })
    }
}
