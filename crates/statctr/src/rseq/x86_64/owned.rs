//! Stripes that belong to one thread each: it adds to their words by one plain instruction, which a signal cannot
//! split, and nobody else does.
//!
//! ```text
//! claim, in an update:  mine := none; ask for the thread's end; take a number that is free (acquire); mine := number
//! end of the thread:    mine := none; number is free (release)
//! ```
//! A handler that comes in the middle of either finds no number, and adds atomically to other words. Who takes a number
//! has acquired what its last owner stored, and so goes on from there. A thread that ends past libc keeps its number for
//! ever, as do the threads that a forked child does not have; what they counted is read.
//!
//! From the look at its number to the addition a thread must stay itself: a signal handler that lets the interrupted
//! code go on in another thread, as no C library's does, would let two threads add.
//!
//! A thread keeps its number mixed with its thread pointer: the word means nothing in a copy of the thread's area, by
//! which a thread past libc may begin. It lies at one offset from the thread pointer in all threads, which memory with
//! such stripes names: code of another copy of the library finds there whose stripe is meant, or none.

use super::{asm, thread_pointer};
use crate::sys;
use std::arch::naked_asm;
use std::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering, compiler_fence};

/// The number of threads of each CPU that get counter words of their own: a thread takes such words on the CPU that it
/// runs on, and keeps them wherever it goes.
pub(crate) const OWNED_PER_CPU: usize = 2;
/// CPUs with such numbers.
const OWNING_CPUS: usize = 8192;
/// The number of stripes (sets of counter words) that can belong to single threads, over all CPUs.
pub(crate) const OWNED_STRIPES: usize = OWNED_PER_CPU * OWNING_CPUS;

/// The value in place of a thread's number before the thread looked for one.
const NEW: usize = 0;
/// The value in place of a thread's number if the thread can have none.
const NONE: usize = 1;
/// The value in place of a thread's number while the thread takes one.
const CLAIMING: usize = 2;
/// The value in place of a number when all were taken: [`CLAIMING`] and the updates until the thread looks again.
const CROWDED: usize = CLAIMING + 256;

super::area::thread_local_offset! {
    /// Returns the offset of the word in which a thread keeps its number; 0 where it is not the same in all threads.
    offset_of_mine = "statctr_owned_stripe";
    concat!(
        ".ifndef statctr_owned_stripe\n",
        ".pushsection .tbss, \"awT\", @nobits\n",
        ".balign 8\n",
        ".type statctr_owned_stripe, @object\n",
        ".size statctr_owned_stripe, 8\n",
        "statctr_owned_stripe: .zero 8\n",
        ".popsection\n",
        ".endif"
    )
}

/// The offset of the threads' numbers; 0: nobody may own a stripe.
static OFFSET: AtomicIsize = AtomicIsize::new(0);

/// Numbers that are taken, a bit each.
static TAKEN: [AtomicU64; OWNED_STRIPES / 64] = [const { AtomicU64::new(0) }; OWNED_STRIPES / 64];

/// CPUs whose numbers somebody has words for: those from 0 to this, without it.
static CPUS: AtomicUsize = AtomicUsize::new(0);

/// Returns a number mixed with a thread pointer.
fn mixed(number: usize, pointer: usize) -> usize {
    (pointer << 16) ^ (number + 1)
}

/// Returns the number of the stripe (set of counter words) that the calling thread alone adds to; `None` if it has
/// none. `offset` leads to the thread's own word with the number; 0 means that no thread has stripes.
/// Async-signal-safe.
///
/// # Safety
/// The offset is 0 or that of [`offset_of_mine`] of some copy of the library.
#[inline(always)]
pub(crate) unsafe fn owned_stripe(offset: isize) -> Option<usize> {
    if offset == 0 {
        return None;
    }
    let number: usize;
    // SAFETY: loads the thread pointer and a word of the thread. Not pure: the word changes.
    unsafe {
        asm!(
            "mov {number}, fs:0",
            "shl {number}, 16",
            "xor {number}, qword ptr fs:[{offset}]",
            "dec {number}",
            number = out(reg) number,
            offset = in(reg) offset,
            options(nostack, readonly),
        );
    }
    (number < OWNED_STRIPES).then_some(number)
}

/// Returns the word in which the calling thread keeps its number.
fn mine<'a>(offset: isize) -> &'a AtomicUsize {
    // SAFETY: the word lies there in every thread, and lives as long as the thread.
    unsafe { &*thread_pointer().wrapping_offset(offset).cast::<AtomicUsize>() }
}

/// Returns the number of the stripe (set of counter words) that the calling thread alone adds to, and takes a free one
/// if it has none; `None` if there is none for it, as where the offset is that of another copy of the library.
/// Async-signal-safe.
#[cold]
pub(crate) fn claim_owned_stripe(offset: isize) -> Option<usize> {
    if offset == 0 || OFFSET.load(Ordering::Acquire) != offset {
        return None;
    }
    let mine = mine(offset);
    match mine.load(Ordering::Relaxed) {
        NEW => claim(mine),
        NONE | CLAIMING => None,
        left @ ..=CROWDED => {
            mine.store(if left == CLAIMING + 1 { NEW } else { left - 1 }, Ordering::Relaxed);
            None
        }
        // SAFETY: this copy's offset.
        _ => unsafe { owned_stripe(offset) },
    }
}

/// Prepares for threads that own stripes (sets of counter words) of the first `cpus` CPUs. Returns the number of these
/// stripes, 0 where the ends of threads cannot be told, and the offset in threads of the word that names theirs. Not
/// for signal handlers.
pub(crate) fn prepare_owned_stripes(cpus: usize) -> (usize, isize) {
    let offset = offset_of_mine();
    if cpus > OWNING_CPUS || offset == 0 || !end::prepare() {
        return (0, 0);
    }
    CPUS.fetch_max(cpus, Ordering::Relaxed);
    OFFSET.store(offset, Ordering::Release);
    (cpus * OWNED_PER_CPU, offset)
}

fn claim(mine: &AtomicUsize) -> Option<usize> {
    // a signal handler that comes from here on adds to other words
    mine.store(CLAIMING, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let is_told = end::arm();
    let number = if is_told { take() } else { None };
    let kept = match number {
        Some(number) => mixed(number, thread_pointer().addr()),
        None if is_told => CROWDED,
        None => NONE,
    };
    mine.store(kept, Ordering::Relaxed);
    number
}

/// Takes a number that is free, of the CPU that the thread runs on.
fn take() -> Option<usize> {
    let cpu = sys::cpu_now().filter(|cpu| *cpu < CPUS.load(Ordering::Relaxed))?;
    (cpu * OWNED_PER_CPU..(cpu + 1) * OWNED_PER_CPU).find(|number| {
        let (word, bit) = (&TAKEN[number / 64], 1 << (number % 64));
        word.load(Ordering::Relaxed) & bit == 0 && word.fetch_or(bit, Ordering::Acquire) & bit == 0
    })
}

/// Gives up the calling thread's number for good.
fn release() {
    let offset = OFFSET.load(Ordering::Acquire);
    // SAFETY: this copy's offset.
    let number = unsafe { owned_stripe(offset) };
    mine(offset).store(NONE, Ordering::Relaxed);
    // a signal handler may come before the number is free, and not add to its words
    compiler_fence(Ordering::SeqCst);
    if let Some(number) = number {
        TAKEN[number / 64].fetch_and(!(1 << (number % 64)), Ordering::Release);
    }
}

/// The ends of threads, by a key of POSIX threads: its destructor runs before the thread-local variables go.
mod end {
    use super::{asm, thread_pointer};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Keys below this are in the thread's own area in glibc, and take no memory; all are in musl.
    const FIRST_KEYS: libc::pthread_key_t = 32;
    /// Two more than the key; 0: nobody made one, 1: there is none.
    static KEY: AtomicUsize = AtomicUsize::new(0);
    const NO_KEY: usize = 1;

    pub(super) fn prepare() -> bool {
        if KEY.load(Ordering::Acquire) == 0 {
            let made = make();
            let ours = made.map_or(NO_KEY, |key| key as usize + 2);
            let first = KEY.compare_exchange(0, ours, Ordering::AcqRel, Ordering::Acquire);
            if let (Err(_), Some(key)) = (first, made) {
                // SAFETY: just made, and used by nobody.
                unsafe { libc::pthread_key_delete(key) };
            }
        }
        KEY.load(Ordering::Acquire) > NO_KEY
    }

    fn make() -> Option<libc::pthread_key_t> {
        if !crate::sys::keep_this_object() {
            return None;
        }
        let mut key = 0;
        // SAFETY: writes a key; the function stays, as its object does.
        let made = unsafe { libc::pthread_key_create(&raw mut key, Some(at_end)) } == 0;
        if made && key >= FIRST_KEYS {
            // SAFETY: just made, and used by nobody.
            unsafe { libc::pthread_key_delete(key) };
        }
        (made && key < FIRST_KEYS).then_some(key)
    }

    /// Asks for being told of the calling thread's end; `false` where nobody would tell. Async-signal-safe: a store
    /// into the thread's area.
    pub(super) fn arm() -> bool {
        let key = KEY.load(Ordering::Acquire);
        if key <= NO_KEY || !is_made_by_libc() {
            return false;
        }
        let key = (key - 2) as libc::pthread_key_t;
        // SAFETY: a key that was made; the mark is no pointer that anybody follows.
        unsafe { libc::pthread_setspecific(key, std::ptr::dangling()) == 0 }
    }

    /// Returns `true` if the C library made the calling thread, so that its functions may be called for it: a thread
    /// that a raw `clone` made has, in the second word that glibc keeps, not its area's address.
    fn is_made_by_libc() -> bool {
        if cfg!(not(target_env = "gnu")) {
            // musl's own threads alone may count
            return true;
        }
        let own: usize;
        // SAFETY: glibc's header of a thread goes on from its thread pointer.
        unsafe { asm!("mov {}, fs:16", out(reg) own, options(nostack, preserves_flags, readonly)) };
        own == thread_pointer().addr()
    }

    extern "C" fn at_end(_mark: *mut libc::c_void) {
        super::release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    fn of_thread(offset: isize) -> Option<usize> {
        // SAFETY: this copy's offset.
        unsafe { owned_stripe(offset) }
    }

    #[test]
    fn threads_have_numbers_of_their_own_until_they_end() {
        let (stripes, offset) = prepare_owned_stripes(2);
        assert!(stripes != 0 && offset != 0);
        let (threads, mut found) = (9, 0);
        let all_there = Barrier::new(threads);
        for _ in 0..100 {
            let claimed = std::thread::scope(|scope| {
                let claim = || {
                    let number = claim_owned_stripe(offset);
                    all_there.wait();
                    assert_eq!(of_thread(offset), number);
                    number
                };
                let threads: Vec<_> = (0..threads).map(|_| scope.spawn(claim)).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
            });
            let mut numbers: Vec<usize> = claimed.into_iter().flatten().collect();
            let count = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), count, "one number, two threads");
            // other tests' threads may have some
            assert!(count <= CPUS.load(Ordering::Relaxed) * OWNED_PER_CPU);
            found += count;
        }
        assert!(found > 0 || sys::cpu_now().is_none_or(|cpu| cpu >= CPUS.load(Ordering::Relaxed)));
    }

    #[test]
    fn a_number_means_nothing_with_another_thread_pointer() {
        let offset = prepare_owned_stripes(2).1;
        let (mine, pointer) = (mine(offset), thread_pointer().addr());
        for number in [0, 1, 63, OWNED_STRIPES - 1] {
            mine.store(mixed(number, pointer), Ordering::Relaxed);
            assert_eq!(of_thread(offset), Some(number));
            mine.store(mixed(number, pointer + 64), Ordering::Relaxed);
            assert_eq!(of_thread(offset), None);
        }
        for nothing in [NEW, NONE, CLAIMING, CROWDED] {
            mine.store(nothing, Ordering::Relaxed);
            assert_eq!(of_thread(offset), None);
        }
    }

    #[test]
    fn a_thread_that_found_none_looks_again_later_and_one_that_ended_does_not() {
        let offset = prepare_owned_stripes(2).1;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                mine(offset).store(CROWDED, Ordering::Relaxed);
                assert!((CLAIMING..CROWDED).all(|_| claim_owned_stripe(offset).is_none()));
                assert_eq!(mine(offset).load(Ordering::Relaxed), NEW);
                claim_owned_stripe(offset);
                release();
                assert!((0..1000).all(|_| claim_owned_stripe(offset).is_none()));
            });
        });
        assert_eq!(claim_owned_stripe(0), None);
        assert_eq!(claim_owned_stripe(offset + 64), None, "another copy's memory");
    }
}
