//! The largest and the smallest value that was observed: [`Max`] and [`Min`].

use crate::error::Result;
use crate::memory::Maximum;
use crate::placement::Pool;
use std::fmt;

/// A per-CPU maximum: the largest value observed since it was created, taken or reset.
///
/// Costs 64 bytes for the handle, which is aligned to a cache line, and 32 per CPU that observes.
///
/// ```
/// use statctr::Max;
///
/// let slowest = Max::new()?;
/// assert_eq!(slowest.read(), Max::IDENTITY);
/// slowest.observe(1500);
/// slowest.observe(900);
/// assert_eq!(slowest.read(), 1500);
/// // the largest of each interval, for a report once a minute
/// assert_eq!(slowest.take(), 1500);
/// slowest.observe(70);
/// assert_eq!((slowest.take(), slowest.take()), (70, Max::IDENTITY));
/// # Ok::<(), statctr::Error>(())
/// ```
///
/// # Without a value
/// If nothing was observed, reads return [`IDENTITY`](Self::IDENTITY), 0, as if 0 had been observed.
///
/// # Taking and resetting
/// An observation that runs at the same time as [`take`](Self::take) is in the value that is taken or in that of
/// the next interval; where it does not count per CPU (threads without rseq, memory that is not there) it may
/// be in both. None is lost, except where the kernel refuses `membarrier(2)` (before Linux 5.10, in some
/// sandboxes): there one that runs at the same time may be in neither; so may one that does not count per CPU
/// and during which sixteen takes go by. [`reset`](Self::reset) drops the value:
/// an observation at the same time is wholly before it, and gone, or after it. Neither writes a CPU's words.
///
/// # Without rseq
/// All CPUs have one shared word there, also in a pool that is striped
/// ([`Placement::Striped`](crate::Placement::Striped)): an observation loads it, and writes it only if the value goes
/// beyond it. Where that is rare, each CPU loads from its own cache. Where it is not, as of numbers that only
/// rise, the CPUs take the line from each other.
///
/// # Ordering, threads, signals, forks
/// Those of [`Counter`](crate::Counter): an observation that happens before a read is in it, whatever CPU made
/// it, and between resets successive reads by one reader never go down.
pub struct Max(Maximum);

/// A per-CPU minimum: the smallest value observed since it was created, taken or reset.
///
/// A [`Max`] of complements: cost, ordering, the shared word without rseq, and what taking and resetting mean are the
/// same.
///
/// ```
/// use statctr::Min;
///
/// let fastest = Min::new()?;
/// assert_eq!(fastest.read(), Min::IDENTITY);
/// fastest.observe(1500);
/// fastest.observe(900);
/// assert_eq!((fastest.read(), fastest.take(), fastest.read()), (900, 900, u64::MAX));
/// # Ok::<(), statctr::Error>(())
/// ```
///
/// # Without a value
/// If nothing was observed, reads return [`IDENTITY`](Self::IDENTITY), 2⁶⁴ − 1.
pub struct Min(Maximum);

macro_rules! extreme {
    ($Extreme:ident, $identity:expr, $stored:expr, $which:literal) => {
        impl $Extreme {
            /// The value where nothing was observed.
            pub const IDENTITY: u64 = $identity;

            /// Converts a value to what is stored, of which the maximum is kept, and back.
            #[inline(always)]
            pub(crate) fn stored(value: u64) -> u64 {
                let stored: fn(u64) -> u64 = $stored;
                stored(value)
            }

            #[doc = concat!("Creates a ", $which, " of nothing so far, in the global pool.")]
            ///
            /// # Errors
            /// Fails as [`Counter::new`](crate::Counter::new) does.
            pub fn new() -> Result<$Extreme> {
                $Extreme::new_in(Pool::global()?)
            }

            #[doc = concat!("Creates a ", $which, " of nothing so far, in `pool`.")]
            ///
            /// # Errors
            /// Fails as [`Counter::new_in`](crate::Counter::new_in) does.
            pub fn new_in(pool: &Pool) -> Result<$Extreme> {
                Maximum::take_memory(pool.arena()).map($Extreme)
            }

            /// Observes a value: stores it if it goes beyond the CPU's other ones. One to two nanoseconds; without rseq
            /// a load of a shared word, and an atomic instruction where the value goes beyond that. Never
            /// waits; async-signal-safe.
            #[inline(always)]
            pub fn observe(&self, value: u64) {
                self.0.raise(Self::stored(value));
            }

            #[doc = concat!("Returns the ", $which, ". Cost: a cache line per CPU that observes. Async-signal-safe.")]
            #[must_use]
            pub fn read(&self) -> u64 {
                Self::stored(self.0.read())
            }

            #[doc = concat!("Returns the ", $which, " since the last call, and begins anew.")]
            ///
            /// Cost: that of a read, the pool's lock, and a system call that interrupts the CPUs on which threads
            /// of the process run. Not for signal handlers.
            pub fn take(&self) -> u64 {
                Self::stored(self.0.take())
            }

            /// Drops all that was observed. Takes the pool's lock: not for signal handlers.
            pub fn reset(&self) {
                self.0.set(Self::stored(Self::IDENTITY));
            }
        }

        impl fmt::Debug for $Extreme {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($Extreme)).field(&self.read()).finish()
            }
        }
    };
}

extreme!(Max, 0, |value| value, "maximum");
extreme!(Min, u64::MAX, |value| !value, "minimum");
