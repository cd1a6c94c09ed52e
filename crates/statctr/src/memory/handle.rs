//! Handles of slots, and the operations on a slot. `owner` has the owners of handles.

use super::reservation::{Reservation, at};
use crate::rseq::{self, HandleTag};
use crate::sys;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A counter's handle, two words: the address of its home word (its word that belongs to no CPU), and the tagged
/// address of the table that maps CPUs to their words. The content of a C `statctr_t`.
///
/// Invariant of this folder: the reservation of `table` lives as long as the handle is used, and
/// `base` is the home address of a slot that the handle's owner owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Handle {
    pub(crate) base: NonNull<u8>,
    pub(crate) table: NonNull<u8>,
}

impl Handle {
    #[inline(always)]
    pub(super) fn is(self, tag: HandleTag) -> bool {
        self.table.addr().get() & tag as usize != 0
    }

    #[inline]
    pub(crate) fn reservation<'a>(self) -> &'a Reservation {
        // SAFETY: by the invariant the reservation lives while the handle is used.
        unsafe { Reservation::of_table(self.table) }
    }

    /// Returns the handle of the counter whose word lies `index` words after this one's.
    ///
    /// # Safety
    /// That word belongs to the same owner.
    #[inline(always)]
    pub(crate) unsafe fn word(self, index: usize) -> Handle {
        // SAFETY: inside the unit by the caller's promise.
        Handle { base: unsafe { self.base.add(index * 8) }, table: self.table }
    }

    #[inline(always)]
    fn home(&self) -> &AtomicU64 {
        // SAFETY: by the invariant an aligned word that lives; in the modes that use it as an
        // atomic it is only used as one.
        unsafe { self.base.cast().as_ref() }
    }

    #[inline(always)]
    pub(crate) fn add(self, value: u64) {
        if cfg!(feature = "uniprocessor") {
            // SAFETY: pools of this build exist on one CPU only, where home words are written by
            // this instruction alone.
            return unsafe { rseq::add_on_one_cpu(self.base.as_ptr(), value) };
        }
        // SAFETY: the invariant is the contract of the section.
        if unsafe { rseq::add(self.base.as_ptr(), self.table.as_ptr(), value) } {
            return;
        }
        self.add_elsewhere(value);
    }

    #[inline(always)]
    pub(crate) fn inc(self) {
        if cfg!(feature = "uniprocessor") {
            // SAFETY: as in `add`.
            return unsafe { rseq::inc_on_one_cpu(self.base.as_ptr()) };
        }
        // SAFETY: as in `add`.
        if unsafe { rseq::inc(self.base.as_ptr(), self.table.as_ptr()) } {
            return;
        }
        self.add_elsewhere(1);
    }

    #[inline(always)]
    pub(crate) fn dec(self) {
        if cfg!(feature = "uniprocessor") {
            // SAFETY: as in `add`.
            return unsafe { rseq::dec_on_one_cpu(self.base.as_ptr()) };
        }
        // SAFETY: as in `add`.
        if unsafe { rseq::dec(self.base.as_ptr(), self.table.as_ptr()) } {
            return;
        }
        self.add_elsewhere(u64::MAX);
    }

    #[inline(always)]
    pub(super) fn add_elsewhere(self, value: u64) {
        if self.is(HandleTag::Striped)
            && let Some(displacement) = self.owned_unit_in_use()
        {
            // SAFETY: the word of a unit that this thread alone writes, by this instruction.
            return unsafe { rseq::add_by_owner(self.at(displacement).as_ptr().cast(), value) };
        }
        if self.is(HandleTag::Uniprocessor) {
            // SAFETY: on one CPU home words are written by this instruction alone.
            unsafe { rseq::add_on_one_cpu(self.base.as_ptr(), value) };
        } else if self.is(HandleTag::Atomic) {
            self.home().fetch_add(value, Ordering::Relaxed);
        } else {
            self.add_slow(value);
        }
    }

    /// Adds `value` to the counter in an rseq critical section and, if that does not commit, by the slow path; for
    /// callers without inline code for the section.
    pub(crate) fn add_again(self, value: u64) {
        // SAFETY: the invariant is the contract of the section.
        if !unsafe { rseq::add(self.base.as_ptr(), self.table.as_ptr(), value) } {
            self.add_slow(value);
        }
    }

    /// Adds `value` to the counter after its rseq critical section did not commit: marks the CPU as active and retries,
    /// a bounded number of times, then adds atomically to the fallback cell that all CPUs share.
    ///
    /// Async-signal-safe: no lock, no allocation.
    #[cold]
    #[inline(never)]
    pub(crate) fn add_slow(self, value: u64) {
        // by few instructions, and nothing on the stack: without rseq all updates come here
        if !self.is(HandleTag::Striped) {
            self.add_by_section(value);
        } else if let Some(displacement) = self.owned_unit_in_use() {
            // SAFETY: the word of a unit that this thread alone writes, by this instruction.
            unsafe { rseq::add_by_owner(self.at(displacement).as_ptr().cast(), value) };
        } else {
            self.add_striped(value);
        }
    }

    #[inline(never)]
    fn add_by_section(self, value: u64) {
        let reservation = self.reservation();
        for _ in 0..rseq::TRIES {
            if !reservation.announce_current() {
                break;
            }
            // SAFETY: as in `add`; slots that need the latch section never come here.
            if unsafe { rseq::add(self.base.as_ptr(), self.table.as_ptr(), value) } {
                return;
            }
        }
        self.add_to_fallback(value);
    }

    /// Returns the displacement of the unit that belongs to the calling thread, if it has added to that before.
    #[inline(always)]
    fn owned_unit_in_use(self) -> Option<usize> {
        // SAFETY: by the invariant the table lives.
        unsafe { Reservation::owned_unit_of_table(self.table) }
    }

    /// Returns the displacement of the unit that belongs to the calling thread, if it has one or can have one.
    #[inline]
    fn owned_unit(self) -> Option<usize> {
        self.owned_unit_in_use().or_else(|| self.reservation().announced_owned())
    }

    /// Adds `value` to the word of the stripe that belongs to the thread, or atomically to that of another one.
    /// Async-signal-safe.
    #[inline(never)]
    fn add_striped(self, value: u64) {
        if let Some(displacement) = self.owned_unit() {
            // SAFETY: the word of a unit that this thread alone writes, by this instruction.
            return unsafe { rseq::add_by_owner(self.at(displacement).as_ptr().cast(), value) };
        }
        let stripe = sys::stripe();
        // SAFETY: by the invariant the table lives.
        match unsafe { Reservation::entry_of_table(self.table, stripe) } {
            0 => self.add_striped_slow(stripe, value),
            displacement => _ = self.at(displacement).fetch_add(value, Ordering::Relaxed),
        }
    }

    /// Adds to the words from here on, all on one stripe. The words are the owner's.
    fn add_items_striped(self, deltas: &[u64]) {
        if let Some(displacement) = self.owned_unit() {
            for (index, &delta) in deltas.iter().enumerate().filter(|(_, delta)| **delta != 0) {
                // SAFETY: the event's words are the owner's; then as in `add_striped`.
                unsafe { rseq::add_by_owner(self.word(index).at(displacement).as_ptr().cast(), delta) };
            }
            return;
        }
        let stripe = sys::stripe();
        for (index, &delta) in deltas.iter().enumerate().filter(|(_, delta)| **delta != 0) {
            // SAFETY: the event's words are the owner's, and by the invariant the table lives.
            let (word, displacement) =
                unsafe { (self.word(index), Reservation::entry_of_table(self.table, stripe)) };
            match displacement {
                0 => word.add_striped_slow(stripe, delta),
                displacement => _ = word.at(displacement).fetch_add(delta, Ordering::Relaxed),
            }
        }
    }

    /// Returns the distance in bytes from home words (counters' words that belong to no CPU) to the words of the calling
    /// thread's stripe, which several threads write atomically, and makes readers include these; `None` if no stripe
    /// has memory. Async-signal-safe.
    pub(super) fn stripe_unit(self) -> Option<usize> {
        let stripe = sys::stripe();
        // SAFETY: by the invariant the table lives.
        match unsafe { Reservation::entry_of_table(self.table, stripe) } {
            0 => self.reservation().announced_stripe(stripe),
            displacement => Some(displacement),
        }
    }

    /// Adds `value` to the word of a stripe that nobody announced yet, or that has none: then to the word of
    /// another, or to the fallback cell.
    #[cold]
    #[inline(never)]
    fn add_striped_slow(self, stripe: usize, value: u64) {
        let reservation = self.reservation();
        match reservation.announced_stripe(stripe) {
            Some(displacement) => _ = self.at(displacement).fetch_add(value, Ordering::Relaxed),
            None => self.add_to_fallback(value),
        }
    }

    /// Adds `value` atomically to the counter's fallback cell, the word that all CPUs share.
    pub(crate) fn add_to_fallback(self, value: u64) {
        self.reservation().use_home();
        self.home().fetch_add(value, Ordering::Relaxed);
    }

    /// Adds `deltas` to consecutive counter words after the rseq critical section for them did not commit, or where
    /// there is none for them.
    ///
    /// # Safety
    /// The words that the commit writes (N rounded up to a power of two) are the owner's, in one
    /// chunk, aligned to as many words, and written by this and by `add` alone.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn commit_slow<const N: usize>(self, deltas: &[u64; N]) {
        if self.is(HandleTag::Rseq) {
            let reservation = self.reservation();
            let (base, table) = (self.base.as_ptr(), self.table.as_ptr());
            // SAFETY: by the invariant of handles the table lives.
            let area = unsafe { rseq::offset_of_table(table) };
            for _ in 0..rseq::TRIES {
                if area == 0 || !reservation.announce_current() {
                    break;
                }
                // SAFETY: the caller's promise and the invariant are the section's contract.
                if unsafe { rseq::commit_in_area(area, base, table, deltas) } {
                    return;
                }
            }
        }
        if self.is(HandleTag::Striped) {
            return self.add_items_striped(deltas);
        }
        for (index, &delta) in deltas.iter().enumerate().filter(|(_, delta)| **delta != 0) {
            // SAFETY: the event's words are the owner's.
            let word = unsafe { self.word(index) };
            if self.is(HandleTag::Rseq) { word.add_to_fallback(delta) } else { word.add_elsewhere(delta) }
        }
    }

    /// Returns the part of the counter's value that is in its fallback cell, the shared word for CPUs without a word of
    /// their own.
    pub(crate) fn fallback_part(self) -> u64 {
        if self.reservation().homes_in_use() { self.home().load(Ordering::Relaxed) } else { 0 }
    }

    /// Returns the sum of everything counted here, without the baseline.
    fn counted(self) -> u64 {
        let reservation = self.reservation();
        // the home word first: a set of an approximate counter adds to it what is missing in the sum of the others
        let home = if reservation.homes_in_use() { self.home().load(Ordering::Acquire) } else { 0 };
        reservation.cpus().consistently(|walk| {
            let mut sum = home;
            walk.for_each(|displacement| {
                sum = sum.wrapping_add(self.at(displacement).load(Ordering::Relaxed));
            });
            sum
        })
    }

    /// Returns the counter's word of one CPU, which lies `displacement` bytes from its home word (its word that belongs
    /// to no CPU).
    #[inline(always)]
    pub(crate) fn at(&self, displacement: usize) -> &AtomicU64 {
        // SAFETY: displacements lead from a home word to the same slot of another unit. Sections
        // write these words with single aligned stores, which an atomic load of the same size
        // never sees in part.
        unsafe { at(self.base, displacement).as_ref() }
    }

    /// Returns the counter's value: the sum of its baseline (initial or set value), its home word (which all CPUs
    /// share) and each active CPU's word, loaded in this order.
    #[inline]
    pub(crate) fn read(self) -> u64 {
        // SAFETY: by the invariant the header lives while the handle is used.
        let only = unsafe { Reservation::only_unit_of(self.table) };
        if let Some(unit) = only {
            let value = self.at(unit).load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            // SAFETY: as above.
            if unsafe { Reservation::only_unit_of(self.table) } == only {
                return value;
            }
        }
        self.read_all()
    }

    #[inline(never)]
    fn read_all(self) -> u64 {
        // The baseline first: whoever sees a new one sees at least the counts it was made from,
        // and never a value below it.
        self.baseline().wrapping_add(self.counted())
    }

    pub(super) fn baseline(self) -> u64 {
        let reservation = self.reservation();
        if !reservation.baselines_in_use() {
            return 0;
        }
        self.at(reservation.baseline_displacement()).load(Ordering::Acquire)
    }

    /// Returns the part of the counter's value that is in one CPU's word.
    pub(crate) fn read_cpu(self, cpu: usize) -> u64 {
        self.reservation().cpus().consistently(|walk| {
            let mut sum = 0u64;
            walk.for_each_of_cpu(cpu, |displacement| {
                sum = sum.wrapping_add(self.at(displacement).load(Ordering::Relaxed));
            });
            sum
        })
    }

    /// Sets the counter's value by changing its baseline, a number that reads add. The arena's lock has to be held.
    pub(crate) fn set_locked(self, value: u64) {
        self.store_baseline(value.wrapping_sub(self.counted()));
    }

    /// Stores the counter's baseline, the number that reads add to the CPUs' sum. The arena's lock has to be held.
    pub(crate) fn store_baseline(self, baseline: u64) {
        if self.baseline() != baseline {
            let reservation = self.reservation();
            reservation.use_baseline();
            self.at(reservation.baseline_displacement()).store(baseline, Ordering::Release);
        }
    }

    /// Returns the address of the counter's word of one CPU, and makes reads include that CPU; in shared placement, the
    /// shared word. `None` if the CPU cannot get a word. The arena's lock has to be held.
    pub(crate) fn cpu_word_locked(self, cpu: usize) -> Option<NonNull<u64>> {
        let reservation = self.reservation();
        if self.is(HandleTag::Uniprocessor) || reservation.layout().cpus.is_empty() {
            reservation.use_home();
            return Some(self.base.cast());
        }
        let displacement = reservation.announce_to_readers(cpu)?;
        Some(NonNull::from(self.at(displacement)).cast())
    }

    /// Adds `value` to the counter's word of a synthetic CPU, which this kernel cannot have; returns `false` if there
    /// is no such word. The arena's lock has to be held, which makes the caller the only writer.
    pub(crate) fn add_on_synthetic_locked(self, cpu: usize, value: u64) -> bool {
        self.add_on_synthetic_locked_to(cpu, 0, value)
    }

    /// Adds to the word `copy` bytes further on in the CPU's unit; see
    /// [`add_on_synthetic_locked`](Self::add_on_synthetic_locked).
    pub(super) fn add_on_synthetic_locked_to(self, cpu: usize, copy: usize, value: u64) -> bool {
        let Some(displacement) = self.reservation().announce_to_readers(cpu) else { return false };
        let word = self.at(displacement.wrapping_add(copy));
        word.fetch_add(value, Ordering::Release);
        true
    }
}
