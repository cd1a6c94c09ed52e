//! A growing set of reservations and the slots in them.

use super::depot::Depot;
use super::handle::Handle;
use super::latch::hold_lock;
use super::layout::{CHUNK_BYTES, CHUNK_WORDS, LatchLayout, Layout, PAIR_WORDS, PieceShape};
use super::mapping::{HUGE_PAGE, PAGE};
use super::reservation::Reservation;
use super::slots::{AllocatedSlots, Slots};
use super::supply::UnitSupply;
use crate::cpu::{CpuId, CpuSet, NodeId};
use crate::errno::ENOMEM;
use crate::error::{Error, Result};
use crate::rseq::HandleTag;
use crate::sys::{Guard, Lock, Rank};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Fails where the heap has no room for this many bytes. Collections end the process there, also that of a C program,
/// which would rather have an error.
fn check_heap(bytes: usize) -> Result<()> {
    let mut room: Vec<u8> = Vec::new();
    room.try_reserve_exact(bytes).map_err(|_| Error::OutOfMemory { bytes, errno: ENOMEM })?;
    // or the compiler takes an allocation that nobody uses for one that succeeds
    std::hint::black_box(room.as_mut_ptr());
    Ok(())
}

/// No unit is made smaller than this when address space is short.
const MIN_UNIT_BYTES: usize = 16 << 10;

/// The settings of an arena (a pool's counter memory): layout of per-CPU units, kinds of updates, CPUs to prepare
/// memory for, NUMA nodes.
#[derive(Debug, Clone)]
pub(crate) struct ArenaSettings {
    /// The layout of the reservations of the arena.
    pub(crate) layout: Layout,
    /// The handle tag of single counters.
    pub(crate) counters: HandleTag,
    /// The handle tag of groups.
    pub(crate) groups: HandleTag,
    /// CPUs that movable units are held ready for from the start.
    pub(crate) expected: CpuSet,
    /// The NUMA nodes, where there are several: movable units lie near their CPUs.
    pub(crate) nodes: Vec<(NodeId, CpuSet)>,
}

/// The numbers of reservations (address ranges), bytes of address space and counter words that an arena (a pool's
/// counter memory) takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    /// The number of reservations.
    pub(crate) reservations: usize,
    /// Bytes of reserved address space.
    pub(crate) reserved: usize,
    /// The number of words that counters and groups take.
    pub(crate) words: usize,
}

/// The result of returning free counter memory to the system: the numbers of cache lines and of whole address ranges
/// (reservations) that were returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trimmed {
    /// Chunks whose words are zero again, in every unit.
    pub chunks: usize,
    /// Reservations that were given back whole.
    pub reservations: usize,
}

/// The reservations of a pool, by the address of their memory.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) reservations: BTreeMap<usize, ReservationEntry>,
    pub(super) expected: CpuSet,
    /// Address of the reservation in which a slot was found last.
    hint: usize,
}

#[derive(Debug)]
pub(super) struct ReservationEntry {
    pub(super) reservation: Box<Reservation>,
    pub(super) slots: Slots,
    /// Pieces whose words are not counters each, by their first word.
    pub(super) shapes: BTreeMap<usize, PieceShape>,
}

/// The counter memory of one pool: a growing set of reservations (address ranges with a unit for each CPU). Lives as
/// long as any counter in it.
pub(crate) struct Arena {
    settings: ArenaSettings,
    state: Lock<State>,
    /// Dropped last: blocks stay mapped while there is a reservation.
    supply: UnitSupply,
}

impl std::fmt::Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arena").field("settings", &self.settings).field("usage", &self.usage()).finish()
    }
}

impl Arena {
    pub(crate) fn new(settings: ArenaSettings) -> Arc<Arena> {
        hold_lock();
        let supply = UnitSupply::new(&settings.layout, &settings.nodes);
        let state = State { expected: settings.expected.clone(), ..State::default() };
        Arc::new(Arena { settings, state: Lock::new(Rank::Pool, state), supply })
    }

    pub(super) fn depot(&self) -> Option<&Depot> {
        self.supply.depot()
    }

    pub(super) fn lock(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// Returns the number of updates of the arena's counters that went to the fallback cell (the word that all CPUs add
    /// to atomically) because their CPU had no memory of its own, and `true` if updates may be doing so at present.
    pub(crate) fn shortfalls(&self) -> (u64, bool) {
        self.supply.shortfalls()
    }

    pub(crate) fn settings(&self) -> &ArenaSettings {
        &self.settings
    }

    /// Returns the number of 64-bit counter words in a unit (one CPU's part of an address range for counters), which
    /// limits the size of a group.
    pub(crate) fn unit_words(&self) -> usize {
        self.settings.layout.unit_bytes / 8
    }

    /// Takes a word with the value `initial`; [`free_word`](Self::free_word) takes it back.
    pub(super) fn take_word(self: &Arc<Self>, initial: u64) -> Result<Handle> {
        let mut state = self.state.lock();
        let (taken, handle) = self.take(&mut state, 1, self.settings.counters, Slots::take_word)?;
        if taken.used {
            handle.set_locked(initial);
        } else if initial != 0 {
            handle.store_baseline(initial);
        }
        Ok(handle)
    }

    /// Takes `chunks` chunks in a row and returns what `prepare` makes of their handle while the
    /// lock is held; its first argument is `true` where their words may be other than zero.
    /// [`free_chunks`](Self::free_chunks) takes them back.
    pub(super) fn take_chunks<R>(
        self: &Arc<Self>,
        chunks: usize,
        layout: Option<LatchLayout>,
        tag: HandleTag,
        prepare: impl FnOnce(bool, Handle) -> R,
    ) -> Result<R> {
        let words = chunks.saturating_mul(CHUNK_WORDS);
        if chunks == 0 || u32::try_from(chunks).is_err() || words > self.unit_words() {
            return Err(Error::TooMany { asked: words, limit: self.unit_words() });
        }
        let mut state = self.state.lock();
        let (taken, handle) = self.take(&mut state, words, tag, |slots| slots.take_chunks(chunks))?;
        if let Some(layout) = layout
            && let Some(held) = state.reservations.get_mut(&handle.reservation().address())
        {
            held.shapes.insert(taken.word, PieceShape::Latched(layout));
        }
        Ok(prepare(taken.used, handle))
    }

    /// Takes the words of a floating-point sum, which are zero for every CPU; [`free_pair`](Self::free_pair)
    /// takes them back.
    pub(super) fn take_float_sum(self: &Arc<Self>) -> Result<Handle> {
        self.take_pair(PieceShape::FloatSum, |_| {})
    }

    /// Takes the words of a maximum, which are zero for every CPU; [`free_pair`](Self::free_pair) takes them
    /// back.
    pub(super) fn take_maximum(self: &Arc<Self>) -> Result<Handle> {
        self.take_pair(PieceShape::Maximum, |_| {})
    }

    /// Takes the words of a counter with the value `initial` of which nothing is flushed, all others zero;
    /// [`free_pair`](Self::free_pair) takes them back.
    pub(super) fn take_bounded_sum(self: &Arc<Self>, initial: u64) -> Result<Handle> {
        self.take_pair(PieceShape::BoundedSum, |handle| {
            for index in 0..PAIR_WORDS {
                // SAFETY: the words were taken just now.
                unsafe { handle.word(index) }.at(0).store(0, Ordering::Relaxed);
            }
            handle.store_baseline(0);
            if initial != 0 {
                handle.add_to_fallback(initial);
            }
        })
    }

    fn take_pair(self: &Arc<Self>, shape: PieceShape, prepare: impl FnOnce(Handle)) -> Result<Handle> {
        let mut state = self.state.lock();
        let (taken, handle) = self.take(&mut state, PAIR_WORDS, self.settings.counters, Slots::take_pair)?;
        let reservation = handle.reservation();
        if taken.used {
            reservation.cpus().walk().for_each(|displacement| {
                for index in 0..PAIR_WORDS {
                    // SAFETY: the words were taken just now.
                    unsafe { handle.word(index) }.at(displacement).store(0, Ordering::Relaxed);
                }
            });
        }
        prepare(handle);
        if let Some(held) = state.reservations.get_mut(&reservation.address()) {
            held.shapes.insert(taken.word, shape);
        }
        Ok(handle)
    }

    fn take(
        self: &Arc<Self>,
        state: &mut State,
        words: usize,
        tag: HandleTag,
        take: impl Fn(&mut Slots) -> Option<AllocatedSlots>,
    ) -> Result<(AllocatedSlots, Handle)> {
        self.supply.clear_short();
        let found = |held: &mut ReservationEntry| {
            let taken = take(&mut held.slots)?;
            if let Err(error) = held.reservation.make_slots_writable(taken.word + words) {
                // a few words, or whole chunks
                let given = held.slots.free_chunks(taken.word, words / CHUNK_WORDS)
                    || (taken.word..taken.word + words).all(|word| held.slots.free_word(word));
                debug_assert!(given, "what was taken just now can be given back");
                return Some(Err(error));
            }
            let handle =
                Handle { base: held.reservation.home(taken.word), table: held.reservation.table(tag) };
            Some(Ok((taken, handle)))
        };
        let hint = state.hint;
        if let Some(result) = state.reservations.get_mut(&hint).and_then(found) {
            return result;
        }
        for (address, held) in state.reservations.iter_mut().rev() {
            if let Some(result) = found(held) {
                state.hint = *address;
                return result;
            }
        }
        let address = self.grow(state, words)?;
        let Some(result) = state.reservations.get_mut(&address).and_then(found) else {
            return Err(Error::TooMany { asked: words, limit: self.unit_words() });
        };
        state.hint = address;
        result
    }

    /// Makes another reservation, with smaller units where address space is short, and without huge pages where these
    /// would be smaller than one.
    fn grow(self: &Arc<Self>, state: &mut State, words: usize) -> Result<usize> {
        check_heap(Reservation::heap_bytes(&self.settings.layout))?;
        let mut layout = self.settings.layout.clone();
        let smallest = (words * 8).next_multiple_of(PAGE).max(MIN_UNIT_BYTES);
        let reservation = loop {
            // units that fill huge pages are no even number of pages
            let half = layout.unit_bytes / 2 / PAGE * PAGE;
            match Reservation::new(layout.clone(), &raw const self.supply, Arc::as_ptr(self).cast()) {
                Err(Error::OutOfMemory { .. }) if half >= smallest => {
                    layout.unit_bytes = half;
                    // a whole huge page for each would take as much address space as before
                    layout.huge_pages &= half >= HUGE_PAGE;
                }
                other => break other?,
            }
        };
        if let Some(depot) = self.depot() {
            self.give_blocks_in(&reservation, &state.expected);
            depot.refill();
        }
        let address = reservation.address();
        let slots = Slots::new(reservation.chunks());
        state.reservations.insert(address, ReservationEntry { reservation, slots, shapes: BTreeMap::new() });
        Ok(address)
    }

    pub(crate) fn free_word(&self, handle: Handle) -> bool {
        self.free(handle, |held, word| held.slots.free_word(word))
    }

    pub(crate) fn free_chunks(&self, handle: Handle, chunks: usize) -> bool {
        self.free(handle, |held, word| {
            let freed = held.slots.free_chunks(word, chunks);
            if freed {
                held.shapes.remove(&word);
            }
            freed
        })
    }

    pub(super) fn free_pair(&self, handle: Handle) -> bool {
        self.free(handle, |held, word| {
            let freed = (word..word + PAIR_WORDS).all(|word| held.slots.free_word(word));
            if held.shapes.remove(&word) == Some(PieceShape::BoundedSum) {
                // What was flushed is in a home word, of which the reservation may not know that it is in use: then a
                // baseline of the next owner would not make up for it.
                for index in 0..PAIR_WORDS {
                    // SAFETY: nobody has the words any more, and the lock keeps them free.
                    unsafe { handle.word(index) }.at(0).store(0, Ordering::Relaxed);
                }
            }
            freed
        })
    }

    fn free(&self, handle: Handle, give: impl FnOnce(&mut ReservationEntry, usize) -> bool) -> bool {
        let address = handle.base.addr().get();
        let mut state = self.state.lock();
        let Some((_, held)) = state.reservations.range_mut(..=address).next_back() else { return false };
        held.reservation.slot_of(address).is_some_and(|word| give(held, word))
    }

    /// Runs `change` with the lock of the arena (a pool's counter memory) held, so that no counter is created, dropped
    /// or set meanwhile; returns its result.
    pub(crate) fn while_locked<R>(&self, change: impl FnOnce() -> R) -> R {
        let _state = self.state.lock();
        change()
    }

    pub(crate) fn usage(&self) -> Usage {
        let blocks = self.depot().map(Depot::addresses).unwrap_or_default();
        let reserved = blocks.iter().map(ExactSizeIterator::len).sum();
        let state = self.state.lock();
        state.reservations.values().fold(Usage { reserved, ..Usage::default() }, |usage, held| Usage {
            reservations: usage.reservations + 1,
            reserved: usage.reserved + held.reservation.mapping().len(),
            words: usage.words + held.slots.words(),
        })
    }

    /// Returns the address ranges of all memory of the arena (a pool's counter memory).
    pub(crate) fn addresses(&self) -> Vec<std::ops::Range<usize>> {
        let mut addresses = self.depot().map(Depot::addresses).unwrap_or_default();
        let state = self.state.lock();
        addresses.extend(state.reservations.values().map(|held| held.reservation.mapping().addresses()));
        addresses
    }

    /// Returns the CPUs that counted in the arena (a pool's counter memory) and were not drained (their counts moved to
    /// shared words) since.
    pub(crate) fn active_cpus(&self) -> CpuSet {
        let mut cpus = CpuSet::new();
        for held in self.state.lock().reservations.values() {
            held.reservation.cpus().walk().for_each_cpu(|cpu| cpus.insert(CpuId::new(cpu as u32)));
        }
        cpus
    }

    /// Prefaults the memory of `cpu`'s words of all existing counters in the arena (a pool's counter memory), so that
    /// its updates take no page fault.
    pub(crate) fn prefault(&self, cpu: CpuId) -> Result<()> {
        let state = self.state.lock();
        for held in state.reservations.values() {
            held.reservation.assign(cpu.index());
            held.reservation.populate(cpu.index(), held.slots.used_extent() * CHUNK_BYTES)?;
        }
        Ok(())
    }

    /// Returns the memory of dropped counters in the arena (a pool's counter memory) to the system; the result says how
    /// many cache lines and address ranges.
    pub(crate) fn trim(&self) -> Result<Trimmed> {
        let mut state = self.state.lock();
        self.supply.clear_short();
        let mut trimmed = Trimmed::default();
        let keep = state.hint;
        state.reservations.retain(|&address, held| {
            let keep = address == keep || held.slots.words() > 0;
            trimmed.reservations += usize::from(!keep);
            if !keep {
                held.reservation.give_blocks_back();
            }
            keep
        });
        if let Some(depot) = self.depot() {
            depot.refill();
        }
        for held in state.reservations.values_mut() {
            for (first, chunks) in held.slots.used_runs() {
                // SAFETY: these chunks are free, and the lock keeps them free.
                unsafe { held.reservation.zero(first, chunks)? };
                held.slots.mark_unused(first, chunks);
                trimmed.chunks += chunks;
            }
        }
        Ok(trimmed)
    }

    /// Gives each expected CPU a block in each reservation, where there is memory, and makes others
    /// ready.
    pub(super) fn give_blocks(&self, state: &Guard<'_, State>) {
        for held in state.reservations.values() {
            self.give_blocks_in(&held.reservation, &state.expected);
        }
        if let Some(depot) = self.depot() {
            depot.refill();
        }
    }

    pub(super) fn give_blocks_in(&self, reservation: &Reservation, cpus: &CpuSet) {
        cpus.iter().for_each(|cpu| _ = reservation.assign(cpu.index()));
    }
}
