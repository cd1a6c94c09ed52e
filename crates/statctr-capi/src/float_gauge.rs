//! `statctr_float_gauge_init` and its like: floating-point gauges in the hands of C.
//!
//! Each function is described in `include/statctr/float_gauge.h`. The safety contract is that of
//! [`counter`](crate): a pointer is NULL or leads to what its type says; a handle is all zero, or
//! was made by this library and not cleaned up.

#![allow(unsafe_code)] // the boundary to C: pointers come from there, and names go there
#![allow(clippy::missing_safety_doc)] // once for all in the module's description

use crate::guard::{errno, guard};
use statctr::FloatGauge;
use std::ffi::c_int;

/// A C floating-point gauge, one pointer: `statctr_float_gauge_t`.
#[derive(Debug)]
#[repr(C)]
pub struct StatctrFloatGauge {
    gauge: *mut FloatGauge,
}

/// Returns a reference to the floating-point gauge (a value that goes up and down) behind a C handle; `Err(EINVAL)` for
/// NULL or a handle not in use.
pub(crate) unsafe fn float_gauge_of<'a>(handle: *const StatctrFloatGauge) -> Result<&'a FloatGauge, c_int> {
    // SAFETY: NULL or a handle, whose gauge lives if it is there, by the module's contract.
    unsafe { handle.as_ref().and_then(|handle| handle.gauge.as_ref()) }.ok_or(libc::EINVAL)
}

/// Initialises a C floating-point gauge with a value; returns 0 or `-errno`: `statctr_float_gauge_init()` of
/// `statctr/float_gauge.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_float_gauge_init(gauge: *mut StatctrFloatGauge, value: f64) -> c_int {
    guard(|| {
        if gauge.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: not NULL, so it leads to room for a handle, by the module's contract.
        unsafe { gauge.write(StatctrFloatGauge { gauge: std::ptr::null_mut() }) };
        let pool = crate::allocator::current_pool()?;
        let made = Box::new(FloatGauge::new_in(pool, value).map_err(|error| errno(&error))?);
        // SAFETY: as above.
        unsafe { gauge.write(StatctrFloatGauge { gauge: Box::into_raw(made) }) };
        Ok(())
    })
}

/// Frees the memory of a C floating-point gauge; returns 0, or `-EINVAL` for NULL or a handle not in use (also in a
/// second cleanup): `statctr_float_gauge_cleanup()` of `statctr/float_gauge.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_float_gauge_cleanup(gauge: *mut StatctrFloatGauge) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let owned = unsafe { float_gauge_of(gauge) }.map(std::ptr::from_ref)?.cast_mut();
        // SAFETY: `float_gauge_of` has seen that it is not NULL.
        unsafe { gauge.write(StatctrFloatGauge { gauge: std::ptr::null_mut() }) };
        // SAFETY: `statctr_float_gauge_init` made the box, and nobody has it any more.
        drop(unsafe { Box::from_raw(owned) });
        Ok(())
    })
}

/// Adds to a C floating-point gauge; returns 0, or `-EINVAL` for NULL or an uninitialised handle:
/// `statctr_float_gauge_add()` of `statctr/float_gauge.h`. Without a guard: an update does not panic, and if it did,
/// `extern "C"` would end the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_float_gauge_add(gauge: *mut StatctrFloatGauge, value: f64) -> c_int {
    // SAFETY: the module's contract.
    match unsafe { float_gauge_of(gauge) } {
        Ok(gauge) => {
            gauge.add(value);
            0
        }
        Err(errno) => -errno,
    }
}

/// Sets the value of a C floating-point gauge; returns 0, or `-EINVAL` for NULL or an uninitialised handle:
/// `statctr_float_gauge_set()` of `statctr/float_gauge.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_float_gauge_set(gauge: *mut StatctrFloatGauge, value: f64) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unsafe { float_gauge_of(gauge) }.map(|gauge| gauge.set(value)))
}

/// Stores the value of a C floating-point gauge in `*value`; returns 0, or `-EINVAL` for NULL or an uninitialised
/// handle: `statctr_float_gauge_read()` of `statctr/float_gauge.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_float_gauge_read(gauge: *const StatctrFloatGauge, value: *mut f64) -> c_int {
    guard(|| {
        if value.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: the module's contract.
        let read = unsafe { float_gauge_of(gauge) }?.read();
        // SAFETY: not NULL, so it leads to a number, by the module's contract.
        unsafe { value.write(read) };
        Ok(())
    })
}
