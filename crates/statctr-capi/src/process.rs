//! The library as a whole: its mode, costs and memory, prefaulting and trimming.
//!
//! Each function is described in `include/statctr.h`. The safety contract is that of
//! [`counter`](crate): a pointer is NULL or leads to what its type says.

#![allow(unsafe_code)] // the boundary to C: pointers come from there, and names go there
#![allow(clippy::missing_safety_doc)] // once for all in the module's description

use crate::guard::{errno, guard};
use statctr::topology::{CpuSet, Topology};
use statctr::{FallbackReason, Mode, Placement, Pool, Registration};
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns a mode's number in C: `enum statctr_mode_value`.
fn number(mode: Mode) -> Result<c_int, c_int> {
    match mode {
        Mode::Rseq => Ok(1),
        Mode::AtomicFallback => Ok(2),
        Mode::Uniprocessor => Ok(3),
        Mode::Shared => Ok(4),
        Mode::ShortOfMemory => Ok(5),
        Mode::Striped => Ok(6),
        _ => Err(libc::EPROTO),
    }
}

/// Set once counters of this process are plain words: code compiled with `STATCTR_UP` was let in.
static PLAIN_WORDS: AtomicBool = AtomicBool::new(false);

fn pool() -> Result<&'static Pool, c_int> {
    crate::allocator::current_pool()
}

/// Runs `body`, which finds how counters are updated (by rseq, atomically or plain), and converts this mode to its
/// number in C (`enum statctr_mode_value`); returns a negated `errno` if `body` fails.
pub(crate) fn mode_of(body: impl FnOnce() -> Result<Mode, c_int>) -> c_int {
    let mut found = 0;
    match guard(|| body().and_then(number).map(|number| found = number)) {
        0 => found,
        error => error,
    }
}

/// Returns how this process updates C counters (by rseq, atomically or plain), a `statctr_mode_value`: `statctr_mode()`
/// of `statctr.h`.
#[unsafe(no_mangle)]
pub extern "C" fn statctr_mode() -> c_int {
    mode_of(|| if PLAIN_WORDS.load(Ordering::Relaxed) { Ok(Mode::Uniprocessor) } else { Ok(pool()?.mode()) })
}

/// Returns how the calling thread updates C counters (by rseq, atomically or plain), a `statctr_mode_value`:
/// `statctr_thread_mode()` of `statctr.h`.
#[unsafe(no_mangle)]
pub extern "C" fn statctr_thread_mode() -> c_int {
    mode_of(|| match pool()?.mode() {
        _ if PLAIN_WORDS.load(Ordering::Relaxed) => Ok(Mode::Uniprocessor),
        Mode::Rseq | Mode::ShortOfMemory => Ok(statctr::thread_mode()),
        other => Ok(other),
    })
}

/// Returns the reason why this process counts atomically and not by rseq, as a C string; NULL if it counts by rseq:
/// `statctr_fallback_reason()` of `statctr.h`.
#[unsafe(no_mangle)]
pub extern "C" fn statctr_fallback_reason() -> *const c_char {
    let text: &CStr = match statctr::fallback_reason() {
        None => return std::ptr::null(),
        Some(FallbackReason::NotRegistered) => c"threads are not registered for rseq",
        Some(FallbackReason::RegisteredElsewhere) => c"another library registers threads for rseq",
        Some(FallbackReason::SectionsNotAborted) => c"the kernel does not abort preempted rseq sections",
        Some(FallbackReason::AbortsNotProven) => {
            c"the kernel could not be tested for aborts of rseq sections"
        }
        Some(_) => c"rseq is not used here",
    };
    text.as_ptr()
}

/// Returns a number that says who registers this process's threads for rseq (libc, this library, or nobody):
/// `statctr_registration()` of `statctr.h`.
#[unsafe(no_mangle)]
pub extern "C" fn statctr_registration() -> c_int {
    match statctr::registration() {
        Some(Registration::Libc) => 1,
        Some(Registration::Own) => 2,
        Some(Registration::Adopted) => 3,
        Some(_) | None => 0,
    }
}

/// Returns the library's version as a C string: `statctr_version()` of `statctr.h`.
#[unsafe(no_mangle)]
pub extern "C" fn statctr_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Returns the version of the counters' memory layout that this library shares with the inline updates in its C
/// headers: `statctr_abi()` of `statctr.h`.
#[unsafe(no_mangle)]
pub extern "C" fn statctr_abi() -> c_uint {
    crate::ABI
}

/// Returns the message for a negated `errno` that a function of this library returned: `statctr_strerror()` of
/// `statctr.h`.
#[unsafe(no_mangle)]
pub extern "C" fn statctr_strerror(error: c_int) -> *const c_char {
    let text: &CStr = match error.checked_neg().unwrap_or(0) {
        0 => c"no error",
        libc::EINVAL => c"a NULL, a handle that is not initialised, or an argument that makes no sense",
        libc::ENOMEM => c"no memory, or no address space",
        libc::ENOTSUP => c"built for one CPU, but the files or masks of the kernel know of more (see STATCTR_UP in statctr.h)",
        libc::E2BIG => c"more counters in one piece than a unit of memory holds",
        libc::ENOSPC => c"the target is too small",
        libc::ERANGE => c"an item or event that lies outside the group, or an event that is not aligned",
        libc::EPROTO => c"compiled with the header of another version of the library: rebuild with its own (see statctr_abi())",
        libc::ENOTRECOVERABLE => c"a fault inside the library",
        libc::EACCES | libc::EPERM => c"the kernel or a sandbox refused an operation",
        libc::ENOENT => c"a file of the kernel's is not there",
        crate::histogram::NO_VALUES => c"a histogram without values",
        libc::EIO => c"the kernel's account of the memory could not be read",
        _ => c"what the kernel said; strerror() explains its number",
    };
    text.as_ptr()
}

/// Returns the CPUs that a list like `0-3,8` names; those that are online for NULL.
unsafe fn cpus(list: *const c_char) -> Result<CpuSet, c_int> {
    if list.is_null() {
        return Topology::current().map(|topology| topology.online().clone()).map_err(|error| errno(&error));
    }
    // SAFETY: not NULL, so it leads to a string by the module's contract.
    let list = unsafe { CStr::from_ptr(list) }.to_str().map_err(|_| libc::EINVAL)?;
    list.parse().map_err(|error: statctr::Error| errno(&error))
}

/// Prefaults the counter memory of some CPUs, given as a list such as `0-3,8`, so that later updates there take no page
/// fault; returns 0 or `-errno`: `statctr_prefault()` of `statctr.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_prefault(cpus_to_touch: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let cpus = unsafe { cpus(cpus_to_touch)? };
        pool()?.prefault(&cpus).map_err(|error| errno(&error))
    })
}

/// The memory costs of C counters: the bytes that one takes for each CPU, and the number and size of units (one CPU's
/// parts of the memory pool): `statctr_cost_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct StatctrCost {
    /// Bytes that a counter takes for each CPU that counts.
    pub bytes_per_counter_per_cpu: u64,
    /// CPUs that have a unit.
    pub units: u64,
    /// Bytes of counters in a unit.
    pub unit_bytes: u64,
    /// Bytes of address space from one unit to the next.
    pub stride: u64,
    /// Bytes of the widest store that commits an event.
    pub vector_bytes: u64,
}

/// The memory that the C counters of the chosen allocator occupy now, in bytes of address space and of resident memory,
/// with the numbers of reservations (address ranges with a part for each CPU) and of slots (8 bytes in each part, for a
/// counter or an item of a group): `statctr_memory_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct StatctrMemory {
    /// Bytes of reserved address space.
    pub reserved: u64,
    /// Bytes of resident memory in the reserved address space.
    pub resident: u64,
    /// The number of reservations: address ranges with a unit for each CPU.
    pub reservations: u64,
    /// The number of slots that counters and groups take.
    pub slots: u64,
}

const _: () = assert!(size_of::<StatctrCost>() == 40 && size_of::<StatctrMemory>() == 32);

/// Stores the memory costs of a C counter (bytes for each CPU, size of a unit, one CPU's part of the memory pool) in
/// `*target`; returns 0 or `-errno`: `statctr_get_cost()` of `statctr.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_get_cost(target: *mut StatctrCost) -> c_int {
    guard(|| {
        if target.is_null() {
            return Err(libc::EINVAL);
        }
        let cost = pool()?.cost();
        let cost = StatctrCost {
            bytes_per_counter_per_cpu: cost.bytes_per_counter_per_cpu as u64,
            units: cost.cpus as u64,
            unit_bytes: cost.unit_bytes as u64,
            stride: cost.stride as u64,
            vector_bytes: cost.vector_bytes as u64,
        };
        // SAFETY: not NULL, so it leads to room for the struct, by the module's contract.
        unsafe { target.write(cost) };
        Ok(())
    })
}

/// Stores the bytes of address space and resident memory that the C counters of the chosen allocator occupy in
/// `*target`; returns 0 or `-errno`: `statctr_get_memory()` of `statctr.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_get_memory(target: *mut StatctrMemory) -> c_int {
    guard(|| {
        if target.is_null() {
            return Err(libc::EINVAL);
        }
        let memory = pool()?.memory().map_err(|error| errno(&error))?;
        let memory = StatctrMemory {
            reserved: memory.reserved as u64,
            resident: memory.resident as u64,
            reservations: memory.reservations as u64,
            slots: memory.slots as u64,
        };
        // SAFETY: as in `statctr_get_cost`.
        unsafe { target.write(memory) };
        Ok(())
    })
}

/// Clears the calling thread's pointer to its last rseq critical section, whose code `dlclose()` is about to unmap;
/// returns 0: `statctr_prepare_unload()` of `statctr.h`.
#[unsafe(no_mangle)]
pub extern "C" fn statctr_prepare_unload() -> c_int {
    guard(|| {
        statctr::forget_section();
        Ok(())
    })
}

/// Returns 0 if this machine has one possible CPU, so that counters of code built with `STATCTR_UP` may be
/// plain words; else `-ENOTSUP`.
#[unsafe(no_mangle)]
pub extern "C" fn statctr_up_check() -> c_int {
    guard(|| {
        Pool::builder().placement(Placement::Uniprocessor).build().map_err(|error| errno(&error))?;
        PLAIN_WORDS.store(true, Ordering::Relaxed);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_text() {
        for error in [0, 1, -libc::EINVAL, -libc::ENOTSUP, -9999, c_int::MIN, c_int::MAX] {
            // SAFETY: the function returns static strings.
            let text = unsafe { CStr::from_ptr(statctr_strerror(error)) };
            assert!(!text.is_empty() && text.to_str().is_ok());
        }
    }
}
