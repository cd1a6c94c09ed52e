//! The program's registry with statistics of every kind, and its text for Prometheus.
//!
//! Each function is described in `include/statctr/registry.h`. The safety contract is that of
//! [`counter`](crate): a pointer is NULL or leads to what its type says; a handle is all zero, or
//! was made by this library and not cleaned up.

#![allow(unsafe_code)] // the boundary to C: pointers come from there, and names go there
#![allow(clippy::missing_safety_doc)] // once for all in the module's description

use crate::counter::StatctrHandle;
use crate::extremes::{StatctrMax, StatctrMin};
use crate::float_gauge::StatctrFloatGauge;
use crate::group::StatctrGroup;
use crate::guard::{errno, guard};
use crate::histogram::{StatctrHistogram, StatctrHistogramSnapshot};
use crate::statics::{StatctrDesc, Texts, description};
use statctr::{Registry, Sample, SampleItem, Value, raw};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// One value in the program's registry of statistics, of any kind, with its description, as passed to the callback of
/// `statctr_visit_all()`: `statctr_reading_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct StatctrReading {
    /// The description; its strings are valid during the call.
    pub desc: StatctrDesc,
    /// The name of a group's item, else NULL.
    pub item: *const c_char,
    /// The index in an array, else 0.
    pub index: u64,
    /// The kind, a `statctr_kind_value`.
    pub kind: u64,
    /// The value of a counter, a gauge (as a signed number), a maximum or a minimum, else 0.
    pub value: u64,
    /// The value as one number; NaN where there is none.
    pub number: f64,
    /// The number of values of an average or a histogram, else 0.
    pub count: u64,
    /// The sum of these values, else 0.
    pub sum: u64,
    /// The buckets of a histogram, valid during the call, else NULL.
    pub histogram: *const StatctrHistogramSnapshot,
    /// 1 of an element of an array, also of the first, which has the index 0; else 0.
    pub in_array: u64,
}

/// C callback that `statctr_visit_all()` calls with each value in the program's registry of statistics; a result other
/// than 0 ends the visit: `statctr_reading_fn`.
pub type StatctrReadingFn = Option<unsafe extern "C" fn(*const StatctrReading, *mut c_void) -> c_int>;

/// C callback to which `statctr_write_prometheus()` passes the registered statistics as text, with its length in bytes;
/// a result other than 0 is an error: `statctr_write_fn`.
pub type StatctrWriteFn = Option<unsafe extern "C" fn(*const c_char, usize, *mut c_void) -> c_int>;

/// Returns the result of a registration as a number.
fn registered(result: Option<statctr::Result<()>>) -> Result<(), c_int> {
    result.ok_or(libc::EEXIST)?.map_err(|error| errno(&error))
}

fn unregistered(found: bool) -> Result<(), c_int> {
    if found { Ok(()) } else { Err(libc::ENOENT) }
}

/// Registers a C counter as a gauge, a signed value, in the program's registry of statistics; returns 0 or `-errno`:
/// `statctr_register_gauge()` of `statctr/registry.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_register_gauge(
    gauge: *const StatctrHandle,
    desc: *const StatctrDesc,
) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let (handle, description) = unsafe { (crate::counter::live(gauge)?, description(desc)?) };
        // SAFETY: the header's contract: unregistered before it is cleaned up.
        registered(unsafe { handle.register(description, true) })
    })
}

/// Registers a C floating-point gauge in the program's registry of statistics; returns 0 or `-errno`:
/// `statctr_register_float_gauge()` of `statctr/registry.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_register_float_gauge(
    gauge: *const StatctrFloatGauge,
    desc: *const StatctrDesc,
) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let (gauge, description) =
            unsafe { (crate::float_gauge::float_gauge_of(gauge)?, description(desc)?) };
        // SAFETY: the header's contract: unregistered before it is cleaned up.
        registered(unsafe { raw::register_source(gauge, description) })
    })
}

/// Takes a C floating-point gauge out of the program's registry of statistics; no visit reads it afterwards; returns 0,
/// or `-ENOENT` if it is not registered: `statctr_unregister_float_gauge()` of `statctr/registry.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_unregister_float_gauge(gauge: *const StatctrFloatGauge) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unregistered(raw::unregister_source(unsafe { crate::float_gauge::float_gauge_of(gauge)? })))
}

/// Registers an event of two items of a C group, a number of values and their sum, as an average in the program's
/// registry of statistics; returns 0 or `-errno`: `statctr_register_average()` of `statctr/registry.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_register_average(
    group: *const StatctrGroup,
    event: c_uint,
    desc: *const StatctrDesc,
) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let (group, description) = unsafe { (crate::group::live(group)?, description(desc)?) };
        // SAFETY: the header's contract: unregistered before it is cleaned up.
        registered(unsafe { group.register_average(event as usize, description) })
    })
}

/// Takes the average of a C group out of the program's registry of statistics; no visit reads it afterwards; returns 0,
/// or `-ENOENT` if it is not registered: `statctr_unregister_average()` of `statctr/registry.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_unregister_average(group: *const StatctrGroup) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unregistered(unsafe { crate::group::live(group)? }.counter.unregister()))
}

/// Registers a C histogram in the program's registry of statistics; returns 0 or `-errno`:
/// `statctr_register_histogram()` of `statctr/registry.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_register_histogram(
    histogram: *const StatctrHistogram,
    desc: *const StatctrDesc,
) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let (handle, description) = unsafe { (crate::histogram::live(histogram)?, description(desc)?) };
        // SAFETY: the header's contract: unregistered before it is cleaned up.
        registered(unsafe { handle.register(description) })
    })
}

/// Takes a C histogram out of the program's registry of statistics; no visit reads it afterwards; returns 0, or
/// `-ENOENT` if it is not registered: `statctr_unregister_histogram()` of `statctr/registry.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_unregister_histogram(histogram: *const StatctrHistogram) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unregistered(unsafe { crate::histogram::live(histogram)? }.buckets.counter.unregister()))
}

/// Registers a C maximum in the program's registry of statistics; returns 0 or `-errno`: `statctr_register_max()` of
/// `statctr/registry.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_register_max(maximum: *const StatctrMax, desc: *const StatctrDesc) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let (maximum, description) = unsafe { (crate::extremes::maximum_of(maximum)?, description(desc)?) };
        // SAFETY: the header's contract: unregistered before it is cleaned up.
        registered(unsafe { raw::register_source(maximum, description) })
    })
}

/// Takes a C maximum out of the program's registry of statistics; no visit reads it afterwards; returns 0, or `-ENOENT`
/// if it is not registered: `statctr_unregister_max()` of `statctr/registry.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_unregister_max(maximum: *const StatctrMax) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unregistered(raw::unregister_source(unsafe { crate::extremes::maximum_of(maximum)? })))
}

/// Registers a C minimum in the program's registry of statistics; returns 0 or `-errno`: `statctr_register_min()` of
/// `statctr/registry.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_register_min(minimum: *const StatctrMin, desc: *const StatctrDesc) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let (minimum, description) = unsafe { (crate::extremes::minimum_of(minimum)?, description(desc)?) };
        // SAFETY: the header's contract: unregistered before it is cleaned up.
        registered(unsafe { raw::register_source(minimum, description) })
    })
}

/// Takes a C minimum out of the program's registry of statistics; no visit reads it afterwards; returns 0, or `-ENOENT`
/// if it is not registered: `statctr_unregister_min()` of `statctr/registry.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_unregister_min(minimum: *const StatctrMin) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unregistered(raw::unregister_source(unsafe { crate::extremes::minimum_of(minimum)? })))
}

/// Calls a C function with each value, of every kind, in the program's registry of statistics; returns 0, or the first
/// nonzero result of that function, which ends the visit: `statctr_visit_all()` of `statctr/registry.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_visit_all(visit: StatctrReadingFn, context: *mut c_void) -> c_int {
    let mut stopped = 0;
    let result = guard(|| {
        let visit = visit.ok_or(libc::EINVAL)?;
        Registry::global().visit(|sample| {
            if stopped == 0 {
                let texts = Texts::of(&sample);
                // SAFETY: the header's contract for the function; strings and buckets live until it returns.
                stopped = unsafe { visit(&reading(&sample, &texts), context) };
            }
        });
        Ok(())
    });
    if result == 0 { stopped } else { result }
}

/// Returns a sample as C has it.
fn reading(sample: &Sample<'_>, texts: &Texts) -> StatctrReading {
    let none = StatctrReading {
        desc: texts.desc(),
        item: texts.item(),
        index: texts.index(),
        kind: 0,
        value: 0,
        number: sample.value.number(),
        count: 0,
        sum: 0,
        histogram: std::ptr::null(),
        in_array: u64::from(matches!(sample.item, SampleItem::Index(_))),
    };
    match sample.value {
        Value::Counter(value) => StatctrReading { kind: 1, value: *value, ..none },
        Value::Gauge(value) => StatctrReading { kind: 2, value: value.cast_unsigned(), ..none },
        Value::FloatGauge(_) => StatctrReading { kind: 3, ..none },
        Value::Max(value) => StatctrReading { kind: 4, value: *value, ..none },
        Value::Min(value) => StatctrReading { kind: 5, value: *value, ..none },
        Value::Average(value) => StatctrReading { kind: 6, count: value.count(), sum: value.sum(), ..none },
        Value::Histogram(value) => {
            StatctrReading { kind: 7, count: value.count(), sum: value.sum(), histogram: value, ..none }
        }
        // a kind that this header does not name
        _ => none,
    }
}

/// Passes the values in the program's registry of statistics, in Prometheus' classic text format, to a C function;
/// returns 0, or the nonzero result of that function: `statctr_write_prometheus()` of `statctr/registry.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_write_prometheus(write: StatctrWriteFn, context: *mut c_void) -> c_int {
    let mut status = 0;
    let result = guard(|| {
        let write = write.ok_or(libc::EINVAL)?;
        let text = Registry::global().prometheus_text();
        // SAFETY: the header's contract for the function; the text lives until it returns.
        status = unsafe { write(text.as_ptr().cast(), text.len(), context) };
        Ok(())
    });
    if result == 0 { status } else { result }
}
