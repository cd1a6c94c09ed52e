//! A lock that survives `fork`.
//!
//! `fork` copies one thread and every lock, held or not: a lock that another thread held at that
//! moment would stay locked in the child for ever. Each lock here is therefore listed, and a
//! handler that runs before every `fork` takes all of them, so that the child gets them unlocked
//! and with the data behind them whole.
//!
//! A POSIX mutex underneath, because that is the kind that the thread which forks may unlock in
//! the child.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

/// The library's locks, in the order in which they may be taken together and in which `fork` takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// The counters of C that a registry has: registers while it is held.
    Names,
    /// A registry: may ask pools while it is held.
    Registry,
    /// A pool.
    Pool,
    /// The blocks that a pool's movable units are made of.
    Depot,
    /// Readers that hold writers off for a moment: nothing is taken under it.
    Reader,
    /// The search for a registration: nothing is taken under it.
    Registration,
}

type RawMutex = UnsafeCell<libc::pthread_mutex_t>;

/// A mutex of the library that survives `fork`: the child's copies are unlocked.
///
/// Made and dropped only while the thread holds no other: `fork` takes the list of locks first and
/// then every lock in it. Checked in debug builds.
pub(crate) struct Lock<T> {
    rank: Rank,
    // boxed: a POSIX mutex must not move
    raw: Box<RawMutex>,
    value: UnsafeCell<T>,
}

// SAFETY: the mutex hands the value from thread to thread, as `std::sync::Mutex` does.
unsafe impl<T: Send> Send for Lock<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Guard of a [`Lock`], which gives access to the value and unlocks when dropped.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    before: Option<Rank>,
}

impl<T> Lock<T> {
    pub(crate) fn new(rank: Rank, value: T) -> Self {
        let raw = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        debug_assert_eq!(order::held(), None, "a lock is made while another is held");
        list::add(rank, &raw);
        Lock { rank, raw, value: UnsafeCell::new(value) }
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let before = order::hold(Some(self.rank));
        debug_assert!(before < Some(self.rank), "{:?} is taken under {before:?}", self.rank);
        // SAFETY: the mutex was initialised and does not move. A mutex of the default kind fails
        // only where the same thread holds it already, which no path of this crate does.
        unsafe { libc::pthread_mutex_lock(self.raw.get()) };
        Guard { lock: self, before }
    }
}

impl<T> Drop for Lock<T> {
    fn drop(&mut self) {
        debug_assert_eq!(order::held(), None, "a lock is dropped while another is held");
        list::remove(&self.raw);
        // SAFETY: nobody holds it: holding borrows.
        unsafe { libc::pthread_mutex_destroy(self.raw.get()) };
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: this guard is the proof that this thread holds the mutex.
        unsafe { libc::pthread_mutex_unlock(self.lock.raw.get()) };
        order::hold(self.before);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the mutex is held, so no other reference to the value exists.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`, and `self` is borrowed alone.
        unsafe { &mut *self.lock.value.get() }
    }
}

/// The rank of the lock that the thread took last of those that it holds, tracked in debug builds only.
mod order {
    use super::Rank;
    use std::cell::Cell;

    thread_local! {
        static HELD: Cell<Option<Rank>> = const { Cell::new(None) };
    }

    pub(super) fn held() -> Option<Rank> {
        if cfg!(debug_assertions) { HELD.get() } else { None }
    }

    /// Notes the change, and says what was noted before.
    pub(super) fn hold(rank: Option<Rank>) -> Option<Rank> {
        if cfg!(debug_assertions) { HELD.replace(rank) } else { None }
    }
}

/// Returns the number of forks between the program's start and this process.
pub(crate) fn forks() -> u64 {
    list::FORKS.load(std::sync::atomic::Ordering::Relaxed)
}

/// Every lock there is, by rank, and the handlers of `fork`.
mod list {
    use super::{Rank, RawMutex, UnsafeCell};
    use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

    struct Listed {
        guard: RawMutex,
        locks: UnsafeCell<Vec<(Rank, *const RawMutex)>>,
    }

    // SAFETY: `locks` is touched only while `guard` is held.
    unsafe impl Sync for Listed {}

    static LISTED: Listed = Listed {
        guard: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
        locks: UnsafeCell::new(Vec::new()),
    };

    /// The thread that is between `before` and `after`, and how often it went through `before`.
    static FORKING: AtomicUsize = AtomicUsize::new(0);
    static DEPTH: AtomicUsize = AtomicUsize::new(0);

    pub(super) static FORKS: AtomicU64 = AtomicU64::new(0);

    /// Registers the handlers of `fork` when the program starts or loads this library. So early
    /// that no other thread forks meanwhile; and that the program's own handlers, which come
    /// later, run outside of ours and may use counters.
    #[used]
    #[cfg(target_os = "linux")]
    #[unsafe(link_section = ".init_array")]
    static AT_START: extern "C" fn() = handle_forks;

    /// Registers the handlers of `fork`, where that was not done. No lock is held meanwhile: a fork
    /// could leave it held in the child. Two threads may both get here, which is why going through
    /// the handlers twice does no harm.
    extern "C" fn handle_forks() {
        static HANDLED: AtomicBool = AtomicBool::new(false);
        if !HANDLED.load(Ordering::Acquire) {
            // SAFETY: the handlers live as long as the program. Where there is no memory for it,
            // forks while another thread makes counters are not safe; nothing else suffers.
            unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after_in_child)) };
            HANDLED.store(true, Ordering::Release);
        }
    }

    fn with_list(change: impl FnOnce(&mut Vec<(Rank, *const RawMutex)>)) {
        handle_forks();
        // SAFETY: `guard` is a static mutex; the list is touched only between lock and unlock, and
        // `change` does not come back here.
        unsafe {
            libc::pthread_mutex_lock(LISTED.guard.get());
            change(&mut *LISTED.locks.get());
            libc::pthread_mutex_unlock(LISTED.guard.get());
        }
    }

    pub(super) fn add(rank: Rank, lock: &RawMutex) {
        let lock: *const RawMutex = lock;
        with_list(|locks| {
            let place = locks.partition_point(|(other, _)| *other <= rank);
            locks.insert(place, (rank, lock));
        });
    }

    pub(super) fn remove(lock: &RawMutex) {
        let lock: *const RawMutex = lock;
        with_list(|locks| locks.retain(|(_, other)| *other != lock));
    }

    /// Returns a number of the calling thread, the same in a child that it forks.
    fn me() -> usize {
        // SAFETY: has no arguments.
        unsafe { libc::pthread_self() as usize }
    }

    extern "C" fn before() {
        // only this thread can have written its own number
        if FORKING.load(Ordering::Relaxed) != me() {
            // SAFETY: `guard` stays held until `after`, so the list stays as it is and its mutexes
            // stay alive (their owners need the guard to take them off the list).
            unsafe {
                libc::pthread_mutex_lock(LISTED.guard.get());
                for (_, lock) in &*LISTED.locks.get() {
                    libc::pthread_mutex_lock((**lock).get());
                }
            }
            FORKING.store(me(), Ordering::Relaxed);
        }
        DEPTH.fetch_add(1, Ordering::Relaxed);
    }

    extern "C" fn after_in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
        after();
    }

    extern "C" fn after() {
        if DEPTH.fetch_sub(1, Ordering::Relaxed) > 1 {
            return;
        }
        FORKING.store(0, Ordering::Relaxed);
        // SAFETY: runs in the thread that ran `before`, in the parent and, as its copy, in the
        // child: it holds all of these mutexes.
        unsafe {
            for (_, lock) in (*LISTED.locks.get()).iter().rev() {
                libc::pthread_mutex_unlock((**lock).get());
            }
            libc::pthread_mutex_unlock(LISTED.guard.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_hands_its_value_on() {
        let lock = Lock::new(Rank::Pool, 0u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        *lock.lock() += 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 4000);
    }
    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "made while another is held")]
    fn no_lock_is_made_under_another() {
        let lock = Lock::new(Rank::Pool, ());
        let _held = lock.lock();
        let _other = std::mem::ManuallyDrop::new(Lock::new(Rank::Reader, ()));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "is taken under")]
    fn no_lock_is_taken_against_the_order() {
        let (pool, reader) = (Lock::new(Rank::Pool, ()), Lock::new(Rank::Reader, ()));
        let _held = reader.lock();
        let _other = pool.lock();
    }
}
