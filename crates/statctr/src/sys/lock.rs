//! A lock that survives `fork`.
//!
//! `fork` copies one thread and every lock, held or not: a lock that another thread held at that
//! moment would stay locked in the child for ever. Each lock here is therefore listed, and a
//! handler that runs before every `fork` takes all of them, so that the child gets them unlocked
//! and with the data behind them whole.
//!
//! The mutex underneath and the list are the system's matter (`RawMutex`): where there is no `fork`,
//! there is no list.

use super::RawMutex;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

/// The locks of this library, in the order in which a thread may take them together and in which `fork` takes them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// The statistics of C that a registry has: registers while it is held.
    Names,
    /// A registry: may ask pools while it is held.
    Registry,
    /// A statistic of C in a registry: is read while it is held.
    Borrowed,
    /// The lock of a pool.
    Pool,
    /// The blocks that a pool's movable units are made of.
    Depot,
    /// Readers that hold writers off for a moment: nothing is taken under it.
    Reader,
    /// The search for a registration: nothing is taken under it.
    Registration,
}

/// A mutex that survives `fork`: the child's copy is unlocked and its value consistent, whoever held it in the parent.
///
/// Made and dropped only while the thread holds no other: `fork` takes the list of locks first and
/// then every lock in it. Checked in debug builds.
pub(crate) struct Lock<T> {
    rank: Rank,
    raw: RawMutex,
    value: UnsafeCell<T>,
}

// SAFETY: the mutex hands the value from thread to thread, as `std::sync::Mutex` does.
unsafe impl<T: Send> Send for Lock<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The guard of a locked [`Lock`], which dereferences to the value and unlocks when dropped.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    before: Option<Rank>,
}

impl<T> Lock<T> {
    pub(crate) fn new(rank: Rank, value: T) -> Self {
        debug_assert_eq!(order::held(), None, "a lock is made while another is held");
        Lock { rank, raw: RawMutex::new(rank as usize), value: UnsafeCell::new(value) }
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let before = order::hold(Some(self.rank));
        debug_assert!(before < Some(self.rank), "{:?} is taken under {before:?}", self.rank);
        self.raw.lock();
        Guard { lock: self, before }
    }
}

impl<T> Drop for Lock<T> {
    fn drop(&mut self) {
        debug_assert_eq!(order::held(), None, "a lock is dropped while another is held");
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: this guard is the proof that this thread holds the mutex.
        unsafe { self.lock.raw.unlock() };
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
