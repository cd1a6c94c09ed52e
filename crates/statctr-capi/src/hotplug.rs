//! CPUs that leave, in the hands of C: a watcher for the flexible allocator, and callbacks.
//!
//! Each function is described in `include/statctr/allocator.h`. The safety contract is that of
//! [`counter`](crate): a pointer is NULL or leads to what its type says.

#![allow(unsafe_code)] // the boundary to C: pointers come from there, and names go there
#![allow(clippy::missing_safety_doc)] // once for all in the module's description

use crate::allocator::flexible_pool;
use crate::guard::{errno, guard};
use statctr::DrainCallbackGuard;
use statctr::hotplug::Watcher;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The watcher, where one is started. No lock: a fork could leave it held.
static WATCHER: AtomicPtr<Watcher> = AtomicPtr::new(null_mut());

/// Starts a background thread that drains CPUs (moves their counts to shared words) when they go offline; returns 0, or
/// `-EBUSY` if it already runs: `statctr_watch_cpus()` of `statctr/allocator.h`.
#[unsafe(no_mangle)]
pub extern "C" fn statctr_watch_cpus() -> c_int {
    guard(|| {
        if !WATCHER.load(Ordering::Acquire).is_null() {
            return Err(libc::EBUSY);
        }
        let watcher = Watcher::start(vec![flexible_pool()?.clone()]).map_err(|error| errno(&error))?;
        let new = Box::into_raw(Box::new(watcher));
        if WATCHER.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: made here, and nobody else's.
            drop(unsafe { Box::from_raw(new) });
            return Err(libc::EBUSY);
        }
        Ok(())
    })
}

/// Stops the background thread that drains CPUs (moves their counts to shared words) when they go offline; returns 0,
/// or `-ESRCH` if it does not run: `statctr_unwatch_cpus()` of `statctr/allocator.h`.
#[unsafe(no_mangle)]
pub extern "C" fn statctr_unwatch_cpus() -> c_int {
    guard(|| {
        let watcher = WATCHER.swap(null_mut(), Ordering::AcqRel);
        if watcher.is_null() {
            return Err(libc::ESRCH);
        }
        // SAFETY: whoever takes it out of the static has it alone.
        drop(unsafe { Box::from_raw(watcher) });
        Ok(())
    })
}

/// C callback that is called after a drain (move of a CPU's counts to shared words) with the CPU's number and the bytes
/// of counts that were moved: `statctr_moved_fn`.
pub type StatctrMovedFn = Option<extern "C" fn(cpu: c_uint, bytes: usize, data: *mut c_void)>;

/// The registration of a C callback for drains (moves of CPUs' counts to shared words): `statctr_moved_t`, opaque in C.
#[derive(Debug)]
pub struct StatctrMoved {
    _callback: DrainCallbackGuard,
}

/// Registers a C callback that is called whenever a CPU was drained (its counts moved to shared words); stores the
/// registration in `*target`; returns 0 or `-errno`: `statctr_on_moved()` of `statctr/allocator.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_on_moved(
    target: *mut *mut StatctrMoved,
    callback: StatctrMovedFn,
    data: *mut c_void,
) -> c_int {
    guard(|| {
        let callback = callback.filter(|_| !target.is_null()).ok_or(libc::EINVAL)?;
        // a number, as threads hand it on: what it leads to is the caller's business
        let data = data.expose_provenance();
        let registered = flexible_pool()?.on_moved(move |cpu, drained| {
            callback(cpu.get(), drained.bytes, std::ptr::with_exposed_provenance_mut(data));
        });
        let moved = Box::new(StatctrMoved { _callback: registered });
        // SAFETY: not NULL, so there is room, by the module's contract.
        unsafe { target.write(Box::into_raw(moved)) };
        Ok(())
    })
}

/// Unregisters a C callback for drains (moves of CPUs' counts to shared words); returns 0, or `-EINVAL` for NULL:
/// `statctr_moved_free()` of `statctr/allocator.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_moved_free(moved: *mut StatctrMoved) -> c_int {
    guard(|| {
        if moved.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: not NULL, so `statctr_on_moved` made it, by the module's contract.
        drop(unsafe { Box::from_raw(moved) });
        Ok(())
    })
}
