//! `add_float` of the specification for aarch64.

use super::{asm, entries_of_table, offset_of_table};

/// Adds `value` to the current CPU's sum of a floating-point gauge in an rseq critical section; a sum of another epoch
/// (time between two sets of the gauge) than `*epoch` is replaced by `value`. `base` is the gauge's pair of words (sum,
/// epoch) that belongs to no CPU; `table`, tagged, has the distance from there to each CPU's pair. Returns `false`,
/// with nothing added, if rseq is not in use, the CPU has no words yet, or the kernel aborted the section. (`add_float`
/// of the specification.)
///
/// # Safety
/// The contract is that of [`add`](super::add), for the two words at `base`; `epoch` leads to a live word.
#[inline(always)]
pub(crate) unsafe fn add_float(base: *mut u8, table: *const u8, epoch: *const u64, value: f64) -> bool {
    // SAFETY: `table` is the caller's.
    let area = unsafe { offset_of_table(table) };
    if area == 0 {
        return false;
    }
    // SAFETY: as in `add`. The store before the commit goes to a sum that does not count, because the epoch
    // beside it is not the current one; the barrier keeps the commit, which makes it count, behind it. That
    // store depends on the load of the epoch, so a reader that sees it sees that epoch, too, when it looks
    // again.
    unsafe {
        section!(
            body {
                "add {d}, {d}, {base}",
                "ldr {e}, [{epoch}]",
                "ldr {t}, [{d}, #8]",
                "cmp {t}, {e}",
                "b.eq 25f",
                "str {value:d}, [{d}]",
                "dmb ishst",
                "fmov {sum:d}, {e}",
                "add {d}, {d}, #8",
                "b 26f",
                "25:",
                "ldr {sum:d}, [{d}]",
                "fadd {sum:d}, {sum:d}, {value:d}",
                "26:" ;
                commit "str {sum:d}, [{d}]"
            }
            area = in(reg) area,
            table = in(reg) entries_of_table(table),
            base = in(reg) base,
            epoch = in(reg) epoch,
            value = in(vreg) value,
            e = out(reg) _,
            sum = out(vreg) _,
        );
    }
    true
}
