//! `add_bounded` and `claim` of the specification for x86-64.

use super::{asm, offset_of_table};

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
            prepare {}
            check {}
            body {
                "mov {s}, qword ptr [{t}]",
                "add {s}, {value}",
                "mov {rest}, {s}",
                "sub {rest}, qword ptr [{t} + 8]",
                "add {rest}, {limit}",
                "cmp {rest}, {range}",
                "ja {slow}" ;
                commit "mov qword ptr [{t}], {s}"
            }
            cleanup {}
            area = in(reg) area,
            table = in(reg) table,
            base = in(reg) base,
            value = in(reg) value,
            limit = in(reg) limit,
            range = in(reg) 2 * limit,
            t = out(reg) _,
            s = out(reg) _,
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
            prepare {}
            check {}
            body {
                "mov {s}, qword ptr [{t}]",
                "mov {rest}, {s}",
                "sub {rest}, qword ptr [{t} + 8]",
                "mov qword ptr [{claimed}], {rest}" ;
                commit "mov qword ptr [{t} + 8], {s}"
            }
            cleanup {}
            area = in(reg) area,
            table = in(reg) table,
            base = in(reg) base,
            claimed = in(reg) claimed,
            t = out(reg) _,
            s = out(reg) _,
            rest = out(reg) _,
        );
    }
    true
}
