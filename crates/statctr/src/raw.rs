//! The interface for the C face: handles without owners. Not part of the Rust API.

#![allow(unsafe_code)] // ownership is in the hands of C; each function says what it must keep

mod family;

pub use family::{FamilyKind, RawFamily};

use crate::average::AverageSnapshot;
use crate::counter::Counter;
use crate::description::Description;
use crate::error::{Error, Result};
use crate::gauge::FloatGauge;
use crate::group::Group;
use crate::histogram::Histogram;
use crate::lazy::{LazyGroup, Scope};
use crate::memory::{CHUNK_WORDS, Handle, LatchLayout, Lines, Object, Word};
pub use crate::memory::{RawStatic, StaticKind};
use crate::placement::Mode;
use crate::registry::{BorrowedStatistic, Registry};
use crate::schema::Schema;
use crate::sys::{Guard, Lock, OnceBox, Rank};
use crate::value::{Kind, Source, Value};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Makes the first pool test whether the kernel aborts rseq critical sections, also on machines where that is not
/// tested by default; for tests. With `armed` false the kernel is not told of the tested section, so that the test
/// fails.
pub fn request_kernel_test(armed: bool) {
    crate::rseq::request_test(armed);
}

/// Returns the offset of threads' rseq areas from the thread pointer; `None` if there are none. For tests that
/// unregister a thread.
#[must_use]
pub fn rseq_area() -> Option<isize> {
    crate::rseq::settle();
    crate::rseq::offset()
}

/// Returns the address, with tag bits, of the table that inline updates of static counters use: for each CPU the
/// distance in bytes (64 bits) to its words; null before one exists. Async-signal-safe.
#[must_use]
pub fn static_table() -> *mut u8 {
    crate::memory::static_table()
}

impl RawStatic {
    /// Returns how the static C counter is updated: by rseq, atomically, … (see
    /// [`StaticCounter::mode`](crate::StaticCounter::mode)). Async-signal-safe.
    #[must_use]
    pub fn mode(&self) -> Mode {
        Mode::of_static(self.tag())
    }
}

/// The two words of a C counter (`statctr_t`): address of its home word (which belongs to no CPU), and tagged address
/// of the table that maps CPUs to their words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct RawCounter {
    /// The home word's address.
    pub base: usize,
    /// The table's tagged address; 0 in a counter that was not initialised.
    pub table: usize,
}

impl RawCounter {
    /// The words of a C counter that is not initialised, or was cleaned up: both zero.
    pub const ZERO: RawCounter = RawCounter { base: 0, table: 0 };

    fn of(handle: Handle) -> RawCounter {
        RawCounter {
            base: handle.base.as_ptr().expose_provenance(),
            table: handle.table.as_ptr().expose_provenance(),
        }
    }

    #[inline]
    fn handle(self) -> Option<Handle> {
        let pointer = |address: usize| NonNull::new(std::ptr::with_exposed_provenance_mut(address));
        Some(Handle { base: pointer(self.base)?, table: pointer(self.table)? })
    }

    /// Moves a counter into the two words by which C code owns it.
    #[must_use]
    pub fn from_counter(counter: Counter) -> RawCounter {
        RawCounter::of(counter.into_word().into_handle())
    }

    /// Takes ownership of a counter back from C by its two words; `None` if they are zero (the counter is not
    /// initialised, or was cleaned up).
    ///
    /// # Safety
    /// Zeros, or what [`from_counter`](Self::from_counter) made and nobody took back.
    #[must_use]
    pub unsafe fn into_counter(self) -> Option<Counter> {
        // SAFETY: passed on.
        self.handle().map(|handle| Counter::from_word(unsafe { Word::from_handle(handle) }))
    }

    /// Calls `work` with the counter that C owns and returns its result; `None` if the words are zero (the counter is
    /// not initialised, or was cleaned up).
    ///
    /// # Safety
    /// Zeros, or a counter that nobody takes back meanwhile.
    #[must_use]
    pub unsafe fn with<R>(self, work: impl FnOnce(&Counter) -> R) -> Option<R> {
        // SAFETY: passed on; never dropped here.
        let counter = std::mem::ManuallyDrop::new(unsafe { self.into_counter() }?);
        Some(work(&counter))
    }

    /// Returns the address of a C counter's 64-bit word of one CPU; `None` if the CPU has none, or the counter is not
    /// initialised (its two words are zero).
    ///
    /// # Safety
    /// The contract is that of [`with`](Self::with).
    #[must_use]
    pub unsafe fn cpu_word(self, cpu: usize) -> Option<NonNull<u64>> {
        // SAFETY: passed on.
        unsafe { self.with(|counter| counter.cpu_word(cpu)) }.flatten()
    }

    /// Adds `value` to a C counter: the slow path of the C header's inline rseq critical section. Returns `false` if
    /// the words are zero (the counter is not initialised, or was cleaned up).
    ///
    /// # Safety
    /// The contract is that of [`with`](Self::with).
    #[inline]
    #[must_use]
    pub unsafe fn add(self, value: u64) -> bool {
        self.handle().map(|handle| handle.add(value)).is_some()
    }
}

/// The words of a C group of counters: handle, length in cache lines, and schema (its items and events).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawGroup {
    /// The handle of the first word of the group.
    pub counter: RawCounter,
    /// The schema of the group, owned as by a `Box<Schema>`.
    pub schema: *mut Schema,
    /// The number of chunks (cache lines) that one copy of the items takes.
    pub lines: u32,
    /// 1 where events need a latch: two copies of their line.
    pub twin: u32,
}

// SAFETY: plain words, and what they lead to is for all threads: counter memory, and a schema that nobody changes.
unsafe impl Send for RawGroup {}
// SAFETY: as above; nothing in it changes while it is shared.
unsafe impl Sync for RawGroup {}

impl RawGroup {
    /// Moves a group of counters into the words by which C code owns it.
    #[must_use]
    pub fn from_group(group: Group) -> RawGroup {
        let (lines, schema) = group.into_parts();
        RawGroup::of(&ManuallyDrop::new(lines), Box::into_raw(Box::new(schema)))
    }

    fn of(lines: &Lines, schema: *mut Schema) -> RawGroup {
        let (handle, _, layout) = lines.parts();
        RawGroup {
            counter: RawCounter::of(handle),
            schema,
            lines: lines.item_chunks() as u32,
            twin: u32::from(layout.is_some()),
        }
    }

    #[inline]
    unsafe fn lines(self) -> Option<Lines> {
        let handle = self.counter.handle()?;
        let layout = (self.twin != 0).then_some(LatchLayout { lines: self.lines as usize });
        let chunks = layout.map_or(self.lines, |layout| layout.chunks() as u32);
        // SAFETY: passed on.
        Some(unsafe { Lines::from_parts(handle, chunks, layout) })
    }

    /// Takes ownership of a group of counters back from C by its words; `None` if they are zero (the group is not
    /// initialised, or was cleaned up).
    ///
    /// # Safety
    /// Zeros, or what [`from_group`](Self::from_group) made and nobody took back.
    #[must_use]
    pub unsafe fn into_group(self) -> Option<Group> {
        if self.schema.is_null() {
            return None;
        }
        // SAFETY: passed on; `from_group` made the box.
        unsafe { Some(Group::from_parts(self.lines()?, *Box::from_raw(self.schema))) }
    }

    /// Calls `work` with the group of counters that C owns and returns its result; `None` if the words are zero (the
    /// group is not initialised, or was cleaned up).
    ///
    /// # Safety
    /// Zeros, or a group that nobody takes back meanwhile.
    #[must_use]
    pub unsafe fn with<R>(self, work: impl FnOnce(&Group) -> R) -> Option<R> {
        if self.schema.is_null() {
            return None;
        }
        // SAFETY: passed on; the schema is cloned (a count), the lines are never dropped here.
        let group =
            std::mem::ManuallyDrop::new(unsafe { Group::from_parts(self.lines()?, (*self.schema).clone()) });
        let result = work(&group);
        let (lines, schema) = std::mem::ManuallyDrop::into_inner(group).into_parts();
        std::mem::forget(lines);
        drop(schema);
        Some(result)
    }

    /// Adds `value` to the item (64-bit statistic) in `slot`, a word of a C group: the slow path of the C header's
    /// inline rseq critical section. Returns `false` if there is no such slot, or the group is not initialised (its
    /// words are zero).
    ///
    /// # Safety
    /// The contract is that of [`with`](Self::with).
    #[inline]
    #[must_use]
    pub unsafe fn add(self, slot: usize, value: u64) -> bool {
        // SAFETY: passed on; never dropped here.
        let Some(lines) = (unsafe { self.lines() }).map(std::mem::ManuallyDrop::new) else { return false };
        let there = lines.word(slot).is_some();
        lines.add(slot, value);
        there
    }

    /// Adds `deltas` to the items (64-bit statistics) from `slot` (a word) on of a C group by one commit (a single
    /// store): the slow path of the C header's inline rseq critical section. Returns `false` if the group is not
    /// initialised (its words are zero), or the items are not within one cache line of the group, aligned.
    ///
    /// # Safety
    /// The contract is that of [`with`](Self::with).
    #[inline]
    #[must_use]
    pub unsafe fn commit<const N: usize>(self, slot: usize, deltas: &[u64; N]) -> bool {
        // SAFETY: passed on; never dropped here.
        let Some(lines) = (unsafe { self.lines() }).map(std::mem::ManuallyDrop::new) else { return false };
        if lines.word(slot).is_none() || !slot.is_multiple_of(N.next_power_of_two()) || N > CHUNK_WORDS {
            return false;
        }
        lines.commit(slot, deltas);
        true
    }
}

/// The words of a C histogram: handle of its buckets, and how values map to them.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawHistogram {
    /// The buckets, as a group's items; without a schema.
    pub buckets: RawGroup,
    /// The largest value that has a bucket.
    pub max: u64,
    /// Number of bits that tell buckets apart below the highest one of a value.
    pub bits: u32,
    /// The index of the bucket for values above the largest.
    pub beyond: u32,
}

impl RawHistogram {
    /// The words of a C histogram that is not initialised, or was cleaned up: all zero.
    pub const ZERO: RawHistogram = RawHistogram {
        buckets: RawGroup { counter: RawCounter::ZERO, schema: std::ptr::null_mut(), lines: 0, twin: 0 },
        max: 0,
        bits: 0,
        beyond: 0,
    };

    /// Moves a histogram into the words by which C code owns it.
    #[must_use]
    pub fn from_histogram(histogram: Histogram) -> RawHistogram {
        RawHistogram::of(&ManuallyDrop::new(histogram))
    }

    /// Returns the words by which C code uses a histogram that it does not own.
    fn of(histogram: &Histogram) -> RawHistogram {
        let (lines, (max, bits, beyond)) = histogram.parts();
        RawHistogram { buckets: RawGroup::of(lines, std::ptr::null_mut()), max, bits, beyond }
    }

    /// Takes ownership of a histogram back from C by its words; `None` if they are zero (the histogram is not
    /// initialised, or was cleaned up).
    ///
    /// # Safety
    /// Zeros, or what [`from_histogram`](Self::from_histogram) made and nobody took back.
    #[must_use]
    pub unsafe fn into_histogram(self) -> Option<Histogram> {
        // SAFETY: passed on.
        let lines = unsafe { self.buckets.lines() }?;
        Some(Histogram::from_parts(lines, (self.max, self.bits, self.beyond)))
    }

    /// Calls `work` with the histogram that C owns and returns its result; `None` if the words are zero (the histogram
    /// is not initialised, or was cleaned up).
    ///
    /// # Safety
    /// Zeros, or a histogram that nobody takes back meanwhile.
    #[inline]
    #[must_use]
    pub unsafe fn with<R>(self, work: impl FnOnce(&Histogram) -> R) -> Option<R> {
        // SAFETY: passed on; never dropped here.
        let histogram = ManuallyDrop::new(unsafe { self.into_histogram() }?);
        Some(work(&histogram))
    }
}

/// The word of a C floating-point gauge that a family owns: the address of a gauge on the heap.
#[derive(Debug)]
#[repr(transparent)]
pub struct RawFloatGauge(AtomicPtr<FloatGauge>);

impl RawFloatGauge {
    fn from_gauge(gauge: FloatGauge) -> RawFloatGauge {
        RawFloatGauge(AtomicPtr::new(Box::into_raw(Box::new(gauge))))
    }

    /// Returns the floating-point gauge that this word, by which C code uses a member of a family, leads to.
    #[must_use]
    pub fn get(&self) -> &FloatGauge {
        // SAFETY: from `Box::into_raw`, never changed, and freed by `drop` alone.
        unsafe { &*self.0.load(Ordering::Relaxed) }
    }
}

impl Drop for RawFloatGauge {
    fn drop(&mut self) {
        // SAFETY: as in `get`; nobody else owns it.
        drop(unsafe { Box::from_raw(*self.0.get_mut()) });
    }
}

/// The two words of a C lazy object (four statistics whose per-CPU copies are created when a CPU first writes):
/// addresses of its memory cell and of its pool's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct RawLazy {
    /// The address of the cell of the object; 0 in an object that was not initialised.
    pub cell: usize,
    /// The address of the pool's memory that the cell was taken from.
    pub memory: usize,
}

impl RawLazy {
    /// The words of a C lazy object (four statistics whose per-CPU copies are created when a CPU first writes) that is
    /// not initialised, or was cleaned up: both zero.
    pub const ZERO: RawLazy = RawLazy { cell: 0, memory: 0 };

    /// Moves a lazy object (four statistics whose per-CPU copies are created when a CPU first writes) into the two
    /// words by which C code owns it.
    #[must_use]
    pub fn from_group<S: Scope>(group: LazyGroup<S>) -> RawLazy {
        let (cell, memory) = group.into_object().into_parts();
        RawLazy { cell: cell.as_ptr().expose_provenance(), memory: memory.expose_provenance() }
    }

    unsafe fn object(self) -> Option<Object> {
        let cell = NonNull::new(std::ptr::with_exposed_provenance_mut(self.cell))?;
        let memory = NonNull::new(std::ptr::with_exposed_provenance_mut(self.memory))?;
        // SAFETY: passed on.
        Some(unsafe { Object::from_parts(cell, memory) })
    }

    /// Frees the lazy object (four statistics with per-CPU copies) that C owns; returns `false` if the words by which C
    /// owns it are zero (the object is not initialised, or was cleaned up).
    ///
    /// # Safety
    /// Zeros, or what [`from_group`](Self::from_group) made and nobody dropped or uses.
    #[must_use]
    pub unsafe fn clean_up(self) -> bool {
        // SAFETY: passed on.
        unsafe { self.object() }.map(drop).is_some()
    }

    /// Combines one value with each of the four statistics of the lazy object (with per-CPU copies) that C owns, by
    /// sum, maximum or bitwise or, as its pool says; returns `false` if the words by which C owns it are zero (the
    /// object is not initialised, or was cleaned up). Async-signal-safe.
    ///
    /// # Safety
    /// Zeros, or an object that nobody drops meanwhile.
    #[must_use]
    pub unsafe fn update(self, values: [u64; 4]) -> bool {
        // SAFETY: passed on; never dropped here.
        let object = unsafe { self.object() }.map(std::mem::ManuallyDrop::new);
        object.map(|object| object.update(values)).is_some()
    }

    /// Returns the values of the four statistics of the lazy object that C owns, combined over its instances (CPUs'
    /// copies), and the number of instances; `None` if the words by which C owns it are zero (the object is not
    /// initialised, or was cleaned up).
    ///
    /// # Safety
    /// The contract is that of [`update`](Self::update).
    #[must_use]
    pub unsafe fn read(self) -> Option<([u64; 4], usize)> {
        // SAFETY: as in `update`.
        let object = unsafe { self.object() }.map(std::mem::ManuallyDrop::new)?;
        Some((object.read(), object.instances()))
    }
}

/// A statistic of C in the program's registry: the address that tells it from others, and its registration.
struct BorrowedEntry {
    address: usize,
    number: u64,
    source: Arc<BorrowedStatistic>,
}

type Borrowed = Vec<BorrowedEntry>;

fn borrowed() -> Guard<'static, Borrowed> {
    static BORROWED: OnceBox<Lock<Borrowed>> = OnceBox::new();
    BORROWED.get_or_make(|| Lock::new(Rank::Names, Vec::new())).lock()
}

/// Registers a statistic that C owns in the program's registry; `None` if it is registered already.
fn register_borrowed(
    address: usize,
    description: Description,
    kind: Kind,
    read: impl Fn() -> Value + Send + 'static,
) -> Option<Result<()>> {
    // made before the lock is held
    let registry = Registry::global();
    let source = Arc::new(BorrowedStatistic::new(kind, read));
    let mut borrowed = borrowed();
    if borrowed.iter().any(|entry| entry.address == address) {
        drop(borrowed);
        return None;
    }
    let result = registry.register_until_removed(description, &source);
    let result =
        result.map(|number| borrowed.push(BorrowedEntry { address, number, source: Arc::clone(&source) }));
    // the source has a lock, which must not go while this one is held
    drop(borrowed);
    Some(result)
}

/// Takes the statistic of C with this address out of the program's registry, after which no read of it is under way.
/// Returns `false` if it was not registered.
fn unregister_borrowed(address: usize) -> bool {
    let mut borrowed = borrowed();
    let place = borrowed.iter().position(|entry| entry.address == address);
    let taken = place.map(|place| borrowed.swap_remove(place));
    if let Some(entry) = &taken {
        Registry::global().remove(entry.number);
    }
    drop(borrowed);
    taken.map(|entry| entry.source.end()).is_some()
}

impl RawCounter {
    /// Registers a counter that C owns in the program's registry, as a counter or, if `signed`, as a gauge; `None` if
    /// it is not initialised (its words are zero) or is registered already.
    ///
    /// # Errors
    /// Those of [`Registry::register`].
    ///
    /// # Safety
    /// Zeros, or a counter that nobody takes back before it is unregistered.
    pub unsafe fn register(self, description: Description, signed: bool) -> Option<Result<()>> {
        // SAFETY: passed on; dropped never.
        let counter = ManuallyDrop::new(unsafe { self.into_counter() }?);
        if signed {
            let read = move || Value::Gauge(counter.read().cast_signed());
            return register_borrowed(self.base, description, Kind::Gauge, read);
        }
        register_borrowed(self.base, description, Kind::Counter, move || Value::Counter(counter.read()))
    }

    /// Takes a counter that C owns, or the group or histogram that begins with this one, out of the program's registry,
    /// after which no read of it is under way. Returns `false` if it was not registered.
    #[must_use]
    pub fn unregister(self) -> bool {
        unregister_borrowed(self.base)
    }
}

impl RawGroup {
    /// Registers two items of a group that C owns, a number of values in `slot` and their sum in the next one, in the
    /// program's registry as an average; `None` if the group is not initialised (its words are zero) or is registered
    /// already.
    ///
    /// # Errors
    /// Those of [`Registry::register`], and [`Error::OutOfRange`] where the group can have no event of two items there.
    ///
    /// # Safety
    /// Zeros, or a group of a kind from C that nobody takes back before it is unregistered.
    pub unsafe fn register_average(self, slot: usize, description: Description) -> Option<Result<()>> {
        // SAFETY: passed on; dropped never, and the schema is cloned (a count).
        let group = ManuallyDrop::new(unsafe {
            let schema = self.schema.as_ref()?.clone();
            Group::from_parts(self.lines()?, schema)
        });
        let (index, len) = (slot.saturating_add(1), group.schema().len());
        // an event of two items begins at an even slot
        if index >= len || !slot.is_multiple_of(2) {
            return Some(Err(Error::OutOfRange { index, len }));
        }
        let read = move || {
            // kinds from C number their items by slot
            let values = group.read();
            Value::Average(AverageSnapshot::of(values[index - 1], values[index]))
        };
        register_borrowed(self.counter.base, description, Kind::Average, read)
    }
}

impl RawHistogram {
    /// Registers a histogram that C owns in the program's registry; `None` if it is not initialised (its words are
    /// zero) or is registered already.
    ///
    /// # Errors
    /// Those of [`Registry::register`].
    ///
    /// # Safety
    /// Zeros, or a histogram that nobody takes back before it is unregistered.
    pub unsafe fn register(self, description: Description) -> Option<Result<()>> {
        // SAFETY: passed on; dropped never.
        let histogram = ManuallyDrop::new(unsafe { self.into_histogram() }?);
        let read = move || Value::Histogram(histogram.snapshot());
        register_borrowed(self.buckets.counter.base, description, Kind::Histogram, read)
    }
}

/// Registers a maximum, a minimum or a floating-point gauge that C owns in the program's registry; `None` if it is
/// registered already.
///
/// # Errors
/// Those of [`Registry::register`].
///
/// # Safety
/// It is not dropped before it is unregistered.
pub unsafe fn register_source<S: Source>(source: &S, description: Description) -> Option<Result<()>> {
    // SAFETY: by the caller's promise it lives as long as it is read here.
    let source: &'static S = unsafe { &*std::ptr::from_ref(source) };
    let read = move || {
        let mut only = Value::Counter(0);
        source.values(&mut |_, value| only = value);
        only
    };
    register_borrowed(std::ptr::from_ref(source).addr(), description, source.kind(), read)
}

/// Takes a maximum, a minimum or a floating-point gauge that C owns out of the program's registry, after which no read of
/// it is under way.
/// Returns `false` if it was not registered.
#[must_use]
pub fn unregister_source<S: Source>(source: &S) -> bool {
    unregister_borrowed(std::ptr::from_ref(source).addr())
}
