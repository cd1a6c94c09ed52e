//! One set of units: its memory, its table of displacements and what readers need to walk it.

use super::active_cpu_mask::ActiveCpuMask;
use super::atomics::Room;
use super::depot::Depot;
use super::layout::{CHUNK_BYTES, CHUNK_WORDS, COMMON_UNITS, LatchLayout, Layout, PieceShape, RESIDUES};
use super::mapping::{HUGE_PAGE, Mapping, PAGE, zero};
use super::signal_safe_lock::SignalSafeLockGuard;
use super::slots::Slots;
use super::supply::UnitSupply;
use super::units::Units;
use super::writable_extent::WritableExtent;
use crate::errno;
use crate::error::{Error, Result};
use crate::rseq::{self, HandleTag, TAG_MASK};
use crate::sys::cpu_bound;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Header in front of a table's first entry. Part of the C ABI and known to the sections.
#[repr(C, align(64))]
struct Header {
    reservation: *const Reservation,
    /// [`NOBODY`], [`SEVERAL`], or the displacement of the one unit that there is to read.
    quick: AtomicUsize,
    /// From the thread pointer to the number of the thread's own unit; 0 where no unit belongs to a thread.
    owned: isize,
    /// While not zero, sections with two copies leave for the fallback cell: a reader is waiting.
    hold: AtomicU64,
    /// Bytes that one vector store of this pool may have.
    width: u32,
    abi: u32,
    /// From the thread pointer to the thread's rseq area.
    area: isize,
    /// Entries for the CPU numbers −2 (registration refused) and −1 (not registered): zero.
    guards: [usize; 2],
}

// the sections, and `statctr.h`, know these offsets on 64-bit machines; elsewhere nobody looks
const _: () = assert!(size_of::<Header>() == 64);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(std::mem::offset_of!(Header, hold) == 64 - 40);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(std::mem::offset_of!(Header, width) == 64 - 32);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(std::mem::offset_of!(Header, area) == 64 - 24);

/// Bumped when the header, the tags or the sections' view of them change.
const ABI: u32 = 1;

/// A table has an entry for every CPU number that any kernel so far can put into an rseq area
/// (`NR_CPUS` of x86-64 is 8192 at most): a process that is restored on a machine with more CPUs
/// (CRIU) finds zeros there, and counts in the fallback cells. Costs 64 KiB of address space.
const MOST_CPUS: usize = 8192;

/// The value of [`Header::quick`] until a unit is first written to.
const NOBODY: usize = 0;
/// The value of [`Header::quick`] once there is more to read than one unit; it is final.
const SEVERAL: usize = 1;

/// Set in a reservation when one of its home words may be other than zero.
const HOME: u32 = 1;
/// Set in a reservation when one of its baselines may be other than zero.
const BASELINE: u32 = 2;

/// An address range for counters, divided into equal units: a home unit that belongs to no CPU, and one for each
/// possible CPU. A counter is a word at the same offset in all of them.
#[derive(Debug)]
pub(crate) struct Reservation {
    mapping: Mapping,
    layout: Layout,
    /// Offset of the home unit from the start of the mapping, in bytes.
    home: usize,
    cpus: Units,
    writable: WritableExtent,
    state: AtomicU32,
    supply: *const UnitSupply,
    /// The address of the arena, which this module only hands on.
    owner: *const (),
}

// SAFETY: the raw pointers lead to the arena and a part of it, which outlives the reservation; all
// else is atomics and memory that the protocols of this crate share between threads.
unsafe impl Send for Reservation {}
// SAFETY: as above.
unsafe impl Sync for Reservation {}

/// Numbers of units in a reservation's own mapping.
struct OwnUnits {
    /// The number of units in front of the home unit.
    below_home: usize,
    /// The number of all units, the home unit included.
    all: usize,
}

impl Reservation {
    /// Returns a bound of the bytes on the heap that a reservation of this layout takes, with its slots and the arena's
    /// entry.
    pub(crate) fn heap_bytes(layout: &Layout) -> usize {
        let last = layout.cpus.last().map_or(0, |cpu| cpu.index() + 1);
        let cpus = cpu_bound().unwrap_or(0).max(last) + layout.owned.0;
        // a displacement twice, bits of several masks
        size_of::<Reservation>()
            + 4 * size_of::<usize>() * cpus
            + Slots::heap_bytes(layout.unit_bytes / CHUNK_BYTES)
    }

    /// Reserves address space for units (CPUs' parts of counter memory) of this layout. Movable units get memory from
    /// `supply`, which must outlive the reservation; `owner` is the arena's address.
    pub(crate) fn new(
        layout: Layout,
        supply: *const UnitSupply,
        owner: *const (),
    ) -> Result<Box<Reservation>> {
        let last = layout.cpus.last().map_or(0, |cpu| cpu.index() + 1);
        let bound = cpu_bound().unwrap_or(0).max(last);
        let cpus = if layout.movable {
            Units::movable(bound)
        } else {
            let mut displacements = vec![0; last + layout.owned.0];
            for (index, cpu) in layout.cpus.iter().enumerate() {
                // one that overflows, on a 32-bit machine, is never used: `reserve` refuses the layout
                displacements[cpu.index()] = (COMMON_UNITS + index).wrapping_mul(layout.stride());
            }
            for (index, unit) in displacements[last..].iter_mut().enumerate() {
                *unit = (COMMON_UNITS + layout.cpus.len() + index).wrapping_mul(layout.stride());
            }
            Units::fixed(&displacements, last)
        };
        let writable = WritableExtent::new(cpus.with_owned());
        let own_units = layout.own_units();
        let own_units = OwnUnits { below_home: 0, all: own_units };
        let reservation = Reservation::reserve(layout, bound, own_units, cpus, writable, supply, owner)?;
        let reservation = Box::new(reservation);
        reservation.write_header();
        Ok(reservation)
    }

    /// Makes a reservation with a unit for each CPU number below `cpus`, without the program's
    /// allocator. Takes [`words_for`](Self::words_for) words of the room. Async-signal-safe.
    ///
    /// The CPUs' units lie below the home unit: displacements are negative, so adding one to the address of a home
    /// word carries, and adding 0, or one to no address, does not ([`rseq::add_to_static`]).
    ///
    /// `supply` must outlive the reservation, and all else of it is in the room: it must never be
    /// dropped after that is gone.
    pub(super) fn within(
        room: &mut Room,
        layout: Layout,
        cpus: usize,
        supply: *const UnitSupply,
    ) -> Option<NonNull<Reservation>> {
        let place = room.place::<Reservation>()?;
        let down = layout.stride().wrapping_neg();
        let units = Units::within(room, cpus, down, down)?;
        let writable = WritableExtent::within(room, cpus)?;
        let own_units = OwnUnits { below_home: cpus, all: COMMON_UNITS + cpus };
        let nobody = std::ptr::null();
        let made = Reservation::reserve(layout, cpus, own_units, units, writable, supply, nobody).ok()?;
        // SAFETY: a place that nobody else has; initialised by the write.
        let reservation = unsafe {
            place.write(made);
            place.as_ref()
        };
        reservation.write_header();
        Some(place)
    }

    /// Returns the number of words that a reservation for so many CPUs takes in a room.
    pub(super) const fn words_for(cpus: usize) -> usize {
        // with what alignment may cost
        size_of::<Reservation>().div_ceil(8) + 1 + Units::words_for(cpus) + ActiveCpuMask::words_for(cpus)
    }

    /// Reserves the address space; the header is still to be written. `bound`: the CPU numbers whose
    /// entries may be written.
    fn reserve(
        layout: Layout,
        bound: usize,
        own_units: OwnUnits,
        cpus: Units,
        writable: WritableExtent,
        supply: *const UnitSupply,
        owner: *const (),
    ) -> Result<Reservation> {
        let entries = bound.max(MOST_CPUS);
        let written = |entries: usize| size_of::<Header>() + entries * size_of::<usize>();
        // those of threads begin where those of CPU numbers end that any kernel has
        let of_threads = if layout.owned.0 > 0 { rseq::OWNED_STRIPES } else { 0 };
        let table = written(entries + of_threads).next_multiple_of(PAGE);
        // no more than a pointer can be moved by: a matter of 32-bit machines
        let bytes = own_units.all.checked_mul(layout.stride()).and_then(|bytes| bytes.checked_add(table));
        // what is in front of the first huge page
        let bytes = bytes.and_then(|bytes| bytes.checked_add(if layout.huge_pages { HUGE_PAGE } else { 0 }));
        let fits = bytes.filter(|&bytes| bytes <= isize::MAX as usize - 3 * PAGE);
        let Some(bytes) = fits else {
            return Err(Error::OutOfMemory { bytes: usize::MAX, errno: errno::ENOMEM });
        };
        let mut mapping = Mapping::read_only(bytes.next_multiple_of(PAGE), 2 + own_units.all)?;
        // zeros do for the entries of CPUs that have no unit
        if !mapping.make_writable(0, written(bound))
            || !mapping.make_writable(written(MOST_CPUS), written(layout.owned.0) - written(0))
        {
            return Err(Error::OutOfMemory { bytes, errno: errno::ENOMEM });
        }
        let start = mapping.addresses().start;
        let first_unit =
            if layout.huge_pages { (start + table).next_multiple_of(HUGE_PAGE) - start } else { table };
        if layout.huge_pages {
            mapping.ask_for_huge_pages(first_unit);
        }
        let home = first_unit + own_units.below_home * layout.stride();
        let state = AtomicU32::new(if layout.home_in_use { HOME } else { 0 });
        Ok(Reservation { mapping, layout, home, cpus, writable, state, supply, owner })
    }

    /// Writes the header of a reservation that is at its place.
    fn write_header(&self) {
        let header = Header {
            reservation: &raw const *self,
            quick: AtomicUsize::new(if self.layout.home_in_use { SEVERAL } else { NOBODY }),
            owned: self.layout.owned.1,
            hold: AtomicU64::new(0),
            width: self.layout.width,
            abi: ABI,
            area: rseq::offset().unwrap_or(0),
            guards: [0; 2],
        };
        // SAFETY: the mapping starts with room for the header, at a page boundary.
        unsafe { self.mapping.start().cast::<Header>().write(header) };
        rseq::publish_header(self.mapping.start().as_ptr());
    }

    /// Returns the address of the arena (the pool's counter memory) that the reservation belongs to.
    pub(crate) fn owner(&self) -> *const () {
        self.owner
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the start address of the reservation's mapping (the address range of its counters), which identifies the
    /// reservation.
    pub(crate) fn address(&self) -> usize {
        self.mapping.addresses().start
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    pub(crate) fn chunks(&self) -> usize {
        self.layout.unit_bytes / CHUNK_BYTES
    }

    /// Returns the per-CPU units (parts of the counter memory) of the reservation, an address range for counters.
    #[inline]
    pub(crate) fn cpus(&self) -> &Units {
        &self.cpus
    }

    /// Returns the blocks that movable units are made of.
    fn depot(&self) -> Option<&Depot> {
        self.supply().depot()
    }

    fn supply(&self) -> &UnitSupply {
        // SAFETY: a part of the arena, which outlives its reservations.
        unsafe { &*self.supply }
    }

    /// Returns the tagged address of the reservation's table, which maps a CPU number to the distance (displacement)
    /// from a counter's home word (its word that belongs to no CPU) to the CPU's word; `tag`, in the low bits, says how
    /// counters are updated.
    pub(crate) fn table(&self, tag: HandleTag) -> NonNull<u8> {
        // SAFETY: the header is part of the mapping, and so is the byte that the tag leads to.
        unsafe { self.mapping.start().add(size_of::<Header>() + tag as usize) }
    }

    /// Returns the reservation (address range for counters) that a table belongs to; `table` is the tagged address from
    /// [`table`](Self::table).
    ///
    /// # Safety
    /// `table` was made by [`Reservation::table`] of a reservation that lives for `'a`.
    #[inline]
    pub(crate) unsafe fn of_table<'a>(table: NonNull<u8>) -> &'a Reservation {
        // SAFETY: the header stands in front of the table and holds the address of its
        // reservation, which lives by the caller's promise.
        unsafe { &*(*Self::header_of(table)).reservation }
    }

    unsafe fn header_of(table: NonNull<u8>) -> *const Header {
        table.as_ptr().map_addr(|address| (address & !TAG_MASK) - size_of::<Header>()).cast()
    }

    fn header(&self) -> &Header {
        // SAFETY: written in `new`, and never moved.
        unsafe { self.mapping.start().cast().as_ref() }
    }

    /// Returns the distance in bytes from home words (counters' words that belong to no CPU) to the only words that
    /// readers have to read, if just one CPU ever counted; a shortcut that spares them the mask and the view of all
    /// CPUs. `None` otherwise.
    ///
    /// The shortcut ends, for good, before anything else may have to be read. So a reader that could know of other
    /// counts does not find it any more, and one that finds it before and after reading has missed nothing.
    ///
    /// # Safety
    /// The contract is that of [`of_table`](Self::of_table).
    #[inline]
    pub(crate) unsafe fn only_unit_of(table: NonNull<u8>) -> Option<usize> {
        // SAFETY: the header stands in front of the table and lives by the caller's promise.
        let quick = unsafe { (*Self::header_of(table)).quick.load(Ordering::Acquire) };
        (quick > SEVERAL).then_some(quick)
    }

    /// Prepares for readers being told of the unit at `displacement`.
    fn note_unit(&self, displacement: usize) {
        let first =
            self.header().quick.compare_exchange(NOBODY, displacement, Ordering::SeqCst, Ordering::SeqCst);
        if first.is_err_and(|there| there != displacement) {
            self.note_more();
        }
    }

    /// Prepares for readers being told of anything else than units.
    fn note_more(&self) {
        // an exchange, as the model has it
        self.header().quick.swap(SEVERAL, Ordering::SeqCst);
    }

    /// Returns the count of readers that currently make writers of latched lines (kept twice, so that readers see one
    /// consistent copy) add to the fallback cell, a word that all CPUs share, so that the readers can finish.
    pub(crate) fn hold(&self) -> &AtomicU64 {
        &self.header().hold
    }

    /// Returns a CPU's entry in a reservation's table, whose address `table` has tag bits: the distance in bytes from a
    /// counter's home word (its word that belongs to no CPU) to the CPU's word, 0 if the CPU has not counted.
    ///
    /// # Safety
    /// The table's reservation lives.
    #[inline(always)]
    pub(crate) unsafe fn entry_of_table(table: NonNull<u8>, cpu: usize) -> usize {
        if cpu >= MOST_CPUS {
            return 0;
        }
        let entries = table.as_ptr().map_addr(|address| address & !TAG_MASK).cast::<AtomicUsize>();
        // SAFETY: every table has so many entries, in memory that the kernel zeroed, and that is only
        // written through these atomics.
        unsafe { (*entries.add(cpu)).load(Ordering::Acquire) }
    }

    /// Returns the distance in bytes from counters' home words (words that belong to no CPU) to the words that the
    /// calling thread alone adds to; `None` if it has none, or they are not in use in this reservation (address range
    /// for counters).
    ///
    /// # Safety
    /// The table's reservation lives.
    #[inline(always)]
    pub(crate) unsafe fn owned_unit_of_table(table: NonNull<u8>) -> Option<usize> {
        // SAFETY: the header stands in front of the table, and names an offset of a copy of the library.
        let number = unsafe { rseq::owned_stripe((*Self::header_of(table)).owned) }?;
        let entries = table.as_ptr().map_addr(|address| address & !TAG_MASK).cast::<AtomicUsize>();
        // SAFETY: where the header names one, the table has behind the entries of CPUs one for each number of a thread,
        // in memory that the kernel zeroed, and that is only written through these atomics.
        let displacement = unsafe { &*entries.add(MOST_CPUS + number) }.load(Ordering::Acquire);
        (displacement != 0).then_some(displacement)
    }

    /// Returns the distance in bytes from counters' home words (words that belong to no CPU) to the words that the
    /// calling thread alone adds to, which it takes if some are free, and which readers include from now on; `None` if
    /// there are none for it. Async-signal-safe.
    #[cold]
    pub(crate) fn announced_owned(&self) -> Option<usize> {
        let (numbers, offset) = self.layout.owned;
        let number = rseq::claim_owned_stripe(offset).filter(|number| *number < numbers)?;
        // SAFETY: the table has entries for so many numbers, as in `owned_unit_of_table`.
        let entry = unsafe {
            let entries = self.mapping.start().add(size_of::<Header>()).cast::<AtomicUsize>();
            entries.add(MOST_CPUS + number).as_ref()
        };
        self.open(self.cpus.len() + number, entry).then(|| entry.load(Ordering::Acquire))
    }

    fn entry(&self, cpu: usize) -> Option<&AtomicUsize> {
        // SAFETY: there are no more CPUs than entries in the table, whose memory is zeroed by the
        // kernel and from then on only written through these atomics.
        (cpu < self.cpus.len()).then(|| unsafe {
            self.mapping.start().add(size_of::<Header>()).cast::<AtomicUsize>().add(cpu).as_ref()
        })
    }

    /// Returns the address of a counter's home word (its word that belongs to no CPU), given by the counter's offset in
    /// words within a unit.
    pub(crate) fn home(&self, word: usize) -> NonNull<u8> {
        debug_assert!(word * 8 < self.layout.unit_bytes);
        // SAFETY: the slot lies in the home unit.
        unsafe { self.mapping.start().add(self.home + word * 8) }
    }

    /// Returns the offset in the mapping of the unit of this reservation at a displacement.
    fn offset(&self, displacement: usize) -> usize {
        self.home.wrapping_add(displacement)
    }

    /// Returns the slot (offset in words within a unit) of the counter whose home word is at this address; `None` if it
    /// is not in this reservation (address range for counters).
    pub(crate) fn slot_of(&self, home: usize) -> Option<usize> {
        let offset = home.checked_sub(self.mapping.addresses().start + self.home)?;
        (offset < self.layout.unit_bytes && offset % 8 == 0).then_some(offset / 8)
    }

    /// Returns the distance in bytes from a counter's home word (its word that belongs to no CPU) to its baseline, a
    /// number that reads add.
    pub(crate) fn baseline_displacement(&self) -> usize {
        self.layout.stride()
    }

    /// Makes a CPU active: adds it to the set of CPUs whose words readers sum, then enters its words into the table, so
    /// that rseq critical sections count there. Returns `false` if it has no memory in this reservation.
    ///
    /// The mask first: a reader that can know of a store there must find the CPU in the mask.
    /// Async-signal-safe: no lock, no allocation.
    pub(crate) fn announce(&self, cpu: usize) -> bool {
        let Some(entry) = self.entry(cpu) else { return false };
        if entry.load(Ordering::Acquire) != 0 {
            return true;
        }
        if !self.cpus.is_movable() {
            return self.open(cpu, entry);
        }
        // held: somebody else announces, or drains; the fallback cell serves until then
        let Some(held) = self.cpus.changing().try_lock() else { return false };
        if self.cpus.displacement(cpu).is_none() {
            let Some(depot) = self.depot() else { return false };
            let Some(block) = depot.take_ready(cpu) else { return false };
            self.assign_block(cpu, block, depot, &held);
        }
        self.open(cpu, entry)
    }

    /// Opens a unit, by its number, to updates that find its entry.
    fn open(&self, unit: usize, entry: &AtomicUsize) -> bool {
        let Some(displacement) = self.cpus.unit(unit) else { return false };
        if !self.make_writable(unit) {
            self.supply().note_refusal();
            return false;
        }
        self.note_unit(displacement);
        self.cpus.announce(unit);
        entry.store(displacement, Ordering::Release);
        true
    }

    /// Makes a unit writable that is this reservation's own, as far as there are slots.
    fn make_writable(&self, unit: usize) -> bool {
        if self.cpus.is_movable() {
            return true;
        }
        self.cpus
            .unit(unit)
            .is_some_and(|displacement| self.writable.open(unit, &self.mapping, self.offset(displacement)))
    }

    /// Displacements of the units that belong to no CPU: homes, baselines, and where CPUs' units are movable both
    /// residues, of which readers walk one.
    fn common_units(&self) -> impl Iterator<Item = usize> {
        let units = COMMON_UNITS + if self.cpus.is_movable() { RESIDUES } else { 0 };
        (0..units).map(|unit| unit * self.layout.stride())
    }

    /// Makes the first `words` slots writable wherever something is written. The arena's lock is held.
    pub(super) fn make_slots_writable(&self, words: usize) -> Result<()> {
        // as long as nobody assigns a unit
        let _held = self.cpus.is_movable().then(|| self.cpus.changing().lock());
        self.writable.extend(words * 8, self.layout.unit_bytes, |extent| {
            let own = |displacement| self.mapping.make_writable(self.offset(displacement), extent);
            let mut done = self.common_units().all(own);
            if let Some(depot) = self.depot() {
                let blocks = (0..self.cpus.len()).filter_map(|cpu| self.cpus.displacement(cpu));
                let home = self.home(0).addr().get();
                return done && { blocks }.all(|unit| depot.make_writable(home.wrapping_add(unit), extent));
            }
            self.writable.opened().for_each(|unit| {
                done = done && self.cpus.unit(unit).is_none_or(own);
            });
            done
        })
    }

    fn assign_block(&self, cpu: usize, block: usize, depot: &Depot, held: &SignalSafeLockGuard<'_>) {
        if !self.writable.attempt(|| depot.make_writable(block, self.writable.extent())) {
            self.supply().note_refusal();
            return depot.give_unused(cpu, block);
        }
        let displacement = block.wrapping_sub(self.home(0).addr().get());
        if self.cpus.assign(cpu, displacement, held) != displacement {
            depot.give_unused(cpu, block);
        }
    }

    /// Gives a CPU memory for its words of the reservation's counters, where that is allocated on demand and it has
    /// none; returns `true` if it has some afterwards. The arena's lock has to be held.
    pub(crate) fn assign(&self, cpu: usize) -> bool {
        if self.cpus.is_movable() && cpu < self.cpus.len() {
            let held = self.cpus.changing().lock();
            let depot = self.depot().filter(|_| self.cpus.displacement(cpu).is_none());
            if let Some((depot, block)) = depot.and_then(|depot| Some((depot, depot.take(cpu)?))) {
                self.assign_block(cpu, block, depot, &held);
            }
        }
        self.cpus.displacement(cpu).is_some()
    }

    /// Adds a synthetic CPU (one that this kernel cannot have) to the set of CPUs whose words readers sum, without
    /// letting rseq critical sections count there; returns the distance in bytes from home words (words that belong to
    /// no CPU) to its words, `None` if it has none. The arena's lock has to be held.
    pub(crate) fn announce_to_readers(&self, cpu: usize) -> Option<usize> {
        let displacement = self.assign(cpu).then(|| self.cpus.displacement(cpu)).flatten()?;
        if self.cpus.walk().displacement_if_active(cpu).is_none() {
            if !self.make_writable(cpu) {
                return None;
            }
            let _held = self.cpus.is_movable().then(|| self.cpus.changing().lock());
            self.note_unit(displacement);
            self.cpus.announce(cpu);
        }
        Some(displacement)
    }

    /// Takes the first step of a drain: nobody announces a CPU here, and sections that begin from
    /// now on leave for the fallback cell. `None` where the CPU has no unit here.
    pub(super) fn close(&self, cpu: usize) -> Option<SignalSafeLockGuard<'_>> {
        let entry = self.entry(cpu)?;
        let held = self.cpus.changing().lock();
        self.cpus.displacement(cpu)?;
        entry.store(0, Ordering::SeqCst);
        Some(held)
    }

    /// Takes the first step back.
    pub(super) fn reopen(&self, cpu: usize, _held: &SignalSafeLockGuard<'_>) {
        if let (Some(displacement), Some(entry)) =
            (self.cpus.walk().displacement_if_active(cpu), self.entry(cpu))
        {
            entry.store(displacement, Ordering::Release);
        }
    }

    /// Takes the last step of a drain: the values of the first `words` words of the CPU's unit go
    /// into the residue in the same step in which the unit leaves the view; its block, which is
    /// nobody's now.
    ///
    /// No section is under way in that unit.
    pub(super) fn fold_away(
        &self,
        cpu: usize,
        words: usize,
        shapes: &BTreeMap<usize, PieceShape>,
        held: &SignalSafeLockGuard<'_>,
    ) -> Option<usize> {
        let unit = self.cpus.displacement(cpu)?;
        self.note_more();
        if self.cpus.walk().displacement_if_active(cpu).is_some() {
            let old = self.cpus.walk().residue();
            let new = (COMMON_UNITS + self.cpus.next_view()) * self.layout.stride();
            let copy = ResidueBuilder { reservation: self, unit, old, new };
            let mut done = 0;
            for (&first, shape) in shapes {
                copy.add_words(done..first);
                match *shape {
                    PieceShape::Latched(latch) => copy.add_latched_lines(first, latch),
                    PieceShape::FloatSum => copy.join_epochs(first, |one, other| {
                        (f64::from_bits(one) + f64::from_bits(other)).to_bits()
                    }),
                    PieceShape::Maximum => copy.join_epochs(first, u64::max),
                    PieceShape::BoundedSum => copy.add_bounded_sum(first),
                }
                done = first + shape.words();
            }
            copy.add_words(done..words.max(done));
            self.cpus.publish_without(cpu, new, held);
        }
        self.cpus.unassign(cpu, held);
        Some(self.home(0).addr().get().wrapping_add(unit))
    }

    /// Gives every block back. Nobody has a slot here.
    pub(super) fn give_blocks_back(&self) {
        let Some(depot) = self.depot() else { return };
        for cpu in 0..self.cpus.len() {
            if let Some(unit) = self.cpus.displacement(cpu) {
                let held = self.cpus.changing().lock();
                self.cpus.unassign(cpu, &held);
                depot.give(cpu, self.home(0).addr().get().wrapping_add(unit));
            }
        }
    }

    /// Returns the distance in bytes from home words (counters' words that belong to no CPU) to the words of a stripe
    /// (per-CPU words for threads that count atomically), and makes readers include these; another stripe's if this one
    /// has none, `None` if there are none at all. Async-signal-safe.
    #[cold]
    pub(crate) fn announced_stripe(&self, stripe: usize) -> Option<usize> {
        let other = stripe.checked_rem(self.cpus.len())?;
        let announced = [stripe, other].into_iter().find(|&stripe| self.announce(stripe))?;
        self.entry(announced).map(|entry| entry.load(Ordering::Acquire))
    }

    /// Makes the calling thread's CPU active in the reservation (address range for counters), so that readers include
    /// its words and rseq critical sections count there. Returns `false` if the thread is not registered for rseq or
    /// the CPU has no words.
    pub(crate) fn announce_current(&self) -> bool {
        rseq::current_cpu().is_some_and(|cpu| self.announce(cpu as usize))
    }

    /// Makes readers include counters' home words, the fallback cells that all CPUs share; called before the first
    /// store to one.
    ///
    /// A thread that finds the flag already set must also know that the reservation no longer offers the single-unit
    /// shortcut ([`note_more`](Self::note_more) came first): otherwise a reader that learns of this thread's count
    /// could still read the one unit only, and miss the home word. Therefore the load acquires what the `fetch_or`
    /// releases. (x86-64 and aarch64, whose stores become visible to all other processors at once, would not show the
    /// difference; the language does not promise that.)
    #[inline]
    pub(crate) fn use_home(&self) {
        if self.state.load(Ordering::Acquire) & HOME == 0 {
            self.note_more();
            self.state.fetch_or(HOME, Ordering::SeqCst);
        }
    }

    /// Makes readers include counters' baselines (initial or set values); called before the first store to one.
    pub(crate) fn use_baseline(&self) {
        self.note_more();
        self.state.fetch_or(BASELINE, Ordering::SeqCst);
    }

    /// Returns `true` if readers must add counters' home words (fallback cells). To be called after baselines were
    /// loaded: a reader that saw a baseline computed from a home word must add that word.
    #[inline]
    pub(crate) fn homes_in_use(&self) -> bool {
        self.state.load(Ordering::Acquire) & HOME != 0
    }

    /// Returns `true` if readers must add counters' baselines (initial or set values).
    #[inline]
    pub(crate) fn baselines_in_use(&self) -> bool {
        self.state.load(Ordering::Acquire) & BASELINE != 0
    }

    /// Prefaults the first `bytes` of a CPU's unit (its part of the reservation, an address range for counters), and of
    /// the units that belong to its threads, so that updates there take no page fault; does nothing if the CPU has no
    /// memory.
    pub(crate) fn populate(&self, cpu: usize, bytes: usize) -> Result<()> {
        if bytes == 0 || self.cpus.displacement(cpu).is_none() {
            return Ok(());
        }
        for number in std::iter::once(cpu).chain(self.cpus.owned_of(cpu)) {
            let Some(unit) = self.cpus.unit(number) else { continue };
            match self.depot() {
                Some(depot) => depot.populate(self.home(0).addr().get().wrapping_add(unit), bytes)?,
                None if !self.make_writable(number) => {
                    return Err(Error::System { operation: "mprotect", errno: errno::ENOMEM });
                }
                None => self.mapping.populate(self.offset(unit), bytes.min(self.layout.unit_bytes))?,
            }
        }
        Ok(())
    }

    /// Zeroes `chunks` free cache lines from line `first` on, in all parts of the reservation (address range for
    /// counters): every CPU's, and those that belong to no CPU.
    ///
    /// # Safety
    /// No slot in these chunks is taken, and none is taken meanwhile.
    pub(crate) unsafe fn zero(&self, first: usize, chunks: usize) -> Result<()> {
        let zero_unit = |displacement: usize| {
            let start = at(self.home(first * CHUNK_WORDS), displacement);
            // SAFETY: the chunks are free in every unit by the caller's promise.
            unsafe { zero(start.cast(), chunks * CHUNK_BYTES, self.mapping.granule()) }
        };
        // both residues: the next drain makes the other one current, and writes of it what is in use by then
        self.common_units().try_for_each(zero_unit)?;
        let mut result = Ok(());
        self.cpus.walk().for_each(|displacement| {
            if result.is_ok() {
                result = zero_unit(displacement);
            }
        });
        result
    }
}

/// Returns the word at a displacement from another, which may lie in another mapping.
#[inline(always)]
pub(super) fn at(word: NonNull<u8>, displacement: usize) -> NonNull<AtomicU64> {
    let address = word.addr().get().wrapping_add(displacement);
    let word = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: displacements lead from one word of a mapping to another, never to address 0.
    unsafe { NonNull::new_unchecked(word) }
}

/// The residue of a view in the making: the old residue and a frozen unit.
struct ResidueBuilder<'a> {
    reservation: &'a Reservation,
    /// Displacements of the frozen unit, of the old residue (0: none) and of the new one.
    unit: usize,
    old: usize,
    new: usize,
}

impl ResidueBuilder<'_> {
    fn word(&self, index: usize, displacement: usize) -> &AtomicU64 {
        // SAFETY: a word of a unit that lives as long as the reservation.
        unsafe { at(self.reservation.home(index), displacement).as_ref() }
    }

    fn load(&self, index: usize, displacement: usize) -> u64 {
        self.word(index, displacement).load(Ordering::Relaxed)
    }

    /// Stores to the new residue, unless the value is there: most pages are never touched.
    fn store(&self, index: usize, value: u64) {
        let word = self.word(index, self.new);
        if word.load(Ordering::Relaxed) != value {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn old(&self, index: usize) -> u64 {
        if self.old == 0 { 0 } else { self.load(index, self.old) }
    }

    /// Adds words that are counters each.
    fn add_words(&self, words: std::ops::Range<usize>) {
        for index in words {
            self.store(index, self.old(index).wrapping_add(self.load(index, self.unit)));
        }
    }

    /// Joins the unit's value to the residue's, where they are of the same epoch; else the later one counts:
    /// the values of all epochs but the last are nothing to anybody.
    fn join_epochs(&self, first: usize, join: impl Fn(u64, u64) -> u64) {
        let of_unit = (self.load(first, self.unit), self.load(first + 1, self.unit));
        let of_residue = (self.old(first), self.old(first + 1));
        let (value, epoch) = match of_unit.1.cmp(&of_residue.1) {
            std::cmp::Ordering::Less => of_residue,
            std::cmp::Ordering::Greater => of_unit,
            std::cmp::Ordering::Equal => (join(of_unit.0, of_residue.0), of_unit.1),
        };
        self.store(first, value);
        self.store(first + 1, epoch);
    }

    /// Adds the unit's counter, all of it flushed.
    fn add_bounded_sum(&self, first: usize) {
        let (counted, flushed) = (self.load(first, self.unit), self.load(first + 1, self.unit));
        self.word(first + 1, 0).fetch_add(counted.wrapping_sub(flushed), Ordering::Relaxed);
        self.store(first, self.old(first).wrapping_add(counted));
        self.store(first + 1, self.old(first + 1).wrapping_add(counted));
    }

    /// Adds the words of a latched piece: of the unit the copy that the line's
    /// sequence number names, to the copy that the residue's names. The latter number stays.
    fn add_latched_lines(&self, first: usize, latch: LatchLayout) {
        for index in first..first + latch.chunks() * CHUNK_WORDS {
            self.store(index, self.old(index));
        }
        for line in 0..latch.lines {
            let sequence = first + latch.sequence(line) / 8;
            let copy = |number: u64| if number & 1 == 1 { latch.copies() / 8 } else { 0 };
            let from = copy(self.load(sequence, self.unit)) + first + line * CHUNK_WORDS;
            let to = copy(self.old(sequence)) + first + line * CHUNK_WORDS;
            for index in 0..CHUNK_WORDS {
                self.store(to + index, self.old(to + index).wrapping_add(self.load(from + index, self.unit)));
            }
        }
    }
}
