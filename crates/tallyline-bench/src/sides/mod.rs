//! The sides: every loop that a benchmark times, ours and the others', each in its best shape.
//!
//! A side is one way to do one thing, behind the trait [`Side`]; the runner knows nothing else of
//! it. One file per way. The only `unsafe` of this program is here: hand-written sections, scans
//! and calls into C have no other form.

#![allow(unsafe_code)] // machine code, C and memory maps are what is measured here

pub(crate) mod os;

pub(crate) mod arrays;
pub(crate) mod c;
pub(crate) mod child;
#[cfg(feature = "contatori")]
pub(crate) mod contatori;
pub(crate) mod fixed;
pub(crate) mod getcpu;
pub(crate) mod lazy;
pub(crate) mod looped;
pub(crate) mod percpu_atomic;
pub(crate) mod plain;
pub(crate) mod registered;
pub(crate) mod rseq_minimal;
pub(crate) mod scan;
pub(crate) mod shared;
pub(crate) mod slots;
pub(crate) mod units;

/// A *side* of a comparison: one of the implementations that a benchmark runs and times in turn, such as an
/// increment of a shared atomic.
pub(crate) trait Side: Sync {
    /// Returns the number of places in the code at which the loop exists; the runner takes the best of them.
    fn placements(&self) -> usize {
        1
    }

    /// Does the operation `n` times as thread `thread`, with the loop at one of its places.
    fn run(&self, thread: usize, placement: usize, n: u64);

    /// Returns the sum of everything that was counted; `None` for a side that does not count.
    ///
    /// Only read when no thread is in [`Side::run`].
    fn total(&self) -> Option<u64> {
        None
    }

    /// Returns the amount by which one operation raises [`Side::total`].
    fn per_operation(&self) -> u64 {
        1
    }
}

/// A side (one implementation to measure), or the reason why it cannot be measured on this machine, as text for users.
pub(crate) type Available = Result<Box<dyn Side>, String>;

/// A benchmark side (one of the implementations compared) that calls a closure with the thread's number and the number
/// of operations to do.
pub(crate) struct Calls<F>(pub(crate) F);

impl<F: Fn(usize, u64) + Sync> Side for Calls<F> {
    fn run(&self, thread: usize, _placement: usize, n: u64) {
        (self.0)(thread, n);
    }
}

/// A value alone on two adjacent cache lines, as processors prefetch lines in pairs.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Padded<T>(pub(crate) T);

/// The number of network interfaces, each with its own group of counters, among which the benchmarks' packets are
/// distributed.
pub(crate) const GROUPS: usize = 16;

/// The bytes of a packet.
const PACKET_LENGTH: u64 = 100;

/// The amount by which one packet raises the sum of a network interface's four counters: packets and bytes, received
/// and sent.
pub(crate) const PACKET_SUM: u64 = 2 * (1 + PACKET_LENGTH);

/// Returns the length of a benchmark packet in bytes, hidden from the compiler's optimiser as if it were read from
/// a network card.
#[inline(always)]
pub(crate) fn packet_length() -> u64 {
    looped::opaque(PACKET_LENGTH)
}
