//! Words of counters that are statics: without a pool, an owner or an end.
//!
//! Such a word is made by the compiler, as zeros, and gets its slot in the slow path of its first
//! update, which may be in a signal handler, in the middle of the program's allocator, or before `main`:
//! ```text
//! table = 0      counts are in the word `early`, atomically
//! first update:  base := a slot of the last block, by one exchange;  table := its table
//!                fast := base, in the first block and where sections are used
//! then           as any other counter, and `early` stays what it is
//! ```
//! So claiming takes no lock and no heap: a block is a reservation whose books are in a mapping, for all
//! CPU numbers that the kernel can have, and slots are given out by a number that goes up. What cannot be
//! claimed (nobody looked for rseq yet, no memory) is counted in `early`, and claimed by a later update.
//! A claimed word is striped on a machine without rseq.
//!
//! A read adds both. Updates of before the claim are in `early` for ever, so nothing is moved, and no
//! reader can see a count twice or not at all.

use super::atomics::Room;
use super::handle::Handle;
use super::layout::Layout;
use super::mapping::{Mapping, PAGE};
use super::reservation::Reservation;
use super::slabs::Growth;
use super::supply::UnitSupply;
use crate::cpu::CpuSet;
use crate::errno;
use crate::error::Error;
use crate::rseq::{self, FirstBlock, HandleTag, TAG_MASK};
use crate::sys::small_cpu_bound;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Bytes of a unit of a block.
const UNIT_BYTES: usize = rseq::HOME_BYTES;
/// Slots of a block.
const SLOTS: usize = UNIT_BYTES / 8;
/// Blocks of a process: 262 144 counters.
const BLOCKS: usize = 64;

static BLOCK: [AtomicPtr<Reservation>; BLOCKS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; BLOCKS];
/// The number of slots given out.
static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// The first block's table and place. One for all of its words, so that a loop need not load them again with each
/// update.
///
/// Home words in the block are loaded relaxed: their users need nothing that was stored before, as the memory was there,
/// zeroed and writable, and the table says for which CPUs.
static FIRST: FirstBlock = FirstBlock::unknown();
static GROWTH: Growth = Growth::new();
static SUPPLY: UnitSupply = UnitSupply::none();

/// The variable part of a static counter (a `static` of the program): its handle, set by the first update that can get
/// per-CPU words, and a word that is added to atomically until then. Part of the C ABI.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct StaticWord {
    /// The home word where sections in line may be used, else null.
    fast: AtomicPtr<u8>,
    base: AtomicPtr<u8>,
    table: AtomicPtr<u8>,
    early: AtomicU64,
}

impl StaticWord {
    pub(crate) const fn new() -> StaticWord {
        StaticWord {
            fast: AtomicPtr::new(std::ptr::null_mut()),
            base: AtomicPtr::new(std::ptr::null_mut()),
            table: AtomicPtr::new(std::ptr::null_mut()),
            early: AtomicU64::new(0),
        }
    }

    fn handle(&self) -> Option<Handle> {
        // the table first: with it comes the base
        let table = NonNull::new(self.table.load(Ordering::Acquire))?;
        Some(Handle { base: NonNull::new(self.base.load(Ordering::Relaxed))?, table })
    }

    /// Adds `value` to the static counter (a `static` of the program) in an rseq critical section; returns `false` if
    /// that did not commit, and [`add_slow`](Self::add_slow) has to be called.
    #[inline(always)]
    #[must_use]
    pub(crate) fn try_add(&'static self, value: u64) -> bool {
        // SAFETY: the table is null or that of a block, which is never dropped; its units lie below the home unit, of
        // which the home word is one.
        unsafe { rseq::add_to_static(&self.fast, &FIRST, value) }
    }

    /// Adds 1 to the static counter (a `static` of the program) in an rseq critical section; returns `false`, with
    /// nothing added, if that did not commit (rseq not in use, no words yet, or aborted by the kernel).
    #[inline(always)]
    #[must_use]
    pub(crate) fn try_inc(&'static self) -> bool {
        // SAFETY: as in `try_add`.
        unsafe { rseq::inc_static(&self.fast, &FIRST) }
    }

    /// Subtracts 1 from the static counter (a `static` of the program) in an rseq critical section; returns `false`,
    /// with nothing subtracted, if that did not commit (rseq not in use, no words yet, or aborted by the kernel).
    #[inline(always)]
    #[must_use]
    pub(crate) fn try_dec(&'static self) -> bool {
        // SAFETY: as in `try_add`.
        unsafe { rseq::dec_static(&self.fast, &FIRST) }
    }

    /// Adds `value` to the static counter after its rseq critical section did not commit; first allocates per-CPU words
    /// if it has none. Async-signal-safe.
    #[cold]
    #[inline(never)]
    pub(crate) fn add_slow(&self, value: u64) {
        let Some(handle) = self.handle().or_else(|| self.claim()) else { return self.add_early(value) };
        if self.fast.load(Ordering::Relaxed).is_null() {
            self.make_fast(handle);
        }
        handle.add_again(value);
    }

    /// Lets updates go by sections in line, if the slot is one for them: of the first block.
    #[cold]
    fn make_fast(&self, handle: Handle) {
        // SAFETY: as in `blocks`.
        let Some(first) = (unsafe { BLOCK[0].load(Ordering::Acquire).as_ref() }) else { return };
        if first.table(HandleTag::Rseq) == handle.table {
            FIRST.set(handle.table.as_ptr(), first.home(0).as_ptr());
            self.fast.store(handle.base.as_ptr(), Ordering::Release);
        }
    }

    /// Adds `value` atomically to the word that serves before the static counter has per-CPU words. Async-signal-safe.
    pub(crate) fn add_early(&self, value: u64) {
        self.early.fetch_add(value, Ordering::Relaxed);
    }

    /// Sets the value of a static counter or gauge (a `static` of the program) by adding the difference to its early
    /// word, which CPUs share. Other sets have to be excluded; updates need not be.
    pub(crate) fn set_alone(&self, value: u64) {
        // A reader that sees this sees all words as new as they were read here: otherwise it would take away what it
        // does not see.
        self.early.fetch_add(value.wrapping_sub(self.read()), Ordering::Release);
    }

    /// Raises a static maximum (a `static` of the program) to `value` if it is smaller, atomically in its early word:
    /// static extremes never get per-CPU words, and a minimum keeps complements. Async-signal-safe.
    #[inline]
    pub(crate) fn raise(&self, value: u64) {
        // most values are no records: without a store the line stays in the caches of all CPUs
        if self.early.load(Ordering::Relaxed) < value {
            self.early.fetch_max(value, Ordering::Relaxed);
        }
    }

    /// Returns the early word, which CPUs share: the value of a static extreme (a `static` of the program; of a minimum
    /// the complement), or what a static counter counted without per-CPU words. Async-signal-safe.
    pub(crate) fn early(&self) -> u64 {
        self.early.load(Ordering::Relaxed)
    }

    /// Returns the early word, which has the value of a static extreme (a maximum or, as a complement, a minimum that
    /// is a `static` of the program), and resets it to 0. Async-signal-safe.
    pub(crate) fn take_early(&self) -> u64 {
        self.early.swap(0, Ordering::Relaxed)
    }

    /// Returns the static counter's value: what was counted atomically, and the sum over the CPUs. Async-signal-safe.
    pub(crate) fn read(&self) -> u64 {
        // before the words, for `set_alone`
        let early = self.early.load(Ordering::Acquire);
        early.wrapping_add(self.handle().map_or(0, Handle::read))
    }

    /// Returns the part of the static counter's value that one CPU counted.
    pub(crate) fn read_cpu(&self, cpu: usize) -> u64 {
        self.handle().map_or(0, |handle| handle.read_cpu(cpu))
    }

    /// Returns the part of the static counter's value that was counted atomically, in words that CPUs share.
    pub(crate) fn fallback_part(&self) -> u64 {
        let early = self.early.load(Ordering::Relaxed);
        early.wrapping_add(self.handle().map_or(0, Handle::fallback_part))
    }

    /// Returns the tag that says how the static counter is updated; `None` if it has no per-CPU words and its next
    /// update cannot get any. Async-signal-safe, but for `errno`.
    pub(crate) fn tag(&self) -> Option<HandleTag> {
        match self.table.load(Ordering::Acquire).addr() & TAG_MASK {
            0 if cfg!(feature = "uniprocessor") => None,
            0 => tag_at_once(),
            tag if tag == HandleTag::Striped as usize => Some(HandleTag::Striped),
            _ => Some(HandleTag::Rseq),
        }
    }

    /// Gives the word a slot, if there is one to be had.
    ///
    /// Several threads may be at it, and a fork may leave it half done: whoever stores the base first
    /// has chosen the slot, and every thread that comes finishes the work.
    fn claim(&self) -> Option<Handle> {
        if cfg!(feature = "uniprocessor") {
            return None;
        }
        let chosen = NonNull::new(self.base.load(Ordering::Acquire));
        let base = match chosen {
            Some(base) => base,
            None => {
                let (base, number) = take_slot()?;
                let null = std::ptr::null_mut();
                let first =
                    self.base.compare_exchange(null, base.as_ptr(), Ordering::AcqRel, Ordering::Acquire);
                match first {
                    Ok(_) => base,
                    Err(theirs) => {
                        // back, if nobody has taken another one since
                        let after = number + 1;
                        let _ = TAKEN.compare_exchange(after, number, Ordering::AcqRel, Ordering::Relaxed);
                        NonNull::new(theirs)?
                    }
                }
            }
        };
        let address = base.addr().get();
        let table = blocks().find(|block| block.slot_of(address).is_some())?.table(tag_at_once()?);
        // one tag for all: sections and atomic updates must not share a word
        let null = std::ptr::null_mut();
        let first = self.table.compare_exchange(null, table.as_ptr(), Ordering::AcqRel, Ordering::Acquire);
        let table = first.map_or_else(NonNull::new, |_| Some(table))?;
        Some(Handle { base, table })
    }
}

/// Returns the tag of words that are claimed now; `None` as long as sections may come and cannot be used yet.
/// Async-signal-safe, but for `errno`.
fn tag_at_once() -> Option<HandleTag> {
    match rseq::offset_at_once() {
        Some(_) => Some(HandleTag::Rseq),
        None => rseq::is_ruled_out().then_some(HandleTag::Striped),
    }
}

/// Returns the address, with tag bits, of the table that inline updates of static counters use: for each CPU the
/// distance in bytes (64 bits) to its words; null before one exists.
pub(crate) fn static_table() -> *mut u8 {
    FIRST.table()
}

fn blocks() -> impl Iterator<Item = &'static Reservation> {
    // SAFETY: null, or a block, which is never dropped.
    BLOCK.iter().map_while(|block| unsafe { block.load(Ordering::Acquire).as_ref() })
}

/// Returns the home word of a slot that is the caller's from now on, and the slot's number.
fn take_slot() -> Option<(NonNull<u8>, usize)> {
    loop {
        let number = TAKEN.load(Ordering::Acquire);
        let place = BLOCK.get(number / SLOTS)?;
        // SAFETY: as in `blocks`.
        let there = unsafe { place.load(Ordering::Acquire).as_ref() };
        let Some(block) = there else {
            if grow(place) {
                continue;
            }
            return None;
        };
        if TAKEN.compare_exchange(number, number + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return Some((block.home(number % SLOTS), number));
        }
    }
}

/// Makes a block at a place that has none. Returns `true` if there is one now.
fn grow(place: &AtomicPtr<Reservation>) -> bool {
    let errno = Error::last_errno();
    let usable = tag_at_once().is_some();
    crate::sys::set_errno(errno);
    // no reason to ask less often: it costs little, and changes when a pool is made
    if !usable {
        return false;
    }
    let is_there = || !place.load(Ordering::Acquire).is_null();
    GROWTH.try_grow(is_there, |_| {
        let refused = Error::OutOfMemory { bytes: UNIT_BYTES, errno: errno::ENOMEM };
        let (books, block) = make_block().ok_or(refused)?;
        let null = std::ptr::null_mut();
        let first = place.compare_exchange(null, block.as_ptr(), Ordering::AcqRel, Ordering::Acquire);
        if first.is_ok() {
            std::mem::forget(books);
        } else {
            // a fork in a signal handler can let a second thread in
            // SAFETY: made just now, and nobody else's; its books go after it.
            unsafe { block.drop_in_place() };
        }
        Ok(())
    })
}

/// Makes a block and the mapping with its books.
fn make_block() -> Option<(Mapping, NonNull<Reservation>)> {
    let cpus = small_cpu_bound()?;
    // single words: no event is ever committed here
    let layout = Layout {
        cpus: CpuSet::new(),
        owned: (0, 0),
        movable: false,
        unit_bytes: UNIT_BYTES,
        width: 8,
        huge_pages: false,
        home_in_use: false,
    };
    let books = Mapping::new(Room::bytes(Reservation::words_for(cpus)).next_multiple_of(PAGE)).ok()?;
    // SAFETY: just made; it is dropped after the block, or never.
    let mut room = unsafe { Room::new(&books) };
    let block = Reservation::within(&mut room, layout, cpus, &raw const SUPPLY)?;
    // SAFETY: made just now.
    let made = unsafe { block.as_ref() }.make_slots_writable(SLOTS);
    if made.is_err() {
        // SAFETY: nobody else's; its books go after it.
        unsafe { block.drop_in_place() };
        return None;
    }
    Some((books, block))
}

/// The number of memory blocks, their addresses, and the number of slots (places of counters) that all static counters
/// (`static`s of the program) of the process use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StaticsInUse {
    /// The number of memory blocks.
    pub(crate) blocks: usize,
    /// The number of slots that static counters have taken.
    pub(crate) slots: usize,
    /// The address ranges of the memory blocks.
    pub(crate) addresses: Vec<std::ops::Range<usize>>,
}

/// Returns the number of memory blocks, their addresses, and the number of slots (places of counters) that all static
/// counters (`static`s of the program) of the process use.
pub(crate) fn statics_in_use() -> StaticsInUse {
    let addresses: Vec<_> = blocks().map(|block| block.mapping().addresses()).collect();
    StaticsInUse { blocks: addresses.len(), slots: TAKEN.load(Ordering::Relaxed), addresses }
}
