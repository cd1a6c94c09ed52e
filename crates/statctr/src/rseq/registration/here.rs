//! The area of this copy of the library, or one that another library shows, and its threads.

use super::super::{own_area_offset, refcount_offset, system_call, thread_pointer};
use super::Outcome;
use crate::sys::run_on_helper_thread;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicIsize, AtomicU32, Ordering};

/// Bytes of an area that every kernel accepts.
const AREA_BYTES: u32 = 32;
const UNREGISTER: u32 = 1;
/// CPU number of a thread that was not registered.
const UNREGISTERED: i32 = -1;
/// CPU number of a thread that is not to be registered.
const REFUSED: i32 = -2;

/// Offset of the area that was chosen; 0 before a thread was registered in one.
static AREA: AtomicIsize = AtomicIsize::new(0);
/// Offset of the number of the area's registrations; 0: none.
static REFCOUNT: AtomicIsize = AtomicIsize::new(0);
/// Set before [`AREA`] is, if that is another library's.
static IS_ADOPTED: AtomicBool = AtomicBool::new(false);

/// Chooses an area, unless one is chosen, and registers the calling thread there. Returns the outcome and the area's
/// offset.
///
/// Threads that come at the same time choose the same.
pub(super) fn choose() -> (Outcome, isize) {
    // For another copy. It is asked for the area of the threads that are registered: one that another library has
    // shown since (`dlopen`) is not theirs.
    let chosen = AREA.load(Ordering::Acquire);
    if chosen != 0 {
        register_thread();
        return (party(), chosen);
    }
    let own = own_area_offset();
    let shown = visible_offset(c"__rseq_abi").filter(|offset| *offset != own);
    let (offset, refcount) = match shown {
        Some(offset) => (offset, visible_offset(c"__rseq_refcount").unwrap_or(0)),
        None => (own, refcount_offset()),
    };
    if offset == 0 || !exit_hook::prepare() {
        return (Outcome::Nobody, 0);
    }
    REFCOUNT.store(refcount, Ordering::Relaxed);
    let was_registered = cpu_id(offset).load(Ordering::Relaxed) >= 0;
    match register(offset) {
        Ok(()) => {
            if shown.is_some() || was_registered {
                IS_ADOPTED.store(true, Ordering::Relaxed);
            }
            let first = AREA.compare_exchange(0, offset, Ordering::AcqRel, Ordering::Acquire);
            (party(), first.err().unwrap_or(offset))
        }
        Err(libc::EINVAL) => (Outcome::Foreign, 0),
        Err(_) => (Outcome::Nobody, 0),
    }
}

/// Returns who registers threads in the area that was chosen.
fn party() -> Outcome {
    if IS_ADOPTED.load(Ordering::Relaxed) { Outcome::Adopted } else { Outcome::Own }
}

/// Returns the offset of a thread-local symbol that the program shows, if two threads agree on it: it may
/// be in a library that was loaded late, whose variables lie elsewhere for each thread.
fn visible_offset(name: &'static CStr) -> Option<isize> {
    let look = move || {
        // SAFETY: a name that ends. Of a thread-local symbol the calling thread's address comes back.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!address.is_null()).then(|| address.addr().wrapping_sub(thread_pointer().addr()) as isize)
    };
    let offset = look()?;
    (run_on_helper_thread(look)? == Some(offset)).then_some(offset)
}

/// Returns the calling thread's CPU number field, which the kernel writes while the thread is registered.
fn cpu_id<'a>(offset: isize) -> &'a AtomicI32 {
    let field = thread_pointer().wrapping_offset(offset + super::super::CPU_ID as isize);
    // SAFETY: the area lies there in every thread, and lives as long as the thread.
    unsafe { &*field.cast::<AtomicI32>() }
}

/// Adds to the number of the thread's registrations, if anybody keeps it. Returns the new number.
fn count(change: u32) -> u32 {
    let offset = REFCOUNT.load(Ordering::Relaxed);
    if offset == 0 {
        return 0;
    }
    // SAFETY: a word of the calling thread, as for the area; the thread's signal handlers use it, too.
    let word = unsafe { &*thread_pointer().wrapping_offset(offset).cast::<AtomicU32>() };
    word.fetch_add(change, Ordering::Relaxed).wrapping_add(change)
}

/// Registers the calling thread, unless it is.
fn register(offset: isize) -> Result<(), i32> {
    if cpu_id(offset).load(Ordering::Relaxed) >= 0 {
        return Ok(());
    }
    exit_hook::arm();
    // before: a signal handler that comes next must not think that it is the first
    count(1);
    let area = thread_pointer().wrapping_offset(offset);
    // SAFETY: the calling thread's area.
    match unsafe { system_call(area, AREA_BYTES, 0) } {
        0 => Ok(()),
        error => {
            count(u32::MAX);
            let error = -error as i32;
            if error == libc::EBUSY {
                return Ok(()); // by a signal handler, just now
            }
            cpu_id(offset).store(REFUSED, Ordering::Relaxed);
            Err(error)
        }
    }
}

/// Registers the calling thread, if it is not and may be. Async-signal-safe.
pub(super) extern "C" fn register_thread() {
    let offset = AREA.load(Ordering::Acquire);
    if offset != 0 && cpu_id(offset).load(Ordering::Relaxed) == UNREGISTERED {
        let _ = register(offset);
    }
}

/// Ends of threads.
///
/// musl unmaps the stack of a detached thread, in which its thread-local variables lie, while the
/// thread still runs; were it preempted between that and its end, the kernel would find no area and kill
/// the process. glibc keeps stacks until the kernel says that their threads are gone, as its own areas
/// need, so there the kernel ends the registration.
#[cfg(not(target_env = "gnu"))]
mod exit_hook {
    use super::{AREA, AREA_BYTES, REFUSED, UNREGISTER, UNREGISTERED, count, cpu_id};
    use super::{system_call, thread_pointer};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The pthread key by which ends of threads are noticed, plus one; 0 if there is none.
    static KEY: AtomicU64 = AtomicU64::new(0);

    /// Sees to it that the ends of threads can be told.
    pub(super) fn prepare() -> bool {
        if KEY.load(Ordering::Acquire) != 0 {
            return true;
        }
        let mut key = 0;
        // SAFETY: writes a key; the function is there as long as the program, from which this object
        // is not unloaded.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(at_exit)) } != 0 {
            return false;
        }
        let ours = u64::from(key) + 1;
        if KEY.compare_exchange(0, ours, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: just made, and used by nobody.
            unsafe { libc::pthread_key_delete(key) };
        }
        true
    }

    /// Asks for being told of the calling thread's end. A store into the thread's table in musl.
    pub(super) fn arm() {
        let key = KEY.load(Ordering::Acquire);
        // SAFETY: a key that was made; the mark is no pointer that anybody follows.
        unsafe { libc::pthread_setspecific((key - 1) as libc::pthread_key_t, std::ptr::dangling()) };
    }

    extern "C" fn at_exit(_mark: *mut libc::c_void) {
        let offset = AREA.load(Ordering::Acquire);
        if offset == 0 {
            return; // no thread was registered
        }
        let cpu_id = cpu_id(offset);
        // a signal handler may register the thread again, before the field says that it may not
        while cpu_id.load(Ordering::Relaxed) != REFUSED {
            count(u32::MAX);
            // SAFETY: ends what `register` did for this thread.
            unsafe { system_call(thread_pointer().wrapping_offset(offset), AREA_BYTES, UNREGISTER) };
            let gone = cpu_id.compare_exchange(UNREGISTERED, REFUSED, Ordering::Relaxed, Ordering::Relaxed);
            if gone.is_ok() {
                return;
            }
        }
    }
}

#[cfg(target_env = "gnu")]
mod exit_hook {
    pub(super) fn prepare() -> bool {
        let _ = (super::UNREGISTER, super::UNREGISTERED);
        true
    }

    pub(super) fn arm() {}
}
