//! `statctr_histogram_init` and its like: histograms in the hands of C.
//!
//! Each function is described in `include/statctr/histogram.h`. The safety contract is that of
//! [`counter`](crate): a pointer is NULL or leads to what its type says; a handle is all zero, or
//! was made by this library and not cleaned up; a snapshot was made by this library and not freed.

#![allow(unsafe_code)] // the boundary to C: pointers come from there, and names go there
#![allow(clippy::missing_safety_doc)] // once for all in the module's description

use crate::counter::TAG_MASK;
use crate::guard::{check_abi, errno, guard};
use statctr::raw::RawHistogram;
use statctr::{Histogram, HistogramSnapshot};
use std::ffi::{c_int, c_uint};

/// A C histogram: the handle of its buckets, and how values are assigned to them: `statctr_histogram_t`.
pub type StatctrHistogram = RawHistogram;
/// The values of all buckets of a histogram at one reading: `statctr_histogram_snapshot_t`, opaque in C.
pub type StatctrHistogramSnapshot = HistogramSnapshot;

const _: () = assert!(size_of::<usize>() != 8 || size_of::<StatctrHistogram>() == 48);

/// A bucket of a histogram: smallest and largest value, and number of values counted: `statctr_bucket_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct StatctrBucket {
    /// The smallest value that the bucket counts; 0 in a classic bucket.
    pub least: u64,
    /// The largest value that the bucket counts.
    pub largest: u64,
    /// The number of values in the bucket; in a classic bucket of all values up to `largest`.
    pub count: u64,
}

/// The error of a quantile of no values: `ENODATA`, which POSIX leaves out where there are no STREAMS, so some C
/// libraries do not define it; `ENOMSG`, which all have, is what libc++ takes in its place there, too.
#[cfg(not(any(target_os = "freebsd", target_os = "openbsd", target_os = "dragonfly", target_os = "wasi")))]
pub(crate) const NO_VALUES: c_int = libc::ENODATA;
/// The error of a quantile of no values, where `errno.h` has no `ENODATA`.
#[cfg(any(target_os = "freebsd", target_os = "openbsd", target_os = "dragonfly", target_os = "wasi"))]
pub(crate) const NO_VALUES: c_int = libc::ENOMSG;

/// Returns a copy of the C histogram's handle that `histogram` points to; `Err(EINVAL)` for NULL and for words that
/// cannot be a histogram's handle of this library.
pub(crate) unsafe fn live(histogram: *const StatctrHistogram) -> Result<StatctrHistogram, c_int> {
    // SAFETY: NULL or a handle, by the module's contract.
    let handle = unsafe { histogram.as_ref() }.copied().ok_or(libc::EINVAL)?;
    let counter = handle.buckets.counter;
    let is_live = matches!(counter.table & TAG_MASK, 1 | 2 | 4 | 8 | 16) && counter.base != 0;
    if is_live { Ok(handle) } else { Err(libc::EINVAL) }
}

/// Returns the snapshot behind the pointer.
unsafe fn snapshot_of<'a>(snapshot: *const StatctrHistogramSnapshot) -> Result<&'a HistogramSnapshot, c_int> {
    // SAFETY: NULL or a snapshot, by the module's contract.
    unsafe { snapshot.as_ref() }.ok_or(libc::EINVAL)
}

/// Stores a number where there is room for it.
unsafe fn store(target: *mut u64, value: u64) {
    if !target.is_null() {
        // SAFETY: not NULL, so it leads to a number, by the module's contract.
        unsafe { target.write(value) };
    }
}

/// Initialises a C histogram for values up to `max`, whose quantiles have the relative error `error`; returns 0 or
/// `-errno`: `statctr_histogram_init()` of `statctr/histogram.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_histogram_init(
    histogram: *mut StatctrHistogram,
    max: u64,
    error: f64,
) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_histogram_init_abi(histogram, max, error, crate::ABI) }
}

/// Initialises a C histogram as `statctr_histogram_init()` does, after a check of the ABI number that its caller was
/// compiled with; returns 0 or `-errno`, `-EPROTO` for another number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_histogram_init_abi(
    histogram: *mut StatctrHistogram,
    max: u64,
    error: f64,
    abi: c_uint,
) -> c_int {
    guard(|| {
        if histogram.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: not NULL, so it leads to room for a handle, by the module's contract.
        unsafe { histogram.write(StatctrHistogram::ZERO) };
        check_abi(abi)?;
        let pool = crate::allocator::current_pool()?;
        let made = Histogram::new_in(pool, max, error).map_err(|error| errno(&error))?;
        // SAFETY: as above.
        unsafe { histogram.write(RawHistogram::from_histogram(made)) };
        Ok(())
    })
}

/// Frees the memory of a C histogram; returns 0, or `-EINVAL` for NULL or a handle not in use (also in a second
/// cleanup): `statctr_histogram_cleanup()` of `statctr/histogram.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_histogram_cleanup(histogram: *mut StatctrHistogram) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let handle = unsafe { live(histogram)? };
        // SAFETY: `live` has seen that it is not NULL.
        unsafe { histogram.write(StatctrHistogram::ZERO) };
        // SAFETY: a live handle, and nobody has it any more.
        drop(unsafe { handle.into_histogram() });
        Ok(())
    })
}

/// Counts a value in a C histogram; returns 0, or `-EINVAL` for NULL or an uninitialised handle:
/// `statctr_histogram_observe()` of `statctr/histogram.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_histogram_observe(histogram: *mut StatctrHistogram, value: u64) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_histogram_observe_many(histogram, value, 1) }
}

/// Counts a value several times in a C histogram; returns 0, or `-EINVAL` for NULL or an uninitialised handle:
/// `statctr_histogram_observe_many()` of `statctr/histogram.h`. Without a guard: an update does not panic, and if it
/// did, `extern "C"` would end the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_histogram_observe_many(
    histogram: *mut StatctrHistogram,
    value: u64,
    times: u64,
) -> c_int {
    // SAFETY: the module's contract.
    let done = unsafe {
        live(histogram).map(|handle| handle.with(|histogram| histogram.observe_many(value, times)).is_some())
    };
    if done == Ok(true) { 0 } else { -libc::EINVAL }
}

/// Reads all buckets of a C histogram into a new snapshot, which the caller frees; returns 0, or `-EINVAL` for NULL or
/// an uninitialised handle: `statctr_histogram_snapshot()` of `statctr/histogram.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_histogram_snapshot(
    histogram: *const StatctrHistogram,
    snapshot: *mut *mut StatctrHistogramSnapshot,
) -> c_int {
    guard(|| {
        if snapshot.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: the module's contract.
        let seen = unsafe { live(histogram)?.with(Histogram::snapshot) }.ok_or(libc::EINVAL)?;
        // SAFETY: not NULL, so it leads to room for a pointer, by the module's contract.
        unsafe { snapshot.write(Box::into_raw(Box::new(seen))) };
        Ok(())
    })
}

/// Frees a snapshot of a C histogram; does nothing for NULL, and returns 0: `statctr_histogram_snapshot_free()` of
/// `statctr/histogram.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_histogram_snapshot_free(snapshot: *mut StatctrHistogramSnapshot) -> c_int {
    guard(|| {
        if !snapshot.is_null() {
            // SAFETY: `statctr_histogram_snapshot` made the box, by the module's contract.
            drop(unsafe { Box::from_raw(snapshot) });
        }
        Ok(())
    })
}

/// Stores the number and the sum of all values in a histogram's snapshot; returns 0, or `-EINVAL` without a snapshot:
/// `statctr_histogram_totals()` of `statctr/histogram.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_histogram_totals(
    snapshot: *const StatctrHistogramSnapshot,
    count: *mut u64,
    sum: *mut u64,
) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let seen = unsafe { snapshot_of(snapshot)? };
        // SAFETY: the module's contract.
        unsafe {
            store(count, seen.count());
            store(sum, seen.sum());
        }
        Ok(())
    })
}

/// Stores the quantile `part` (0.5: the median) of the values in a histogram's snapshot in `*value`; returns 0, or
/// `-ENODATA` (`-ENOMSG` on systems without it) if it has no values: `statctr_histogram_quantile()` of
/// `statctr/histogram.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_histogram_quantile(
    snapshot: *const StatctrHistogramSnapshot,
    part: f64,
    value: *mut u64,
) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let seen = unsafe { snapshot_of(snapshot)? };
        if value.is_null() || part.is_nan() {
            return Err(libc::EINVAL);
        }
        let quantile = seen.quantile(part).ok_or(NO_VALUES)?;
        // SAFETY: the module's contract.
        unsafe { store(value, quantile) };
        Ok(())
    })
}

/// Stores the number of values up to `bound` in a histogram's snapshot in `*count`; returns 0, or `-EINVAL` for a NULL:
/// `statctr_histogram_count_up_to()` of `statctr/histogram.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_histogram_count_up_to(
    snapshot: *const StatctrHistogramSnapshot,
    bound: u64,
    count: *mut u64,
) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let seen = unsafe { snapshot_of(snapshot)? };
        if count.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: the module's contract.
        unsafe { store(count, seen.count_up_to(bound)) };
        Ok(())
    })
}

/// Stores up to `len` non-empty buckets of a histogram's snapshot, and returns the number of all non-empty ones:
/// `statctr_histogram_buckets()` of `statctr/histogram.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_histogram_buckets(
    snapshot: *const StatctrHistogramSnapshot,
    buckets: *mut StatctrBucket,
    len: usize,
) -> c_int {
    let mut filled = 0;
    let status = guard(|| {
        // SAFETY: the module's contract.
        let seen = unsafe { snapshot_of(snapshot)? };
        if buckets.is_null() && len > 0 {
            return Err(libc::EINVAL);
        }
        for (index, (least, largest, count)) in seen.buckets().enumerate() {
            if index < len {
                // SAFETY: not NULL, so it leads to `len` buckets, by the module's contract.
                unsafe { buckets.add(index).write(StatctrBucket { least, largest, count }) };
            }
            filled += 1;
        }
        Ok(())
    });
    if status == 0 { filled } else { status }
}

/// Stores up to `len` of Prometheus' classic buckets of a histogram's snapshot, one for each power of two, and returns
/// the number of all of them: `statctr_histogram_classic_buckets()` of `statctr/histogram.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_histogram_classic_buckets(
    snapshot: *const StatctrHistogramSnapshot,
    buckets: *mut StatctrBucket,
    len: usize,
) -> c_int {
    let mut found = 0;
    let status = guard(|| {
        // SAFETY: the module's contract.
        let seen = unsafe { snapshot_of(snapshot)? };
        if buckets.is_null() && len > 0 {
            return Err(libc::EINVAL);
        }
        for (index, (largest, count)) in seen.classic_buckets().into_iter().enumerate() {
            if index < len {
                // SAFETY: not NULL, so it leads to `len` buckets, by the module's contract.
                unsafe { buckets.add(index).write(StatctrBucket { least: 0, largest, count }) };
            }
            found += 1;
        }
        Ok(())
    });
    if status == 0 { found } else { status }
}

/// Adds the counts of another histogram's snapshot to this one; returns 0, or `-EINVAL` if their buckets differ:
/// `statctr_histogram_merge()` of `statctr/histogram.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_histogram_merge(
    snapshot: *mut StatctrHistogramSnapshot,
    other: *const StatctrHistogramSnapshot,
) -> c_int {
    guard(|| {
        // they may be one and the same, which is no merge for two references
        // SAFETY: the module's contract.
        let other = unsafe { snapshot_of(other)? }.clone();
        // SAFETY: NULL or a snapshot that nobody else uses, by the module's contract.
        let seen = unsafe { snapshot.as_mut() }.ok_or(libc::EINVAL)?;
        seen.merge(&other).map_err(|error| errno(&error))
    })
}

/// Subtracts the counts of an earlier snapshot of the same histogram, which leaves what was counted in between; returns
/// 0, or `-EINVAL` if their buckets differ: `statctr_histogram_subtract()` of `statctr/histogram.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_histogram_subtract(
    snapshot: *mut StatctrHistogramSnapshot,
    earlier: *const StatctrHistogramSnapshot,
) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let change = unsafe { snapshot_of(snapshot)?.since(snapshot_of(earlier)?) };
        let change = change.map_err(|error| errno(&error))?;
        // SAFETY: a snapshot that nobody else uses, by the module's contract.
        drop(unsafe { snapshot.replace(change) });
        Ok(())
    })
}
