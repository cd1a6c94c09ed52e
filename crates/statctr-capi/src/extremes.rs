//! `statctr_max_init` and its like: maxima and minima in the hands of C.
//!
//! Each function is described in `include/statctr/extremes.h`. The safety contract is that of
//! [`counter`](crate): a pointer is NULL or leads to what its type says; a handle is all zero, or
//! was made by this library and not cleaned up.

#![allow(unsafe_code)] // the boundary to C: pointers come from there, and names go there
#![allow(clippy::missing_safety_doc)] // once for all in the module's description

use crate::guard::{errno, guard};
use statctr::{Max, Min};
use std::ffi::c_int;

/// A C maximum (largest observed value), one pointer: `statctr_max_t`.
#[derive(Debug)]
#[repr(C)]
pub struct StatctrMax {
    maximum: *mut Max,
}

/// A C minimum (smallest observed value), one pointer: `statctr_min_t`.
#[derive(Debug)]
#[repr(C)]
pub struct StatctrMin {
    minimum: *mut Min,
}

/// Writes what `found` is through `value`.
unsafe fn store(value: *mut u64, found: impl FnOnce() -> Result<u64, c_int>) -> c_int {
    guard(|| {
        if value.is_null() {
            return Err(libc::EINVAL);
        }
        let found = found()?;
        // SAFETY: not NULL, so it leads to a number, by the module's contract.
        unsafe { value.write(found) };
        Ok(())
    })
}

/// Returns a reference to the maximum (largest observed value) behind a C handle; `Err(EINVAL)` for NULL or a handle
/// not in use.
pub(crate) unsafe fn maximum_of<'a>(handle: *const StatctrMax) -> Result<&'a Max, c_int> {
    // SAFETY: NULL or a handle, whose maximum lives if it is there, by the module's contract.
    unsafe { handle.as_ref().and_then(|handle| handle.maximum.as_ref()) }.ok_or(libc::EINVAL)
}

/// Initialises a C maximum without observed values, which reads as 0; returns 0 or `-errno`: `statctr_max_init()` of
/// `statctr/extremes.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_max_init(maximum: *mut StatctrMax) -> c_int {
    guard(|| {
        if maximum.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: not NULL, so it leads to room for a handle, by the module's contract.
        unsafe { maximum.write(StatctrMax { maximum: std::ptr::null_mut() }) };
        let pool = crate::allocator::current_pool()?;
        let made = Box::new(Max::new_in(pool).map_err(|error| errno(&error))?);
        // SAFETY: as above.
        unsafe { maximum.write(StatctrMax { maximum: Box::into_raw(made) }) };
        Ok(())
    })
}

/// Frees the memory of a C maximum (largest observed value); returns 0, or `-EINVAL` for NULL or a handle not in use
/// (also in a second cleanup): `statctr_max_cleanup()` of `statctr/extremes.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_max_cleanup(maximum: *mut StatctrMax) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let owned = unsafe { maximum_of(maximum) }.map(std::ptr::from_ref)?.cast_mut();
        // SAFETY: `maximum_of` has seen that it is not NULL.
        unsafe { maximum.write(StatctrMax { maximum: std::ptr::null_mut() }) };
        // SAFETY: `statctr_max_init` made the box, and nobody has it any more.
        drop(unsafe { Box::from_raw(owned) });
        Ok(())
    })
}

/// Raises a C maximum to `value` if it is smaller; returns 0, or `-EINVAL` for NULL or an uninitialised handle:
/// `statctr_max_observe()` of `statctr/extremes.h`. Without a guard: an update does not panic, and if it did, `extern
/// "C"` would end the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_max_observe(maximum: *mut StatctrMax, value: u64) -> c_int {
    // SAFETY: the module's contract.
    match unsafe { maximum_of(maximum) } {
        Ok(maximum) => {
            maximum.observe(value);
            0
        }
        Err(errno) => -errno,
    }
}

/// Stores the largest value that a C maximum observed in `*value`; returns 0, or `-EINVAL` for NULL or an uninitialised
/// handle: `statctr_max_read()` of `statctr/extremes.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_max_read(maximum: *const StatctrMax, value: *mut u64) -> c_int {
    // SAFETY: the module's contract.
    unsafe { store(value, || Ok(maximum_of(maximum)?.read())) }
}

/// Stores the largest value observed since the last take in `*value`, and resets the C maximum; returns 0, or `-EINVAL`
/// for NULL or an uninitialised handle: `statctr_max_take()` of `statctr/extremes.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_max_take(maximum: *mut StatctrMax, value: *mut u64) -> c_int {
    // SAFETY: the module's contract.
    unsafe { store(value, || Ok(maximum_of(maximum)?.take())) }
}

/// Resets a C maximum, so that values observed so far are forgotten; returns 0, or `-EINVAL` for NULL or an
/// uninitialised handle: `statctr_max_reset()` of `statctr/extremes.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_max_reset(maximum: *mut StatctrMax) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unsafe { maximum_of(maximum) }.map(Max::reset))
}

/// Returns a reference to the minimum (smallest observed value) behind a C handle; `Err(EINVAL)` for NULL or a handle
/// not in use.
pub(crate) unsafe fn minimum_of<'a>(handle: *const StatctrMin) -> Result<&'a Min, c_int> {
    // SAFETY: NULL or a handle, whose minimum lives if it is there, by the module's contract.
    unsafe { handle.as_ref().and_then(|handle| handle.minimum.as_ref()) }.ok_or(libc::EINVAL)
}

/// Initialises a C minimum without observed values, which reads as 2⁶⁴ − 1; returns 0 or `-errno`: `statctr_min_init()`
/// of `statctr/extremes.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_min_init(minimum: *mut StatctrMin) -> c_int {
    guard(|| {
        if minimum.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: not NULL, so it leads to room for a handle, by the module's contract.
        unsafe { minimum.write(StatctrMin { minimum: std::ptr::null_mut() }) };
        let pool = crate::allocator::current_pool()?;
        let made = Box::new(Min::new_in(pool).map_err(|error| errno(&error))?);
        // SAFETY: as above.
        unsafe { minimum.write(StatctrMin { minimum: Box::into_raw(made) }) };
        Ok(())
    })
}

/// Frees the memory of a C minimum (smallest observed value); returns 0, or `-EINVAL` for NULL or a handle not in use
/// (also in a second cleanup): `statctr_min_cleanup()` of `statctr/extremes.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_min_cleanup(minimum: *mut StatctrMin) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let owned = unsafe { minimum_of(minimum) }.map(std::ptr::from_ref)?.cast_mut();
        // SAFETY: `minimum_of` has seen that it is not NULL.
        unsafe { minimum.write(StatctrMin { minimum: std::ptr::null_mut() }) };
        // SAFETY: `statctr_min_init` made the box, and nobody has it any more.
        drop(unsafe { Box::from_raw(owned) });
        Ok(())
    })
}

/// Lowers a C minimum to `value` if it is larger; returns 0, or `-EINVAL` for NULL or an uninitialised handle:
/// `statctr_min_observe()` of `statctr/extremes.h`. Without a guard: an update does not panic, and if it did, `extern
/// "C"` would end the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_min_observe(minimum: *mut StatctrMin, value: u64) -> c_int {
    // SAFETY: the module's contract.
    match unsafe { minimum_of(minimum) } {
        Ok(minimum) => {
            minimum.observe(value);
            0
        }
        Err(errno) => -errno,
    }
}

/// Stores the smallest value that a C minimum observed in `*value`; returns 0, or `-EINVAL` for NULL or an
/// uninitialised handle: `statctr_min_read()` of `statctr/extremes.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_min_read(minimum: *const StatctrMin, value: *mut u64) -> c_int {
    // SAFETY: the module's contract.
    unsafe { store(value, || Ok(minimum_of(minimum)?.read())) }
}

/// Stores the smallest value observed since the last take in `*value`, and resets the C minimum; returns 0, or
/// `-EINVAL` for NULL or an uninitialised handle: `statctr_min_take()` of `statctr/extremes.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_min_take(minimum: *mut StatctrMin, value: *mut u64) -> c_int {
    // SAFETY: the module's contract.
    unsafe { store(value, || Ok(minimum_of(minimum)?.take())) }
}

/// Resets a C minimum, so that values observed so far are forgotten; returns 0, or `-EINVAL` for NULL or an
/// uninitialised handle: `statctr_min_reset()` of `statctr/extremes.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_min_reset(minimum: *mut StatctrMin) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unsafe { minimum_of(minimum) }.map(Min::reset))
}
