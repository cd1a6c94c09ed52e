//! Families of statistics by labels that are statics of a C program.
//!
//! Each function is described in `include/statctr/family.h`. The safety contract is that of
//! [`counter`](crate): a pointer is NULL or leads to what its type says, a string ends, and a family lives, and keeps
//! its description, while it is used.

#![allow(unsafe_code)] // the boundary to C: pointers come from there, and members go there
#![allow(clippy::missing_safety_doc)] // once for all in the module's description

use crate::float_gauge::StatctrFloatGauge;
use crate::group::StatctrGroup;
use crate::guard::{errno, guard};
use crate::histogram::StatctrHistogram;
use crate::static_extremes::{StatctrStaticMax, StatctrStaticMin};
use crate::statics::{StatctrStatic, StatctrStaticGauge, string};
use statctr::raw::{FamilyKind, RawFamily, StaticKind};
use statctr::{Description, Pool, Unit};
use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A family of counters (one name, a counter for each combination of label values) that is a static variable of a C
/// program: `statctr_family_t`.
#[derive(Debug)]
#[repr(C)]
pub struct StatctrFamily {
    /// The members of the family; null before the first look-up.
    members: AtomicPtr<RawFamily>,
    /// The name of the family: letters, digits, `_` and `:`.
    pub name: *const c_char,
    /// The help text of the family, or NULL.
    pub help: *const c_char,
    /// The unit of the values, or NULL.
    pub unit: *const c_char,
    /// The names of the labels.
    pub labels: *const *const c_char,
    /// The number of label names in `labels`.
    pub label_count: u32,
    /// The largest number of members, without the overflow member.
    pub limit: u32,
}

/// A family of gauges (one name, a gauge for each combination of label values) that is a static variable of a C
/// program: `statctr_gauge_family_t`.
#[derive(Debug)]
#[repr(C)]
pub struct StatctrGaugeFamily {
    family: StatctrFamily,
}

/// A family of maxima of observed values (one name, a maximum for each combination of label values) that is a static
/// variable of a C program: `statctr_max_family_t`.
#[derive(Debug)]
#[repr(C)]
pub struct StatctrMaxFamily {
    family: StatctrFamily,
}

/// A family of minima of observed values (one name, a minimum for each combination of label values) that is a static
/// variable of a C program: `statctr_min_family_t`.
#[derive(Debug)]
#[repr(C)]
pub struct StatctrMinFamily {
    family: StatctrFamily,
}

/// A family of floating-point gauges (one name, a floating-point gauge for each combination of label values) that is a
/// static variable of a C program: `statctr_float_gauge_family_t`.
#[derive(Debug)]
#[repr(C)]
pub struct StatctrFloatGaugeFamily {
    family: StatctrFamily,
}

/// A family of averages of observed values (one name, an average for each combination of label values) that is a static
/// variable of a C program: `statctr_average_family_t`.
#[derive(Debug)]
#[repr(C)]
pub struct StatctrAverageFamily {
    family: StatctrFamily,
}

/// A family of histograms (one name, a histogram for each combination of label values) that is a static variable of a C
/// program: `statctr_histogram_family_t`.
#[derive(Debug)]
#[repr(C)]
pub struct StatctrHistogramFamily {
    family: StatctrFamily,
    /// The largest value that has a bucket.
    pub max: u64,
    /// The largest relative error of quantiles.
    pub error: f64,
}

/// Returns the members of the family, which the first call finds by the description. An error is a positive `errno`.
fn members_of(family: &StatctrFamily, kind: FamilyKind) -> Result<&'static RawFamily, c_int> {
    // SAFETY: null, or what was stored below, which lives as long as the process.
    if let Some(members) = unsafe { family.members.load(Ordering::Acquire).as_ref() } {
        return Ok(members);
    }
    if family.labels.is_null() || family.label_count as usize > RawFamily::MAX_LABELS {
        return Err(libc::EINVAL);
    }
    // SAFETY: the module's contract for the strings, and for the array, which is not NULL.
    let (description, labels) = unsafe {
        let unit = Unit::new(string(family.unit)?);
        let description = Description::new(string(family.name)?).help(string(family.help)?).unit(unit);
        let labels = std::slice::from_raw_parts(family.labels, family.label_count as usize);
        (description, labels.iter().map(|&label| string(label)).collect::<Result<Vec<String>, c_int>>()?)
    };
    let members = RawFamily::intern(description, labels, family.limit as usize, kind);
    let members = members.map_err(|error| errno(&error))?;
    family.members.store(std::ptr::from_ref(members).cast_mut(), Ordering::Release);
    Ok(members)
}

/// Calls `look_up` with the values of labels behind the pointer and returns its result. Values that have no member of
/// their own, as they are too long or no UTF-8, are those of the overflow member. An error is a positive `errno`.
unsafe fn with_values<R>(
    values: *const *const c_char,
    count: c_uint,
    look_up: impl FnOnce(&[&str]) -> Result<R, c_int>,
) -> Result<R, c_int> {
    let count = count as usize;
    if values.is_null() || count > RawFamily::MAX_LABELS {
        return Err(libc::EINVAL);
    }
    let mut texts = [""; RawFamily::MAX_LABELS];
    let texts = &mut texts[..count];
    let mut overflows = false;
    for (label, text) in texts.iter_mut().enumerate() {
        // SAFETY: not NULL, so it leads to `count` pointers, by the module's contract.
        let value = unsafe { *values.add(label) };
        if value.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: not NULL, so a string that ends, by the module's contract; no byte behind its end is looked at.
        let bytes = unsafe {
            let length = libc::strnlen(value, RawFamily::MAX_VALUE_BYTES + 1);
            std::slice::from_raw_parts(value.cast::<u8>(), length)
        };
        match std::str::from_utf8(bytes) {
            Ok(value) if bytes.len() <= RawFamily::MAX_VALUE_BYTES => *text = value,
            _ => overflows = true,
        }
    }
    if overflows {
        texts.fill(RawFamily::OVERFLOW);
    }
    look_up(texts)
}

/// Stores a pointer to the member of a family of statics through `member`; returns 0 or `-errno`.
unsafe fn store_static<M>(
    family: Option<&StatctrFamily>,
    kind: StaticKind,
    (values, count): (*const *const c_char, c_uint),
    member: *mut *mut M,
) -> c_int {
    guard(|| {
        let family = family.filter(|_| !member.is_null()).ok_or(libc::EINVAL)?;
        let members = members_of(family, FamilyKind::Static(kind))?;
        let look_up = |values: &[&str]| members.get_static(values, kind).ok_or(libc::EINVAL);
        // SAFETY: the module's contract.
        let found = unsafe { with_values(values, count, look_up)? };
        // SAFETY: not NULL, so there is room for a pointer; statics of each kind are one word, and updates of it are
        // atomic or by sections.
        unsafe { member.write(std::ptr::from_ref(found).cast_mut().cast()) };
        Ok(())
    })
}

/// Stores in `*counter` a pointer to the family's counter for a combination of label values, which is created if it
/// does not exist; returns 0 or `-errno`: `statctr_family_get()` of `statctr/family.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_family_get(
    family: *mut StatctrFamily,
    values: *const *const c_char,
    count: c_uint,
    counter: *mut *mut StatctrStatic,
) -> c_int {
    // SAFETY: the module's contract.
    unsafe { store_static(family.as_ref(), StaticKind::Counter, (values, count), counter) }
}

/// Stores in `*gauge` a pointer to the family's gauge for a combination of label values, which is created if it does
/// not exist; returns 0 or `-errno`: `statctr_gauge_family_get()` of `statctr/family.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_gauge_family_get(
    family: *mut StatctrGaugeFamily,
    values: *const *const c_char,
    count: c_uint,
    gauge: *mut *mut StatctrStaticGauge,
) -> c_int {
    // SAFETY: the module's contract.
    unsafe {
        let family = family.as_ref().map(|family| &family.family);
        store_static(family, StaticKind::Gauge, (values, count), gauge)
    }
}

/// Stores in `*maximum` a pointer to the family's maximum for a combination of label values, which is created if it
/// does not exist; returns 0 or `-errno`: `statctr_max_family_get()` of `statctr/family.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_max_family_get(
    family: *mut StatctrMaxFamily,
    values: *const *const c_char,
    count: c_uint,
    maximum: *mut *mut StatctrStaticMax,
) -> c_int {
    // SAFETY: the module's contract.
    unsafe {
        let family = family.as_ref().map(|family| &family.family);
        store_static(family, StaticKind::Max, (values, count), maximum)
    }
}

/// Stores in `*minimum` a pointer to the family's minimum for a combination of label values, which is created if it
/// does not exist; returns 0 or `-errno`: `statctr_min_family_get()` of `statctr/family.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_min_family_get(
    family: *mut StatctrMinFamily,
    values: *const *const c_char,
    count: c_uint,
    minimum: *mut *mut StatctrStaticMin,
) -> c_int {
    // SAFETY: the module's contract.
    unsafe {
        let family = family.as_ref().map(|family| &family.family);
        store_static(family, StaticKind::Min, (values, count), minimum)
    }
}

/// Stores a pointer to the words of a member in memory of a pool through `member`; returns 0 or `-errno`.
unsafe fn store_pooled<M: 'static>(
    family: Option<(&StatctrFamily, FamilyKind)>,
    (values, count): (*const *const c_char, c_uint),
    member: *mut *mut M,
    get: impl FnOnce(&'static RawFamily, &[&str], &Pool) -> Option<statctr::Result<&'static M>>,
) -> c_int {
    guard(|| {
        let (family, kind) = family.filter(|_| !member.is_null()).ok_or(libc::EINVAL)?;
        let members = members_of(family, kind)?;
        let pool = crate::allocator::current_pool()?;
        let look_up =
            |values: &[&str]| get(members, values, pool).ok_or(libc::EINVAL)?.map_err(|error| errno(&error));
        // SAFETY: the module's contract.
        let found = unsafe { with_values(values, count, look_up)? };
        // SAFETY: not NULL, so there is room for a pointer; by the header's contract nobody writes through it.
        unsafe { member.write(std::ptr::from_ref(found).cast_mut()) };
        Ok(())
    })
}

/// Stores in `*gauge` a pointer to the family's floating-point gauge for a combination of label values, which is
/// created if it does not exist; returns 0 or `-errno`: `statctr_float_gauge_family_get()` of `statctr/family.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_float_gauge_family_get(
    family: *mut StatctrFloatGaugeFamily,
    values: *const *const c_char,
    count: c_uint,
    gauge: *mut *mut StatctrFloatGauge,
) -> c_int {
    // SAFETY: the module's contract; the handle is a pointer, as the member's word is.
    unsafe {
        let family = family.as_ref().map(|family| (&family.family, FamilyKind::FloatGauge));
        store_pooled(family, (values, count), gauge.cast(), RawFamily::get_float_gauge)
    }
}

/// Stores in `*average` a pointer to the family's average for a combination of label values, a group with an event of
/// two items (number of values and their sum), which is created if it does not exist; returns 0 or `-errno`:
/// `statctr_average_family_get()` of `statctr/family.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_average_family_get(
    family: *mut StatctrAverageFamily,
    values: *const *const c_char,
    count: c_uint,
    average: *mut *mut StatctrGroup,
) -> c_int {
    // SAFETY: the module's contract.
    unsafe {
        let family = family.as_ref().map(|family| (&family.family, FamilyKind::Average));
        store_pooled(family, (values, count), average, RawFamily::get_average)
    }
}

/// Stores in `*histogram` a pointer to the family's histogram for a combination of label values, which is created if it
/// does not exist; returns 0 or `-errno`: `statctr_histogram_family_get()` of `statctr/family.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_histogram_family_get(
    family: *mut StatctrHistogramFamily,
    values: *const *const c_char,
    count: c_uint,
    histogram: *mut *mut StatctrHistogram,
) -> c_int {
    let kind_of =
        |family: &StatctrHistogramFamily| FamilyKind::Histogram { max: family.max, error: family.error };
    // SAFETY: the module's contract.
    unsafe {
        let family = family.as_ref().map(|family| (&family.family, kind_of(family)));
        store_pooled(family, (values, count), histogram, RawFamily::get_histogram)
    }
}
