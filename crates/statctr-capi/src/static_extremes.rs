//! Maxima and minima that are statics of a C program.
//!
//! Each function is described in `include/statctr/static.h`. The safety contract is that of
//! [`counter`](crate): a pointer is NULL or leads to what its type says, and statics live until they are forgotten.

#![allow(unsafe_code)] // the boundary to C: pointers come from there
#![allow(clippy::missing_safety_doc)] // once for all in the module's description

use crate::guard::{guard, guard_value};
use crate::statics::StatctrStatic;
use statctr::raw::StaticKind;
use std::ffi::c_int;

/// A C maximum (largest observed value) that is a static variable and needs no initialisation: `statctr_static_max_t`.
#[derive(Debug)]
#[repr(C)]
pub struct StatctrStaticMax {
    word: StatctrStatic,
}

/// A C minimum (smallest observed value) that is a static variable and needs no initialisation: `statctr_static_min_t`.
#[derive(Debug)]
#[repr(C)]
pub struct StatctrStaticMin {
    word: StatctrStatic,
}

/// Returns the word of the static maximum behind the pointer.
unsafe fn maximum_there(maximum: *const StatctrStaticMax) -> Result<&'static StatctrStatic, c_int> {
    // SAFETY: NULL or a static, by the module's contract.
    unsafe { maximum.as_ref() }.map(|maximum| &maximum.word).ok_or(libc::EINVAL)
}

/// Returns the word of the static minimum behind the pointer.
unsafe fn minimum_there(minimum: *const StatctrStaticMin) -> Result<&'static StatctrStatic, c_int> {
    // SAFETY: NULL or a static, by the module's contract.
    unsafe { minimum.as_ref() }.map(|minimum| &minimum.word).ok_or(libc::EINVAL)
}

/// Observes a value; returns 0 or `-errno`. Without a guard: an update does not panic, and if it did, `extern "C"`
/// would end the process.
fn observe(word: Result<&'static StatctrStatic, c_int>, kind: StaticKind, value: u64) -> c_int {
    match word {
        Ok(word) => {
            word.observe(kind, value);
            0
        }
        Err(errno) => -errno,
    }
}

/// Raises a static C maximum to `value` if it is smaller; returns 0, or `-EINVAL` for NULL:
/// `statctr_static_max_observe()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_max_observe(maximum: *mut StatctrStaticMax, value: u64) -> c_int {
    // SAFETY: the module's contract.
    observe(unsafe { maximum_there(maximum) }, StaticKind::Max, value)
}

/// Raises a static C maximum to `value`: the slow path of the header's inline observation, for values beyond all
/// others. Returns 0, or `-EINVAL` for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_max_slow_observe(
    maximum: *mut StatctrStaticMax,
    value: u64,
) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_static_max_observe(maximum, value) }
}

/// Returns the largest value that a static C maximum observed since the last take; 0 for NULL:
/// `statctr_static_max_read()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_max_read(maximum: *const StatctrStaticMax) -> u64 {
    // SAFETY: the module's contract.
    guard_value(0, || unsafe { maximum_there(maximum) }.ok().map(|word| word.read_as(StaticKind::Max)))
}

/// Returns the largest value that a static C maximum observed since the last take, and resets it; 0 for NULL:
/// `statctr_static_max_take()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_max_take(maximum: *mut StatctrStaticMax) -> u64 {
    // SAFETY: the module's contract.
    guard_value(0, || unsafe { maximum_there(maximum) }.ok().map(|word| word.take(StaticKind::Max)))
}

/// Puts a static C maximum into the program's registry of statistics; returns 0, or `-EINVAL` for NULL:
/// `statctr_static_max_list()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_max_list(maximum: *mut StatctrStaticMax) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unsafe { maximum_there(maximum) }.map(|word| word.list(StaticKind::Max)))
}

/// Lowers a static C minimum to `value` if it is larger; returns 0, or `-EINVAL` for NULL:
/// `statctr_static_min_observe()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_min_observe(minimum: *mut StatctrStaticMin, value: u64) -> c_int {
    // SAFETY: the module's contract.
    observe(unsafe { minimum_there(minimum) }, StaticKind::Min, value)
}

/// Lowers a static C minimum to `value`: the slow path of the header's inline observation, for values beyond all
/// others. Returns 0, or `-EINVAL` for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_min_slow_observe(
    minimum: *mut StatctrStaticMin,
    value: u64,
) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_static_min_observe(minimum, value) }
}

/// Returns the smallest value that a static C minimum observed since the last take; 2⁶⁴ − 1 for NULL:
/// `statctr_static_min_read()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_min_read(minimum: *const StatctrStaticMin) -> u64 {
    // SAFETY: the module's contract.
    guard_value(u64::MAX, || unsafe { minimum_there(minimum) }.ok().map(|word| word.read_as(StaticKind::Min)))
}

/// Returns the smallest value that a static C minimum observed since the last take, and resets it; 2⁶⁴ − 1 for NULL:
/// `statctr_static_min_take()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_min_take(minimum: *mut StatctrStaticMin) -> u64 {
    // SAFETY: the module's contract.
    guard_value(u64::MAX, || unsafe { minimum_there(minimum) }.ok().map(|word| word.take(StaticKind::Min)))
}

/// Puts a static C minimum into the program's registry of statistics; returns 0, or `-EINVAL` for NULL:
/// `statctr_static_min_list()` of `statctr/static.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_static_min_list(minimum: *mut StatctrStaticMin) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unsafe { minimum_there(minimum) }.map(|word| word.list(StaticKind::Min)))
}
