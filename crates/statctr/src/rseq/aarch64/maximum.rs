//! `raise` of the specification for aarch64.

use super::{asm, entries_of_table, offset_of_table};

/// Raises the current CPU's word of a maximum to `value` in an rseq critical section, if it is smaller. Returns
/// `false`, with nothing done, if the epoch (time between two resets) is no longer `number`, rseq is not in use, the
/// CPU has no words yet, or the kernel aborted the section. (`raise` of the specification.)
///
/// # Safety
/// The contract is that of [`add`](super::add), for the two words at `base`, which are those of `number`;
/// `epoch` leads to a live word.
#[inline(always)]
pub(crate) unsafe fn raise(
    base: *mut u8,
    table: *const u8,
    epoch: *const u64,
    number: u64,
    value: u64,
) -> bool {
    // SAFETY: `table` is the caller's.
    let area = unsafe { offset_of_table(table) };
    if area == 0 {
        return false;
    }
    // SAFETY: as in `add`. The store before the commit goes to a maximum that nobody reads, because the epoch
    // beside it is not the current one; the barrier keeps the commit, which makes it one, behind it. That
    // store depends on the load of the epoch, so a reader that sees it sees that epoch, too, when it looks
    // again.
    unsafe {
        section!(
            body {
                "add {d}, {d}, {base}",
                "ldr {t}, [{epoch}]",
                "cmp {t}, {number}",
                "b.ne 23f",
                "mov {stored}, {value}",
                "ldr {t}, [{d}, #8]",
                "cmp {t}, {number}",
                "b.ne 25f",
                "ldr {t}, [{d}]",
                "cmp {value}, {t}",
                "b.ls 22f",
                "b 26f",
                "25:",
                "str {value}, [{d}]",
                "dmb ishst",
                "mov {stored}, {number}",
                "add {d}, {d}, #8",
                "26:" ;
                commit "str {stored}, [{d}]"
            }
            area = in(reg) area,
            table = in(reg) entries_of_table(table),
            base = in(reg) base,
            epoch = in(reg) epoch,
            number = in(reg) number,
            value = in(reg) value,
            stored = out(reg) _,
        );
    }
    true
}
