//! A handle with all that its updates need beside it: [`ResolvedHandle`].

use super::handle::Handle;
use super::reservation::Reservation;
use crate::rseq;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A displacement that no CPU's words have: they are whole words apart.
const NOWHERE: usize = 1;

thread_local! {
    // Atomic for signal handlers, which may come at any time; whatever it holds is compared before it is used.
    /// The displacement of the CPU's words that the thread's last update found which did not predict it.
    static DISPLACEMENT: AtomicUsize = const { AtomicUsize::new(NOWHERE) };
}

/// A counter's handle (the addresses of its home word and of the table of the CPUs' words) together with the offset of
/// threads' rseq areas, so that an update follows no pointer but the table's, and does not wait for that: it predicts
/// that the words of the CPU are where the thread's last update found them.
///
/// A wrong prediction, after a migration or where a thread's counters are of several reservations in turn, costs a
/// jump and a call more. The displacement is one for all counters of a reservation, and in the fixed placement for all
/// of a pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResolvedHandle {
    handle: Handle,
    /// The offset of the threads' rseq areas ([`rseq::offset_of_table`]); 0 for counters that are not updated by plain
    /// sections.
    area: usize,
}

// SAFETY: everything a handle does is atomic or a section; its owner, which any thread may be, keeps the slot.
unsafe impl Send for ResolvedHandle {}
// SAFETY: as above.
unsafe impl Sync for ResolvedHandle {}

impl ResolvedHandle {
    pub(crate) fn new(handle: Handle) -> ResolvedHandle {
        // SAFETY: by the invariant of handles the table lives.
        let area = unsafe { rseq::offset_of_table(handle.table.as_ptr()) };
        ResolvedHandle { handle, area }
    }

    /// Adds `value` to the counter, in the word of the calling thread's CPU.
    #[inline(always)]
    pub(crate) fn add(&self, value: u64) {
        if cfg!(feature = "uniprocessor") {
            return self.handle.add(value);
        }
        let (base, table) = (self.handle.base.as_ptr(), self.handle.table.as_ptr());
        // SAFETY: the invariant of handles is the contract of the section, the area is the table's, and no
        // prediction is 0.
        if self.area == 0 || !unsafe { rseq::add_predicted(self.area, base, table, predicted(), value) } {
            self.add_unpredicted(value);
        }
    }

    /// Adds 1 to the counter, in the word of the calling thread's CPU.
    #[inline(always)]
    pub(crate) fn inc(&self) {
        if cfg!(feature = "uniprocessor") {
            return self.handle.inc();
        }
        let (base, table) = (self.handle.base.as_ptr(), self.handle.table.as_ptr());
        // SAFETY: as in `add`.
        if self.area == 0 || !unsafe { rseq::inc_predicted(self.area, base, table, predicted()) } {
            self.add_unpredicted(1);
        }
    }

    /// Subtracts 1 from the counter, in the word of the calling thread's CPU.
    #[inline(always)]
    pub(crate) fn dec(&self) {
        if cfg!(feature = "uniprocessor") {
            return self.handle.dec();
        }
        let (base, table) = (self.handle.base.as_ptr(), self.handle.table.as_ptr());
        // SAFETY: as in `add`.
        if self.area == 0 || !unsafe { rseq::dec_predicted(self.area, base, table, predicted()) } {
            self.add_unpredicted(u64::MAX);
        }
    }

    /// Adds `value` where there is no plain section for the handle, and after a wrong prediction: then it notes where the
    /// words of the CPU are. Async-signal-safe.
    ///
    /// Out of line for both, as the way that is common must end with a return of its own.
    #[cold]
    #[inline(never)]
    fn add_unpredicted(&self, value: u64) {
        self.handle.add(value);
        if !rseq::CAN_PREDICT || self.area == 0 {
            return;
        }
        // not registered: a negative number
        let Ok(cpu) = usize::try_from(rseq::area_cpu_id(self.area.cast_signed())) else { return };
        // SAFETY: by the invariant of handles the table lives.
        match unsafe { Reservation::entry_of_table(self.handle.table, cpu) } {
            // the CPU may not count yet; a prediction of 0 would let it
            0 => {}
            displacement => _ = DISPLACEMENT.try_with(|last| last.store(displacement, Ordering::Relaxed)),
        }
    }
}

/// Returns where the words of the calling thread's CPU probably are: the displacement from a home word, never 0.
#[inline(always)]
fn predicted() -> usize {
    if !rseq::CAN_PREDICT {
        return NOWHERE;
    }
    DISPLACEMENT.try_with(|last| last.load(Ordering::Relaxed)).unwrap_or(NOWHERE)
}
