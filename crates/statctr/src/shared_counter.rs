//! One statistic with several owners: [`SharedCounter`].

use crate::counter::Counter;
use crate::error::Result;
use crate::memory::ResolvedHandle;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A [`Counter`] with several owners: clones count in the same counter, which is freed with the last of them.
///
/// An `Arc<Counter>` whose updates do not follow the `Arc`: all that an update needs is in the object itself, 32
/// bytes. For counters that are reached by a pointer with each update, as behind a trait object or in a struct of
/// handles; in a loop that keeps a [`Counter`]'s address in registers there is no difference.
///
/// # Cost
/// On x86-64 an update does not wait for the table that says where the words of its CPU are: it predicts that they are
/// where they were with the thread's last update of a shared counter, and compares. In a loop of updates whose counters
/// are loaded from memory each time that is 1.0 ns where a [`Counter`] takes 2.5 (virtual AMD EPYC, Zen 3); with work
/// in between less is gained, as that hides the wait. The prediction holds for all counters of a pool in the fixed
/// placement, and else for those that lie in one reservation (32 768 by default). A wrong one, after a migration or
/// where counters of two pools take turns, makes it 5.7 ns. In a library that is loaded while the program runs
/// (`dlopen`) it asks the loader for a thread-local with each update, some nanoseconds.
///
/// # Signals
/// Updates are async-signal-safe in a program and in what it is linked with. In a library loaded by `dlopen` a thread's
/// first update may allocate the library's thread-locals: count there once in each thread, or use [`Counter`], before a
/// handler does.
///
/// ```
/// use statctr::SharedCounter;
///
/// let packets = SharedCounter::new(0)?;
/// let of_thread = packets.clone();
/// std::thread::spawn(move || of_thread.add(3)).join().expect("no panic");
/// packets.inc();
/// assert_eq!(packets.read(), 4);
/// # Ok::<(), statctr::Error>(())
/// ```
#[derive(Clone)]
pub struct SharedCounter {
    /// The handle of `counter`, which has the same one as long as it lives.
    word: ResolvedHandle,
    counter: Arc<Counter>,
}

impl SharedCounter {
    /// Creates a counter for several owners (a clone counts in the same counter, and the last one that is dropped frees it)
    /// with the value `initial`, in the process's global pool of counter memory.
    ///
    /// # Errors
    /// Fails as [`Counter::new`] does.
    pub fn new(initial: u64) -> Result<SharedCounter> {
        Counter::new(initial).map(SharedCounter::from)
    }

    /// Adds 1 to the counter. Cost as [`Counter::inc`]; async-signal-safe but for `dlopen` (see the type).
    #[inline(always)]
    pub fn inc(&self) {
        self.word.inc();
    }

    /// Subtracts 1 from the counter. Cost as [`Counter::dec`]; async-signal-safe but for `dlopen` (see the type).
    #[inline(always)]
    pub fn dec(&self) {
        self.word.dec();
    }

    /// Adds `value` to the counter. Cost as [`Counter::add`]; async-signal-safe but for `dlopen` (see the type).
    #[inline(always)]
    pub fn add(&self, value: u64) {
        self.word.add(value);
    }

    /// Subtracts `value` from the counter. Cost as [`Counter::sub`]; async-signal-safe but for `dlopen` (see the type).
    #[inline(always)]
    pub fn sub(&self, value: u64) {
        self.word.add(value.wrapping_neg());
    }

    /// Returns the underlying counter, to be registered in a [`Registry`](crate::Registry) or read.
    #[must_use]
    pub fn counter(&self) -> &Arc<Counter> {
        &self.counter
    }
}

impl From<Counter> for SharedCounter {
    fn from(counter: Counter) -> SharedCounter {
        SharedCounter { word: counter.resolved(), counter: Arc::new(counter) }
    }
}

impl From<Arc<Counter>> for SharedCounter {
    fn from(counter: Arc<Counter>) -> SharedCounter {
        SharedCounter { word: counter.resolved(), counter }
    }
}

impl Deref for SharedCounter {
    type Target = Counter;

    fn deref(&self) -> &Counter {
        &self.counter
    }
}

impl fmt::Debug for SharedCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedCounter").field(&self.read()).finish()
    }
}
