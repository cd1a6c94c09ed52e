//! Lazy objects in the hands of C.
//!
//! Each function is described in `include/statctr/lazy.h`. The safety contract is that of
//! [`counter`](crate): a pointer is NULL or leads to what its type says.

#![allow(unsafe_code)] // the boundary to C: pointers come from there, and names go there
#![allow(clippy::missing_safety_doc)] // once for all in the module's description

use crate::guard::{check_abi, errno, guard};
use crate::process::mode_of;
use statctr::raw::RawLazy;
use statctr::{Combine, LazyPool, PerConcurrencyId, PerCpu, PerNode};
use std::ffi::{c_int, c_uint};

/// A C lazy object (four statistics whose per-CPU copies are allocated when a CPU first writes), two words:
/// `statctr_lazy_t`.
pub type StatctrLazy = RawLazy;

const _: () = assert!(size_of::<StatctrLazy>() == 2 * size_of::<usize>());

/// A pool from which C's lazy objects (four statistics whose per-CPU copies are allocated when a CPU first writes) are
/// allocated: `statctr_lazy_pool_t`, opaque in C.
#[derive(Debug)]
pub enum StatctrLazyPool {
    /// An instance per CPU.
    Cpu(LazyPool<PerCpu>),
    /// An instance per node.
    Node(LazyPool<PerNode>),
    /// An instance per concurrency id.
    Concurrency(LazyPool<PerConcurrencyId>),
}

fn combine(number: c_int) -> Result<Combine, c_int> {
    match number {
        0 => Ok(Combine::Sum),
        1 => Ok(Combine::Max),
        2 => Ok(Combine::Or),
        _ => Err(libc::EINVAL),
    }
}

fn pool(scope: c_int, items: [c_int; 4]) -> Result<StatctrLazyPool, c_int> {
    let [a, b, c, d] = items.map(combine);
    let items = [a?, b?, c?, d?];
    let pool = match scope {
        0 => LazyPool::new(items).map(StatctrLazyPool::Cpu),
        1 => LazyPool::new(items).map(StatctrLazyPool::Node),
        2 => return LazyPool::new(items).map(StatctrLazyPool::Concurrency).map_err(|_| libc::ENOTSUP),
        _ => return Err(libc::EINVAL),
    };
    pool.map_err(|error| errno(&error))
}

/// Creates a pool of lazy objects (four statistics each), which have one copy per CPU, node or concurrency id (`scope`)
/// and an operation (sum, maximum, or) for each of the four items; returns 0 or `-errno`: `statctr_lazy_pool_new()` of
/// `statctr/lazy.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_lazy_pool_new(
    target: *mut *mut StatctrLazyPool,
    scope: c_int,
    items: *const c_int,
) -> c_int {
    guard(|| {
        if target.is_null() || items.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: not NULL, so there are four numbers, by the module's contract.
        let items = unsafe { items.cast::<[c_int; 4]>().read() };
        let pool = Box::new(pool(scope, items)?);
        // SAFETY: not NULL, so there is room, by the module's contract.
        unsafe { target.write(Box::into_raw(pool)) };
        Ok(())
    })
}

/// Frees the C handle of a pool of lazy objects (four statistics whose per-CPU copies are allocated when a CPU first
/// writes); the pool's memory stays until its last object is gone; returns 0, or `-EINVAL` for NULL:
/// `statctr_lazy_pool_free()` of `statctr/lazy.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_lazy_pool_free(pool: *mut StatctrLazyPool) -> c_int {
    guard(|| {
        if pool.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: not NULL, so `statctr_lazy_pool_new` made it, by the module's contract. Objects
        // keep what they need.
        drop(unsafe { Box::from_raw(pool) });
        Ok(())
    })
}

/// Returns how objects of a pool of lazy objects (four statistics whose per-CPU copies are allocated when a CPU first
/// writes) are updated, by rseq or atomically, a `statctr_mode_value`: `statctr_lazy_mode()` of `statctr/lazy.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_lazy_mode(pool: *mut StatctrLazyPool) -> c_int {
    mode_of(|| {
        // SAFETY: NULL or a pool, by the module's contract.
        Ok(match unsafe { pool.as_ref() }.ok_or(libc::EINVAL)? {
            StatctrLazyPool::Cpu(pool) => pool.mode(),
            StatctrLazyPool::Node(pool) => pool.mode(),
            StatctrLazyPool::Concurrency(pool) => pool.mode(),
        })
    })
}

/// Initialises a C lazy object (four statistics whose per-CPU copies are allocated when a CPU first writes), all zero;
/// returns 0 or `-errno`: `statctr_lazy_init()` of `statctr/lazy.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_lazy_init(object: *mut StatctrLazy, pool: *mut StatctrLazyPool) -> c_int {
    guard(|| {
        if object.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: not NULL, so there is room, by the module's contract.
        unsafe { object.write(StatctrLazy::ZERO) };
        // SAFETY: NULL or a pool, by the module's contract.
        let made = match unsafe { pool.as_ref() }.ok_or(libc::EINVAL)? {
            StatctrLazyPool::Cpu(pool) => pool.create().map(StatctrLazy::from_group),
            StatctrLazyPool::Node(pool) => pool.create().map(StatctrLazy::from_group),
            StatctrLazyPool::Concurrency(pool) => pool.create().map(StatctrLazy::from_group),
        };
        // SAFETY: as above.
        unsafe { object.write(made.map_err(|error| errno(&error))?) };
        Ok(())
    })
}

/// Initialises a C lazy object (four statistics whose per-CPU copies are allocated when a CPU first writes) as
/// `statctr_lazy_init()` does, after a check of the ABI number that its caller was compiled with; returns 0 or
/// `-errno`, `-EPROTO` for another number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_lazy_init_abi(
    object: *mut StatctrLazy,
    pool: *mut StatctrLazyPool,
    abi: c_uint,
) -> c_int {
    match check_abi(abi) {
        // SAFETY: the module's contract.
        Ok(()) => unsafe { statctr_lazy_init(object, pool) },
        Err(errno) => {
            if !object.is_null() {
                // SAFETY: not NULL, so there is room, by the module's contract.
                unsafe { object.write(StatctrLazy::ZERO) };
            }
            -errno
        }
    }
}

/// Frees the memory of a C lazy object (four statistics whose per-CPU copies are allocated when a CPU first writes);
/// returns 0, or `-EINVAL` for NULL or a handle not in use (also in a second cleanup): `statctr_lazy_cleanup()` of
/// `statctr/lazy.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_lazy_cleanup(object: *mut StatctrLazy) -> c_int {
    guard(|| {
        // SAFETY: NULL or an object, by the module's contract.
        let object = unsafe { object.as_mut() }.ok_or(libc::EINVAL)?;
        let object = std::mem::replace(object, StatctrLazy::ZERO);
        // SAFETY: zeros or a live object that nobody has any more.
        unsafe { object.clean_up() }.then_some(()).ok_or(libc::EINVAL)
    })
}

/// Combines one value with each of the four 64-bit statistics of a C lazy object (whose per-CPU copies are allocated
/// when a CPU first writes), by the operations (sum, maximum, or) of its pool; returns 0, or `-EINVAL` for NULL or an
/// uninitialised handle: `statctr_lazy_update()` of `statctr/lazy.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_lazy_update(
    object: *const StatctrLazy,
    first: u64,
    second: u64,
    third: u64,
    fourth: u64,
) -> c_int {
    // SAFETY: NULL or an object, by the module's contract.
    let object = unsafe { object.as_ref() }.copied().unwrap_or(StatctrLazy::ZERO);
    // without a guard, as the other updates: it does not panic
    // SAFETY: zeros or a live object.
    if unsafe { object.update([first, second, third, fourth]) } { 0 } else { -libc::EINVAL }
}

/// Combines one value with each of the four statistics of a C lazy object (whose per-CPU copies are allocated when a
/// CPU first writes), by the operations (sum, maximum, or) of its pool: the slow path of the header's inline rseq
/// critical section, taken if that did not commit. Returns 0 or `-errno`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_lazy_slow_update(
    object: *const StatctrLazy,
    first: u64,
    second: u64,
    third: u64,
    fourth: u64,
) -> c_int {
    // SAFETY: passed on.
    unsafe { statctr_lazy_update(object, first, second, third, fourth) }
}

/// Stores the four statistics of a C lazy object, each combined over its per-CPU copies (allocated when a CPU first
/// writes), in `values`; returns 0, or `-EINVAL` for NULL or an uninitialised handle: `statctr_lazy_read()` of
/// `statctr/lazy.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_lazy_read(object: *const StatctrLazy, values: *mut u64) -> c_int {
    guard(|| {
        if values.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: NULL or an object, by the module's contract.
        let object = unsafe { object.as_ref() }.copied().ok_or(libc::EINVAL)?;
        // SAFETY: zeros or a live object.
        let (found, _) = unsafe { object.read() }.ok_or(libc::EINVAL)?;
        // SAFETY: not NULL, so there is room for four numbers, by the module's contract.
        unsafe { values.cast::<[u64; 4]>().write(found) };
        Ok(())
    })
}

/// Returns the number of copies that the four statistics of a C lazy object have, one for each CPU, node or concurrency
/// id that wrote, or `-errno`: `statctr_lazy_instances()` of `statctr/lazy.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_lazy_instances(object: *const StatctrLazy) -> c_int {
    let mut count = -libc::EINVAL;
    let error = guard(|| {
        // SAFETY: NULL or an object, by the module's contract.
        let object = unsafe { object.as_ref() }.copied().ok_or(libc::EINVAL)?;
        // SAFETY: zeros or a live object.
        let (_, instances) = unsafe { object.read() }.ok_or(libc::EINVAL)?;
        count = c_int::try_from(instances).map_err(|_| libc::E2BIG)?;
        Ok(())
    });
    if error == 0 { count } else { error }
}
