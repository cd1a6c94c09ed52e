//! Test only: delays and aborts at the named points of the sections, and requests to the kernel
//! that fail.
//!
//! Each section has three points (see the specification in `rseq`): 1 after arming, 2
//! after the CPU number was read, 3 right before the commit. A delay there makes it likely that
//! the kernel interrupts the section at just that instruction; an abort takes the way the kernel
//! would take.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of injection points in an rseq critical section, at which tests can delay or abort it.
pub const POINTS: usize = 3;

/// The delays and aborts that tests inject into rseq critical sections: for point p (1 to 3), word 2p is the number of
/// turns of a delay loop, word 2p + 1 the number of passages still to be aborted.
pub(crate) static INJECTIONS: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

/// Delays all further rseq critical sections at injection point `point` by `turns` iterations of an empty loop; for
/// tests.
pub fn delay(point: usize, turns: u64) {
    if (1..=POINTS).contains(&point) {
        INJECTIONS[2 * point].store(turns, Ordering::SeqCst);
    }
}

/// Aborts rseq critical sections at their next `count` passages of injection point `point`, on any thread; for tests.
///
/// The count is decremented without a lock prefix, so that with several threads some more passages may be aborted.
pub fn abort(point: usize, count: u64) {
    if (1..=POINTS).contains(&point) {
        INJECTIONS[2 * point + 1].store(count, Ordering::SeqCst);
    }
}

/// Returns the number of passages of injection point `point` in rseq critical sections that are still to be aborted for
/// a test.
#[must_use]
pub fn aborts_left(point: usize) -> u64 {
    if (1..=POINTS).contains(&point) { INJECTIONS[2 * point + 1].load(Ordering::SeqCst) } else { 0 }
}

/// Removes all delays, aborts and failures that tests have injected into rseq critical sections and requests to the
/// kernel.
pub fn clear() {
    for word in INJECTIONS.iter().chain(&FAILURES) {
        word.store(0, Ordering::SeqCst);
    }
}

/// The kinds of the library's requests (for address space, memory pages, blocks of counter memory, `membarrier` and so
/// on) that tests can make fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Site {
    /// Mapping address space for a reservation, a slab of blocks or a slab of lazy objects.
    Map,
    /// Populating memory pages.
    Populate,
    /// Giving memory pages back to the kernel.
    Discard,
    /// Taking a block from the reserve, in the slow path of an update.
    Block,
    /// Taking an instance of a lazy object from the caches, in the slow path of an update.
    Instance,
    /// Taking a table for an object's many instances from the caches, in the slow path of an update.
    Table,
    /// Ending the sections of a drained CPU by `membarrier`.
    Membarrier,
}

/// All kinds of the library's requests (for address space, memory pages, blocks of counter memory, `membarrier` and so
/// on) that tests can make fail.
pub const SITES: [Site; 7] =
    [Site::Map, Site::Populate, Site::Discard, Site::Block, Site::Instance, Site::Table, Site::Membarrier];

/// By site: how many of the next requests are to fail.
static FAILURES: [AtomicU64; SITES.len()] = [const { AtomicU64::new(0) }; SITES.len()];

/// Makes the library's next `count` requests of this kind (for memory, or to the kernel) fail, on any thread, as if
/// memory were short or the kernel refused; for tests.
pub fn fail(site: Site, count: u64) {
    FAILURES[site as usize].store(count, Ordering::SeqCst);
}

/// Returns the number of the library's requests of this kind (for memory, or to the kernel) that are still to fail for
/// a test.
#[must_use]
pub fn failures_left(site: Site) -> u64 {
    FAILURES[site as usize].load(Ordering::SeqCst)
}

/// Returns `true` if a test wants this request of the library (for memory, or to the kernel) to fail, and counts it as
/// failed. Async-signal-safe.
pub(crate) fn fails(site: Site) -> bool {
    let less = |count: u64| count.checked_sub(1);
    FAILURES[site as usize].fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
}
