//! `statctr_group_init` and its like: groups in the hands of C.
//!
//! Each function is described in `include/statctr/group.h`. The safety contract is that of
//! [`counter`](crate): a pointer is NULL or leads to what its type says; a handle is all zero, or
//! was made by this library and not cleaned up.

#![allow(unsafe_code)] // the boundary to C: pointers come from there, and names go there
#![allow(clippy::missing_safety_doc)] // once for all in the module's description

use crate::counter::TAG_MASK;
use crate::guard::{check_abi, errno, guard};
use crate::schema::{StatctrGroupDesc, intern, interned_schema_of};
use statctr::raw::{RawCounter, RawGroup};
use statctr::topology::CpuId;
use statctr::{Group, Item};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;

/// A C group of counters that are updated together: handle, length, and schema (its items and events):
/// `statctr_group_t`.
pub type StatctrGroup = RawGroup;

const _: () = assert!(size_of::<StatctrGroup>() == 3 * size_of::<usize>() + 8);
const _: () = assert!(align_of::<StatctrGroup>() == align_of::<usize>());

const ZERO: StatctrGroup =
    StatctrGroup { counter: RawCounter::ZERO, schema: std::ptr::null_mut(), lines: 0, twin: 0 };

fn checked(group: StatctrGroup) -> Result<StatctrGroup, c_int> {
    updatable(group).and_then(|group| if group.schema.is_null() { Err(libc::EINVAL) } else { Ok(group) })
}

/// Checks a handle for an update, which needs no schema: a histogram's buckets have none.
fn updatable(group: StatctrGroup) -> Result<StatctrGroup, c_int> {
    let tag = group.counter.table & TAG_MASK;
    // one of the ways of updating: rseq, one CPU, atomic, two copies
    if matches!(tag, 1 | 2 | 4 | 8 | 16) && group.counter.base != 0 { Ok(group) } else { Err(libc::EINVAL) }
}

/// Returns a copy of the handle of a C group of counters that `group` points to; `Err(EINVAL)` for NULL and for words
/// that cannot be a group's handle of this library.
pub(crate) unsafe fn live(group: *const StatctrGroup) -> Result<StatctrGroup, c_int> {
    // SAFETY: NULL or a handle, by the module's contract.
    checked(unsafe { group.as_ref() }.copied().ok_or(libc::EINVAL)?)
}

/// Runs `work` on the group behind the pointer.
unsafe fn with<R>(
    group: *const StatctrGroup,
    work: impl FnOnce(&Group) -> Result<R, c_int>,
) -> Result<R, c_int> {
    // SAFETY: the module's contract.
    unsafe { live(group)?.with(work) }.unwrap_or(Err(libc::EINVAL))
}

fn item_of(group: &Group, slot: c_uint) -> Result<Item, c_int> {
    // kinds from C number their items by slot
    group.schema().item(slot as usize).ok_or(libc::ERANGE)
}

/// Initialises a C group with the items (64-bit statistics) and events (items updated together) in `desc`, all zero;
/// returns 0 or `-errno`: `statctr_group_init()` of `statctr/group.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_init(
    group: *mut StatctrGroup,
    desc: *const StatctrGroupDesc,
) -> c_int {
    guard(|| {
        if group.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: not NULL, so it leads to room for a handle, by the module's contract.
        unsafe { group.write(ZERO) };
        // SAFETY: the module's contract.
        let kind = unsafe { intern(desc)? };
        let pool = crate::allocator::current_pool()?;
        let made = Group::new_in(pool, &kind.schema).map_err(|error| errno(&error))?;
        // SAFETY: as above.
        unsafe { group.write(RawGroup::from_group(made)) };
        Ok(())
    })
}

/// Initialises a C group of counters as `statctr_group_init()` does, after a check of the ABI number that its caller
/// was compiled with; returns 0 or `-errno`, `-EPROTO` for another number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_init_abi(
    group: *mut StatctrGroup,
    desc: *const StatctrGroupDesc,
    abi: c_uint,
) -> c_int {
    match check_abi(abi) {
        // SAFETY: the module's contract.
        Ok(()) => unsafe { statctr_group_init(group, desc) },
        Err(errno) => {
            if !group.is_null() {
                // SAFETY: not NULL, so it leads to room for a handle, by the module's contract.
                unsafe { group.write(ZERO) };
            }
            -errno
        }
    }
}

/// Frees the memory of a C group of counters; returns 0, or `-EINVAL` for NULL or a handle not in use (also in a second
/// cleanup): `statctr_group_cleanup()` of `statctr/group.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_cleanup(group: *mut StatctrGroup) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let handle = unsafe { live(group)? };
        // SAFETY: `live` has seen that it is not NULL.
        unsafe { group.write(ZERO) };
        // SAFETY: a live handle, and nobody has it any more.
        drop(unsafe { handle.into_group() });
        Ok(())
    })
}

/// Runs an update: `false` from it means that the slot is not there.
///
/// Without a guard: an update does not panic (and if it did, `extern "C"` would end the process),
/// and a guard takes its closure through memory, where an event's numbers would wait for each other.
#[inline(always)]
unsafe fn update(group: *const StatctrGroup, work: impl FnOnce(StatctrGroup) -> bool) -> c_int {
    // SAFETY: NULL or a handle, by the module's contract.
    match unsafe { group.as_ref() }.copied().ok_or(libc::EINVAL).and_then(updatable) {
        Ok(group) if work(group) => 0,
        Ok(_) => -libc::ERANGE,
        Err(errno) => -errno,
    }
}

/// Adds a value to one item (64-bit statistic) of a C group: the slow path of the header's inline rseq critical
/// section, taken if that did not commit. Returns 0 or `-errno`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_slow_add(group: *mut StatctrGroup, item: c_uint, value: u64) -> c_int {
    // SAFETY: the module's contract.
    unsafe { update(group, |group| group.add(item as usize, value)) }
}

/// Adds two values to the items of an event (statistics updated together) of a C group by one store: the slow path of
/// the header's inline rseq critical section, taken if that did not commit. Returns 0 or `-errno`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_slow_event2(
    group: *mut StatctrGroup,
    event: c_uint,
    v0: u64,
    v1: u64,
) -> c_int {
    // SAFETY: the module's contract.
    unsafe { update(group, |group| group.commit(event as usize, &[v0, v1])) }
}

/// Adds four values to the items of an event (statistics updated together) of a C group by one store: the slow path of
/// the header's inline rseq critical section, taken if that did not commit. Returns 0 or `-errno`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_slow_event4(
    group: *mut StatctrGroup,
    event: c_uint,
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
) -> c_int {
    // SAFETY: the module's contract.
    unsafe { update(group, |group| group.commit(event as usize, &[v0, v1, v2, v3])) }
}

/// Adds eight values to the items of an event (statistics updated together) of a C group by one store: the slow path of
/// the header's inline rseq critical section, taken if that did not commit. Returns 0 or `-errno`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_slow_event8(
    group: *mut StatctrGroup,
    event: c_uint,
    values: *const u64,
) -> c_int {
    // SAFETY: NULL or eight numbers, by the module's contract.
    match unsafe { values.cast::<[u64; 8]>().as_ref() } {
        // SAFETY: the module's contract.
        Some(values) => unsafe { update(group, |group| group.commit(event as usize, values)) },
        None => -libc::EINVAL,
    }
}

/// Adds a value to one item (64-bit statistic) of a C group; returns 0, `-EINVAL` for an uninitialised group, `-ERANGE`
/// for an item that it does not have: `statctr_group_add()` of `statctr/group.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_add(group: *mut StatctrGroup, item: c_uint, value: u64) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_group_slow_add(group, item, value) }
}

/// Adds 1 to one item (64-bit statistic) of a C group; returns 0, `-EINVAL` for an uninitialised group, `-ERANGE` for
/// an item that it does not have: `statctr_group_inc()` of `statctr/group.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_inc(group: *mut StatctrGroup, item: c_uint) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_group_slow_add(group, item, 1) }
}

/// Subtracts 1 from one item (64-bit statistic) of a C group; returns 0, `-EINVAL` for an uninitialised group,
/// `-ERANGE` for an item that it does not have: `statctr_group_dec()` of `statctr/group.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_dec(group: *mut StatctrGroup, item: c_uint) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_group_slow_add(group, item, u64::MAX) }
}

/// Adds two values to the two items of an event (statistics updated together) of a C group by one commit (a single
/// store); returns 0, or `-errno` if nothing was added: `statctr_group_event2()` of `statctr/group.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_event2(
    group: *mut StatctrGroup,
    event: c_uint,
    v0: u64,
    v1: u64,
) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_group_slow_event2(group, event, v0, v1) }
}

/// Adds four values to the four items of an event (statistics updated together) of a C group by one commit (a single
/// store); returns 0, or `-errno` if nothing was added: `statctr_group_event4()` of `statctr/group.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_event4(
    group: *mut StatctrGroup,
    event: c_uint,
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_group_slow_event4(group, event, v0, v1, v2, v3) }
}

/// Adds eight values to the eight items of an event (statistics updated together) of a C group by one commit (a single
/// store); returns 0, or `-errno` if nothing was added: `statctr_group_event8()` of `statctr/group.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_event8(
    group: *mut StatctrGroup,
    event: c_uint,
    values: *const u64,
) -> c_int {
    // SAFETY: the module's contract.
    unsafe { statctr_group_slow_event8(group, event, values) }
}

/// Writes what `read` finds through `value`.
unsafe fn read_into(
    group: *const StatctrGroup,
    value: *mut u64,
    read: impl FnOnce(&Group) -> Result<u64, c_int>,
) -> c_int {
    guard(|| {
        if value.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: the module's contract.
        let found = unsafe { with(group, read)? };
        // SAFETY: not NULL, so it leads to a number, by the module's contract.
        unsafe { value.write(found) };
        Ok(())
    })
}

/// Stores the value of one item (64-bit statistic) of a C group, summed over the CPUs, in `*value`; returns 0,
/// `-EINVAL` for an uninitialised group, `-ERANGE` for an item that it does not have: `statctr_group_read_item()` of
/// `statctr/group.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_read_item(
    group: *const StatctrGroup,
    item: c_uint,
    value: *mut u64,
) -> c_int {
    // SAFETY: the module's contract.
    unsafe { read_into(group, value, |group| Ok(group.read_item(item_of(group, item)?))) }
}

/// Stores in `*value` what one CPU added to an item (64-bit statistic) of a C group; returns 0, `-EINVAL` for an
/// uninitialised group, `-ERANGE` for an item that it does not have: `statctr_group_read_cpu()` of `statctr/group.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_read_cpu(
    group: *const StatctrGroup,
    cpu: c_uint,
    item: c_uint,
    value: *mut u64,
) -> c_int {
    // SAFETY: the module's contract.
    unsafe { read_into(group, value, |group| Ok(group.read_cpu(CpuId::new(cpu), item_of(group, item)?))) }
}

/// Returns the caller's numbers.
unsafe fn values_of<'a>(values: *mut u64, len: usize) -> Result<&'a mut [u64], c_int> {
    if values.is_null() || len > isize::MAX as usize / 8 {
        return Err(libc::EINVAL);
    }
    // SAFETY: not NULL, so it leads to `len` numbers, by the module's contract.
    Ok(unsafe { std::slice::from_raw_parts_mut(values, len) })
}

/// Stores the values of all items (64-bit statistics) of a C group, each summed over the CPUs; returns 0 or `-errno`
/// (`-ENOSPC` for too short a target, which is left as it was): `statctr_group_fold()` of `statctr/group.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_fold(
    group: *const StatctrGroup,
    values: *mut u64,
    len: usize,
) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let values = unsafe { values_of(values, len)? };
        // SAFETY: the module's contract.
        unsafe { with(group, |group| group.fold_into(values).map_err(|error| errno(&error))) }
    })
}

/// A group that C goes on owning, for longer than one closure.
struct Borrowed(ManuallyDrop<Group>);

impl Borrowed {
    /// # Safety
    /// The contract is that of [`RawGroup::with`], for as long as this lives.
    unsafe fn new(group: StatctrGroup) -> Option<Borrowed> {
        // SAFETY: a live handle's schema is one; a clone of it is ours to give back.
        let schema = Box::new(unsafe { group.schema.as_ref() }?.clone());
        let copy = StatctrGroup { schema: Box::into_raw(schema), ..group };
        // SAFETY: the schema is ours, and the lines are not dropped (see `drop`).
        unsafe { copy.into_group() }.map(|group| Borrowed(ManuallyDrop::new(group)))
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        // SAFETY: not used again.
        let raw = RawGroup::from_group(unsafe { ManuallyDrop::take(&mut self.0) });
        // SAFETY: `from_group` has just boxed it; the lines are C's.
        drop(unsafe { Box::from_raw(raw.schema) });
    }
}

/// Stores the values of all items (64-bit statistics) of several C groups of one kind (with the same items and events),
/// each summed over the CPUs, in one pass over each CPU's memory; returns 0 or `-errno` (`-ENOSPC` for too short a
/// target, which is left as it was): `statctr_group_fold_many()` of `statctr/group.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_fold_many(
    groups: *const StatctrGroup,
    count: usize,
    values: *mut u64,
    len: usize,
) -> c_int {
    guard(|| {
        if groups.is_null() || count > isize::MAX as usize / size_of::<StatctrGroup>() {
            return Err(libc::EINVAL);
        }
        // SAFETY: the module's contract.
        let values = unsafe { values_of(values, len)? };
        // SAFETY: not NULL, so it leads to `count` handles, by the module's contract.
        let groups = unsafe { std::slice::from_raw_parts(groups, count) };
        let mut borrowed = Vec::new();
        borrowed.try_reserve_exact(count).map_err(|_| libc::ENOMEM)?;
        for &group in groups {
            // SAFETY: live until the end of this function, by the module's contract.
            borrowed.push(unsafe { Borrowed::new(checked(group)?) }.ok_or(libc::EINVAL)?);
        }
        let groups: Vec<&Group> = borrowed.iter().map(|group| &*group.0).collect();
        statctr::fold_groups(&groups, values).map_err(|error| errno(&error))
    })
}

/// Writes the values of a C group of counters in the format of the kernel's 64-bit network MIB statistics
/// (`IFLA_INET6_STATS`); returns 0 or `-errno` (`-ENOSPC` for too short a target, which is left as it was):
/// `statctr_group_fill_stats()` of `statctr/group.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_fill_stats(
    group: *const StatctrGroup,
    target: *mut c_void,
    bytes: usize,
) -> c_int {
    guard(|| {
        if target.is_null() || isize::try_from(bytes).is_err() {
            return Err(libc::EINVAL);
        }
        // SAFETY: not NULL, so it leads to `bytes` bytes, by the module's contract.
        let target = unsafe { std::slice::from_raw_parts_mut(target.cast::<u8>(), bytes) };
        // SAFETY: the module's contract.
        unsafe { with(group, |group| group.fill_stats(target).map_err(|error| errno(&error))) }
    })
}

/// Sets the value of one item (64-bit statistic) of a C group; returns 0, `-EINVAL` for an uninitialised group,
/// `-ERANGE` for an item that it does not have: `statctr_group_set()` of `statctr/group.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_set(group: *mut StatctrGroup, item: c_uint, value: u64) -> c_int {
    guard(|| {
        let set = |group: &Group| {
            group.set(item_of(group, item)?, value);
            Ok(())
        };
        // SAFETY: the module's contract.
        unsafe { with(group, set) }
    })
}

/// Stores pointers to the name, unit of measurement and help text of an item (64-bit statistic) of a C group, which
/// stay valid; returns 0 or `-errno`: `statctr_group_describe()` of `statctr/group.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statctr_group_describe(
    group: *const StatctrGroup,
    item: c_uint,
    name: *mut *const c_char,
    unit: *mut *const c_char,
    help: *mut *const c_char,
) -> c_int {
    guard(|| {
        // SAFETY: the module's contract.
        let kind = unsafe { with(group, |group| interned_schema_of(group.schema()).ok_or(libc::EINVAL))? };
        let texts = kind.texts.get(item as usize).ok_or(libc::ERANGE)?;
        for (target, text) in [(name, &texts.name), (unit, &texts.unit), (help, &texts.help)] {
            if !target.is_null() {
                // SAFETY: not NULL, so there is room for a pointer, by the module's contract; kinds
                // live as long as the process.
                unsafe { target.write(text.as_ptr()) };
            }
        }
        Ok(())
    })
}
