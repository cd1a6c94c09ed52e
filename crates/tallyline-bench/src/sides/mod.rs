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

/// One side of a benchmark's comparison: a loop of operations that the runner can time.
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

/// A side of a benchmark, or the reason for the user why it is not available on this machine.
pub(crate) type Available = Result<Box<dyn Side>, String>;

/// A side of a benchmark made of a closure, which is called with the thread's number and the number of
/// operations.
pub(crate) struct Calls<F>(pub(crate) F);

impl<F: Fn(usize, u64) + Sync> Side for Calls<F> {
    fn run(&self, thread: usize, _placement: usize, n: u64) {
        (self.0)(thread, n);
    }
}

/// A value on cache lines of its own: two, as processors fetch lines in pairs.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Padded<T>(pub(crate) T);

/// The number of network interfaces, each with a group of counters, that the benchmarks' packets are spread
/// over.
pub(crate) const GROUPS: usize = 16;

/// The bytes of a packet.
const PACKET_LENGTH: u64 = 100;

/// The amount by which one packet raises the sum of its four counters: a packet and its bytes, received and
/// sent.
pub(crate) const PACKET_SUM: u64 = 2 * (1 + PACKET_LENGTH);

/// Returns the length in bytes of the packet of this turn, in a register, as a program has it: the compiler
/// does not know it.
#[inline(always)]
pub(crate) fn packet_length() -> u64 {
    looped::opaque(PACKET_LENGTH)
}
