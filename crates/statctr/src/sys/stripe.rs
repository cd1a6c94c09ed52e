//! The stripe of a thread that owns none: the number of the words that it adds to, where several threads may add
//! to the same ones because they do so atomically.
//!
//! Best is the CPU that the thread runs on. Asking for it costs some nanoseconds, on some machines a
//! system call, so a thread asks again only after [`UPDATES`] updates: after a migration it goes on adding
//! to the words of the CPU that it left, which is slower for so long, and as exact. Where the system does
//! not tell, each thread has a number instead.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of updates after which a thread asks for its CPU again; a power of two.
const UPDATES: usize = 256;

thread_local! {
    // Atomic for signal handlers, which may come between the load and the store: then an update more
    // or less goes by before the thread asks again.
    /// The chosen stripe plus one, times [`UPDATES`], plus the updates until it is chosen again; 0 if none was chosen.
    static CHOSEN: AtomicUsize = const { AtomicUsize::new(0) };
}

/// Returns the index of the per-CPU word that the calling thread adds to atomically (its stripe): the thread's CPU,
/// looked up once in 256 calls, or elsewhere than on Linux a number of the thread. Async-signal-safe, but for `errno`.
#[inline(always)]
pub(crate) fn stripe() -> usize {
    // a thread that ends has none any more on systems that free thread-local values
    CHOSEN.try_with(next_of).unwrap_or(0)
}

#[inline(always)]
fn next_of(chosen: &AtomicUsize) -> usize {
    let now = chosen.load(Ordering::Relaxed);
    if !now.is_multiple_of(UPDATES) {
        chosen.store(now - 1, Ordering::Relaxed);
        return now / UPDATES - 1;
    }
    choose(chosen, now / UPDATES)
}

#[cold]
#[inline(never)]
fn choose(chosen: &AtomicUsize, before: usize) -> usize {
    /// The number of threads that have a number.
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    let stripe = match (super::cpu_now(), before.checked_sub(1)) {
        (Some(cpu), _) => cpu,
        (None, Some(before)) => before,
        (None, None) => {
            let number = THREADS.fetch_add(1, Ordering::Relaxed);
            number % super::small_cpu_bound().unwrap_or(1).max(1)
        }
    };
    chosen.store((stripe + 1) * UPDATES + UPDATES - 1, Ordering::Relaxed);
    stripe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_stripe_for_a_number_of_updates_and_then_asks_again() {
        let chosen = AtomicUsize::new(0);
        let first = next_of(&chosen);
        assert!((1..UPDATES).all(|_| next_of(&chosen) == first));
        assert_eq!(chosen.load(Ordering::Relaxed) % UPDATES, 0, "asks with the next update");
        let bound = super::super::small_cpu_bound().expect("a number of CPUs");
        assert!((0..10 * UPDATES).all(|_| next_of(&chosen) < bound));
        assert!(stripe() < bound);
    }

    #[test]
    fn threads_that_cannot_ask_have_numbers_of_their_own() {
        if super::super::cpu_now().is_some() {
            return println!("skipped: this system tells a thread its CPU");
        }
        let bound = super::super::small_cpu_bound().expect("a number of CPUs");
        let of_thread = || std::thread::spawn(stripe).join().expect("no panic");
        // other tests' threads take numbers, too: of two threads on two CPUs both may get the same
        let mut seen: Vec<usize> = (0..16 * bound).map(|_| of_thread()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert!(seen.len() > bound / 2, "{seen:?} of {bound}");
    }
}
