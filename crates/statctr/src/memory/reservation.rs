//! One set of units: its memory, its table of displacements and what readers need to walk it.

use super::announced::Announced;
use super::arena::Arena;
use super::mapping::{Mapping, PAGE};
use crate::error::{Error, Result};
use crate::rseq;
use crate::topology::{CpuId, CpuSet};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// A cache line: what one CPU fetches and owns at a time.
pub(crate) const CHUNK_BYTES: usize = 64;
/// Counters interlaced in a chunk.
pub(crate) const CHUNK_WORDS: usize = CHUNK_BYTES / 8;

/// How a handle's updates are done; the tag in the low bits of its table address.
///
/// These values are part of the C ABI (`statctr.h` tests them in line).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum How {
    /// A section on the CPU's own word.
    Rseq = 1,
    /// One unlocked instruction on the home word: there is one CPU.
    OneCpu = 2,
    /// A locked instruction on the home word.
    Atomic = 4,
    /// A section on the copy of the line that its sequence number names.
    Twin = 8,
}

/// The bits of a table's address that hold the tag: tables are aligned to more.
pub(crate) const TAG_MASK: usize = 63;

/// What stands in front of a table's first entry. Part of the C ABI and known to the sections.
#[repr(C, align(64))]
struct Header {
    reservation: *const Reservation,
    unused: [usize; 2],
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

/// Units that are not a CPU's: the home words and the baselines.
const COMMON_UNITS: usize = 2;

/// Set in a reservation when one of its home words may be other than zero.
const HOME: u32 = 1;
/// Set in a reservation when one of its baselines may be other than zero.
const BASELINE: u32 = 2;

/// How a reservation is to be laid out.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// CPUs that get a unit.
    pub(crate) cpus: CpuSet,
    /// Bytes of a unit: whole pages.
    pub(crate) unit_bytes: usize,
    /// Bytes of the widest vector store that may be used.
    pub(crate) width: u32,
    /// Whether home words are written from the start, as in the shared and one-CPU placements.
    pub(crate) home_in_use: bool,
}

impl Layout {
    /// From one unit to the next. A page between them, so that no page holds the words of CPUs on
    /// two nodes; and a chunk, so that the same slot of different CPUs falls into different cache
    /// sets.
    pub(crate) fn stride(&self) -> usize {
        self.unit_bytes + PAGE + CHUNK_BYTES
    }
}

/// A set of units in which the slots of the same index belong together.
#[derive(Debug)]
pub(crate) struct Reservation {
    mapping: Mapping,
    layout: Layout,
    /// Where the first unit begins, from the start of the mapping.
    units: usize,
    /// By CPU number: from a home word to that CPU's, 0 where the CPU has no unit.
    displacements: Box<[usize]>,
    announced: Announced,
    state: AtomicU32,
    arena: *const Arena,
}

// SAFETY: the raw pointer to the arena is only followed while a slot keeps the arena alive; all
// else is atomics and memory that the protocols of this crate share between threads.
unsafe impl Send for Reservation {}
// SAFETY: as above.
unsafe impl Sync for Reservation {}

impl Reservation {
    /// Reserves address space for it. `arena` must outlive it.
    pub(crate) fn new(layout: Layout, arena: *const Arena) -> Result<Box<Reservation>> {
        let last = layout.cpus.last().map_or(0, |cpu| cpu.index() + 1);
        let entries = rseq::cpu_bound().unwrap_or(0).max(last);
        let units = (size_of::<Header>() + entries * size_of::<usize>()).next_multiple_of(PAGE);
        let count = layout.cpus.len() + COMMON_UNITS;
        // no more than a pointer can be moved by: a matter of 32-bit machines
        let bytes = count.checked_mul(layout.stride()).and_then(|bytes| bytes.checked_add(units));
        let fits = bytes.filter(|&bytes| bytes <= isize::MAX as usize - 3 * PAGE);
        let Some(bytes) = fits else {
            return Err(Error::OutOfMemory { bytes: usize::MAX, errno: libc::ENOMEM });
        };
        let mapping = Mapping::new(bytes.next_multiple_of(PAGE))?;
        let mut displacements = vec![0; last].into_boxed_slice();
        for (index, cpu) in layout.cpus.iter().enumerate() {
            displacements[cpu.index()] = (COMMON_UNITS + index) * layout.stride();
        }
        let state = AtomicU32::new(if layout.home_in_use { HOME } else { 0 });
        let announced = Announced::new(last);
        let width = layout.width;
        let reservation =
            Box::new(Reservation { mapping, layout, units, displacements, announced, state, arena });
        let header = Header {
            reservation: &raw const *reservation,
            unused: [0; 2],
            hold: AtomicU64::new(0),
            width,
            abi: ABI,
            area: rseq::offset().unwrap_or(0),
            guards: [0; 2],
        };
        // SAFETY: the mapping starts with room for the header, at a page boundary.
        unsafe { reservation.mapping.start().cast::<Header>().write(header) };
        Ok(reservation)
    }

    /// The arena that the reservation belongs to.
    pub(crate) fn arena(&self) -> *const Arena {
        self.arena
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    pub(crate) fn chunks(&self) -> usize {
        self.layout.unit_bytes / CHUNK_BYTES
    }

    pub(crate) fn announced(&self) -> &Announced {
        &self.announced
    }

    /// The tagged address of entry 0 of the table.
    pub(crate) fn table(&self, how: How) -> NonNull<u8> {
        // SAFETY: the header is part of the mapping, and so is the byte that the tag leads to.
        unsafe { self.mapping.start().add(size_of::<Header>() + how as usize) }
    }

    /// The reservation that a tagged table belongs to.
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

    /// Counts the readers for whose sake sections with two copies keep off.
    pub(crate) fn hold(&self) -> &AtomicU64 {
        &self.header().hold
    }

    fn entry(&self, cpu: usize) -> Option<&AtomicUsize> {
        // SAFETY: `displacements` is no longer than the table, whose memory is zeroed by the
        // kernel and from then on only written through these atomics.
        (cpu < self.displacements.len()).then(|| unsafe {
            self.mapping.start().add(size_of::<Header>()).cast::<AtomicUsize>().add(cpu).as_ref()
        })
    }

    /// The address of slot `word` in the unit of home words.
    pub(crate) fn home(&self, word: usize) -> NonNull<u8> {
        debug_assert!(word * 8 < self.layout.unit_bytes);
        // SAFETY: the slot lies in the first unit.
        unsafe { self.mapping.start().add(self.units + word * 8) }
    }

    /// The slot that a home address belongs to, if it is one of this reservation's.
    pub(crate) fn slot_of(&self, home: usize) -> Option<usize> {
        let offset = home.checked_sub(self.mapping.addresses().start + self.units)?;
        (offset < self.layout.unit_bytes && offset % 8 == 0).then_some(offset / 8)
    }

    /// From a home word to its baseline.
    pub(crate) fn baseline_displacement(&self) -> usize {
        self.layout.stride()
    }

    /// From a home word to the word of a CPU; `None` where the CPU has no unit.
    #[inline]
    pub(crate) fn displacement(&self, cpu: usize) -> Option<usize> {
        self.displacements.get(cpu).copied().filter(|&displacement| displacement != 0)
    }

    /// Calls `visit` with the displacement of each announced CPU.
    #[inline]
    pub(crate) fn for_each_announced(&self, mut visit: impl FnMut(usize)) {
        self.announced.for_each(|cpu| {
            debug_assert!(cpu < self.displacements.len());
            // SAFETY: the mask has bits only for CPUs that `announce` and `announce_to_readers`
            // put in, and those were found in this table.
            visit(unsafe { *self.displacements.get_unchecked(cpu) });
        });
    }

    /// Lets readers walk this CPU, then lets sections onto its words. `false` where it has none.
    ///
    /// The mask first: a reader that can know of a store there must find the CPU in the mask.
    pub(crate) fn announce(&self, cpu: usize) -> bool {
        let (Some(displacement), Some(entry)) = (self.displacement(cpu), self.entry(cpu)) else {
            return false;
        };
        if entry.load(Ordering::Acquire) == 0 {
            self.announced.insert(cpu);
            entry.store(displacement, Ordering::Release);
        }
        true
    }

    /// As [`announce`](Self::announce), without letting sections in: for a made-up CPU.
    pub(crate) fn announce_to_readers(&self, cpu: usize) {
        if self.displacement(cpu).is_some() && !self.announced.contains(cpu) {
            self.announced.insert(cpu);
        }
    }

    /// Announces the calling thread's CPU. `false` where the thread is not registered or its CPU
    /// has no unit.
    pub(crate) fn announce_current(&self) -> bool {
        rseq::current_cpu().is_some_and(|cpu| self.announce(cpu as usize))
    }

    /// Whether readers must look at home words; sets it, before the first store to one.
    #[inline]
    pub(crate) fn use_home(&self) {
        if self.state.load(Ordering::Relaxed) & HOME == 0 {
            self.state.fetch_or(HOME, Ordering::SeqCst);
        }
    }

    /// Sets that readers must look at baselines, before the first store to one.
    pub(crate) fn use_baseline(&self) {
        self.state.fetch_or(BASELINE, Ordering::SeqCst);
    }

    /// Whether readers must look at home words. To be asked after the baselines were loaded:
    /// whoever saw a baseline that was made from a count in a home word must add that word.
    #[inline]
    pub(crate) fn homes_in_use(&self) -> bool {
        self.state.load(Ordering::Acquire) & HOME != 0
    }

    /// Whether readers must look at baselines.
    #[inline]
    pub(crate) fn baselines_in_use(&self) -> bool {
        self.state.load(Ordering::Acquire) & BASELINE != 0
    }

    /// Where the first `bytes` of a CPU's unit lie in the mapping.
    pub(crate) fn unit_of(&self, cpu: CpuId, bytes: usize) -> Option<(usize, usize)> {
        let displacement = self.displacement(cpu.index())?;
        Some((self.units + displacement, bytes.min(self.layout.unit_bytes)))
    }

    /// Makes the words of `chunks` free chunks, from `first` on, zero in every unit.
    ///
    /// # Safety
    /// No slot in these chunks is taken, and none is taken meanwhile.
    pub(crate) unsafe fn zero(&self, first: usize, chunks: usize) -> Result<()> {
        let zero_unit = |displacement: usize| {
            let (start, len) = (self.units + displacement + first * CHUNK_BYTES, chunks * CHUNK_BYTES);
            let (inner, inner_end) = (start.next_multiple_of(PAGE), (start + len) / PAGE * PAGE);
            let edges = if inner < inner_end {
                [(start, inner), (inner_end, start + len)]
            } else {
                [(start, start + len), (0, 0)]
            };
            for offset in edges.into_iter().flat_map(|(from, to)| (from..to).step_by(8)) {
                // SAFETY: an aligned word of a unit; nobody counts there by the caller's promise.
                let word = unsafe { self.mapping.start().add(offset).cast::<AtomicU64>().as_ref() };
                if word.load(Ordering::Relaxed) != 0 {
                    word.store(0, Ordering::Relaxed);
                }
            }
            // SAFETY: unused by the caller's promise.
            unsafe { self.mapping.discard(start, len) }
        };
        for common in 0..COMMON_UNITS {
            zero_unit(common * self.layout.stride())?;
        }
        let mut result = Ok(());
        self.announced.for_each(|cpu| {
            if let (Some(displacement), Ok(())) = (self.displacement(cpu), &result) {
                result = zero_unit(displacement);
            }
        });
        result
    }
}
