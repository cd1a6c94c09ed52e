//! `add_bounded` and `claim` of the specification for aarch64.

use super::{asm, entries_of_table, offset_of_table};

/// Adds `value` to a CPU's counter in a critical section, unless that would leave more than `limit` unflushed,
/// up or down (`add_bounded` of the specification). Returns `false` if nothing was added.
///
/// # Safety
/// The contract is that of [`add`](super::add), for the two words at `base`.
#[inline(always)]
pub(crate) unsafe fn add_bounded(base: *mut u8, table: *const u8, limit: u64, value: u64) -> bool {
    // SAFETY: `table` is the caller's.
    let area = unsafe { offset_of_table(table) };
    if area == 0 {
        return false;
    }
    // SAFETY: as in `add`.
    unsafe {
        section!(
            body {
                "add {d}, {d}, {base}",
                "ldr {t}, [{d}]",
                "ldr {rest}, [{d}, #8]",
                "add {t}, {t}, {value}",
                "sub {rest}, {t}, {rest}",
                "add {rest}, {rest}, {limit}",
                "cmp {rest}, {range}",
                "b.hi 23f" ;
                commit "str {t}, [{d}]"
            }
            area = in(reg) area,
            table = in(reg) entries_of_table(table),
            base = in(reg) base,
            value = in(reg) value,
            limit = in(reg) limit,
            range = in(reg) 2 * limit,
            rest = out(reg) _,
        );
    }
    true
}

/// Notes in a critical section that all that a CPU counted is flushed, and stores in `claimed` the part of it
/// that was not (`claim` of the specification). Returns `false` if nothing was noted; `claimed` is anything
/// then.
///
/// # Safety
/// The contract is that of [`add`](super::add), for the two words at `base`; `claimed` is the caller's.
pub(crate) unsafe fn claim(base: *mut u8, table: *const u8, claimed: *mut u64) -> bool {
    // SAFETY: `table` is the caller's.
    let area = unsafe { offset_of_table(table) };
    if area == 0 {
        return false;
    }
    // SAFETY: as in `add`; the store before the commit goes to a word that is the caller's alone.
    unsafe {
        section!(
            body {
                "add {d}, {d}, {base}",
                "ldr {t}, [{d}]",
                "ldr {rest}, [{d}, #8]",
                "sub {rest}, {t}, {rest}",
                "str {rest}, [{claimed}]" ;
                commit "str {t}, [{d}, #8]"
            }
            area = in(reg) area,
            table = in(reg) entries_of_table(table),
            base = in(reg) base,
            claimed = in(reg) claimed,
            rest = out(reg) _,
        );
    }
    true
}
