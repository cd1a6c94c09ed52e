//! Threads of the library's own that live for a moment.
//!
//! POSIX threads: a forked child may make them, while the standard library takes a lock of its own
//! that another thread of the parent may have held at the fork.

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Work<'a> = Box<dyn FnOnce() + Send + 'a>;

extern "C" fn start(work: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the box that `spawn` gave away, for this thread alone.
    let work = unsafe { Box::from_raw(work.cast::<Work<'static>>()) };
    // a panic must not leave the thread's first function
    let _ = catch_unwind(AssertUnwindSafe(work));
    std::ptr::null_mut()
}

/// Starts a thread that blocks all signals; `None` where the system has none to give.
fn spawn(work: Work<'static>) -> Option<libc::pthread_t> {
    let argument = Box::into_raw(Box::new(work));
    // a number in glibc, a pointer in musl
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: `start` takes the box over; where there is no thread, it is taken back.
    unsafe {
        let create = || libc::pthread_create(thread.as_mut_ptr(), std::ptr::null(), start, argument.cast());
        if without_signals(create) != 0 {
            drop(Box::from_raw(argument));
            return None;
        }
        // where there is a thread, its handle was written
        Some(thread.assume_init())
    }
}

/// Starts a detached thread that runs `work` with all signals blocked; returns `false` if the system cannot start one.
pub(crate) fn detach_helper_thread(work: impl FnOnce() + Send + 'static) -> bool {
    // SAFETY: a thread that was started just now, detached once.
    spawn(Box::new(work)).map(|thread| unsafe { libc::pthread_detach(thread) }).is_some()
}

/// Runs `work` on a new thread, waits for it, and returns its result; `None` if no thread can be started.
#[cfg(any(test, all(target_os = "linux", not(feature = "portable"))))]
pub(crate) fn run_on_helper_thread<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Option<R> {
    let slot = std::sync::Arc::new(std::sync::Mutex::new(None));
    let target = std::sync::Arc::clone(&slot);
    let thread = spawn(Box::new(move || {
        let result = work();
        if let Ok(mut slot) = target.lock() {
            *slot = Some(result);
        }
    }))?;
    // SAFETY: a thread that was started just now, joined once.
    unsafe { libc::pthread_join(thread, std::ptr::null_mut()) };
    slot.lock().ok()?.take()
}

/// Runs `start` with all signals blocked in the calling thread, so that threads created in it inherit the mask, and
/// returns its result.
pub(crate) fn without_signals<R>(start: impl FnOnce() -> R) -> R {
    // SAFETY: sets of this function's; the kernel leaves out signals that cannot be blocked.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        let blocked = libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) == 0;
        let result = start();
        if blocked {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_elsewhere_and_panics_stay_there() {
        let here = std::thread::current().id();
        assert_eq!(run_on_helper_thread(move || std::thread::current().id() == here), Some(false));
        assert_eq!(run_on_helper_thread(|| panic!("on purpose")), None::<()>);
        let (sender, receiver) = std::sync::mpsc::channel();
        assert!(detach_helper_thread(move || _ = sender.send(7)));
        assert_eq!(receiver.recv(), Ok(7));
    }
}
