//! `add_bounded` and `claim` of the specification for aarch64.

use super::{asm, entries_of_table, offset_of_table};

/// Adds `value` to the current CPU's word of an approximate counter in an rseq critical section, unless more than
/// `limit` (in either direction) would then be unflushed (not in the word that approximate reads load). Returns
/// `false`, with nothing added, in that case, if rseq is not in use, the CPU has no words yet, or the kernel aborted
/// the section. (`add_bounded` of the specification.)
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

/// Marks in an rseq critical section all that the current CPU added to an approximate counter as flushed (to be added
/// to the shared word by the caller), and stores what was unflushed in `*claimed`. Returns `false`, with nothing marked
/// and `*claimed` meaningless, if rseq is not in use, the CPU has no words yet, or the kernel aborted the section.
/// (`claim` of the specification.)
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
