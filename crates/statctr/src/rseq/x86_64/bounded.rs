//! `add_bounded` and `claim` of the specification for x86-64.

use super::{asm, offset_of_table};

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
