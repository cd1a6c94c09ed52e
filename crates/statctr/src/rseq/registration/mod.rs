//! The registration of threads with the kernel: libc's, somebody else's, or our own.
//!
//! A thread has one area or none, and only who registered it may take it away. So:
//! ```text
//! settle, once a process, before the first pool:
//!   libc registers threads (glibc 2.35 and later)    use its areas, register nobody       Libc
//!   STATCTR_REGISTER=0, or no address of an area     nobody is registered                 none
//!   else ask the first copy of this library in the process (`rendezvous`), which does, once:
//!     a visible `__rseq_abi`, at one offset in two threads   that is the area
//!     else the area of that copy, if at one offset in all threads
//!     register the calling thread there:
//!       done, or it was already                      Own, Adopted
//!       EINVAL: it has another area                  none: somebody registers threads whose area we
//!                                                    do not know, and needs that to succeed
//!       else                                         none
//!     asked again, it gives the area that it chose, whatever is visible then
//!
//! a thread in its first slow path: cpu_id = −1, and the area is not libc's
//!   refcount := refcount + 1                         where tcmalloc looks before it registers
//!   rseq(area, 32 bytes)                             done, or EBUSY: a signal handler was faster
//!   refused: refcount := refcount − 1, cpu_id := −2  and never again: the fallback cell
//!
//! a thread's end, where libc unmaps the stack of a thread that still runs (musl; `exit_hook`):
//!   unregister, then cpu_id: −1 → −2                 what counts later counts in the fallback cell
//! ```
//! With 32 bytes the kernel fills in everything up to the concurrency id, and does so as it did before
//! longer areas came.
//!
//! Async-signal-safe once it is settled: a load, a system call, and in musl a store to a table of the
//! thread's. A child of `fork` inherits its parent's registration; one that shares memory (`vfork`) has
//! none, and its parent's area.

#[cfg(all(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    target_os = "linux",
    not(any(miri, feature = "portable"))
))]
mod here;
#[cfg(all(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    target_os = "linux",
    not(any(miri, feature = "portable"))
))]
mod rendezvous;

use super::{area_cpu_id, glibc_registration};
use crate::sys::{Lock, OnceBox, Rank, cpu_bound, small_cpu_bound};
use std::fmt;
use std::sync::atomic::{AtomicIsize, AtomicPtr, AtomicU8, Ordering};

/// The party that registers the process's threads with the kernel for rseq: libc, this library, or someone else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Registration {
    /// Registration by the C library, of every thread that it starts.
    Libc,
    /// Registration by this library, of every thread when it first counts.
    Own,
    /// Registration by another library, which exposes its area (`__rseq_abi`, as tcmalloc does). Threads that it has
    /// not registered when they first count are registered there by this library.
    Adopted,
}

impl fmt::Display for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Registration::Libc => "by libc",
            Registration::Own => "by statctr",
            Registration::Adopted => "in the area of another library",
        })
    }
}

/// The result of the search for threads' rseq areas: the party that registers them (libc, this or another library), or
/// the reason why none can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Outcome {
    Libc = 1,
    Own = 2,
    Adopted = 3,
    /// No rseq area, or a kernel or sandbox that refuses to register it.
    Nobody = 4,
    /// Registration of the calling thread with an area that is not known here.
    Foreign = 5,
}

impl Outcome {
    fn from_number(number: u8) -> Option<Outcome> {
        [Outcome::Libc, Outcome::Own, Outcome::Adopted, Outcome::Nobody, Outcome::Foreign]
            .into_iter()
            .find(|outcome| *outcome as u8 == number)
    }
}

/// The function that registers the calling thread, in the copy of this library that does it for all.
/// Async-signal-safe.
type Register = extern "C" fn();

/// An area that was found.
struct Found {
    outcome: Outcome,
    offset: isize,
    register: Option<Register>,
}

/// 0, or the [`Outcome`]; stored last.
static OUTCOME: AtomicU8 = AtomicU8::new(0);
static OFFSET: AtomicIsize = AtomicIsize::new(0);
static REGISTER: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// glibc's area holds at least the fields up to `cpu_id` and `rseq_cs` from this size on.
const AREA_SIZE: u32 = 20;

/// Finds threads' rseq areas and decides who registers them, once for the process. Async-signal-safe only if it was
/// called before.
pub(crate) fn settle() -> Outcome {
    static ALONE: OnceBox<Lock<()>> = OnceBox::new();
    if let Some(outcome) = outcome() {
        return outcome;
    }
    // so that no fork comes between, and leaves the loader's locks held in the child
    let _alone = ALONE.get_or_make(|| Lock::new(Rank::Registration, ())).lock();
    if let Some(outcome) = outcome() {
        return outcome;
    }
    let found = find();
    OFFSET.store(found.offset, Ordering::Relaxed);
    let register = found.register.map_or(std::ptr::null_mut(), |register| register as *mut ());
    REGISTER.store(register, Ordering::Relaxed);
    OUTCOME.store(found.outcome as u8, Ordering::Release);
    found.outcome
}

/// Records libc's rseq areas if libc registers threads: the part of [`settle`] that is async-signal-safe (but for
/// `errno`).
pub(crate) fn settle_by_libc() {
    if outcome().is_some() {
        return;
    }
    if let Some((offset, _)) = glibc_registration().filter(is_usable)
        && small_cpu_bound().is_some()
    {
        OFFSET.store(offset, Ordering::Relaxed);
        OUTCOME.store(Outcome::Libc as u8, Ordering::Release);
    }
}

fn is_usable(&(offset, size): &(isize, u32)) -> bool {
    size >= AREA_SIZE && offset != 0
}

fn find() -> Found {
    let nobody = Found { outcome: Outcome::Nobody, offset: 0, register: None };
    if cpu_bound().is_none() {
        return nobody;
    }
    match glibc_registration().filter(is_usable) {
        Some((offset, _)) => Found { outcome: Outcome::Libc, offset, register: None },
        None => find_elsewhere().unwrap_or(nobody),
    }
}

#[cfg(all(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    target_os = "linux",
    not(any(miri, feature = "portable"))
))]
fn find_elsewhere() -> Option<Found> {
    // SAFETY: a name that ends; what comes back is read at once.
    let setting = unsafe { libc::getenv(c"STATCTR_REGISTER".as_ptr()) };
    // SAFETY: not null, so a string.
    if !setting.is_null() && unsafe { std::ffi::CStr::from_ptr(setting) } == c"0" {
        return None;
    }
    rendezvous::find()
}

#[cfg(not(all(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    target_os = "linux",
    not(any(miri, feature = "portable"))
)))]
fn find_elsewhere() -> Option<Found> {
    None
}

/// Returns the outcome of the search, if it is over.
fn outcome() -> Option<Outcome> {
    Outcome::from_number(OUTCOME.load(Ordering::Acquire))
}

/// Returns `true` if the search for rseq areas is over and found none to use.
pub(crate) fn is_ruled_out() -> bool {
    outcome().is_some_and(|outcome| outcome > Outcome::Adopted)
}

/// Returns the offset of threads' rseq areas from the thread pointer; `None` if there are none, or nobody has looked.
pub(crate) fn offset() -> Option<isize> {
    outcome().filter(|outcome| *outcome <= Outcome::Adopted).map(|_| OFFSET.load(Ordering::Relaxed))
}

impl PartialOrd for Outcome {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (*self as u8).partial_cmp(&(*other as u8))
    }
}

/// Returns the number of the CPU that the calling thread runs on, from its rseq area, after registering the thread if
/// that is this library's task; `None` if it is not registered. Async-signal-safe.
pub(crate) fn registered_cpu(offset: isize) -> Option<u32> {
    let cpu = area_cpu_id(offset);
    if cpu == -1 {
        register_thread();
    }
    u32::try_from(area_cpu_id(offset)).ok()
}

#[cold]
fn register_thread() {
    let register = REGISTER.load(Ordering::Relaxed);
    if !register.is_null() {
        // SAFETY: only `settle` stores here, and only functions of this type.
        let register: Register = unsafe { std::mem::transmute(register) };
        register();
    }
}

/// Returns who registers this process's threads for rseq: libc, this library or someone else; `None` if nobody does.
///
/// Cost: the first call in a process may start a thread; after that a load. Not async-signal-safe
/// before the first pool was built.
#[must_use]
pub fn registration() -> Option<Registration> {
    match settle() {
        Outcome::Libc => Some(Registration::Libc),
        Outcome::Own => Some(Registration::Own),
        Outcome::Adopted => Some(Registration::Adopted),
        Outcome::Nobody | Outcome::Foreign => None,
    }
}
