//! A POSIX mutex, because that is the kind that the thread which forks may unlock in the child; every one
//! there is, by rank, and the handlers of `fork`.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

type PosixMutex = UnsafeCell<libc::pthread_mutex_t>;

/// A mutex without a guard object that `fork` takes, so that it is unlocked in the child, whoever held it.
#[derive(Debug)]
pub(crate) struct RawMutex(Box<PosixMutex>); // boxed: a POSIX mutex must not move

// SAFETY: a mutex is there for several threads.
unsafe impl Send for RawMutex {}
// SAFETY: as above.
unsafe impl Sync for RawMutex {}

impl RawMutex {
    /// Creates an unlocked mutex, which `fork` takes after those of lower `rank`.
    pub(crate) fn new(rank: usize) -> RawMutex {
        let raw = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        add(rank, &raw);
        RawMutex(raw)
    }

    /// Waits until the mutex is locked by the calling thread.
    pub(crate) fn lock(&self) {
        // SAFETY: the mutex was initialised and does not move. A mutex of the default kind fails
        // only where the same thread holds it already, which no path of this crate does.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    /// Unlocks the mutex, which the calling thread has locked.
    ///
    /// # Safety
    /// The calling thread holds it.
    pub(crate) unsafe fn unlock(&self) {
        // SAFETY: by the caller's promise.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

impl Drop for RawMutex {
    fn drop(&mut self) {
        remove(&self.0);
        // SAFETY: nobody holds it: holding borrows.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

/// Returns the number of forks between the program's start and this process: 0, and one more in each child.
pub(crate) fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// Returns a number that the living threads of the process differ in, and that a thread keeps in a child that it forks.
/// Async-signal-safe.
pub(crate) fn thread_identity() -> usize {
    // SAFETY: reads the thread's own pointer; it has no conditions.
    unsafe { libc::pthread_self() as usize }
}

struct Listed {
    guard: PosixMutex,
    locks: UnsafeCell<Vec<(usize, *const PosixMutex)>>,
}

// SAFETY: `locks` is touched only while `guard` is held.
unsafe impl Sync for Listed {}

static LISTED: Listed =
    Listed { guard: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER), locks: UnsafeCell::new(Vec::new()) };

/// The thread that is between `before` and `after`, and how often it went through `before`.
static FORKING: AtomicUsize = AtomicUsize::new(0);
static DEPTH: AtomicUsize = AtomicUsize::new(0);

static FORKS: AtomicU64 = AtomicU64::new(0);

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

fn with_list(change: impl FnOnce(&mut Vec<(usize, *const PosixMutex)>)) {
    handle_forks();
    // SAFETY: `guard` is a static mutex; the list is touched only between lock and unlock, and
    // `change` does not come back here.
    unsafe {
        libc::pthread_mutex_lock(LISTED.guard.get());
        change(&mut *LISTED.locks.get());
        libc::pthread_mutex_unlock(LISTED.guard.get());
    }
}

fn add(rank: usize, lock: &PosixMutex) {
    let lock: *const PosixMutex = lock;
    with_list(|locks| {
        let place = locks.partition_point(|(other, _)| *other <= rank);
        locks.insert(place, (rank, lock));
    });
}

fn remove(lock: &PosixMutex) {
    let lock: *const PosixMutex = lock;
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
