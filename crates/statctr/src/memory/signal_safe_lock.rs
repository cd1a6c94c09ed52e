//! A lock that a writer may try, also in a signal handler, and that a fork cannot leave held.
//!
//! The holder is written into it: the number of forks that led to the process, and the thread. A lock that another
//! thread of the parent held when the child was made counts as free in the child. What is done
//! under it must therefore leave a whole state after each of its stores. One that the child's own thread held is held:
//! a signal interrupted it there, whose handler forked, and it goes on when the handler returns.

use crate::sys::{forks, thread_identity};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Pause between attempts where a lock is held for long.
const PAUSE: Duration = Duration::from_micros(50);

/// A spin lock that may be tried in signal handlers and on the slow path of counters' updates, which never wait for it.
#[derive(Debug)]
pub(crate) struct SignalSafeLock(AtomicU64);

/// Guard of a [`SignalSafeLock`], which unlocks it when dropped.
#[derive(Debug)]
pub(crate) struct SignalSafeLockGuard<'a>(&'a SignalSafeLock);

/// Bits of a thread's identity, an address; the number of forks is kept above.
const IDENTITY_BITS: u32 = 48;

/// Returns the state of a lock that this thread of a process holds; never 0, which is that of a lock nobody holds.
fn holder(forks: u64, thread: usize) -> u64 {
    (forks + 1) << IDENTITY_BITS | (thread as u64 & ((1 << IDENTITY_BITS) - 1)) | 1
}

/// Returns `true` if a lock in this state may be taken by `ours`.
fn is_free(seen: u64, ours: u64) -> bool {
    let (of_process, of_thread) = (seen >> IDENTITY_BITS, seen << (u64::BITS - IDENTITY_BITS));
    seen == 0 || (of_process != ours >> IDENTITY_BITS && of_thread != ours << (u64::BITS - IDENTITY_BITS))
}

impl SignalSafeLock {
    pub(crate) const fn new() -> SignalSafeLock {
        SignalSafeLock(AtomicU64::new(0))
    }

    /// Takes the lock if it is free; `None` if it is held. Async-signal-safe.
    pub(crate) fn try_lock(&self) -> Option<SignalSafeLockGuard<'_>> {
        let ours = holder(forks(), thread_identity());
        let seen = self.0.load(Ordering::Relaxed);
        let taken = is_free(seen, ours)
            && self.0.compare_exchange(seen, ours, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // not made, and so not dropped, where it was not taken
        taken.then(|| SignalSafeLockGuard(self))
    }

    /// Spins until the lock is taken. Updates and signal handlers use [`try_lock`](Self::try_lock) instead, since this
    /// thread may hold the lock.
    pub(crate) fn lock(&self) -> SignalSafeLockGuard<'_> {
        // held for a few instructions, or by a thread that wants this CPU
        for _ in 0..100 {
            match self.try_lock() {
                Some(guard) => return guard,
                None => std::thread::yield_now(),
            }
        }
        loop {
            match self.try_lock() {
                Some(guard) => return guard,
                // or by one of less priority, to which a real-time thread yields by sleeping only
                None => std::thread::sleep(PAUSE),
            }
        }
    }
}

impl Drop for SignalSafeLockGuard<'_> {
    fn drop(&mut self) {
        self.0.0.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_one_thread() {
        let lock = SignalSafeLock::new();
        let guard = lock.try_lock();
        assert!(guard.is_some() && lock.try_lock().is_none() && lock.try_lock().is_none());
        drop(guard);
        drop(lock.lock());
        assert!(lock.try_lock().is_some());
    }

    #[test]
    fn a_lock_that_another_thread_of_the_parent_held_is_free() {
        let held_by = |forks, thread| SignalSafeLock(AtomicU64::new(holder(forks, thread)));
        let (ours, another) = (thread_identity(), thread_identity() ^ 0x1_0000);
        for of_parent in [forks() + 1, forks() + 7] {
            assert!(held_by(of_parent, another).try_lock().is_some());
            assert!(held_by(of_parent, ours).try_lock().is_none(), "the handler of a signal forked");
        }
        assert!(
            held_by(forks(), another).try_lock().is_none() && held_by(forks(), ours).try_lock().is_none()
        );
    }

    /// Makes the calling thread one of real time, on one CPU; `false` where that is not allowed.
    fn become_urgent(priority: libc::c_int) -> bool {
        // SAFETY: all zeros is a set of CPUs, and a parameter.
        unsafe {
            let mut cpus: libc::cpu_set_t = std::mem::zeroed();
            let size = size_of_val(&cpus);
            if libc::sched_getaffinity(0, size, &raw mut cpus) != 0 {
                return false;
            }
            let first = (0..libc::CPU_SETSIZE as usize).find(|&cpu| libc::CPU_ISSET(cpu, &cpus));
            libc::CPU_ZERO(&mut cpus);
            libc::CPU_SET(first.unwrap_or(0), &mut cpus);
            let mut parameter: libc::sched_param = std::mem::zeroed();
            parameter.sched_priority = priority;
            libc::sched_setaffinity(0, size, &raw const cpus) == 0
                && libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) == 0
        }
    }

    #[test]
    fn a_real_time_thread_lets_one_of_lower_priority_on_its_cpu_unlock() {
        let (lock, locked) = (SignalSafeLock::new(), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let urgent = become_urgent(1);
                let held = lock.lock();
                locked.wait();
                // the other one comes in between
                let start = std::time::Instant::now();
                while urgent && start.elapsed() < Duration::from_millis(5) {
                    std::hint::spin_loop();
                }
                drop(held);
            });
            scope.spawn(|| {
                locked.wait();
                if !become_urgent(2) {
                    println!("skipped: there is no right to real time here");
                }
                drop(lock.lock());
            });
        });
    }
}
