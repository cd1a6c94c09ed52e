//! `statctr_init` and its like: counters in the hands of C.
//!
//! Each function is described in `include/statctr.h`. Its safety contract is the same everywhere:
//! a pointer is NULL, or leads to what its type says (an array of `count` of them), which nobody
//! else writes meanwhile; a handle is all zero, or was made by this library and not cleaned up.

#![allow(unsafe_code)] // the boundary to C: pointers come from there, and names go there
#![allow(clippy::missing_safety_doc)] // once for all in the module's description
#![allow(clippy::useless_conversion)] // a C long has 32 bits on some targets

use crate::guard::{check_abi, errno, guard, guard_value};
use statctr::Counter;
use statctr::raw::RawCounter;
use statctr::topology::CpuId;
use std::ffi::{c_int, c_uint, c_ulong};

/// A C counter's handle, two words: the address of its home word (which belongs to no CPU), and the tagged address of
/// the table that maps CPUs to their words: `statctr_handle_t`.
pub type StatctrHandle = RawCounter;

const _: () = assert!(size_of::<StatctrHandle>() == 2 * size_of::<usize>());
const _: () = assert!(align_of::<StatctrHandle>() == align_of::<usize>());

/// The mask of the low bits in a counter handle's table address, which select how the counter is updated (rseq, atomic
/// or plain).
pub(crate) const TAG_MASK: usize = 63;
const TAG_RSEQ: usize = 1;
const TAG_UNIPROCESSOR: usize = 2;
const TAG_ATOMIC: usize = 4;
const TAG_STRIPED: usize = 16;

/// Returns a copy of the counter's handle that `counter` points to; `Err(EINVAL)` for NULL and for words that cannot be
/// a handle of this library.
pub(crate) unsafe fn live(counter: *const StatctrHandle) -> Result<StatctrHandle, c_int> {
    // SAFETY: NULL or a handle, by the module's contract.
    let handle = unsafe { counter.as_ref() }.copied().ok_or(libc::EINVAL)?;
    checked(handle)
}

fn checked(handle: StatctrHandle) -> Result<StatctrHandle, c_int> {
    match handle.table & TAG_MASK {
        TAG_RSEQ | TAG_UNIPROCESSOR | TAG_ATOMIC | TAG_STRIPED if handle.base != 0 => Ok(handle),
        _ => Err(libc::EINVAL),
    }
}

/// Returns the `count` handles behind the pointer.
unsafe fn handles<'a>(counters: *mut StatctrHandle, count: c_int) -> Result<&'a mut [StatctrHandle], c_int> {
    let count = usize::try_from(count).map_err(|_| libc::EINVAL)?;
    if counters.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: not NULL, so it leads to `count` handles that nobody else uses, by the module's
    // contract. They may be of any content: all is valid for two integers.
    Ok(unsafe { std::slice::from_raw_parts_mut(counters, count) })
}

unsafe fn init_all(counters: &mut [StatctrHandle], value: u64) -> Result<(), c_int> {
    counters.fill(StatctrHandle::ZERO);
    if counters.is_empty() {
        return Ok(());
    }
    let pool = crate::allocator::current_pool()?;
    for index in 0..counters.len() {
        match Counter::new_in(pool, value) {
            Ok(counter) => counters[index] = RawCounter::from_counter(counter),
            Err(error) => {
                // SAFETY: made just now; the others are zero.
                let _ = unsafe { clean_all(&mut counters[..index]) };
                return Err(errno(&error));
            }
        }
    }
    Ok(())
}

unsafe fn clean_all(counters: &mut [StatctrHandle]) -> Result<(), c_int> {
    let mut result = Ok(());
    for slot in counters {
        match checked(std::mem::replace(slot, StatctrHandle::ZERO)) {
            // SAFETY: a live handle, and nobody has it any more.
            Ok(handle) => drop(unsafe { handle.into_counter() }),
            Err(errno) => result = Err(errno),
        }
    }
    result
}

/// Initialises a C counter with a value; returns 0 or `-errno`: `statctr_init()` of `statctr.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_init(counter: *mut StatctrHandle, value: c_ulong) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_ninit(counter, 1, value) }
}

/// Initialises an array of C counters with one value, all or none; returns 0 or `-errno`: `statctr_ninit()` of
/// `statctr.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_ninit(counters: *mut StatctrHandle, count: c_int, value: c_ulong) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unsafe { init_all(handles(counters, count)?, u64::from(value)) })
}

/// Initialises a C counter as `statctr_init()` does, after a check of the ABI number that its caller was compiled with;
/// returns 0 or `-errno`, `-EPROTO` for another number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_init_abi(counter: *mut StatctrHandle, value: c_ulong, abi: c_uint) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_ninit_abi(counter, 1, value, abi) }
}

/// Initialises an array of C counters as `statctr_ninit()` does, after a check of the ABI number that its caller was
/// compiled with; returns 0 or `-errno`, `-EPROTO` for another number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_ninit_abi(
    counters: *mut StatctrHandle,
    count: c_int,
    value: c_ulong,
    abi: c_uint,
) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let counters = unsafe { handles(counters, count)? };
        counters.fill(StatctrHandle::ZERO);
        check_abi(abi)?;
        // SAFETY: the module's contract.
        unsafe { init_all(counters, u64::from(value)) }
    })
}

/// Frees the memory of a C counter and zeroes its handle; returns 0, or `-EINVAL` for NULL or a handle not in use (also
/// in a second cleanup): `statctr_cleanup()` of `statctr.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_cleanup(counter: *mut StatctrHandle) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_ncleanup(counter, 1) }
}

/// Frees the memory of an array of C counters; returns 0, or `-EINVAL` if one was not in use: `statctr_ncleanup()` of
/// `statctr.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_ncleanup(counters: *mut StatctrHandle, count: c_int) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unsafe { clean_all(handles(counters, count)?) })
}

/// Returns the number of updates a counter. Without a guard: it does not panic, and if it did,
/// `extern "C"` would end the process.
#[inline(always)]
unsafe fn add(counter: *const StatctrHandle, value: u64) -> c_int {
    // SAFETY: the module's contract.
    match unsafe { live(counter) } {
        // SAFETY: the module's contract.
        Ok(handle) if unsafe { handle.add(value) } => 0,
        _ => -libc::EINVAL,
    }
}

/// Adds a value to a C counter on the calling thread's CPU; returns 0, or `-EINVAL` for NULL or an uninitialised
/// handle: `statctr_add()` of `statctr.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_add(counter: *mut StatctrHandle, value: c_ulong) -> c_int {
    // SAFETY: the module's contract.
    unsafe { add(counter, u64::from(value)) }
}

/// Subtracts a value from a C counter on the calling thread's CPU; returns 0, or `-EINVAL` for NULL or an uninitialised
/// handle: `statctr_sub()` of `statctr.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_sub(counter: *mut StatctrHandle, value: c_ulong) -> c_int {
    // SAFETY: the module's contract.
    unsafe { add(counter, u64::from(value).wrapping_neg()) }
}

/// Adds 1 to a C counter on the calling thread's CPU; returns 0, or `-EINVAL` for NULL or an uninitialised handle:
/// `statctr_inc()` of `statctr.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_inc(counter: *mut StatctrHandle) -> c_int {
    // SAFETY: the module's contract.
    unsafe { add(counter, 1) }
}

/// Subtracts 1 from a C counter on the calling thread's CPU; returns 0, or `-EINVAL` for NULL or an uninitialised
/// handle: `statctr_dec()` of `statctr.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_dec(counter: *mut StatctrHandle) -> c_int {
    // SAFETY: the module's contract.
    unsafe { add(counter, u64::MAX) }
}

/// Adds a value to the C counter whose handle has these two words: the slow path of the header's inline rseq critical
/// section, taken if that did not commit. Returns 0 or `-errno`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_slow_add(base: usize, table: usize, value: u64) -> c_int {
    let handle = StatctrHandle { base, table };
    // SAFETY: the module's contract, for the handle that the header took apart.
    unsafe { add(&handle, value) }
}

/// Returns a C counter's value, the sum over its CPUs; 0 for NULL or an invalid handle: `statctr_read()` of
/// `statctr.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_read(counter: *const StatctrHandle) -> c_ulong {
    // SAFETY: the module's contract.
    guard_value(0, || unsafe { live(counter).ok()?.with(Counter::read) }.map(|value| value as c_ulong))
}

/// Writes what `read` finds through `value`.
unsafe fn read_into(
    counter: *const StatctrHandle,
    value: *mut u64,
    read: impl FnOnce(&Counter) -> u64,
) -> Result<(), c_int> {
    if value.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: the module's contract.
    let found = unsafe { live(counter)?.with(read) }.ok_or(libc::EINVAL)?;
    // SAFETY: not NULL, so it leads to a number, by the module's contract.
    unsafe { value.write(found) };
    Ok(())
}

/// Stores a C counter's value in `*value` and returns 0; `-EINVAL` for NULL or an invalid handle:
/// `statctr_read_checked()` of `statctr.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_read_checked(counter: *const StatctrHandle, value: *mut u64) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unsafe { read_into(counter, value, Counter::read) })
}

/// Stores in `*value` what one CPU added to a C counter; returns 0, or `-EINVAL` for NULL or an uninitialised handle:
/// `statctr_read_cpu()` of `statctr.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_read_cpu(
    counter: *const StatctrHandle,
    cpu: c_uint,
    value: *mut u64,
) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unsafe { read_into(counter, value, |counter| counter.read_cpu(CpuId::new(cpu))) })
}

/// Sets a C counter's value by its baseline, a number that reads add; no CPU's word is written; returns 0, or `-EINVAL`
/// for NULL or an uninitialised handle: `statctr_set()` of `statctr.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_set(counter: *mut StatctrHandle, value: c_ulong) -> c_int {
    // SAFETY: the module's contract.
    guard(|| unsafe { live(counter)?.with(|counter| counter.set(u64::from(value))).ok_or(libc::EINVAL) })
}
