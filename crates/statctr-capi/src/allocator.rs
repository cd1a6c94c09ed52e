//! The allocators of C's counters, and counters taken apart into their CPUs' words.
//!
//! Each function is described in `include/statctr/allocator.h`. The safety contract is that of
//! [`counter`](crate): a pointer is NULL or leads to what its type says.

#![allow(unsafe_code)] // the boundary to C: pointers come from there, and names go there
#![allow(clippy::missing_safety_doc)] // once for all in the module's description

use crate::guard::{check_abi, errno, guard, guard_value};
use statctr::raw::RawCounter;
use statctr::topology::CpuId;
use statctr::{Counter, OnceBox, Placement, Pool};
use std::ffi::{c_int, c_uint, c_ulong};
use std::sync::atomic::{AtomicI32, Ordering};

const DEFAULT: c_int = 0;
const FIXED: c_int = 1;
const FLEXIBLE: c_int = 2;
const SHARED: c_int = 3;

/// Allocator of counters that are made without naming one.
static CURRENT: AtomicI32 = AtomicI32::new(DEFAULT);

/// Returns the pool of an allocator: made when it is first asked for.
fn pool_of(allocator: c_int) -> Result<&'static Pool, c_int> {
    static POOLS: [OnceBox<Pool>; 3] = [OnceBox::new(), OnceBox::new(), OnceBox::new()];
    let (place, placement) = match allocator {
        DEFAULT => return Pool::global().map_err(|error| errno(&error)),
        FIXED => (&POOLS[0], Placement::Fixed),
        FLEXIBLE => (&POOLS[1], Placement::Flexible),
        SHARED => (&POOLS[2], Placement::Shared),
        _ => return Err(libc::EINVAL),
    };
    if let Some(pool) = place.get() {
        return Ok(pool);
    }
    let pool = Pool::builder().placement(placement).build().map_err(|error| errno(&error))?;
    Ok(place.get_or(pool))
}

/// Returns the memory pool for counters behind `STATCTR_ALLOCATOR_FLEXIBLE`, from which a CPU takes memory only when it
/// first counts; created on first use. An error is a positive `errno`.
pub(crate) fn flexible_pool() -> Result<&'static Pool, c_int> {
    pool_of(FLEXIBLE)
}

/// Returns the memory pool from which new C counters are allocated, that of the allocator which
/// `statctr_use_allocator()` chose last. An error is a positive `errno`.
pub(crate) fn current_pool() -> Result<&'static Pool, c_int> {
    pool_of(CURRENT.load(Ordering::Acquire))
}

/// Chooses the allocator (default, fixed, flexible or shared) for C counters and groups initialised from now on;
/// returns 0 or `-errno`: `statctr_use_allocator()` of `statctr/allocator.h`.
#[unsafe(no_mangle)]
pub extern "C" fn statctr_use_allocator(allocator: c_int) -> c_int {
    guard(|| {
        pool_of(allocator)?;
        CURRENT.store(allocator, Ordering::Release);
        Ok(())
    })
}

/// Moves what an offline CPU counted in the counters of the flexible allocator to shared words, and frees the CPU's
/// memory; returns 0 or `-errno`: `statctr_drain()` of `statctr/allocator.h`.
#[unsafe(no_mangle)]
pub extern "C" fn statctr_drain(cpu: c_uint) -> c_int {
    guard(|| {
        if CpuId::new(cpu) > CpuId::MAX {
            return Err(libc::EINVAL);
        }
        flexible_pool()?.drain(CpuId::new(cpu)).map_err(|error| errno(&error))?;
        Ok(())
    })
}

/// A C counter allocated by `pcpu_ctr_alloc()`, whose per-CPU words C code may access by pointer: `pcpu_ctr_t`.
#[derive(Debug)]
#[repr(C)]
pub struct StatctrPcpuCtr {
    /// The handle by which the counter is updated: addresses of its home word and of its reservation's table.
    pub handle: RawCounter,
}

/// Allocates a C counter with a 64-bit word for each CPU, by the allocator that `flag` names; returns NULL on failure:
/// `pcpu_ctr_alloc()` of `statctr/allocator.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pcpu_ctr_alloc(flag: c_int) -> *mut StatctrPcpuCtr {
    guard_value(std::ptr::null_mut(), || {
        let pool = if flag == DEFAULT { current_pool() } else { pool_of(flag) };
        let counter = Counter::new_in(pool.ok()?, 0).ok()?;
        Some(Box::into_raw(Box::new(StatctrPcpuCtr { handle: RawCounter::from_counter(counter) })))
    })
}

/// Allocates a C counter from the allocator that `flag` names, as `pcpu_ctr_alloc()` does; returns NULL on failure, and
/// if the caller, whose updates are inline, was compiled with another ABI number than the library's.
#[unsafe(no_mangle)]
pub extern "C" fn pcpu_ctr_alloc_abi(flag: c_int, abi: c_uint) -> *mut StatctrPcpuCtr {
    match check_abi(abi) {
        Ok(()) => pcpu_ctr_alloc(flag),
        Err(_) => std::ptr::null_mut(),
    }
}

/// Frees a C counter that `pcpu_ctr_alloc()` returned; does nothing for NULL, and always returns NULL:
/// `pcpu_ctr_free()` of `statctr/allocator.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pcpu_ctr_free(counter: *mut StatctrPcpuCtr) -> *mut StatctrPcpuCtr {
    guard_value(std::ptr::null_mut(), || {
        if !counter.is_null() {
            // SAFETY: not NULL, so `pcpu_ctr_alloc` made it and nobody uses it any more, by the
            // module's contract.
            unsafe { drop(Box::from_raw(counter).handle.into_counter()) };
        }
        None
    })
}

/// Returns a pointer to one CPU's word of a C counter; NULL if the CPU cannot have one: `statctr_pcpu_word()` of
/// `statctr/allocator.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_pcpu_word(counter: *mut StatctrPcpuCtr, cpu: c_int) -> *mut c_ulong {
    guard_value(std::ptr::null_mut(), || {
        let cpu = usize::try_from(cpu).ok()?;
        // SAFETY: NULL or a live counter, by the module's contract.
        let word = unsafe { counter.as_ref()?.handle.cpu_word(cpu) }?;
        Some(word.as_ptr().cast())
    })
}
